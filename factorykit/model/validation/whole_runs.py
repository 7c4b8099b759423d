"""Whole training runs predicted from their plans: hours, days and energy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.accelerators import chip_in
from factorykit.engine.providers.constants import constants
from factorykit.formulas.compute import training_flop
from factorykit.model.performance.measured_steps import positive, tidied
from factorykit.model.performance.run_architectures import shape_by_name, usual_sequence_length
from factorykit.model.performance.run_cells import NUMBERS, SHAPE, software_year
from factorykit.model.performance.run_layouts import DEFAULT_BATCH_TOKENS
from factorykit.model.performance.source_terms import read_words
from factorykit.model.planning.published_runs import DEFAULT_DAYS, MAX_ACCELERATORS, MIN_ACCELERATORS, START_LAG
from factorykit.model.validation.validate import validate

OUTCOMES: Final = (
    *("step_time_s", "tokens_per_s_per_gpu", "gpu_hours", "wall_days", "mfu", "hfu", "tflops_per_gpu"),
    *("mem_gib_per_gpu", "energy_mwh", "power_w_per_accelerator", "co2_t", "cost_usd"),
    *("interruptions", "effective_training_time", "checkpoint_save_s"),
)
"""Columns that are unknown before a run ends; predictions do not read them."""
NULL_UTILIZATION: Final = 0.4
"""Model FLOP utilization of the baseline, 6 N D at 40 % of the 16-bit peak."""
FULLY_SHARDED: Final = 3.0
"""ZeRO stage that shards a model without further degrees; below it the layout is searched."""
OVERHEAD_SHARE: Final = 0.15
"""Time of a run beyond its steps and its failures, over both: evaluation, stalls, rollbacks and manual restarts. Its
median over the table is 0.18, 0.16 to 0.20 without any one publisher; Llama 3 prints a tenth with failures."""


def validate_runs(rows: pl.DataFrame | pl.LazyFrame | None = None) -> pl.DataFrame:
    """Predict whole training runs from their plans, and compare with their outcomes.

    Parameters
    ----------
    rows
        Any frame with columns of the ``training_runs`` table; by default its rows of kind ``training_run`` with tokens.
        Columns that are known only at the end of a run are compared with, and never predict.

    Returns
    -------
    polars.DataFrame
        One row a run, in the order given: ``id``, ``model``, ``accelerators``, ``step_s`` [s], ``goodput``,
        ``gpu_hours`` with ``gpu_hours_low`` and ``gpu_hours_high``, ``wall_days``, ``energy_mwh`` (at the chip's design
        power and the stated PUE), ``measured_gpu_hours``, ``measured_days``, ``measured_mwh``, ``error`` (predicted
        over measured hours, less one), ``null_error`` (that of 6 N D at 40 % of the 16-bit peak), ``days_error``,
        ``energy_error``, ``assumed`` (missing inputs), ``reason`` (cause of a missing prediction; null otherwise).
        Hours with ``step_time`` as ``gpu_hours_basis`` include neither failures nor overhead.

    Raises
    ------
    ScenarioError
        If ``rows`` is no frame, is empty, or has none of the columns that a prediction needs.

    Examples
    --------
    >>> found = validate_runs()
    >>> bool(found["error"].abs().median() < found["null_error"].abs().median())
    True
    """
    shipped = table("training_runs").filter(pl.col("tokens").is_not_null(), kind="training_run")
    frame = tidied(shipped if rows is None else rows)
    planned = [_planned(row) for row in frame.drop(OUTCOMES, strict=False).iter_rows(named=True)]
    plans = pl.DataFrame(planned, infer_schema_length=None)
    steps = validate(plans.drop("filled"), leave_family_out=False)
    goodput, watts, peak = zip(*[_site(row) for row in plans.iter_rows(named=True)], strict=True)
    tokens, active, total = (positive(frame, name) for name in ("tokens", "active_params", "total_params"))
    filled = (plans["filled"], steps["assumed"])
    runs = frame.select(
        *[(frame[name] if name in frame.columns else pl.lit(None, pl.String).alias(name)) for name in ("id", "model")],
        plans["accelerator_count"].alias("accelerators"),
        *[steps[name] for name in ("step_s", "step_low_s", "step_high_s", "reason")],
        pl.concat_str(filled, separator=", ", ignore_nulls=True).str.strip_chars(", ").alias("assumed"),
        pl.Series("goodput", goodput, dtype=pl.Float64),
        pl.Series("stops", _stops(frame, goodput), dtype=pl.Float64),
        pl.Series("watts", watts, dtype=pl.Float64),
        pl.Series("peak", peak, dtype=pl.Float64),
        (tokens / plans["global_batch_tokens"]).alias("steps"),
        training_flop(pl.coalesce(active, total), tokens).alias("flop"),
        pl.coalesce(positive(frame, "pue"), 1.0).alias("pue"),
        positive(frame, "gpu_hours").alias("measured_gpu_hours"),
        positive(frame, "wall_days").alias("measured_days"),
        positive(frame, "energy_mwh").alias("measured_mwh"),
    )
    whole = pl.col("steps") * pl.col("accelerators") * pl.col("stops") / SECONDS_PER_HOUR
    runs = runs.with_columns(
        (pl.col(f"step{end}_s") * whole).alias(f"gpu_hours{end}") for end in ("", "_low", "_high")
    ).with_columns(
        wall_days=pl.col("gpu_hours") * SECONDS_PER_HOUR / SECONDS_PER_DAY / pl.col("accelerators"),
        energy_mwh=pl.col("gpu_hours") * pl.col("watts") * pl.col("pue") / 1e6,
        null_hours=pl.col("flop") / (NULL_UTILIZATION * pl.col("peak")) / SECONDS_PER_HOUR,
        reason=pl.coalesce("reason", pl.when(pl.col("steps").is_null()).then(pl.lit("tokens not stated"))),
    )
    return runs.select(
        *("id", "model", "accelerators", "step_s", "goodput", "gpu_hours", "gpu_hours_low", "gpu_hours_high"),
        *("wall_days", "energy_mwh", "measured_gpu_hours", "measured_days", "measured_mwh"),
        (pl.col("gpu_hours") / pl.col("measured_gpu_hours") - 1.0).alias("error"),
        (pl.col("null_hours") / pl.col("measured_gpu_hours") - 1.0).alias("null_error"),
        (pl.col("wall_days") / pl.col("measured_days") - 1.0).alias("days_error"),
        (pl.col("energy_mwh") / pl.col("measured_mwh") - 1.0).alias("energy_error"),
        *("assumed", "reason"),
    )


def _stops(frame: pl.DataFrame, goodput: Sequence[float | None]) -> list[float | None]:
    """Return the time of each run over that of its steps: 1 where hours exclude failures and overhead."""
    steps_alone = [row.get("gpu_hours_basis") == "step_time" for row in frame.iter_rows(named=True)]
    ratios = [(1.0 + OVERHEAD_SHARE) / share if share else None for share in goodput]
    return [1.0 if alone and ratio else ratio for alone, ratio in zip(steps_alone, ratios, strict=True)]


def _number(row: Mapping[str, Any], name: str) -> float | None:
    try:
        number = float(row.get(name) or "nan")
    except ValueError:
        return None
    return number if number > 0.0 else None


def _planned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a whole run as a row of a step; inputs that its source omits are named in ``filled``.

    The shape is that of the model's name, or of a dense model of its size; the number of accelerators is that with
    which the run takes `DEFAULT_DAYS`, and a missing layout is searched.
    """
    row = read_words(row)
    year = software_year(row) or constants()["software_year"]
    known = shape_by_name({**row, **{name: _number(row, name) for name in NUMBERS - {"mlp_gated"} if name in row}})
    known["kind"], filled = "throughput", []
    known |= {"year": year - START_LAG - 0.5, "release_month": None}
    total = _number(row, "total_params")
    if not known.get("layers") and total and not _number(row, "experts"):
        filled.append("shape")
        known |= _of_size(total)
    if not known.get("seq_len"):
        filled.append("sequence_length")
        known["seq_len"] = usual_sequence_length(year)
    batch = _number(row, "global_batch_tokens") or (_number(row, "global_batch") or 0.0) * known["seq_len"]
    if not batch:
        filled.append("global_batch_size")
        batch = DEFAULT_BATCH_TOKENS
    count, active = _number(row, "accelerator_count"), _number(row, "active_params") or total
    peak = chip_in(row.get("accelerator")).get("peak_16bit_flop_per_s")
    if not count and active and peak and _number(row, "tokens"):
        filled.append("accelerators")
        seconds = training_flop(active, float(row["tokens"])) / (NULL_UTILIZATION * peak)
        count = 2.0 ** round(math.log2(seconds / (DEFAULT_DAYS * SECONDS_PER_DAY)))
        most = 2.0 ** math.floor(math.log2(batch / known["seq_len"]))
        count = known["accelerator_count"] = min(max(count, MIN_ACCELERATORS), MAX_ACCELERATORS, most)
    split_over = known.get("tp") or known.get("pp")
    if not split_over and (_number(row, "zero_stage") or 0.0) < FULLY_SHARDED:
        known |= {"sharding": None, "zero_stage": None}
    split = math.prod(_number(row, name) or 1.0 for name in ("tp", "pp", "cp"))
    replicas = (count or split) / split if split_over or known.get("zero_stage") else 1.0
    sequences = _number(row, "global_batch") or replicas * max(round(batch / known["seq_len"] / replicas), 1)
    known["global_batch"], known["global_batch_tokens"] = sequences, sequences * known["seq_len"]
    return {**known, "filled": ", ".join(filled)}


def _of_size(total: float) -> dict[str, Any]:
    """Return the columns of the shape of a dense model of a size."""
    from factorykit.model.scenario.models import dense

    shape = dense(total)
    return {column: shape[name] for column, name in SHAPE.items() if shape.get(name)}


def _site(row: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Return goodput of a plan from sourced defaults, design power of its chip and peak in 16 bits."""
    chip = chip_in(row.get("accelerator"))
    peak = chip.get("peak_16bit_flop_per_s")
    total, count = row.get("total_params"), row.get("accelerator_count")
    if not (chip and total and count):
        return None, None, peak
    run = {"accelerators": float(count), "accelerator": chip["accelerator"], "parameters": float(total)}
    return evaluate(run, "goodput", assume=True)["goodput"], chip["tdp_w"], peak
