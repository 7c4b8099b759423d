// Pictures of a plan as SVG: parts of a step, days and dollars, goodput over the interval, cost by component.
import { rounded } from "./values.mjs";

const SVG = "http://www.w3.org/2000/svg";
export const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8a8a"];
const FRAME = { width: 420, height: 230, left: 52, right: 12, top: 10, bottom: 40 };

function node(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const label = (x, y, text, anchor = "middle", more = {}) => node("text", { x, y, "text-anchor": anchor, class: "fkp-tick", ...more }, text);

function ticks(low, high, most = 5) {
  const raw = (high - low) / most;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((part) => part * size).find((value) => value >= raw);
  const values = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) values.push(Number(at.toPrecision(12)));
  return values;
}

// A count with thousands separators, abbreviated from a million; money and other values in thousands.
export const counted = (value) => (value < 1e6 ? rounded(value, 9) : short(value));

export function short(value) {
  const [size, letter] = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]].find(([limit]) => Math.abs(value) >= limit) ?? [1, ""];
  return `${rounded(value / size)}${letter}`;
}

export const money = (value) => `$${short(value)}`;

function frame(name, xTitle) {
  const { width, height, left, right, bottom } = FRAME;
  return node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name, class: "fkp-picture" }, label((left + width - right) / 2, height - bottom + 33, xTitle, "middle", { class: "fkp-axis" }));
}

const inner = () => ({ x0: FRAME.left, x1: FRAME.width - FRAME.right, y0: FRAME.height - FRAME.bottom, y1: FRAME.top });

function grid(svg, marks, y, format) {
  const { x0, x1 } = inner();
  for (const mark of marks) svg.append(node("line", { x1: x0, x2: x1, y1: y(mark), y2: y(mark), class: "fkp-grid" }), label(x0 - 6, y(mark) + 4, format(mark), "end"));
}

// Stacked bars, one for each row of {label, parts: [number]}; the current row is outlined.
export function bars(name, rows, parts, xTitle, format = short, now = -1) {
  const { x0, x1, y0, y1 } = inner();
  const most = Math.max(...rows.map((row) => row.parts.reduce((a, b) => a + Math.max(b, 0), 0)));
  const y = (value) => y0 - ((y0 - y1) * value) / (most || 1);
  const svg = frame(name, xTitle);
  grid(svg, ticks(0, most || 1, 4), y, format);
  const step = (x1 - x0) / rows.length;
  const every = Math.ceil(rows.length / 7);
  for (const [i, row] of rows.entries()) {
    let base = 0;
    const x = x0 + i * step + step * 0.1;
    for (const [part, value] of row.parts.entries()) {
      const title = node("title", {}, `${row.label}, ${parts[part]}: ${format(value)}`);
      svg.append(node("rect", { x, width: step * 0.8, y: y(base + value), height: Math.max(y(base) - y(base + value), 0), fill: COLORS[part % COLORS.length] }, title));
      base += Math.max(value, 0);
    }
    if (i === now) svg.append(node("rect", { x: x - 2, width: step * 0.8 + 4, y: y(base) - 2, height: y0 - y(base) + 3, class: "fkp-now" }));
    if (i === now || (i % every === 0 && Math.abs(i - now) >= every)) svg.append(label(x + step * 0.4, y0 + 15, row.label));
  }
  return svg;
}

