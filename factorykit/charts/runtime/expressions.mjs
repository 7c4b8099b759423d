// Vega's expressions without eval, which the policy of a page forbids: the tree of each is made a function once, and its
// parts are functions within it. Vega's own interpreter walks the tree again for every row and takes many times longer.
// Every function is called with signals, row, event and item, as Vega hands them over.

const CONSTANTS = { NaN: Number.NaN, E: Math.E, LN2: Math.LN2, LN10: Math.LN10, LOG2E: Math.LOG2E, LOG10E: Math.LOG10E, PI: Math.PI, SQRT1_2: Math.SQRT1_2, SQRT2: Math.SQRT2, MIN_VALUE: Number.MIN_VALUE, MAX_VALUE: Number.MAX_VALUE };

const BINARY = {
  "*": (a, b) => (s, d, e, i) => a(s, d, e, i) * b(s, d, e, i),
  "+": (a, b) => (s, d, e, i) => a(s, d, e, i) + b(s, d, e, i),
  "-": (a, b) => (s, d, e, i) => a(s, d, e, i) - b(s, d, e, i),
  "/": (a, b) => (s, d, e, i) => a(s, d, e, i) / b(s, d, e, i),
  "%": (a, b) => (s, d, e, i) => a(s, d, e, i) % b(s, d, e, i),
  ">": (a, b) => (s, d, e, i) => a(s, d, e, i) > b(s, d, e, i),
  "<": (a, b) => (s, d, e, i) => a(s, d, e, i) < b(s, d, e, i),
  ">=": (a, b) => (s, d, e, i) => a(s, d, e, i) >= b(s, d, e, i),
  "<=": (a, b) => (s, d, e, i) => a(s, d, e, i) <= b(s, d, e, i),
  "==": (a, b) => (s, d, e, i) => a(s, d, e, i) == b(s, d, e, i), // eslint-disable-line eqeqeq
  "!=": (a, b) => (s, d, e, i) => a(s, d, e, i) != b(s, d, e, i), // eslint-disable-line eqeqeq
  "===": (a, b) => (s, d, e, i) => a(s, d, e, i) === b(s, d, e, i),
  "!==": (a, b) => (s, d, e, i) => a(s, d, e, i) !== b(s, d, e, i),
  "&": (a, b) => (s, d, e, i) => a(s, d, e, i) & b(s, d, e, i),
  "|": (a, b) => (s, d, e, i) => a(s, d, e, i) | b(s, d, e, i),
  "^": (a, b) => (s, d, e, i) => a(s, d, e, i) ^ b(s, d, e, i),
  "<<": (a, b) => (s, d, e, i) => a(s, d, e, i) << b(s, d, e, i),
  ">>": (a, b) => (s, d, e, i) => a(s, d, e, i) >> b(s, d, e, i),
  ">>>": (a, b) => (s, d, e, i) => a(s, d, e, i) >>> b(s, d, e, i),
  "&&": (a, b) => (s, d, e, i) => a(s, d, e, i) && b(s, d, e, i),
  "||": (a, b) => (s, d, e, i) => a(s, d, e, i) || b(s, d, e, i),
};

const UNARY = {
  "+": (a) => (s, d, e, i) => +a(s, d, e, i),
  "-": (a) => (s, d, e, i) => -a(s, d, e, i),
  "~": (a) => (s, d, e, i) => ~a(s, d, e, i),
  "!": (a) => (s, d, e, i) => !a(s, d, e, i),
};

// Functions that a chart that computes calls for every row of every curve.
const OFTEN = {
  isFinite: (a) => (s, d, e, i) => Number.isFinite(a(s, d, e, i)),
  exp: (a) => (s, d, e, i) => Math.exp(a(s, d, e, i)),
  log: (a) => (s, d, e, i) => Math.log(a(s, d, e, i)),
  sqrt: (a) => (s, d, e, i) => Math.sqrt(a(s, d, e, i)),
  abs: (a) => (s, d, e, i) => Math.abs(a(s, d, e, i)),
  ceil: (a) => (s, d, e, i) => Math.ceil(a(s, d, e, i)),
  floor: (a) => (s, d, e, i) => Math.floor(a(s, d, e, i)),
  pow: (a, b) => (s, d, e, i) => a(s, d, e, i) ** b(s, d, e, i),
  min: (a, b) => (s, d, e, i) => Math.min(a(s, d, e, i), b(s, d, e, i)),
  max: (a, b) => (s, d, e, i) => Math.max(a(s, d, e, i), b(s, d, e, i)),
};

