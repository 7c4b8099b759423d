// A plan to take along: Python, a command line, rows for a spreadsheet, a citation.
import { quoted } from "../../charts/runtime/quoted.mjs";

const MENUS = new Set(["model", "shape", "way", "tiers", "failures", "offer", "accelerator", "accelerators", "tokens", "site"]);

function parts(page, state, { given }) {
  const rest = Object.entries(given).filter(([name]) => !MENUS.has(name));
  return rest.filter(([name, value]) => name !== "precision" || value !== "bf16").filter(([name, value]) => name !== "sequence_length" || value !== page.preset.sequence_length);
}

export function python(page, state, question) {
  const literal = (value) => (typeof value === "string" ? JSON.stringify(value) : String(value));
  const lines = [
    `tokens=${state.tokens},`,
    `chips=${literal(state.accelerator)},`,
    `counts=[${state.accelerators}],`,
    ...(state.way === "own" ? ['acquire="own",'] : []),
    ...(state.tiers === "one" ? [] : [`tiers=${state.tiers === "best" ? '["one", "two"]' : '"two"'},`]),
    ...parts(page, state, question).map(([name, value]) => `${name}=${literal(value)},`),
  ];
  const model = state.shape ? JSON.stringify(state.shape) : literal(state.model);
  return `import factorykit as fk\n\np = fk.plan(\n    ${[`${model},`, ...lines].join("\n    ")}\n)\nprint(p)\n`;
}

export function command(page, state, question, answer) {
  const word = (value) => (/^[\w.+-]+$/.test(String(value)) ? String(value) : `'${String(value).replaceAll("'", `'\\''`)}'`);
  const options = [`--tokens ${state.tokens}`, `--chips ${word(state.accelerator)}`, `--counts ${state.accelerators}`];
  if (state.way === "own") options.push("--acquire own");
  if (state.tiers !== "one") options.push(`--tiers ${state.tiers === "best" ? "one,two" : "two"}`);
  const shape = state.shape ? Object.keys(page.shape).map((name) => [name, answer.given[name]]) : [];
  const rest = [...shape, ...parts(page, state, question)].map(([name, value]) => `${name}=${word(value)}`);
  return ["factorykit plan", word(state.model), ...rest, ...options].join(" ");
}

export function csv(page, state, answer) {
  const rows = Object.entries({ ...answer.given, ...pick(answer.values, [...page.readouts, ...page.also, ...page.parts]) }).map(([name, value]) => {
    const [label, unit] = page.quantities[name] ?? [name, ""];
    return [name, label, value, unit, ...(answer.intervals?.[name] ?? ["", ""])];
  });
  return `${[["quantity", "label", "value", "unit", "low", "high"], ...rows].map((row) => row.map(quoted).join(",")).join("\n")}\n`;
}

function pick(values, names) {
  return Object.fromEntries(names.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]));
}

export function bibtex(page, address) {
  const year = new Date().getFullYear();
  return `@misc{factorykit_plan,\n  title = {A plan of a training run, computed by factorykit ${page.release}},\n  author = {{The factorykit founders}},\n  year = {${year}},\n  howpublished = {\\url{${address}}},\n}\n`;
}
