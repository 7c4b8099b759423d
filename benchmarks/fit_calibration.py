"""Estimate the prior of the hyperparameters in :mod:`factorykit.model.performance.gaussian_process`.

Twelve rows of each family, drawn eight times, with constants fitted without it, give the marginal likelihood of every
combination; the prior follows by expectation maximization, from all families and from either half. Needs NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factorykit.data.tables import table
from factorykit.engine.providers.constants import constants
from factorykit.model.performance.calibration import calibrated_constants, log_residuals
from factorykit.model.performance.fit_constants import Measured
from factorykit.model.performance.gaussian_process import (
    HYPERPARAMETER_GRID,
    PRIOR_CONSTANT_SCALE,
    PRIOR_NOISE_SD,
    PRIOR_SIGNAL_SD,
    hypotheses,
    jacobian,
    rbf_kernel,
)
from factorykit.model.performance.layout_features import features
from factorykit.model.performance.software import shared_residual

MIN_ROWS, ROWS, DRAWS, ITERATIONS = 20, 12, 8, 80
UNIFORM = dict.fromkeys(HYPERPARAMETER_GRID, 1.0 / len(HYPERPARAMETER_GRID))
Likelihoods = Sequence[np.ndarray]


def main() -> None:
    measured = Measured(table("training_runs").collect(), laid_out=False)
    families = sorted(set(measured.frame["family"]))
    found = {name: draws for name in families if (draws := likelihoods(measured, name))}
    for label, names in (("all", list(found)), ("one half", list(found)[::2]), ("other half", list(found)[1::2])):
        print(label, prior([found[name] for name in names]))


def likelihoods(measured: Measured, family: str) -> Likelihoods:
    """Return the log marginal likelihood of each combination of hyperparameters, for draws of a family's rows."""
    rows = measured.frame.filter(family=family)["row"].unique(maintain_order=True).to_list()
    if len(rows) < MIN_ROWS:
        return []
    own, start, (names, prior_sd) = measured.only(rows), constants(family), calibrated_constants()
    at = own.chosen(dict(start))
    chosen = own.frame[at.tolist()]
    residuals = log_residuals(own, start, names, at, shared_residual(chosen, without=None)["step_pace"])
    now = residuals(np.zeros(len(names)))
    slopes = jacobian(residuals, np.zeros(len(names)), now, prior_sd) * prior_sd
    where, noise_ratio = features(chosen), 1.0 + own.arrays["assumed_inputs"][at]
    draw, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        some = draw.permutation(len(at))[:ROWS]
        kernel = rbf_kernel(where[some], where[some])
        copies = (where[some][:, None] == where[some]).all(axis=2).sum(axis=1)
        grid = hypotheses(UNIFORM, slopes[some] @ slopes[some].T, kernel, copies * noise_ratio[some], now[some])
        found.append(np.array([given.log_weight for given in grid]))
    return found


def prior(families: Sequence[Likelihoods]) -> Mapping[str, Mapping[float, float]]:
    """Return the prior probability of each value of each hyperparameter."""
    probability = np.array(list(UNIFORM.values()))
    for _ in range(ITERATIONS):
        counts = np.full(len(probability), 0.5 / len(probability))
        for draws in families:
            likely = np.array([probability * np.exp(draw - draw.max()) for draw in draws])
            counts += (likely / likely.sum(axis=1, keepdims=True)).mean(axis=0)
        probability = counts / counts.sum()
    pairs = list(zip(probability, HYPERPARAMETER_GRID, strict=True))
    priors = {"scale": PRIOR_CONSTANT_SCALE, "signal": PRIOR_SIGNAL_SD, "noise": PRIOR_NOISE_SD}
    return {
        name: {value: round(float(sum(share for share, kind in pairs if kind[at] == value)), 2) for value in values}
        for at, (name, values) in enumerate(priors.items())
    }


if __name__ == "__main__":
    main()
