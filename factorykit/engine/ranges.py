"""Between which values a result lies, whatever the inputs are within their bounds: interval arithmetic over formulas.

A result that cannot leave the bounds of its quantity need not be looked at row by row. R. E. Moore, R. B. Kearfott and
M. J. Cloud, "Introduction to interval analysis," SIAM, 2009, chapters 2 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, product
from typing import Final

from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.chain import Step
from factorykit.formulas.expressions import Binary, Call, Lookup, Negative, Number, Symbol, Term, symbols
from factorykit.formulas.expressions import steps as parts

Range = tuple[float, float]
ANYWHERE: Final[Range] = (-math.inf, math.inf)
UNDEFINED: Final[Range] = (math.nan, math.nan)
"""Of what may be undefined, as zero over zero is; so is all that is computed from it."""
LEAST: Final = 5e-324
LARGEST: Final = 1.7976931348623157e308


def closed(brackets: str, lower: float, upper: float) -> Range:
    """Return the least and the greatest float within bounds, for a comparison that takes both ends in.

    >>> closed("(0, 1]", 0.0, 1.0), closed("[1, inf)", 1.0, math.inf)
    ((5e-324, 1.0), (1.0, 1.7976931348623157e+308))
    """
    least = lower if brackets[0] == "[" else math.nextafter(lower, math.inf)
    most = upper if brackets[-1] == "]" else math.nextafter(upper, -math.inf)
    return max(least, -LARGEST), min(most, LARGEST)


def bounded(steps: Sequence[Step], looked_at: Sequence[str], *, usual: bool = False) -> frozenset[str]:
    """Return the results that are defined and lie within their bounds for all inputs within theirs.

    Those that are ``looked_at`` in every row anyway may be taken to lie within theirs. For inputs that are all
    ``usual`` the results are finite, too. That a double overflows where a real number would not is left aside.

    >>> from factorykit.engine.chain import ask
    >>> steps = ask({"accelerators", "accelerators_per_node"}, ["nodes"]).steps
    >>> sorted(bounded(steps, ()))
    ['nodes']
    """
    return _bounded(tuple(steps), frozenset(looked_at), usual)


@lru_cache(maxsize=256)
def _bounded(steps: tuple[Step, ...], looked_at: frozenset[str], usual: bool) -> frozenset[str]:
    known: dict[str, Range] = {}
    if usual:
        given = {name for step in steps for name in step.arguments} - {step.quantity for step in steps}
        known = {
            n: closed(row.usual or row.bounds, *row.usual_range) for n in given if not (row := quantity(n)).is_text
        }
    held = set()
    for step in steps:
        row = quantity(step.quantity)
        if row.is_text:
            continue
        for name, part in parts(step.term, step.quantity, separator=" part "):
            known[name] = _range(part, known)
        low, high = known[step.quantity]
        if row.lower <= low and high <= row.upper and (not usual or math.isfinite(high - low)):
            held.add(step.quantity)
        elif step.quantity in looked_at:
            known[step.quantity] = closed(row.bounds, row.lower, row.upper)
    return frozenset(held)


def _range(term: Term, known: Mapping[str, Range]) -> Range:
    match term:
        case Number(value=value):
            return value, value
        case Symbol(name=name):
            if name in known:
                return known[name]
            row = vocabulary().get(name)
            return closed(row.bounds, row.lower, row.upper) if row and not row.is_text else ANYWHERE
        case Lookup(values=values):
            return _between(list(values.values()))
        case Negative(of=of):
            low, high = _range(of, known)
            return -high, -low
        case Binary(operator=operator, left=left, right=right):
            if operator == "-" and symbols(left) & symbols(right):
                return ANYWHERE
            rule = ARITHMETIC.get(operator)
            one, other = _range(left, known), _range(right, known)
            return rule(one, other) if rule else (0.0, 1.0)
        case Call(function="where", arguments=(_, one, other)):
            return _between([*_range(one, known), *_range(other, known)])
        case Call(function="sqrt" | "log", arguments=(of,)) if not _range(of, known)[0] >= 0.0:
            return UNDEFINED
        case Call(function=function, arguments=arguments):
            ranges = [_range(argument, known) for argument in arguments]
            if any(map(math.isnan, chain(*ranges))):
                return UNDEFINED
            return RISING[function](*[low for low, _ in ranges]), RISING[function](*[high for _, high in ranges])
    return UNDEFINED


def _between(ends: list[float]) -> Range:
    return UNDEFINED if any(map(math.isnan, ends)) else (min(ends), max(ends))


def _held(value: float, *parts: float) -> float:
    """Return a product or quotient: of finite parts other than zero it is so, too, whatever doubles make of it."""
    if 0.0 in parts or any(map(math.isinf, parts)):
        return value
    return math.copysign(min(max(abs(value), LEAST), LARGEST), value)


def _times(one: Range, other: Range) -> Range:
    return _between([_held(a * b, a, b) for a, b in product(one, other)])


def _over(one: Range, other: Range) -> Range:
    low, high = other
    if low < 0.0 < high or low == high == 0.0 or (0.0 in other and one[0] <= 0.0 <= one[1]):
        return UNDEFINED
    return _between([_quotient(a, b, high if b == low else low) for a, b in product(one, other)])


def _quotient(a: float, b: float, elsewhere: float) -> float:
    if b == 0.0:
        return math.copysign(math.inf, a) * math.copysign(1.0, elsewhere)
    return _held(a / b, a, b)


def _power(one: Range, other: Range) -> Range:
    if not one[0] >= 0.0:
        return UNDEFINED
    return _between([_raised(a, b) for a, b in product(one, other)])


def _raised(a: float, b: float) -> float:
    try:
        return a**b
    except (ZeroDivisionError, OverflowError):
        return math.inf


ARITHMETIC: Final[Mapping[str, Callable[[Range, Range], Range]]] = {
    "+": lambda one, other: _between([one[0] + other[0], one[1] + other[1]]),
    "-": lambda one, other: _between([one[0] - other[1], one[1] - other[0]]),
    "*": _times,
    "/": _over,
    "%": lambda _, other: (0.0, max(map(abs, other))) if other[0] > 0.0 else UNDEFINED,
    "**": _power,
}
"""Ends of a result from the ends of its parts; comparisons give zero or one."""
RISING: Final[Mapping[str, Callable[..., float]]] = {
    "sqrt": lambda x: math.sqrt(x) if x > 0.0 else 0.0,
    "exp": lambda x: math.exp(x) if x < 709.0 else math.inf,
    "log": lambda x: math.log(x) if x > 0.0 else -math.inf,
    "log1p": lambda x: math.log1p(x) if x > -1.0 else -math.inf,
    "expm1": lambda x: math.expm1(x) if x < 709.0 else math.inf,
    "ceil": lambda x: float(math.ceil(x)) if math.isfinite(x) else x,
    "floor": lambda x: float(math.floor(x)) if math.isfinite(x) else x,
    "minimum": min,
    "maximum": max,
}
"""Functions that never fall, on the ends of a range."""
