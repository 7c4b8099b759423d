"""Measured training runs as scenarios: rows of the ``training_runs`` table read into quantities.

Inputs that a source omits are filled by rule, never by row. Each filled input is named in ``assumed``; a row that
cannot be filled has the cause in ``reason``. The modules ``run_*`` read one subject each: `run_cells`, `run_chips`,
`run_architectures`, `run_layouts` and `run_software`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from factorykit.core.errors import ScenarioError
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.evaluate import evaluate
from factorykit.engine.rules import check_layout
from factorykit.model.performance import run_architectures, run_chips, run_layouts, run_software, source_terms
from factorykit.model.performance.activation_checkpointing import FIRST_LAYER, ROUNDING, least_share
from factorykit.model.performance.run_cells import NEEDED, NUMBERS, RECIPE_YEAR, family, read_row

WITHOUT_STEPS: Final = ("training_run", "cost_estimate", "reliability", "energy_measured")
"""Kinds of rows about whole runs."""


def prepared(rows: pl.DataFrame, memory: Mapping[str, float] | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the scenarios of the rows with their recomputation settled, and the rows that have none with the reason.

    Where a source does not state recomputation, the least share of layers that lets the run go is recomputed, with
    calibrated constants of ``memory`` if any.
    """
    every = list(scenarios(rows))
    reasons = pl.DataFrame(
        [run for run in every if "reason" in run], schema={"row": pl.Int64, "family": pl.String, "reason": pl.String}
    )
    predictable = [run for run in every if "reason" not in run]
    types = {"row": pl.Int64, "stated_parameters": pl.Float64, "share_stated": pl.Float64}
    ready = pl.DataFrame(predictable, infer_schema_length=None, schema_overrides=types if predictable else {})
    if ready.is_empty():
        return ready, reasons
    plain = run_architectures.nearest_to_stated_parameters(ready.drop("accelerator"))
    room, needed = ready["accelerator_memory_bytes"], "memory_needed_bytes"
    calibrated = [pl.lit(value).alias(name) for name, value in (memory or {}).items()]
    none, first, full = (
        evaluate(plain.with_columns(pl.lit(share).alias("recompute_share"), *calibrated), needed)[needed]
        for share in (0.0, FIRST_LAYER, 1.0)
    )
    least = pl.select(least_share(none, first, full, room)).to_series()
    share = ready["share_stated"].fill_null(least)
    return plain.with_columns(share.alias("recompute_share")), reasons


def fastest_that_fit(scenarios: pl.DataFrame) -> pl.DataFrame:
    """Return of each ``row`` the fastest scenario that fits, otherwise the one that lacks least memory."""
    excess = (pl.col("memory_needed_bytes") / pl.col("accelerator_memory_bytes")).clip(1.0 + ROUNDING)
    return scenarios.sort(excess, "step_s").unique("row", keep="first", maintain_order=True)


def scenarios(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the possible scenarios of each row, with its number as ``row``, or one dict with a ``reason``."""
    for number, row in enumerate(rows.iter_rows(named=True)):
        base: dict[str, Any] = {"row": number, "family": family(row.get("group") or "")}
        try:
            yield from [{**base, **scenario} for scenario in _alternatives(row)]
        except ScenarioError as error:
            yield {**base, "reason": str(error)}


def _alternatives(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the possible scenarios of a row; ``assumed`` also names the columns that were read from notes."""
    notes = source_terms.read_notes(row)
    assumed: list[str] = []
    row = _completed(run_chips.split_into_devices(source_terms.read_words(row) | notes), assumed)
    degrees = run_layouts.degrees_to_try(row)
    possible, reasons = [], []
    for layout in degrees or [{}]:
        try:
            possible += _scenarios({**row, **layout}, [*(["layout"] if degrees else []), *assumed])
        except ScenarioError as reason:
            reasons.append(reason)
    if not possible:
        raise reasons[0]
    named = f"read from notes: {', '.join(notes)}" if notes else ""
    return [{**one, "assumed": "; ".join(filter(None, (one["assumed"], named)))} for one in possible]


def _scenarios(row: Mapping[str, Any], assumed: list[str]) -> list[dict[str, Any]]:
    """Return the scenarios of a row with this layout, one for each micro-batch size that it may have."""
    precision = run_chips.stated_precision(row, assumed)
    shape = run_architectures.quantities(row, assumed)
    year = run_software.year_of(row, precision, assumed)
    chip = run_chips.quantities(row, precision, assumed)
    software = run_software.features(row, chip, year, assumed)
    layout = run_layouts.quantities(row, software, year, assumed)
    run = {**chip, **software, **shape, **layout, "software_year": year}
    run |= run_software.recomputation(row, run, assumed)
    if row.get("vp") is None and run["pipeline_parallel"] > 1.0 and run["share_stated"] is None and year >= RECIPE_YEAR:
        assumed.append("virtual_stages")
    run |= run_software.adapters(row, run["precision"], assumed)
    run["logits_layers"] = run_layouts.logits_layers(run)
    run["dropout"] *= 1.0 - run["gated_ffn"]
    micro_batches = run_layouts.micro_batches(row, run, assumed)
    names = list(dict.fromkeys(assumed))
    run["assumed_inputs"] = float(len(names) + (run_layouts.LAYOUT_DEGREES - 1 if "layout" in names else 0))
    run["assumed"] = ", ".join(names)
    variants = []
    for size, count in micro_batches:
        chunks = run_layouts.chunks_of_a_stage(run, count, assumed)
        step = {"micro_batch_size": size, "micro_batches": count, "virtual_stages": chunks}
        variants.append(_checked({**run, **run_software.training_state(row, run, count), **step}))
    return variants


def _completed(row: Mapping[str, Any], assumed: list[str]) -> dict[str, Any]:
    """Return a row with numbers as numbers and the shape of its model; raise if a needed column is missing."""
    if row.get("kind") in WITHOUT_STEPS:
        raise ScenarioError(f"a row of kind {row['kind']!r} states no step")
    if source_terms.is_no_language_model(str(row.get("model") or "")):
        raise ScenarioError(
            f"model {row['model']!r} is not modelled; known are language models that learn to predict the next token"
        )
    row = read_row(row)
    if row.get("accelerator_count") is None and all(row.get(name) for name in ("tp", "pp", "dp")):
        row["accelerator_count"] = row["tp"] * row["pp"] * row["dp"] * (row.get("cp") or 1.0)
    row = run_architectures.completed_shape(row, assumed)
    missing = ["hardware" if name == "accelerator" else name for name in NEEDED if row.get(name) in (None, "")]
    if (row.get("experts") or 0.0) > 1.0 and row.get("top_k") is None:
        missing.append("top_k")
    if missing:
        raise ScenarioError(f"{', '.join(missing)} not stated")
    for name in NEEDED:
        if name in NUMBERS and row[name] < 1.0:
            raise ScenarioError(f"{name} {row[name]:g} is less than one")
    return row


def _checked(scenario: dict[str, Any]) -> dict[str, Any]:
    for name, value in scenario.items():
        if name in vocabulary():
            quantity(name).check(value)
    check_layout(scenario, scenario)
    return scenario
