"""Formulas as Vega expressions: a value that depends on no column becomes a signal, the rest a column of the chart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from factorykit.engine.step import Step
from factorykit.formulas.expressions import Lookup, Number, Symbol, Term, as_vega, steps

REPEATING: Final = frozenset({"log1p", "expm1"})
"""Functions whose Vega form repeats its argument."""


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
