"""Which formulas lead from what is given to what is asked: the names alone wire them."""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

from factorykit.errors import CycleError, MissingQuantity, ScenarioError, UnknownQuantity
from factorykit.formulas import arguments, catalogue
from factorykit.formulas.terms import Symbol, Term, term
from factorykit.quantities import neutral, quantity, unknown_quantity, vocabulary


@dataclass(frozen=True, slots=True)
class Step:
    """One quantity, the formula that returns it and the quantities it needs."""

    quantity: str
    formula: Callable[..., Any]
    arguments: tuple[str, ...]

    @property
    def term(self) -> Term:
        """The formula over symbols, ready to be printed."""
        return term(self.formula(*[Symbol(name) for name in self.arguments]))


def chain(given: Iterable[str], outputs: Iterable[str], using: Mapping[str, str] | None = None) -> tuple[Step, ...]:
    """Return the steps that compute ``outputs`` from ``given``, each after all it needs.

    Parameters
    ----------
    given
        Quantities whose values are known; a given quantity is never computed.
    outputs
        Quantities asked for.
    using
        Which rival model stands for a quantity: ``{"checkpoint_interval_s": "checkpoint_interval_daly_s"}``.

    Raises
    ------
    UnknownQuantity
        If a name is not in the vocabulary.
    MissingQuantity
        If an input is missing; the message names it and what it would unlock.
    CycleError
        If a choice makes a quantity depend on itself.

    >>> [step.quantity for step in chain({"accelerators", "accelerator_mtbf_s"}, ["failures_per_day"])]
    ['cluster_mtbf_s', 'failures_per_day']
    """
    return _chain(frozenset(given), tuple(outputs), tuple(sorted((using or {}).items())))


@lru_cache(maxsize=512)
def _chain(given: frozenset[str], outputs: tuple[str, ...], using: tuple[tuple[str, str], ...]) -> tuple[Step, ...]:
    known = _steps(using)
    needs, users = _needs(given, outputs, known)
    if any(name not in known for name in needs):
        known = {**_constants(), **known}
        needs, users = _needs(given, outputs, known)
    if any(name not in known for name in needs):
        raise _missing(outputs, given, users, needs)
    try:
        order = tuple(graphlib.TopologicalSorter(needs).static_order())
    except graphlib.CycleError as error:
        raise CycleError(
            f"{' <- '.join(error.args[1])}: computed from itself; choose another model or give a value"
        ) from None
    return tuple(known[name] for name in order if name not in given)


def _needs(
    given: Collection[str], outputs: Iterable[str], known: Mapping[str, Step]
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]]]:
    needs: dict[str, tuple[str, ...]] = {}
    users: dict[str, list[str]] = {}
    open_names = [quantity(name).name for name in outputs]
    while open_names:
        name = open_names.pop()
        if name in needs or name in given:
            continue
        step = known.get(name)
        needs[name] = step.arguments if step else ()
        for needed in needs[name]:
            users.setdefault(needed, []).append(name)
            open_names.append(needed)
    return needs, users


@cache
def _constants() -> Mapping[str, Step]:
    """Return the constants of the performance model as steps that need nothing."""
    from factorykit.model.supply.fitted import constants

    return {name: Step(name, partial(_itself, value), ()) for name, value in constants().items()}


@cache
def _neutral() -> dict[str, Step]:
    """Return what holds where nobody says otherwise as steps that need nothing."""
    return {name: Step(name, partial(_itself, value), ()) for name, value in neutral().items()}


