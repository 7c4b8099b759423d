"""Where the accelerator-hours went: what became progress, what was done again, what waited, in hours and money."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from factorykit.constants import SECONDS_PER_HOUR
from factorykit.errors import ScenarioError
from factorykit.formulas.cost import rental_cost_usd
from factorykit.logs.tidy import Log
from factorykit.model.fleet.faults import failures, fleet_nodes, window
from factorykit.quantities import quantity

if TYPE_CHECKING:
    import polars as pl

PARTS: Final = ("productive", "lost work", "restart", "checkpoint", "other", "steps not told", "down", "idle")
"""Of the hours that a cluster has; what a job spends between steps beyond a checkpoint is ``other``."""
PAUSE: Final = 0.2
"""Share of a step from which the time between two steps is a pause and no jitter."""
ENDED_WELL: Final = ("completed", "running", "cancelled", "timeout", "preempted", "requeued")
"""States after which the time since the last step told is no lost work but what the log leaves open."""


def goodput(
    log: Log, *, accelerators: float | None = None, rental_usd_per_accelerator_h: float | str | None = None
) -> pl.DataFrame:
    r"""Return what the hours of a cluster went into.

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns, with jobs.
    accelerators
        Accelerators of the cluster; by default as many on each node that the log names as jobs hold on one.
    rental_usd_per_accelerator_h
        Price of an hour; by default hours have none.

    Returns
    -------
    DataFrame
        One row per part: ``part``, ``accelerator_hours`` [h], ``share`` [1] of those that the cluster had, and
        ``rental_cost_usd`` [USD], null without a price. Parts: ``productive`` (steps that count), ``lost work`` (steps
        done again, and what came after the last step of an attempt that failed), ``restart`` (from the start of an
        attempt to its first step, or to its end where there is none), ``checkpoint`` (as step logs tell it, else the
        pauses between steps that keep a rhythm), ``other`` (further pauses, and the end of attempts that did not fail),
        ``steps not told`` (jobs without step logs), ``down`` (repairs) and ``idle``; they add up to the hours of the
        cluster. A last row, ``queue``, is what jobs waited for, of no share.

    Raises
    ------
    ScenarioError
        If the log tells no jobs that ran, or the jobs hold more than the cluster has.

    Notes
    -----
    Steps go to the attempt of their job that ran when they were told; a step told by several nodes counts once. Steps
    from where the next attempt of the job resumes are lost work.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> _ = file.write_text("job,state,started,ended,nodes,accelerators,on\n7,failed,2026-03-01,2026-03-02,1,8,a")
    >>> goodput(fk.read_log(file), accelerators=16).filter(share=0.5)["part"].to_list()
    ['steps not told', 'idle']
    """
    import polars as pl

    start, end = window(log)
    attempts = attempted(log)
    per_node = log.jobs.select((pl.col("accelerators") / pl.col("nodes")).median()).item()
    total = float(quantity("accelerators").check(accelerators)) if accelerators is not None else None
    if total is None:
        total = max(*attempts["accelerators"], (per_node or 0.0) * len(fleet_nodes(log)))
    stepped = steps_of(log, attempts)
    spans = _spans(attempts, stepped)
    weight = pl.col("accelerators") / SECONDS_PER_HOUR
    hours = spans.select((pl.col(*PARTS[:6]) * weight).sum()).row(0, named=True)
    whole = total * (end - start).total_seconds() / SECONDS_PER_HOUR
    down_s = failures(log).filter(pl.col("at").is_not_null())["repair_s"].sum()
    left = whole - sum(hours.values())
    if left < -1e-6 * whole:
        raise ScenarioError(
            f"jobs held {sum(hours.values()):,.0f} accelerator-hours and the cluster had {whole:,.0f}; "
            "give accelerators, how many it has"
        )
    hours["down"] = min(float(down_s) * (per_node or 0.0) / SECONDS_PER_HOUR, max(left, 0.0))
    hours["idle"] = max(left - hours["down"], 0.0)
    waited = attempts.select(((pl.col("started") - pl.col("submitted")).dt.total_seconds() * weight).sum()).item()
    price = priced(rental_usd_per_accelerator_h)
    rows = [
        {
            "part": part,
            "accelerator_hours": value,
            "share": value / whole,
            "rental_cost_usd": None if price is None else rental_cost_usd(value, price),
        }
        for part, value in hours.items()
    ]
    queue = {"part": "queue", "accelerator_hours": float(waited or 0.0), "share": None, "rental_cost_usd": None}
    return pl.DataFrame([*rows, queue], schema_overrides={"share": pl.Float64, "rental_cost_usd": pl.Float64})


def attempted(log: Log) -> pl.DataFrame:
    """Return the attempts that ran, numbered, in the order of their start; one that runs on ends with the log.

    Raises
    ------
    ScenarioError
        If there is none.
    """
    import polars as pl

    _, end = window(log)
    ran = log.jobs.filter(pl.col("started").is_not_null(), pl.col("accelerators") > 0)
    if ran.is_empty():
        raise ScenarioError("the log tells no jobs that ran on accelerators; give sacct's or a CSV of jobs")
    return (
        ran.with_columns(pl.col("ended").fill_null(end)).sort("started", maintain_order=True).with_row_index("attempt")
    )


def steps_of(log: Log, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the steps that were told, once each, with their attempt, in order; those of no attempt are left out."""
    import polars as pl

    timed = log.steps.filter(pl.col("at").is_not_null())
    told_by = timed.group_by("job", "node").len().sort("len", "node", descending=[True, False], nulls_last=True)
    teller = told_by.unique("job", keep="first", maintain_order=True).drop("len")
    once = timed.join(teller, on=["job", "node"], nulls_equal=True).sort("at")
    runs = attempts.select("attempt", "job", "started", "ended").sort("started")
    found = once.join_asof(runs, left_on="at", right_on="started", by="job", check_sortedness=False)
    ran = found.filter(pl.col("at") <= pl.col("ended")).sort("attempt", "at", maintain_order=True)
    count = pl.col("step").diff().over("attempt").clip(0.0)
    span = (pl.col("at") - pl.coalesce(pl.col("at").shift(1).over("attempt"), "started")).dt.total_microseconds() / 1e6
    between = (pl.when(count > 0).then(span / count)).median().over("job")
    stride = pl.when(count > 0).then(count).median().over("job").fill_null(1.0)
    told = ran.with_columns(
        pl.coalesce("step_s", between), span=span, count=count.fill_null(stride), is_first=count.is_null()
    ).filter(pl.col("step_s").is_not_null())
    work = pl.min_horizontal("span", pl.col("count") * pl.col("step_s"))
    return _rhythm(told.with_columns(work=work, pause=pl.col("span") - work))


