"""The energy of published runs, computed again; only rows with measured energy or power count as evidence."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from factorykit.core import validation
from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError, unknown_name_message
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.providers.accelerators import chip_in
from factorykit.formulas.compute import training_flop, training_s
from factorykit.formulas.energy import facility_power_w, node_overhead_power_built_w, training_energy_kwh
from factorykit.model.performance.measured_steps import positive, warn_of_lost
from factorykit.model.performance.source_terms import read_notes

TOLERANCE: Final = 0.2
"""Relative error within which a measured energy counts as reproduced."""
KWH_PER_MWH: Final = 1000.0
ACCELERATORS_PER_NODE: Final = 8.0
"""Chips that share a host, as in the servers whose parts the vocabulary has."""
NUMBERS: Final = (
    *("energy_mwh", "power_w_per_accelerator", "pue", "gpu_hours", "accelerator_count", "wall_days", "tokens"),
    *("active_params", "total_params", "mfu", "step_time_s", "global_batch_tokens", "global_batch", "seq_len"),
    "tokens_per_s_per_gpu",
)
TEXTS: Final = ("id", "kind", "model", "hardware", "accelerator", "framework", "energy_basis", "energy_boundary")
HOST_PARTS: Final = ("host_power_w", "nics_per_node", "nic_power_w", "fan_power_w")
EVIDENCE: Final = {
    "measured": "measured",
    "measured power x hours": "measured power times hours",
    "tdp x hours": "assumed power times hours",
    "estimated (power x hours)": "assumed power times hours",
}
"""Evidence for each basis of a stated energy."""


def validate_energy(rows: pl.DataFrame | pl.LazyFrame | None = None) -> pl.DataFrame:
    """Compute the energy of runs from their hours and their power, and compare.

    Parameters
    ----------
    rows
        Any frame with columns of the ``training_runs`` table, as many of them as there are; by default the rows of
        that table that state an energy. Hours that are not published come from days, from throughput, or from compute
        at the row's MFU or, where it has none, at the median utilization of other whole runs on the same chip, or on
        any. Power that is not stated is the thermal design power of the chip, and for energy at the meter (kind
        ``energy_measured``) a chip's share of host, adapters and fans as well; where the maker publishes none, it is
        the median measured in other runs. The PUE is 1 where it is not stated, and where ``energy_boundary`` is
        ``it_equipment``.

    Returns
    -------
    DataFrame
        One row per run, in the order given: ``id``, ``name``, ``evidence`` (measured, measured power times hours,
        assumed power times hours, not stated), ``stated_kwh``, ``computed_kwh`` [kWh], ``error`` (computed over stated,
        less one), ``hours_from`` (published, days, throughput, compute), ``assumed`` (missing inputs),
        ``verdict`` (reproduced, missed, no evidence, not computable, not stated) and ``reason`` for the last three.

    Raises
    ------
    ScenarioError
        If ``rows`` is no frame, is empty, or has none of the columns that an energy needs.

    Examples
    --------
    >>> validate_energy().filter(name="T5-11B").select("verdict").item()
    'reproduced'
    """
    known = table("training_runs").collect()
    frame = _frame(known.filter(pl.col("energy_mwh").is_not_null()) if rows is None else rows)
    ready = frame.with_columns(
        _chip_column(frame, "peak_16bit_flop_per_s", "peak"),
        _chip_column(frame, "tdp_w", "tdp_w"),
        _usual(frame, _utilization(known), "utilization"),
        _usual(frame, known.filter(_measured_power()), "power_w_per_accelerator"),
    )
    hours, origin = _hours()
    before_pue = pl.col("energy_boundary").eq_missing("it_equipment")
    pue = pl.when(before_pue).then(1.0).otherwise(pl.col("pue").fill_null(1.0))
    parts = {name: quantity(name).default or 0.0 for name in HOST_PARTS}
    host_w = node_overhead_power_built_w(**parts, network_power_w=0.0, nodes=1.0) / ACCELERATORS_PER_NODE
    at_the_meter = pl.when(pl.col("kind") == "energy_measured").then(host_w).otherwise(0.0)
    watts = pl.coalesce("power_w_per_accelerator", pl.col("tdp_w") + at_the_meter, "usual_power_w_per_accelerator")
    power = facility_power_w(watts, pue)
    ready = ready.with_columns(
        hours_from=origin,
        evidence=_evidence(),
        stated_kwh=pl.col("energy_mwh") * KWH_PER_MWH,
        computed_kwh=training_energy_kwh(power, hours * SECONDS_PER_HOUR),
    ).with_columns(error=pl.col("computed_kwh") / pl.col("stated_kwh") - 1.0, assumed=_assumed(before_pue))
    verdict = (
        pl.when(pl.col("computed_kwh").is_null())
        .then(pl.lit("not computable"))
        .when(pl.col("stated_kwh").is_null())
        .then(pl.lit("not stated"))
        .when(~pl.col("evidence").str.starts_with("measured"))
        .then(pl.lit("no evidence"))
        .when(pl.col("error").abs() <= TOLERANCE)
        .then(pl.lit("reproduced"))
        .otherwise(pl.lit("missed"))
    )
    columns = ("evidence", "stated_kwh", "computed_kwh", "error", "hours_from", "assumed", "verdict")
    benchmark = pl.when(pl.col("framework") == "mlperf_container").then(pl.lit(", MLPerf benchmark"))
    return (
        ready.with_columns(verdict=verdict)
        .with_columns(reason=_reason())
        .select("id", pl.concat_str("model", benchmark, ignore_nulls=True).alias("name"), *columns, "reason")
    )


def _frame(rows: Any) -> pl.DataFrame:
    frame = validation.frame("rows", rows)
    if frame.is_empty():
        raise ScenarioError("the frame has no rows; nothing can be validated")
    wanted = ("energy_mwh", "hardware", "gpu_hours", "power_w_per_accelerator")
    if not set(wanted) & set(frame.columns):
        hint = unknown_name_message("column", frame.columns[0] if frame.columns else "", wanted)
        raise ScenarioError(f"the frame has none of the columns {', '.join(wanted)}; {hint}")
    if "energy_boundary" not in frame.columns:
        notes = [read_notes(row).get("energy_boundary") for row in frame.iter_rows(named=True)]
        frame = frame.with_columns(pl.Series("energy_boundary", notes, pl.String))
    there = frame.columns
    read = frame.select(
        *((pl.col(name) if name in there else pl.lit(None)).cast(pl.String).alias(name) for name in TEXTS),
        *(positive(frame, name).alias(name) for name in NUMBERS),
    )
    for name in (name for name in NUMBERS if name in there):
        lost = frame.filter(pl.col(name).cast(pl.String, strict=False).fill_null("") != "", read[name].is_null())[name]
        warn_of_lost(name, lost.unique(maintain_order=True).to_list(), "a number in the unit of the column,")
    return read.with_columns(accelerator=pl.coalesce("hardware", "accelerator"))


def _chip_column(frame: pl.DataFrame, column: str, name: str) -> pl.Series:
    values = [chip_in(chip).get(column) for chip in frame["accelerator"]]
    return pl.Series(name, values, pl.Float64)


def _family(hardware: str | None) -> str:
    """Return the name that chips of one kind share, without memory and form factor."""
    key = chip_in(hardware).get("accelerator", "")
    return key if key.startswith("tpu") else key.split("_")[0]


def _usual(frame: pl.DataFrame, seen: pl.DataFrame, name: str) -> pl.Series:
    """Return, for each row, the median of ``name`` over other runs on its kind of chip, or on any if there are none."""
    known = seen.drop_nulls(name)
    known = known.with_columns(pl.Series("family", [_family(chip) for chip in known["accelerator"]], pl.String))
    medians: list[Any] = []
    for key, chip in frame.select("id", "accelerator").iter_rows():
        others = known.filter(pl.col("id").ne_missing(pl.lit(key)))
        relatives = others.filter(pl.col("family") == _family(chip))
        medians.append((others if relatives.is_empty() else relatives)[name].median() if chip_in(chip) else None)
    return pl.Series(f"usual_{name}", medians, pl.Float64)


def _utilization(known: pl.DataFrame) -> pl.DataFrame:
    """Return the whole runs of a table with their 6ND over hours and peak."""
    whole = known.filter(pl.col("kind") == "training_run").drop_nulls("gpu_hours")
    whole = whole.with_columns(_chip_column(whole, "peak_16bit_flop_per_s", "peak"))
    work = training_flop(pl.col("active_params"), pl.col("tokens"))
    return whole.with_columns(utilization=work / (pl.col("gpu_hours") * SECONDS_PER_HOUR * pl.col("peak")))


def _hours() -> tuple[pl.Expr, pl.Expr]:
    """Return accelerator-hours, and where they come from."""
    batch = pl.coalesce("global_batch_tokens", pl.col("global_batch") * pl.col("seq_len"))
    rate = pl.coalesce("tokens_per_s_per_gpu", batch / (pl.col("step_time_s") * pl.col("accelerator_count")))
    work = training_flop(pl.coalesce("active_params", "total_params"), pl.col("tokens"))
    at_rate = training_s(work, pl.col("peak"), pl.coalesce("mfu", "usual_utilization"))
    ways = {
        "published": pl.col("gpu_hours"),
        "days": pl.col("accelerator_count") * pl.col("wall_days") * SECONDS_PER_DAY / SECONDS_PER_HOUR,
        "throughput": pl.col("tokens") / rate / SECONDS_PER_HOUR,
        "compute": at_rate / SECONDS_PER_HOUR,
    }
    origin = pl.coalesce(pl.when(hours.is_not_null()).then(pl.lit(name)) for name, hours in ways.items())
    return pl.coalesce(ways.values()), origin


def _measured_power() -> pl.Expr:
    return pl.col("energy_basis").str.starts_with("measured").fill_null(False)


def _evidence() -> pl.Expr:
    metered = pl.col("energy_basis").is_null() & (pl.col("kind") == "energy_measured")
    stated = pl.col("energy_basis").replace_strict(EVIDENCE, default="not stated", return_dtype=pl.String)
    return pl.when(metered).then(pl.lit("measured")).otherwise(stated)


def _assumed(before_pue: pl.Expr) -> pl.Expr:
    unstated, listed = pl.col("power_w_per_accelerator").is_null(), pl.col("tdp_w").is_not_null()
    sentences = {
        "power is the thermal design power": unstated & listed,
        "power measured in other runs": unstated & ~listed,
        "PUE 1": pl.col("pue").is_null() & ~before_pue,
        "utilization of other runs": (pl.col("hours_from") == "compute") & pl.col("mfu").is_null(),
    }
    texts = [pl.when(holds).then(pl.lit(sentence)) for sentence, holds in sentences.items()]
    return pl.concat_str(texts, separator="; ", ignore_nulls=True)


def _reason() -> pl.Expr:
    no_hours = pl.lit("no gpu_hours, and not all of tokens, parameters and a known chip to compute them from")
    chip = pl.col("accelerator").fill_null("nothing")
    no_chip = pl.format("no power_w_per_accelerator, and {} is no accelerator of the table", chip)
    missing = pl.when(pl.col("hours_from").is_null()).then(no_hours).otherwise(no_chip)
    verdict = pl.col("verdict")
    return (
        pl.when(verdict == "not computable")
        .then(missing)
        .when(verdict == "not stated")
        .then(pl.lit("the row states no energy"))
        .when((verdict == "no evidence") & (pl.col("evidence") == "not stated"))
        .then(pl.lit(f"energy_basis must be one of {', '.join(EVIDENCE)}"))
        .when(verdict == "no evidence")
        .then(pl.lit("the stated energy is itself hours times an assumed power"))
    )