// A line over a logarithmic x, with a mark.
export function line(name, points, xTitle, { formatX = short, formatY = short, mark }) {
  const { x0, x1, y0, y1 } = inner();
  const [xs, values] = [points.map(([x]) => x), points.map(([, value]) => value)];
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const x = (value) => x0 + ((x1 - x0) * Math.log(value / low)) / (Math.log(high / low) || 1);
  const [bottom, top] = [Math.min(...values) * 0.97, Math.min(Math.max(...values) * 1.02, 1)];
  const y = (value) => y0 - ((y0 - y1) * (value - bottom)) / (top - bottom);
  const svg = frame(name, xTitle);
  grid(svg, ticks(bottom, top, 4), y, formatY);
  svg.append(node("path", { d: path(points.map(([a, b]) => [x(a), y(b)])), fill: "none", stroke: COLORS[0], "stroke-width": 2.2 }));
  svg.append(node("circle", { cx: x(mark), cy: y(valueOn(points, mark)), r: 5, fill: COLORS[0], class: "fkp-here" }));
  for (const tick of decades(low, high)) svg.append(label(x(tick), y0 + 15, formatX(tick)));
  return svg;
}

const decades = (low, high) => Array.from({ length: 40 }, (_, i) => [1, 2, 5].map((part) => part * 10 ** (i - 15))).flat().filter((tick) => low <= tick && tick <= high);

// A picture with logarithmic axes for all points {x, y}: its element, and the place of a value on each axis.
function logarithmic(name, all, { formatX = rounded, formatY, narrow, titles: [below, above] }) {
  const [width, height] = narrow ? [420, 300] : [860, 380];
  const [x0, x1, y0, y1] = [62, width - 14, height - 42, above ? 26 : 10];
  const ends = (axis, pad) => [Math.min(...all.map((row) => row[axis])) / pad, Math.max(...all.map((row) => row[axis])) * pad];
  const [[xl, xh], [yl, yh]] = [ends("x", 1.15), ends("y", 1.12)];
  const x = (value) => x0 + ((x1 - x0) * Math.log(value / xl)) / Math.log(xh / xl);
  const y = (value) => y0 - ((y0 - y1) * Math.log(value / yl)) / Math.log(yh / yl);
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name, class: "fkp-picture" }, label((x0 + x1) / 2, height - 6, below, "middle", { class: "fkp-axis" }));
  if (above) svg.append(label(4, 13, above, "start", { class: "fkp-axis" }));
  const marks = decades(yl, yh);
  for (const mark of marks.length > 1 ? marks : ticks(yl, yh, 4)) svg.append(node("line", { x1: x0, x2: x1, y1: y(mark), y2: y(mark), class: "fkp-grid" }), label(x0 - 6, y(mark) + 4, formatY(mark), "end"));
  for (const mark of decades(xl, xh)) svg.append(label(x(mark), y0 + 16, formatX(mark)));
  return { svg, x, y, x0, x1, y0, y1 };
}

const path = (points) => `M${points.map((point) => point.map((coordinate) => coordinate.toFixed(1)).join(",")).join("L")}`;

// Plans on logarithmic axes, cost over days: sets [{label, color, rows: [{x, y, title, pick}]}], the cheapest at each time
// joined, the best one outlined, limits as lines, published runs [{x, y, to, title, href}] as diamonds.
export function frontier(name, sets, { best, limits, runs, formatY, narrow }) {
  const rows = sets.flatMap((set) => set.rows);
  const all = [...rows, ...runs, ...runs.map(({ to: [a, b] }) => ({ x: a, y: b })), ...(limits.x ? [{ x: limits.x, y: best.y }] : []), ...(limits.y ? [{ x: best.x, y: limits.y }] : [])];
  const { svg, x, y, x0, x1, y0, y1 } = logarithmic(name, all, { formatY, narrow, titles: ["days"] });
  if (limits.x) svg.append(node("line", { x1: x(limits.x), x2: x(limits.x), y1, y2: y0, class: "fkp-line" }), label(x(limits.x) + 4, y1 + 10, "deadline", "start"));
  if (limits.y) svg.append(node("line", { x1: x0, x2: x1, y1: y(limits.y), y2: y(limits.y), class: "fkp-line" }), label(x1 - 4, y(limits.y) - 5, "budget", "end"));
  let least = Infinity;
  const front = rows.toSorted((a, b) => a.x - b.x || a.y - b.y).filter((row) => row.y < least && ((least = row.y), true));
  svg.append(node("path", { d: path(front.map((row) => [x(row.x), y(row.y)])), class: "fkp-front" }));
  for (const { color, rows: of } of sets) {
    for (const row of of) {
      const circle = node("circle", { cx: x(row.x), cy: y(row.y), r: 4, fill: color, opacity: row.faint ? 0.35 : 1, class: "fkp-pick" }, node("title", {}, row.title));
      circle.addEventListener("click", row.pick);
      svg.append(circle);
    }
  }
  for (const run of runs) {
    const [cx, cy] = [x(run.x), y(run.y)];
    const link = node("a", { href: run.href }, node("path", { d: `M${cx},${cy - 7}l6,7l-6,7l-6,-7z`, class: "fkp-run" }), node("title", {}, run.title));
    svg.append(node("line", { x1: cx, y1: cy, x2: x(run.to[0]), y2: y(run.to[1]), class: "fkp-miss" }), link, label(cx + 9, cy - 6, run.label, "start"));
  }
  svg.append(node("circle", { cx: x(best.x), cy: y(best.y), r: 9, class: "fkp-now" }));
  return svg;
}

