// The answer of fk.serve, factorykit/model/serving/plan.py: candidates, those that fit, latencies, cost, order.
import { Process } from "./serving_process.mjs";

const G4 = (value) => Number(value.toPrecision(4));
const GIGA = 1e9;
const DIGITS = { minimumFractionDigits: 1, maximumFractionDigits: 1 };

// Numbers in 64 bits from their text in base 64.
const numbers = (text) => new Float64Array(Uint8Array.from(atob(text), (letter) => letter.codePointAt(0)).buffer);

// A function that returns the values of a row of columns by their names; quicker than Object.fromEntries.
const rowOf = (columns, value = (name, cell) => cell) => {
  const all = Object.entries(columns);
  return (i) => {
    const row = {};
    for (const [name, cells] of all) row[name] = value(name, cells[i]);
    return row;
  };
};

// The layout and the load of a side, as features need them.
const side = ({ concurrent_requests, input_tokens, output_tokens, replica_accelerators, pipeline_parallel, attention_data_parallel, expert_parallel }) => ({ concurrent_requests, input_tokens, output_tokens, replica_accelerators, pipeline_parallel, attention_data_parallel, expert_parallel });

// Quantities of the time between tokens, of which an answer of one token has none.
const BETWEEN = /^tpot|^tokens_per_s_per_user/;

export class Serving {
  constructor(model) {
    const [names, known] = model.shapes;
    const shapes = Object.fromEntries(Object.entries(known).map(([key, cells]) => [key, Object.fromEntries(names.map((name, i) => [name, cells[i] ?? undefined]))]));
    const short = Object.entries(model.answerNames).map(([full, name]) => [full, name, full.includes("_usd_per_") ? 1e6 : 1]);
    const ordering = short.filter(([name]) => model.orderingNames.includes(name));
    Object.assign(this, { model, shapes, short, ordering, kept: new Map(), measured: new Map() });
  }

  // The process of each latency, made for the first question.
  get processes() {
    return (this.made ??= this.conditioned());
  }

  conditioned() {
    const { model } = this;
    const { rows, weights } = model;
    const [decodeOf, prefillOf, loadOf] = ["decode", "prefill", "load"].map((name) => rowOf(rows[name]));
    const words = rows.cells.engine.map((_, i) => i).map(rowOf(rows.cells, (name, cell) => rows.words[name][cell]));
    const machines = Object.fromEntries(Object.entries(rows.devices).map(([key, cells]) => [key, Object.fromEntries(rows.machine.map((name, at) => [name, cells[at]]))]));
    // Every row has the same quantities: they are put into the same two objects, which is quicker than new ones.
    const [start] = words;
    const common = { ...this.shapes[start.model], ...machines[`${start.chip} ${start.format}`], ...decodeOf(0) };
    const prompts = { ...common, ...prefillOf(0), ...this.queue("vllm", 1) };
    const latencies = words.map((row, i) => {
      Object.assign(common, this.shapes[row.model], machines[`${row.chip} ${row.format}`], decodeOf(i));
      Object.assign(prompts, common, prefillOf(i));
      const step = model.decode(common);
      Object.assign(prompts, this.queue(row.engine, prompts.concurrent_requests, common.prefill_separate ? 0 : step.decode_step_s, common.attention_data_parallel));
      return this.latencies(step, model.prefill(prompts), loadOf(i));
    });
    const process = (name) => new Process(model, model.constants[name], words, latencies.map((row) => row.features[name]), { joining: numbers(weights[name].joining), rows: numbers(weights[name].rows) });
    for (const { engine, chip, model: name, mode } of words) {
      const key = [engine, chip, name, mode.slice(0, 3)].join(" ");
      this.measured.set(key, (this.measured.get(key) ?? 0) + 1);
    }
    return { ttft: process("ttft"), tpot: process("tpot") };
  }

  // The queue of prompts and the overhead of a request, with the decode steps for which a first token waits.
  queue(engine, requests, step = 0, groups = 1) {
    const { queued_share, serving_request_s, first_token_steps, balancing_steps } = this.model.engines[engine];
    const steps = first_token_steps + (groups > 1 ? balancing_steps : 0);
    return { queued_prefills: queued_share * requests, serving_request_s: serving_request_s + steps * step };
  }

