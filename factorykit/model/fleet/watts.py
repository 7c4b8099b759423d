"""Energy by job, from samples of power."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from factorykit.errors import ScenarioError
from factorykit.formulas.energy import accelerator_energy_kwh
from factorykit.logs.tidy import Log
from factorykit.model.fleet.faults import nodes_in, window

if TYPE_CHECKING:
    import polars as pl

LONGEST_GAP: Final = 3.0
"""Usual distances between samples beyond which a sample does not speak for what follows."""


def energy(log: Log) -> pl.DataFrame:
    r"""Return the energy of accelerators by job.

    .. math:: E = \sum_i P_i\, (t_{i+1} - t_i)

    Parameters
    ----------
    log
        What :func:`factorykit.read_log` returns, with samples of power.

    Returns
    -------
    DataFrame
        One row per job, the one that took most first: ``job``, null for what no job held; ``accelerator_hours`` [h]
        that samples speak for; ``accelerator_power_w`` [W], the mean; ``accelerator_energy_kwh`` [kWh]; ``told_share``
        [1] of the hours that the job held, null without its record.

    Raises
    ------
    ScenarioError
        If the log has no two samples of an accelerator.

    Notes
    -----
    A sample speaks for the time to the next one, at most three times the usual distance; beyond that nothing is
    assumed. A sample belongs to the job it names, else to the job that held its node then.

    Examples
    --------
    >>> import tempfile, pathlib, factorykit as fk
    >>> file = pathlib.Path(tempfile.mkdtemp(), "power.csv")
    >>> _ = file.write_text("at,node,accelerator,accelerator_power_w\n2026-03-01,a,0,700\n2026-03-01 01:00,a,0,700")
    >>> energy(fk.read_log(file))["accelerator_energy_kwh"].item()
    0.7
    """
    import polars as pl

    _, end = window(log)
    of = ["node", "accelerator"]
    ordered = log.power.sort(*of, "at", maintain_order=True)
    span = (pl.col("at").shift(-1).over(of) - pl.col("at")).dt.total_microseconds() / 3.6e9
    spans = ordered.with_columns(span=span).filter(pl.col("span") > 0.0)
    if spans.is_empty():
        raise ScenarioError("the log has no two samples of one accelerator's power; give nvidia-smi's or DCGM's")
    usual = pl.col("span").median()
    told = spans.with_columns(span=pl.min_horizontal("span", LONGEST_GAP * usual))
    held = log.jobs.filter(pl.col("started").is_not_null()).with_columns(pl.col("ended").fill_null(end))
    on = held.select("started", "ended", nodes_in("on").alias("node"), holder="job").explode("node").sort("started")
    found = told.sort("at").join_asof(on, left_on="at", right_on="started", by="node", check_sortedness=False)
    owner = pl.coalesce("job", pl.when(pl.col("at") < pl.col("ended")).then("holder"))
    hours = (pl.col("ended") - pl.col("started")).dt.total_seconds() / 3600.0 * pl.col("accelerators")
    by_job = held.group_by("job").agg(held=hours.sum())
    sums = (
        found.with_columns(job=owner)
        .group_by("job")
        .agg(
            accelerator_hours=pl.col("span").sum(),
            accelerator_power_w=(pl.col("accelerator_power_w") * pl.col("span")).sum() / pl.col("span").sum(),
        )
    )
    energy_kwh = accelerator_energy_kwh(pl.col("accelerator_hours"), pl.col("accelerator_power_w"))
    return (
        sums.join(by_job, on="job", how="left")
        .select(
            "job",
            "accelerator_hours",
            "accelerator_power_w",
            accelerator_energy_kwh=energy_kwh,
            told_share=pl.col("accelerator_hours") / pl.when(pl.col("held") > 0).then("held"),
        )
        .sort("accelerator_energy_kwh", "job", descending=[True, False], nulls_last=True)
    )
