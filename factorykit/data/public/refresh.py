"""New files of publishers against the tables kept by hand: what would change row by row, and what is kept.

Nothing is lost: a cell that the publisher left empty, a row of which only something older is said, and a row that is
no longer in the file all stay as they are and are told. What is written is told in the table `data_changes` too.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from factorykit.core import text_io
from factorykit.core.atomic_io import locked, move_incoming, replace_files
from factorykit.core.errors import DatasetError, UnknownName, short_repr, unknown_name_message
from factorykit.core.validation import file_path, path_or_url
from factorykit.data.identifiers import identify
from factorykit.data.public import connectors
from factorykit.data.public.publishers import RECIPES, Recipe, Row
from factorykit.data.tables import data_folder, resources

if TYPE_CHECKING:
    import polars as pl

CHANGES: Final = "data_changes"
UNTOLD: Final = (CHANGES, "sources")
"""Tables of which no change is told: the changelog, and the table of when what was read."""
FITTED: Final = "factorykit_fit"
"""Source of what is found anew with every change of the model, and not told either."""
SAME: Final = 5e-6
"""Relative difference up to which two numbers are one: tables keep six digits and more."""
COLUMNS: Final = ("table", "source", "row", "what", "column", "was", "now", "why")
BESIDE: Final = ("locator", "as_of", "note", "source", "statement", "preferred")
"""Cells that follow a change and are none."""


@dataclass
class _Table:
    """A source file, as text."""

    name: str
    path: Path
    header: list[str] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)

    def read(self) -> _Table:
        content = text_io.read_bytes(self.path)
        try:
            cells = text_io.csv_columns(content)
        except ValueError as error:
            raise DatasetError(f"{self.path} {error}") from None
        if self.name in resources() and "source" not in cells:
            raise DatasetError(f"{self.path} has no column source; give a folder of source files")
        self.header = list(cells)
        self.rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        return self

    def text(self) -> str:
        out = io.StringIO()
        writer = csv.DictWriter(out, self.header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return out.getvalue()

    @property
    def key(self) -> str:
        """The column that names a row, in all tables that are refreshed: the first."""
        return self.header[0]

    def named(self) -> dict[str, dict[str, str]]:
        """Return the rows by name: the cells of their key, joined by a slash where it has several columns."""
        keys = [name for name in resources()[self.name]["schema"]["primaryKey"] if name in self.header]
        return {"/".join(row[name] for name in keys): row for row in self.rows}


def refresh(
    *origins: str | os.PathLike[str],
    apply: bool = False,
    sources: str | Path | None = None,
    day: date | None = None,
) -> pl.DataFrame:
    """Hold new files of publishers against the tables, and write what is better where asked to.

    Parameters
    ----------
    *origins : path or str
        Folders of CSV files called as the data sets of `connectors`, or ``name=file`` and ``name=https://…`` for one.
    apply : bool, optional
        Write what changed into the source files, the days on which sources were read, and the table `data_changes`;
        `build` makes tables of them. By default nothing is written.
    sources : path, optional
        Folder of the source files; the one that `build` reads by default.
    day : date, optional
        Day on which the files are read; today by default.

    Returns
    -------
    polars.DataFrame
        One row per change: ``table``, ``source``, ``row`` (its key), ``what`` (``added``, ``changed``, ``kept`` where
        the new is worse, ``gone`` where the file has no such row any more; only the first two are written),
        ``column``, ``was``, ``now``, ``why``.

    Raises
    ------
    DatasetError
        If there is nothing to read, a file cannot be read, or its publisher changed the columns.
    UnknownName
        If ``name=…`` names no data set that a table is made from.
    """
    import polars as pl

    text_io = dict(_files(origins))
    if not text_io:
        names = ", ".join(sorted({recipe.dataset for recipe in RECIPES}))
        raise DatasetError(f"no file of a publisher in {short_repr(origins)}; known are {names}")
    tables = _read_all(sources)
    before = {name: table.text() for name, table in tables.items()}
    found: list[dict[str, str | None]] = []
    today = day or datetime.now(UTC).date()
    for dataset, origin in text_io.items():
        frame = connectors.read(dataset, origin)
        for recipe in (each for each in RECIPES if each.dataset == dataset):
            said = recipe.rows(frame, {name: table.rows for name, table in tables.items()})
            found += _merged(recipe, list(said), tables[recipe.table])
            _read_on(tables["sources"], recipe, frame, today)
    frame = pl.DataFrame(found, schema=dict.fromkeys(COLUMNS, pl.String))
    if apply:
        _record(frame, tables, today)
        _write([table for name, table in tables.items() if table.text() != before[name]])
    return frame


def _read_all(place: str | Path | None) -> dict[str, _Table]:
    """Return the source files of a folder, by default of the one that `build` reads."""
    home = data_folder() / "sources" if place is None else file_path("sources", place)
    if not home.is_dir():
        raise DatasetError(f"{home} is no folder of source files; give sources=…")
    with suppress(PermissionError):  # of a checkout that may only be read
        move_incoming(home)
    return {path.stem: _Table(path.stem, path).read() for path in sorted(home.glob("*.csv"))}


def _write(tables: Iterable[_Table]) -> None:
    """Write source files, all or none."""
    if texts := {each.path: each.text().encode() for each in tables}:
        home = next(iter(texts)).parent
        with locked(home):
            replace_files({path.name: text for path, text in texts.items()}, home)


def _files(origins: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[str, str]]:
    """Yield the data sets to read and where they are."""
    known = list(dict.fromkeys(recipe.dataset for recipe in RECIPES))
    for each in origins:
        origin = path_or_url("origin", each)
        name, given, place = origin.partition("=")
        if given and name.isidentifier():
            if name not in known:
                raise UnknownName(unknown_name_message("data set", name, known))
            yield name, place
        elif not (folder := file_path("origin", origin)).is_dir():
            raise DatasetError(f"{origin} is no folder; give one, or name=file, e.g. {known[0]}={origin}")
        else:
            yield from ((name, str(path)) for name in known if (path := folder / f"{name}.csv").is_file())


def _merged(recipe: Recipe, said: list[Row], table: _Table) -> Iterator[dict[str, str | None]]:
    """Yield what changes, and change the rows of the table."""
    mine = {row[recipe.match]: row for row in table.rows if row["source"] == recipe.source}
    aside = {*BESIDE, *recipe.once, *table.header[: 2 if "statement" in table.header else 1], recipe.match}
    taken = {row[table.key] for row in table.rows}

    told = partial(_told, table.name, recipe.source)
    for row in said:
        old = mine.pop(row[recipe.match], None)
        if old is None and row.get(table.key) in taken:
            yield told(row[table.key], "kept", now=row["locator"], why="another source says it")
            continue
        if old is None:
            new = _started(row, recipe, table, taken)
            place = max((at for at, each in enumerate(table.rows) if each["source"] == recipe.source), default=None)
            table.rows.insert(len(table.rows) if place is None else place + 1, new)
            taken.add(new[table.key])
            yield told(new[table.key], "added", now=new.get("name") or new["locator"])
            continue
        cells = {name: _cell(value) for name, value in row.items() if name in table.header}
        moved = {name: now for name, now in cells.items() if name not in aside and _differs(old[name], now)}
        if _end(cells.get("as_of", "")) < _end(old["as_of"]) and cells.get("as_of"):
            for name, now in moved.items():
                why = f"the file speaks of {cells['as_of']}, the row of {old['as_of']}"
                yield told(old[table.key], "kept", name, old[name], now, why)
            continue
        for name, now in moved.items():
            if not now:
                yield told(old[table.key], "kept", name, old[name], why="the file leaves it empty")
            else:
                yield told(old[table.key], "changed", name, old[name], now)
                old[name] = now
        if any(moved.values()):
            old |= {name: cells[name] for name in ("locator", "as_of", "note") if cells.get(name)}
    if recipe.whole:
        prefix = {row[recipe.match].partition(" ")[0] for row in said}
        for match, row in mine.items():
            if recipe.match != "locator" or match.partition(" ")[0] in prefix:
                yield told(row[table.key], "gone", was=row.get("name") or row["locator"], why="not in the file")


def _started(row: Row, recipe: Recipe, table: _Table, taken: set[str]) -> dict[str, str]:
    """Return a new row of the table, with its key, and the organisation where its name leads to one."""
    new = dict.fromkeys(table.header, "") | {name: _cell(row[name]) for name in row if name in table.header}
    new["source"] = recipe.source
    if "statement" in table.header:
        thing = table.header[1]
        same = {each[thing] for each in table.rows if each.get("name") == new["name"]}
        new[thing] = next(iter(sorted(same)), new[thing])
        base = f"{new[thing]}@{recipe.source}"
        new["statement"] = next(
            name for at in range(1, len(taken) + 2) if (name := base if at == 1 else f"{base}.{at}") not in taken
        )
    if "operator" in table.header and new["operator"]:
        try:
            new["organisation"] = identify("organisation", new["operator"])
        except UnknownName:
            new["operator"], new["organisation"] = "", ""
    return new


def _read_on(sources: _Table, recipe: Recipe, frame: pl.DataFrame, day: date) -> None:
    """Say in the table of sources when the publisher's file was read, and of which day it is where its rows say so."""
    row = next(each for each in sources.rows if each["source"] == recipe.source)
    row["accessed"] = max(row["accessed"], day.isoformat())
    if recipe.newest:
        row["published"] = max(row["published"], str(frame[recipe.newest].max())[:10])


