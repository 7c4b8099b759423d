"""Evaluate quantities on a mapping of numbers, a DataFrame or a LazyFrame: one graph, one body per formula."""

from __future__ import annotations

import math
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from factorykit import usual
from factorykit.errors import FactorykitWarning, ScenarioError
from factorykit.formulas.validity import validity
from factorykit.model.engine import rules
from factorykit.model.engine.agreement import agree
from factorykit.model.engine.chain import Step, available, chain, choice
from factorykit.model.engine.frames import evaluate_frame
from factorykit.model.engine.run import compute
from factorykit.quantities import begins_with_digit, quantity

if TYPE_CHECKING:
    import polars as pl

Outputs = str | Iterable[str] | None


@overload
def evaluate(
    inputs: pl.DataFrame, outputs: Outputs = None, *, using: Mapping[str, str] | None = None
) -> pl.DataFrame: ...
@overload
def evaluate(
    inputs: pl.LazyFrame, outputs: Outputs = None, *, using: Mapping[str, str] | None = None
) -> pl.LazyFrame: ...
@overload
def evaluate(
    inputs: Mapping[str, Any], outputs: Outputs = None, *, using: Mapping[str, str] | None = None
) -> dict[str, float]: ...
def evaluate(inputs: Any, outputs: Outputs = None, *, using: Mapping[str, str] | None = None) -> Any:
    """Compute quantities from others; the names find the formulas.

    Parameters
    ----------
    inputs
        A mapping of quantities to numbers (a dict or a Scenario), or a polars DataFrame or LazyFrame with one column
        per quantity; further columns pass through. A given quantity is used as it is, even where a formula for it
        exists. A number may be a text with a unit, ``"500 GB/s"`` or ``"70B"``, in columns of a DataFrame too. In a
        mapping, the name of a rival model may stand for a number, as in ``using``.
    outputs
        One name or several; by default everything that the inputs allow.
    using
        Which model stands for a quantity that has rivals: ``{"checkpoint_interval_s": "checkpoint_interval_young_s"}``.

    Returns
    -------
    dict, DataFrame or LazyFrame
        A dict of the outputs for a mapping; for a frame the same kind, rows in the same order, wider by one Float64
        column per output. A LazyFrame stays lazy and native.

    Raises
    ------
    UnknownQuantity, MissingQuantity, CycleError
        If names do not lead from inputs to outputs.
    ScenarioError
        If a value has the wrong type, is null, not finite, out of bounds, or contradicts the others. In a LazyFrame,
        whose values nobody has seen yet, outputs that need such a value are null.

    Warns
    -----
    FactorykitWarning
        If a value is outside the usual range of its quantity, with the unit that was probably left away. If a result is
        infinite, with the reason; for a mapping whose outputs are named, also if a formula on the way
        leaves the range in which it is stated to be good, with the condition that fails. For the rows of a frame
        :func:`factorykit.outside` says it.

    Examples
    --------
    >>> evaluate({"active_parameters": 405e9, "tokens": 15.6e12}, "training_flop")
    {'training_flop': 3.7908e+25}

    >>> import polars as pl
    >>> evaluate(pl.DataFrame({"accelerators": [24576, 100_000], "peak_flop_per_s": 989e12}), "cluster_peak_flop_per_s")
    shape: (2, 3)
    ┌──────────────┬─────────────────┬─────────────────────────┐
    │ accelerators ┆ peak_flop_per_s ┆ cluster_peak_flop_per_s │
    │ ---          ┆ ---             ┆ ---                     │
    │ f64          ┆ f64             ┆ f64                     │
    ╞══════════════╪═════════════════╪═════════════════════════╡
    │ 24576.0      ┆ 9.8900e14       ┆ 2.4306e19               │
    │ 100000.0     ┆ 9.8900e14       ┆ 9.8900e19               │
    └──────────────┴─────────────────┴─────────────────────────┘
    """
    rivals = {quantity(name).name: choice(name, rival) for name, rival in (using or {}).items()}
    if isinstance(inputs, Mapping):
        return _evaluate_mapping(inputs, named(outputs), rivals)
    if type(inputs).__module__.partition(".")[0] == "polars" and hasattr(inputs, "lazy"):
        return evaluate_frame(inputs, named(outputs), rivals)
    raise ScenarioError(f"inputs are {type(inputs).__name__}; give a mapping, a polars DataFrame or a LazyFrame")