  // Latencies by the formulas alone, and the features of their residuals.
  latencies(decode, prefill, load) {
    const { ttftFeatures, tpotFeatures } = this.model;
    const { output_tokens, decode_step_s, requests_in_memory, draft_step_tokens, decode_kv_bytes, decode_weight_bytes } = decode;
    const { prefill_s } = prefill;
    const prompt = prefill.time_to_first_token_s + decode.prefill_separate * this.backlog(decode, prefill, 1);
    const first = load.waiting * prompt + (load.waiting - 1) * (output_tokens - 1) * decode.time_per_output_token_s;
    return {
      ttft: first,
      tpot: decode.time_per_output_token_s,
      features: {
        ttft: new Float64Array(ttftFeatures(Object.assign(side(prefill), load, { prefill_s, output_tokens, time_to_first_token_s: first, decode_step_s, requests_in_memory, draft_step_tokens }))),
        tpot: new Float64Array(tpotFeatures(Object.assign(side(decode), load, { prefill_s, decode_step_s, decode_kv_bytes, decode_weight_bytes, draft_step_tokens }))),
      },
    };
  }

  // The least time to the first token, where prompts limit the rate: those that share accelerators are slower as decode is.
  backlog({ output_tokens, time_per_output_token_s, prefill_separate }, prefill, slower) {
    const prefill_s = prefill.prefill_s * (prefill_separate ? 1 : slower);
    return this.model.backlog({ concurrent_requests: prefill.concurrent_requests, output_tokens, time_per_output_token_s: time_per_output_token_s * slower, prefill_separate, prefill_s });
  }

  // The layouts of a worker; stages of a pipeline are whole nodes.
  layouts({ experts }) {
    const { sizes, stages } = this.model;
    return stages.flatMap((pipeline_parallel) => sizes.slice(pipeline_parallel > 1 ? -1 : 0).flatMap((size) => (experts && size > 1 ? [1, size] : [1]).map((groups) => ({ tensor_parallel: size / groups, attention_data_parallel: groups, expert_parallel: groups, pipeline_parallel }))));
  }

  // The candidates of a chip in the order of Python, without and with separate prefill, that fit or not.
  candidates({ model: name, engine, precision, given }, chip) {
    const { model } = this;
    const shape = this.shapes[name];
    const layouts = this.layouts(shape);
    const common = { ...shape, ...model.chips[chip][precision], ...layouts[0], concurrent_requests: 1, prefill_separate: 0, ...given };
    const queued = { ...common, ...this.queue(engine, 1) };
    const prompts = new Map();
    const prefill = (layout, requests, separate, step) => {
      const key = [...Object.values(layout), requests, separate].join(" ");
      if (!prompts.has(key)) prompts.set(key, model.prefill(Object.assign(queued, layout, this.queue(engine, requests, step, layout.attention_data_parallel), { concurrent_requests: requests, prefill_separate: separate })));
      return prompts.get(key);
    };
    const groups = [[], []];
    for (const separate of [0, 1]) {
      for (const layout of layouts) {
        for (const requests of model.requests.filter((count) => count >= layout.attention_data_parallel * layout.pipeline_parallel)) {
          const decode = model.decode(Object.assign(common, layout, { concurrent_requests: requests, prefill_separate: separate }));
          for (const other of separate ? layouts.filter((it) => it.pipeline_parallel === layout.pipeline_parallel) : [layout]) {
            for (const [prefills, decodes] of separate ? model.workers : [[0, 1]]) {
              const prompt = prefill(other, Math.max((requests * decodes) / Math.max(prefills, 1), 1), separate, separate ? 0 : decode.decode_step_s);
              groups[separate].push({ chip, decode, prompt, layout, other, requests, prefills, decodes, separate });
            }
          }
        }
      }
    }
    return groups;
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
    const fitting = all.filter((it) => this.fits(it));
    if (!fitting.length) throw new Error(this.missing(all));
    const means = new Map();
    for (const it of fitting) {
      const words = { engine, chip: it.chip, model: name, mode: it.separate ? "disagg" : "agg", format: precision };
      const group = `${it.chip} ${words.mode}`;
      if (!means.has(group)) means.set(group, Object.fromEntries(Object.entries(this.processes).map(([target, process]) => [target, process.mean(words)])));
      const load = { month: this.model.month, workers: it.decodes, prefill_workers: Math.max(it.prefills, 1), known: it.separate, recipes: it.separate, waiting: 1 };
      const { ttft, tpot, features } = this.latencies(it.decode, it.prompt, load);
      const [first, following] = ["ttft", "tpot"].map((target) => Math.exp(means.get(group)[target](features[target])));
      Object.assign(it, { words, features, ttft: Math.max(ttft * first, this.backlog(it.decode, it.prompt, following)), tpot: tpot * following });
    }
    if (this.kept.size > 4) this.kept.clear();
    this.kept.set(key, fitting);
    return fitting;
  }

