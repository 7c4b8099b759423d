"""Tables of which columns were renamed: a frame that answers an old name with the present one."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
from polars.exceptions import ColumnNotFoundError

from factorykit.datasets.catalogue import BEFORE, RENAMED
from factorykit.errors import DatasetError


class Renamed(pl.LazyFrame):
    """A lazy frame that, asked for a column by the name it had in 0.1, says what that is called now."""

    def collect(self, *args: Any, **options: Any) -> Any:
        """Return the rows, as `polars.LazyFrame.collect` does."""
        try:
            return super().collect(*args, **options)
        except ColumnNotFoundError as error:
            raise _explained(error) from None

    def collect_schema(self) -> pl.Schema:
        """Return names and types, as `polars.LazyFrame.collect_schema` does."""
        try:
            return super().collect_schema()
        except ColumnNotFoundError as error:
            raise _explained(error) from None


def answering(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the same frame, answering to old names of columns."""
    return Renamed._from_pyldf(frame._ldf)


def _explained(error: ColumnNotFoundError) -> Exception:
    """Return an error that names the present column where the one asked for is an old name."""
    asked = re.search(r'"(\w+)"', str(error))
    name = asked.group(1) if asked else ""
    told = {table: columns[name] for table, columns in RENAMED.items() if name in columns}
    if not told:
        return error
    table, now = next(iter(told.items()))
    return DatasetError(f"{name} is {now} now; table('{table}{BEFORE}') has the names of before until 0.3")
