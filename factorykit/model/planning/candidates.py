"""Candidate plans: the model, numbers of accelerators and batches, and the results of every layout."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName, short_repr
from factorykit.core.validation import as_list, mapping
from factorykit.core.vocabulary import is_number, quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.question import Chain, Question
from factorykit.engine.resolve import layout_models
from factorykit.model.scenario.architectures import architecture
from factorykit.model.scenario.scenario import Scenario

COUNT: Final = r"([\d.]+(?:e\d+)?)\s*(k|m(?:illion)?|b(?:n|illion)?|t(?:rillion)?|)"
SIZE: Final = re.compile(
    rf"\s*{COUNT}\s*(?:parameters?)?\s*(?:(dense)|(mixture(?: of experts)?|moe)|a\s*{COUNT})?\s*", re.IGNORECASE
)
"""A size as text: "70B", "70 billion", "70e9", "1T MoE", or "1T A32B" with the parameters that a token uses."""
FAMILY: Final = ("llama3_2_1b", "llama3_2_3b", "llama3_8b", "llama3_70b", "llama3_405b")
"""Dense models of one family, between which the depth of a size is interpolated."""
MAX_PARAMETERS: Final = 1e18
HEAD_SIZE: Final = 128.0
KV_HEADS: Final = 8.0
FFN_OVER_HIDDEN: Final = 3.5
"""Width of the feed-forward block over the hidden size in Llama 3 8B and 70B."""
EXPERTS_STEP: Final = 8
"""Step of the number of experts, so that they divide over accelerators."""
BYTES_PER_PARAMETER: Final = 16.0
"""Weights, gradients and optimizer of a mixed-precision run; the least count has memory for these."""
TYPICAL_MFU: Final = 0.4
MAX_RUN_S: Final = 1000.0 * SECONDS_PER_DAY
MIN_RUN_S: Final = 3600.0
"""Range of run times at typical utilization, from which the default counts follow. [s]"""
MAX_COUNT: Final = 131072.0
COUNT_STEPS: Final = (4.0, 5.0, 6.0, 7.0)
"""Counts between two powers of two, in quarters of the lower."""
ODD_FACTORS: Final = (1, 3, 5, 7, 9, 11, 13, 15, 17, 21, 25, 27, 45, 75, 81, 125, 375, 625, 1875, 3125)
"""Odd factors of the numbers of accelerators that a plan uses: those of pipelines and of round numbers, at most 7 %
apart."""
OPTIMA: Final = MappingProxyType(
    {"checkpoint_interval_s": "checkpoint_interval_optimal_s", "spare_nodes": "spare_nodes_enough"}
)
"""Quantities that a plan sets to their optimum unless they are given."""
CAMPAIGN: Final = MappingProxyType({"wall_s": "wall_campaign_s", "campaign_pace": "campaign_pace_typical"})
"""Models of whole campaigns, which are slower than their best layout."""
OWNED: Final = MappingProxyType({"run_cost_usd": "run_cost_owned_usd"})
RESULTS: Final = (
    "wall_days",
    "run_cost_usd",
    "training_energy_kwh",
    "training_carbon_kg",
    "goodput",
    "campaign_pace",
    "step_s",
    "predicted_mfu",
    "model_flop_per_s_per_accelerator",
    "failures_per_day",
)
"""Results of a plan that have an interval."""
COMMON_RESULTS: Final = (
    "data_parallel",
    "micro_batches",
    "checkpoint_interval_s",
    "spare_nodes",
    *RESULTS,
    "memory_peak_bytes",
    "accelerator_memory_bytes",
    "facility_power_w",
)
"""Results of every plan."""
RESULTS_OF_WAY: Final = MappingProxyType(
    {
        "rent": ("rental_usd_per_accelerator_h",),
        "own": ("ownership_usd_per_accelerator_h", "capital_usd", "network_capital_usd"),
    }
)
"""Further results of plans on rented and on owned machines."""


def model_of(model: Any) -> Scenario:
    """Return a model as a scenario with sources.

    Parameters
    ----------
    model
        Name of a known model, path of a ``config.json``, a mapping of quantities, or a size: ``70e9``, ``"70B"``,
        ``"1T MoE"``, ``"1T A32B"`` with 32 billion active parameters.

    Raises
    ------
    UnknownName, ScenarioError

    Examples
    --------
    >>> model_of("llama3_70b").layers
    80.0
    >>> [round(evaluate(model_of(size), "parameters")["parameters"] / 1e9, 1) for size in ("30B dense", "30 billion")]
    [30.0, 30.0]
    """
    if isinstance(model, Mapping):
        sources = getattr(model, "sources", {})
        return Scenario.sourced(getattr(model, "label", ""), mapping("model", model), sources)
    if is_number(model):
        return dense(float(quantity("parameters").check(model)))
    if not isinstance(model, (str, Path)):
        raise ScenarioError(
            f"model must be a name, a config.json, a mapping of quantities or a size such as "
            f"'70B', got {short_repr(model)}"
        )
    if sized := SIZE.fullmatch(str(model)):
        number = _parameters(sized[1], sized[2])
        if sized[5]:
            return mixture(number, _parameters(sized[5], sized[6]))
        return mixture(number) if sized[4] else dense(number)
    if str(model).endswith(".json"):
        from factorykit.model.performance.hf_config import read_hf_config

        return read_hf_config(model)
    try:
        return architecture(str(model))
    except UnknownName as error:
        raise UnknownName(f"{error}; or give a config.json, or a size such as '70B' or '1T mixture'") from None


def _parameters(number: str, scale: str) -> float:
    return float(quantity("parameters").check(number + scale[:1].upper().replace("K", "k")))


def dense(parameters: float) -> Scenario:
    """Return the architecture of a dense model: depth interpolated in Llama 3, widths that give the size.

    >>> dense(70.6e9).layers, dense(70.6e9).hidden_size
    (80.0, 8192.0)
    """
    if parameters > MAX_PARAMETERS:
        raise ScenarioError(f"parameters = {parameters:g} are more than {MAX_PARAMETERS:g}")
    known = dict(architecture(FAMILY[-1]))
    layers = float(max(round(_interpolated(parameters)), 1))
    vocabulary = float(known["vocabulary_size"])
    squares = layers * (2.0 + 3.0 * FFN_OVER_HIDDEN)
    lines = 2.0 * vocabulary + layers * 2.0 * KV_HEADS * HEAD_SIZE
    hidden = (math.sqrt(lines * lines + 4.0 * squares * parameters) - lines) / (2.0 * squares)
    unit = max(min(2.0 ** math.floor(math.log2(hidden)) / 4.0, KV_HEADS * HEAD_SIZE), HEAD_SIZE)
    hidden = max(round(hidden / unit), 1) * unit
    heads = hidden / HEAD_SIZE
    kept = float(math.gcd(int(heads), int(KV_HEADS)))
    per_layer = 2.0 * hidden * hidden + 2.0 * hidden * kept * HEAD_SIZE + 2.0 * hidden
    rest = (parameters - 2.0 * vocabulary * hidden - hidden) / layers - per_layer
    ffn = round(rest / (3.0 * hidden) / HEAD_SIZE) * HEAD_SIZE
    if ffn <= 0:
        raise ScenarioError(
            f"parameters = {parameters:g}: no layers are possible with a vocabulary of {vocabulary:g}; give more"
        )
    shape = known | {
        "layers": layers,
        "hidden_size": hidden,
        "ffn_size": ffn,
        "attention_heads": heads,
        "kv_heads": kept,
        "head_size": HEAD_SIZE,
        "tied_embeddings": 0.0,
    }
    source = "chosen: depth by interpolation between the sizes of Llama 3, widths that fill the size"
    return Scenario.sourced(f"{_size(parameters)} dense", shape, dict.fromkeys(shape, source))


def mixture(parameters: float, active: float | None = None) -> Scenario:
    """Return a mixture of experts: the known one nearest in size, with other numbers of experts and experts per token.

    >>> shape = mixture(1e12)
    >>> shape.experts, round(evaluate(shape, "parameters")["parameters"] / 1e12, 2)
    (376.0, 1.01)
    >>> mixture(1e12, 20e9).experts_per_token
    3.0
    """
    sizes = mixtures()
    nearest = min(sizes, key=lambda name: abs(math.log(sizes[name] / parameters)))
    shape = dict(architecture(nearest))
    before, fewer = float(shape["experts"]), float(shape["experts"]) - 1.0
    expert_parameters = sizes[nearest] - evaluate(shape | {"experts": fewer}, "parameters")["parameters"]
    wanted = before + (parameters - sizes[nearest]) / expert_parameters
    shape["experts"] = max(round(wanted / EXPERTS_STEP), 1) * float(EXPERTS_STEP)
    label = f"{_size(parameters)} mixture"
    if active is not None:
        more = (active - evaluate(shape, "active_parameters")["active_parameters"]) / expert_parameters
        visited = max(round(float(shape["experts_per_token"]) + more), 1)
        shape["experts_per_token"] = min(float(visited), float(shape["experts"]))
        label = f"{_size(parameters)} A{_size(active)} mixture"
    source = f"chosen: shape of {nearest}, with as many experts as fill the size"
    return Scenario.sourced(label, shape, dict.fromkeys(shape, source))


def _size(parameters: float) -> str:
    """Return a number of parameters as sizes of models are written: 70B, 1.2T."""
    return f"{parameters / 1e12:.4g}T" if parameters >= 1e12 else f"{parameters / 1e9:.4g}B"


@cache
def family() -> tuple[tuple[float, float], ...]:
    """Return the size and depth of every model of the family."""
    shapes = [architecture(name) for name in FAMILY]
    return tuple((evaluate(shape, "parameters")["parameters"], float(shape["layers"])) for shape in shapes)


def _interpolated(parameters: float) -> float:
    """Return the depth at a size, linear on logarithmic axes."""
    known = family()
    above = next((i for i, (size, _) in enumerate(known) if size >= parameters), len(known) - 1)
    (size, depth), (next_size, next_depth) = known[max(above, 1) - 1], known[max(above, 1)]
    slope = math.log(next_depth / depth) / math.log(next_size / size)
    return depth * (parameters / size) ** slope


@cache
def mixtures() -> Mapping[str, float]:
    """Return the size of every known mixture whose step time is modelled."""
    rows = table("architectures").filter(pl.col("experts") > 1.0).collect()
    sizes = {}
    for name in rows["architecture"]:
        shape = architecture(name)
        try:
            sizes[name] = evaluate(shape, "parameters")["parameters"]
        except (MissingQuantity, ScenarioError):
            continue
    return {name: size for name, size in sizes.items() if is_plain(architecture(name))}


def is_plain(shape: Scenario) -> bool:
    """Return whether every layer of a model attends to all tokens or to a window."""
    odd = ("linear_attention_layers", "index_heads", "gated_attention")
    return (
        all(shape.get(name, 0.0) == 0.0 for name in odd) and shape.get("attention_layers", shape.layers) == shape.layers
    )


def default_counts(fixed: Mapping[str, Any]) -> list[float]:
    """Return the default numbers of accelerators.

    They follow from the model, the tokens and the chip alone and never from a limit, so that plans for a longer
    deadline are chosen from the same candidates.
    """
    low, work_s, domain = _least(fixed)
    high = min(max(work_s / MIN_RUN_S, 16.0 * low), MAX_COUNT)
    powers = range(math.floor(math.log2(low)) - 3, math.ceil(math.log2(high)) + 1)
    counts = {step * 2.0**power for power in powers for step in COUNT_STEPS}
    if domain > 8.0 and math.log2(domain) % 1.0:
        counts |= {domain * 2.0**power for power in range(11)}
    counts.update(_multiples(_batch_factors(fixed), high))
    return sorted(n for n in counts if low <= n <= high and n % 1.0 == 0.0 and (n <= 8.0 or n % 8.0 == 0.0))


def _least(fixed: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the least number of accelerators, the time of the run on one [s], and the number in a fast fabric."""
    needed = ("training_flop", "parameters", "peak_flop_per_s", "accelerator_memory_bytes", "scale_up_domain")
    computed = Question(fixed, outputs=needed, assume=True).resolve().run()
    work_s = computed["training_flop"] / (computed["peak_flop_per_s"] * TYPICAL_MFU)
    holding = BYTES_PER_PARAMETER * computed["parameters"] / computed["accelerator_memory_bytes"]
    return max(holding, work_s / MAX_RUN_S, 1.0), work_s, computed["scale_up_domain"]


