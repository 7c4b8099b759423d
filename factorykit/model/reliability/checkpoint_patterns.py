"""Multi-level checkpoint patterns: their exact expected time, and the best pattern."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need, public_names
from factorykit.core.validation import as_list, integer
from factorykit.core.vocabulary import quantity
from factorykit.formulas.checkpoint_tiers import level_interval_s, level_overhead

__dir__ = public_names(__name__)

LONGEST_S = 1e9
"""Longest save or restart of a level. [s]"""
MOST_LEVELS = 10
"""Most levels of a pattern."""


@dataclass(frozen=True, slots=True)
class Level:
    """One place for checkpoints, the nearest first.

    Parameters
    ----------
    share
        Share of all failures that need this level: every nearer copy is lost, this one is not. Shares sum to 1.
    write_s
        Time the job stands still for a checkpoint of this level, on top of the nearer ones. [s]
    restart_s
        Restart from this level. [s]
    """

    share: float
    write_s: float
    restart_s: float = 0.0

    def __post_init__(self) -> None:
        quantity("level_share").check(self.share)
        quantity("level_one_write_s").check(self.write_s)
        quantity("restart_s").check(self.restart_s)


def first_order(levels: Sequence[Level], cluster_mtbf_s: float) -> pl.DataFrame:
    """Return the first-order scheme: each level saves at a Young period of its own.

    Returns
    -------
    DataFrame
        One row per level, in the order given: ``level`` (1 is the nearest), ``level_share``, ``level_write_s`` [s],
        ``level_interval_s`` [s], ``level_overhead`` (they add up) and ``segments_per_pattern``: checkpoints of the
        level below per checkpoint of this one, not rounded, null for the first.

    References
    ----------
    .. [1] A. Benoit et al., "Towards optimal multi-level checkpointing," IEEE Trans. Comput., vol. 66, no. 7, 2017.

    Examples
    --------
    >>> first_order([Level(0.9, 2.0), Level(0.1, 60.0)], 54 * 86400 / 419)["level_overhead"].sum()
    0.0508...
    """
    mtbf = float(quantity("cluster_mtbf_s").check(cluster_mtbf_s))
    levels = _checked(levels)
    frame = pl.DataFrame(
        {
            "level": [float(number) for number in range(1, len(levels) + 1)],
            "level_share": [level.share for level in levels],
            "level_write_s": [level.write_s for level in levels],
        },
        schema_overrides={"level_share": pl.Float64, "level_write_s": pl.Float64},
    )
    interval = level_interval_s(pl.col("level_write_s"), pl.col("level_share"), pl.lit(mtbf))
    overhead = level_overhead(pl.col("level_write_s"), pl.col("level_share"), pl.lit(mtbf))
    return frame.with_columns(interval.alias("level_interval_s"), overhead.alias("level_overhead")).with_columns(
        (pl.col("level_interval_s") / pl.col("level_interval_s").shift()).alias("segments_per_pattern")
    )


def pattern_s(
    levels: Sequence[Level],
    counts: Sequence[int],
    checkpoint_interval_s: float,
    cluster_mtbf_s: float,
    *,
    downtime_s: float = 0.0,
    protected_restart: bool = True,
) -> float:
    r"""Return the expected time of one pattern of checkpoints in any number of levels, exactly.

    Parameters
    ----------
    levels
        Places for checkpoints, the nearest first.
    counts
        Checkpoints of each level per checkpoint of the next one; one fewer than levels.
    checkpoint_interval_s
        Work between two checkpoints of the nearest level. [s]
    cluster_mtbf_s
        Mean time between failures of the job. [s]
    downtime_s
        Time before each restart, in which nothing can fail. [s]
    protected_restart
        Whether no failure can strike a restart.

    Returns
    -------
    float
        Expected time from one checkpoint of the last level to the next [s]; infinite if it exceeds the range of
        doubles.

    Notes
    -----
    A block of level :math:`l` ends in success or in a failure that needs a higher level; a failure that needs
    level :math:`l` itself costs its restart and begins the block again. Chance of failure and mean time of a block
    follow from those of the level below in closed form. Where failures strike restarts, a struck restart begins again,
    from a higher level if the new failure needs one. For two levels this is ``two_level_pattern_s`` and
    ``two_level_pattern_exposed_s``.

    Examples
    --------
    >>> near, far = Level(0.85, 1.0, 60.0), Level(0.15, 30.0, 300.0)
    >>> round(pattern_s([near, far], [20], 120.0, 3600.0), 3)
    2688.957
    """
    mtbf = float(quantity("cluster_mtbf_s").check(cluster_mtbf_s))
    interval = float(quantity("checkpoint_interval_s").check(checkpoint_interval_s))
    levels = _checked(levels)
    counts = as_list("counts", counts)
    if len(counts) != len(levels) - 1:
        raise ScenarioError(f"counts = {short_repr(counts)}: give {len(levels) - 1} for {len(levels)} levels")
    for count in counts:
        if integer("counts", count) < 1:
            raise ScenarioError(f"counts = {short_repr(counts)}: each is at least 1")
    downtime = float(quantity("downtime_s").check(downtime_s))
    shares = [level.share for level in levels]
    recovery = downtime + sum(level.share * level.restart_s for level in levels)
    if not protected_restart:
        shares, recovery = _with_failures(levels, mtbf, downtime)
    rates = [share / mtbf for share in shares]

    def block(number: int, writes: float) -> tuple[float, float]:
        """Return log of 1 / chance of success and mean time of a block up to success or a higher failure."""
        higher = sum(rates[number:])
        if number == 0:
            length = (interval + writes) / mtbf
            return length, -mtbf * math.expm1(-length)
        repeats = counts[number - 2] if number > 1 else 1
        plain = block(number - 1, sum(level.write_s for level in levels[: number - 1]))
        last = block(number - 1, writes)
        hazard = (repeats - 1) * plain[0] + last[0]
        reached = -math.expm1(-(repeats - 1) * plain[0])
        time = (plain[1] * reached / -math.expm1(-plain[0]) if repeats > 1 else 0.0) + last[1] * (1.0 - reached)
        failed, here = -math.expm1(-hazard), rates[number - 1] / (rates[number - 1] + higher)
        again = failed * here
        kept = math.exp(-hazard) + failed * (1.0 - here)
        return math.log1p(failed * (1.0 - here) / math.exp(-hazard)), (time + again * recovery) / kept

    try:
        return block(len(levels), sum(level.write_s for level in levels))[1]
    except (OverflowError, ZeroDivisionError):
        return math.inf


def _with_failures(levels: Sequence[Level], mtbf: float, downtime: float) -> tuple[list[float], float]:
    """Return from which level work goes on, as shares, and the mean time from a failure until then.

    A recovery that is struck begins again from its level, or from the higher one that the new failure needs.
    """
    asked = [level.share for level in levels]
    struck = [-math.expm1(-level.restart_s / mtbf) for level in levels]
    left = [1.0 - strike * sum(asked[: number + 1]) for number, strike in enumerate(struck)]
    recovery, shares = [0.0] * len(levels), list(asked)
    for number in reversed(range(len(levels))):
        onward = sum(asked[later] * recovery[later] for later in range(number + 1, len(levels)))
        recovery[number] = (downtime + struck[number] * (mtbf + onward)) / left[number]
    for number, strike in enumerate(struck):
        for later in range(number + 1, len(levels)):
            shares[later] += shares[number] * strike * asked[later] / left[number]
        shares[number] *= (1.0 - strike) / left[number]
    return shares, sum(share * mean for share, mean in zip(asked, recovery, strict=True))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of checkpoints and its goodput."""

    checkpoint_interval_s: float
    counts: tuple[int, ...]
    goodput: float


