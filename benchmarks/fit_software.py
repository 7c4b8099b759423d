"""Write the residuals of published runs, which predictions of the same software share, beside the performance model.

They are the logarithm of measured over predicted step time with the constants of all families. Run after
``benchmarks/fit_performance.py``, or when rows of ``training_runs`` change. Needs NumPy.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from factorykit.data.tables import table
from factorykit.engine.providers.constants import constants
from factorykit.model.performance.fit_constants import Measured
from factorykit.model.performance.layout_features import LAYOUT_FEATURES
from factorykit.model.performance.software import RUNS

DIGITS = 5
"""Significant digits that are kept."""


def main() -> None:
    found = residuals(table("training_runs").collect())
    found.write_parquet(RUNS, compression="zstd")
    print(f"{found.height} runs of {found['software'].n_unique()} kinds of software")


def residuals(rows: pl.DataFrame) -> pl.DataFrame:
    """Return software, family, residual, spread and layout of each measured row whose software is known."""
    measured = Measured(rows, laid_out=False)
    at = measured.chosen(dict(constants()))
    steps = measured.results(constants(), "step_s", "step_spread", at=at)
    chosen = measured.frame[at.tolist()].with_columns(
        residual=np.log(measured.frame["measured_s"].to_numpy()[at] / steps["step_s"]),
        spread=np.array(steps["step_spread"]),
        noise_ratio=pl.col("assumed_inputs") + 1.0,
    )
    numbers = ("residual", "spread", "noise_ratio", *LAYOUT_FEATURES)
    return chosen.filter(pl.col("software") != "").select(
        "software", "generation", "family", *[pl.col(name).cast(pl.Float64).round_sig_figs(DIGITS) for name in numbers]
    )


if __name__ == "__main__":
    main()
