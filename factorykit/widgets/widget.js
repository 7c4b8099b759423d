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
    setTimeout(() => reject(new Error("no kernel answered")), 15000);
  });
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

// The value as text that can be typed, with units. The kernel reads it; a refused entry stays, with the reason below it.
function typedField(model) {
  const element = document.createElement("input");
  Object.assign(element, { type: "text", className: "fk-typed", spellcheck: false });
  element.setAttribute("aria-label", `${model.get("control").label}, typed`);
  const reason = notice("");
  const say = (text) => {
    if (document.activeElement !== element) element.value = text;
    refuse("");
  };
  const refuse = (text) => {
    reason.textContent = text;
    element.setCustomValidity(text);
  };
  element.addEventListener("change", () => model.send({ kind: "typed", text: element.value }));
  element.addEventListener("keydown", (event) => event.key === "Enter" && element.blur());
  element.addEventListener("focus", () => element.select());
  return { element, reason, say, refuse };
}

function notice(text) {
  const element = document.createElement("p");
  Object.assign(element, { className: "fk-refused", textContent: text });
  element.setAttribute("role", "alert");
  return element;
}

// JupyterLab marks a widget whose kernel is gone: nothing answers its sliders any more.
function whenStopped(listen, model, el, act) {
  const check = () => el.closest(".jupyter-widgets-disconnected") && act();
  listen(model, "comm_live_update", check);
  check();
}

function slider({ model, el }) {
  const { listen, stop } = listener();
  const made = globalThis.factorykit.slider(model.get("control"), model.get("value"), (value) => {
    model.set("value", value);
    model.save_changes();
  });
  el.classList.add("factorykit-chart");
  el.style.margin = "0";
  const typed = typedField(model);
  made.element.querySelector("output").replaceWith(typed.element);
  made.element.append(typed.reason);
  el.append(made.element);
  const say = () => {
    made.say(model.get("text"));
    typed.say(model.get("text"));
  };
  say();
  listen(model, "change:text", say);
  listen(model, "msg:custom", (message) => message.kind === "refused" && typed.refuse(message.text));
  listen(model, "change:value", () => made.set(model.get("value")));
  whenStopped(listen, model, el, () => {
    made.set(model.get("value"));
    typed.say(model.get("text"));
    made.input.disabled = typed.element.disabled = true;
  });
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
  listen(model, "change:pins", () => drawn.pinAll(model.get("pins")));
  listen(model, "msg:custom", (message) => message.kind === "copy" && navigator.clipboard.writeText(message.text));
  await drawn.set(model.get("signals"));
  if (model.get("pins").length) await drawn.pinAll(model.get("pins"));
  whenStopped(listen, model, el, () => el.prepend(notice("Stopped: the kernel was restarted. Run the cell again.")));
  return () => {
    stop();
    drawn.finalize();
  };
}

async function render({ model, el }) {
  el.addEventListener("keydown", (event) => event.stopPropagation()); // JupyterLab takes arrow keys for itself
  try {
    await runtime(model);
  } catch (error) {
    el.textContent = `Not live here: ${error.message}.`; // a page made from a notebook, without its kernel
    return () => {};
  }
  return model.get("control") ? slider({ model, el }) : chart({ model, el });
}

export default { render };
