// Answers questions as the page does: node ask.mjs MODEL.js QUESTIONS.json, one {verb, question} each.
import { readFileSync } from "node:fs";
import { recalled as recalledOfChart } from "../../../factorykit/charts/runtime/address.mjs";
import { admitted } from "../../../factorykit/charts/runtime/bounds.mjs";
import { Engine } from "../../../factorykit/site/planner/engine.mjs";
import { asked, recalled } from "../../../factorykit/site/planner/link.mjs";
import { readConfig } from "../../../factorykit/site/planner/config.mjs";
import { shapeOf } from "../../../factorykit/site/planner/shapes.mjs";
import { read, text as printed, typed } from "../../../factorykit/site/planner/values.mjs";

const [script, file] = process.argv.slice(2);
const MODEL = new Function(`${readFileSync(script, "utf8")}; return MODEL;`)(); // eslint-disable-line no-new-func
const engine = new Engine(MODEL);
const launch = new Function(`return ${readFileSync(script.replace("model.js", "launch.js"), "utf8")}`)(); // eslint-disable-line no-new-func
const scripts = (values) => ["megatron_lm", "megatron_bridge", "torchtitan", "maxtext"].map((framework) => [framework, launch(framework, values)]);
const PAGE = process.argv[4] ? JSON.parse(readFileSync(process.argv[4], "utf8")) : null;
const tried = (act) => {
  try {
    return act();
  } catch (error) {
    return { refused: error.message };
  }
};
const verbs = {
  config: (text) => tried(() => engine.filled(readConfig(PAGE, text))),
  read: ([name, text]) => tried(() => read(PAGE.quantities[name], PAGE.controls[name], text)),
  shown: ([words, value]) => [printed(words, value), typed(words, value)],
  recalled: (query) => recalled(PAGE, query),
  hash: ({ hash, key, inputs }) => admitted(recalledOfChart(hash, key) ?? {}, inputs),
  chain: ({ given, tiers }) => MODEL.tiers[tiers].chain(given),
  answer(state) {
    const question = asked(PAGE, state);
    const { plans, ...best } = engine.answer(question);
    const judged = plans.length && question.limits.deadline_s ? engine.judged(question, { plans }) : null;
    return { ...best, judged, scripts: best.values && scripts(best.values), front: plans.map(({ given, values }) => [given.accelerator, values.accelerators, values.wall_days, values.run_cost_usd]) };
  },
  shape: (text) => shapeOf(MODEL, text),
};
const answers = JSON.parse(readFileSync(file, "utf8")).map(({ verb, question }) => verbs[verb](question));
process.stdout.write(JSON.stringify(answers));
