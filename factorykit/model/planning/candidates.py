"""Candidate plans: numbers of accelerators and batches, and the results of every layout."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.validation import as_list
from factorykit.core.vocabulary import quantity
from factorykit.engine.question import Chain, Question
from factorykit.engine.resolve import layout_models

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


def default_counts(fixed: Mapping[str, Any]) -> list[float]:
    """Return the default numbers of accelerators.

    They follow from the model, the tokens and the chip alone and never from a limit, so that plans for a longer
    deadline are chosen from the same candidates.
    """
    low, work_s, domain = _least(fixed)
    low = min(low, MAX_COUNT)
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
