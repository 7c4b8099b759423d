"""Published campaigns against their plans: days and dollars, and the pace of campaigns that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from factorykit.core.errors import MissingQuantity, ScenarioError
from factorykit.core.validation import frame
from factorykit.engine.evaluate import evaluate
from factorykit.engine.progress import progress
from factorykit.engine.providers.defaults import by_accelerator
from factorykit.formulas.compute import PACE_AT_1E24, PACE_FLOP, PACE_TREND
from factorykit.formulas.step.interval import NORMAL_95
from factorykit.model.economics.rent import PRICE
from factorykit.model.planning import uncertainty
from factorykit.model.planning.plan import plan
from factorykit.model.planning.published_runs import published_runs, recipe

NEEDED: Final = ("run", "tokens", "parameters", "accelerator", "accelerators", "sequence_length", "measured_days")
PACE: Final = "campaign_pace"
DRAWS: Final = 64
COVERAGE: Final = 0.9


def validate_plans(rows: pl.DataFrame | None = None) -> pl.DataFrame:
    """Plan published runs with what was known before they began, and compare with their days and dollars.

    Parameters
    ----------
    rows
        A frame with ``run``, ``tokens``, ``parameters``, ``accelerator``, ``accelerators``, ``sequence_length`` and
        ``measured_days``, and where known ``architecture``, ``precision``, ``batch_tokens``, ``software_year`` and
        ``measured_usd``. By default the published runs; the pace of each follows from the others alone.

    Returns
    -------
    polars.DataFrame
        One row a run, in the order given: ``run``, ``accelerator``, ``accelerators``, ``planned_days`` (of the best
        layout, at a pace of 1), ``wall_days`` with the 90 % interval ``wall_days_low`` to ``wall_days_high``,
        ``measured_days``, ``pace`` (measured over planned days), ``error`` (predicted over measured days, less one),
        ``inside`` (whether the interval holds the measured days), ``run_cost_usd`` (at today's listed price),
        ``measured_usd``, ``cost_error``, ``spread`` (standard deviation of the logarithm of the planned days) and
        ``reason`` (cause of a missing plan; null otherwise).

    Raises
    ------
    FactorykitError
        If ``rows`` lack a column, are empty, or have an invalid value.

    Examples
    --------
    >>> from factorykit.model.planning.published_runs import published_runs
    >>> import polars as pl
    >>> found = validate_plans(published_runs().filter(run="smollm3_3b"))
    >>> found.select("measured_days", pl.col("error").abs() < 0.5, "inside").row(0)
    (24.0, True, True)
    """
    listed = published_runs() if rows is None else frame("rows", rows, NEEDED)
    if listed.is_empty():
        raise ScenarioError("rows are empty; give at least one published run")
    planned = [_planned(row) for row in progress(listed.iter_rows(named=True), listed.height, "runs planned")]
    plans = pl.DataFrame(planned, infer_schema_length=None).with_columns(
        pace=pl.col("measured_days") / pl.col("planned_days")
    )
    others = [plans.slice(0, n).vstack(plans.slice(n + 1)) if rows is None else None for n in range(plans.height)]
    fitted = [
        (math.log(PACE_AT_1E24), PACE_TREND, _shipped_spread()) if rest is None else fit_pace(rest) for rest in others
    ]
    intercept, slope, width = (pl.Series([fit[part] for fit in fitted]) for part in range(3))
    middle = intercept + slope * (plans["training_flop"] / PACE_FLOP).log()
    half = NORMAL_95 * (width.pow(2) + plans["spread"].pow(2)).sqrt()
    ends = {"wall_days_low": (middle - half).exp(), "wall_days_high": (middle + half).exp()}
    days, cost = pl.col("wall_days"), pl.col("run_cost_usd")
    return (
        plans.with_columns(factor=middle.exp(), **ends)
        .with_columns(wall_days=pl.col("planned_days") * pl.col("factor"), run_cost_usd=cost * pl.col("factor"))
        .with_columns(pl.col(name) * pl.col("planned_days") for name in ends)
        .select(
            *("run", "accelerator", "accelerators", "planned_days", "wall_days", *ends, "measured_days", "pace"),
            (days / pl.col("measured_days") - 1.0).alias("error"),
            pl.col("measured_days").is_between("wall_days_low", "wall_days_high").alias("inside"),
            *("run_cost_usd", "measured_usd"),
            (cost / pl.col("measured_usd") - 1.0).alias("cost_error"),
            *("spread", "reason"),
        )
    )


def fit_pace(plans: pl.DataFrame) -> tuple[float, float, float]:
    """Return the line of the logarithm of the pace by that of the compute, and the standard deviation of the rest.

    The line is that of Theil and Sen, at ``PACE_FLOP``: the median slope between two runs, through the median. The
    standard deviation is the least with which nine tenths of the runs lie within the 90 % interval of their plan, the
    ``spread`` of their step time included.
    """
    runs = plans.select("pace", "training_flop", "spread").drop_nulls()
    x, y = ((runs[name] / unit).log() for name, unit in (("training_flop", PACE_FLOP), ("pace", 1.0)))
    pairs = pl.DataFrame({"x": x, "y": y}).lazy()
    slopes = pairs.join_where(pairs, pl.col("x") < pl.col("x_right")).select(
        (pl.col("y_right") - pl.col("y")) / (pl.col("x_right") - pl.col("x"))
    )
    slope = float(slopes.collect().to_series().median())  # type: ignore[arg-type]
    intercept = float((y - slope * x).median())  # type: ignore[arg-type]
    needed = ((y - slope * x - intercept) / NORMAL_95).pow(2) - runs["spread"].pow(2)
    return intercept, slope, math.sqrt(max(needed.quantile(COVERAGE, "linear") or 0.0, 0.0))


def _shipped_spread() -> float:
    """Return the standard deviation of the logarithm of the pace that plans are drawn with."""
    drawn = uncertainty.distributions({})["campaign_factor"]
    low, high = (math.log(drawn.ppf(share)) for share in (0.05, 0.95))
    return (high - low) / (2.0 * NORMAL_95)


def _planned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan of a run at a pace of 1."""
    known = {name: row.get(name) for name in ("run", "accelerator", "accelerators", "measured_days", "measured_usd")}
    listed = by_accelerator(PRICE)
    is_priced = listed is not None and listed.has({"accelerator": row["accelerator"]})
    try:
        planned = plan(
            row.get("architecture") or row["parameters"],
            tokens=row["tokens"],
            chips=row["accelerator"],
            counts=row["accelerators"],
            objective="wall_days",
            draws=DRAWS,
            **{PACE: 1.0},
            **({} if is_priced else {PRICE: 1.0}),
            **recipe(row),
        )
    except (MissingQuantity, ScenarioError) as error:
        return {**known, "reason": str(error)}
    best = planned.best.row(0, named=True)
    return {
        **known,
        **evaluate(planned.scenario, "training_flop"),
        "planned_days": best["wall_days"],
        "run_cost_usd": best["run_cost_usd"] if is_priced else None,
        "spread": math.log(best["wall_days_high"] / best["wall_days_low"]) / (2.0 * NORMAL_95),
        "reason": None,
    }
