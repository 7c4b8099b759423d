// The answer of fk.serve, factorykit/model/serving/plan.py: candidates, those that fit, latencies, cost, order.
import { Process } from "./serving_process.mjs";

const G4 = (value) => Number(value.toPrecision(4));
const GIGA = 1e9;
const DIGITS = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
const ROUNDS = 12;
const SLICE_MS = 50;

// Numbers in 64 bits from their text in base 64.
const numbers = (text) => new Float64Array(Uint8Array.from(atob(text), (letter) => letter.codePointAt(0)).buffer);

// An object with some other values.
const over = (base, values) => Object.assign(Object.create(base), values);

export class Serving {
  constructor(model) {
    const [names, known] = model.shapes;
    const shapes = Object.fromEntries(Object.entries(known).map(([key, cells]) => [key, Object.fromEntries(names.map((name, i) => [name, cells[i]]).filter(([, value]) => value !== null))]));
    Object.assign(this, { model, shapes, kept: new Map() });
  }

  // The process of each latency, made for the first question.
  get processes() {
    return (this.made ??= this.conditioned());
  }

  conditioned() {
    const { model } = this;
    const { rows, weights } = model;
    const [names, sides] = [Object.keys(rows.words), ["decode", "prefill", "load"]];
    const words = rows.cells.engine.map((_, i) => Object.fromEntries(names.map((name) => [name, rows.words[name][rows.cells[name][i]]])));
    const found = words.map((row, i) => {
      const machine = Object.fromEntries(rows.machine.map((name, at) => [name, rows.devices[`${row.chip} ${row.format}`][at]]));
      const [decode, prefill, load] = sides.map((side) => Object.fromEntries(Object.entries(rows[side]).map(([name, cells]) => [name, cells[i]])));
      const common = { ...this.shapes[row.model], ...machine, ...decode };
      return this.latencies(model.decode(common), model.prefill({ ...common, ...prefill, ...this.queue(row.engine, prefill.concurrent_requests ?? decode.concurrent_requests) }), load);
    });
    const process = (name) => new Process(model, model.constants[name], words, found.map((row) => row.features[name]), { joining: numbers(weights[name].joining), rows: numbers(weights[name].rows) });
    return { ttft: process("ttft"), tpot: process("tpot") };
  }

  queue(engine, requests) {
    const { queued_share, serving_request_s } = this.model.engines[engine];
    return { queued_prefills: queued_share * requests, serving_request_s };
  }

  // Latencies by the formulas alone, and the features of their residuals.
  latencies(decode, prefill, load) {
    const { backlog, ttftFeatures, tpotFeatures } = this.model;
    const { output_tokens, time_per_output_token_s, decode_step_s, requests_in_memory, draft_step_tokens } = decode;
    const waits = backlog(over(prefill, { output_tokens, time_per_output_token_s }));
    const first = prefill.time_to_first_token_s + decode.prefill_separate * waits;
    return {
      ttft: first,
      tpot: time_per_output_token_s,
      features: {
        ttft: Float64Array.from(ttftFeatures(over(prefill, { ...load, output_tokens, time_to_first_token_s: first, decode_step_s, requests_in_memory, draft_step_tokens }))),
        tpot: Float64Array.from(tpotFeatures(over(decode, { ...load, prefill_s: prefill.prefill_s }))),
      },
    };
  }

  layouts({ experts }) {
    return this.model.sizes.flatMap((size) => (experts && size > 1 ? [1, size] : [1]).map((groups) => ({ tensor_parallel: size / groups, attention_data_parallel: groups, expert_parallel: groups })));
  }

  // The candidates of a chip in the order of Python, without and with separate prefill, that fit or not.
  candidates({ model: name, engine, precision, given }, chip) {
    const { model } = this;
    const shape = this.shapes[name];
    const layouts = this.layouts(shape);
    const common = { ...shape, ...model.chips[chip][precision], kv_bytes_per_element: model.kv[precision], pipeline_parallel: 1, ...given };
    const side = (compute, layout, requests, separate) => compute({ ...common, ...layout, concurrent_requests: requests, prefill_separate: separate });
    const prompts = new Map();
    const prefill = (layout, requests, separate) => {
      const key = [layout.tensor_parallel, layout.attention_data_parallel, requests, separate].join(" ");
      if (!prompts.has(key)) prompts.set(key, side((values) => model.prefill({ ...values, ...this.queue(engine, requests) }), layout, requests, separate));
      return prompts.get(key);
    };
    const found = [[], []];
    for (const separate of [0, 1]) {
      for (const layout of layouts) {
        for (const requests of model.requests.filter((each) => each >= layout.attention_data_parallel)) {
          const decode = side(model.decode, layout, requests, separate);
          for (const other of separate ? layouts : [layout]) {
            for (const [prefills, decodes] of separate ? model.workers : [[0, 1]]) {
              const prompt = prefill(other, Math.max((requests * decodes) / Math.max(prefills, 1), 1), separate);
              found[separate].push({ chip, decode, prompt, layout, other, requests, prefills, decodes, separate });
            }
          }
        }
      }
    }
    return found;
  }

