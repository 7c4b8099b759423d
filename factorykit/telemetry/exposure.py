"""Exposure of a fleet: the nodes and periods in which a failure would have been observed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError, short_repr, warn
from factorykit.core.validation import frame, integer
from factorykit.telemetry.parsing import node_names
from factorykit.telemetry.tidy import WATCHED, Log

EXPOSURE: Final = ("node", "since", "until")
"""Columns of an exposure."""
RARE: Final = 1e-6
"""Probability that jobs which end at random times leave a period without ends, below which it was not watched."""


@dataclass(frozen=True)
class Exposure:
    """Watched nodes and periods.

    Attributes
    ----------
    periods
        One row per period of a node: ``node``, null if only the number of nodes is known; ``since``, ``until``,
        ``nodes`` [1] and ``source``. Periods of one node do not overlap.
    start, end
        First and last time.
    """

    periods: pl.DataFrame
    start: datetime
    end: datetime

    @property
    def days(self) -> float:
        """Length of the whole period. [d]"""  # noqa: D400
        return (self.end - self.start).total_seconds() / SECONDS_PER_DAY

    @property
    def nodes(self) -> float:
        """Number of nodes."""
        return float(self.periods.unique("node")["nodes"].sum())

    @property
    def source(self) -> str:
        """Sources of the exposure."""
        return ", ".join(sorted({name for names in self.periods["source"] for name in names.split(", ")}))

    def of(self, node: str | None) -> Exposure:
        """Return the exposure of one node; where only their number is known, that of any one."""
        periods = self.periods.filter(pl.col("node").eq_missing(node) | pl.col("node").is_null())
        return Exposure(periods.with_columns(nodes=1.0), self.start, self.end)

    def node_days(self, start: datetime, low: float, high: float) -> float:
        """Return the node-days between two ages, which are days since the start."""
        ages = (
            (pl.col(name) - pl.lit(start)).dt.total_microseconds() / (1e6 * SECONDS_PER_DAY) for name in EXPOSURE[1:]
        )
        since, until = (age.clip(low, high) for age in ages)
        return float(self.periods.select(((until - since) * pl.col("nodes")).sum()).item())

    def mark(self, failures: pl.DataFrame) -> pl.DataFrame:
        """Return failures with whether they are within the exposure, ``is_watched``; without a node, in any period."""
        in_time = pl.col("at").is_between(self.start, self.end)
        if self.periods["node"].null_count():
            return failures.with_columns(is_watched=in_time)
        numbered = failures.with_row_index("failure")
        watched = numbered.join(self.periods, on="node").filter(pl.col("at").is_between("since", "until"))["failure"]
        is_watched = pl.col("failure").is_in(watched.unique().implode())
        return numbered.with_columns(
            is_watched=pl.when(pl.col("node").is_null()).then(in_time).otherwise(is_watched)
        ).drop("failure")


def exposure_of(log: Log, given: float | pl.DataFrame | None = None) -> Exposure:
    """Return the exposure that is given, or else that which a log states."""
    start, end = window(log)
    if given is not None and not isinstance(given, pl.DataFrame):
        nodes = float(integer("exposure", given, 1))
        row = pl.DataFrame({"node": None, "since": start, "until": end, "source": "given"}, WATCHED)
        return Exposure(row.with_columns(nodes=nodes), start, end)
    if given is None:
        nodes = fleet_nodes(log)
        periods = pl.concat([log.watched.filter(pl.col("node").is_in(nodes)), _of_scheduler(log, nodes, end)])
    else:
        periods = frame("exposure", given, EXPOSURE).select(*EXPOSURE, source=pl.lit("given"))
        if wrong := next((name for name in EXPOSURE if periods.schema[name] != WATCHED[name]), None):
            raise ScenarioError(f"exposure: {wrong} must be {WATCHED[wrong]}, got {periods.schema[wrong]}; cast it")
    known = _merged(periods.drop_nulls().filter(pl.col("until") > pl.col("since")))
    if known.is_empty():
        raise ScenarioError(
            "a rate needs exposure, and the log does not state which nodes were watched; give exposure, the number of "
            "nodes or a table of node, since and until"
        )
    return Exposure(known, *known.select(pl.col("since").min(), pl.col("until").max()).row(0))


def _of_scheduler(log: Log, nodes: list[str], end: datetime) -> pl.DataFrame:
    """Return the exposure that a scheduler states: every node, over the period of its jobs and events."""
    jobs = log.jobs.filter(pl.col("node_list").is_not_null())
    times = jobs.select("submitted", "started", pl.col("ended").fill_null(end)).unpivot()["value"]
    reported = log.watched.filter(pl.col("node").is_null())
    moments = pl.concat([times, reported["since"], reported["until"]]).drop_nulls()
    if moments.is_empty():
        return pl.DataFrame(schema=WATCHED)
    ends = jobs["ended"].drop_nulls().unique()
    since, until, first = pl.select(a=pl.lit(moments).min(), b=pl.lit(moments).max(), c=pl.lit(ends).min()).row(0)
    quiet_d, period_d = ((at - since).total_seconds() / SECONDS_PER_DAY for at in (first or since, until))
    if period_d and (1.0 - quiet_d / period_d) ** (len(ends) - 1) < RARE:
        warn(f"no job ended in the first {quiet_d:.1f} days of the log; give exposure if sacct lists jobs since later")
    period = pl.DataFrame({"since": [since], "until": [until], "source": ["scheduler"]})
    return pl.DataFrame({"node": nodes}, {"node": pl.String}).join(period, how="cross")


def _merged(periods: pl.DataFrame) -> pl.DataFrame:
    """Return periods with those of one node that overlap as one."""
    ordered = periods.sort(EXPOSURE)
    is_new = (pl.col("since") > pl.col("until").cum_max().shift(1).over("node")).fill_null(True)
    groups = ordered.with_columns(period=is_new.cum_sum()).group_by("node", "period", maintain_order=True)
    source = pl.col("source").unique().sort().str.join(", ")
    return groups.agg(pl.col("since").min(), pl.col("until").max(), source=source, nodes=1.0).drop("period")


def window(log: Log) -> tuple[datetime, datetime]:
    """Return the first and the last timestamp of a log."""
    if not isinstance(log, Log):
        raise ScenarioError(f"log must be a Log, got {short_repr(log)}; read one with fk.read_log")
    times = [
        time
        for frame, names in (
            (log.events, ("at", "until")),
            (log.jobs, ("submitted", "started", "ended")),
            (log.steps, ("at",)),
            (log.power, ("at",)),
            (log.watched, ("since", "until")),
        )
        for name in names
        for time in (frame[name].min(), frame[name].max())
        if isinstance(time, datetime)
    ]
    if not times or min(times) == max(times):
        raise ScenarioError("the log covers no period; give logs with timestamps, of a day or more")
    return min(times), max(times)


def accelerator_jobs(log: Log) -> pl.DataFrame:
    """Return the jobs with accelerators, or all jobs if none has any."""
    held = log.jobs.filter(pl.col("accelerators") > 0.0)
    return log.jobs if held.is_empty() else held


def fleet_nodes(log: Log) -> list[str]:
    """Return the nodes that a scheduler, a journal or a health check names, without those of other jobs alone."""
    lists = (jobs.select(nodes_in("node_list").explode())["node_list"] for jobs in (log.jobs, accelerator_jobs(log)))
    allocated, fleet = map(set, lists)
    return sorted({*log.events["node"], *log.watched["node"], *fleet} - (allocated - fleet) - {None})


def nodes_in(column: str) -> pl.Expr:
    """Return the nodes of node lists in the notation of Slurm; each distinct list is expanded once."""

    def expand(lists: pl.Series) -> pl.Series:
        expanded = {text: node_names(text) if text else None for text in lists.unique()}
        return pl.Series([expanded[text] for text in lists], dtype=pl.List(pl.String))

    return pl.col(column).map_batches(expand, return_dtype=pl.List(pl.String))
