// What a question is answered by: the printed model, the best layout, the futures that every plan meets. No page is known.
import { shapeOf } from "./shapes.mjs";

// A batch near so many sequences that divides over the accelerators.
export function near(sequences, accelerators) {
  let odd = Math.trunc(accelerators);
  while (odd % 2 === 0) odd /= 2;
  return odd * 2 ** Math.max(Math.round(Math.log2(Math.max(sequences / odd, 1))), 0);
}

// The counts that a plan may use of the available accelerators, the largest first.
export function usable(odd, available) {
  const found = new Set();
  for (const factor of odd) for (let n = factor; n <= available; n *= 2) if (n <= 8 || n % 8 === 0) found.add(n);
  return [...found].sort((a, b) => b - a);
}

// The value below which a share of the values lies, straight between neighbours.
export function quantile(sorted, share) {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}

export class Engine {
  constructor(model) {
    this.model = model;
    this.kept = new Map();
    this.shapes = new Map();
  }

  // What is given of a question {model, shape, given, way, tiers}: the shape of the model under what somebody says.
  given(question) {
    const key = JSON.stringify([question.model, question.shape]);
    if (!this.shapes.has(key)) this.shapes.set(key, question.shape ? this.filled(question.shape) : shapeOf(this.model, question.model));
    return { ...this.shapes.get(key), ...question.given };
  }

  // A shape with what its file leaves out.
  filled(shape) {
    const whole = this.model.fill(shape);
    return Object.fromEntries(this.model.shape.map((name) => [name, shape[name] ?? whole[name]]));
  }

  // The batch that suits the run, where nobody gives one.
  batch(given) {
    const tokens = this.model.chain(given).compute_optimal_step_tokens;
    return near(Math.max(tokens / given.sequence_length, 1), given.accelerators);
  }

  // The fastest layout that works and fits, remembered for what it hangs on; parts that are given stay.
  layout(given) {
    const { model } = this;
    const key = JSON.stringify(model.searched.map((name) => given[name]));
    if (this.kept.has(key)) return this.kept.get(key);
    const tried = model.candidates(model.chain(given));
    const usual = {};
    for (const part of model.parts) usual[part] = given[part] === undefined;
    for (const part of model.parts) if (!usual[part]) tried[part] = [given[part]];
    const found = model.search(given, tried, usual) ?? { best: null, working: 0, fitting: 0 };
    if (this.kept.size > 512) this.kept.clear();
    this.kept.set(key, found);
    return found;
  }

  // What follows of a whole layout; where the tiers of checkpoints are to choose from, with those that end the run sooner.
  complete({ way, tiers = "one" }, given) {
    const { model } = this;
    const tried = tiers === "best" ? Object.keys(model.tiers) : [tiers];
    const ways = tried.map((tier) => ({ tier, values: model.tiers[tier].chain(given) }));
    const found = ways.reduce((one, other) => (other.values.wall_days < one.values.wall_days ? other : one));
    if (way === "own") found.values.run_cost_usd = found.values.run_cost_owned_usd;
    return found;
  }

  // The nominal answer on the count that finishes soonest: a plan may leave some of the available accelerators idle.
  nominal(question) {
    const { model } = this;
    const available = this.given(question).accelerators;
    if (model.parts.some((part) => question.given[part] !== undefined)) return { ...this.using(question, available), available };
    const { odd, undivided } = model.counts;
    let [best, fewest] = [null, Infinity];
    for (const [tried, count] of usable(odd, available).entries()) {
      if (best ? count < fewest : tried === undivided) break;
      const found = this.using(question, count);
      if (found.refused?.missing) return { ...found, available };
      if (found.refused || found.values.wall_days >= (best?.values.wall_days ?? Infinity)) continue;
      best = found;
      fewest = count * found.values.predicted_mfu * found.values.goodput;
    }
    return { ...(best ?? this.using(question, available)), available };
  }

  // The nominal answer on a count: what follows of the best layout, what is missing of the chip, which rule the layout breaks.
  using(question, accelerators) {
    const { model } = this;
    const given = { ...this.given(question), accelerators };
    if (given.global_batch_size === undefined) given.global_batch_size = this.batch(given);
    const whole = model.parts.every((part) => given[part] !== undefined);
    const found = whole ? { best: {}, working: 1, fitting: 1 } : this.layout(given);
    const { tier, values } = this.complete(question, { ...given, ...found.best });
    const missing = this.missing(values, given, question.way);
    const broken = found.best && !whole ? null : model.rules.find((rule) => !rule.holds(values));
    let refused = null;
    if (missing.length) refused = { missing };
    else if (broken && (whole || !found.working)) refused = whole ? { rule: broken.name, remedy: broken.remedy } : { works: false };
    else if (!found.best) refused = found.working ? { fits: false } : { works: false };
    else if (!Number.isFinite(values.wall_days)) refused = { ends: false };
    return { given, values, tier, layouts: whole ? null : found.fitting, refused };
  }

