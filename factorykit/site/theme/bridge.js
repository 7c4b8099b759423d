/* What both renderers' pages need. Quarto says "dark" by a class on body; charts and the shared style sheet read
   data-theme and wait for an event. Whatever scrolls sideways can be reached by keyboard, and a table that is cut says so. */
(function () {
  var root = document.currentScript.src.replace(/(site_libs|entities\/assets)\/bridge\.js.*$/, "");
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
  /* Code and checks of a notebook are folded behind one control; a link to one of them shows it. */
  function control() {
    var folds = document.querySelectorAll("details.code-fold"), title = document.querySelector("main header, #title-block-header");
    if (!folds.length || !title) return;
    var button = document.createElement("button");
    function show(on) {
      folds.forEach(function (fold) { fold.open = on; });
      button.setAttribute("aria-pressed", String(on));
    }
    button.type = "button";
    button.className = "fk-code";
    button.textContent = "Code and checks";
    button.addEventListener("click", function () { show(button.getAttribute("aria-pressed") !== "true"); });
    show(false);
    title.append(button);
  }
  /* What Quarto's buttons do, which the policy of a page lets no attribute say. */
  var DOES = { scheme: "quartoToggleColorScheme", headroom: "quartoToggleHeadroom" };
  function pressed(event) {
    var button = event.target.closest("[data-fk-does]"), does = button && window[DOES[button.dataset.fkDoes]];
    if (button && button.dataset.fkDoes === "scheme") event.preventDefault();
    if (does) does();
  }
  /* Without their script charts stay as they are. */
  function still() {
    if (window.factorykit) return;
    document.querySelectorAll(".factorykit-chart").forEach(function (chart) {
      var note = document.createElement("p");
      note.setAttribute("role", "status");
      note.textContent = "A still picture: the script that makes this chart live did not load.";
      chart.append(note);
    });
  }
  /* On the landing page the script of the charts loads when its chart comes near. */
  function later(chart) {
    new IntersectionObserver(function (entries, observer) {
      if (!entries.some(function (entry) { return entry.isIntersecting; })) return;
      observer.disconnect();
      var script = document.createElement("script");
      script.onerror = still;
      script.src = chart.dataset.charts;
      document.head.append(script);
    }, { rootMargin: "1800px" }).observe(chart);
  }
  /* Where several versions are published, the header has a menu of them, which leads to the same page. The file that
     names them lies beside the site's script; a site built by hand has one version. */
  function versions(list) {
    var header = document.querySelector(".top-in, .navbar .navbar-container"), select = document.createElement("select");
    if (list.length < 2 || !header) return;
    select.style.cssText = "font: inherit; font-size: 0.85rem; color: inherit; background: var(--paper, Canvas); max-width: 7rem; border-radius: 6px";
    select.setAttribute("aria-label", "Version");
    list.forEach(function (release) {
      var folder = new URL(release.href, root).href;
      select.add(new Option(release.version, folder, false, folder === root));
    });
    select.addEventListener("change", function () { location.href = select.value + location.href.slice(root.length); });
    header.insertBefore(select, header.querySelector(".find, #quarto-search"));
  }
  function start() {
    if (window.fkVersions) versions(window.fkVersions);
    var chart = document.querySelector("[data-charts]");
    tell();
    if (chart) later(chart);
    else addEventListener("load", still);
    document.addEventListener("click", pressed);
    control();
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
