"""Failures in a log and their rates: of the fleet, by cause, by node, by age."""

from __future__ import annotations

import math
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.extras import need
from factorykit.core.validation import one_of, probability
from factorykit.formulas.reliability import cluster_mtbf_counted_s
from factorykit.model.reliability.reliability import mtbf_interval_s
from factorykit.telemetry.attempts import interrupted
from factorykit.telemetry.exposure import accelerator_jobs, exposure_of, fleet_nodes, nodes_in, window
from factorykit.telemetry.tidy import Log

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
    A failure is an event of that kind, a node that goes down other than for maintenance, a job that ended with a node
    failure, or one that made steps, failed and was continued by a later attempt or another job, as in :func:`goodput`.
    All events of a node while it is down, or within ten minutes, are one failure. A job that ends in the ten minutes
    before to the five minutes after an event on one of its nodes failed because of that event. Where jobs have
    accelerators, other jobs, and nodes of other jobs alone, do not count.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "events.csv")
    >>> _ = file.write_text("at,node,kind\n2026-03-01,a,failure\n2026-03-01 00:05,a,down\n2026-03-02 00:05,a,up\n")
    >>> failures(fk.read_log(file)).select("node", "repair_s").row(0)
    ('a', 86700.0)
    """
    start, end = window(log)
    from_events = _failures_from_events(log)
    ended = pl.concat([accelerator_jobs(log).filter(pl.col("state") == "node failure"), interrupted(log)])
    ended = ended.filter(pl.col("ended").is_not_null())
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


def mtbf(
    log: Log, by: str | None = None, *, exposure: float | pl.DataFrame | None = None, confidence: float = 0.95
) -> pl.DataFrame:
    r"""Return failure rates and repair times with exact confidence limits.

    .. math:: m_n = \frac{T}{k_f}, \quad
        \left[ \frac{2 T}{\chi^2_{1-\alpha/2,\, 2k+2}},\; \frac{2 T}{\chi^2_{\alpha/2,\, 2k}} \right],
        \quad T = \sum_i (t_i^\mathrm{until} - t_i^\mathrm{since})

    Parameters
    ----------
    log
        A log from :func:`factorykit.read_log`.
    by
        ``cause``, ``node`` or ``age`` (days since the exposure begins, in doubling intervals); by default the whole
        fleet.
    exposure
        Nodes and periods that were watched: a table with ``node``, ``since`` and ``until`` (timestamps with a zone), or
        the number of nodes watched over the whole log. By default the jobs and node events of a scheduler state the
        nodes that the log names, over their period, and journals and health checks a node each, from their first to
        their last line, whether it fails or not. Where jobs have accelerators, nodes of other jobs alone do not count.
    confidence
        Confidence level of all limits, in (0, 1).

    Returns
    -------
    DataFrame
        One row per group, most failures first (ages in order): ``failures`` [1] within the exposure, and
        ``failures_unwatched`` [1] outside of it, which count in no rate; ``nodes`` [1] and ``node_days`` [d] watched,
        and the sources of this ``exposure``;
        ``node_mtbf_s`` [s] with ``node_mtbf_s_low`` and ``node_mtbf_s_high``; ``cluster_mtbf_s`` [s], the time between
        such failures anywhere in the cluster, with its limits (for the fleet and for causes); ``repairs`` [1] with a
        known end; ``node_repair_s`` [s], the mean, with limits that are exact for exponentially distributed repairs;
        ``node_repair_median_s`` [s] with limits that are exact for every distribution. By node also ``p_value`` [1]:
        the probability that the worst of as many equal nodes has at least this number of failures.

    Raises
    ------
    UnknownName, ScenarioError
        If ``by`` is an unknown group, the log covers no period, or it states no exposure and none is given.

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
    >>> rate = mtbf(fk.read_log(file), exposure=2).row(0, named=True)
    >>> rate["failures"], rate["node_days"], rate["node_repair_s"] / 3600
    (1.0, 20.0, 24.0)
    """
    if by is not None:
        by = one_of("group of failures", by, GROUPS)
    probability("confidence", confidence)
    watched = exposure_of(log, exposure)
    start, days = watched.start, watched.days
    counts = {"nodes": watched.nodes, "exposure": watched.source}
    rows = watched.mark(failures(log).filter(pl.col("at").is_not_null()))
    groups: list[tuple[dict[str, Any], pl.DataFrame, float, float]] = [({}, rows, 0.0, days)]
    if by == "age":
        ends = [0.0, *(2.0**n for n in range(64) if 2.0**n < days), days]
        age = (pl.col("at") - pl.lit(start)).dt.total_seconds() / SECONDS_PER_DAY
        groups = [
            ({"age_from": low, "age_to": high}, rows.filter(age >= low, (age < high) | (high == days)), low, high)
            for low, high in pairwise(ends)
        ]
    elif by is not None:
        counted = rows[by].value_counts(sort=True)[by].to_list()
        groups = [({by: value}, rows.filter(pl.col(by).eq_missing(value)), 0.0, days) for value in counted]
    rates = [
        label
        | counts
        | _rates(
            group,
            (watched.of(label["node"]) if by == "node" else watched).node_days(start, low, high),
            high - low if by in (None, "cause") else None,
            confidence,
        )
        for label, group, low, high in groups
    ]
    if by == "node":
        total = sum(rate["failures"] for rate in rates)
        rates = [rate | {"nodes": 1.0, "p_value": _p_value(rate["failures"], total, counts["nodes"])} for rate in rates]
    schema = {by: pl.String} if by in ("cause", "node") else {}
    return pl.DataFrame(rates, schema_overrides=schema, infer_schema_length=None)


def _failures_from_events(log: Log) -> pl.DataFrame:
    """Return the failures among events, bursts of one node as one: at, node, job, cause, back, is_down."""
    is_of_fleet = pl.col("node").is_in([None, *fleet_nodes(log)], nulls_equal=True)
    is_failure = pl.col("kind").is_in(["failure", "down"]) & (pl.col("cause").ne_missing("maintenance"))
    events = log.events.filter(is_of_fleet, is_failure)
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
    bursts = repairs.group_by(is_new.cum_sum().alias("failure"), maintain_order=True).agg(
        pl.col("at", "node").first(),
        pl.col("job").drop_nulls().first(),
        cause=pl.coalesce(known.drop_nulls().first(), pl.lit("other")),
        back=pl.col("back").max(),
        is_down=pl.col("is_down").any(),
    )
    return bursts.drop("failure")


def _rates(rows: pl.DataFrame, node_days: float, days: float | None, confidence: float) -> dict[str, Any]:
    """Return rates of failures per node, and in the cluster if its ``days`` are given; and repair times."""
    count = float(rows["is_watched"].sum())
    rates = {"failures": count, "failures_unwatched": rows.height - count, "node_days": node_days}
    rates |= _mean_time("node_mtbf_s", count, node_days * SECONDS_PER_DAY, confidence)
    rates |= {} if days is None else _mean_time("cluster_mtbf_s", count, days * SECONDS_PER_DAY, confidence)
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


def _p_value(count: float, all_failures: float, nodes: float) -> float:
    """Return the probability that the worst of equal nodes has at least this number of failures."""
    at_least = need("scipy.stats").poisson.sf(count - 1, all_failures / nodes)
    return -math.expm1(nodes * math.log1p(-float(at_least))) if at_least < 1.0 else 1.0
