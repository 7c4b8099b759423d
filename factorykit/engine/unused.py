"""Given values that nothing uses: found from the steps, and reported with what would use them.

A value is unused where no step or rule needs it. That is a mistake of the caller in three cases:

- a default stands where the value could have been used: of ``nodes`` and an assumed number of accelerators;
- a preset's specifications take the place of those of a given accelerator;
- the value is a result that defaults determine otherwise.

Such a value is refused where one output is asked for, otherwise a warning names it. Both name the alternative model, or
the further inputs, that would use the value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from factorykit.core.errors import MissingQuantity, ScenarioError, warn
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.conditions import is_consistent
from factorykit.engine.providers.accelerators import KEY
from factorykit.engine.resolve import (
    Resolution,
    Shape,
    compared,
    formula_steps,
    is_of_accelerator,
    resolve,
    resolve_or_none,
    supplied,
)
from factorykit.engine.run import compute
from factorykit.engine.step import DEFAULT, NEUTRAL, Step, ancestors, leaves
from factorykit.formulas import arguments, catalogue

MAX_NAMES: Final = 6
"""Quantities that a message lists."""
MAX_ASSUMED: Final = 3
"""Defaults that a message lists."""


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
    more = [f"{len(stated) - MAX_NAMES} more"] if len(stated) > MAX_NAMES else []
    verb, them = ("is", "it") if len(names) == 1 else ("are", "them")
    head = f"{', '.join([*stated[:MAX_NAMES], *more])} {verb} not used for {outputs}"
    if not user.model:
        return head
    if not user.missing:
        return f"{head}; using={user.using!r} uses {them}, or drop {them}"
    way = f"{user.model} for {user.step} would use" if user.using else f"{user.step} would be computed from"
    missing = [*user.missing[:MAX_NAMES]] + [f"{len(user.missing) - MAX_NAMES} more"] * (len(user.missing) > MAX_NAMES)
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


@lru_cache(maxsize=512)
def assumed_otherwise(shape: Shape) -> tuple[tuple[str, tuple[Step, ...], tuple[str, ...]], ...]:
    """Return the given derived quantities that the outputs do not use and that defaults determine otherwise.

    Each comes with the steps that lead to it instead, and the defaults. They are defaults of the outputs, too, or the
    quantity could replace an assumption on the way to the outputs.
    """
    resolution = resolve(shape)
    users = _users(resolution)
    idle = []
    derived = [name for name in sorted(shape.given.difference(resolution.leaves)) if quantity(name).is_derived]
    for name in derived if resolution.defaults else ():
        if instead := resolve_or_none(replace(shape, given=shape.given - {name}, outputs=(name,))):
            shared = tuple(default for default in instead.defaults if name in users or default in resolution.defaults)
            idle += [(name, instead.steps, shared)] if shared else []
    return tuple(idle)


class User(NamedTuple):
    """The way to use an unused quantity: an alternative model of a step, or the step's own formula.

    It is wanted where an assumption stands for the step, and the formula or the condition of the model applies; where
    the quantity is a result and the given ones alone determine the model; or where only alternative models have the
    quantity as input. ``missing`` are its further inputs.
    """

    step: str
    model: str
    is_wanted: bool = False
    missing: tuple[str, ...] = ()

    @property
    def using(self) -> dict[str, str]:
        """The choice of the alternative model, if there is one."""
        return {} if self.model == self.step else {self.step: self.model}


@lru_cache(maxsize=512)
def unused(shape: Shape) -> Mapping[str, User]:
    """Return the given quantities that could replace an assumption on the way to the outputs and are not used.

    Each comes with what would use it. Without ``assume`` only those of wanted models are listed. A quantity from which
    a given one is otherwise computed is left out: that one is given instead.
    """
    resolution = resolve(shape)
    users = _users(resolution)
    idle = shape.given.intersection(users) - resolution.used - compared(shape)
    users_of_idle = {name: _with_missing(users[name], name, shape) for name in sorted(idle)}
    if not all(user.is_wanted for user in users_of_idle.values()):
        replaced = frozenset[str]().union(*(_computed_from(name, shape) for name in resolution.leaves))
        users_of_idle = {name: user for name, user in users_of_idle.items() if user.is_wanted or name not in replaced}
    return MappingProxyType(users_of_idle)


@lru_cache(maxsize=512)
def overridden(shape: Shape) -> tuple[str, ...]:
    """Return the given specifications that are used in place of those of a given accelerator."""
    if KEY not in shape.given:
        return ()
    instead = {name: supplied(name, replace(shape, given=shape.given - {name})) for name in resolve(shape).leaves}
    return tuple(name for name, step in instead.items() if step and KEY in step.arguments)


def _computed_from(name: str, shape: Shape) -> set[str]:
    """Return what a given quantity would be computed from, without constants of ours, if it were not given."""
    instead = resolve_or_none(replace(shape, given=shape.given - {name}))
    steps = instead.steps if instead else ()
    causes = ancestors((name,), steps)
    return set() if any(s.origin == DEFAULT and not s.arguments and s.quantity in causes for s in steps) else causes


def _users(resolution: Resolution) -> dict[str, User]:
    """Return the quantities that could replace an assumption, each with the nearest formula or alternative model.

    Wanted ones come first.
    """
    given, formulas = resolution.shape.given, formula_steps()
    assumed: dict[str, Step] = {}
    for step in resolution.steps:
        if step.origin in (DEFAULT, NEUTRAL) or not assumed.keys().isdisjoint(step.arguments):
            assumed[step.quantity] = step
    ways: list[tuple[str, User]] = []
    for name, step in assumed.items():
        is_free = step.origin in (DEFAULT, NEUTRAL)
        own = formulas[name].arguments if resolution.shape.assume and name in formulas else ()
        models = [model for model in quantity(name).alternatives if model not in resolution.computed]
        is_met = {model: is_free and not given.isdisjoint(quantity(model).used_when) for model in models}
        ways += [(need, User(name, name, is_free)) for need in own]
        ways += [(model, User(name, model, is_met[model])) for model in models]
    ways.sort(key=lambda way: not quantity(way[1].model).used_when)
    known = given | resolution.computed
    users: dict[str, User] = {}
    for is_wanted in (True, False) if resolution.shape.assume else (True,):
        level = [way for way in ways if way[1].is_wanted == is_wanted]
        while new := dict.fromkeys(way for way in level if way[0] not in users):
            users |= dict(reversed(new))
            next_ones = (way for way in new if users[way[0]] == way[1] and way[0] in formulas and way[0] not in known)
            level = [(need, user) for name, user in next_ones for need in formulas[name].arguments]
    return users


@cache
def _inputs_of_alternatives() -> frozenset[str]:
    """Return the quantities that only alternative models need."""
    models = {model for row in vocabulary().values() for model in row.alternatives}
    needs = {model: frozenset(arguments(formula)) for model, formula in catalogue().items()}
    standard = frozenset[str]().union(*(needs[name] for name in needs.keys() - models))
    return frozenset[str]().union(*(needs[name] for name in models)) - standard


def _with_missing(user: User, name: str, shape: Shape) -> User:
    """Return the user of a quantity with its further inputs; of an unwanted model only where it needs the quantity."""
    is_input = name == user.model or name in formula_steps()[user.model].arguments
    model = replace(shape, outputs=(user.model,), assume=False)
    is_wanted = user.is_wanted or name in _inputs_of_alternatives()
    if is_input and user.using and quantity(name).is_derived:
        is_wanted = is_wanted or resolve_or_none(model) is not None
    if not is_wanted and not is_input:
        return User("", "")
    try:
        resolve(replace(model, assume=shape.assume))
    except MissingQuantity as error:
        return user._replace(is_wanted=is_wanted, missing=error.missing)
    return user._replace(is_wanted=is_wanted)
