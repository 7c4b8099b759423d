r"""Gaussian-process regression of the residuals of the performance model.

The observations are logarithms of measured over predicted step times, :math:`y_i`, of layouts with features
:math:`x_i`:

.. math::
    y_i = \sum_j J_{ij} \beta_j + f(x_i) + \varepsilon_i, \quad
    \beta_j \sim N(0, s^2 \sigma_j^2), \quad f \sim GP(0, \sigma_f^2 k), \quad
    \varepsilon_i \sim N(0, r_i \sigma_n^2)

:math:`\beta` are shifts of the logarithms of the model's constants with prior standard deviations :math:`\sigma_j`, and
:math:`J` the derivatives of the predictions: a Gaussian process with explicit basis functions ([1]_, section 2.7).
:math:`f` is the residual that similar layouts share, with an RBF kernel :math:`k` ([1]_, equation 4.9), and
:math:`\varepsilon` the noise of a single layout, :math:`r_i` times larger where inputs are assumed or rows repeated.
A layout is an outlier with a small probability; its noise variance is then larger ([2]_).

The hyperparameters :math:`(s, \sigma_f, \sigma_n)` differ between kinds of software. They have a discrete prior, and
every result is the average over this grid, weighted by prior times marginal likelihood ([1]_, section 5.2).

References
----------
.. [1] C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press, 2006.
.. [2] G. E. P. Box and G. C. Tiao, A Bayesian approach to some outlier problems, Biometrika 55 (1), 1968.
.. [3] R. F. Barber et al., Predictive inference with the jackknife+, Annals of Statistics 49 (1), 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from factorykit.formulas.step.interval import NORMAL_95

PRIOR_CONSTANT_SCALE: Final = {0.125: 0.54, 0.5: 0.46}
"""Values of :math:`s` with their prior probabilities: how far constants move, in their prior standard deviations."""
PRIOR_SIGNAL_SD: Final = {0.05: 0.5, 0.1: 0.29, 0.2: 0.12, 0.3: 0.09}
r"""Values of :math:`\sigma_f` with their prior probabilities, for the residual that similar layouts share."""
PRIOR_NOISE_SD: Final = {0.03: 0.6, 0.06: 0.25, 0.12: 0.14, 0.24: 0.01}
r"""Values of :math:`\sigma_n` with their prior probabilities: noise of a single layout, as a logarithm."""
# benchmarks/fit_calibration.py estimates these probabilities from 27 families of published runs, given the residual of
# their software; estimates from either half of the families differ from them by at most 0.16.
HYPERPARAMETER_GRID: Final = {
    (scale, signal, noise): PRIOR_CONSTANT_SCALE[scale] * PRIOR_SIGNAL_SD[signal] * PRIOR_NOISE_SD[noise]
    for scale, signal, noise in product(PRIOR_CONSTANT_SCALE, PRIOR_SIGNAL_SD, PRIOR_NOISE_SD)
}
"""Combinations of hyperparameters with their prior probabilities."""
MAX_GRID_LAYOUTS: Final = 100
"""Layouts on which the whole grid is evaluated; with more, an even subset selects the likely combinations."""
MIN_HYPOTHESIS_WEIGHT: Final = 0.1
"""Posterior weight below which a combination is dropped after that selection."""
OUTLIER_PROBABILITY: Final = 0.05
"""Prior probability that something other than the layout slowed a run."""
OUTLIER_SD: Final = 0.7
"""Standard deviation of the logarithm by which it did."""
DESIGN_HYPERPARAMETERS: Final = (0.5, 0.25, 0.08)
"""Hyperparameters for the choice of design points: of seven combinations the best for three, five and ten rows."""
INTERVAL_COVERAGE: Final = 0.9
"""Share of layouts that an interval covers."""
MAX_STANDARDIZED_RESIDUAL: Final = 3.0
"""Half-widths of the interval at which residuals are clipped, so that one outlier does not widen all intervals."""
SCALE_PSEUDO_COUNT: Final = 10.0
"""Pseudo-count of layouts with a scale of 1, towards which the scale of the intervals is shrunk."""
BLOCK_LAYOUTS: Final = 4096
"""Layouts whose kernel matrix is held in memory at a time."""
LINEARISATIONS: Final = 2
"""Gauss-Newton steps: derivatives are taken again where the constants have moved to."""
JACOBIAN_STEP: Final = 0.02
"""Step of the finite differences, as a logarithm."""


@dataclass(frozen=True)
class Fit:
    """Posterior of a Gaussian process, averaged over hyperparameters."""

    shift: np.ndarray
    r"""Posterior mean of :math:`\beta`: shifts of the logarithms of the constants."""
    sd_ratio: np.ndarray
    r"""Posterior over prior standard deviation of each :math:`\beta_j`."""
    alpha: np.ndarray
    r"""Weights :math:`\sigma_f^2 K_y^{-1} y`, so that the posterior mean of :math:`f` is :math:`k(x_*, X)\,\alpha`."""
    noise_ratio: np.ndarray
    r"""Noise variance of each layout over the signal variance, :math:`r_i \sigma_n^2 / \sigma_f^2`."""
    noise_sd: float
    r"""Standard deviation :math:`\sigma_n` of the noise of a single layout."""
    loo_residuals: np.ndarray
    """Leave-one-out residuals: each layout as predicted from all others."""


@dataclass(frozen=True)
class Hypothesis:
    """One combination of hyperparameters, given the observations."""

    constant_scale: float
    """Scale :math:`s` of the shifts of the constants."""
    signal_sd: float
    r"""Standard deviation :math:`\sigma_f` of the shared residual."""
    noise_sd: float
    r"""Standard deviation :math:`\sigma_n` of the noise of a single layout."""
    precision: np.ndarray
    """Inverse covariance of the observations, :math:`K_y^{-1}`."""
    alpha: np.ndarray
    """Weights :math:`K_y^{-1} y`."""
    noise_variance: np.ndarray
    """Noise variance of each layout, larger for outliers."""
    log_weight: float
    """Logarithm of prior probability times marginal likelihood, without the constant term."""


def rbf_kernel(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the RBF kernel with length scale 1 between all pairs of rows (Rasmussen and Williams, equation 4.9)."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2.0 * first @ second.T
    return np.exp(-0.5 * np.maximum(squares, 0.0))


def jacobian(
    residuals: Callable[[np.ndarray], np.ndarray], shift: np.ndarray, now: np.ndarray, prior_sd: np.ndarray
) -> np.ndarray:
    """Return derivatives of the residuals by the shift of each constant, a column each; 0 where the prior is 0."""
    derivatives = np.zeros((len(now), len(shift)))
    for column in np.flatnonzero(prior_sd):
        stepped = shift.copy()
        stepped[column] += JACOBIAN_STEP
        derivatives[:, column] = (residuals(stepped) - now) / JACOBIAN_STEP
    return derivatives


def fit(
    residuals: Callable[[np.ndarray], np.ndarray],
    prior_sd: np.ndarray,
    features: np.ndarray,
    noise_ratio: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
) -> Fit:
    """Fit the shifts of the constants and the shared residuals.

    Parameters
    ----------
    residuals
        Function from shifts of the constants to logarithms of measured over predicted step times.
    prior_sd
        Prior standard deviation of each shift; a constant with 0 is fixed.
    features
        Features of the layouts, a row each.
    noise_ratio
        Noise variance of each layout over that of a layout without assumed inputs or copies.
    bounds
        Lower and upper bounds of the shifts.
    """
    kernel, shift = rbf_kernel(features, features), np.zeros(len(prior_sd))

    def linearised() -> tuple[np.ndarray, list[Hypothesis]]:
        now = residuals(shift)
        slopes = -jacobian(residuals, shift, now, prior_sd)
        observed = now + slopes @ shift
        return slopes, _likely((slopes * prior_sd**2) @ slopes.T, kernel, noise_ratio, observed)

    for _ in range(LINEARISATIONS):
        slopes, grid = linearised()
        weighted = _average(grid, lambda given: given.constant_scale**2 * given.alpha)
        shift = np.clip(prior_sd**2 * (slopes.T @ weighted), *bounds)
    slopes, grid = linearised()

    def sd_ratio(given: Hypothesis) -> np.ndarray:
        explained = (given.constant_scale * prior_sd) ** 2 * ((given.precision @ slopes) * slopes).sum(axis=0)
        return np.sqrt(np.clip(1.0 - explained, 0.0, 1.0))

    return Fit(
        shift,
        _average(grid, sd_ratio),
        _average(grid, lambda given: given.signal_sd**2 * given.alpha),
        _average(grid, lambda given: given.noise_variance / given.signal_sd**2),
        math.sqrt(_average(grid, lambda given: given.noise_sd**2)),
        # Leave-one-out without fitting again: Rasmussen and Williams, equation 5.12.
        _average(grid, lambda given: given.alpha / given.precision.diagonal()),
    )


def posterior(new: np.ndarray, features: np.ndarray, alpha: Any, noise_ratio: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior mean of the shared residual, and its variance over the prior variance, of new layouts.

    Rasmussen and Williams, equations 2.25 and 2.26.
    """
    precision = np.linalg.inv(rbf_kernel(features, features) + np.diag(noise_ratio))
    mean, variance = np.empty(len(new)), np.empty(len(new))
    for start in range(0, len(new), BLOCK_LAYOUTS):
        block = slice(start, start + BLOCK_LAYOUTS)
        covariance = rbf_kernel(new[block], features)
        mean[block] = covariance @ np.asarray(alpha)
        variance[block] = np.clip(1.0 - ((covariance @ precision) * covariance).sum(axis=1), 0.0, 1.0)
    return mean, variance


