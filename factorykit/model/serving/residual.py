"""Gaussian process of what the formulas of serving leave unexplained, by engine, chip, model, mode and format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from factorykit.data.tables import table

if TYPE_CHECKING:
    import numpy as np

WORDS: Final = ("engine", "chip", "model", "mode", "format")
"""What rows are grouped by: rows of one group share an offset, others share it in part."""


@cache
def constants(target: str) -> dict[str, float]:
    """Return the constants of the process of one target: ``ttft``, ``tpot`` or ``benchmark``.

    >>> constants("tpot")["noise_agg"] < constants("tpot")["noise_disagg"]
    True
    """
    rows = table("serving_constants").filter(target=target).collect()
    return dict(zip(rows["name"].to_list(), rows["value"].to_list(), strict=True))


def same_words(first: Sequence[Mapping[str, str]], second: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return for each kind of word whether it is equal, of all pairs of rows."""
    import numpy as np

    codes = [np.array([[hash(row[word]) for row in rows] for word in WORDS]) for rows in (first, second)]
    return {word: codes[0][at][:, None] == codes[1][at] for at, word in enumerate(WORDS)}


def covariance(
    values: Mapping[str, float], first: np.ndarray, second: np.ndarray, same: Mapping[str, np.ndarray]
) -> np.ndarray:
    r"""Return the covariance of the residuals of all pairs of rows.

    .. math::
        \sigma_l^2 \, (4 + x \cdot x') + \sum_w \sigma_w^2 [w = w']
        + \sum_{i} \sigma_i^2 \, e^{-|x - x'|^2 / 2 l_i^2} \prod_w \rho_{i,w}^{[w \ne w']}

    Notes
    -----
    The second sum gives each engine, chip, model, mode and format an offset that shrinks towards the population: one
    with many rows keeps its own, one without rows has none and a wider interval. The third has a short and a long
    correlation over layout and load. Rasmussen and Williams, section 5.4.3, combine terms likewise.
    """
    import numpy as np

    lengths = np.array([values[f"length_{column}"] for column in range(first.shape[1])])
    a, b = first / lengths, second / lengths
    squares = np.maximum((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T, 0.0)
    near = values["near"] ** 2 * np.exp(-0.5 * squares)
    far = values["far"] ** 2 * np.exp(-0.5 * squares / values["far_length"] ** 2)
    total = values["linear"] ** 2 * (4.0 + first @ second.T)
    for word, equal in same.items():
        total += values[f"offset_{word}"] ** 2 * equal
        near *= np.where(equal, 1.0, values[f"near_carry_{word}"])
        far *= np.where(equal, 1.0, values[f"far_carry_{word}"])
    return total + near + far


def own_variance(values: Mapping[str, float], features: np.ndarray) -> np.ndarray:
    """Return the variance of each row before any row is known, without noise."""
    constant = sum(values[name] ** 2 for name in ("near", "far", *(f"offset_{word}" for word in WORDS)))
    return values["linear"] ** 2 * (4.0 + (features**2).sum(axis=1)) + constant


def noise_variance(values: Mapping[str, float], words: Sequence[Mapping[str, str]]) -> np.ndarray:
    """Return the variance of the noise of each row, by mode."""
    import numpy as np

    return np.array([values[f"noise_{row['mode']}"] ** 2 for row in words])


CALIBRATED: Final = ("engine", "chip", "model")
"""Words with intervals of their own width, the factor ``width_<word>_<name>``; other names have none."""
LEAST_HALF_WIDTH: Final = 0.025
"""Least half width: submissions of one system by several makers differ by 2 to 5 %."""
LEFT_OUT: Final = ("row", "sweep", "chip")
"""What was left out to calibrate intervals: rows, all rows of their sweep or system, all rows of their chip."""


def widened(values: Mapping[str, float], words: Sequence[Mapping[str, str]], variance: np.ndarray) -> np.ndarray:
    """Return half the width of 90 % intervals of logarithms, calibrated on rows that were left out.

    The widths that held 90 % of the rows of a mode, between the typical deviations of rows that were left out alone,
    with their sweep and with their chip; between these in proportion, of logarithms. Engines, chips and models whose
    rows scatter more or less than others have a factor.
    """
    import numpy as np

    deviation, half = np.sqrt(variance), np.empty(len(variance))
    modes = np.array([row["mode"] for row in words])
    for mode in dict.fromkeys(modes):
        known = sorted((values[f"deviation_{mode}_{n}"], values[f"half_width_{mode}_{n}"]) for n in LEFT_OUT)
        at, width = np.log(np.array(known)).T
        rows = modes == mode
        half[rows] = deviation[rows] * np.exp(np.interp(np.log(deviation[rows]), at, width))
    own = [math.prod(values.get(f"width_{word}_{row[word]}", 1.0) for word in CALIBRATED) for row in words]
    return np.maximum(half * np.array(own), LEAST_HALF_WIDTH)


def bounded(values: Mapping[str, float], residual: np.ndarray) -> np.ndarray:
    """Return residuals within the bound of their target, if it has one: first tokens of some rows wait for stalls."""
    return residual.clip(-values.get("bound", math.inf), values.get("bound", math.inf))


def precision_of(values: Mapping[str, float], words: Sequence[Mapping[str, str]], features: np.ndarray) -> np.ndarray:
    """Return the inverse of the covariance of rows with their noise."""
    import numpy as np

    total = covariance(values, features, features, same_words(words, words))
    return np.linalg.inv(total + np.diag(noise_variance(values, words)))


def left_out(precision: np.ndarray, residual: np.ndarray, groups: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of each row's residual without the rows of its group.

    Rasmussen and Williams, equations 5.10 to 5.12, for blocks of rows.
    """
    import numpy as np

    weights = precision @ residual
    mean, variance = np.empty(len(residual)), np.empty(len(residual))
    order = np.unique(groups, return_inverse=True)[1]
    for rows in np.split(np.argsort(order, kind="stable"), np.cumsum(np.bincount(order))[:-1]):
        block = np.linalg.inv(precision[np.ix_(rows, rows)])
        mean[rows], variance[rows] = residual[rows] - block @ weights[rows], np.diag(block)
    return mean, variance


FAMILY: Final = ("engine", "chip", "model")
"""Words of the rows between which the posterior is exact; others are joined by some of their rows."""
JOINING: Final = 256
"""Rows of a table that join its families."""
JITTER: Final = 1e-6


class Block(NamedTuple):
    """Rows of one family: whitened covariance with the joining rows, factor of the rest of their own, and weights."""

    rows: list[int]
    cross: np.ndarray
    factor: np.ndarray
    weights: np.ndarray


class Process:
    """Posterior of the residuals of one target, of the rows of a table.

    Rows of one family determine each other exactly, those of others through the joining rows (Snelson and Ghahramani,
    2007, partially independent conditional), which is within a percent of the exact posterior and a tenth of its work.
    Covariances with the joining rows are whitened by their Cholesky factor: no ill-conditioned matrix is inverted.
    """

    def __init__(self, target: str, words: Sequence[Mapping[str, str]], features: np.ndarray, residual: np.ndarray):
        """Condition the process on measured rows: their words, features and residuals."""
        import numpy as np

        self.values, self.words, self.features = constants(target), words, features
        residual = bounded(self.values, residual)
        self.joining = list(range(0, len(words), max(len(words) // JOINING, 1)))
        identity = np.eye(len(self.joining))
        self.joint = np.linalg.cholesky(self._covariance(self.joining, self.joining) + JITTER * identity)
        noise, blocks = noise_variance(self.values, words), {}
        total, vector = identity.copy(), np.zeros(len(self.joining))
        whitened = np.linalg.solve(self.joint, self._covariance(self.joining, [*range(len(words))]))
        for family, rows in _families(words, FAMILY).items():
            cross = whitened[:, rows]
            own = self._covariance(rows, rows) - cross.T @ cross + np.diag(noise[rows] + JITTER)
            factor = np.linalg.cholesky(own)
            scaled = np.linalg.solve(factor, np.column_stack([cross.T, residual[rows]]))
            total += scaled[:, :-1].T @ scaled[:, :-1]
            vector += scaled[:, :-1].T @ scaled[:, -1]
            blocks[family] = rows, cross, factor, own
        self.spread = np.linalg.cholesky(total)
        mean = np.linalg.solve(total, vector)
        self.weights = np.linalg.solve(self.joint.T, mean)
        self.blocks = {
            family: Block(rows, cross, factor, np.linalg.solve(own, residual[rows] - cross.T @ mean))
            for family, (rows, cross, factor, own) in blocks.items()
        }

    def _covariance(self, first: list[int], second: list[int]) -> np.ndarray:
        same = same_words([self.words[row] for row in first], [self.words[row] for row in second])
        return covariance(self.values, self.features[first], self.features[second], same)

    def predict(
        self, words: Sequence[Mapping[str, str]], features: np.ndarray, *, intervals: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean of the residual and half the width of its 90 % interval, zero without intervals, of new rows."""
        import numpy as np

        mean, variance = np.empty(len(words)), np.zeros(len(words))
        for rows in _families(words, WORDS).values():
            row, new = words[rows[0]], features[rows]
            block = self.blocks.get(tuple(row[word] for word in FAMILY), Block([], *(np.zeros((0, 0)),) * 3))
            known = self.joining + block.rows
            same = same_words([row], [self.words[number] for number in known])
            both = covariance(self.values, new, self.features[known], same)
            cross, own = np.split(both, [len(self.joining)], axis=1)
            mean[rows] = cross @ self.weights
            if block.rows or intervals:
                cross = np.linalg.solve(self.joint, cross.T)
            unknown = own_variance(self.values, new) - (cross**2).sum(axis=0) if intervals else variance[rows]
            if block.rows:
                own = own - cross.T @ block.cross
                mean[rows] += own @ block.weights
                if intervals:
                    scaled = np.linalg.solve(block.factor, own.T)
                    unknown -= (scaled**2).sum(axis=0)
                    cross = cross - np.linalg.solve(block.factor, block.cross.T).T @ scaled
            if intervals:
                unknown += (np.linalg.solve(self.spread, cross) ** 2).sum(axis=0)
                variance[rows] = np.maximum(unknown, 0.0)
        if not intervals:
            return mean, variance
        return mean, widened(self.values, words, variance + noise_variance(self.values, words))


def _families(words: Sequence[Mapping[str, str]], names: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    """Return the numbers of the rows of each combination of some words."""
    found: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(words):
        found.setdefault(tuple(row[name] for name in names), []).append(number)
    return found
