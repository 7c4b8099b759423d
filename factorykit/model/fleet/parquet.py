"""Years of failures, jobs and samples in Parquet, asked where they lie: out of core, in little memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit.borders import file_path, number, one_of, whole
from factorykit.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.datasets.query import quoted, sql_over
from factorykit.errors import ScenarioError
from factorykit.model.reliability.lifetimes import MOST_POINTS
from factorykit.model.reliability.statistics import mtbf_interval_s

if TYPE_CHECKING:
    import polars as pl

TABLES: Final = {
    "failures": ("at", "node", "cause", "repair_s"),
    "jobs": ("state", "started", "ended", "accelerators"),
    "power": ("at", "accelerator_power_w"),
}
"""Folders of an archive and the columns that are read of each."""
SPANS: Final = ("day", "week", "month")
GROUPS: Final = ("cause", "node", "age", *SPANS)
TICK_S: Final = 60
"""To which gaps between failures are rounded before they are ordered. [s]"""


def archive(folder: str | Path, nodes: float) -> Archive:
    """Open Parquet files of failures, jobs and power that are too large for a frame.

    Parameters
    ----------
    folder
        With folders ``failures`` (``at``, ``node``, ``cause``, ``repair_s``), ``jobs`` (``state``, ``started``,
        ``ended``, ``accelerators``) and ``power`` (``at``, ``accelerator_power_w``) of Parquet files, any of them;
        tables of :func:`factorykit.read_log` and :func:`failures` written to Parquet are such files.
    nodes
        Servers watched.

    Returns
    -------
    Archive

    Raises
    ------
    ScenarioError
        If the folder holds none of them, or a file lacks a column.
    """
    opened = Archive(file_path("folder", folder), number("nodes", nodes))
    if opened.nodes < 1.0:
        raise ScenarioError(f"nodes = {nodes!r} is below 1; give how many servers the archive is of")
    if not (there := opened.tables):
        raise ScenarioError(f"{opened.folder} holds no Parquet files in {', '.join(TABLES)}; name a folder that does")
    whole_rows = opened.sql(f"select {', '.join(there)} from {', '.join(there)} limit 0").schema
    for table in there:
        told = {field.name for field in whole_rows[table].fields}  # type: ignore[attr-defined]
        if lacking := [column for column in TABLES[table] if column not in told]:
            raise ScenarioError(
                f"{opened.folder / table} has no column {lacking[0]}; it needs {', '.join(TABLES[table])}"
            )
    return opened


@dataclass(frozen=True)
class Archive:
    """Failures, jobs and power of a cluster; each question reads the files once, in at most a gigabyte."""

    folder: Path
    nodes: float

    @property
    def tables(self) -> tuple[str, ...]:
        """Those that are there."""
        return tuple(table for table in TABLES if any((self.folder / table).glob("*.parquet")))

    def sql(self, query: str, **values: Any) -> pl.DataFrame:
        """Return the answer to one SELECT over the tables; ``at``, a word of SQL, is ``moment``, too.

        Raises
        ------
        QueryError
        """
        views = {}
        for table in self.tables:
            also = ', "at" AS moment' if "at" in TABLES[table] else ""
            views[table] = f"SELECT *{also} FROM read_parquet({quoted(self.folder / table / '*.parquet')})"
        return sql_over(self.folder, views, query, values)

    @cached_property
    def window(self) -> tuple[datetime, datetime]:
        """First and last failure."""
        first, last = self.sql("select min(moment), max(moment) from failures").row(0)
        return first, last

    def mtbf(self, by: str = "cause", confidence: float = 0.95) -> pl.DataFrame:
        """Return how often nodes fail, with exact limits, and how long repairs take.

        Parameters
        ----------
        by
            ``cause``, ``node`` (the hundred worst), ``age`` (days since the archive begins, in doubling spans),
            ``day``, ``week`` or ``month``.
        confidence
            Of the limits, in (0, 1).

        Returns
        -------
        DataFrame
            One row per group: ``failures`` [1]; ``node_mtbf_s`` [s] with ``node_mtbf_s_low`` and ``node_mtbf_s_high``,
            Garwood's exact limits; ``node_repair_s`` [s], their mean.
        """
        import polars as pl

        one_of("group of failures", by, GROUPS)
        start, end = self.window
        days = (end - start).total_seconds() / SECONDS_PER_DAY
        group = {
            "cause": "cause",
            "node": "node",
            "age": "floor(log2(greatest(1, epoch(moment - $start) / 86400)))::int",
        }.get(by, f"date_trunc('{by}', moment)")
        order = "failures desc limit 100" if by == "node" else "failures desc" if by == "cause" else by
        found = self.sql(
            f"select {group} as {by}, count(*) as failures, avg(repair_s) as node_repair_s from failures "
            f"where $start is not null group by 1 order by {order}",
            start=start,
        )
        spans = [self._days(by, each, start, end, days) * (1.0 if by == "node" else self.nodes) for each in found[by]]
        rows = []
        for count, span in zip(found["failures"], spans, strict=True):
            low, high = mtbf_interval_s(count, span * SECONDS_PER_DAY, confidence)
            rows.append((span * SECONDS_PER_DAY / count, low, high))
        limits = pl.DataFrame(rows, ["node_mtbf_s", "node_mtbf_s_low", "node_mtbf_s_high"], orient="row")
        return found.select(by, pl.col("failures").cast(pl.Float64), "node_repair_s").hstack(limits)

    def rolling_mtbf(self, days: int = 7) -> pl.DataFrame:
        """Return the mean time between failures of the whole cluster over the days up to each.

        Returns
        -------
        DataFrame
            One row per day: ``day``; ``failures`` [1] in the window; ``cluster_mtbf_s`` [s].
        """
        width = whole("days", days)
        if width < 1:
            raise ScenarioError("days = 0; give the width of the window in days, e.g. 7")
        return self.sql(
            "with days as (select date_trunc('day', moment) as day, count(*) as failures from failures group by 1), "
            "every as (select unnest(generate_series(min(day), max(day), interval 1 day)) as day from days) "
            "select day, (sum(coalesce(failures, 0)) over last)::double as failures, "
            f"count(*) over last * {SECONDS_PER_DAY} / nullif(sum(coalesce(failures, 0)) over last, 0) as "
            "cluster_mtbf_s from every left join days using (day) "
            f"window last as (order by day rows between {width - 1} preceding and current row) order by day"
        )

    def survival(self, points: int = 40) -> pl.DataFrame:
        """Return what share of the gaps from one failure of a node to its next last longer, after Kaplan and Meier.

        The time from the last failure of a node to the end is a gap that was not seen to its end. Gaps are rounded up
        to minutes.

        Parameters
        ----------
        points
            Times at which the curve is read, evenly spaced in their logarithm.

        Returns
        -------
        DataFrame
            One row per point: ``span_s`` [s], ``survival`` [1] with Greenwood's ``survival_sd`` [1].
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
        import polars as pl

        wanted = whole("points", points, 2, MOST_POINTS)
        low, high = float(curve["span_s"][0]), float(curve["span_s"][-1])
        spans = pl.DataFrame({"span_s": [low * (high / low) ** (i / (wanted - 1)) for i in range(wanted)]})
        spans = spans.with_columns(pl.col("span_s") * (1.0 + 1e-12))
        read = spans.join_asof(curve, on="span_s")
        return read.select("span_s", "survival", survival_sd=pl.col("survival") * pl.col("spread"))

    def goodput(self, by: str = "week") -> pl.DataFrame:
        """Return what jobs held of the cluster by the day, week or month of their end, and how much of it was of use.

        Returns
        -------
        DataFrame
            One row per span: ``jobs`` [1]; ``accelerator_hours`` [h] held; ``goodput`` [1], the share that jobs held
            that ended completed.
        """
        one_of("span", by, SPANS)
        held = f"accelerators * epoch(ended - started) / {SECONDS_PER_HOUR}"
        return self.sql(
            f"select date_trunc('{by}', ended) as {by}, count(*)::double as jobs, sum({held}) as accelerator_hours, "
            f"sum({held}) filter (state = 'completed') / sum({held}) as goodput from jobs "
            "where ended is not null group by 1 order by 1"
        )

    def power(self, by: str = "week") -> pl.DataFrame:
        """Return ``samples`` [1] and their mean ``accelerator_power_w`` [W] by day, week or month."""
        one_of("span", by, SPANS)
        return self.sql(
            f"select date_trunc('{by}', moment) as {by}, count(*)::double as samples, avg(accelerator_power_w) as "
            "accelerator_power_w from power group by 1 order by 1"
        )

    @staticmethod
    def _days(by: str, group: Any, start: datetime, end: datetime, days: float) -> float:
        """Return how many of the days watched fall into a group."""
        if by in ("cause", "node"):
            return days
        if by == "age":
            return min(2.0 ** (group + 1), days) - (2.0**group if group else 0.0)
        ends = {"day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=32)}
        last = (group + ends[by]).replace(day=1) if by == "month" else group + ends[by]
        return (min(last, end) - max(group, start)).total_seconds() / SECONDS_PER_DAY
