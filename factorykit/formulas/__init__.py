"""Formulas by topic. A formula's name is the quantity it returns; its arguments are the quantities it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from factorykit.formulas import (
    architecture,
    checkpoint,
    checkpoint_runtime,
    checkpoint_tiers,
    compute,
    cost,
    energy,
    failure_cost,
    lifetimes,
    memory,
    network,
    operations,
    ownership,
    parallelism,
    performance,
    reliability,
    rental,
    resilience,
    scaling,
    step_parts,
    topology,
)

__all__ = [
    "architecture",
    "arguments",
    "catalogue",
    "checkpoint",
    "checkpoint_runtime",
    "checkpoint_tiers",
    "compute",
    "cost",
    "energy",
    "failure_cost",
    "lifetimes",
    "memory",
    "network",
    "operations",
    "ownership",
    "parallelism",
    "performance",
    "reliability",
    "rental",
    "resilience",
    "scaling",
    "step_parts",
    "topology",
]

TOPICS = (
    architecture,
    parallelism,
    memory,
    network,
    performance,
    step_parts,
    compute,
    topology,
    energy,
    reliability,
    lifetimes,
    checkpoint,
    checkpoint_runtime,
    checkpoint_tiers,
    resilience,
    cost,
    rental,
    ownership,
    failure_cost,
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

    >>> arguments(compute.nodes)
    ('accelerators', 'accelerators_per_node')
    """
    return formula.__code__.co_varnames[: formula.__code__.co_argcount]
