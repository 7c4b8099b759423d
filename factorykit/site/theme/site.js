/* Theme, menu, search, tab sets, copy buttons and the table of contents of the embedded renderer's pages. */
(function () {
  "use strict";
  var html = document.documentElement;
  var root = document.currentScript.dataset.root;
  var select = function (query, from) { return (from || document).querySelector(query); };
  var all = function (query, from) { return Array.prototype.slice.call((from || document).querySelectorAll(query)); };

  /* Theme: the reader's choice, else the system's. Charts listen to the event. */
  var theme = select("button.theme");
  function setTheme(name, keep) {
    html.dataset.theme = name;
    theme.setAttribute("aria-pressed", String(name === "dark"));
    if (keep) try { localStorage.setItem("site-theme", name); } catch { /* private window */ }
    window.dispatchEvent(new CustomEvent("factorykit:theme", { detail: { theme: name } }));
  }
  setTheme(html.dataset.theme, false);
  theme.addEventListener("click", function () { setTheme(html.dataset.theme === "dark" ? "light" : "dark", true); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function (system) {
    var kept = null;
    try { kept = localStorage.getItem("site-theme"); } catch { /* private window */ }
    if (!kept) setTheme(system.matches ? "dark" : "light", false);
  });

  /* The page's own entry in a long menu. Only the menu moves. */
  var here = select(".side a[aria-current]");
  if (here) {
    var side = here.closest(".side");
    var hidden = here.offsetTop + here.offsetHeight - side.clientHeight;
    if (hidden > 0) side.scrollTop = hidden + side.clientHeight / 3;
  }

  /* Menu on narrow screens. */
  var menu = select("button.menu");
  function openMenu(shown) {
    html.classList.toggle("menu-open", shown);
    menu.setAttribute("aria-expanded", String(shown));
    if (shown) select("#menu a").focus();
  }
  if (menu) {
    menu.addEventListener("click", function () { openMenu(menu.getAttribute("aria-expanded") !== "true"); });
    document.addEventListener("keydown", function (event) { if (event.key === "Escape") openMenu(false); });
  }

  /* Tab sets: arrow keys move, as a reader's software expects. */
  all(".tabset").forEach(function (set) {
    var tabs = all(':scope > [role="tablist"] > [role="tab"]', set);
    function choose(tab) {
      tabs.forEach(function (other) {
        var chosen = other === tab;
        other.setAttribute("aria-selected", String(chosen));
        other.tabIndex = chosen ? 0 : -1;
        document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
      });
      window.dispatchEvent(new Event("resize"));
    }
    tabs.forEach(function (tab, place) {
      tab.addEventListener("click", function () { choose(tab); });
      tab.addEventListener("keydown", function (event) {
        var step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        var next = tabs[(place + step + tabs.length) % tabs.length];
        choose(next);
        next.focus();
      });
    });
    if (tabs.length) choose(tabs[0]);
  });

  /* Copy buttons on code. */
  all("div.sourceCode").forEach(function (block) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", function () {
      navigator.clipboard.writeText(select("pre", block).innerText).then(function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      });
    });
    block.appendChild(button);
  });

  /* The section being read, in the table of contents. */
  var entries = all("nav.toc a");
  var heads = entries.map(function (entry) { return document.getElementById(decodeURIComponent(entry.hash.slice(1))); });
  var waiting = false;
  function mark() {
    waiting = false;
    var now = 0;
    heads.forEach(function (head, place) { if (head && head.getBoundingClientRect().top < 120) now = place; });
    if (innerHeight + scrollY >= document.body.scrollHeight - 4) now = heads.length - 1;
    entries.forEach(function (entry, place) { entry.classList.toggle("now", place === now); });
    var box = select("nav.toc"), top = entries[now].offsetTop;
    if (top < box.scrollTop + 40 || top > box.scrollTop + box.clientHeight - 80) box.scrollTop = top - box.clientHeight / 2;
  }
  if (entries.length) {
    mark();
    addEventListener("scroll", function () { if (!waiting) { waiting = true; requestAnimationFrame(mark); } }, { passive: true });
  }

  /* Search: find.js says which places answer a query. The index is a script, so that it also loads where pages are
     opened as files. */
  var dialog = select("dialog.search"), input = select("input", dialog), list = select("#found"), status = select(".found-count");
  var chosen = -1, loading = null;
  function load() {
    loading = loading || Promise.all(["entities/assets/find.js", "site_libs/search.js"].map(function (file) {
      return new Promise(function (done, fail) {
        document.head.appendChild(Object.assign(document.createElement("script"), { src: root + file, onload: done, onerror: fail }));
      });
    })).then(function () { return window.siteSearch; });
    return loading;
  }
  function marked(element, text, words) {
    var pattern = new RegExp("(" + words.map(function (word) { return word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"); }).join("|") + ")", "ig");
    text.split(pattern).forEach(function (piece, place) {
      var node = place % 2 ? document.createElement("mark") : document.createTextNode(piece);
      if (place % 2) node.textContent = piece;
      element.appendChild(node);
    });
    return element;
  }
  function show(rows) {
    var words = window.siteFind.words(input.value);
    list.textContent = "";
    chosen = -1;
    input.removeAttribute("aria-activedescendant");
    var matches = words.length ? window.siteFind.rank(rows, input.value, 20) : [];
    input.setAttribute("aria-expanded", String(matches.length > 0));
    status.textContent = !words.length ? "" : matches.length ? matches.length + (matches.length === 1 ? " place" : " places") : "Nothing found";
    matches.forEach(function (pair, place) {
      var row = pair[1], item = document.createElement("li"), link = document.createElement("a");
      item.setAttribute("role", "option");
      item.id = "found-" + place;
      link.href = root + row[0];
      link.tabIndex = -1;
      var name = document.createElement("strong"), text = document.createElement("span"), kind = document.createElement("em");
      var value = window.siteFind.value(row, input.value);
      kind.textContent = window.siteFind.kind(row[0]);
      marked(name, row[2] ? row[1] + " › " + row[2] : row[1], words);
      var at = row[3].toLowerCase().indexOf(words[0]);
      if (value) marked(text, value, words);
      else marked(text, (at > 60 ? "… " : "") + row[3].slice(Math.max(0, at - 60), Math.max(0, at - 60) + 170), words);
      link.appendChild(kind);
      link.appendChild(name);
      link.appendChild(text);
      item.appendChild(link);
      item.addEventListener("click", function () { dialog.close(); });
      list.appendChild(item);
    });
  }
  function search() {
    load().then(show, function () { status.textContent = "The search index did not load"; });
  }
  function open() { if (!dialog.open) { dialog.showModal(); input.select(); load(); } }
  select("button.find").addEventListener("click", open);
  if (location.search === "?search") open();
  input.addEventListener("input", search);
  input.addEventListener("keydown", function (event) {
    var items = all("li", list);
    var step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && items.length) {
      event.preventDefault();
      chosen = (chosen + step + items.length) % items.length;
      items.forEach(function (item, place) { item.setAttribute("aria-selected", String(place === chosen)); });
      input.setAttribute("aria-activedescendant", items[chosen].id);
      items[chosen].scrollIntoView({ block: "nearest" });
    } else if (event.key === "Escape") {
      event.preventDefault();
      dialog.close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      var link = select("a", items[Math.max(0, chosen)] || list);
      if (link) { dialog.close(); location.href = link.href; }
    }
  });
  dialog.addEventListener("click", function (event) { if (event.target === dialog) dialog.close(); });
  document.addEventListener("keydown", function (event) {
    var typing = /^(input|textarea|select)$/i.test(event.target.tagName) || event.target.isContentEditable;
    if ((event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      open();
    }
  });
})();
