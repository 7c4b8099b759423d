// Draws every factorykit chart on a page, in JupyterLab's outputs and inside the widget. `vegaEmbed` is in scope:
// the build puts this file behind Vega's bundle and wraps both in one function.
const LAB = !!document.getElementById("jupyter-config-data");
const STYLE = `
.factorykit-chart{font:14px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif;margin:1rem 0;position:relative;max-width:100%}
.factorykit-chart *{box-sizing:border-box}
.factorykit-chart .fk-title{font-weight:600;font-size:1.05rem;margin:0 0 .5rem}
.factorykit-chart .fk-bar{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:.35rem 0}
.factorykit-chart .fk-bar label{display:flex;gap:.4rem;align-items:center}
.factorykit-chart .fk-controls{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,15.5rem),1fr));gap:.45rem 1.5rem;margin:.5rem 0 .75rem}
.factorykit-chart .fk-control{display:grid;grid-template-columns:1fr auto;gap:0 .75rem;margin:0;align-content:end;align-items:end}
.factorykit-chart .fk-control output{font-variant-numeric:tabular-nums;font-weight:600;text-align:right}
.factorykit-chart .fk-control input{grid-column:1/-1;width:100%;margin:.1rem 0;height:1.5rem;cursor:pointer;appearance:none;-webkit-appearance:none;background:none}
.factorykit-chart input::-webkit-slider-runnable-track{height:4px;border-radius:2px;background:color-mix(in srgb,currentColor 28%,transparent)}
.factorykit-chart input::-moz-range-track{height:4px;border-radius:2px;background:color-mix(in srgb,currentColor 28%,transparent)}
.factorykit-chart input::-webkit-slider-thumb{-webkit-appearance:none;width:18px;height:18px;margin-top:-7px;border-radius:50%;background:#0b7bc1;border:2px solid #fff}
.factorykit-chart input::-moz-range-thumb{width:16px;height:16px;border-radius:50%;background:#0b7bc1;border:2px solid #fff}
.factorykit-chart button,.factorykit-chart select{font:inherit;color:inherit;background:transparent;border:1px solid color-mix(in srgb,currentColor 45%,transparent);border-radius:6px;padding:.2rem .6rem;min-height:2rem;cursor:pointer}
.factorykit-chart select option{color:CanvasText;background:Canvas}
.factorykit-chart button:hover{background:color-mix(in srgb,currentColor 9%,transparent)}
.factorykit-chart :is(button,select,input,summary):focus-visible{outline:2px solid #2f8fd0;outline-offset:2px}
.factorykit-chart .fk-readouts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,auto));justify-content:start;gap:.35rem 2rem;margin:0 0 .75rem}
.factorykit-chart .fk-broken:empty{display:none}
.factorykit-chart .fk-broken{grid-column:1/-1;border-left:4px solid #d55e00;padding-left:.6rem}
.factorykit-chart .fk-name{font-size:.82rem;opacity:.8}
.factorykit-chart .fk-value{font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}
.factorykit-chart .fk-views{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,17rem),1fr));gap:1rem}
.factorykit-chart .fk-view{width:100%;min-width:0}
.factorykit-chart .fk-view .vega-embed{width:100%;padding:0!important;display:block}
.factorykit-chart .fk-view svg{display:block;max-width:100%;height:auto;overflow:visible}
.factorykit-chart .fk-still{max-width:100%;height:auto}
.factorykit-chart .fk-source,.factorykit-chart .fk-said{font-size:.82rem;opacity:.8;margin:.4rem 0 0}
.factorykit-chart .fk-actions{margin:.5rem 0 0}
.factorykit-chart .fk-actions button{font-size:.82rem}
.factorykit-chart details{margin:.5rem 0 0;font-size:.88rem}
.factorykit-chart summary{cursor:pointer}
.factorykit-chart .fk-table{max-height:20rem;overflow:auto;margin-top:.4rem}
.factorykit-chart table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:auto;margin:0}
.factorykit-chart th,.factorykit-chart td{padding:.15rem .75rem .15rem 0;text-align:right;font-weight:400;border:0}
.factorykit-chart th:first-child,.factorykit-chart td:first-child{text-align:left}
.factorykit-chart thead th{font-weight:600;border-bottom:1px solid color-mix(in srgb,currentColor 40%,transparent)}
.factorykit-chart .fk-tip{position:absolute;pointer-events:none;z-index:5;padding:.35rem .55rem;border-radius:6px;font-size:.82rem;border:1px solid color-mix(in srgb,currentColor 30%,transparent);box-shadow:0 2px 8px rgba(0,0,0,.25);max-width:18rem}
.factorykit-chart .fk-tip td{padding:0 .5rem 0 0;text-align:left}
.factorykit-chart .fk-error{border-left:3px solid #d55e00;padding:.3rem .75rem;margin:.5rem 0}
@media print{.factorykit-chart .fk-actions,.factorykit-chart .fk-bar,.factorykit-chart details{display:none}}
`;

