// Every chart of a page, in JupyterLab's outputs and inside the widget: found, drawn once, and known by its name there.
import { draw } from "./chart.mjs";
import { slider } from "./controls.mjs";
import { LAB, make } from "./dom.mjs";

const charts = [];

// A container is followed by its payload in a JSON script.
async function mount(root) {
  if (root.dataset.drawn) return;
  root.dataset.drawn = "yes";
  let chart = null;
  try {
    chart = await draw(root, JSON.parse(root.nextElementSibling.textContent));
  } catch (error) {
    root.append(make("p", { class: "fk-error", role: "alert" }, `This chart could not be read: ${error.message}`));
  }
  if (!chart) return;
  charts.push(chart);
  if (chart.linked) await chart.recall();
}

function scan() {
  document.querySelectorAll(".factorykit-chart:not([data-drawn])").forEach((root) => root.nextElementSibling?.type === "application/json" && mount(root));
}

if (!window.factorykit) {
  window.factorykit = { charts, draw, mount, scan, slider };
  if (!LAB) {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", scan);
    else scan();
    window.addEventListener("hashchange", () => charts.forEach((chart) => chart.linked && chart.recall()));
  }
}
