"""Which rows of a frame leave the ranges in which the formulas on their way are stated to be good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from factorykit.core.validation import frame_schema
from factorykit.engine.chain import FORMULA
from factorykit.engine.evaluate import evaluate
from factorykit.engine.frames import resolved
from factorykit.engine.read import Outputs, chosen, named
from factorykit.formulas.validity import validity

if TYPE_CHECKING:
    import polars as pl

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")


def outside(inputs: Frame, outputs: Outputs, *, using: Mapping[str, str] | None = None, assume: bool = False) -> Frame:
    """Say for each row which formulas on the way to the outputs leave their stated range.

    Parameters
    ----------
    inputs
        A frame, as for :func:`factorykit.evaluate`.
    outputs
        One name or several.
    using
        Which model stands for a quantity that has rivals.
    assume
        Whether sourced defaults fill what nobody gave, as in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame or LazyFrame
        The frame, wider by the column ``outside``: what fails, in words, or null where every formula is within its
        range.

    Raises
    ------
    FactorykitError
        As :func:`factorykit.evaluate`.

    Examples
    --------
    >>> import polars as pl
    >>> writes = pl.DataFrame({"checkpoint_write_s": [60.0, 5000.0], "cluster_mtbf_s": 1e4})
    >>> outside(writes, "checkpoint_interval_young_s")["outside"].to_list()
    [None, 'checkpoint_interval_young_s is good for checkpoint_write_s <= cluster_mtbf_s / 4']
    """
    import polars as pl

    schema = frame_schema("inputs", inputs)
    steps = resolved(schema, named(outputs) or (), chosen(using), assume=assume).steps
    stated = {step.quantity: found for step in steps if step.origin == FORMULA and (found := validity(step.quantity))}
    needed = sorted({name for found in stated.values() for name in found.arguments})
    known = evaluate(inputs, needed, using=using, assume=assume) if needed else inputs
    said = [
        pl.when(found.condition(*map(pl.col, found.arguments)).not_()).then(pl.lit(f"{name} is good for {found.words}"))
        for name, found in stated.items()
    ]
    sentence = pl.concat_str(said, separator="; ", ignore_nulls=True) if said else pl.lit("")
    return known.select(*schema, pl.when(sentence != "").then(sentence).alias("outside"))
