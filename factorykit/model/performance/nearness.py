"""What measured layouts say of others: constants move, and what the model misses near a measured layout moves with it.

Logarithms of measured over predicted times are taken as one Gaussian process: slopes of the constants with their
spreads, a part that is alike for layouts that are near each other, and noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

DOUBLINGS: Final = (
    *("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "micro_batch_size"),
    *("accelerators", "global_batch_size", "sequence_length", "layers", "hidden_size"),
)
"""Quantities whose doubling is one step away."""
PLACES: Final = len(DOUBLINGS) + 3
"""Numbers that say where a layout lies."""
PLACED: Final = (*DOUBLINGS, "peak_flop_per_s", "recompute_share", "experts")
"""Quantities that say where a layout lies."""
CHIP: Final = 4.0
"""Steps for a doubling of the chip's rate, by another chip or number format."""
AGAIN: Final = 4.0
"""Steps from no recomputation to recomputing every layer."""
ROUTED: Final = 3.0
"""Steps from a dense model to one with experts."""
LENGTH: Final = 4.5
"""Steps over which misses stay alike."""
NEAR: Final = 0.25
"""Standard deviation of what layouts near each other miss in common, as a logarithm."""
NOISE: Final = 0.08
"""Standard deviation of what a single layout misses alone."""
TAILS: Final = 2.0
"""Degrees of freedom of misses: a layout that stalled teaches nothing, a software three times as slow much."""
PRIOR_ROWS: Final = 6.0
"""Rows that the usual width of the interval is worth beside the misses of one's own."""
TIMES: Final = 2
"""How often the constants move before slopes are taken where they have come to."""
REWEIGHTED: Final = 5
"""How often weights follow the misses."""
FAR: Final = 9.0
"""Squared standard deviations beyond which a miss widens the interval no more."""
# LENGTH, NEAR and NOISE: of 72 combinations the best for five rows of each of two halves of the families, within 0.5
# points of each other in the median for lengths of 2 to 4.5, 0.15 to 0.25 and 0.05 to 0.08.


def places(frame: pl.DataFrame) -> np.ndarray:
    """Return where layouts lie, a row each, in lengths over which misses stay alike."""
    import numpy as np

    def column(name: str) -> np.ndarray:
        return frame[name].to_numpy().astype(float)

    steps = [np.log2(np.maximum(column(name), 1.0)) for name in DOUBLINGS]
    steps.append(CHIP * np.log2(column("peak_flop_per_s")))
    steps.append(AGAIN * column("recompute_share"))
    steps.append(ROUTED * (column("experts") > 1.0))
    return np.column_stack(steps) / LENGTH


def alike(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the covariance of what layouts miss in common, for every pair."""
    import numpy as np

    apart = ((some[:, None, :] - others[None, :, :]) ** 2).sum(axis=2)
    return NEAR**2 * np.exp(-0.5 * apart)


@dataclass(frozen=True)
class Update:
    """What measured layouts say."""

    moved: np.ndarray
    """Logarithms by which the constants move."""
    sure: np.ndarray
    """Share of its spread that each constant keeps."""
    pull: np.ndarray
    """How strongly each layout draws those near it."""
    noise: np.ndarray
    """Variance of each layout's own miss, larger where it lies far from what the others say."""
    width: float
    """Width of intervals over the usual one."""


def update(
    missed: Callable[[np.ndarray], np.ndarray],
    spread: np.ndarray,
    where: np.ndarray,
    doubt: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
) -> Update:
    """Return what layouts say, given a function from moved constants to logarithms of measured over predicted times.

    Parameters
    ----------
    missed
        From logarithms by which constants move to what the layouts then miss.
    spread
        Standard deviation of the logarithm of each constant; one of zero stays.
    where
        Places of the layouts.
    doubt
        Variance of each layout's own miss over the usual one.
    bounds
        Least and greatest move of each constant.
    """
    import numpy as np

    near, noise = alike(where, where), NOISE**2 * doubt

    def straightened(moved: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        now = missed(moved)
        slopes = -slope(missed, moved, now, spread)
        return slopes, now + slopes @ moved, (slopes * spread**2) @ slopes.T + near

    moved = np.zeros(len(spread))
    for _ in range(TIMES):
        slopes, target, both = straightened(moved)
        inverse, _ = _weighed(both, noise, target)
        moved = np.clip(spread**2 * (slopes.T @ (inverse @ target)), *bounds)
    slopes, target, both = straightened(moved)
    inverse, own = _weighed(both, noise, target)
    told = np.einsum("ji,jk,ki->i", slopes, inverse, slopes) * spread**2
    usual = np.linalg.inv(both + np.diag(noise))
    odd = np.minimum((usual @ target) ** 2 / np.diag(usual), FAR)
    width = float(np.sqrt((PRIOR_ROWS + odd.sum()) / (PRIOR_ROWS + len(odd))))
    pull = np.linalg.solve(near + np.diag(own), missed(moved))
    return Update(moved, np.sqrt(np.clip(1.0 - told, 0.0, 1.0)), pull, own, width)


def _weighed(both: np.ndarray, noise: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse covariance of misses and the variance of each one's own, larger where it lies far off."""
    import numpy as np

    own = noise
    inverse = np.linalg.inv(both + np.diag(own))
    for _ in range(REWEIGHTED):
        alone = own * (inverse @ target)
        own = noise * (TAILS + alone**2 / noise) / (TAILS + 1.0)
        inverse = np.linalg.inv(both + np.diag(own))
    return inverse, own


def slope(
    missed: Callable[[np.ndarray], np.ndarray], moved: np.ndarray, now: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Return how misses change with the logarithm of each constant that may move, a column each."""
    import numpy as np

    step, found = 0.02, np.zeros((len(now), len(moved)))
    for number in np.flatnonzero(spread):
        there = moved.copy()
        there[number] += step
        found[:, number] = (missed(there) - now) / step
    return found


def drawn(there: np.ndarray, where: np.ndarray, pull: Any, noise: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return how far layouts are drawn by measured ones, and the variance of what they still miss in common."""
    import numpy as np

    between = alike(there, where)
    known = np.linalg.solve(alike(where, where) + np.diag(noise), between.T)
    return between @ np.asarray(pull), np.maximum(NEAR**2 - (between * known.T).sum(axis=1), 0.0)


def most_telling(slopes: np.ndarray, spread: np.ndarray, where: np.ndarray, count: int) -> list[int]:
    """Return the layouts that leave least unsaid of all of them once measured, the first one first."""
    import numpy as np

    unsaid, picked = (slopes * spread**2) @ slopes.T + alike(where, where), []
    for _ in range(min(count, len(where))):
        total = unsaid.diagonal() + NOISE**2
        gain = (unsaid**2).sum(axis=0) / total
        gain[picked] = -1.0
        best = int(gain.argmax())
        picked.append(best)
        unsaid = unsaid - np.outer(unsaid[:, best], unsaid[best]) / total[best]
    return picked
