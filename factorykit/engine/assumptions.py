"""The defaults and neutral values that a question uses, and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.vocabulary import quantity
from factorykit.engine.providers import accelerators, constants, defaults
from factorykit.engine.resolve import Resolution
from factorykit.engine.step import CALIBRATED, DEFAULT, NEUTRAL, SPECIFICATION, Step
from factorykit.formulas.expressions import as_text

if TYPE_CHECKING:
    import polars as pl

CONFIG_DEFAULT: Final = "default of model type"
"""Beginning of the source of a value that a configuration file leaves out and its model type fills."""


def table_of(resolution: Resolution, results: Mapping[str, Any], sources: Mapping[str, str]) -> pl.DataFrame:
    """Return one row per default or neutral value: quantity, value, word, unit, basis, formula, source.

    ``sources`` of the inputs name the values that a configuration file left out; these come first.
    """
    import polars as pl

    filled = [name for name in resolution.leaves if sources.get(name, "").startswith(CONFIG_DEFAULT)]
    rows = [(n, results[n], None, quantity(n).unit, "stated", "", sources[n]) for n in filled if n in results]
    rows += [_row(step, results) for step in resolution.steps if step.origin in (DEFAULT, NEUTRAL)]
    texts = dict.fromkeys(("word", "unit", "basis", "formula", "source"), pl.String)
    return pl.DataFrame(rows, {"quantity": pl.String, "value": pl.Float64} | texts, orient="row")


def _row(step: Step, results: Mapping[str, Any]) -> tuple[Any, ...]:
    value = results.get(step.quantity)
    is_word = isinstance(value, str)
    basis, _, source = value_source(step, results).partition(": ")
    formula = as_text(step.term) if step.arguments else ""
    number, word = (None, value) if is_word else (value, None)
    return step.quantity, number, word, quantity(step.quantity).unit, basis, formula, source


def value_source(step: Step, values: Mapping[str, Any]) -> str:
    """Return the basis of a value that no formula computes, a colon, and its source."""
    name = step.quantity
    if step.origin == SPECIFICATION:
        key = values.get(accelerators.KEY)
        source = accelerators.specification_source(name, str(key)) if key else ""
        return f"specification: {source or 'table accelerators'}"
    if step.origin == CALIBRATED:
        return f"calibrated: {constants.calibration_source(name)}"
    if step.origin == DEFAULT and step.arguments == (accelerators.KEY,):
        return f"by accelerator: {defaults.by_accelerator_source(name)}"
    row = defaults.defaults().get(name)
    if step.origin == NEUTRAL and (row is None or row.basis != "neutral"):
        return "neutral: the usual case"
    return row.why if row else ""
