"""Share of recomputed layers where it is not stated: the least with which a run fits."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from factorykit.engine.run import add_columns
from factorykit.engine.step import Step
from factorykit.formulas.functions import maximum, minimum, where

FIRST_LAYER: Final = 1e-9
"""Share of layers that stands for the first one recomputed."""
ROUNDING: Final = 1e-6
"""Share of layers recomputed beyond the least, against rounding."""


def least_share(none: Any, first: Any, full: Any, room: Any) -> Any:
    """Return the least share of layers to recompute, from peaks of memory and the room, on the backend of either.

    ``none``, ``first`` and ``full`` are the peaks with no layer recomputed, with the first and with all. The first
    recomputed layer needs temporary memory, so the straight line to all layers starts just above none.

    >>> least_share(60.0, 61.0, 41.0, 80.0), round(least_share(90.0, 90.0, 40.0, 80.0), 6)
    (0.0, 0.200001)
    """
    line = (first - room) / maximum(first - full, 1.0) + ROUNDING
    return where(none <= room, 0.0, minimum(maximum(line, FIRST_LAYER), 1.0))


def least_recomputed(lazy: pl.LazyFrame, memory: tuple[Step, ...], room: Any) -> pl.LazyFrame:
    """Return layouts with ``recompute_share``: all layers, or the least share that lets them fit.

    ``memory`` are the steps that lead to ``memory_peak_bytes`` and are left to compute; ``room`` is the chip's memory.
    Layouts without stated recomputation come first.
    """
    before = lazy.collect_schema().names()
    peaks = {"peak of none": 0.0, "peak of the first": FIRST_LAYER, "peak of all": 1.0}
    settled = pl.col("recompute") == "none"
    wider = lazy.filter(settled)
    for name, share in peaks.items():
        wider = add_columns(wider.with_columns(pl.lit(share).alias("recompute_share")), memory)
        done = list(peaks)[: list(peaks).index(name)]
        wider = wider.select(*before, *done, pl.col("memory_peak_bytes").alias(name))
    none, first, full = map(pl.col, peaks)
    least = least_share(none, first, full, room)
    others = lazy.filter(~settled).select(
        *before, (pl.col("recompute") == "full").cast(pl.Float64).alias("recompute_share")
    )
    return pl.concat([wider.select(*before, least.alias("recompute_share")), others])
