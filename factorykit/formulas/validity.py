"""Validity ranges of formulas, declared with a decorator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Formula = TypeVar("Formula", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Validity:
    """A condition, in words and as a function of some of the formula's arguments."""

    words: str
    condition: Callable[..., Any]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The quantities that the condition needs."""
        return self.condition.__code__.co_varnames[: self.condition.__code__.co_argcount]


_VALIDITIES: dict[str, Validity] = {}


def holds_while(words: str, condition: Callable[..., Any]) -> Callable[[Formula], Formula]:
    """Return a decorator that declares the validity range of a formula and returns it unchanged."""

    def declare(formula: Formula) -> Formula:
        _VALIDITIES[formula.__name__] = Validity(words, condition)
        return formula

    return declare


def validity(name: str) -> Validity | None:
    """Return the validity range of the formula ``name``, or None if none is declared.

    >>> from factorykit.formulas import checkpoint
    >>> validity("checkpoint_interval_daly_s").words
    'checkpoint_write_s < 2 cluster_mtbf_s'
    """
    return _VALIDITIES.get(name)
