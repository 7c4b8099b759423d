// The middle column: eight readouts with expandable derivations, and the pictures below them.
import { make } from "../../charts/runtime/dom.mjs";
import { bars, COLORS, counted, frontier, line, money, tornado } from "./pictures.mjs";
import { lasting, rounded, span, text } from "./values.mjs";

const TITLES = { step_s: "Step", predicted_mfu: "MFU", memory_peak_bytes: "Memory", failures_per_day: "Failures", goodput: "Goodput", wall_days: "Days", training_energy_kwh: "Energy", run_cost_usd: "Cost" };

const LONGEST_LABEL = 40;
const SIXTEEN_BITS = ["bf16", "fp16"];
const NAMED = 4;
const LAST = ["fitted", "neutral"];
const HERE = globalThis.document?.currentScript?.src;
let loading = null;

// Formulas of the values and fields of configuration files, from a separate script that is loaded on first use.
export function formulas() {
  loading ||= new Promise((resolve) => {
    window.factorykitFormulas = resolve;
    document.head.append(make("script", { src: new URL("plan-formulas.js", HERE).href }));
  });
  return loading;
}

export class Answer {
  constructor(page, root) {
    Object.assign(this, { page, root, cells: new Map() });
    this.refused = make("div", { class: "fkp-refused", role: "alert" });
    this.layout = make("p", { class: "fkp-layout" });
    const cells = page.readouts.map((name) => this.readout(name));
    this.readouts = make("div", { class: "fkp-readouts" }, ...cells);
    this.says = make("p", { class: "fkp-says" });
    this.first = make("div", { class: "fkp-first" });
    this.pictures = make("div", { class: "fkp-pictures" });
    this.element = make("section", { class: "fkp-answer", "aria-label": "The answer" }, this.first, this.refused, this.says, this.readouts, this.layout, this.pictures);
    this.figures = {};
    for (const [key, title, note] of [
      ["frontier", "Every plan: days and dollars", "the line joins the cheapest at each time; a click on a plan takes its accelerator and count"],
      ["step", "Where the time of a step goes", "shares of a step by accelerators, each at its best layout; outlined: now"],
      ["saving", "Goodput over the time between checkpoints", "best where saving and lost work are least"],
      ["cost", "Cost by component", "by accelerators"],
      ["doubts", "What the cost depends on", "the cost with one uncertain value at the ends of its 90 % interval"],
    ]) {
      const place = make("div", { class: "fkp-place" });
      const figure = make("figure", { class: "fkp-figure", "data-picture": key }, make("figcaption", {}, make("strong", {}, title), make("span", {}, note)), place, make("div", { class: "fkp-legend" }));
      this.figures[key] = { figure, place, legend: figure.lastChild };
      (key === "frontier" ? this.first : this.pictures).append(figure);
    }
    this.near = make("ul", { class: "fkp-near" });
    this.first.append(this.near);
  }

  readout(name) {
    const value = make("span", { class: "fkp-value", "data-quantity": name });
    const ends = make("span", { class: "fkp-ends" });
    const brief = make("span", { class: "fkp-short", "aria-hidden": "true" });
    const bar = name === "memory_peak_bytes" ? make("span", { class: "fkp-bar" }, make("span", {})) : null;
    const chain = make("div", { class: "fkp-chain" });
    const element = make("details", { class: "fkp-readout", name: "fkp-readout", ontoggle: () => element.open && this.unfold(name, chain) }, make("summary", {}, make("span", { class: "fkp-name" }, TITLES[name]), value, brief, bar, ends), chain);
    this.cells.set(name, { element, value, brief, ends, bar, chain });
    return element;
  }

  words(name) {
    return this.page.quantities[name] ?? this.formulas?.quantities[name];
  }

  say(name, value) {
    return text(this.words(name), value);
  }

