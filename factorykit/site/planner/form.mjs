// The left column: label, text field, slider, source of the value and reset for every control.
import { make } from "../../charts/runtime/dom.mjs";
import { position, valueAt } from "../../charts/runtime/numbers.mjs";
import { read, typed } from "./values.mjs";
import { listed, refusal } from "./link.mjs";
import { isSize } from "./shapes.mjs";

const STEPS = 200;
const GIVEN_DIGITS = 9;
// A value given in another unit, such as 2 months, is no whole number of the shown one.
const SCALED_DIGITS = 6;
const CHOSEN_DIGITS = 4;
// Numbers below are counts, such as accelerators; above, such as tokens, their first digits tell enough.
const MAX_COUNT = 1e7;
const LABELS = {
  model: "Model", shape: "Model", accelerator: "Accelerator", chips: "Compare with", accelerators: "How many", counts: "Counts to choose from",
  deadline_s: "Within how long", budget_usd: "For at most how much", facility_power_w: "At most how much power", objective: "Choose the plan with",
  failures: "Failure rate", tiers: "Checkpoints", site: "Country", sites: "Compare with countries", way: "Rent or own", offer: "Listed offer", offers: "Offers of your own", calibration: "Calibration (file of factorykit calibrate)", precision: "Precision",
};
const OPTION_LABELS = {
  way: { rent: "Rent by the hour", own: "Own for its life", either: "Whichever is better" },
  tiers: { one: "Remote storage", two: "Local or in memory first", best: "Whichever is better" },
};
const LISTS = { chips: "accelerator", sites: "site" };
const TEXTS = {
  counts: ["4096, 8192, 16384", (text) => text.trim().split(/[\s,;]+/).join(",")],
  offers: ["provider, h100_sxm, 2.1 USD/h, 4096", (text) => text.trim()],
};
const NOTHING = { deadline_s: "no deadline", budget_usd: "no budget", facility_power_w: "no limit", accelerators: "as many as suit", time_to_first_token_s: "no limit", time_per_output_token_s: "no limit", users: "by requests per second", fleet: "as many as the load needs" };
const A_SIZE = "a size";
const PASTED = "pasted";

export function labelOf(page, name) {
  return page.names?.[name] ?? LABELS[name] ?? page.quantities[name][0];
}

// A menu choice or a pasted architecture as text; undefined for a quantity.
export function describe(page, name, value) {
  if (name === "shape") return `${value.layers} layers of ${value.hidden_size}`;
  if (LISTS[name]) return listed(value).map((key) => describe(page, LISTS[name], key)).join(", ");
  if (name === "objective") return page.objectiveNames[value];
  return OPTION_LABELS[name]?.[value] ?? page.menus[name]?.find(([key]) => key === value)?.[1];
}

let serial = 0;

// change(name, value, settled): undefined lets the planner choose again; settled is false while a slider moves.
export class Form {
  constructor(page, change, { only = null, root = "" } = {}) {
    Object.assign(this, { page, change, root, made: new Map() });
    const groups = only ? [{ title: "", controls: only }] : page.groups;
    this.groups = groups.map(({ title, controls }, i) => {
      const element = make("div", { class: "fkp-controls" }, ...controls.map((name) => this.control(name)));
      if (!title) return element;
      const best = title === "The layout" ? this.bestButton(controls) : null;
      const summary = make("summary", { onclick: () => setTimeout(() => group.open && group.scrollIntoView({ block: "nearest" })) }, title);
      const group = make("details", { class: "fkp-group", open: i < 1, "data-group": title }, summary, best, element);
      return group;
    });
    this.element = make("form", { class: "fkp-form", "aria-label": page.title ?? "The run and the plant", onsubmit: (event) => event.preventDefault() }, ...this.groups);
  }

