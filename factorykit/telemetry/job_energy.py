"""Accelerator energy by job from power samples."""

from __future__ import annotations

from typing import Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError, warn
from factorykit.formulas.energy import accelerator_energy_kwh
from factorykit.telemetry.exposure import nodes_in, window
from factorykit.telemetry.tidy import Log

MAX_INTERVALS_COVERED: Final = 3.0
"""Sampling intervals for which one sample counts at most."""
USUAL_QUANTILE: Final = 0.75
"""Quantile of the times between samples that is the sampling interval, also where two monitors sample in turn."""


def energy(log: Log) -> pl.DataFrame:
    r"""Return the accelerator energy by job.

    .. math:: E = \sum_i P_i\, (t_{i+1} - t_i)

    Parameters
    ----------
    log
        A log with power samples from :func:`factorykit.read_log`.

    Returns
    -------
    DataFrame
        One row per job, largest first: ``job``, null for accelerators without a job; ``accelerator_hours`` [h] covered
        by samples; ``accelerator_power_w`` [W], the mean; ``accelerator_energy_kwh`` [kWh]; ``coverage`` [1], the
        covered share of the accelerator-hours of the job, null without its record.

    Raises
    ------
    ScenarioError
        If no accelerator has two samples.

    Notes
    -----
    A sample covers the time to the next one, at most three sampling intervals of its accelerator, which are the upper
    quartile of the times between its samples; longer gaps are not covered. A sample belongs to the job it names, or
    else to the job that held its node alone.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "power.csv")
    >>> _ = file.write_text("at,node,accelerator,accelerator_power_w\n2026-03-01,a,0,700\n2026-03-01 01:00,a,0,700\n")
    >>> energy(fk.read_log(file))["accelerator_energy_kwh"].item()
    0.7
    """
    _, end = window(log)
    key = ["node", "accelerator"]
    ordered = log.power.sort(*key, "at", maintain_order=True)
    span = (pl.col("at").shift(-1).over(key) - pl.col("at")).dt.total_microseconds() / (1e6 * SECONDS_PER_HOUR)
    timed = ordered.with_columns(span=span)
    if same := timed.filter(span=0.0).height:
        warn(f"{same:,} power samples are at the time of another one of their accelerator; give node and index, too")
    spans = timed.filter(pl.col("span") > 0.0)
    if spans.is_empty():
        raise ScenarioError("no accelerator has two power samples; give the output of nvidia-smi or DCGM")
    usual = pl.col("span").quantile(USUAL_QUANTILE).over(key)
    covered = spans.with_columns(span=pl.min_horizontal("span", MAX_INTERVALS_COVERED * usual))
    held = log.jobs.filter(pl.col("started").is_not_null()).with_columns(pl.col("ended").fill_null(end))
    by_node = held.select("started", "ended", nodes_in("node_list").alias("node"), holder="job").explode("node")
    shared = (pl.col("started") < pl.col("ended").cum_max().shift(1)) | (pl.col("ended") > pl.col("started").shift(-1))
    by_node = by_node.sort("started").with_columns(is_shared=shared.over("node").fill_null(False))
    matched = covered.sort("at").join_asof(by_node, left_on="at", right_on="started", by="node", check_sortedness=False)
    owner = pl.coalesce("job", pl.when(pl.col("at") < pl.col("ended"), ~pl.col("is_shared")).then("holder"))
    hours = (pl.col("ended") - pl.col("started")).dt.total_seconds() / SECONDS_PER_HOUR * pl.col("accelerators")
    by_job = held.group_by("job").agg(held=hours.sum())
    sums = matched.group_by(owner.alias("job")).agg(
        accelerator_hours=pl.col("span").sum(),
        accelerator_power_w=(pl.col("accelerator_power_w") * pl.col("span")).sum() / pl.col("span").sum(),
    )
    known = sums.join(by_job, on="job", how="left").with_columns(
        accelerator_energy_kwh=accelerator_energy_kwh(pl.col("accelerator_hours"), pl.col("accelerator_power_w")),
        coverage=pl.col("accelerator_hours") / pl.when(pl.col("held") > 0).then("held"),
    )
    return known.drop("held").sort("accelerator_energy_kwh", "job", descending=[True, False], nulls_last=True)