def best_pattern(
    levels: Sequence[Level], cluster_mtbf_s: float, *, downtime_s: float = 0.0, protected_restart: bool = True
) -> Pattern:
    """Return the pattern with the highest goodput, exactly evaluated; parameters are those of :func:`pattern_s`.

    Notes
    -----
    Starts from the first-order scheme; then counts move by steps while goodput rises, and for each set of counts the
    interval is the numeric optimum.

    Examples
    --------
    >>> near, far = Level(0.85, 1.0, 60.0), Level(0.15, 30.0, 300.0)
    >>> best = best_pattern([near, far], 3600.0)
    >>> best.counts, round(best.checkpoint_interval_s), round(best.goodput, 4)
    ((13,), 90, 0.9056)
    """
    mtbf = float(quantity("cluster_mtbf_s").check(cluster_mtbf_s))
    levels = _checked(levels)
    minimize = need("scipy.optimize").minimize_scalar

    def evaluated(counts: tuple[int, ...]) -> Pattern:
        segments = math.prod(counts)

        def loss(log_interval: float) -> float:
            interval = math.exp(log_interval)
            exact = pattern_s(
                levels, counts, interval, mtbf, downtime_s=downtime_s, protected_restart=protected_restart
            )
            return -segments * interval / exact

        writes = sum(level.write_s / math.prod(counts[:i]) for i, level in enumerate(levels))
        start = 0.5 * (math.log(2.0) + math.log(mtbf) + math.log(max(writes, 1e-9 * mtbf)))
        optimum = minimize(loss, bounds=(start - 6.0, start + 3.0), method="bounded", options={"xatol": 1e-7})
        return Pattern(math.exp(optimum.x), counts, -float(optimum.fun))

    ratios = first_order(levels, mtbf)["segments_per_pattern"][1:].fill_nan(1.0).clip(1.0, 1e6)
    best = evaluated(tuple(round(ratio) for ratio in ratios))
    step = 2.0
    while step > 1.02:
        moved = [
            evaluated(counts)
            for i in range(len(best.counts))
            for count in {max(1, math.floor(best.counts[i] / step)), math.ceil(best.counts[i] * step)}
            if (counts := (*best.counts[:i], count, *best.counts[i + 1 :])) != best.counts
        ]
        better = max(moved, key=lambda pattern: pattern.goodput, default=best)
        if better.goodput > best.goodput:
            best = better
        else:
            step = math.sqrt(step)
    return best


def _checked(given: Sequence[Level]) -> Sequence[Level]:
    levels = as_list("levels", given)
    if wrong := [level for level in levels if not isinstance(level, Level)]:
        raise ScenarioError(f"levels must be Level(share, write_s, restart_s), got {short_repr(wrong[0])}")
    if not 1 <= len(levels) <= MOST_LEVELS:
        raise ScenarioError(f"levels are {len(levels)}; give 1 to {MOST_LEVELS} places for checkpoints")
    total = sum(level.share for level in levels)
    if not math.isclose(total, 1.0, rel_tol=1e-6):
        raise ScenarioError(f"level shares sum to {total:g}, not to 1; every failure needs one level")
    if (longest := max(max(level.write_s, level.restart_s) for level in levels)) > LONGEST_S:
        raise ScenarioError(f"a level takes {longest:g} s; give at most {LONGEST_S:g} s, some thirty years")
    if levels[-1].share <= 0.0:
        raise ScenarioError("the last level recovers no failure; omit it")
    return levels
