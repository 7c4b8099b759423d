// The planner on its page, and its short form on the landing page: state, address, worker.
import { make } from "../../charts/runtime/dom.mjs";
import { Answer, formulas } from "./answer.mjs";
import { readConfig } from "./config.mjs";
import { Form } from "./form.mjs";
import { asked, listed, pick, recalled, written } from "./link.mjs";
import { Pins } from "./pins.mjs";
import { text } from "./values.mjs";
import { placed, worker } from "./worker.mjs";

const BRIEF = ["model", "accelerator", "accelerators", "tokens"];
const ANNOUNCED_AFTER_MS = 700;
// Inputs that a choice resets, since they set the same quantity or depend on it.
const DISPLACES = {
  model: ["shape"],
  failures: ["accelerator_mtbf_s"],
  accelerator_mtbf_s: ["failures"],
  offer: ["rental_usd_per_accelerator_h"],
  rental_usd_per_accelerator_h: ["offer", "offers"],
  site: ["carbon_kg_per_kwh", "electricity_usd_per_kwh"],
  tiers: ["checkpoint_interval_s"],
  chips: ["offer"],
  offers: ["offer", "rental_usd_per_accelerator_h"],
  sites: ["carbon_kg_per_kwh", "electricity_usd_per_kwh"],
  counts: ["accelerators"],
  accelerators: ["counts"],
};

class Planner {
  constructor(place, page, engine, brief) {
    const { state, refused, version } = recalled(page, brief ? "?v=1" : location.search);
    Object.assign(this, { place, page, brief, state, version, root: place.dataset.root ?? "", id: 0, answer: null, waits: null, busy: false });
    this.form = new Form({ ...page, preset: page.presets[version] }, (...change) => this.change(...change), { only: brief ? BRIEF : null, root: this.root });
    this.view = new Answer(page, this.root);
    this.live = make("p", { class: "fkp-live", role: "status", "aria-live": "polite" });
    if (brief) this.layBrief();
    else this.layWhole();
    this.worker = worker(engine);
    this.worker.onmessage = ({ data }) => this.heard(data);
    if (refused.length) this.note(`Not taken from the address: ${refused.join("; ")}.`);
    if (!brief) window.addEventListener("popstate", () => this.back());
    this.ask();
  }

  layWhole() {
    const { page } = this;
    this.pins = new Pins(page, { now: () => ({ state: this.state, question: this.question, answer: this.answer }), recall: (state) => this.go({ ...state }) });
    this.noted = make("p", { class: "fkp-noted", role: "alert" });
    const reset = make("button", { type: "button", class: "fkp-link", onclick: () => this.go({ ...page.presets[this.version] }) }, "Start over");
    this.asRun = make("button", { type: "button", class: "fkp-link", onclick: () => this.go(this.otherWay()) });
    const left = make("div", { class: "fkp-left" }, this.form.element, reset, " ", this.asRun);
    if (this.place.id) {
      this.form.element.querySelector("input[type=range]").id = this.place.id;
      this.place.removeAttribute("id");
    }
    this.view.element.prepend(this.noted);
    this.place.replaceChildren(left, this.view.element, this.pins.element, this.live);
    this.place.launched = () => this.answer && [this.answer.values];
    this.place.classList.add("fkp");
  }

  layBrief() {
    const { view } = this;
    this.noted = make("p", { class: "fkp-noted", role: "alert" });
    this.whole = make("a", { class: "fkp-whole", href: `${this.root}plan.html` }, "The whole plan");
    const kept = ["wall_days", "run_cost_usd", "failures_per_day", "training_energy_kwh"];
    for (const [name, { element }] of view.cells) element.hidden = !kept.includes(name);
    for (const [name, { element }] of view.cells) if (!kept.includes(name)) element.remove();
    view.pictures.remove();
    view.first.remove();
    this.place.replaceChildren(this.form.element, view.element, this.whole, this.live);
    this.place.classList.add("fkp", "fkp-brief");
  }

  note(message) {
    this.noted.textContent = message;
  }

  // A change by the reader. The address is updated only when a moving slider has settled.
  change(name, value, settled) {
    const isOfChip = value !== undefined && this.page.ofChip.includes(name) && this.state.chips;
    const entry = `${name} ${value}`;
    if (isOfChip) this.note(`${this.page.quantities[name][0]} is that of one accelerator: the others are no longer compared.`);
    else if (entry !== this.entry) this.note(this.unusual(name, value));
    this.entry = entry;
    if (["model", "shape"].includes(name)) this.leaveRun();
    this.state = { ...this.state, [name]: value };
    if (isOfChip) delete this.state.chips;
    if (value === undefined) delete this.state[name];
    for (const displaced of DISPLACES[name] ?? []) delete this.state[displaced];
    if (name === "accelerator") this.refit();
    if (settled) this.remember();
    this.ask();
  }

  // A note on a value outside the usual range, which counts all the same.
  unusual(name, value) {
    const [low, high] = this.page.controls[name]?.usual ?? [];
    const words = this.page.quantities[name];
    return high !== undefined && (value < low || value > high) ? `${words[0]}: ${text(words, value)} is unusual; usual is ${text(words, low)} to ${text(words, high)}.` : "";
  }

  // Removes a precision or offer that another chip does not support.
  refit() {
    const { state, page } = this;
    const [, , precisions] = page.menus.accelerator.find(([key]) => key === state.accelerator);
    if (!precisions.includes(state.precision)) {
      this.note(`${state.accelerator} has no ${state.precision}; ${precisions[0]} is taken.`);
      state.precision = precisions[0];
    }
    delete state.offer;
    state.chips = listed(state.chips).filter((key) => key !== state.accelerator).join(",") || undefined;
    for (const name of page.ofChip) delete state[name];
  }

