// The right column: up to three stored plans compared with the current one, and downloads.
import { make } from "../../charts/runtime/dom.mjs";
import { labelOf, describe } from "./form.mjs";
import { bibtex, command, csv, python } from "./share.mjs";
import { text } from "./values.mjs";

const LETTERS = ["A", "B", "C"];
const KEPT = "factorykit-plans";

export class Pins {
  constructor(page, { now, recall }) {
    Object.assign(this, { page, now, recall, pins: [null, null, null] });
    try {
      this.pins = JSON.parse(sessionStorage.getItem(KEPT)) ?? this.pins;
    } catch {
      /* private window */
    }
    this.buttons = LETTERS.map((letter, i) => make("button", { type: "button", onclick: () => this.pin(i) }, `Pin as ${letter}`));
    this.table = make("div", { class: "fkp-compare", tabindex: 0, role: "region", "aria-label": "Plans side by side" });
    this.status = make("p", { class: "fkp-note", role: "status" });
    this.text = make("textarea", { class: "fkp-text", readonly: true, rows: 8, "aria-label": "Copied", hidden: true, spellcheck: "false" });
    const copies = [["Link", () => location.href], ["Python", ({ state, question }) => python(page, state, question)], ["Command line", ({ state, question, answer }) => command(page, state, question, answer)], ["CSV", ({ state, answer }) => csv(page, state, answer)], ["BibTeX", () => bibtex(page, location.href)]];
    const takes = copies.map(([name, make_]) => make("button", { type: "button", onclick: () => this.copy(name, make_) }, name));
    this.element = make("section", { class: "fkp-pins", "aria-label": "Compare and take along" }, make("h2", {}, "Compare"), make("div", { class: "fkp-buttons" }, ...this.buttons), this.table, make("h2", {}, "Copy as"), make("div", { class: "fkp-buttons" }, ...takes), this.status, this.text);
  }

  pin(i) {
    const { state, question, answer } = this.now();
    if (!answer || answer.refused) return;
    const values = Object.fromEntries([...Object.keys(answer.given), ...this.page.readouts].map((name) => [name, answer.values[name] ?? answer.given[name]]));
    this.pins[i] = { state, model: question.model, values };
    this.keep();
  }

  drop(i) {
    this.pins[i] = null;
    this.keep();
  }

  keep() {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(this.pins));
    } catch {
      /* private window */
    }
    this.show();
  }

  async copy(name, made) {
    const copy = made(this.now());
    this.text.value = copy;
    this.text.hidden = false;
    try {
      await navigator.clipboard.writeText(copy);
      this.status.textContent = `${name} copied.`;
    } catch {
      this.text.select();
      this.status.textContent = `${name} stands below, selected.`;
    }
  }

  // Rows of inputs in which the plans differ, and of the results.
  show() {
    const { page } = this;
    const { state, answer } = this.now();
    const kept = this.pins.map((pin, i) => pin && { letter: LETTERS[i], i, ...pin }).filter(Boolean);
    if (!kept.length || !answer?.values) {
      this.table.replaceChildren(make("p", { class: "fkp-note" }, "Pin a plan, change something, and see both side by side."));
      return;
    }
    const plans = [{ letter: "now", state, values: { ...answer.given, ...answer.values } }, ...kept];
    const shown = (name, value) => {
      if (value === undefined) return "–";
      return describe(page, name, value) ?? (page.quantities[name] ? text(page.quantities[name], value) : String(value));
    };
    const inputs = [...new Set(plans.flatMap((plan) => Object.keys(plan.state)))].filter((name) => new Set(plans.map((plan) => JSON.stringify(plan.state[name]))).size > 1);
    const row = (title, cells, kind) => make("tr", { class: kind }, make("th", { scope: "row" }, title), ...cells.map((cell) => make("td", {}, cell)));
    const heads = plans.map((plan) => make("th", { scope: "col" }, plan.letter, plan.i === undefined ? null : make("span", { class: "fkp-small" }, make("button", { type: "button", class: "fkp-link", "aria-label": `Open ${plan.letter}`, onclick: () => this.recall(plan.state) }, "open"), make("button", { type: "button", class: "fkp-link", "aria-label": `Drop ${plan.letter}`, onclick: () => this.drop(plan.i) }, "×"))));
    const first = inputs.map((name) => row(labelOf(page, name), plans.map((plan) => (plan.state[name] === undefined ? "best" : shown(name, plan.state[name]))), "fkp-input"));
    const results = page.readouts.map((name) => row(page.quantities[name][0], plans.map((plan) => shown(name, plan.values[name]))));
    this.table.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("td", {}), ...heads)), make("tbody", {}, ...first, ...results)));
  }
}
