"""A step of a computation: one quantity, the formula that returns it, the formula's arguments and its origin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from factorykit.formulas.expressions import Symbol, Term, term

FORMULA: Final = "formula"
ALTERNATIVE: Final = "alternative"
SPECIFICATION: Final = "specification"
CALIBRATED: Final = "calibrated"
NEUTRAL: Final = "neutral"
DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Step:
    """One quantity, the formula that returns it, the quantities it needs, and where the formula comes from."""

    quantity: str
    formula: Callable[..., Any]
    arguments: tuple[str, ...]
    origin: str = FORMULA

    @property
    def term(self) -> Term:
        """The formula over symbols, ready to be printed."""
        return term(self.formula(*[Symbol(name) for name in self.arguments]))


def constant(name: str, value: float | str, origin: str) -> Step:
    """Return a step that needs nothing."""
    return Step(name, partial(_identity, value), (), origin)


def alternative(name: str, model: str) -> Step:
    """Return the step that takes a quantity from an alternative model of it."""
    return Step(name, _identity, (model,), ALTERNATIVE)


def leaves(steps: Collection[Step]) -> tuple[str, ...]:
    """Return the quantities that the steps need and do not compute, each once."""
    computed = {step.quantity for step in steps}
    return tuple(dict.fromkeys(name for step in steps for name in step.arguments if name not in computed))


def ancestors(names: Collection[str], steps: Sequence[Step]) -> set[str]:
    """Return the names and every quantity that they depend on, of steps in order of computation."""
    needed = set(names)
    for step in reversed(steps):
        if step.quantity in needed:
            needed.update(step.arguments)
    return needed


def split(steps: Sequence[Step], wanted: Collection[str]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps that lead to the wanted quantities, and the others."""
    needed = ancestors(wanted, steps)
    return tuple(s for s in steps if s.quantity in needed), tuple(s for s in steps if s.quantity not in needed)


def _identity(value: Any) -> Any:
    return value