  go(state) {
    this.state = state;
    this.remember();
    this.ask();
  }

  // The published run of the model, and whether the page repeats it.
  published() {
    const run = this.state.shape ? undefined : this.page.asRun[this.state.model];
    return { run, repeated: run && Object.entries(run).every(([name, value]) => this.state[name] === value) };
  }

  // The run as published, which no limit chose, or the same tokens and accelerators with current batch size, precision and software.
  otherWay() {
    const { run, repeated } = this.published();
    const { counts: _, chips: __, ...state } = this.state;
    if (!repeated) {
      for (const name of this.page.limits) delete state[name];
      return { ...state, ...run };
    }
    const recipe = Object.keys(run).filter((name) => !BRIEF.includes(name));
    for (const name of recipe) delete state[name];
    return { ...pick(this.page.presets[this.version], recipe), ...state };
  }

  // Another model has another run: what only repeated the old one goes.
  leaveRun() {
    const { run, repeated } = this.published();
    if (!repeated) return;
    const preset = this.page.presets[this.version];
    const kept = Object.entries(this.state).filter(([name]) => !Object.hasOwn(run, name));
    this.state = { ...pick(preset, [...Object.keys(run), ...this.page.limits, "chips"]), ...Object.fromEntries(kept) };
  }

  remember() {
    if (this.brief) return;
    const query = written(this.page, this.state, this.version);
    if (query === location.search) return;
    try {
      history.pushState(null, "", `${location.pathname}${query}`);
    } catch {
      /* a page opened from a file cannot change its address */
    }
  }

  back() {
    const { state, refused, version } = recalled(this.page, location.search);
    Object.assign(this, { state, version });
    this.note(refused.length ? `Not taken from the address: ${refused.join("; ")}.` : "");
    this.ask();
  }

  // Asks the worker; while it is busy only the newest question waits.
  ask() {
    this.question = asked(this.page, this.state);
    if (this.asRun) {
      const { run, repeated } = this.published();
      Object.assign(this.asRun, { hidden: !run, textContent: repeated ? "Best today" : "As it was run" });
    }
    if (this.whole) this.whole.href = `${this.root}plan.html${written(this.page, this.state, this.version)}`;
    this.id += 1;
    this.place.dataset.asked = String(this.id);
    if (!this.busy) this.post();
  }

  post() {
    const { worker: engine } = this;
    this.busy = true;
    this.posted = this.id;
    engine.postMessage({ id: this.id, question: this.question, runs: this.page.runs, brief: this.brief }, []);
  }

  heard(data) {
    if (data.answer && data.id === this.posted) {
      this.busy = false;
      this.answered(data);
      if (this.posted !== this.id) this.post();
    }
    if (data.id !== this.id) return;
    if (data.judged) {
      this.view.showJudged(data.judged);
      this.view.showSaving(data.saving);
      this.view.showDoubts(data.doubts);
    }
    if (data.frontier) this.view.showFrontier(data.frontier, data.runs, ({ accelerator, accelerators }) => this.take(accelerator, accelerators));
    if (data.least) this.refuse({ ...this.answer.refused, memory: data.least.memory }, data.least);
    if (data.sizes) {
      this.view.showSizes(data.sizes);
      this.place.dataset.drawn = String(this.id);
    }
  }

  // Selects a plan of the picture with its accelerator and count.
  take(accelerator, accelerators) {
    const { chips, counts: _, deadline_s: __, ...state } = this.state;
    const others = [...new Set([this.state.accelerator, ...listed(chips)])].filter((key) => key !== accelerator).join(",");
    this.go({ ...state, accelerator, accelerators, ...(others ? { chips: others } : {}) });
  }

  // The reason for a missing answer, with possible remedies.
  refuse(refused, { accelerators, memory } = {}) {
    const { page, state, view } = this;
    const chip = ([key]) => key === state.accelerator;
    const remedies = [];
    if (accelerators) remedies.push([`Use ${accelerators.toLocaleString("en")} accelerators`, () => this.change("accelerators", accelerators, true)]);
    const larger = memory && page.memories.filter(([key, bytes]) => bytes >= memory && page.offers[key]).sort(([, a], [, b]) => a - b)[0];
    if (larger) remedies.push([`Use ${page.menus.accelerator.find(([key]) => key === larger[0])[1]}`, () => this.change("accelerator", larger[0], true)]);
    const parts = page.parts.filter((name) => state[name] !== undefined);
    if (refused && !refused.missing && parts.length) remedies.push(["Choose the layout for me", () => parts.forEach((name, i) => this.change(name, undefined, i === parts.length - 1))]);
    view.refuse(refused, page.menus.accelerator.find(chip)[1], remedies);
  }

  answered({ answer, took }) {
    this.answer = answer;
    const { view } = this;
    this.refuse(answer.refused);
    if (!answer.refused) view.show(answer, this.question);
    this.form.show(this.state, answer.refused && !answer.refused.missing ? null : answer.values, answer.refused?.missing);
    this.pins?.show();
    this.place.dataset.answered = String(this.posted);
    this.place.dataset.took = took?.toFixed(1);
    clearTimeout(this.waits);
    this.waits = setTimeout(() => {
      this.live.textContent = view.spoken(answer);
    }, ANNOUNCED_AFTER_MS);
  }
}

export function start(page, engine, style) {
  const data = { ...page, readConfig: async (pasted) => readConfig(await formulas(), pasted) };
  placed(style, "[data-factorykit-plan]", (element) => new Planner(element, data, engine, element.dataset.factorykitPlan === "brief"));
}
