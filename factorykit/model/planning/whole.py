"""From a layout to a whole plan: time, failures, checkpoints, spares, power and money of every row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from factorykit.engine.chain import OF_A_LAYOUT, Chain, ask
from factorykit.engine.run import fold, widened

if TYPE_CHECKING:
    import polars as pl

OPTIMA: Final = MappingProxyType(
    {"checkpoint_interval_s": "checkpoint_interval_optimal_s", "spare_nodes": "spare_nodes_enough"}
)
"""What a plan chooses by a formula, unless somebody gives it."""
TIERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "one": MappingProxyType({}),
        "two": MappingProxyType(
            {
                "goodput": "two_level_goodput",
                "checkpoint_interval_s": "two_level_interval_s",
                "segments_per_pattern": "segments_per_pattern_first_order",
                "two_level_pattern_s": "two_level_pattern_exposed_s",
                "level_two_write_s": "checkpoint_write_s",
                "level_two_restart_s": "level_two_restart_same_s",
            }
        ),
    }
)
"""Which models count the tiers of checkpoints: storage alone, or near ones (in nodes or peers) before it."""
OWNED: Final = MappingProxyType({"run_cost_usd": "run_cost_owned_usd"})
RESULTS: Final = (
    "wall_days",
    "run_cost_usd",
    "training_energy_kwh",
    "training_carbon_kg",
    "goodput",
    "step_s",
    "predicted_mfu",
    "model_flop_per_s_per_accelerator",
    "failures_per_day",
)
"""What is told of every plan with an interval."""
FOUND: Final = (
    "data_parallel",
    "micro_batches",
    "checkpoint_interval_s",
    "spare_nodes",
    *RESULTS,
    "memory_peak_bytes",
    "accelerator_memory_bytes",
    "facility_power_w",
)
"""What is told of every plan beside its choices."""
OF_A_WAY: Final = MappingProxyType(
    {
        "rent": ("rental_usd_per_accelerator_h",),
        "own": ("ownership_usd_per_accelerator_h", "capital_usd", "network_capital_usd"),
    }
)
"""What is told of plans on rented or on owned machines."""


def rivals_of(way: str, given: Mapping[str, Any], using: Mapping[str, str]) -> dict[str, str]:
    """Return which model stands for a quantity in the plans of a way to acquire machines."""
    usual = {**OF_A_LAYOUT, **OPTIMA, **(OWNED if way == "own" else {})}
    return {name: rival for name, rival in usual.items() if name not in given} | dict(using)


def outputs(way: str) -> tuple[str, ...]:
    """Return what is told of a plan of a way to acquire machines."""
    return (*FOUND, *OF_A_WAY[way])


def chain_of(values: Mapping[str, Any], varied: tuple[str, ...], way: str, using: Mapping[str, str]) -> Chain:
    """Return the chain from the choices to what is told of a plan."""
    rivals = rivals_of(way, {**values, **dict.fromkeys(varied)}, using)
    wanted = (*outputs(way), "step_spread")
    return ask({*values, *varied}, wanted, rivals, values, assume=True)


def complete(rows: pl.DataFrame, fixed: Mapping[str, Any], way: str, using: Mapping[str, str]) -> pl.DataFrame:
    """Return the rows wider by what is told of a plan, and ``step_spread``; rows that never end are left out."""
    import polars as pl

    chain = chain_of(fixed, tuple(rows.columns), way, using)
    known, left = fold(chain.steps, fixed)
    wanted = [name for name in chain.outputs if name not in rows.columns]
    told = [pl.lit(known[name]).alias(name) if name in known else pl.col(name) for name in wanted]
    return widened(rows.lazy(), left).select(*rows.columns, *told).filter(pl.col("wall_days") < math.inf).collect()
