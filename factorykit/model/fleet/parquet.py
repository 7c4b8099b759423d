"""Years of failures, jobs and samples in Parquet, asked where they lie: out of core, in little memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit.borders import file_path, need, number, one_of, whole
from factorykit.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.datasets.query import quoted, sql_over
from factorykit.errors import ScenarioError
from factorykit.model.fleet.imitation import BEGIN, REPAIR_MEDIAN_S, REPAIR_SIGMA, SHARES
from factorykit.model.reliability.statistics import mtbf_interval_s
from factorykit.model.study.design import CELLS_A_PART, Design
from factorykit.model.study.study import answered

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
    for table in there:
        lacking = [column for column in TABLES[table] if column not in opened.sql(f"from {table} limit 0").columns]
        if lacking:
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

        wanted = whole("points", points)
        if wanted < 2:
            raise ScenarioError(f"points = {points!r} is no length of a curve; give 2 or more")
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


def imitate_failures(
    out: str | Path,
    nodes: int,
    days: float,
    node_mtbf_s: float,
    *,
    lifetime_shape: float = 1.0,
    seed: int = 0,
    engine: str = "local",
) -> pl.LazyFrame:
    """Draw the failures of a fleet, as many as wanted, into a study: what an archive of them would hold.

    Parameters
    ----------
    out, engine
        The folder of the study and who makes its parts, as in :func:`factorykit.sweep`.
    nodes, days
        Servers, and how long they are watched [d].
    node_mtbf_s
        Mean time at risk from the end of a repair to the next failure [s].
    lifetime_shape
        Of the Weibull law of these times: below 1 failures come in bursts, above 1 they keep a distance.
    seed
        The same seed gives the same rows.

    Returns
    -------
    LazyFrame
        One row per failure, node by node: ``at``, ``node``, ``cause``, ``repair_s`` [s].
    """
    mean, shape = number("node_mtbf_s", node_mtbf_s), number("lifetime_shape", lifetime_shape)
    span = number("days", days)
    if min(mean, shape, span) <= 0.0 or whole("nodes", nodes) < 1:
        raise ScenarioError(
            f"nodes = {nodes}, days = {span:g}, node_mtbf_s = {mean:g}, lifetime_shape = {shape:g}: one is not above 0"
        )
    return answered(_Failures(nodes, span, mean, shape, whole("seed", seed)), file_path("out", out), "imitate", engine)


@dataclass(frozen=True)
class _Failures(Design):
    """Failures of nodes, some nodes to a part, each drawn by its own seed."""

    nodes: int
    days: float
    node_mtbf_s: float
    lifetime_shape: float
    seed: int

    @property
    def _most(self) -> int:
        """Failures of a node that are drawn: as many as come but once in a billion."""
        mean = self.days * SECONDS_PER_DAY / self.node_mtbf_s
        return math.ceil(mean + 7.0 * math.sqrt(mean) / min(self.lifetime_shape, 1.0) + 20.0)

    @property
    def _nodes_a_part(self) -> int:
        return max(CELLS_A_PART // len(TABLES["failures"]) // self._most, 1)

    @property
    def rows(self) -> int:
        """As many as are expected."""
        return round(self.nodes * self.days * SECONDS_PER_DAY / self.node_mtbf_s)

    @property
    def parts(self) -> int:
        """Some nodes to a part."""
        return math.ceil(self.nodes / self._nodes_a_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return the failures of some nodes."""
        import polars as pl

        np = need("numpy")
        random = np.random.default_rng([self.seed, number])
        first = number * self._nodes_a_part
        shape = (min(self._nodes_a_part, self.nodes - first), self._most)
        scale = self.node_mtbf_s / math.gamma(1.0 + 1.0 / self.lifetime_shape)
        repair_s = REPAIR_MEDIAN_S * np.exp(REPAIR_SIGMA * random.standard_normal(shape))
        at_s = np.cumsum(scale * random.weibull(self.lifetime_shape, shape), axis=1)
        at_s[:, 1:] += np.cumsum(repair_s[:, :-1], axis=1)
        held = at_s < self.days * SECONDS_PER_DAY
        weights = np.array([*SHARES.values()])
        cause = random.choice(len(weights), int(held.sum()), p=weights / weights.sum())
        node = np.broadcast_to(np.arange(first, first + shape[0])[:, None], shape)[held]
        begin = BEGIN.astimezone(UTC).replace(tzinfo=None)
        return pl.DataFrame({"at": at_s[held], "node": node, "cause": cause, "repair_s": repair_s[held]}).select(
            at=pl.lit(begin) + pl.duration(microseconds=(pl.col("at") * 1e6).cast(pl.Int64)),
            node=pl.col("node").cast(pl.Int64),
            cause=pl.Series(list(SHARES)).gather(pl.Series(cause)),
            repair_s="repair_s",
        )

    def said(self) -> dict[str, Any]:
        """Return the law and its seed."""
        return {"nodes": self.nodes, "days": self.days, "node_mtbf_s": self.node_mtbf_s} | {
            "lifetime_shape": self.lifetime_shape,
            "seed": self.seed,
        }
