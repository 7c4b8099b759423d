"""Queries of an archive of ten million failures, compared with polars on the same files.

The targets are a tenth of those for a hundred million: 5 s for a sum, 60 s for a sort.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import factorykit as fk
from benchmarks import Row, pair

NODES, DAYS, MTBF_S = 100_000, 1_000.0, 864_000.0


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        fk.fleet.simulate_failures(Path(folder) / "failures", NODES, DAYS, MTBF_S, lifetime_shape=0.8)
        archive = fk.fleet.archive(folder, NODES)
        scan = pl.scan_parquet(Path(folder) / "failures" / "*.parquet")
        c = pl.col

        def by(key: pl.Expr) -> pl.DataFrame:
            return scan.group_by(key).agg(pl.len(), c("repair_s").mean()).collect(engine="streaming")

        def gaps() -> pl.DataFrame:
            ordered = scan.sort("node", "at").select(
                gap=c("at").shift(-1).over("node") - c("at") - pl.duration(microseconds=c("repair_s") * 1e6)
            )
            return ordered.group_by(c("gap").dt.total_minutes()).len().sort("gap").collect(engine="streaming")

        what = "10 M failures: "
        yield pair(f"{what}MTBF by cause", archive.mtbf, "polars", lambda: by(c("cause")), at_most_s=0.5, runs=3)
        week = c("at").dt.truncate("1w")
        yield pair(
            f"{what}MTBF by week", lambda: archive.mtbf("week"), "polars", lambda: by(week), at_most_s=0.5, runs=3
        )
        yield pair(f"{what}survival", archive.survival, "polars, gaps alone", gaps, at_most_s=6.0, runs=3)
