"""Gaussian process of what the formulas of serving leave unexplained, by engine, chip, model, mode and format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

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

    return {
        word: np.array([row[word] for row in first])[:, None] == np.array([row[word] for row in second])
        for word in WORDS
    }


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

    lengths = np.array([values[f"length_{column}"] for column in range(first.shape[1])], first.dtype)
    a, b = first / lengths, second / lengths
    squares = np.maximum((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T, 0.0)
    near = values["near"] ** 2 * np.exp(-0.5 * squares)
    far = values["far"] ** 2 * np.exp(-0.5 * squares / values["far_length"] ** 2)
    kind = first.dtype
    total, carried, far_carried = values["linear"] ** 2 * (4.0 + first @ second.T), np.ones(1, kind), np.ones(1, kind)
    for word, equal in same.items():
        total += (values[f"offset_{word}"] ** 2 * equal).astype(kind)
        carried = carried * np.where(equal, 1.0, values[f"near_carry_{word}"]).astype(kind)
        far_carried = far_carried * np.where(equal, 1.0, values[f"far_carry_{word}"]).astype(kind)
    return total + near * carried + far * far_carried


def own_variance(values: Mapping[str, float], features: np.ndarray) -> np.ndarray:
    """Return the variance of each row before any row is known, without noise."""
    offsets = sum(values[f"offset_{word}"] ** 2 for word in WORDS)
    return (
        values["linear"] ** 2 * (4.0 + (features**2).sum(axis=1)) + offsets + values["near"] ** 2 + values["far"] ** 2
    )


def noise_variance(values: Mapping[str, float], words: Sequence[Mapping[str, str]]) -> np.ndarray:
    """Return the variance of the noise of each row, by mode."""
    import numpy as np

    return np.array([values[f"noise_{row['mode']}"] ** 2 for row in words])


CALIBRATED: Final = ("engine", "chip", "model")
"""Words with intervals of their own width, the factor ``width_<word>_<name>``; other names have none."""
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
    return half * np.array(own)


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


class Process:
    """Posterior of the residuals of one target, of the rows of a table."""

    def __init__(self, target: str, words: Sequence[Mapping[str, str]], features: np.ndarray, residual: np.ndarray):
        """Condition the process on measured rows: their words, features and residuals."""
        self.values, self.words, self.features = constants(target), words, features
        self.precision = precision_of(self.values, words, features)
        self.weights = self.precision @ residual

    def predict(
        self, words: Sequence[Mapping[str, str]], features: np.ndarray, *, intervals: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean of the residual and half the width of its 90 % interval, of new rows.

        Without intervals the width is zero and the mean is rounded to 32 bits, which is enough to rank rows.
        """
        import numpy as np

        mean, variance = np.empty(len(words)), np.zeros(len(words))
        kind = np.float64 if intervals else np.float32
        new, known, weights = features.astype(kind), self.features.astype(kind), self.weights.astype(kind)
        families: dict[tuple[str, ...], list[int]] = {}
        for number, row in enumerate(words):
            families.setdefault(tuple(row[word] for word in WORDS), []).append(number)
        for rows in families.values():
            same = same_words([words[rows[0]]], self.words)
            cross = covariance(self.values, new[rows], known, same)
            mean[rows] = cross @ weights
            if intervals:
                explained = ((cross @ self.precision) * cross).sum(axis=1)
                variance[rows] = np.maximum(own_variance(self.values, features[rows]) - explained, 0.0)
        if not intervals:
            return mean, variance
        return mean, widened(self.values, words, variance + noise_variance(self.values, words))
