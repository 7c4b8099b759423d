"""Published training runs as questions: the model, chips and tokens that were known before each run began."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError
from factorykit.data.identifiers import identify, known_key
from factorykit.data.tables import table
from factorykit.formulas.compute import training_flop
from factorykit.model.performance.run_architectures import usual_sequence_length
from factorykit.model.performance.run_cells import software_year
from factorykit.model.planning.candidates import nearest_batch

START_LAG: Final = 0.5
"""Years between the release of the software of a run and the publication of the run."""
MIN_SOFTWARE_YEAR: Final = 2018.0
DEFAULT_DAYS: Final = 45.0
"""Duration from which the number of accelerators follows where a source does not state it."""
MIN_ACCELERATORS, MAX_ACCELERATORS = 8, 16_384
"""Bounds of that number, a power of two."""
RECIPE: Final = ("precision", "recompute", "seq_len", "global_batch_tokens")
"""Columns of the table of measured runs that a plan takes over."""
STATED: Final = ("run", "model", "source", "locator", "as_of", "address", "accelerator", "tokens", "parameters")


@cache
def published_runs() -> pl.DataFrame:
    """Return the published runs that state their tokens, chip, and days or hours: one row a run, by its name.

    ``architecture`` is the known model of its name, null where only its size is known; ``accelerators`` follow from
    the hours where no source states them, and ``accelerators_stated`` marks which; ``measured_days`` and
    ``measured_usd`` are the outcome.
    """
    released = table("models").select("model", "released")
    runs = (
        table("runs")
        .drop_nulls(["accelerator", "tokens", "parameters"])
        .filter(pl.any_horizontal(pl.col("wall_days", "accelerator_hours").is_not_null()))
        .join(released, left_on="model_key", right_on="model", how="left")
        .sort("run")
        .collect()
    )
    measured = table("training_runs").collect()
    recipes = measured.with_columns(architecture=_architectures(measured["model"]))
    rows = [
        _published(row, _recipe_of(row, recipes))
        for row in runs.with_columns(architecture=_architectures(runs["model"])).iter_rows(named=True)
    ]
    published = pl.DataFrame([row for row in rows if row], infer_schema_length=None)
    return published.unique(["accelerator", "tokens", "measured_days"], keep="first", maintain_order=True)


def recipe(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sequence length, batch, number format and software of a published run, where known."""
    stated = ("precision", "sequence_length", "software_year", "recompute")
    values = {name: run[name] for name in stated if run.get(name) is not None}
    if run.get("batch_tokens"):
        sequences = run["batch_tokens"] / run["sequence_length"]
        values["global_batch_size"] = nearest_batch(sequences, run["accelerators"])
    return values


def conditions(model: Any) -> dict[str, Any]:
    """Return the arguments of a plan as the known model was trained: tokens, chip, count and recipe.

    Raises
    ------
    ScenarioError
        If no published run of the model states its tokens, chip, and days or hours.
    """
    runs = published_runs().drop_nulls("architecture")
    name = identify("architecture", model) if isinstance(model, str) else ""
    of_model = runs.filter(pl.col("architecture") == name).sort("tokens", descending=True)
    if of_model.is_empty():
        known = ", ".join(runs["architecture"].unique().sort())
        raise ScenarioError(f"as_run needs a model whose run is published, got {model!r}; known are {known}")
    run = of_model.row(0, named=True)
    return {"tokens": run["tokens"], "chips": run["accelerator"], "counts": run["accelerators"], **recipe(run)}


def _recipe_of(run: Mapping[str, Any], rows: pl.DataFrame) -> dict[str, Any]:
    """Return the recipe of a run: as stated for it, or as its layout was measured on as many of the same accelerators.

    Rows of the same name come before those of the same architecture; short sequences are those of the main stage.
    """
    count = pl.lit(run["accelerators"], pl.Float64)
    own = (pl.col("accelerator") == run["accelerator"]) & (pl.col("accelerator_count") == count)
    stated = rows.filter((pl.col("kind") == "training_run") | own.fill_null(value=False))
    same = stated.filter(model=run["model"])
    if same.is_empty() and run["architecture"]:
        same = stated.filter(architecture=run["architecture"])
    ordered = same.sort(pl.col("kind") != "training_run", "seq_len", nulls_last=True, maintain_order=True)
    return {name: next(iter(ordered[name].drop_nulls()), None) for name in RECIPE}


def _published(row: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a row of the table as a question and its outcome, None for experts whose shape is unknown."""
    architecture = row["architecture"]
    active = row["active_parameters"] or row["parameters"]
    if architecture is None and active < row["parameters"]:
        return None
    date = row["released"] or row["as_of"]
    year = software_year({"release_month": date if "-" in date else None, "year": date[:4]}) or 0.0
    hours, count = row["accelerator_hours"], row["accelerators"]
    if count is None:
        wanted = 2.0 ** round(math.log2(hours * SECONDS_PER_HOUR / (DEFAULT_DAYS * SECONDS_PER_DAY)))
        count = min(max(wanted, MIN_ACCELERATORS), MAX_ACCELERATORS)
    days = row["wall_days"] or hours * SECONDS_PER_HOUR / SECONDS_PER_DAY / count
    sequence = stated["seq_len"] or usual_sequence_length(year)
    return {
        **{name: row[name] for name in STATED},
        "architecture": architecture,
        "accelerators": count,
        "accelerators_stated": row["accelerators"] is not None,
        "training_flop": training_flop(active, row["tokens"]),
        "software_year": max(year - START_LAG, MIN_SOFTWARE_YEAR),
        "precision": stated["precision"],
        "recompute": stated["recompute"],
        "sequence_length": sequence,
        "batch_tokens": stated["global_batch_tokens"],
        "measured_days": days,
        "measured_usd": row["cost_usd"],
    }


def _architectures(models: pl.Series) -> pl.Series:
    """Return the known architecture of each model name, null where only its size is known."""
    known = {name: known_key("architecture", name) for name in models.unique().drop_nulls()}
    return models.replace_strict(known, default=None)
