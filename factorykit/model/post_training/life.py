"""One life of a model: pre-training, post-training and serving one after the other on one fleet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.vocabulary import quantity
from factorykit.model.planning.summary import Plan
from factorykit.model.post_training.plan import PostTrainingPlan
from factorykit.model.serving.plan import ServingPlan

if TYPE_CHECKING:
    import polars as pl

SUMMED = ("days", "usd", "mwh", "carbon_t")


def life(
    *stages: Plan | PostTrainingPlan | ServingPlan,
    load: float | str | None = None,
    days: float | str = 365.0,
    fleet: float | str | None = None,
    carbon_kg_per_kwh: float | str | None = None,
) -> pl.DataFrame:
    """Add up the life of a model: pre-training, post-training and serving, in turn on one fleet.

    Parameters
    ----------
    *stages
        Results of :func:`factorykit.plan`, :func:`factorykit.post_train` and :func:`factorykit.serve`, by time.
    load
        Requests per second of the stages that serve, as given to :func:`factorykit.serve`.
    days
        Days of each stage that serves.
    fleet
        Accelerators of the fleet; by default as many as the largest stage uses.
    carbon_kg_per_kwh
        Carbon of the electricity; that of the tables by default.

    Returns
    -------
    polars.DataFrame
        One row a stage, and ``total``: ``stage``, ``accelerators``, ``idle_accelerators`` of the fleet, ``start_day``,
        ``days``, ``usd``, ``mwh``, ``carbon_t`` [t] (each with 90 % interval), ``served_tokens`` (output) and
        ``usd_per_million_tokens``: of serving alone, and in the total with training.

    Raises
    ------
    ScenarioError
        If there is no stage or something else is one, a stage needs more than the fleet, or a load is missing.

    Notes
    -----
    Only used accelerators cost; energy of serving is that of busy ones. Errors of stages are independent: squares of
    their half intervals add up. Serving has no interval of time or money, since its accelerators are chosen.

    Examples
    --------
    >>> import factorykit as fk
    >>> tuned = fk.post_train("llama3_8b", 64, samples=1024)
    >>> whole = life(tuned, fk.serve("llama3_8b", "h100_sxm", load=20.0), load=20.0)
    >>> whole["stage"].to_list()
    ['post-training', 'serving', 'total']
    """
    import polars as pl

    carbon = quantity("carbon_kg_per_kwh")
    intensity = float(carbon.default or 0.0) if carbon_kg_per_kwh is None else float(carbon.check(carbon_kg_per_kwh))
    served = float(quantity("wall_days").check(days))
    rate = None if load is None else float(quantity("requests_per_s").check(load))
    rows = [_row(stage, rate, served) for stage in stages]
    if not rows:
        raise ScenarioError("life needs at least one stage, a result of plan, post_train or serve")
    most = max(row["accelerators"] for row in rows)
    size = most if fleet is None else float(quantity("accelerators").check(fleet))
    if size < most:
        raise ScenarioError(f"fleet = {size:,.0f} is too small: a stage uses {most:,.0f} accelerators")
    start = 0.0
    for row in rows:
        row |= {"start_day": start, "idle_accelerators": size - row["accelerators"]}
        row |= {f"carbon_t{end}": row[f"mwh{end}"] * intensity for end in ("", "_low", "_high")}
        start += row["days"]
    total: dict[str, Any] = {"stage": "total", "accelerators": most, "start_day": 0.0}
    total["served_tokens"] = sum(row["served_tokens"] for row in rows)
    for name in SUMMED:
        middle = total[name] = sum(row[name] for row in rows)
        total[f"{name}_low"] = middle - math.hypot(*(row[name] - row[f"{name}_low"] for row in rows))
        total[f"{name}_high"] = middle + math.hypot(*(row[f"{name}_high"] - row[name] for row in rows))
    bounds = [f"{name}{end}" for name in SUMMED for end in ("", "_low", "_high")]
    columns = ("stage", "accelerators", "idle_accelerators", "start_day", *bounds, "served_tokens")
    tokens = pl.when(pl.col("served_tokens") > 0.0).then("served_tokens")
    frame = pl.DataFrame([*rows, total], infer_schema_length=None).select(columns)
    return frame.with_columns((pl.col("usd") / tokens * 1e6).alias("usd_per_million_tokens"))


def _row(stage: Any, load: float | None, days: float) -> dict[str, Any]:
    """Return accelerators, days, money, energy and served tokens of a stage."""
    if isinstance(stage, Plan):
        best = stage.best.row(0, named=True)
        renamed = {"days": "wall_days", "usd": "run_cost_usd", "mwh": "training_energy_kwh"}
        row = {
            f"{name}{end}": best[f"{source}{end}"] * (1e-3 if name == "mwh" else 1.0)
            for name, source in renamed.items()
            for end in ("", "_low", "_high")
        }
        return {"stage": "pre-training", "accelerators": best["accelerators"], **row, "served_tokens": 0.0}
    best = stage.best if isinstance(stage, PostTrainingPlan | ServingPlan) else {}
    if isinstance(stage, PostTrainingPlan):
        row = {name: best[name] for name in best if name.startswith(("days", "usd", "mwh"))}
        energy = {f"mwh{end}": row["mwh"] * row[f"days{end}"] / row["days"] for end in ("_low", "_high")}
        return {"stage": "post-training", "accelerators": best["accelerators"], **row, **energy, "served_tokens": 0.0}
    if not isinstance(stage, ServingPlan):
        raise ScenarioError(f"a stage must be a result of plan, post_train or serve, got {type(stage).__name__}")
    if load is None:
        raise ScenarioError("load is missing: give the requests per second that the plan of serving is for")
    megawatts = best["accelerators"] * best["facility_power_per_accelerator_w"] / 1e6
    values = {"days": days, "usd": days * 24.0 * best["cost_usd_per_h"], "mwh": days * 24.0 * megawatts}
    row = {f"{name}{end}": value for name, value in values.items() for end in ("", "_low", "_high")}
    tokens = load * best["output_tokens"] * days * SECONDS_PER_DAY
    return {"stage": "serving", "accelerators": best["accelerators"], **row, "served_tokens": tokens}