def available(given: Iterable[str], using: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return every quantity that can be computed from ``given``, in the order of the vocabulary.

    What is neutral, such as no experts, and the constants of the performance
    model are used where a model's ``layers`` are given, and not listed.

    >>> available({"accelerators", "accelerator_mtbf_s"})[:2]
    ('cluster_mtbf_s', 'failures_per_day')
    """
    reached = set(given)
    known = dict(_steps(tuple(sorted((using or {}).items()))))
    if "layers" in reached:
        known = {**_constants(), **known}
    else:
        known = {name: step for name, step in known.items() if step.arguments}
    while new := {name for name, step in known.items() if name not in reached and reached.issuperset(step.arguments)}:
        reached |= new
    said = set(given) | {name for name, step in known.items() if not step.arguments}
    return tuple(name for name in vocabulary() if name in reached - said)


def leaves(steps: Collection[Step]) -> tuple[str, ...]:
    """Return what the steps need and do not compute themselves, each once."""
    computed = {step.quantity for step in steps}
    return tuple(dict.fromkeys(name for step in steps for name in step.arguments if name not in computed))


@cache
def _steps(using: tuple[tuple[str, str], ...]) -> Mapping[str, Step]:
    steps = {name: Step(name, formula, arguments(formula)) for name, formula in catalogue().items()}
    return _neutral() | steps | {name: Step(name, _itself, (rival,)) for name, rival in using}


def _itself(value: Any) -> Any:
    return value


def choice(name: str, rival: str) -> str:
    """Return ``rival`` if it can stand for the quantity ``name``.

    Raises
    ------
    UnknownQuantity, ScenarioError
        If ``rival`` is no formula, or counts in another unit.

    >>> choice("goodput", "ettr")
    'ettr'
    """
    if rival not in vocabulary():
        wanted = f"neither a number ({quantity(name).described}) nor a formula"
        raise UnknownQuantity(f"{name} = {rival!r} is {wanted}: {unknown_quantity(rival)}")
    if rival not in catalogue() or rival == name:
        raise ScenarioError(f"{name} = {rival!r} is no formula; name a quantity that is computed, or give a number")
    if quantity(rival).unit != quantity(name).unit:
        raise ScenarioError(
            f"{name} = {rival!r} is in {quantity(rival).spoken_unit}, not in {quantity(name).spoken_unit}"
        )
    return rival


def _missing(
    outputs: tuple[str, ...],
    given: Collection[str],
    users: Mapping[str, list[str]],
    needs: Mapping[str, tuple[str, ...]],
) -> MissingQuantity:
    """Return the error for what nobody gave.

    A quantity that may be given or computed, and towards which nothing was given, is asked for itself: whoever said
    nothing of an architecture is asked for the parameters, not for twenty widths.
    """

    def leaves_of(name: str) -> set[str]:
        if name in neutral() or name in _constants():
            return set()
        if name in given or name not in catalogue():
            return {name}
        return set().union(*(leaves_of(needed) for needed in needs[name]))

    def stands_for_its_leaves(name: str) -> bool:
        found = leaves_of(name)
        return bool(found) and not quantity(name).is_derived and name not in outputs and found.isdisjoint(given)

    asked: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in given:
            return
        if name in neutral() or name in _constants():
            return
        if name not in catalogue() or stands_for_its_leaves(name):
            asked[name] = None
            return
        for needed in needs[name]:
            visit(needed)

    for output in outputs:
        visit(output)
    wanted = [f"{name} ({quantity(name).described}){_unlocks(users.get(name))}" for name in asked]
    computed = {name: sorted(leaves_of(name) - set(asked)) for name in asked if name in catalogue()}
    instead = "".join(f"; {name} follows from {', '.join(found)}" for name, found in computed.items() if found)
    above = [name for name in needs if _may_be_given(name, outputs) and not leaves_of(name).isdisjoint(asked)]
    itself = f"; or give {' or '.join(above)} itself" if above else ""
    return MissingQuantity(f"{', '.join(outputs)} cannot be computed: give {', '.join(wanted)}{instead}{itself}", asked)


def _may_be_given(name: str, outputs: Collection[str]) -> bool:
    return name in catalogue() and name not in outputs and not quantity(name).is_derived


def _unlocks(users: list[str] | None) -> str:
    return f" for {' and '.join(dict.fromkeys(users))}" if users else ""
