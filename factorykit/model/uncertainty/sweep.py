"""Every combination of given values, as one frame or streamed to Parquet."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any, overload

import polars as pl

from factorykit.core import atomic_io
from factorykit.core.errors import FactorykitError, ScenarioError
from factorykit.core.storage import is_object
from factorykit.core.validation import as_list, frame_schema, is_frame, mapping
from factorykit.core.vocabulary import quantity
from factorykit.engine.grids import Gridded
from factorykit.engine.question import Outputs, Question, read_value
from factorykit.model.uncertainty.study.parts import Design, Numbered, column_of, columns, evaluate_rows, max_part_rows
from factorykit.model.uncertainty.study.study import ROWS_IN_MEMORY, answered, target


@overload
def sweep(
    inputs: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]] | pl.DataFrame | pl.LazyFrame,
    outputs: Outputs = None,
    out: None = None,
    engine: str = "local",
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame: ...
@overload
def sweep(
    inputs: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]] | pl.DataFrame | pl.LazyFrame,
    outputs: Outputs,
    out: str | Path,
    engine: str = "local",
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.LazyFrame: ...
def sweep(
    inputs: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]] | pl.DataFrame | pl.LazyFrame,
    outputs: Outputs = None,
    out: str | Path | None = None,
    engine: str = "local",
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame | pl.LazyFrame:
    """Evaluate every combination of the values in ``grid``.

    Parameters
    ----------
    inputs
        Quantities with one value, as in :func:`factorykit.evaluate`; the grid takes the place of a value.
    grid
        Values by quantity, words such as accelerators among them; the last quantity changes fastest. Or a frame, lazy
        or not, whose rows are evaluated in their order. A lazy query runs once; to resume a study it must return its
        rows in the same order, so sort the result of ``group_by``, ``unique`` or ``join``.
    outputs, using, assume
        As in :func:`factorykit.evaluate`; by default all outputs that can be computed.
    out
        A file whose name ends in ``.parquet``, written whole or not at all; or the folder of a study, in parts: called
        again, it goes on where it was stopped. Both in bounded memory.
    engine
        Of a study: ``"local"``, this process; ``"ray"``, the workers of Ray on this machine, or on the cluster that it
        is connected to; or the address of one, ``"ray://host:10001"``. The rows are the same.

    Returns
    -------
    DataFrame or LazyFrame
        One row per combination: the grid, then the outputs. With ``out``, a scan of the written rows;
        :func:`factorykit.study` opens a folder.

    Raises
    ------
    FactorykitError
        As :func:`factorykit.evaluate`, and for an empty grid, too many rows to return, or a folder that holds
        something else.

    Examples
    --------
    >>> run = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384, "peak_flop_per_s": 989e12}
    >>> sweep(run, {"mfu": [0.3, 0.4]}, "training_days")["training_days"].round(1).to_list()
    [90.3, 67.7]
    """
    axes = {} if is_frame(grid) else axes_of(grid)
    varying = frame_schema("grid", grid) if is_frame(grid) else axes
    question = Question.read(inputs, outputs, using=using, assume=assume, varying=varying)
    if is_frame(grid):
        with _fixed(grid, target(out, engine)) as fixed:
            rows = Listed(fixed, question)
            if not rows.rows:
                raise ScenarioError("the grid has no rows; give at least one")
            return answered(rows, out, "sweep", engine)
    evaluate_rows(question, _ends(axes))
    return answered(Crossed(axes, question), out, "sweep", engine)


def axes_of(grid: Mapping[str, Sequence[float]]) -> dict[str, tuple[float | str, ...]]:
    """Return the values of each quantity of a grid, or raise an UnknownQuantity or ScenarioError."""
    if not isinstance(grid, Mapping):
        raise ScenarioError(f"grid is {type(grid).__name__}; give a mapping such as {{'mfu': [0.3, 0.4]}}")
    axes = {}
    for name, values in mapping("grid", grid).items():
        row = quantity(name)
        axes[name] = tuple(read_value(row, given) for given in as_list(f"grid: {name}", values))
        if not axes[name]:
            raise ScenarioError(f"grid: {name} has no values; give at least one")
    if not axes:
        raise ScenarioError("the grid is empty; give values for at least one quantity, e.g. {'mfu': [0.3, 0.4]}")
    return axes


def _ends(axes: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """Return a few combinations with every word and the ends of every axis of numbers.

    Evaluated eagerly, they show missing and inconsistent inputs.
    """
    seen = {name: values if quantity(name).is_text else [values[0], values[-1]] for name, values in axes.items()}
    rows = max(map(len, seen.values()))
    return pl.DataFrame(
        {name: column_of(name, [values[i % len(values)] for i in range(rows)]) for name, values in seen.items()}
    )


@dataclass(frozen=True)
class Crossed(Design):
    """Every combination of values; the last quantity changes fastest."""

    axes: Mapping[str, tuple[Any, ...]]
    question: Question

    @property
    def rows(self) -> int:
        """Combinations."""
        return math.prod(map(len, self.axes.values()))

    @property
    def parts(self) -> int:
        """Blocks of the grid, some to a part."""
        return math.ceil(self._gridded.grid.blocks / self._blocks)

    @cached_property
    def _gridded(self) -> Gridded:
        axes = {name: column_of(name, values) for name, values in self.axes.items()}
        return self.question.over(axes).resolve().grid(axes, columns(self.question, list(axes)))

    @cached_property
    def _blocks(self) -> int:
        """Blocks of the grid in a part."""
        return max(max_part_rows(self.question, list(self.axes)) * self._gridded.grid.blocks // self.rows, 1)

    def part(self, number: int) -> pl.DataFrame:
        """Return the rows of some blocks."""
        first = number * self._blocks
        last = min(first + self._blocks, self._gridded.grid.blocks)
        return pl.concat([self._gridded.block(block) for block in range(first, last)])

    def describe(self) -> dict[str, Any]:
        """Return the question and the values of the axes."""
        return self.question.describe() | {"grid": {name: list(values) for name, values in self.axes.items()}}


@contextmanager
def _fixed(grid: pl.DataFrame | pl.LazyFrame, path: Path | None) -> Iterator[pl.LazyFrame]:
    """Provide the rows of a frame in one order; a lazy query runs once, into a Parquet file beside ``path``.

    Run again for each part, a query such as ``group_by``, ``unique`` or ``join`` returns its rows in other orders.
    """
    with ExitStack() as stack:
        try:
            rows = grid.lazy() if isinstance(grid, pl.DataFrame) else _spooled(grid, path, stack)
        except OSError as error:
            raise FactorykitError(f"{path} cannot be written: {error}; name a place in a folder that exists") from None
        except pl.exceptions.PolarsError as error:
            raise ScenarioError(f"grid cannot be collected: {str(error).partition(chr(10))[0]}") from error
        yield rows


def _spooled(query: pl.LazyFrame, path: Path | None, stack: ExitStack) -> pl.LazyFrame:
    """Return the rows of a query: in memory, or with a ``path`` from a file that ``stack`` removes."""
    if path is None:
        return query.head(ROWS_IN_MEMORY + 1).collect(engine="streaming").lazy()
    if is_object(path):
        spool = path.parent / f".rows-{token_hex(8)}.parquet"
        stack.callback(spool.unlink, missing_ok=True)
        query.sink_parquet(str(spool))
        return pl.scan_parquet(str(spool))
    if not path.suffix:
        path.parent.mkdir(parents=True, exist_ok=True)
    folder = stack.enter_context(atomic_io.temporary_folder(path.parent.absolute(), f".rows-{socket.gethostname()}-"))
    query.sink_parquet(folder / "rows.parquet")
    return pl.scan_parquet(folder / "rows.parquet")


@dataclass(frozen=True)
class Listed(Numbered):
    """The rows of a frame."""

    listed: pl.LazyFrame
    question: Question

    @cached_property
    def rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return self.listed.select(pl.len()).collect(engine="streaming").item()

    @property
    def rows_a_part(self) -> int:
        """Number of rows in a part."""
        return max_part_rows(self.question, self.listed.collect_schema().names())

    def rows_between(self, first: int, last: int) -> pl.DataFrame:
        """Return the rows from ``first`` to before ``last``."""
        return evaluate_rows(self.question, self.listed.slice(first, last - first)).collect()

    def describe(self) -> dict[str, Any]:
        """Return the question, and digests of the rows without and with their order."""
        numbered = self.listed.with_row_index("number of the row")
        digests = numbered.select(
            rows=pl.struct(pl.exclude("number of the row")).hash().sum(), order=pl.struct(pl.all()).hash().sum()
        )
        return self.question.describe() | digests.collect(engine="streaming").row(0, named=True)
