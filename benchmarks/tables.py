"""How long the tables take: built from their sources, and asked in SQL, beside the bare engines."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl

import factorykit as fk
from benchmarks import Row, pair
from factorykit.data import tables
from factorykit.data.build import build

QUERY = "select r.model, a.name from runs r join accelerators a using (accelerator)"


def rows() -> Iterator[Row]:
    folder = tables.data_folder()
    files = sorted((folder / "sources").glob("*.csv"))
    with tempfile.TemporaryDirectory() as out:
        yield pair(
            "build and check all tables",
            lambda: build(Path(out), sources=folder / "sources"),
            "polars reads the same CSV files",
            lambda: [pl.read_csv(file, infer_schema=False) for file in files],
            at_most_s=5.0,
            runs=3,
        )
    bare = duckdb.connect()
    for name in ("runs", "accelerators"):
        bare.execute(f"create view {name} as from '{folder / name}.parquet'")
    yield pair(
        "a second query",
        lambda: fk.sql(QUERY),
        "DuckDB alone, to NumPy",
        lambda: bare.sql(QUERY).fetchnumpy(),
        at_most_s=0.05,
        runs=21,
    )