  control(name) {
    const made = name === "calibration" ? this.calibration(name) : LISTS[name] ? this.list(name) : TEXTS[name] ? this.text(name) : this.page.controls[name]?.min === undefined ? this.menu(name) : this.number(name);
    this.made.set(name, made);
    return made.element;
  }

  bestButton(controls) {
    const back = () => controls.forEach((name, i) => this.change(name, undefined, i === controls.length - 1));
    return make("p", { class: "fkp-note" }, "The best of some thousand layouts. Move one part and it stays, the others follow. ", make("button", { type: "button", class: "fkp-link", onclick: back }, "All best"));
  }

  frame(name, field, ...rest) {
    serial += 1;
    field.id = `fkp-${serial}`;
    const origin = make("span", { class: "fkp-who", id: `fkp-${serial}-who` });
    const wrong = make("span", { class: "fkp-wrong", id: `fkp-${serial}-wrong`, role: "alert" });
    field.setAttribute("aria-describedby", `${origin.id} ${wrong.id}`);
    const back = make("button", { type: "button", class: "fkp-back", title: `${labelOf(this.page, name)}: as it was`, "aria-label": `${labelOf(this.page, name)}: as it was`, hidden: true, onclick: () => this.change(name, this.page.preset[name], true) }, "↺");
    const words = this.page.quantities[name];
    const label = make("label", { for: field.id, title: words?.[4] }, labelOf(this.page, name));
    const element = make("div", { class: "fkp-control", "data-name": name }, label, field, back, ...rest, origin, wrong);
    return { element, field, origin, wrong, back };
  }

  number(name) {
    const { page } = this;
    const control = { ...page.controls[name], steps: STEPS };
    if (control.scale === "doubling") control.steps = Math.floor(Math.log2(control.max / control.min));
    if (control.values) control.steps = control.values.length - 1;
    const words = page.quantities[name];
    const field = make("input", { type: "text", inputmode: "text", autocomplete: "off", spellcheck: "false", name, placeholder: NOTHING[name] ?? "" });
    const slide = make("input", { type: "range", min: 0, max: control.steps, step: 1, "aria-label": `${words[0]}, slider` });
    const made = this.frame(name, field, slide);
    const take = () => {
      made.typing = false;
      if (field.value === made.shown) return;
      try {
        const value = field.value.trim() === "" || /^(best|none|no limit)$/.test(field.value.trim()) ? undefined : read(words, control, field.value);
        if (value === undefined && page.preset[name] !== undefined && !page.optional.includes(name)) throw new Error(`${words[0]} is needed; give a number${words[2] ? ` in ${words[2]}` : ", such as 15T or 8192"}`);
        made.wrong.textContent = "";
        field.removeAttribute("aria-invalid");
        this.change(name, value, true);
      } catch (error) {
        made.wrong.textContent = error.message;
        field.setAttribute("aria-invalid", "true");
      }
    };
    field.addEventListener("input", () => {
      made.typing = true;
    });
    field.addEventListener("change", take);
    field.addEventListener("keydown", (event) => event.key === "Enter" && take());
    field.addEventListener("focus", () => field.select());
    slide.addEventListener("input", () => this.change(name, sliderValue(control, Number(slide.value)), false));
    slide.addEventListener("change", () => this.change(name, sliderValue(control, Number(slide.value)), true));
    made.show = (value, state) => {
      const given = state[name] !== undefined;
      if (value === made.value && given === made.given && !made.wrong.textContent) return;
      made.given = given;
      made.shown = value == null || Number.isNaN(value) ? "" : typed(words, value, control.whole && value < MAX_COUNT ? GIVEN_DIGITS : !given ? CHOSEN_DIGITS : words[2] ? SCALED_DIGITS : GIVEN_DIGITS);
      if (!made.typing && (!made.wrong.textContent || value !== made.value)) {
        field.value = made.shown;
        made.wrong.textContent = "";
        field.removeAttribute("aria-invalid");
      }
      made.value = value;
      if (document.activeElement !== slide && typeof value === "number") slide.value = sliderPlace(control, value);
      slide.setAttribute("aria-valuetext", made.shown);
    };
    return made;
  }

