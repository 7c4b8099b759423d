"""The energy of published runs, computed again; only rows with measured energy or power count as evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorykit import datasets
from factorykit.constants import SECONDS_PER_HOUR
from factorykit.errors import ScenarioError
from factorykit.formulas.compute import training_flop, training_s
from factorykit.formulas.energy import facility_power_w, training_energy_kwh

if TYPE_CHECKING:
    import polars as pl

TOLERANCE = 0.2
"""Relative error within which a measured energy counts as reproduced."""

NEEDED = ("name", "evidence", "stated_kwh", "power_w_per_accelerator")


def validate_energy(rows: pl.DataFrame | pl.LazyFrame | None = None) -> pl.DataFrame:
    """Compute the energy of runs from their hours, or from their compute where hours were not published.

    Parameters
    ----------
    rows
        Any frame with the columns of the ``energies`` table; that table by default.

    Returns
    -------
    DataFrame
        One row per run: ``name``, ``evidence``, ``stated_kwh``, ``computed_kwh`` [kWh], ``error`` (relative),
        ``hours_from`` (published, compute), ``verdict`` (reproduced, missed, no evidence, not computable) and
        ``reason`` for the last two.

    Raises
    ------
    ScenarioError
        If a column is missing.

    Examples
    --------
    >>> validate_energy().filter(name="T5-11B").select("verdict").item()
    'reproduced'
    """
    import polars as pl

    frame = (datasets.table("energies") if rows is None else rows).lazy().collect()
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise ScenarioError(f"rows have no column {', '.join(missing)}; give the columns of the energies table")
    optional = ("accelerator_hours", "active_parameters", "tokens", "peak_flop_per_s", "mfu", "pue")
    frame = frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in optional if name not in frame.columns)
    work = training_flop(pl.col("active_parameters"), pl.col("tokens"))
    from_compute = training_s(work, pl.col("peak_flop_per_s"), pl.col("mfu")) / SECONDS_PER_HOUR
    hours = pl.coalesce("accelerator_hours", from_compute)
    power = facility_power_w(pl.col("power_w_per_accelerator"), pl.col("pue").fill_null(1.0))
    computed = training_energy_kwh(power, hours * SECONDS_PER_HOUR)
    error = pl.col("computed_kwh") / pl.col("stated_kwh") - 1.0
    measured = pl.col("evidence").is_in(["measured", "measured power times hours"])
    known = pl.col("computed_kwh").is_not_null()
    verdict = (
        pl.when(~measured)
        .then(pl.lit("no evidence"))
        .when(~known)
        .then(pl.lit("not computable"))
        .when(error.abs() <= TOLERANCE)
        .then(pl.lit("reproduced"))
        .otherwise(pl.lit("missed"))
    )
    reason = (
        pl.when(~measured)
        .then(pl.lit("the stated energy is itself hours times an assumed power"))
        .when(~known)
        .then(pl.lit("neither hours, nor parameters, tokens, peak and mfu are given"))
    )
    origin = pl.when(pl.col("accelerator_hours").is_not_null()).then(pl.lit("published")).otherwise(pl.lit("compute"))
    return frame.with_columns(computed.alias("computed_kwh")).select(
        "name",
        "evidence",
        "stated_kwh",
        "computed_kwh",
        error.alias("error"),
        pl.when(known).then(origin).alias("hours_from"),
        verdict.alias("verdict"),
        reason.alias("reason"),
    )
