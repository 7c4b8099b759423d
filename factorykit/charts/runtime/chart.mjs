// One chart: drawn from its payload, moved by values, taken down. The build puts `vega` and `vegaLite` in scope.
import { recalled, remembered } from "./address.mjs";
import { admitted } from "./bounds.mjs";
import { assumptions, bar, menus, readouts, sliders } from "./controls.mjs";
import { LAB, make, style } from "./dom.mjs";
import { expressions } from "./expressions.mjs";
import { fewerColumns, fitted, layout, width } from "./fit.mjs";
import { led } from "./leads.mjs";
import { MOST, pinRows, pinTable, withPins } from "./pinned.mjs";
import { Player, timeField, timesOf } from "./play.mjs";
import { Series, seriesField } from "./series.mjs";
import { csv, joined, shown, table } from "./table.mjs";
import { actions, picture } from "./take.mjs";
import { tooltip } from "./tooltip.mjs";

// The picture of a specification, and the names of its data sets.
async function drawn(container, spec, tip) {
  container.replaceChildren();
  const logger = vega.logger(vega.Error); // Vega-Lite warns of every chart with a step for its height
  const made = vegaLite.compile(spec, { logger }).spec;
  const options = { container, expr: expressions, loader: vega.loader({ http: { mode: "same-origin" } }), logger, renderer: "svg", tooltip: tip };
  const view = await new vega.View(vega.parse(made, {}, { ast: true }), options).runAsync();
  return { view, sets: made.data.map(({ name }) => name) };
}

export class Chart {
  constructor(root, payload, options) {
    Object.assign(this, { root, payload, options, values: { ...payload.parameters }, views: [], sets: [], sliders: {}, texts: [], observers: [], selectors: [], pins: [] });
    this.start = { ...this.values };
    this.live = Boolean(payload.parameters);
    this.linked = this.live && !LAB && options.link !== false;
    this.tip = tooltip(root, payload);
  }

  async draw() {
    style();
    const { root, payload } = this;
    const body = make("div", { class: "fk-body" });
    if (this.live) body.append(...this.head());
    const places = payload.specs.map((spec) => make("div", { class: "fk-view", style: `min-height:${(spec.height > 0 ? spec.height : 180) + 60}px` }));
    body.append(make("div", { class: "fk-views" }, ...places.map((place) => make("div", { class: "fk-panel" }, place))));
    if (payload.source) body.append(make("p", { class: "fk-source" }, ...led(payload.source, payload.leads)));
    body.append(...this.foot());
    root.classList.add("factorykit-chart");
    const stills = [...root.querySelectorAll(":scope > .fk-still")];
    root.append(body);
    if (stills.length) body.style.cssText = "position:absolute;visibility:hidden;left:0;right:0";
    try {
      await Promise.all(payload.specs.map((spec, i) => this.embed(places[i], spec, i)));
    } catch (error) {
      body.remove();
      throw error;
    }
    stills.forEach((still) => still.remove());
    body.style.cssText = "";
    this.body = body;
    this.show();
    return this;
  }

  // Title, controls and readouts.
  head() {
    const { payload, options } = this;
    const parts = [];
    if (options.title !== false) parts.push(make("div", { class: "fk-title" }, payload.title));
    this.refused = make("p", { class: "fk-refused", role: "alert" });
    parts.push(this.refused);
    if (options.controls !== false) {
      const presets = bar(payload.presets, payload.leads, (values) => this.set(values), () => this.reset());
      const moving = sliders(payload.controls, this.values, (name, value) => this.set({ [name]: value }, name));
      const chosen = menus(payload.menus || [], this.values, (name, word) => this.set({ [name]: word }, name));
      presets.element.append(...Object.values(chosen).map(({ element }) => element));
      Object.assign(this, { choice: presets.choice, sliders: { ...moving.made, ...chosen } });
      parts.push(presets.element, moving.element);
    }
    const cards = readouts(payload.readouts, payload.leads);
    this.broken = cards.broken;
    this.texts.push(...cards.texts);
    this.spoken = make("p", { class: "fk-spoken", role: "status" });
    return [...parts, cards.element, this.spoken];
  }

