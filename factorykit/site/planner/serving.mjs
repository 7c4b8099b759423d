// The page Serve: state, address, worker, and the answer as a sentence, a picture and a table.
import { make } from "../../charts/runtime/dom.mjs";
import { Form } from "./form.mjs";
import { listed, recalled, written } from "./link.mjs";
import { COLORS, counted, curves } from "./pictures.mjs";
import { rounded, span, text } from "./values.mjs";
import { placed, worker } from "./worker.mjs";

const PRESET = { model: "llama3_70b", chips: "h100_sxm,h200_sxm,b200", requests_per_s: 10, input_tokens: 1024, output_tokens: 1024, time_to_first_token_s: 2, time_per_output_token_s: 0.05, precision: "fp8", engine: "vllm", objective: "cost_usd_per_h" };
// Defaults of fk.serve, and the options of the command line.
const USUAL = { input_tokens: 1024, output_tokens: 1024, precision: "fp8", engine: "vllm", objective: "cost_usd_per_h" };
const OPTIONS = [...Object.keys(USUAL), "users", "fleet", "chips", "ttft", "tpot"];
const GROUPS = [
  { title: "The question", controls: ["model", "chips", "requests_per_s", "users", "fleet", "input_tokens", "output_tokens", "time_to_first_token_s", "time_per_output_token_s"] },
  { title: "More choices", controls: ["precision", "engine", "objective", "rental_usd_per_accelerator_h", "cached_input_share", "draft_tokens", "serving_load_share", "user_think_s", "pue"] },
];
// What the form and the address need to know besides the vocabulary.
const PAGE_OF_SERVE = {
  version: 1,
  presets: { 1: PRESET },
  preset: PRESET,
  groups: GROUPS,
  inputs: GROUPS.flatMap(({ controls }) => controls),
  optional: ["requests_per_s", "time_to_first_token_s", "time_per_output_token_s"],
  title: "The load, the limits and the chips",
  names: { chips: "Accelerators to choose from", engine: "Engine", users: "Users, instead of requests per second", fleet: "Accelerators that you have, instead of a load", time_to_first_token_s: "Time to first token within", time_per_output_token_s: "Time per output token within", user_think_s: "Time of a user between answers" },
  labels: {
    engine: { vllm: "vLLM", sglang: "SGLang", trtllm: "TensorRT-LLM" },
    precision: { bf16: "BF16", fp8: "FP8", fp4: "FP4 (NVFP4, MXFP4)", int4: "INT4" },
    objective: { cost_usd_per_h: "least cost", accelerators: "fewest accelerators", j_per_token: "least energy per token" },
  },
  words: {},
  best: [],
  steps: {},
  shape: {},
  constants: {},
  published: {},
};
const COUNTED = { bounds: "[1, inf)", min: 1, max: 1e7, scale: "log", whole: true, units: {}, spread: false };
// What a state has one of: a load, or what determines it.
const LOADS = ["requests_per_s", "users", "fleet"];
const ANNOUNCED_AFTER_MS = 700;
const NARROW = 600;
const WORDS = ["model", "chips", "precision", "engine", "objective", "users", "fleet"];
const COUNT = ["", "1"];
const USD = ["", "USD"];
const JOULE = ["", "J"];
const MILLI = ["", "s", "ms", 1e-3];
// The unit in which a time is shown.
const timed = (value) => (value < 1 ? MILLI : ["", "s"]);
const time = (value) => text(timed(value), value);

// The question of a state; limits by their short names.
function asked(page, state) {
  const { model, chips, precision, engine, objective, users, fleet } = state;
  const limits = Object.entries(page.limitNames).filter(([, name]) => state[name] !== undefined).map(([short_, name]) => [short_, state[name]]);
  const given = Object.entries(state).filter(([name, value]) => value !== undefined && !WORDS.includes(name) && !page.limits.includes(name));
  return { model, chips: listed(chips), precision, engine, objective, users, fleet, limits: Object.fromEntries(limits), given: Object.fromEntries(given), wanted: Object.keys(page.controls) };
}

// A state with one load: the one that changed, else the first.
function settled(state, { preset }, changed) {
  const given = LOADS.filter((name) => state[name] !== undefined);
  const [kept] = given.includes(changed) ? [changed] : given;
  const others = Object.fromEntries(Object.entries(state).filter(([name]) => !LOADS.includes(name)));
  return kept ? { ...others, [kept]: state[kept] } : { ...others, requests_per_s: preset.requests_per_s };
}

