// The planner engine: the generated model, the layout search and the uncertainty draws, independent of the page.
import { normalQuantile, strata } from "./draws.mjs";
import { alternatives, DAY_S, isSoonest, ranked, requestLimits } from "./rank.mjs";
import { shapeOf } from "./shapes.mjs";

// The batch size nearest to the given number of sequences that is divisible over the accelerators.
export function near(sequences, accelerators) {
  let odd = Math.trunc(accelerators);
  while (odd % 2 === 0) odd /= 2;
  return odd * 2 ** Math.max(Math.round(Math.log2(Math.max(sequences / odd, 1))), 0);
}

// The counts that a plan may use of the available accelerators, the largest first.
function usable(odd, available) {
  const counts = new Set();
  for (const factor of odd) for (let n = factor; n <= available; n *= 2) if (n <= 8 || n % 8 === 0) counts.add(n);
  return [...counts].sort((a, b) => b - a);
}

// The odd numbers that divide a given batch, one without it.
function batchFactors(batch = 1, most) {
  const factors = [];
  for (let n = 1; n <= Math.min(batch, most); n += 2) if (batch % n === 0) factors.push(n);
  return factors;
}

// The quantile of sorted values, with linear interpolation.
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
    this.columns = new Map();
  }

  // The given values of a question {model, shape, given, chips, counts, ways, tiers, sites, offers, limits, objective}.
  given(question) {
    const key = JSON.stringify([question.model, question.shape]);
    if (!this.shapes.has(key)) this.shapes.set(key, question.shape ? this.filled(question.shape) : shapeOf(this.model, question.model));
    return { ...this.shapes.get(key), ...question.given };
  }

  // An architecture with the defaults of missing fields.
  filled(shape) {
    const whole = this.model.fill(shape);
    return Object.fromEntries(this.model.shape.map((name) => [name, shape[name] ?? whole[name]]));
  }

  // The default batch size of a run.
  batch(given) {
    const tokens = this.model.chain(given).compute_optimal_step_tokens;
    return near(Math.max(tokens / given.sequence_length, 1), given.accelerators);
  }

  // The fastest valid layout that fits in memory, cached by the inputs of the search; given parts are kept.
  layout(given) {
    const { model } = this;
    const key = JSON.stringify(model.searched.map((name) => given[name]));
    if (this.kept.has(key)) return this.kept.get(key);
    const tried = model.candidates(model.chain(given));
    const usual = {};
    for (const part of model.parts) usual[part] = given[part] === undefined;
    for (const part of model.parts) if (!usual[part]) tried[part] = [given[part]];
    const result = model.search(given, tried, usual) ?? { best: null, working: 0, fitting: 0 };
    if (this.kept.size > 4096) this.kept.clear();
    this.kept.set(key, result);
    return result;
  }

  // All plans of a question: the best layout for each accelerator, rent or ownership, checkpoint tier, count and site.
  *plans(question) {
    for (const accelerator of question.chips) {
      for (const way of question.ways) {
        for (const tier of question.tiers) {
          const fixed = { ...this.given(question), accelerator };
          for (const [plan, available] of this.within(question, way, tier, fixed)) for (const site of question.sites) yield { ...this.offered(question, this.at(plan, site)), available };
        }
      }
    }
  }

  // The plans of an accelerator, each with the available number: all usable counts, or without limits the fastest.
  *within(question, way, tier, fixed) {
    const all = (accelerators) => this.using(way, tier, { ...fixed, accelerators });
    const available = question.counts ?? this.defaultCounts(fixed);
    if (!question.counts) {
      for (const count of available) yield [all(count), count];
    } else if (isSoonest(question)) {
      const used = new Set();
      for (const count of available) {
        const plan = this.soonest(way, tier, fixed, count);
        if (used.size !== used.add(plan.given.accelerators).size) yield [plan, count];
      }
    } else {
      const [low] = this.fewest(fixed);
      const tried = new Set(available.flatMap((most) => this.usable(fixed, most).filter((count) => count >= Math.min(low, most / 2))));
      for (const count of [...tried].sort((a, b) => b - a)) yield [all(count), Math.min(...available.filter((most) => most >= count))];
    }
  }

  // The plan at a site, or the unchanged plan without one.
  at(plan, site) {
    if (!site || plan.refused) return plan;
    const { way, tier, given, layouts, fixed } = plan;
    return { ...this.using(way, tier, { ...given, ...site.given }, layouts, site.site), fixed: { ...fixed, ...site.given } };
  }

  // The plan at the cheapest of the offers that have enough of its accelerators.
  offered(question, plan) {
    const { way, tier, given, layouts, site, fixed } = plan;
    if (way !== "rent" || !question.offers || plan.refused) return plan;
    const enough = question.offers.filter((offer) => offer.accelerator === given.accelerator && offer.offered_accelerators >= given.accelerators);
    if (!enough.length) return { ...plan, refused: { offer: false } };
    const [{ provider, rental_usd_per_accelerator_h }] = enough.sort((a, b) => a.rental_usd_per_accelerator_h - b.rental_usd_per_accelerator_h);
    return { ...this.using(way, tier, { ...given, rental_usd_per_accelerator_h }, layouts, site), fixed: { ...fixed, rental_usd_per_accelerator_h }, provider };
  }

  // The default numbers of accelerators: enough for the memory, and for a run of an hour to three years.
  defaultCounts(given) {
    const { steps, minS, most } = this.model.counts;
    const [least, seconds, domain] = this.fewest(given);
    const low = Math.min(least, most);
    const high = Math.min(Math.max(seconds / minS, 16 * low), most);
    const counts = new Set();
    for (let power = Math.floor(Math.log2(low)) - 3; power <= Math.ceil(Math.log2(high)); power++) for (const step of steps) counts.add(step * 2 ** power);
    if (domain > 8 && Math.log2(domain) % 1) for (let power = 0; power < 11; power++) counts.add(domain * 2 ** power);
    for (const count of usable(batchFactors(given.global_batch_size, most), high)) counts.add(count);
    return [...counts].filter((n) => low <= n && n <= high && n % 1 === 0 && (n <= 8 || n % 8 === 0)).sort((a, b) => a - b);
  }

  // The counts that a plan may use, with the odd factors of a given batch, and all accelerators where a part is given.
  usable(fixed, available) {
    const { odd, most } = this.model.counts;
    const counts = usable([...odd, ...batchFactors(fixed.global_batch_size, most)], available);
    const exact = this.model.parts.some((part) => fixed[part] !== undefined);
    return exact && !counts.includes(available) ? [available, ...counts] : counts;
  }

  // The least number of accelerators, the time of the run on one [s], and the number in a fast fabric.
  fewest(given) {
    const { bytes, mfu, maxS } = this.model.counts;
    const { training_flop: work, parameters, peak_flop_per_s: peak, accelerator_memory_bytes: memory, scale_up_domain: domain } = this.model.chain(given);
    const seconds = work / (peak * mfu);
    return [Math.max((bytes * parameters) / memory, seconds / maxS, 1), seconds, domain];
  }

  // The plan with the fastest count, the cheapest of equally fast ones; some of the accelerators may stay idle.
  soonest(way, tier, fixed, available) {
    let [best, fewest] = [null, Infinity];
    for (const accelerators of this.usable(fixed, available)) {
      if (best && accelerators < fewest) break;
      const plan = this.using(way, tier, { ...fixed, accelerators });
      if (plan.refused?.missing) return plan;
      if (plan.refused) continue;
      const { wall_days, run_cost_usd } = plan.values;
      if (best && (wall_days > best.values.wall_days || (wall_days === best.values.wall_days && run_cost_usd >= best.values.run_cost_usd))) continue;
      best = plan;
      fewest = accelerators * plan.values.predicted_mfu * plan.values.goodput;
    }
    return best ?? this.using(way, tier, { ...fixed, accelerators: available });
  }

  // The plan for a count: results of the best layout, missing values, or the violated rule.
  using(way, tier, fixed, layouts = null, site = null) {
    const { model } = this;
    const given = { ...fixed };
    if (given.global_batch_size === undefined) given.global_batch_size = this.batch(given);
    const whole = model.parts.every((part) => given[part] !== undefined);
    const layout = whole ? { best: {}, working: 1, fitting: 1 } : this.layout(given);
    Object.assign(given, layout.best);
    const values = model.tiers[tier].chain(given);
    if (way === "own") values.run_cost_usd = values.run_cost_owned_usd;
    const missing = this.missing(values, given, way);
    const broken = layout.best && !whole ? null : model.rules.find((rule) => !rule.holds(values));
    let refused = null;
    if (missing.length) refused = { missing };
    else if (broken && (whole || !layout.working)) refused = whole ? { rule: broken.name, remedy: broken.remedy } : { works: false };
    else if (!layout.best) refused = layout.working ? { fits: false } : { works: false };
    else if (!Number.isFinite(values.wall_days)) refused = { ends: false };
    return { fixed, given, values, way, tier, site, layouts: layouts ?? (whole ? null : layout.fitting), refused };
  }

  // Required quantities that are neither given nor in the tables for the chip.
  missing(values, given, way) {
    const { model } = this;
    const missing = new Set();
    const seen = new Set();
    const open = [...model.outputs[way]];
    while (open.length) {
      const name = open.pop();
      if (seen.has(name) || given[name] !== undefined) continue;
      seen.add(name);
      if (model.cells.includes(name) && values[name] === undefined) missing.add(name);
      open.push(...(model.needs[name] ?? []));
    }
    return [...missing];
  }

  // Values of an uncertain quantity at its random probabilities, which are the same for every plan.
  column(name, at) {
    if (!this.columns.has(name)) this.columns.set(name, strata(name, this.model.draws.count));
    return this.columns.get(name).map(at);
  }

  // Standard normal draws of a chip, with a component shared by all chips.
  normals(kind, name, chip) {
    const [all, own] = [`${name} of all`, `${kind} ${chip}`].map((key) => this.column(key, normalQuantile));
    return all.map((z, i) => this.model.draws.sharedSd * (z + own[i]));
  }

  // The known values of a plan in every draw, and those that differ between draws.
  drawn({ way, given, values, spread }) {
    const { model } = this;
    const known = { ...given };
    for (const name of model.settled[way]) known[name] = values[name];
    const scaled = (name, kind, sigma) => this.normals(kind, name, given.accelerator).map((z) => values[name] * Math.exp(z * sigma));
    const differs = { step_s: scaled("step_s", "step", values.step_spread) };
    for (const [name, { median, sigma, lower, upper }] of Object.entries(model.draws.ranges)) {
      if (given[name] === undefined) differs[name] = this.column(name, (share) => Math.min(Math.max(median * Math.exp(sigma * normalQuantile(share)), lower), upper));
    }
    for (const [name, [low, high]] of Object.entries(spread ?? {})) {
      delete known[name];
      differs[name] = this.column(name, (share) => low + (high - low) * share);
    }
    const price = "rental_usd_per_accelerator_h";
    if (way === "rent" && given[price] === undefined) differs[price] = scaled(price, "price", model.priceSigma[given.accelerator] ?? model.priceSigma.other);
    return { known, differs };
  }

  futures({ way, tier }, known, differs, n) {
    const { futures, chain } = this.model.tiers[tier];
    const results = Object.keys(differs).every((name) => this.model.moved.includes(name)) ? futures(known, differs, n) : this.oneByOne(chain, known, differs, n);
    if (way === "own") results.run_cost_usd = results.run_cost_owned_usd;
    return results;
  }

  // Equivalent of the generated `futures` for any set of uncertain values.
  oneByOne(chain, known, differs, n) {
    const names = [...this.model.results, "run_cost_owned_usd"];
    const rows = Array.from({ length: n }, (_, i) => chain({ ...known, ...Object.fromEntries(Object.entries(differs).map(([name, column]) => [name, column[i]])) }));
    return Object.fromEntries(names.map((name) => [name, Float64Array.from(rows, (row) => row[name])]));
  }

  // The results of a plan in every draw.
  draws(plan) {
    const { known, differs } = this.drawn(plan);
    return this.futures(plan, known, differs, differs.step_s.length);
  }

  // The 90 % interval of each result, over the same draws as in Python.
  intervals(draws) {
    const [low, high] = this.model.probable;
    return Object.fromEntries(
      this.model.results.map((name) => {
        const sorted = Float64Array.from(draws[name]).sort();
        return [name, [quantile(sorted, low), quantile(sorted, high)]];
      }),
    );
  }

  // All feasible plans of a question, cached until a question differs in more than the values of limits and objective.
  *candidates(question) {
    const key = JSON.stringify({ ...question, limits: null, objective: null, soonest: isSoonest(question) });
    if (this.asked !== key) {
      const [works, others] = [[], []];
      for (const plan of this.plans(question)) {
        plan.spread = question.spread;
        (plan.refused ? others : works).push(plan);
        yield;
      }
      Object.assign(this, { asked: key, works, others });
    }
    return this;
  }

  // The answer to a question, computed in steps so that a newer question can interrupt it.
  *answering(question) {
    const { works, others } = yield* this.candidates(question);
    const plans = ranked(this.model, works, question);
    if (!plans.length) return { refused: {}, ...others[0], plans };
    const [best] = plans;
    return { ...best, plans, intervals: this.intervals(this.draws(best)) };
  }

  answer(question) {
    const steps = this.answering(question);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
    }
  }

  // The effect of each uncertain value alone on days and dollars: ends of its 90 % interval, the widest first.
  doubts(plan) {
    const { known, differs } = this.drawn(plan);
    const [low, high] = this.model.probable;
    const middle = { ...known, step_s: plan.values.step_s };
    for (const name of Object.keys(differs)) middle[name] = plan.values[name];
    const rows = Object.entries(differs).map(([name, column]) => {
      const sorted = Float64Array.from(column).sort();
      const ends = [quantile(sorted, low), quantile(sorted, high)];
      const results = this.futures(plan, middle, { [name]: ends }, 2);
      return { name, ends, wall_days: [...results.wall_days], run_cost_usd: [...results.run_cost_usd] };
    });
    const width = ({ run_cost_usd: [a, b] }) => Math.abs(b - a);
    return rows.sort((a, b) => width(b) - width(a));
  }

  // The probability of keeping each limit, the alternatives within the 90 % interval, and the binding limits.
  judged(question, { plans }) {
    const [best] = plans;
    const draws = this.draws(best);
    const share = (name, holds) => draws[name].reduce((count, value, i) => count + holds(value, i), 0) / draws[name].length;
    const { deadline_s, budget_usd } = question.limits;
    const chances = {};
    if (deadline_s !== undefined) chances.deadline = share("wall_days", (days) => days * DAY_S <= deadline_s);
    const capital = best.way === "own" ? best.values.capital_usd : 0;
    if (budget_usd !== undefined) chances.budget = share("run_cost_usd", (usd) => Math.max(usd, capital) <= budget_usd);
    const [low, high] = this.model.probable;
    const ties = [];
    for (const other of best.breaks ? [] : alternatives(plans)) {
      const others = other.breaks ? null : this.draws(other);
      const within = (name) => others && [share(name, (value, i) => value < others[name][i])].some((chance) => low <= chance && chance <= high);
      const tied = ["wall_days", "run_cost_usd"].filter(within);
      if (tied.length) ties.push({ accelerator: other.given.accelerator, way: other.way, tier: other.tier, site: other.site, tied });
    }
    return { chances, ties, limits: [...requestLimits(this.model, question, plans), ...this.limitsOfChip(best)] };
  }

  // Memory, network and batch size, if 10 % more, or twice the batch size, would save noticeable time.
  limitsOfChip(best) {
    const { more, noticeable, chip } = this.model.binding;
    const { values, fixed, way, tier } = best;
    const saves = (given, share) => {
      const other = this.using(way, tier, { ...fixed, ...given });
      return !other.refused && values.wall_days - other.values.wall_days > share * values.wall_days;
    };
    const global_batch_size = best.given.global_batch_size;
    const limits = Object.keys(chip).filter((name) => saves({ global_batch_size, [chip[name]]: values[chip[name]] * more }, noticeable));
    return saves({ global_batch_size: 2 * global_batch_size }, (noticeable * Math.LN2) / Math.log(more)) ? [...limits, "batch"] : limits;
  }

  // The least count that fits, and the accelerator memory required for the given count; null if not found.
  least({ way, tier, fixed }) {
    const works = (given) => !this.using(way, tier, { ...fixed, ...given }).refused;
    const counts = this.usable(fixed, 64 * fixed.accelerators).filter((n) => n > fixed.accelerators);
    const accelerators = counts.findLast((n) => works({ accelerators: n })) ?? null;
    let [low, high] = [1e9, 1e13];
    if (!works({ accelerator_memory_bytes: high })) return { accelerators, memory: null };
    while (high / low > 1.02) {
      const middle = Math.sqrt(low * high);
      [low, high] = works({ accelerator_memory_bytes: middle }) ? [low, middle] : [middle, high];
    }
    return { accelerators, memory: high };
  }

  // Goodput as a function of the checkpoint interval.
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

  // The same plan with another number of accelerators; null if it is infeasible.
  on({ way, tier, fixed }, accelerators) {
    const { values, refused } = this.using(way, tier, { ...fixed, accelerators });
    return refused ? null : values;
  }
}

// Numbers of accelerators around a count: two per factor of two, rounded to multiples of eight.
export function about(count) {
  const counts = new Set([count]);
  for (let power = -3; power <= 3; power += 0.5) {
    const near8 = Math.round((count * (power % 1 ? 1.5 * 2 ** Math.floor(power) : 2 ** power)) / 8) * 8;
    if (near8 >= 8) counts.add(near8);
  }
  return [...counts].sort((a, b) => a - b);
}

