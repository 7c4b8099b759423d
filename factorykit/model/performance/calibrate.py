"""Find the constants of the performance model from measured runs, all of them or without one family.

A constant leans on its prior: the fit minimizes robust, group-weighted squares of the logarithm of predicted over
measured step time, plus squares of the logarithm of each constant over its prior. Needs NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit import datasets
from factorykit.model.engine.chain import ask
from factorykit.model.engine.run import compute
from factorykit.model.evidence.training_runs import measured_step_s, prepared
from factorykit.model.supply.fitted import EVERYTHING, constants

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

NOISE: Final = 0.10
"""Spread of one software release about another, by which misses are measured before they are made robust."""
ROUNDS: Final = 30
STEP: Final = 1e-4
CHOICES: Final = 2
"""How often the scenario that stands for a row is chosen, and the constants found with it."""


class Measured:
    """Measured rows that can be predicted, as arrays, with the chain of formulas to their step time."""

    def __init__(self, rows: pl.DataFrame) -> None:
        import polars as pl

        frame, self.reasons = prepared(rows)
        measured = measured_step_s(rows, frame)
        frame = frame.with_columns(measured_s=measured.gather(frame["row"]), group=rows["group"].gather(frame["row"]))
        stated = pl.col("measured_s").is_not_null() & ~pl.col("assumed").str.contains("layout")
        self.frame = frame.filter(stated)
        self.priors = _priors()
        given = {name for name in self.frame.columns if name not in ("row", "family", "assumed", "group", "measured_s")}
        self.steps = ask(given | set(constants()), ("step_s", "memory_peak_bytes")).steps
        self.arrays = {name: self.frame[name].to_numpy() for name in given}

    def results(self, values: Mapping[str, float]) -> dict[str, Any]:
        """Return all quantities on the way to the step time, each an array over the scenarios."""
        import numpy as np

        with np.errstate(all="ignore"):
            return compute(self.steps, {**constants(), **self.arrays, **values})  # type: ignore[arg-type]

    def chosen(self, values: Mapping[str, float]) -> np.ndarray:
        """Return the number of the scenario that stands for each row: the fastest that fits, else the smallest."""
        import polars as pl

        found = self.results(values)
        frame = (
            self.frame.select("row")
            .with_row_index("scenario")
            .with_columns(
                step_s=pl.Series(found["step_s"]),
                over=pl.Series(found["memory_peak_bytes"] / self.arrays["accelerator_memory_bytes"]).clip(1.0),
            )
        )
        best = frame.sort("over", "step_s").group_by("row", maintain_order=True).first().sort("row")
        return best["scenario"].to_numpy()


def _priors() -> dict[str, tuple[float, float]]:
    rows = datasets.table("performance_constants").collect().iter_rows(named=True)
    return {
        row["quantity"]: (row["prior"], row["prior_spread"])
        for row in rows
        if row["left_out"] == EVERYTHING and row["prior"] is not None
    }


def fit(measured: Measured, without: str | None = None) -> tuple[dict[str, float], dict[str, float]]:
    """Return the constants and their relative standard errors, found without one family.

    Damped Gauss-Newton steps on the logarithms of the constants, with numerical derivatives.
    """
    import numpy as np

    names = list(measured.priors)
    prior = np.log([measured.priors[name][0] for name in names])
    spread = np.array([measured.priors[name][1] for name in names])
    x, normal = prior.copy(), np.eye(len(names))
    for _ in range(CHOICES):
        at = measured.chosen(dict(zip(names, np.exp(x), strict=True)))
        x, normal = _minimum(_residuals(measured, at, without, names, prior, spread), x)
    errors = np.sqrt(np.diag(np.linalg.inv(normal)))
    return dict(zip(names, np.exp(x), strict=True)), dict(zip(names, errors, strict=True))


def _residuals(
    measured: Measured, at: np.ndarray, without: str | None, names: list[str], prior: np.ndarray, spread: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what the fit squares and sums, over the logarithms of the constants: misses of rows, then of priors.

    Rows of one group are near-copies of each other: they count as the root of their number.
    """
    import numpy as np

    group = measured.frame["group"].to_numpy()[at]
    used = measured.frame["family"].to_numpy()[at] != without
    logged = np.log(measured.frame["measured_s"].to_numpy()[at])[used]
    _, of_group, sizes = np.unique(group[used], return_inverse=True, return_counts=True)
    weights = sizes[of_group] ** -0.25

    def residuals(x: np.ndarray) -> np.ndarray:
        found = measured.results(dict(zip(names, np.exp(x), strict=True)))["step_s"][at]
        miss = (np.log(found[used]) - logged) * weights / NOISE
        robust = np.sign(miss) * np.sqrt(2.0 * (np.sqrt(1.0 + miss * miss) - 1.0))
        return np.concatenate([robust, (x - prior) / spread])

    return residuals


def _minimum(residuals: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the sum of squares is least, and its normal matrix there."""
    import numpy as np

    r, damping = residuals(x), 1e-2
    normal = np.eye(len(x))
    for _ in range(ROUNDS):
        slopes = np.array([(residuals(x + STEP * unit) - r) / STEP for unit in np.eye(len(x))]).T
        normal = slopes.T @ slopes
        move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slopes.T @ r)
        trial = residuals(x + move)
        if trial @ trial < r @ r:
            gained = r @ r - trial @ trial
            x, r, damping = x + move, trial, damping / 4.0
            if gained < 1e-6 * (r @ r):
                break
        else:
            damping *= 8.0
    return x, normal
