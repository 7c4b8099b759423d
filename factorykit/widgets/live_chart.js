// One chart in a notebook. Vega is loaded once a page: from the installed JupyterLab extension, or from the kernel.
function runtime(model) {
  if (globalThis.factorykit) return Promise.resolve();
  return (globalThis.factorykitScript ||= installed().catch(() => sent(model)));
}

function script(url) {
  return new Promise((resolve, reject) => {
    const tag = document.createElement("script");
    tag.onload = () => (globalThis.factorykit ? resolve() : reject(new Error("the script did not start")));
    tag.onerror = () => reject(new Error(`no script at ${url}`));
    tag.src = url;
    document.head.append(tag);
  });
}

function installed() {
  const page = document.getElementById("jupyter-config-data");
  if (!page) return Promise.reject(new Error("not JupyterLab"));
  return script(`${JSON.parse(page.textContent).baseUrl}lab/extensions/factorykit/static/factorykit.js`);
}

function sent(model) {
  return new Promise((resolve, reject) => {
    const take = (message, buffers) => {
      if (message.kind !== "script") return;
      model.off("msg:custom", take);
      const url = URL.createObjectURL(new Blob([buffers[0]], { type: "text/javascript" }));
      script(url).then(resolve, reject).finally(() => URL.revokeObjectURL(url));
    };
    model.on("msg:custom", take);
    model.send({ kind: "script" });
  });
}

// Columns arrive as bytes: doubles, or codes into a list of words.
function rows({ length, columns }, buffers) {
  const read = columns.map(({ name, words }, i) => {
    const bytes = buffers[i].buffer.slice(buffers[i].byteOffset, buffers[i].byteOffset + buffers[i].byteLength);
    if (words) {
      const codes = new Uint16Array(bytes);
      return [name, (n) => words[codes[n]]];
    }
    const numbers = new Float64Array(bytes);
    return [name, (n) => (Number.isNaN(numbers[n]) ? null : numbers[n])];
  });
  return Array.from({ length }, (_, n) => Object.fromEntries(read.map(([name, at]) => [name, at(n)])));
}

async function render({ model, el, signal }) {
  el.addEventListener("keydown", (event) => event.stopPropagation()); // JupyterLab takes arrow keys for itself
  await runtime(model);
  const chart = await globalThis.factorykit.draw(el, model.get("payload"), { controls: false, link: false, title: false });
  if (!chart) return;
  const listening = [];
  const listen = (to, event, act) => {
    to.on(event, act);
    listening.push(() => to.off(event, act));
  };
  // Sliders of the page set the chart's parameters in the browser, without a turn to the kernel.
  const manager = model.widget_manager;
  for (const [name, reference] of Object.entries(model.get("controls"))) {
    const control = await manager.get_model(reference.replace("IPY_MODEL_", ""));
    listen(control, "change:value", () => chart.set({ [name]: control.get("value") }));
    chart.values[name] = control.get("value");
  }
  listen(model, "change:signals", () => chart.set(model.get("signals")));
  // Frames from the kernel: while one is drawn only the newest waits.
  let waiting = null;
  let drawing = false;
  const frame = async () => {
    waiting = [model.get("frame"), model.get("buffers")];
    if (drawing) return;
    drawing = true;
    try {
      while (waiting) {
        const [head, buffers] = waiting;
        waiting = null;
        if (head.columns) await chart.data(head.table, rows(head, buffers));
      }
    } finally {
      drawing = false;
    }
  };
  listen(model, "change:frame", frame);
  await chart.set(model.get("signals"));
  await frame();
  const stop = () => {
    listening.forEach((off) => off());
    chart.finalize();
  };
  if (signal) signal.addEventListener("abort", stop);
  return signal ? undefined : stop;
}

export default { render };
