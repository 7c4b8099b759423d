"""How long samples, indices and sweeps take, each beside the bare evaluation of the same rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import factorykit as fk
from benchmarks import Row, pair

DOUBT = {
    "mfu": fk.Uniform(0.35, 0.45),
    "rental_usd_per_accelerator_h": fk.LogNormal(1.5, 4.0),
    "accelerator_mtbf_s": fk.LogNormal(1e8, 3e8),
    "restart_s": fk.Triangular(200.0, 600.0, 1800.0),
    "pue": fk.Normal(1.15, 0.05, low=1.0),
    "storage_write_bytes_per_s": fk.LogUniform(1e10, 1e12),
}
CHAIN = ("rental_cost_usd", "training_carbon_kg", "training_water_l", "electricity_cost_usd", "failure_cost_usd")
COMPUTED = ("checkpoint_write_s", "goodput")
INPUTS = fk.quantities().filter(pl.col("default").is_not_null(), ~pl.col("name").is_in(COMPUTED), kind="input")
RUN = dict(INPUTS.select("name", "default").iter_rows())
GRID = {
    "mfu": [0.2 + 0.4 * i / 999 for i in range(1000)],
    "rental_usd_per_accelerator_h": [1.0 + i / 100 for i in range(1000)],
    "accelerators": [8192.0, 16384.0, 24576.0, 32768.0],
}


def rows() -> Iterator[Row]:
    drawn = fk.sample(RUN, DOUBT, CHAIN, 1_000_000).select(list(DOUBT))
    drawn = drawn.with_columns(pl.lit(value).alias(name) for name, value in RUN.items() if name not in DOUBT)
    yield pair(
        "1 million draws, whole chain",
        lambda: fk.sample(RUN, DOUBT, CHAIN, 1_000_000),
        "evaluate on the same rows",
        lambda: fk.evaluate(drawn, CHAIN),
        at_most_s=2.0,
        runs=3,
    )
    head = drawn.head(4096 * (len(DOUBT) + 2))
    yield pair(
        "Sobol indices, 4,096 points, 5 outputs",
        lambda: fk.sensitivity(RUN, DOUBT, CHAIN, 4096),
        "evaluate on as many rows",
        lambda: fk.evaluate(head, CHAIN),
        runs=3,
    )
    with tempfile.TemporaryDirectory() as folder:
        yield pair(
            "4 million scenarios to Parquet",
            lambda: fk.sweep(RUN, GRID, "rental_cost_usd", out=Path(folder) / "sweep.parquet"),
            "the same in memory",
            lambda: fk.sweep(RUN, GRID, "rental_cost_usd"),
            runs=3,
        )
