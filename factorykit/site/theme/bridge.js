/* Quarto says "dark" by a class on body; charts and the shared style sheet read data-theme and wait for an event. */
(function () {
  function tell() {
    if (!document.body || !/\bquarto-(light|dark)\b/.test(document.body.className)) return;
    var name = document.body.classList.contains("quarto-dark") ? "dark" : "light";
    if (document.documentElement.dataset.theme === name) return;
    document.documentElement.dataset.theme = name;
    window.dispatchEvent(new CustomEvent("factorykit:theme", { detail: { theme: name } }));
  }
  function start() {
    tell();
    new MutationObserver(tell).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  }
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