  // Readouts and layout, shown immediately.
  show({ values, intervals, layouts, given, tier, way, available, breaks, site, provider }, question) {
    Object.assign(this, { values, given, tier, way, question, available, breaks, where: [this.country(site), provider].filter(Boolean), judged: null });
    this.says.textContent = this.sentence();
    for (const [name, cell] of this.cells) {
      cell.value.textContent = this.readoutText(name, values);
      const ends = intervals[name];
      cell.ends.textContent = ends ? span(this.words(name), ends) : "";
      cell.brief.textContent = this.briefText(name, values);
      if (cell.bar) {
        const share = values.memory_peak_bytes / values.accelerator_memory_bytes;
        cell.bar.firstChild.style.width = `${Math.min(share, 1) * 100}%`;
        cell.bar.classList.toggle("fkp-over", values.fits < 1 || share > 1);
        cell.ends.textContent = share > 1 ? "does not fit" : values.fits < 1 ? "may not fit" : "fits";
      }
      if (cell.element.open) this.unfold(name, cell.chain);
    }
    this.layout.textContent = this.layoutText(values, layouts);
  }

  readoutText(name, values) {
    if (name === "memory_peak_bytes") return `${this.say(name, values[name])} of ${this.say("accelerator_memory_bytes", values.accelerator_memory_bytes)}`;
    if (name === "predicted_mfu" && !SIXTEEN_BITS.includes(values.precision)) return `${this.say(name, values[name])} of the ${values.precision} peak, ${this.say("model_flop_per_s_per_accelerator", values.model_flop_per_s_per_accelerator)}`;
    if (name === "training_energy_kwh") return `${this.say(name, values[name])}, ${this.say("training_carbon_kg", values.training_carbon_kg)} CO₂`;
    return this.say(name, values[name]);
  }

  // The value in short form for a phone.
  briefText(name, values) {
    if (name === "memory_peak_bytes") return `${rounded(values[name] / 1e9, 2)}/${rounded(values.accelerator_memory_bytes / 1e9)} GB`;
    if (name === "run_cost_usd") return money(values[name]);
    return this.say(name, values[name]).replace(" per day", "/d");
  }

  layoutText(values, layouts) {
    const ways = [["data", values.data_parallel], ["tensor", values.tensor_parallel], ["pipeline", values.pipeline_parallel], ["context", values.context_parallel], ["expert", values.expert_parallel]];
    const axes = ways.filter(([, n]) => n > 1).map(([name, n]) => `${name} ${rounded(n)}`);
    const chosen = layouts === null ? "The layout given" : `Best of ${layouts.toLocaleString("en")} layouts that fit`;
    const share = values.recompute_share > 0 && values.recompute_share < 1 ? `, ${rounded(values.recompute_share * 100, 2)} % recomputed` : values.recompute === "none" ? "" : `, ${values.recompute} recomputation`;
    const often = lasting(values.checkpoint_interval_s);
    const saves = this.tier === "two" ? `a local checkpoint every ${often}, one in ${rounded(values.segments_per_pattern, 2)} also on storage` : `saves every ${often}`;
    const save = `${saves}, ${rounded(values.spare_nodes)} spare ${values.spare_nodes === 1 ? "node" : "nodes"}`;
    return `${chosen}: ${axes.join(", ") || "one chip"}; micro-batch ${rounded(values.micro_batch_size)}, ZeRO ${values.zero_stage}, ${values.schedule}${values.virtual_stages > 1 ? ` with ${values.virtual_stages} virtual stages` : ""}${share}. Batch of ${rounded(values.global_batch_size)} sequences, ${rounded((values.global_batch_size * values.sequence_length) / values.accelerators)} tokens a chip in each step; ${save}.`;
  }

  chip(key, way = this.way) {
    const [, name] = this.page.menus.accelerator.find(([value]) => value === key);
    const own = this.page.cells.some((cell) => this.question.given[cell] !== undefined) ? " with values of your own" : "";
    return `${name}${own}, ${{ rent: "rented", own: "owned" }[way]}`;
  }

  country(site) {
    return this.page.menus.site.find(([key]) => key === site)?.[1];
  }

