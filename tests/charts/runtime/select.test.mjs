import assert from "node:assert/strict";
import test from "node:test";
import { timeField, timesOf, timeText } from "../../../factorykit/charts/runtime/play.mjs";
import { seriesField } from "../../../factorykit/charts/runtime/series.mjs";

const color = { field: "of", type: "nominal" };
const when = { field: "when", type: "temporal" };

test("a chart has series where a legend tells them apart, in any layer", () => {
  assert.equal(seriesField({ layer: [{ encoding: {} }, { layer: [{ encoding: { color } }] }] }), "of");
  assert.equal(seriesField({ encoding: { color: { ...color, legend: null } } }), undefined);
  assert.equal(seriesField({ encoding: { color: { field: "x", type: "quantitative" } } }), undefined);
  assert.equal(seriesField({ encoding: { color: { value: "red" } } }), undefined);
});

test("a chart plays along a time axis or an axis of years", () => {
  assert.equal(timeField({ layer: [{ encoding: { y: when } }, { encoding: { x: when } }] }), "when");
  assert.equal(timeField({ encoding: { x: { field: "year", type: "quantitative" } } }), "year");
  assert.equal(timeField({ encoding: { x: { field: "tokens", type: "quantitative" } } }), undefined);
});

test("times are distinct, in order, and words among years are none", () => {
  const rows = [2025, "2023", "not stated", null, 2025].map((year) => ({ year }));
  assert.deepEqual(timesOf(rows, "year"), [2023, 2025]);
  assert.deepEqual([2023, Date.UTC(2026, 5, 1)].map(timeText), ["2023", "Jun 2026"]);
});
