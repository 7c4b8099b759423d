"""Checks at the borders: arguments that are no quantities, and extras that are not installed."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar

from factorykit.errors import FactorykitWarning, NotInstalled, ScenarioError
from factorykit.quantities import is_number

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


def whole(name: str, value: float) -> int:
    """Return ``value`` as a whole number from 0 on.

    Raises
    ------
    ScenarioError
    """
    if not is_number(value) or value < 0 or value != value // 1:
        raise ScenarioError(f"{name} = {value!r} is no whole number; give 0, 1, 2 …")
    return int(value)


def share(name: str, value: float) -> float:
    """Return ``value`` as a probability above 0 and below 1.

    Raises
    ------
    ScenarioError
    """
    if not is_number(value) or not 0.0 < value < 1.0:
        hint = f"; give a fraction, e.g. {value / 100:g}" if is_number(value) and 1 < value < 100 else ""
        raise ScenarioError(f"{name} = {value!r} is outside (0, 1){hint}")
    return float(value)


EXTRAS: Final = {
    "altair": "notebook",
    "anywidget": "notebook",
    "great_tables": "notebook",
    "ipywidgets": "notebook",
    "jupyterlab": "notebook",
    "lifelines": "reliability",
    "numpy": "uncertainty",
    "pyarrow": "ray",
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


def not_installed(error: ModuleNotFoundError) -> ImportError:
    """Return what to raise for a package that is not there: the extra that brings it, or the error itself.

    >>> str(not_installed(ModuleNotFoundError(name="scipy.stats")))
    "scipy is not installed; pip install 'factorykit[uncertainty]'"
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", "factorykit"):
        return error
    return NotInstalled(f"{package} is not installed; pip install 'factorykit[{EXTRAS.get(package, 'site')}]'")