  // The answer in one or two sentences: resources, days, dollars, power, limits, ties, probabilities.
  sentence() {
    const { values, breaks, judged, available } = this;
    const count = available > values.accelerators ? `${counted(values.accelerators)} of ${counted(available)}` : counted(values.accelerators);
    const where = this.where.length ? ` (${this.where.join(", ")})` : "";
    const [days, dollars, power] = ["wall_days", "run_cost_usd", "facility_power_w"].map((name) => this.say(name, values[name]));
    const bought = this.way === "own" ? ` for the run, ${this.say("capital_usd", values.capital_usd)} to buy` : "";
    const plan = `${count} ${this.chip(this.given.accelerator)}${where}: ${days}, ${dollars}${bought}, ${power}`;
    const over = breaks && Object.entries(breaks).map(([name, ratio]) => `${rounded(Math.max(ratio, 1.01))} times the ${name}`);
    const sentences = [breaks ? `No plan keeps every limit. The nearest: ${plan}; it takes ${over.join(" and ")}.` : `${plan}.`];
    if (judged) {
      const { limits, ties, chances } = judged;
      if (!breaks) sentences.push(limits.length ? `Limited by ${limits.join(", ")}.` : "Nothing limits it.");
      for (const [name, chance] of Object.entries(chances)) sentences.push(`Chance of keeping the ${name}: ${rounded(chance * 100, 2)} %.`);
      const phrase = ({ accelerator, way, tier, site, tied }) => `${[this.chip(accelerator, way), tier !== this.tier && `checkpoints in ${tier} tier${tier === "two" ? "s" : ""}`, this.country(site)].filter(Boolean).join(", ")}, in ${tied.map((name) => ({ wall_days: "days", run_cost_usd: "dollars" })[name]).join(" and ")}`;
      if (ties.length) sentences.push(`Equal within the 90 % interval: ${ties.slice(0, 3).map(phrase).join("; ")}.`);
    }
    const [spares, enough] = [values.spare_nodes, values.spare_nodes_enough];
    if (spares < enough) sentences.push(`${counted(spares)} of ${counted(enough)} spare nodes: the time in which failed nodes are missing is not counted.`);
    return sentences.join(" ");
  }

  showJudged(judged) {
    this.judged = judged;
    this.says.textContent = this.sentence();
  }

  spoken({ refused }) {
    return refused ? this.refused.textContent : this.sentence();
  }

  // The obstacle to an answer, and remedies, each with a button.
  refuse(refused, chip, remedies = []) {
    this.refused.replaceChildren(...(refused ? [this.why(refused, chip), ...remedies.flatMap(([label, act]) => [" ", make("button", { type: "button", onclick: act }, label)])] : []));
    this.element.classList.toggle("fkp-none", Boolean(refused));
  }

  why({ missing, rule, remedy, works, fits, ends, offer, message, memory }, chip) {
    if (message) return message;
    if (missing) return `${chip}: the tables have no ${missing.map((name) => this.words(name)[0]).join(", ")}; give ${missing.length > 1 ? "them" : "it"} on the left.`;
    if (rule) return `This layout breaks a rule: ${rule}. Try: ${remedy}.`;
    if (works === false) return "No layout divides the model and the batch over that many accelerators.";
    if (fits === false) return memory ? `No layout fits in memory: this needs ${text(this.words("accelerator_memory_bytes"), memory)} per accelerator on so few of them.` : "No layout fits in memory.";
    if (ends === false) return "The run would never end: failures come faster than checkpoints. Try fewer accelerators, faster storage, or a longer time between failures.";
    if (offer === false) return "No offer has enough accelerators.";
    return "No answer.";
  }

  // The derivation of a value: its sources, then its formula, then each input, which can be expanded in turn.
  async unfold(name, place) {
    this.formulas = await formulas();
    if (!this.values) return;
    const asked = name === "run_cost_usd" && this.way === "own" ? "run_cost_owned_usd" : name;
    place.replaceChildren(this.rests(asked), this.link(asked));
    place.lastChild.open = true;
  }

  // The origin, the formula and the inputs of a step.
  step(name) {
    const two = this.tier === "two";
    const known = this.formulas.steps[name];
    const [origin, href, who] = (two && this.page.twoTiers[name]) || known || ["given"];
    const [formula, needs] = (two && this.formulas.two[name]) || this.formulas.one[name] || ["", []];
    const given = this.given[name] !== undefined || !known;
    return { origin, href, who, formula, needs, given, leaf: given || !needs.length || origin === "chip" };
  }

