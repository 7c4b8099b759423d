"""A scenario: one validated, immutable row of quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from factorykit.core.errors import ScenarioError
from factorykit.core.validation import mapping, string
from factorykit.core.vocabulary import quantity, unknown_quantity_message, vocabulary
from factorykit.engine.html import html_table
from factorykit.engine.question import Question

if TYPE_CHECKING:
    from factorykit.core._names import Quantities


class Scenario(Mapping[str, "float | str"]):
    """Validated quantities and their values; immutable.

    Parameters
    ----------
    **quantities
        Values in the units of the vocabulary. Where a quantity has alternative models, the name of one may be given
        instead of a number: ``checkpoint_interval_s="checkpoint_interval_daly_s"``.

    Raises
    ------
    UnknownQuantity, ScenarioError
        If a name is unknown, or a value has the wrong type, is out of bounds or contradicts the others.

    Examples
    --------
    >>> run = Scenario(active_parameters=405e9, tokens=15.6e12, mfu=0.4)
    >>> run.replace(mfu=0.38).mfu
    0.38
    >>> Scenario(mfu=38.0)
    Traceback (most recent call last):
    factorykit.core.errors.ScenarioError: mfu = 38.0 is outside (0, 1]; give a fraction, e.g. 0.38
    """

    __slots__ = ("_values", "label", "sources")

    label: str
    """Name of the described run or cluster; may be empty."""
    sources: Mapping[str, str]
    """Source of each quantity; empty for values given by the user."""

    def __init__(self, **quantities: Unpack[Quantities]) -> None:
        question = Question.read(quantities)
        question.check_consistency()
        self._set({**question.values, **question.using}, "", {})

    def _set(self, values: Mapping[str, float | str], label: str, sources: Mapping[str, str]) -> None:
        object.__setattr__(self, "_values", MappingProxyType(dict(values)))
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "sources", MappingProxyType(dict(sources)))

    @classmethod
    def sourced(cls, label: str, values: Mapping[str, Any], sources: Mapping[str, str]) -> Scenario:
        """Return a scenario with a label and the source of each value."""
        scenario = cls(**{str.__str__(name): value for name, value in mapping("values", values).items()})
        scenario._set(scenario, string("label", label), mapping("sources", sources))
        return scenario

    def replace(self, **quantities: Unpack[Quantities]) -> Scenario:
        """Return a scenario in which these quantities have these values; ``None`` removes a quantity.

        >>> Scenario(mfu=0.4, pue=1.1).replace(pue=None)
        Scenario(mfu=0.4)
        """
        for name in quantities:
            quantity(name)
        merged = {**self, **quantities}
        kept = {name: value for name, value in merged.items() if value is not None}
        sources = {name: source for name, source in self.sources.items() if name not in quantities}
        return Scenario.sourced(self.label, kept, sources)

    def __getitem__(self, name: str) -> float | str:
        if not isinstance(name, str):
            raise KeyError(name)
        return self._values[name]  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self._values)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self:
            return self[name]
        if name in vocabulary():
            raise AttributeError(f"the scenario does not give {name}; evaluate may compute it")
        raise AttributeError(unknown_quantity_message(name))

    def __setattr__(self, name: str, value: object) -> None:
        raise ScenarioError(f"a scenario does not change; use scenario.replace({name}={value!r})")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Scenario.sourced, (self.label, dict(self), dict(self.sources)))

    def __repr__(self) -> str:
        return f"Scenario({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    def _repr_html_(self) -> str:
        rows = [(n, quantity(n).label, _shown(n, value), self.sources.get(n, "")) for n, value in self.items()]
        return html_table(("quantity", "meaning", "value", "source"), rows, self.label)


def _shown(name: str, value: float | str) -> str:
    return value if isinstance(value, str) else quantity(name).text(value)
