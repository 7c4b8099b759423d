"""Maximum a posteriori fit of the constants of the performance model to measured runs.

The fit minimises robust, group-weighted squares of the logarithm of predicted over measured step time, plus squares of
the logarithm of each constant over its prior. It needs NumPy and SciPy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.providers.constants import EVERYTHING, constants
from factorykit.engine.question import Question
from factorykit.model.performance.measured_steps import measured_step_s
from factorykit.model.performance.training_runs import fastest_that_fit, prepared

if TYPE_CHECKING:
    import numpy as np
RESIDUAL_SCALE: Final = 0.08
"""Scale of the Cauchy loss: the spread of runs of one publication about their mean."""
ROW_WEIGHT: Final = 0.5
"""Weight of the loss of rows over that of the priors: runs of one publication share part of their residual. With it
and the scale, runs of publishers, frameworks and generations left out in turn are predicted best."""
FITS: Final = 2
"""Number of fits, each with the scenarios that are fastest under the constants of the one before."""
ROW_COLUMNS: Final = ("row", "family", "assumed", "group", "measured_s", "software", "generation")
"""Columns of a scenario that are not quantities."""
Priors = Mapping[str, tuple[float, float]]


class Measured:
    """Measured rows that can be predicted, as arrays, with the formulas that give their step times.

    Parameters
    ----------
    rows
        Rows of the ``training_runs`` table.
    as_stated
        Whether a constant that a row states, such as the latency of its network, stays fixed, so that one
        network does not inform the constant of all; by default it keeps its ratio to the constant.
    laid_out
        Whether rows without a layout are dropped; otherwise they take the fastest layout that fits.
    """

    prepared: pl.DataFrame
    """Scenarios of all rows that can be predicted, measured or not."""

    def __init__(self, rows: pl.DataFrame, *, as_stated: bool = False, laid_out: bool = True) -> None:
        self.as_stated = as_stated
        frame, self.reasons = prepared(rows)
        self.prepared = frame
        measured = measured_step_s(rows, frame)
        groups = rows["group"] if "group" in rows.columns else pl.Series([""] * rows.height)
        if frame.height:
            frame = frame.with_columns(
                measured_s=measured.gather(frame["row"]), group=groups.fill_null("").gather(frame["row"])
            )
            without_layout = pl.col("assumed").str.contains("layout")
            frame = frame.filter(pl.col("measured_s").is_not_null() & ~(without_layout & laid_out))
        self.frame = frame

    def only(self, rows: Collection[int]) -> Measured:
        """Return the measured rows with these numbers."""
        subset = copy(self)
        subset.__dict__.pop("arrays", None)
        subset.frame = self.frame.filter(pl.col("row").is_in(list(rows)))
        return subset

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Quantities of the scenarios."""
        return {name: self.frame[name].to_numpy() for name in self.frame.columns if name not in ROW_COLUMNS}

    def results(self, values: Mapping[str, float], *outputs: str, at: Any = None) -> dict[str, Any]:
        """Return quantities under given constants, each an array over the scenarios, or over those numbered ``at``."""
        import numpy as np

        given = self.arrays if at is None else {name: value[at] for name, value in self.arrays.items()}
        stated = {name: self._adjusted(name, given[name], value) for name, value in values.items() if name in given}
        known = {**constants(), **given, **values, **stated}
        with np.errstate(all="ignore"):
            computed = Question({}, outputs=outputs, varying=frozenset(known)).resolve().compute(known)
        height = len(next(iter(given.values())))
        return {name: np.broadcast_to(np.asarray(computed[name]), height) for name in outputs}

    def _adjusted(self, name: str, stated: np.ndarray, value: float) -> np.ndarray:
        """Return a constant for each row: the value, adjusted for rows that state one."""
        import numpy as np

        usual = constants()[name]
        scaled = stated * (value / usual)
        return np.where(stated == usual, scaled, stated) if self.as_stated else scaled

    def chosen(self, values: Mapping[str, float]) -> np.ndarray:
        """Return the number of each row's scenario: the fastest that fits, otherwise the smallest."""
        computed = self.results(values, "step_s", "memory_needed_bytes")
        scenarios = self.frame.select(
            "row", "accelerator_memory_bytes", **{n: pl.Series(v) for n, v in computed.items()}
        )
        return fastest_that_fit(scenarios.with_row_index("scenario")).sort("row")["scenario"].to_numpy()


def priors() -> Priors:
    """Return prior and prior standard deviation of the logarithm of every fitted constant."""
    rows = table("performance_constants").collect().iter_rows(named=True)
    return {
        row["quantity"]: (row["prior"], row["prior_spread"])
        for row in rows
        if row["left_out"] == EVERYTHING and row["prior"] is not None
    }


def fit(
    measured: Measured, used: Any = None, start: Mapping[str, float] | None = None
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the constants, within the bounds of their quantities, and their relative standard errors.

    Parameters
    ----------
    measured
        The rows.
    used
        Boolean array of the scenarios to fit; all by default.
    start
        Constants to start from; the priors by default.
    """
    import numpy as np
    from scipy.optimize import least_squares

    names = list(priors())
    prior, prior_sd = np.array(list(priors().values())).T
    prior = np.log(prior)
    x = np.log([start[name] for name in names]) if start else prior
    solution: Any = None
    for _ in range(FITS):
        at = measured.chosen(dict(zip(names, np.exp(x), strict=True)))
        at = at if used is None else at[np.asarray(used)[at]]
        logged = np.log(measured.frame["measured_s"].to_numpy()[at])
        groups, assumed = measured.frame["group"].to_numpy()[at], measured.arrays["assumed_inputs"][at]
        weights = row_weights(groups, assumed) ** 0.5 / RESIDUAL_SCALE

        def residuals(x: np.ndarray, at: Any = at, logged: Any = logged, weights: Any = weights) -> np.ndarray:
            predicted = measured.results(dict(zip(names, np.exp(x), strict=True)), "step_s", at=at)["step_s"]
            return np.concatenate([(np.log(predicted) - logged) * weights, (x - prior) / prior_sd])

        solution = least_squares(residuals, x, loss=_cauchy_loss(len(at)), x_scale="jac", ftol=1e-6, xtol=1e-5)
        x = solution.x
    # The inverse of the Gauss-Newton Hessian approximates the posterior covariance.
    errors = np.sqrt(np.diag(np.linalg.inv(solution.jac.T @ solution.jac)))
    bounds = [quantity(name) for name in names]
    values = [min(max(float(value), row.lower), row.upper) for value, row in zip(np.exp(x), bounds, strict=True)]
    return dict(zip(names, values, strict=True)), dict(zip(names, errors, strict=True))


def _cauchy_loss(rows: int) -> Any:
    """Return a loss for SciPy: Cauchy for the residuals of rows, squares for those of the priors that follow them.

    The influence of a row falls again as its residual grows, so that stalled runs do not move the constants.
    """
    import numpy as np

    def loss(z: np.ndarray) -> np.ndarray:
        t = 1.0 + z
        rho = np.array([np.log(t), 1.0 / t, -1.0 / t**2])
        rho *= ROW_WEIGHT
        rho[:, rows:] = [z[rows:], np.ones_like(z[rows:]), np.zeros_like(z[rows:])]
        return rho

    return loss


def row_weights(groups: np.ndarray, assumed: np.ndarray | None = None) -> np.ndarray:
    """Return the weight of each row: a group counts as the square root of its rows, an assumed input as noise."""
    import numpy as np

    _, of_group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    return sizes[of_group] ** -0.5 / (1.0 if assumed is None else 1.0 + assumed)
