// The address of a plan: "?v=1&accelerator=b200&tokens=2e13", with only the differences from the preset.
import { holds } from "../../charts/runtime/bounds.mjs";
import { isSize } from "./shapes.mjs";

const NONE = "none";

export function written(page, state, version = page.version) {
  const preset = page.presets[version];
  const gone = Object.keys(preset).filter((name) => state[name] === undefined).map((name) => [name, NONE]);
  const parts = [...Object.entries(state), ...gone]
    .flatMap(([name, value]) => (name === "shape" ? Object.entries(value ?? {}) : name === "model" && state.shape ? [] : [[name, value]]))
    .filter(([name, value]) => value !== undefined && value !== preset[name])
    .map(([name, value]) => `${name}=${encodeURIComponent(typeof value === "number" ? compact(value) : value).replaceAll("%20", "+").replaceAll("%2C", ",")}`);
  return parts.length || version !== page.version ? `?${[`v=${version}`, ...parts].join("&")}` : "";
}

function compact(value) {
  const plain = String(value);
  const short = value.toExponential().replace("e+", "e");
  return short.length < plain.length ? short : plain;
}

const MOST_LETTERS = 200;
const shortened = (sentence) => (sentence.length > MOST_LETTERS ? `${sentence.slice(0, MOST_LETTERS)} …` : sentence);

// The state of an address, and messages about its rejected parts.
export function recalled(page, query) {
  const entries = new URLSearchParams(query);
  const refused = [];
  const version = entries.get("v") ?? String(page.version);
  const known = Object.keys(page.presets);
  if (!known.includes(version)) refused.push(shortened(`this page reads addresses of version ${known.join(", ")}, not ${version}`));
  const read = known.includes(version) ? Number(version) : page.version;
  const state = { ...page.presets[read] };
  for (const name of new Set(entries.keys())) {
    const [word, again] = entries.getAll(name);
    if (name === "v" && again === undefined) continue;
    if (word === NONE && again === undefined && page.optional.includes(name)) {
      delete state[name];
      continue;
    }
    const problem = again === undefined ? refusal(page, name, word) : `${name} is given twice`;
    if (problem) refused.push(shortened(problem));
    else if (isOfShape(page, name)) state.shape = { ...state.shape, [name]: Number(word) };
    else state[name] = isNumber(page, name) && !word.includes("..") ? Number(word) : word;
  }
  const lacks = Object.keys(page.shape).filter((name) => page.shape[name].always && state.shape?.[name] === undefined);
  if (state.shape && lacks.length) {
    refused.push(`a model of its own lacks ${lacks.map((name) => page.quantities[name][0]).join(", ")}`);
    delete state.shape;
  }
  return { state, refused, version: read };
}

const isNumber = (page, name) => page.controls[name]?.min !== undefined || Object.hasOwn(page.constants, name);
const isOfShape = (page, name) => Object.hasOwn(page.shape, name);

export function refusal(page, name, word) {
  if (page.inputs && !page.inputs.includes(name)) return `there is no input ${name}`;
  if (page.labels?.[name]) return Object.hasOwn(page.labels[name], word) ? null : `${name} is one of ${Object.keys(page.labels[name]).join(", ")}`;
  for (const [several, words] of [["way", page.ways], ["tiers", page.tiers]]) {
    if (name === several) return Object.hasOwn(words, word) ? null : `${name} is one of ${Object.keys(words).join(", ")}`;
  }
  if (name === "chips" || name === "sites") {
    const [menu] = [{ chips: "accelerator", sites: "site" }[name]];
    const unknown = listed(word).find((choice) => !page.menus[menu].some(([key]) => key === choice));
    return unknown === undefined && word ? null : `there is no ${menu} '${unknown ?? word}'`;
  }
  if (name === "counts") return listed(word).length && listed(word).every((count) => /^[1-9]\d{0,6}$/.test(count)) ? null : `counts are whole numbers, such as 4096,8192, not ${word}`;
  if (name === "offers") {
    try {
      return readOffers(page, word) && null;
    } catch (error) {
      return error.message;
    }
  }
  if (name === "objective") return page.objectives.includes(word) ? null : `objective is one of ${page.objectives.join(", ")}`;
  if (name === "precision") return page.menus.accelerator.some(([, , precisions]) => precisions.includes(word)) ? null : `there is no precision ${word}`;
  if (name === "offer") return Object.values(page.offers).flat().some(([key]) => key === word) ? null : `there is no offer ${word}`;
  if (name === "model" && Object.hasOwn(page.unplanned ?? {}, word)) return `${page.unplanned[word][0]} is not planned: ${page.unplanned[word][1]}`;
  if (Object.hasOwn(page.menus, name)) {
    const listed = page.menus[name].some(([key]) => key === word) || (name === "model" && page.unplanned && isSize(word));
    return listed ? null : `there is no ${name} '${word}'`;
  }
  if (Object.hasOwn(page.constants, name)) return word.trim() && holds(page.constants[name], Number(word)) ? null : `${name} = ${word} is outside ${page.constants[name]}`;
  const control = isOfShape(page, name) ? page.shape[name] : Object.hasOwn(page.controls, name) ? page.controls[name] : null;
  if (!control) return `there is no input ${name}`;
  const [label] = page.quantities[name];
  if (page.words[name]) return page.words[name].includes(word) ? null : `${label} is one of ${page.words[name].join(", ")}`;
  const [low, high] = word.split("..").map(Number);
  if (control.spread && word.includes("..")) return low < high && holds(control.bounds, low) && holds(control.bounds, high) ? null : `${label} = '${word}' is not a range within ${control.bounds}`;
  if (word.trim() === "" || Number.isNaN(Number(word))) return `${label} = '${word}' is no number`;
  return holds(control.bounds, Number(word)) ? null : `${label} = ${word} is outside ${control.bounds}`;
}

