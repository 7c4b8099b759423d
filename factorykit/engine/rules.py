"""Rules that a parallel layout and given values must satisfy, as one list for floats, columns and JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from factorykit.core.errors import ScenarioError
from factorykit.formulas.functions import maximum, where

DIVIDED: Final = ("data_parallel", "micro_batches", "stage_layers")
"""Quantities whose formulas divide a layout: where one of them is computed, the rules apply."""
EDGE_LAYERS: Final = 3.0
"""Embedding, loss and a layer that predicts a further token may count when a pipeline is cut: Llama 3.1 405B has 126
layers on 16 stages of eight, DeepSeek-V3 61 on 64 chunks."""
TOLERANCE: Final = 1e-6
"""Room for rounding."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on floats, polars expressions and terms alike, and a remedy where it fails."""

    name: str
    holds: Callable[..., Any]
    remedy: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """The quantities that the condition depends on."""
        return self.holds.__code__.co_varnames[: self.holds.__code__.co_argcount]


LAYOUT: Final = (
    Rule(
        "tensor, pipeline and context parallel divide the accelerators",
        lambda data_parallel: data_parallel % 1.0 == 0.0,
        "choose degrees whose product divides the accelerators",
    ),
    Rule(
        "heads divide by tensor parallel",
        lambda attention_heads, tensor_parallel: attention_heads % tensor_parallel == 0.0,
        "choose a tensor_parallel that divides attention_heads",
    ),
    Rule(
        "key-value heads divide by tensor parallel, or it by them",
        lambda kv_heads, tensor_parallel: (
            where(kv_heads >= tensor_parallel, kv_heads % tensor_parallel, tensor_parallel % kv_heads) == 0.0
        ),
        "choose a tensor_parallel that divides kv_heads, or a multiple of them",
    ),
    Rule(
        "every stage has layers",
        lambda layers, pipeline_parallel: pipeline_parallel <= layers,
        "choose a pipeline_parallel of at most layers",
    ),
    Rule(
        "virtual stages cut a pipeline into chunks that have layers",
        lambda layers, pipeline_parallel, virtual_stages: (
            where(
                virtual_stages > 1.0,
                where(pipeline_parallel > 1.0, layers + EDGE_LAYERS - pipeline_parallel * virtual_stages, -1.0),
                0.0,
            )
            >= 0.0
        ),
        "choose virtual_stages = 1 without a pipeline, and at most layers / pipeline_parallel with one",
    ),
    Rule(
        "the batch divides into micro-batches",
        lambda micro_batches: micro_batches % 1.0 == 0.0,
        "choose a global_batch_size that micro_batch_size times data_parallel divides",
    ),
    Rule(
        "interleaving needs micro-batches in multiples of the stages",
        lambda micro_batches, pipeline_parallel, virtual_stages: (
            where(virtual_stages > 1.0, micro_batches % pipeline_parallel, 0.0) == 0.0
        ),
        "choose virtual_stages = 1, or a batch of more micro-batches",
    ),
    Rule(
        "the sequence divides by twice context parallel",
        lambda sequence_length, context_parallel: (
            where(context_parallel > 1.0, sequence_length % (2.0 * context_parallel), 0.0) == 0.0
        ),
        "choose a context_parallel that divides half the sequence_length",
    ),
    Rule(
        "experts divide over expert parallel",
        lambda experts, expert_parallel: where(expert_parallel > 1.0, experts % expert_parallel, 0.0) == 0.0,
        "choose an expert_parallel that divides experts",
    ),
    Rule(
        "only experts spread over expert parallel",
        lambda experts, expert_parallel: where(expert_parallel > 1.0, experts, 2.0) > 1.0,
        "choose expert_parallel = 1 for a dense model",
    ),
    Rule(
        "expert parallel divides the accelerators of a stage",
        lambda accelerators, pipeline_parallel, expert_parallel: (
            accelerators % (pipeline_parallel * expert_parallel) == 0.0
        ),
        "choose an expert_parallel that divides accelerators / pipeline_parallel",
    ),
    Rule(
        "zero bubble needs a pipeline without interleaving",
        lambda schedule, pipeline_parallel, virtual_stages: (
            where(
                schedule == "zb1p",
                where(pipeline_parallel > 1.0, virtual_stages - 1.0, 1.0),
                where(schedule == "zb2p", where(pipeline_parallel > 1.0, virtual_stages - 1.0, 1.0), 0.0),
            )
            == 0.0
        ),
        "choose schedule = '1f1b', or a pipeline with virtual_stages = 1",
    ),
    Rule(
        "DualPipe needs an even pipeline, twice as many micro-batches and no interleaving",
        lambda schedule, pipeline_parallel, virtual_stages, micro_batches: (
            where(
                schedule == "dualpipe",
                maximum(
                    maximum(pipeline_parallel % 2.0, virtual_stages - 1.0),
                    where(micro_batches >= 2.0 * pipeline_parallel, 0.0, 1.0),
                ),
                0.0,
            )
            == 0.0
        ),
        "choose schedule = '1f1b', or an even pipeline_parallel and a larger batch",
    ),
)
"""Rules where a layout is divided."""
GENERAL: Final = (
    Rule(
        "query heads divide over key-value heads",
        lambda attention_heads, kv_heads: attention_heads % kv_heads == 0.0,
        "choose kv_heads that divide attention_heads",
    ),
    Rule(
        "weights of fewer than 16 bits are frozen",
        lambda weight_bits, lora_rank: where(weight_bits < 16.0, lora_rank, 1.0) > 0.0,
        "choose a lora_rank, or weight_bits = 16",
    ),
    Rule(
        "a token visits some of the experts",
        lambda experts, experts_per_token: (
            where(experts > 1.0, (experts_per_token - 1.0) * (experts - experts_per_token), 0.0) >= 0.0
        ),
        "choose experts_per_token from 1 to experts",
    ),
    Rule(
        "a layer has a block of a kind once at most, and every layer has one",
        lambda layers, attention_layers, linear_attention_layers, ffn_layers: (
            maximum(
                maximum(maximum(attention_layers, linear_attention_layers), ffn_layers) - layers,
                layers - attention_layers - linear_attention_layers - ffn_layers,
            )
            <= 0.0
        ),
        "choose attention_layers, linear_attention_layers and ffn_layers of at most layers, and together of no fewer",
    ),
    Rule(
        "active parameters are a part of the parameters",
        lambda parameters, active_parameters: active_parameters <= parameters * (1.0 + TOLERANCE),
        "choose active_parameters of at most parameters",
    ),
    Rule(
        "a micro-batch is a part of the batch",
        lambda global_batch_size, micro_batch_size: micro_batch_size <= global_batch_size,
        "choose a micro_batch_size of at most global_batch_size",
    ),
    Rule(
        "a run has a step",
        lambda tokens, global_batch_size, sequence_length: tokens >= global_batch_size * sequence_length,
        "choose more tokens, or a smaller global_batch_size",
    ),
    Rule(
        "training is a part of the wall-clock time",
        lambda training_s, wall_s: training_s <= wall_s * (1.0 + TOLERANCE),
        "choose a wall_s of at least training_s",
    ),
    Rule(
        "a node has a whole number of accelerators",
        lambda accelerators, nodes: (accelerators / nodes + TOLERANCE) % 1.0 <= 2.0 * TOLERANCE,
        "choose nodes that divide the accelerators",
    ),
)
"""Rules of a model and a run: given values satisfy them in every question."""
RULES: Final = (*GENERAL, *LAYOUT)
RULED: Final = frozenset(name for rule in LAYOUT for name in rule.arguments)
"""Every quantity that a rule of a layout depends on."""


