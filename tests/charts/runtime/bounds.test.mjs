import assert from "node:assert/strict";
import test from "node:test";
import { admitted, holds } from "../../../factorykit/charts/runtime/bounds.mjs";

const inputs = { mfu: { label: "Utilization", bounds: "(0, 1]" }, accelerators: { label: "Accelerators", bounds: "[1, inf)" } };

test("a square bracket includes its bound, a round one does not", () => {
  assert.deepEqual([0, 1e-9, 1, 1.01].map((value) => holds("(0, 1]", value)), [false, true, true, false]);
  assert.deepEqual([-50, -50.1, 60].map((value) => holds("[-50, 60)", value)), [true, false, false]);
});

test("infinity and NaN are outside every bound", () => {
  assert.ok(holds("[1, inf)", 1e300));
  for (const value of [Infinity, -Infinity, Number.NaN]) assert.ok(!holds("(-inf, inf)", value));
});

test("values within bounds are accepted", () => {
  assert.deepEqual(admitted({ mfu: 0.4, accelerators: 1 }, inputs), { taken: { mfu: 0.4, accelerators: 1 }, refused: [] });
});

test("other values are refused, each with a message", () => {
  const { taken, refused } = admitted({ mfu: 5, accelerators: -5, tokens: 1, constructor: 1 }, inputs);
  assert.deepEqual(taken, {});
  assert.deepEqual(refused, [
    "Utilization = 5 is outside (0, 1]",
    "Accelerators = -5 is outside [1, inf)",
    "there is no input tokens",
    "there is no input constructor",
  ]);
  assert.deepEqual(admitted({ mfu: Number.NaN, accelerators: 8 }, inputs), { taken: { accelerators: 8 }, refused: ["Utilization is no number"] });
});

test("a text input accepts its choices only", () => {
  const words = { accelerator: { label: "Accelerator", bounds: ["b200", "h100_sxm"] } };
  assert.deepEqual(admitted({ accelerator: "b200" }, words), { taken: { accelerator: "b200" }, refused: [] });
  const { taken, refused } = admitted({ accelerator: "<svg>" }, words);
  assert.deepEqual(taken, {});
  assert.match(refused[0], /Accelerator is one of b200, h100_sxm/);
});
