/* Which places of the site answer a query. Rows are [address, page, heading, text, other names]; the page's script and the
   tests ask the same function. */
(function (into) {
  "use strict";
  var STOP = /^(a|an|and|are|at|by|do|does|for|from|how|in|is|it|many|much|of|on|or|the|to|vs|versus|what|which|with|should|i|formula|definition)$/;
  var SAME = {
    gpu: ["accelerator", "chip"], gpus: ["accelerators", "chips"], chips: ["accelerators"], tdp: ["design power"],
    price: ["cost", "rent"], cost: ["price"], buy: ["build", "own"], own: ["build"], rent: ["rental"], lease: ["rent"],
    carbon: ["emissions", "co2"], co2: ["carbon"], bibtex: ["cite"], citation: ["cite"], cite: ["citation"],
    crash: ["failure"], failure: ["failures"], failures: ["failure"], spare: ["spares"], mtbf: ["time between failures", "mtbf of the job", "mtbf per accelerator"], pue: ["power usage effectiveness"],
    mfu: ["model flop utilization"], footprint: ["emissions", "carbon", "tco2"], interval: ["often"], goodput: ["progress"], corruption: ["corruption", "sdc"],
    save: ["checkpoint"], checkpoint: ["save", "checkpoints"], snapshot: ["checkpoint"], datacenter: ["data centre", "data center", "site", "facility"], center: ["centre"], tokens: ["token"], train: ["training"],
    xai: ["colossus"], watt: ["power"], watts: ["power"], energy: ["power"], speed: ["rate"], layout: ["parallelism"], utilisation: ["utilization"],
    frequency: ["interval", "often"], nvlink: ["scale-up"], chinchilla: ["compute-optimal", "scaling law"], monte: ["draws", "uncertainty"],
    carlo: ["draws", "uncertainty"], fewest: ["plan"], deadline: ["plan"], budget: ["plan"], csv: ["downloads"], changed: ["changes"], "10^25": ["10²⁵"], "1e25": ["10²⁵"],
    "10^26": ["10²⁶"], "10^23": ["10²³"], ai: ["artificial intelligence"], latency: ["time to first token"], ttft: ["time to first token"], tpot: ["time per output token"],
    glossary: ["vocabulary"], excel: ["csv", "downloads"], cli: ["command line"], slurm: ["logs of your cluster", "logs of a cluster"], kubernetes: ["logs of your cluster", "logs of a cluster"], license: ["licence"],
    hbm: ["memory bandwidth"], quantization: ["precision"], bf16: ["precision"], fp8: ["precision"], fp4: ["precision"], infiniband: ["scale-out", "network"],
    ethernet: ["scale-out", "network"], "6nd": ["training compute"], tco: ["ownership"], depreciation: ["life of the hardware"], amortization: ["life of the hardware", "ownership"], amortisation: ["life of the hardware", "ownership"], accurate: ["measured"],
    blackwell: ["b200", "gb200"], hopper: ["h100", "h200"], moe: ["experts"], texas: ["tx"], virginia: ["va"], california: ["ca"], ohio: ["oh"]
  };
  /* Questions that a page computes, and the page. */
  var ASKED = [[/\b(gpu|chip|accelerator)s?\b.*\b(for|need|needed|users)\b|\b(serve|serving|host)\b|\brun an?\b.*\bmodel/, /^serve\.html$/],
    [/\b(gpu|chip|accelerator)s?\b.*\b(for|need|needed|train)\b|\b(cost|price|long|time|days)\b.*\btrain\b.*(\d ?[bt]\b|model)/, /^plan\.html$/]];
  function prepared(rows) {
    if (rows.prepared) return rows.prepared;
    var known = new Set();
    rows.prepared = rows.map(function (row) {
      var names = (row[4] || "").toLowerCase().split(" | ");
      var parts = [row[1], row[2], row[3], row[4] || ""].map(function (part) { return part.toLowerCase(); });
      parts.forEach(function (part) { (part.match(/[a-z0-9][a-z0-9.+-]*/g) || []).forEach(function (word) { known.add(word); }); });
      var own = row[0].startsWith("entities/") ? parts[0] + " " + names.slice(0, -1).join(" ") : "";
      return { row: row, parts: parts, exact: [parts[0], parts[1]].concat(names), weight: weight(row), own: own };
    });
    rows.known = Array.from(known);
    return rows.prepared;
  }
  function weight(row) {
    var address = row[0], head = row[2].toLowerCase();
    if (/^(sources|references|limitations|assumptions|what would change)/.test(head)) return 0.3;
    if (address.startsWith("report/audit/")) return 0.45;
    if (address.startsWith("notebooks/")) return row[2] ? 1.15 : 1.5;
    if (/^entities\/(accelerators|clusters|sites|models)\//.test(address)) return 1.25;
    if (/^entities\/(runs|organisations)\//.test(address)) return 1.05;
    if (address.startsWith("entities/sources/")) return 0.55;
    if (address.startsWith("tables/")) return 0.8;
    if (address.startsWith("report/methods/")) return 1.25;
    if (address.startsWith("report/vocabulary")) return 1.1;
    if (/coverage/.test(address)) return 0.2;
    if (/decisions/.test(address)) return 0.4;
    if (address.startsWith("report/cite")) return 1.2;
    return 1;
  }
  /* Letters changed, left out, added or swapped between two words; more than `most` counts as too many. */
  function apart(a, b, most) {
    if (Math.abs(a.length - b.length) > most) return most + 1;
    var before = [], last = [], now, i, j;
    for (j = 0; j <= b.length; j++) last[j] = j;
    for (i = 1; i <= a.length; i++) {
      now = [i];
      for (j = 1; j <= b.length; j++) {
        now[j] = Math.min(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) now[j] = Math.min(now[j], before[j - 2] + 1);
      }
      before = last;
      last = now;
    }
    return last[b.length];
  }
  function nearest(word, known) {
    if (word.length < 4 || /\d/.test(word)) return [];
    var most = word.length > 7 ? 2 : 1, best = most + 1, matches = [];
    known.forEach(function (other) {
      if (other[0] !== word[0]) return;
      var far = apart(word, other, most);
      if (far < best) { best = far; matches = [other]; } else if (far === best && far <= most) matches.push(other);
    });
    return matches.slice(0, 3);
  }
  function ways(word, rows) {
    var all = [[word, 1]];
    if (word.length > 4 && word.endsWith("s")) all.push([word.slice(0, -1), 0.9]);
    (SAME[word] || []).forEach(function (other) { all.push([other, 0.7]); });
    if (!rows.prepared.some(function (entry) { return entry.parts.some(function (part) { return part.indexOf(word) >= 0; }); }))
      nearest(word, rows.known).forEach(function (other) { all.push([other, 0.8]); });
    return all;
  }
  function hit(part, word) {
    var at = part.indexOf(word), best = 0;
    while (at >= 0) {
      var starts = at === 0 || !/[a-z0-9]/.test(part[at - 1]), end = part[at + word.length];
      var ends = end === undefined || !/[a-z0-9]/.test(end);
      best = Math.max(best, starts && ends ? 2.4 : starts ? 1.6 : word.length > 3 ? 0.6 : 0);
      if (best > 2) break;
      at = part.indexOf(word, at + 1);
    }
    return best;
  }
  into.words = function (query) {
    var terms = query.toLowerCase().replace(/data cent(re|er)s?/g, "datacenter").replace(/(mean )?time between failures/g, "mtbf").split(/[\s,;:?!/()"]+/).filter(Boolean);
    var kept = terms.filter(function (word) { return !STOP.test(word); });
    return kept.length ? kept : terms;
  };
  var KINDS = [
    [/^entities\/accelerators/, "Chip"], [/^entities\/clusters/, "Cluster"], [/^entities\/sites/, "Site"], [/^entities\/models/, "Model"], [/^entities\/runs/, "Run"],
    [/^entities\/organisations/, "Organisation"], [/^entities\/sources/, "Source"], [/^tables/, "Table"], [/^charts/, "Chart"], [/^notebooks/, "Notebook"],
    [/^report\/(methods|vocabulary)/, "Formula"], [/^report\/data/, "Table"], [/^report\/audit/, "Claim"], [/^report\/python/, "Python"], [/^(plan|serve)\./, "Planner"]
  ];
  /* The kind of place that an address is. */
  into.kind = function (address) {
    var kind = KINDS.find(function (pair) { return pair[0].test(address); });
    return kind ? kind[1] : "Page";
  };
  /* The value of an entity for which a query asks, such as "Design power (TDP): 1,000 W"; nothing if it asks for none. */
  into.value = function (row, query) {
    if (!row[0].startsWith("entities/")) return "";
    var name = (row[1] + " " + (row[4] || "").split(" | ").slice(0, -1).join(" ")).toLowerCase();
    var left = into.words(query).filter(function (word) { return name.indexOf(word) < 0 && !/^train(ing)?$/.test(word); }), best = 0, fact = "";
    row[3].split("; ").forEach(function (part) {
      var label = part.split(": ")[0].toLowerCase();
      var score = left.reduce(function (sum, word) {
        var same = (SAME[word] || []).some(function (other) { return label.indexOf(other) >= 0; });
        return sum + (label.indexOf(word) >= 0 ? 2 : same ? 1 : 0);
      }, 0);
      if (score > best) { best = score; fact = part; }
    });
    return fact;
  };
  into.rank = function (rows, query, most) {
    var all = prepared(rows), words = into.words(query), whole = words.join(" ");
    var asked = words.map(function (word) { return ways(word, rows); });
    var scored = [], lower = query.toLowerCase();
    var pages = ASKED.filter(function (pair) { return pair[0].test(lower); }).map(function (pair) { return pair[1]; });
    all.forEach(function (entry) {
      var total = 0, met = 0, named = 0;
      if (pages.some(function (page) { return page.test(entry.row[0]); })) { scored.push([100, entry.row]); return; }
      asked.forEach(function (several) {
        var best = 0;
        several.forEach(function (way) {
          for (var part = 0; part < 4; part++) {
            var got = hit(entry.parts[part], way[0]);
            if (got) best = Math.max(best, [7, 8, 1, 6][part] * got * way[1]);
          }
        });
        if (best) met += 1;
        if (best > 4) named += 1;
        total += best;
      });
      if (!met || (words.length > 1 && met < words.length * 0.5)) return;
      var same = words.length === 1 ? asked[0].slice(1).map(function (way) { return way[0]; }) : [];
      if (entry.exact.indexOf(whole) >= 0) total += 40;
      else if (same.some(function (other) { return entry.exact.indexOf(other) >= 0; })) total += 30;
      else if (words.length > 1 && (entry.parts[0].indexOf(whole) >= 0 || entry.parts[1].indexOf(whole) >= 0)) total += 14;
      else if (words.length > 1 && named === words.length && /^notebooks\/[^#]*$/.test(entry.row[0])) total += 30; /* pages before formulas */
      /* The entity that bears a name of the query before others that contain it: H100 SXM for "H100 price". */
      if (entry.own && entry.exact.some(function (name) { return name.length > 2 && (" " + whole + " ").indexOf(" " + name + " ") >= 0; })) total += 15;
      total *= Math.pow(met / words.length, 2) * entry.weight;
      /* Words that all entities of a kind share, such as "power", name none of them. */
      if (entry.own && !words.some(function (word) { return hit(entry.own, word) > 1; })) total *= 0.4;
      total /= 1 + Math.log(1 + (entry.row[2] || entry.row[1]).length / 40) / 4;
      scored.push([total, entry.row]);
    });
    scored.sort(function (a, b) { return b[0] - a[0]; });
    var seen = {}, first = [], rest = [];
    scored.forEach(function (pair) {
      var place = pair[1][0].split("#"), page = place[0], entity = /^entities\/\w+\//.exec(page);
      /* Two entities of a kind, then other kinds of answers. */
      if (entity) {
        seen[entity[0]] = (seen[entity[0]] || 0) + 1;
        if (seen[entity[0]] > 2) { rest.push(pair); return; }
      }
      if (/^report\/(methods\/|vocabulary)/.test(page) && place[1]) {
        /* A formula and its entry in the vocabulary are one answer. */
        if (seen["#" + place[1]]) return;
        seen["#" + place[1]] = 1;
      }
      seen[page] = (seen[page] || 0) + 1;
      (seen[page] > 1 ? rest : first).push(pair);
    });
    var ranked = first.slice(0, 8).concat(first.slice(8).concat(rest).sort(function (a, b) { return b[0] - a[0]; }));
    return compared(rows, query).concat(ranked).filter(function (pair, place, pairs) {
      return pairs.findIndex(function (other) { return other[1][0] === pair[1][0]; }) === place;
    }).slice(0, most || 20);
  };
  /* The two entities of a query such as "H100 vs B200", and the page that compares them. */
  function compared(rows, query) {
    var sides = query.split(/\s+(?:vs\.?|versus)\s+/i);
    if (sides.length !== 2) return [];
    var pair = sides.map(function (side) { return into.rank(rows, side, 1)[0]; });
    var parts = pair.map(function (best) { return best ? /^entities\/(accelerators|clusters|models|runs|sites)\/(\w+)\.html$/.exec(best[1][0]) : null; });
    if (!parts[0] || !parts[1] || parts[0][1] !== parts[1][1]) return [];
    var names = pair.map(function (best) { return best[1][1]; });
    return pair.concat([[0, ["entities/compare.html?of=" + parts[0][1] + "/" + parts[0][2] + "," + parts[1][2], "Compare " + names.join(" with "), "", "", ""]]]);
  }
})(typeof module === "object" ? module.exports : (window.siteFind = {}));
