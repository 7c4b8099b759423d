"""What nobody said: the values that a question takes from tables of defaults, and who says those."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.errors import ScenarioError
from factorykit.core.validation import frame_schema
from factorykit.core.vocabulary import quantity
from factorykit.engine.chain import ASSUMED, CELL, FITTED, NEUTRAL, Step, ask
from factorykit.engine.consistency import agree
from factorykit.engine.read import Outputs, checked, chosen, named
from factorykit.engine.run import compute
from factorykit.formulas.expressions import as_text

if TYPE_CHECKING:
    import polars as pl

FILLED: Final = "default of model type"
"""How the source of a value begins that a configuration file left out."""


def assumed(inputs: Any, outputs: Outputs = None, *, using: Mapping[str, str] | None = None) -> pl.DataFrame:
    """List what ``evaluate(inputs, outputs, assume=True)`` takes for granted.

    Parameters
    ----------
    inputs
        As for :func:`factorykit.evaluate`: a mapping, a Scenario, a DataFrame or a LazyFrame.
    outputs
        As for :func:`factorykit.evaluate`.
    using
        Which model stands for a quantity that has rivals.

    Returns
    -------
    DataFrame
        One row per quantity that nobody gave, what a configuration file left out before the others, in the order in
        which they are needed: ``quantity``, ``value`` (null for a word, and where it differs between rows of a frame),
        ``word``, ``unit``, ``basis`` (neutral, stated, computed, chosen, or of the chip), ``formula`` where the value
        follows others, ``source``.

    Raises
    ------
    FactorykitError
        As :func:`factorykit.evaluate`.

    Examples
    --------
    >>> run = {"parameters": 70e9, "tokens": 15e12, "accelerators": 2048, "accelerator": "h100_sxm"}
    >>> assumed(run, "training_days").select("quantity", "value", "formula").rows()
    [('mfu', 0.4, ''), ('precision', None, ''), ('active_parameters', 70000000000.0, '1 * parameters')]
    """
    import polars as pl

    if isinstance(inputs, Mapping):
        values, rivals = checked(inputs)
        rivals |= chosen(using)
        agree(values, rivals)
        chain = ask(values, named(outputs), rivals, values, assume=True)
        results = compute(chain.steps, values)
        filled = _filled(inputs, values, chain.leaves)
    else:
        from factorykit.engine.frames import resolved

        if not hasattr(type(inputs), "collect_schema"):
            raise ScenarioError(
                f"inputs are {type(inputs).__name__}; give a mapping, a polars DataFrame or a LazyFrame"
            )
        chain = resolved(frame_schema("inputs", inputs), named(outputs), chosen(using), assume=True)
        results = compute([step for step in chain.steps if not step.arguments], {})
        filled = []
    rows = [_told(step, results) for step in chain.steps if step.origin in (ASSUMED, NEUTRAL)]
    texts = dict.fromkeys(("word", "unit", "basis", "formula", "source"), pl.String)
    return pl.DataFrame(filled + rows, {"quantity": pl.String, "value": pl.Float64} | texts, orient="row")


def _filled(inputs: Mapping[str, Any], values: Mapping[str, Any], needed: Collection[str]) -> list[tuple[Any, ...]]:
    """Return what a configuration file left out and its reader filled in, where the question needs it."""
    sources = getattr(inputs, "sources", {})
    said = {name: sources[name] for name in values if name in needed and sources.get(name, "").startswith(FILLED)}
    return [(name, values[name], None, quantity(name).unit, "stated", "", source) for name, source in said.items()]


def _told(step: Step, results: Mapping[str, Any]) -> tuple[Any, ...]:
    value = results.get(step.quantity)
    is_word = isinstance(value, str)
    basis, _, source = who_says(step, results).partition(": ")
    follows = as_text(step.term) if step.arguments else ""
    return (
        step.quantity,
        None if is_word else value,
        value if is_word else None,
        quantity(step.quantity).unit,
        basis,
        follows,
        source,
    )


def who_says(step: Step, values: Mapping[str, Any]) -> str:
    """Return where the value of a step comes from that no formula computes: its basis, a colon and the source."""
    from factorykit.engine.providers import accelerators, constants, defaults

    name = step.quantity
    if step.origin == CELL:
        said = accelerators.told(name, str(values["accelerator"])) if "accelerator" in values else ""
        return f"of the chip: {said or 'table accelerators'}"
    if step.origin == FITTED:
        return f"fitted: {constants.how(name)}"
    if step.origin == ASSUMED and step.arguments == ("accelerator",):
        return f"of the chip: {defaults.why_of_chip(name)}"
    row = defaults.defaults().get(name)
    if step.origin == NEUTRAL and (row is None or row.basis != "neutral"):
        return "neutral: the usual case where nobody says otherwise"
    return row.why if row else ""