  // The link to the source of a value without a formula.
  source(name) {
    const { origin, href, who, given } = this.step(name);
    if (given) return this.giver(name);
    const to = origin === "chip" ? href.replace("{accelerator}", this.values.accelerator) : href;
    const source = who || (origin === "chip" ? "chip data sheet" : origin);
    return to ? make("a", { class: "fkp-who", href: `${this.root}${to}` }, source) : make("span", { class: "fkp-who" }, source);
  }

  // The origin of a given value: the table of models, the published run of the preset, or the reader.
  giver(name) {
    const { page, root, question } = this;
    const published = !question.shape && page.menus.model.some(([key]) => key === question.model);
    if (published && name in page.shape) return make("a", { class: "fkp-who", href: `${root}tables/architectures.html?q=${question.model}` }, "shape of the model");
    const paper = published && question.model === page.preset.model && this.values[name] === page.preset[name] && page.published[name];
    return paper ? make("a", { class: "fkp-who", href: `${root}${paper[1]}` }, paper[0]) : make("span", { class: "fkp-who" }, "given");
  }

  // The page of the publisher for a source or row of this site.
  publisher({ attributes }) {
    const own = this.formulas.publishers[attributes.href.value.slice(this.root.length)];
    return own ? [" (", make("a", { class: "fkp-who", href: own, rel: "external" }, new URL(own).hostname.replace(/^www\./, "")), ")"] : [];
  }

  head(name) {
    const value = this.values[name];
    return [make("span", {}, this.words(name)?.[0] ?? name), " ", make("b", {}, typeof value === "number" ? this.say(name, value) : String(value ?? "–"))];
  }

  // All sources of a value with the values taken from them: the nearest first, calibrated and neutral values last.
  rests(name) {
    const open = [name];
    const seen = new Set(open);
    const sources = new Map();
    for (const quantity of open) {
      const step = this.step(quantity);
      if (!step.leaf) for (const next of step.needs) if (!seen.has(next) && seen.add(next)) open.push(next);
      const link = step.leaf && this.source(quantity);
      if (!link?.href) continue;
      if (step.origin === "fitted") link.search = "";
      const [, names] = sources.get(link.href) ?? [link, []];
      sources.set(link.href, [link, [...names, quantity], LAST.includes(step.origin)]);
    }
    const sorted = [...sources.values()].sort((a, b) => a[2] - b[2]);
    const rows = sorted.map(([link, names]) => {
      const shown = names.slice(0, NAMED).flatMap((quantity, i) => [i ? "; " : "", ...this.head(quantity)]);
      const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
      return make("li", {}, ...shown, `${more}: `, link, ...this.publisher(link));
    });
    return make("details", { class: "fkp-rests", open: true }, make("summary", {}, "Inputs and sources"), make("ul", {}, ...rows));
  }

  link(name) {
    const step = this.step(name);
    if (step.leaf) return make("div", { class: "fkp-leaf", title: name }, ...this.head(name), " ", this.source(name));
    const below = make("div", { class: "fkp-below" });
    const element = make("details", { ontoggle: () => element.open && !below.childElementCount && below.append(...step.needs.map((need) => this.link(need))) }, make("summary", { title: name }, ...this.head(name)), make("p", { class: "fkp-formula" }, make("code", {}, `${name} = ${step.formula}`), step.href ? make("a", { href: `${this.root}${step.href}` }, "formula and source") : null), below);
    return element;
  }

  draw(key, svg, legend = []) {
    const { place, legend: words } = this.figures[key];
    place.replaceChildren(svg);
    words.replaceChildren(...legend.map(([name, color]) => make("span", {}, make("i", { style: `background:${color}` }), name)));
  }

  showSaving(points) {
    const { values } = this;
    const minutes = points.map(({ checkpoint_interval_s: s, goodput }) => [s / 60, goodput]);
    const percent = (value) => `${rounded(value * 100)} %`;
    this.draw("saving", line("Goodput over the time between checkpoints", minutes, "minutes between checkpoints", { mark: values.checkpoint_interval_s / 60, formatY: percent, formatX: (value) => rounded(value, 2) }));
  }

