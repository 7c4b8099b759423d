"""Evaluate quantities on a DataFrame or a LazyFrame: values checked, columns added, nothing collected early."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from factorykit.core import plausibility
from factorykit.core.errors import MissingQuantity, ScenarioError, nearest, warn
from factorykit.core.validation import frame_schema
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine import rules
from factorykit.engine.chain import CELL, Chain, Step, ask
from factorykit.engine.consistency import agree_in_frame, refuse_two_sayings
from factorykit.engine.ranges import bounded, closed
from factorykit.engine.run import columns

if TYPE_CHECKING:
    import polars as pl

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")
GOOD: Final = "whether all that is given is within bounds"
"""Name of the column in which a lazy frame is told which rows can be evaluated."""
FINE: Final = "is fine"
"""End of the names of columns that tell in which rows a given one is within its range."""
BROKEN: Final = "rule that the layout breaks"
"""Name of the column in which a frame is told which rows hold a layout that does not work."""


def evaluate_frame(
    frame: Any, outputs: tuple[str, ...] | None, using: dict[str, str], *, assume: bool
) -> pl.DataFrame | pl.LazyFrame:
    """Return the frame wider by the outputs: see `factorykit.engine.evaluate.evaluate`."""
    import polars as pl

    lazy = isinstance(frame, pl.LazyFrame)
    if not lazy and frame.height == 0:
        raise ScenarioError("the frame has no rows; nothing can be evaluated")
    schema = frame_schema("inputs", frame)
    chain = resolved(schema, outputs, using, assume=assume)
    given = chain.question.given
    ruled = rules.LOOKED_AT.intersection(given) if rules.concern(chain.computed) else frozenset()
    inputs = [name for name in schema if name in {*chain.leaves, *ruled}]
    for name in inputs:
        if quantity(name).is_text and schema[name] != pl.String:
            raise ScenarioError(f"column {name} is {schema[name]}, not text; cast it to String")
        if not quantity(name).is_text and schema[name] == pl.String and isinstance(frame, pl.DataFrame):
            from factorykit.core.units import parse_column

            frame = frame.with_columns(parse_column(frame[name], quantity(name)))
        elif not quantity(name).is_text and not schema[name].is_numeric():
            units = "; texts with units are read in a DataFrame: collect it" if schema[name] == pl.String else ""
            raise ScenarioError(f"column {name} is {schema[name]}, not numeric; cast it to Float64{units}")
    floats = frame.lazy().with_columns(
        pl.col(name).cast(pl.Float64) for name in inputs if not quantity(name).is_text and schema[name] != pl.Float64
    )
    if "accelerator" in inputs:
        floats = floats.with_columns(_keys(frame))
    if not lazy:
        words = [name for name in inputs if quantity(name).is_text]
        _check_inputs(floats, words)
        if "accelerator" in inputs:
            _check_cells(floats, chain)
        agree_in_frame(floats, given, using)
    ruled_by = {*chain.computed, *inputs} if rules.concern(chain.computed) else set()
    shown = dict.fromkeys(chain.outputs)
    new = [name for name in shown if name in chain.computed]
    doubts = doubtful(chain) if lazy else {}
    keep = {*schema, *shown, *ruled_by, *doubts}
    check = _holds if lazy else _is_usual
    floats = with_steps(floats, chain.steps, [check(name).alias(f"{name} {FINE}") for name in inputs], keep)
    broken = rules.broken(ruled_by, given) if ruled_by else pl.lit(None)
    floats = floats.with_columns(broken.alias(BROKEN), *(possible(name).alias(f"{name} {FINE}") for name in doubts))
    if lazy:
        good = [pl.col(f"{name} {FINE}") for name in inputs]
        floats = floats.with_columns(
            pl.all_horizontal(pl.col(BROKEN).is_null(), *good).fill_null(value=False).alias(GOOD)
        )
        return floats.with_columns(
            pl.when(GOOD, *(f"{cause} {FINE}" for cause, hit in doubts.items() if name in hit)).then(name).alias(name)
            for name in shown
        ).select(*schema, *new)
    every = floats.select(*schema, *new, BROKEN, *(f"{name} {FINE}" for name in inputs)).collect()
    unusual = [name for name in inputs if not every[f"{name} {FINE}"].all(ignore_nulls=False)]
    _check_inputs(every.lazy(), unusual)
    _check_layouts(every)
    found = every.select(*schema, *new)
    numbers = [name for name in new if not quantity(name).is_text]
    certain = bounded(chain.steps, numbers, usual=True) if not unusual else ()
    _judge(found, [name for name in numbers if name not in certain])
    return found


def with_steps(frame: Frame, steps: Sequence[Step], checks: Sequence[pl.Expr], keep: Collection[str]) -> Frame:
    """Return the frame with the columns of all steps and checks, without those of the parts on the way.

    Polars runs the columns of one group side by side; the groups of a long recurrence hold one each. So the checks,
    which nothing waits for, ride along a few at a time. A part goes after its last use: its memory serves the next.
    """
    groups = columns(tuple(steps)) or [[]]
    last = {name: number for number, group in enumerate(groups) for made in group for name in made.meta.root_names()}
    for number, group in enumerate(groups):
        frame = frame.with_columns(*group, *checks[number :: len(groups)])
        frame = frame.drop(name for name, use in last.items() if use == number and name not in keep)
    return frame


def resolved(
    schema: Mapping[str, Any], outputs: tuple[str, ...] | None, using: Mapping[str, str], *, assume: bool = False
) -> Chain:
    """Return the chain from the columns of a frame to the outputs.

    Raises
    ------
    ScenarioError, MissingQuantity
    """
    given = {name for name in schema if name in vocabulary()}
    refuse_two_sayings(given, using)
    try:
        return ask(given, outputs, using, assume=assume)
    except MissingQuantity as error:
        raise MissingQuantity(f"{error}{_typo(error.missing, schema)}", error.missing) from None


def _keys(frame: pl.DataFrame | pl.LazyFrame) -> pl.Expr:
    """Return the column of chips as keys of the tables; of a lazy frame, whose names nobody has seen, those known."""
    import polars as pl

    from factorykit.data.identifiers import identify, spellings

    if isinstance(frame, pl.LazyFrame):
        return pl.col("accelerator").replace_strict(spellings("accelerator"), default=None, return_dtype=pl.String)
    known = {name: identify("accelerator", name) for name in frame["accelerator"].unique().drop_nulls()}
    return pl.col("accelerator").replace(known)


def _check_cells(floats: pl.LazyFrame, chain: Chain) -> None:
    """Refuse a chip of which the tables do not say what the chain needs."""
    from factorykit.engine.providers.accelerators import unsaid

    words = [name for name in ("accelerator", "precision") if name in chain.leaves]
    for said in floats.select(words).unique(maintain_order=True).collect().iter_rows(named=True):
        known = {"precision": "bf16"} | said
        lacking = [s.quantity for s in chain.steps if s.origin == CELL and not s.formula.says(known)]  # type: ignore[attr-defined]
        if lacking:
            raise MissingQuantity(unsaid(lacking, known), lacking)


def _holds(name: str) -> pl.Expr:
    """Return whether the column is within the bounds."""
    import polars as pl

    row, column = quantity(name), pl.col(name)
    if row.is_text:
        return column.is_in(row.choices) if row.choices else column.is_not_null()
    return _within(column, row.bounds, row.lower, row.upper)


def _within(column: pl.Expr, brackets: str, lower: float, upper: float) -> pl.Expr:
    """Return whether a column lies between two values. Polars orders NaN above infinity: both are refused."""
    return column.is_between(*closed(brackets, lower, upper))


def _is_usual(name: str) -> pl.Expr:
    """Return whether the column is within the usual range, which is the narrower, or the bounds if there is none."""
    import polars as pl

    row = quantity(name)
    return _within(pl.col(name), row.usual, *row.usual_range) if row.usual else _holds(name)


def _check_inputs(floats: pl.LazyFrame, names: Sequence[str]) -> None:
    """Refuse values out of bounds, and warn of unusual ones."""
    import polars as pl

    for name in names:
        numbered = floats.select(pl.int_range(pl.len()).alias("number of row"), name)
        rows = numbered.filter(_holds(name).not_() | pl.col(name).is_null()).collect()
        if rows.is_empty():
            if quantity(name).usual:
                plausibility.warn_column(floats, name)
            continue
        height, (first, value) = floats.select(pl.len()).collect().item(), rows.row(0)
        row = quantity(name)
        hint = "" if row.is_text else row.hint(math.nan if value is None else value)
        raise ScenarioError(
            f"column {name}: {rows.height} of {height} rows break {row.bounds or 'the known names'}; "
            f"the first is row {first} with {value}{hint}"
        )


def doubtful(chain: Chain) -> dict[str, frozenset[str]]:
    """Return the results that inputs within bounds may drive out of theirs, each with all that hangs on it."""
    numbers = [step.quantity for step in chain.steps if not quantity(step.quantity).is_text]
    hit = {name: {name} for name in numbers if name not in bounded(chain.steps, numbers)}
    for step in chain.steps:
        for names in hit.values():
            if not names.isdisjoint(step.arguments):
                names.add(step.quantity)
    return {name: frozenset(names) for name, names in hit.items()}


def possible(name: str) -> pl.Expr:
    """Return whether a result is defined and within the bounds of its quantity; infinity may stand."""
    import polars as pl

    row = quantity(name)
    return pl.col(name).is_between(row.lower, row.upper)


def _judge(found: pl.DataFrame, outputs: Sequence[str]) -> None:
    """Refuse results that are undefined or impossible, and say which are infinite."""
    import polars as pl

    finite = [
        pl.col(name).is_between(*closed((row := quantity(name)).bounds, row.lower, row.upper)) for name in outputs
    ]
    verdicts = found.lazy().select(column.all() for column in finite).collect()
    for name in outputs:
        if verdicts[name][0]:
            continue
        row = quantity(name)
        undefined, infinite = found[name].is_nan(), found[name].is_infinite()
        if undefined.any():
            raise ScenarioError(
                f"column {name} is undefined in {undefined.sum()} of {found.height} rows, the first is row "
                f"{undefined.arg_max()}; change the inputs it is computed from, or leave these rows out"
            )
        outside = found.select(possible(name).not_() & pl.col(name).is_not_nan()).to_series()
        if outside.any():
            first = outside.arg_max() or 0
            raise ScenarioError(
                f"column {name} is outside {row.bounds} in {outside.sum()} of {found.height} rows, the first is row "
                f"{first} with {found[name][first]:g}; change the inputs it is computed from, or leave these rows out"
            )
        if infinite.any():
            warn(
                f"column {name} is infinite in {infinite.sum()} of {found.height} rows, the first is row "
                f"{infinite.arg_max()}; factorykit.outside says which conditions fail there",
            )


def _check_layouts(every: pl.DataFrame) -> None:
    broken = every[BROKEN].drop_nulls()
    if not broken.is_empty():
        first = every[BROKEN].is_not_null().arg_max()
        raise ScenarioError(
            f"{broken.len()} rows hold a layout that does not work, the first is row {first}: {broken[0]}, and there "
            "not; evaluate a LazyFrame to get null there"
        )


def _typo(missing: Sequence[str], schema: Mapping[str, Any]) -> str:
    strangers = [name for name in schema if name not in vocabulary()]
    hints = [f"column {near!r} is no quantity; is it {name}?" for name in missing if (near := nearest(name, strangers))]
    return f" ({' '.join(hints)})" if hints else ""
