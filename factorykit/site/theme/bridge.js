/* What both renderers' pages need. Quarto says "dark" by a class on body; charts and the shared style sheet read
   data-theme and wait for an event. Whatever scrolls sideways can be reached by keyboard, and a table that is cut says so. */
(function () {
  function tell() {
    if (!/\bquarto-(light|dark)\b/.test(document.body.className)) return;
    var name = document.body.classList.contains("quarto-dark") ? "dark" : "light";
    if (document.documentElement.dataset.theme === name) return;
    document.documentElement.dataset.theme = name;
    window.dispatchEvent(new CustomEvent("factorykit:theme", { detail: { theme: name } }));
  }
  function reachable() {
    document.querySelectorAll(".fk-scroll, .scroll, pre, .fk-equation, .fk-wide, math[display=block]").forEach(function (box) {
      var cut = box.scrollWidth > box.clientWidth + 1;
      if (cut) { box.tabIndex = 0; } else { box.removeAttribute("tabindex"); }
      box.classList.toggle("fk-cut", cut && /scroll/.test(box.className));
    });
  }
  /* What an address names is shown, folds around it opened. */
  function unfold() {
    var target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.closest("details:not([open])")) return;
    for (var fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  }
  function start() {
    tell();
    unfold();
    addEventListener("hashchange", unfold);
    new MutationObserver(tell).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    reachable();
    addEventListener("resize", reachable);
    document.addEventListener("toggle", reachable, true);
    document.addEventListener("shown.bs.collapse", reachable);
  }
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
