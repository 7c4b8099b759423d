"""Failures in a log, one row each, and how often they come: of the fleet, by cause, by node, by age."""

from __future__ import annotations

import math
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from factorykit.borders import need, one_of, share, whole
from factorykit.constants import SECONDS_PER_DAY
from factorykit.errors import ScenarioError, shown
from factorykit.formulas.reliability import cluster_mtbf_counted_s
from factorykit.logs.tidy import Log
from factorykit.model.reliability.statistics import mtbf_interval_s

if TYPE_CHECKING:
    import polars as pl

BEFORE_S: Final = 600.0
AFTER_S: Final = 300.0
"""A check that fires in the ten minutes before a job's failure or the five after is its cause (Kokolis et al. 2025,
section II-D); what a node tells again within ten minutes is the same failure. [s]"""
GROUPS: Final = ("cause", "node", "age")


def failures(log: Log) -> pl.DataFrame:
    r"""Return the failures that a log tells, each once.

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns.

    Returns
    -------
    DataFrame
        One row per failure in the order of time, plus one row for the time since the last: ``at``; ``node``, null where
        only a job tells of it; ``job``; ``cause``; ``gap_s`` [s] since the failure before, anywhere in the fleet;
        ``gap_observed``, false in the last row; ``repair_s`` [s], null where no log says when the node was back; and
        ``repair_observed``, false where it was not back at the end. :func:`factorykit.lifetimes.fit` takes gaps and
        repairs.

    Raises
    ------
    ScenarioError
        If the log tells neither events nor jobs.

    Notes
    -----
    A failure is an event of that kind, a node that goes down other than for maintenance, or a job that its node ended.
    What a node tells while it is down, or within ten minutes, is one failure; a job that ends in the ten minutes before
    to the five minutes after an event on one of its nodes failed of that.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "events.csv")
    >>> _ = file.write_text("at,node,kind\n2026-03-01,a,failure\n2026-03-01 00:05,a,down\n2026-03-02 00:05,a,up")
    >>> failures(fk.read_log(file)).select("node", "repair_s").row(0)
    ('a', 86700.0)
    """
    import polars as pl

    start, end = window(log)
    told = _told(log)
    of_jobs = log.jobs.filter(pl.col("state") == "node failure", pl.col("ended").is_not_null())
    of_jobs = of_jobs.select("job", pl.col("ended").alias("at"), nodes_in("on").alias("node")).explode("node")
    near = of_jobs.join(told.select("node", seen="at"), on="node").filter(
        (pl.col("seen") - pl.col("at")).dt.total_seconds().is_between(-BEFORE_S, AFTER_S)
    )
    alone = of_jobs.join(near, on=["job", "at"], how="anti").unique(["job", "at"], maintain_order=True)
    alone = alone.select("at", pl.lit(None, pl.String).alias("node"), "job", cause=pl.lit("other"))
    both = pl.concat([told, alone], how="diagonal").sort("at", maintain_order=True)
    repaired = (pl.col("back") - pl.col("at")).dt.total_seconds().cast(pl.Float64)
    open_ = (pl.lit(end) - pl.col("at")).dt.total_seconds().cast(pl.Float64)
    rows = both.select(
        "at",
        "node",
        "job",
        "cause",
        gap_s=pl.col("at").diff().dt.total_microseconds() / 1e6,
        gap_observed=pl.int_range(pl.len()) > 0,
        repair_s=pl.when(pl.col("back").is_not_null()).then(repaired).when("is_down").then(open_),
        repair_observed=pl.when(pl.col("back").is_not_null()).then(True).when("is_down").then(False),
    )
    quiet = (end - (rows["at"][-1] if rows.height else start)).total_seconds()
    return pl.concat([rows, pl.DataFrame({"gap_s": [quiet], "gap_observed": [False]})], how="diagonal")


