"""Failures in a log and their rates: of the fleet, by cause, by node, by age."""

from __future__ import annotations

import math
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import integer, one_of, probability
from factorykit.formulas.reliability import cluster_mtbf_counted_s
from factorykit.model.reliability.reliability import mtbf_interval_s
from factorykit.telemetry.tidy import Log

if TYPE_CHECKING:
    import polars as pl

BEFORE_S: Final = 600.0
AFTER_S: Final = 300.0
"""A health check that fires in the ten minutes before a job's failure or in the five minutes after is its cause
(Kokolis et al. 2025, section II-D); events of a node within ten minutes are one failure. [s]"""
GROUPS: Final = ("cause", "node", "age")


def failures(log: Log) -> pl.DataFrame:
    r"""Return the failures in a log, each once.

    Parameters
    ----------
    log
        A log from :func:`factorykit.read_log`.

    Returns
    -------
    DataFrame
        One row per failure, sorted by time, plus one row for the time since the last: ``at``; ``node``, null if only a
        job reports the failure; ``job``; ``cause``; ``gap_s`` [s] since the previous failure of the fleet;
        ``gap_observed``, false in the last row; ``repair_s`` [s], null if no log has the end of the repair; and
        ``repair_observed``, false if the repair had not ended at the end of the log. Gaps and repairs are inputs of
        :func:`factorykit.lifetimes.fit`.

    Raises
    ------
    ScenarioError
        If the log has neither events nor jobs.

    Notes
    -----
    A failure is an event of that kind, a node that goes down other than for maintenance, or a job that ended with a
    node failure. All events of a node while it is down, or within ten minutes, are one failure. A job that ends in the
    ten minutes before to the five minutes after an event on one of its nodes failed because of that event.

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
    from_events = _failures_from_events(log)
    ended = log.jobs.filter(pl.col("state") == "node failure", pl.col("ended").is_not_null())
    ended = ended.select("job", pl.col("ended").alias("at"), nodes_in("node_list").alias("node")).explode("node")
    explained = ended.join(from_events.select("node", event_at="at"), on="node").filter(
        (pl.col("event_at") - pl.col("at")).dt.total_seconds().is_between(-BEFORE_S, AFTER_S)
    )
    from_jobs = ended.join(explained, on=["job", "at"], how="anti").unique(["job", "at"], maintain_order=True)
    from_jobs = from_jobs.select("at", pl.lit(None, pl.String).alias("node"), "job", cause=pl.lit("other"))
    both = pl.concat([from_events, from_jobs], how="diagonal").sort("at", maintain_order=True)
    repaired = (pl.col("back") - pl.col("at")).dt.total_seconds().cast(pl.Float64)
    censored = (pl.lit(end) - pl.col("at")).dt.total_seconds().cast(pl.Float64)
    rows = both.select(
        "at",
        "node",
        "job",
        "cause",
        gap_s=pl.col("at").diff().dt.total_microseconds() / 1e6,
        gap_observed=pl.int_range(pl.len()) > 0,
        repair_s=pl.when(pl.col("back").is_not_null()).then(repaired).when("is_down").then(censored),
        repair_observed=pl.when(pl.col("back").is_not_null()).then(True).when("is_down").then(False),
    )
    last_gap_s = (end - (rows["at"][-1] if rows.height else start)).total_seconds()
    return pl.concat([rows, pl.DataFrame({"gap_s": [last_gap_s], "gap_observed": [False]})], how="diagonal")


def mtbf(log: Log, by: str | None = None, *, nodes: float | None = None, confidence: float = 0.95) -> pl.DataFrame:
    r"""Return failure rates and repair times with exact confidence limits.

    .. math:: m_n = \frac{n_s T_\mathrm{obs}}{k_f}, \quad
        \left[ \frac{2 n_s T}{\chi^2_{1-\alpha/2,\, 2k+2}},\; \frac{2 n_s T}{\chi^2_{\alpha/2,\, 2k}} \right]

    Parameters
    ----------
    log
        A log from :func:`factorykit.read_log`.
    by
        ``cause``, ``node`` or ``age`` (days since the log begins, in doubling intervals); by default the whole fleet.
    nodes
        Servers watched; by default those that the log names.
    confidence
        Confidence level of all limits, in (0, 1).

    Returns
    -------
    DataFrame
        One row per group, most failures first (ages in order): ``failures`` [1]; ``node_days`` [d] watched;
        ``node_mtbf_s`` [s] with ``node_mtbf_s_low`` and ``node_mtbf_s_high``; ``cluster_mtbf_s`` [s], the time between
        such failures anywhere in the cluster, with its limits (for the fleet and for causes); ``repairs`` [1] with a
        known end; ``node_repair_s`` [s], the mean, with limits that are exact for exponentially distributed repairs;
        ``node_repair_median_s`` [s] with limits that are exact for every distribution. By node also ``p_value`` [1]:
        the probability that the worst of as many equal nodes has at least this number of failures.

    Raises
    ------
    UnknownName, ScenarioError
        If ``by`` is an unknown group, the log has neither events nor jobs, or it names no nodes and none are given.

    Notes
    -----
    Limits are those of Garwood for a count at a constant rate. An unfinished repair is censored at the end of the log.

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
    >>> rate = mtbf(fk.read_log(file)).row(0, named=True)
    >>> rate["failures"], rate["node_days"], rate["node_repair_s"] / 3600
    (1.0, 20.0, 24.0)
    """
    import polars as pl

    if by is not None:
        one_of("group of failures", by, GROUPS)
    probability("confidence", confidence)
    start, end = window(log)
    watched_s = (end - start).total_seconds()
    names = fleet_nodes(log)
    count = integer("nodes", nodes) if nodes is not None else len(names)
    if not count:
        raise ScenarioError("the log names no nodes; give nodes, the number of servers watched")
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
    rates = [
        label
        | _rates(group, days_, 1 if by == "node" else count, confidence, is_cluster=by in (None, "cause"))
        | ({"p_value": _p_value(group.height, rows.height, count)} if by == "node" else {})
        for label, group, days_ in groups
    ]
    schema = {by: pl.String} if by in ("cause", "node") else {}
    return pl.DataFrame(rates, schema_overrides=schema, infer_schema_length=None)


def window(log: Log) -> tuple[datetime, datetime]:
    """Return the first and the last timestamp of a log.

    Raises
    ------
    ScenarioError
    """
    if not isinstance(log, Log):
        raise ScenarioError(f"log must be a Log, got {short_repr(log)}; read one with fk.read_log")
    times = [
        time
        for frame, names in (
            (log.events, ("at", "until")),
            (log.jobs, ("submitted", "started", "ended")),
            (log.steps, ("at",)),
            (log.power, ("at",)),
        )
        for name in names
        for time in (frame[name].min(), frame[name].max())
        if isinstance(time, datetime)
    ]
    if not times or min(times) == max(times):
        raise ScenarioError("the log covers no period; give logs with timestamps, of a day or more")
    return min(times), max(times)


def fleet_nodes(log: Log) -> list[str]:
    """Return the names of all nodes in a log."""
    import polars as pl

    allocated = log.jobs.select(nodes_in("node_list").alias("node")).explode("node")
    named = [frame.select("node") for frame in (log.events, log.steps, log.power)]
    return pl.concat([allocated, *named])["node"].drop_nulls().unique().sort().to_list()


def nodes_in(column: str) -> pl.Expr:
    """Return the nodes of node lists in the notation of Slurm; each distinct list is expanded once."""
    import polars as pl

    from factorykit.telemetry.parsing import node_names

    def expand(lists: pl.Series) -> pl.Series:
        expanded = {text: node_names(text) if text else None for text in lists.unique()}
        return pl.Series([expanded[text] for text in lists], dtype=pl.List(pl.String))

    return pl.col(column).map_batches(expand, return_dtype=pl.List(pl.String))


def _failures_from_events(log: Log) -> pl.DataFrame:
    """Return the failures among events, bursts of one node as one: at, node, job, cause, back, is_down."""
    import polars as pl

    events = log.events.filter(pl.col("kind").is_in(["failure", "down"]) & (pl.col("cause").ne_missing("maintenance")))
    ups = log.events.filter(pl.col("kind") == "up").select("node", up="at").sort("up")
    has_downs, has_ups = (events["kind"] == "down").any(), ups.height > 0
    is_down = (pl.col("kind") == "down") | pl.lit(not has_downs)
    joined = events.sort("at").join_asof(
        ups, left_on="at", right_on="up", by="node", strategy="forward", check_sortedness=False
    )
    repairs = joined.with_columns(
        back=pl.coalesce("until", pl.when(is_down).then("up")),
        is_down=is_down & pl.lit(has_ups or log.events["until"].is_not_null().any()),
    ).sort("node", "at", maintain_order=True)
    never = pl.lit(datetime.max.replace(tzinfo=None)).dt.replace_time_zone("UTC")
    out = pl.coalesce("back", pl.when("is_down").then(never), "at")
    burst_end = pl.max_horizontal(out, pl.col("at") + pl.duration(seconds=BEFORE_S)).cum_max().shift(1).over("node")
    is_new = (pl.col("at") > burst_end).fill_null(True) | pl.col("node").is_null()
    known = pl.col("cause").filter(pl.col("cause") != "other")
    return (
        repairs.with_columns(failure=is_new.cum_sum())
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


def _rates(rows: pl.DataFrame, days: float, nodes: int, confidence: float, *, is_cluster: bool) -> dict[str, Any]:
    import polars as pl

    count, window_s = float(rows.height), days * SECONDS_PER_DAY
    rates = {"failures": count, "node_days": nodes * days}
    rates |= _mean_time("node_mtbf_s", count, nodes * window_s, confidence)
    rates |= _mean_time("cluster_mtbf_s", count, window_s, confidence) if is_cluster else {}
    repairs = rows.filter(pl.col("repair_s").is_not_null())
    ended = float(repairs["repair_observed"].sum())
    rates["repairs"] = ended
    rates |= _mean_time("node_repair_s", ended, float(repairs["repair_s"].sum()), confidence)
    times = repairs.select(pl.when("repair_observed").then("repair_s").otherwise(math.inf))["repair_s"].sort()
    return rates | dict(zip(_with_limits("node_repair_median_s"), _median(times.to_list(), confidence), strict=True))


def _with_limits(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _mean_time(name: str, count: float, time_s: float, confidence: float) -> dict[str, float | None]:
    """Return a mean time with exact limits; all null without time, and a null mean without events."""
    if not time_s:
        return dict.fromkeys(_with_limits(name))
    mean = cluster_mtbf_counted_s(count, time_s) if count else None
    return dict(zip(_with_limits(name), (mean, *mtbf_interval_s(count, time_s, confidence)), strict=True))


def _median(times: list[float], confidence: float) -> tuple[float | None, float | None, float | None]:
    """Return the median of sorted times with the order statistics that are its distribution-free limits."""
    count = len(times)
    if not count:
        return None, None, None
    middle = 0.5 * (times[(count - 1) // 2] + times[count // 2])
    below = int(need("scipy.stats").binom.ppf(0.5 * (1.0 - confidence), count, 0.5))
    return middle, times[below - 1] if below else 0.0, times[count - below] if below else math.inf


def _p_value(count: int, all_failures: int, nodes: int) -> float:
    """Return the probability that the worst of equal nodes has at least this number of failures."""
    at_least = need("scipy.stats").poisson.sf(count - 1, all_failures / nodes)
    return -math.expm1(nodes * math.log1p(-float(at_least))) if at_least < 1.0 else 1.0
