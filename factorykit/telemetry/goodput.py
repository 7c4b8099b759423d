"""Goodput ledger: the accelerator-hours of a cluster by use, in hours and money."""

from __future__ import annotations

from typing import Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError, warn
from factorykit.core.vocabulary import quantity
from factorykit.formulas.cost import rental_cost_usd
from factorykit.telemetry.exposure import fleet_nodes, window
from factorykit.telemetry.failures import failures
from factorykit.telemetry.tidy import Log

PARTS: Final = ("productive", "lost work", "restart", "checkpoint", "other", "no step log", "down", "idle")
"""Parts of the accelerator-hours of a cluster."""
MIN_PAUSE_SHARE: Final = 0.2
"""Share of a step time from which the time between two steps is a pause instead of jitter."""
MIN_RESTART_S: Final = 10.0
"""Time that processes need at least to start again: an earlier step sooner is one that another process logs. [s]"""
NOT_FAILED: Final = ("completed", "running", "cancelled", "timeout", "preempted", "requeued")
"""States after which the time since the last logged step is not lost work."""


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
    after the point from which the job resumes, in the next attempt or the same one, are lost work; a job that seems to
    continue another one causes a warning.

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
    total = float(quantity("accelerators").check(accelerators)) if accelerators is not None else None
    if total is None:
        total = max(*attempts["accelerators"], (per_node or 0.0) * len(fleet_nodes(log)))
    steps = steps_by_attempt(log, attempts)
    _warn_of_resubmitted(attempts, steps)
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
    price = checked_price(rental_usd_per_accelerator_h)
    rows = [
        {
            "part": part,
            "accelerator_hours": value,
            "share": value / cluster_h,
            "rental_cost_usd": None if price is None else rental_cost_usd(value, price),
        }
        for part, value in hours.items()
    ]
    queue = {"part": "queue", "accelerator_hours": float(queue_h or 0.0), "share": None, "rental_cost_usd": None}
    return pl.DataFrame([*rows, queue], schema_overrides={"share": pl.Float64, "rental_cost_usd": pl.Float64})


def started_attempts(log: Log) -> pl.DataFrame:
    """Return the attempts that ran, numbered by start; a running one ends with the log.

    Raises
    ------
    ScenarioError
        If there is none.
    """
    _, end = window(log)
    started = log.jobs.filter(pl.col("started").is_not_null(), pl.col("accelerators") > 0)
    if started.is_empty():
        raise ScenarioError("the log has no jobs that ran on accelerators; give the output of sacct or a CSV of jobs")
    ended = started.with_columns(pl.col("ended").fill_null(end))
    return ended.sort("started", maintain_order=True).with_row_index("attempt")