// The arguments of fk.serve that differ from its defaults.
function parts({ chips, precision, engine, objective, users, fleet, limits, given }) {
  const { requests_per_s: _, ...known } = given;
  return Object.entries({ users, fleet, chips, ...limits, precision, engine, ...(fleet === undefined && { objective }), ...known }).filter(([, value]) => value !== undefined).filter(([name, value]) => value !== USUAL[name]);
}

function python(question) {
  const load = question.given.requests_per_s;
  const lines = parts(question).map(([name, value]) => `${name}=${JSON.stringify(Object.hasOwn(question.limits, name) ? `${value} s` : value)},`);
  return `import factorykit as fk\n\np = fk.serve(\n    ${[`${JSON.stringify(question.model)},`, ...(load === undefined ? [] : [`load=${load},`]), ...lines].join("\n    ")}\n)\nprint(p)\n`;
}

function command(question) {
  const named = parts(question);
  const given = named.filter(([name]) => !OPTIONS.includes(name)).map(([name, value]) => ` ${name}=${value}`);
  const chosen = named.filter(([name]) => OPTIONS.includes(name)).map(([name, value]) => ` --${name.replaceAll("_", "-")} ${Object.hasOwn(question.limits, name) ? `'${value} s'` : value}`);
  return `factorykit serve ${[question.model, question.given.requests_per_s].filter(Boolean).join(" ")}${given.join("")}${chosen.join("")}\n`;
}

class Serve {
  constructor(place, page, engine) {
    const { state, refused } = recalled(page, location.search);
    Object.assign(this, { place, page, state: settled(state, page), id: 0, busy: false, answer: null, waits: null });
    this.form = new Form(page, (...change) => this.change(...change), { root: place.dataset.root ?? "" });
    const reset = make("button", { type: "button", class: "fkp-link", onclick: () => this.go({ ...page.preset }) }, "Start over");
    this.noted = make("p", { class: "fkp-noted", role: "alert" });
    this.refused = make("div", { class: "fkp-refused", role: "alert" });
    this.says = make("p", { class: "fkp-says" }, "Computing …");
    this.picture = make("div", { class: "fkp-place" });
    this.legend = make("div", { class: "fkp-legend" });
    const caption = make("figcaption", {}, make("strong", {}, "Fast answers against many answers"), make("span", {}, "the best layouts and concurrencies of each chip that keep the time to first token; up and to the right is better; the ring is the plan"));
    const first = make("div", { class: "fkp-first" }, make("figure", { class: "fkp-figure" }, caption, this.picture, this.legend));
    this.table = make("div", { class: "fkp-compare", tabindex: 0, role: "region", "aria-label": "The best plan of each chip" });
    this.live = make("p", { class: "fkp-live", role: "status", "aria-live": "polite" });
    const element = make("section", { class: "fkp-answer", "aria-label": "The answer" }, this.noted, this.refused, this.says, first, this.table);
    this.element = element;
    if (place.id) {
      this.form.element.querySelector("input[type=range]").id = place.id;
      place.removeAttribute("id");
    }
    place.launched = () => this.answer && [this.answer.best, this.question.engine];
    place.replaceChildren(make("div", { class: "fkp-left" }, this.form.element, reset), element, this.copies(), this.live);
    place.classList.add("fkp", "fkp-serve");
    this.worker = worker(engine);
    this.worker.onmessage = ({ data }) => this.heard(data);
    this.note(refused);
    window.addEventListener("popstate", () => this.back());
    this.ask();
  }

  note(refused) {
    this.noted.textContent = refused.length ? `Not taken from the address: ${refused.join("; ")}.` : "";
  }

  // Buttons that copy the question, and the text for a browser without a clipboard.
  copies() {
    const status = make("p", { class: "fkp-note", role: "status" });
    const field = make("textarea", { class: "fkp-text", readonly: true, rows: 8, "aria-label": "Copied", hidden: true, spellcheck: "false" });
    const buttons = [["Link", () => location.href], ["Python", python], ["Command line", command]].map(([name, made]) => make("button", { type: "button", onclick: async () => {
      field.value = made(this.question);
      field.hidden = false;
      try {
        await navigator.clipboard.writeText(field.value);
        status.textContent = `${name} copied.`;
      } catch {
        field.select();
        status.textContent = `${name} stands below, selected.`;
      }
    } }, name));
    return make("section", { class: "fkp-pins", "aria-label": "Take along" }, make("h2", {}, "Copy as"), make("div", { class: "fkp-buttons" }, ...buttons), status, field);
  }

  change(name, value, last) {
    this.state = settled({ ...this.state, [name]: value }, this.page, name);
    if (value === undefined) delete this.state[name];
    if (last) this.remember();
    this.ask();
  }

