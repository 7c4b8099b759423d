"""What a layout has to obey before a number may follow from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from factorykit.errors import ScenarioError
from factorykit.formulas.functions import where

COMPUTED: Final = ("data_parallel", "micro_batches", "stage_layers")
"""Quantities whose formulas divide a layout: where one of them is computed, the rules hold."""
Rule = tuple[str, tuple[str, ...], Callable[..., Any], str]
RULES: Final[tuple[Rule, ...]] = (
    (
        "tensor, pipeline and context parallel divide the accelerators",
        ("data_parallel",),
        lambda copies: copies % 1.0 == 0.0,
        "choose degrees whose product divides the accelerators",
    ),
    (
        "heads divide by tensor parallel",
        ("attention_heads", "tensor_parallel"),
        lambda heads, tensor: heads % tensor == 0.0,
        "choose a tensor_parallel that divides attention_heads",
    ),
    (
        "every stage has layers",
        ("layers", "pipeline_parallel"),
        lambda layers, stages: stages <= layers,
        "choose a pipeline_parallel of at most layers",
    ),
    (
        "the batch divides into micro-batches",
        ("micro_batches",),
        lambda count: count % 1.0 == 0.0,
        "choose a global_batch_size that micro_batch_size times data_parallel divides",
    ),
    (
        "experts divide over expert parallel",
        ("experts", "expert_parallel"),
        lambda experts, degree: experts % degree == 0.0,
        "choose an expert_parallel that divides experts",
    ),
    (
        "expert parallel divides the accelerators of a stage",
        ("accelerators", "pipeline_parallel", "expert_parallel"),
        lambda count, stages, degree: count % (stages * degree) == 0.0,
        "choose an expert_parallel that divides accelerators / pipeline_parallel",
    ),
    (
        "query heads divide over key-value heads",
        ("attention_heads", "kv_heads"),
        lambda heads, kv_heads: heads % kv_heads == 0.0,
        "choose kv_heads that divide attention_heads",
    ),
    (
        "a token visits some of the experts",
        ("experts", "experts_per_token"),
        lambda experts, visited: where(experts > 1.0, (visited - 1.0) * (experts - visited), 0.0) >= 0.0,
        "choose experts_per_token from 1 to experts",
    ),
    (
        "memory and step time are modelled for layers that attend, not for those that keep a state",
        ("linear_attention_layers",),
        lambda layers: layers == 0.0,
        "ask for parameters and FLOP per token alone",
    ),
    (
        "memory and step time are modelled for attention to all tokens or a window, not for an index that picks them",
        ("index_heads",),
        lambda heads: heads == 0.0,
        "ask for parameters and FLOP per token alone",
    ),
    (
        "memory and step time are modelled for attention without a gate",
        ("gated_attention",),
        lambda gated: gated == 0.0,
        "ask for parameters and FLOP per token alone",
    ),
    (
        "memory and step time are modelled for layers that have attention",
        ("layers", "attention_layers"),
        lambda layers, attending: attending == layers,
        "ask for parameters and FLOP per token alone",
    ),
    (
        "memory and step time are modelled for layers that have a feed-forward block",
        ("layers", "ffn_layers"),
        lambda layers, blocks: blocks == layers,
        "ask for parameters and FLOP per token alone",
    ),
)
"""Name, the quantities it is about, the condition on floats, polars expressions or terms, and what to try."""


def concerns(computed: Collection[str]) -> bool:
    """Return whether a chain that computes these quantities divides a layout."""
    return any(name in computed for name in COMPUTED)


def said(given: Collection[str]) -> set[str]:
    """Return the quantities that a rule leaves alone because somebody gave them, such as a mean of micro-batches."""
    return {name for name in COMPUTED if name in given}


def rules(known: Collection[str]) -> Iterator[Rule]:
    """Yield the rules that can be judged from the known quantities."""
    return (rule for rule in RULES if all(name in known for name in rule[1]))


def check(values: Mapping[str, Any]) -> None:
    """Refuse values of a layout that does not work.

    Raises
    ------
    ScenarioError
        With the rule, the values and what to try.
    """
    for rule, names, holds, remedy in rules(values):
        if not holds(*[values[name] for name in names]):
            shown = ", ".join(f"{name} = {values[name]:g}" for name in names)
            raise ScenarioError(f"{shown}: {rule}, and here not; {remedy}")


def broken(known: Collection[str]) -> Any:
    """Return a polars expression with the first rule that a row breaks, or null."""
    import polars as pl

    verdict = pl.lit(None, dtype=pl.String)
    for rule, names, holds, _ in reversed(list(rules(known))):
        verdict = pl.when(~holds(*map(pl.col, names))).then(pl.lit(rule)).otherwise(verdict)
    return verdict
