"""Time to read logs, compared with polars on the same files: cells as text, and the same cells as the same types."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import factorykit as fk
from benchmarks import Row, pair

LINES = 1_000_000
HEADER = "JobID|User|State|Submit|Start|End|AllocNodes|AllocTRES|NodeList\n"
MOMENTS = ("Submit", "Start", "End")


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        jobs, steps = Path(folder, "sacct.txt"), Path(folder, "slurm-1.out")
        jobs.write_text(HEADER + "".join(map(_job, range(LINES))))
        steps.write_text("".join(map(_step, range(LINES))))
        sacct, megatron = (lambda: fk.read_log(jobs)), (lambda: fk.read_log(steps))
        what = "a million lines of sacct"
        yield pair(what, sacct, "polars scans them as text", lambda: _scanned(jobs), runs=3)
        yield pair(what, sacct, "polars types the same cells", lambda: _typed(jobs), at_most_ratio=5.0, runs=3)
        what = "a million lines of Megatron"
        yield pair(what, megatron, "polars extracts the same values", lambda: _taken(steps), at_most_ratio=5.0, runs=3)


def _job(n: int) -> str:
    day, minute = n % 28 + 1, n % 60
    times = "|".join(f"2026-03-{day:02d}T{hour:02d}:{minute:02d}:00" for hour in (0, 1, 2))
    return f"{n}|u{n % 50}|COMPLETED|{times}|2|cpu=192,gres/gpu=16,node=2|n[{n % 100:03d}-{n % 100 + 1:03d}]\n"


def _step(n: int) -> str:
    at = f"2026-03-{n // 86400 + 1:02d} {n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}.000000"
    return f" [{at}] iteration {n:8d}/ 1000000 | consumed samples: 1 | elapsed time per iteration (ms): 990.1 |\n"


def _table(file: Path) -> pl.LazyFrame:
    return pl.scan_csv(file, separator="|", infer_schema=False, quote_char=None)


def _scanned(file: Path) -> pl.DataFrame:
    return _table(file).collect(engine="streaming")


def _typed(file: Path) -> pl.DataFrame:
    moments = (pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%S").dt.replace_time_zone("UTC") for name in MOMENTS)
    gpus = pl.col("AllocTRES").str.extract(r"gres/gpu=(\d+)").cast(float)
    cells = ("JobID", "User", "State", "NodeList")
    return _table(file).select(*cells, *moments, pl.col("AllocNodes").cast(float), gpus).collect(engine="streaming")


def _taken(file: Path) -> pl.DataFrame:
    line = pl.col("line")
    lines = pl.scan_csv(
        file, has_header=False, separator="\x1f", quote_char=None, infer_schema=False, new_columns=["line"]
    )
    return lines.select(
        at=line.str.extract(r"\[(.{19})").str.to_datetime("%Y-%m-%d %H:%M:%S"),
        step=line.str.extract(r"iteration +(\d+)/").cast(float),
        step_s=line.str.extract(r"\(ms\): *([\d.]+)").cast(float) / 1000.0,
    ).collect(engine="streaming")
