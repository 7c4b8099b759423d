"""Evaluate quantities on a mapping of numbers, a DataFrame or a LazyFrame: one graph, one body per formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from factorykit.core.errors import ScenarioError, warn
from factorykit.core.vocabulary import quantity
from factorykit.engine import rules
from factorykit.engine.answer import Answer
from factorykit.engine.chain import FORMULA, Chain, Step, ask
from factorykit.engine.consistency import agree
from factorykit.engine.frames import evaluate_frame
from factorykit.engine.read import Outputs, checked, chosen, named
from factorykit.engine.run import compute
from factorykit.formulas.validity import validity

MOST_CAUSES: Final = 6

if TYPE_CHECKING:
    import polars as pl


@overload
def evaluate(
    inputs: pl.DataFrame, outputs: Outputs = None, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> pl.DataFrame: ...
@overload
def evaluate(
    inputs: pl.LazyFrame, outputs: Outputs = None, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> pl.LazyFrame: ...
@overload
def evaluate(
    inputs: Mapping[str, Any], outputs: Outputs = None, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> dict[str, float]: ...
def evaluate(
    inputs: Any, outputs: Outputs = None, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> Any:
    """Compute quantities from others; the names find the formulas.

    Parameters
    ----------
    inputs
        A mapping of quantities to numbers (a dict or a Scenario), or a polars DataFrame or LazyFrame with one column
        per quantity; further columns pass through. A given quantity is used as it is, even where a formula for it
        exists. The name of an ``accelerator`` brings what the tables say of that chip. A number may be a text with a
        unit, ``"500 GB/s"`` or ``"70B"``, in columns of a DataFrame too. In a mapping, the name of a rival model may
        stand for a number, as in ``using``.
    outputs
        One name or several; by default everything that the inputs allow.
    using
        Which model stands for a quantity that has rivals: ``{"checkpoint_interval_s": "checkpoint_interval_young_s"}``;
        the vocabulary lists them.
    assume
        Whether sourced defaults that fit the scenario fill what nobody gave; :func:`factorykit.assumed` lists them. A
        layout goes before the default of the utilization: the run then takes the steps that the layout is timed at.

    Returns
    -------
    dict, DataFrame or LazyFrame
        A dict of the outputs for a mapping, shown as a table with units; for a frame the same kind, rows in the same
        order, wider by one Float64
        column per output. A LazyFrame stays lazy and native.

    Raises
    ------
    UnknownQuantity, MissingQuantity, CycleError
        If names do not lead from inputs to outputs.
    ScenarioError
        If a value or a result has the wrong type, is null, not finite, out of bounds, or contradicts the others. In a
        LazyFrame, whose values nobody has seen yet, outputs that need such a value are null.

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
    if isinstance(inputs, Mapping):
        chain, results = answered(inputs, named(outputs), using, assume=assume)
        return Answer((name, results[name]) for name in chain.outputs)
    if type(inputs).__module__.partition(".")[0] == "polars" and hasattr(inputs, "lazy"):
        return evaluate_frame(inputs, named(outputs), chosen(using), assume=assume)
    raise ScenarioError(f"inputs are {type(inputs).__name__}; give a mapping, a polars DataFrame or a LazyFrame")


def answered(
    inputs: Mapping[str, Any],
    outputs: tuple[str, ...] | None,
    using: Mapping[str, str] | None = None,
    *,
    assume: bool = False,
) -> tuple[Chain, dict[str, float | str]]:
    """Return the chain from the values of a mapping to the outputs, and the value of everything on it, judged."""
    values, rivals = checked(inputs)
    rivals |= chosen(using)
    agree(values, rivals)
    chain = ask(values, outputs, rivals, values, assume=assume)
    results = compute(chain.steps, values)
    if rules.concern(chain.computed):
        rules.check(results, values)
    for step in chain.steps:
        _hold(step, results, chain)
    outside = _outside(chain.steps, results) if outputs is not None else ()
    for name in chain.outputs:
        _judge(name, results, chain.steps, outside)
    if math.inf not in (results[name] for name in chain.outputs):
        for sentence in outside:
            warn(sentence)
    return chain, results


def _hold(step: Step, results: Mapping[str, Any], chain: Chain) -> None:
    """Refuse a result outside the bounds of its quantity; whether it is finite, only the outputs are asked."""
    value = results[step.quantity]
    if isinstance(value, str) or not math.isfinite(value):
        return
    row = quantity(step.quantity)
    if not row.reaches(value):
        causes = [name for name in chain.leaves if name in _above(step, chain.steps)]
        said = ", ".join(f"{name} = {_short(results[name])}" for name in causes[:MOST_CAUSES])
        raise ScenarioError(
            f"{row.name} = {value:g} is outside {row.bounds}: it follows from {said}; change one of them"
        )


def _above(step: Step, steps: Sequence[Step]) -> set[str]:
    """Return every quantity that a step hangs on."""
    found = set(step.arguments)
    for earlier in reversed(steps):
        if earlier.quantity in found:
            found.update(earlier.arguments)
    return found


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _judge(name: str, results: Mapping[str, Any], steps: Sequence[Step], outside: Sequence[str]) -> None:
    value = results[name]
    if isinstance(value, str) or math.isfinite(value):
        return
    computed = {step.quantity: results[step.quantity] for step in steps if step.quantity != name}
    numbers = [item for item in computed.items() if not isinstance(item[1], str)]
    suspects = [item for item in numbers if item[1] == 0.0 or not math.isfinite(item[1])]
    suspects = suspects or _direct(next(step for step in steps if step.quantity == name), results)
    reason = ", ".join(f"{other} = {x:g}" for other, x in suspects)
    if math.isnan(value):
        raise ScenarioError(
            f"{name} is undefined for these inputs: {reason}; change the inputs these are computed from"
        )
    if not (row := quantity(name)).reaches(value):
        raise ScenarioError(
            f"{name} = {value:g} is outside {row.bounds}: it follows from {reason}; "
            "change the inputs these are computed from"
        )
    warn("; ".join([f"{name} is infinite: {reason}", *outside]))


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
        stated = validity(step.quantity) if step.origin == FORMULA else None
        if stated and not stated.condition(*[results[name] for name in stated.arguments]):
            held = ", ".join(f"{name} = {results[name]:g}" for name in stated.arguments)
            sentences.append(f"{step.quantity} is good for {stated.words}; here {held}")
    return tuple(sentences)