// The names in a list such as "b200,h200_sxm".
export const listed = (text) => (text ? text.split(",") : []);

// Offers as text, one a line or between semicolons: "provider, h100_sxm, 2.1, 4096".
export function readOffers(page, text) {
  return text.split(/[;\n]/).filter((line) => line.trim()).map((line) => {
    const [provider, accelerator, price, count] = line.split(",").map((part) => part.trim());
    const rental_usd_per_accelerator_h = Number(price?.replace(/^\$|\s*(USD|\$)?\/h$/g, ""));
    const offered_accelerators = Number(count?.replaceAll(/[_ ]/g, "").replace(/k$/i, "e3"));
    const known = page.menus.accelerator.some(([key]) => key === accelerator);
    if (!known || !(rental_usd_per_accelerator_h >= 0) || !(offered_accelerators >= 1)) throw new Error(`offer '${line.trim()}' must be a provider, an accelerator, a price and a count, such as 'mine, h100_sxm, 2.1, 4096'`);
    return { provider, accelerator, rental_usd_per_accelerator_h, offered_accelerators };
  });
}

// The question of a state.
export function asked(page, state) {
  const { model, shape, way, tiers, site, sites, failures, offer, objective, accelerator, chips, accelerators, counts, offers, ...rest } = state;
  const given = {};
  const row = (menu, key) => page.menus[menu].find(([value]) => value === key);
  if (failures) given.accelerator_mtbf_s = row("failures", failures)[2];
  const all = [accelerator, ...listed(chips)];
  const priced = offer && all.length === 1 && (page.offers[accelerator] ?? []).find(([key]) => key === offer);
  if (priced && way !== "own") given.rental_usd_per_accelerator_h = priced[2];
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) given[name] = value;
  const limits = Object.fromEntries(page.limits.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]));
  for (const name of page.limits) delete given[name];
  const spread = {}; // uniform between two values
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "string" && value.includes("..")) {
      spread[name] = value.split("..").map(Number);
      given[name] = (spread[name][0] + spread[name][1]) / 2;
    }
  }
  const places = [...new Set(listed([site, sites].filter(Boolean).join(",")))].map((key) => {
    const [, , carbon_kg_per_kwh, electricity_usd_per_kwh] = row("site", key);
    return { site: key, given: { carbon_kg_per_kwh, electricity_usd_per_kwh, ...pick(given, ["carbon_kg_per_kwh", "electricity_usd_per_kwh"]) } };
  });
  return {
    model,
    shape,
    given,
    limits,
    objective,
    spread,
    chips: [...new Set(all)],
    counts: counts ? listed(counts).map(Number).sort((a, b) => a - b) : accelerators === undefined ? null : [accelerators],
    ways: way === "either" ? ["rent", "own"] : [way],
    tiers: tiers === "best" ? ["one", "two"] : [tiers],
    sites: places.length ? places : [null],
    offers: offers ? readOffers(page, offers) : null,
  };
}

export const pick = (values, names) => Object.fromEntries(names.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]));
