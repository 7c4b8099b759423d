"""Results of a mapping: a dict that knows the vocabulary when it is shown."""

from __future__ import annotations

from typing import Any

from factorykit.core.vocabulary import quantity
from factorykit.engine.html import html_table


class Answer(dict[str, Any]):
    """Values by quantity: equal to, pickled and written to JSON as a dict; a table with units in a notebook.

    >>> Answer(mfu=0.4)
    {'mfu': 0.4}
    >>> print(Answer(mfu=0.4, rental_cost_usd=63.2e6)._repr_markdown_())
    | Quantity | Value |
    |---|---|
    | Model FLOP utilization | 40 % |
    | Rental cost of the run | 63.2 million USD |
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(name, quantity(name).label, quantity(name).text(value)) for name, value in self.items()]

    def _repr_html_(self) -> str:
        return html_table(("Quantity", "Value", "Name"), [(label, text, name) for name, label, text in self._rows()])

    def _repr_markdown_(self) -> str:
        return "\n".join(
            ["| Quantity | Value |", "|---|---|", *(f"| {label} | {text} |" for _, label, text in self._rows())]
        )
