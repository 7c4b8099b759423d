"""Find the constants of the performance model again and write them to data/sources/performance_constants.csv.

Once on all measured runs, once without each family in turn. The same rows give the same digits. Afterwards:
``factorykit data build``. Needs NumPy.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import polars as pl

from factorykit import datasets
from factorykit.model.performance.calibrate import Measured, fit
from factorykit.model.supply.fitted import EVERYTHING, constants

FILE = Path(__file__).parents[1] / "data" / "sources" / "performance_constants.csv"
NORMAL_95 = 1.6448536269514722


def main() -> None:
    measured = Measured(datasets.table("training_runs").collect())
    families = sorted(set(measured.frame["family"]))
    found = {EVERYTHING: fit(measured), **{family: fit(measured, family) for family in families}}
    spread = necessary_spread(measured, {family: values for family, (values, _) in found.items()})
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["left_out"] == EVERYTHING]
    written = []
    for family, (values, errors) in found.items():
        for row in rows:
            name = row["quantity"]
            if name in values:
                value, error = f"{values[name]:.4g}", f"{errors[name]:.2g}"
            elif name == "spread_model":
                value, error = f"{spread:.3f}", ""
            elif family == EVERYTHING:
                value, error = row["value"], ""
            else:
                continue
            one = {**row, "constant": f"{name}@{family}", "left_out": family, "value": value, "relative_error": error}
            if family == EVERYTHING or name in values:
                written.append(one)
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(written)
    print(f"{len(written)} rows, spread {spread:.3f}")


def necessary_spread(measured: Measured, values: dict[str, dict[str, float]]) -> float:
    """Return the spread of the model with which 90 % of rows lie in the interval found without their family.

    Rows count as in the fit: those of one group, near-copies of each other, as the root of their number.
    """
    frame = measured.frame
    misses, others, weights = [], [], []
    sizes = frame.group_by("group").agg(pl.col("row").n_unique().alias("size"))
    size = frame.join(sizes, on="group", how="left", maintain_order="left")["size"].to_numpy()
    given = constants()
    for family in sorted(set(frame["family"])):
        at = measured.chosen(values[family])
        mine = at[(frame["family"].to_numpy() == family)[at]]
        predicted = measured.results(values[family])["step_s"][mine]
        misses.extend(np.abs(np.log(frame["measured_s"].to_numpy()[mine] / predicted)))
        weights.extend(size[mine] ** -0.5)
        seen = frame["evidence_families"].to_numpy()[mine] - 1.0
        beyond = np.log2(np.maximum(frame["accelerators"].to_numpy()[mine] / given["scale_seen"], 1.0))
        others.extend(
            given["spread_new_chip"] ** 2 / (1.0 + np.maximum(seen, 0.0))
            + frame["assumed_inputs"].to_numpy()[mine] * given["spread_assumed"] ** 2
            + (given["spread_scale"] * beyond) ** 2
        )
    misses_, others_, weights_ = np.array(misses), np.array(others), np.array(weights)
    low, high = 1e-3, 1.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        covered = np.average(misses_ <= NORMAL_95 * np.sqrt(middle**2 + others_), weights=weights_)
        low, high = (middle, high) if covered < 0.90 else (low, middle)
    return high


if __name__ == "__main__":
    main()