def divides_layout(computed: Collection[str]) -> bool:
    """Return whether steps that compute these quantities divide a layout, so that the rules apply."""
    return any(name in computed for name in DIVIDED)


def applicable_rules(known: Collection[str], given: Collection[str] = ()) -> Iterator[Rule]:
    """Yield the rules whose arguments are known.

    Rules about a quotient of the layout do not apply when it is given itself, such as a mean number of micro-batches.
    """
    names = {name for name in known if not (name in DIVIDED and name in given)}
    return (rule for rule in RULES if names.issuperset(rule.arguments))


def rules_of(computed: Collection[str], given: Collection[str]) -> Iterator[Rule]:
    """Return the rules of the given values, and of computed ones where these divide a layout."""
    if divides_layout(computed):
        return applicable_rules({*computed, *given}, given)
    return (rule for rule in GENERAL if set(given).issuperset(rule.arguments))


def check_layout(values: Mapping[str, Any], given: Collection[str] = ()) -> None:
    """Raise a ScenarioError, with the rule, the values and a remedy, if a layout violates a rule."""
    check_rules(applicable_rules(values, given), values)


def check_rules(rules: Iterable[Rule], values: Mapping[str, Any]) -> None:
    """Raise a ScenarioError if values violate one of the rules."""
    for rule in rules:
        if not rule.holds(*[values[name] for name in rule.arguments]):
            shown = ", ".join(
                f"{name} = {value if isinstance(value := values[name], str) else format(value, 'g')}"
                for name in rule.arguments
            )
            raise ScenarioError(f"{shown} violates the rule that {rule.name}; {rule.remedy}")


def violated_rule(rules: Sequence[Rule], fixed: Mapping[str, Any] | None = None) -> Any:
    """Return a polars expression with the name of the first rule that a row violates, or null.

    ``fixed`` values are the same in all rows and have no column.
    """
    import polars as pl

    fixed = fixed or {}
    first = pl.lit(None, dtype=pl.String)
    for rule in reversed(rules):
        holds = rule.holds(*[fixed[name] if name in fixed else pl.col(name) for name in rule.arguments])
        first = pl.when(~holds if isinstance(holds, pl.Expr) else not holds).then(pl.lit(rule.name)).otherwise(first)
    return first
