"""Archives: Parquet files of failures, jobs and power samples, queried out of core with DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError
from factorykit.core.storage import storage_path
from factorykit.core.validation import finite_number, integer, one_of
from factorykit.data.query import quoted, sql_over
from factorykit.model.reliability.lifetimes import MOST_POINTS
from factorykit.model.reliability.reliability import mtbf_interval_s

TABLES: Final = {
    "failures": ("at", "node", "cause", "repair_s"),
    "jobs": ("state", "started", "ended", "accelerators"),
    "power": ("at", "accelerator_power_w"),
}
"""Folders of an archive and their required columns."""
PERIODS: Final = ("day", "week", "month")
GROUPS: Final = ("cause", "node", "age", *PERIODS)
TICK_S: Final = 60
"""Resolution of the gaps between failures. [s]"""


def archive(folder: str | Path, nodes: float) -> Archive:
    """Open an archive of Parquet files that are too large for memory.

    Parameters
    ----------
    folder
        Folder, local or in an object store, with subfolders ``failures`` (``at``, ``node``, ``cause``, ``repair_s``),
        ``jobs`` (``state``, ``started``, ``ended``, ``accelerators``) and ``power`` (``at``, ``accelerator_power_w``)
        of Parquet files, at least one of them, such as tables of :func:`factorykit.read_log` and :func:`failures`
        written to Parquet, or the study of logs that :func:`factorykit.read_log` writes with ``out``.
    nodes
        Number of servers watched.

    Returns
    -------
    Archive

    Raises
    ------
    ScenarioError
        If the folder has no such files, or a file lacks a column.
    """
    opened = Archive(storage_path("folder", folder), finite_number("nodes", nodes))
    if opened.nodes < 1.0:
        raise ScenarioError(f"nodes must be at least 1, got {nodes!r}; give the number of servers watched")
    if not (tables := opened.tables):
        raise ScenarioError(f"{opened.folder} has no Parquet files in {', '.join(TABLES)}; give a folder that has")
    structs = opened.sql(f"select {', '.join(tables)} from {', '.join(tables)} limit 0").schema
    for table in tables:
        columns = {field.name for field in structs[table].fields}  # type: ignore[attr-defined]
        if missing := [column for column in TABLES[table] if column not in columns]:
            raise ScenarioError(
                f"{opened.folder / table} has no column {missing[0]}; it needs {', '.join(TABLES[table])}"
            )
    return opened


@dataclass(frozen=True)
class Archive:
    """Failures, jobs and power samples of a cluster; each query reads the files once, in at most a gigabyte."""

    folder: Path
    nodes: float

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables in the folder."""
        return tuple(table for table in TABLES if any((self.folder / table).glob("**/*.parquet")))

    def sql(self, query: str, **values: Any) -> pl.DataFrame:
        """Return the result of a SELECT over the tables; the column ``at`` is also available as ``moment``.

        Raises
        ------
        QueryError
        """
        views = {}
        for table in self.tables:
            alias = ', "at" AS moment' if "at" in TABLES[table] else ""
            files = quoted(self.folder / table / "**" / "*.parquet")
            views[table] = f"SELECT *{alias} FROM read_parquet({files}, hive_partitioning = false)"
        return sql_over(self.folder, views, query, values)

    @cached_property
    def window(self) -> tuple[datetime, datetime]:
        """Times of the first and the last failure."""
        first, last = self.sql("select min(moment), max(moment) from failures").row(0)
        return first, last

    def mtbf(self, by: str = "cause", confidence: float = 0.95) -> pl.DataFrame:
        """Return failure rates with exact limits, and repair times.

        Parameters
        ----------
        by
            ``cause``, ``node`` (the hundred worst), ``age`` (days since the start, in doubling intervals), ``day``,
            ``week`` or ``month``.
        confidence
            Confidence level of the limits, in (0, 1).

        Returns
        -------
        DataFrame
            One row per group: ``failures`` [1]; ``node_mtbf_s`` [s] with ``node_mtbf_s_low`` and ``node_mtbf_s_high``,
            the exact limits of Garwood; ``node_repair_s`` [s], the mean.
        """
        one_of("group of failures", by, GROUPS)
        start, end = self.window
        days = (end - start).total_seconds() / SECONDS_PER_DAY
        group = {
            "cause": "cause",
            "node": "node",
            "age": "floor(log2(greatest(1, epoch(moment - $start) / 86400)))::int",
        }.get(by, f"date_trunc('{by}', moment)")
        order = "failures desc limit 100" if by == "node" else "failures desc" if by == "cause" else by
        groups = self.sql(
            f"select {group} as {by}, count(*) as failures, avg(repair_s) as node_repair_s from failures "
            f"where $start is not null group by 1 order by {order}",
            start=start,
        )
        spans = [
            self._days(by, group_, start, end, days) * (1.0 if by == "node" else self.nodes) for group_ in groups[by]
        ]
        rows = []
        for count, span in zip(groups["failures"], spans, strict=True):
            low, high = mtbf_interval_s(count, span * SECONDS_PER_DAY, confidence)
            rows.append((span * SECONDS_PER_DAY / count, low, high))
        limits = pl.DataFrame(rows, ["node_mtbf_s", "node_mtbf_s_low", "node_mtbf_s_high"], orient="row")
        return groups.select(by, pl.col("failures").cast(pl.Float64), "node_repair_s").hstack(limits)

    def rolling_mtbf(self, days: int = 7) -> pl.DataFrame:
        """Return the MTBF of the cluster in a trailing window of days.

        Returns
        -------
        DataFrame
            One row per day: ``day``; ``failures`` [1] in the window; ``cluster_mtbf_s`` [s].
        """
        width = integer("days", days)
        if width < 1:
            raise ScenarioError(f"days must be at least 1, got {days!r}; give the width of the window, e.g. 7")
        return self.sql(
            "with days as (select date_trunc('day', moment) as day, count(*) as failures from failures group by 1), "
            "every as (select unnest(generate_series(min(day), max(day), interval 1 day)) as day from days) "
            "select day, (sum(coalesce(failures, 0)) over last)::double as failures, "
            f"count(*) over last * {SECONDS_PER_DAY} / nullif(sum(coalesce(failures, 0)) over last, 0) as "
            "cluster_mtbf_s from every left join days using (day) "
            f"window last as (order by day rows between {width - 1} preceding and current row) order by day"
        )

    def survival(self, points: int = 40) -> pl.DataFrame:
        """Return the Kaplan-Meier estimate of the time from the end of a repair of a node to its next failure.

        The time from the last failure of a node to the end of the archive is censored. Gaps are rounded up to minutes.

        Parameters
        ----------
        points
            Number of logarithmically spaced times.

        Returns
        -------
        DataFrame
            One row per point: ``span_s`` [s], ``survival`` [1], and ``survival_sd`` [1], its standard deviation after
            Greenwood.
        """
        end = self.window[1]
        curve = self.sql(
            "with gaps as (select lead(moment) over one is not null as seen, "
            "epoch(coalesce(lead(moment) over one, $end) - moment) - coalesce(repair_s, 0) as gap_s "
            "from failures window one as (partition by node order by moment)), "
            f"ticks as (select greatest(ceil(gap_s / {TICK_S}), 1)::bigint as tick, count(*) filter (seen) as ended, "
            "count(*) as gone from gaps where seen or gap_s > 0 group by 1), "
            "at_risk as (select *, sum(gone) over (order by tick rows between current row and unbounded following) as "
            "held from ticks) "
            f"select tick * {TICK_S}::double as span_s, exp(sum(ln(1 - least(ended / held, 1 - 1e-15))) over up) as "
            "survival, sqrt(sum(ended / (held * greatest(held - ended, 1e-9))) over up) as spread from at_risk "
            "window up as (order by tick rows unbounded preceding) order by tick",
            end=end,
        )
        count = integer("points", points, 2, MOST_POINTS)
        low, high = float(curve["span_s"][0]), float(curve["span_s"][-1])
        spans = pl.DataFrame({"span_s": [low * (high / low) ** (i / (count - 1)) for i in range(count)]})
        spans = spans.with_columns(pl.col("span_s") * (1.0 + 1e-12))
        sampled = spans.join_asof(curve, on="span_s")
        return sampled.select("span_s", "survival", survival_sd=pl.col("survival") * pl.col("spread"))

    def goodput(self, by: str = "week") -> pl.DataFrame:
        """Return the accelerator-hours of jobs by the day, week or month of their end, and their goodput.

        Returns
        -------
        DataFrame
            One row per period: ``jobs`` [1]; ``accelerator_hours`` [h]; ``goodput`` [1], the share of completed jobs.
        """
        one_of("period", by, PERIODS)
        held = f"accelerators * epoch(ended - started) / {SECONDS_PER_HOUR}"
        return self.sql(
            f"select date_trunc('{by}', ended) as {by}, count(*)::double as jobs, sum({held}) as accelerator_hours, "
            f"sum({held}) filter (state = 'completed') / sum({held}) as goodput from jobs "
            "where ended is not null group by 1 order by 1"
        )

    def power(self, by: str = "week") -> pl.DataFrame:
        """Return the number of ``samples`` [1] and the mean ``accelerator_power_w`` [W] by day, week or month."""
        one_of("period", by, PERIODS)
        return self.sql(
            f"select date_trunc('{by}', moment) as {by}, count(*)::double as samples, avg(accelerator_power_w) as "
            "accelerator_power_w from power group by 1 order by 1"
        )

    @staticmethod
    def _days(by: str, group: Any, start: datetime, end: datetime, days: float) -> float:
        """Return the number of watched days in a group."""
        if by in ("cause", "node"):
            return days
        if by == "age":
            return min(2.0 ** (group + 1), days) - (2.0**group if group else 0.0)
        ends = {"day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=32)}
        last = (group + ends[by]).replace(day=1) if by == "month" else group + ends[by]
        return (min(last, end) - max(group, start)).total_seconds() / SECONDS_PER_DAY