def changes(
    since: str | Path, *, apply: bool = False, sources: str | Path | None = None, day: date | None = None
) -> pl.DataFrame:
    """Return what was changed by hand: the source files beside an earlier copy of them.

    Parameters
    ----------
    since : path
        Folder of the source files as they were.
    apply : bool, optional
        Append it to the table `data_changes`.
    sources : path, optional
        Folder of the source files; the one that `build` reads by default.
    day : date, optional
        Day of the changes; today by default.

    Returns
    -------
    polars.DataFrame
        As from `refresh`; ``what`` is ``added``, ``changed`` or ``removed``.

    Raises
    ------
    DatasetError
        If one of the folders is none.
    """
    import polars as pl

    before, after = _read_all(file_path("since", since)), _read_all(sources)
    found = [
        change for name, table in after.items() if name not in UNTOLD for change in _between(before.get(name), table)
    ]
    frame = pl.DataFrame(found, schema=dict.fromkeys(COLUMNS, pl.String))
    if apply:
        _record(frame, after, day or datetime.now(UTC).date())
        _write([after[CHANGES]])
    return frame


def _between(before: _Table | None, after: _Table) -> Iterator[dict[str, str | None]]:
    """Yield the differences of two states of one table; a table that is new is told of by the changelog of releases."""
    if before is None or after.name not in resources():
        return
    old, new = ({key: row for key, row in each.named().items() if row["source"] != FITTED} for each in (before, after))
    for key, row in new.items():
        source = row["source"]
        was = old.pop(key, None)
        if was is None:
            yield _told(after.name, source, key, "added", now=row.get("name") or row.get("locator") or key)
            continue
        for name in after.header:
            if name in was and _differs(was[name], row[name]):
                yield _told(after.name, source, key, "changed", name, was[name], row[name])
    for key, row in old.items():
        yield _told(after.name, row["source"], key, "removed", was=row.get("name") or row.get("locator") or key)


