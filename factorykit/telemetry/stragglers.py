"""Stragglers: nodes that are slower than the others in the same training steps."""

from __future__ import annotations

from typing import Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError
from factorykit.core.extras import need
from factorykit.core.validation import probability
from factorykit.formulas.cost import rental_cost_usd
from factorykit.telemetry.attempts import started_attempts
from factorykit.telemetry.exposure import window
from factorykit.telemetry.goodput import checked_price
from factorykit.telemetry.tidy import Log

MIN_NODES_PER_STEP: Final = 3
"""Nodes with a time for the same step from which their median is its usual time."""


def stragglers(
    log: Log, *, rental_usd_per_accelerator_h: float | str | None = None, confidence: float = 0.95
) -> pl.DataFrame:
    r"""Return the slowdown of each node relative to its cohort, and its cost.

    .. math:: x_i = \operatorname{median}_k \frac{t_{ik}}{\operatorname{median}_j t_{jk}}, \quad
        w_i = \frac{\sum_{k: t_{ik} = \max} (t_{ik} - \max_{j \ne i} t_{jk})}{\sum_k \max_j t_{jk}}

    Parameters
    ----------
    log
        A log from :func:`factorykit.read_log` with step times by node: each node's own time, without waiting for the
        others.
    rental_usd_per_accelerator_h
        Price of an accelerator-hour; optional.
    confidence
        Confidence level of the limits, in (0, 1).

    Returns
    -------
    DataFrame
        One row per node, most expensive first: ``node``; ``steps`` [1] compared; ``slowdown`` [1], its median time over
        that of the cohort, with ``slowdown_low`` and ``slowdown_high``; ``slowest_share`` [1] of the steps in which it
        is the slowest; ``step_share`` [1] of the step time that the others wait for this node only;
        ``accelerator_hours`` [h] of its jobs lost in this way, and ``rental_cost_usd`` [USD].

    Raises
    ------
    ScenarioError
        If no step has times of three nodes.

    Notes
    -----
    A cohort is a step of a job. The cost of a node is the saving if the second slowest node determined the step time.
    Limits are exact for independent steps; neighbouring steps are slightly correlated.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "steps.csv")
    >>> _ = file.write_text("at,step,node,step_s\n2026-03-01,1,a,2.0\n2026-03-01,1,b,2.5\n2026-03-02,1,c,2.0\n")
    >>> stragglers(fk.read_log(file)).select("node", "slowdown", "step_share").row(0)
    ('b', 1.25, 0.2)
    """
    window(log)
    by_step = ["job", "step"]
    timed = log.steps.filter(pl.col("node").is_not_null(), pl.col("step_s").is_not_null())
    ranked = timed.with_columns(
        usual=pl.col("step_s").median().over(by_step),
        rank=pl.col("step_s").rank("ordinal", descending=True).over(by_step),
        nodes=pl.len().over(by_step),
    ).filter(pl.col("nodes") >= MIN_NODES_PER_STEP)
    if ranked.is_empty():
        raise ScenarioError("no step has times of three nodes; give step times by node: step,node,step_s")
    second = pl.col("step_s").filter(pl.col("rank") == 2).first().over(by_step)
    is_slowest = pl.col("rank") == 1
    waited = pl.when(is_slowest).then(pl.col("step_s") - second).otherwise(0.0)
    total_s = ranked.filter(is_slowest)["step_s"].sum()
    by_node = (
        ranked.with_columns(waited=waited, slowdown=pl.col("step_s") / pl.col("usual"))
        .group_by("node", maintain_order=True)
        .agg(
            steps=pl.len().cast(pl.Float64),
            slowdowns=pl.col("slowdown").sort(),
            slowest_share=is_slowest.mean(),
            step_share=pl.col("waited").sum() / total_s,
        )
        .sort("step_share", "node", descending=[True, False])
    )
    tail = 0.5 * (1.0 - probability("confidence", confidence))
    below = pl.lit(pl.Series(need("scipy.stats").binom.ppf(tail, by_node["steps"].to_numpy(), 0.5)).cast(pl.Int64))
    price = checked_price(rental_usd_per_accelerator_h)
    lost_h = pl.col("step_share") * held_hours(log)
    return by_node.select(
        "node",
        "steps",
        slowdown=pl.col("slowdowns").list.median(),
        slowdown_low=pl.col("slowdowns").list.get((below - 1).clip(0)),
        slowdown_high=pl.col("slowdowns").list.get(pl.col("steps").cast(pl.Int64) - below.clip(1)),
        slowest_share="slowest_share",
        step_share="step_share",
        accelerator_hours=lost_h,
        rental_cost_usd=None if price is None else rental_cost_usd(lost_h, price),
    ).with_columns(pl.col("accelerator_hours", "rental_cost_usd").cast(pl.Float64))


def held_hours(log: Log) -> float | None:
    """Return the accelerator-hours of jobs with steps, or None if the log has no jobs."""
    try:
        attempts = started_attempts(log)
    except ScenarioError:
        return None
    stepped = attempts.join(log.steps.select("job").unique(), on="job", how="semi")
    hours = (pl.col("ended") - pl.col("started")).dt.total_seconds() / SECONDS_PER_HOUR * pl.col("accelerators")
    return float(stepped.select(hours.sum()).item()) if stepped.height else None
