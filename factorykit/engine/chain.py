"""A question resolved: which steps lead from what is given to what is asked, and what nobody said on the way.

The names alone wire the formulas. A cell of a table, a fitted constant and a default are steps like a formula, so that
every verb reads one chain: floats, columns, explanations and charts cannot differ in what they take for given.
"""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from factorykit.core.errors import CycleError, MissingQuantity, ScenarioError, UnknownQuantity, short_repr
from factorykit.core.validation import boolean
from factorykit.core.vocabulary import neutral_values, quantity, unknown_quantity_message, vocabulary
from factorykit.formulas import arguments, catalogue
from factorykit.formulas.expressions import Symbol, Term, term

FORMULA: Final = "formula"
RIVAL: Final = "rival"
CELL: Final = "cell"
FITTED: Final = "fitted"
NEUTRAL: Final = "neutral"
ASSUMED: Final = "assumed"

OF_A_LAYOUT: Final = MappingProxyType({"training_s": "training_stepped_s", "mfu": "predicted_mfu"})
"""What a layout says of a whole run, unless somebody says otherwise."""
DIVIDES: Final = frozenset(
    {"tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "zero_stage", "micro_batch_size"}
)
"""How a model may be divided; who gives one of these has a layout."""
OF_THE_PLANT: Final = frozenset(
    {
        "precision",
        "network_topology",
        "network_rails",
        "network_oversubscription",
        "cube_side",
        "circuit_switch_ports",
        "circuit_switch_power_w",
        "circuit_switch_usd",
    }
)
"""What is neutral of a plant without a model, too."""


@dataclass(frozen=True, slots=True)
class Step:
    """One quantity, the formula that returns it, the quantities it needs, and where it comes from."""

    quantity: str
    formula: Callable[..., Any]
    arguments: tuple[str, ...]
    origin: str = FORMULA

    @property
    def term(self) -> Term:
        """The formula over symbols, ready to be printed."""
        return term(self.formula(*[Symbol(name) for name in self.arguments]))


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of what: names that are given, words among them that are known, rivals, outputs, defaults or not.

    ``outputs`` of None ask for everything that the inputs allow. Without ``fitted`` the constants of the performance
    model are left out, whose table need not be read then.
    """

    given: frozenset[str]
    words: tuple[tuple[str, str], ...]
    using: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...] | None
    assume: bool = False
    fitted: bool = True


@dataclass(frozen=True, slots=True)
class Chain:
    """The steps that answer a question, each after all it needs, and what they answer."""

    question: Question
    outputs: tuple[str, ...]
    steps: tuple[Step, ...]
    computed: frozenset[str]

    @property
    def leaves(self) -> tuple[str, ...]:
        """What the steps need and do not compute, and the outputs that were given, each once."""
        return tuple(dict.fromkeys((*leaves(self.steps), *(n for n in self.outputs if n not in self.computed))))

    @property
    def assumed(self) -> tuple[str, ...]:
        """What nobody gave and a default stands for."""
        return tuple(step.quantity for step in self.steps if step.origin == ASSUMED)

    @property
    def inputs(self) -> frozenset[str]:
        """What is given and used, and what is assumed whatever else is given."""
        alone = (step.quantity for step in self.steps if step.origin == ASSUMED and not step.arguments)
        return frozenset((*self.leaves, *alone))


def ask(
    given: Iterable[str],
    outputs: Iterable[str] | None,
    using: Mapping[str, str] | None = None,
    words: Mapping[str, Any] | None = None,
    *,
    assume: bool = False,
    fitted: bool = True,
) -> Chain:
    """Return the chain that computes ``outputs`` from ``given``.

    Parameters
    ----------
    given
        Quantities whose values are known; a given quantity is never computed.
    outputs
        Quantities asked for; None for everything that the inputs allow.
    using
        Which rival model stands for a quantity: ``{"checkpoint_interval_s": "checkpoint_interval_daly_s"}``.
    words
        Words among the given values, such as the accelerator, that are the same for all rows.
    assume
        Whether gaps are filled by sourced defaults.
    fitted
        Whether the constants of the performance model may be used.

    Raises
    ------
    UnknownQuantity
        If a name is not in the vocabulary.
    MissingQuantity
        If an input is missing; the message names it and what it would unlock.
    CycleError
        If a choice makes a quantity depend on itself.

    >>> [step.quantity for step in ask({"accelerators", "accelerator_mtbf_s"}, ["failures_per_day"]).steps]
    ['cluster_mtbf_s', 'failures_per_day']
    """
    boolean("assume", assume)
    known = tuple(sorted((name, word) for name, word in (words or {}).items() if quantity(name).is_text))
    rivals = tuple(sorted((using or {}).items()))
    asked = None if outputs is None else tuple(outputs)
    return resolve(Question(frozenset(given), known, rivals, asked, assume, fitted))


@lru_cache(maxsize=1024)
def resolve(question: Question) -> Chain:
    """Return the chain of a question; a question of known shape is answered from memory."""
    given, outputs = question.given, question.outputs
    if outputs is None:
        outputs = _available(question)
    known = _Known(question)
    needs, users = _needs(given, outputs, known)
    while any(name not in known for name in needs):
        gap = _gap(outputs, question.given, needs, known)
        if not question.assume or not (known.predict(gap.asked) or known.assume(gap.asked) or known.assume(gap.above)):
            raise _missing(gap, outputs, question, users, known)
        needs, users = _needs(given, outputs, known)
    try:
        order = tuple(graphlib.TopologicalSorter(needs).static_order())
    except graphlib.CycleError as error:
        raise CycleError(
            f"{' <- '.join(error.args[1])}: computed from itself; choose another model or give a value"
        ) from None
    steps = tuple(known[name] for name in order if name not in given)
    return Chain(question, outputs, steps, frozenset(step.quantity for step in steps))


class _Known:
    """The step to every quantity: a rival goes before a cell, a cell before a formula, a formula before a constant."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.using = {name: Step(name, _itself, (rival,), RIVAL) for name, rival in question.using}
        self.assumed: dict[str, Step] = {}
        self.formulas = _formulas()

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __getitem__(self, name: str) -> Step:
        step = self.get(name)
        assert step is not None, name
        return step

    def get(self, name: str) -> Step | None:
        """Return the step to a quantity, or None if nothing leads to it."""
        if name in self.using:
            return self.using[name]
        if name in self.assumed:
            return self.assumed[name]
        if "accelerator" in self.question.given and (step := self._cell(name)):
            return step
        return self.formulas.get(name) or (_fitted().get(name) if self.question.fitted else None)

    def _cell(self, name: str) -> Step | None:
        if name == USUAL_PRECISION.quantity:
            return USUAL_PRECISION
        step = _cells().get(name)
        words = {"precision": "bf16", "accelerator": None} | dict(self.question.words)
        if "precision" in self.question.given and "precision" not in dict(self.question.words):
            words["precision"] = None
        return step if step and step.formula.says(words) else None  # type: ignore[attr-defined]

    def lacks(self, name: str) -> bool:
        """Return whether a chip is named and the tables do not say this of it."""
        if "accelerator" not in self.question.given:
            return False
        from factorykit.engine.providers.defaults import of_chip

        return (name in _cells() or of_chip(name) is not None) and self.get(name) is None

    def stands(self, name: str) -> bool:
        """Return whether a default is taken for what defaults below it could compute: for a model and its parts."""
        from factorykit.engine.providers.defaults import is_whole_or_part

        return is_whole_or_part(name) and self._default(name) is not None

    def predict(self, names: Collection[str]) -> bool:
        """Let a layout say what a default would stand for; return whether one does."""
        said = {name: Step(name, _itself, (rival,), RIVAL) for name, rival in OF_A_LAYOUT.items()}
        if said.keys() <= self.using.keys() or said.keys().isdisjoint(names) or not _has_layout(self.question):
            return False
        self.using = said | self.using
        return True

    def assume(self, names: Iterable[str]) -> bool:
        """Fill gaps by defaults; return whether any was filled."""
        filled = {name: step for name in names if (step := self._default(name))}
        self.assumed |= filled
        return bool(filled)

    def _default(self, name: str) -> Step | None:
        from factorykit.engine.providers.defaults import defaults, of_chip, suits

        given = self.question.given
        if name == USUAL_PRECISION.quantity:
            return USUAL_PRECISION
        chip = of_chip(name) if "accelerator" in given else None
        if chip is not None:
            return Step(name, chip, chip.words, ASSUMED) if chip.says(dict(self.question.words)) else None
        if self.lacks(name) or not suits(name, given):
            return None
        row = defaults()[name]
        if row.grows_with in given:
            per = row.value / defaults()[row.grows_with].value
            return Step(name, partial(_times, per), (row.grows_with,), ASSUMED)
        return Step(name, partial(_itself, row.value), (), ASSUMED)


def _has_layout(question: Question) -> bool:
    """Return whether a layout is given whose steps can be timed."""
    if "layers" not in question.given or DIVIDES.isdisjoint(question.given):
        return False
    try:
        resolve(replace(question, outputs=tuple(OF_A_LAYOUT.values())))
    except (MissingQuantity, CycleError):
        return False
    return True


def _needs(
    given: Collection[str], outputs: Iterable[str], known: _Known
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
def _formulas() -> Mapping[str, Step]:
    usual = {name: Step(name, partial(_itself, value), (), NEUTRAL) for name, value in neutral_values().items()}
    return MappingProxyType(
        usual | {name: Step(name, formula, arguments(formula)) for name, formula in catalogue().items()}
    )


@cache
def _fitted() -> Mapping[str, Step]:
    """Return the constants of the performance model as steps that need nothing."""
    from factorykit.engine.providers.constants import constants

    return MappingProxyType(
        {name: Step(name, partial(_itself, value), (), FITTED) for name, value in constants().items()}
    )


@cache
def _cells() -> Mapping[str, Step]:
    """Return what the name of a chip brings as steps that need its name, and the precision where it matters."""
    from factorykit.engine.providers.accelerators import BROUGHT, cell

    return MappingProxyType({name: Step(name, cell(name), cell(name).words, CELL) for name in BROUGHT})


def _available(question: Question) -> tuple[str, ...]:
    """Return every quantity that formulas compute from what is given, in the order of the vocabulary.

    What is neutral, such as no experts, and the constants of the performance model are used where a model's ``layers``
    are given, and not listed; nor are cells of tables.
    """
    question = replace(question, fitted="layers" in question.given)
    known = _Known(question)
    steps = {name: step for name in vocabulary() if (step := known.get(name))}
    supplied = {name for name, step in steps.items() if step.origin in (CELL, FITTED, NEUTRAL)}
    if not question.fitted:
        steps = {name: step for name, step in steps.items() if step.origin != NEUTRAL or name in OF_THE_PLANT}
    reached = set(question.given)
    while new := {name for name, step in steps.items() if name not in reached and reached.issuperset(step.arguments)}:
        reached |= new
    return tuple(name for name in vocabulary() if name in reached - question.given - supplied)


def leaves(steps: Collection[Step]) -> tuple[str, ...]:
    """Return what the steps need and do not compute themselves, each once."""
    computed = {step.quantity for step in steps}
    return tuple(dict.fromkeys(name for step in steps for name in step.arguments if name not in computed))


def _itself(value: Any) -> Any:
    return value


USUAL_PRECISION: Final = Step("precision", partial(_itself, "bf16"), (), NEUTRAL)
"""Runs are in bf16 where a chip or ``assume`` leaves it open and nobody says otherwise."""


def _times(factor: float, value: Any) -> Any:
    return factor * value


def choice(name: str, rival: str) -> str:
    """Return ``rival`` if the vocabulary lists it as a rival of the quantity ``name``.

    Raises
    ------
    UnknownQuantity, ScenarioError
        If ``rival`` is no quantity, or no rival of this one.

    >>> choice("goodput", "ettr")
    'ettr'
    """
    if not isinstance(rival, str) or rival not in vocabulary():
        wanted = f"neither a number ({quantity(name).described}) nor a formula"
        raise UnknownQuantity(f"{name} = {short_repr(rival)} is {wanted}: {unknown_quantity_message(rival)}")
    rivals = quantity(name).alternatives
    if rival not in rivals:
        offered = f"those are {', '.join(rivals)}" if rivals else "it has none"
        raise ScenarioError(f"{name} = {rival!r} is no rival model of {name}; {offered}; or give a number")
    return rival


class _Gap(NamedTuple):
    """What nobody gave: what to ask for, what that would take to compute, and what may be given in its place."""

    asked: tuple[str, ...]
    instead: Mapping[str, tuple[str, ...]]
    above: tuple[str, ...]


def _gap(outputs: tuple[str, ...], given: Collection[str], needs: Mapping[str, tuple[str, ...]], known: _Known) -> _Gap:
    """Return what nobody gave.

    A quantity that may be given or computed, and towards which nothing was given, is asked for itself: whoever said
    nothing of an architecture is asked for the parameters, not for twenty widths.
    """

    @cache
    def leaves_of(name: str) -> frozenset[str]:
        leaves, left, seen = set(), [name], set()
        while left:  # and not by recursion: rivals may need each other, which is refused elsewhere
            each = left.pop()
            if each in given or known.get(each) is None:
                leaves.add(each)
            elif each not in seen:
                seen.add(each)
                left += needs[each]
        return frozenset(leaves)

    def stands_for_its_leaves(name: str) -> bool:
        if known.question.assume and not known.stands(name):
            return False
        found = leaves_of(name)
        return bool(found) and not quantity(name).is_derived and name not in outputs and found.isdisjoint(given)

    asked: dict[str, None] = {}
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in given or name in seen:
            return
        seen.add(name)
        step = known.get(name)
        if step is None or (step.origin == FORMULA and stands_for_its_leaves(name)):
            asked[name] = None
            return
        for needed in needs[name]:
            visit(needed)

    for output in outputs:
        visit(output)
    instead = {name: tuple(sorted(leaves_of(name) - set(asked))) for name in asked if name in known}
    above = (name for name in needs if _may_be_given(name, outputs) and not leaves_of(name).isdisjoint(asked))
    return _Gap(tuple(asked), instead, tuple(above))


def _missing(
    gap: _Gap, outputs: tuple[str, ...], question: Question, users: Mapping[str, list[str]], known: _Known
) -> MissingQuantity:
    if lacking := [name for name in gap.asked if known.lacks(name)]:
        from factorykit.engine.providers.accelerators import unsaid

        return MissingQuantity(unsaid(lacking, dict(question.words)), gap.asked)
    wanted = [f"{name} ({quantity(name).described}){_unlocks(users.get(name))}" for name in gap.asked]
    instead = "".join(f"; {name} follows from {', '.join(found)}" for name, found in gap.instead.items() if found)
    itself = f"; or give {' or '.join(gap.above)} itself" if gap.above else ""
    said = f"{', '.join(outputs)} cannot be computed: give {', '.join(wanted)}{instead}{itself}"
    return MissingQuantity(said, gap.asked)


def _may_be_given(name: str, outputs: Collection[str]) -> bool:
    return name in catalogue() and name not in outputs and not quantity(name).is_derived


def _unlocks(users: list[str] | None) -> str:
    return f" for {' and '.join(dict.fromkeys(users))}" if users else ""