def mtbf(log: Log, by: str | None = None, *, nodes: float | None = None, confidence: float = 0.95) -> pl.DataFrame:
    r"""Return how often something fails and how long repairs take, with exact limits.

    .. math:: m_n = \frac{n_s T_\mathrm{obs}}{k_f}, \quad
        \left[ \frac{2 n_s T}{\chi^2_{1-\alpha/2,\, 2k+2}},\; \frac{2 n_s T}{\chi^2_{\alpha/2,\, 2k}} \right]

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns.
    by
        ``cause``, ``node`` or ``age`` (days since the log begins, in doubling spans); by default the fleet as a whole.
    nodes
        Servers watched; by default those that the log names.
    confidence
        Of all limits, in (0, 1).

    Returns
    -------
    DataFrame
        One row per group, the one with most failures first (ages in their order): ``failures`` [1]; ``node_days`` [d]
        watched; ``node_mtbf_s`` [s] with ``node_mtbf_s_low`` and ``node_mtbf_s_high``; ``cluster_mtbf_s`` [s], the time
        between such failures anywhere, with its limits (of the whole and of causes); ``repairs`` [1] told;
        ``node_repair_s`` [s], the mean, with limits that are exact where repairs come at a constant rate;
        ``node_repair_median_s`` [s] with limits that are exact for every law. By node also ``chance`` [1]: that the
        worst of as many equal nodes has so many failures.

    Raises
    ------
    UnknownName, ScenarioError
        If ``by`` is no such group, or the log tells no events and jobs, or names no nodes and none are given.

    Notes
    -----
    Limits are Garwood's, of a count at a constant rate. A repair that goes on counts with the time it took so far.

    Examples
    --------
    >>> import polars as pl, tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "events.csv")
    >>> _ = file.write_text('''at,node,kind,cause
    ... 2026-03-01,a,notice,
    ... 2026-03-02,a,down,accelerator
    ... 2026-03-03,a,up,
    ... 2026-03-11,b,notice,
    ... ''')
    >>> found = mtbf(fk.read_log(file)).row(0, named=True)
    >>> found["failures"], found["node_days"], found["node_repair_s"] / 3600
    (1.0, 20.0, 24.0)
    """
    import polars as pl

    if by is not None:
        one_of("group of failures", by, GROUPS)
    share("confidence", confidence)
    start, end = window(log)
    watched_s = (end - start).total_seconds()
    names = fleet_nodes(log)
    count = whole("nodes", nodes) if nodes is not None else len(names)
    if not count:
        raise ScenarioError("the log names no nodes; give nodes, how many servers it is of")
    rows = failures(log).filter(pl.col("at").is_not_null())
    if by == "age":
        days = [0.0, *(2.0**n for n in range(64) if 2.0**n < watched_s / SECONDS_PER_DAY), watched_s / SECONDS_PER_DAY]
        age = (pl.col("at") - pl.lit(start)).dt.total_seconds() / SECONDS_PER_DAY
        groups = [
            ({"age_from": low, "age_to": high}, rows.filter(age >= low, (age < high) | (high == days[-1])), high - low)
            for low, high in pairwise(days)
        ]
    elif by is None:
        groups = [({}, rows, watched_s / SECONDS_PER_DAY)]
    else:
        counted = rows[by].value_counts(sort=True)[by].to_list()
        groups = [
            ({by: each}, rows.filter(pl.col(by).eq_missing(each)), watched_s / SECONDS_PER_DAY) for each in counted
        ]
    told = [
        label
        | _row(group, days_, 1 if by == "node" else count, confidence, is_of_fleet=by in (None, "cause"))
        | ({"chance": _chance(group.height, rows.height, count)} if by == "node" else {})
        for label, group, days_ in groups
    ]
    schema = {by: pl.String} if by in ("cause", "node") else {}
    return pl.DataFrame(told, schema_overrides=schema, infer_schema_length=None)


def window(log: Log) -> tuple[datetime, datetime]:
    """Return the first and the last moment that a log tells of.

    Raises
    ------
    ScenarioError
    """
    if not issubclass(type(log), Log):
        raise ScenarioError(f"log = {shown(log)} is no log; give what fk.read_log returns")
    moments = [
        moment
        for frame, names in (
            (log.events, ("at", "until")),
            (log.jobs, ("submitted", "started", "ended")),
            (log.steps, ("at",)),
            (log.power, ("at",)),
        )
        for name in names
        for moment in (frame[name].min(), frame[name].max())
        if isinstance(moment, datetime)
    ]
    if not moments or min(moments) == max(moments):
        raise ScenarioError("the log tells of no span of time; give logs with moments, of a day or more")
    return min(moments), max(moments)


def fleet_nodes(log: Log) -> list[str]:
    """Return the names of all nodes that a log tells of."""
    import polars as pl

    listed = log.jobs.select(nodes_in("on").alias("node")).explode("node")
    named = [frame.select("node") for frame in (log.events, log.steps, log.power)]
    return pl.concat([listed, *named])["node"].drop_nulls().unique().sort().to_list()


