"""Queries of an archive of ten million failures, compared with polars on the same files.

The targets are a tenth of those for a hundred million: 5 s for a sum, 60 s for a sort.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import factorykit as fk
from benchmarks import Row, pair
from factorykit.telemetry.synthetic_logs import REPAIR_MEDIAN_S, REPAIR_SIGMA, SHARES, START

NODES, DAYS, MTBF_S, SHAPE = 100_000, 1_000.0, 864_000.0, 0.8


def write_failures(folder: Path, nodes: int, days: float, mtbf_s: float, files: int) -> None:
    """Write failures of a fleet with Weibull lifetimes and lognormal repairs, in a number of Parquet files."""
    folder.mkdir(parents=True)
    random, count = np.random.default_rng(1), int(3.0 * days * 86400.0 / mtbf_s) + 10
    for number, some in enumerate(np.array_split(np.arange(nodes), files)):
        repair_s = REPAIR_MEDIAN_S * np.exp(REPAIR_SIGMA * random.standard_normal((len(some), count)))
        at_s = np.cumsum(mtbf_s / math.gamma(1.0 + 1.0 / SHAPE) * random.weibull(SHAPE, repair_s.shape), axis=1)
        at_s[:, 1:] += np.cumsum(repair_s[:, :-1], axis=1)
        held = at_s < days * 86400.0
        weights = np.array([*SHARES.values()])
        causes = random.choice([*SHARES], int(held.sum()), p=weights / weights.sum())
        node = np.broadcast_to(some[:, None], held.shape)[held]
        columns = {"seconds": at_s[held], "node": node, "cause": causes, "repair_s": repair_s[held]}
        at = pl.lit(START.replace(tzinfo=None)) + pl.duration(microseconds=pl.col("seconds") * 1e6)
        pl.DataFrame(columns).select(at.alias("at"), "node", "cause", "repair_s").write_parquet(
            folder / f"{number}.parquet"
        )


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        write_failures(Path(folder) / "failures", NODES, DAYS, MTBF_S, 20)
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