def read_counts(counts: Any) -> list[float]:
    """Return validated numbers of accelerators."""
    row = quantity("accelerators")
    listed = [counts] if isinstance(counts, str) or not isinstance(counts, Iterable) else as_list("counts", counts)
    read = [float(row.check(count)) for count in listed]
    for number in read:
        if number % 1.0:
            raise ScenarioError(f"accelerators = {number!r} is not whole")
    if not read:
        raise ScenarioError("counts are empty; give at least one number of accelerators")
    return sorted(set(read))


def usable_counts(available: float, fixed: Mapping[str, Any], *, exact: bool = False) -> list[float]:
    """Return the counts that a plan may use of the available accelerators, the largest first.

    A given batch divides over the replicas, so that counts with its odd factors are useful, too; with ``exact`` also
    the available number, as a given part of the layout may divide it alone.

    >>> usable_counts(100_000.0, {})[:3]
    [100000.0, 98304.0, 96000.0]
    >>> usable_counts(700.0, {"global_batch_size": 680.0})[:3]
    [680.0, 672.0, 648.0]
    """
    multiples = _multiples({*ODD_FACTORS, *_batch_factors(fixed)}, available)
    counts = {n for n in multiples if n <= available and (n <= 8.0 or n % 8.0 == 0.0)}
    return sorted(counts | ({available} if exact else set()), reverse=True)


