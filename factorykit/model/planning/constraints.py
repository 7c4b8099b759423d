"""What somebody wishes of a plan: a deadline, a budget, a limit of power, and what may be chosen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from factorykit.core import validation
from factorykit.core.errors import ScenarioError
from factorykit.core.vocabulary import quantity
from factorykit.model.planning.whole import TIERS

LIMITS: Final = {"deadline": "deadline_s", "budget": "budget_usd", "power": "facility_power_w"}
"""What a plan is held to, and the quantity that reads it."""
WAYS: Final = ("rent", "own")


@dataclass(frozen=True, slots=True)
class Wishes:
    """Limits in the units of the vocabulary; None where nobody wishes anything."""

    deadline_s: float | None = None
    budget_usd: float | None = None
    facility_power_w: float | None = None

    @classmethod
    def read(cls, **said: Any) -> Wishes:
        """Return the wishes, each checked: ``deadline="60 d", budget="20 M USD", power="20 MW"``."""
        read = {LIMITS[name]: quantity(LIMITS[name]).check(value) for name, value in said.items() if value is not None}
        return cls(**read)  # type: ignore[arg-type]

    def held(self) -> dict[str, float]:
        """Return the limits that somebody gave."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}

    def objective(self) -> str | None:
        """Return what makes a plan better: time for a budget, cost for a deadline; None where both count."""
        if self.budget_usd is not None and self.deadline_s is None:
            return "wall_days"
        return "run_cost_usd" if self.deadline_s is not None else None


def ways(acquire: str | Iterable[str]) -> tuple[str, ...]:
    """Return how accelerators may be acquired.

    >>> ways("rent")
    ('rent',)
    """
    return _named(acquire, "way to acquire accelerators", WAYS, "acquire is empty; give 'rent', 'own' or both")


def tiers(named: str | Iterable[str]) -> tuple[str, ...]:
    """Return the tiers of checkpoints to choose from.

    >>> tiers("two")
    ('two',)
    """
    return _named(named, "number of checkpoint tiers", TIERS, "tiers are empty; give 'one', 'two' or both")


def _named(said: str | Iterable[str], what: str, known: Collection[str], empty: str) -> tuple[str, ...]:
    """Return one name or several, each once and each known."""
    listed = tuple(validation.one_of(what, name, known) for name in validation.strings(what, said))
    if not listed:
        raise ScenarioError(empty)
    return tuple(dict.fromkeys(listed))


def several(name: str, given: Any) -> list[Any]:
    """Return the values to choose from: a list as it is, one value as a list, each checked."""
    from factorykit.engine.read import value

    row = quantity(name)
    values: Sequence[Any] = [given] if isinstance(given, (str, float, int)) else [*validation.as_list(name, given)]
    if not values:
        raise ScenarioError(f"{name}: nothing to choose from; give at least one value")
    return list(dict.fromkeys(value(row, each) for each in values))


def parted(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return what is given once, and what may be chosen from a list."""
    once = {name: value for name, value in given.items() if not isinstance(value, (list, tuple, set, range))}
    return once, {name: several(name, value) for name, value in given.items() if name not in once}
