// The box beside the pointer.
import { backdrop, make } from "./dom.mjs";

export function tooltip(root) {
  let box = null;
  return (event, pairs) => {
    box ||= root.appendChild(make("div", { class: "fk-tip", hidden: true }));
    box.hidden = !pairs || !(event instanceof MouseEvent);
    if (box.hidden) return;
    const rows = pairs.map(([name, text]) => make("tr", {}, make("td", {}, String(name)), make("td", {}, String(text))));
    box.style.background = backdrop(root);
    box.replaceChildren(make("table", {}, make("tbody", {}, ...rows)));
    const frame = root.getBoundingClientRect();
    const left = event.clientX - frame.left + 14;
    box.style.left = `${Math.min(left, Math.max(0, frame.width - box.offsetWidth - 4))}px`;
    box.style.top = `${event.clientY - frame.top + 14}px`;
  };
}
