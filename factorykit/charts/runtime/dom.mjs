// Elements, their style, and files for the reader. The build puts chart.css in scope as CHART_CSS.

export const LAB = typeof document === "object" && Boolean(document.getElementById("jupyter-config-data"));

export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export function style() {
  if (!document.getElementById("factorykit-style")) document.head.append(make("style", { id: "factorykit-style" }, CHART_CSS));
}

export function download(name, type, content) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function backdrop(element) {
  for (let node = element; node; node = node.parentElement) {
    const color = getComputedStyle(node).backgroundColor;
    if (color && color !== "transparent" && !color.endsWith(", 0)")) return color;
  }
  return "#fff";
}
