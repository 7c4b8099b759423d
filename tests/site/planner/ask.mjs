// Answers questions as the page does: node ask.mjs MODEL.js QUESTIONS.json, one {verb, question} each.
import { readFileSync } from "node:fs";
import { recalled as recalledOfChart } from "../../../factorykit/charts/runtime/address.mjs";
import { admitted } from "../../../factorykit/charts/runtime/bounds.mjs";
import { Engine } from "../../../factorykit/site/planner/engine.mjs";
import { recalled } from "../../../factorykit/site/planner/link.mjs";
import { readConfig } from "../../../factorykit/site/planner/config.mjs";
import { shapeOf } from "../../../factorykit/site/planner/shapes.mjs";
import { read } from "../../../factorykit/site/planner/values.mjs";

const [script, file] = process.argv.slice(2);
const MODEL = new Function(`${readFileSync(script, "utf8")}; return MODEL;`)(); // eslint-disable-line no-new-func
const engine = new Engine(MODEL);
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
  read: ([name, text]) => tried(() => read(name, PAGE.quantities[name], PAGE.controls[name], text)),
  recalled: (query) => recalled(PAGE, query),
  hash: ({ hash, key, inputs }) => admitted(recalledOfChart(hash, key) ?? {}, inputs),
  chain: ({ given, tiers }) => MODEL.tiers[tiers].chain(given),
  answer: (question) => engine.answer(question),
  shape: (text) => shapeOf(MODEL, text),
  doubts: (question) => engine.doubts(question, engine.nominal(question)),
  fastest(question) {
    const times = Array.from({ length: 25 }, (_, i) => {
      engine.kept.clear();
      const start = performance.now();
      engine.answer({ ...question, given: { ...question.given, tokens: question.given.tokens * (1 + i / 1000) } });
      return performance.now() - start;
    });
    return times;
  },
};
const answers = JSON.parse(readFileSync(file, "utf8")).map(({ verb, question }) => verbs[verb](question));
process.stdout.write(JSON.stringify(answers));
