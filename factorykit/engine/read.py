"""What was given: names, words and numbers as somebody writes them, as the engine takes them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from factorykit.core import plausibility
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.units import begins_with_digit
from factorykit.core.validation import mapping, strings
from factorykit.core.vocabulary import Quantity, quantity
from factorykit.engine.chain import choice

if TYPE_CHECKING:
    from factorykit.core.names import QuantityName

Outputs: TypeAlias = "QuantityName | str | Iterable[QuantityName | str] | None"


def value(row: Quantity, given: Any) -> float | str:
    """Return a value of a quantity, checked; the name of a chip becomes its key.

    Raises
    ------
    ScenarioError, UnknownName
    """
    if type(given) is str and row.name == "accelerator":
        from factorykit.data.identifiers import identify

        return identify("accelerator", given)
    return row.check(given)


def checked(inputs: Mapping[str, Any], without: Container[str] = ()) -> tuple[dict[str, float | str], dict[str, str]]:
    """Return the values of a mapping, each checked, and the rival models it names; those of ``without`` are left out.

    Raises
    ------
    UnknownQuantity, ScenarioError
    """
    if not isinstance(inputs, Mapping):
        raise ScenarioError(f"inputs are {type(inputs).__name__}; give a Scenario or a mapping of quantities to values")
    if type(inputs) is not dict:
        inputs = mapping("inputs", inputs)
    values: dict[str, float | str] = {}
    rivals: dict[str, str] = {}
    for name, given in ((name, given) for name, given in inputs.items() if name not in without):
        row = quantity(name)
        if isinstance(given, str) and not row.is_text and not begins_with_digit(given):
            rivals[name] = choice(name, given)
        else:
            values[name] = value(row, given)
    plausibility.warn_unusual(values)
    return values, rivals


def chosen(using: Mapping[str, str] | None) -> dict[str, str]:
    """Return the rival models of an argument ``using``, each checked.

    Raises
    ------
    UnknownQuantity, ScenarioError
    """
    if using is None:
        return {}
    if not isinstance(using, Mapping):
        raise ScenarioError(
            f"using = {short_repr(using)}: give a mapping such as {{'checkpoint_interval_s': '…_young_s'}}"
        )
    return {quantity(name).name: choice(name, rival) for name, rival in mapping("using", using).items()}


def named(outputs: Outputs) -> tuple[str, ...] | None:
    """Return the names of the outputs asked for, or None for all of them.

    Raises
    ------
    UnknownQuantity, ScenarioError
    """
    if outputs is None:
        return None
    names = strings("outputs", outputs)
    if not names:
        raise ScenarioError("outputs are empty; name at least one quantity, or leave outputs away for all of them")
    return tuple(quantity(name).name for name in names)
