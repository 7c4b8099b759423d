// What a chart draws, as rows: CSV and a table on the page.
import { make } from "./dom.mjs";
import { number } from "./numbers.mjs";
import { quoted, remark } from "./quoted.mjs";

// One row per drawn point, in the order of columns; a set holds the rows of one view.
export function joined(columns, sets) {
  const length = Math.max(0, ...sets.map((rows) => rows.length));
  return Array.from({ length }, (_, n) => columns.map(({ spec, field }) => sets[spec][n]?.[field]));
}

export function shown({ scale }, value) {
  return number(typeof value === "number" ? value / (scale || 1) : value);
}

// Rows as CSV; lines about them come first, each behind a "#".
export function csv(columns, rows, about = []) {
  const short = (value) => (typeof value === "number" ? Number(value.toPrecision(6)) : value);
  const lines = [columns.map((column) => column.name), ...rows].map((row) => row.map(short).map(quoted).join(","));
  return `${[...about.map(remark), ...lines].join("\n")}\n`;
}

// A table that is filled while it is open.
export function table(title, columns, rows) {
  const body = make("tbody", {});
  const head = make("thead", {}, make("tr", {}, ...columns.map((column) => make("th", { scope: "col" }, column.title))));
  const box = make("div", { class: "fk-table", tabindex: 0, role: "region", "aria-label": `Data: ${title}` }, make("table", {}, head, body));
  const cells = (row) => columns.map((column, i) => make("td", {}, shown(column, row[i])));
  const fill = () => element.open && body.replaceChildren(...rows().map((row) => make("tr", {}, ...cells(row))));
  const element = make("details", { ontoggle: () => fill() }, make("summary", {}, "Data as a table"), box);
  return { element, fill };
}
