import assert from "node:assert/strict";
import test from "node:test";
import { about, near, quantile, stages } from "../../../factorykit/site/planner/engine.mjs";
import { asked, recalled, written } from "../../../factorykit/site/planner/link.mjs";

const page = {
  version: 1,
  preset: { model: "a", accelerator: "x", accelerators: 1024, way: "rent" },
  controls: { accelerators: { bounds: "[1, inf)", min: 8 }, pue: { bounds: "[1, inf)", min: 1 }, recompute: { bounds: "none | full" } },
  quantities: { accelerators: ["Accelerators"], pue: ["PUE"], recompute: ["Recomputation"] },
  words: { recompute: ["none", "full"] },
  ways: { rent: [], own: [] },
  menus: { model: [["a", "A"]], accelerator: [["x", "X", ["bf16"]]], site: [["fra", "France", 0.06, 0.1]], failures: [["f", "F", 1e8, "s"]] },
  offers: { x: [["o", "provider", 2.5, "2026"]] },
};

test("an address holds what differs from the preset, and comes back as it went", () => {
  const state = { ...page.preset, accelerators: 2e13, model: "1T mixture", pue: undefined };
  assert.equal(written(page, state), "?v=1&model=1T+mixture&accelerators=2e13");
  assert.equal(written(page, page.preset), "");
  assert.deepEqual(recalled(page, written(page, state)).state, { ...page.preset, accelerators: 2e13, model: "1T mixture" });
});

test("what an address may not say is refused by name and the rest is taken", () => {
  const { state, refused } = recalled(page, "?v=3&accelerators=-5&pue=1.2&mfu=1&model=b&recompute=some&__proto__=1&way=steal");
  assert.deepEqual(state, { ...page.preset, pue: 1.2 });
  assert.equal(refused.length, 7);
  assert.ok(refused.includes("Accelerators = -5 is outside [1, inf)"));
});

test("menus give what they stand for, and a typed value goes before them", () => {
  const { given } = asked(page, { ...page.preset, site: "fra", failures: "f", offer: "o", carbon_kg_per_kwh: 0.5 });
  assert.deepEqual([given.carbon_kg_per_kwh, given.electricity_usd_per_kwh, given.accelerator_mtbf_s, given.rental_usd_per_accelerator_h], [0.5, 0.1, 1e8, 2.5]);
});

test("batches divide, pipelines take up the odd part, quantiles lie between neighbours", () => {
  assert.deepEqual([near(2048, 1024), near(2048, 1536)], [2048, 1536]);
  assert.deepEqual(stages(16, 384), [1, 2, 3, 4, 6, 8, 12, 16]);
  assert.equal(quantile([1, 2, 4], 0.75), 3);
  assert.ok(about(1024).every((n) => n % 8 === 0) && about(1024).includes(1024));
});
