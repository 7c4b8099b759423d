// Settings that stay in the picture: up to four curves, dashed, each with the inputs in which it differs from the present.
import { make } from "./dom.mjs";

export const MOST = 4;
const DASHES = [
  [8, 4],
  [2, 3],
  [12, 3, 2, 3],
  [5, 2],
];

// A specification with a layer for pinned curves: the axes of its own last curve, the field of its panel.
export function withPins(spec, index) {
  const lines = spec.layer[0].layer;
  const { x, y } = lines.at(-1).encoding;
  const pin = { field: "slot", type: "ordinal", scale: { domain: DASHES.map((_, slot) => slot), range: DASHES }, legend: null };
  const layer = { data: { name: "pins" }, mark: { type: "line", clip: true, opacity: 0.75 }, encoding: { x, y: { ...y, field: `pin ${index}` }, strokeDash: pin } };
  return { ...spec, datasets: { ...spec.datasets, pins: [] }, layer: [...spec.layer, layer] };
}

// Rows of the table of a chart as rows of the pinned layer: the first curve of each panel, in the units of its axes.
export function pinRows(slot, columns, rows) {
  const first = columns.flatMap(({ field, spec, scale }, i) => (field === "curve 0" ? [[`pin ${spec}`, i, scale || 1]] : []));
  const [{ scale }] = columns;
  return rows.map((row) => Object.fromEntries([["slot", slot], ["x", row[0] / (scale || 1)], ...first.map(([name, i, by]) => [name, row[i] == null ? null : row[i] / by])]));
}

// The dashes of a pinned curve, beside its name.
function dash(pattern) {
  const drawn = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const image = drawn("svg", { width: 30, height: 8, "aria-hidden": "true", class: "fk-dash" });
  image.append(drawn("path", { d: "M0,4H30", stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": pattern.join() }));
  return image;
}

// What differs between pins and the present, as a table: inputs that do, then results. `formatted` gives the present text.
export function pinTable(pins, named, formatted, remove) {
  const head = (label, slot) => make("th", { scope: "col" }, dash(DASHES[slot]), label, " ", make("button", { type: "button", title: `Remove ${label}`, "aria-label": `Remove ${label}`, onclick: () => remove(label) }, "×"));
  const rows = named
    .map(({ name, label, result }) => ({ label, result, texts: [...pins.map(({ texts }) => texts[name]), formatted(name)] }))
    .filter(({ result, texts }) => result || new Set(texts).size > 1)
    .map(({ label, texts }) => make("tr", {}, make("th", { scope: "row" }, label), ...texts.map((text) => make("td", {}, text))));
  return [make("thead", {}, make("tr", {}, make("th", {}), ...pins.map(({ label }, slot) => head(label, slot)), make("th", { scope: "col" }, "Now"))), make("tbody", {}, ...rows)];
}
