// Answers questions as the page does: node ask_serving.mjs MODEL.js QUESTIONS.json.
import { readFileSync } from "node:fs";
import { Serving } from "../../../factorykit/site/planner/serving_engine.mjs";

const [script, file, launchScript] = process.argv.slice(2);
const engine = new Serving(new Function(`${readFileSync(script, "utf8")}; return MODEL;`)()); // eslint-disable-line no-new-func
const launch = new Function(`return ${readFileSync(launchScript, "utf8")}`)(); // eslint-disable-line no-new-func
const answered = (question) => {
  try {
    const answer = engine.answer(question);
    return { ...answer, ...engine.intervals(question, answer), rows: null, script: launch(question.engine, answer.best) };
  } catch (error) {
    return { refused: error.message };
  }
};
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(file, "utf8")).map(answered)));
