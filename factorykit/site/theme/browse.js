/* The rows of one table: filter by column, sort, choose and pin columns, download the filtered rows. Works from files. */
(function () {
  "use strict";
  var table = window.fkTable, fields = table.fields, data = [], low = [];
  var byId = function (id) { return document.getElementById(id); };
  var place = function (name) { return fields.findIndex(function (field) { return field.name === name; }); };
  var every = fields.map(function (_, at) { return at; });
  var linked = every.filter(function (at) { return fields[at].to; });
  function make(tag, words, parts) {
    var node = Object.assign(document.createElement(tag), words);
    node.append.apply(node, parts || []);
    return node;
  }
  /* Columns become rows; a column of repeated words holds each once. */
  function add(columns) {
    var lists = columns.map(function (column) { return column.words ? column.at.map(function (at) { return column.words[at]; }) : column; });
    lists[0].forEach(function (_, n) {
      var row = lists.map(function (list) { return list[n]; });
      data.push(row);
      low.push(row.concat(linked.map(function (at) { return (table.names[fields[at].to] || {})[row[at]] || ""; })).join("\u0001").toLowerCase());
    });
  }
  add(table.columns);
  /* The other parts of a large table are read, in order, once more is asked for than the first holds. */
  var read = 0, reading = false, waiting = [];
  table.take = function (columns) {
    add(columns);
    read += 1;
    if (read < table.parts) return;
    draw();
    waiting.splice(0).forEach(function (then) { then(); });
  };
  function whole(then) {
    if (then && read === table.parts) then();
    else if (then) waiting.push(then);
    if (reading || !table.parts) return;
    reading = true;
    for (var part = 1; part <= table.parts; part += 1) {
      document.head.appendChild(make("script", { async: false, src: table.table + "." + part + ".js" }));
    }
  }

  /* The state, which the address keeps: text, order, columns, pinned columns, and a filter per column. */
  var PAGE = 100, state;
  var first = place(table.first), key = place(table.own), named = place(table.named);
  function recall() {
    state = { q: "", sort: -1, down: false, shown: PAGE, columns: table.shown.map(place), pins: key < 0 ? [] : [named], filters: {} };
    new URLSearchParams(location.hash.slice(1) || location.search.slice(1)).forEach(function (value, name) {
      var listed = value.split(",").map(place).filter(function (at) { return at >= 0; });
      if (name === "q") state.q = value.toLowerCase();
      else if (name === "sort") { state.down = value[0] === "-"; state.sort = place(value.replace(/^-/, "")); }
      else if (name === "columns") state.columns = listed.length ? listed : state.columns;
      else if (name === "pins") state.pins = listed;
      else if (place(name) >= 0) state.filters[place(name)] = fields[place(name)].kind === "number" ? numbersOf(value, fields[place(name)]) : value;
    });
    byId("q").value = state.q;
  }
  function keep() {
    var params = new URLSearchParams(), names = function (list) { return list.map(function (at) { return fields[at].name; }).join(","); };
    if (state.q) params.set("q", state.q);
    if (state.sort >= 0) params.set("sort", (state.down ? "-" : "") + fields[state.sort].name);
    if (names(state.columns) !== table.shown.join(",")) params.set("columns", names(state.columns));
    if (names(state.pins) !== (key < 0 ? "" : table.named)) params.set("pins", names(state.pins));
    Object.keys(state.filters).forEach(function (at) { params.set(fields[at].name, state.filters[at]); });
    history.replaceState(null, "", location.pathname + (params.toString() ? "#" + params : ""));
  }
  /* A filter is text: `100..500` for numbers, `2024..2025-06` for dates, `existing~planned` for categories, else words. */
  function test(at) {
    var field = fields[at], filter = state.filters[at], ends = filter.split(".."), from = ends[0], to = ends.length > 1 ? ends[1] : from;
    if (field.kind === "number") return function (row) {
      return row[at] !== null && (from === "" || row[at] >= Number(from)) && (to === "" || row[at] <= Number(to));
    };
    if (field.kind === "date") return function (row) {
      return row[at] !== null && (from === "" || row[at] >= from) && (to === "" || row[at].slice(0, to.length) <= to);
    };
    if (field.kind === "category") {
      var some = filter.split("~");
      return function (row) { return some.indexOf(row[at] === null ? "" : row[at]) >= 0; };
    }
    return function (row) { return (row[at] + " " + ((table.names[field.to] || {})[row[at]] || "")).toLowerCase().indexOf(filter.toLowerCase()) >= 0; };
  }
  function rows() {
    var words = state.q.split(/\s+/).filter(Boolean), tests = Object.keys(state.filters).map(function (at) { return test(Number(at)); });
    var matching = data.filter(function (row, n) {
      return words.every(function (word) { return low[n].indexOf(word) >= 0; }) && tests.every(function (passes) { return passes(row); });
    });
    var at = state.sort >= 0 ? state.sort : first, sign = state.sort < 0 || state.down ? -1 : 1;
    if (at >= 0) matching.sort(function (a, b) {
      if (a[at] === null || b[at] === null) return (a[at] === null) - (b[at] === null);
      return sign * (fields[at].kind === "number" ? a[at] - b[at] : String(a[at]).localeCompare(String(b[at])));
    });
    return matching;
  }
  /* Pinned columns come first. */
  function places() {
    return state.pins.concat(state.columns.filter(function (at) { return state.pins.indexOf(at) < 0; }));
  }

  var WORDS = [[1e12, " trillion"], [1e9, " billion"], [1e6, " million"]];
  function number(value, field) {
    var size = Math.abs(value), word = field.words && WORDS.find(function (pair) { return size >= pair[0] * 0.9995; });
    var digits = function (shown) {
      var decimals = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(shown) || 1)));
      return Number(shown.toFixed(decimals)).toLocaleString("en", { maximumFractionDigits: decimals });
    };
    if (field.unit === "a") return String(value);
    if (word) return digits(value / word[0]) + word[1];
    if (value && (size >= 1e15 * field.scale || size < 1e-4)) {
      var parts = value.toExponential(2).split("e");
      return Number(parts[0]) + " × 10" + parts[1].replace("+", "").replace(/./g, function (digit) { return digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]; });
    }
    return Number.isInteger(value) && field.scale === 1 ? value.toLocaleString("en") : digits(value / field.scale);
  }
  /* A number as people write it, in the unit of the header or with its own: 100, 2.5 k, 700 W, 1e25, 3 billion. */
  var SIZES = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, thousand: 1e3, million: 1e6, billion: 1e9, trillion: 1e12 };
  function typed(text, field) {
    var match = /^\s*(-?[\d.,]+(?:e[+-]?\d+)?)\s*(.*?)\s*$/i.exec(text), rest = match && match[2];
    if (!match) return "";
    var size = rest === "" || rest === field.unit ? field.scale : rest === field.base ? 1 : SIZES[rest.split(" ")[0]] || SIZES[rest[0]] || 1;
    var value = Number((Number(match[1].replace(/,/g, "")) * size).toPrecision(12));
    return isNaN(value) ? "" : String(value);
  }
  /* The ends of a filter in an address: numbers in the unit of the data, or as people write them. */
  function numbersOf(filter, field) {
    return filter.split("..").map(function (end) { return end === "" || !isNaN(Number(end)) ? end : typed(end, field); }).join("..");
  }
  function cell(row, at) {
    var field = fields[at], value = row[at], td = make("td", { className: field.kind === "number" ? "right" : "" });
    if (value === null) return td;
    var text = field.kind === "number" ? number(value, field) : String(value);
    var href = field.to ? (table.pages.indexOf(field.to) < 0 ? field.to + ".html?q=" + encodeURIComponent(value) : "../entities/" + field.to + "/" + encodeURIComponent(value) + ".html")
      : at === key || at === named && key >= 0 ? "../entities/" + table.table + "/" + encodeURIComponent(row[key]) + ".html"
        : /^https?:\/\/\S+$/.test(text) ? text : "";
    if (href && !(field.to && /; /.test(text))) {
      var parts = [make("a", { href: href, textContent: (field.to && (table.names[field.to] || {})[value]) || text })];
      var publisher = field.to === "sources" && table.publishers[value];
      if (publisher) {
        var link = make("a", { href: publisher, rel: "external", textContent: "page" });
        link.setAttribute("aria-label", "Page of " + (table.names.sources[value] || value));
        parts.push(" (", link, ")");
      }
      td.append(make("div", {}, parts));
    } else td.append(field.kind === "number" ? text : make("div", { textContent: text }));
    return td;
  }
  function title(field) { return field.label + (field.unit ? " [" + field.unit + "]" : ""); }

  function draw() {
    var filtered = state.q || Object.keys(state.filters).length;
    if (filtered || state.sort >= 0 || state.shown > data.length) whole();
    var matching = rows(), shown = places(), count = filtered || !table.parts || read === table.parts ? matching.length : table.rows;
    byId("head").replaceChildren(make("tr", {}, shown.map(function (at) {
      var field = fields[at], sorted = state.sort === at, th = make("th", { scope: "col", className: field.kind === "number" ? "right" : "" });
      th.setAttribute("aria-sort", !sorted ? "none" : state.down ? "descending" : "ascending");
      var sort = make("button", { type: "button", title: field.about, textContent: title(field) + (sorted ? (state.down ? " ↓" : " ↑") : "") });
      sort.addEventListener("click", function () { order(at, sorted ? !state.down : field.kind === "number"); changed(); });
      var menu = make("button", { type: "button", className: "filter", textContent: state.filters[at] === undefined ? "⋯" : "▼" });
      menu.setAttribute("aria-label", "Filter " + field.label);
      menu.addEventListener("click", function () { open(at); });
      th.append(sort, "\u00a0", menu);
      return th;
    })));
    byId("body").replaceChildren.apply(byId("body"), matching.slice(0, state.shown).map(function (row) {
      return make("tr", {}, shown.map(function (at) { return cell(row, at); }));
    }));
    var chips = Object.keys(state.filters).map(function (at) {
      var button = make("button", { type: "button", textContent: fields[at].label + ": " + described(Number(at)) + " ×" });
      button.setAttribute("aria-label", "Remove the filter of " + fields[at].label);
      button.addEventListener("click", function () { delete state.filters[at]; changed(); });
      return button;
    });
    byId("filters").replaceChildren.apply(byId("filters"), chips);
    byId("count").textContent = count.toLocaleString("en") + (count === 1 ? " row" : " rows") + (reading && read < table.parts ? " so far" : "") + ", " + Math.min(matching.length, state.shown) + " shown; " + shown.length + " of " + fields.length + " columns";
    byId("more").hidden = count <= state.shown;
    pin();
    window.dispatchEvent(new Event("resize"));
  }
  function pin() {
    var left = 0, heads = byId("head").rows[0].cells;
    state.pins.forEach(function (_, n) {
      [heads[n]].concat(Array.from(byId("body").rows, function (row) { return row.cells[n]; })).forEach(function (node) {
        node.classList.add("pinned");
        node.style.left = left + "px";
      });
      left += heads[n].offsetWidth;
    });
  }
  function described(at) {
    var field = fields[at], filter = state.filters[at];
    if (field.kind === "category") return filter.split("~").map(function (name) { return name || "empty"; }).join(", ");
    if (field.kind !== "number") return filter;
    var ends = filter.split("..").map(function (end) { return end && number(Number(end), field) + (field.unit ? " " + field.unit : ""); });
    return ends.length < 2 ? ends[0] : ends[0] && ends[1] ? ends.join(" to ") : ends[0] ? "at least " + ends[0] : "at most " + ends[1];
  }
  function changed() { state.shown = PAGE; keep(); draw(); }
  function order(at, down) { state.sort = at; state.down = down; }
  function remove(list, at) { if (list.indexOf(at) >= 0) list.splice(list.indexOf(at), 1); }

  /* The dialog of one column: order, pin, hide, and a filter that fits its kind. */
  var dialog = byId("column");
  function open(at) {
    var field = fields[at], pinned = state.pins.indexOf(at) >= 0, shown = places().indexOf(at) >= 0, button = function (text, act) {
      var node = make("button", { type: "button", textContent: text });
      node.addEventListener("click", function () { act(); changed(); dialog.close(); });
      return node;
    };
    var filter = function (value) { if (value === "" || value === "..") delete state.filters[at]; else state.filters[at] = value; changed(); };
    var tools = make("p", { className: "tools" }, [
      button(field.kind === "number" ? "Smallest first" : "A to Z", function () { order(at, false); }),
      button(field.kind === "number" ? "Largest first" : "Z to A", function () { order(at, true); }),
      pinned ? button("Unpin", function () { remove(state.pins, at); }) : button("Pin", function () { state.pins.push(at); }),
      shown ? button("Hide", function () { remove(state.pins, at); remove(state.columns, at); }) : button("Show", function () { state.columns.push(at); }),
    ]);
    whole(function () {
      var values = data.map(function (row) { return row[at]; }).filter(function (value) { return value !== null; }), controls;
      if (field.kind === "category") {
        var counts = {}, kept = (state.filters[at] === undefined ? "" : state.filters[at]).split("~"), any = state.filters[at] !== undefined;
        data.forEach(function (row) { var name = row[at] === null ? "" : row[at]; counts[name] = (counts[name] || 0) + 1; });
        controls = Object.keys(counts).sort(function (a, b) { return counts[b] - counts[a]; }).map(function (name) {
          var box = make("input", { type: "checkbox", value: name, checked: any && kept.indexOf(name) >= 0 });
          box.addEventListener("change", function () {
            var chosen = Array.from(dialog.querySelectorAll("input:checked"), function (option) { return option.value; });
            if (chosen.length) { state.filters[at] = chosen.join("~"); changed(); } else filter("");
          });
          return make("label", {}, [box, " " + ((table.names[field.to] || {})[name] || name || "empty") + " (" + counts[name].toLocaleString("en") + ")"]);
        });
      } else if (field.kind === "text") {
        var words = make("input", { type: "text", value: state.filters[at] || "" });
        words.addEventListener("input", function () { filter(words.value.trim()); });
        controls = [make("label", {}, ["Contains ", words])];
      } else {
        values.sort(field.kind === "number" ? function (a, b) { return a - b; } : undefined);
        var ends = (state.filters[at] || "..").split(".."), show = function (value) { return !value && value !== 0 ? "" : field.kind === "number" ? String(Number((value / field.scale).toPrecision(6))) : value; };
        var inputs = ["From", "To"].map(function (_, n) {
          var input = make("input", { type: "text", value: show(ends[n]), placeholder: field.kind === "number" ? number(values[n ? values.length - 1 : 0] || 0, field) : values[n ? values.length - 1 : 0] || "" });
          input.addEventListener("input", function () {
            var bounds = inputs.map(function (bound) { return field.kind === "number" ? typed(bound.value, field) : bound.value.trim(); });
            filter(bounds.join(".."));
          });
          return input;
        });
        controls = inputs.map(function (input, n) { return make("label", {}, [n ? "To " : "From ", input]); });
      }
      byId("column-filter").replaceChildren.apply(byId("column-filter"), controls);
    });
    byId("column-name").textContent = title(field);
    byId("column-about").textContent = field.about;
    byId("column-tools").replaceChildren(tools);
    dialog.showModal();
  }
  dialog.addEventListener("click", function (event) { if (event.target === dialog) dialog.close(); });

  function save(text, kind, end) {
    var link = make("a", { href: URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type: kind })), download: table.table + "." + end });
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }
  function csv() {
    var shown = places();
    var quoted = function (value) { return value === null ? "" : /[",\r\n]|^#/.test(String(value)) ? '"' + String(value).replace(/"/g, '""') + '"' : String(value); };
    var lines = [shown.map(function (at) { return fields[at].name + (fields[at].base ? " [" + fields[at].base + "]" : ""); }).concat("credit").map(quoted).join(",")];
    rows().forEach(function (row) { lines.push(shown.map(function (at) { return quoted(row[at]); }).concat(quoted(table.credit)).join(",")); });
    save(lines.join("\n") + "\n", "text/csv", "csv");
  }
  function json() {
    var shown = places();
    var content = { table: table.table, credit: table.credit, address: location.href, fields: shown.map(function (at) { return { name: fields[at].name, unit: fields[at].base, meaning: fields[at].about }; }) };
    content.rows = rows().map(function (row) { return Object.fromEntries(shown.map(function (at) { return [fields[at].name, row[at]]; })); });
    save(JSON.stringify(content, null, 1), "application/json", "json");
  }
  function parquet() {
    if (!window.fkParquet) {
      document.head.appendChild(make("script", { src: "../entities/assets/parquet.js", onload: parquet }));
      return;
    }
    var shown = rows(), columns = places().map(function (at) {
      return { name: fields[at].name, number: fields[at].kind === "number", values: shown.map(function (row) { return row[at]; }) };
    });
    var units = Object.fromEntries(places().map(function (at) { return [fields[at].name, fields[at].base || "1"]; }));
    save(window.fkParquet(columns, { table: table.table, credit: table.credit, address: location.href, units: JSON.stringify(units) }), "", "parquet");
  }
  byId("parquet").addEventListener("click", function () { whole(parquet); });
  byId("csv").addEventListener("click", function () { whole(csv); });
  byId("json").addEventListener("click", function () { whole(json); });
  byId("columns").append.apply(byId("columns"), fields.map(function (field, at) {
    var button = make("button", { type: "button", textContent: field.label, title: field.about });
    button.addEventListener("click", function () { open(at); });
    return button;
  }));
  byId("body").addEventListener("click", function (event) { if (!event.target.closest("a")) event.target.closest("tr").classList.toggle("whole"); });
  byId("q").addEventListener("input", function () { state.q = byId("q").value.toLowerCase(); changed(); });
  byId("more").addEventListener("click", function () { state.shown += 5 * PAGE; draw(); });
  window.addEventListener("hashchange", function () { recall(); draw(); });
  recall();
  draw();
})();
