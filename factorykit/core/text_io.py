"""Files that others wrote: read whole within limits, their cells and fields taken as they stand or refused."""

from __future__ import annotations

import csv
import io
import json
import lzma
import math
import tempfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import DatasetError, FactorykitError, short_repr
from factorykit.core.validation import file_path

if TYPE_CHECKING:
    import duckdb
    import polars as pl

LARGEST_BYTES: Final = 100_000_000
"""Of a file or a download that is read as a whole, packed and unpacked; public data sets have a tenth of it."""
MOST_CELLS: Final = 200_000_000
"""Of a Parquet file, which can hold far more of them than it has bytes."""
MOST_MEMORY: Final = 256_000_000
"""Bytes that unpacking may take."""
DEEPEST: Final = 50
"""Levels of brackets in JSON and TOML."""
MOST_DIGITS: Final = 25
"""Of a whole number in JSON; the longest that means something is a count of FLOP."""
LARGEST: Final = 1e290
"""Number up to which its unit can be changed."""
SETTINGS: Final[dict[str, Any]] = {"memory_limit": "4GB", "python_enable_replacements": "false"}
"""Of DuckDB."""
GZIP, XZ, PARQUET = b"\x1f\x8b", b"\xfd7zXZ\0", b"PAR1"
OTHERWISE_PACKED: Final = {b"PK\3\4": "zip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z"}


def content(path: object, most: int = LARGEST_BYTES, error: type[FactorykitError] = DatasetError) -> bytes:
    """Return what a file holds, unpacked if it is packed by gzip or xz.

    Raises
    ------
    ScenarioError
        If ``path`` is no path.
    FactorykitError
        Of the kind ``error``, if it is no regular file, cannot be read or unpacked, or holds more than ``most`` bytes.
    """
    file = file_path("path", path)
    try:
        if file.exists() and not file.is_file():
            raise error(f"{file} is no regular file; give one")
        with file.open("rb") as stream:
            return unpacked(stream.read(most + 1), most)
    except ValueError as reason:
        raise error(f"{file} {reason}") from None
    except OSError as reason:
        raise error(f"{file} cannot be read ({reason.strerror or reason}); give another file") from None


def unpacked(packed: bytes, most: int = LARGEST_BYTES) -> bytes:
    """Return bytes as they are, or what gzip or xz packed into them.

    Raises
    ------
    ValueError
        If there are more than ``most``, packed or unpacked, or they cannot be unpacked.
    """
    found = packed
    if len(packed) <= most:
        if other := next((name for start, name in OTHERWISE_PACKED.items() if packed.startswith(start)), None):
            raise ValueError(f"is packed by {other}; unpack it first")
        if packed.startswith((GZIP, XZ)):
            try:
                found = b"".join(_parts(packed, most))
            except (zlib.error, lzma.LZMAError, EOFError) as reason:
                raise ValueError(f"cannot be unpacked ({reason}); get it again") from None
    if len(found) > most:
        raise ValueError(f"is larger than {most / 1e6:g} MB; give the file itself, or less of it")
    return found


def _parts(packed: bytes, most: int) -> Iterator[bytes]:
    """Yield what the streams of a packed file hold, up to one byte more than ``most``."""
    left = most + 1
    while packed and left:
        if packed.startswith(XZ):
            stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
        elif packed.startswith(GZIP):
            stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        else:
            raise EOFError("something follows its end")
        part = stream.decompress(packed, left)
        yield part
        left -= len(part)
        if left and not stream.eof:
            raise EOFError("it is cut off")
        packed = stream.unused_data.lstrip(b"\0")


def text(found: bytes) -> str:
    """Return bytes as text.

    Raises
    ------
    ValueError
        If they are not UTF-8.
    """
    if b"\0" in found:
        raise ValueError("holds zero bytes, as no text in UTF-8 does; save it as UTF-8")
    said = found.decode("utf-8-sig")
    if said.startswith("\ufeff"):
        raise ValueError("begins with two byte order marks; take them out")
    return said


def fields(found: bytes) -> Any:
    """Return what JSON says; nothing in it may be said twice, be infinite, or be nested for its own sake.

    Raises
    ------
    ValueError
    """
    try:
        said = json.loads(
            text(found), object_pairs_hook=_once, parse_float=_finite, parse_int=_whole, parse_constant=_finite
        )
    except RecursionError:
        raise ValueError(f"is nested deeper than {DEEPEST} levels") from None
    return shallow(said)