def nodes_in(column: str) -> pl.Expr:
    """Return the nodes of lists as Slurm writes them; each different list is read once."""
    import polars as pl

    from factorykit.logs.cells import names

    def read(lists: pl.Series) -> pl.Series:
        different = lists.unique()
        known = {each: names(each) if each else None for each in different}
        return pl.Series([known[each] for each in lists], dtype=pl.List(pl.String))

    return pl.col(column).map_batches(read, return_dtype=pl.List(pl.String))


def _told(log: Log) -> pl.DataFrame:
    """Return the failures that events tell, storms of one node as one: at, node, job, cause, back, is_down."""
    import polars as pl

    events = log.events.filter(pl.col("kind").is_in(["failure", "down"]) & (pl.col("cause").ne_missing("maintenance")))
    ups = log.events.filter(pl.col("kind") == "up").select("node", up="at").sort("up")
    says_down, says_up = (events["kind"] == "down").any(), ups.height > 0
    is_down = (pl.col("kind") == "down") | pl.lit(not says_down)
    joined = events.sort("at").join_asof(
        ups, left_on="at", right_on="up", by="node", strategy="forward", check_sortedness=False
    )
    told = joined.with_columns(
        back=pl.coalesce("until", pl.when(is_down).then("up")),
        is_down=is_down & pl.lit(says_up or log.events["until"].is_not_null().any()),
    ).sort("node", "at", maintain_order=True)
    never = pl.lit(datetime.max.replace(tzinfo=None)).dt.replace_time_zone("UTC")
    out = pl.coalesce("back", pl.when("is_down").then(never), "at")
    still = pl.max_horizontal(out, pl.col("at") + pl.duration(seconds=BEFORE_S)).cum_max().shift(1).over("node")
    is_new = (pl.col("at") > still).fill_null(True) | pl.col("node").is_null()
    known = pl.col("cause").filter(pl.col("cause") != "other")
    return (
        told.with_columns(failure=is_new.cum_sum())
        .group_by("failure", maintain_order=True)
        .agg(
            pl.col("at", "node").first(),
            pl.col("job").drop_nulls().first(),
            cause=pl.coalesce(known.drop_nulls().first(), pl.lit("other")),
            back=pl.col("back").max(),
            is_down=pl.col("is_down").any(),
        )
        .drop("failure")
    )


def _row(rows: pl.DataFrame, days: float, nodes: int, confidence: float, *, is_of_fleet: bool) -> dict[str, Any]:
    import polars as pl

    count, span_s = float(rows.height), days * SECONDS_PER_DAY
    told = {"failures": count, "node_days": nodes * days}
    told |= _limited("node_mtbf_s", count, nodes * span_s, confidence)
    told |= _limited("cluster_mtbf_s", count, span_s, confidence) if is_of_fleet else {}
    repairs = rows.filter(pl.col("repair_s").is_not_null())
    ended = float(repairs["repair_observed"].sum())
    told["repairs"] = ended
    told |= _limited("node_repair_s", ended, float(repairs["repair_s"].sum()), confidence)
    until = repairs.select(pl.when("repair_observed").then("repair_s").otherwise(math.inf))["repair_s"].sort()
    return told | dict(zip(_three("node_repair_median_s"), _median(until.to_list(), confidence), strict=True))


def _three(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _limited(name: str, count: float, time_s: float, confidence: float) -> dict[str, float | None]:
    """Return a mean time with its exact limits; null where there is no time, and no mean of no event."""
    if not time_s:
        return dict.fromkeys(_three(name))
    limits = mtbf_interval_s(count, time_s, confidence)
    return dict(zip(_three(name), (cluster_mtbf_counted_s(count, time_s) if count else None, *limits), strict=True))


def _median(times: list[float], confidence: float) -> tuple[float | None, float | None, float | None]:
    """Return the median of times in their order, and the two of them that hold the true one whatever their law."""
    count = len(times)
    if not count:
        return None, None, None
    middle = 0.5 * (times[(count - 1) // 2] + times[count // 2])
    below = int(need("scipy.stats").binom.ppf(0.5 * (1.0 - confidence), count, 0.5))
    return middle, times[below - 1] if below else 0.0, times[count - below] if below else math.inf


def _chance(count: int, all_failures: int, nodes: int) -> float:
    """Return the chance that the worst of equal nodes has at least so many failures."""
    at_least = need("scipy.stats").poisson.sf(count - 1, all_failures / nodes)
    return -math.expm1(nodes * math.log1p(-float(at_least))) if at_least < 1.0 else 1.0
