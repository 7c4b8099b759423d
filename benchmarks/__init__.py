"""Speeds and errors, each beside its rival and measured in the same run: ``python -m benchmarks [topic …]``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


class Missing(Exception):
    """What a topic or a rival needs and this machine lacks, and how to get it."""


@dataclass(frozen=True)
class Row:
    """One comparison: medians in seconds and what they may be at most; ``why_alone`` is the reason why no rival ran."""

    what: str
    rival: str
    ours_s: float
    rival_s: float | None
    at_most_ratio: float | None = None
    at_most_s: float | None = None
    why_alone: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours_s / self.rival_s if self.rival_s else None

    @property
    def target(self) -> str:
        ratio = [f"ratio <= {self.at_most_ratio:g}"] if self.at_most_ratio is not None else []
        return " and ".join([*ratio, *([f"<= {spoken(self.at_most_s)}"] if self.at_most_s is not None else [])])

    @property
    def verdict(self) -> str:
        """Return ``holds`` or ``missed``, or nothing where there is no target or no rival to hold it against."""
        held = [self.ratio <= self.at_most_ratio] if self.ratio is not None and self.at_most_ratio is not None else []
        held += [self.ours_s <= self.at_most_s] if self.at_most_s is not None else []
        return "" if not held else "holds" if all(held) else "missed"

    @property
    def figures(self) -> str:
        ratio = f"{self.ratio:.3g}" if self.ratio is not None else "–"
        return f"{spoken(self.ours_s):>9}{spoken(self.rival_s):>10}{ratio:>10}"


@dataclass(frozen=True)
class Errors:
    """One comparison of predictions: median and 90th percentile of the absolute error of both on the same rows."""

    what: str
    rival: str
    ours: tuple[float, float] | None = None
    theirs: tuple[float, float] | None = None
    why_alone: str = ""
    target: str = "both errors below"

    @property
    def verdict(self) -> str:
        """Return ``holds`` or ``missed``, or nothing where no rival ran."""
        if self.ours is None or self.theirs is None:
            return ""
        return "holds" if all(ours < theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)) else "missed"

    @property
    def figures(self) -> str:
        shown = ["–" if pair is None else f"{pair[0]:.1%}/{pair[1]:.0%}" for pair in (self.ours, self.theirs)]
        return f"{shown[0]:>12}{shown[1]:>12}{'':>5}"


def spoken(seconds: float | None) -> str:
    """Return a time with its unit.

    >>> spoken(0.04), spoken(3.25e-5), spoken(12.0)
    ('40 ms', '32.5 µs', '12 s')
    """
    if seconds is None:
        return "–"
    scale, unit = next(
        (scale, unit) for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (0, "ns")) if seconds >= scale
    )
    return f"{seconds / (scale or 1e-9):.3g} {unit}"


def pair(
    what: str,
    ours: Callable[[], object],
    rival: str,
    other: Callable[[], object],
    *,
    at_most_ratio: float | None = None,
    at_most_s: float | None = None,
    runs: int = 7,
) -> Row:
    """Return the medians of ``runs`` alternating runs after one warm-up each."""
    times: tuple[list[float], list[float]] = ([], [])
    for run in range(runs + 1):
        for call, kept in zip((ours, other), times, strict=True):
            elapsed = timed(call)
            if run:
                kept.append(elapsed)
    return Row(what, rival, median(times[0]), median(times[1]), at_most_ratio, at_most_s)


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of one call; its result is gone before the next."""
    start = time.perf_counter()
    result = call()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def median(times: list[float]) -> float:
    """Return the median."""
    return statistics.median(times)
