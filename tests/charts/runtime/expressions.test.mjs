import assert from "node:assert/strict";
import test from "node:test";
import { expressions, made } from "../../../factorykit/charts/runtime/expressions.mjs";

const literal = (value) => ({ type: "Literal", value });
const name = (of) => ({ type: "Identifier", name: of });
const member = (object, property) => ({ type: "MemberExpression", object, property: literal(property), computed: true });
const call = (of, ...given) => ({ type: "CallExpression", callee: name(of), arguments: given });
const binary = (operator, left, right) => ({ type: "BinaryExpression", operator, left, right });
const datum = (field) => member(name("datum"), field);

test("a tree computes with signals and the fields of a row", () => {
  const tree = binary("/", call("exp", binary("*", name("k"), datum("x"))), call("max", literal(2), datum("y")));
  const of = expressions.parameter({ functions: {} }, { ast: tree });
  assert.equal(of({ x: 2, y: 1 }, { $k: 0.5 }), Math.E / 2);
});

test("a table of literals is built once, and indexed by a text", () => {
  const table = { type: "ObjectExpression", properties: [{ key: literal("h100"), value: literal(989) }, { key: name("b200"), value: literal(2250) }] };
  const whole = made(table, {});
  assert.equal(whole(), whole());
  const of = made({ type: "MemberExpression", object: table, property: name("chip"), computed: true }, {});
  assert.equal(of({ $chip: "b200" }), 2250);
});

test("no expression reads a function from an object, or calls a function that Vega does not have", () => {
  for (const field of ["constructor", "toString", "valueOf"]) assert.throws(() => made(datum(field), {})({}, {}), /may not take the function/);
  const own = { type: "MemberExpression", object: literal("x"), property: name("by"), computed: true };
  assert.throws(() => made(own, {})({ $by: "constructor" }), /may not take the function/);
  for (const word of ["eval", "Function", "constructor", "fetch"]) assert.throws(() => made(call(word, literal("1")), Object.create(null)), /no function of Vega/);
});

test("functions of a chart override those of the language, and are called as its methods", () => {
  const functions = {
    by: 3,
    format(value) {
      return `${value * this.by}`;
    },
  };
  assert.equal(made(call("format", literal(2)), functions)(), "6");
});

test("functions of time, text and lists agree with Vega", () => {
  const day = Date.UTC(2026, 10, 22, 17);
  const cases = [["utcyear", [day], 2026], ["utchours", [day], 17], ["upper", ["ab"], "AB"], ["indexof", ["abcb", "b", 2], 3], ["lastindexof", ["abcb", "b"], 3], ["slice", ["abcd", 1, 3], "bc"], ["substring", [1234, 1], "234"], ["replace", ["a-b", "-", "+"], "a+b"], ["clamp", [7, 0, 5], 5], ["test", ["^a", "ab"], true], ["if", [0, 1, 2], 2]];
  for (const [of, given, expected] of cases) assert.equal(made(call(of, ...given.map(literal)), {})(), expected, of);
  assert.deepEqual(made(call("sort", literal([3, null, 1])), {})(), [null, 1, 3]);
});

test("an item is marked as changed when one of its channels changed, and its width follows from its corners", () => {
  const encode = expressions.encode({ functions: {} }, { marktype: "rect", channels: { x: { ast: literal(9) }, x2: { ast: datum("end") } } });
  const item = { datum: { end: 4 } };
  assert.equal(encode(item, {}), 1);
  assert.deepEqual([item.x, item.x2, item.width], [4, 9, 5]);
  const rule = expressions.encode({ functions: {} }, { marktype: "rule", channels: { x: { ast: literal(1) }, x2: { ast: literal(2) } } });
  const line = { x: 1, x2: 2 };
  assert.equal(rule(line, {}), 0);
  assert.equal(line.width, undefined);
});
