"""Formulas as Vega expressions: a value that depends on no column becomes a signal, the rest a column of the chart."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from factorykit.engine.step import Step
from factorykit.formulas import arguments
from factorykit.formulas.expressions import Lookup, Number, Symbol, Term, Word, infix, steps

REPEATING: Final = frozenset({"log1p", "expm1"})
"""Functions whose Vega form repeats its argument."""
VEGA_CALLS: dict[str, str] = {
    "sqrt": "sqrt({0})",
    "exp": "exp({0})",
    "log": "log({0})",
    "ceil": "ceil({0})",
    "floor": "floor({0})",
    "minimum": "min({0}, {1})",
    "maximum": "max({0}, {1})",
    "where": "({0} ? {1} : {2})",
    # Vega has neither function; rounding in 1 + x and exp(x) cancels in the quotients (Goldberg 1991, theorem 4;
    # Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, section 1.14.1).
    "log1p": "(1 + ({0}) == 1 ? ({0}) : log(1 + ({0})) * ({0}) / ((1 + ({0})) - 1))",
    "expm1": "(exp({0}) == 1 ? ({0}) : abs({0}) > 1 ? exp({0}) - 1 : (exp({0}) - 1) * ({0}) / log(exp({0})))",
}
LITERAL_COMPARISON: Final = re.compile(r'(\d[\d.]*|"\w*") (==|>=|<=|>|<) (\d[\d.]*|"\w*")')
"""A comparison of two literals, evaluated before the expression is printed."""
COMPARISONS: Final = {"==": operator.eq, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def vega_literal(value: float | str) -> str:
    r"""Return a number or string as a Vega literal.

    >>> vega_literal("the owner's"), vega_literal(-0.5), vega_literal(float("inf"))
    ('"the owner\'s"', '(-0.5)', '(1 / 0)')
    """
    if isinstance(value, float) and math.isinf(value):
        return "(1 / 0)" if value > 0 else "(-1 / 0)"
    text = json.dumps(value)
    return f"({text})" if text.startswith("-") else text


def as_vega(root: Term, fields: Mapping[str, str] | Callable[[str], str] | None = None) -> str:
    """Return the expression in the Vega expression language.

    ``fields`` maps quantities to Vega names; the default is the column of the same name, ``datum["tokens"]``.
    A signal or parameter maps to its name: ``{"mfu": "mfu"}``.
    """

    def leaf(node: Term) -> str:
        if isinstance(node, Number):
            return vega_literal(node.value)
        if isinstance(node, Word):
            return vega_literal(node.text)
        if isinstance(node, Lookup):
            key = " + ' ' + ".join(map(leaf, node.words))
            return f"({json.dumps(dict(node.values))}[{key}])"
        name = node.name  # type: ignore[attr-defined]
        if callable(fields):
            return fields(name)
        return (fields or {}).get(name, f'datum["{name}"]')

    def applied(function: str, parts: list[str]) -> str:
        if function == "where" and (constant := LITERAL_COMPARISON.fullmatch(parts[0])):
            left, comparison, right = constant.groups()
            holds = COMPARISONS[comparison](json.loads(left), json.loads(right))
            return f"({parts[1 if holds else 2]})"
        return VEGA_CALLS[function].format(*parts)

    return infix(root, leaf, applied, "pow")


def condition(holds: Callable[..., Any], fields: Mapping[str, str]) -> str:
    """Return a condition over quantities in the Vega expression language; ``fields`` as in :func:`as_vega`."""
    return as_vega(holds(*map(Symbol, arguments(holds))), fields)


def datum(name: str) -> str:
    """Return the Vega expression for the column of a quantity."""
    return f'datum["{name}"]'


class Program:
    """Vega expressions for a chain of steps, each written once."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.signals: list[dict[str, str]] = []
        self.columns: list[dict[str, str]] = []
        self._taken = set(taken)
        self._known: dict[str, str] = {}

    def compute(
        self, chain: Iterable[Step], have: Mapping[str, str], words: Mapping[str, Collection[str]]
    ) -> dict[str, str]:
        """Return an expression for the quantities in ``have`` and every step; of tables only the ``words`` are kept."""
        have = dict(have)
        for step in chain:
            if step.quantity in have:
                continue
            local = dict(have)
            for name, part in steps(_kept(step.term, words), step.quantity, REPEATING):
                local[name] = as_vega(part, local)
                if not isinstance(part, (Symbol, Number)):
                    local[name] = self.emit(name, local[name])
            have[step.quantity] = local[step.quantity]
        return have

    def emit(self, name: str, expression: str) -> str:
        """Give the expression a name, unless it has one, and return the name to use from there."""
        if expression not in self._known:
            unique, n = name, 1
            while unique in self._taken:
                n += 1
                unique = f"{name}_case{n}"
            self._taken.add(unique)
            if "datum[" in expression:
                self.columns.append({"calculate": expression, "as": unique})
                self._known[expression] = datum(unique)
            else:
                self.signals.append({"name": unique, "expr": expression})
                self._known[expression] = unique
        return self._known[expression]


def _kept(term: Term, words: Mapping[str, Collection[str]]) -> Term:
    """Return a look-up without the cells that no reader can ask for."""
    if not isinstance(term, Lookup):
        return term
    chips = words.get("accelerator", ())
    cells = {key: value for key, value in term.values.items() if key.partition(" ")[0] in chips}
    return Lookup(term.column, term.words, cells)
