"""Public data sets that are too large or change too often to ship: validated, renamed and cached.

``publishers.csv`` lists the data sets with licence and attribution; ``connectors.csv`` maps their columns to ours, with
the conversion factor of the unit; ``publisher_columns.csv`` holds the headers of the publisher's file and how to read
the cells. Nothing is downloaded unless an address is given.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core import text_io
from factorykit.core.atomic_io import INCOMING, locked, move_incoming, replace_files
from factorykit.core.errors import DatasetError, unknown_name_message, warn
from factorykit.core.validation import file_path, one_of
from factorykit.data.identifiers import known_key
from factorykit.data.public.download import download
from factorykit.data.tables import connected, read_checked, register, table, with_checksum

PUBLISHERS_FILE: Final = Path(__file__).with_name("publishers.csv")
MAPPING: Final = Path(__file__).with_name("connectors.csv")
PUBLISHED: Final = Path(__file__).with_name("publisher_columns.csv")
BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
HEADER_WITHIN: Final = 5
"""Lines of a file in which the header is searched: some publishers put a title above it."""
SHOWN: Final = 10
CHANGES: Final = "Rows and columns were selected, renamed and converted."


@dataclass(frozen=True)
class Publisher:
    """Publisher of a data set, with licence and attribution."""

    title: str
    publisher: str
    address: str
    licence: str
    licence_address: str
    attribution: str
    caveat: str


PUBLISHERS: Final = {row.pop("connector"): Publisher(**row) for row in text_io.package_rows(PUBLISHERS_FILE)}


@dataclass(frozen=True)
class Column:
    """A column of a publisher and the column it is converted to."""

    theirs: str
    ours: str
    type: str
    unit: str
    factor: float
    meaning: str
    identifies: str


@dataclass(frozen=True)
class Header:
    """A header of a column in a file, and how its cells are read.

    A column without ``theirs`` is omitted; if it has ``read``, only matching rows are kept. ``read`` is a regular
    expression whose groups are joined by "; ", or a date format, of a moment with ``%H``. ``value`` replaces the cells
    where the header states the value.
    """

    theirs: str
    published: str
    factor: str = ""
    read: str = ""
    value: str = ""
    optional: str = ""

    @property
    def column(self) -> str:
        """Name of the column in the data set, or in the file for an omitted column."""
        return self.theirs or self.published


@dataclass(frozen=True)
class Cells:
    """The cells of a column of a file, with its header and the column they are converted to."""

    column: Column
    header: str
    values: list[str | None]


def connectors() -> pl.DataFrame:
    """Return the public data sets that can be connected.

    Returns
    -------
    polars.DataFrame
        One row per data set: ``connector``, ``title``, ``publisher``, ``address``, ``licence``, ``attribution`` (the
        credit that its terms require), ``caveat``, ``columns``, and ``state``: ``connected``, ``cached`` (a copy is in
        the cache; `connect` takes it without an address), or ``known``.
    """
    rows = [
        {
            "connector": name,
            "title": publisher.title,
            "publisher": publisher.publisher,
            "address": publisher.address,
            "licence": publisher.licence,
            "attribution": f"{publisher.attribution} {CHANGES}",
            "caveat": publisher.caveat,
            "columns": len(_columns()[name]),
            "state": "connected" if name in connected() else "cached" if _record(name).exists() else "known",
        }
        for name, publisher in PUBLISHERS.items()
    ]
    return pl.DataFrame(rows)


def connect(name: str, path_or_url: str | os.PathLike[str] | None = None) -> pl.LazyFrame:
    """Connect a public data set as a table, for this session and, through the cache, for later ones.

    Nothing is downloaded unless an address is given. The columns of the file are validated, renamed and converted to
    the names and units of the vocabulary, and cached as Parquet (in ``FACTORYKIT_CACHE``, otherwise in the user's cache
    folder). Afterwards `table`, `sql`, `tables` and `sources` accept its name.

    Parameters
    ----------
    name : str
        A data set of `connectors`, such as ``"epoch_gpu_clusters"``.
    path_or_url : path or str, optional
        A CSV file in the publisher's format or with the columns of `connectors`, or its ``https://`` address; by
        default the copy in the cache.

    Returns
    -------
    polars.LazyFrame
        The table; quantities are Float64, days are Date, null means that the publisher does not state the value.

    Raises
    ------
    UnknownName
        If there is no such data set, with the nearest name.
    DatasetError
        If the file cannot be read, a column is missing or renamed, or a cell does not have the type of its column;
        ``rows`` holds all such cells.
    """
    name = one_of("connector", name, PUBLISHERS)
    record = _record(name)
    if (record.parent / INCOMING).is_dir():
        with locked(record.parent):
            move_incoming(record.parent)
    if path_or_url is not None:
        content, origin = _content(path_or_url)
        _keep(name, content, origin)
    elif not record.exists():
        raise DatasetError(
            f"{name} is not in the cache ({record.parent}); give its file or address: connect({name!r}, 'file.csv'). "
            f"Its publisher is {PUBLISHERS[name].publisher}, {PUBLISHERS[name].address}"
        )
    try:
        cached = read_checked(record.read_bytes())
    except (OSError, ValueError):
        cached = {}
    if cached.get("mapping") != _mapping_hash(name):
        raise DatasetError(f"the copy of {name} in the cache is damaged or of another version; connect its file again")
    register(cached["resource"] | {"path": str(record.with_suffix(".parquet"))})
    return table(name)


def read(name: str, path_or_url: str | os.PathLike[str]) -> pl.DataFrame:
    """Return a public data set from a file or an address, converted as by `connect`, without caching it.

    Raises
    ------
    UnknownName
        If there is no such data set, with the nearest name.
    DatasetError
        If the file cannot be read, a column is missing or renamed, or a cell does not have the type of its column.
    """
    name = one_of("connector", name, PUBLISHERS)
    return _tidy(name, *_rows(name, _content(path_or_url)[0]))


def cache_folder() -> Path:
    """Return the folder of connected data sets: ``FACTORYKIT_CACHE``, else the user's cache folder."""
    if chosen := os.environ.get("FACTORYKIT_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "factorykit" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "factorykit"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "factorykit"


def _record(name: str) -> Path:
    return cache_folder() / "connected" / f"{name}.json"


@cache
def _columns() -> dict[str, tuple[Column, ...]]:
    columns_of: dict[str, list[Column]] = {}
    for row in text_io.package_rows(MAPPING):
        factor = float(row.pop("factor") or 1.0)
        columns_of.setdefault(row.pop("dataset"), []).append(Column(factor=factor, **row))
    return {name: tuple(columns) for name, columns in columns_of.items()}


def _layouts(name: str) -> list[list[Header]]:
    """Return the headers that a file of the data set may have: those of the mapping and the publisher's own."""
    published: dict[str, list[Header]] = {}
    for row in text_io.package_rows(PUBLISHED):
        published.setdefault(row.pop("dataset"), []).append(Header(**row))
    tidied = [Header(column.theirs, column.theirs) for column in _columns()[name]]
    return [tidied, published[name]] if name in published else [tidied]


def _mapping_hash(name: str) -> str:
    return hashlib.sha256(repr((_columns()[name], _layouts(name))).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------------- reading


def _content(path_or_url: str | os.PathLike[str]) -> tuple[bytes, str]:
    """Return the bytes of a file or an address, and the name of their origin."""
    origin = path_or_url if isinstance(path_or_url, str) else str(file_path("path_or_url", path_or_url))
    if re.match(r"^[a-z][a-z0-9+.-]+://", origin, re.IGNORECASE):
        return download(origin), origin
    path = file_path("path_or_url", origin)
    return text_io.read_bytes(path), path.name


def _keep(name: str, content: bytes, origin: str) -> None:
    """Validate and convert a data set, and write it to the cache atomically."""
    frame = _tidy(name, *_rows(name, content))
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    resource = _resource(name, frame, buffer.getvalue(), content, origin)
    record = _record(name)
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        description = with_checksum({"mapping": _mapping_hash(name), "resource": resource})
        with locked(record.parent):
            replace_files({f"{name}.parquet": buffer.getvalue(), record.name: description}, record.parent)
    except OSError as error:
        raise DatasetError(
            f"{error.filename or record.parent} cannot be written ({error.strerror}); "
            "FACTORYKIT_CACHE names another folder"
        ) from None


def _rows(name: str, content: bytes) -> tuple[list[int], list[Cells]]:
    """Return the columns of a CSV file and the number of each row, after a check of its header."""
    if content.lstrip()[:1] in (b"{", b"["):
        expected = ", ".join(column.theirs for column in _columns()[name])
        raise DatasetError(f"{name}: the file is JSON; give a CSV file with the columns {expected}")
    try:
        lines = [row for _, row in text_io.csv_rows(content)]
    except ValueError as error:
        raise DatasetError(f"{name}: the file is not CSV in UTF-8: it {error}") from None
    above, layout = max(
        ((at, layout) for at in range(min(len(lines), HEADER_WITHIN)) for layout in _layouts(name)),
        key=lambda pair: _similarity(lines[pair[0]], pair[1]),
        default=(0, _layouts(name)[0]),
    )
    header, rows = (lines[above], lines[above + 1 :]) if lines else ([], [])
    taken = _selected(name, header, layout)
    if not rows:
        raise DatasetError(f"{name}: the file has no rows")
    for number, row in enumerate(rows, above + 2):
        if len(row) != len(header):
            raise DatasetError(f"{name}: row {number} has {len(row)} cells where the header has {len(header)}")
    places = _places(header)
    wanted = [(places[entry.published.casefold()], entry.read) for entry in layout if entry.read and not entry.theirs]
    kept = [
        (number, row)
        for number, row in enumerate(rows, above + 2)
        if all(re.search(pattern, row[place].strip()) for place, pattern in wanted)
    ]
    columns: list[Cells] = []
    for column in _columns()[name]:
        layout_column = taken.get(column.theirs)
        if layout_column is None:
            columns.append(Cells(column, column.theirs, [None] * len(kept)))
            continue
        place = places[layout_column.published.casefold()]
        values = [_cell(row[place].strip(), layout_column) for _, row in kept]
        scaled = replace(column, factor=float(layout_column.factor)) if layout_column.factor else column
        columns.append(Cells(scaled, header[place], values))
    return [number for number, _ in kept], columns


def _similarity(header: list[str], layout: list[Header]) -> tuple[int, int]:
    """Return the number of columns of a header that a layout contains, ignoring case and exactly."""
    known = {column.published for column in layout}
    return len(_places(header).keys() & {column.casefold() for column in known}), len(known & set(header))


def _places(header: list[str]) -> dict[str, int]:
    return {column.strip().casefold(): place for place, column in enumerate(header)}


def _selected(name: str, header: list[str], layout: list[Header]) -> dict[str, Header]:
    """Return the header from which each column is read; a missing one is an error with the nearest name."""
    places = _places(header)
    known = {entry.published.casefold() for entry in layout}
    taken = {entry.column: entry for entry in reversed(layout) if entry.published.casefold() in places}
    gone: dict[str, str] = {}
    for entry in layout:
        if not entry.optional and entry.column not in taken:
            gone.setdefault(entry.column, entry.published)
    new = [column for column in header if column.strip().casefold() not in known]
    if gone:
        changes = [f"{column!r} is missing{_renamed(column, new)}" for column in gone.values()]
        left = [column for column in new if not any(repr(column) in change for change in changes)]
        changes += [f"new is {', '.join(map(repr, left))}"] if left else []
        raise DatasetError(f"{name}: its publisher changed the columns: {'; '.join(changes)}")
    if twice := sorted({column for column in header if header.count(column) > 1}):
        raise DatasetError(f"{name}: the column {twice[0]!r} occurs twice")
    if new:
        warn(f"{name}: {', '.join(map(repr, new))} {'is' if len(new) == 1 else 'are'} new and left out")
    return taken


def _cell(text: str, header: Header) -> str | None:
    """Return a cell as its header prescribes; None if it is empty."""
    if header.value:
        return header.value
    if header.read.startswith("%"):
        try:
            moment = datetime.strptime(text, header.read)
            return (moment if "%H" in header.read else moment.date()).isoformat()
        except ValueError:
            return text or None
    return "; ".join(re.findall(header.read, text)) or None if header.read else text or None


def _renamed(gone: str, new: list[str]) -> str:
    nearest = re.search(r"nearest is ('[^']*')", unknown_name_message("column", gone, new)) if new else None
    return f", perhaps renamed to {nearest[1]}" if nearest else ""


def _tidy(name: str, numbers: list[int], columns: list[Cells]) -> pl.DataFrame:
    """Return a data set in our names and units, or raise an error with all cells of the wrong type."""
    read = {"number": text_io.parse_number, "duration": _duration, "text": str}
    read |= {"boolean": lambda cell: BOOLEANS.get(cell.lower())}
    read |= {"date": partial(_isoformat, date), "moment": partial(_isoformat, datetime)}
    types = {"number": pl.Float64, "duration": pl.Float64, "boolean": pl.Boolean, "text": pl.String}
    types |= {"date": pl.Date, "moment": pl.Datetime}
    series: list[pl.Series] = []
    broken: list[tuple[int, str, str, str]] = []
    for cells in columns:
        column = cells.column
        values: list[Any] = []
        for row, cell in zip(numbers, cells.values, strict=True):
            value = None if cell is None else read[column.type](cell)
            if value is None and cell is not None:
                broken.append((row, cells.header, cell, f"must be a {column.type}"))
            values.append(value * column.factor if isinstance(value, float) else value)
        series.append(pl.Series(column.ours, values, types[column.type]))
        if column.identifies:
            key = f"{column.identifies}_key" if column.ours == column.identifies else column.identifies
            keys = {cell: known_key(column.identifies, cell) for cell in set(cells.values)}
            series.append(pl.Series(key, [keys[cell] for cell in cells.values], pl.String))
    if broken:
        schema = {"row": pl.Int64, "column": pl.String, "value": pl.String, "rule": pl.String}
        lines = [f"  row {row}: {column} = {value!r}: {rule}" for row, column, value, rule in broken[:SHOWN]]
        more = [f"  … and {len(broken) - SHOWN} more in err.rows"] if len(broken) > SHOWN else []
        count = f"{len(broken)} broken {'cell' if len(broken) == 1 else 'cells'}"
        raise DatasetError(
            "\n".join([f"{name}: {count}; the previous copy is kept", *lines, *more]),
            pl.DataFrame(broken, schema=schema, orient="row"),
        )
    return pl.DataFrame(series)


def _duration(cell: str) -> float | None:
    value = text_io.parse_number(cell)
    return value if value is not None and value >= 0.0 else None


def _isoformat(kind: type[date], cell: str) -> date | None:
    try:
        return kind.fromisoformat(cell)
    except ValueError:
        return None


def _resource(name: str, frame: pl.DataFrame, parquet: bytes, content: bytes, origin: str) -> dict[str, Any]:
    """Return the descriptor of a connected table, with its origin."""
    this = PUBLISHERS[name]
    fields: list[dict[str, Any]] = []
    for column in _columns()[name]:
        kind = "number" if column.type == "duration" else column.type
        field = {"name": column.ours, "type": kind, "description": column.meaning}
        fields.append(field | ({"unit": column.unit} if column.unit else {}))
        if column.identifies:
            key = f"{column.identifies}_key" if column.ours == column.identifies else column.identifies
            text = f"key of that {column.identifies} in our tables; empty if it is not among them"
            fields.append({"name": key, "type": "text", "description": text})
    return {
        "name": name,
        "title": this.title,
        "description": f"Published by {this.publisher}. {this.caveat}",
        "hash": f"sha256:{hashlib.sha256(parquet).hexdigest()}",
        "rows": frame.height,
        "schema": {"fields": fields},
        "licenses": [{"name": this.licence, "path": this.licence_address}],
        "attribution": f"{this.attribution} {CHANGES}",
        "address": this.address,
        "origin": origin,
        "origin_hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "retrieved": datetime.now(UTC).date().isoformat(),
        "remedy": f"connect {name} again with its file",
    }
