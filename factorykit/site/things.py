"""A page for each thing, and a browser of each table: one template, neither pandoc nor Quarto.

Everything shown is read from the tables beside ``datapackage.json``; their foreign keys say what leads where. Text from
tables reaches a page through the template alone, which escapes it.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final, cast

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.datasets.things import BESIDE, KINDS, NAMED
from factorykit.errors import FactorykitError
from factorykit.quantities import Quantity, rounded, vocabulary
from factorykit.site.sources import Project

if TYPE_CHECKING:
    import polars as pl

PACKAGE: Final = Path(__file__).parent.parent
THEME: Final = PACKAGE / "site" / "theme"
PAGES: Final = {
    "accelerators": "chip",
    "clusters": "cluster",
    "sites": "site",
    "models": "model",
    "runs": "run",
    "organisations": "organisation",
    "sources": "source",
}
"""Tables whose rows have a page, and what one of them is called."""
TITLES: Final = NAMED | {"sources": "title"}
"""The column that names a thing, where it is not ``name``."""
ALSO: Final = {
    "accelerators": "chip TDP design power memory bandwidth peak price GPU TPU",
    "clusters": "cluster chips GPUs power",
    "sites": "site data centre power MW",
    "models": "model parameters tokens training how many GPUs cost",
    "runs": "run training GPUs days cost",
}
"""Words by which things of a kind are asked for."""
SI: Final = {"W", "Wh", "byte", "byte/s", "FLOP/s", "FLOP", "USD", "1", "h", "kWh"}
NAMED_WITHIN: Final = 64
"""Letters of a name in a row of a browser."""
LISTED: Final = 40
"""Rows of another table that a page lists before it leads to the table."""


@dataclass(frozen=True)
class Table:
    """One table of the package with its descriptor."""

    resource: Mapping[str, Any]
    frame: pl.DataFrame

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.resource["name"]

    @cached_property
    def fields(self) -> dict[str, dict[str, Any]]:
        """Descriptors of the columns by name."""
        return {each["name"]: each for each in self.resource["schema"]["fields"]}

    @cached_property
    def key(self) -> str:
        """Column that names what a row is about."""
        return next((name for name, each in self.fields.items() if each.get("entity")), next(iter(self.fields)))

    @property
    def title(self) -> str:
        """Column with a name for reading."""
        wanted = TITLES.get(self.name, "name")
        return wanted if wanted in self.fields else self.key

    @cached_property
    def references(self) -> dict[str, str]:
        """Columns that name things with pages, and the table of those."""
        found = {
            column: str(each["references"]).split(".") for column, each in self.fields.items() if "references" in each
        }
        return {column: of for column, (of, _) in found.items() if of in PAGES}


@dataclass
class Shelf:
    """All tables, and what the pages need of them."""

    tables: dict[str, Table]
    version: str
    measured: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    @cached_property
    def names(self) -> dict[str, dict[str, str]]:
        """Names of the things with pages, by table and key."""
        things = {kind: table for kind, table in self.tables.items() if kind in PAGES}
        return {
            kind: {
                key: " ".join(str(name or key).split())
                for key, name in zip(table.frame[table.key], table.frame[table.title], strict=True)
            }
            for kind, table in things.items()
        }

    @cached_property
    def cited(self) -> dict[str, dict[str, Any]]:
        """Sources by key."""
        table = self.tables.get("sources")
        return {row["source"]: row for row in table.frame.to_dicts()} if table else {}

    @cached_property
    def statements(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """What is said about each thing, by table and key."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        if "statements" in self.tables:
            for row in self.tables["statements"].frame.to_dicts():
                found[row["kind"], row["thing"]].append(row)
        return found

    @cached_property
    def aliases(self) -> dict[tuple[str, str], list[str]]:
        """Other names by table and key."""
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        if "aliases" in self.tables:
            for kind, alias, key in self.tables["aliases"].frame.select("kind", "alias", "key").iter_rows():
                for of in ("runs", "models") if kind == "model" else (f"{kind}s",):
                    found[of, key].append(alias)
        return found

    @cached_property
    def referring(self) -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
        """Rows that name a thing, by its table and key, then by their own table."""
        found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        for name, table in self.tables.items():
            if name == "statements":
                continue
            for column, of in table.references.items():
                separator = "; " if "separator" in table.fields[column] or column == "confirmed_by" else None
                for row in table.frame.filter(table.frame[column].is_not_null()).iter_rows(named=True):
                    for key in row[column].split(separator) if separator else (row[column],):
                        found[of, key][name].append(row)
        return found

    def shown(self, table: Table, column: str, value: str | float) -> dict[str, Any]:
        """Return a cell for reading: text, and where it leads."""
        if not isinstance(value, str):
            return {"text": number(table.fields[column], value), "href": ""}
        of = table.references.get(column)
        if of and value in self.names[of]:
            return {"text": self.names[of][value], "href": f"../{of}/{value}.html"}
        return {"text": value, "href": value if re.match(r"https?://", value) else ""}

    def source(self, key: str | None, address: str | None = None) -> dict[str, str]:
        """Return a source as it is named beside a value: what it is, its page, and its address on the web."""
        row = self.cited.get(key or "", {})
        return {
            "text": str(row.get("title") or key or ""),
            "href": f"../sources/{key}.html" if key in self.cited else "",
            "url": address or row.get("url") or "",
        }


