"""Evaluate quantities on a DataFrame or a LazyFrame: values checked, columns added, nothing collected early."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from factorykit import usual
from factorykit.errors import FactorykitWarning, MissingQuantity, ScenarioError, nearest
from factorykit.model.engine import rules
from factorykit.model.engine.agreement import agree_in_frame, refuse_two_sayings
from factorykit.model.engine.chain import CELL, Chain, ask
from factorykit.model.engine.ranges import bounded, closed
from factorykit.model.engine.run import columns
from factorykit.quantities import quantity, vocabulary

if TYPE_CHECKING:
    import polars as pl

GOOD: Final = "whether all that is given is within bounds"
"""Name of the column in which a lazy frame is told which rows can be evaluated."""
BROKEN: Final = "rule that the layout breaks"
"""Name of the column in which a frame is told which rows hold a layout that does not work."""


def evaluate_frame(
    frame: Any, outputs: tuple[str, ...] | None, using: dict[str, str], *, assume: bool
) -> pl.DataFrame | pl.LazyFrame:
    """Return the frame wider by the outputs: see `factorykit.model.engine.evaluate.evaluate`."""
    import polars as pl

    lazy = isinstance(frame, pl.LazyFrame)
    if not lazy and frame.height == 0:
        raise ScenarioError("the frame has no rows; nothing can be evaluated")
    schema = frame.collect_schema()
    chain = resolved(schema, outputs, using, assume=assume)
    given = chain.question.given
    ruled = rules.LOOKED_AT.intersection(given) if rules.concern(chain.computed) else frozenset()
    inputs = [name for name in schema if name in {*chain.leaves, *ruled}]
    for name in inputs:
        if quantity(name).is_text and schema[name] != pl.String:
            raise ScenarioError(f"column {name} is {schema[name]}, not text; cast it to String")
        if not quantity(name).is_text and schema[name] == pl.String and isinstance(frame, pl.DataFrame):
            from factorykit.units import column

            frame = frame.with_columns(column(frame[name], quantity(name)))
        elif not quantity(name).is_text and not schema[name].is_numeric():
            units = "; texts with units are read in a DataFrame: collect it" if schema[name] == pl.String else ""
            raise ScenarioError(f"column {name} is {schema[name]}, not numeric; cast it to Float64{units}")
    floats = frame.lazy().with_columns(
        pl.col(name).cast(pl.Float64) for name in inputs if not quantity(name).is_text and schema[name] != pl.Float64
    )
    if "accelerator" in inputs:
        floats = floats.with_columns(_keys(frame))
    if lazy:
        good = [_holds(name).fill_null(value=False) for name in inputs]
        floats = floats.with_columns(pl.all_horizontal(good).alias(GOOD)) if good else floats
        floats = floats.with_columns(pl.when(GOOD).then(name).alias(name) for name in _gates(chain, inputs))
        usual_inputs = False
    else:
        usual_inputs = _check_frame(floats, inputs)
        if "accelerator" in inputs:
            _check_cells(floats, chain)
        agree_in_frame(floats, given, using)
    for layer in columns(chain.steps):
        floats = floats.with_columns(layer)
    if rules.concern(chain.computed):
        floats = floats.with_columns(rules.broken({*chain.computed, *inputs}, given).alias(BROKEN))
        if not lazy:
            floats = floats.collect().lazy()
            _check_layouts(floats)
        works = pl.col(BROKEN).is_null()
        floats = floats.with_columns(
            pl.when(works).then(name).alias(name) for name in chain.outputs if name in chain.computed
        )
    new = dict.fromkeys(name for name in chain.outputs if name in chain.computed)
    numbers = [name for name in new if not quantity(name).is_text]
    if lazy:
        loose = set(numbers) - bounded(chain.steps, ())
        return floats.with_columns(_possible(name) for name in numbers if name in loose).select(*schema, *new)
    found = floats.select(*schema, *new).collect()
    certain = bounded(chain.steps, numbers, usual=True) if usual_inputs else ()
    open_names = [name for name in numbers if name not in certain]
    _judge(found, open_names, set(open_names) - bounded(chain.steps, numbers))
    return found


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

    from factorykit.datasets.identity import identify, spellings

    if isinstance(frame, pl.LazyFrame):
        return pl.col("accelerator").replace_strict(spellings("accelerator"), default=None, return_dtype=pl.String)
    known = {name: identify("accelerator", name) for name in frame["accelerator"].unique().drop_nulls()}
    return pl.col("accelerator").replace(known)


def _check_cells(floats: pl.LazyFrame, chain: Chain) -> None:
    """Refuse a chip of which the tables do not say what the chain needs."""
    from factorykit.model.supply.chips import chips

    words = [name for name in ("accelerator", "precision") if name in chain.leaves]
    for said in floats.select(words).unique(maintain_order=True).collect().iter_rows(named=True):
        known = {"precision": "bf16"} | said
        lacking = [s.quantity for s in chain.steps if s.origin == CELL and not s.formula.says(known)]  # type: ignore[attr-defined]
        if lacking:
            named = chips()[said["accelerator"]]["name"]
            raise MissingQuantity(
                f"{named}: the tables do not say {', '.join(lacking)}; give {' and '.join(lacking)}", lacking
            )


def _holds(name: str) -> pl.Expr:
    """Return whether the column is within the bounds."""
    import polars as pl

    row, column = quantity(name), pl.col(name)
    if row.is_text:
        return column.is_in(row.alternatives) if row.alternatives else column.is_not_null()
    return _within(column, row.bounds, row.lower, row.upper)


def _within(column: pl.Expr, brackets: str, lower: float, upper: float) -> pl.Expr:
    """Return whether a column lies between two values. Polars orders NaN above infinity: both are refused."""
    return column.is_between(*closed(brackets, lower, upper))


def _gates(chain: Chain, inputs: Sequence[str]) -> list[str]:
    """Return a few inputs on which all outputs hang: null in a row, they leave it without outputs."""
    hangs: dict[str, set[str]] = {name: {name} for name in inputs}
    for step in chain.steps:
        hangs[step.quantity] = set().union(*(hangs.get(name, set()) for name in step.arguments))
    open_sets = [found for name in chain.outputs if (found := hangs.get(name))]
    gates: list[str] = []
    while open_sets:
        gates.append(max(inputs, key=lambda name: sum(name in found for found in open_sets)))
        open_sets = [found for found in open_sets if gates[-1] not in found]
    return gates


def _check_frame(floats: pl.LazyFrame, inputs: list[str]) -> bool:
    """Refuse values out of bounds and warn of unusual ones: one look if all are usual, since that is the narrower.

    Return whether they are.
    """
    import polars as pl

    def fine(name: str) -> pl.Expr:
        row, column = quantity(name), pl.col(name)
        return _within(column, row.usual, *row.usual_range) if row.usual else _holds(name)

    verdicts = floats.select(fine(name).all(ignore_nulls=False) for name in inputs).collect()
    for name in inputs:
        if not verdicts[name][0]:
            broken = floats.with_row_index("number of row").filter(_holds(name).not_() | pl.col(name).is_null())
            rows = broken.select("number of row", name).collect()
            if rows.is_empty():
                usual.warn_column(floats, name)
                continue
            height, (first, value) = floats.select(pl.len()).collect().item(), rows.row(0)
            row = quantity(name)
            hint = "" if row.is_text else row.hint(math.nan if value is None else value)
            raise ScenarioError(
                f"column {name}: {rows.height} of {height} rows break {row.bounds or 'the known names'}; "
                f"the first is row {first} with {value}{hint}"
            )
    return all(verdicts[name][0] for name in inputs)


def _possible(name: str) -> pl.Expr:
    """Return a result, null where it is undefined or outside the bounds of its quantity; infinity may stand."""
    import polars as pl

    row, column = quantity(name), pl.col(name)
    return pl.when(column.is_between(row.lower, row.upper)).then(column)


def _judge(found: pl.DataFrame, outputs: Sequence[str], loose: Collection[str]) -> None:
    """Refuse results that are undefined or impossible, and say which are infinite.

    A finite sum has no undefined and no infinite part; only ``loose`` results can leave the bounds of their quantity.
    """
    import polars as pl

    sums = found.select(outputs).sum()
    ends = found.lazy().select(
        *(pl.col(name).min().alias(f"{name} least") for name in loose), *(pl.col(name).max() for name in loose)
    )
    seen = ends.collect() if loose else found
    for name in outputs:
        row = quantity(name)
        reached = (seen[f"{name} least"][0], seen[name][0]) if name in loose else ()
        if math.isfinite(sums[name][0]) and all(value is None or row.reaches(value) for value in reached):
            continue
        undefined, infinite = found[name].is_nan(), found[name].is_infinite()
        if undefined.any():
            raise ScenarioError(
                f"column {name} is undefined in {undefined.sum()} of {found.height} rows, the first is row "
                f"{undefined.arg_max()}; change the inputs it is computed from, or leave these rows out"
            )
        outside = found.select(
            pl.col(name).is_between(row.lower, row.upper).not_() & pl.col(name).is_finite()
        ).to_series()
        if outside.any():
            first = outside.arg_max() or 0
            raise ScenarioError(
                f"column {name} is outside {row.bounds} in {outside.sum()} of {found.height} rows, the first is row "
                f"{first} with {found[name][first]:g}; change the inputs it is computed from, or leave these rows out"
            )
        if infinite.any():
            warnings.warn(
                f"column {name} is infinite in {infinite.sum()} of {found.height} rows, the first is row "
                f"{infinite.arg_max()}; factorykit.outside says which conditions fail there",
                FactorykitWarning,
                stacklevel=4,
            )


def _check_layouts(floats: pl.LazyFrame) -> None:
    import polars as pl

    rows = floats.select(BROKEN).with_row_index("number of row").filter(pl.col(BROKEN).is_not_null()).collect()
    if rows.height:
        first, rule = rows.row(0)
        raise ScenarioError(
            f"{rows.height} rows hold a layout that does not work, the first is row {first}: {rule}, and there not; "
            "evaluate a LazyFrame to get null there"
        )


def _typo(missing: Sequence[str], schema: Mapping[str, Any]) -> str:
    strangers = [name for name in schema if name not in vocabulary()]
    hints = [f"column {near!r} is no quantity; is it {name}?" for name in missing if (near := nearest(name, strangers))]
    return f" ({' '.join(hints)})" if hints else ""
