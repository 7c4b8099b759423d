"""Checks of results on floats: bounds, rules, undefined and infinite results, validity ranges of formulas."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from factorykit.core.errors import ScenarioError, warn
from factorykit.core.vocabulary import quantity
from factorykit.engine import rules
from factorykit.engine.conditions import is_consistent
from factorykit.engine.providers.accelerators import KEY
from factorykit.engine.resolve import (
    Resolution,
    Shape,
    User,
    assumed_otherwise,
    consistency,
    is_of_accelerator,
    overridden,
    resolve,
    unused,
)
from factorykit.engine.run import compute
from factorykit.engine.step import Step, ancestors, leaves

MAX_CAUSES: Final = 6
"""Inputs that a message lists."""
MAX_ASSUMED: Final = 3
"""Defaults that a message lists."""
Results = Mapping[str, "float | str"]


def check_consistency(shape: Shape, values: Results) -> None:
    """Refuse given values that violate a rule, or that differ from the value that the others determine.

    Raises
    ------
    ScenarioError
    """
    for name, steps in consistency(shape):
        given, computed = values[name], compute(steps, values)[name]
        if not is_consistent(given, computed):
            raise ScenarioError(
                f"{name} = {given!r} is inconsistent with the other inputs, which give {computed!r}; drop one of them"
            )
    rules.check_rules(rules.rules_of((), shape.given.intersection(values)), values)


def check_used(shape: Shape, values: Mapping[str, Any], sourced: Collection[str], *, is_frame: bool) -> None:
    """Refuse given values that are not used although they could replace an assumption, or warn of them.

    Refused is a derived value that differs from the one that defaults lead to, and, for one output, a value that can
    have no other purpose. Values with a source are excepted. Of the columns of a frame those with another purpose are
    no mistake, and the others cause a warning.

    Raises
    ------
    ScenarioError
    MissingQuantity, CycleError
        If the given quantities do not lead to the outputs.
    """
    outputs = ", ".join(shape.outputs or ())
    if KEY not in sourced and not is_frame:
        _check_not_overridden(shape, values, sourced)
    confirmed = set()
    for name, steps, assumed in assumed_otherwise(shape) if shape.assume else ():
        if name in sourced or name not in values or not values.keys() >= set(leaves(steps)):
            continue
        results = compute(steps, values)
        if is_consistent(values[name], results[name]):
            confirmed.add(name)
            continue
        shown = ", ".join(_stated(default, results[default]) for default in assumed[:MAX_ASSUMED])
        others = f" and {len(assumed) - MAX_ASSUMED} more" if len(assumed) > MAX_ASSUMED else ""
        raise ScenarioError(
            f"{_stated(name, values[name])} is not used for {outputs}: "
            f"{shown}{others} is assumed, which gives {_stated(name, results[name])}; "
            f"give {' or '.join(assumed[:MAX_ASSUMED])}, or drop {name}"
        )
    idle: dict[User, list[str]] = {}
    for name, user in unused(shape).items():
        counts = _has_effect(name, values[name]) if name in values else user.is_wanted or not is_frame
        if counts and name not in sourced and name not in confirmed:
            idle.setdefault(user, []).append(name)
    for user, names in idle.items():
        sentence = _sentence(user, names, values, outputs)
        if user.is_wanted and not is_frame:
            _report(sentence, shape)
        else:
            warn(sentence)


def _check_not_overridden(shape: Shape, values: Mapping[str, Any], sourced: Collection[str]) -> None:
    """Refuse an accelerator whose specifications a preset replaces, or a sweep of accelerators without effect."""
    swept_in_vain = KEY not in values and KEY not in resolve(shape).used
    if replaced := [name for name in overridden(shape) if name in sourced or swept_in_vain]:
        stated = ", ".join(_stated(name, values.get(name)) for name in replaced)
        outputs = ", ".join(shape.outputs or ())
        chip = f"{_stated(KEY, values.get(KEY))} is not used for {outputs}, given its specifications {stated}"
        _report(f"{chip}; drop these, or {KEY}", shape)


def _report(sentence: str, shape: Shape) -> None:
    """Raise an error where one output is asked for, otherwise warn."""
    if len(set(shape.outputs or ())) == 1:
        raise ScenarioError(sentence)
    warn(sentence)


def _stated(name: str, value: Any) -> str:
    return name if value is None else f"{name} = {quantity(name).text(value)}"


def _sentence(user: User, names: Sequence[str], values: Mapping[str, Any], outputs: str) -> str:
    """Return that quantities are not used, what would use them, and the remedy."""
    stated = [_stated(name, values.get(name)) for name in names]
    more = [f"{len(stated) - MAX_CAUSES} more"] if len(stated) > MAX_CAUSES else []
    verb, them = ("is", "it") if len(names) == 1 else ("are", "them")
    head = f"{', '.join([*stated[:MAX_CAUSES], *more])} {verb} not used for {outputs}"
    if not user.model:
        return head
    if not user.missing:
        return f"{head}; using={user.using!r} uses {them}, or drop {them}"
    way = f"{user.model} for {user.step} would use" if user.using else f"{user.step} would be computed from"
    missing = [*user.missing[:MAX_CAUSES]] + [f"{len(user.missing) - MAX_CAUSES} more"] * (
        len(user.missing) > MAX_CAUSES
    )
    return f"{head}; {way} {them} and needs {', '.join(missing)}; give those, or drop {them}"


def warn_of_shared(values: Mapping[str, Any], chips: Collection[str]) -> None:
    """Warn that given quantities, which accelerators have values of their own of, hold for several of them."""
    shared = [_stated(name, value) for name, value in values.items() if is_of_accelerator(name)]
    if shared and len(chips) > 1:
        taken = f"{', '.join(shared)} {'is' if len(shared) == 1 else 'are'} taken for all {len(chips)} accelerators"
        warn(f"{taken}; give one accelerator, or for a plan offers= with a price of each")


def warn_of_idle(values: Mapping[str, Any], outputs: Sequence[str]) -> None:
    """Warn that given quantities do not change the outputs; zeros and neutral values are expected not to."""
    if names := [name for name, value in values.items() if _has_effect(name, value)]:
        warn(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not used for {', '.join(outputs)}")


def _has_effect(name: str, value: Any) -> bool:
    return value not in (quantity(name).neutral, 0.0)


def check(resolution: Resolution, results: Results) -> None:
    """Refuse results that violate a rule, leave their bounds or are undefined.

    Raises
    ------
    ScenarioError
    """
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