  // Multiple choices of a menu as check boxes.
  list(name) {
    const field = make("details", { class: "fkp-list" }, make("summary", {}, "none"));
    const made = this.frame(name, field);
    const boxes = new Map();
    for (const [group, rows] of this.options(LISTS[name], {})) {
      const shown = rows.filter(([key]) => key);
      for (const [key] of shown) boxes.set(key, make("input", { type: "checkbox", value: key, onchange: () => this.change(name, [...boxes.values()].filter((box) => box.checked).map((box) => box.value).join(",") || undefined, true) }));
      field.append(make("fieldset", {}, group ? make("legend", {}, group) : null, ...shown.map(([key, text]) => make("label", {}, boxes.get(key), text))));
    }
    made.show = (_, state) => {
      const chosen = listed(state[name]);
      for (const [key, box] of boxes) {
        box.checked = chosen.includes(key);
        box.disabled = key === state[LISTS[name]];
      }
      field.firstChild.textContent = chosen.length ? describe(this.page, name, state[name]) : "none";
    };
    return made;
  }

  // Constants from a file of fk.calibrate.
  calibration(name) {
    const field = make("input", { type: "file", accept: ".json", name });
    const made = this.frame(name, field);
    field.addEventListener("change", async () => {
      try {
        const constants = Object.entries(JSON.parse(await field.files[0].text()).constants);
        for (const [constant, value] of constants) {
          const problem = refusal(this.page, constant, String(value));
          if (problem) throw new Error(problem);
        }
        made.wrong.textContent = "";
        constants.forEach(([constant, value], i) => this.change(constant, value, i === constants.length - 1));
      } catch (error) {
        made.wrong.textContent = `${field.files[0].name} is not a calibration: ${error.message}`;
      }
    });
    made.show = (_, state) => {
      const taken = Object.keys(this.page.constants).filter((constant) => state[constant] !== undefined);
      made.calibrated = taken.length ? `${taken.length} constants of a calibration` : "";
    };
    return made;
  }

  text(name) {
    const [placeholder, tidy] = TEXTS[name];
    const field = make(name === "offers" ? "textarea" : "input", { name, placeholder, autocomplete: "off", spellcheck: "false" });
    const made = this.frame(name, field);
    field.addEventListener("change", () => {
      try {
        const value = tidy(field.value) || undefined;
        const problem = value && refusal(this.page, name, value);
        if (problem) throw new Error(problem);
        made.wrong.textContent = "";
        this.change(name, value, true);
      } catch (error) {
        made.wrong.textContent = error.message;
      }
    });
    made.show = (value, state) => {
      if (document.activeElement !== field && !made.wrong.textContent) field.value = state[name] ?? "";
    };
    return made;
  }

  menu(name) {
    const field = make("select", { name });
    field.addEventListener("change", () => this.chosen(name, field.value));
    const extra = name === "model" && this.page.unplanned ? this.ownModel() : null;
    const made = this.frame(name, field, extra?.element);
    made.extra = extra;
    made.options = null;
    made.show = (value, state) => {
      const key = ["precision", "offer"].includes(name) ? state.accelerator : "all";
      if (made.options !== key) {
        const options = this.options(name, state);
        field.replaceChildren(...options.map(([group, rows]) => (group ? make("optgroup", { label: group }, ...rows.map(option)) : rows.map(option))).flat());
        made.options = key;
      }
      field.value = name === "model" && state.shape ? PASTED : name === "model" && !this.known(value) ? A_SIZE : (value ?? "");
      extra?.show(value, state);
    };
    return made;
  }

  known(model) {
    return this.page.menus.model.some(([key]) => key === model);
  }