  showDoubts(rows) {
    const { values } = this;
    const shown = rows.map(({ name, ends, run_cost_usd: cost }) => {
      const [label] = this.words(name);
      const whole = `${label}, ${span(this.words(name), ends)}`;
      return { label: whole.length > LONGEST_LABEL ? label : whole, title: whole, ends: cost };
    });
    const noticeable = shown.filter(({ ends: [a, b] }) => Math.abs(b - a) > 0.001 * values.run_cost_usd);
    this.draw("doubts", tornado("What the cost depends on", noticeable.length ? noticeable : shown.slice(0, 1), values.run_cost_usd, money));
  }

  // All plans by accelerator, with nearby published runs.
  showFrontier(rows, runs, pick) {
    const { values, question, page, root } = this;
    const keys = [...new Set([...question.chips, ...rows.map(({ accelerator }) => accelerator)])];
    const name = (key) => page.menus.accelerator.find(([value]) => value === key)[1];
    const at = (row) => [row.wall_days, Math.max(row.run_cost_usd, 1)];
    const sets = keys.map((key, i) => ({
      label: name(key),
      color: COLORS[i % COLORS.length],
      rows: rows.filter(({ accelerator }) => accelerator === key).map((row) => ({ x: at(row)[0], y: at(row)[1], faint: row.breaks, title: `${counted(row.accelerators)} ${name(key)}: ${this.say("wall_days", row.wall_days)}, ${this.say("run_cost_usd", row.run_cost_usd)}`, pick: () => pick(row) })),
    }));
    const published = runs.map(({ key, label, accelerator, accelerators, days, computed }) => {
      const miss = `${computed.wall_days > days ? "+" : "−"}${rounded(Math.abs(computed.wall_days / days - 1) * 100, 2)} %`;
      const price = computed.run_cost_usd / computed.wall_days;
      return { x: days, y: Math.max(price * days, 1), to: at(computed), label, href: `${root}entities/runs/${key}.html`, title: `${label} on ${counted(accelerators)} ${name(accelerator)}: ${rounded(days)} days published, ${rounded(computed.wall_days)} computed with today's software and layout (${miss})` };
    });
    const { deadline_s, budget_usd } = question.limits;
    this.draw("frontier", frontier("Days and dollars of every plan", sets, { narrow: this.element.clientWidth < 600, best: { x: at(values)[0], y: at(values)[1] }, limits: { x: deadline_s / 86400, y: budget_usd }, runs: published.filter(({ y }) => Number.isFinite(y)), formatY: money }), sets.map(({ label, color }) => [label, color]));
    this.near.replaceChildren(...published.map(({ title, href }) => make("li", {}, make("a", { href }, title))));
  }

  showSizes(rows) {
    const { page, values } = this;
    const now = rows.findIndex((row) => row.accelerators === values.accelerators);
    const sum = (row, names) => names.reduce((total, name) => total + row[name], 0);
    const parts = Object.entries(page.stepParts);
    const steps = rows.map((row) => ({ label: counted(row.accelerators), parts: parts.map(([, names]) => sum(row, names) / row.step_s) }));
    this.draw("step", bars("Parts of a step", steps, parts.map(([name]) => name), "accelerators", (value) => `${rounded(value * 100)} %`, now), parts.map(([name], i) => [name, COLORS[i]]));
    const costs = this.way === "own" ? this.owned(rows) : this.rented(rows);
    this.draw("cost", bars("Cost by component", costs.rows, costs.names, "accelerators", money, now), costs.names.map((name, i) => [name, COLORS[i]]));
  }

  rented(rows) {
    const part = (row) => [row.run_cost_usd - row.wasted_cost_usd - row.spares_usd_per_day * row.wall_days, row.wasted_cost_usd, row.spares_usd_per_day * row.wall_days];
    return { names: ["progress", "lost to failures and saving", "spare nodes"], rows: rows.map((row) => ({ label: counted(row.accelerators), parts: part(row) })) };
  }

  owned(rows) {
    const names = this.page.costs.own;
    const whole = (row) => names.reduce((total, name) => total + row[name], 0);
    return { names: names.map((name) => this.words(name)[0]), rows: rows.map((row) => ({ label: counted(row.accelerators), parts: names.map((name) => (row.run_cost_usd * row[name]) / whole(row)) })) };
  }
}