  go(state) {
    this.state = state;
    this.remember();
    this.ask();
  }

  remember() {
    const query = written(this.page, this.state);
    if (query === location.search) return;
    try {
      history.pushState(null, "", `${location.pathname}${query}`);
    } catch {
      /* a page opened from a file cannot change its address */
    }
  }

  back() {
    const { state, refused } = recalled(this.page, location.search);
    this.note(refused);
    this.state = settled(state, this.page);
    this.ask();
  }

  // Asks the worker; while it is busy only the newest question waits.
  ask() {
    this.question = asked(this.page, this.state);
    this.id += 1;
    this.place.dataset.asked = String(this.id);
    this.form.show(this.state, this.answer?.values);
    if (!this.busy) this.post();
  }

  post() {
    this.busy = true;
    this.posted = this.id;
    this.worker.postMessage({ id: this.id, question: this.question }, []);
  }

  heard({ id, answer, bands, refused, took }) {
    if (!bands) {
      this.busy = false;
      if (id !== this.id) return this.post();
      this.refused.textContent = refused ?? "";
      this.element.classList.toggle("fkp-none", Boolean(refused));
      this.place.dataset.took = took?.toFixed(1);
    }
    if (id !== this.id) return null;
    if (refused) this.says.textContent = "";
    else this.show(bands ? { ...this.answer, ...bands } : answer, !bands);
    this.place.dataset.answered = refused || bands ? String(id) : "";
    clearTimeout(this.waits);
    this.waits = setTimeout(() => {
      this.live.textContent = refused ?? this.says.textContent;
    }, ANNOUNCED_AFTER_MS);
    return null;
  }

  show(answer, isNew) {
    this.answer = answer;
    this.form.show(this.state, answer.values);
    this.says.textContent = this.sentence(answer);
    this.table.replaceChildren(this.rows(answer));
    if (isNew) this.draw(answer);
  }

  name(chip) {
    return this.page.menus.accelerator.find(([key]) => key === chip)[1];
  }

  // The low and high end of a value in words, once they are computed.
  between(row, name, words) {
    const [stem, unit] = Object.hasOwn(row, `${name}_low`) ? [name, ""] : [name.slice(0, -2), name.slice(-2)];
    return row[`${stem}_low${unit}`] === undefined ? "" : span(words, [row[`${stem}_low${unit}`], row[`${stem}_high${unit}`]]);
  }

  ends(row, name, words) {
    const [range, value] = [this.between(row, name, words), text(words, row[name])];
    return `${value}${range && range !== value ? ` (${range})` : ""}`;
  }

  layout(row) {
    const of = (side) => (row[`${side}attention_data_parallel`] > 1 ? `attention data parallel ${row[`${side}attention_data_parallel`]}` : `tensor parallel ${row[`${side}tensor_parallel`]}`);
    const stages = row.pipeline_parallel > 1 ? `, pipeline parallel ${row.pipeline_parallel}` : "";
    const many = (count, kind) => `${count} ${kind} worker${count > 1 ? "s" : ""}`;
    if (!row.prefill_workers) return `${of("")}${stages}`;
    return `${many(row.prefill_workers, "prefill")} of ${of("prefill_")}, ${many(row.decode_workers, "decode")} of ${of("")}${stages}`;
  }

  sentence({ best, breaks, binds }) {
    const { page } = this;
    const replicas = `${counted(best.replicas)} replica${best.replicas > 1 ? "s" : ""} of ${best.replica_accelerators} (${this.layout(best)}; ${counted(best.concurrent_requests)} request${best.concurrent_requests > 1 ? "s" : ""} at once)`;
    const users = Math.max(Math.round(best.users), 1);
    const following = best.tpot_s === undefined ? "" : `, each next after ${this.ends(best, "tpot_s", timed(best.tpot_s))}`;
    const latencies = `first token after ${this.ends(best, "ttft_s", timed(best.ttft_s))}${following}`;
    const prices = `${this.ends(best, "usd_per_million_output_tokens", USD)} per million output tokens (${text(USD, best.usd_per_million_served_tokens)} with prompts and idle accelerators), ${this.ends(best, "j_per_token", JOULE)} per token`;
    const plan = `${counted(best.accelerators)} ${this.name(best.chip)} in ${replicas}, weights in ${this.question.precision.toUpperCase()}, ${page.labels.engine[this.question.engine]}, serve ${this.ends(best, "requests_per_s", COUNT)} requests per second, of about ${counted(users)} user${users > 1 ? "s" : ""}: ${latencies}, ${prices}.`;
    const measured = best.measured_points ? "" : " No points of this engine, chip, model and mode are measured: intervals are wide.";
    const chance = Object.keys(this.question.limits).length ? ` Chance of keeping the limits: ${Math.round(best.limit_probability * 100)} %.` : "";
    const expected = best.expected_cost_ratio > page.noticeableCost ? ` Expected cost: ${rounded(best.expected_cost_ratio)} times this, as latencies above the limits take more accelerators.` : "";
    const notes = `${chance}${expected}${measured}`;
    const limit = (name) => page.quantities[page.limitNames[name]][0].toLowerCase();
    const over = Object.entries(this.question.limits).filter(([name, most]) => best[`${name}_s`] > most).map(([name, most]) => `${limit(name)} of ${time(best[`${name}_s`])}, above ${time(most)}`);
    if (breaks.length) return `No plan keeps every limit. The nearest: ${plan} It has a ${over.join(" and a ")}.${notes}`;
    const named = binds.map(limit);
    return `${plan}${named.length ? ` Limited by ${named.join(" and ")}.` : ""}${notes}`;
  }

