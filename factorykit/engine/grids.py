"""Evaluate a chain on every combination of some values, block by block, so that a grid of any size takes little memory.

The axes that change fastest make a block. What hangs on these alone is computed once and serves every block; what
hangs on the slower axes alone is one number a block.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from factorykit.engine import rules
from factorykit.engine.chain import Chain, Step
from factorykit.engine.frames import FINE, doubtful, possible, with_steps
from factorykit.engine.run import fold

if TYPE_CHECKING:
    import polars as pl

ROWS_A_BLOCK: Final = 2**17
"""At most; a column of them stays in the caches of a processor."""
FEWEST: Final = 4
"""A block of less than this part of the most takes a stretch of one axis more."""
STRETCHES_KEPT: Final = 4
"""Of the axis that is cut: so many have what is computed ahead kept."""


class Grid:
    """Every combination of values, the last axis changing fastest, cut into blocks of rows.

    A block holds every combination of the fastest axes; where these are few, with a stretch of the axis before them.

    >>> import polars as pl
    >>> grid = Grid({"mfu": pl.Series([0.3, 0.4]), "pue": pl.Series([1.1, 1.2, 1.3])}, rows_a_block=3)
    >>> grid.rows, grid.blocks, grid.slow(1), grid.fast(grid.stretch(1)).rows()
    (6, 2, {'mfu': 0.4}, [(1.1,), (1.2,), (1.3,)])
    """

    def __init__(self, axes: Mapping[str, pl.Series], rows_a_block: int) -> None:
        lengths, order, faster = [len(values) for values in axes.values()], list(axes), 1
        self.rows, cut = math.prod(lengths), len(axes)
        while cut > 0 and faster * lengths[cut - 1] <= rows_a_block:
            cut -= 1
            faster *= lengths[cut]
        self._stretches = 1
        if cut == len(axes) or (cut > 0 and faster < rows_a_block // FEWEST):
            cut -= 1
            self._stretches = math.ceil(lengths[cut] / (rows_a_block // faster))
        self._slow = {name: axes[name] for name in order[:cut]}
        self._fast = {name: axes[name] for name in order[cut:]}
        self.blocks = math.prod(map(len, self._slow.values())) * self._stretches

    def slow(self, block: int) -> dict[str, Any]:
        """Return the values that all rows of a block share."""
        number, shared = block // self._stretches, {}
        for name, values in reversed(self._slow.items()):
            number, digit = divmod(number, len(values))
            shared[name] = values[digit]
        return dict(reversed(shared.items()))

    def stretch(self, block: int) -> int:
        """Return which stretch of the axis that is cut a block has: blocks of one stretch share all other values."""
        return block % self._stretches

    def fast(self, stretch: int) -> pl.DataFrame:
        """Return the values that tell the rows of a block apart."""
        import polars as pl

        (cut, values), *others = self._fast.items()
        first, last = (len(values) * edge // self._stretches for edge in (stretch, stretch + 1))
        rows = pl.DataFrame({cut: values[first:last]})
        for name, column in others:
            rows = rows.join(pl.DataFrame({name: column}), how="cross", maintain_order="left_right")
        return rows


@dataclass(slots=True)
class _Part:
    """Steps, and tests of what they compute."""

    steps: list[Step] = field(default_factory=list)
    tests: list[pl.Expr] = field(default_factory=list)

    @property
    def tested(self) -> set[str]:
        """Columns that the tests look at."""
        return {name for test in self.tests for name in test.meta.root_names()}

    @property
    def needs(self) -> set[str]:
        """All columns that are looked at."""
        return self.tested.union(*(step.arguments for step in self.steps))

    def added(self, rows: pl.DataFrame, keep: Collection[str]) -> pl.DataFrame:
        """Return the rows with what is computed, and of all columns those to keep."""
        return with_steps(rows, self.steps, (), {*keep, *self.tested}).with_columns(self.tests)


class Gridded:
    """A chain over a grid; :meth:`block` has the rows that :func:`factorykit.evaluate` makes of a LazyFrame.

    Parameters
    ----------
    chain
        Resolved for the names of the axes and of the values.
    axes
        Values by quantity, checked.
    values
        Quantities that are the same for all rows.
    wanted
        The columns: axes, values and results.
    """

    def __init__(
        self, chain: Chain, axes: Mapping[str, pl.Series], values: Mapping[str, Any], wanted: Iterable[str]
    ) -> None:
        import polars as pl

        self.grid, self.wanted = Grid(axes, ROWS_A_BLOCK), tuple(wanted)
        self.known, steps = fold(chain.steps, values)
        fast = {*self.known, *self.grid.fast(0).columns}
        self._ahead, self._then = _Part(), _Part()

        def part(names: Iterable[str]) -> _Part:
            return self._ahead if fast.issuperset(names) else self._then

        for step in steps:
            part(step.arguments).steps.append(step)
            if fast.issuperset(step.arguments):
                fast.add(step.quantity)
        self._hit: dict[str, Collection[str]] = {}
        for cause, hit in doubtful(chain).items():
            if cause not in self.known:
                part((cause,)).tests.append(possible(cause).alias(f"{cause} {FINE}"))
                self._hit[f"{cause} {FINE}"] = hit
        there = {*self.known, *axes, *(step.quantity for step in steps)}
        for rule in rules.judged(there, chain.question.given) if rules.concern(chain.computed) else ():
            if not self.known.keys() >= set(rule.arguments):
                holds = rule.holds(*(self.known.get(name, pl.col(name)) for name in rule.arguments))
                part(rule.arguments).tests.append(
                    pl.lit(holds).alias(rule.name) if isinstance(holds, bool) else holds.alias(rule.name)
                )
                self._hit[rule.name] = chain.outputs
        self._computed_ahead = lru_cache(STRETCHES_KEPT)(self._compute_ahead)

    def block(self, number: int) -> pl.DataFrame:
        """Return the rows of a block."""
        import polars as pl

        shared = self.grid.slow(number)
        rows = self._computed_ahead(self.grid.stretch(number)).with_columns(**{n: pl.lit(v) for n, v in shared.items()})
        rows = self._then.added(rows, {*self.wanted, *self._hit})
        columns = []
        for name in self.wanted:
            column = pl.lit(self.known[name]) if name in self.known else pl.col(name)
            tests = [pl.col(test) for test, hit in self._hit.items() if name in hit]
            columns.append((pl.when(*tests).then(column) if tests else column).alias(name))
        return rows.select(columns)

    def _compute_ahead(self, stretch: int) -> pl.DataFrame:
        return self._ahead.added(self.grid.fast(stretch), {*self.wanted, *self._hit, *self._then.needs})
