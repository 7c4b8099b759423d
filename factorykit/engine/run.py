"""Run steps on floats, as far as values are known, or as columns of a polars frame."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from factorykit.engine.step import Step
from factorykit.formulas import functions
from factorykit.formulas.expressions import Binary, Call, Lookup, Negative, Number, Symbol, Term, Word, symbols
from factorykit.formulas.expressions import steps as parts

if TYPE_CHECKING:
    import polars as pl

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")
OPERATORS: Final = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


def compute(steps: Sequence[Step], values: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return ``values`` and the result of every step, computed on floats. Divisions by zero follow IEEE 754."""
    results = dict(values)
    for step in steps:
        operands = [results[name] for name in step.arguments]
        try:
            results[step.quantity] = step.formula(*operands)
        except (ZeroDivisionError, OverflowError):
            results[step.quantity] = _ieee(step, operands)
    return results


def fold(steps: Iterable[Step], values: Mapping[str, float | str]) -> tuple[dict[str, float | str], tuple[Step, ...]]:
    """Return the results that the values determine, and the other steps with those results put in.

    A frame needs columns only for quantities that differ between its rows.
    """
    known = dict(values)
    left = []
    for step in steps:
        fixed = {name: known[name] for name in step.arguments if name in known}
        if len(fixed) == len(step.arguments):
            known = compute((step,), known)
        else:
            left.append(_with_values(step, tuple(fixed.items())))
    return known, tuple(left)


@lru_cache(maxsize=8192)
def _with_values(step: Step, fixed: tuple[tuple[str, float | str], ...]) -> Step:
    """Return the step with values put in: the same one for the same values, so that its columns are built once."""
    values = dict(fixed)

    def formula(*operands: Any) -> Any:
        rest = iter(operands)
        return step.formula(*[values[name] if name in values else next(rest) for name in step.arguments])

    return Step(step.quantity, formula, tuple(name for name in step.arguments if name not in values))


def _ieee(step: Step, operands: list[Any]) -> float:
    import polars as pl

    return pl.select(step.formula(*[pl.lit(operand, dtype=pl.Float64) for operand in operands])).item()


@lru_cache(maxsize=64)
def column_groups(steps: tuple[Step, ...]) -> list[list[pl.Expr]]:
    """Return the steps as polars expressions, in groups that need only earlier groups."""
    made = {name: column for step in steps for name, column in _columns(step).items()}
    return [[made[name] for name, _ in group] for group in part_groups(steps)]


@lru_cache(maxsize=8192)
def _columns(step: Step) -> dict[str, pl.Expr]:
    """Return the parts of a step as polars expressions, by name."""
    import polars as pl

    made = {name: translate(part, pl.col, _polars_lookup) for name, part in _parts(step)}
    return {name: (pl.lit(x) if isinstance(x, (float, str)) else x).alias(name) for name, x in made.items()}


@lru_cache(maxsize=8192)
def _parts(step: Step) -> list[tuple[str, Term]]:
    """Return the common parts of a step's formula by name, the whole last."""
    return parts(step.term, step.quantity, frozenset({"expm1"}), separator=" part ")


def part_groups(steps: Iterable[Step]) -> list[list[tuple[str, Term]]]:
    """Return the names and terms of the steps, in groups that need only earlier groups.

    A common part of a formula becomes a column of its own: polars' own search for common parts gives up on nested ones,
    and the query of the exact checkpoint optimum would grow a hundredfold.
    """
    groups: list[list[tuple[str, Term]]] = []
    depth: dict[str, int] = {}
    for step in steps:
        for name, part in _parts(step):
            depth[name] = level = max((depth.get(needed, 0) for needed in symbols(part)), default=0) + 1
            groups.extend([] for _ in range(level - len(groups)))
            groups[level - 1].append((name, part))
    return groups


def add_columns(frame: pl.LazyFrame, steps: Iterable[Step]) -> pl.LazyFrame:
    """Return the frame with a column for every step."""
    for group in column_groups(tuple(steps)):
        frame = frame.with_columns(group)
    return frame


def add_checked_columns(
    frame: Frame, steps: Sequence[Step], tests: Sequence[tuple[frozenset[str], pl.Expr]], keep: Collection[str]
) -> Frame:
    """Return the frame with a column for every step that is kept and for every test.

    A test is added as soon as the columns that it needs are there, and a column is dropped after its last use: its
    memory serves the next.
    """
    groups = column_groups(tuple(steps)) or [[]]
    made = {expression.meta.output_name(): number for number, group in enumerate(groups) for expression in group}
    ready = [max((made[name] + 1 for name in needs if name in made), default=0) for needs, _ in tests]
    last = {name: number for number, group in enumerate(groups) for check in group for name in check.meta.root_names()}
    for (needs, _), number in zip(tests, ready, strict=True):
        last |= {name: max(last.get(name, 0), number) for name in needs}
    for number in range(len(groups) + 1):
        group = groups[number] if number < len(groups) else []
        frame = frame.with_columns(*group, *(test for (_, test), at in zip(tests, ready, strict=True) if at == number))
        if done := [name for name, use in last.items() if use == number and name not in keep]:
            frame = frame.drop(done)
    return frame


def translate(part: Term, column: Callable[[str], Any], lookup: Callable[[list[Any], Mapping[str, float]], Any]) -> Any:
    """Return a term as an expression of another library, given its columns and its look-up of a key in a mapping."""

    def visit(node: Term) -> Any:
        match node:
            case Symbol(name=name):
                return column(name)
            case Number(value=value):
                return value
            case Word(text=text):
                return text
            case Negative(of=of):
                return -visit(of)
            case Binary(operator=sign, left=left, right=right):
                return OPERATORS[sign](visit(left), visit(right))
            case Call(function=function, arguments=arguments):
                return getattr(functions, function)(*map(visit, arguments))
            case Lookup(words=words, values=values):
                return lookup(list(map(visit, words)), values)
        raise TypeError(f"no column for {type(node).__name__}")

    return visit(part)


def _polars_lookup(words: list[Any], values: Mapping[str, float]) -> pl.Expr:
    import polars as pl

    key = pl.concat_str(*[pl.lit(word) if isinstance(word, str) else word for word in words], separator=" ")
    return key.replace_strict(dict(values), default=None, return_dtype=pl.Float64)
