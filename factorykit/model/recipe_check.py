"""A planned run held against the recipe that frontier runs are said to follow."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit import datasets
from factorykit.errors import MissingQuantity, UnknownName, unknown
from factorykit.model.evaluate import checked, evaluate
from factorykit.quantities import quantity

if TYPE_CHECKING:
    import polars as pl

PRACTICES: Final = {
    "overlap": ("recipe_4", "collectives overlap with compute"),
    "async_checkpoints": ("recipe_5", "checkpoints are written while training goes on"),
    "node_fencing": ("recipe_5", "a faulty node is fenced off and the run restarts by itself"),
    "sdc_checks": ("p_sdc", "health checks and gradient sanity checks for silent data corruption"),
    "gradient_norms": ("tel_gradnorm", "gradient norm of every layer is recorded"),
    "activation_norms": ("tel_actnorm", "activation norms are recorded"),
    "loss_spikes": ("tel_loss", "loss spikes raise an alarm"),
    "node_cohorts": ("tel_cohort", "every node's throughput is compared with the others"),
}
"""Steps without a number: the item of the ``recipes`` table that asks for it, and what it means."""

INTERVAL_S: Final = (900.0, 1800.0)
"""Recipe step 5: checkpoints every 15 to 30 minutes. [s]"""
NEAR_OPTIMUM: Final = 2.0
"""Half to twice the best interval costs about two points of goodput. [1]"""
MOST_STAGES: Final = 16.0
"""Pitfall: no plain pipeline above about 16 stages. [1]"""
LEAST_MFU: Final = 0.4
"""Recipe step 6. [1]"""


def check_recipe(plan: Mapping[str, Any], practices: Collection[str] = ()) -> pl.DataFrame:
    """Say which steps of the frontier recipe a planned run meets, misses or breaks.

    Parameters
    ----------
    plan
        Quantities of the run, as in :func:`factorykit.evaluate`: ``accelerators``, ``tensor_parallel``,
        ``pipeline_parallel``, ``context_parallel``, ``data_parallel``, ``zero_stage``, ``recompute``, ``schedule``,
        ``mfu``, ``checkpoint_interval_s`` and what the best interval needs.
    practices
        Steps without a number that are in place, from ``PRACTICES``.

    Returns
    -------
    DataFrame
        One row per step: ``item`` of the recipes table, ``step``, ``verdict`` (met, missed, broken, not said),
        ``found``, ``wanted``, ``locator`` in the document. Broken means that the plan says the opposite; missed that a
        practice is not named; not said that a quantity is not given.

    Raises
    ------
    UnknownName, FactorykitError
        For an unknown practice, or a plan that is refused.

    Examples
    --------
    >>> check_recipe({"mfu": 0.3}).filter(item="recipe_6")["verdict"].item()
    'broken'
    """
    import polars as pl

    values, rivals = checked(plan)
    for name in practices:
        if name not in PRACTICES:
            raise UnknownName(unknown("practice", name, PRACTICES))
    rows = [
        _parallelism(values),
        _memory(values),
        _interval(values),
        _best_interval(values, rivals),
        _stages(values),
        _mfu(values),
        *(
            (item, name.replace("_", " "), "met" if name in practices else "missed", "", wanted)
            for name, (item, wanted) in PRACTICES.items()
        ),
    ]
    names = ("item", "step", "verdict", "found", "wanted")
    said = datasets.table("recipes").select("item", "source", "locator").collect()
    return pl.DataFrame(rows, names, orient="row").join(said, on="item", how="left", maintain_order="left")


Row = tuple[str, str, str, str, str]


def _row(item: str, step: str, wanted: str, found: str | None, good: bool) -> Row:
    return (item, step, "not said" if found is None else "met" if good else "broken", found or "", wanted)


def _parallelism(values: Mapping[str, Any]) -> Row:
    ways = [
        name for name in ("tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel") if name in values
    ]
    wanted = "the ways of splitting divide the accelerators, or multiply to them"
    if "accelerators" not in values or not ways:
        return _row("recipe_2", "parallelism", wanted, None, False)
    product = math.prod(float(values[name]) for name in ways)
    left = float(values["accelerators"]) / product
    good = left == 1.0 if "data_parallel" in ways else left == int(left) and left >= 1.0
    return _row(
        "recipe_2", "parallelism", wanted, f"{values['accelerators']:g} accelerators over {product:g} ways", good
    )


def _memory(values: Mapping[str, Any]) -> Row:
    wanted = "sharded parameters, gradients and optimizer (ZeRO 3) and recomputed activations"
    stage, recompute = values.get("zero_stage"), values.get("recompute")
    if stage is None and recompute is None:
        return _row("recipe_3", "memory", wanted, None, False)
    good = (stage is None or stage == 3.0) and recompute != "none"
    shown = [f"ZeRO {stage:g}"] if stage is not None else []
    return _row(
        "recipe_3", "memory", wanted, ", ".join([*shown, *([f"recompute {recompute}"] if recompute else [])]), good
    )


def _interval(values: Mapping[str, Any]) -> Row:
    interval = values.get("checkpoint_interval_s")
    found = None if interval is None else quantity("checkpoint_interval_s").text(interval)
    good = interval is not None and INTERVAL_S[0] <= interval <= INTERVAL_S[1]
    return _row("recipe_5", "checkpoint interval", "15 to 30 min", found, good)


def _best_interval(values: Mapping[str, Any], rivals: Mapping[str, str]) -> Row:
    step, wanted = "checkpoint interval against the optimum", "within half and twice the interval that loses least"
    apart = ("checkpoint_interval_optimal_s", "data_parallel")
    given = {name: value for name, value in values.items() if name not in apart}
    try:
        best = evaluate(given, "checkpoint_interval_optimal_s", using=rivals)["checkpoint_interval_optimal_s"]
    except MissingQuantity:
        return _row("recipe_5", step, wanted, None, False)
    interval = values.get("checkpoint_interval_s")
    if interval is None:
        return _row("recipe_5", step, wanted, None, False)
    shown = quantity("checkpoint_interval_s").text
    good = 1.0 / NEAR_OPTIMUM <= interval / best <= NEAR_OPTIMUM
    return _row("recipe_5", step, wanted, f"{shown(interval)}, best {shown(best)}", good)


def _stages(values: Mapping[str, Any]) -> Row:
    wanted = f"an interleaved or zero-bubble schedule above {MOST_STAGES:g} stages"
    stages, schedule = values.get("pipeline_parallel"), values.get("schedule")
    if stages is None:
        return _row("p_pp", "pipeline bubble", wanted, None, False)
    good = stages <= MOST_STAGES or schedule in ("interleaved", "zb1p", "dualpipe")
    return _row("p_pp", "pipeline bubble", wanted, f"{stages:g} stages, {schedule or 'schedule not said'}", good)


def _mfu(values: Mapping[str, Any]) -> Row:
    mfu = values.get("mfu")
    found = None if mfu is None else quantity("mfu").text(mfu)
    return _row("recipe_6", "MFU", "40 % or more", found, mfu is not None and mfu >= LEAST_MFU)