  draw({ fronts, best }) {
    if (best.tpot_s === undefined) {
      this.picture.replaceChildren("An answer of one token has no time between tokens.");
      return this.legend.replaceChildren();
    }
    const point = (row) => ({ x: row.tokens_per_s_per_user, y: row.tokens_per_s_per_accelerator });
    const described = (row) => `${this.name(row.chip)}, ${this.layout(row)}, ${row.concurrent_requests} requests: ${rounded(row.tokens_per_s_per_user)} tokens/s per user, ${rounded(row.tokens_per_s_per_accelerator)} tokens/s per accelerator, first token ${time(row.ttft_s)}`;
    const sets = Object.entries(fronts).filter(([, rows]) => rows.length).map(([chip, rows], i) => ({ label: this.name(chip), color: COLORS[i % COLORS.length], rows: rows.map((row) => ({ ...point(row), title: described(row) })) }));
    const { tpot } = this.question.limits;
    const least = tpot ? { x: 1 / tpot, label: `limit: ${time(tpot)} a token` } : null;
    const name = `Output tokens per second per accelerator over those per user, by chip. The plan: ${described(best)}.`;
    const narrow = this.element.clientWidth < NARROW;
    this.picture.replaceChildren(curves(name, sets, { best: point(best), least, narrow, titles: ["tokens/s per user", "tokens/s per accelerator"] }));
    return this.legend.replaceChildren(...sets.map(({ label, color }) => make("span", {}, make("i", { style: `background:${color}` }), label)));
  }

  rows({ ofChip, best }) {
    const columns = [
      ["accelerators", "Accelerators", () => COUNT],
      ["ttft_s", "First token", timed],
      ["tpot_s", "Each next", timed],
      ["usd_per_million_output_tokens", "Per million output tokens", () => USD],
      ["j_per_token", "Per token", () => JOULE],
      ["tokens_per_s_per_accelerator", "Tokens/s per accelerator", () => COUNT],
      ["cost_usd_per_h", "Per hour", () => USD],
      ["expected_cost_ratio", "Expected over this cost", () => COUNT],
    ];
    const head = make("tr", {}, make("th", { scope: "col" }, "Chip"), ...columns.map(([, label]) => make("th", { scope: "col" }, label)));
    const cell = (row, name, words) => {
      const [value, range] = [text(words, row[name]), this.between(row, name, words)];
      const ends = range || (row[name] === undefined || name === "expected_cost_ratio" ? "" : "…");
      return make("td", {}, value, make("span", { class: "fkp-small" }, ends === value ? "" : ends));
    };
    const body = ofChip.map((row) => make("tr", { class: row.chip === best.chip ? "fkp-input" : null }, make("th", { scope: "row" }, this.name(row.chip), make("span", { class: "fkp-small" }, this.layout(row))), ...columns.map(([name, , words]) => cell(row, name, words(row[name])))));
    return make("table", {}, make("caption", {}, `The best plan of each chip, of ${counted(this.answer.count)} candidates that fit in memory, with 90 % intervals`), make("thead", {}, head), make("tbody", {}, ...body));
  }
}

export function start(data, engine, style) {
  const page = { ...data, ...PAGE_OF_SERVE, controls: { ...data.controls, users: COUNTED, fleet: COUNTED }, quantities: { ...data.quantities, users: ["Users", "1", "", 1], fleet: ["Accelerators", "1", "", 1], model: ["Model"] } };
  placed(style, "[data-factorykit-serve]", (element) => new Serve(element, page, engine));
}