def calibrated_scale(fitted: Fit, features: np.ndarray, prior_spread: np.ndarray, weight: np.ndarray) -> float:
    """Return the factor on all spreads with which leave-one-out intervals reach their nominal coverage.

    As in the jackknife+ (Barber et al. 2021), each layout is predicted from the others. The quantile of the
    standardized residuals is shrunk towards 1, the less the more layouts there are.

    Parameters
    ----------
    fitted
        Posterior given all layouts.
    features
        Features of the layouts.
    prior_spread
        Standard deviation of the logarithm of each layout's step time before any was measured.
    weight
        Weight of each layout, one over its number of copies.
    """
    # Leave-one-out variance over the signal variance: Rasmussen and Williams, equation 5.12.
    total = 1.0 / np.linalg.inv(rbf_kernel(features, features) + np.diag(fitted.noise_ratio)).diagonal()
    unexplained = np.clip(total - fitted.noise_ratio, 0.0, 1.0)
    variance = fitted.noise_sd**2 + unexplained * prior_spread**2
    squares = np.minimum((fitted.loo_residuals / NORMAL_95) ** 2 / variance, MAX_STANDARDIZED_RESIDUAL**2)
    order, count = squares.argsort(), float(weight.sum())
    quantile = float(np.interp(INTERVAL_COVERAGE * (count + 1.0), weight[order].cumsum(), squares[order]))
    return math.sqrt((SCALE_PSEUDO_COUNT + count * quantile) / (SCALE_PSEUDO_COUNT + count))


