"""Checks at the borders: arguments that are no quantities, and extras that are not installed."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from factorykit.errors import FactorykitWarning, NotInstalled, ScenarioError, UnknownName, shown, unknown
from factorykit.quantities import as_float, is_number
from factorykit.typing import is_text

if TYPE_CHECKING:
    import polars as pl
    from typing_extensions import TypeIs

MOST: Final = 2**53
"""Where whole numbers end that a float can tell apart."""
LONGEST_PATH, LONGEST_NAME = 4095, 255
"""Bytes of a path and of a name in it that systems take."""
MOST_PARTS: Final = 500
"""Of a path; folders within so many others are made one call within another."""
MOST_ITEMS, MOST_YIELDED = 10_000_000, 1_000_000
"""Of one list, and of what does not say how much it holds; more are not copied."""
MOST_LETTERS: Final = 1_000_000
"""Of one text."""
MOST_NAMES: Final = 100_000
"""Of a mapping; there are a hundredth as many quantities."""
MOST_POINTS: Final = 100_000_000
"""Of an array of numbers."""

Called = TypeVar("Called", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[Called], Called]:
    """Return a decorator by which old names of arguments, each with its new one, work for one more minor version.

    >>> @renamed(base="inputs")
    ... def sample(inputs):
    ...     return inputs
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     found = sample(base=1)
    >>> found, str(told[0].message)
    (1, 'sample: base is called inputs; the old name goes with 0.3')
    """

    def decorate(function: Called) -> Called:
        @functools.wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            for old in names.keys() & options.keys():
                owner = function.__qualname__.removesuffix(".__init__")
                said = f"{owner}: {old} is called {names[old]}; the old name goes with 0.3"
                warnings.warn(said, FactorykitWarning, stacklevel=2)
                options[names[old]] = options.pop(old)
            return function(*arguments, **options)

        return called  # type: ignore[return-value]

    return decorate


def whole(name: str, value: float, least: int = 0, most: int = MOST) -> int:
    """Return ``value`` as a whole number from ``least`` to ``most``.

    Raises
    ------
    ScenarioError
    """
    if not is_number(value) or not 0.0 <= (found := as_float(value)) < MOST or found != found // 1:
        raise ScenarioError(f"{name} = {shown(value)} is no whole number; give {least}, {least + 1}, {least + 2} …")
    if not least <= found <= most:
        raise ScenarioError(f"{name} = {shown(value)} is outside [{least:,}, {most:,}]")
    return int(found)


def number(name: str, value: object) -> float:
    """Return ``value`` as a finite number.

    Raises
    ------
    ScenarioError
    """
    if not is_number(value) or not math.isfinite(found := as_float(value)):
        raise ScenarioError(f"{name} = {shown(value)} is not a finite number; give one")
    return found


def share(name: str, value: float) -> float:
    """Return ``value`` as a probability above 0 and below 1.

    Raises
    ------
    ScenarioError
    """
    found = as_float(value) if is_number(value) else math.nan
    if not 0.0 < found < 1.0:
        hint = f"; give a fraction, e.g. {found / 100:g}" if 1.0 < found < 100.0 else ""
        raise ScenarioError(f"{name} = {shown(value)} is outside (0, 1){hint}")
    return found


def flag(name: str, value: object) -> bool:
    """Return ``value`` as a truth value.

    Raises
    ------
    ScenarioError
    """
    if not isinstance(value, bool):
        raise ScenarioError(f"{name} = {shown(value)} is no truth value; give True or False")
    return value


def text(name: str, value: object) -> str:
    """Return ``value`` as a text that every library can read.

    Raises
    ------
    ScenarioError
    """
    if not is_text(value):
        raise ScenarioError(f"{name} = {shown(value)} is no text; give one")
    if str.__len__(value) > MOST_LETTERS:
        raise ScenarioError(f"{name} = {shown(value)} has more than {MOST_LETTERS:,} letters; give fewer")
    return str.__str__(value)


def texts(name: str, value: object) -> tuple[str, ...]:
    """Return one text or several, each once.

    Raises
    ------
    ScenarioError
    """
    if not isinstance(value, Iterable) or isinstance(value, bytes) or hasattr(type(value), "columns"):
        raise ScenarioError(f"{name} = {shown(value)}: give a name, or a list of names")
    if isinstance(value, str):
        return (text(name, value),)
    return tuple(dict.fromkeys(text(f"one of {name}", one) for one in _all(name, value, MOST_NAMES)))


def one_of(what: str, name: object, names: Iterable[str]) -> str:
    """Return ``name`` if it is one of the names of a kind of thing.

    Raises
    ------
    UnknownName
        With the nearest name.
    """
    names = tuple(names)
    if not is_text(name) or str.__str__(name) not in names:
        raise UnknownName(unknown(what, name, names))
    return str.__str__(name)


def several(name: str, value: object) -> tuple[Any, ...]:
    """Return what a list, a tuple, a series or the like holds; a mapping, a frame and a text are none.

    Raises
    ------
    ScenarioError
    """
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)) or hasattr(type(value), "columns"):
        raise ScenarioError(f"{name} = {shown(value)} is no series of values; give a list")
    return _all(name, value)


def _all(name: str, value: Iterable[Any], most: int = MOST_ITEMS) -> tuple[Any, ...]:
    """Return what something holds, unless that is without end or cannot be had."""
    try:
        most = most if isinstance(value, Sized) else min(most, MOST_YIELDED)
        ends = not isinstance(value, Sized) or len(value) <= most
        found = tuple(itertools.islice(value, most + 1)) if ends else ()
    except Exception as error:  # whatever a stranger's __iter__ raises
        raise ScenarioError(f"{name} = {shown(value)} cannot be gone over ({type(error).__name__})") from error
    if not ends or len(found) > most:
        raise ScenarioError(f"{name} = {shown(value)} holds more than {most:,} values; give fewer")
    return found


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return ``value`` as a mapping from names; a stranger's, which may say something else next time, as it is now.

    Raises
    ------
    ScenarioError
    """
    if not isinstance(value, Mapping):
        raise ScenarioError(f"{name} = {shown(value)} is no mapping; give one of names to values")
    found: dict[str, Any] = {}
    try:
        for number, key in enumerate(value):
            if number == MOST_NAMES:
                raise ScenarioError(f"{name} = {shown(value)} holds more than {MOST_NAMES:,} names; give fewer")
            found[text(f"a name in {name}", key)] = value[key]
    except ScenarioError:
        raise
    except Exception as error:  # whatever a stranger's mapping raises
        raise ScenarioError(f"{name} = {shown(value)} cannot be gone over ({type(error).__name__})") from error
    return value if type(value).__module__.startswith("factorykit.") else found


