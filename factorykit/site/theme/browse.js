/* The rows of one table: filter, sort, choose columns, take away what is shown. Works from files. */
(function () {
  "use strict";
  var table = window.fkTable, fields = table.fields, data = [], low = [];
  var one = function (id) { return document.getElementById(id); };
  var led = fields.map(function (field, place) { return field.to ? place : -1; }).filter(function (place) { return place >= 0; });
  /* Columns become rows; a column of words that come again holds each once. */
  function add(columns) {
    var lists = columns.map(function (column) { return column.words ? column.at.map(function (at) { return column.words[at]; }) : column; });
    lists[0].forEach(function (_, n) {
      var row = lists.map(function (list) { return list[n]; });
      var names = led.map(function (place) { return (table.names[fields[place].to] || {})[row[place]] || ""; });
      data.push(row);
      low.push(row.concat(names).join("\u0001").toLowerCase());
    });
  }
  add(table.columns);
  /* The other parts of a large table are read, in order, once more is asked for than the first holds. */
  var read = 0, reading = false, asked = [];
  table.take = function (columns) {
    add(columns);
    read += 1;
    if (read < table.parts) return;
    draw();
    asked.splice(0).forEach(function (then) { then(); });
  };
  function whole(then) {
    if (then && read === table.parts) then();
    else if (then) asked.push(then);
    if (reading || !table.parts) return;
    reading = true;
    for (var part = 1; part <= table.parts; part += 1) {
      var script = document.createElement("script");
      script.async = false;
      script.src = table.table + "." + part + ".js";
      document.head.appendChild(script);
    }
  }
  var PAGE = 100;
  var state = { q: "", sort: -1, down: false, shown: PAGE, hidden: {} };
  var beside = { source: 1, locator: 1, as_of: 1, note: 1, statement: 1, preferred: 1, address: 1 };
  fields.forEach(function (field, place) { state.hidden[place] = table.shown.indexOf(field.name) < 0; });
  var first = fields.findIndex(function (field) { return field.name === table.first; });

  /* A thing is named by its name, which leads to its page; its key can be shown. */
  var key = fields.findIndex(function (field) { return field.name === table.own; });
  var named = key < 0 ? -1 : fields.findIndex(function (field) { return field.name === "name" || field.name === "title"; });
  if (named >= 0) { state.hidden[key] = true; state.hidden[named] = false; }

  function recall() {
    new URLSearchParams(location.hash.slice(1) || location.search.slice(1)).forEach(function (value, name) {
      if (name === "q") state.q = value.toLowerCase();
      if (name === "sort") {
        state.down = value[0] === "-";
        state.sort = fields.findIndex(function (field) { return field.name === value.replace(/^-/, ""); });
      }
    });
    one("q").value = state.q;
  }
  function keep() {
    var said = new URLSearchParams();
    if (state.q) said.set("q", state.q);
    if (state.sort >= 0) said.set("sort", (state.down ? "-" : "") + fields[state.sort].name);
    history.replaceState(null, "", said.toString() ? "#" + said : location.pathname + location.search);
  }
  function rows() {
    var words = state.q.split(/\s+/).filter(Boolean);
    var found = [];
    low.forEach(function (text, place) {
      if (words.every(function (word) { return text.indexOf(word) >= 0; })) found.push(data[place]);
    });
    var at = state.sort >= 0 ? state.sort : first, sign = state.sort < 0 || state.down ? -1 : 1;
    if (at >= 0) {
      found = found.slice().sort(function (a, b) {
        if (a[at] === null || b[at] === null) return (a[at] === null) - (b[at] === null);
        return sign * (fields[at].number ? a[at] - b[at] : String(a[at]).localeCompare(String(b[at])));
      });
    }
    return found;
  }
  function places() { return fields.map(function (_, place) { return place; }).filter(function (place) { return !state.hidden[place]; }); }
  var LETTERS = [[1e24, "Y"], [1e21, "Z"], [1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"]];
  var WORDS = [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]];
  function number(value, unit) {
    var size = Math.abs(value);
    var step = (/^(|USD|h|kWh)$/.test(unit) ? WORDS : LETTERS).find(function (pair) { return size >= pair[0] * 0.99995; });
    if (step) return Number((value / step[0]).toPrecision(4)).toLocaleString("en") + " " + step[1];
    if (size > 0 && size < 1e-3) return value.toExponential(2);
    return Number(value.toPrecision(6)).toLocaleString("en");
  }
  function cell(row, place) {
    var field = fields[place], value = row[place], td = document.createElement("td");
    if (field.number) td.className = "right";
    if (value === null) return td;
    var text = field.number ? number(value, field.unit) : String(value);
    var href = field.to ? (table.pages.indexOf(field.to) < 0 ? field.to + ".html?q=" + encodeURIComponent(value) : "../things/" + field.to + "/" + encodeURIComponent(value) + ".html")
      : place === key || place === named ? "../things/" + table.table + "/" + encodeURIComponent(row[key]) + ".html"
        : /^https?:\/\/\S+$/.test(text) ? text : "";
    if (href && !(field.to && /; /.test(text))) {
      var link = document.createElement("a");
      link.href = href;
      link.textContent = (field.to && (table.names[field.to] || {})[value]) || text;
      td.appendChild(link);
      var publisher = field.to === "sources" && table.publishers[value];
      if (publisher) {
        link = document.createElement("a");
        link.href = publisher;
        link.rel = "external";
        link.textContent = "page";
        link.setAttribute("aria-label", "Page of " + (table.names.sources[value] || value));
        td.append(" (", link, ")");
      }
    } else td.textContent = text;
    return td;
  }
  function draw() {
    if (state.q || state.sort >= 0 || state.shown > data.length) whole();
    var waits = reading && read < table.parts;
    var found = rows(), shown = places(), count = state.q || !table.parts || read === table.parts ? found.length : table.rows;
    var head = document.createElement("tr");
    shown.forEach(function (place) {
      var field = fields[place], th = document.createElement("th"), button = document.createElement("button");
      th.scope = "col";
      if (field.number) th.className = "right";
      th.setAttribute("aria-sort", state.sort !== place ? "none" : state.down ? "descending" : "ascending");
      button.type = "button";
      button.title = field.about;
      button.textContent = field.label + (field.unit ? " [" + field.unit + "]" : "") + (state.sort === place ? (state.down ? " ↓" : " ↑") : "");
      button.addEventListener("click", function () {
        state.down = state.sort === place ? !state.down : field.number;
        state.sort = place;
        keep();
        draw();
      });
      th.appendChild(button);
      head.appendChild(th);
    });
    one("head").replaceChildren(head);
    var body = document.createDocumentFragment();
    found.slice(0, state.shown).forEach(function (row) {
      var tr = document.createElement("tr");
      shown.forEach(function (place) { tr.appendChild(cell(row, place)); });
      body.appendChild(tr);
    });
    one("body").replaceChildren(body);
    one("count").textContent = count.toLocaleString("en") + (count === 1 ? " row" : " rows") + (waits ? " so far" : "") + ", " + Math.min(found.length, state.shown) + " shown; " + shown.length + " of " + fields.length + " columns";
    one("more").hidden = count <= state.shown;
    window.dispatchEvent(new Event("resize"));
  }
  function save(text, kind, end) {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: kind }));
    link.download = table.table + "." + end;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }
  function headed(place) { return fields[place].name + (fields[place].unit ? " [" + fields[place].unit + "]" : ""); }
  function csv() {
    var shown = places();
    var quoted = function (value) { return value === null ? "" : /[",\r\n]|^#/.test(String(value)) ? '"' + String(value).replace(/"/g, '""') + '"' : String(value); };
    var lines = [shown.map(headed).concat("credit").map(quoted).join(",")];
    rows().forEach(function (row) { lines.push(shown.map(function (place) { return quoted(row[place]); }).concat(quoted(table.credit)).join(",")); });
    save(lines.join("\n") + "\n", "text/csv", "csv");
  }
  function json() {
    var shown = places();
    var content = { table: table.table, credit: table.credit, address: location.href, fields: shown.map(function (place) { return { name: fields[place].name, unit: fields[place].unit, meaning: fields[place].about }; }) };
    content.rows = rows().map(function (row) { return Object.fromEntries(shown.map(function (place) { return [fields[place].name, row[place]]; })); });
    save(JSON.stringify(content, null, 1), "application/json", "json");
  }
  one("csv").addEventListener("click", function () { whole(csv); });
  one("json").addEventListener("click", function () { whole(json); });
  fields.forEach(function (field, place) {
    var box = document.createElement("label"), input = document.createElement("input");
    input.type = "checkbox";
    input.checked = !state.hidden[place];
    input.addEventListener("change", function () { state.hidden[place] = !input.checked; draw(); });
    box.append(input, " " + field.label + (beside[field.name] ? " (of the row)" : ""));
    one("columns").appendChild(box);
  });
  one("q").addEventListener("input", function () {
    state.q = one("q").value.toLowerCase();
    state.shown = PAGE;
    keep();
    draw();
  });
  one("more").addEventListener("click", function () { state.shown += 5 * PAGE; draw(); });
  window.addEventListener("hashchange", function () { recall(); draw(); });
  recall();
  draw();
})();
