"""Between which values a result lies, whatever the inputs are within their bounds: interval arithmetic over formulas.

A result that cannot leave the bounds of its quantity need not be looked at row by row. R. E. Moore, R. B. Kearfott and
M. J. Cloud, "Introduction to interval analysis," SIAM, 2009, chapters 2 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Final

from factorykit.formulas.terms import Binary, Call, Lookup, Negative, Number, Symbol, Term, symbols
from factorykit.formulas.terms import steps as parts
from factorykit.model.engine.chain import Step
from factorykit.quantities import quantity, vocabulary

Range = tuple[float, float]
ANYWHERE: Final[Range] = (-math.inf, math.inf)
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
    """Return the results that lie within their bounds for all inputs within theirs, unless they are undefined.

    Those that are ``looked_at`` in every row anyway may be taken to lie within theirs. For inputs that are all
    ``usual`` the results are finite, too: then none is undefined.

    >>> from factorykit.model.engine.chain import ask
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
            known[name] = _defined(_range(part, known))
        low, high = known[step.quantity]
        if row.lower <= low and high <= row.upper and (not usual or math.isfinite(high - low)):
            held.add(step.quantity)
        elif step.quantity in looked_at:
            known[step.quantity] = row.lower, row.upper
    return frozenset(held)


def _defined(ends: Range) -> Range:
    return ANYWHERE if math.isnan(ends[0]) or math.isnan(ends[1]) else ends


def _range(term: Term, known: Mapping[str, Range]) -> Range:
    match term:
        case Number(value=value):
            return value, value
        case Symbol(name=name):
            if name in known:
                return known[name]
            row = vocabulary().get(name)
            return (row.lower, row.upper) if row and not row.is_text else ANYWHERE
        case Lookup(values=values):
            return min(values.values()), max(values.values())
        case Negative(of=of):
            low, high = _range(of, known)
            return -high, -low
        case Binary(operator=operator, left=left, right=right):
            if operator == "-" and symbols(left) & symbols(right):
                return ANYWHERE
            rule = ARITHMETIC.get(operator)
            one, other = _defined(_range(left, known)), _defined(_range(right, known))
            return rule(one, other) if rule else (0.0, 1.0)
        case Call(function="where", arguments=(_, one, other)):
            (a, b), (c, d) = _range(one, known), _range(other, known)
            return min(a, c), max(b, d)
        case Call(function="sqrt" | "log" as function, arguments=(of,)) if _range(of, known)[0] < 0.0:
            return ANYWHERE if function == "log" else (0.0, math.inf)
        case Call(function=function, arguments=arguments):
            ranges = [_range(argument, known) for argument in arguments]
            return RISING[function](*[low for low, _ in ranges]), RISING[function](*[high for _, high in ranges])
    return ANYWHERE


def _times(one: Range, other: Range) -> Range:
    ends = [0.0 if 0.0 in (a, b) else a * b for a, b in product(one, other)]
    return min(ends), max(ends)


def _over(one: Range, other: Range) -> Range:
    low, high = other
    if low < 0.0 < high or low == high == 0.0:
        return ANYWHERE
    ends = [_quotient(a, b, high if b == low else low) for a, b in product(one, other)]
    return min(ends), max(ends)


def _quotient(a: float, b: float, elsewhere: float) -> float:
    if math.isinf(b):
        return 0.0
    if b == 0.0:
        return 0.0 if a == 0.0 else math.copysign(math.inf, a) * math.copysign(1.0, elsewhere)
    return a / b


def _power(one: Range, other: Range) -> Range:
    if one[0] < 0.0:
        return ANYWHERE
    ends = [_raised(a, b) for a, b in product(one, other)]
    return min(ends), max(ends)


def _raised(a: float, b: float) -> float:
    try:
        return a**b
    except (ZeroDivisionError, OverflowError):
        return math.inf


ARITHMETIC: Final[Mapping[str, Callable[[Range, Range], Range]]] = {
    "+": lambda one, other: (one[0] + other[0], one[1] + other[1]),
    "-": lambda one, other: (one[0] - other[1], one[1] - other[0]),
    "*": _times,
    "/": _over,
    "%": lambda _, other: (0.0, max(map(abs, other))) if other[0] > 0.0 else ANYWHERE,
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
