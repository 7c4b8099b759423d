// The launch script of a plan or of an inference engine, as factorykit.launch writes it; separate from the planner's script.
import { make } from "../../charts/runtime/dom.mjs";
import { text } from "./values.mjs";
import { placed } from "./worker.mjs";

// Whether quantities have the values of a condition, such as "recompute=modules; experts>=1".
function holds(condition, values) {
  return [...(condition ?? "").matchAll(/(\w+)(>?=)([\w.]+)/g)].every(([, name, sign, limit]) => values[name] != null && (sign === ">=" ? values[name] >= Number(limit) : `${values[name]}` === limit));
}

// The functions of the table call these.
const { ceil } = Math; // eslint-disable-line no-unused-vars
const written = (value) => `${Number(Number(value).toPrecision(15))}`; // eslint-disable-line no-unused-vars

// rows: framework, quantity, condition, and a function that writes the option; one with an unknown number is left out.
export function launch({ rows, words, expected, layout, release }, framework, known) {
  const chunks = known.pipeline_parallel * known.virtual_stages;
  const lighter_stages = (chunks - (known.layers % chunks)) % chunks;
  const values = { ...known, lighter_stages, time_to_first_token_s: known.ttft_s, time_per_output_token_s: known.tpot_s };
  const options = rows.filter(([of, , condition]) => of === framework && holds(condition, values));
  const shown = (name) => `${words[name][0]} ${text(words[name], values[name])}`;
  const named = (name) => values[name] != null;
  const command = options.map(([, , , write]) => write(values)).filter((option) => option && !option.includes("NaN")).join(" \\\n  ");
  const expressed = new Set(options.map(([, quantity]) => quantity));
  const others = layout.filter(([name, neutral]) => named(name) && !expressed.has(name) && values[name] !== neutral && values[name] !== 0);
  const results = expected.filter(named).map(shown);
  const isBatch = command.includes("$HEAD_NODE");
  return [
    "#!/bin/bash",
    ...(isBatch ? [`#SBATCH --nodes=${values.nodes} --ntasks-per-node=1 --gpus-per-node=${values.accelerators_per_node}`] : []),
    ...(results.length ? [`# factorykit ${release} expects: ${results.join(", ")}`] : []),
    ...others.map(([name]) => `# no option of ${framework}: ${shown(name)}`),
    "set -eu",
    ...(isBatch ? ['HEAD_NODE=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'] : []),
    `exec ${command} \\`,
    "  ${OPTIONS:-}\n", // eslint-disable-line no-template-curly-in-string
  ].join("\n");
}

// Buttons on a page that write the script of its plan, and write it again when the plan changes.
function put(data, place) {
  let chosen = null;
  const status = make("p", { class: "fkp-note", role: "status" });
  const field = make("textarea", { class: "fkp-text", readonly: true, rows: 12, "aria-label": "Launch script", hidden: true, spellcheck: "false", wrap: "off" });
  const show = () => {
    const [values, engine] = (chosen && place.launched()) || [];
    if (values) field.value = launch(data, engine ?? chosen, values);
  };
  const act = (name) => async () => {
    chosen = name;
    show();
    field.hidden = !field.value;
    try {
      await navigator.clipboard.writeText(field.value);
      status.textContent = "Launch script copied.";
    } catch {
      field.select();
      status.textContent = "The launch script stands below, selected.";
    }
  };
  const names = "factorykitServe" in place.dataset ? { engine: "Bash script" } : data.frameworks;
  const buttons = Object.entries(names).map(([name, label]) => make("button", { type: "button", onclick: act(name) }, label));
  place.querySelector(".fkp-pins").append(make("h2", {}, "Launch script"), make("div", { class: "fkp-buttons" }, ...buttons), status, field);
  new MutationObserver(show).observe(place, { attributeFilter: ["data-answered"] });
}

export function start(data) {
  placed('textarea[wrap="off"] { white-space: pre; overflow: auto; font-family: monospace; }', '[data-factorykit-plan="whole"], [data-factorykit-serve]', (place) => put(data, place));
}
