"""Entity pages, one for each row of the entity tables, rendered from a template without pandoc or Quarto.

All content is read from the tables described by ``datapackage.json``; links follow their foreign keys. Text from tables
is inserted only by the template, which escapes it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.charts.embed import script_json
from factorykit.core.errors import FactorykitError
from factorykit.core.vocabulary import vocabulary
from factorykit.data.entities import KINDS, PLANNED_STATUS, STATEMENT_COLUMNS
from factorykit.data.identifiers import known_key
from factorykit.engine.evaluate import evaluate
from factorykit.model.serving.validate import measured_points
from factorykit.model.validation.validate import validate
from factorykit.site import build_cache
from factorykit.site.browse import browsers
from factorykit.site.page_layout import PageContext, assets, template
from factorykit.site.sources import Project
from factorykit.site.table_data import PAGES, PRICED, DataPackage, Table, label, load, number

SEARCH_TERMS: Final = {
    "accelerators": "chip TDP design power memory bandwidth peak price rent GPU TPU",
    "clusters": "cluster chips GPUs power",
    "sites": "site data centre power MW",
    "models": "model parameters tokens training how many GPUs cost",
    "runs": "run training GPUs days cost",
}
"""Additional search terms for each kind of entity."""
SUMMARY: Final = {
    "accelerators": (
        ("peak_16bit_flop_per_s", "{} in 16 bits, dense"),
        ("accelerator_memory_bytes", "{} of memory"),
        ("tdp_w", "{} of design power"),
    ),
    "clusters": (
        ("accelerators", "{} chips"),
        ("facility_power_w", "{} of facility power, {power_basis}"),
        ("first_operational", "at this size since {}"),
    ),
    "sites": (
        ("facility_power_w", "{} of facility power"),
        ("planned_facility_power_w", "{} planned"),
        ("h100_equivalents", "as many chips as {} H100"),
    ),
    "models": (
        ("parameters", "{} parameters"),
        ("tokens", "{} training tokens"),
        ("training_flop", "{} of training compute"),
    ),
    "runs": (
        ("training_flop", "{} of training compute"),
        ("accelerators", "{} chips"),
        ("wall_days", "{} from start to end"),
        ("cost_usd", "{} is the stated cost"),
    ),
}
"""Columns of the key figures with their wording; the first one determines similar entities."""
LABELS: Final = {
    "peak_16bit_flop_per_s": "BF16 or FP16 peak, dense",
    "peak_fp8_flop_per_s": "FP8 peak, dense",
    "peak_fp4_flop_per_s": "FP4 peak, dense",
    "tdp_w": "Design power (TDP)",
    "memory_bytes_per_s": "Memory bandwidth",
    "scale_up_both_directions_bytes_per_s": "Scale-up bandwidth, both directions",
    "accelerators_stated": "Basis of the count",
    "accelerator_stated": "Chips as stated",
    "chips_power_w": "Design power of all chips",
    "planned_facility_power_w": "Facility power under construction or planned",
    "capital_2025_usd": "Capital cost by then, in dollars of 2025",
    "water_m3_per_day": "Water it may draw",
    "qualifier": "Qualifier in the source",
    "place": "Place as stated",
    "site": "Place as stated",
}
"""Labels of columns for which the vocabulary has none or a less specific one."""
BASES: Final = {"training_flop": "training_flop_basis", "facility_power_w": "power_basis"}
"""Columns whose value may be computed, and the column that holds its basis."""
MAX_SIMILAR: Final = 5
MAX_OFFERS: Final = 8
"""Maximum number of similar entities and of rental offers on a page."""
MAX_COMPARED: Final = 14
"""Maximum number of quantities in the comparison."""
MAX_LISTED: Final = 40
"""Maximum number of rows of another table on a page, followed by a link to the table."""
PRICE_GAP: Final = 0.3
"""Years between months with prices over which a history is drawn without a line."""


def add(project: Project, out: Path, context: PageContext, cache: Path | None = None) -> list[list[str]]:
    """Add the pages of entities and tables to a rendered folder; return their search entries.

    Pages are cached in the folder ``cache``, if given, and reused while tables, code and templates are unchanged.
    """
    data = project.root / "data"
    made_of = [build_cache.inputs(data, ["datapackage.json"]), context.values(""), context.changed("data")]
    return build_cache.written(cache and cache / "entities", made_of, lambda folder: write(data, folder, context), out)


def write(data: Path, out: Path, context: PageContext | None = None) -> list[list[str]]:
    """Write the pages of entities and tables below ``out``; return their search entries.

    Parameters
    ----------
    data
        Folder of the tables.
    out
        Folder of the rendered site: pages go to ``entities/<table>/<key>.html`` and ``tables/<table>.html``.
    context
        Navigation and version shared by all pages.
    """
    package = load(data)
    if package is None:
        return []
    package.measured, package.served = _measured(package), _served(package)
    page_template = template("entity.html")
    assets(out)
    search: list[list[str]] = []
    context = context or PageContext()
    dated = {"date": context.changed("data")}
    words = context.values("../../") | dated
    for kind in PAGES:
        if kind not in package.tables:
            continue
        folder = out / "entities" / kind
        folder.mkdir(parents=True, exist_ok=True)
        for page in _entities(package, kind):
            (folder / f"{page['key']}.html").write_text(page_template.render(page | words), "utf-8")
            search.append(_search_entry(kind, page))
    search += [
        _compare(package, out / "entities", context.values("../") | dated),
        _map(package, out / "entities", context.values("../") | dated),
    ]
    return search + browsers(package, out / "tables", context.values("../") | dated)


def _compare(package: DataPackage, folder: Path, words: dict[str, Any]) -> list[str]:
    """Write the page that compares entities of a kind, and return its search entry."""
    kinds: dict[str, dict[str, Any]] = {}
    for kind, summary in SUMMARY.items():
        if kind not in package.tables:
            continue
        table = package.tables[kind]
        numbers = [
            name for name, field in table.fields.items() if field["type"] == "number" and field.get("unit") != "degree"
        ]
        columns = [*dict.fromkeys([*(name for name, _ in summary), *numbers])][:MAX_COMPARED]
        kinds[kind] = {
            "fields": [LABELS.get(name) or label(table.fields[name]) for name in columns],
            "rows": {
                row[table.key]: [package.names[kind][row[table.key]]]
                + [
                    row[name]
                    if not isinstance(row[name], float)
                    else [float(f"{row[name]:.6g}"), number(table.fields[name], row[name])]
                    for name in columns
                ]
                for row in table.frame.iter_rows(named=True)
            },
        }
    if "accelerators" in kinds:
        kinds["accelerators"]["fields"].append("Rent on demand, median")
        for key, cells in kinds["accelerators"]["rows"].items():
            rent = _median_rent(package, key)
            cells.append([rent, f"{rent:.2f} USD/h"] if rent else None)
    (folder / "compared.js").write_text(f"window.fkCompared={script_json(kinds)};\n", "utf-8")
    (folder / "compare.html").write_text(template("compare.html").render(words | {"kinds": kinds}), "utf-8")
    title = "Compare chips, clusters, sites, models and runs"
    return ["entities/compare.html", title, "", "Two to five side by side", "compare versus difference"]


def _phases(clusters: pl.DataFrame, stated: pl.DataFrame) -> dict[str, list[tuple[str, float]]]:
    """Return month and facility power of every phase of clusters, as stated or in proportion to the accelerators."""
    now = clusters.select("cluster", now="accelerators", watts="facility_power_w", last="first_operational")
    earlier = (
        stated.filter(status="existing").join(now, on="cluster").filter(pl.col("first_operational") < pl.col("last"))
    )
    power = pl.coalesce("facility_power_w", pl.col("watts") * pl.col("accelerators") / pl.col("now"))
    phases = pl.concat(
        [
            earlier.select("cluster", "first_operational", power=pl.min_horizontal(power, "watts")).drop_nulls("power"),
            now.select("cluster", first_operational="last", power="watts"),
        ]
    )
    month = pl.col("first_operational").str.slice(0, 7)
    grown = phases.group_by("cluster", month.alias("month")).agg(pl.col("power").max()).sort("cluster", "month")
    grown = grown.with_columns(pl.col("power").cum_max().over("cluster").round_sig_figs(4))
    return {name: rows.select("month", "power").rows() for (name,), rows in grown.group_by("cluster")}


def _map(package: DataPackage, folder: Path, words: dict[str, Any]) -> list[str]:
    """Write the world map of clusters with its timeline, and return its search entry."""
    points: list[dict[str, Any]] = []
    if "clusters" in package.tables:
        known = package.tables["clusters"].frame.filter(
            pl.col("facility_power_w") > 0, pl.col("latitude").is_not_null(), pl.col("first_operational").is_not_null()
        )
        phases = _phases(known, package.tables["cluster_statements"].frame)
        points = [
            {"key": row["cluster"], "name": package.names["clusters"][row["cluster"]]}
            | {"phases": phases[row["cluster"]], "power": row["facility_power_w"]}
            | {"x": round(2 * (row["longitude"] + 180)), "y": round(2 * (85 - row["latitude"]))}
            | {"text": vocabulary()["facility_power_w"].text(row["facility_power_w"])}
            for row in known.sort("facility_power_w", descending=True).iter_rows(named=True)
        ]
    total = number({"name": "power", "unit": "W"}, sum(point["power"] for point in points))
    (folder / "map.html").write_text(template("map.html").render(words | {"points": points, "total": total}), "utf-8")
    text = f"{len(points)} clusters by place and month"
    return ["entities/map.html", "World map of clusters", "", text, "data center map where world country timeline"]


# ------------------------------------------------------------------------------------------------------- entity pages


def _entities(package: DataPackage, kind: str) -> Iterator[dict[str, Any]]:
    table = package.tables[kind]
    computed, similar = _computed(package, kind), _similar(package, table)
    for row in table.frame.iter_rows(named=True):
        key = row[table.key]
        statements = package.statements.get((kind, key), [])
        yield {
            "kind": kind,
            "what": PAGES[kind],
            "key": key,
            "name": package.names[kind][key],
            "summary": _summary(package, table, row),
            "above": _thresholds(package, row) if kind == "runs" else [],
            "plan": _plan(package, kind, row),
            "similar": similar.get(key, []),
            "offers": _offers(package, key) if kind == "accelerators" else [],
            "facts": _facts(package, table, row, statements),
            "others": _other_statements(package, table, statements),
            "history": [*_history(table, statements), *(_rent(package, row) if kind == "accelerators" else ())],
            "computed": computed.get(key, []),
            "measured": package.measured.get(key, []) if kind == "models" else [],
            "served": package.served.get(key, []) if kind == "accelerators" else [],
            "links": _links(package, kind, key),
            "also": sorted({*package.aliases.get((kind, key), [])}),
            "key_column": table.key,
            "is_stated": bool(statements),
        }


def _summary(package: DataPackage, table: Table, row: Mapping[str, Any]) -> str:
    """Return the key figures as a sentence without the name of the entity."""
    is_planned = row.get("status") in PLANNED_STATUS
    known = [
        words.format(package.shown(table, column, row[column])["text"], **row)
        for column, words in SUMMARY.get(table.name, ())
        if row.get(column) and not (is_planned and column == "planned_facility_power_w" and row["facility_power_w"])
    ]
    if table.name == "accelerators":
        rent = _median_rent(package, row[table.key])
        kind = "the median of offers on demand" if _offers(package, row[table.key]) else "stated"
        known += [f"{rent:.2f} USD/h to rent, {kind}"] if rent else []
    return f"{row.get('status')}: " * (is_planned and bool(known)) + "; ".join(known)


def _when(planned: str, as_of: str | None) -> str:
    """Return when something is planned to run, with a remark if that had passed at the date of the row."""
    part = re.fullmatch(r"(?:([QH])(\d) )?(\d{4})", planned)
    month = {"Q": 3, "H": 6}.get(part[1], 12) * int(part[2] or 1) if part else 0
    end = f"{part[3]}-{month:02}" if part else planned
    return f"{planned}, not reported to run by {as_of}" if end < (as_of or "")[: len(end)] else planned


def _thresholds(package: DataPackage, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the thresholds of regulations that the training compute of a run reaches."""
    flop, facts = vocabulary()["training_flop"], package.find("facts", unit="FLOP")
    return [
        {"text": f"{fact['subject']}: from {flop.text(fact['value'])}", "href": f"../sources/{fact['source']}.html"}
        for fact in sorted(facts, key=lambda fact: fact["value"])
        if fact["fact"].startswith("threshold_") and (row["training_flop"] or 0.0) >= fact["value"]
    ]


