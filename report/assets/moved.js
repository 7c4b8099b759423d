/* Leads from an address that was left to the one that took its place, to the same part of it. */
(function () {
  var [page, part] = document.currentScript.dataset.to.split("#");
  location.replace(page + (location.hash || "#" + part));
})();
