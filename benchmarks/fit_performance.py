"""Fit the constants of the performance model and write them to data/sources/performance_constants.csv.

Once on all measured runs and once without each family; then the spreads, so that 90 % of left-out rows lie in their
interval in every stratum. Deterministic. Run ``factorykit data build`` afterwards. Needs NumPy and SciPy.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import differential_evolution

from factorykit.data.tables import table
from factorykit.engine.providers.constants import EVERYTHING, constants
from factorykit.formulas.step.interval import NORMAL_95
from factorykit.model.performance.fit_constants import Measured, fit, row_weights

FILE = Path(__file__).parents[1] / "data" / "sources" / "performance_constants.csv"
SPREADS = (
    "spread_model",
    "spread_new_chip",
    "spread_new_software",
    "spread_experts",
    "spread_overhead",
    "spread_across",
    "spread_assumed",
)
PARTS = ("step_gemm_s", "step_attention_s", "step_elementwise_s")
STRATA = ("family", "chip", "framework", "precision", "experts", "large", "adapters")
LARGE = 256.0
"""Chips of a run beyond which runs at scale begin."""
MIN_ROWS = 20
"""Rows of a stratum whose coverage counts."""
COVERAGE, UNDERCOVERAGE_WEIGHT, MAX_LOSS, WIDTH_COST = 0.9, 1.5, 0.6, 0.15
"""Target, weight of too little coverage over too much, largest loss of one stratum, and cost of a spread of 1."""
MIN_SPREAD, MAX_SPREAD = 0.05, 1.0
"""Bounds of a spread; the lower one is that between releases of one software."""
GENERATIONS, SEARCHES = 120, 3
"""Generations of the evolutionary search, and searches of which the best counts; a single one may end elsewhere."""
SMOOTHING = 0.02
"""Width of the transition from outside to inside an interval, so that coverage has a gradient."""


def main() -> None:
    rows = table("training_runs").collect()
    measured = Measured(rows, as_stated=True)
    family = measured.frame["family"].to_numpy()
    whole = fit(measured)
    fits = {EVERYTHING: whole}
    for name in sorted(set(family)):
        fits[name] = fit(measured, family != name, start=whole[0])
        print(name, flush=True)
    spreads = fit_spreads(measured, rows, {name: values for name, (values, _) in fits.items()})
    print(f"{write(fits, spreads)} rows, {spreads}")


def write(fits: Mapping[str, tuple[dict[str, float], dict[str, float]]], spreads: Mapping[str, float]) -> int:
    """Write the constants of every fit and return the number of rows."""
    with FILE.open(encoding="utf-8", newline="") as file:
        known = [row for row in csv.DictReader(file) if row["left_out"] == EVERYTHING]
    written = []
    for left_out, (values, errors) in fits.items():
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
    return len(written)


def fit_spreads(measured: Measured, rows: pl.DataFrame, values: Mapping[str, dict[str, float]]) -> dict[str, float]:
    """Return the spreads that bring the coverage of left-out rows closest to the target in every stratum."""
    frame = measured.frame
    families = sorted(set(frame["family"]))
    own = {name: measured.chosen(values[name]) for name in families}
    own = {name: at[(frame["family"].to_numpy() == name)[at]] for name, at in own.items()}
    parts = [variance_terms(measured, values[name], own[name]) for name in families]
    residuals, terms = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts], axis=1)
    strata = pl.concat([strata_of(rows[frame["row"].gather(at).to_list()], name) for name, at in own.items()])
    members: list[Any] = [np.ones(len(residuals), bool)]
    for name in STRATA:
        inside = [(strata[name] == value).to_numpy() for value in sorted(set(strata[name]))]
        members += [member for member in inside if member.sum() >= MIN_ROWS]
    weights = row_weights(strata["group"].to_numpy())

    def loss(logged: np.ndarray) -> float:
        spread = np.sqrt(np.exp(logged) ** 2 @ terms[:-1] + terms[-1])
        inside = 1.0 / (1.0 + np.exp(-(NORMAL_95 * spread - residuals) / SMOOTHING))
        coverage = np.array([np.average(inside[member], weights=weights[member]) for member in members])
        off = np.maximum(UNDERCOVERAGE_WEIGHT * (COVERAGE - coverage), coverage - COVERAGE)
        return float(np.minimum(off, MAX_LOSS).sum() + WIDTH_COST * np.exp(logged).sum())

    bounds = [(np.log(MIN_SPREAD), np.log(MAX_SPREAD))] * len(SPREADS)
    searches = [
        differential_evolution(loss, bounds, seed=seed, maxiter=GENERATIONS, polish=False) for seed in range(SEARCHES)
    ]
    return dict(zip(SPREADS, np.exp(min(searches, key=lambda search: search.fun).x), strict=True))


def variance_terms(measured: Measured, values: Mapping[str, float], at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return absolute residuals of scenarios, and the factor of each squared spread, those at scale last."""
    given = constants()
    results = measured.results(values, "step_s", *PARTS, at=at)
    arrays = {name: array[at] for name, array in measured.arrays.items()}
    beyond = np.log2(np.maximum(arrays["accelerators"] / given["scale_seen"], 1.0)) * given["spread_scale"]
    overhead = 1.0 - sum(results[part] for part in PARTS) / results["step_s"]
    terms = (
        np.ones(len(at)),
        1.0 / np.maximum(arrays["evidence_families"], 1.0),
        1.0 / np.maximum(arrays["evidence_software"], 1.0),
        (arrays["experts"] > 1.0).astype(float),
        overhead**2,
        (arrays["tensor_parallel"] > arrays["scale_up_domain"]).astype(float),
        arrays["assumed_inputs"],
        beyond**2,
    )
    return np.abs(np.log(measured.frame["measured_s"].to_numpy()[at] / results["step_s"])), np.array(terms)


def strata_of(rows: pl.DataFrame, family: str) -> pl.DataFrame:
    """Return the strata that each row belongs to."""
    return rows.select(
        pl.lit(family).alias("family"),
        pl.col("accelerator").alias("chip"),
        pl.col("framework").fill_null(""),
        pl.col("precision").fill_null(""),
        (pl.col("experts").fill_null(0) > 1).cast(pl.String),
        large=(pl.col("accelerator_count") > LARGE).cast(pl.String),
        adapters=pl.col("lora_rank").is_not_null().cast(pl.String),
        group="group",
    )


if __name__ == "__main__":
    main()
