// Numbers as text, and as places of a range input.

// Four significant digits, or whole numbers from ten thousand on; thousands separated.
export function number(value) {
  if (value == null || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size >= 1e15 || (size && size < 1e-4)) return value.toExponential(3);
  return value.toLocaleString("en", size >= 1e4 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 });
}

// Places are whole numbers from 0 to steps; values keep three significant digits once moved, or double.
export function position({ min, max, scale, steps }, value) {
  const part = scale === "linear" ? (value - min) / (max - min) : Math.log(value / min) / Math.log(max / min);
  return Math.round(Math.min(Math.max(part, 0), 1) * steps);
}

export function valueAt({ min, max, scale, whole, steps }, place) {
  if (place <= 0) return min;
  if (place >= steps) return max;
  if (scale === "doubling") return min * 2 ** place;
  const part = place / steps;
  const value = Number((scale === "log" ? min * (max / min) ** part : min + part * (max - min)).toPrecision(3));
  return whole ? Math.round(value) : value;
}
