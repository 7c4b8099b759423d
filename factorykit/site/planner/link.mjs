// The address of a plan: "?v=1&accelerator=b200&tokens=2e13", only what differs from the preset.
import { holds } from "../../charts/runtime/bounds.mjs";
import { isSize } from "./shapes.mjs";

export function written(page, state) {
  const parts = Object.entries(state)
    .filter(([name, value]) => value !== undefined && value !== page.preset[name])
    .map(([name, value]) => `${name}=${encodeURIComponent(typeof value === "number" ? compact(value) : value).replaceAll("%20", "+")}`);
  return parts.length ? `?v=${page.version}&${parts.join("&")}` : "";
}

function compact(value) {
  const plain = String(value);
  const short = value.toExponential().replace("e+", "e");
  return short.length < plain.length ? short : plain;
}

// The state that an address means, and sentences that say what of it was refused.
export function recalled(page, query) {
  const said = new URLSearchParams(query);
  const state = { ...page.preset };
  const refused = [];
  const version = said.get("v");
  if (version !== null && Number(version) !== page.version) refused.push(`this page reads addresses of version ${page.version}, not ${version}`);
  for (const [name, word] of said) {
    if (name === "v") continue;
    const problem = refusal(page, name, word);
    if (problem) refused.push(problem);
    else state[name] = isNumber(page, name) ? Number(word) : word;
  }
  return { state, refused };
}

const isNumber = (page, name) => page.controls[name] !== undefined && page.controls[name].min !== undefined;

function refusal(page, name, word) {
  if (name === "way") return Object.hasOwn(page.ways, word) ? null : `way is one of ${Object.keys(page.ways).join(", ")}`;
  if (name === "precision") return page.menus.accelerator.some(([, , precisions]) => precisions.includes(word)) ? null : `there is no precision ${word}`;
  if (name === "offer") return Object.values(page.offers).flat().some(([key]) => key === word) ? null : `there is no offer ${word}`;
  if (Object.hasOwn(page.menus, name)) {
    const known = page.menus[name].some(([key]) => key === word) || (name === "model" && isSize(word));
    return known ? null : `there is no ${name} '${word}'`;
  }
  const control = Object.hasOwn(page.controls, name) ? page.controls[name] : null;
  if (!control) return `there is no input ${name}`;
  const [label] = page.quantities[name];
  if (page.words[name]) return page.words[name].includes(word) ? null : `${label} is one of ${page.words[name].join(", ")}`;
  if (word.trim() === "" || Number.isNaN(Number(word))) return `${label} = '${word}' is no number`;
  return holds(control.bounds, Number(word)) ? null : `${label} = ${word} is outside ${control.bounds}`;
}

// The question that a state asks: the model, what is given, rent or own.
export function asked(page, state) {
  const { model, shape, way, site, failures, offer, ...rest } = state;
  const given = {};
  const row = (menu, key) => page.menus[menu].find(([each]) => each === key);
  if (site) [, , given.carbon_kg_per_kwh, given.electricity_usd_per_kwh] = row("site", site);
  if (failures) given.accelerator_mtbf_s = row("failures", failures)[2];
  const priced = offer && (page.offers[state.accelerator] ?? []).find(([key]) => key === offer);
  if (priced && way === "rent") given.rental_usd_per_accelerator_h = priced[2];
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) given[name] = value;
  return { model, shape, given, way };
}