def design_points(slopes: np.ndarray, prior_sd: np.ndarray, features: np.ndarray, count: int) -> list[int]:
    """Return the layouts to measure: each minimises the total posterior variance of all layouts, given those before.

    Greedy A-optimal design with the covariance of `DESIGN_HYPERPARAMETERS`.
    """
    scale, signal, noise = DESIGN_HYPERPARAMETERS
    covariance = (slopes * (scale * prior_sd) ** 2) @ slopes.T + signal**2 * rbf_kernel(features, features)
    picked: list[int] = []
    for _ in range(min(count, len(features))):
        variance = covariance.diagonal() + noise**2
        reduction = (covariance**2).sum(axis=0) / variance
        reduction[picked] = -1.0
        best = int(reduction.argmax())
        picked.append(best)
        covariance = covariance - np.outer(covariance[:, best], covariance[best]) / variance[best]
    return picked


def hypotheses(
    grid: Mapping[tuple[float, float, float], float],
    constants_covariance: np.ndarray,
    kernel: np.ndarray,
    noise_ratio: np.ndarray,
    observed: np.ndarray,
) -> list[Hypothesis]:
    """Return the hypothesis of each combination of hyperparameters, given the observations."""
    evaluated = []
    for (scale, signal, noise), probability in grid.items():
        covariance = scale**2 * constants_covariance + signal**2 * kernel
        precision, variance, likelihood = _robust_precision(covariance, noise**2 * noise_ratio, observed)
        weight = likelihood + math.log(probability)
        evaluated.append(Hypothesis(scale, signal, noise, precision, precision @ observed, variance, weight))
    return evaluated


