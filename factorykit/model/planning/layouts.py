"""The best layout of a model over each number of accelerators of a chip: few hundred sensible ones are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit.errors import MissingQuantity
from factorykit.model.engine import rules
from factorykit.model.engine.chain import ask
from factorykit.model.engine.evaluate import answered
from factorykit.model.engine.run import columns, fold
from factorykit.model.performance.search import OF_A_LAYOUT, parted
from factorykit.quantities import quantity

if TYPE_CHECKING:
    import polars as pl

PARTS: Final = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "virtual_stages",
    "expert_parallel",
    "micro_batch_size",
    "zero_stage",
    "recompute",
    "schedule",
)
"""Parts of a layout, in the order in which they are told."""
CHOSEN: Final = ("step_s", "memory_peak_bytes", "fits")
SHORTEST_PIECE: Final = 4096.0
"""Tokens of a sequence below which nobody cuts it over accelerators."""
MOST_TENSOR_WAYS: Final = 16.0
MOST_EXPERT_WAYS: Final = 64.0
MOST_STAGES: Final = 64.0
POWERS: Final = tuple(2.0**i for i in range(11))


def sensible(fixed: Mapping[str, Any], choices: Mapping[str, list[Any]], counts: Iterable[float] = ()) -> pl.LazyFrame:
    """Return the layouts that somebody would try, one row each, without the parts that are fixed.

    Powers of two, tensor parallel within the fast fabric, virtual stages and whole gradients with a pipeline, sharded
    ones without. Where the batch is given, a pipeline may take up the odd part of a count that does not divide it.
    """
    import polars as pl

    experts, layers = float(fixed.get("experts", 0.0)), float(fixed.get("layers", 1.0))
    domain, sequence = min(_domain(fixed), MOST_TENSOR_WAYS), float(fixed["sequence_length"])
    usual: dict[str, Iterable[Any]] = {
        "tensor_parallel": (ways for ways in POWERS if ways <= domain),
        "pipeline_parallel": _stages(min(layers, MOST_STAGES), counts if "global_batch_size" in fixed else ()),
        "context_parallel": (ways for ways in POWERS if ways == 1.0 or sequence / ways >= SHORTEST_PIECE),
        "virtual_stages": (1.0, 2.0, 4.0, 8.0),
        "expert_parallel": (ways for ways in POWERS if ways <= MOST_EXPERT_WAYS and experts % ways == 0.0)
        if experts > 1.0
        else (1.0,),
        "micro_batch_size": (1.0, 2.0, 4.0, 8.0),
        "zero_stage": (1.0, 2.0, 3.0),
        "recompute": ("none", "selective", "full"),
        "schedule": ("1f1b", "dualpipe") if experts > 1.0 else ("1f1b",),
    }
    grid: pl.LazyFrame | None = None
    for name, values in usual.items():
        if name not in fixed:
            tried = list(choices.get(name, values))
            part = pl.LazyFrame({name: tried}, {name: pl.String if quantity(name).is_text else pl.Float64})
            grid = part if grid is None else grid.join(part, how="cross", maintain_order="left_right")
    if grid is None:
        return pl.LazyFrame({"tensor_parallel": [fixed["tensor_parallel"]]})
    stages = pl.col("pipeline_parallel") if "pipeline_parallel" not in fixed else pl.lit(fixed["pipeline_parallel"])
    if "zero_stage" not in fixed and "zero_stage" not in choices:
        grid = grid.filter((stages == 1.0) | (pl.col("zero_stage") == 1.0))
    if "virtual_stages" not in fixed:
        grid = grid.filter((stages > 1.0) | (pl.col("virtual_stages") == 1.0))
    return grid


def best_layouts(
    fixed: Mapping[str, Any], counts: pl.DataFrame, choices: Mapping[str, list[Any]], rivals: Mapping[str, str]
) -> pl.DataFrame:
    """Return the fastest layout that works and fits, one row per count.

    Parameters
    ----------
    fixed
        Quantities that are the same for all rows, with ``accelerator``, ``precision`` and the model.
    counts
        One row per count: ``accelerators`` and, where it is chosen, ``global_batch_size``.
    choices
        Values to try for parts of a layout, in place of the sensible ones.
    rivals
        Which model stands for a quantity.

    Returns
    -------
    DataFrame
        ``counts``, the parts of the layout that are not fixed, ``layouts`` (how many work and fit),
        ``step_unbounded_s`` (the best if memory were no limit). A count without a layout that fits has null parts; one
        without a layout that works has no row.

    Raises
    ------
    MissingQuantity
        If the tables do not say of the chip what a layout needs.
    ScenarioError
        If the model itself is not modelled.
    """
    import polars as pl

    grid = sensible(fixed, choices, counts["accelerators"])
    grid = grid.select(name for name in grid.collect_schema() if name not in fixed)
    varied = [*counts.columns, *grid.collect_schema()]
    chain = ask({*fixed, *varied}, CHOSEN, OF_A_LAYOUT | dict(rivals), fixed, assume=True)
    known, left = fold(chain.steps, fixed)
    rules.check(known, fixed)
    looked_at = rules.LOOKED_AT
    first, then = parted(left, looked_at)
    lazy = (
        counts.lazy().join(grid, how="cross", maintain_order="left_right") if grid.collect_schema() else counts.lazy()
    )
    for layer in columns(first):
        lazy = lazy.with_columns(layer)
    there = {*varied, *(step.quantity for step in first)}
    lazy = lazy.filter(rules.broken({*known, *there}, fixed, known).is_null())
    for layer in columns(then):
        lazy = lazy.with_columns(layer)
    lazy = lazy.with_columns(pl.lit(known[name]).alias(name) for name in CHOSEN if name in known)
    parts = [name for name in PARTS if name in varied]
    fits = pl.col("fits") >= 1.0
    fastest = pl.col("step_s").filter(fits).arg_min()
    told = [pl.col(name).filter(fits).get(fastest, null_on_oob=True).alias(name) for name in parts]
    found = lazy.group_by(counts.columns, maintain_order=True).agg(
        *told, fits.sum().alias("layouts"), pl.col("step_s").min().alias("step_unbounded_s")
    )
    return found.collect()


def _stages(most: float, counts: Iterable[float]) -> list[float]:
    """Return the lengths of pipelines: powers of two, and those times odd divisors of the counts.

    >>> _stages(16.0, [384.0])
    [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]
    """
    odd = {part for n in counts for part in range(1, int(most) + 1, 2) if n % part == 0.0} | {1}
    return sorted({part * power for part in odd for power in POWERS if part * power <= most})


def _domain(fixed: Mapping[str, Any]) -> float:
    try:
        return float(answered(fixed, ("scale_up_domain",))[1]["scale_up_domain"])
    except MissingQuantity:
        return MOST_TENSOR_WAYS
