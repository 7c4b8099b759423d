"""What measured layouts say of others: constants move, and what the model misses near a measured layout moves with it.

Logarithms of measured over predicted times are taken as one Gaussian process: slopes of the constants with their
spreads, a part that is alike for layouts that are near each other, and noise. How large each of them is differs from
one software to the next: every combination counts as much as the misses make it likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from factorykit.formulas.step.interval import NORMAL_95

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
PACED: Final = ("step_pace", "spread_unsaid")
"""Quantities that measured layouts say of those near them."""
CHIP: Final = 4.0
"""Steps for a doubling of the chip's rate, by another chip or number format."""
AGAIN: Final = 4.0
"""Steps from no recomputation to recomputing every layer."""
ROUTED: Final = 3.0
"""Steps from a dense model to one with experts."""
LENGTH: Final = 4.5
"""Steps over which misses stay alike."""
MOVED: Final = {0.125: 0.55, 0.5: 0.45}
"""Shares of their spreads by which the constants of one software move, and how many are like that."""
NEAR: Final = {0.05: 0.36, 0.1: 0.45, 0.2: 0.04, 0.3: 0.15}
"""Standard deviations of what layouts near each other miss in common, as a logarithm, and how many are like that."""
NOISE: Final = {0.03: 0.55, 0.06: 0.33, 0.12: 0.1, 0.24: 0.02}
"""Standard deviations of what a single layout misses alone, and how many are like that."""
# benchmarks/fit_calibration.py finds the shares from 23 families of published runs; those of either half are within 0.1
# of them.
KINDS: Final = {
    (moved, near, noise): MOVED[moved] * NEAR[near] * NOISE[noise] for moved, near, noise in product(MOVED, NEAR, NOISE)
}
"""Kinds of software, and how many are like that."""
ENOUGH: Final = 100
"""Layouts that say of which kind a software is; of more, evenly many are asked."""
UNLIKELY: Final = 0.1
"""Share below which a kind of software is passed over where there are more."""
STALLED: Final = 0.05
"""Share of layouts that something held up."""
STALL: Final = 0.7
"""Standard deviation of the logarithm by how much."""
WIDEST: Final = (0.5, 0.25, 0.08)
"""Move, nearness and noise for which layouts are designed: of seven the best for three, five and ten rows."""
COVERED: Final = 0.9
"""Share of layouts that an interval covers."""
WIDENED: Final = 3.0
"""Factor on intervals beyond which no layout asks for more: something held it up."""
AHEAD: Final = 10.0
"""Layouts that the width of intervals is worth before one's own layouts say how wide they are."""
AT_ONCE: Final = 4096
"""Layouts that are held against the measured ones at a time."""
TIMES: Final = 2
"""How often the constants move before slopes are taken where they have come to."""


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
    """Return the correlation of what layouts miss in common, for every pair."""
    import numpy as np

    apart = (some**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * some @ others.T
    return np.exp(-0.5 * np.maximum(apart, 0.0))


@dataclass(frozen=True)
class Update:
    """What measured layouts say."""

    moved: np.ndarray
    """Logarithms by which the constants move."""
    sure: np.ndarray
    """Share of its spread that each constant keeps."""
    pull: np.ndarray
    """How strongly each layout draws those near it."""
    doubt: np.ndarray
    """Variance of what each layout misses alone over that of what it misses in common with those near it."""
    alone: float
    """Standard deviation of what a layout misses alone."""
    left: np.ndarray
    """What each layout misses where the others predict it."""


@dataclass(frozen=True)
class Belief:
    """What the layouts say if the software is of one kind."""

    kind: tuple[float, float, float]
    """Share of their spreads that constants move by, nearness, and noise."""
    known: np.ndarray
    """Inverse covariance of what the layouts miss."""
    own: np.ndarray
    """Variance of what each layout misses alone, larger where something held it up."""
    evidence: float
    """Logarithm of how likely the misses are."""


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

    near, moved = alike(where, where), np.zeros(len(spread))
    some = np.arange(0, len(where), math.ceil(len(where) / ENOUGH))

    def straightened() -> tuple[np.ndarray, np.ndarray, list[Belief]]:
        now = missed(moved)
        slopes = -slope(missed, moved, now, spread)
        target, moves = now + slopes @ moved, (slopes * spread**2) @ slopes.T
        beliefs = beliefs_of(KINDS, moves[some][:, some], near[some][:, some], doubt[some], target[some])
        if len(some) < len(where):
            likely = {
                one.kind: KINDS[one.kind]
                for one, share in zip(beliefs, _shares(beliefs), strict=True)
                if share > UNLIKELY
            }
            beliefs = beliefs_of(likely, moves, near, doubt, target)
        return slopes, target, beliefs

    for _ in range(TIMES):
        slopes, target, beliefs = straightened()
        drawn = _mean(beliefs, [one.kind[0] ** 2 * (one.known @ target) for one in beliefs])
        moved = np.clip(spread**2 * (slopes.T @ drawn), *bounds)
    slopes, target, beliefs = straightened()
    told = [one.kind[0] ** 2 * np.einsum("ji,jk,ki->i", slopes, one.known, slopes) * spread**2 for one in beliefs]
    return Update(
        moved,
        _mean(beliefs, [np.sqrt(np.clip(1.0 - share, 0.0, 1.0)) for share in told]),
        _mean(beliefs, [one.kind[1] ** 2 * (one.known @ target) for one in beliefs]),
        _mean(beliefs, [one.own / one.kind[1] ** 2 for one in beliefs]),
        float(np.sqrt(_mean(beliefs, [np.array(one.kind[2] ** 2) for one in beliefs]))),
        _mean(beliefs, [one.known @ target / one.known.diagonal() for one in beliefs]),
    )


def widened(found: Update, where: np.ndarray, spread: np.ndarray, weight: np.ndarray) -> float:
    """Return the factor on all spreads with which the layouts lie within each other's intervals as often as promised.

    Each layout is predicted by the others [1]_; the more there are, the more they say.

    Parameters
    ----------
    found
        What all layouts say.
    where
        Places of the layouts.
    spread
        Standard deviation of the logarithm of each layout's step time before any was measured.
    weight
        How much each layout counts, the less the more copies it has.

    References
    ----------
    .. [1] R. F. Barber et al., Predictive inference with the jackknife+, Annals of Statistics 49 (1), 2021.
    """
    import numpy as np

    unsaid = np.clip(1.0 / np.linalg.inv(alike(where, where) + np.diag(found.doubt)).diagonal() - found.doubt, 0.0, 1.0)
    squares = np.minimum((found.left / NORMAL_95) ** 2 / (found.alone**2 + unsaid * spread**2), WIDENED**2)
    order, count = squares.argsort(), float(weight.sum())
    reached = float(np.interp(COVERED * (count + 1.0), weight[order].cumsum(), squares[order]))
    return math.sqrt((AHEAD + count * reached) / (AHEAD + count))


def beliefs_of(
    kinds: Mapping[tuple[float, float, float], float],
    moves: np.ndarray,
    near: np.ndarray,
    doubt: np.ndarray,
    target: np.ndarray,
) -> list[Belief]:
    """Return what the misses say under every kind of software."""
    beliefs = []
    for (moved, common, noise), share in kinds.items():
        known, own, evidence = _told(moved**2 * moves + common**2 * near, noise**2 * doubt, target)
        beliefs.append(Belief((moved, common, noise), known, own, evidence + math.log(share)))
    return beliefs


def _shares(beliefs: list[Belief]) -> np.ndarray:
    """Return how likely each kind of software is."""
    import numpy as np

    evidence = np.array([one.evidence for one in beliefs])
    likely = np.exp(evidence - evidence.max())
    return likely / likely.sum()


def _mean(beliefs: list[Belief], values: list[np.ndarray]) -> Any:
    """Return the mean of values over kinds of software, each as likely as what the layouts missed makes it."""
    return sum(share * value for share, value in zip(_shares(beliefs), values, strict=True))


def _told(both: np.ndarray, noise: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the inverse covariance of misses, each one's own variance, and the logarithm of how likely the misses are.

    Layouts that something held up are found one by one, the one that it explains best first, while they are the fewer.
    """
    import numpy as np

    own = noise.copy()
    known = np.linalg.inv(both + np.diag(own))
    evidence = 0.5 * float(np.linalg.slogdet(known)[1] - target @ known @ target)
    while True:
        sure, pulled = known.diagonal(), known @ target
        wider = 1.0 + STALL**2 * sure
        gain = math.log(STALLED / (1.0 - STALLED)) - 0.5 * np.log(wider) + 0.5 * STALL**2 * pulled**2 / wider
        gain[own > noise] = 0.0
        worst = int(gain.argmax())
        if gain[worst] <= 0.0 or 2 * (own > noise).sum() + 2 > len(own):
            return known, own, evidence
        own[worst] += STALL**2
        evidence += float(gain[worst])
        known -= np.outer(known[worst], known[worst]) * (STALL**2 / wider[worst])


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


def drawn(there: np.ndarray, where: np.ndarray, pull: Any, doubt: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return how far layouts are drawn by measured ones, and the share of what they miss that these leave unsaid."""
    import numpy as np

    known = np.linalg.inv(alike(where, where) + np.diag(doubt))
    moved, unsaid = np.empty(len(there)), np.empty(len(there))
    for start in range(0, len(there), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        between = alike(there[some], where)
        moved[some] = between @ np.asarray(pull)
        unsaid[some] = np.clip(1.0 - ((between @ known) * between).sum(axis=1), 0.0, 1.0)
    return moved, unsaid


def most_telling(slopes: np.ndarray, spread: np.ndarray, where: np.ndarray, count: int) -> list[int]:
    """Return the layouts that leave least unsaid of all of them once measured, the first one first."""
    import numpy as np

    share, near, noise = WIDEST
    unsaid, picked = (slopes * (share * spread) ** 2) @ slopes.T + near**2 * alike(where, where), []
    for _ in range(min(count, len(where))):
        total = unsaid.diagonal() + noise**2
        gain = (unsaid**2).sum(axis=0) / total
        gain[picked] = -1.0
        best = int(gain.argmax())
        picked.append(best)
        unsaid = unsaid - np.outer(unsaid[:, best], unsaid[best]) / total[best]
    return picked
