"""Formulas by topic. A formula's name is the quantity it returns; its arguments are the quantities it needs."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any

from factorykit.errors import FactorykitWarning, ScenarioError, shown
from factorykit.formulas import (
    architecture,
    bring_up,
    checkpoint,
    checkpoint_runtime,
    checkpoint_tiers,
    collectives,
    compute,
    congestion,
    cost,
    diagnosis,
    energy,
    failure_cost,
    finetuning,
    lifetimes,
    loader,
    memory,
    network,
    operations,
    ownership,
    parallelism,
    recurrence,
    reliability,
    rental,
    resilience,
    scaling,
    sites,
    step,
    tenancy,
    topology,
)
from factorykit.formulas.documents import document

__all__ = [
    "architecture",
    "arguments",
    "bring_up",
    "catalogue",
    "checkpoint",
    "checkpoint_runtime",
    "checkpoint_tiers",
    "collectives",
    "compute",
    "congestion",
    "cost",
    "diagnosis",
    "energy",
    "failure_cost",
    "finetuning",
    "lifetimes",
    "loader",
    "memory",
    "network",
    "operations",
    "ownership",
    "parallelism",
    "recurrence",
    "reliability",
    "rental",
    "resilience",
    "scaling",
    "sites",
    "step",
    "tenancy",
    "topology",
]

TOPICS = (
    architecture,
    recurrence,
    parallelism,
    finetuning,
    memory,
    network,
    sites,
    collectives,
    congestion,
    step.features,
    step.rates,
    step.layer,
    step.communication,
    step.whole,
    step.interval,
    step.training,
    step.parts,
    compute,
    topology,
    energy,
    reliability,
    lifetimes,
    checkpoint,
    checkpoint_runtime,
    checkpoint_tiers,
    resilience,
    diagnosis,
    cost,
    rental,
    ownership,
    failure_cost,
    loader,
    tenancy,
    bring_up,
    operations,
    scaling,
)


@cache
def catalogue() -> Mapping[str, Callable[..., Any]]:
    """Return every formula by the name of the quantity it returns, in the order of topics and modules."""
    return MappingProxyType(
        {
            name: value
            for topic in TOPICS
            for name, value in vars(topic).items()
            if callable(value) and getattr(value, "__module__", "") == topic.__name__ and not name.startswith("_")
        }
    )


def arguments(formula: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the quantities a formula needs.

    Raises
    ------
    ScenarioError
        If it is no function.

    >>> arguments(compute.nodes)
    ('accelerators', 'accelerators_per_node')
    """
    if not isinstance(formula, FunctionType):
        raise ScenarioError(f"formula = {shown(formula)} is no function; give one of factorykit.formulas.catalogue()")
    return formula.__code__.co_varnames[: formula.__code__.co_argcount]


def topic(formula: Callable[..., Any]) -> str:
    """Return the topic of a formula, its module below this one.

    >>> topic(step.rates.maturity)
    'step.rates'
    """
    return formula.__module__.removeprefix(f"{__name__}.")


document(catalogue().values())


MOVED = ("performance", "step_parts")
"""Old names of ``step``; they go with 0.3."""


def moved(module: str, name: str) -> Callable[..., Any]:
    """Return the formula ``name`` of a module that is ``step`` now, and warn."""
    formula = catalogue().get(name)
    if formula is None or not topic(formula).startswith("step."):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    said = f"{module}.{name} is {formula.__module__}.{name} now; the old name goes with 0.3"
    warnings.warn(said, FactorykitWarning, stacklevel=3)
    return formula


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in MOVED:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