def steps_by_attempt(log: Log, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct steps with their attempt, sorted by time; steps outside all attempts are dropped."""
    timed = log.steps.filter(pl.col("at").is_not_null())
    by_node = timed.group_by("job", "node").len().sort("len", "node", descending=[True, False], nulls_last=True)
    reporter = by_node.unique("job", keep="first", maintain_order=True).drop("len")
    distinct = timed.join(reporter, on=["job", "node"], nulls_equal=True).sort("at")
    runs = attempts.select("attempt", "job", "started", "ended").sort("started")
    matched = distinct.join_asof(runs, left_on="at", right_on="started", by="job", check_sortedness=False)
    ran = matched.filter(pl.col("at") <= pl.col("ended")).sort("attempt", "at", maintain_order=True)
    change, gap = (pl.col(name).diff().over("attempt") for name in ("step", "at"))
    is_again = ((change < 0.0) & (gap.dt.total_seconds() >= MIN_RESTART_S)).fill_null(False)
    ran = ran.with_columns(run=is_again.cum_sum().over("attempt"))
    ran = ran.filter((pl.col("step") > pl.col("step").cum_max().shift(1).over("attempt", "run")).fill_null(True))
    count = pl.col("step").diff().over("attempt", "run")
    span = (pl.col("at") - pl.coalesce(pl.col("at").shift(1).over("attempt"), "started")).dt.total_microseconds() / 1e6
    between = (pl.when(count > 0).then(span / count)).median().over("job")
    stride = pl.when(count > 0).then(count).median().over("job").fill_null(1.0)
    counted = count.fill_null(pl.min_horizontal(stride, pl.col("step").clip(1.0)))
    steps = ran.with_columns(pl.coalesce("step_s", between), span=span, count=counted, is_first=count.is_null())
    steps = steps.filter(pl.col("step_s").is_not_null())
    work = pl.min_horizontal("span", pl.col("count") * pl.col("step_s"))
    return _with_checkpoints(steps.with_columns(work=work, pause=pl.col("span") - work))


def _with_checkpoints(steps: pl.DataFrame) -> pl.DataFrame:
    """Return steps with the checkpoint time in each pause: as logged, or else the pauses that recur periodically."""
    is_pause = ~pl.col("is_first") & (pl.col("pause") > MIN_PAUSE_SHARE * pl.col("step_s"))
    pauses = steps.filter(is_pause).with_columns(apart=pl.col("step").diff().over("attempt"))
    period = pl.col("apart").filter(pl.col("apart") > 0).mode().min()
    counts = pauses.group_by("job").agg(period=period, periodic=(pl.col("apart") == period).sum(), pauses=pl.len())
    periodic = counts.filter(pl.col("periodic") >= 0.5 * pl.col("pauses"), pl.col("periodic") > 1)
    periodic = periodic.select("job", "period")
    phase = pauses.join(periodic, on="job").group_by("job").agg(phase=(pl.col("step") % pl.col("period")).mode().min())
    with_phase = steps.join(periodic, on="job", how="left").join(phase, on="job", how="left")
    in_phase = is_pause & (pl.col("step") % pl.col("period") == pl.col("phase"))
    logged = pl.min_horizontal("pause", "checkpoint_write_s")  # ignores null
    found = pl.when(in_phase).then("pause").otherwise(0.0)
    checkpoint_s = pl.when(pl.col("checkpoint_write_s").is_null()).then(found).otherwise(logged)
    return with_phase.with_columns(checkpoint_s=pl.when("is_first").then(0.0).otherwise(checkpoint_s)).drop("phase")


def _warn_of_resubmitted(attempts: pl.DataFrame, steps: pl.DataFrame) -> None:
    """Warn where a failed job seems to continue as another job, whose repeated steps are not counted as lost work."""
    begin = pl.col("step").filter("is_first").first() - pl.col("count").filter("is_first").first()
    reached = steps.group_by("attempt").agg(begin=begin, last=pl.col("step").max())
    same = ("user", "accelerators")
    runs = attempts.join(reached, on="attempt").sort("started")
    runs = runs.with_columns(pl.col("job", "begin").shift(-1).over(same).name.prefix("next_"))
    failed = runs.filter(~pl.col("state").is_in(NOT_FAILED), pl.col("job") != pl.col("next_job"))
    resumed = failed.filter(pl.col("next_begin") > 0.0, pl.col("next_begin") < pl.col("last"))
    for row in resumed.head(1).iter_rows(named=True):
        warn(
            f"job {row['next_job']} begins at step {row['next_begin']:,.0f}, and job {row['job']} of the same user had "
            f"reached {row['last']:,.0f}; if it continues that job, the steps that it repeats are not counted as lost "
            f"work ({resumed.height} such jobs); give the jobs of a run the same job in the logs"
        )


def _attempt_parts(attempts: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return attempts with the seconds of each part, which add up to the length of the attempt."""
    begin = pl.col("step") - pl.col("count")
    resumed = steps.filter("is_first").select("attempt", "run", resumed=begin.shift(-1).over("job"))
    joined = steps.join(resumed, on=["attempt", "run"], how="left")
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
    has_no_step, has_step_log = pl.col("last").is_null(), pl.col("last").is_not_null().any().over("job")
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
