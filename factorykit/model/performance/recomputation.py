"""How many layers are recomputed where nobody says: the least that let a run fit."""

from __future__ import annotations

from typing import Any, Final

FIRST_LAYER: Final = 1e-9
"""Share of layers that stands for the first one recomputed."""
ROUNDING: Final = 1e-6
"""Share of layers recomputed beyond the least, so that what fits does so in spite of rounding."""


def least_share(none: Any, first: Any, full: Any, room: Any) -> Any:
    """Return the least share of layers to recompute, as a polars expression, from peaks of memory and the room.

    ``none``, ``first`` and ``full`` are the peaks with no layer recomputed, with the first and with all. The first
    recomputed layer costs room of its own, so the straight line to all layers starts just above none.
    """
    import polars as pl

    line = ((first - room) / (first - full).clip(1.0) + ROUNDING).clip(FIRST_LAYER, 1.0)
    return pl.when(none <= room).then(0.0).otherwise(line)
