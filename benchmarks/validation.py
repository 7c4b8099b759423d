"""How far the performance model misses on rows that its constants never saw, split in every way that cannot flatter.

``python -m benchmarks.validation`` fits again without each family, publisher, framework and generation of chips in
turn (in folds), and on what was released before a time; then it calibrates on a few rows of a family left out. It
prints median and 90th percentile of the miss, coverage of the interval, and the order of layouts by tokens per FLOP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from factorykit import datasets
from factorykit.errors import UnknownName
from factorykit.model.evidence.training_runs import software_year
from factorykit.model.evidence.validate import validate
from factorykit.model.evidence.whole_runs import validate_runs
from factorykit.model.performance.calibrate import Measured, fit
from factorykit.model.performance.calibration import Calibration, calibrate
from factorykit.model.supply import frameworks
from factorykit.model.supply.chips import chips
from factorykit.model.supply.fitted import constants

FOLDS = 5
MONTHS = (2023.5, 2024.5, 2025.5, 2026.25)
SHOTS = (3, 5, 10)
LEAST_ROWS = 10


def main() -> None:
    rows = datasets.table("training_runs").collect()
    measured = Measured(rows, as_stated=True)
    kinds = told(rows)[measured.frame["row"].to_list()]
    print("families out", line(validate(rows, leave_family_out=True)))
    for name in ("organisation", "framework", "generation"):
        print(f"{name} out", line(pl.concat(folds(measured, kinds[name].to_numpy(), rows))))
    for month in MONTHS:
        before = kinds["released"].to_numpy() < month
        values, _ = fit(measured, before, start=dict(constants()))
        later = rows[sorted(set(measured.frame["row"].to_numpy()[~before]))]
        print(f"released from {month} on", line(validate(later, calibration=values)))
    few_shots(rows)
    whole_runs()


def whole_runs() -> None:
    """Print the miss of GPU hours of whole runs, and that of 6 N D at 40 % of the peak."""
    judged = validate_runs().filter(pl.col("error").is_not_null())
    for name in ("error", "null_error"):
        median, tail = _miss(judged[name])
        print(f"GPU hours of {judged.height} whole runs, {name}: {median:.1%} / {tail:.1%}")


def told(rows: pl.DataFrame) -> pl.DataFrame:
    """Return publisher, framework, generation of the chip and time of release of each row."""
    named = list(rows.iter_rows(named=True))
    keys = [datasets.accelerator_in(row["hardware"]) if row["hardware"] in _known(rows) else None for row in named]
    return rows.select("organisation").with_columns(
        pl.Series("framework", [frameworks.named(row) or "" for row in named]),
        pl.Series("generation", [str(chips()[key]["generation"]) if key else "" for key in keys]),
        pl.Series("released", [software_year(row) or constants()["software_year"] for row in named]),
    )


def _known(rows: pl.DataFrame) -> set[str]:
    known = set()
    for name in rows["hardware"].unique().drop_nulls():
        try:
            datasets.accelerator_in(name)
        except UnknownName:
            continue
        known.add(name)
    return known


def folds(measured: Measured, names: np.ndarray, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of each fold of names, predicted with constants that saw none of them."""
    every = sorted(set(names), key=str)
    for fold in range(FOLDS):
        out = np.isin(names, every[fold::FOLDS])
        values, _ = fit(measured, ~out, start=dict(constants()))
        yield validate(rows[sorted(set(measured.frame["row"].to_numpy()[out]))], calibration=values)


def few_shots(rows: pl.DataFrame) -> None:
    """Print the miss of a family left out after none and some of its rows, drawn or chosen: the mean over families."""
    before = validate(rows, leave_family_out=True).with_row_index("number").filter(pl.col("error").is_not_null())
    draw = np.random.default_rng(0)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for (family,), some in before.group_by("family", maintain_order=True):
        if some.height < LEAST_ROWS + max(SHOTS):
            continue
        numbers = draw.permutation(some["number"].to_numpy())[:120].tolist()
        pool = rows[numbers].with_columns(pl.Series("number", numbers))
        found.setdefault("none", []).append((*_miss(some["error"]), _inside(some)))
        for shots in SHOTS:
            for how, taken in (("drawn", pool.head(shots)), ("chosen", Calibration.design(pool, shots))):
                mine = calibrate(taken, left_out=str(family))
                whole = replace(mine, constants={**constants(str(family)), **mine.constants})
                others = validate(pool.filter(~pl.col("number").is_in(taken["number"])), calibration=whole)
                found.setdefault(f"{shots} {how}", []).append((*_miss(others["error"]), _inside(others)))
    for shots, misses in found.items():
        median, tail, inside = np.mean(misses, axis=0)
        held = np.mean([0.85 <= miss[2] <= 0.95 for miss in misses])
        middle, far, _ = np.median(misses, axis=0)
        print(
            f"{len(misses)} families, {shots} of their rows: {median:.1%} / {tail:.1%}, middle {middle:.1%} / {far:.1%}"
        )
        print(f"  covered {inside:.0%}, within 85 to 95 in {held:.0%} of families")


def _inside(validated: pl.DataFrame) -> float:
    seen = validated.filter(pl.col("error").is_not_null())
    return float(seen.select(pl.col("measured_s").is_between("step_low_s", "step_high_s").mean()).item())


def _miss(errors: pl.Series) -> tuple[float, float]:
    missed = errors.drop_nulls().abs()
    return float(missed.median()), float(missed.quantile(0.9))  # type: ignore[arg-type]


def line(validated: pl.DataFrame) -> str:
    """Return rows, median and tail of the miss, and coverage, in words."""
    seen = validated.filter(pl.col("error").is_not_null())
    inside: Any = seen.select(pl.col("measured_s").is_between("step_low_s", "step_high_s").mean()).item()
    median, tail = _miss(seen["error"])
    return f"{seen.height} rows, {median:.1%} / {tail:.1%}, covered {inside:.0%}, order {order(seen):.2f}"


def order(validated: pl.DataFrame, by: Sequence[str] = ("group",)) -> float:
    """Return the median rank correlation of FLOP utilization within groups: which layout uses the chips better."""
    ranked = validated.with_columns(measured_mfu=pl.col("predicted_mfu") * (pl.col("error") + 1.0))
    groups = ranked.group_by(*by).agg(
        pl.corr("predicted_mfu", "measured_mfu", method="spearman").alias("rank"), pl.len()
    )
    return float(groups.filter(pl.col("len") >= 8)["rank"].drop_nans().drop_nulls().median() or 0.0)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
