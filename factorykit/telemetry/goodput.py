"""Goodput ledger: the accelerator-hours of a cluster by use, in hours and money."""

from __future__ import annotations

from typing import Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError, warn
from factorykit.core.vocabulary import quantity
from factorykit.formulas.cost import rental_cost_usd
from factorykit.telemetry.attempts import NOT_FAILED, chains, started_attempts, steps_by_attempt
from factorykit.telemetry.exposure import fleet_nodes, window
from factorykit.telemetry.failures import failures
from factorykit.telemetry.tidy import Log

PARTS: Final = ("productive", "lost work", "restart", "checkpoint", "other", "no step log", "down", "idle")
"""Parts of the accelerator-hours of a cluster."""


def goodput(
    log: Log, *, accelerators: float | None = None, rental_usd_per_accelerator_h: float | str | None = None
) -> pl.DataFrame:
    r"""Return the goodput ledger of a cluster.

    Parameters
    ----------
    log
        A log with jobs from :func:`factorykit.read_log`.
    accelerators
        Accelerators of the cluster; by default the number per node of the jobs, for each node that the log names.
    rental_usd_per_accelerator_h
        Price of an accelerator-hour; optional.

    Returns
    -------
    DataFrame
        One row per part: ``part``, ``accelerator_hours`` [h], ``share`` [1] of the hours of the cluster, and
        ``rental_cost_usd`` [USD], null without a price. Parts: ``productive`` (steps that were kept), ``lost work``
        (steps that were repeated, and the time after the last step of a failed attempt), ``restart`` (from the start of
        an attempt to its first step, or to its end without a step), ``checkpoint`` (from step logs, or else periodic
        pauses between steps), ``other`` (further pauses, and the end of attempts that did not fail), ``no step log``
        (jobs without one), ``down`` (repairs) and ``idle``; they add up to the hours of the cluster. A last row,
        ``queue``, has the hours that jobs waited, without a share.

    Raises
    ------
    ScenarioError
        If the log has no jobs that ran, or jobs hold more accelerators than the cluster has.

    Notes
    -----
    A step belongs to the attempt of its job that ran at its time; a step logged by several processes counts once. Steps
    after the point from which the job resumes, in a later attempt or the same one, are lost work. A job continues the
    last one of the same user, name and accelerators, and both are one training, if no two of these overlap and it
    begins after step 0 and at most one logged step after the steps of that job. A warning states such jobs, and those
    that only seem to continue another one, since they have no name or overlap.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> text = "job,state,started,ended,nodes,accelerators,node_list\n7,failed,2026-03-01,2026-03-02,1,8,a\n"
    >>> _ = file.write_text(text)
    >>> goodput(fk.read_log(file), accelerators=16).filter(share=0.5)["part"].to_list()
    ['no step log', 'idle']
    """
    start, end = window(log)
    attempts = started_attempts(log)
    per_node = log.jobs.select((pl.col("accelerators") / pl.col("nodes")).median()).item()
    named = max(*attempts["accelerators"], (per_node or 0.0) * len(fleet_nodes(log)))
    total = named if accelerators is None else float(quantity("accelerators").check(accelerators))
    steps = steps_by_attempt(log, attempts)
    attempts, continued = chains(attempts, steps)
    _state_chains(continued)
    spans = _attempt_parts(attempts, steps)
    weight = pl.col("accelerators") / SECONDS_PER_HOUR
    hours = spans.select((pl.col(*PARTS[:6]) * weight).sum()).row(0, named=True)
    cluster_h = total * (end - start).total_seconds() / SECONDS_PER_HOUR
    down_s = failures(log).filter(pl.col("at").is_not_null())["repair_s"].sum()
    unallocated_h = cluster_h - sum(hours.values())
    if unallocated_h < -1e-6 * cluster_h:
        raise ScenarioError(
            f"jobs held {sum(hours.values()):,.0f} accelerator-hours and the cluster had {cluster_h:,.0f}; "
            "give accelerators, the number in the cluster"
        )
    hours["down"] = min(float(down_s) * (per_node or 0.0) / SECONDS_PER_HOUR, max(unallocated_h, 0.0))
    hours["idle"] = max(unallocated_h - hours["down"], 0.0)
    queue_h = attempts.select(((pl.col("started") - pl.col("submitted")).dt.total_seconds() * weight).sum()).item()
    price, held = checked_price(rental_usd_per_accelerator_h), pl.col("accelerator_hours")
    cost = pl.lit(None, pl.Float64) if price is None else rental_cost_usd(held, price)
    ledger = pl.DataFrame({"part": [*hours, "queue"], "accelerator_hours": [*hours.values(), float(queue_h or 0.0)]})
    is_held = pl.col("part") != "queue"
    return ledger.with_columns(
        share=pl.when(is_held).then(held / cluster_h), rental_cost_usd=pl.when(is_held).then(cost)
    )


