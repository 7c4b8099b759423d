/* The month up to which the map shows clusters, each at its phase of then; the address keeps it, and it can play. */
(function () {
  "use strict";
  var marks = Array.prototype.map.call(document.querySelectorAll(".world a"), function (link) {
    var phases = link.dataset.phases.trim().split(" ").map(function (phase) { return { month: phase.split(":")[0], power: Number(phase.split(":")[1]) }; });
    return { link: link, circle: link.querySelector("circle"), phases: phases };
  });
  var slider = document.getElementById("month"), largest = document.getElementById("largest"), shown = largest.children.length, playing = 0;
  var months = Array.from(new Set(marks.flatMap(function (mark) { return mark.phases.map(function (phase) { return phase.month; }); }))).sort();
  function text(power) { return power >= 1e9 ? (power / 1e9).toPrecision(3) + " GW" : Number((power / 1e6).toPrecision(3)) + " MW"; }
  function item(mark) {
    var row = document.createElement("li"), link = document.createElement("a");
    link.href = mark.link.href.baseVal || mark.link.getAttribute("href");
    link.textContent = mark.link.dataset.name;
    row.append(link, ": " + text(mark.now.power) + ", at this size since " + mark.now.month);
    return row;
  }
  function draw() {
    var month = months[slider.value], power = 0;
    marks.forEach(function (mark) {
      mark.now = mark.phases.filter(function (phase) { return phase.month <= month; }).pop();
      mark.link.style.display = mark.now ? "" : "none";
      if (!mark.now) return;
      mark.circle.setAttribute("r", (Math.sqrt(mark.now.power / 3e6) + 1).toFixed(1));
      power += mark.now.power;
    });
    var there = marks.filter(function (mark) { return mark.now; }).sort(function (a, b) { return b.now.power - a.now.power; });
    document.getElementById("shown").textContent = month + ": " + there.length + " clusters, " + (power / 1e9).toFixed(2) + " GW";
    largest.replaceChildren.apply(largest, there.slice(0, shown).map(item));
  }
  function stop() { clearInterval(playing); playing = 0; document.getElementById("play").textContent = "Play"; }
  slider.max = months.length - 1;
  slider.value = Math.max(months.indexOf(location.hash.slice(1)), 0) || slider.max;
  slider.addEventListener("input", function () { draw(); history.replaceState(null, "", "#" + months[slider.value]); });
  document.getElementById("play").addEventListener("click", function () {
    if (playing) { stop(); return; }
    if (slider.value === slider.max) slider.value = 0;
    this.textContent = "Pause";
    playing = setInterval(function () { slider.value = Number(slider.value) + 1; draw(); if (slider.value === slider.max) stop(); }, 150);
  });
  document.getElementById("play").hidden = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (months.length) draw();
})();
