"""Table browser pages: rows to sort, filter and download, usable from local files too."""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final

from factorykit.charts.embed import script_json
from factorykit.core.vocabulary import vocabulary
from factorykit.data.entities import BESIDE
from factorykit.site.page_layout import template
from factorykit.site.table_data import PAGES, Shelf, Table, label

if TYPE_CHECKING:
    import polars as pl

PART: Final = 80_000
"""Compressed size of the rows that a page reads in one request [B]."""
COLUMNS: Final = 10
WORDY: Final = 28
RARE: Final = 0.2
"""Columns shown initially; the length of text and the share of filled cells at which a column is hidden initially."""
NAMED_WITHIN: Final = 64
"""Maximum length of the name of a row."""


def browsers(shelf: Shelf, out: Path, words: dict[str, Any]) -> list[list[str]]:
    """Write a page for each table and a script with its rows, and return the search entries of the pages."""
    out.mkdir(parents=True, exist_ok=True)
    made = template("browse.html")
    search = []
    for name, table in shelf.tables.items():
        fields = [
            {
                "name": column,
                "label": label(described),
                "unit": "" if described.get("unit") in (None, "", "1") else described["unit"],
            }
            | {
                "about": described["description"],
                "number": described["type"] == "number",
                "to": table.references.get(column, ""),
            }
            for column, described in table.fields.items()
        ]
        own = table.key if name in PAGES else ""
        content = {
            "table": name,
            "own": own,
            "fields": fields,
            "rows": table.frame.height,
            "pages": [*PAGES],
            "shown": _shown(table),
            "first": _first(table),
        }
        content["names"] = _names_used(shelf, table)
        cited = ((key, shelf.cited[key]["url"]) for key in content["names"].get("sources", ()))
        content["publishers"] = {key: url for key, url in cited if url}
        content["credit"] = f"factorykit {shelf.version}, table {name}; each row names its source; CC BY 4.0"
        first, *others = _parts(table.frame)
        content |= {"columns": first, "parts": len(others)}
        (out / f"{name}.js").write_text(f"window.fkTable={script_json(content)};\n", "utf-8")
        for number, part in enumerate(others, 1):
            (out / f"{name}.{number}.js").write_text(f"window.fkTable.take({script_json(part)});\n", "utf-8")
        page = {
            "name": name,
            "title": table.resource["title"],
            "about": table.resource["description"].replace("`", ""),
            "rows": table.frame.height,
            "fields": fields,
            "sql": f'fk.sql("from {name}")',
            "dataset": _dataset(shelf, table),
        }
        (out / f"{name}.html").write_text(made.render(words | page), "utf-8")
        heads = ", ".join(each["label"] for each in fields[:12])
        search.append([f"tables/{name}.html", f"Table: {table.resource['title']}", "", heads, name.replace("_", " ")])
    return search


def _names_used(shelf: Shelf, table: Table) -> dict[str, dict[str, str]]:
    """Return the names of the entities that the rows of a table refer to, by table and key."""
    used: dict[str, dict[str, str]] = defaultdict(dict)
    for column, of in table.references.items():
        names = shelf.names.get(of, {})
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
        leads = counts or name in table.references
        wordy = not leads and sum(map(len, cells)) > WORDY * len(cells)
        return name != table.title, filled[name] <= RARE, wordy, table.name in PAGES and not leads

    kept = [name for name in table.fields if filled[name] and name not in BESIDE and not name.endswith("_stated")]
    key = [table.key] if table.name in PAGES and table.title != table.key else []
    picked = {*sorted((name for name in kept if name not in key), key=rank)[:COLUMNS], "source", "as_of"}
    return [name for name in table.fields if name in picked and filled[name]]


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


def _dataset(shelf: Shelf, table: Table) -> str:
    """Return the schema.org description of a table, for data set search engines."""
    described = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": f"factorykit: {table.resource['title']}",
        "description": table.resource["description"],
        "version": shelf.version,
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "isAccessibleForFree": True,
        "variableMeasured": [label(described) for described in table.fields.values()],
        "distribution": [
            {"@type": "DataDownload", "encodingFormat": kind, "contentUrl": f"../report/downloads/{table.name}.{end}"}
            for end, kind in (
                ("parquet", "application/vnd.apache.parquet"),
                ("csv", "text/csv"),
                ("json", "application/json"),
            )
        ],
    }
    return script_json(described)
