"""Find the constants of the performance model from measured runs: all of them, or without some.

A constant leans on its prior: the fit minimizes robust, group-weighted squares of the logarithm of predicted over
measured step time, plus squares of the logarithm of each constant over its prior. Needs NumPy and SciPy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from factorykit import datasets
from factorykit.model.engine.chain import ask
from factorykit.model.engine.run import compute
from factorykit.model.evidence.training_runs import measured_step_s, prepared
from factorykit.model.performance.recomputation import ROUNDING
from factorykit.model.supply.fitted import EVERYTHING, constants
from factorykit.quantities import quantity

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

NOISE: Final = 0.05
"""Spread of one software release about another, by which misses are measured before they are made robust."""
CHOICES: Final = 2
"""How often the scenario that stands for a row is chosen, and the constants found with it."""
BESIDE: Final = ("row", "family", "assumed", "group", "measured_s")
"""Columns of a scenario that are no quantities."""
Priors = Mapping[str, tuple[float, float]]


class Measured:
    """Measured rows that can be predicted, as arrays, with the chain of formulas to their step time.

    What a row states of its own, such as the latency of its network, keeps its ratio to the constant while one's own
    constants are looked for; ``as_stated``, it stays what it is, so that one fabric says nothing of another. Rows that
    state no layout are left out, or, where not only those ``laid_out`` count, have the fastest one that fits.
    """

    prepared: pl.DataFrame
    """Scenarios of all rows that can be predicted, measured or not."""

    def __init__(self, rows: pl.DataFrame, *, as_stated: bool = False, laid_out: bool = True) -> None:
        import polars as pl

        self.as_stated = as_stated
        frame, self.reasons = prepared(rows)
        self.prepared = frame
        measured = measured_step_s(rows, frame)
        groups = rows["group"] if "group" in rows.columns else pl.Series([""] * rows.height)
        if frame.height:
            frame = frame.with_columns(
                measured_s=measured.gather(frame["row"]), group=groups.fill_null("").gather(frame["row"])
            )
            guessed = pl.col("assumed").str.contains("layout")
            frame = frame.filter(pl.col("measured_s").is_not_null() & ~(guessed & laid_out))
        self.frame = frame

    def only(self, rows: Collection[int]) -> Measured:
        """Return the measured rows of these numbers alone."""
        import polars as pl

        some = copy(self)
        some.__dict__.pop("arrays", None)
        some.frame = self.frame.filter(pl.col("row").is_in(list(rows)))
        return some

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Quantities of the scenarios."""
        return {name: self.frame[name].to_numpy() for name in self.frame.columns if name not in BESIDE}

    def results(self, values: Mapping[str, float], *names: str, at: Any = None) -> dict[str, Any]:
        """Return quantities with constants as given, each an array over the scenarios or those numbered ``at``."""
        import numpy as np

        given = self.arrays if at is None else {name: value[at] for name, value in self.arrays.items()}
        usual = constants()
        own = {name: self._own(name, given[name], value) for name, value in values.items() if name in given}
        known = {**usual, **given, **values, **own}
        with np.errstate(all="ignore"):
            found = compute(ask(known, names).steps, known)  # type: ignore[arg-type]
        height = len(next(iter(given.values())))
        return {name: np.broadcast_to(np.asarray(found[name]), height) for name in names}

    def _own(self, name: str, stated: np.ndarray, value: float) -> np.ndarray:
        """Return a constant of each row: what it states, or the value; a stated one in proportion, unless as stated."""
        usual = constants()[name]
        scaled = stated * (value / usual)
        if not self.as_stated:
            return scaled
        import numpy as np

        return np.where(stated == usual, scaled, stated)

    def chosen(self, values: Mapping[str, float]) -> np.ndarray:
        """Return the number of the scenario that stands for each row: the fastest that fits, else the smallest."""
        import polars as pl

        found = self.results(values, "step_s", "memory_needed_bytes")
        frame = (
            self.frame.select("row")
            .with_row_index("scenario")
            .with_columns(
                step_s=pl.Series(found["step_s"]),
                over=pl.Series(found["memory_needed_bytes"] / self.arrays["accelerator_memory_bytes"]).clip(
                    1.0 + ROUNDING
                ),
            )
        )
        best = frame.sort("over", "step_s").group_by("row", maintain_order=True).first().sort("row")
        return best["scenario"].to_numpy()


def priors() -> Priors:
    """Return prior and spread of the logarithm of every fitted constant."""
    rows = datasets.table("performance_constants").collect().iter_rows(named=True)
    return {
        row["quantity"]: (row["prior"], row["prior_spread"])
        for row in rows
        if row["left_out"] == EVERYTHING and row["prior"] is not None
    }


def fit(
    measured: Measured,
    used: Any = None,
    leaning: Priors | None = None,
    start: Mapping[str, float] | None = None,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the constants, within the bounds of their quantities, and their relative standard errors.

    Parameters
    ----------
    measured
        The rows.
    used
        Which scenarios may inform the constants, as an array of truth values; all by default.
    leaning
        Priors; those of the table by default.
    start
        Constants to start from; the priors by default.
    """
    import numpy as np
    from scipy.optimize import least_squares

    leaning = leaning or priors()
    names = list(leaning)
    prior = np.log([leaning[name][0] for name in names])
    spread = np.array([leaning[name][1] for name in names])
    x = np.log([start[name] for name in names]) if start else prior
    found: Any = None
    for _ in range(CHOICES):
        at = measured.chosen(dict(zip(names, np.exp(x), strict=True)))
        at = at if used is None else at[np.asarray(used)[at]]
        logged = np.log(measured.frame["measured_s"].to_numpy()[at])
        weights = weight(measured.frame["group"].to_numpy()[at], measured.arrays["assumed_inputs"][at]) ** 0.5 / NOISE

        def residuals(x: np.ndarray, at: Any = at, logged: Any = logged, weights: Any = weights) -> np.ndarray:
            values = dict(zip(names, np.exp(x), strict=True))
            predicted = measured.results(values, "step_s", at=at)["step_s"]
            return np.concatenate([(np.log(predicted) - logged) * weights, (x - prior) / spread])

        found = least_squares(residuals, x, loss=_robust(len(at)), x_scale="jac", ftol=1e-6, xtol=1e-5)
        x = found.x
    errors = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    rows = [quantity(name) for name in names]
    values = [min(max(float(value), row.lower), row.upper) for value, row in zip(np.exp(x), rows, strict=True)]
    return dict(zip(names, values, strict=True)), dict(zip(names, errors, strict=True))


def _robust(rows: int) -> Any:
    """Return SciPy's ``cauchy`` for the misses of rows, and plain squares for the priors that follow them.

    The pull of a row falls again the farther it misses: of runs that stalled, no constant should learn.
    """
    import numpy as np

    def loss(z: np.ndarray) -> np.ndarray:
        t = 1.0 + z
        rho = np.array([np.log(t), 1.0 / t, -1.0 / t**2])
        rho[:, rows:] = [z[rows:], np.ones_like(z[rows:]), np.zeros_like(z[rows:])]
        return rho

    return loss


def weight(groups: np.ndarray, assumed: np.ndarray | None = None) -> np.ndarray:
    """Return the weight of each row: near-copies of each other, one group, count as the root of their number.

    Each input that was assumed and not stated adds as much doubt as there was.
    """
    import numpy as np

    _, of_group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    return sizes[of_group] ** -0.5 / (1.0 if assumed is None else 1.0 + assumed)
