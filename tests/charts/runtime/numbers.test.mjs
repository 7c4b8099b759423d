import assert from "node:assert/strict";
import test from "node:test";
import { number, position, valueAt } from "../../../factorykit/charts/runtime/numbers.mjs";

const linear = { min: 0, max: 0.7, scale: "linear", whole: false, steps: 200 };
const log = { min: 8, max: 1e6, scale: "log", whole: true, steps: 200 };
const doubling = { min: 1, max: 64, scale: "doubling", whole: true, steps: 6 };

test("numbers are formatted as in a table", () => {
  assert.deepEqual([0, 0.123456, 16384, 1234567.8, 1e-5, 2e15].map(number), ["0", "0.1235", "16,384", "1,234,568", "1.000e-5", "2.000e+15"]);
  assert.deepEqual([null, undefined, Number.NaN, "word"].map(number), ["–", "–", "–", "word"]);
});

test("the ends of a slider are its bounds, and a value beyond them is at an end", () => {
  for (const control of [linear, log, doubling]) {
    assert.deepEqual([valueAt(control, 0), valueAt(control, control.steps)], [control.min, control.max]);
    assert.deepEqual([position(control, control.min), position(control, control.max)], [0, control.steps]);
    assert.equal(position(control, control.max * 10), control.steps);
  }
});

test("position and value are inverse functions", () => {
  for (const control of [linear, doubling, { ...log, whole: false }])
    for (let place = 0; place <= control.steps; place += 1) assert.equal(position(control, valueAt(control, place)), place);
});

test("a whole quantity has whole values, a degree of parallelism doubles", () => {
  for (let place = 0; place <= 200; place += 1) assert.ok(Number.isInteger(valueAt(log, place)));
  assert.deepEqual([0, 1, 2, 6].map((place) => valueAt(doubling, place)), [1, 2, 4, 64]);
});
