"""Distributions of lifetimes, times between failures and repair times, fitted to observed durations."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from factorykit.core.errors import ScenarioError
from factorykit.core.extras import need, public_names
from factorykit.core.validation import (
    array,
    finite_number,
    float_columns,
    frame,
    integer,
    one_of,
    probability,
)
from factorykit.core.vocabulary import quantity

__dir__ = public_names(__name__)


MOST_POINTS = 100_000
"""Most points of a curve."""


def fit(
    durations_s: Sequence[float] | pl.Series,
    observed: Sequence[bool] | pl.Series | None = None,
    confidence: float = 0.95,
) -> pl.DataFrame:
    """Fit three distributions to durations by maximum likelihood.

    Parameters
    ----------
    durations_s
        Times, all above 0. [s]
    observed
        Whether each time ended with the event; False is right censored: still running at its end. By default all did.
    confidence
        Of the intervals of the parameters, in (0, 1).

    Returns
    -------
    DataFrame
        One row per ``distribution``, best first: ``mean_s`` [s]; ``parameter`` [1], the shape of Weibull or sigma of
        the lognormal, with ``parameter_low`` and ``parameter_high``; ``scale_s`` [s] (mean, scale or median) with
        ``scale_low_s`` and ``scale_high_s``; ``log_likelihood``; ``aic_difference`` to the best; and ``largest_misfit``
        [1]: how far its survival is at most from that of Kaplan and Meier; ``events`` and ``censored`` [1].

    Raises
    ------
    ScenarioError
        If a time is not above 0, lengths differ, or fewer than two events were seen.
    FactorykitError
        If lifelines is not installed.

    Notes
    -----
    Fits, standard errors and Kaplan-Meier curves are those of lifelines. Limits are normal in the logarithm
    of each parameter, so that they stay positive for few events [1]_. The best of three distributions can still be
    wrong: reject it if ``largest_misfit`` is above :func:`misfit_limit`.

    References
    ----------
    .. [1] W. Q. Meeker and L. A. Escobar, "Statistical Methods for Reliability Data," Wiley, 1998, section 8.4.

    Examples
    --------
    >>> fits = fit([float(t) for t in range(60, 6000, 60)])
    >>> fits["distribution"][0], round(fits["parameter"][0], 1)
    ('weibull', 1.7)
    """
    lifelines, np = _lifelines(), need("numpy")
    times, seen = _checked(durations_s, observed)
    normal = statistics.NormalDist().inv_cdf(0.5 + 0.5 * probability("confidence", confidence))
    kaplan = lifelines.KaplanMeierFitter().fit(times, seen)
    steps = kaplan.survival_function_.index.to_numpy()[1:]
    curve = kaplan.survival_function_.to_numpy()[:, 0]
    rows = []
    for name, (scale, scale_error), (parameter, parameter_error), fitted in _fitted(times, seen):
        distribution = _frozen(name, scale, parameter)
        survival = distribution.sf(steps)
        rows.append(
            {
                "distribution": name,
                "mean_s": float(distribution.mean()),
                "parameter": parameter,
                "parameter_low": parameter and parameter * math.exp(-normal * parameter_error),
                "parameter_high": parameter and parameter * math.exp(normal * parameter_error),
                "scale_s": scale,
                "scale_low_s": scale * math.exp(-normal * scale_error),
                "scale_high_s": scale * math.exp(normal * scale_error),
                "log_likelihood": float(fitted.log_likelihood_),
                "aic_difference": float(fitted.AIC_),
                "largest_misfit": float(np.maximum(np.abs(survival - curve[1:]), np.abs(survival - curve[:-1])).max()),
                "events": float(seen.sum()),
                "censored": float((~seen).sum()),
            }
        )
    frame = pl.DataFrame(rows).with_columns(pl.col("aic_difference") - pl.col("aic_difference").min())
    return frame.sort("aic_difference", maintain_order=True)


def distribution(fits: pl.DataFrame, name: str | None = None) -> Any:
    """Return a fitted distribution as a frozen one of ``scipy.stats``; by default the best one.

    >>> print(distribution(fit([float(t) for t in range(60, 6000, 60)]), "exponential").mean())
    3000.0...
    """
    fits = frame("fits", fits, ("distribution", "scale_s", "parameter")).cast({"distribution": pl.String})
    if fits.is_empty():
        raise ScenarioError("the fits have no rows; give the result of fit()")
    fitted = fits["distribution"].drop_nulls()
    rows = fits if name is None else fits.filter(distribution=one_of("fitted distribution", name, fitted))
    row = rows.row(0, named=True)
    scale, shape = float(quantity("lifetime_scale_s").check(row["scale_s"])), None
    if row["distribution"] != "exponential":
        shape = float(quantity("lifetime_shape").check(row["parameter"]))
    return _frozen(row["distribution"], scale, shape)


def _frozen(name: str, scale: float, parameter: float | None) -> Any:
    stats = need("scipy.stats")
    match name:
        case "exponential":
            return stats.expon(scale=scale)
        case "weibull":
            return stats.weibull_min(parameter, scale=scale)
        case _:
            return stats.lognorm(parameter, scale=scale)


def survival_curve(
    durations_s: Sequence[float] | pl.Series,
    observed: Sequence[bool] | pl.Series | None = None,
    confidence: float = 0.95,
    points: int = 40,
) -> pl.DataFrame:
    """Return the Kaplan-Meier estimate of the survival function, with confidence limits.

    Parameters
    ----------
    durations_s, observed
        As in :func:`fit`.
    confidence
        Of the limits at each time, in (0, 1).
    points
        Times at which the curve is read, evenly spaced in their logarithm.

    Returns
    -------
    DataFrame
        One row per point: ``span_s`` [s], ``survival`` [1], ``survival_low`` and ``survival_high`` [1].

    Examples
    --------
    >>> survival_curve([60.0, 120.0, 180.0, 240.0], points=2)["survival"].round(6).to_list()
    [0.75, 0.0]
    """
    lifelines, np = _lifelines(), need("numpy")
    times, seen = _checked(durations_s, observed)
    kaplan = lifelines.KaplanMeierFitter(alpha=1.0 - probability("confidence", confidence)).fit(times, seen)
    limits = kaplan.confidence_interval_.to_numpy()
    if not 1 < integer("points", points) <= MOST_POINTS:
        raise ScenarioError(f"points = {points} is no length of a curve; give 2 to {MOST_POINTS}")
    spans = np.geomspace(times.min(), times.max(), points)
    spans[-1] = times.max()
    step = np.searchsorted(kaplan.survival_function_.index.to_numpy(), spans, side="right") - 1
    return pl.DataFrame(
        {
            "span_s": spans,
            "survival": kaplan.survival_function_.to_numpy()[step, 0],
            "survival_low": limits[step, 0],
            "survival_high": limits[step, 1],
        }
    )


def compare_with_fits(curve: pl.DataFrame, fits: pl.DataFrame) -> pl.DataFrame:
    """Return a survival curve together with those of the fitted distributions, for the chart of survival.

    Parameters
    ----------
    curve
        From :func:`survival_curve`, or rows of one record of the table ``lifetime_curves``.
    fits
        From :func:`fit`, or rows of the same record of the table ``lifetime_fits``.

    Returns
    -------
    DataFrame
        One row per ``distribution`` and time of the curve (``record`` is the curve itself): ``span_s`` [s],
        ``survival`` [1], and of the record ``survival_low`` and ``survival_high`` [1].

    Examples
    --------
    >>> times = [60.0, 120.0, 180.0, 240.0]
    >>> compared = compare_with_fits(survival_curve(times, points=2), fit(times))
    >>> compared["distribution"].unique(maintain_order=True).to_list()
    ['record', 'weibull', 'lognormal', 'exponential']
    """
    columns = ("span_s", "survival", "survival_low", "survival_high")
    curve = float_columns(frame("curve", curve, columns), columns)
    fits = frame("fits", fits, ("distribution",)).cast({"distribution": pl.String})
    record = curve.select(pl.lit("record").alias("distribution"), *columns)
    spans = curve["span_s"]
    fitted = [
        pl.DataFrame({"distribution": name, "span_s": spans, "survival": distribution(fits, name).sf(spans.to_numpy())})
        for name in fits["distribution"]
    ]
    return pl.concat([record, *fitted], how="diagonal")


def misfit_limit(events: float, confidence: float = 0.95) -> float:
    """Return the misfit that the true distribution stays below with this confidence (Kolmogorov; large samples).

    A distribution that was fitted to the same data stays clearly below; one above this limit is to be rejected.

    >>> round(misfit_limit(100), 3)
    0.136
    """
    if finite_number("events", events) <= 0.0:
        raise ScenarioError(f"events = {events} is not above 0; a misfit needs events")
    alpha = 1.0 - probability("confidence", confidence)
    return math.sqrt(-0.5 * math.log(alpha / 2.0)) / math.sqrt(events)


def _checked(durations_s: Any, observed: Any) -> tuple[Any, Any]:
    import numpy as np

    times = array("durations_s", durations_s)
    seen = np.ones(times.shape, bool) if observed is None else array("observed", observed, "fiub").astype(bool)
    if times.ndim != 1 or seen.ndim != 1:
        raise ScenarioError("durations_s holds lists; give one number of seconds each")
    if len(times) != len(seen):
        raise ScenarioError(f"{len(times)} durations and {len(seen)} in observed; give one for each")
    if not np.all(np.isfinite(times) & (times > 0.0)):
        bad = int(np.flatnonzero(~(np.isfinite(times) & (times > 0.0)))[0])
        raise ScenarioError(f"durations_s[{bad}] = {times[bad]:g} must be above 0; omit or widen times of length zero")
    if seen.sum() < 2:
        raise ScenarioError(f"{int(seen.sum())} events were seen; a fit needs two or more")
    return times, seen


def _lifelines() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return need("lifelines")


def _fitted(times: Any, seen: Any) -> Iterator[tuple[str, tuple[float, float], tuple[float | None, float], Any]]:
    """Yield the name of each distribution, its scale and parameter with their relative errors, and its fit."""
    lifelines = _lifelines()
    fitters = (lifelines.ExponentialFitter, lifelines.WeibullFitter, lifelines.LogNormalFitter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fits = [fitter().fit(times, seen) for fitter in fitters]
        except need("lifelines.exceptions").ConvergenceError:
            raise ScenarioError(
                f"no distribution fits durations_s from {times.min():g} to {times.max():g} s; look for errors in them"
            ) from None
    for name, fitted in zip(("exponential", "weibull", "lognormal"), fits, strict=True):
        (scale, error), *others = fitted.summary[["coef", "se(coef)"]].astype(float).to_numpy().tolist()
        relative = (math.exp(scale), error) if name == "lognormal" else (scale, error / scale)
        parameter = next(((shape, shape_error / shape) for shape, shape_error in others), (None, 0.0))
        yield name, relative, parameter, fitted