def anything() -> tuple[type[BaseException], ...]:
    """Return what a stranger's array may raise when it is read; a panic of polars is no ``Exception``."""
    from polars.exceptions import PanicException

    return Exception, PanicException


def array(name: str, value: Any, kinds: str = "fiu") -> Any:
    """Return a list, a series or an array as an array of doubles, of which NumPy's kind is one of ``kinds``.

    What a list holds is looked at before NumPy sees it, which goes into whatever says that it holds something.

    Raises
    ------
    ScenarioError
    """
    np = need("numpy")
    whole = isinstance(value, np.ndarray) or type(value).__module__.startswith("polars")
    many = value if whole else several(name, value)
    try:
        if not whole and not all(
            is_number(each) or ("b" in kinds and isinstance(each, (bool, np.bool_))) for each in many
        ):
            raise TypeError(name)
        found = np.asarray(many)
        if found.size <= MOST_POINTS and (found.dtype.kind in kinds or not found.size):
            return found.astype(float)
    except anything() as error:
        raise ScenarioError(f"{name} = {shown(value)} is no array of numbers ({type(error).__name__})") from error
    if found.size > MOST_POINTS:
        raise ScenarioError(f"{name} holds {found.size:,} numbers; give at most {MOST_POINTS:,}")
    raise ScenarioError(f"{name} = {shown(value)} is no array of numbers; give one")


def spread(name: str, value: Any, least: float, most: float) -> Any:
    """Return a number, or an array of them, that lies within limits.

    Raises
    ------
    ScenarioError
    """
    if is_number(value):
        found = low = high = as_float(value)
    else:
        found = array(name, value)
        low, high = float(found.min(initial=most)), float(found.max(initial=least))
    if not least <= low <= high <= most:
        raise ScenarioError(f"{name} = {shown(value)} is outside [{least:g}, {most:g}]")
    return found


def cells(name: str, value: object) -> dict[str, str | float | bool | None]:
    """Return a mapping from names to what a cell of a table can hold: a text, a number, a truth value, or nothing.

    Raises
    ------
    ScenarioError
    """
    found = dict(mapping(name, value))
    for key, cell in found.items():
        if not (cell is None or isinstance(cell, bool) or is_text(cell) or (is_number(cell) and abs(cell) < 2**63)):
            raise ScenarioError(f"{name}: {key} = {shown(cell)} fits in no cell; give a text, a number or nothing")
        if is_number(cell):
            found[key] = int(cell) if isinstance(cell, int) else float(cell)
    return found


