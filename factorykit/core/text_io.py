"""Strict, size-limited reading of untrusted files: bytes, text, JSON, CSV and Parquet; rows of our own; JSON values."""

from __future__ import annotations

import csv
import io
import json
import lzma
import math
import os
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from errno import ENOENT
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import DatasetError, FactorykitError, short_repr
from factorykit.core.storage import storage_path

if TYPE_CHECKING:
    import duckdb
    import polars as pl

MAX_FILE_BYTES: Final = 100_000_000
"""Size of a file or a download, compressed and decompressed; public data sets have a tenth of it."""
MAX_CELLS: Final = 200_000_000
"""Cells of a Parquet file, which can hold many more cells than it has bytes."""
MAX_DECOMPRESSION_BYTES: Final = 256_000_000
"""Memory of a decompressor."""
MAX_DEPTH: Final = 50
"""Nesting levels of JSON and TOML."""
MAX_DIGITS: Final = 25
"""Digits of an integer in JSON; the longest meaningful one is a number of FLOP."""
MAX_MAGNITUDE: Final = 1e290
"""Largest number whose unit can still be converted without overflow."""
CELL_BYTES: Final = 16
"""Memory of a cell of a frame: a number, or the head of a text."""
TEXTS: Final = re.compile(r"CHAR|BLOB|JSON|BIT|MAP|STRUCT|\[")
"""Types of cells without a fixed size."""
NESTED: Final = re.compile(r"MAP|STRUCT|\[")
NESTED_BYTES: Final = f"strlen({{0}}) + {CELL_BYTES} * (strlen({{0}}) - strlen(replace({{0}}, ',', '')))"
"""Size of a list or another nested cell: its text, and each value behind a comma takes a cell."""
TOTAL: Final = "bytes of this and earlier rows"
DUCKDB_SETTINGS: Final[dict[str, Any]] = {"memory_limit": "4GB", "python_enable_replacements": "false"}
GZIP, XZ, PARQUET = b"\x1f\x8b", b"\xfd7zXZ\0", b"PAR1"
UNSUPPORTED_COMPRESSION: Final = {b"PK\3\4": "zip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z"}


def package_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file that stands beside the code of the package."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_bytes(path: object, max_bytes: int = MAX_FILE_BYTES, error: type[FactorykitError] = DatasetError) -> bytes:
    """Return the content of a file, decompressed if it is compressed with gzip or xz.

    Raises
    ------
    ScenarioError
        If ``path`` is not a path.
    FactorykitError
        Of type ``error`` if it is not a regular file, cannot be read or decompressed, or is larger than ``max_bytes``.
    """
    file = storage_path("path", path)
    try:
        if not file.exists():
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        if not file.is_file():
            raise error(f"{file} is not a regular file")
        with file.open("rb") as stream:
            return decompressed(stream.read(max_bytes + 1), max_bytes)
    except ValueError as reason:
        raise error(f"{file} {reason}") from None
    except OSError as reason:
        raise error(f"{file} cannot be read ({reason.strerror or reason}); give another file") from None


def decompressed(packed: bytes, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return bytes, decompressed if they are compressed with gzip or xz.

    Raises
    ------
    ValueError
        If there are more than ``max_bytes``, compressed or decompressed, or the decompression fails.
    """
    content = packed
    if len(packed) <= max_bytes:
        if other := next((name for start, name in UNSUPPORTED_COMPRESSION.items() if packed.startswith(start)), None):
            raise ValueError(f"is compressed with {other}; decompress it first")
        if packed.startswith((GZIP, XZ)):
            try:
                content = b"".join(_streams(packed, max_bytes))
            except (zlib.error, lzma.LZMAError, EOFError) as reason:
                raise ValueError(f"cannot be decompressed ({reason}); download it again") from None
    if len(content) > max_bytes:
        raise ValueError(f"is larger than {max_bytes / 1e6:g} MB")
    return content


def _streams(packed: bytes, max_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed streams of a file, up to one byte more than ``max_bytes``."""
    left = max_bytes + 1
    while packed and left:
        if packed.startswith(XZ):
            stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DECOMPRESSION_BYTES)
        elif packed.startswith(GZIP):
            stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        else:
            raise EOFError("unexpected bytes after its end")
        part = stream.decompress(packed, left)
        yield part
        left -= len(part)
        if left and not stream.eof:
            raise EOFError("it is truncated")
        packed = stream.unused_data.lstrip(b"\0")


