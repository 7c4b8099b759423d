// The series of a chart that a reader points at, or keeps by a click, stands out: the others are dimmed, which every eye
// can tell apart. Each entry of the legend is a button; what is kept is kept in all charts of the page with that series.
import { make } from "./dom.mjs";

const CHANNELS = ["color", "stroke", "fill", "shape", "strokeDash"];
const KEPT = "factorykit-series";

// The field by whose value a legend tells the series apart; undefined where there is no such legend.
export function seriesField({ encoding = {}, layer = [] }) {
  const channel = CHANNELS.map((name) => encoding[name]).find((definition) => definition?.field && definition.type === "nominal" && definition.legend !== null);
  return channel ? channel.field : layer.map(seriesField).find(Boolean);
}

export class Series {
  constructor(place, field) {
    Object.assign(this, { place, field, kept: new Set(), pointed: null, buttons: new Map(), gone: new AbortController() });
    this.element = make("div", { class: "fk-legend", role: "group", "aria-label": "Highlight a series" });
    const { signal } = this.gone;
    place.addEventListener("pointerover", ({ target }) => this.point(this.of(target)), { signal });
    place.addEventListener("pointerleave", () => this.point(null), { signal });
    place.addEventListener("click", ({ target }) => this.of(target) != null && this.keep(this.of(target)), { signal });
    document.addEventListener(KEPT, ({ detail }) => this.take(detail), { signal });
    this.refresh();
  }

  // The series of a mark. A mark says it by its row, a legend by its entry.
  of(element) {
    const { __data__: item } = element; // Vega keeps the mark there
    const datum = item?.datum;
    return element.closest(".role-legend") ? datum?.value : datum?.[this.field];
  }

  point(name) {
    if (name === this.pointed) return;
    this.pointed = name ?? null;
    this.dim();
  }

  keep(name) {
    const kept = new Set(this.kept);
    if (!kept.delete(name)) kept.add(name);
    document.dispatchEvent(new CustomEvent(KEPT, { detail: [...kept] }));
  }

  take(names) {
    this.kept = new Set(names.filter((name) => this.buttons.has(name)));
    this.dim();
  }

  dim() {
    const lit = this.pointed == null ? this.kept : new Set([this.pointed]);
    for (const mark of this.place.querySelectorAll(".role-mark :is(path,text,rect,line)")) {
      const name = this.of(mark);
      mark.classList.toggle("fk-dim", lit.size > 0 && name != null && !lit.has(name));
    }
    for (const [name, button] of this.buttons) button.setAttribute("aria-pressed", String(this.kept.has(name)));
  }

  // The buttons lie on the entries of the legend, wherever it was drawn last.
  refresh() {
    const frame = this.place.getBoundingClientRect();
    const symbols = this.place.querySelectorAll(".role-legend-symbol path");
    this.place.querySelectorAll(".role-legend-label text").forEach((label, n) => {
      const name = this.of(label);
      if (!this.buttons.has(name)) this.add(name, label.textContent);
      const [from, to] = [symbols[n] || label, label].map((node) => node.getBoundingClientRect());
      const box = { left: from.left - frame.left - 3, top: Math.min(from.top, to.top) - frame.top - 3, width: to.right - from.left + 6, height: Math.max(from.height, to.height) + 6 };
      for (const [side, length] of Object.entries(box)) this.buttons.get(name).style[side] = `${length}px`;
    });
    this.dim();
  }

  add(name, text) {
    const point = () => this.point(name);
    const leave = () => this.point(null);
    const listeners = { onclick: () => this.keep(name), onfocus: point, onpointerenter: point, onblur: leave, onpointerleave: leave };
    this.buttons.set(name, make("button", { type: "button", "aria-label": text, ...listeners }));
    this.element.append(this.buttons.get(name));
  }

  finalize() {
    this.gone.abort();
  }
}
