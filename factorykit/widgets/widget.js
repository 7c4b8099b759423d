// A chart or a slider in a notebook. What draws them is loaded once a page: from the installed JupyterLab extension,
// or, where there is none, from the kernel.
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

function listener() {
  const offs = [];
  return {
    listen(to, event, act) {
      to.on(event, act);
      offs.push(() => to.off(event, act));
    },
    stop: () => offs.forEach((off) => off()),
  };
}

function slider({ model, el }) {
  const { listen, stop } = listener();
  const made = globalThis.factorykit.slider(model.get("control"), model.get("value"), (value) => {
    model.set("value", value);
    model.save_changes();
  });
  el.classList.add("factorykit-chart");
  el.style.margin = "0";
  el.append(made.element);
  made.say(model.get("text"));
  listen(model, "change:text", () => made.say(model.get("text")));
  listen(model, "change:value", () => made.set(model.get("value")));
  return stop;
}

async function chart({ model, el }) {
  const { listen, stop } = listener();
  const drawn = await globalThis.factorykit.draw(el, model.get("payload"), { controls: false, link: false, title: false });
  if (!drawn) return stop;
  // Sliders of the notebook set the chart's parameters in the browser, without a turn to the kernel.
  for (const [name, reference] of Object.entries(model.get("controls"))) {
    const control = await model.widget_manager.get_model(reference.replace("IPY_MODEL_", ""));
    listen(control, "change:value", () => drawn.set({ [name]: control.get("value") }));
    drawn.values[name] = control.get("value");
  }
  listen(model, "change:signals", () => drawn.set(model.get("signals")));
  // Frames from the kernel: while one is drawn only the newest waits.
  let waiting = false;
  let drawing = false;
  const frame = async () => {
    waiting = true;
    if (drawing) return;
    drawing = true;
    await Promise.resolve(); // head and buffers change together and say so one after the other
    while (waiting) {
      waiting = false;
      const head = model.get("frame");
      if (head.columns) await drawn.data(head.table, rows(head, model.get("buffers")));
    }
    drawing = false;
  };
  listen(model, "change:frame", frame);
  listen(model, "change:buffers", frame);
  await drawn.set(model.get("signals"));
  await frame();
  return () => {
    stop();
    drawn.finalize();
  };
}

async function render({ model, el }) {
  el.addEventListener("keydown", (event) => event.stopPropagation()); // JupyterLab takes arrow keys for itself
  await runtime(model);
  return model.get("control") ? slider({ model, el }) : chart({ model, el });
}

export default { render };
