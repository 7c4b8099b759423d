"""Conditions that the rows of a frame must satisfy: bounds, consistency of given values, and rules of a layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.vocabulary import quantity
from factorykit.engine.resolve import Resolution, consistency
from factorykit.engine.step import Step
from factorykit.formulas.functions import maximum

if TYPE_CHECKING:
    import polars as pl

TOLERANCE: Final = 1e-6
"""Relative difference up to which a given derived quantity and its formula count as equal; room for rounding."""
RECOMPUTED: Final = " recomputed"
"""Suffix of the column with the value that the other columns give a derived quantity that is given."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of values or columns, and the results that are undefined in a row that fails it."""

    name: str
    arguments: tuple[str, ...]
    test: Callable[..., Any]
    decides_row: bool = True
    """Whether all results of a row that fails are undefined."""
    null_holds: bool = False
    """Whether a row with a null argument passes."""
    affected: frozenset[str] = frozenset()

    def columns(self, fixed: Mapping[str, Any]) -> frozenset[str]:
        """Return the columns that the test needs."""
        return frozenset(self.arguments).difference(fixed)

    def expression(self, fixed: Mapping[str, Any]) -> pl.Expr:
        """Return the test as a column; ``fixed`` values are the same in all rows."""
        import polars as pl

        holds = self.test(*(fixed[name] if name in fixed else pl.col(name) for name in self.arguments))
        return (
            (holds if isinstance(holds, pl.Expr) else pl.lit(bool(holds))).fill_null(self.null_holds).alias(self.name)
        )


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions on the rows of a question, and the steps that they need beside those to the outputs."""

    steps: tuple[Step, ...]
    conditions: tuple[Condition, ...]

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.conditions)


@lru_cache(maxsize=256)
def conditions(resolution: Resolution) -> Conditions:
    """Return the conditions on results, on given derived quantities, and of the rules."""
    extra: dict[str, Step] = {}
    checks = []
    for name, steps in consistency(resolution.shape):
        *before, last = steps
        extra |= {step.quantity: step for step in before if step.quantity not in resolution.computed}
        extra[name + RECOMPUTED] = Step(name + RECOMPUTED, last.formula, last.arguments, last.origin)
        checks.append(Condition(f"{name} is consistent", (name, name + RECOMPUTED), is_consistent, null_holds=True))
    checks += [Condition(rule.name, rule.arguments, rule.holds) for rule in resolution.rules]
    checks += _results(resolution)
    return Conditions((*resolution.steps, *extra.values()), tuple(checks))


def _results(resolution: Resolution) -> Iterator[Condition]:
    """Yield the bounds of every computed number, with the outputs that depend on it.

    An undefined number (NaN) fails as an output alone: a formula may choose another branch.
    """
    dependents: dict[str, set[str]] = {}
    for step in reversed(resolution.steps):
        affected = dependents.setdefault(step.quantity, set())
        affected.add(step.quantity)
        for name in step.arguments:
            dependents.setdefault(name, set()).update(affected)
    outputs = frozenset(resolution.outputs)
    for step in resolution.steps:
        row = quantity(step.quantity)
        if step.arguments and not row.is_text and (row.name in outputs or row.bounds != "(-inf, inf)"):
            affected = outputs.intersection(dependents[row.name])
            is_bounded = row.name in outputs or row.upper != math.inf
            test = _between(row.lower, row.upper) if is_bounded else _at_least(row.lower)
            yield Condition(f"{row.name} is within bounds", (row.name,), test, decides_row=False, affected=affected)


def is_consistent(given: Any, computed: Any) -> Any:
    """Return whether two numbers or columns are equal up to rounding."""
    return abs(given - computed) <= TOLERANCE * maximum(abs(given), abs(computed))


def is_valid_input(name: str) -> pl.Expr:
    """Return whether the values of a column are within the bounds or choices of its quantity."""
    import polars as pl

    row, column = quantity(name), pl.col(name)
    if row.is_text:
        return column.is_in(row.choices) if row.choices else column.is_not_null()
    return within(column, row.bounds, row.lower, row.upper)


def is_usual_input(name: str) -> pl.Expr:
    """Return whether the values of a column are within the usual range of the quantity."""
    import polars as pl

    row = quantity(name)
    return within(pl.col(name), row.usual, *row.usual_range) if row.usual else is_valid_input(name)


def within(column: pl.Expr, brackets: str, lower: float, upper: float) -> pl.Expr:
    """Return whether values are finite and between two limits, each included if its bracket is square."""
    left = brackets[0] == "[" and lower != -math.inf
    right = brackets[-1] == "]" and upper != math.inf
    closed = "both" if left and right else "left" if left else "right" if right else "none"
    return column.is_between(lower, upper, closed=closed)


def _at_least(lower: float) -> Callable[[Any], Any]:
    return lambda value: value >= lower


def _between(lower: float, upper: float) -> Callable[[Any], Any]:
    """Return a test of numbers or columns; polars orders NaN above infinity, so that NaN fails."""

    def test(value: Any) -> Any:
        return value.is_between(lower, upper) if hasattr(value, "is_between") else lower <= value <= upper

    return test