def _told(
    table: str, source: str, row: str, what: str, column: str = "", was: str = "", now: str = "", why: str = ""
) -> dict[str, str | None]:
    """Return one row of what is told of a change."""
    cells = (table, source, row, what, column or None, was or None, now or None, why or None)
    return dict(zip(COLUMNS, cells, strict=True))


def _record(found: pl.DataFrame, tables: Mapping[str, _Table], day: date) -> None:
    """Append what was written to the changelog of data."""
    log = tables[CHANGES]
    stem = f"{day:%Y_%m_%d}"
    number = sum(row[log.key].startswith(stem) for row in log.rows)
    rows = {name: tables[name].named() for name in found["table"].unique()}
    for each in found.iter_rows(named=True):
        if each["what"] not in ("added", "changed", "removed"):
            continue
        number += 1
        row = rows[each["table"]].get(each["row"], {})
        cells = {
            "data_change": f"{stem}_{number:05d}",
            "day": day.isoformat(),
            **{name: each[name] or "" for name in ("table", "row", "what", "column", "was", "now", "source")},
            "locator": row.get("locator") or each["row"],
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
    """Return the end of a time such as 2026-07/2026-08, for comparison; the longest day where only a year is said."""
    last = when.rpartition("/")[2]
    return last + "-12-31"[len(last) - 4 :] if 4 <= len(last) < 10 else last
