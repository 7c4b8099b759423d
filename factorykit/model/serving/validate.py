"""Comparison of predicted with measured serving."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import polars as pl

from factorykit.core import validation
from factorykit.core.errors import FactorykitError, ScenarioError
from factorykit.core.extras import need
from factorykit.data.tables import table
from factorykit.model.performance.measured_steps import measured_number, warn_of_lost
from factorykit.model.serving import predict
from factorykit.model.serving.points import OTHER, read_point, renamed
from factorykit.model.serving.residual import FAMILY

RESULTS: Final = (
    *("ttft_s", "ttft_low_s", "ttft_high_s", "tpot_s", "tpot_low_s", "tpot_high_s"),
    *("tokens_per_s", "tokens_per_s_low", "tokens_per_s_high"),
)
MEASURED: Final = {
    "ttft_error": ("ttft_s", "silicon_ttft_ms", 1e-3),
    "tpot_error": ("tpot_s", "silicon_tpot_ms", 1e-3),
    "tokens_per_s_error": ("tokens_per_s", "tokens_per_s", 1.0),
}
"""Predicted and measured column of each error, and the scale of the latter."""
READ_AS: Final = {1e-3: ("time_to_first_token_s", "milliseconds"), 1.0: ("output_tokens_per_s", "tokens per second")}
"""Quantity as which a measured cell with a unit is read, and the unit of its column in words, by that scale."""
FULL: Final = "the weights do not fit into the memory of the stated accelerators; give more accelerators"


def validate_serving(rows: Any = None) -> pl.DataFrame:
    """Predict measured serving points and benchmark results, and compare.

    Parameters
    ----------
    rows
        A polars frame with columns of the ``serving_points`` table, or of ``inference_results`` or MLPerf's summary
        (those with a scenario), or with usual other names of them (``engine``, ``input_tokens``, ``tp``); measured
        columns may be missing. Columns may state the rates and the memory of an unknown chip, and the shape of an
        unknown model as in ``training_runs``. By default both shipped tables, each point predicted without the other
        points of its sweep, each result without its submission's system.

    Returns
    -------
    polars.DataFrame
        One row each, in the order given: ``id``, ``ttft_s``, ``ttft_low_s``, ``ttft_high_s``, ``tpot_s``,
        ``tpot_low_s``, ``tpot_high_s`` [s], ``tokens_per_s`` with ``tokens_per_s_low`` and ``tokens_per_s_high`` [1/s]
        (bounds of 90 % intervals; null are latencies of benchmarks, and ``tpot_s`` of one token), ``ttft_error``,
        ``tpot_error``, ``tokens_per_s_error`` (predicted over measured, less one), ``assumed`` (engine, chip or
        model without measured points, predicted as others on average with a wider interval), and ``reason`` if not
        predicted.

    Raises
    ------
    ScenarioError
        If ``rows`` is no frame, is empty, or lacks columns that a prediction needs.

    Notes
    -----
    Formulas of `factorykit.formulas.serving`, times a residual that a Gaussian process takes from the shipped points.
    Requests whose cache does not fit wait until others end.

    Examples
    --------
    >>> import polars as pl
    >>> row = {"id": "mine", "backend": "vllm", "model_path": "meta-llama/Llama-3.1-70B", "system": "h200_sxm"}
    >>> row |= {"mode": "agg", "precision": "fp8", "isl": 1024, "osl": 1024, "batch_size": 16, "tp_size": 4}
    >>> validate_serving(pl.DataFrame([row]))["tpot_s"].round(3).item()
    0.012
    """
    need("numpy")
    if rows is None:
        points = _points(table("serving_points").collect(), shipped=True)
        return pl.concat([points, _results(table("inference_results").collect(), shipped=True)])
    frame = validation.frame("rows", rows).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
    if frame.is_empty():
        raise ScenarioError("rows must have at least one row, got none")
    of, frame = renamed(frame, "serving_points", "inference_results")
    frame = frame.with_columns([_measured(frame[name], scale) for _, name, scale in MEASURED.values() if name in frame])
    return _points(frame, shipped=False) if of == "serving_points" else _results(frame, shipped=False)


def _measured(cells: pl.Series, scale: float) -> pl.Series:
    """Return a measured column as numbers above 0, and warn of other cells, which nothing is compared with."""
    known_as, unit = READ_AS[scale]

    numbers = {text: measured_number(text, known_as, scale) for text in map(str, cells)}
    read = {text: number if number and 0.0 < number < math.inf else None for text, number in numbers.items()}
    lost = [text for text, number in read.items() if number is None and text not in ("", "None")]
    warn_of_lost(cells.name, lost, unit)
    return pl.Series(cells.name, [read[str(cell)] for cell in cells], pl.Float64)


def _read(frame: pl.DataFrame, reader: Callable[..., Any]) -> tuple[list[int], list[Any], list[str | None]]:
    numbers, ready, reasons = [], [], []
    for number, row in enumerate(frame.iter_rows(named=True)):
        try:
            ready.append(reader(row))
        except (FactorykitError, ValueError, TypeError, KeyError) as error:
            reasons.append(str(error))
            continue
        numbers.append(number)
        reasons.append(None)
    return numbers, ready, reasons


def sweep(words: Mapping[str, str], decode: Mapping[str, float]) -> str:
    """Return the sweep of a point: what it shares with points of another concurrency."""
    layout = ("input_tokens", "output_tokens", "tensor_parallel", "attention_data_parallel")
    return " ".join([*words.values(), *(f"{decode[name]:.6g}" for name in layout)])


def _points(frame: pl.DataFrame, *, shipped: bool) -> pl.DataFrame:
    numbers, ready, reasons = _read(frame, read_point)
    if shipped:
        found = _without([sweep(point.words, point.decode) for point in ready])
    else:
        found = predict.latencies(predict.rows_of(ready)) if ready else {}
        following = [1.0 if point.decode["output_tokens"] > 1.0 else float("nan") for point in ready]
        found |= {name: found[name] * following for name in found if name.startswith("tpot")}
    assumed = [", ".join(word for word in FAMILY if point.words[word] == OTHER) or None for point in ready]
    return _table(frame, numbers, {**found, "assumed": assumed}, reasons)


@cache
def measured_points() -> pl.DataFrame:
    """Return the shipped points beside their predictions without the points of their sweep.

    One row each, in the order of the table: words and load of the point, ``ttft_measured_s``, ``tpot_measured_s``, and
    the columns of :func:`validate_serving`.

    >>> measured_points().filter(accelerator="h100_sxm", architecture="llama3_8b").height
    114
    """
    frame, rows = table("serving_points").collect(), predict.measured()[0]
    names = {"accelerator": "chip", "architecture": "model", "number_format": "format"}
    return frame.select(
        *(pl.Series(name, [row[names.get(name, name)] for row in rows.words]) for name in (*names, "engine", "mode")),
        *("isl", "osl", rows.load["concurrency"].alias("concurrency")),
        *((pl.col(f"silicon_{name}_ms") / 1e3).alias(f"{name}_measured_s") for name in ("ttft", "tpot")),
    ).hstack(_points(frame, shipped=True))


def _without(groups: Sequence[str]) -> dict[str, Any]:
    """Return predictions of the shipped points, each without the points of its group."""
    rows, found = predict.measured()[:2]
    return predict.summary(rows, found, *predict.without("ttft", groups), *predict.without("tpot", groups))


def _results(frame: pl.DataFrame, *, shipped: bool) -> pl.DataFrame:
    numbers, ready, reasons = _read(frame, predict.read_submission)
    groups = [" ".join(point.words[word] for word in ("chip", "engine", "model")) for point in ready]
    found = predict.benchmark_rates(ready, groups if shipped else None) if ready else {}
    return _table(frame, numbers, found, reasons)


def _table(frame: pl.DataFrame, numbers: list[int], found: dict[str, Any], reasons: list[str | None]) -> pl.DataFrame:
    import numpy as np

    assumed = dict(zip(numbers, found.get("assumed", ()), strict=False))

    def column(name: str) -> pl.Series:
        values = np.full(frame.height, np.nan)
        values[numbers] = found.get(name, np.nan)
        return pl.Series(name, values, nan_to_null=True)

    def measured(name: str, kind: Any = pl.Float64) -> pl.Expr:
        return pl.col(name).cast(kind, strict=False) if name in frame.columns else pl.lit(None, kind)

    return frame.select(
        measured("id", pl.String).alias("id"),
        *map(column, RESULTS),
        *((column(new) / measured(old) / scale - 1.0).alias(name) for name, (new, old, scale) in MEASURED.items()),
        pl.Series("assumed", [assumed.get(number) for number in range(frame.height)], pl.String),
        pl.coalesce(pl.Series("reason", reasons), pl.when(column("tokens_per_s").is_null()).then(pl.lit(FULL))),
    )