def _state_chains(continued: pl.DataFrame) -> None:
    """Warn of jobs that continue others, and of those that seem to do so."""
    repeating = continued.filter(~pl.col("unclear") | (pl.col("begin") < pl.col("last before")))
    for (is_unclear,), jobs in repeating.group_by("unclear", maintain_order=True):
        row, seem = jobs.row(0, named=True), "seem to continue" if is_unclear else "continue"
        counted = "not counted as lost work; give each run a job name of its own" if is_unclear else "lost work"
        warn(
            f"{jobs.height} jobs {seem} another one of the same user, name and accelerators, and the steps that they "
            f"repeat are {counted}: job {row['job']} begins at step {row['begin']:,.0f}, and job {row['job before']} "
            f"had reached {row['last before']:,.0f}"
        )


def _attempt_parts(attempts: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return attempts with the seconds of each part, which add up to the length of the attempt."""
    begin = pl.col("step") - pl.col("count")
    resumed = begin.cum_min(reverse=True).shift(-1).over("chain")
    starts = steps.filter("is_first").join(attempts.select("attempt", "chain"), on="attempt", maintain_order="left")
    joined = steps.join(starts.select("attempt", "run", resumed=resumed), on=["attempt", "run"], how="left")
    repeated = ((pl.col("step") - pl.col("resumed")) / pl.col("count")).clip(0.0, 1.0).fill_null(0.0).fill_nan(0.0)
    parts = joined.group_by("attempt").agg(
        (pl.col("work") * (1.0 - repeated)).sum().alias("productive"),
        (pl.col("work") * repeated).sum().alias("lost work"),
        pl.col("pause").filter("is_first").sum().alias("restart"),
        pl.col("checkpoint_s").sum().alias("checkpoint"),
        (pl.col("pause") - pl.col("checkpoint_s")).filter(~pl.col("is_first")).sum().alias("other"),
        pl.col("at").max().alias("last"),
    )
    length = (pl.col("ended") - pl.col("started")).dt.total_microseconds() / 1e6
    tail = ((pl.col("ended") - pl.col("last")).dt.total_microseconds() / 1e6).fill_null(0.0)
    has_no_step, has_step_log = pl.col("last").is_null(), pl.col("last").is_not_null().any().over("chain")
    is_not_failed = pl.col("state").is_in(NOT_FAILED)
    return attempts.join(parts, on="attempt", how="left").with_columns(
        pl.col("lost work") + pl.when(is_not_failed).then(0.0).otherwise(tail),
        pl.col("other") + pl.when(is_not_failed).then(tail).otherwise(0.0),
        pl.when(has_no_step & has_step_log).then(length).otherwise("restart").alias("restart"),
        pl.when(has_no_step & ~has_step_log).then(length).otherwise(0.0).alias("no step log"),
    )


def checked_price(price: float | str | None) -> float | None:
    """Return the price of an accelerator-hour, if one is given."""
    return None if price is None else float(quantity("rental_usd_per_accelerator_h").check(price))
