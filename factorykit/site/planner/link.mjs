// The address of a plan: "?v=1&accelerator=b200&tokens=2e13", only what differs from the preset.
import { holds } from "../../charts/runtime/bounds.mjs";
import { isSize } from "./shapes.mjs";

export function written(page, state) {
  const parts = Object.entries(state)
    .flatMap(([name, value]) => (name === "shape" ? Object.entries(value ?? {}) : name === "model" && state.shape ? [] : [[name, value]]))
    .filter(([name, value]) => value !== undefined && value !== page.preset[name])
    .map(([name, value]) => `${name}=${encodeURIComponent(typeof value === "number" ? compact(value) : value).replaceAll("%20", "+")}`);
  return parts.length ? `?v=${page.version}&${parts.join("&")}` : "";
}

function compact(value) {
  const plain = String(value);
  const short = value.toExponential().replace("e+", "e");
  return short.length < plain.length ? short : plain;
}

const MOST_LETTERS = 200;
const shortened = (sentence) => (sentence.length > MOST_LETTERS ? `${sentence.slice(0, MOST_LETTERS)} …` : sentence);

// The state that an address means, and sentences that say what of it was refused.
export function recalled(page, query) {
  const said = new URLSearchParams(query);
  const refused = [];
  const version = said.get("v") ?? String(page.version);
  const known = Object.keys(page.presets);
  if (!known.includes(version)) refused.push(shortened(`this page reads addresses of version ${known.join(", ")}, not ${version}`));
  const state = { ...(known.includes(version) ? page.presets[version] : page.preset) };
  for (const name of new Set(said.keys())) {
    const [word, again] = said.getAll(name);
    if (name === "v" && again === undefined) continue;
    const problem = again === undefined ? refusal(page, name, word) : `${name} is said twice`;
    if (problem) refused.push(shortened(problem));
    else if (isOfShape(page, name)) state.shape = { ...state.shape, [name]: Number(word) };
    else state[name] = isNumber(page, name) ? Number(word) : word;
  }
  const lacks = Object.keys(page.shape).filter((name) => page.shape[name].always && state.shape?.[name] === undefined);
  if (state.shape && lacks.length) {
    refused.push(`a model of its own lacks ${lacks.map((name) => page.quantities[name][0]).join(", ")}`);
    delete state.shape;
  }
  return { state, refused };
}

const isNumber = (page, name) => page.controls[name] !== undefined && page.controls[name].min !== undefined;
const isOfShape = (page, name) => Object.hasOwn(page.shape, name);

function refusal(page, name, word) {
  for (const [several, words] of [["way", page.ways], ["tiers", page.tiers]]) {
    if (name === several) return Object.hasOwn(words, word) ? null : `${name} is one of ${Object.keys(words).join(", ")}`;
  }
  if (name === "precision") return page.menus.accelerator.some(([, , precisions]) => precisions.includes(word)) ? null : `there is no precision ${word}`;
  if (name === "offer") return Object.values(page.offers).flat().some(([key]) => key === word) ? null : `there is no offer ${word}`;
  if (name === "model" && Object.hasOwn(page.unplanned, word)) return `${page.unplanned[word][0]} is not planned: ${page.unplanned[word][1]}`;
  if (Object.hasOwn(page.menus, name)) {
    const listed = page.menus[name].some(([key]) => key === word) || (name === "model" && isSize(word));
    return listed ? null : `there is no ${name} '${word}'`;
  }
  const control = isOfShape(page, name) ? page.shape[name] : Object.hasOwn(page.controls, name) ? page.controls[name] : null;
  if (!control) return `there is no input ${name}`;
  const [label] = page.quantities[name];
  if (page.words[name]) return page.words[name].includes(word) ? null : `${label} is one of ${page.words[name].join(", ")}`;
  if (word.trim() === "" || Number.isNaN(Number(word))) return `${label} = '${word}' is no number`;
  return holds(control.bounds, Number(word)) ? null : `${label} = ${word} is outside ${control.bounds}`;
}

// The question that a state asks: the model, what is given, rent or own.
export function asked(page, state) {
  const { model, shape, way, tiers, site, failures, offer, ...rest } = state;
  const given = {};
  const row = (menu, key) => page.menus[menu].find(([each]) => each === key);
  if (site) [, , given.carbon_kg_per_kwh, given.electricity_usd_per_kwh] = row("site", site);
  if (failures) given.accelerator_mtbf_s = row("failures", failures)[2];
  const priced = offer && (page.offers[state.accelerator] ?? []).find(([key]) => key === offer);
  if (priced && way === "rent") given.rental_usd_per_accelerator_h = priced[2];
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) given[name] = value;
  return { model, shape, given, way, tiers };
}
