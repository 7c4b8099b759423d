"""Checks of results on floats: bounds, rules, undefined and infinite results, validity ranges of formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from factorykit.core.errors import ScenarioError, warn
from factorykit.core.vocabulary import quantity
from factorykit.engine import rules
from factorykit.engine.conditions import is_consistent
from factorykit.engine.resolve import (
    Resolution,
    Shape,
    consistency,
)
from factorykit.engine.run import compute
from factorykit.engine.step import Step, ancestors

MAX_CAUSES: Final = 6
"""Inputs that a message lists."""
Results = Mapping[str, "float | str"]


def check_consistency(shape: Shape, values: Results) -> None:
    """Raise a ScenarioError if given values violate a rule, or differ from the value that the others determine."""
    for name, steps in consistency(shape):
        given, computed = values[name], compute(steps, values)[name]
        if not is_consistent(given, computed):
            raise ScenarioError(
                f"{name} = {given!r} is inconsistent with the other inputs, which give {computed!r}; drop one of them"
            )
    rules.check_rules(rules.rules_of((), shape.given.intersection(values)), values)


def check(resolution: Resolution, results: Results) -> None:
    """Raise a ScenarioError if results violate a rule, leave their bounds or are undefined."""
    rules.check_rules(resolution.rules, results)
    for name, lower, upper in resolution.bounds:
        if not lower <= results[name] <= upper and math.isfinite(results[name]):  # type: ignore[operator, arg-type]
            raise ScenarioError(_out_of_bounds(name, results, resolution))
    for name in resolution.outputs:
        value = results[name]
        if not isinstance(value, str) and not math.isfinite(value):
            _check_infinite(name, value, resolution, results)


def warn_of_results(resolution: Resolution, results: Results) -> None:
    """Warn of outputs that are infinite and of formulas that are used outside their validity range."""
    sentences = out_of_range(resolution, results) if resolution.shape.outputs is not None else ()
    infinite = [name for name in resolution.outputs if results[name] == math.inf]
    for name in infinite:
        reason = _reason(name, resolution.steps, results)
        warn("; ".join([f"{name} is infinite: {reason}", *sentences]))
    if not infinite:
        for sentence in sentences:
            warn(sentence)


def out_of_range(resolution: Resolution, results: Results) -> tuple[str, ...]:
    """Return a sentence for every formula whose validity range the values leave."""
    sentences = []
    for name, stated in resolution.validities:
        if not stated.condition(*[results[argument] for argument in stated.arguments]):
            values = ", ".join(f"{argument} = {results[argument]:g}" for argument in stated.arguments)
            sentences.append(f"{name} is valid for {stated.words}; here {values}")
    return tuple(sentences)


def _out_of_bounds(name: str, results: Results, resolution: Resolution) -> str:
    row, above = quantity(name), ancestors({name}, resolution.steps)
    causes = [leaf for leaf in resolution.leaves if leaf in above]
    listed = ", ".join(f"{cause} = {_short(results[cause])}" for cause in causes[:MAX_CAUSES])
    return f"{row.name} = {results[row.name]:g} is outside {row.bounds}: it follows from {listed}; change one of them"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _check_infinite(name: str, value: float, resolution: Resolution, results: Results) -> None:
    row = quantity(name)
    if not math.isnan(value) and row.reaches(value):
        return
    reason = _reason(name, resolution.steps, results)
    if math.isnan(value):
        raise ScenarioError(f"{name} is undefined for these inputs: {reason}; change the inputs it is computed from")
    raise ScenarioError(
        f"{name} = {value:g} is outside {row.bounds}: it follows from {reason}; change the inputs it is computed from"
    )


def _reason(name: str, steps: Sequence[Step], results: Results) -> str:
    """Return the zero or infinite results from which an undefined one follows."""
    computed = {step.quantity: results[step.quantity] for step in steps if step.quantity != name}
    numbers = {other: value for other, value in computed.items() if not isinstance(value, str)}
    suspects = {other: value for other, value in numbers.items() if value == 0.0 or not math.isfinite(value)}
    step = next((step for step in steps if step.quantity == name), None)
    suspects = suspects or (_zero_arguments(step, results) if step else {})
    return ", ".join(f"{other} = {value:g}" for other, value in suspects.items())


def _zero_arguments(step: Step, results: Results) -> dict[str, float]:
    """Return the arguments of zero without which the result would be finite; all numbers if there are none."""
    numbers: dict[str, Any] = {n: results[n] for n in step.arguments if not isinstance(results[n], str)}
    zeros = {name: value for name, value in numbers.items() if value == 0.0}
    otherwise: dict[str, Any] = {n: compute((step,), {**results, n: 1.0})[step.quantity] for n in zeros}
    return {n: 0.0 for n in zeros if math.isfinite(otherwise[n])} or numbers
