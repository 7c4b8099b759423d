(function () {
  var system = matchMedia("(prefers-color-scheme: dark)");
  function set() {
    var kept = null;
    try { kept = localStorage.getItem("site-theme"); } catch { /* private window */ }
    document.documentElement.dataset.theme = kept || (system.matches ? "dark" : "light");
  }
  set();
  system.addEventListener("change", set);
})();
