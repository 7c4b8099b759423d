"""Built tables as lazy frames, described by ``datapackage.json``."""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.atomic_io import INCOMING
from factorykit.core.errors import DatasetError, short_repr
from factorykit.core.validation import one_of

if TYPE_CHECKING:
    import polars as pl

    from factorykit.core._names import TableName

DESCRIPTOR: Final = "datapackage.json"
CROISSANT: Final = "croissant.json"
PARTIAL_DATE: Final = r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?"
REMEDY: Final = "run `factorykit data build`"
PLAIN: Final = ("defaults", "presets")
"""Tables that are built as JSON too: reading them takes no polars, whose import is most of the time of a first call."""


def data_folder() -> Path:
    """Return the folder of the tables: ``FACTORYKIT_DATA``, else the installed package's, else the repository's."""
    if chosen := os.environ.get("FACTORYKIT_DATA"):
        return Path(chosen)
    installed = Path(__file__).with_name("tables")
    return installed if installed.is_dir() else Path(__file__).parents[2] / "data"


def _data_file(name: str) -> Path:
    """Return the newest complete version of a file of the data package."""
    folder = data_folder()
    incoming = folder / INCOMING / name
    return incoming if incoming.exists() else folder / name


def descriptor() -> dict[str, Any]:
    """Return the content of ``datapackage.json``.

    Raises
    ------
    DatasetError
        If it is missing or damaged.
    """
    return _content(DESCRIPTOR)


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of one of the tables in `PLAIN`."""
    content = _content(f"{name}.json")
    if content["parquet"] != resource_of(name)["hash"]:
        raise DatasetError(f"{name}.json does not belong to its table; {REMEDY}")
    return content["rows"]


def _content(name: str) -> dict[str, Any]:
    path = _data_file(name)
    try:
        return _read_content(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        raise DatasetError(f"{path} is missing; {REMEDY}") from None
    except (ValueError, OSError) as error:
        raise DatasetError(f"{path} cannot be read ({error}); {REMEDY}") from None


@cache
def _read_content(path: Path, _modified: int) -> dict[str, Any]:
    return read_checked(path.read_bytes())


def with_checksum(content: dict[str, Any]) -> bytes:
    """Return JSON with a ``hash`` of its own text, so that `read_checked` notices every change.

    >>> read_checked(with_checksum({"rows": 3}))["rows"]
    3
    """
    text = json.dumps({"hash": "sha256:"} | content, indent=1, ensure_ascii=False) + "\n"
    return text.replace("sha256:", f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", 1).encode()


def read_checked(content: bytes) -> dict[str, Any]:
    """Return an object that `with_checksum` wrote.

    Raises
    ------
    ValueError
        If the text has changed since.
    """
    seal = re.match(rb'\{\s*"hash": "sha256:([0-9a-f]{64})"', content)
    if not seal or hashlib.sha256(content.replace(seal[1], b"", 1)).hexdigest() != seal[1].decode():
        raise ValueError("it is damaged or was edited")
    return json.loads(content)


def resources() -> dict[str, dict[str, Any]]:
    """Return the descriptors of the tables by name."""
    return {resource["name"]: resource for resource in descriptor()["resources"]}


_CONNECTED: Final[dict[str, dict[str, Any]]] = {}


def connected() -> dict[str, dict[str, Any]]:
    """Return the descriptors of the public data sets that this session has connected."""
    return dict(_CONNECTED)


def register(resource: dict[str, Any]) -> None:
    """Make a connected data set known to `table`, `tables` and SQL."""
    _CONNECTED[resource["name"]] = resource


def available() -> dict[str, dict[str, Any]]:
    """Return the descriptors of the tables and of the connected data sets."""
    return resources() | _CONNECTED


def resource_of(name: object) -> dict[str, Any]:
    """Return the descriptor of a table or connected data set.

    Raises
    ------
    UnknownName
        With the nearest name.
    """
    known = available()
    return known[one_of("table", name, known)]


def parquet_path(resource: dict[str, Any]) -> Path:
    """Return the Parquet file of a table after comparing its hash with the descriptor.

    Raises
    ------
    DatasetError
        If it is missing, cut off or changed.
    """
    path = Path(resource["path"]) if resource["name"] in _CONNECTED else _data_file(resource["path"])
    try:
        state = path.stat()
        digest = _sha256(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise DatasetError(f"{path} {reason}; {resource.get('remedy', REMEDY)}") from None
    if f"sha256:{digest}" != resource["hash"]:
        raise DatasetError(f"{path} is damaged or does not belong to its descriptor; {resource.get('remedy', REMEDY)}")
    return path


@cache
def _sha256(path: Path, _modified: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tables() -> pl.DataFrame:
    """Return the list of tables in the order of the data package, connected public data sets last.

    Returns
    -------
    polars.DataFrame
        One row per table: ``table`` (name), ``title``, ``description`` (of a row), ``rows``, ``columns``,
        ``licence``.

    Raises
    ------
    DatasetError
        If the tables have not been built.
    """
    import polars as pl

    licence = descriptor()["licenses"]
    rows = [
        (
            resource["name"],
            resource["title"],
            resource["description"],
            resource["rows"],
            len(resource["schema"]["fields"]),
            resource.get("licenses", licence)[0]["name"],
        )
        for resource in available().values()
    ]
    names = ("table", "title", "description", "rows", "columns", "licence")
    return pl.DataFrame(rows, schema=names, orient="row")


def table(name: TableName | str, *, as_of: str | None = None) -> pl.LazyFrame:
    """Return one table; only the columns that are used are read from its file.

    Parameters
    ----------
    name : str
        A name from `tables`, such as ``"clusters"``.
    as_of : str, optional
        A year, month or day: the table as it was known at its end. A table of entities (`clusters`, `sites`,
        `models`, `runs`, `organisations`) is rebuilt from the statements up to then, so that a cluster has its count
        of that month; other tables leave out rows with a later or empty ``as_of``.

    Returns
    -------
    polars.LazyFrame
        Rows in the order of the source file. Quantities are Float64, text is String; null means that the source does
        not state the value. Where several statements describe one subject, ``preferred`` holds the reason for the
        chosen one and is null for the others.

    Raises
    ------
    UnknownName
        If there is no such table, with the nearest name.
    DatasetError
        If the Parquet file is missing or damaged, or ``as_of`` is not a date or the table has no dates.

    Examples
    --------
    >>> then = table("clusters", as_of="2024-12").filter(cluster="xai_colossus").collect()
    >>> then["accelerators"].item(), then["as_of"].item()
    (100000.0, '2024-10')
    >>> chips = table("accelerators").select("accelerator", "peak_16bit_flop_per_s")
    >>> chips.filter(accelerator="h100_sxm").collect().row(0)
    ('h100_sxm', 989400000000000.0)
    """
    import polars as pl

    resource = resource_of(name)
    frame = pl.scan_parquet(parquet_path(resource))
    return frame if as_of is None else _as_of(resource, frame, as_of)


def _as_of(resource: dict[str, Any], frame: pl.LazyFrame, date: str) -> pl.LazyFrame:
    """Return a table as it was known at the end of ``date``."""
    import polars as pl

    from factorykit.data import entities

    if not isinstance(date, str) or not re.fullmatch(PARTIAL_DATE, date):
        raise DatasetError(f"as_of must be a year, month or day such as '2025-06', got {short_repr(date)}")
    fields = resource["schema"]["fields"]
    if resource["name"] in entities.KINDS:
        origin, _ = entities.KINDS[resource["name"]]
        read = {name: table(name).collect() for name in ("sources", origin)}
        return entities.as_of(resource["name"], date, read, {field["name"]: field["type"] for field in fields}).lazy()
    if all(field["name"] != "as_of" for field in fields):
        raise DatasetError(f"{resource['name']} has no column as_of; omit as_of")
    begins = pl.col("as_of").str.split("/").list.first().str.slice(0, len(date))
    return frame.filter((begins <= date).fill_null(value=False))