  // Sets the accelerators and the memory of a candidate; returns whether it fits.
  fits(it) {
    const { decode, prompt } = it;
    it.worker = it.decodes * decode.replica_accelerators;
    it.prefill_accelerators = it.prefills * prompt.replica_accelerators;
    it.replica_accelerators = it.worker + it.prefill_accelerators;
    it.memory_left_bytes = decode.serving_memory_share * decode.accelerator_memory_bytes - decode.served_weight_bytes - (decode.request_kv_bytes * it.requests) / decode.replica_accelerators;
    return prompt.requests_in_memory >= 1 && decode.requests_in_memory >= it.requests;
  }

  // All candidates that fit, with latencies; kept for the next question, since neither load nor prices change them.
  fitting(question) {
    const { model: name, chips, engine, precision, given } = question;
    const { requests_per_s: _, ...asked } = given;
    const key = JSON.stringify([name, chips, engine, precision, asked]);
    if (this.kept.has(key)) return this.kept.get(key);
    const sets = chips.map((chip) => this.candidates(question, chip));
    const all = [0, 1].flatMap((separate) => sets.flatMap((set) => set[separate]));
    const found = all.filter((it) => this.fits(it));
    if (!found.length) throw new Error(this.missing(all));
    const means = new Map();
    for (const it of found) {
      const words = { engine, chip: it.chip, model: name, mode: it.separate ? "disagg" : "agg", format: precision };
      const group = `${it.chip} ${words.mode}`;
      if (!means.has(group)) means.set(group, Object.fromEntries(Object.entries(this.processes).map(([target, process]) => [target, process.mean(words)])));
      const load = { month: this.model.month, workers: it.decodes, prefill_workers: Math.max(it.prefills, 1), known: it.separate, recipes: it.separate };
      const { features, ...physics } = this.latencies(it.decode, it.prompt, load);
      Object.assign(it, { words, features });
      for (const target of ["ttft", "tpot"]) it[target] = physics[target] * Math.exp(means.get(group)[target](features[target]));
    }
    if (this.kept.size > 4) this.kept.clear();
    this.kept.set(key, found);
    return found;
  }

  missing(all) {
    const least = all.reduce((best, it) => (it.memory_left_bytes >= best.memory_left_bytes ? it : best));
    const bytes = Math.max(-least.memory_left_bytes, least.decode.request_kv_bytes / least.worker);
    return `weights and cache fit on no layout of ${this.model.sizes.at(-1)} accelerators or fewer: on ${least.worker} ${least.chip} about ${(bytes / GIGA).toLocaleString("en", DIGITS)} GB are missing on each; give chips with more memory, a narrower precision or fewer tokens`;
  }

  // Throughput, cost and energy of a candidate with given latencies.
  answers({ model: name, given }, it, price, ttft, tpot) {
    const { model } = this;
    const parts = Object.fromEntries(model.parts.map((part) => [part, it[part] ?? it.decode[part]]));
    const waits = { prefill_s: (it.prompt.prefill_s * ttft) / it.ttft, [model.limits.ttft]: ttft, [model.limits.tpot]: tpot };
    const found = model.answers({ ...this.shapes[name], ...given, ...parts, ...price, ...waits, prefill_workers: Math.max(it.prefills, 1), concurrent_requests: it.requests * it.decodes });
    const named = Object.fromEntries(Object.entries(model.answerNames).map(([full, short]) => [short, found[full] * (full.includes("_usd_per_") ? 1e6 : 1)]));
    const accelerators = named.replicas * it.replica_accelerators;
    return { ...named, accelerators, cost_usd_per_h: accelerators * price.rental_usd_per_accelerator_h };
  }

  price(chip, { given }) {
    const found = this.model.prices({ ...given, accelerator: chip });
    return Object.fromEntries(this.model.priceNames.map((name) => [name, found[name]]));
  }

  // The number of requests that a number of users makes depends on the latency of the plan, which is found in rounds.
  answer(question) {
    const { users, given } = question;
    if (users === undefined) return this.planned(question);
    const { user_think_s } = this.model.answers({ ...given });
    let [load, found] = [users / user_think_s, null];
    for (let round = 0; round < ROUNDS && load !== found?.load; round++) {
      found = this.planned({ ...question, given: { ...given, requests_per_s: load } });
      load = users / (found.best.latency_s + user_think_s);
    }
    return found;
  }

