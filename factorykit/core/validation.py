"""Argument validation: each check returns the value, or raises a ScenarioError that names the argument."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import ScenarioError, UnknownName, short_repr, unknown_name_message
from factorykit.core.extras import need
from factorykit.core.vocabulary import as_float, is_number

if TYPE_CHECKING:
    import polars as pl
    from typing_extensions import TypeIs

MAX_EXACT_INTEGER: Final = 2**53
"""Largest integer up to which every integer is a double."""
MAX_PATH_BYTES, MAX_NAME_BYTES = 4095, 255
"""Longest path and longest part of one that file systems accept."""


def integer(name: str, value: float, minimum: int = 0, maximum: int = MAX_EXACT_INTEGER) -> int:
    """Return ``value`` as an integer between two limits."""
    number = as_float(value) if is_number(value) else math.nan
    if number % 1.0 != 0.0:
        raise ScenarioError(f"{name} must be an integer, got {short_repr(value)}")
    if not minimum <= number <= maximum:
        raise ScenarioError(f"{name} must be between {minimum:,} and {maximum:,}, got {short_repr(value)}")
    return int(number)


def finite_number(name: str, value: object) -> float:
    """Return ``value`` as a finite number."""
    if not is_number(value) or not math.isfinite(number := as_float(value)):
        raise ScenarioError(f"{name} must be a finite number, got {short_repr(value)}")
    return number


def probability(name: str, value: float) -> float:
    """Return ``value`` as a probability above 0 and below 1."""
    number = as_float(value) if is_number(value) else math.nan
    if not 0.0 < number < 1.0:
        hint = f"; as a fraction that is {number / 100:g}" if 1.0 < number < 100.0 else ""
        raise ScenarioError(f"{name} must be in (0, 1), got {short_repr(value)}{hint}")
    return number


def boolean(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise ScenarioError(f"{name} must be True or False, got {short_repr(value)}")
    return value


def string(name: str, value: object) -> str:
    """Return ``value`` if it is a string."""
    if not isinstance(value, str):
        raise ScenarioError(f"{name} must be a string, got {short_repr(value)}")
    return value


def strings(name: str, value: object) -> tuple[str, ...]:
    """Return a string, or each of several strings or keys once."""
    if isinstance(value, str):
        return (value,)
    items = value if isinstance(value, Mapping) else as_list(name, value)
    return tuple(dict.fromkeys(string(f"each item of {name}", item) for item in items))


def one_of(kind: str, name: object, names: Iterable[str]) -> str:
    """Return the known name of its kind that is spelled like ``name``, in any case.

    Raises
    ------
    UnknownName
        With the nearest name.

    >>> one_of("method", "Saltelli", ["saltelli", "random"])
    'saltelli'
    """
    names = tuple(names)
    if name in names:
        return str(name)
    alike = [known for known in names if isinstance(name, str) and known.casefold() == name.strip().casefold()]
    if len(alike) != 1:
        raise UnknownName(unknown_name_message(kind, name, names))
    return alike[0]


def as_list(name: str, value: object) -> tuple[Any, ...]:
    """Return the items of a list, a tuple, a series or another iterable that is no string, mapping or frame."""
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)) or is_frame(value):
        raise ScenarioError(f"{name} must be a list, got {short_repr(value)}")
    return tuple(value)


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return ``value`` if it is a mapping whose keys are strings."""
    if not isinstance(value, Mapping):
        raise ScenarioError(f"{name} must be a mapping of names to values, got {short_repr(value)}")
    for key in value:
        string(f"each key of {name}", key)
    return value


def array(name: str, value: Any, kinds: str = "fiu") -> Any:
    """Return a list, a series or an array as an array of doubles; ``kinds`` are the NumPy kinds that are accepted."""
    np = need("numpy")
    try:
        numbers = np.asarray(value if hasattr(value, "__array__") else list(as_list(name, value)))
    except ValueError as error:
        raise ScenarioError(f"{name} must be an array of numbers: {error}") from error
    if numbers.size and numbers.dtype.kind not in kinds:
        raise ScenarioError(f"{name} must be an array of numbers, got {short_repr(value)}")
    return numbers.astype(float)


