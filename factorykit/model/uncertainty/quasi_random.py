"""Points of the unit cube for sampling, in any range of their numbers; a point depends on its number alone."""

from __future__ import annotations

from functools import lru_cache
from threading import get_ident
from typing import Any, Final

from factorykit.core.extras import need
from factorykit.model.uncertainty.distributions import FURTHEST

SOBOL_BITS: Final = 30
"""Bits of a Sobol point as SciPy draws it; half of the last one, ``FURTHEST``, moves the points off zero."""


def points_between(d: int, n: int, seed: int, method: str, first: int, last: int) -> Any:
    """Return the points from ``first`` to before ``last`` of ``n``, one row each.

    They are scrambled Sobol points, a Latin hypercube (made whole each time), or random ones.
    """
    if method == "latin":
        return _hypercube(d, n, seed)[first:last]
    if method == "sobol":
        return _sobol(d, seed, first, last) + FURTHEST
    np = need("numpy")
    return np.random.Generator(np.random.PCG64(seed).advance(first * d)).random((last - first, d))


def _sobol(d: int, seed: int, first: int, last: int) -> Any:
    """Return a range of the sequence; SciPy only moves forward, so consecutive ranges are cheapest."""
    sequence = _sequence(d, seed, get_ident())
    if first < sequence.num_generated:
        sequence.reset()
    if first > sequence.num_generated:
        sequence.fast_forward(first - sequence.num_generated)
    if first:
        return sequence.random(last - first)
    # Drawn separately: SciPy warns if the length of the first range is not a power of two.
    return need("numpy").concatenate([sequence.random(1), sequence.random(last - 1)])


@lru_cache(maxsize=4)
def _sequence(d: int, seed: int, _thread: int) -> Any:
    """Return the sequence of a thread, which keeps its position."""
    return need("scipy.stats.qmc").Sobol(d, bits=SOBOL_BITS, rng=seed)


@lru_cache(maxsize=1)
def _hypercube(d: int, n: int, seed: int) -> Any:
    return need("scipy.stats.qmc").LatinHypercube(d, rng=seed).random(n)