  // Quantities that the answer needs, nobody gave and the tables do not say of the chip.
  missing(values, given, way) {
    const { model } = this;
    const found = new Set();
    const seen = new Set();
    const open = [...model.outputs[way]];
    while (open.length) {
      const name = open.pop();
      if (seen.has(name) || given[name] !== undefined) continue;
      seen.add(name);
      if (model.cells.includes(name) && values[name] === undefined) found.add(name);
      open.push(...(model.needs[name] ?? []));
    }
    return [...found];
  }

  // What is known of a plan in every future, and what differs between them.
  drawn(question, { given, values }) {
    const { model } = this;
    const known = { ...given };
    for (const name of model.settled[question.way]) known[name] = values[name];
    const { step, price, ...ranges } = model.draws;
    const differs = { step_s: step.map((z) => values.step_s * Math.exp(z * values.step_spread)) };
    for (const [name, column] of Object.entries(ranges)) if (given[name] === undefined) differs[name] = column;
    const rents = question.way === "rent" && given.rental_usd_per_accelerator_h === undefined;
    const sigma = model.priceSigma[given.accelerator] ?? model.priceSigma.other;
    if (rents) differs.rental_usd_per_accelerator_h = price.map((z) => values.rental_usd_per_accelerator_h * Math.exp(z * sigma));
    return { known, differs };
  }

  futures(question, tier, known, differs, n) {
    const found = this.model.tiers[tier].futures(known, differs, n);
    if (question.way === "own") found.run_cost_usd = found.run_cost_owned_usd;
    return found;
  }

  // The 90 % interval of each result, over the same futures as in Python.
  intervals(question, nominal) {
    const { known, differs } = this.drawn(question, nominal);
    const found = this.futures(question, nominal.tier, known, differs, differs.step_s.length);
    const [low, high] = this.model.probable;
    return Object.fromEntries(
      this.model.results.map((name) => {
        const sorted = Float64Array.from(found[name]).sort();
        return [name, [quantile(sorted, low), quantile(sorted, high)]];
      }),
    );
  }

  // The answer to a question, whole: values, intervals, layout.
  answer(question) {
    const nominal = this.nominal(question);
    return { ...nominal, intervals: nominal.refused ? null : this.intervals(question, nominal) };
  }

  // What each doubt alone does to days and dollars: ends of its 90 % interval, the widest first.
  doubts(question, nominal) {
    const { known, differs } = this.drawn(question, nominal);
    const [low, high] = this.model.probable;
    const middle = { ...known, step_s: nominal.values.step_s };
    for (const name of Object.keys(differs)) middle[name] = nominal.values[name];
    const rows = Object.entries(differs).map(([name, column]) => {
      const sorted = Float64Array.from(column).sort();
      const ends = [quantile(sorted, low), quantile(sorted, high)];
      const found = this.futures(question, nominal.tier, middle, { [name]: ends }, 2);
      return { name, ends, wall_days: [...found.wall_days], run_cost_usd: [...found.run_cost_usd] };
    });
    const width = ({ run_cost_usd: [a, b] }) => Math.abs(b - a);
    return rows.sort((one, other) => width(other) - width(one));
  }

  // Goodput over the time between checkpoints.
  saving(nominal, points = 61) {
    const { given, values } = nominal;
    const { chain, interval } = this.model.tiers[nominal.tier];
    const best = values[interval];
    const [low, high] = [Math.min(best, values.checkpoint_interval_s) / 8, Math.max(best, values.checkpoint_interval_s) * 8];
    const fixed = { ...given, cluster_mtbf_s: values.cluster_mtbf_s, checkpoint_write_s: values.checkpoint_write_s };
    return Array.from({ length: points }, (_, i) => {
      const checkpoint_interval_s = low * (high / low) ** (i / (points - 1));
      return { checkpoint_interval_s, goodput: chain({ ...fixed, checkpoint_interval_s }).goodput };
    });
  }

  // The same question on another number of accelerators; null where no plan works there.
  on(question, accelerators) {
    const { values, refused } = this.using(question, accelerators);
    return refused ? null : values;
  }
}

// Numbers of accelerators about one, two between powers of two of it, whole and in eights.
export function about(count) {
  const found = new Set([count]);
  for (let power = -3; power <= 3; power += 0.5) {
    const near8 = Math.round((count * (power % 1 ? 1.5 * 2 ** Math.floor(power) : 2 ** power)) / 8) * 8;
    if (near8 >= 8) found.add(near8);
  }
  return [...found].sort((a, b) => a - b);
}