def number_or_array(name: str, value: Any, minimum: float, maximum: float) -> Any:
    """Return a number, or an array of numbers, between two limits."""
    if is_number(value):
        numbers = low = high = as_float(value)
    else:
        numbers = array(name, value)
        low, high = float(numbers.min(initial=maximum)), float(numbers.max(initial=minimum))
    if not minimum <= low <= high <= maximum:
        raise ScenarioError(f"{name} must be between {minimum:g} and {maximum:g}, got {short_repr(value)}")
    return numbers


def cells(name: str, value: object) -> dict[str, str | float | bool | None]:
    """Return a mapping of names to strings, numbers, booleans or None as a dict."""
    checked = dict(mapping(name, value))
    for key, cell in checked.items():
        if not (cell is None or isinstance(cell, (bool, str)) or is_number(cell)):
            raise ScenarioError(f"{name}: {key} must be a string, a number or None, got {short_repr(cell)}")
        if is_number(cell):
            checked[key] = int(cell) if isinstance(cell, int) else float(cell)
    return checked


def is_frame(value: object) -> TypeIs[pl.DataFrame | pl.LazyFrame]:
    """Return whether ``value`` is a polars DataFrame or LazyFrame."""
    if not type(value).__module__.startswith("polars"):
        return False
    import polars as pl

    return isinstance(value, (pl.DataFrame, pl.LazyFrame))


def polars_frame(value: Any) -> Any:
    """Return a frame of pandas, DuckDB or another library with Arrow's interface as a DataFrame, other values as is."""
    if type(value).__module__.startswith("polars") or not hasattr(value, "__arrow_c_stream__"):
        return value
    import polars as pl

    return pl.DataFrame(value)


def frame(name: str, value: Any, columns: Iterable[str] = ()) -> pl.DataFrame:
    """Return a DataFrame that has the columns; a LazyFrame is collected, frames of other libraries are converted."""
    import polars as pl

    value = polars_frame(value)
    frame_schema(name, value)
    try:
        collected = value.lazy().collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ScenarioError(f"{name} cannot be collected: {str(error).partition(chr(10))[0]}") from error
    if missing := [column for column in columns if column not in collected.columns]:
        raise ScenarioError(f"{name} has no column {missing[0]!r}; expected {', '.join(columns)}")
    return collected


def frame_schema(name: str, value: pl.DataFrame | pl.LazyFrame) -> pl.Schema:
    """Return the schema of a frame.

    Raises
    ------
    ScenarioError
        If it is not a frame, its file cannot be read, or a column has the name of a column pattern.
    """
    if not is_frame(value):
        raise ScenarioError(f"{name} must be a polars DataFrame or LazyFrame, got {short_repr(value)}")
    import polars as pl

    try:
        schema = value.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ScenarioError(f"{name} cannot be read: {str(error).partition(chr(10))[0]}") from error
    if pattern := next((column for column in schema if column == "*" or (column[:1] + column[-1:]) == "^$"), None):
        raise ScenarioError(f"{name} has a column named {pattern!r}, which polars reads as a pattern; rename it")
    return schema


def float_columns(value: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Return a frame whose numeric columns are cast to Float64."""
    import polars as pl

    for column in columns:
        if not value.schema[column].is_numeric():
            raise ScenarioError(f"column {column} must be numeric, got {value.schema[column]}; cast it to Float64")
    return value.cast(dict.fromkeys(columns, pl.Float64))


def file_path(name: str, value: object) -> Path:
    """Return ``value`` as a path."""
    if not isinstance(value, (str, os.PathLike)):
        raise ScenarioError(f"{name} must be a path, got {short_repr(value)}")
    if "://" in str(value):
        raise ScenarioError(
            f"{name} = {str(value)!r}: URLs and object stores are not supported here; give a local or mounted path"
        )
    raw = os.fsencode(value)
    if b"\0" in raw or len(raw) > MAX_PATH_BYTES or max(map(len, raw.split(b"/"))) > MAX_NAME_BYTES:
        raise ScenarioError(f"{name} must be a path, got {short_repr(value)}")
    path = Path(os.fsdecode(raw))
    return path.absolute() if raw.startswith(b"~") else path  # polars would expand the tilde


def path_or_url(name: str, value: object) -> str:
    """Return a path or a URL as a string; as a ``Path`` a URL would lose a slash."""
    return value if isinstance(value, str) else str(file_path(name, value))
