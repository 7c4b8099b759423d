"""Fit lifetimes to published records again and write them to data/sources/lifetime_fits.csv and _curves.csv.

    python -m benchmarks.fit_lifetimes STEPFUN LANL TITAN

with the publishers' files ``infinitehbd_faults.csv``, ``LA-UR-05-7318-failure-data-1996-2005.csv.xz`` and
``gc_summary_loc.csv``, whose addresses stand in the table of sources. Afterwards: ``factorykit data build``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

import factorykit as fk
from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.data.public.connectors import read

FOLDER = Path(__file__).parents[1] / "data" / "sources"
LANL_SYSTEMS = (2, 18, 19, 20)
"""The systems with most failures."""
ROUNDED_S = 36.0
"""By how much a repair may miss the time from its start to its end: days have four digits. [s]"""


class Sample(NamedTuple):
    """Times of one kind in one record."""

    name: str
    record: str
    time: str
    durations_s: pl.Series
    observed: pl.Series
    left_out: int
    source: str


def stepfun(path: str) -> Iterator[Sample]:
    trace = stepfun_faults(path)
    for kind, column in (("between failures", "gap"), ("of repair", "repair")):
        yield _sample(
            "stepfun", "StepFun, 400 servers", kind, trace, f"{column}_s", f"{column}_observed", "infinitehbd"
        )


def stepfun_faults(path: str) -> pl.DataFrame:
    """Return the faults of the trace with the time since the one before, and a last row for the time since the last.

    A repair that goes on at the end of the trace is not observed.

    Raises
    ------
    ValueError
        If a repair is not the time from the start of its fault to its end.
    """
    rows = read("infinitehbd_faults", path).sort("start_s", maintain_order=True)
    if odd := rows.filter((pl.col("end_s") - pl.col("start_s") - pl.col("repair_s")).abs() > ROUNDED_S).height:
        raise ValueError(f"{path}: repair_hours of {odd} faults is not the time from start_day to end_day")
    end = pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())
    start_day = (pl.col("start_s") / SECONDS_PER_DAY).round(4)  # as printed
    gap = (start_day.diff() * SECONDS_PER_DAY).round(2)  # a multiple of 8.64 s
    faults = rows.select(
        "node",
        cause="fault_class",
        gap_s=gap,
        gap_observed=gap.is_not_null(),
        repair_s="repair_s",
        repair_observed=pl.col("end_s") < end,
    )
    quiet = rows.select(gap_s=end - pl.col("start_s").max(), gap_observed=pl.lit(False))
    return pl.concat([faults, quiet], how="diagonal")


def lanl_failures(path: str) -> pl.DataFrame:
    """Return the failures with the time since the one before in the same system, null for its first."""
    faults = read("lanl_failures", path).sort("system", "started", maintain_order=True)
    gap = pl.col("started").diff().over("system").dt.total_seconds().cast(pl.Float64)
    return faults.with_columns(gap_s=gap, seen=pl.lit(True))


def lanl(path: str) -> Iterator[Sample]:
    faults = lanl_failures(path)
    for system in LANL_SYSTEMS:
        some = faults.filter(system=system)
        name, record = f"lanl_{system}", f"Los Alamos, system {system}"
        yield _sample(name, record, "between failures", some, "gap_s", "seen", "lanl_failures")
    yield _sample("lanl", "Los Alamos, all systems", "of repair", faults, "repair_s", "seen", "lanl_failures")


def titan(path: str) -> Iterator[Sample]:
    lives = read("titan_gpus", path)
    for batch in ("old", "new"):
        some = lives.filter(batch=batch)
        yield _sample(f"titan_{batch}", f"Titan, {batch} GPUs", "of life", some, "life_s", "is_dead", "titan_gpus")


def _sample(name: str, record: str, kind: str, rows: pl.DataFrame, time: str, observed: str, source: str) -> Sample:
    timed = rows.drop_nulls(time)
    kept = timed.filter(pl.col(time) > 0)
    return Sample(name, record, kind, kept[time], kept[observed], timed.height - kept.height, source)


def fits(sample: Sample) -> pl.DataFrame:
    """Return the rows of the table of fits for one sample."""
    found = fk.lifetimes.fit(sample.durations_s, sample.observed)
    found = found.with_columns(left_out=pl.lit(float(sample.left_out)))
    return _sourced(sample, "lifetime_fit", pl.col("distribution"), found)


def curve(sample: Sample) -> pl.DataFrame:
    """Return the rows of the table of curves for one sample."""
    found = fk.lifetimes.survival_curve(sample.durations_s, sample.observed)
    return _sourced(sample, "lifetime_point", pl.int_range(1, pl.len() + 1), found)


def _sourced(sample: Sample, key: str, last: pl.Expr, found: pl.DataFrame) -> pl.DataFrame:
    kind = sample.time.split()[-1]
    return found.select(
        pl.format("{}_{}_{}", pl.lit(sample.name), pl.lit(kind), last).alias(key),
        pl.lit(sample.record).alias("record"),
        pl.lit(sample.time).alias("time"),
        pl.all(),
        source=pl.lit(sample.source),
        locator=pl.lit("computed from the record by benchmarks/fit_lifetimes.py"),
    )


def main() -> None:
    samples = [sample for read, path in zip((stepfun, lanl, titan), sys.argv[1:], strict=True) for sample in read(path)]
    for name, rows in (("fits", fits), ("curves", curve)):
        table = pl.concat([rows(sample) for sample in samples])
        numbers = pl.selectors.float()
        digits = table.with_columns(numbers.round_sig_figs(9))
        digits.with_columns(as_of=pl.lit(None, pl.String), note=pl.lit(None, pl.String)).write_csv(
            FOLDER / f"lifetime_{name}.csv"
        )
        print(f"lifetime_{name}: {table.height} rows")


if __name__ == "__main__":
    main()