  missing(all) {
    const least = all.reduce((best, it) => (it.memory_left_bytes >= best.memory_left_bytes ? it : best));
    const bytes = Math.max(-least.memory_left_bytes, least.decode.request_kv_bytes / least.worker);
    return `weights and cache fit on no layout of ${this.model.sizes.at(-1) * least.layout.pipeline_parallel} accelerators or fewer: on ${least.worker} ${least.chip} about ${(bytes / GIGA).toLocaleString("en", DIGITS)} GB are missing on each; give chips with more memory, a narrower precision or fewer tokens`;
  }

  // The quantities on which the answers of a candidate with given latencies depend, besides those of the model.
  asked(question, it, price, ttft, tpot) {
    const { model } = this;
    const { limits } = model;
    const known = Object.assign({ ...question.given }, price);
    for (const part of model.parts) known[part] = it[part] ?? it.decode[part];
    const prefill_s = it.prompt.prefill_s * (it.separate ? 1 : tpot / it.decode[limits.tpot]);
    Object.assign(known, { prefill_s, [limits.ttft]: ttft, [limits.tpot]: tpot, prefill_workers: Math.max(it.prefills, 1), concurrent_requests: it.requests * it.decodes });
    known.requests_per_s = this.load(question, it, known);
    return known;
  }

  // Puts throughput, cost and energy of a candidate into a row, by their short names.
  named(row, names, results, it, price) {
    row.requests_per_s = results.requests_per_s;
    for (const [full, name, scale] of names) row[name] = results[full] * scale;
    row.accelerators = row.replicas * it.replica_accelerators;
    row.cost_usd_per_h = row.accelerators * price.rental_usd_per_accelerator_h;
    return row;
  }

  // What orders a candidate, and places it in the picture.
  ranked(question, it, price) {
    const results = this.model.ranked(this.asked(question, it, price, it.ttft, it.tpot));
    return this.named({ it, chip: it.chip, ttft_s: it.ttft, tpot_s: it.tpot }, this.ordering, results, it, price);
  }

  answers(question, it, price, ttft, tpot) {
    const results = this.model.answers({ ...this.shapes[question.model], ...this.asked(question, it, price, ttft, tpot) });
    const row = this.named({}, this.short, results, it, price);
    row.usd_per_million_served_tokens = (1e6 * row.cost_usd_per_h) / (results.requests_per_s * results.output_tokens * 3600);
    return row;
  }

  price(chip, { given }) {
    const prices = this.model.prices({ ...given, accelerator: chip });
    return Object.fromEntries(this.model.priceNames.map((name) => [name, prices[name]]));
  }

  // Requests per second: given, of the users, or the most that all replicas of a fleet carry.
  load({ users, fleet, given }, it, known) {
    const { model } = this;
    if (users === undefined && fleet === undefined) return given.requests_per_s;
    const results = model.ranked({ ...known, requests_per_s: 1 });
    const between = model.users(results);
    const most = results.users_per_accelerator * it.replica_accelerators * Math.floor(fleet / it.replica_accelerators) * model.below;
    return (users ?? most) / between;
  }

