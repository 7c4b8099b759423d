"""Attempts of jobs, their steps, and the jobs that continue one another."""

from __future__ import annotations

from typing import Final

import polars as pl

from factorykit.core.errors import ScenarioError, warn
from factorykit.telemetry.exposure import window
from factorykit.telemetry.tidy import Log

MIN_PAUSE_SHARE: Final = 0.2
"""Share of a step time from which the time between two steps is a pause instead of jitter."""
MIN_RESTART_S: Final = 10.0
"""Time that processes need at least to start again: an earlier step sooner is one that another process logs. [s]"""
MIN_SHARE_INSIDE: Final = 0.99
"""Share of the steps in attempts of their jobs below which the clocks or names of logs differ."""
NOT_FAILED: Final = ("completed", "running", "cancelled", "timeout", "preempted", "requeued")
"""States after which the time since the last logged step is not lost work."""


def started_attempts(log: Log) -> pl.DataFrame:
    """Return the attempts that ran, numbered by start; a running one ends with the log."""
    _, end = window(log)
    started = log.jobs.filter(pl.col("started").is_not_null(), pl.col("accelerators") > 0)
    if started.is_empty():
        raise ScenarioError("the log has no jobs that ran on accelerators; give the output of sacct or a CSV of jobs")
    ended = started.with_columns(pl.col("ended").fill_null(end))
    return ended.sort("started", maintain_order=True).with_row_index("attempt")


def steps_by_attempt(log: Log, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct steps with their attempt, sorted by time; many steps outside all attempts cause a warning."""
    timed = log.steps.filter(pl.col("at").is_not_null()).sort("at")
    runs = attempts.select("attempt", "job", "started", "ended").sort("started")
    matched = timed.join_asof(runs, left_on="at", right_on="started", by="job", check_sortedness=False)
    inside = matched.filter(pl.col("at") <= pl.col("ended"))
    if inside.height < MIN_SHARE_INSIDE * timed.height:
        job = matched.join(inside, on=["job", "at"], how="anti")["job"][0]
        warn(
            f"{timed.height - inside.height:,} of {timed.height:,} steps are in no attempt of their job, the first of "
            f"{job}; give zone, and step logs named after jobs that the log has"
        )
    by_node = inside.group_by("attempt", "node").len().sort("len", "node", descending=[True, False], nulls_last=True)
    reporter = by_node.unique("attempt", keep="first", maintain_order=True).drop("len")
    ran = inside.join(reporter, on=["attempt", "node"], nulls_equal=True).sort("attempt", "at", maintain_order=True)
    change, gap = (pl.col(name).diff().over("attempt") for name in ("step", "at"))
    is_again = ((change < 0.0) & (gap.dt.total_seconds() >= MIN_RESTART_S)).fill_null(False)
    ran = ran.with_columns(run=is_again).with_columns(pl.col("run").cum_sum().over("attempt"))
    ran = ran.filter((pl.col("step") > pl.col("step").cum_max().shift(1).over("attempt", "run")).fill_null(True))
    count = pl.col("step").diff().over("attempt", "run")
    span = (pl.col("at") - pl.coalesce(pl.col("at").shift(1).over("attempt"), "started")).dt.total_microseconds() / 1e6
    ran = ran.with_columns(count=count, span=span, is_first=count.is_null())  # nested windows are slow
    of_more, count = pl.when(pl.col("count") > 0), pl.col("count")
    between, stride = (of_more.then(value).median().over("job") for value in (pl.col("span") / count, count))
    counted = count.fill_null(pl.min_horizontal(stride.fill_null(1.0), pl.col("step").clip(1.0)))
    steps = ran.with_columns(pl.coalesce("step_s", between), count=counted)
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


def chains(attempts: pl.DataFrame, steps: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return attempts with their ``chain``, the first of the jobs that continue one another, and these jobs.

    A job continues the last one of its user, name and size that has steps, if it begins at most a logged step after
    them. If jobs of a name overlap, or have no name, it is ``unclear``. A job that completed continues at its end.
    """
    same = ("user", "name", "accelerators")
    begin = (pl.col("step") - pl.col("count")).filter("is_first").first()
    reached = steps.group_by("attempt").agg(begin=begin, last=pl.col("step").max(), stride=pl.col("count").first())
    attempts = attempts.join(reached, on="attempt", how="left", maintain_order="left")
    jobs = attempts.group_by("job", maintain_order=True).agg(
        pl.col(*same, "started", "begin", "stride").drop_nulls().first(),
        pl.col("ended", "state", "last").drop_nulls().last(),
    )
    before = pl.col("job", "ended", "state", "last").forward_fill().shift(1).over(same).name.suffix(" before")
    jobs = jobs.sort(*same, "started").with_columns(before, pl.col("begin", "stride").backward_fill().over(same))
    last, is_apart = pl.col("last before"), (pl.col("started") >= pl.col("ended before")).fill_null(True)
    least = pl.when(pl.col("state before") == "completed").then(last).otherwise(0.5)
    continues = pl.col("begin").is_between(least, last + pl.col("stride")).fill_null(False)
    is_unclear = pl.col("name").is_null() | ~is_apart.all().over(same)
    jobs = jobs.with_columns(continues=continues, unclear=continues & is_unclear)
    jobs = jobs.with_columns(group=(~pl.col("continues") | pl.col("unclear")).cum_sum())
    jobs = jobs.with_columns(chain=pl.col("job").first().over("group"))
    chained = attempts.drop("last", "stride").join(jobs.select("job", "chain"), on="job", maintain_order="left")
    return chained, jobs.filter("continues")


def interrupted(log: Log) -> pl.DataFrame:
    """Return the attempts that made steps and failed, and whose training a later attempt continued."""
    if log.steps.is_empty() or not (log.jobs["state"] == "failed").any():
        return log.jobs.clear()
    attempts = started_attempts(log)
    stepped = chains(attempts, steps_by_attempt(log, attempts))[0].drop_nulls("begin")
    is_continued = pl.col("begin").shift(-1).over("chain") > 0.0
    return stepped.filter(is_continued, pl.col("state") == "failed").select(log.jobs.columns)