def decode(content: bytes) -> str:
    """Return bytes decoded as UTF-8, or raise a ValueError."""
    if b"\0" in content:
        raise ValueError("contains zero bytes; save it as UTF-8")
    text = content.decode("utf-8-sig")
    if text.startswith("\ufeff"):
        raise ValueError("begins with two byte order marks; remove them")
    return text


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON text; a ValueError if it has repeated keys, infinite numbers or deep nesting."""
    try:
        value = json.loads(
            decode(content),
            object_pairs_hook=_unique_keys,
            parse_float=_finite,
            parse_int=_integer,
            parse_constant=_finite,
        )
    except RecursionError:
        raise ValueError(f"is nested deeper than {MAX_DEPTH} levels") from None
    return check_depth(value)


def check_depth(value: Any) -> Any:
    """Return nested lists and dicts; a ValueError if they have more than `MAX_DEPTH` levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        containers = [item for item in level if isinstance(item, (dict, list))]
        level = [inner for item in containers for inner in (item.values() if isinstance(item, dict) else item)]
        if not level:
            return value
    raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"has the key {short_repr(next(name for name in names if names.count(name) > 1))} twice")
    return result


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"contains {short_repr(digits)}, which is not a finite number")
    return value


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"contains a number of {len(digits)} digits")
    return int(digits)


