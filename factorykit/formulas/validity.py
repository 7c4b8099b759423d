"""The range in which a formula means what it says, stated beside the formula and looked at by the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Formula = TypeVar("Formula", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Validity:
    """A condition in words and as arithmetic over some of the formula's arguments."""

    words: str
    condition: Callable[..., Any]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The quantities that the condition looks at."""
        return self.condition.__code__.co_varnames[: self.condition.__code__.co_argcount]


_VALIDITIES: dict[str, Validity] = {}


def holds_while(words: str, condition: Callable[..., Any]) -> Callable[[Formula], Formula]:
    """Return a decorator that states until where a formula is good; the formula itself stays as it is."""

    def state(formula: Formula) -> Formula:
        _VALIDITIES[formula.__name__] = Validity(words, condition)
        return formula

    return state


def validity(name: str) -> Validity | None:
    """Return until where the formula ``name`` is good, or None where it is exact or says so in words alone.

    >>> from factorykit.formulas import checkpoint
    >>> validity("checkpoint_interval_daly_s").words
    'checkpoint_write_s < 2 cluster_mtbf_s'
    """
    return _VALIDITIES.get(name)