def _likely(
    constants_covariance: np.ndarray, kernel: np.ndarray, noise_ratio: np.ndarray, observed: np.ndarray
) -> list[Hypothesis]:
    """Return the hypotheses of all combinations, or of the likely ones where there are many observations."""
    some = np.arange(0, len(observed), math.ceil(len(observed) / MAX_GRID_LAYOUTS))
    grid = hypotheses(
        HYPERPARAMETER_GRID,
        *(constants_covariance[some][:, some], kernel[some][:, some], noise_ratio[some], observed[some]),
    )
    if len(some) == len(observed):
        return grid
    weighted = zip(HYPERPARAMETER_GRID.items(), _weights(grid), strict=True)
    likely = dict(combination for combination, weight in weighted if weight > MIN_HYPOTHESIS_WEIGHT)
    return hypotheses(likely, constants_covariance, kernel, noise_ratio, observed)


def _robust_precision(
    covariance: np.ndarray, noise_variance: np.ndarray, observed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return inverse covariance of the observations, their noise variances and the log marginal likelihood.

    The likelihood is equation 2.30 of Rasmussen and Williams without its constant term. Outliers are found greedily:
    the layout whose larger noise raises the likelihood most comes first, as long as outliers are fewer than half.
    """
    variance = noise_variance.copy()
    precision = np.linalg.inv(covariance + np.diag(variance))
    likelihood = 0.5 * float(np.linalg.slogdet(precision)[1] - observed @ precision @ observed)
    log_odds = math.log(OUTLIER_PROBABILITY / (1.0 - OUTLIER_PROBABILITY))
    while True:
        # Change of the likelihood when OUTLIER_SD**2 is added to one variance, by the matrix determinant lemma.
        inflation = 1.0 + OUTLIER_SD**2 * precision.diagonal()
        gain = log_odds + 0.5 * (OUTLIER_SD**2 * (precision @ observed) ** 2 / inflation - np.log(inflation))
        outliers = variance > noise_variance
        gain[outliers] = 0.0
        worst = int(gain.argmax())
        if gain[worst] <= 0.0 or 2 * outliers.sum() + 2 > len(variance):
            return precision, variance, likelihood
        variance[worst] += OUTLIER_SD**2
        likelihood += float(gain[worst])
        # Rank-one update of the inverse: Sherman and Morrison.
        precision -= np.outer(precision[worst], precision[worst]) * (OUTLIER_SD**2 / inflation[worst])


def _weights(grid: Sequence[Hypothesis]) -> np.ndarray:
    """Return the posterior weight of each hypothesis."""
    logarithms = np.array([hypothesis.log_weight for hypothesis in grid])
    weights = np.exp(logarithms - logarithms.max())
    return weights / weights.sum()


def _average(grid: Sequence[Hypothesis], value: Callable[[Hypothesis], Any]) -> Any:
    """Return the average of a value over hypotheses, by posterior weight."""
    return sum(weight * value(given) for weight, given in zip(_weights(grid), grid, strict=True))