def csv_rows(content: bytes) -> list[tuple[int, list[str]]]:
    """Return the non-empty rows of a CSV file, each with its line number; the first ones are the header or precede it.

    Raises
    ------
    ValueError
        If it is not CSV in UTF-8.
    """
    reader = csv.reader(io.StringIO(decode(content), newline=""), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as reason:
        raise ValueError(f"is not valid CSV ({reason}, line {reader.line_num})") from None


def csv_columns(content: bytes) -> dict[str, list[str]]:
    """Return the cells of a CSV file with a header, by column.

    Raises
    ------
    ValueError
        If it is not CSV, repeats a column, or a row has another number of cells than the header.
    """
    lines = csv_rows(content)
    if not lines:
        raise ValueError("is empty")
    header = lines[0][1]
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise ValueError(f"has the column {short_repr(twice)} twice")
    for line, row in lines[1:]:
        if len(row) != len(header):
            raise ValueError(f"has {len(row)} cells in line {line} and {len(header)} in its header")
    return {name: [row[place] for _, row in lines[1:]] for place, name in enumerate(header)}


def parse_number(cell: str) -> float | None:
    """Return a cell as a finite number, or None; Python's own notation, such as underscores, is not accepted.

    >>> parse_number("1.5e3"), parse_number("1_000"), parse_number("nan"), parse_number("")
    (1500.0, None, None, None)
    """
    try:
        value = float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        return None
    return value if abs(value) <= MAX_MAGNITUDE else None


def read_frame(path: str | Path) -> pl.DataFrame:
    """Return a Parquet file, or a CSV file with the types that its cells suggest.

    Raises
    ------
    DatasetError
        If it cannot be read, or is too large.
    """
    import polars as pl

    content = read_bytes(path)
    try:
        if content.startswith(PARQUET):
            return _parquet(content)
        cells = csv_columns(content)
        frame = pl.read_csv(content, infer_schema_length=None)
        if frame.columns != list(cells) or frame.height != len(next(iter(cells.values()))):
            raise ValueError("has empty lines; remove them")
        return frame
    except (ValueError, OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as reason:
        raise DatasetError(f"{path} {str(reason).splitlines()[0]}") from None


def _parquet(content: bytes) -> pl.DataFrame:
    """Return a Parquet file, read with DuckDB: a damaged one can make polars allocate all memory and abort.

    Raises
    ------
    ValueError
        If it cannot be read, or has too many cells.
    """
    import duckdb

    with tempfile.TemporaryDirectory() as folder, database().cursor() as cursor:
        file = Path(folder, "rows.parquet")
        file.write_bytes(content)
        try:
            rows = cursor.read_parquet(str(file))
            cells = rows.count("*").fetchall()[0][0] * len(rows.columns)
            if cells > MAX_CELLS:
                raise ValueError(f"has {cells:,} cells; at most {MAX_CELLS:,} are read")
            return frame_of_relation(rows)
        except (duckdb.Error, RuntimeError) as reason:  # RuntimeError where column names are not strings
            raise ValueError(f"cannot be read: {reason}") from None


@cache
def database() -> duckdb.DuckDBPyConnection:
    """Return the DuckDB of this process; use a cursor of it."""
    import duckdb

    return duckdb.connect(config=DUCKDB_SETTINGS)


def frame_of_relation(relation: duckdb.DuckDBPyRelation, max_bytes: float | None = None) -> pl.DataFrame:
    """Return the rows of a relation; decimals and very wide integers as doubles.

    DuckDB's memory limit is for its work, not the result, hence ``max_bytes``. Polars gets a plain namespace instead of
    the relation: it caches the types of its inputs, and a cached DuckDB type is reported as a leak when Python exits.

    Raises
    ------
    duckdb.NotSupportedError
        If two columns have one name, or one holds intervals or unions, which polars cannot hold.
    duckdb.InvalidInputException
        If the rows need more than ``max_bytes``.
    """
    import duckdb
    import polars as pl

    if twice := [name for name, count in Counter(relation.columns).items() if count > 1]:
        raise duckdb.NotSupportedError(f"there are several columns {twice[0]!r}; name the columns apart with AS")
    for name, dtype in zip(relation.columns, relation.types, strict=True):
        if unsupported := re.search(r"\b(INTERVAL|UNION)\b", str(dtype)):
            raise duckdb.NotSupportedError(
                f"column {name!r} is {unsupported[0]}, which a frame cannot hold; cast it, an interval e.g. by epoch()"
            )
    if max_bytes is not None:
        types = dict(zip(relation.columns, relation.types, strict=True))
        texts = {name.replace('"', '""'): str(dtype) for name, dtype in types.items() if TEXTS.search(str(dtype))}
        sizes = {name: NESTED_BYTES if NESTED.search(dtype) else "strlen({})" for name, dtype in texts.items()}
        texts_size = "".join(f" + coalesce({size}, 0)".format(f'"{name}"::VARCHAR') for name, size in sizes.items())
        size = f"{CELL_BYTES * len(types)}{texts_size}"
        relation = relation.project(f'*, sum({size}) OVER (ROWS UNBOUNDED PRECEDING) AS "{TOTAL}"')
        message = f"the result needs more than {max_bytes:g} bytes; aggregate it or add LIMIT"
        relation = relation.filter(f"CASE WHEN \"{TOTAL}\" > {max_bytes} THEN error('{message}') ELSE true END")
        relation = relation.project(f'* EXCLUDE ("{TOTAL}")')
    stream: Any = SimpleNamespace(__arrow_c_stream__=relation.__arrow_c_stream__)
    frame = pl.DataFrame(stream)
    wide = [name for name, dtype in frame.schema.items() if dtype.is_decimal() or dtype == pl.Int128]
    return frame.cast(dict.fromkeys(wide, pl.Float64)) if wide else frame


def json_value(value: Any) -> Any:
    """Return plain JSON of a value: numbers that are not finite are null, dates are text.

    >>> json_value({"loss": float("nan"), "days": (1.0, 2)})
    {'loss': None, 'days': [1.0, 2]}
    """
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): json_value(inner) for key, inner in value.items()}
        case list() | tuple():
            return [json_value(inner) for inner in value]
    return str(value)
