"""Designs of studies: rows that depend on their number alone, so that any process can compute any part of them."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.chain import Chain, ask
from factorykit.engine.evaluate import evaluate

if TYPE_CHECKING:
    import polars as pl

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
    def stretch(self, first: int, last: int) -> pl.DataFrame:
        """Return the rows from ``first`` to before ``last``."""

    @property
    def parts(self) -> int:
        """Number of parts."""
        return math.ceil(self.rows / self.rows_a_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return the rows of a part."""
        first = number * self.rows_a_part
        return self.stretch(first, min(first + self.rows_a_part, self.rows))


@dataclass(frozen=True)
class Asked:
    """The question that is evaluated for every row: shared values, outputs, alternatives, use of defaults."""

    values: Mapping[str, Any]
    outputs: tuple[str, ...] | None
    using: Mapping[str, str]
    assume: bool

    def of(self, rows: Any) -> Any:
        """Return the rows of a frame, lazy or not, with the outputs."""
        import polars as pl

        whole = rows.with_columns(pl.lit(value).alias(name) for name, value in self.values.items())
        wider = evaluate(whole, self.outputs, using=self.using, assume=self.assume)
        return wider.select(self.columns(rows.collect_schema().names()))

    def chain(self, names: Iterable[str]) -> Chain:
        """Return the chain from the columns of rows to the outputs."""
        given = {name for name in names if name in vocabulary()}
        return ask({*self.values, *given}, self.outputs, self.using, assume=self.assume)

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns of rows with the outputs."""
        chain = self.chain(names)
        new = [name for name in chain.outputs if name in chain.computed]
        return list(dict.fromkeys((*names, *new, *(self.outputs or ()))))

    def rows_a_part(self, names: Sequence[str]) -> int:
        """Return the number of rows in a part."""
        return max(CELLS_A_PART // len(self.columns(names)), 1)

    def describe(self) -> dict[str, Any]:
        """Return the question for the manifest of a study."""
        outputs = None if self.outputs is None else list(self.outputs)
        return {"inputs": dict(self.values), "outputs": outputs, "using": dict(self.using), "assume": self.assume}


def column_of(name: str, values: Sequence[Any]) -> pl.Series:
    """Return the values of a quantity as a column: words as text, all else as doubles."""
    import polars as pl

    return pl.Series(values, dtype=pl.String if quantity(name).is_text else pl.Float64)
