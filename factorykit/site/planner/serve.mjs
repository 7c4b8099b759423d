// The worker: answers the newest question first and then its pictures; outdated questions are cancelled.
import { about, Engine } from "./engine.mjs";

// Long tasks start after this time without a question, so that a moving slider is answered first.
const QUIET_MS = 150;
const SOON_MS = 40;
const SLICE_MS = 50;
// Published runs within this factor of the work, as a logarithm, and how many of them are shown.
const SIMILAR = Math.log(4);
const SHOWN = 5;

export function serve(port, model) {
  const engine = new Engine(model);
  let newest = null;

  // Runs an action in a separate task, so that a newer question can be received in between.
  const later = (id, act, wait = 0) => setTimeout(() => newest?.id === id && act(), wait);

  // Runs steps in time slices, then passes on the result.
  function run(id, steps, then) {
    const end = performance.now() + SLICE_MS;
    try {
      for (;;) {
        const { done, value } = steps.next();
        if (done) return then(value);
        if (performance.now() > end) return later(id, () => run(id, steps, then));
      }
    } catch (error) {
      return port.postMessage({ id, answer: { refused: { message: error.message } } });
    }
  }

  // A plan as the pictures need it.
  const slim = ({ given, values, way, tier, site, breaks }) => {
    const { accelerators, wall_days, run_cost_usd } = values;
    return { accelerator: given.accelerator, accelerators, wall_days, run_cost_usd, way, tier, site, breaks: Boolean(breaks) };
  };

  function* sizes({ plans: [best] }) {
    const rows = [];
    for (const count of about(best.given.accelerators)) {
      const values = engine.on(best, count);
      if (values) rows.push(values);
      yield;
    }
    return rows;
  }

  // The published runs nearest in work, each with the plan for its accelerators.
  function* runs(published, { given: { precision, sequence_length } }, { values }) {
    const far = ([, , , , , tokens, , active]) => Math.abs(Math.log((6 * active * tokens) / values.training_flop));
    const nearest = [];
    for (const [key, label, like, accelerator, accelerators, tokens, days] of published.filter((row) => far(row) < SIMILAR).sort((a, b) => far(a) - far(b)).slice(0, SHOWN)) {
      const [plan] = engine.plans({ model: like, given: { tokens, precision, sequence_length }, chips: [accelerator], counts: [accelerators], ways: ["rent"], tiers: ["one"], sites: [null] });
      if (Number.isFinite(plan.values.wall_days)) nearest.push({ key, label, accelerator, accelerators, days, computed: plan.values });
      yield;
    }
    return nearest;
  }

  // For a question with a single count, the picture also shows other counts.
  function* frontier(question, { plans }) {
    if (!question.counts) return plans.map(slim);
    const all = yield* engine.answering({ ...question, counts: null });
    return [...all.plans, ...plans].map(slim);
  }

  function details({ id, question, runs: published }, answer) {
    const [best] = answer.plans;
    port.postMessage({ id, judged: engine.judged(question, answer), saving: engine.saving(best), doubts: engine.doubts(best) });
    const drawSizes = () => run(id, sizes(answer), (rows) => port.postMessage({ id, sizes: rows }));
    const drawFrontier = (plans, near) => {
      port.postMessage({ id, frontier: plans, runs: near });
      later(id, drawSizes);
    };
    later(id, () => run(id, frontier(question, answer), (plans) => run(id, runs(published, question, best), (near) => drawFrontier(plans, near))), question.counts ? QUIET_MS : 0);
  }

  port.onmessage = ({ data }) => {
    newest = data;
    const { id, question, brief } = data;
    const started = performance.now();
    queueMicrotask(() => run(id, engine.answering(question), (answer) => {
      const { plans, ...best } = answer;
      port.postMessage({ id, answer: { ...best, count: plans.length }, took: performance.now() - started });
      if (!plans.length && answer.refused?.fits === false) later(id, () => port.postMessage({ id, least: engine.least(answer) }), SOON_MS);
      if (!brief && plans.length) later(id, () => details(data, answer), SOON_MS);
    }));
  };
}
