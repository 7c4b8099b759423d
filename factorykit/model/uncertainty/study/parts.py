"""Designs of studies: rows that depend on their number alone, so that any process can compute any part of them."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

import polars as pl

from factorykit.core.vocabulary import quantity
from factorykit.engine.question import Question

CELLS_A_PART: Final = 2**24
"""Most numbers in a part: 128 MiB of doubles."""


class Design(abc.ABC):
    """Rows in parts: a frozen dataclass that is pickled by its fields."""

    @property
    @abc.abstractmethod
    def rows(self) -> int:
        """Number of rows."""

    @property
    @abc.abstractmethod
    def parts(self) -> int:
        """Number of parts."""

    @abc.abstractmethod
    def part(self, number: int) -> pl.DataFrame:
        """Return the rows of a part."""

    def describe(self) -> dict[str, Any]:
        """Return the fields that determine the rows, for the manifest of a study."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


class Numbered(Design):
    """Rows that can be computed in any range of their numbers."""

    @property
    @abc.abstractmethod
    def rows_a_part(self) -> int:
        """Number of rows in a part."""

    @abc.abstractmethod
    def rows_between(self, first: int, last: int) -> pl.DataFrame:
        """Return the rows from ``first`` to before ``last``."""

    @property
    def parts(self) -> int:
        """Number of parts."""
        return math.ceil(self.rows / self.rows_a_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return the rows of a part."""
        first = number * self.rows_a_part
        return self.rows_between(first, min(first + self.rows_a_part, self.rows))


def evaluate_rows(question: Question, rows: Any) -> Any:
    """Return rows of the varying quantities, as a DataFrame or a LazyFrame, with the outputs of a question."""
    return question.on(rows).resolve().run().select(columns(question, rows.collect_schema().names()))


def columns(question: Question, names: Sequence[str]) -> list[str]:
    """Return the columns of rows with the outputs of a question."""
    return list(dict.fromkeys((*names, *question.over(names).resolve().outputs)))


def max_part_rows(question: Question, names: Sequence[str]) -> int:
    """Return how many rows fill a part."""
    return max(CELLS_A_PART // len(columns(question, names)), 1)


def column_of(name: str, values: Sequence[Any]) -> pl.Series:
    """Return the values of a quantity as a column: words as text, all else as doubles."""
    return pl.Series(values, dtype=pl.String if quantity(name).is_text else pl.Float64)
