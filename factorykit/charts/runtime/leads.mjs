// Words that lead somewhere: the site says which of a chart do; elsewhere none does.
import { make } from "./dom.mjs";

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// A text as nodes: known words are links, the longest first.
export function led(text, leads = {}) {
  const known = Object.keys(leads).filter((word) => text.includes(word)).sort((a, b) => b.length - a.length);
  if (!known.length) return [text];
  const parts = text.split(new RegExp(`(?<!\\w)(${known.map(literal).join("|")})(?!\\w)`));
  return parts.map((part) => (Object.hasOwn(leads, part) ? link(leads[part]) : part));
}

export function link([words, address]) {
  return make("a", { href: address }, words);
}

// The words of a known name, the name itself elsewhere.
export function worded(name, leads = {}) {
  return Object.hasOwn(leads, name) ? leads[name][0] : name;
}