  answer(question) {
    const { limits, chips, given, fleet = Infinity, wanted = [] } = question;
    if (!chips.length) throw new Error("no accelerator is chosen; choose one or more");
    if ([given.requests_per_s, question.users, question.fleet].every((load) => load === undefined)) throw new Error("serve needs one of load (requests per second, or a trace), users and fleet, got none");
    if (given.output_tokens === 1 && limits.tpot !== undefined) throw new Error(this.model.single);
    const fitting = this.fitting(question);
    const candidates = fitting.filter((it) => it.replica_accelerators <= fleet);
    if (!candidates.length) throw new Error(`fleet = ${fleet} is too small: one replica needs ${Math.min(...fitting.map((it) => it.replica_accelerators))} accelerators or more`);
    const prices = Object.fromEntries(chips.map((chip) => [chip, this.price(chip, question)]));
    const rows = candidates.map((it) => this.ranked(question, it, prices[it.chip]));
    const full = ({ it, ...row }) => ({ it, ...row, ...this.answers(question, it, prices[it.chip], it.ttft, it.tpot) });
    const best = full(this.best(question, rows, limits));
    const ofChip = chips.map((chip) => rows.filter((row) => row.chip === chip)).filter((group) => group.length).map((group) => full(this.best(question, group, limits)));
    const values = { ...this.model.answers({ requests_per_s: best.requests_per_s, ...given }), ...this.model.prices({ ...given, accelerator: best.chip }) };
    const fronts = Object.fromEntries(chips.map((chip) => [chip, this.front(rows.filter((row) => row.chip === chip), limits)]));
    const breaks = Object.keys(this.model.limits).filter((name) => best[`${name}_s`] > limits[name]);
    const value = objective(question);
    const binds = breaks.length ? [] : Object.keys(limits).filter((name) => value(this.best(question, rows, { ...limits, [name]: undefined })) < value(best));
    const [, limit_probability] = this.risk(best, limits);
    const withExpected = (row) => ({ ...row, expected_cost_ratio: this.longer(question, row, limits) });
    const measured_points = (best.it.layout.pipeline_parallel === 1 && this.measured.get([question.engine, best.chip, question.model, best.it.separate ? "dis" : "agg"].join(" "))) || 0;
    const { served_bytes_per_parameter, kv_bytes_per_element } = this.model.chips[best.chip][question.precision];
    const prefill_separate = Number(best.it.separate);
    return {
      best: { ...plain(withExpected(best)), limit_probability, measured_points, served_bytes_per_parameter, kv_bytes_per_element, prefill_separate },
      ofChip: ofChip.map((row) => plain(withExpected(row))),
      rows: [best, ...ofChip].map(withExpected),
      prices,
      fronts,
      binds,
      breaks: breaks.map((name) => `${name} <= ${G4(limits[name])} s: the nearest plan has ${G4(best[`${name}_s`])} s`),
      count: rows.length,
      values: Object.fromEntries(wanted.map((name) => [name, values[name]])),
    };
  }

  // Expected over median cost of a candidate, and the probability that it keeps the limits.
  risk({ it }, limits) {
    it.deviations ??= Object.fromEntries(Object.entries(this.processes).map(([name, process]) => [`${name}_deviation`, process.half(it.words, it.features[name]) / this.model.deviations]));
    const above = Object.fromEntries(["ttft", "tpot"].map((name) => [`${name}_over`, it[name] / (limits[name] ?? Infinity)]));
    return this.model.expectedCost({ ttft_s: it.ttft, tpot_s: it.tpot, output_tokens: it.decode.output_tokens, ...it.deviations, ...above });
  }