  options(name, state) {
    const { page } = this;
    const assumed = ["", name === "failures" ? "by the default rate" : name === "offer" ? "median of all providers" : name === "site" ? "no country (0.35 kg CO₂/kWh)" : name === "objective" ? "the default for the limits" : page.best.includes(name) ? "best" : "as usual"];
    if (page.labels?.[name]) return [["", Object.entries(page.labels[name])]];
    if (name === "model" && !page.unplanned) return [["Published models", page.menus.model]];
    if (name === "model") return [["", [[A_SIZE, "A size, such as 70B or 1T MoE"], [PASTED, "Paste a config.json"]]], ["Published models", page.menus.model], ["Without a model of their step time", Object.entries(page.unplanned).map(([key, [label, why]]) => [key, label, why])]];
    if (name === "objective") return [["", [assumed, ...Object.entries(page.objectiveNames)]]];
    if (OPTION_LABELS[name]) return [["", Object.entries(OPTION_LABELS[name])]];
    if (name === "precision") return [["", page.menus.accelerator.find(([key]) => key === state.accelerator)[2].map((format) => [format, format])]];
    if (name === "accelerator") {
      const chips = page.menus.accelerator.map(([key, label]) => [key, label]);
      return [["On offer today", chips.filter(([key]) => page.offers[key])], ["No offer listed", chips.filter(([key]) => !page.offers[key])]].filter(([, rows]) => rows.length);
    }
    if (name === "offer") return [["", [assumed, ...(page.offers[state.accelerator] ?? []).map(([key, who, price, day]) => [key, `${who}, ${price} USD/h, ${day}`])]]];
    if (page.words[name]) return [["", [assumed, ...page.words[name].map((word) => [word, word.replaceAll("_", " ")])]]];
    return [["", [assumed, ...page.menus[name].map(([key, label]) => [key, label])]]];
  }

  chosen(name, value) {
    const { extra } = this.made.get(name);
    if (extra && [A_SIZE, PASTED].includes(value)) extra.open(value);
    else this.change(name, value === "" ? undefined : value, true);
  }

  // A typed model size or a pasted configuration.
  ownModel() {
    const size = make("input", { type: "text", "aria-label": "Size of the model", placeholder: "70B, 1T MoE, 1T A32B", autocomplete: "off", spellcheck: "false", hidden: true });
    const pasted = make("textarea", { "aria-label": "A config.json of a model", rows: 4, hidden: true, placeholder: '{"hidden_size": 4096, …}', spellcheck: "false" });
    const wrong = make("span", { class: "fkp-wrong", role: "alert" });
    const element = make("div", { class: "fkp-own" }, size, pasted, wrong);
    size.addEventListener("change", () => {
      if (isSize(size.value)) {
        wrong.textContent = "";
        this.change("model", size.value.trim(), true);
      } else wrong.textContent = `'${size.value}' is not a size; give 70B, 1T MoE or 1T A32B`;
    });
    pasted.addEventListener("change", async () => {
      try {
        wrong.textContent = "";
        this.change("shape", await this.page.readConfig(pasted.value), true);
      } catch (error) {
        wrong.textContent = error.message;
      }
    });
    const open = (kind) => {
      size.hidden = kind !== A_SIZE;
      pasted.hidden = kind !== PASTED;
      (kind === A_SIZE ? size : pasted).focus();
    };
    const show = (model, { shape }) => {
      const own = !shape && !this.known(model);
      size.hidden = !own;
      pasted.hidden = !shape;
      if (own) size.value = model;
      wrong.textContent = "";
    };
    return { element, open, show };
  }

