"""Find the constants of the performance model again and write them to data/sources/performance_constants.csv.

Once on all measured runs, once without each family in turn; then the spreads, so that nine tenths of left-out rows lie
in their interval in every stratum. The same rows give the same digits. Afterwards: ``factorykit data build``. Needs
NumPy and SciPy.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import differential_evolution

from factorykit import datasets
from factorykit.model.performance.calibrate import Measured, fit, weight
from factorykit.model.supply.fitted import EVERYTHING, constants
from factorykit.model.supply.frameworks import named

FILE = Path(__file__).parents[1] / "data" / "sources" / "performance_constants.csv"
NORMAL_95 = 1.6448536269514722
SPREADS = (
    "spread_model",
    "spread_new_chip",
    "spread_new_software",
    "spread_experts",
    "spread_overhead",
    "spread_across",
    "spread_assumed",
)
LEAST_ROWS = 20
"""Rows of a stratum whose coverage counts."""
GOAL, SHORT, LOST, WIDTH = 0.9, 1.5, 0.6, 0.15
"""Coverage aimed at, how much more too little of it counts than too much, how far from it a stratum is given up, and
what a spread of one costs beside strata."""
LEAST, MOST = 0.05, 1.0
"""Bounds of a spread: no less than that of one release about another."""
ROUNDS = 120
"""Generations of the search over all spreads at once; from one start it ends where the first constants lay."""
SEARCHES = 3
"""Searches of which the best counts: one alone may end beside it."""
SOFT = 0.02
"""Width over which a row passes from outside to inside, so that coverage has slopes."""


def main() -> None:
    rows = datasets.table("training_runs").collect()
    measured = Measured(rows, as_stated=True)
    family = measured.frame["family"].to_numpy()
    whole = fit(measured)
    found = {EVERYTHING: whole}
    for name in sorted(set(family)):
        found[name] = fit(measured, family != name, start=whole[0])
        print(name, flush=True)
    spreads = necessary(measured, rows, {name: values for name, (values, _) in found.items()})
    with FILE.open(encoding="utf-8", newline="") as file:
        known = [row for row in csv.DictReader(file) if row["left_out"] == EVERYTHING]
    written = []
    for left_out, (values, errors) in found.items():
        for row in known:
            name = row["quantity"]
            if name in values:
                value, error = f"{values[name]:.4g}", f"{errors[name]:.2g}"
            elif left_out != EVERYTHING:
                continue
            else:
                value, error = f"{spreads[name]:.3f}" if name in spreads else row["value"], ""
            written.append(
                {**row, "constant": f"{name}@{left_out}", "left_out": left_out, "value": value, "relative_error": error}
            )
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(known[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(written)
    print(f"{len(written)} rows, {spreads}")


def necessary(measured: Measured, rows: pl.DataFrame, values: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the spreads with which coverage of left-out rows is nearest to nine tenths in every stratum."""
    frame, given = measured.frame, constants()
    parts = ("step_gemm_s", "step_attention_s", "step_elementwise_s")
    misses, terms, strata = [], [], []
    for family in sorted(set(frame["family"])):
        at = measured.chosen(values[family])
        mine = at[(frame["family"].to_numpy() == family)[at]]
        found = measured.results(values[family], "step_s", *parts, at=mine)
        arrays = {name: array[mine] for name, array in measured.arrays.items()}
        misses.append(np.abs(np.log(frame["measured_s"].to_numpy()[mine] / found["step_s"])))
        beyond = np.log2(np.maximum(arrays["accelerators"] / given["scale_seen"], 1.0)) * given["spread_scale"]
        idle = 1.0 - sum(found[part] for part in parts) / found["step_s"]
        squares = (
            np.ones(len(mine)),
            1.0 / np.maximum(arrays["evidence_families"], 1.0),
            1.0 / np.maximum(arrays["evidence_software"], 1.0),
            (arrays["experts"] > 1.0).astype(float),
            idle**2,
            (arrays["tensor_parallel"] > arrays["scale_up_domain"]).astype(float),
            arrays["assumed_inputs"],
            beyond**2,
        )
        terms.append(np.array(squares))
        some = rows[frame["row"].gather(mine).to_list()]
        strata.append(
            pl.DataFrame(
                {
                    "family": [family] * len(mine),
                    "chip": some["hardware"],
                    "framework": [named(row) or "" for row in some.iter_rows(named=True)],
                    "precision": some["precision"].fill_null(""),
                    "experts": (some["experts"].fill_null(0) > 1).cast(pl.String),
                    "group": some["group"],
                }
            )
        )
    miss, term, told = np.concatenate(misses), np.concatenate(terms, axis=1), pl.concat(strata)
    members: list[Any] = [np.ones(len(miss), bool)]
    for name in ("family", "chip", "framework", "precision", "experts"):
        for value in sorted(set(told[name])):
            inside = (told[name] == value).to_numpy()
            if inside.sum() >= LEAST_ROWS:
                members.append(inside)
    weights = weight(told["group"].to_numpy())

    def unfair(logged: np.ndarray) -> float:
        spread = np.sqrt(np.exp(logged) ** 2 @ term[:-1] + term[-1])
        inside = 1.0 / (1.0 + np.exp(-(NORMAL_95 * spread - miss) / SOFT))
        covers = np.array([np.average(inside[member], weights=weights[member]) for member in members])
        off = np.maximum(SHORT * (GOAL - covers), covers - GOAL)
        return float(np.minimum(off, LOST).sum() + WIDTH * np.exp(logged).sum())

    bounds = [(np.log(LEAST), np.log(MOST))] * len(SPREADS)
    found = [
        differential_evolution(unfair, bounds, seed=seed, maxiter=ROUNDS, polish=False) for seed in range(SEARCHES)
    ]
    at = min(found, key=lambda one: one.fun).x
    return dict(zip(SPREADS, np.exp(at), strict=True))


if __name__ == "__main__":
    main()