  planned(question) {
    const { limits, objective, chips, given, wanted = [] } = question;
    if (!chips.length) throw new Error("no accelerator is chosen; choose one or more");
    const found = this.fitting(question);
    const prices = Object.fromEntries(chips.map((chip) => [chip, this.price(chip, question)]));
    const rows = found.map((it) => ({ it, chip: it.chip, ttft_s: it.ttft, tpot_s: it.tpot, ...this.answers(question, it, prices[it.chip], it.ttft, it.tpot) }));
    const ordered = this.ordered(rows, limits, objective);
    const [best] = ordered;
    const ofChip = chips.map((chip) => ordered.find((row) => row.chip === chip)).filter(Boolean);
    const values = { ...this.model.answers({ ...given }), ...this.model.prices({ ...given, accelerator: best.chip }) };
    const fronts = Object.fromEntries(chips.map((chip) => [chip, this.front(rows.filter((row) => row.chip === chip), limits)]));
    const breaks = Object.keys(this.model.limits).filter((name) => best[`${name}_s`] > limits[name]);
    const binds = breaks.length ? [] : Object.keys(limits).filter((name) => this.ordered(rows, { ...limits, [name]: undefined }, objective)[0][objective] < best[objective]);
    return {
      best: plain(best),
      ofChip: ofChip.map(plain),
      rows: [best, ...ofChip],
      prices,
      fronts,
      binds,
      breaks: breaks.map((name) => `${name} <= ${G4(limits[name])} s: the nearest plan has ${G4(best[`${name}_s`])} s`),
      count: rows.length,
      load: given.requests_per_s,
      values: Object.fromEntries(wanted.map((name) => [name, values[name]])),
    };
  }

  ordered(rows, limits, objective) {
    const excess = (row) => Math.max(1, ...Object.entries(limits).filter(([, limit]) => limit !== undefined).map(([name, limit]) => row[`${name}_s`] / limit));
    const keyed = rows.map((row) => [excess(row), row[objective], row.latency_s, row]);
    return keyed.sort(([a, b, c], [d, e, f]) => a - d || b - e || c - f).map((key) => key.at(-1));
  }

  // The candidates that no other beats in both throughputs, of those that keep the time to first token, if any does.
  front(rows, { ttft = Infinity }) {
    let most = 0;
    const kept = rows.filter((row) => row.ttft_s <= ttft);
    return (kept.length ? kept : rows).toSorted((a, b) => b.tokens_per_s_per_user - a.tokens_per_s_per_user || b.tokens_per_s_per_accelerator - a.tokens_per_s_per_accelerator).filter((row) => row.tokens_per_s_per_accelerator > most && (most = row.tokens_per_s_per_accelerator)).map(plain);
  }

  // The best row, and that of each chip, with the low and high ends of their numbers.
  *intervals(question, { rows, prices }) {
    for (const process of Object.values(this.processes)) if (!process.blocks) yield* process.conditioning();
    const [best, ...ofChip] = rows.map((row) => this.banded(question, row, prices[row.chip]));
    return { best, ofChip };
  }

  banded(question, row, price) {
    const { it } = row;
    const found = plain(row);
    const ends = { ttft: null, tpot: null };
    for (const name of Object.keys(ends)) {
      const half = this.processes[name].half(it.words, it.features[name]);
      ends[name] = [it[name] * Math.exp(-half), it[name] * Math.exp(half)];
      Object.assign(found, { [`${name}_low_s`]: ends[name][0], [`${name}_high_s`]: ends[name][1] });
    }
    // The latencies are independent: what each changes adds in quadrature.
    const moved = [ends.ttft.map((time) => this.answers(question, it, price, time, it.tpot)), ends.tpot.map((time) => this.answers(question, it, price, it.ttft, time))];
    for (const name of Object.keys(moved[0][0])) {
      const ratios = moved.map((pair) => pair.map((each) => (row[name] > 0 ? each[name] / row[name] : 1)));
      const spread = (extreme) => Math.exp(Math.hypot(...ratios.map((pair) => Math.log(extreme(1, ...pair)))));
      Object.assign(found, { [`${name}_low`]: row[name] / spread(Math.min), [`${name}_high`]: row[name] * spread(Math.max) });
    }
    return found;
  }
}

// A row without what only the engine uses.
function plain({ it, ...row }) {
  const other = Object.fromEntries(Object.entries(it.other).map(([name, value]) => [`prefill_${name}`, value]));
  return { ...row, ...it.layout, ...other, concurrent_requests: it.requests, prefill_workers: it.prefills, decode_workers: it.decodes, replica_accelerators: it.replica_accelerators, memory_left_bytes: it.memory_left_bytes };
}

// The worker: answers the newest question, then its intervals in slices of time, so that a newer question can come.
export function serve(port, model) {
  const engine = new Serving(model);
  let newest = 0;

  function run(id, steps, then) {
    if (newest !== id) return;
    const end = performance.now() + SLICE_MS;
    do {
      const { done, value } = steps.next();
      if (done) return then(value);
    } while (performance.now() < end);
    setTimeout(() => run(id, steps, then));
  }

  port.onmessage = ({ data: { id, question } }) => {
    newest = id;
    setTimeout(() => {
      if (newest !== id) return;
      const started = performance.now();
      try {
        const { rows, ...answer } = engine.answer(question);
        port.postMessage({ id, answer, took: performance.now() - started });
        setTimeout(() => run(id, engine.intervals(question, { ...answer, rows }), (bands) => port.postMessage({ id, bands })));
      } catch (error) {
        port.postMessage({ id, refused: error.message });
      }
    });
  };
}
