import assert from "node:assert/strict";
import test from "node:test";
import { fitted, lines } from "../../../factorykit/charts/runtime/fit.mjs";
import { csv, joined, shown } from "../../../factorykit/charts/runtime/table.mjs";
import { framed } from "../../../factorykit/charts/runtime/take.mjs";

const columns = [
  { spec: 0, field: "accelerators", name: "accelerators", scale: 1 },
  { spec: 0, field: "curve 0", name: "wall_days", scale: 1 },
  { spec: 1, field: "curve 0", name: 'cost, "all"', scale: 1e6 },
];

test("panels are joined row by row; a panel without rows leaves gaps", () => {
  const first = [{ accelerators: 8, "curve 0": 1 }, { accelerators: 16, "curve 0": null }];
  assert.deepEqual(joined(columns, [first, []]), [[8, 1, undefined], [16, null, undefined]]);
});

test("a CSV quotes commas, quotation marks and line breaks, and leaves gaps empty", () => {
  assert.equal(csv(columns, [[8, null, "a\nb"]]), 'accelerators,wall_days,"cost, ""all"""\n8,,"a\nb"\n');
});

test("neither a cell nor a comment ends a line of a CSV early", () => {
  assert.equal(csv(columns.slice(0, 1), [["#a"], ["b\rc"], ["=d"]], ["Title\n1,2"]), '# Title 1,2\naccelerators\n"#a"\n"b\rc"\n=d\n');
});

test("a CSV has comments before its rows, and numbers of six digits", () => {
  assert.equal(csv(columns.slice(0, 1), [[1 / 3]], ["Title", "Source: x"]), "# Title\n# Source: x\naccelerators\n0.333333\n");
});

test("a cell is shown in the unit of its column", () => {
  assert.equal(shown(columns[2], 85_500_000), "85.5");
});

test("a title is wrapped between words, and a long word has its own line", () => {
  assert.deepEqual(lines("one two three", 10, 45), ["one two", "three"]);
  assert.deepEqual(lines("incomprehensible x", 10, 20), ["incomprehensible", "x"]);
});

test("the title of a narrow picture stands in lines above it", () => {
  const picture = framed(['<svg width="300" height="40"></svg>'], "Wall-clock time and rental cost of the run", [], {});
  assert.equal(picture.match(/font-size="16"/g).length, 2);
  assert.match(picture, /<svg x="16" y="66" width="300"/);
});

test("percentages of a chart have a space, as in the text around it", () => {
  const { config } = fitted({ mark: "bar" }, { config: { padding: 4, title: {} } }, 600);
  assert.equal(config.locale.number.percent, " %");
});
