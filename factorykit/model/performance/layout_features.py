"""Features of a layout, in which the Gaussian process of a calibration measures how similar layouts are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    import numpy as np
DOUBLING_FEATURES: Final = (
    *("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "micro_batch_size"),
    *("accelerators", "global_batch_size", "sequence_length", "layers", "hidden_size"),
)
"""Quantities that enter as their base-2 logarithm: a doubling is one unit of distance."""
LAYOUT_FEATURES: Final = (*DOUBLING_FEATURES, "peak_flop_per_s", "recompute_share", "experts")
"""Quantities that the features are computed from, one feature each."""
LOCAL_CORRECTION: Final = ("step_pace", "unexplained_variance")
"""Quantities that a calibration derives from measured layouts nearby."""
PEAK_RATE_UNITS: Final = 4.0
"""Distance of a doubling of the peak rate, by another chip or number format."""
RECOMPUTE_UNITS: Final = 4.0
"""Distance between no recomputation and full recomputation."""
EXPERTS_UNITS: Final = 3.0
"""Distance between a dense model and one with experts."""
LENGTH_SCALE: Final = 4.5
"""Characteristic length scale of the kernel, in the same units."""


def features(layouts: pl.DataFrame) -> np.ndarray:
    """Return the features of layouts, a row each, divided by the length scale of the kernel."""
    import numpy as np

    def column(name: str) -> np.ndarray:
        return layouts[name].to_numpy().astype(float)

    columns = [np.log2(np.maximum(column(name), 1.0)) for name in DOUBLING_FEATURES]
    columns.append(PEAK_RATE_UNITS * np.log2(column("peak_flop_per_s")))
    columns.append(RECOMPUTE_UNITS * column("recompute_share"))
    columns.append(EXPERTS_UNITS * (column("experts") > 1.0))
    return np.column_stack(columns) / LENGTH_SCALE