def is_frame(value: object) -> TypeIs[pl.DataFrame | pl.LazyFrame]:
    """Return whether ``value`` is a frame of polars, by its type: what a stranger calls its class may be anything."""
    import polars as pl

    return issubclass(type(value), (pl.DataFrame, pl.LazyFrame))


def frame(name: str, value: Any, columns: Iterable[str] = ()) -> pl.DataFrame:
    """Return ``value`` as a DataFrame that has the columns; a LazyFrame is collected.

    Raises
    ------
    ScenarioError
    """
    columns_of(name, value)
    try:
        found = value.lazy().collect()
    except Exception as error:  # whatever a file, or a stranger's function in the query, raises
        raise ScenarioError(f"{name} cannot be collected: {str(error).partition(chr(10))[0]}") from error
    if gone := [column for column in columns if column not in found.columns]:
        raise ScenarioError(f"{name} has no column {shown(gone[0])}; it needs {', '.join(map(shown, columns))}")
    return found


def columns_of(name: str, value: pl.DataFrame | pl.LazyFrame) -> pl.Schema:
    """Return the columns of a frame and their types.

    Raises
    ------
    ScenarioError
        If it is no frame, a lazy one cannot be read, or a column is called like a pattern of columns.
    """
    if not is_frame(value):
        raise ScenarioError(f"{name} = {shown(value)} is a {type(value).__name__}; give a polars DataFrame")
    try:
        found = value.collect_schema()
    except Exception as error:  # whatever a file, or a stranger's function in the query, raises
        raise ScenarioError(f"{name} cannot be read: {str(error).partition(chr(10))[0]}") from error
    if pattern := next((each for each in found if each == "*" or (each[:1] == "^" and each[-1:] == "$")), None):
        raise ScenarioError(f"{name} has a column {shown(pattern)}, which polars takes for a pattern; rename it")
    return found


def numbers(value: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Return a frame whose columns of numbers are doubles.

    Raises
    ------
    ScenarioError
    """
    import polars as pl

    for column in columns:
        if not value.schema[column].is_numeric():
            raise ScenarioError(f"column {column} is {value.schema[column]}, not numeric; cast it to Float64")
    return value.cast(dict.fromkeys(columns, pl.Float64))


def file_path(name: str, value: object) -> Path:
    """Return ``value`` as a path.

    Raises
    ------
    ScenarioError
    """
    try:
        said = os.fsencode(value)  # type: ignore[arg-type]
    except Exception:  # whatever a stranger's __fspath__ raises
        said = b"\0"
    parts = said.split(b"/")
    if b"\0" in said or len(said) > LONGEST_PATH or len(parts) > MOST_PARTS or max(map(len, parts)) > LONGEST_NAME:
        raise ScenarioError(f"{name} = {shown(value)} is no path; give a text or a Path")
    found = Path(os.fsdecode(said))
    return found.absolute() if said.startswith(b"~") else found  # polars takes it for the home of somebody


def path_or_address(name: str, value: object) -> str:
    """Return a path or an address as a text; a path would make one slash of an address's two.

    Raises
    ------
    ScenarioError
    """
    return text(name, value) if is_text(value) else str(file_path(name, value))


EXTRAS: Final = {
    "altair": "notebook",
    "anywidget": "notebook",
    "great_tables": "notebook",
    "ipywidgets": "notebook",
    "jupyterlab": "notebook",
    "lifelines": "reliability",
    "numpy": "uncertainty",
    "ray": "ray",
    "scipy": "uncertainty",
    "vl_convert": "notebook",
}
"""The smallest extra that brings a package; all others come with ``site``."""


def need(module: str) -> Any:
    """Return a module that an extra brings.

    Raises
    ------
    NotInstalled
        If it is not installed, with what to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise not_installed(error) from None


def lazily(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package each of whose names stands in a module that is imported on use.

    Parameters
    ----------
    package
        Its ``__name__``.
    home
        Module by name.
    """

    def attribute(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(need(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute


def not_installed(error: ModuleNotFoundError) -> ImportError:
    """Return what to raise for a package that is not there: the extra that brings it, or the error itself.

    >>> str(not_installed(ModuleNotFoundError(name="scipy.stats")))
    "scipy is not installed; pip install 'factorykit[uncertainty]'"
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", "factorykit"):
        return error
    return NotInstalled(f"{package} is not installed; pip install 'factorykit[{EXTRAS.get(package, 'site')}]'")
