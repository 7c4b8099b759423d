"""Run steps: on floats, as far as values are known, or as columns of a polars frame."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from factorykit.engine.chain import Step
from factorykit.formulas import functions
from factorykit.formulas.expressions import Binary, Call, Lookup, Negative, Number, Symbol, Term, Word, symbols
from factorykit.formulas.expressions import steps as parts

if TYPE_CHECKING:
    import polars as pl

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
    """Return what the values alone determine, and the steps that are left with those values put in.

    A frame in which most quantities are the same for all rows needs columns for the others only.
    """
    known = dict(values)
    left = []
    for step in steps:
        fixed = {name: known[name] for name in step.arguments if name in known}
        if len(fixed) == len(step.arguments):
            known = compute((step,), known)
        else:
            open_names = tuple(name for name in step.arguments if name not in fixed)
            left.append(Step(step.quantity, _with_values(step, fixed), open_names))
    return known, tuple(left)


def _with_values(step: Step, fixed: Mapping[str, float | str]) -> Any:
    def formula(*operands: Any) -> Any:
        rest = iter(operands)
        return step.formula(*[fixed[name] if name in fixed else next(rest) for name in step.arguments])

    return formula


def _ieee(step: Step, operands: list[Any]) -> float:
    import polars as pl

    return pl.select(step.formula(*[pl.lit(operand, dtype=pl.Float64) for operand in operands])).item()


@lru_cache(maxsize=64)
def columns(steps: tuple[Step, ...]) -> list[list[pl.Expr]]:
    """Return the steps as columns in groups that need only earlier groups.

    What a formula uses more than once becomes a column of its own: polars' own search for common parts gives up on
    nested ones, and the plan of the exact checkpoint optimum would grow a hundredfold.
    """
    import polars as pl

    groups: list[list[pl.Expr]] = []
    depth: dict[str, int] = {}
    for step in steps:
        for name, part in parts(step.term, step.quantity, frozenset({"expm1"}), separator=" part "):
            depth[name] = level = max((depth.get(needed, 0) for needed in symbols(part)), default=0) + 1
            groups.extend([] for _ in range(level - len(groups)))
            made = _expression(part)
            groups[level - 1].append((pl.lit(made) if isinstance(made, (float, str)) else made).alias(name))
    return groups


def widened(frame: pl.LazyFrame, steps: Iterable[Step]) -> pl.LazyFrame:
    """Return the frame with a column for every step."""
    for group in columns(tuple(steps)):
        frame = frame.with_columns(group)
    return frame


def parted(steps: Sequence[Step], wanted: Collection[str]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps that lead to what is wanted, and the others."""
    needed = set(wanted)
    for step in reversed(steps):
        if step.quantity in needed:
            needed.update(step.arguments)
    return tuple(s for s in steps if s.quantity in needed), tuple(s for s in steps if s.quantity not in needed)


def _expression(part: Term) -> Any:
    import polars as pl

    match part:
        case Symbol(name=name):
            return pl.col(name)
        case Number(value=value):
            return value
        case Word(text=text):
            return text
        case Negative(of=of):
            return -_expression(of)
        case Binary(operator=sign, left=left, right=right):
            return OPERATORS[sign](_expression(left), _expression(right))
        case Call(function=function, arguments=arguments):
            return getattr(functions, function)(*map(_expression, arguments))
        case Lookup(words=words, values=values):
            key = pl.concat_str(
                *[pl.lit(word.text) if isinstance(word, Word) else _expression(word) for word in words], separator=" "
            )
            return key.replace_strict(dict(values), default=None, return_dtype=pl.Float64)
    raise TypeError(f"no column for {type(part).__name__}")
