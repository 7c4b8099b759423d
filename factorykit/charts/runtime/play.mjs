// A chart over time plays: what lies after a date is covered while a slider moves, by hand or by itself. Its axes stay.
import { make } from "./dom.mjs";

const PLAY_MS = 6000;
const PLOT_MARGIN = 9; // left of the plot
const HALF_POINT = 5; // half a point at the present time
let players = 0;

function svgElement(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The field of the time axis; undefined where a chart has none.
export function timeField({ encoding = {}, layer = [] }) {
  const { x } = encoding;
  return x?.field && (x.type === "temporal" || x.field === "year") ? x.field : layer.map(timeField).find(Boolean);
}

// The distinct times of rows in order; words that are no year, such as "not stated", are none.
export function timesOf(rows, field) {
  return [...new Set(rows.map((row) => row[field]).filter((time) => time != null && Number.isFinite(Number(time))).map(Number))].sort((a, b) => a - b);
}

export function timeText(time) {
  return time < 3000 ? String(time) : new Date(time).toLocaleDateString("en", { month: "short", year: "numeric", timeZone: "UTC" });
}

export class Player {
  constructor(place, view, field, times, title) {
    players += 1;
    const id = `fk-until-${players}`;
    Object.assign(this, { place, view, field, times });
    this.shown = svgElement("rect", { x: -PLOT_MARGIN, y: -99, height: 9999 });
    this.clip = `url(#${id})`;
    this.button = make("button", { type: "button", onclick: () => (this.timer ? this.stop() : this.start()) }, "Play");
    this.slider = make("input", { type: "range", min: 0, max: times.length - 1, step: 1, "aria-label": `Show ${title} until`, oninput: () => this.moved() });
    this.slider.value = times.length - 1;
    // JupyterLab takes arrow keys for itself.
    this.slider.addEventListener("keydown", (event) => event.stopPropagation());
    this.slider.dataset.lmSuppressShortcuts = "";
    this.output = make("output", {});
    this.element = make("div", { class: "fk-play" }, this.button, this.slider, this.output, svgElement("svg", { "aria-hidden": true }, svgElement("clipPath", { id }, this.shown)));
    this.refresh();
  }

  start() {
    if (Number(this.slider.value) === this.times.length - 1) this.slider.value = 0;
    this.button.textContent = "Pause";
    this.timer = setInterval(() => this.step(), Math.max(40, PLAY_MS / this.times.length));
    this.refresh();
  }

  step() {
    this.slider.value = Number(this.slider.value) + 1;
    this.refresh();
    if (Number(this.slider.value) === this.times.length - 1) this.stop();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = "Play";
  }

  moved() {
    this.stop();
    this.refresh();
  }

  refresh() {
    const n = Number(this.slider.value);
    const text = timeText(this.times[n]);
    this.output.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
    const scale = this.view.scale("x");
    const at = scale(scale.bandwidth ? String(this.times[n]) : this.times[n]) + (scale.bandwidth?.() ?? 0);
    this.shown.setAttribute("width", Math.max(0, at + PLOT_MARGIN + HALF_POINT));
    const whole = n === this.times.length - 1;
    for (const marks of this.place.querySelectorAll(".role-mark")) marks.style.clipPath = whole ? "" : this.clip;
    // A name may stand before its time, and a point reaches over it.
    for (const mark of this.place.querySelectorAll(":is(.mark-text,.mark-symbol).role-mark > *")) {
      const { __data__: item } = mark;
      mark.classList.toggle("fk-later", !whole && Number(item?.datum?.[this.field]) > this.times[n]);
    }
  }

  finalize() {
    this.stop();
  }
}
