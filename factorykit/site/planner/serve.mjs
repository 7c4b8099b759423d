// The worker: the newest question is answered first, its pictures after it, and what is outdated is left.
import { about, Engine } from "./engine.mjs";

// What takes longer waits until nothing has been asked for so long: a slider that moves is answered first.
const QUIET_MS = 150;
const SOON_MS = 40;

export function serve(port, model) {
  const engine = new Engine(model);
  let newest = null;

  // Answers in a task of its own, so that a newer question is heard between two of them.
  const later = (id, act, wait = 0) => setTimeout(() => newest?.id === id && act(), wait);

  function pictures(id, question) {
    const nominal = engine.nominal(question);
    port.postMessage({ id, saving: engine.saving(nominal), doubts: engine.doubts(question, nominal) });
    const counts = about(nominal.given.accelerators);
    const sizes = [];
    const next = (n) => {
      const values = engine.on(question, counts[n]);
      if (values) sizes.push(values);
      if (n + 1 < counts.length) later(id, () => next(n + 1));
      else port.postMessage({ id, sizes });
    };
    later(id, () => next(0), QUIET_MS);
  }

  port.onmessage = ({ data }) => {
    newest = data;
    queueMicrotask(() => {
      const { id, question, brief } = data;
      const started = performance.now();
      try {
        const answer = engine.answer(question);
        port.postMessage({ id, answer, took: performance.now() - started });
        if (!brief && !answer.refused) later(id, () => pictures(id, question), SOON_MS);
      } catch (error) {
        port.postMessage({ id, answer: { refused: { said: error.message } } });
      }
    });
  };
}