  // The state, completed by the choices and defaults of the planner.
  show(state, values, missing = []) {
    const { page } = this;
    for (const [name, made] of this.made) {
      const given = state[name];
      made.show(given ?? (page.limits.includes(name) ? undefined : values?.[name]), state);
      made.back.hidden = given === page.preset[name] && !(name === "model" && state.shape);
      this.say(name, made, state, values);
      made.element.classList.toggle("fkp-missing", missing.includes(name));
      if (missing.includes(name)) made.element.closest("details")?.setAttribute("open", "");
      const elsewhere = [[page.ways, state.way], [page.tiers, state.tiers]].some(([words, word]) => words && !words[word].includes(name) && Object.values(words).flat().includes(name));
      made.element.hidden = elsewhere || (name === "offer" && Boolean(state.chips)) || (name === "counts" && state.accelerators !== undefined);
    }
  }

  // The address of the chosen failure rate.
  source({ failures }) {
    return `${this.root}entities/sources/${this.page.menus.failures.find(([key]) => key === failures)[3]}.html`;
  }

  // The source of the value: the planner, the chip, a source with a link, or the reader.
  say(name, made, state, values) {
    const { page, root } = this;
    const step = page.steps[name];
    let origin = made.calibrated ?? "";
    let href = "";
    if (state[name] !== undefined) {
      if (name === "model" && state.shape) origin = describe(page, "shape", state.shape);
      else if (name === "model" && this.known(state.model)) [origin, href] = ["architecture", `${root}tables/architectures.html?q=${state.model}`];
      else if (name === "accelerator") [origin, href] = ["data sheet", `${root}entities/accelerators/${state.accelerator}.html`];
      else if (name === "offer") [origin, href] = ["the offer", `${root}tables/rental_offers.html?q=${state.offer}`];
      else if (name === "site") [origin, href] = ["its grid", `${root}tables/country_grids.html?q=${state.site}`];
      else if (name === "failures") [origin, href] = ["its source", this.source(state)];
      else if (state[name] !== page.preset[name]) origin = "yours";
      else if (name in page.published && state.model === page.preset.model && !state.shape) [origin, href] = [page.published[name][0], `${root}${page.published[name][1]}`];
    } else if (page.limits.includes(name)) origin = "";
    else if (page.best.includes(name)) origin = values ? "best" : "";
    else if (name === "accelerator_mtbf_s" && state.failures) [origin, href] = ["of the rate above", this.source(state)];
    else if (name === "rental_usd_per_accelerator_h" && state.offer) [origin, href] = ["of the offer", `${root}tables/rental_offers.html?q=${state.offer}`];
    else if (name === "carbon_kg_per_kwh" && state.site) [origin, href] = ["of the country", `${root}tables/country_grids.html?q=${state.site}`];
    else if (name === "electricity_usd_per_kwh" && state.site) [origin, href] = ["of the country", `${root}tables/electricity.html?q=${state.site}`];
    else if (step?.[0] === "chip") [origin, href] = [step[2] ? "of the chip" : "chip data sheet", `${root}${step[1].replace("{accelerator}", state.accelerator)}`];
    else if (step) [origin, href] = [sourceOf(step[2]), step[1] && `${root}${step[1]}`];
    const title = step && state[name] === undefined ? step[2] : "";
    const now = `${origin} ${href} ${title}`;
    if (made.now === now) return;
    made.now = now;
    made.origin.replaceChildren(...(href ? [make("a", { href, title }, origin)] : origin ? [make("span", { title }, origin)] : []));
  }
}

// The source of a default value in short form: "computed: llama3_paper, section 3.3.4" without its basis and note.
function sourceOf(why) {
  const [basis, rest = ""] = why.split(/: (.*)/s);
  return basis === "chosen" ? "chosen here" : rest.split(";")[0] || basis || "assumed";
}

// Positions of a slider: those of the charts, or the listed values.
function sliderValue(control, place) {
  return control.values ? control.values[place] : valueAt(control, place);
}

function sliderPlace(control, value) {
  if (!control.values) return position(control, value);
  const after = control.values.findIndex((stop) => stop >= value);
  return after < 0 ? control.steps : after;
}

function option([value, label, why]) {
  return make("option", { value, disabled: Boolean(why), title: why ?? "" }, label);
}
