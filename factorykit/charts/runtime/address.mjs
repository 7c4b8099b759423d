// The state of charts in the address of a page: "#run:mfu=0.4&tokens=1e13;build:pue=1.2", several side by side.

function parts(hash) {
  let text = hash.replace(/^#/, "");
  try {
    text = decodeURIComponent(text);
  } catch {
    /* cut within a sign: what it holds is read as it stands, and refused where it is no value */
  }
  const pairs = text.split(";").map((part) => part.split(/:(.*)/s));
  return pairs.filter(([key, rest]) => key && rest?.includes("="));
}

// The values an address holds for a chart, or null where it says nothing of it. What is no number stays a word, and so
// does what is given twice.
export function recalled(hash, key) {
  const part = parts(hash).find(([name]) => name === key);
  if (!part) return null;
  const entries = new URLSearchParams(part[1]);
  const words = [...new Set(entries.keys())].map((name) => [name, entries.getAll(name).join(" and ")]).filter(([, text]) => text.trim() !== "");
  return Object.fromEntries(words.map(([name, text]) => [name, Number.isNaN(Number(text)) ? text : Number(text)]));
}

// The address with the values of one chart in place of what it held for it.
export function remembered(hash, key, values) {
  const state = Object.entries(values).map(([name, value]) => `${name}=${value}`).join("&");
  const others = parts(hash).filter(([name]) => name !== key).map(([name, text]) => `${name}:${text}`);
  return `#${[...others, `${key}:${state}`].join(";")}`;
}