const MATH = ["abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "exp", "floor", "log", "max", "min", "pow", "random", "round", "sin", "sqrt", "tan"];
const DATES = { date: "Date", day: "Day", year: "FullYear", month: "Month", hours: "Hours", minutes: "Minutes", seconds: "Seconds", milliseconds: "Milliseconds" };
const clock = (name) => (time) => new Date(time)[name]();
const ascending = (a, b) => ((a < b || a == null) && b != null ? -1 : (a > b || b == null) && a != null ? 1 : 0);

const FUNCTIONS = {
  ...Object.fromEntries(MATH.map((name) => [name, Math[name]])),
  ...Object.fromEntries(Object.entries(DATES).flatMap(([name, of]) => [[name, clock(`get${of}`)], [`utc${name}`, clock(`getUTC${of}`)]])),
  isNaN: Number.isNaN,
  isFinite: Number.isFinite,
  clamp: (value, low, high) => Math.max(low, Math.min(high, value)),
  now: Date.now,
  utc: Date.UTC,
  datetime: (year, month = 0, ...rest) => (typeof year === "string" ? new Date(year) : new Date(year, month, ...rest)),
  time: clock("getTime"),
  timezoneoffset: clock("getTimezoneOffset"),
  length: (value) => value.length,
  join: (list, by) => list.join(by),
  indexof: (value, ...sought) => value.indexOf(...sought),
  lastindexof: (value, ...sought) => value.lastIndexOf(...sought),
  slice: (value, ...ends) => value.slice(...ends),
  reverse: (list) => list.toReversed(),
  sort: (list) => list.toSorted(ascending),
  parseFloat: Number.parseFloat,
  parseInt: Number.parseInt,
  upper: (text) => String(text).toUpperCase(),
  lower: (text) => String(text).toLowerCase(),
  substring: (text, ...ends) => String(text).substring(...ends),
  split: (text, ...by) => String(text).split(...by),
  replace: (text, pattern, by) => String(text).replace(pattern, by),
  trim: (text) => String(text).trim(),
  btoa: (text) => btoa(text),
  atob: (text) => atob(text),
  regexp: RegExp,
  test: (pattern, text) => new RegExp(pattern).test(text),
};
// These belong to the event that is being handled.
const OF_EVENT = new Set(["view", "item", "group", "xy", "x", "y"]);

const fixed = (value) => Object.assign(() => value, { fixed: true });

// What lies in an object; a function is never handed out, so that none can be called but those with a name here.
function held(object, name) {
  const member = object[name];
  if (typeof member !== "function") return member;
  throw new Error(`an expression may not take the function ${name}`);
}

const MADE = {
  Literal: ({ value }) => fixed(value),
  Identifier({ name }) {
    if (name === "datum") return (_, d) => d;
    if (name === "event") return (_s, _d, e) => e;
    if (name === "item") return (_s, _d, _e, i) => i;
    if (Object.hasOwn(CONSTANTS, name)) return fixed(CONSTANTS[name]);
    const signal = `$${name}`;
    return (s) => s[signal];
  },
  MemberExpression({ object, property, computed }, fn) {
    if (computed && property.type !== "Literal") {
      const [of, by] = [made(object, fn), made(property, fn)];
      return (s, d, e, i) => held(of(s, d, e, i), by(s, d, e, i));
    }
    const name = computed ? property.value : property.name;
    if (object.name === "datum") return (_, d) => held(d, name);
    const of = made(object, fn);
    return (s, d, e, i) => held(of(s, d, e, i), name);
  },
  CallExpression({ callee, arguments: given }, fn) {
    const name = callee.name.replace(/^_/, "");
    const parts = given.map((node) => made(node, fn));
    const [a, b, c] = parts;
    if (name === "if") return (s, d, e, i) => (a(s, d, e, i) ? b(s, d, e, i) : c(s, d, e, i));
    if (Object.hasOwn(OFTEN, name) && parts.length === OFTEN[name].length) return OFTEN[name](...parts);
    if (OF_EVENT.has(name)) return (s, d, e, i) => e.vega[name](...parts.map((part) => part(s, d, e, i)));
    const call = Object.hasOwn(Object.prototype, name) ? null : (fn[name] ?? FUNCTIONS[name]);
    if (!call) throw new Error(`an expression calls ${name}, which is no function of Vega`);
    if (parts.length === 1) return (s, d, e, i) => call.call(fn, a(s, d, e, i));
    if (parts.length === 2) return (s, d, e, i) => call.call(fn, a(s, d, e, i), b(s, d, e, i));
    return (s, d, e, i) => call.apply(fn, parts.map((part) => part(s, d, e, i)));
  },
  ArrayExpression({ elements }, fn) {
    const parts = elements.map((element) => made(element, fn));
    return (s, d, e, i) => parts.map((part) => part(s, d, e, i));
  },
  BinaryExpression: ({ operator, left, right }, fn) => folded(BINARY[operator], made(left, fn), made(right, fn)),
  LogicalExpression: ({ operator, left, right }, fn) => BINARY[operator](made(left, fn), made(right, fn)),
  UnaryExpression: ({ operator, argument }, fn) => folded(UNARY[operator], made(argument, fn)),
  ConditionalExpression({ test, consequent, alternate }, fn) {
    const [a, b, c] = [test, consequent, alternate].map((node) => made(node, fn));
    return (s, d, e, i) => (a(s, d, e, i) ? b(s, d, e, i) : c(s, d, e, i));
  },
  // The words of a table and their values: one object, made once.
  ObjectExpression({ properties }, fn) {
    const pairs = properties.map(({ key, value }) => [key.name ?? key.value, made(value, fn)]);
    const whole = (s, d, e, i) => Object.fromEntries(pairs.map(([name, value]) => [name, value(s, d, e, i)]));
    return pairs.every(([, value]) => value.fixed) ? fixed(whole()) : whole;
  },
};

function folded(operation, ...parts) {
  const result = operation(...parts);
  return parts.every((part) => part.fixed) ? fixed(result()) : result;
}

// A tree as a function of signals, row, event and item; `fn` are Vega's functions of the chart.
export function made(tree, fn) {
  return MADE[tree.type](tree, fn);
}

// Width, height and centre of an item follow from its corners, as in the code that Vega writes.
function placed(item, channels, swaps) {
  if (channels.x2) {
    if (channels.x) {
      if (swaps && item.x > item.x2) [item.x, item.x2] = [item.x2, item.x];
      item.width = item.x2 - item.x;
    } else item.x = item.x2 - (item.width || 0);
  }
  if (channels.xc) item.x = item.xc - (item.width || 0) / 2;
  if (channels.y2) {
    if (channels.y) {
      if (swaps && item.y > item.y2) [item.y, item.y2] = [item.y2, item.y];
      item.height = item.y2 - item.y;
    } else item.y = item.y2 - (item.height || 0);
  }
  if (channels.yc) item.y = item.yc - (item.height || 0) / 2;
}

// What Vega asks for in the place of its own, which writes code.
export const expressions = {
  operator: (context, { ast }) => made(ast, context.functions),
  parameter(context, { ast }) {
    const of = made(ast, context.functions);
    return (datum, signals) => of(signals, datum);
  },
  event(context, { ast }) {
    const of = made(ast, context.functions);
    return (event) => of(undefined, undefined, event);
  },
  handler(context, { ast }) {
    const of = made(ast, context.functions);
    return (signals, event) => of(signals, event.item?.datum, event);
  },
  encode(context, { marktype, channels }) {
    const parts = Object.entries(channels).map(([name, { ast }]) => [name, made(ast, context.functions)]);
    const swaps = ["group", "image", "rect"].includes(marktype);
    const corners = marktype !== "rule" && ["x2", "xc", "y2", "yc"].some((name) => channels[name]);
    return (item, signals) => {
      let moved = 0;
      for (const [name, of] of parts) {
        const value = of(signals, item.datum, undefined, item);
        if (item[name] !== value) {
          item[name] = value;
          moved = 1;
        }
      }
      if (corners) placed(item, channels, swaps);
      return moved;
    };
  },
};