let serial = 0;

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function style() {
  if (!document.getElementById("factorykit-style")) document.head.append(make("style", { id: "factorykit-style" }, STYLE));
}

// Numbers in tables and tooltips: four significant digits, thousands separated.
function number(value) {
  if (value == null || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size >= 1e15 || (size && size < 1e-4)) return value.toExponential(3);
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1e4 ? 15 : 4, maximumFractionDigits: size >= 1e4 ? 0 : 20 });
}

function download(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function backdrop(element) {
  for (let node = element; node; node = node.parentElement) {
    const color = getComputedStyle(node).backgroundColor;
    if (color && color !== "transparent" && !/, 0\)$/.test(color)) return color;
  }
  return "#fff";
}

// Positions of a range input: whole numbers from 0 to steps; values keep three significant digits once moved, or double.
function position(control, steps, value) {
  const { min, max, scale } = control;
  const part = scale !== "linear" ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
  return Math.round(Math.min(Math.max(part, 0), 1) * steps);
}
function valueAt(control, steps, place) {
  const { min, max, scale, whole } = control;
  if (place <= 0) return min;
  if (place >= steps) return max;
  if (scale === "doubling") return min * 2 ** place;
  const part = place / steps;
  const value = Number((scale === "log" ? min * (max / min) ** part : min + part * (max - min)).toPrecision(3));
  return whole ? Math.round(value) : value;
}