@cache
def _quantity(name: str | None) -> Quantity | None:
    return vocabulary().get(name) if name else None


def number(told: Mapping[str, Any], value: float) -> str:
    """Return a number of a column for reading, with its unit.

    >>> number({"name": "tdp_w", "unit": "W"}, 700.0), number({"name": "share", "unit": "1"}, 0.3531)
    ('700 W', '0.353')
    """
    this = _quantity(told.get("quantity") or told["name"])
    if this is not None and not this.is_text:
        return this.text(value)
    unit = str(told.get("unit") or "1")
    if unit == "a":
        return f"{value:.0f}"
    if unit == "1" and value == int(value) and abs(value) < 1e6:
        return f"{value:,.0f}"
    scales = ((1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
    words = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
    spoken = "" if unit == "1" else unit.replace("byte", "B").replace("degree", "°")
    for scale, prefix in words if unit in ("USD", "1", "h", "kWh") else scales if unit in SI else ():
        if abs(value) >= scale * 0.9995:
            text = rounded(value / scale)
            return f"{text}{prefix} {spoken}".strip() if prefix.startswith(" ") else f"{text} {prefix}{spoken}"
    digits = 6 if unit == "degree" else 3
    return f"{rounded(value, digits)} {spoken}".strip()


def label(told: Mapping[str, Any]) -> str:
    """Return what a column is called: the label of its quantity, or its name in words.

    >>> label({"name": "power_reported_w", "unit": "W"}), label({"name": "tokens", "unit": "1"})
    ('Power reported', 'Training tokens')
    """
    name = str(told["name"])
    this = _quantity(told.get("quantity") or name)
    end = next((end for end in ("low", "high", "min", "max", "quarter", "median") if name.endswith(f"_{end}")), "")
    if this is not None:
        return f"{this.label}, {end}" if end else this.label
    words = re.sub(r"_(w|usd|bytes|bytes_per_s|flop_per_s|kwh|m3_per_day|s|h|key)$", "", name).replace("_", " ")
    words = re.sub(r"\b(tdp|pue|it|mfu|fp8|fp4|cpu|usd|h100)\b", lambda found: found[0].upper(), words)
    return words[:1].upper() + words[1:]


def load(data: Path) -> Shelf | None:
    """Return the tables beside a descriptor, or None if there is none."""
    import polars as pl

    path = data / "datapackage.json"
    if not path.is_file():
        return None
    package = json.loads(path.read_text(encoding="utf-8"))
    tables = {
        each["name"]: Table(each, pl.read_parquet(data / each["path"]))
        for each in package["resources"]
        if (data / each["path"]).is_file()
    }
    return Shelf(tables, str(package.get("version", "")))


def add(project: Project, out: Path, cache: Path | None = None) -> None:
    """Add the pages of things and tables to a rendered folder, and their places to its search.

    They are kept in the folder ``cache``, if given, and taken again while tables, code and templates stay the same.
    """
    bar = (project.website.get("navbar") or {}).get("left") or []
    menu = [
        (str(entry["text"]), re.sub(r"\.(qmd|ipynb)$", ".html", str(entry["href"]).lstrip("/")))
        for entry in bar
        if isinstance(entry, dict) and "text" in entry and "href" in entry
    ]
    places = _taken_again(project.root / "data", out, menu, cache) if cache else write(project.root / "data", out, menu)
    _lead_to_sources(project, out)
    found_by(out, places)


def found_by(out: Path, places: list[list[str]]) -> None:
    """Add places to the search of a rendered folder, whoever rendered it: address, name, heading, text, other names."""
    index, quarto = out / "site_libs" / "search.js", out / "search.json"
    if places and index.is_file():
        known = json.loads(index.read_text("utf-8").partition("=")[2].rstrip().rstrip(";"))
        index.write_text(f"window.siteSearch = {json.dumps(known + places, ensure_ascii=False)};\n", "utf-8")
    if places and quarto.is_file():
        rows = [
            {
                "objectID": href,
                "href": href,
                "title": name,
                "section": heading,
                "text": html.escape(" ".join([text, *also]), False),
            }
            for href, name, heading, text, *also in places
        ]
        known = json.loads(quarto.read_text("utf-8"))
        quarto.write_text(json.dumps(known + rows, indent=2, ensure_ascii=False), "utf-8")


def _taken_again(data: Path, out: Path, menu: list[tuple[str, str]], cache: Path) -> list[list[str]]:
    """Write the pages, or copy those of the last build if nothing that goes into them has changed."""
    described = data / "datapackage.json"
    code = sorted(file for file in PACKAGE.rglob("*") if file.suffix in (".py", ".csv", ".html", ".css", ".js"))
    digest = hashlib.sha256(json.dumps(menu).encode())
    for file in [described, *code] if described.is_file() else code:
        digest.update(file.read_bytes())
    kept, index = cache / digest.hexdigest()[:16], "places.json"
    if not (kept / index).is_file():
        shutil.rmtree(cache, ignore_errors=True)
        places = write(data, kept, menu)
        kept.mkdir(parents=True, exist_ok=True)
        (kept / index).write_text(json.dumps(places, ensure_ascii=False), "utf-8")
    shutil.copytree(kept, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(index))
    return json.loads((kept / index).read_text("utf-8"))


def _lead_to_sources(project: Project, out: Path) -> None:
    """Let each cell of a table that is the citation or the title of a source lead to that source's page."""
    shelf = load(project.root / "data")
    if shelf is None:
        return
    known: dict[str, str] = {}
    for key, row in shelf.cited.items():
        said = [str(row[name]) for name in ("title", "author", "published") if row.get(name)]
        known |= {" ".join(text.split()): key for text in (said[0] if said else "", ". ".join(said)) if text}
    for page in project.pages:
        file = out / page.href
        if not known or not file.is_file():
            continue
        read = LexborHTMLParser(file.read_text(encoding="utf-8"))
        cells = [cell for cell in read.css("td") if not cell.css_first("a")]
        led = [(cell, known[text]) for cell in cells if (text := " ".join(cell.text().split())) in known]
        for cell, key in led:
            text = html.escape(" ".join(cell.text().split()))
            root = "../" * (len(Path(page.href).parts) - 1)
            for child in [*cell.iter(include_text=True)]:
                child.decompose()
            made = LexborHTMLParser(f'<a href="{root}things/sources/{key}.html">{text}</a>').body
            cell.insert_child(cast("LexborNode", cast("LexborNode", made).child))
        if led:
            file.write_text(str(read.html), encoding="utf-8")


def write(data: Path, out: Path, menu: Iterable[tuple[str, str]] = ()) -> list[list[str]]:
    """Write the pages of things and tables below ``out``; return their places for the search.

    Parameters
    ----------
    data
        Folder of the tables.
    out
        Folder of the rendered site: pages go to ``things/<table>/<key>.html`` and ``tables/<table>.html``.
    menu
        Entries of the top bar: text and address from the site's root.
    """
    shelf = load(data)
    if shelf is None:
        return []
    shelf.measured = _measured(shelf)
    template = _template("thing.html")
    assets = out / "things" / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    for name in ("things.css", "browse.js"):
        shutil.copyfile(THEME / name, assets / name)
    search: list[list[str]] = []
    bar = [{"text": text, "href": f"../../{href}"} for text, href in menu]
    for kind in PAGES:
        if kind not in shelf.tables:
            continue
        folder = out / "things" / kind
        folder.mkdir(parents=True, exist_ok=True)
        for page in _things(shelf, kind):
            (folder / f"{page['key']}.html").write_text(template.render(page, menu=bar, root="../../"), "utf-8")
            search.append(_found(kind, page))
    bar = [{"text": text, "href": f"../{href}"} for text, href in menu]
    return search + _browsers(shelf, out / "tables", bar)


@cache
def _template(name: str) -> Any:
    import jinja2

    loader = jinja2.FileSystemLoader(THEME)
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True).get_template(name)


# ---------------------------------------------------------------------------------------------------- pages of things


def _things(shelf: Shelf, kind: str) -> Iterator[dict[str, Any]]:
    table = shelf.tables[kind]
    computed = _computed(shelf, kind)
    for row in table.frame.iter_rows(named=True):
        key = row[table.key]
        said = shelf.statements.get((kind, key), [])
        yield {
            "kind": kind,
            "what": PAGES[kind],
            "key": key,
            "name": shelf.names[kind][key],
            "version": shelf.version,
            "facts": _facts(shelf, table, row, said),
            "others": _others(shelf, table, said),
            "history": _history(table, said),
            "computed": computed.get(key, []),
            "measured": shelf.measured.get(key, []) if kind in ("models", "runs") else [],
            "links": _links(shelf, kind, key),
            "also": sorted({*shelf.aliases.get((kind, key), [])}),
            "sql": f"fk.sql(\"from {kind} where {table.key} = '{key}'\")",
            "sql_said": f"fk.sql(\"from statements where kind = '{kind}' and thing = '{key}'\")" if said else "",
        }


def _facts(shelf: Shelf, table: Table, row: Mapping[str, Any], said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the filled cells of a thing, each with who says it."""
    chosen = {each["field"]: each for each in said if each["preferred"]}
    skipped = {*BESIDE, table.key, "said", *(("confirmed_by",) if not said else ())} - {"note"}
    facts = []
    for column, told in table.fields.items():
        if column in skipped or row[column] is None:
            continue
        who = chosen.get(column)
        fact = {"label": label(told), "about": told["description"], **shelf.shown(table, column, row[column])}
        if who:
            fact |= {"source": shelf.source(who["source"], who["address"]), "as_of": who["as_of"] or ""}
            fact |= {"locator": who["locator"], "why": who["preferred"]}
        elif "computed" in told["description"]:
            fact |= {"why": "computed", "source": None}
        elif "source" in row and table.name not in KINDS and table.name != "sources":
            fact |= {"source": shelf.source(row["source"]), "locator": row.get("locator") or ""}
            fact |= {"as_of": row.get("as_of") or "", "why": ""}
        facts.append(fact)
    return facts


def _others(shelf: Shelf, table: Table, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what else is said, field by field."""
    rows = []
    for column, told in table.fields.items():
        for each in said:
            if each["field"] != column or each["preferred"]:
                continue
            value = each["words"] if each["value"] is None else each["value"]
            rows.append(
                {"label": label(told), **shelf.shown(table, column, value), "as_of": each["as_of"] or ""}
                | {"source": shelf.source(each["source"], each["address"]), "locator": each["locator"]}
            )
    return rows


def _history(table: Table, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how counts and powers grew: for each field said of several days a line, as points of a small picture."""
    lines = []
    for column in ("accelerators", "facility_power_w", "h100_equivalents"):
        days: dict[str, float] = {}
        for each in said:
            day = str(each["as_of"] or "").partition("/")[0]
            if (
                each["field"] == column
                and each["value"] is not None
                and len(day) >= 7
                and "seed_" not in each["source"]
            ):
                days[day] = max(each["value"], days.get(day, 0.0))
        if len(days) < 2 or not any(days.values()):
            continue
        ordered = sorted(days.items())
        when = [int(day[:4]) + (int(day[5:7]) - 1) / 12 for day, _ in ordered]
        top, span = max(*days.values(), 1e-9), max(when[-1] - when[0], 1e-9)
        points = [
            (round(560 * (x - when[0]) / span), round(110 - 100 * y / top))
            for x, (_, y) in zip(when, ordered, strict=True)
        ]
        path = f"M{points[0][0]},{points[0][1]}" + "".join(f"H{x}V{y}" for x, y in points[1:])
        lines.append(
            {"label": label(table.fields[column]), "path": path, "first": ordered[0][0], "last": ordered[-1][0]}
            | {"top": number(table.fields[column], top)}
            | {"rows": [(day, number(table.fields[column], value)) for day, value in ordered]}
        )
    return lines


def _links(shelf: Shelf, kind: str, key: str) -> list[dict[str, Any]]:
    """Return the rows of other tables that name a thing, by table."""
    groups = []
    for name, rows in shelf.referring.get((kind, key), {}).items():
        table = shelf.tables[name]
        listed = []
        if name in PAGES:
            keys = dict.fromkeys(row[table.key] for row in rows)
            listed = [{"text": shelf.names[name][each], "href": f"../{name}/{each}.html"} for each in keys][:LISTED]
        groups.append(
            {"title": table.resource["title"], "rows": len(rows), "listed": listed}
            | {"href": f"../../tables/{name}.html?q={key}"}
        )
    return sorted(groups, key=lambda group: (not group["listed"], group["title"]))


def _computed(shelf: Shelf, kind: str) -> dict[str, list[dict[str, str]]]:
    """Return what the model makes of the things of one kind, by key."""
    import polars as pl

    from factorykit.model.engine.evaluate import evaluate

    asked: dict[str, tuple[tuple[str, ...], str]] = {
        "models": (("active_parameters", "tokens"), "training_flop"),
        "clusters": (("accelerators", "peak_flop_per_s"), "cluster_peak_flop_per_s"),
    }
    if kind not in asked:
        return {}
    table, (inputs, output) = shelf.tables[kind], asked[kind]
    frame = table.frame
    if kind == "clusters" and "accelerators" in shelf.tables:
        peaks = shelf.tables["accelerators"].frame.select("accelerator", rate="peak_16bit_flop_per_s")
        frame = frame.join(peaks, on="accelerator", how="left").with_columns(
            peak_flop_per_s=pl.coalesce("peak_flop_per_s", "rate")
        )
    if any(name not in frame.columns for name in inputs):
        return {}
    known = frame.select(table.key, *inputs).drop_nulls()
    try:
        found = evaluate(known.select(inputs), output)[output]
    except FactorykitError:
        return {}
    this = vocabulary()[output]
    worded = " x ".join(vocabulary()[name].label.lower() for name in inputs)
    return {
        key: [{"label": this.label, "text": this.text(value), "how": this.meaning or worded}]
        for key, value in zip(known[table.key], found, strict=True)
        if value is not None
    }


def _measured(shelf: Shelf) -> dict[str, list[dict[str, str]]]:
    """Return what was measured of runs beside what the model predicts, by the run's key."""
    from factorykit.datasets import identify
    from factorykit.model.evidence.validate import validate

    if "training_runs" not in shelf.tables or "runs" not in shelf.tables:
        return {}
    rows = {row["id"]: row for row in shelf.tables["training_runs"].frame.to_dicts()}
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    try:
        predicted = validate().drop_nulls(["measured_s", "step_s"])
    except FactorykitError:
        return {}
    for each in predicted.iter_rows(named=True):
        row = rows.get(each["id"])
        if row is None:
            continue
        try:
            key = identify("model", row["model"])
        except FactorykitError:
            continue
        found[key].append(
            {
                "what": f"{row['accelerator_count']:,.0f} {row['hardware']}",
                "predicted": f"{each['step_s']:.3g} s",
                "measured": f"{each['measured_s']:.3g} s",
                "error": f"{each['error']:+.0%}",
                "href": f"../sources/{row['source']}.html",
                "locator": row["locator"],
            }
        )
    return found


def _found(kind: str, page: Mapping[str, Any]) -> list[str]:
    """Return a thing's place for the search: address, name, heading, text and other names."""
    shown = [f"{fact['label']} {fact['text']}" for fact in page["facts"] if fact["label"] not in ("Note", "Address")]
    words = [*page["also"], page["key"].replace("_", " "), ALSO.get(kind, "")]
    return [
        f"things/{kind}/{page['key']}.html",
        page["name"],
        "",
        "; ".join(shown)[:300],
        " | ".join(filter(None, words)),
    ]


# -------------------------------------------------------------------------------------------------- browsers of tables


def _browsers(shelf: Shelf, out: Path, menu: list[dict[str, str]]) -> list[list[str]]:
    """Write a page for each table with its rows beside it as a script, and return the pages' places for the search."""
    out.mkdir(parents=True, exist_ok=True)
    template = _template("browse.html")
    search = []
    for name, table in shelf.tables.items():
        fields = [
            {"name": column, "label": label(told), "unit": "" if told.get("unit") in (None, "", "1") else told["unit"]}
            | {"about": told["description"], "number": told["type"] == "number", "to": table.references.get(column, "")}
            for column, told in table.fields.items()
        ]
        own = table.key if name in PAGES else ""
        content = {
            "table": name,
            "own": own,
            "fields": fields,
            "rows": [_plain(row) for row in table.frame.iter_rows()],
        }
        content["names"] = _names_used(shelf, table)
        content["credit"] = f"factorykit {shelf.version}, table {name}; each row names its source; CC BY 4.0"
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        (out / f"{name}.js").write_text(f"window.fkTable={text};\n", "utf-8")
        page = {
            "name": name,
            "title": table.resource["title"],
            "about": table.resource["description"].replace("`", ""),
            "rows": table.frame.height,
            "fields": fields,
            "version": shelf.version,
            "sql": f'fk.sql("from {name}")',
            "dataset": _dataset(shelf, table),
        }
        (out / f"{name}.html").write_text(template.render(page, menu=menu, root="../"), "utf-8")
        heads = ", ".join(each["label"] for each in fields[:12])
        search.append([f"tables/{name}.html", f"Table: {table.resource['title']}", "", heads, name.replace("_", " ")])
    return search


def _names_used(shelf: Shelf, table: Table) -> dict[str, dict[str, str]]:
    """Return the names of the things that the rows of a table refer to, by table and key."""
    used: dict[str, dict[str, str]] = defaultdict(dict)
    for column, of in table.references.items():
        names = shelf.names.get(of, {})
        keys = (key for key in table.frame[column].unique().drop_nulls() if key in names)
        used[of] |= {key: shorten(names[key], NAMED_WITHIN, placeholder=" …") for key in keys}
    return used


def _plain(row: tuple[Any, ...]) -> list[Any]:
    """Return a row for a script: numbers with the digits they need."""
    return [int(cell) if isinstance(cell, float) and cell == int(cell) and abs(cell) < 1e15 else cell for cell in row]


def _dataset(shelf: Shelf, table: Table) -> str:
    """Return a table in the vocabulary of schema.org, for those who look for data."""
    described = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": f"factorykit: {table.resource['title']}",
        "description": table.resource["description"],
        "version": shelf.version,
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "isAccessibleForFree": True,
        "variableMeasured": [label(told) for told in table.fields.values()],
        "distribution": [
            {"@type": "DataDownload", "encodingFormat": kind, "contentUrl": f"../report/downloads/{table.name}.{end}"}
            for end, kind in (
                ("parquet", "application/vnd.apache.parquet"),
                ("csv", "text/csv"),
                ("json", "application/json"),
            )
        ],
    }
    return json.dumps(described, ensure_ascii=False).replace("<", "\\u003c")