  // What a reader may take along, what is held fixed, the table.
  foot() {
    const { payload, options } = this;
    this.pinned = this.live ? make("table", { class: "fk-pins" }) : null;
    const take = { pin: this.live && options.controls !== false && (() => this.pin()), csv: payload.columns && (() => this.csv()), svg: () => this.picture(), link: this.linked && (() => this.link()) };
    const parts = [this.pinned, actions(payload.key || "chart", take)].filter(Boolean);
    if (this.live && payload.assumptions.length) {
      const fixed = assumptions(payload.assumptions, payload.leads);
      this.texts.push(...fixed.texts);
      parts.push(fixed.element);
    }
    if (payload.columns) {
      this.table = table(payload.title, payload.columns, () => this.rows());
      parts.push(this.table.element);
    }
    return parts;
  }

  async embed(place, source, index) {
    const fit = fitted(source, this.payload, await width(place));
    const spec = this.live ? withPins(fit, index) : fit;
    const tip = (handler, event, item, value) => this.tip(event, this.pairs(value, index));
    const before = layout(fit);
    let made = await drawn(place, spec, tip);
    let narrowed = false;
    for (let columns = fewerColumns(place); columns; columns = fewerColumns(place, columns)) {
      made.view.finalize();
      narrowed = true;
      spec.config.legend = { ...spec.config.legend, columns };
      made = await drawn(place, spec, tip);
    }
    const { view } = made;
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", source.description || this.payload.title);
    place.querySelector("svg").setAttribute("aria-hidden", "true");
    this.views[index] = view;
    this.sets[index] = made.sets;
    place.style.minHeight = "";
    this.select(place, spec, index);
    let last = place.clientWidth;
    const observer = new ResizeObserver(async () => {
      const now = place.clientWidth;
      if (!now || Math.abs(now - last) < 2 || source.width !== "container") return;
      last = now;
      await view.signal("width", now).runAsync();
      if (layout(fitted(source, this.payload, now)) === before && !narrowed && !fewerColumns(place)) return this.refresh();
      if (last !== now || this.views[index] !== view) return; // a later width is laid out
      observer.disconnect();
      view.finalize();
      place.style.minHeight = `${place.clientHeight}px`;
      await this.embed(place, source, index);
      if (this.pins.length) await this.pinAll(this.pins);
      await this.flush();
    });
    observer.observe(place);
    this.observers.push(observer);
  }

  // What a reader selects by kind of chart: one of several series, and the time up to which a chart over time is shown.
  select(place, spec, index) {
    const view = this.views[index];
    const known = this.selectors.filter((selector) => selector.place === place);
    if (known.length) return known.forEach((selector) => Object.assign(selector, { view }));
    const [series, time] = [seriesField(spec), this.live ? null : timeField(spec)];
    if (series && place.querySelectorAll(".role-legend-label text").length > 1) this.selectors.push(new Series(place, series));
    const sets = time ? this.sets[index].map((name) => view.data(name)) : [];
    const times = timesOf(sets.flat(), time);
    if (times.length > 2) this.selectors.push(new Player(place, view, time, times, this.payload.title));
    for (const { element } of this.selectors) if (!element.isConnected) place.parentElement.append(element);
  }

  refresh() {
    for (const selector of this.selectors) selector.refresh();
  }

  // Values in, picture out. Values outside the vocabulary's bounds are refused in words; moves that arrive while a
  // picture is drawn are drawn together afterwards.

  get inputs() {
    const { bounds, controls, assumptions: fixed, menus: words = [] } = this.payload;
    return Object.fromEntries([...controls, ...words, ...fixed].map(({ name, label }) => [name, { label, bounds: bounds[name] }]));
  }

  set(changes, from) {
    const { taken, refused } = this.live ? admitted(changes, this.inputs) : { taken: changes, refused: [] };
    Object.assign(this.values, taken);
    if (this.refused) this.refused.textContent = refused.length ? `Not taken: ${refused.join("; ")}.` : "";
    for (const [name, made] of Object.entries(this.sliders)) if (name !== from) made.set(this.values[name]);
    if (from && this.choice) this.choice.value = "";
    this.remember();
    if (this.live && this.spoken) this.announce();
    return this.flush();
  }

  async flush() {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    try {
      do {
        this.again = false;
        for (const view of this.views) for (const [name, value] of Object.entries(this.values)) view.signal(name, value);
        await Promise.all(this.views.map((view) => view.runAsync()));
      } while (this.again);
      this.show();
    } finally {
      this.busy = false;
    }
  }

  show() {
    this.refresh();
    if (!this.live) return;
    for (const [name, made] of Object.entries(this.sliders)) made.say(this.formatted(name));
    this.broken.textContent = this.views[0].signal("broken_rule");
    for (const [name, place] of this.texts) place.textContent = this.formatted(name);
    if (this.pins.length) this.showPins();
    this.table?.fill();
  }