// Curves on logarithmic axes: sets [{label, color, rows: [{x, y, title}]}], the chosen place, a least value of x as a line.
export function curves(name, sets, { best, least, titles, narrow }) {
  const all = [...sets.flatMap((set) => set.rows), best, ...(least ? [{ x: least.x, y: best.y }] : [])];
  const { svg, x, y, y0, y1 } = logarithmic(name, all, { formatY: short, narrow, titles });
  if (least) svg.append(node("line", { x1: x(least.x), x2: x(least.x), y1, y2: y0, class: "fkp-line" }), label(x(least.x) + 4, y1 + 10, least.label, "start"));
  for (const { color, rows } of sets) {
    svg.append(node("path", { d: path(rows.map((row) => [x(row.x), y(row.y)])), fill: "none", stroke: color, "stroke-width": 2.2 }));
    for (const row of rows) svg.append(node("circle", { cx: x(row.x), cy: y(row.y), r: 3.2, fill: color }, node("title", {}, row.title)));
  }
  svg.append(node("circle", { cx: x(best.x), cy: y(best.y), r: 9, class: "fkp-now" }));
  return svg;
}

function valueOn(points, mark) {
  const i = points.findIndex(([x]) => x >= mark);
  if (i <= 0) return points[Math.max(i, 0)][1];
  const [[a, b], [c, d]] = [points[i - 1], points[i]];
  return b + ((d - b) * Math.log(mark / a)) / Math.log(c / a);
}

// Bars on both sides of the current value: [{label, title, ends: [low, high]}].
export function tornado(name, rows, now, format) {
  const { left, width } = FRAME;
  const height = rows.length * 34 + 26;
  const all = rows.flatMap((row) => row.ends);
  const [low, high] = [Math.min(...all, now), Math.max(...all, now)];
  const x = (value) => 14 + ((width - 28) * (value - low)) / (high - low || 1);
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name, class: "fkp-picture" });
  svg.append(node("line", { x1: x(now), x2: x(now), y1: 14, y2: height - 16, class: "fkp-line" }), label(x(now), height - 4, format(now)));
  for (const [i, row] of rows.entries()) {
    const y = 20 + i * 34;
    const [a, b] = row.ends.map(x);
    svg.append(label(14, y - 4, row.label, "start", { class: "fkp-axis" }));
    svg.append(node("rect", { x: Math.min(a, b), width: Math.max(Math.abs(b - a), 1), y, height: 11, fill: COLORS[0], rx: 2 }, node("title", {}, `${row.title}: ${row.ends.map(format).join(" to ")}`)));
    svg.append(label(width - left / 4, y - 4, row.ends.toSorted((p, q) => p - q).map(format).join(" to "), "end"));
  }
  return svg;
}
