"""Table browser pages: rows to sort, filter and download, usable from local files too."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

import polars as pl

from factorykit.charts.embed import script_json
from factorykit.core.vocabulary import LARGE_NUMBERS, SI_PREFIXES, SUPERSCRIPTS, format_number, vocabulary
from factorykit.data.entities import STATEMENT_COLUMNS
from factorykit.site.page_layout import template
from factorykit.site.table_data import PAGES, SI, WORDED, DataPackage, Table, label, unit_text

PART: Final = 80_000
"""Compressed size of the rows that a page reads in one request [B]."""
COLUMNS: Final = 10
WORDY: Final = 28
RARE: Final = 0.2
"""Columns shown initially; the length of text and the share of filled cells at which a column is hidden initially."""
NAMED_WITHIN: Final = 64
"""Maximum length of the name of a row."""
CATEGORIES: Final = 24
"""Maximum number of texts of a column that is filtered by choosing some of them."""
NAMES: Final = 2000
"""Maximum number of letters of the names of all rows that the search finds a table by."""
DATE: Final = r"^\d{4}(-\d\d){0,2}(/.*)?$"
ROWS: Final = 25
LETTERS: Final = 120
"""Rows written into a page for readers without a script, and the letters of a cell in them."""


def browsers(package: DataPackage, out: Path, words: dict[str, Any]) -> list[list[str]]:
    """Write a page for each table and a script with its rows, and return the search entries of the pages."""
    out.mkdir(parents=True, exist_ok=True)
    made = template("browse.html")
    search = []
    for name, table in package.tables.items():
        fields = [_field(table, column) for column in table.fields]
        names, shown, order = _names_used(package, table), _shown(table), _first(table)
        cited = ((key, package.cited[key]["url"]) for key in names.get("sources", ()))
        first, *others = _parts(table.frame)
        content = {
            "table": name, "own": table.key if name in PAGES else "", "named": table.title, "fields": fields,
            "rows": table.frame.height, "pages": [*PAGES], "shown": shown, "first": order, "names": names,
            "publishers": {key: url for key, url in cited if url}, "columns": first, "parts": len(others),
            "credit": f"factorykit {package.version}, table {name}; each row names its source; CC BY 4.0",
        }  # fmt: skip
        (out / f"{name}.js").write_text(f"window.fkTable={script_json(content)};\n", "utf-8")
        for number, part in enumerate(others, 1):
            (out / f"{name}.{number}.js").write_text(f"window.fkTable.take({script_json(part)});\n", "utf-8")
        heads = sorted((spec for spec in fields if spec["name"] in shown), key=lambda spec: shown.index(spec["name"]))
        page = {
            "name": name, "title": table.resource["title"], "about": table.resource["description"].replace("`", ""),
            "rows": table.frame.height, "fields": fields, "labels": [spec["label"] for spec in fields], "heads": heads,
            "first": _first_rows(package, table, heads, order), "sql": f'fk.sql("from {name}")',
        }  # fmt: skip
        (out / f"{name}.html").write_text(made.render(words | page), "utf-8")
        is_named = name not in PAGES and table.title != table.key
        named = ", ".join(table.frame[table.title].unique().drop_nulls().sort()) if is_named else ""
        labels = ", ".join(spec["label"] for spec in fields[:12]) + "; " * bool(named) + named * (len(named) < NAMES)
        text = f"{shorten(page['about'], 2 * LETTERS, placeholder=' …')} {labels}"
        sellers = table.frame["provider"].unique().sort() if name == "rental_offers" else ()
        also = " | ".join([name.replace("_", " "), *(f"{seller} price" for seller in sellers)])
        search.append([f"tables/{name}.html", f"Table: {table.resource['title']}", "", text, also])
    return search


def _field(table: Table, name: str) -> dict[str, Any]:
    """Return a column for the page: its name, label, meaning, kind of filter, and the unit of its header."""
    described = table.fields[name]
    cells, base = table.frame[name].drop_nulls(), described.get("unit") or ""
    scale, prefix, kind = 1.0, "", "number"
    if described["type"] != "number":
        dated = len(cells) and cells.str.contains(DATE).all()
        few = 0 < cells.n_unique() <= CATEGORIES and (cells.str.len_chars().max() or 0) <= NAMED_WITHIN  # type: ignore[operator]
        kind = "date" if dated else "category" if few else "text"
    elif base in SI - {"FLOP"} and len(cells):
        middle = cells.abs().median() or 1.0
        scale, prefix = next((pair for pair in SI_PREFIXES if middle >= pair[0]), (1.0, ""))  # type: ignore[operator]
    return {
        "name": name, "label": label(described), "about": described["description"].replace("`", ""), "kind": kind,
        "base": base, "unit": prefix + unit_text(base), "scale": scale, "words": base in WORDED,
        "to": table.references.get(name, ""),
    }  # fmt: skip


def _first_rows(
    package: DataPackage, table: Table, shown: list[dict[str, Any]], order: str
) -> list[list[dict[str, Any]]]:
    """Return the cells of the first rows, as browse.js shows them, for readers without a script."""
    frame = table.frame.sort(order, descending=True, nulls_last=True) if order else table.frame

    def cell(row: dict[str, Any], field: dict[str, Any]) -> dict[str, Any]:
        value = row[field["name"]]
        if field["kind"] == "number" or value is None:
            return {"text": "" if value is None else _text(field, value), "right": field["kind"] == "number"}
        link = package.shown(table, field["name"], value)
        own = table.name in PAGES and field["name"] == table.title
        href = f"../{table.name}/{row[table.key]}.html" if own else link["href"]
        href = re.sub(r"^\.\./(?=\w+/)", "../entities/", href.replace("../../tables/", ""))
        return {"text": shorten(link["text"], LETTERS, placeholder=" …"), "href": href}

    return [[cell(row, field) for field in shown] for row in frame.head(ROWS).iter_rows(named=True)]


def _text(field: dict[str, Any], value: float) -> str:
    """Format a number in the unit of the header, as browse.js does."""
    size, scale = abs(value), field["scale"]
    if field["unit"] == "a":
        return f"{value:.0f}"
    for large, word in LARGE_NUMBERS if field["words"] else ():
        if size >= large * 0.9995:
            return f"{format_number(value / large, 4)} {word}".strip()
    if value and not 1e-4 <= size < 1e15 * scale:
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{float(digits):g} × 10{str(int(power)).translate(SUPERSCRIPTS).replace('-', '⁻')}"
    return f"{value:,.0f}" if scale == 1 and value == int(value) else format_number(value / scale, 4)


def _names_used(package: DataPackage, table: Table) -> dict[str, dict[str, str]]:
    """Return the names of the entities that the rows of a table refer to, by table and key."""
    used: dict[str, dict[str, str]] = defaultdict(dict)
    for column, of in table.references.items():
        names = package.names.get(of, {})
        keys = (key for key in table.frame[column].unique(maintain_order=True).drop_nulls() if key in names)
        used[of] |= {key: shorten(names[key], NAMED_WITHIN, placeholder=" …") for key in keys}
    return used


def _shown(table: Table) -> list[str]:
    """Return the columns shown initially: for entities the numbers and the references."""
    filled = {name: table.frame[name].count() / max(1, table.frame.height) for name in table.fields}

    def rank(name: str) -> tuple[bool, ...]:
        """Return the sort key of a column: the title first; sparse columns, long texts and unlinked texts last."""
        described, cells = table.fields[name], [str(cell) for cell in table.frame[name].drop_nulls()]
        counts = described["type"] == "number" and described.get("unit") != "degree"
        leads = counts or name in table.references or len({*cells}) <= COLUMNS
        wordy = not leads and sum(map(len, cells)) > WORDY * len(cells)
        return name != table.title, filled[name] <= RARE, wordy, table.name in PAGES and not leads

    kept = [
        name for name in table.fields if filled[name] and name not in STATEMENT_COLUMNS and not name.endswith("_stated")
    ]
    key = [table.key] if table.name in PAGES and table.title != table.key else []
    picked = {*sorted((name for name in kept if name not in key), key=rank)[:COLUMNS], "source", "as_of"}
    shown = [name for name in table.fields if name in picked and filled[name]]
    return sorted(shown, key=lambda name: (name != table.title, name != "status")) if table.name in PAGES else shown


def _first(table: Table) -> str:
    """Return the column by which entities are sorted in descending order, if any."""
    known = (
        name
        for name, described in table.fields.items()
        if described["type"] == "number" and (described.get("quantity") or name) in vocabulary()
    )
    return (
        next((name for name in known if 2 * table.frame[name].count() > table.frame.height), "")
        if table.name in PAGES
        else ""
    )


def _parts(frame: pl.DataFrame) -> list[list[Any]]:
    """Return the columns of a table in parts: the first is loaded with the page, the others on demand."""
    whole = _columns(frame)
    count = len(gzip.compress(script_json(whole).encode(), 6)) // PART + 1
    size = -(-frame.height // count)
    return [whole] if count == 1 else [_columns(frame.slice(at, size)) for at in range(0, frame.height, size)]


def _columns(frame: pl.DataFrame) -> list[Any]:
    """Return the columns for a script: integral floats become integers, repeated texts indexes into a list."""
    return [_column([_plain(cell) for cell in column]) for column in frame.iter_columns()]


def _column(cells: list[Any]) -> list[Any] | dict[str, list[Any]]:
    places = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
    if 2 * len(places) > len(cells) or not any(isinstance(cell, str) for cell in places):
        return cells
    return {"words": [*places], "at": [places[cell] for cell in cells]}


def _plain(cell: Any) -> Any:
    return int(cell) if isinstance(cell, float) and cell == int(cell) and abs(cell) < 1e15 else cell
