// The box beside the pointer. A click keeps it, so that its links and the sources of the chart can be opened.
import { backdrop, make } from "./dom.mjs";
import { led, link, worded } from "./leads.mjs";

export function tooltip(root, { leads, keys = {}, source = "" }) {
  let box = null;
  let entries = null;
  let held = false;
  const table = (cell) => make("table", {}, make("tbody", {}, ...entries.map(([name, text]) => make("tr", {}, make("td", {}, cell(String(name))), make("td", {}, cell(String(text), name))))));
  const opened = (text, name) => {
    if (Object.hasOwn(leads, text)) return link(leads[text]);
    return Object.hasOwn(keys, name) ? link([text, keys[name] + encodeURIComponent(text)]) : text;
  };
  const close = () => {
    held = false;
    box?.classList.remove("fk-held");
    if (box) box.hidden = true;
  };
  const hold = () => {
    held = true;
    box.classList.add("fk-held");
    box.replaceChildren(table(opened), make("p", {}, ...led(source, leads)));
  };
  if (leads) {
    root.addEventListener("click", (event) => {
      if (box?.contains(event.target)) return;
      if (!held && box && !box.hidden && event.target.closest(".fk-view")) hold();
      else close();
    });
    root.addEventListener("keydown", (event) => event.key === "Escape" && close());
  }
  return (event, pairs) => {
    if (held) return;
    box ||= root.appendChild(make("div", { class: "fk-tip", hidden: true }));
    box.hidden = !pairs || !(event instanceof MouseEvent);
    if (box.hidden) return;
    entries = pairs;
    box.style.background = backdrop(root);
    box.replaceChildren(table((text) => worded(text, leads)), leads ? make("p", {}, "Click for the sources") : "");
    const frame = root.getBoundingClientRect();
    const left = event.clientX - frame.left + 14;
    box.style.left = `${Math.min(left, Math.max(0, frame.width - box.offsetWidth - 4))}px`;
    box.style.top = `${event.clientY - frame.top + 14}px`;
  };
}
