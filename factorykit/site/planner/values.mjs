// Values as text in the units of the vocabulary, and texts as values: "24k", "2.5 $/h", "30 min".
import { holds } from "../../charts/runtime/bounds.mjs";

const PREFIXES = [[1e24, "Y"], [1e21, "Z"], [1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const SI = new Set(["W", "FLOP", "FLOP/s", "byte", "byte/s"]);
const TIMES = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]];
const ENERGIES = [[1e6, "GWh"], [1e3, "MWh"], [1, "kWh"]];
const LARGE = [[1e12, "trillion "], [1e9, "billion "], [1e6, "million "]];
const SCALES = { k: 1e3, K: 1e3, M: 1e6, B: 1e9, bn: 1e9, G: 1e9, T: 1e12, Ki: 1024, Mi: 1048576, thousand: 1e3, million: 1e6, billion: 1e9, trillion: 1e12 };
const NUMBER = /^([+-]?)([$€£¥]?)\s*((?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(.*)$/s;

const formats = new Map();

// A number with thousands separators; formatters are cached since creating one costs more than a hundred uses.
function formatted(options, value) {
  const key = JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat("en", options));
  return formats.get(key).format(value);
}

export function rounded(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (!(size >= 1e-4 && size < 1e9)) return value.toExponential(digits - 1).replace(/e([+-])(\d)$/, "e$10$2");
  const decimals = Math.max(digits - 1 - Math.floor(Math.log10(size)), 0);
  return formatted({ maximumFractionDigits: decimals, roundingMode: "halfEven" }, value);
}

// A time below a tenth of its display unit, in the unit that fits.
function timeOf(unit, scale, value) {
  if (!["s", "d"].includes(unit) || !value || Math.abs(value) / scale >= 0.1) return null;
  const time = value * TIMES.find(([, name]) => name === unit)[0];
  const [step, name] = TIMES.find(([limit]) => limit <= Math.abs(time)) ?? TIMES.at(-1);
  return [time / step, name];
}

// A time in the unit a reader would say it in: seconds below a minute, hours from two.
export function lasting(value) {
  const [size, unit] = value < 60 ? [1, "s"] : value < 7200 ? [60, "min"] : [3600, "h"];
  return text(["", "s", unit, size], value);
}

// words: label, unit, display unit, display scale, as in the page data. Same rules as Quantity.text of Python.
export function text([, unit, shown, scale = 1], value, digits = 3) {
  if (typeof value === "string") return value;
  if (value == null || !Number.isFinite(value)) return "–";
  if (unit === "year") return `${Number(value.toFixed(2))}`;
  const size = Math.abs(value);
  const brief = timeOf(unit, scale, value);
  if (brief) return `${rounded(brief[0], digits)} ${brief[1]}`;
  if (unit === "FLOP" && size >= 1e18) {
    const power = Math.floor(Math.log10(size * (1 + 0.5 * 10 ** -digits)));
    return `${rounded(value / 10 ** power, digits)} × 10${[...`${power}`].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")} FLOP`;
  }
  if (unit === "kWh") {
    const [step, name] = ENERGIES.find(([limit]) => size >= limit * 0.9995) ?? ENERGIES.at(-1);
    return `${rounded(value / step, digits)} ${name}`;
  }
  if (shown) return `${rounded(value / scale, digits)} ${shown}`;
  const named = unit === "1" ? "" : unit.replace("byte", "B");
  const steps = SI.has(unit) ? PREFIXES : ["USD", "1", "h"].includes(unit) ? LARGE : [];
  for (const [step, prefix] of steps) if (size >= step * 0.9995) return `${rounded(value / step, digits)} ${prefix}${named}`.trimEnd();
  return `${rounded(value, digits)} ${named}`.trimEnd();
}

// Two values as a range, with a shared unit given once: "48 to 187 million USD".
export function span(words, ends) {
  const [low, high] = ends.map((end) => text(words, end));
  const unit = high.slice(high.indexOf(" "));
  if (low === high) return high;
  return unit.startsWith(" ") && low.endsWith(unit) ? `${low.slice(0, -unit.length)} to ${high}` : `${low} to ${high}`;
}

// The text of a field: short, and parsed back to the same value.
export function typed(words, value, digits = 6) {
  const [, unit, shown, scale = 1] = words;
  if (typeof value === "string") return value.split("..").map((end) => typed(words, Number(end), digits)).join(" to ");
  const brief = timeOf(unit, scale, value);
  if (brief) return `${Number(brief[0].toPrecision(digits))} ${brief[1]}`;
  const [size, letter] = ["1", "USD"].includes(unit) && !shown ? ([[1e12, "T"], [1e9, "B"], [1e6, "M"]].find(([limit]) => Math.abs(value) >= limit) ?? [1, ""]) : [1, ""];
  const number = Number((value / (shown ? scale : size)).toPrecision(digits));
  if (SI.has(unit) && !shown) {
    const [step, prefix] = PREFIXES.find(([limit]) => Math.abs(value) >= limit) ?? [1, ""];
    return `${Number((value / step).toPrecision(digits))} ${prefix}${unit.replace("byte", "B")}`;
  }
  const magnitude = Math.abs(number);
  const plain = !magnitude || (magnitude >= 1e-4 && magnitude < 1e9);
  const printed = `${plain ? formatted({ maximumSignificantDigits: digits, useGrouping: unit === "year" ? false : "auto" }, number) : number.toExponential().replace("e+", "e")}${letter}`;
  const named = shown || (["1", "year"].includes(unit) ? "" : unit);
  return named ? `${printed} ${named}` : printed;
}

// The value of a text for a control, or an error with the expected format.
export function read(words, control, entry) {
  const [label, unit] = words;
  const [first, last] = entry.split(/\s+to\s+|\.\./);
  if (last !== undefined && control.spread) {
    const high = read(words, control, last);
    const low = read(words, control, /[a-z%$]/i.test(first) ? first : `${first} ${last.replace(/^[\d\s.,_]+(e[+-]?\d+)?/i, "")}`);
    if (!(low < high)) throw new Error(`${label} = '${entry}' is not a range; give the lower end first`);
    return `${low}..${high}`;
  }
  const spoken = ["1", "year"].includes(unit) && !words[2] ? "" : (Object.keys(control.units)[0] ?? unit);
  const example = spoken ? `a number with a unit, such as ${control.likely ? `60 ${control.likely}` : spoken === "USD" ? "30M USD" : `2 ${words[2] || spoken}`}` : "a number, such as 24k or 1e9";
  const match = NUMBER.exec(entry.trim().replaceAll("_", ""));
  if (!match || !/\d/.test(match[3])) throw new Error(`${label} = '${entry}' is no number; give ${example}`);
  const [, sign, money, digits, rest] = match;
  if (/^[.,]\d/.test(rest)) throw new Error(`${label} = '${entry}': write decimals with a point and thousands with commas`);
  if (control.likely === "d" && /^[-/]\d/.test(rest)) throw new Error(`${label} = '${entry}' is a date; give ${example}`);
  if (money && money !== "$") throw new Error(`${label} = '${entry}': currencies are not converted; give US dollars`);
  if (control.likely && !rest) throw new Error(`${label} = '${entry}' has no unit; give '${digits} ${control.likely}'`);
  if (control.binary && /^k$/i.test(rest)) throw new Error(`${label} = '${entry}' can be ${[1000, 1024].map((size) => formatted({}, Number(digits) * size)).join(" or ")}; write the number, or '${digits}Ki' for the latter`);
  const number = Number(`${sign}${digits.replaceAll(",", "")}`);
  const value = number * factor(label, example, control.units, money ? "USD" : "", rest.replaceAll(/\s+/g, ""));
  if (!holds(control.bounds, value)) throw new Error(`${label} = ${rounded(value)} is outside ${control.bounds}${hint(control.bounds, value, label, spoken)}`);
  if (control.whole && value % 1) throw new Error(`${label} = ${rounded(value)} is not whole`);
  return value;
}

// Money without its time, such as "$2.5", is a price in the unit of the quantity. Scales may be of either case: "15t", "10m".
function factor(label, example, units, money, written) {
  const rest = written.replace(/FLOPS$/i, "FLOP/s");
  const unit = `${money}${rest}`.replaceAll("$", "USD").replace(/^USDUSD/, "USD");
  const named = (entry) => (entry === "" || entry === "USD" ? 1 : units[Object.keys(units).find((key) => key === entry) ?? Object.keys(units).find((key) => key.toLowerCase() === entry.toLowerCase())]);
  if (named(unit) !== undefined) return named(unit);
  const scales = Object.keys(SCALES).toSorted((a, b) => b.length - a.length);
  const scale = scales.find((prefix) => rest.startsWith(prefix)) ?? scales.find((prefix) => rest.toLowerCase().startsWith(prefix.toLowerCase()));
  const after = scale === undefined ? undefined : named(`${money}${rest.slice(scale.length)}`.replaceAll("$", "USD"));
  if (after !== undefined) return SCALES[scale] * after;
  const known = Object.keys(units).slice(0, 6).join(", ");
  throw new Error(`${label}: '${rest}' is not one of its units${known ? ` (${known})` : ""}; give ${example}`);
}

function hint(bounds, value, label, spoken) {
  return bounds.endsWith("1]") && value > 1 && value <= 100 ? `; give a fraction, e.g. ${value / 100}, or ${value} %` : `${spoken ? `; give ${label} in ${spoken}` : ""}`;
}
