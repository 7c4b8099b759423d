import assert from "node:assert/strict";
import test from "node:test";
import { about, near, quantile } from "../../../factorykit/site/planner/engine.mjs";
import { asked, readOffers, recalled, written } from "../../../factorykit/site/planner/link.mjs";

const page = {
  version: 2,
  presets: { 1: { model: "a", accelerator: "x", accelerators: 64, way: "rent", tiers: "one" }, 2: { model: "a", accelerator: "x", accelerators: 1024, way: "rent", tiers: "one" } },
  preset: { model: "a", accelerator: "x", accelerators: 1024, way: "rent", tiers: "one" },
  controls: { accelerators: { bounds: "[1, inf)", min: 8 }, pue: { bounds: "[1, inf)", min: 1 }, recompute: { bounds: "none | full" } },
  quantities: { accelerators: ["Accelerators"], pue: ["PUE"], recompute: ["Recomputation"], layers: ["Layers"], hidden_size: ["Hidden size"], kv_heads: ["Key-value heads"] },
  shape: { layers: { bounds: "[1, inf)", always: true }, hidden_size: { bounds: "[1, inf)", always: true }, kv_heads: { bounds: "[1, inf)", always: false } },
  tiers: { one: [], two: [] },
  unplanned: { jamba: ["Jamba", "layers that attend"] },
  words: { recompute: ["none", "full"] },
  ways: { rent: [], own: [] },
  menus: { model: [["a", "A"]], accelerator: [["x", "X", ["bf16"]]], site: [["fra", "France", 0.06, 0.1]], failures: [["f", "F", 1e8, "s"]] },
  offers: { x: [["o", "provider", 2.5, "2026"]] },
  limits: ["deadline_s"],
  constants: {},
  optional: ["accelerators"],
  objectives: ["wall_days"],
};

test("an address contains the differences from the preset, and restores the same state", () => {
  const state = { ...page.preset, accelerators: 2e13, model: "1T mixture", pue: undefined };
  assert.equal(written(page, state), "?v=2&model=1T+mixture&accelerators=2e13");
  assert.equal(written(page, page.preset), "");
  assert.deepEqual(recalled(page, written(page, state)).state, { ...page.preset, accelerators: 2e13, model: "1T mixture" });
});

test("an address contains a model of the user completely or not at all", () => {
  const state = { ...page.preset, shape: { layers: 32, hidden_size: 4096, kv_heads: 8 } };
  assert.equal(written(page, state), "?v=2&layers=32&hidden_size=4096&kv_heads=8");
  assert.deepEqual(recalled(page, written(page, state)).state, state);
  const { state: without, refused } = recalled(page, "?v=2&layers=32&kv_heads=0");
  assert.deepEqual(without, page.preset);
  assert.deepEqual(refused, ["Key-value heads = 0 is outside [1, inf)", "a model of its own lacks Hidden size"]);
});

test("an old address keeps its meaning when the default of the page changes", () => {
  assert.equal(recalled(page, "?v=1&pue=1.2").state.accelerators, 64);
  assert.equal(recalled(page, "?pue=1.2").state.accelerators, 1024);
});

test("invalid entries of an address are refused by name, and the rest is accepted", () => {
  const { state, refused } = recalled(page, "?v=3&accelerators=-5&pue=1.2&mfu=1&recompute=some&__proto__=1&way=steal&tiers=three&model=jamba");
  assert.deepEqual(state, { ...page.preset, pue: 1.2 });
  assert.equal(refused.length, 8);
  assert.ok(refused.includes("Jamba is not planned: layers that attend"));
  assert.ok(refused.includes("Accelerators = -5 is outside [1, inf)"));
});

test("repeated entries and an invalid version change nothing", () => {
  assert.deepEqual(recalled(page, "?v=1&pue=1.2&pue=1.3"), { state: page.presets[1], refused: ["pue is given twice"], version: 1 });
  assert.deepEqual(recalled(page, "?v=constructor").state, page.preset);
});

test("menus set their quantities, and a typed value overrides them", () => {
  const { given, sites } = asked(page, { ...page.preset, site: "fra", failures: "f", offer: "o", carbon_kg_per_kwh: 0.5 });
  assert.deepEqual([given.accelerator_mtbf_s, given.rental_usd_per_accelerator_h], [1e8, 2.5]);
  assert.deepEqual(sites, [{ site: "fra", given: { carbon_kg_per_kwh: 0.5, electricity_usd_per_kwh: 0.1 } }]);
});

test("a state is a question of several accelerators, counts and limits; without a count it is open", () => {
  const state = { ...page.preset, chips: "y", deadline_s: 60, objective: "wall_days", way: "either", tiers: "best" };
  const { given, chips, counts, ways, tiers, limits, objective } = asked(page, state);
  assert.deepEqual({ given, chips, counts, ways, tiers, limits, objective }, { given: {}, chips: ["x", "y"], counts: [1024], ways: ["rent", "own"], tiers: ["one", "two"], limits: { deadline_s: 60 }, objective: "wall_days" });
  assert.deepEqual(asked(page, { ...state, counts: "64,32", accelerators: undefined }).counts, [32, 64]);
  const open = recalled(page, "?v=2&accelerators=none").state;
  assert.equal(asked(page, open).counts, null);
  assert.equal(written(page, open), "?v=2&accelerators=none");
});

test("offers are read line by line, and an invalid line is named", () => {
  const [offer] = readOffers(page, "mine, x, $2.1/h, 4k");
  assert.deepEqual(offer, { provider: "mine", accelerator: "x", rental_usd_per_accelerator_h: 2.1, offered_accelerators: 4000 });
  assert.throws(() => readOffers(page, "mine, z, 2, 8"), /offer 'mine, z, 2, 8' must be/);
});

test("nearby counts divide the batch, and quantiles are interpolated", () => {
  assert.deepEqual([near(2048, 1024), near(2048, 1536)], [2048, 1536]);
  assert.equal(quantile([1, 2, 4], 0.75), 3);
  assert.ok(about(1024).every((n) => n % 8 === 0) && about(1024).includes(1024));
});
