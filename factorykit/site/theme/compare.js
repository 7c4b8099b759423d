/* Entities of one kind side by side. The address holds the kind and the keys: #accelerators/b200,h100_sxm. */
(function () {
  "use strict";
  var MOST = 5, data = window.fkCompared, chosen = [];
  var byId = function (id) { return document.getElementById(id); };
  function made(tag, text, parent) { var node = document.createElement(tag); node.textContent = text; if (parent) parent.appendChild(node); return node; }
  function rows() { return data[byId("kind").value].rows; }
  function recall() {
    var parts = (location.hash.slice(1) ? decodeURIComponent(location.hash.slice(1)) : new URLSearchParams(location.search).get("of") || "").split("/");
    if (Object.hasOwn(data, parts[0])) byId("kind").value = parts[0];
    chosen = (parts[1] || "").split(",").filter(function (key, place, all) { return Object.hasOwn(rows(), key) && all.indexOf(key) === place; }).slice(0, MOST);
    draw();
  }
  function keep() {
    history.replaceState(null, "", "#" + byId("kind").value + (chosen.length ? "/" + chosen.join(",") : ""));
    draw();
  }
  function cell(tr, value, top) {
    var td = made("td", value === null ? "–" : Array.isArray(value) ? value[1] : value, tr);
    if (!Array.isArray(value) || top <= 0) return;
    var bar = made("meter", "", td);
    bar.max = top;
    bar.value = Math.max(0, value[0]);
    bar.setAttribute("aria-hidden", "true");
  }
  function draw() {
    var known = rows(), table = byId("compared"), kind = byId("kind").value;
    byId("choices").replaceChildren();
    Object.keys(known).forEach(function (key) { made("option", "", byId("choices")).value = known[key][0]; });
    byId("chosen").replaceChildren();
    chosen.forEach(function (key) {
      var button = made("button", known[key][0] + " ×", byId("chosen"));
      button.type = "button";
      button.setAttribute("aria-label", "Remove " + known[key][0]);
      button.addEventListener("click", function () { chosen = chosen.filter(function (other) { return other !== key; }); keep(); });
    });
    byId("state").textContent = chosen.length < 2 ? "Choose two to five." : chosen.length === MOST ? "Five are the most." : "";
    table.replaceChildren();
    if (!chosen.length) return;
    var head = made("tr", "", made("thead", "", table));
    made("td", "", head);
    chosen.forEach(function (key) { var link = made("a", known[key][0], made("th", "", head)); link.href = kind + "/" + encodeURIComponent(key) + ".html"; });
    var body = made("tbody", "", table);
    data[kind].fields.forEach(function (label, place) {
      var values = chosen.map(function (key) { return known[key][place + 1]; });
      if (values.every(function (value) { return value === null; })) return;
      var tr = made("tr", "", body), top = Math.max.apply(null, values.map(function (value) { return Array.isArray(value) ? value[0] : 0; }));
      made("th", label, tr).scope = "row";
      values.forEach(function (value) { cell(tr, value, top); });
    });
  }
  byId("kind").addEventListener("change", function () { chosen = []; keep(); });
  byId("pick").addEventListener("change", function () {
    var known = rows(), wanted = byId("pick").value.toLowerCase();
    var key = Object.keys(known).find(function (candidate) { return known[candidate][0].toLowerCase() === wanted || candidate === wanted; });
    if (!key || chosen.length >= MOST) return;
    if (chosen.indexOf(key) < 0) chosen.push(key);
    byId("pick").value = "";
    keep();
  });
  window.addEventListener("hashchange", recall);
  recall();
})();