def _batch_factors(fixed: Mapping[str, Any]) -> list[int]:
    """Return the odd numbers that divide a given batch, one without it."""
    batch = int(fixed.get("global_batch_size", 1.0))
    pairs = ((n, batch // n) for n in range(1, math.isqrt(batch) + 1) if batch % n == 0)
    return sorted({odd for pair in pairs for odd in pair if odd % 2 and odd <= MAX_COUNT})


def _multiples(factors: Iterable[int], most: float) -> set[float]:
    """Return the factors times powers of two, up to about a number."""
    powers = range(math.floor(math.log2(most)) + 1)
    return {factor * 2.0**power for factor in factors for power in powers}


def candidate_counts(available: Iterable[float], fixed: Mapping[str, Any], *, exact: bool) -> list[float]:
    """Return all counts that plans may use of any of the available numbers, from the least of the default counts on.

    More available accelerators add candidates and take none away.
    """
    low = _least(fixed)[0]
    return sorted(
        {n for most in available for n in usable_counts(most, fixed, exact=exact) if n >= min(low, most / 2.0)}
    )


def with_batches(counts: Iterable[float], fixed: Mapping[str, Any], tokens_per_step: float) -> pl.DataFrame:
    """Return one row per count, with a batch near ``tokens_per_step`` that divides over the accelerators.

    >>> with_batches([1024.0, 1536.0], {"sequence_length": 8192.0}, 2.0**24).rows()
    [(1024.0, 2048.0), (1536.0, 1536.0)]
    """
    listed = list(counts)
    frame = {"accelerators": listed}
    if "global_batch_size" not in fixed:
        if not math.isfinite(tokens_per_step):
            raise ScenarioError("tokens per step are infinite; give global_batch_size")
        sequences = max(tokens_per_step / fixed["sequence_length"], 1.0)
        frame["global_batch_size"] = [nearest_batch(sequences, number) for number in listed]
    return pl.DataFrame(frame, dict.fromkeys(frame, pl.Float64))


def nearest_batch(sequences: float, accelerators: float) -> float:
    """Return the batch nearest to a number of sequences that divides over the accelerators.

    >>> nearest_batch(1000.0, 96.0)
    768.0
    """
    odd = int(accelerators)
    while odd % 2 == 0:
        odd //= 2
    return odd * 2.0 ** max(round(math.log2(max(sequences / odd, 1.0))), 0)


def alternative_models(way: str, given: Mapping[str, Any], using: Mapping[str, str]) -> dict[str, str]:
    """Return the alternative models of plans on rented or owned machines."""
    standard = {**layout_models(), **OPTIMA, **CAMPAIGN, **(OWNED if way == "own" else {})}
    return {name: model for name, model in standard.items() if name not in given} | dict(using)


def outputs(way: str) -> tuple[str, ...]:
    """Return the results of plans on rented or owned machines."""
    return (*COMMON_RESULTS, *RESULTS_OF_WAY[way])


def chain_of(values: Mapping[str, Any], varied: tuple[str, ...], way: str, using: Mapping[str, str]) -> Chain:
    """Return the chain from the choices to the results of a plan."""
    models = alternative_models(way, {**values, **dict.fromkeys(varied)}, using)
    wanted = (*outputs(way), "step_spread")
    return Question(values, models, wanted, assume=True).over(varied).resolve()


def complete(rows: pl.DataFrame, fixed: Mapping[str, Any], way: str, using: Mapping[str, str]) -> pl.DataFrame:
    """Return the rows with the results of a plan and ``step_spread``; runs that never end are dropped."""
    chain = chain_of(fixed, tuple(rows.columns), way, using)
    wanted = [name for name in (*chain.outputs, "global_batch_size") if name not in rows.columns]
    results = [pl.lit(chain.known[name]).alias(name) if name in chain.known else pl.col(name) for name in wanted]
    return chain.extend(rows.lazy()).select(*rows.columns, *results).filter(pl.col("wall_days") < math.inf).collect()