def _rhythm(steps: pl.DataFrame) -> pl.DataFrame:
    """Return steps with the part of each pause that is a checkpoint: as told, else the pauses that keep a rhythm."""
    import polars as pl

    is_pause = ~pl.col("is_first") & (pl.col("pause") > PAUSE * pl.col("step_s"))
    pauses = steps.filter(is_pause).with_columns(apart=pl.col("step").diff().over("attempt"))
    period = pl.col("apart").filter(pl.col("apart") > 0).mode().min()
    steady = pauses.group_by("job").agg(period=period, kept=(pl.col("apart") == period).sum(), pauses=pl.len())
    steady = steady.filter(pl.col("kept") >= 0.5 * pl.col("pauses"), pl.col("kept") > 1).select("job", "period")
    phase = pauses.join(steady, on="job").group_by("job").agg(phase=(pl.col("step") % pl.col("period")).mode().min())
    known = steps.join(steady, on="job", how="left").join(phase, on="job", how="left")
    in_time = is_pause & (pl.col("step") % pl.col("period") == pl.col("phase"))
    told = pl.min_horizontal("pause", "checkpoint_write_s")
    kept = pl.coalesce(told, pl.when(in_time).then("pause"), pl.lit(0.0))
    return known.with_columns(checkpoint_s=pl.when("is_first").then(0.0).otherwise(kept)).drop("phase")


def _spans(attempts: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return attempts with the seconds of each part; the parts of an attempt add up to its length."""
    import polars as pl

    begun = steps.filter("is_first").select("attempt", "job", begin=pl.col("step") - pl.col("count"))
    resumed = begun.select("attempt", resumed=pl.col("begin").shift(-1).over("job"))
    joined = steps.join(resumed, on="attempt", how="left")
    again = ((pl.col("step") - pl.col("resumed")) / pl.col("count")).clip(0.0, 1.0).fill_null(0.0).fill_nan(0.0)
    parts = joined.group_by("attempt").agg(
        (pl.col("work") * (1.0 - again)).sum().alias("productive"),
        (pl.col("work") * again).sum().alias("lost work"),
        pl.col("pause").filter("is_first").sum().alias("restart"),
        pl.col("checkpoint_s").sum().alias("checkpoint"),
        (pl.col("pause") - pl.col("checkpoint_s")).filter(~pl.col("is_first")).sum().alias("other"),
        pl.col("at").max().alias("last"),
    )
    length = (pl.col("ended") - pl.col("started")).dt.total_microseconds() / 1e6
    tail = ((pl.col("ended") - pl.col("last")).dt.total_microseconds() / 1e6).fill_null(0.0)
    is_silent, is_told = pl.col("last").is_null(), pl.col("last").is_not_null().any().over("job")
    is_well = pl.col("state").is_in(ENDED_WELL)
    return attempts.join(parts, on="attempt", how="left").with_columns(
        pl.col("lost work") + pl.when(is_well).then(0.0).otherwise(tail),
        pl.col("other") + pl.when(is_well).then(tail).otherwise(0.0),
        pl.when(is_silent & is_told).then(length).otherwise("restart").alias("restart"),
        pl.when(is_silent & ~is_told).then(length).otherwise(0.0).alias("steps not told"),
    )


def priced(given: float | str | None) -> float | None:
    """Return the price of an hour, if one is given."""
    return None if given is None else float(quantity("rental_usd_per_accelerator_h").check(given))
