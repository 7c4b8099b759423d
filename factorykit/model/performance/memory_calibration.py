"""Calibration of the memory model on measured peaks of a few layouts.

Logarithms of measured over predicted memory are a linear function of shifts of three constants, plus noise. Noise and
shifts have Student's t distributions ([1]_): a peak that was measured differently moves little, and a large shift is
accepted once several peaks agree.

References
----------
.. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor, Robust statistical modeling using the t distribution, Journal
   of the American Statistical Association 84 (408), 1989.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from factorykit.core.vocabulary import neutral_values
from factorykit.engine.evaluate import evaluate
from factorykit.model.performance.training_runs import fastest_that_fit

if TYPE_CHECKING:
    import numpy as np
FACTORS: Final = ("state_factor", "activation_factor")
"""Factors on predicted memory, 1 without a calibration."""
PRIOR_SD: Final[Mapping[str, float]] = {"state_factor": 0.05, "activation_factor": 0.1, "context_bytes": 0.3}
"""Constants of memory that a calibration shifts, with the prior standard deviation of each logarithm."""
NOISE_SD: Final = 0.1
"""Standard deviation of the logarithm of a single measured peak."""
# Both from five rows of each of nine families: where the prediction is good, calibration costs 0.1 points of the median
# error; for software that keeps 1.4 times the activations, or 1.2 times the state, the error falls from 13 and 11 % to
# 7.5 %.
DEGREES_OF_FREEDOM: Final = 2.0
"""Degrees of freedom of the t distributions of noise and shifts."""
MAX_ERROR_FACTOR: Final = 3.0
"""Ratio of measured and predicted memory beyond which units are wrong or a part of the run is not described."""
LINEARISATIONS: Final = 2
"""Gauss-Newton steps."""
REWEIGHTINGS: Final = 10
"""Iterations of the reweighted least squares in each of them."""
TERMS: Final = ("memory_weights_bytes", "memory_activations_bytes", "memory_workspace_bytes", "memory_reserve_bytes")
"""Parts of a peak."""
OUTPUTS: Final = (
    *TERMS,
    *("first_stage_activation_bytes", "memory_needed_bytes", "memory_peak_bytes", "fragmentation_share"),
)
"""Quantities that a measured memory is compared with."""


def reported_bytes() -> pl.Expr:
    """Return the memory that a run would report: of its tensors, of the allocator, or of the process."""
    stage = pl.col("memory_weights_bytes") + pl.col("first_stage_activation_bytes")
    first = (pl.col("reports_first_stage") > 0.0) & (pl.col("pipeline_parallel") > 1.0)
    tensors = pl.when(first).then(stage).otherwise(pl.sum_horizontal(TERMS[:3]))
    process = pl.col("memory_peak_bytes") + pl.col("cached_share") * pl.col("memory_needed_bytes")
    of_a_device = (
        pl.when(pl.col("memory_measure") == "allocated")
        .then(tensors)
        .when(pl.col("memory_measure") == "reserved")
        .then(tensors / (1.0 - pl.col("fragmentation_share")))
        .otherwise(pl.min_horizontal("accelerator_memory_bytes", process).clip(pl.col("memory_peak_bytes")))
    )
    return (of_a_device * pl.col("chip_devices")).alias("reported_bytes")


@dataclass(frozen=True)
class Fit:
    """Constants of memory given measured peaks."""

    constants: Mapping[str, float] = field(default_factory=dict)
    """Posterior mode of each constant."""
    sd_ratio: Mapping[str, float] = field(default_factory=dict)
    """Posterior over prior standard deviation of each logarithm."""
    rows: tuple[int, ...] = ()
    """Numbers of the rows used."""


def fit(scenarios: pl.DataFrame, measured: pl.Series, constants: Mapping[str, float]) -> Fit:
    """Fit the constants of memory to measured peaks.

    Parameters
    ----------
    scenarios
        Scenarios of rows, from :func:`~factorykit.model.performance.training_runs.prepared`.
    measured
        Measured memory [byte] by number of the row; null where there is none.
    constants
        Constants of the model.
    """
    import numpy as np

    from factorykit.model.performance.gaussian_process import jacobian

    known = scenarios.with_columns(measured.gather(scenarios["row"]).alias("measured"))
    known = known.filter(pl.col("measured").is_not_null())
    known = known if known.is_empty() else _plausible_scenarios(known)
    if known.is_empty():
        return Fit()
    start = {**neutral_values(), **constants}
    logged = np.log(known["measured"].to_numpy())

    def residuals(shift: np.ndarray) -> np.ndarray:
        shifted = known.drop("measured").with_columns(pl.lit(v).alias(n) for n, v in _shifted(start, shift).items())
        return logged - np.log(evaluate(shifted, OUTPUTS).select(reported_bytes()).to_series().to_numpy())

    prior, shift = np.array(list(PRIOR_SD.values())) ** 2, np.zeros(len(PRIOR_SD))
    variance, precision = prior, np.diag(1.0 / prior)
    for _ in range(LINEARISATIONS):
        now = residuals(shift)
        slopes = -jacobian(residuals, shift, now, prior)
        target = now + slopes @ shift
        noise = np.full(len(logged), NOISE_SD**2)
        # Expectation maximization: a t distribution is a normal one whose variance follows from the residual.
        for _ in range(REWEIGHTINGS):
            precision = slopes.T @ (slopes / noise[:, None]) + np.diag(1.0 / variance)
            shift = np.linalg.solve(precision, slopes.T @ (target / noise))
            noise = _t_variance(NOISE_SD**2, target - slopes @ shift)
            variance = _t_variance(prior, shift)
    sd_ratio = np.sqrt(np.diag(np.linalg.inv(precision)) / prior)
    return Fit(
        _shifted(start, shift), dict(zip(PRIOR_SD, sd_ratio.tolist(), strict=True)), tuple(known["row"].to_list())
    )


def _t_variance(scale: float | np.ndarray, deviation: np.ndarray) -> np.ndarray:
    return (DEGREES_OF_FREEDOM * scale + deviation**2) / (DEGREES_OF_FREEDOM + 1.0)


def _shifted(start: Mapping[str, float], shift: np.ndarray) -> dict[str, float]:
    return {name: start[name] * math.exp(move) for name, move in zip(PRIOR_SD, shift, strict=True)}


def _plausible_scenarios(known: pl.DataFrame) -> pl.DataFrame:
    """Return the fastest scenario that fits of each row, without implausible rows and copies of a layout."""
    wide = evaluate(known.drop("measured"), (*OUTPUTS, "step_s")).with_columns(reported_bytes())
    best = fastest_that_fit(wide.with_columns(known["measured"]).with_row_index("scenario"))
    ratio = pl.col("measured") / pl.col("reported_bytes")
    best = best.filter(ratio.is_between(1.0 / MAX_ERROR_FACTOR, MAX_ERROR_FACTOR))
    chosen = known[best["scenario"].to_list()]
    layout = [name for name in chosen.columns if name not in ("row", "group", "family")]
    return chosen.unique(layout, maintain_order=True)
