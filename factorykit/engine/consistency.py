"""Refuse values that contradict each other: a derived quantity that is given must be what the others give."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from factorykit.core.errors import MissingQuantity, ScenarioError
from factorykit.core.vocabulary import quantity
from factorykit.engine.chain import Step, ask
from factorykit.engine.run import compute, widened

if TYPE_CHECKING:
    import polars as pl

AGREEMENT: Final = 1e-6
"""Relative difference up to which a given derived quantity and its formula count as one number; room for rounding."""


def agree(values: Mapping[str, float | str], using: Mapping[str, str]) -> None:
    """Refuse values that contradict each other.

    Raises
    ------
    ScenarioError
        If a quantity is both given and left to a rival model, or a given derived quantity differs from what the other
        values give.
    """
    refuse_two_sayings(values, using)
    words = tuple(sorted((name, word) for name, word in values.items() if quantity(name).is_text))
    for name, steps in _redundant(frozenset(values), words, tuple(sorted(using.items()))):
        stated, computed = values[name], compute(steps, values)[name]
        if not math.isclose(stated, computed, rel_tol=AGREEMENT):  # type: ignore[arg-type]
            raise ScenarioError(
                f"{name} = {stated!r} contradicts the other inputs, which give {computed!r}; drop one of them"
            )


def refuse_two_sayings(given: Iterable[str], using: Mapping[str, str]) -> None:
    """Refuse a quantity that is given and also left to a rival model.

    Raises
    ------
    ScenarioError
    """
    for name in given:
        if name in using:
            raise ScenarioError(f"{name} is given and also computed with {using[name]}; drop one of them")


@lru_cache(maxsize=512)
def _redundant(
    given: frozenset[str], words: tuple[tuple[str, str], ...], using: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, tuple[Step, ...]], ...]:
    """Return the given derived quantities that the other given quantities determine too, with the steps to them."""
    found = []
    for name in sorted(given):
        if quantity(name).is_derived:
            try:
                steps = ask(given - {name}, (name,), dict(using), dict(words), fitted="layers" in given).steps
            except MissingQuantity:
                continue
            found.append((name, steps))
    return tuple(found)


def agree_in_frame(floats: pl.LazyFrame, given: Collection[str], using: Mapping[str, str]) -> None:
    """Refuse a column that differs from what the other columns give; every row is looked at.

    Raises
    ------
    ScenarioError
        With the number of such rows and the first of them.
    """
    import polars as pl

    for name, steps in _redundant(frozenset(given), (), tuple(sorted(using.items()))):
        stated = "stated " + name
        compared = widened(floats.with_columns(pl.col(name).alias(stated)), steps)
        differs = (pl.col(stated) - pl.col(name)).abs() > AGREEMENT * pl.max_horizontal(
            pl.col(stated).abs(), pl.col(name).abs()
        )
        numbered = compared.select(pl.int_range(pl.len()).alias("number of row"), stated, name)
        rows = numbered.filter(differs).collect()
        if rows.height:
            first, said, computed = rows.row(0)
            raise ScenarioError(
                f"column {name} contradicts the other columns in {rows.height} rows, first in row {first}: "
                f"{said} against {computed}; drop one of them"
            )
