"""Run steps on every combination of some values, block by block, so that a grid of any size takes little memory.

The axes that change fastest make a block. Results that depend on these alone are computed once for all blocks; results
that depend on the slower axes alone are one number in a block.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from factorykit.engine.conditions import conditions
from factorykit.engine.resolve import Resolution
from factorykit.engine.run import add_checked_columns, fold
from factorykit.engine.step import Step

if TYPE_CHECKING:
    import polars as pl

MAX_BLOCK_ROWS: Final = 2**17
"""A column of so many rows stays in the caches of a processor."""
MIN_BLOCK_PARTS: Final = 4
"""A block smaller than the maximum divided by this also takes a segment of the next axis."""
CACHED_SEGMENTS: Final = 4
"""Segments of the divided axis whose results for the fast axes are kept."""


class Grid:
    """Every combination of values, the last axis changing fastest, cut into blocks of rows.

    A block holds every combination of the fastest axes; where these are few, with a segment of the axis before them.

    >>> import polars as pl
    >>> grid = Grid({"mfu": pl.Series([0.3, 0.4]), "pue": pl.Series([1.1, 1.2, 1.3])}, block_rows=3)
    >>> grid.rows, grid.blocks, grid.slow(1), grid.fast(grid.segment(1)).rows()
    (6, 2, {'mfu': 0.4}, [(1.1,), (1.2,), (1.3,)])
    """

    def __init__(self, axes: Mapping[str, pl.Series], block_rows: int) -> None:
        lengths, order, faster = [len(values) for values in axes.values()], list(axes), 1
        self.rows, cut = math.prod(lengths), len(axes)
        while cut > 0 and faster * lengths[cut - 1] <= block_rows:
            cut -= 1
            faster *= lengths[cut]
        self._segments = 1
        if cut == len(axes) or (cut > 0 and faster < block_rows // MIN_BLOCK_PARTS):
            cut -= 1
            self._segments = math.ceil(lengths[cut] / (block_rows // faster))
        self._slow = {name: axes[name] for name in order[:cut]}
        self._fast = {name: axes[name] for name in order[cut:]}
        self.blocks = math.prod(map(len, self._slow.values())) * self._segments

    def slow(self, block: int) -> dict[str, Any]:
        """Return the values that all rows of a block share."""
        number, shared = block // self._segments, {}
        for name, values in reversed(self._slow.items()):
            number, digit = divmod(number, len(values))
            shared[name] = values[digit]
        return dict(reversed(shared.items()))

    def segment(self, block: int) -> int:
        """Return the segment of the divided axis in a block; blocks of one segment differ in the slow axes only."""
        return block % self._segments

    def fast(self, segment: int) -> pl.DataFrame:
        """Return the values that differ between the rows of a block."""
        import polars as pl

        (cut, values), *others = self._fast.items()
        first, last = (len(values) * edge // self._segments for edge in (segment, segment + 1))
        rows = pl.DataFrame({cut: values[first:last]})
        for name, column in others:
            rows = rows.join(pl.DataFrame({name: column}), how="cross", maintain_order="left_right")
        return rows


@dataclass(slots=True)
class _Part:
    """Steps, and tests of their results with the columns that each needs."""

    steps: list[Step] = field(default_factory=list)
    tests: list[tuple[frozenset[str], pl.Expr]] = field(default_factory=list)

    @property
    def needs(self) -> set[str]:
        """All columns that the steps and tests need."""
        return set().union(*(step.arguments for step in self.steps), *(columns for columns, _ in self.tests))

    def added(self, rows: pl.DataFrame, keep: Collection[str]) -> pl.DataFrame:
        """Return the rows with the results and tests, and of all other columns those to keep."""
        return add_checked_columns(rows, self.steps, self.tests, keep)


class Gridded:
    """Steps over a grid; :meth:`block` has the rows that :func:`factorykit.evaluate` returns for a LazyFrame.

    Parameters
    ----------
    resolution
        Resolved for the names of the axes and of the values.
    axes
        Values by quantity, checked.
    values
        Quantities that are the same for all rows.
    wanted
        The columns: axes, values and results.
    """

    def __init__(
        self, resolution: Resolution, axes: Mapping[str, pl.Series], values: Mapping[str, Any], wanted: Iterable[str]
    ) -> None:
        self.grid, self.wanted = Grid(axes, MAX_BLOCK_ROWS), tuple(wanted)
        checked = conditions(resolution)
        self.known, steps = fold(checked.steps, values)
        fast = {*self.known, *self.grid.fast(0).columns}
        self._ahead, self._then = _Part(), _Part()

        def part(names: Iterable[str]) -> _Part:
            return self._ahead if fast.issuperset(names) else self._then

        for step in steps:
            part(step.arguments).steps.append(step)
            if fast.issuperset(step.arguments):
                fast.add(step.quantity)
        self._tests: dict[str, Collection[str]] = {}
        for condition in checked:
            columns = condition.columns(self.known)
            part(columns).tests.append((columns, condition.expression(self.known)))
            self._tests[condition.name] = resolution.outputs if condition.decides_row else condition.affected
        self._computed_ahead = lru_cache(CACHED_SEGMENTS)(self._compute_ahead)

    def block(self, number: int) -> pl.DataFrame:
        """Return the rows of a block."""
        import polars as pl

        shared = self.grid.slow(number)
        rows = self._computed_ahead(self.grid.segment(number)).with_columns(**{n: pl.lit(v) for n, v in shared.items()})
        rows = self._then.added(rows, {*self.wanted, *self._tests})
        failed = {test: affected for test, affected in self._tests.items() if not rows[test].all()}
        columns = []
        for name in self.wanted:
            column = pl.lit(self.known[name]) if name in self.known else pl.col(name)
            tests = [pl.col(test) for test, affected in failed.items() if name in affected]
            columns.append((pl.when(*tests).then(column) if tests else column).alias(name))
        return rows.select(columns)

    def _compute_ahead(self, segment: int) -> pl.DataFrame:
        return self._ahead.added(self.grid.fast(segment), {*self.wanted, *self._tests, *self._then.needs})
