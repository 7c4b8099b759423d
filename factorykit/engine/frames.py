"""Run steps on the columns of a DataFrame or a LazyFrame, with a test of every row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit.core import plausibility
from factorykit.core.errors import ScenarioError, warn
from factorykit.core.vocabulary import quantity
from factorykit.data.identifiers import identify, spellings
from factorykit.engine.conditions import conditions, is_usual_input, is_valid_input
from factorykit.engine.resolve import Resolution
from factorykit.engine.run import add_checked_columns, fold
from factorykit.engine.step import leaves

if TYPE_CHECKING:
    import polars as pl

VALID: Final = "row is valid"
USUAL: Final = "inputs are usual"
"""Columns that are added to a frame while it is evaluated."""


def prepare(frame: Any, resolution: Resolution) -> Any:
    """Return a frame with the columns that the steps and rules need as Float64 or keys of entities.

    Raises
    ------
    ScenarioError, UnknownName
    """
    import polars as pl

    schema = frame.collect_schema()
    for name in (name for name in inputs_of(resolution) if name in schema):
        row, kind = quantity(name), schema[name]
        if row.is_text and kind != pl.String:
            raise ScenarioError(f"column {name} is {kind}, not text; cast it to String")
        if row.entity:
            frame = frame.with_columns(_keys(frame, name, row.entity))
        elif row.choices:
            frame = frame.with_columns(pl.col(name).str.to_lowercase())
        elif not row.is_text and kind == pl.String and isinstance(frame, pl.DataFrame):
            from factorykit.core.units import parse_column

            frame = frame.with_columns(parse_column(frame[name], row))
        elif not row.is_text and not kind.is_numeric():
            hint = "; text with units is read in a DataFrame: collect the frame first" if kind == pl.String else ""
            raise ScenarioError(f"column {name} is {kind}, not numeric; cast it to Float64{hint}")
        elif not row.is_text and kind != pl.Float64:
            frame = frame.with_columns(pl.col(name).cast(pl.Float64))
    return frame


def inputs_of(resolution: Resolution) -> list[str]:
    """Return the given quantities that the steps and the conditions need."""
    checks = conditions(resolution)
    needed = {*resolution.leaves, *leaves(checks.steps)}.union(*(condition.arguments for condition in checks))
    return sorted(needed & resolution.shape.given)


def _required(resolution: Resolution) -> list[str]:
    """Return the given quantities whose values must be valid: those of the steps and the rules."""
    ruled = (name for rule in resolution.rules for name in rule.arguments)
    return sorted({*resolution.leaves, *ruled} & resolution.shape.given)


def evaluate_lazy(frame: pl.LazyFrame, resolution: Resolution, fixed: Mapping[str, Any]) -> pl.LazyFrame:
    """Return the frame with the outputs; outputs that depend on an invalid value are null.

    ``fixed`` values are the same in all rows.
    """
    import polars as pl

    schema = frame.collect_schema()
    inputs = {f"{name} is valid": is_valid_input(name) for name in _required(resolution) if name not in fixed}
    rows, known = _checked(frame, resolution, fixed, inputs)
    valid = pl.all_horizontal(pl.lit(value=True), *inputs, *(c.name for c in conditions(resolution) if c.decides_row))
    rows = rows.with_columns(valid.alias(VALID))
    columns = []
    for name in dict.fromkeys(resolution.outputs):
        causes = [c.name for c in conditions(resolution) if name in c.affected]
        value = pl.lit(known[name]) if name in known else pl.col(name)
        columns.append(pl.when(VALID, *causes).then(value).alias(name))
    new = [name for name in dict.fromkeys(resolution.outputs) if name not in schema]
    return rows.with_columns(columns).select(*schema, *new)


def evaluate_eager(
    frame: pl.DataFrame, resolution: Resolution, fixed: Mapping[str, Any]
) -> tuple[pl.DataFrame, pl.Series]:
    """Return the frame with the outputs, and whether all values of each row are valid.

    Warns
    -----
    FactorykitWarning
        If an input is outside its usual range, or an output is infinite.
    """
    import polars as pl

    names = [name for name in _required(resolution) if name not in fixed]
    usual = {f"{name} is usual": is_usual_input(name) for name in names}
    rows, known = _checked(frame.lazy(), resolution, fixed, usual)
    new = [name for name in dict.fromkeys(resolution.outputs) if name not in frame.columns]
    true = pl.lit(value=True)
    valid = [c.name for c in conditions(resolution) if c.decides_row or c.affected]
    results = rows.select(
        *frame.columns,
        *(pl.lit(known[name]).alias(name) if name in known else name for name in new),
        pl.all_horizontal(true, *valid).alias(VALID),
        pl.all_horizontal(true, *usual).alias(USUAL),
    ).collect()
    every = results[VALID]
    if not results[USUAL].all():
        every &= frame.select(pl.all_horizontal(true, *map(is_valid_input, names)).fill_null(value=False)).to_series()
        for name in names if every.all() else ():
            if quantity(name).usual:
                plausibility.warn_column(frame.lazy(), name)
    if every.all():
        _warn_of_infinite(results, new)
    return results.drop(VALID, USUAL), every


def _checked(
    frame: pl.LazyFrame, resolution: Resolution, fixed: Mapping[str, Any], tests: Mapping[str, pl.Expr]
) -> tuple[pl.LazyFrame, dict[str, Any]]:
    """Return the frame with the steps and all tests as columns, and the results that the fixed values determine."""
    known, steps = fold(conditions(resolution).steps, fixed)
    keep = {*frame.collect_schema(), *resolution.outputs}
    checks = [(frozenset(test.meta.root_names()), test.fill_null(value=False).alias(n)) for n, test in tests.items()]
    checks += [(c.columns(known), c.expression(known)) for c in conditions(resolution)]
    return add_checked_columns(frame, steps, checks, keep), known


def _keys(frame: pl.DataFrame | pl.LazyFrame, name: str, entity: str) -> pl.Expr:
    """Return the names of entities as keys of the tables; in a LazyFrame unknown ones become null."""
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        return pl.col(name).replace_strict(spellings(entity), default=None, return_dtype=pl.String)
    known = {word: identify(entity, word) for word in frame[name].unique().drop_nulls()}
    return pl.col(name).replace(known)


def _warn_of_infinite(results: pl.DataFrame, names: Iterable[str]) -> None:
    for name in names:
        if not quantity(name).is_text and results[name].max() == math.inf:
            rows = results[name].is_infinite()
            warn(
                f"column {name} is infinite in {rows.sum()} of {results.height} rows, first in row {rows.arg_max()}; "
                "factorykit.out_of_range shows the validity ranges that fail there"
            )
