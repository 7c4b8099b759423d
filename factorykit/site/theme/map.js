/* The month up to which the map shows clusters; the address keeps it, and it can play. */
(function () {
  "use strict";
  var marks = Array.prototype.slice.call(document.querySelectorAll(".world a")), slider = document.getElementById("month");
  var months = Array.from(new Set(marks.map(function (mark) { return mark.dataset.since; }))).sort(), playing = 0;
  function draw() {
    var month = months[slider.value], power = 0, count = 0;
    marks.forEach(function (mark) {
      var there = mark.dataset.since <= month;
      mark.style.display = there ? "" : "none";
      if (there) { power += Number(mark.dataset.power); count += 1; }
    });
    document.getElementById("shown").textContent = month + ": " + count + " clusters, " + (power / 1e9).toFixed(2) + " GW";
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