def checked(inputs: Mapping[str, Any], without: Container[str] = ()) -> tuple[dict[str, float | str], dict[str, str]]:
    """Return the values of a mapping, each checked, and the rival models it names; those of ``without`` are left out.

    Raises
    ------
    UnknownQuantity, ScenarioError
    """
    if not isinstance(inputs, Mapping):
        raise ScenarioError(f"inputs are {type(inputs).__name__}; give a Scenario or a mapping of quantities to values")
    values: dict[str, float | str] = {}
    rivals: dict[str, str] = {}
    for name, value in ((name, value) for name, value in inputs.items() if name not in without):
        row = quantity(name)
        if isinstance(value, str) and not row.is_text and not begins_with_digit(value):
            rivals[name] = choice(name, value)
        else:
            values[name] = row.check(value)
    usual.warn(values)
    return values, rivals


def named(outputs: Outputs) -> tuple[str, ...] | None:
    """Return the names of the outputs asked for, or None for all of them.

    Raises
    ------
    UnknownQuantity, ScenarioError
    """
    if outputs is None:
        return None
    if not isinstance(outputs, Iterable):
        raise ScenarioError(f"outputs = {outputs!r}: give the name of a quantity, or several")
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    if not names:
        raise ScenarioError("outputs are empty; name at least one quantity, or leave outputs away for all of them")
    return tuple(quantity(name).name for name in names)


def _evaluate_mapping(
    inputs: Mapping[str, Any], outputs: tuple[str, ...] | None, rivals: dict[str, str]
) -> dict[str, Any]:
    values, chosen = checked(inputs)
    if "accelerator" in values:
        from factorykit.model.supply.chips import supplied

        values = supplied(values)
    using = chosen | rivals
    agree(values, using)
    asked = outputs is not None
    if outputs is None:
        outputs = available(values, using)
    steps = chain(values, outputs, using)
    results = compute(steps, values)
    if asked and rules.concerns({step.quantity for step in steps}):
        rules.check({name: value for name, value in results.items() if name not in rules.said(values)})
    outside = _outside(steps, results) if asked else ()
    for name in outputs:
        _judge(name, results, steps, outside)
    if math.inf not in (results[name] for name in outputs):
        for sentence in outside:
            warnings.warn(sentence, FactorykitWarning, stacklevel=3)
    return {name: results[name] for name in outputs}


def _judge(name: str, results: Mapping[str, Any], steps: Sequence[Step], outside: Sequence[str]) -> None:
    value = results[name]
    if isinstance(value, str) or math.isfinite(value):
        return
    computed = {step.quantity: results[step.quantity] for step in steps if step.quantity != name}
    suspects = [item for item in computed.items() if item[1] == 0.0 or not math.isfinite(item[1])]
    suspects = suspects or _direct(next(step for step in steps if step.quantity == name), results)
    reason = ", ".join(f"{other} = {x:g}" for other, x in suspects)
    if math.isnan(value):
        raise ScenarioError(
            f"{name} is undefined for these inputs: {reason}; change the inputs these are computed from"
        )
    warnings.warn("; ".join([f"{name} is infinite: {reason}", *outside]), FactorykitWarning, stacklevel=4)


def _direct(step: Step, results: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the arguments of zero without which the result would be finite; all its numbers if there are none."""
    numbers = [(name, results[name]) for name in step.arguments if not isinstance(results[name], str)]
    zeros = [(name, value) for name, value in numbers if value == 0.0]
    otherwise: dict[str, Any] = {name: compute((step,), {**results, name: 1.0})[step.quantity] for name, _ in zeros}
    return [zero for zero in zeros if math.isfinite(otherwise[zero[0]])] or numbers


def _outside(steps: Sequence[Step], results: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for every formula on the way whose stated validity the values leave."""
    sentences = []
    for step in steps:
        stated = validity(step.quantity)
        if stated and not stated.condition(*[results[name] for name in stated.arguments]):
            held = ", ".join(f"{name} = {results[name]:g}" for name in stated.arguments)
            sentences.append(f"{step.quantity} is good for {stated.words}; here {held}")
    return tuple(sentences)
