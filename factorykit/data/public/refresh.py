"""Comparison of publishers' new files with the tables kept by hand, row by row.

Nothing is lost: cells that the publisher left empty, rows with older statements, and rows missing in the file are kept
and reported. Written changes are also recorded in the table `data_changes`.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from factorykit.core import text_io
from factorykit.core.atomic_io import locked, move_incoming, replace_files
from factorykit.core.errors import DatasetError, UnknownName, short_repr, unknown_name_message
from factorykit.core.validation import file_path, path_or_url
from factorykit.data.identifiers import known_key
from factorykit.data.public import connectors
from factorykit.data.public.publishers import RECIPES, Recipe, Row
from factorykit.data.tables import data_folder, resources

CHANGES: Final = "data_changes"
UNRECORDED: Final = (CHANGES, "sources")
"""Tables whose changes are not recorded: the changelog, and the table with the dates of access."""
FITTED: Final = "factorykit_fit"
"""Source of fitted values, which change with the model and are not recorded."""
SAME: Final = 5e-6
"""Relative difference up to which two numbers are equal: tables keep six digits or more."""
COLUMNS: Final = ("table", "source", "row", "change", "column", "was", "now", "why")
BESIDE: Final = ("locator", "as_of", "note", "source", "statement", "preferred")
"""Columns that accompany a change and are not changes themselves."""


@dataclass
class _Table:
    """A source file, as text."""

    name: str
    path: Path
    header: list[str]
    rows: list[dict[str, str]]

    @classmethod
    def read(cls, path: Path) -> _Table:
        try:
            cells = text_io.csv_columns(text_io.read_bytes(path))
        except ValueError as error:
            raise DatasetError(f"{path} {error}") from None
        if path.stem in resources() and "source" not in cells:
            raise DatasetError(f"{path} has no column source; give a folder of source files")
        rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        return cls(path.stem, path, list(cells), rows)

    def text(self) -> str:
        out = io.StringIO()
        writer = csv.DictWriter(out, self.header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return out.getvalue()

    @property
    def key(self) -> str:
        """The first column, which is the key in all refreshed tables."""
        return self.header[0]

    def named(self) -> dict[str, dict[str, str]]:
        """Return the rows by key; the cells of a key with several columns are joined by slashes."""
        keys = [name for name in resources()[self.name]["schema"]["primaryKey"] if name in self.header]
        return {"/".join(row[name] for name in keys): row for row in self.rows}


def refresh(
    *origins: str | os.PathLike[str],
    apply: bool = False,
    sources: str | Path | None = None,
    day: date | None = None,
) -> pl.DataFrame:
    """Compare publishers' new files with the tables, and optionally write the changes.

    Parameters
    ----------
    *origins : path or str
        Folders of CSV files named like the data sets of `connectors`, or ``name=file`` and ``name=https://…`` for one.
    apply : bool, optional
        Write the changes to the source files, with the dates of access and the table `data_changes`; `build` then
        makes the tables. By default nothing is written.
    sources : path, optional
        Folder of the source files; the one that `build` reads by default.
    day : date, optional
        Day on which the files are read; today by default.

    Returns
    -------
    polars.DataFrame
        One row per change: ``table``, ``source``, ``row`` (its key), ``change`` (``added``, ``changed``, ``kept`` where
        the new value is worse, ``gone`` where the file has no such row; only the first two are written),
        ``column``, ``was``, ``now``, ``why``.

    Raises
    ------
    DatasetError
        If there is nothing to read, a file cannot be read, or its publisher changed the columns.
    UnknownName
        If ``name=…`` is not a data set of a table.
    """
    files = dict(_files(origins))
    if not files:
        names = ", ".join(sorted({recipe.dataset for recipe in RECIPES}))
        raise DatasetError(f"no publisher's file in {short_repr(origins)}; known are {names}")
    tables = _read_all(sources)
    before = {name: table.text() for name, table in tables.items()}
    report: list[dict[str, str | None]] = []
    today = day or datetime.now(UTC).date()
    for dataset, origin in files.items():
        frame = connectors.read(dataset, origin)
        for recipe in (candidate for candidate in RECIPES if candidate.dataset == dataset):
            rows = recipe.rows(frame, {name: table.rows for name, table in tables.items()})
            report += _merged(recipe, list(rows), tables[recipe.table])
            _record_access(tables["sources"], recipe, frame, today)
    frame = pl.DataFrame(report, schema=dict.fromkeys(COLUMNS, pl.String))
    if apply:
        _record(frame, tables, today)
        _write([table for name, table in tables.items() if table.text() != before[name]])
    return frame


def _read_all(place: str | Path | None) -> dict[str, _Table]:
    """Return the source files of a folder, by default of the one that `build` reads."""
    home = data_folder() / "sources" if place is None else file_path("sources", place)
    if not home.is_dir():
        raise DatasetError(f"{home} is not a folder of source files; give sources=…")
    with suppress(PermissionError):  # of a read-only checkout
        move_incoming(home)
    return {path.stem: _Table.read(path) for path in sorted(home.glob("*.csv"))}


def _write(tables: Iterable[_Table]) -> None:
    """Write source files, all or none."""
    if texts := {table.path: table.text().encode() for table in tables}:
        home = next(iter(texts)).parent
        with locked(home):
            replace_files({path.name: text for path, text in texts.items()}, home)


def _files(origins: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[str, str]]:
    """Yield the data sets to read and their files or addresses."""
    known = list(dict.fromkeys(recipe.dataset for recipe in RECIPES))
    for each in origins:
        origin = path_or_url("origin", each)
        name, given, place = origin.partition("=")
        if given and name.isidentifier():
            if name not in known:
                raise UnknownName(unknown_name_message("data set", name, known))
            yield name, place
        elif not (folder := file_path("origin", origin)).is_dir():
            raise DatasetError(f"{origin} is not a folder; give one, or name=file, e.g. {known[0]}={origin}")
        else:
            yield from ((name, str(path)) for name in known if (path := folder / f"{name}.csv").is_file())


def _merged(recipe: Recipe, rows: list[Row], table: _Table) -> Iterator[dict[str, str | None]]:
    """Yield the changes and apply them to the rows of the table."""
    mine = {row[recipe.match]: row for row in table.rows if row["source"] == recipe.source}
    aside = {*BESIDE, *recipe.once, *table.header[: 2 if "statement" in table.header else 1], recipe.match}
    taken = {row[table.key] for row in table.rows}

    change = partial(_change, table.name, recipe.source)
    for row in rows:
        old = mine.pop(row[recipe.match], None)
        if old is None and row.get(table.key) in taken:
            yield change(row[table.key], "kept", now=row["locator"], why="another source has this row")
            continue
        if old is None:
            new = _started(row, recipe, table, taken)
            place = max((at for at, line in enumerate(table.rows) if line["source"] == recipe.source), default=None)
            table.rows.insert(len(table.rows) if place is None else place + 1, new)
            taken.add(new[table.key])
            yield change(new[table.key], "added", now=new.get("name") or new["locator"])
            continue
        cells = {name: _cell(value) for name, value in row.items() if name in table.header}
        moved = {name: now for name, now in cells.items() if name not in aside and _differs(old[name], now)}
        if _end(cells.get("as_of", "")) < _end(old["as_of"]) and cells.get("as_of"):
            for name, now in moved.items():
                why = f"the file is of {cells['as_of']}, the row of {old['as_of']}"
                yield change(old[table.key], "kept", name, old[name], now, why)
            continue
        for name, now in moved.items():
            if not now:
                yield change(old[table.key], "kept", name, old[name], why="the file leaves it empty")
            else:
                yield change(old[table.key], "changed", name, old[name], now)
                old[name] = now
        if any(moved.values()):
            old |= {name: cells[name] for name in ("locator", "as_of", "note") if cells.get(name)}
    if recipe.whole:
        prefix = {row[recipe.match].partition(" ")[0] for row in rows}
        for match, row in mine.items():
            if recipe.match != "locator" or match.partition(" ")[0] in prefix:
                yield change(row[table.key], "gone", was=row.get("name") or row["locator"], why="not in the file")


def _started(row: Row, recipe: Recipe, table: _Table, taken: set[str]) -> dict[str, str]:
    """Return a new row of the table, with its key and, where it is known, its organisation."""
    new = dict.fromkeys(table.header, "") | {name: _cell(row[name]) for name in row if name in table.header}
    new["source"] = recipe.source
    if "statement" in table.header:
        entity = table.header[1]
        same = {line[entity] for line in table.rows if line.get("name") == new["name"]}
        new[entity] = next(iter(sorted(same)), new[entity])
        base = f"{new[entity]}@{recipe.source}"
        new["statement"] = next(
            name for at in range(1, len(taken) + 2) if (name := base if at == 1 else f"{base}.{at}") not in taken
        )
    if "operator" in table.header and new["operator"]:
        new["organisation"] = known_key("organisation", new["operator"]) or ""
        new["operator"] = new["operator"] if new["organisation"] else ""
    return new


def _record_access(sources: _Table, recipe: Recipe, frame: pl.DataFrame, day: date) -> None:
    """Set the dates of access and, where the rows have dates, of publication in the table of sources."""
    row = next(line for line in sources.rows if line["source"] == recipe.source)
    row["accessed"] = max(row["accessed"], day.isoformat())
    if recipe.newest:
        row["published"] = max(row["published"], str(frame[recipe.newest].max())[:10])


def changes(
    since: str | Path, *, apply: bool = False, sources: str | Path | None = None, day: date | None = None
) -> pl.DataFrame:
    """Return the manual changes of the source files since an earlier copy.

    Parameters
    ----------
    since : path
        Folder with the earlier copy.
    apply : bool, optional
        Append it to the table `data_changes`.
    sources : path, optional
        Folder of the source files; the one that `build` reads by default.
    day : date, optional
        Day of the changes; today by default.

    Returns
    -------
    polars.DataFrame
        As from `refresh`; ``change`` is ``added``, ``changed`` or ``removed``.

    Raises
    ------
    DatasetError
        If one of the paths is not a folder.
    """
    before, after = _read_all(file_path("since", since)), _read_all(sources)
    report = [
        change
        for name, table in after.items()
        if name not in UNRECORDED
        for change in _between(before.get(name), table)
    ]
    frame = pl.DataFrame(report, schema=dict.fromkeys(COLUMNS, pl.String))
    if apply:
        _record(frame, after, day or datetime.now(UTC).date())
        _write([after[CHANGES]])
    return frame


def _between(before: _Table | None, after: _Table) -> Iterator[dict[str, str | None]]:
    """Yield the differences between two states of a table; new tables belong to the changelog of releases."""
    if before is None or after.name not in resources():
        return
    old, new = (
        {key: row for key, row in table.named().items() if row["source"] != FITTED} for table in (before, after)
    )
    for key, row in new.items():
        source = row["source"]
        was = old.pop(key, None)
        if was is None:
            yield _change(after.name, source, key, "added", now=row.get("name") or row.get("locator") or key)
            continue
        for name in after.header:
            if name in was and _differs(was[name], row[name]):
                yield _change(after.name, source, key, "changed", name, was[name], row[name])
    for key, row in old.items():
        yield _change(after.name, row["source"], key, "removed", was=row.get("name") or row.get("locator") or key)


def _change(
    table: str, source: str, row: str, change: str, column: str = "", was: str = "", now: str = "", why: str = ""
) -> dict[str, str | None]:
    """Return one row of the report."""
    cells = (table, source, row, change, column or None, was or None, now or None, why or None)
    return dict(zip(COLUMNS, cells, strict=True))


def _record(report: pl.DataFrame, tables: Mapping[str, _Table], day: date) -> None:
    """Append the written changes to the changelog of the data."""
    log = tables[CHANGES]
    stem = f"{day:%Y_%m_%d}"
    number = sum(row[log.key].startswith(stem) for row in log.rows)
    rows = {name: tables[name].named() for name in report["table"].unique()}
    for entry in report.iter_rows(named=True):
        if entry["change"] not in ("added", "changed", "removed"):
            continue
        number += 1
        row = rows[entry["table"]].get(entry["row"], {})
        cells = {
            "data_change": f"{stem}_{number:05d}",
            "day": day.isoformat(),
            **{name: entry[name] or "" for name in ("table", "row", "change", "column", "was", "now", "source")},
            "locator": row.get("locator") or entry["row"],
            "as_of": row.get("as_of") or "",
        }
        log.rows.append(dict.fromkeys(log.header, "") | cells)


def _cell(value: object) -> str:
    """Return a value as a source file writes it."""
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value).strip()


def _differs(was: str, now: str) -> bool:
    try:
        before, after = float(was), float(now)
    except ValueError:
        return was != now
    return abs(before - after) > SAME * max(abs(before), abs(after))


def _end(when: str) -> str:
    """Return the end of a time such as 2026-07/2026-08, for comparison; the last day where only a year is stated."""
    last = when.rpartition("/")[2]
    return last + "-12-31"[len(last) - 4 :] if 4 <= len(last) < 10 else last