def shallow(said: Any) -> Any:
    """Return lists and objects in each other if they are not too deep.

    Raises
    ------
    ValueError
    """
    level = [said]
    for _ in range(DEEPEST):
        holders = [each for each in level if isinstance(each, (dict, list))]
        level = [inner for each in holders for inner in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return said
    raise ValueError(f"is nested deeper than {DEEPEST} levels")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"says {short_repr(next(name for name in names if names.count(name) > 1))} twice")
    return said


def _finite(said: str) -> float:
    value = float(said)
    if not math.isfinite(value):
        raise ValueError(f"holds {short_repr(said)}, which is no finite number")
    return value


def _whole(said: str) -> int:
    if len(said) > MOST_DIGITS:
        raise ValueError(f"holds a number of {len(said)} digits")
    return int(said)


def rows(found: bytes) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file that are not empty, each with its line; the first are its header, or before it.

    Raises
    ------
    ValueError
        If it is no CSV in UTF-8.
    """
    reader = csv.reader(io.StringIO(text(found), newline=""), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as reason:
        raise ValueError(f"is no CSV ({reason}, line {reader.line_num})") from None


def columns(found: bytes) -> dict[str, list[str]]:
    """Return the cells of a CSV file whose first row is its header, by column.

    Raises
    ------
    ValueError
        If it is no CSV, names a column twice, or a row has another number of cells.
    """
    lines = rows(found)
    if not lines:
        raise ValueError("is empty")
    header = lines[0][1]
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise ValueError(f"has the column {short_repr(twice)} twice")
    for line, row in lines[1:]:
        if len(row) != len(header):
            raise ValueError(f"has {len(row)} cells in line {line} and {len(header)} in its header")
    return {name: [row[place] for _, row in lines[1:]] for place, name in enumerate(header)}


def number(cell: str) -> float | None:
    """Return a cell as a finite number, or None if it is none: as other programs write them, not as Python does.

    >>> number("1.5e3"), number("1_000"), number("nan"), number("")
    (1500.0, None, None, None)
    """
    try:
        value = float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        return None
    return value if abs(value) <= LARGEST else None


def frame(path: Path) -> pl.DataFrame:
    """Return a Parquet file, or a CSV file with the types that its cells suggest.

    Raises
    ------
    DatasetError
        If it cannot be read, or is too large.
    """
    import polars as pl

    found = content(path)
    try:
        if found.startswith(PARQUET):
            return _parquet(found)
        cells = columns(found)
        read = pl.read_csv(found, infer_schema_length=None)
        if read.columns != list(cells) or read.height != len(next(iter(cells.values()))):
            raise ValueError("has empty lines; take them out")
        return read
    except (ValueError, OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as reason:
        raise DatasetError(f"{path} {str(reason).splitlines()[0]}") from None


def _parquet(found: bytes) -> pl.DataFrame:
    """Return a Parquet file as DuckDB reads it: of a damaged one polars may ask for more memory than there is, and end.

    Raises
    ------
    ValueError
        If it cannot be read, or has too many cells.
    """
    import duckdb

    with tempfile.TemporaryDirectory() as folder, _database().cursor() as database:
        file = Path(folder, "rows.parquet")
        file.write_bytes(found)
        try:
            rows = database.read_parquet(str(file))
            cells = rows.count("*").fetchall()[0][0] * len(rows.columns)
            if cells > MOST_CELLS:
                raise ValueError(f"has {cells:,} cells; at most {MOST_CELLS:,} are read")
            return frame_of(rows)
        except (duckdb.Error, RuntimeError) as reason:  # the latter where names of columns are no texts
            raise ValueError(f"cannot be read: {reason}") from None


@cache
def _database() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config=SETTINGS)


def frame_of(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """Return the rows of a relation, decimals and very wide integers as doubles.

    A plain namespace is handed over and not the relation itself: polars keeps the type of what it is given, and those
    of DuckDB kept alive are reported as leaks when Python exits.
    """
    import polars as pl

    stream: Any = SimpleNamespace(__arrow_c_stream__=relation.__arrow_c_stream__)
    frame = pl.DataFrame(stream)
    wide = [name for name, dtype in frame.schema.items() if dtype.is_decimal() or dtype == pl.Int128]
    return frame.cast(dict.fromkeys(wide, pl.Float64)) if wide else frame
