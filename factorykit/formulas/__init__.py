"""Formulas by topic: a formula's name is the quantity it returns, its arguments are the quantities it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType, MappingProxyType
from typing import Any

from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import public_names
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
    post_training,
    recurrence,
    reliability,
    rental,
    resilience,
    scaling,
    serving,
    sites,
    step,
    tenancy,
    topology,
)
from factorykit.formulas.documents import document

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
    serving.memory,
    serving.communication,
    serving.decode,
    serving.prefill,
    serving.latency,
    serving.throughput,
    serving.cost,
    post_training,
    scaling,
)


@cache
def catalogue() -> Mapping[str, Callable[..., Any]]:
    """Return the formulas by name, in the order of the topics and of their modules."""
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
        If ``formula`` is not a function.

    >>> arguments(compute.nodes)
    ('accelerators', 'accelerators_per_node')
    """
    if not isinstance(formula, FunctionType):
        raise ScenarioError(f"formula must be a function of factorykit.formulas.catalogue(), got {short_repr(formula)}")
    return formula.__code__.co_varnames[: formula.__code__.co_argcount]


def topic(formula: Callable[..., Any]) -> str:
    """Return the topic of a formula: its module name within this package.

    >>> topic(step.rates.maturity)
    'step.rates'
    """
    return formula.__module__.removeprefix(f"{__name__}.")


__dir__ = public_names(__name__)
document(catalogue().values())