// A range input with its label and its value; the page, JupyterLab's outputs and the widgets use the same one.
function slider(control, value, moved) {
  style();
  const id = `fk-${++serial}`;
  const steps = control.steps;
  const input = make("input", { type: "range", id, min: 0, max: steps, step: 1, name: control.name, title: control.meaning });
  const output = make("output", { for: id });
  input.addEventListener("input", () => moved(valueAt(control, steps, Number(input.value))));
  input.addEventListener("keydown", (event) => event.stopPropagation()); // JupyterLab takes arrow keys for itself
  const set = (now) => (input.value = position(control, steps, now));
  const say = (text) => {
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  set(value);
  return { element: make("div", { class: "fk-control" }, make("label", { for: id }, control.label), output, input), input, set, say };
}

function wrapTitle(spec, width) {
  if (!spec.title) return;
  const title = typeof spec.title === "string" ? { text: spec.title } : spec.title;
  const lines = (text, size) => {
    const out = [""];
    for (const word of String(text).split(" ")) {
      const longer = out[out.length - 1] ? `${out[out.length - 1]} ${word}` : word;
      if (longer.length * size * 0.54 > width && out[out.length - 1]) out.push(word);
      else out[out.length - 1] = longer;
    }
    return out;
  };
  spec.title = { ...title, text: lines(title.text, 15) };
  if (title.subtitle) spec.title.subtitle = lines([].concat(title.subtitle).join(" "), 12);
}

// A view is embedded once its place has a width; a widget may be rendered before it is on the page.
function width(element) {
  return new Promise((resolve) => {
    const look = () => element.clientWidth > 0 && (observer.disconnect(), resolve(element.clientWidth));
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
  });
}

// A mark that stands for no row, such as a line at one, has no words for a screen reader and is hidden from it.
function hush(spec, above = {}) {
  const encoding = { ...above, ...spec.encoding };
  for (const layer of spec.layer || []) hush(layer, encoding);
  const named = Object.values(encoding).some((channel) => Array.isArray(channel) || channel?.field || channel?.aggregate);
  if (spec.mark && !named) spec.mark = { ...(spec.mark.type ? spec.mark : { type: spec.mark }), aria: false };
}

// On a narrow place no chart keeps wider row labels than that, whatever it asked for.
function limitLabels(spec, labelLimit) {
  for (const layer of spec.layer || []) limitLabels(layer, labelLimit);
  const axis = spec.encoding?.y?.axis;
  if (axis?.labelLimit > labelLimit) axis.labelLimit = labelLimit;
}

// In how many columns a legend that leaves its place on the right has to stand; 0 if it fits or stands in one.
function fewerColumns(place, columns) {
  const edge = place.getBoundingClientRect().right;
  let fewer = 0;
  for (const legend of place.querySelectorAll(".role-legend")) {
    const { left, right, width } = legend.getBoundingClientRect();
    const now = columns ?? legend.querySelectorAll(".role-legend-label text").length;
    if (right > edge + 1 && now > 1) fewer = Math.max(1, Math.min(fewer || now - 1, Math.floor((now * (edge - left)) / width)));
  }
  return fewer;
}

class Chart {
  constructor(root, payload, options) {
    Object.assign(this, { root, payload, options, values: { ...payload.parameters }, views: [], apis: [], busy: false, again: false });
    this.start = { ...this.values };
    this.sliders = {};
    this.texts = {};
    this.observers = [];
  }

  async draw() {
    style();
    const { root, payload, options } = this;
    const body = make("div", { class: "fk-body" });
    const live = !!payload.parameters;
    if (live && options.title !== false) body.append(make("div", { class: "fk-title" }, payload.title));
    if (live && options.controls !== false) body.append(this.bar(), this.controls());
    if (live) body.append(this.readouts());
    const places = payload.specs.map((spec) => make("div", { class: "fk-view", style: `min-height:${(spec.height > 0 ? spec.height : 180) + 60}px` }));
    body.append(make("div", { class: "fk-views" }, ...places));
    if (payload.source) body.append(make("p", { class: "fk-source" }, payload.source));
    body.append(this.actions(), ...(live && payload.assumptions.length ? [this.assumptions()] : []), ...(payload.columns ? [this.table()] : []));
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

  async embed(place, source, index) {
    const { grid, config } = this.payload;
    const spec = structuredClone(source);
    spec.config = structuredClone(config);
    if (grid) spec.datasets = { ...spec.datasets, grid: grid.values.map((value) => ({ [grid.field]: value })) };
    const room = await width(place);
    wrapTitle(spec, room);
    hush(spec);
    if (room < 480) {
      const labelLimit = Math.round(room * 0.4);
      spec.config.axis = { ...spec.config.axis, labelLimit };
      limitLabels(spec, labelLimit);
      spec.config.legend = { ...spec.config.legend, labelLimit: Math.round(room * 0.45) };
      spec.config.axisX = { ...spec.config.axisX, titleAnchor: "end" };
    }
    const options = {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      logLevel: 1, // errors; Vega-Lite warns of every chart with a step for its height
      tooltip: (handler, event, item, value) => this.tip(place, event, value, index),
      loader: { http: { mode: "same-origin" } },
    };
    let api = await vegaEmbed(place, spec, options);
    for (let columns; (columns = fewerColumns(place, columns)); ) {
      api.finalize();
      spec.config.legend = { ...spec.config.legend, columns };
      api = await vegaEmbed(place, spec, options);
    }
    this.apis[index] = api;
    this.views[index] = api.view;
    place.style.minHeight = "";
    let last = place.clientWidth;
    const observer = new ResizeObserver(() => {
      const now = place.clientWidth;
      if (!now || Math.abs(now - last) < 2 || source.width !== "container") return;
      last = now;
      api.view.signal("width", now).runAsync();
    });
    observer.observe(place);
    this.observers.push(observer);
  }

  // Controls of the page; in the widget, ipywidgets take their place.

  bar() {
    const { payload } = this;
    const bar = make("div", { class: "fk-bar" });
    if (payload.presets.length) {
      const choice = make("select", { onchange: () => choice.value && this.set(payload.presets[choice.value].values) });
      choice.append(make("option", { value: "" }, "own values"), ...payload.presets.map((preset, i) => make("option", { value: i }, preset.label)));
      this.choice = choice;
      choice.value = "0";
      bar.append(make("label", {}, "Preset", choice));
    }
    bar.append(make("button", { type: "button", onclick: () => this.reset() }, "Reset"));
    return bar;
  }

  controls() {
    const box = make("div", { class: "fk-controls" });
    for (const control of this.payload.controls) {
      const made = slider(control, this.values[control.name], (value) => this.set({ [control.name]: value }, control.name));
      this.sliders[control.name] = made;
      box.append(made.element);
    }
    return box;
  }

  readouts() {
    const list = make("div", { class: "fk-readouts" });
    list.append((this.broken = make("div", { class: "fk-broken", role: "status" })));
    for (const { name, label } of this.payload.readouts) {
      const text = make("div", { class: "fk-value", "data-quantity": name });
      (this.texts[name] ||= []).push(text);
      list.append(make("div", {}, make("div", { class: "fk-name" }, label), text));
    }
    return list;
  }

  assumptions() {
    const rows = this.payload.assumptions.map(({ name, label }) => {
      const text = make("td", {});
      (this.texts[name] ||= []).push(text);
      return make("tr", {}, make("td", {}, label), text);
    });
    return make("details", {}, make("summary", {}, "Held fixed"), make("table", {}, make("tbody", {}, ...rows)));
  }

  // Values in, picture out. Moves that arrive while a picture is drawn are drawn together afterwards.

  set(changes, from) {
    for (const name in changes) if (name in this.values && Number.isFinite(changes[name])) this.values[name] = changes[name];
    for (const name in this.sliders) if (name !== from) this.sliders[name].set(this.values[name]);
    if (from && this.choice) this.choice.value = "";
    this.remember();
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
        for (const view of this.views) for (const name in this.values) view.signal(name, this.values[name]);
        await Promise.all(this.views.map((view) => view.runAsync()));
      } while (this.again);
      this.show();
    } finally {
      this.busy = false;
    }
  }

  show() {
    if (!this.payload.parameters) return;
    const text = (name) => this.views[0].signal(`${name}_text`);
    for (const name in this.sliders) this.sliders[name].say(text(name));
    if (this.broken) this.broken.textContent = this.views[0].signal("broken_rule");
    for (const name in this.texts) for (const place of this.texts[name]) place.textContent = text(name);
    if (this.tableBody && this.tableBody.closest("details").open) this.fillTable();
  }

  reset() {
    if (this.choice) this.choice.value = "0";
    return this.set(this.start);
  }

  data(name, rows) {
    const view = this.views[0];
    return view.data(name, rows).runAsync();
  }

  // The whole state in the address; several charts of a page stand side by side there.

  remember() {
    if (LAB || this.options.link === false) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => history.replaceState(history.state, "", this.link()), 200);
  }

  link() {
    const state = Object.entries(this.values).map(([name, value]) => `${name}=${value}`).join("&");
    const others = hashParts().filter(([key]) => key !== this.payload.key).map(([key, text]) => `${key}:${text}`);
    return `#${[...others, `${this.payload.key}:${state}`].join(";")}`;
  }

  recall() {
    const part = hashParts().find(([key]) => key === this.payload.key);
    if (!part) return;
    const changes = {};
    for (const [name, text] of new URLSearchParams(part[1])) if (text !== "") changes[name] = Number(text);
    if (this.choice) this.choice.value = "";
    return this.set(changes);
  }

  // What a reader may take along.

  actions() {
    const said = make("span", { class: "fk-said", role: "status" });
    const say = (text) => {
      said.textContent = text;
      setTimeout(() => (said.textContent = ""), 3000);
    };
    const name = this.payload.key || "chart";
    const button = (text, act) =>
      make("button", { type: "button", onclick: () => Promise.resolve().then(act).catch((error) => say(`Did not work: ${error.message}`)) }, text);
    const buttons = [
      this.payload.columns && button("CSV", () => download(`${name}.csv`, "text/csv", this.csv())),
      button("SVG", async () => (await this.pictures()).forEach((svg, i) => download(`${name}${i ? i + 1 : ""}.svg`, "image/svg+xml", svg))),
      button("PNG", async () => (await this.pictures()).forEach((svg, i) => this.png(svg, `${name}${i ? i + 1 : ""}.png`))),
    ];
    if (this.payload.parameters && !LAB && this.options.link !== false)
      buttons.push(
        button("Copy link", async () => {
          history.replaceState(history.state, "", this.link());
          try {
            await navigator.clipboard.writeText(location.href);
            say("Link copied");
          } catch {
            say("The link stands in the address bar");
          }
        }),
      );
    return make("div", { class: "fk-bar fk-actions" }, ...buttons.filter(Boolean), said);
  }

  rows() {
    const sets = this.views.map((view, i) => {
      const fields = this.payload.columns.filter((column) => column.spec === i).map((column) => column.field);
      const sets = this.apis[i].vgSpec.data.map(({ name }) => view.data(name));
      return sets.find((rows) => rows.length && fields.every((field) => field in rows[0])) || [];
    });
    const length = Math.max(0, ...sets.map((rows) => rows.length));
    return Array.from({ length }, (_, n) => this.payload.columns.map(({ spec, field }) => sets[spec][n]?.[field]));
  }

  csv() {
    const quote = (value) => (value == null ? "" : /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
    return [this.payload.columns.map((column) => column.name), ...this.rows()].map((row) => row.map(quote).join(",")).join("\n") + "\n";
  }

  async pictures() {
    const color = getComputedStyle(this.root).color;
    const ground = backdrop(this.root);
    const svgs = await Promise.all(this.views.map((view) => view.toSVG()));
    return svgs.map((svg) => svg.replaceAll("currentColor", color).replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${ground}"/>`));
  }

  png(svg, name) {
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas", { width: image.width * 2, height: image.height * 2 });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => download(name, "image/png", blob));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  }

  table() {
    this.tableBody = make("tbody", {});
    const head = make("thead", {}, make("tr", {}, ...this.payload.columns.map((column) => make("th", { scope: "col" }, column.title))));
    const box = make("div", { class: "fk-table", tabindex: 0, role: "region", "aria-label": `Data: ${this.payload.title}` }, make("table", {}, head, this.tableBody));
    return make("details", { ontoggle: () => this.fillTable() }, make("summary", {}, "Data as a table"), box);
  }

  fillTable() {
    const cells = (row) => this.payload.columns.map(({ scale }, i) => make("td", {}, number(typeof row[i] === "number" ? row[i] / (scale || 1) : row[i])));
    this.tableBody.replaceChildren(...this.rows().map((row) => make("tr", {}, ...cells(row))));
  }

  tip(place, event, value, index) {
    this.tipBox ||= this.root.appendChild(make("div", { class: "fk-tip", hidden: true }));
    this.tipBox.hidden = value == null || value === "" || !(event instanceof MouseEvent);
    if (this.tipBox.hidden) return;
    const pairs = this.payload.parameters ? this.curvesAt(value, index) : Object.entries(typeof value === "object" ? value : { "": value });
    this.tipBox.style.background = backdrop(this.root);
    this.tipBox.replaceChildren(
      make("table", {}, make("tbody", {}, ...pairs.map(([name, text]) => make("tr", {}, make("td", {}, String(name)), make("td", {}, String(text)))))),
    );
    const frame = this.root.getBoundingClientRect();
    const left = event.clientX - frame.left + 14;
    this.tipBox.style.left = `${Math.min(left, Math.max(0, frame.width - this.tipBox.offsetWidth - 4))}px`;
    this.tipBox.style.top = `${event.clientY - frame.top + 14}px`;
  }

  curvesAt(point, index) {
    const { columns } = this.payload;
    const row = this.rows().find(([x]) => x === point[columns[0].field]) || [];
    const cells = columns.map(({ title, scale }, i) => [title, number(row[i] == null ? null : row[i] / (scale || 1))]);
    return cells.filter((_, i) => i === 0 || columns[i].spec === index);
  }

  finalize() {
    clearTimeout(this.timer);
    this.observers.forEach((observer) => observer.disconnect());
    this.apis.forEach((api) => api && api.finalize());
    this.root.replaceChildren();
  }
}

function hashParts() {
  let text = location.hash.slice(1);
  try {
    text = decodeURIComponent(text);
  } catch {
    return [];
  }
  return text.split(";").map((part) => part.split(/:(.*)/s)).filter(([key, rest]) => key && rest && rest.includes("="));
}

async function draw(root, payload, options = {}) {
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

// A container is followed by its payload in a JSON script; each is drawn once.
const charts = [];
async function mount(root) {
  if (root.dataset.drawn) return;
  root.dataset.drawn = "yes";
  let chart = null;
  try {
    chart = await draw(root, JSON.parse(root.nextElementSibling.textContent));
  } catch (error) {
    root.append(make("p", { class: "fk-error", role: "alert" }, `This chart could not be read: ${error.message}`));
  }
  if (!chart) return;
  charts.push(chart);
  if (!LAB && chart.payload.parameters) await chart.recall();
}

function scan() {
  document.querySelectorAll(".factorykit-chart:not([data-drawn])").forEach((root) => root.nextElementSibling?.type === "application/json" && mount(root));
}

if (!window.factorykit) {
  window.factorykit = { charts, draw, mount, scan, slider };
  if (!LAB) {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", scan);
    else scan();
    window.addEventListener("hashchange", () => charts.forEach((chart) => chart.payload.parameters && chart.recall()));
  }
}
