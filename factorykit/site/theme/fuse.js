/* The search of Quarto's pages asks a library called Fuse for places. This is find.js, above, behind the same calls, so
   that a query has the same answers whoever rendered the page. */
(function () {
  "use strict";
  var rows = [], items = new Map();
  function plain(text) { return text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&"); }
  window.Fuse = function () {
    return {
      add: function (item) {
        if (items.has(item.href)) return;
        items.set(item.href, item);
        rows.push([item.href, item.title, item.section, plain(item.text), item.also || ""]);
      },
      search: function (query, options) {
        return window.siteFind.rank(rows, query, options.limit).map(function (pair) {
          return { item: items.get(pair[1][0]) || { href: pair[1][0], title: pair[1][1], section: "", text: "" } };
        });
      }
    };
  };
})();
