"""Where the tables are, what there is, and one of them as a lazy frame."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import factorykit
from factorykit.datasets import things
from factorykit.errors import DatasetError, FactorykitWarning, UnknownName, shown, unknown
from factorykit.places import INCOMING
from factorykit.typing import is_text

if TYPE_CHECKING:
    import polars as pl

    from factorykit.names import TableName

DESCRIPTOR: Final = "datapackage.json"
CROISSANT: Final = "croissant.json"
"""The same description in the vocabulary of machine-learning data sets."""
MOMENT: Final = r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?"
REMEDY: Final = "run `factorykit data build`"
RENAMED: Final = {
    "accelerators": {"memory_bytes": "accelerator_memory_bytes", "peak_bf16_flop_per_s": "peak_16bit_flop_per_s"},
    "accelerator_statements": {"memory_bytes": "accelerator_memory_bytes", "availability": "availability_stated"},
    "prices": {
        f"usd_per_accelerator_h_{end}": f"rental_usd_per_accelerator_h_{end}"
        for end in ("low", "quarter", "median", "three_quarters", "high")
    },
    "epoch_ml_hardware": {"memory_bytes": "accelerator_memory_bytes", "peak_bf16_flop_per_s": "peak_16bit_flop_per_s"},
    "gpu_rental_prices": {"memory_bytes": "accelerator_memory_bytes"},
}
"""Columns by table, old name and present one. SQL and ``<table>_0_1`` answer to the old ones until 0.3."""
BEFORE: Final = "_0_1"
"""What follows the name of a table whose columns are asked for as 0.1 called them."""


def folder() -> Path:
    """Return the folder of the tables: ``FACTORYKIT_DATA``, else the installed package's, else the repository's."""
    if chosen := os.environ.get("FACTORYKIT_DATA"):
        return Path(chosen)
    package = Path(factorykit.__file__).parent
    return next((data for data in (package / "data", package.parent / "data") if data.is_dir()), package / "data")


def located(name: str) -> Path:
    """Return where the newest whole version of a file of the data package is."""
    data = folder()
    incoming = data / INCOMING / name
    return incoming if incoming.exists() else data / name


def descriptor() -> dict[str, Any]:
    """Return ``datapackage.json`` as it stands.

    Raises
    ------
    DatasetError
        If it is missing or no JSON.
    """
    path = located(DESCRIPTOR)
    try:
        return _read(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        raise DatasetError(f"{path} is missing; {REMEDY}") from None
    except (ValueError, OSError) as error:
        raise DatasetError(f"{path} cannot be read ({error}); {REMEDY}") from None


@cache
def _read(path: Path, _modified: int) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or not isinstance(found.get("resources"), list):
        raise ValueError("no data package")
    return found


def resources() -> dict[str, dict[str, Any]]:
    """Return the descriptors of the tables by name."""
    return {resource["name"]: resource for resource in descriptor()["resources"]}


_CONNECTED: Final[dict[str, dict[str, Any]]] = {}


def connected() -> dict[str, dict[str, Any]]:
    """Return the descriptors of the public data sets that this session has connected."""
    return dict(_CONNECTED)


def add(resource: dict[str, Any]) -> None:
    """Make a connected data set known to `find`, `tables` and SQL."""
    _CONNECTED[resource["name"]] = resource


def available() -> dict[str, dict[str, Any]]:
    """Return the descriptors of the tables and of what is connected."""
    return resources() | _CONNECTED


def views() -> dict[str, str]:
    """Return the ``_preferred`` views by name, each with the table it picks from."""
    return {each["preferred"]["name"]: name for name, each in resources().items() if "preferred" in each}


def find(name: object) -> tuple[dict[str, Any], bool]:
    """Return the descriptor of a table, or of the table behind a view, and whether it is a view.

    Raises
    ------
    UnknownName
        With the nearest name.
    """
    known, picked = available(), views()
    if isinstance(name, str) and name in known:
        return known[name], False
    if isinstance(name, str) and name in picked:
        return known[picked[name]], True
    raise UnknownName(unknown("table", name, [*known, *picked]))


def path_of(resource: dict[str, Any]) -> Path:
    """Return the Parquet file of a table, after making sure that it is the one the descriptor speaks of.

    Raises
    ------
    DatasetError
        If it is missing, cut off or changed.
    """
    path = Path(resource["path"]) if resource["name"] in _CONNECTED else located(resource["path"])
    try:
        state = path.stat()
        digest = _sha256(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise DatasetError(f"{path} {reason}; {resource.get('remedy', REMEDY)}") from None
    if f"sha256:{digest}" != resource["hash"]:
        described = f"is damaged or not the file that {DESCRIPTOR} describes"
        raise DatasetError(f"{path} {described}; {resource.get('remedy', REMEDY)}")
    return path


@cache
def _sha256(path: Path, _modified: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tables() -> pl.DataFrame:
    """Return what there is: one row per table and per ``_preferred`` view, in the order of the data package.

    Public data sets that were connected follow, each with its own licence.

    Returns
    -------
    polars.DataFrame
        ``table`` (name), ``title``, ``text`` (what a row is), ``rows``, ``columns``, ``licence``, ``view_of`` (for a
        view the table it picks from, otherwise null).

    Raises
    ------
    DatasetError
        If the tables have not been built.
    """
    import polars as pl

    package = descriptor()
    licence = package["licenses"][0]["name"]
    rows: list[tuple[str | int | None, ...]] = []
    for each in package["resources"]:
        width = len(each["schema"]["fields"])
        rows.append((each["name"], each["title"], each["description"], each["rows"], width, licence, None))
        if picked := each.get("preferred"):
            said = f"The preferred statement for each {', '.join(picked['key'])}, with the reason in `preferred`."
            if each["name"] in things.KINDS:
                said = f"The same as `{each['name']}`, which has one row a thing; the name goes with version 0.3."
            rows.append(
                (picked["name"], f"{each['title']}, preferred", said, picked["rows"], width, licence, each["name"])
            )
    for each in connected().values():
        width = len(each["schema"]["fields"])
        terms = each["licenses"][0]["name"]
        rows.append((each["name"], each["title"], each["description"], each["rows"], width, terms, None))
    names = ("table", "title", "text", "rows", "columns", "licence", "view_of")
    return pl.DataFrame(rows, schema=names, orient="row")


def warn_of_old(name: str, columns: Iterable[str]) -> None:
    """Warn that columns of a table are asked for by old names."""
    said = ", ".join(f"{old} is {RENAMED[name][old]} now" for old in columns)
    warnings.warn(f"{name}: {said}; the old names go with 0.3", FactorykitWarning, stacklevel=3)


def table(name: TableName | str, *, as_of: str | None = None) -> pl.LazyFrame:
    """Return one table, or its ``_preferred`` view, reading only the columns that are asked of it.

    Columns are called as they are now; asked for an old name, the frame says the present one. ``accelerators_0_1``
    gives those of 0.1, with a warning, until 0.3.

    Parameters
    ----------
    name : str
        A name from `tables`, such as ``"clusters"`` or ``"storage_systems_preferred"``.
    as_of : str, optional
        A year, month or day: only what was said of a time up to then. A table of things (`clusters`, `sites`,
        `models`, `runs`, `organisations`) is put together again from what was said by then, so that a cluster has its
        count of that month; other tables leave out the rows with a later ``as_of``, and those with none.

    Returns
    -------
    polars.LazyFrame
        Rows in the order of the source file. Quantities are Float64, words are String; null means that the source
        does not say. In a view the column ``preferred`` holds the reason.

    Raises
    ------
    UnknownName
        If there is no such table, with the nearest name.
    DatasetError
        If the Parquet file is missing or damaged, or ``as_of`` is no time or asked of a table that knows none.

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

    before = name.removesuffix(BEFORE) if isinstance(name, str) and name.endswith(BEFORE) else None
    if before in RENAMED:
        warn_of_old(before, RENAMED[before])
        return table(before).rename({new: old for old, new in RENAMED[before].items()})
    resource, is_view = find(name)
    frame = pl.scan_parquet(path_of(resource))
    if resource["name"] in RENAMED:
        from factorykit.datasets.renamed import answering

        frame = answering(frame)
    if as_of is not None:
        return _earlier(resource, frame, as_of)
    return frame.filter(pl.col("preferred").is_not_null()) if is_view else frame


def _earlier(resource: dict[str, Any], frame: pl.LazyFrame, when: str) -> pl.LazyFrame:
    """Return a table as it could be said at the end of ``when``."""
    import polars as pl

    if not is_text(when) or not re.fullmatch(MOMENT, when):
        raise DatasetError(f"as_of = {shown(when)} is no year, month or day; give one such as '2025-06'")
    fields = resource["schema"]["fields"]
    if resource["name"] in things.KINDS:
        origin, _ = things.KINDS[resource["name"]]
        read = {name: table(name).collect() for name in ("sources", origin)}
        return things.at(resource["name"], when, read, {each["name"]: each["type"] for each in fields}).lazy()
    if all(each["name"] != "as_of" for each in fields):
        raise DatasetError(f"{resource['name']} does not say of which time its rows are; leave as_of out")
    begins = pl.col("as_of").str.split("/").list.first().str.slice(0, len(when))
    return frame.filter((begins <= when).fill_null(value=False))