def _plan(package: DataPackage, kind: str, row: Mapping[str, Any]) -> dict[str, str]:
    """Return a link to a plan with a chip or a model, if the planner supports it."""
    if kind == "accelerators" and row["peak_16bit_flop_per_s"] and row["accelerator_memory_bytes"]:
        key = row["accelerator"]
        if not any(link["scale_out_bytes_per_s"] for link in package.find("links", accelerator=key)):
            return {}
        rent = "" if _median_rent(package, key) else ", with a price of your own"
        return {"text": f"Plan a run on this chip{rent}", "href": f"../../plan.html?v=1&accelerator={key}"}
    if kind == "models" and row["architecture"]:
        return {"text": "Plan a run of this model", "href": f"../../plan.html?v=1&model={row['architecture']}"}
    return {}


def _similar(package: DataPackage, table: Table) -> dict[str, list[dict[str, str]]]:
    """Return the nearest entities of each entity by the logarithm of its first key figure."""
    if table.name not in SUMMARY:
        return {}
    (lead, _), *_ = SUMMARY[table.name]
    ordered = table.frame.filter(pl.col(lead) > 0).sort(lead).select(table.key, lead).rows()
    similar = {}
    for place, (key, value) in enumerate(ordered):
        window = ordered[max(0, place - MAX_SIMILAR) : place + MAX_SIMILAR + 1]
        nearest = sorted((abs(math.log(other / value)), name) for name, other in window if name != key)[:MAX_SIMILAR]
        similar[key] = [{"key": name, "text": package.names[table.name][name]} for _, name in nearest]
    return similar


