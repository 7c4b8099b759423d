// A page that computes in a worker of its own script.
import { make } from "../../charts/runtime/dom.mjs";

// The engine in a worker of the same file. A page opened from a file cannot start one; there the engine runs in the page.
export function worker({ address, serve }) {
  if (location.protocol !== "file:") return new Worker(address);
  const { port1, port2 } = new MessageChannel();
  serve(port1);
  return port2;
}

// Puts a style on the page and something at each of its places, as soon as they are there.
export function placed(style, places, put) {
  document.head.append(make("style", {}, style));
  const all = () => document.querySelectorAll(places).forEach((place) => put(place));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
}
