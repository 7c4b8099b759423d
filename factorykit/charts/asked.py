"""What a chart is asked for, checked by what its signature says: frames, names, scenarios."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec, TypeVar

from factorykit.borders import flag, frame, mapping, number, text, whole
from factorykit.errors import FactorykitError, ScenarioError, shown

Given = ParamSpec("Given")
Made = TypeVar("Made")


def _scenarios(name: str, value: object) -> Mapping[str, Mapping[str, Any]]:
    return {label: mapping(f"{name}[{shown(label)}]", each) for label, each in mapping(name, value).items()}


CHECKS: Final[Mapping[str, Callable[..., Any]]] = {
    "pl.DataFrame": frame,
    "str": text,
    "int": whole,
    "bool": flag,
    "float": number,
    "Mapping[str, Any]": mapping,
    "Mapping[str, float | None]": mapping,
    "Mapping[str, Mapping[str, Any]]": _scenarios,
}
"""How an argument is checked, by its annotation."""


def checked(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Return a function of charts whose arguments are checked, and that refuses in words what it cannot draw.

    >>> import polars as pl
    >>> @checked
    ... def first(frame: "pl.DataFrame", by: "str"):
    ...     return frame[by][0]
    >>> first(pl.DataFrame({"a": [1]}), "a")
    1
    >>> first(pl.DataFrame({"a": [1]}), "b")
    Traceback (most recent call last):
    factorykit.errors.ScenarioError: first cannot be drawn of this (ColumnNotFoundError: "b" not found); its \
documentation names the columns
    """
    signature = inspect.signature(function)
    kinds = {name: str(each.annotation).removesuffix(" | None") for name, each in signature.parameters.items()}
    optional = {name for name, each in signature.parameters.items() if each.default is None}
    optional |= {name for name, each in signature.parameters.items() if str(each.annotation).endswith(" | None")}

    @functools.wraps(function)
    def drawn(*arguments: Given.args, **options: Given.kwargs) -> Made:
        given = signature.bind(*arguments, **options)
        for name, value in given.arguments.items():
            check = CHECKS.get(kinds[name])
            if check and not (value is None and name in optional):
                given.arguments[name] = check(name, value)  # type: ignore[arg-type]
        try:
            return function(*given.args, **given.kwargs)
        except FactorykitError:
            raise
        except Exception as error:  # of polars, Altair, Vega, where something is not there or is something else
            reason = next(iter(str(error).strip().splitlines()), "")
            raise ScenarioError(
                f"{function.__name__} cannot be drawn of this ({type(error).__name__}: {reason}); "
                "its documentation names the columns"
            ) from error

    return drawn
