"""Comparison of the performance model with measured runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import polars as pl

from factorykit.core import validation
from factorykit.core.errors import DatasetError, warn
from factorykit.core.vocabulary import neutral_values, quantity
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.constants import constants
from factorykit.formulas.step.interval import NORMAL_95
from factorykit.model.performance import memory_calibration
from factorykit.model.performance.calibration import MAX_ERROR_FACTOR, Calibration
from factorykit.model.performance.layout_features import LAYOUT_FEATURES
from factorykit.model.performance.measured_steps import GIB, MAX_LISTED, measured_step_s, positive, tidied
from factorykit.model.performance.memory_calibration import FACTORS, PRIOR_SD, TERMS, reported_bytes
from factorykit.model.performance.software import shared_residual
from factorykit.model.performance.training_runs import fastest_that_fit, prepared

OUTPUTS: Final = ("step_s", "step_low_s", "step_high_s", *memory_calibration.OUTPUTS, "fits", "predicted_mfu")
MEDIAN: Final = 0.6744897501960817
"""Standard deviations that hold half of a normal distribution."""
MAX_CONTRADICTION: Final = 0.1
"""Relative difference up to which two columns of a row agree, as their numbers are rounded."""


def validate(
    rows: Any = None, *, leave_family_out: bool | None = None, calibration: Mapping[str, float] | None = None
) -> pl.DataFrame:
    """Predict measured training runs and compare.

    Parameters
    ----------
    rows
        A polars frame with columns of the ``training_runs`` table; the shipped table by default. ``hardware``,
        ``network``, ``precision``, ``sharding``, ``recompute``, ``framework`` and ``note`` may be in the words of their
        source; ``assumed`` names the columns that were read from a note.
    leave_family_out
        Whether a row is predicted with constants that were found without its family (the word of ``group`` before the
        first hyphen). By default so for the shipped table, and not for other rows, which no constant has seen.
    calibration
        Result of :func:`factorykit.calibrate`, or a mapping of constants, empty for none. By default rows whose
        framework is known share the residual of published runs of the same software on similar chips and layouts.

    Returns
    -------
    polars.DataFrame
        One row a run, in the order given: ``id``, ``group``, ``family``, ``accelerator_count``, ``step_s``,
        ``step_low_s`` and ``step_high_s`` [s], ``memory_peak_bytes`` [byte], ``memory_binding`` (the largest term),
        ``fits``, ``predicted_mfu``, ``measured_s`` [s] (null where a row states no possible one), ``expected_error``
        (the median absolute error of rows known as well as this one), ``error`` (predicted over measured, less one),
        ``memory_error``, ``assumed`` (missing inputs that a rule filled, as the interleaving of a pipeline of recent
        software, which :func:`factorykit.evaluate` leaves out),
        ``reason`` (cause of a missing prediction; null otherwise).

    Raises
    ------
    ScenarioError
        If ``rows`` is no frame, is empty, has none of the columns that a prediction needs, or has lists in one.

    Examples
    --------
    >>> import polars as pl
    >>> run = {"hardware": "H100-80GB SXM", "accelerator_count": 64, "layers": 80, "hidden": 8192, "heads": 64}
    >>> run |= {"kv_heads": 8, "ffn": 28672, "mlp_gated": 1, "vocab": 128256, "seq_len": 8192, "tp": 4, "pp": 4}
    >>> run |= {"cp": 2, "vp": 5, "micro_batch": 1, "global_batch": 128, "precision": "bf16", "year": 2025}
    >>> validate(pl.DataFrame([run])).select(pl.col("step_s").round(), "reason")
    shape: (1, 2)
    ┌────────┬────────┐
    │ step_s ┆ reason │
    │ ---    ┆ ---    │
    │ f64    ┆ str    │
    ╞════════╪════════╡
    │ 17.0   ┆ null   │
    └────────┴────────┘
    """
    shipped = rows is None
    frame = tidied(table("training_runs") if shipped else rows)
    left_out = shipped if leave_family_out is None else validation.boolean("leave_family_out", leave_family_out)
    moved = {} if calibration is None else validation.mapping("calibration", calibration)
    for name, value in moved.items():
        known = (*constants(), *FACTORS, "spread_alone")
        quantity(validation.one_of("constant of a calibration", name, known)).check(value)
    ready, reasons = prepared(frame, {name: value for name, value in moved.items() if name in PRIOR_SD})
    stated = frame.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("row"),
        *[
            (pl.col(name) if name in frame.columns else pl.lit(None)).alias(name)
            for name in ("id", "group", "accelerator_count")
        ],
        positive(frame, "mem_gib_per_gpu").alias("measured_gib"),
    ).with_columns(measured_s=measured_step_s(frame, ready))
    if not shipped:
        _warn_of_contradictions(frame)
    if calibration is None and ready.height:
        ready = ready.hstack(shared_residual(evaluate(ready, LAYOUT_FEATURES), without=None if left_out else ()))
    predicted = _predicted(ready, left_out, moved) if ready.height else _nothing()
    wide = stated.join(predicted, on="row", how="left", maintain_order="left").join(
        reasons.rename({"family": "unpredicted_family"}), on="row", how="left", maintain_order="left"
    )
    result = wide.select(
        "id",
        "group",
        pl.coalesce("family", "unpredicted_family").alias("family"),
        "accelerator_count",
        "step_s",
        "step_low_s",
        "step_high_s",
        "memory_peak_bytes",
        "memory_binding",
        "fits",
        "predicted_mfu",
        "measured_s",
        ((pl.col("step_high_s") / pl.col("step_s")).log() * (MEDIAN / NORMAL_95)).alias("expected_error"),
        (pl.col("step_s") / pl.col("measured_s") - 1.0).alias("error"),
        (pl.col("reported_bytes") / (pl.col("measured_gib") * GIB) - 1.0).alias("memory_error"),
        "assumed",
        "reason",
    )
    if not shipped:
        _warn_of_implausible(frame, ready, result)
    return result


def _warn_of_contradictions(frame: pl.DataFrame) -> None:
    """Warn of rows whose batch or replicas contradict their other columns."""
    number = partial(positive, frame)
    tensor, stages, context = (number(name).fill_null(1.0) for name in ("tp", "pp", "cp"))
    replicas = number("accelerator_count") / (tensor * stages * context)
    expected = {
        "global_batch_tokens": (number("global_batch") * number("seq_len"),),
        "global_batch": (number("micro_batch") * number("gradient_accumulation_steps") * replicas,),
        "dp": (replicas, replicas * context),
    }
    for name, values in expected.items():
        differs = pl.all_horizontal((number(name) / value - 1.0).abs() > MAX_CONTRADICTION for value in values)
        rows = frame.select(row=pl.int_range(pl.len()), stated=number(name), other=values[0], wrong=differs)
        message = f"row {{}}: {name} = {{:g}} contradicts the other columns, from which {{:g}} follows"
        _warn_of_rows(message, rows.filter("wrong"))


def _warn_of_implausible(frame: pl.DataFrame, ready: pl.DataFrame, result: pl.DataFrame) -> None:
    """Warn of measurements that no unit of the row explains, unless a time and a rate of FLOP agree, as in a stall."""
    times = ("step_time_s", "tokens_per_s_per_gpu")
    by_rate = measured_step_s(frame.drop(times, strict=False), ready)
    agree = pl.any_horizontal(positive(frame, name).is_not_null() for name in times)
    agree &= (by_rate / result["measured_s"] - 1.0).abs() <= MAX_CONTRADICTION
    error = pl.when(frame.select(agree.fill_null(value=False)).to_series().not_()).then("error").alias("error")
    rows = result.select(pl.int_range(pl.len()).alias("row"), error, "memory_error", "step_s", "measured_s")
    for name, kind in (("error", "time of a step"), ("memory_error", "memory")):
        ratios = rows.select("row", ratio=1.0 / (1.0 + pl.col(name)))
        wrong = ratios.filter(~pl.col("ratio").is_between(1.0 / MAX_ERROR_FACTOR, MAX_ERROR_FACTOR))
        _warn_of_rows(f"row {{}}: the measured {kind} is {{:.3g}} times the prediction; check units and counts", wrong)
    rate = pl.coalesce(positive(frame, "tflops_per_gpu"), positive(frame, "mfu", 1.0), positive(frame, "hfu", 1.0))
    stated = rows.hstack(frame.select(rate.alias("rate"), pl.int_range(pl.len()).alias("number")))
    lost = stated.drop_nulls(["step_s", "rate"]).filter(pl.col("measured_s").is_null()).select("row", "rate")
    _warn_of_rows("row {}: a rate of {:g} is not compared, above the peak of the chip; give tflops_per_gpu", lost)


def _warn_of_rows(message: str, rows: pl.DataFrame) -> None:
    for row in rows.head(MAX_LISTED).iter_rows():
        warn(message.format(*row))


def _nothing() -> pl.DataFrame:
    numbers = dict.fromkeys((*OUTPUTS[:3], "memory_peak_bytes", "reported_bytes", "fits", "predicted_mfu"), pl.Float64)
    texts = {"family": pl.String, "assumed": pl.String, "memory_binding": pl.String}
    return pl.DataFrame(schema={"row": pl.Int64, **texts, **numbers})


def _predicted(ready: pl.DataFrame, left_out: bool, calibration: Mapping[str, float]) -> pl.DataFrame:
    """Return one row a run: of its scenarios the fastest that fits, otherwise the one that lacks least memory."""
    if left_out:
        other = constants(_any_family())
        names = [name for name, value in constants().items() if value != other[name] and name not in ready.columns]
        fitted = [{"family": family, **{n: constants(family)[n] for n in names}} for family in ready["family"].unique()]
        ready = ready.join(pl.DataFrame(fitted), on="family", how="left", maintain_order="left")
        ready = ready.with_columns(pl.col("evidence_families", "evidence_software").sub(1.0).clip(0.0))
    usual = {**neutral_values(), **constants()}
    ready = ready.with_columns(
        (pl.col(name) * (value / usual[name]) if name in ready.columns else pl.lit(value)).alias(name)
        for name, value in calibration.items()
    )
    if isinstance(calibration, Calibration):
        ready = ready.hstack(calibration.local_correction(evaluate(ready, LAYOUT_FEATURES)))
    wide = evaluate(ready, OUTPUTS)
    binding = pl.concat_list(TERMS).list.arg_max()
    named = binding.replace_strict(dict(enumerate(TERMS)), return_dtype=pl.String)
    best = fastest_that_fit(wide).with_columns(
        named.alias("memory_binding"), reported_bytes(), pl.col("memory_peak_bytes") * pl.col("chip_devices")
    )
    columns = ("row", "family", "assumed", "memory_binding", "reported_bytes", "memory_peak_bytes")
    return best.select(*columns, *OUTPUTS[:3], *OUTPUTS[-2:])


def _any_family() -> str:
    rows = table("performance_constants").filter(left_out="all_in").collect()
    if rows.is_empty():
        raise DatasetError("performance_constants: no row with left_out = all_in; run benchmarks/fit_performance.py")
    every = table("performance_constants").select("left_out").unique(maintain_order=True).collect()
    return str(every["left_out"][-1])


def errors(validated: pl.DataFrame, by: str = "family") -> pl.DataFrame:
    """Return how far predictions miss, one row per value of ``by``, most rows first.

    Parameters
    ----------
    validated
        Result of :func:`validate`.
    by
        ``family``, ``group``, or any column joined to it.

    Returns
    -------
    polars.DataFrame
        ``by``, ``rows``, ``median_error`` (signed), ``median_absolute_error``, ``p90_absolute_error``,
        ``coverage``: the share of measured times within the 90 % interval, and ``half_width``: the median of half its
        width, as a logarithm.
    """
    inside = pl.col("measured_s").is_between("step_low_s", "step_high_s")
    seen = validated.filter(pl.col("error").is_not_null())
    return (
        seen.group_by(by)
        .agg(
            pl.len().cast(pl.Float64).alias("rows"),
            pl.col("error").median().alias("median_error"),
            pl.col("error").abs().median().alias("median_absolute_error"),
            pl.col("error").abs().quantile(0.9, "linear").alias("p90_absolute_error"),
            inside.mean().alias("coverage"),
            ((pl.col("step_high_s") / pl.col("step_low_s")).log().median() / 2.0).alias("half_width"),
        )
        .sort("rows", by, descending=[True, False])
    )
