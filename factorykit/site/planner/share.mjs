// Export of a plan: Python, a command line, spreadsheet rows, a citation.
import { pick } from "./link.mjs";
import { quoted } from "../../charts/runtime/quoted.mjs";

// Given quantities that differ from the defaults of fk.plan.
function parts(page, state, { given, spread }) {
  const ranges = Object.keys(spread).map((name) => [name, state[name]]);
  const rest = Object.entries({ ...given, ...Object.fromEntries(ranges) }).filter(([name]) => name !== "tokens");
  return rest.filter(([name, value]) => name !== "precision" || value !== "bf16").filter(([name, value]) => name !== "sequence_length" || value !== page.preset.sequence_length);
}

// All arguments of fk.plan, as name and value; the model first.
function all(page, state, question) {
  const { chips, counts, ways, tiers, sites, offers, limits, objective } = question;
  const named = { model: state.shape ?? state.model, tokens: state.tokens, chips, counts, acquire: ways, tiers: tiers.join() === "one" ? null : tiers };
  Object.assign(named, { sites: sites[0] && sites.map(({ site }) => site), offers, ...limits, objective }, Object.fromEntries(parts(page, state, question)));
  return Object.entries(named).filter(([, value]) => value != null);
}

export function python(page, state, question) {
  const [[, model], ...named] = all(page, state, question);
  const literal = (value) => (typeof value === "string" && value.includes("..") ? `fk.Uniform(${value.replace("..", ", ")})` : JSON.stringify(value));
  return `import factorykit as fk\n\np = fk.plan(\n    ${[`${JSON.stringify(model)},`, ...named.map(([name, value]) => `${name}=${literal(value)},`)].join("\n    ")}\n)\nprint(p)\n`;
}

// A value in TOML: JSON but for tables.
function toml(value) {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, item]) => `${name} = ${toml(item)}`).join(", ")}}`;
}

export function command(page, state, question) {
  if (Object.keys(question.spread).length) return `python - <<'END'\n${python(page, state, question)}END\n`;
  const lines = all(page, state, question).map(([name, value]) => `${name} = ${toml(value)}`);
  return `cat > run.toml <<'END'\n${lines.join("\n")}\nEND\nfactorykit plan run.toml\n`;
}

export function csv(page, state, answer) {
  const rows = Object.entries({ ...answer.given, ...pick(answer.values, [...page.readouts, ...page.also, ...page.parts]) }).map(([name, value]) => {
    const [label, unit] = page.quantities[name] ?? [name, ""];
    return [name, label, value, unit, ...(answer.intervals?.[name] ?? ["", ""])];
  });
  return `${[["quantity", "label", "value", "unit", "low", "high"], ...rows].map((row) => row.map(quoted).join(",")).join("\n")}\n`;
}

export function bibtex(page, address) {
  const year = new Date().getFullYear();
  return `@misc{factorykit_plan,\n  title = {A plan of a training run, computed by factorykit ${page.release}},\n  author = {{The factorykit founders}},\n  year = {${year}},\n  howpublished = {\\url{${address}}},\n}\n`;
}
