// What moves a chart and what it prints: sliders, presets, readouts. In the widget, ipywidgets take the sliders' place.
import { make, style } from "./dom.mjs";
import { link } from "./leads.mjs";
import { position, valueAt } from "./numbers.mjs";

let serial = 0;

// A range input with its label and its value; the page, JupyterLab's outputs and the widgets use the same one.
export function slider(control, value, moved) {
  style();
  serial += 1;
  const id = `fk-${serial}`;
  const input = make("input", { type: "range", id, min: 0, max: control.steps, step: 1, name: control.name, title: control.meaning });
  const output = make("output", { for: id, "aria-live": "off" });
  input.addEventListener("input", () => moved(valueAt(control, Number(input.value))));
  // JupyterLab and Notebook take arrow keys for themselves, the latter before the slider hears of them.
  input.addEventListener("keydown", (event) => event.stopPropagation());
  input.dataset.lmSuppressShortcuts = "";
  const set = (now) => {
    input.value = position(control, now);
  };
  const say = (text) => {
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  set(value);
  return { element: make("div", { class: "fk-control" }, make("label", { for: id }, control.label), output, input), input, set, say };
}

// The drop-down of presets, null where there is none, what says where their values come from, and the button that takes
// everything back.
export function bar(presets, leads, chosen, reset) {
  const element = make("div", { class: "fk-bar" });
  let choice = null;
  if (presets.length) {
    const options = presets.map((preset, i) => make("option", { value: i }, preset.label));
    const note = make("span", { class: "fk-note" });
    const say = ({ label }) => note.replaceChildren(...(leads?.[label] ? [link(["Its sources", leads[label][1]])] : []));
    const choose = (preset) => {
      say(preset);
      chosen(preset.values);
    };
    choice = make("select", { onchange: () => choice.value && choose(presets[choice.value]) }, make("option", { value: "" }, "own values"), ...options);
    choice.value = "0";
    say(presets[0]);
    element.append(make("label", {}, "Preset", choice), note);
  }
  element.append(make("button", { type: "button", onclick: reset }, "Reset"));
  return { element, choice };
}

export function sliders(controls, values, moved) {
  const made = Object.fromEntries(controls.map((control) => [control.name, slider(control, values[control.name], (value) => moved(control.name, value))]));
  return { element: make("div", { class: "fk-controls" }, ...Object.values(made).map((control) => control.element)), made };
}

// Words to choose from, as the chip; each is set and shown like a slider.
export function menus(named, values, moved) {
  return Object.fromEntries(
    named.map(({ name, label, words }) => {
      const select = make("select", { name, onchange: () => moved(name, select.value) }, ...words.map(({ word, label: text }) => make("option", { value: word }, text)));
      const set = (now) => {
        select.value = now;
      };
      set(values[name]);
      return [name, { element: make("label", { class: "fk-menu" }, label, select), set, say() {} }];
    }),
  );
}

// A quantity's label; on the site it leads to what it means and how it is computed.
const linkedLabel = ({ name, label }, leads) => (leads?.[name] ? link(leads[name]) : label);

// Printed quantities, and above them the rule that the present layout breaks. The places for text, by name.
export function readouts(named, leads) {
  const broken = make("div", { class: "fk-broken", role: "status" });
  const texts = named.map(({ name }) => [name, make("div", { class: "fk-value", "data-quantity": name })]);
  const cells = named.map((quantity, i) => make("div", {}, make("div", { class: "fk-name" }, linkedLabel(quantity, leads)), texts[i][1]));
  return { element: make("div", { class: "fk-readouts" }, broken, ...cells), broken, texts };
}

export function assumptions(named, leads) {
  const texts = named.map(({ name }) => [name, make("td", {})]);
  const rows = named.map((quantity, i) => make("tr", {}, make("td", {}, linkedLabel(quantity, leads)), texts[i][1]));
  return { element: make("details", {}, make("summary", {}, "Held fixed"), make("table", {}, make("tbody", {}, ...rows))), texts };
}