  // The candidate of least expected objective of those that keep the limits, or the nearest: by median until none can be better.
  best(question, rows, limits) {
    const value = objective(question);
    const { ttft = Infinity, tpot = Infinity } = limits;
    const excess = (row) => Math.max(1, row.ttft_s / ttft, row.tpot_s / tpot);
    const ordered = rows.map((row) => [excess(row), value(row), row.accelerators, row.latency_s, row]).sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3]);
    let [least, best] = [Infinity, null];
    for (const [far, median, accelerators, latency, row] of ordered) {
      if (best && (far > 1 || median > least)) break;
      const expected = median * this.longer(question, row, limits);
      if (expected < least || (expected === least && (accelerators - best.accelerators || latency - best.latency_s) < 0)) [least, best] = [expected, row];
    }
    return best;
  }

  // Expected over median objective: in whole replicas, where these are counted.
  longer({ fleet, objective: name }, row, limits) {
    const [ratio] = this.risk(row, limits);
    if (fleet !== undefined || name === "j_per_token") return ratio;
    const needed = row.users / row.users_per_accelerator / row.it.replica_accelerators;
    return Math.max(Math.ceil(needed * ratio * this.model.below) / row.replicas, 1);
  }

  // The candidates that no other beats in both throughputs, of those that keep the time to first token, if any does.
  front(rows, { ttft = Infinity }) {
    let most = 0;
    const kept = rows.filter((row) => row.ttft_s <= ttft);
    return (kept.length ? kept : rows).toSorted((a, b) => b.tokens_per_s_per_user - a.tokens_per_s_per_user || b.tokens_per_s_per_accelerator - a.tokens_per_s_per_accelerator).filter((row) => row.tokens_per_s_per_accelerator > most && (most = row.tokens_per_s_per_accelerator)).map(plain);
  }

  // The best row, and that of each chip, with the low and high ends of their numbers.
  intervals(question, { rows, prices, best: known }) {
    const [best, ...ofChip] = rows.map((row) => this.banded(question, row, prices[row.chip]));
    return { best: { ...known, ...best }, ofChip };
  }

  banded(question, row, price) {
    const { it } = row;
    const result = plain(row);
    const ends = { ttft: null, tpot: null };
    for (const name of Object.keys(ends)) {
      const half = it.deviations[`${name}_deviation`] * this.model.deviations;
      ends[name] = [it[name] * Math.exp(-half), it[name] * Math.exp(half)];
      Object.assign(result, { [`${name}_low_s`]: ends[name][0], [`${name}_high_s`]: ends[name][1] });
    }
    // The latencies are independent: what each changes adds in quadrature.
    const moved = [ends.ttft.map((time) => this.answers(question, it, price, time, it.tpot)), ends.tpot.map((time) => this.answers(question, it, price, it.ttft, time))];
    for (const name of Object.keys(moved[0][0])) {
      const ratios = moved.map((pair) => pair.map((answer) => (row[name] > 0 ? answer[name] / row[name] : 1)));
      const spread = (extreme) => Math.exp(Math.hypot(...ratios.map((pair) => Math.log(extreme(1, ...pair)))));
      Object.assign(result, { [`${name}_low`]: row[name] / spread(Math.min), [`${name}_high`]: row[name] * spread(Math.max) });
    }
    return meant(result, it);
  }
}

// What should be least: of a fleet the inverse of its load.
const objective = ({ fleet, objective: name }) => (fleet === undefined ? (row) => row[name] : (row) => 1 / row.requests_per_s);

// A row without what only the engine uses.
function plain({ it, ...row }) {
  const other = Object.fromEntries(Object.entries(it.other).map(([name, value]) => [`prefill_${name}`, value]));
  return meant({ ...row, ...it.layout, ...other, concurrent_requests: it.requests, prefill_workers: it.prefills, decode_workers: it.decodes, replica_accelerators: it.replica_accelerators, memory_left_bytes: it.memory_left_bytes }, it);
}

// A row without the time between tokens where an answer has one token.
function meant(row, { decode }) {
  return decode.output_tokens === 1 ? Object.fromEntries(Object.entries(row).filter(([name]) => !BETWEEN.test(name))) : row;
}

// The worker: answers the newest question, then its intervals in a task of their own, so that a newer question can come.
export function serve(port, model) {
  const engine = new Serving(model);
  let newest = 0;
  const later = (id, act) => setTimeout(() => newest === id && act());

  port.onmessage = ({ data: { id, question } }) => {
    newest = id;
    later(id, () => {
      const started = performance.now();
      try {
        const { rows, ...answer } = engine.answer(question);
        port.postMessage({ id, answer, took: performance.now() - started });
        later(id, () => port.postMessage({ id, bands: engine.intervals(question, { ...answer, rows }) }));
      } catch (error) {
        port.postMessage({ id, refused: error.message });
      }
    });
  };
}