def _median_rent(package: DataPackage, key: str) -> float | None:
    prices = package.find("prices", accelerator=key, kind="on demand")
    return prices[0]["rental_usd_per_accelerator_h_median"] if len(prices) == 1 else None


def _offers(package: DataPackage, key: str) -> list[dict[str, Any]]:
    """Return the cheapest on-demand offers of a chip."""
    offers = package.find("rental_offers", accelerator=key, kind="on demand")
    cheapest = sorted(offers, key=lambda row: row["rental_usd_per_accelerator_h"])[:MAX_OFFERS]
    return [row | {"source": package.source(row["source"])} for row in cheapest]


def _rent(package: DataPackage, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the history of the on-demand price of a chip."""
    rent = vocabulary()["rental_usd_per_accelerator_h"]
    rents = {month["month"]: month["value"] for month in package.find("months", quantity=rent.name, of=row["name"])}
    return _history_line("Rent on demand", rent.text, rents, longest_gap=PRICE_GAP)


def _facts(
    package: DataPackage, table: Table, row: Mapping[str, Any], statements: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the filled cells of an entity, each with its source."""
    chosen = {statement["field"]: statement for statement in statements if statement["preferred"]}
    skipped = {*STATEMENT_COLUMNS, table.key, table.title, "statement_count", *BASES.values()} - {"note"}
    skipped |= set() if statements else {"confirmed_by"}
    facts: list[dict[str, Any]] = []
    before: list[str] = []
    for column, described in table.fields.items():
        if column in skipped or row[column] is None:
            continue
        basis = row.get(BASES.get(column, ""))
        who = chosen.get(column) or (chosen.get("power_reported_w") if basis and "computed" not in basis else None)
        fact = {"label": LABELS.get(column) or label(described), "about": described["description"].replace("`", "")}
        fact |= package.shown(table, column, row[column])
        if who:
            fact |= {"source": package.source(who["source"], who["address"]), "as_of": who["as_of"] or ""}
            reported = f"{basis}: {number(described, who['value'])}; " if who["field"] == "power_reported_w" else ""
            fact |= {"locator": who["locator"], "why": f"{reported}{who['preferred']}"}
            fact |= {"text": _when(fact["text"], who["as_of"])} if column == "planned_for" else {}
        elif table.references.get(column) == PRICED:
            price = package.find(PRICED, electricity_price=row[column])[0]
            fact |= {"source": package.source(price["source"]), "locator": price["locator"], "as_of": price["as_of"]}
            fact |= {"why": "an average of the area, not of the site"}
        elif "computed" in described["description"] or basis:
            place = f"../../report/vocabulary.html#{column.replace('_computed', '').replace('_', '-')}"
            fact |= {"why": basis or fact["about"], "source": {"text": "Computed by this formula", "href": place}}
        elif statements and (column == "note" or table.name in KINDS):
            every = f"../../tables/statements.html?q={row[table.key]}"
            fact |= {"source": {"text": "All statements", "href": every}}
        elif "source" in row and table.name not in KINDS and table.name != "sources":
            fact |= {"source": package.source(row["source"]), "locator": row.get("locator") or ""}
            fact |= {"as_of": row.get("as_of") or "", "why": ""}
        origin = [str(fact.get(name) or "") for name in ("source", "locator", "why", "as_of")]
        again = bool(origin[0]) and origin == before
        facts.append(fact | {"rows": 0 if again else 1})
        lead = next(previous for previous in reversed(facts) if previous["rows"])
        lead["rows"] += again
        before = origin
    return facts


def _other_statements(package: DataPackage, table: Table, statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the remaining statements, grouped by field."""
    rows = []
    for column, described in table.fields.items():
        for statement in statements:
            if statement["field"] != column or statement["preferred"]:
                continue
            value = statement["words"] if statement["value"] is None else statement["value"]
            rows.append(
                {"label": label(described), **package.shown(table, column, value), "as_of": statement["as_of"] or ""}
                | {"source": package.source(statement["source"], statement["address"]), "locator": statement["locator"]}
            )
    return rows


def _history(table: Table, statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the history of counts and powers: the points of a sparkline for each field with several dates."""
    lines = []
    ahead = {row["statement"] for row in statements if row["field"] == "status" and row["words"] in PLANNED_STATUS}
    for column in ("accelerators", "facility_power_w", "h100_equivalents"):
        days: dict[str, float] = {}
        stood: set[str] = set()
        for statement in statements:
            day = str(statement["as_of"] or "").partition("/")[0]
            is_dated = len(day) >= 7 and "seed_" not in statement["source"]
            if is_dated and statement["field"] == column and statement["value"] is not None:
                days[day] = max(statement["value"], days.get(day, 0.0))
                stood |= set() if statement["statement"] in ahead else {day}
        now = max(stood, default="")
        days = {day: value for day, value in days.items() if day in stood or day > now}
        if days:
            lines += _history_line(label(table.fields[column]), partial(number, table.fields[column]), days, now)
    return lines


def _history_line(
    name: str, text: Callable[[float], str], days: Mapping[str, float], now: str = "9", longest_gap: float = math.inf
) -> list[dict[str, Any]]:
    """Return the points and axes of a history with its values; empty for fewer than two days.

    A count or power stands until the next value; those after ``now`` are planned. Over more than ``longest_gap`` years
    nothing is known.
    """
    if len(days) < 2 or not any(days.values()):
        return []
    ordered = sorted(days.items())
    when = [int(day[:4]) + (int(day[5:7]) - 1) / 12 for day, _ in ordered]
    most, span = max(*days.values(), 1e-9), max(when[-1] - when[0], 1e-9)
    decade = 10.0 ** math.floor(math.log10(most))
    top = next(factor * decade for factor in (1, 2, 4, 6, 8, 10) if factor * decade >= most)
    points = [
        (round(560 * (x - when[0]) / span), round(110 - 100 * y / top)) for x, (_, y) in zip(when, ordered, strict=True)
    ]
    years = [(560 * (year - when[0]) / span, year) for year in range(int(when[0]) + 1, int(when[-1]) + 1)]
    axes = {
        "heights": [(round(110 - 100 * part), text(top * part)) for part in (0.0, 0.5, 1.0)],
        "years": [(round(x), year) for x, year in years[:: len(years) // 8 + 1] if 70 < x < 490],
    }
    steps = [
        f"H{x}V{y}" if year - before <= longest_gap else f"M{x},{y}"
        for (x, y), year, before in zip(points[1:], when[1:], when, strict=False)
    ]
    last = max(sum(day <= now for day, _ in ordered), 1) - 1
    start, turn = (f"M{points[place][0]},{points[place][1]}" for place in (0, last))
    path = start + "".join(steps[:last])
    line = {"label": name, "path": path, "points": points, "first": ordered[0][0], "last": ordered[-1][0]}
    line |= {"top": text(most), "ahead": turn + "".join(steps[last:]) if steps[last:] else ""}
    line |= {"planned": [f"{text(value)} for {day}" for day, value in ordered if day > now]}
    return [line | axes | {"rows": [(day, text(value) + ", planned" * (day > now)) for day, value in ordered]}]


def _links(package: DataPackage, kind: str, key: str) -> list[dict[str, Any]]:
    """Return the rows of other tables that refer to an entity, by table."""
    groups = []
    for name, rows in package.referring.get((kind, key), {}).items():
        table = package.tables[name]
        listed = []
        if name in PAGES:
            keys = dict.fromkeys(row[table.key] for row in rows)
            listed = [{"key": entity, "text": package.names[name][entity]} for entity in [*keys][:MAX_LISTED]]
        groups.append({"name": name, "title": table.resource["title"], "rows": len(rows), "listed": listed})
    return sorted(groups, key=lambda group: (not group["listed"], group["title"]))


def _computed(package: DataPackage, kind: str) -> dict[str, list[dict[str, str]]]:
    """Return the results of the model for the entities of one kind, by key."""
    asked: dict[str, tuple[tuple[str, ...], str]] = {
        "models": (("active_parameters", "tokens"), "training_flop"),
        "clusters": (("accelerators", "peak_flop_per_s"), "cluster_peak_flop_per_s"),
    }
    if kind not in asked:
        return {}
    table, (inputs, output) = package.tables[kind], asked[kind]
    frame = table.frame
    if kind == "clusters" and "accelerators" in package.tables:
        peaks = package.tables["accelerators"].frame.select("accelerator", rate="peak_16bit_flop_per_s")
        frame = frame.join(peaks, on="accelerator", how="left").with_columns(
            peak_flop_per_s=pl.coalesce("peak_flop_per_s", "rate")
        )
    if any(name not in frame.columns for name in inputs):
        return {}
    known = frame.select(table.key, *inputs).drop_nulls()
    try:
        results = evaluate(known.select(inputs), output)[output]
    except FactorykitError:
        return {}
    this = vocabulary()[output]
    how = re.sub(
        r"\w+", lambda word: vocabulary()[word[0]].label.lower() if word[0] in vocabulary() else word[0], this.meaning
    )
    formula = f"../../report/vocabulary.html#{output.replace('_', '-')}"
    return {
        key: [{"label": this.label, "text": this.text(value), "how": how, "href": formula}]
        for key, value in zip(known[table.key], results, strict=True)
        if value is not None
    }


def _measured(package: DataPackage) -> dict[str, list[dict[str, Any]]]:
    """Return measured and predicted values of runs by key."""
    rows = {row["id"]: row for row in package.find("training_runs")}
    measured: dict[str, list[dict[str, Any]]] = defaultdict(list)
    if not rows or "runs" not in package.tables:
        return measured
    keys = {name: known_key("model", name) for name in {row["model"] for row in rows.values()}}
    with suppress(FactorykitError):
        for run in validate().drop_nulls(["measured_s", "step_s"]).iter_rows(named=True):
            row = rows.get(run["id"])
            if row and (key := keys[row["model"]]):
                measured[key].append(run | row | {"off": f"{100 * run['error']:+.0f} %".replace("-0 %", "+0 %")})
    return measured


def _served(package: DataPackage) -> dict[str, list[dict[str, Any]]]:
    """Return medians of measured serving points and of their predictions by chip, one row a model and engine."""
    if "serving_points" not in package.tables:
        return {}
    rows = measured_points().group_by("accelerator", "architecture", "engine", maintain_order=True)
    medians = rows.agg(
        pl.col("tpot_measured_s", "tpot_s", "ttft_measured_s", "ttft_s").median(),
        points=pl.len(),
        error=pl.col("tpot_error").abs().median(),
        inside=pl.col("tpot_measured_s").is_between("tpot_low_s", "tpot_high_s").mean(),
    )
    parts = medians.sort("points", descending=True).partition_by("accelerator", as_dict=True)
    return {str(key): part.to_dicts() for (key,), part in parts.items()}


def _search_entry(kind: str, page: Mapping[str, Any]) -> list[str]:
    """Return the search entry of an entity: address, name, heading, text and other names."""
    shown = [f"{fact['label']}: {fact['text']}" for fact in page["facts"] if fact["label"] not in ("Note", "Address")]
    shown += [f"Price: {page['summary'].rpartition('; ')[2]}"] if page["offers"] else []
    also = " | ".join(filter(None, [*page["also"], page["key"].replace("_", " "), SEARCH_TERMS.get(kind, "")]))
    return [f"entities/{kind}/{page['key']}.html", page["name"], "", "; ".join(shown)[:600], also]
