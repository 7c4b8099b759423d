import assert from "node:assert/strict";
import test from "node:test";
import { recalled, remembered } from "../../../factorykit/charts/runtime/address.mjs";

test("stored values are restored", () => {
  const values = { mfu: 0.4, tokens: 1.56e13 };
  assert.deepEqual(recalled(remembered("", "run", values), "run"), values);
});

test("charts of a page share one address", () => {
  const both = remembered("#build:pue=1.2", "run", { mfu: 0.4 });
  assert.equal(both, "#build:pue=1.2;run:mfu=0.4");
  assert.deepEqual(recalled(remembered(both, "run", { mfu: 0.5 }), "build"), { pue: 1.2 });
});

test("an address without a chart restores nothing", () => {
  for (const hash of ["", "#", "#sources", "#other:mfu=1", "#run:", "#%E0%A4%A"]) assert.equal(recalled(hash, "run"), null);
});

test("text is kept as text, and empty values are omitted", () => {
  assert.deepEqual(recalled("#run:mfu=high&tokens=&pue=1.1", "run"), { mfu: "high", pue: 1.1 });
});

test("a truncated character or a repeated value gives a text that no input accepts", () => {
  assert.deepEqual(recalled("#run:mfu=0.4%E0%A4%A", "run"), { mfu: "0.4\ufffd%A" });
  assert.deepEqual(recalled("#run:mfu=0.4&mfu=0.5&pue=1.1", "run"), { mfu: "0.4 and 0.5", pue: 1.1 });
});

test("an address with escaped characters is read", () => {
  assert.deepEqual(recalled("#run%3Amfu%3D0.4", "run"), { mfu: 0.4 });
});
