"""Speeds, each beside its rival and measured in the same run: ``python -m benchmarks [topic …]``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One comparison: medians in seconds, the ratio of the medians and what it should be."""

    what: str
    rival: str
    ours_s: float
    rival_s: float
    target: str

    @property
    def ratio(self) -> float:
        return self.ours_s / self.rival_s


def pair(
    what: str, ours: Callable[[], object], rival: str, other: Callable[[], object], target: str, runs: int = 7
) -> Row:
    """Return the medians of ``runs`` alternating runs after one warm-up each."""
    times: tuple[list[float], list[float]] = ([], [])
    for run in range(runs + 1):
        for call, kept in zip((ours, other), times, strict=True):
            start = time.perf_counter()
            result = call()
            elapsed = time.perf_counter() - start
            del result
            if run:
                kept.append(elapsed)
    return Row(what, rival, statistics.median(times[0]), statistics.median(times[1]), target)
