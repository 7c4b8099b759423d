"""Optional dependencies, and names that are imported on first use."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from factorykit.core.errors import NotInstalled

EXTRAS: Final = {
    "altair": "notebook",
    "anywidget": "notebook",
    "fsspec": "object-store",
    "ipywidgets": "notebook",
    "huggingface_hub": "object-store",
    "jupyterlab": "notebook",
    "lifelines": "reliability",
    "mcp": "mcp",
    "numpy": "uncertainty",
    "obstore": "object-store",
    "ray": "ray",
    "scipy": "uncertainty",
    "upath": "object-store",
    "vl_convert": "notebook",
}
"""The smallest extra that installs a package; ``site`` installs all others."""


def need(module: str) -> Any:
    """Return a module of an optional package.

    Raises
    ------
    NotInstalled
        If it is not installed, with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise not_installed(error) from None


class Plotted:
    """A result that has a chart."""

    def plot(self) -> Any:
        """Return the chart of the result: :func:`factorykit.plot`."""
        return need("factorykit.charts.results").plot(self)


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` of a package whose names are imported on first use.

    Parameters
    ----------
    package
        ``__name__`` of the package.
    file
        Its ``__file__``. The stub beside it, ``__init__.pyi``, imports each name from its module.
    """
    homes = _imports(Path(file).with_suffix(".pyi"))

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, original = homes[name]
        defined = vars(need(home))
        value = defined[original] if original in defined else need(f"{home}.{original}")
        setattr(sys.modules[package], name, value)
        return value

    return attribute, sorted(homes)


def grouped_names(docstring: str) -> dict[str, list[str]]:
    r"""Return the public names of a package by task, from its docstring.

    >>> grouped_names("Title.\n\ndata\n    sql, table\nplan\n    search\n")
    {'data': ['sql', 'table'], 'plan': ['search']}
    """
    groups = re.findall(r"^(\w+)\n((?: {4}.+\n)+)", docstring, re.MULTILINE)
    return {title: re.findall(r"\w+", names) for title, names in groups}


def public_names(module: str) -> Callable[[], list[str]]:
    """Return ``__dir__`` of a module: names in ``__all__``, or else those that the module or its package defines."""

    def names() -> list[str]:
        defined = vars(sys.modules[module])
        homes = {name: getattr(value, "__module__", getattr(value, "__name__", "")) for name, value in defined.items()}
        own = (name for name, home in homes.items() if name[0] != "_" and str(home).startswith(module))
        return defined.get("__all__") or sorted(own)

    return names


@cache
def _imports(stub: Path) -> dict[str, tuple[str, str]]:
    """Return the names that a stub imports, each with its module and its name there."""
    statements = ast.parse(stub.read_text(encoding="utf-8")).body
    return {
        alias.asname or alias.name: (str(statement.module), alias.name)
        for statement in statements
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def not_installed(error: ModuleNotFoundError) -> ImportError:
    """Return the error for a missing package, with the extra that installs it.

    >>> str(not_installed(ModuleNotFoundError(name="scipy.stats")))
    "scipy is not installed; pip install 'factorykit[uncertainty]', or 'factorykit[all]' for all extras"
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", "factorykit"):
        return error
    extra = EXTRAS.get(package, "site")
    return NotInstalled(
        f"{package} is not installed; pip install 'factorykit[{extra}]', or 'factorykit[all]' for all extras"
    )