  formatted(name) {
    return this.views[0].signal(`${name}_text`);
  }

  // One sentence for those who hear the page, once a move has come to rest; meanwhile the picture stays in view.
  announce() {
    clearTimeout(this.resting);
    this.root.classList.add("fk-moving");
    this.resting = setTimeout(() => {
      const results = this.payload.readouts.map(({ name, label }) => `${label} ${this.formatted(name)}`);
      this.spoken.textContent = `${results.join(", ")}.`;
    }, 700);
    clearTimeout(this.moving);
    this.moving = setTimeout(() => this.root.classList.remove("fk-moving"), 4000);
  }

  reset() {
    if (this.choice) this.choice.value = "0";
    return this.set(this.start);
  }

  // The present setting stays in the picture while sliders go on.

  get named() {
    const { controls, assumptions: fixed, menus: words = [], readouts: results } = this.payload;
    return [...controls, ...words, ...fixed, ...results.map((readout) => ({ ...readout, result: true }))];
  }

  pin(label = String.fromCharCode(65 + this.pins.length)) {
    const texts = Object.fromEntries(this.named.map(({ name }) => [name, this.formatted(name)]));
    return this.pinAll([...this.pins, { label, texts, rows: this.rows() }]);
  }

  async pinAll(pins) {
    if (pins.length > MOST) throw new Error(`${MOST} settings are pinned; remove one first`);
    this.pins = pins;
    const rows = pins.flatMap(({ rows: own }, slot) => pinRows(slot, this.payload.columns, own));
    await Promise.all(this.views.map((view) => view.data("pins", rows).runAsync()));
    this.showPins();
  }

  showPins() {
    const remove = (label) => this.pinAll(this.pins.filter((pin) => pin.label !== label));
    this.pinned.replaceChildren(...(this.pins.length ? pinTable(this.pins, this.named, (name) => this.formatted(name), remove) : []));
  }

  // The whole state in the address.

  link() {
    return remembered(location.hash, this.payload.key, this.values);
  }

  remember() {
    if (!this.linked) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => history.replaceState(history.state, "", this.link()), 200);
  }

  recall() {
    const changes = recalled(location.hash, this.payload.key);
    if (!changes) return;
    if (this.choice) this.choice.value = "";
    return this.set(changes);
  }

  // What is drawn, as rows and pictures.

  rows() {
    const sets = this.views.map((view, i) => {
      const fields = this.payload.columns.filter((column) => column.spec === i).map((column) => column.field);
      const tables = this.sets[i].map((name) => view.data(name));
      return tables.find((rows) => rows.length && fields.every((field) => field in rows[0])) || [];
    });
    return joined(this.payload.columns, sets);
  }

  // What goes with numbers and pictures wherever they go: settings, source, address.
  about() {
    const { payload } = this;
    const given = this.live ? [...payload.controls, ...payload.assumptions].map(({ name, label }) => `${label} ${this.formatted(name)}`) : [];
    return [given.length && `Settings: ${given.join("; ")}.`, payload.source && `Source: ${payload.source.replace(/^Sources?: /, "")}`, LAB ? "factorykit" : location.href.split("#")[0]].filter(Boolean);
  }

  csv() {
    return csv(this.payload.columns, this.rows(), [this.payload.title, ...this.about()]);
  }

  picture() {
    const title = this.payload.specs[0].title ? "" : this.payload.title;
    return picture(this.root, this.views, title, this.about());
  }

  // What the tooltip says of a mark: its own words, or the curves of a live chart at that place.
  pairs(value, index) {
    if (value == null || value === "") return null;
    if (!this.live) return Object.entries(typeof value === "object" ? value : { "": value });
    const { columns } = this.payload;
    const row = this.rows().find(([x]) => x === value[columns[0].field]) || [];
    return columns.map((column, i) => [column.title, shown(column, row[i])]).filter((_, i) => i === 0 || columns[i].spec === index);
  }

  finalize() {
    [this.timer, this.resting, this.moving].forEach(clearTimeout);
    this.observers.forEach((observer) => observer.disconnect());
    this.selectors.forEach((selector) => selector.finalize());
    this.views.forEach((view) => view?.finalize());
    this.root.replaceChildren();
  }
}

export async function draw(root, payload, options = {}) {
  try {
    return await new Chart(root, payload, options).draw();
  } catch (error) {
    style();
    root.classList.add("factorykit-chart");
    root.append(make("p", { class: "fk-error", role: "alert" }, `This chart could not be drawn: ${error.message}`));
    console.error(error);
    return null;
  }
}
