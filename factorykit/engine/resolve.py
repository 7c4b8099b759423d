"""Resolve a question into an ordered list of steps, filling gaps with defaults.

The names of quantities wire the formulas. Specifications, calibrated constants and defaults are steps like formulas, so
that every verb reads one list of steps, and numbers, columns, explanations and charts cannot differ in their inputs.
"""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from operator import mul
from textwrap import wrap
from types import MappingProxyType
from typing import Final, NamedTuple

from factorykit.core.errors import MAX_LINE, CycleError, MissingQuantity
from factorykit.core.vocabulary import neutral_values, quantity, vocabulary
from factorykit.engine import rules
from factorykit.engine.providers import accelerators, constants, defaults
from factorykit.engine.providers.accelerators import Cell
from factorykit.engine.step import (
    CALIBRATED,
    DEFAULT,
    FORMULA,
    NEUTRAL,
    SPECIFICATION,
    Step,
    alternative,
    constant,
    leaves,
)
from factorykit.formulas import arguments, catalogue
from factorykit.formulas.validity import Validity, validity

MAX_DESCRIBED: Final = 4
"""Missing inputs that a message describes, and their users; of more inputs it lists the names."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a question that decides its steps: names given, words, alternative models, outputs, options.

    ``outputs`` of None ask for everything that the inputs determine. Without ``calibrated`` the constants of the
    performance model are left out, and their table is not read.
    """

    given: frozenset[str]
    words: tuple[tuple[str, str], ...] = ()
    using: tuple[tuple[str, str], ...] = ()
    outputs: tuple[str, ...] | None = None
    assume: bool = False
    calibrated: bool = True


@dataclass(frozen=True, eq=False)
class Resolution:
    """The steps from the given quantities to the outputs, in order of computation."""

    shape: Shape
    outputs: tuple[str, ...]
    steps: tuple[Step, ...]

    @cached_property
    def computed(self) -> frozenset[str]:
        """The quantities that the steps compute."""
        return frozenset(step.quantity for step in self.steps)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The given quantities that the steps or the outputs need, each once."""
        return tuple(dict.fromkeys((*leaves(self.steps), *(n for n in self.outputs if n not in self.computed))))

    @cached_property
    def used(self) -> frozenset[str]:
        """The given quantities that the steps and the rules of a layout need."""
        ruled = self.rules if rules.divides_layout(self.computed) else ()
        return frozenset(self.leaves).union(*(rule.arguments for rule in ruled))

    @cached_property
    def defaults(self) -> tuple[str, ...]:
        """The quantities that a default stands for."""
        return tuple(step.quantity for step in self.steps if step.origin == DEFAULT)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The given quantities that are used, and the defaults that depend on nothing."""
        alone = (step.quantity for step in self.steps if step.origin == DEFAULT and not step.arguments)
        return frozenset((*self.leaves, *alone))

    @cached_property
    def bounds(self) -> tuple[tuple[str, float, float], ...]:
        """The computed numbers with their lower and upper bounds."""
        rows = (quantity(step.quantity) for step in self.steps)
        return tuple((row.name, row.lower, row.upper) for row in rows if not row.is_text)

    @cached_property
    def validities(self) -> tuple[tuple[str, Validity], ...]:
        """The formulas among the steps that state a validity range, each with the range."""
        stated = ((s.quantity, validity(s.quantity)) for s in self.steps if s.origin == FORMULA)
        return tuple((name, limits) for name, limits in stated if limits)

    @cached_property
    def rules(self) -> tuple[rules.Rule, ...]:
        """The rules that the steps and the given quantities must satisfy."""
        return tuple(rules.rules_of(self.computed, self.shape.given))


@lru_cache(maxsize=1024)
def resolve(shape: Shape) -> Resolution:
    """Return the steps that compute the outputs of a shape from the given quantities.

    Raises
    ------
    MissingQuantity
        If an input is missing; the message names it and the quantities that need it.
    CycleError
        If an alternative model makes a quantity depend on itself.

    >>> shape = Shape(frozenset({"accelerators", "accelerator_mtbf_s"}), outputs=("failures_per_day",))
    >>> [step.quantity for step in resolve(shape).steps]
    ['cluster_mtbf_s', 'failures_per_day']
    """
    outputs = _available(shape) if shape.outputs is None else shape.outputs
    supply = _Supply(shape)
    needs, users = _needs(outputs, supply)
    while (is_replaced := supply.take_alternative(needs)) or any(supply.get(name) is None for name in needs):
        if not is_replaced:
            gap = _gap(outputs, needs, supply)
            if not (shape.assume and supply.fill(gap)):
                raise _missing(gap, outputs, users, supply)
        needs, users = _needs(outputs, supply)
    try:
        order = tuple(graphlib.TopologicalSorter(needs).static_order())
    except graphlib.CycleError as error:
        cycle = " <- ".join(error.args[1])
        raise CycleError(f"{cycle}: computed from itself; choose another model or give a value") from None
    return Resolution(shape, outputs, tuple(supply[name] for name in order if name not in shape.given))


@lru_cache(maxsize=512)
def consistency(shape: Shape) -> tuple[tuple[str, tuple[Step, ...]], ...]:
    """Return the given derived quantities that the other given quantities determine too, with the steps to them."""
    pairs = []
    for name in sorted(shape.given):
        if quantity(name).is_derived:
            calibrated = constants.APPLY_WITH in shape.given
            rest = replace(shape, given=shape.given - {name}, outputs=(name,), assume=False, calibrated=calibrated)
            pairs += [(name, resolution.steps)] if (resolution := resolve_or_none(rest)) else []
    return tuple(pairs)


def resolve_or_none(shape: Shape) -> Resolution | None:
    """Return the steps to the outputs, or None where quantities are missing or depend on themselves."""
    try:
        return resolve(shape)
    except (MissingQuantity, CycleError):
        return None


def compared(shape: Shape) -> frozenset[str]:
    """Return the given quantities whose values are compared with each other."""
    return frozenset(given for name, steps in consistency(shape) for given in (name, *leaves(steps)))


def is_of_accelerator(name: str) -> bool:
    """Return whether an accelerator has a value of its own of a quantity: a specification or a default."""
    return name in _specifications() or defaults.by_accelerator(name) is not None


def supplied(name: str, shape: Shape) -> Step | None:
    """Return the step that has a quantity of its own accord or by default, or None if there is none."""
    supply = _Supply(shape)
    return supply.get(name) or supply.default(name)


class _Supply:
    """The step to every quantity.

    Order of precedence: alternative model, specification, formula, calibrated constant. A neutral value counts as a
    formula without arguments.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.words = dict(shape.words)
        self.alternatives = {name: alternative(name, model) for name, model in shape.using}
        self.filled: dict[str, Step] = {}
        self.has_accelerator = accelerators.KEY in shape.given

    def __getitem__(self, name: str) -> Step:
        step = self.get(name)
        assert step is not None, name
        return step

    def get(self, name: str) -> Step | None:
        """Return the step to a quantity, or None if there is none."""
        return (
            self.alternatives.get(name)
            or self.filled.get(name)
            or (self._specification(name) if self.has_accelerator else None)
            or formula_steps().get(name)
            or (_calibrated().get(name) if self.shape.calibrated else None)
        )

    def _specification(self, name: str) -> Step | None:
        step = _specifications().get(name)
        return step if step and self._has(step.formula) else None  # type: ignore[arg-type]

    def _has(self, cell: Cell) -> bool:
        """Return whether a column of a table has a value for the words that are known."""
        given = self.shape.given
        neutral = {name: neutral_values().get(name) for name in cell.words if name not in given}
        return cell.has(neutral | self.words)

    def lacks_specification(self, name: str) -> bool:
        """Return whether an accelerator is given whose tables have no value of this quantity."""
        if not self.has_accelerator:
            return False
        return is_of_accelerator(name) and self.get(name) is None

    def fill(self, gap: _Gap) -> bool:
        """Fill a gap with defaults; return whether there were any."""
        return self._fill(gap.missing) or self._fill(gap.nearest)

    def take_alternative(self, needs: Mapping[str, tuple[str, ...]]) -> bool:
        """Use alternative models whose own inputs are given, where a quantity has no value or leaves out a part.

        Models with the same condition ``used_when`` are used together, such as step time and utilization of a layout.
        Returns whether there is a new one.
        """
        usable = {name: rivals for name, rivals in conditional_alternatives().items() if name in needs}
        usable = {name: [m for m in rivals if self._is_wanted(m)] for name, rivals in usable.items()}
        if not any(usable.values()):
            return False
        unknown = self._unknown(needs)
        for name in needs:
            for model in usable.get(name, ()) if name in unknown else ():
                models = alternatives_used_when(quantity(model).used_when)
                if models.keys().isdisjoint(self.alternatives) and _is_computable(models, self.shape):
                    self.alternatives |= {n: alternative(n, m) for n, m in models.items()}
                    return True
        return False

    def _is_wanted(self, model: str) -> bool:
        return not quantity(model).used_when.isdisjoint(self.shape.given)

    def _unknown(self, needs: Mapping[str, tuple[str, ...]]) -> set[str]:
        """Return the quantities that do not follow from the given ones, and those whose neutral value stands."""
        known = set(self.shape.given)
        steps = {name: step for name in needs if (step := self.get(name)) and step.origin != NEUTRAL}
        neutral = {name for name in needs if name not in steps and self.get(name)}
        while new := {n for n in steps if n not in known and (known | neutral).issuperset(needs[n])}:
            known |= new
        return needs.keys() - known

    def _fill(self, names: Iterable[str]) -> bool:
        new = {name: step for name in names if (step := self.default(name))}
        self.filled |= new
        return bool(new)

    def default(self, name: str) -> Step | None:
        """Return the step to the default of a quantity, or None if it has none or is asked for."""
        column = defaults.by_accelerator(name) if self.has_accelerator else None
        if column is not None:
            return Step(name, column, column.words, DEFAULT) if self._has(column) else None
        row = defaults.defaults().get(name)
        if row is None or self.lacks_specification(name):
            return None
        if row.grows_with and (not row.asked or row.grows_with in {*self.shape.given, *self.alternatives}):
            per = row.value / defaults.defaults()[row.grows_with].value
            return Step(name, partial(mul, per), (row.grows_with,), DEFAULT)
        return None if row.asked else constant(name, row.value, DEFAULT)


@cache
def conditional_alternatives() -> Mapping[str, tuple[str, ...]]:
    """Return the alternative models that replace a missing value when their own inputs are given, by quantity."""
    models = {row.name: tuple(m for m in row.alternatives if quantity(m).used_when) for row in vocabulary().values()}
    return MappingProxyType({name: rivals for name, rivals in models.items() if rivals})


@cache
def alternatives_used_when(condition: frozenset[str]) -> Mapping[str, str]:
    """Return the alternative models with this condition, by quantity."""
    pairs = ((name, model) for name, models in conditional_alternatives().items() for model in models)
    return MappingProxyType({name: model for name, model in pairs if quantity(model).used_when == condition})


def layout_models() -> Mapping[str, str]:
    """Return the alternative models that time a layout, by quantity."""
    return alternatives_used_when(quantity("predicted_mfu").used_when)


def _is_computable(models: Mapping[str, str], shape: Shape) -> bool:
    """Return whether alternative models apply and follow from the given quantities."""
    if not shape.given.isdisjoint(models) or not all(_is_applicable(model, shape.given) for model in models.values()):
        return False
    using = tuple(sorted({**dict(shape.using), **models}.items()))
    return resolve_or_none(replace(shape, outputs=tuple(models.values()), using=using)) is not None


def _needs(outputs: Iterable[str], supply: _Supply) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]]]:
    needs: dict[str, tuple[str, ...]] = {}
    users: dict[str, list[str]] = {}
    open_names = [quantity(name).name for name in outputs]
    while open_names:
        name = open_names.pop()
        if name in needs or name in supply.shape.given:
            continue
        step = supply.get(name)
        needs[name] = step.arguments if step else ()
        for needed in needs[name]:
            users.setdefault(needed, []).append(name)
            open_names.append(needed)
    return needs, users


@cache
def formula_steps() -> Mapping[str, Step]:
    """Return the step of each formula, and of each neutral value, by quantity."""
    neutral = {name: constant(name, value, NEUTRAL) for name, value in neutral_values().items()}
    return MappingProxyType(
        neutral | {name: Step(name, formula, arguments(formula)) for name, formula in catalogue().items()}
    )


@cache
def _calibrated() -> Mapping[str, Step]:
    """Return the constants of the performance model as steps without arguments."""
    return MappingProxyType({name: constant(name, value, CALIBRATED) for name, value in constants.constants().items()})


@cache
def _specifications() -> Mapping[str, Step]:
    """Return the specifications of accelerators as steps that need its name, and the precision where it matters."""
    cells = {name: accelerators.cell(name) for name in accelerators.BROUGHT}
    return MappingProxyType({name: Step(name, cell, cell.words, SPECIFICATION) for name, cell in cells.items()})


def _available(shape: Shape) -> tuple[str, ...]:
    """Return every quantity that formulas compute from the given ones, in the order of the vocabulary.

    Neutral values and calibrated constants are used only beside the quantity they apply with, and are not listed; nor
    are specifications.
    """
    supply = _Supply(replace(shape, calibrated=constants.APPLY_WITH in shape.given))
    steps = {name: step for name in vocabulary() if (step := supply.get(name))}
    supplied = {name for name, step in steps.items() if step.origin in (SPECIFICATION, CALIBRATED, NEUTRAL)}
    steps = {name: step for name, step in steps.items() if step.origin != NEUTRAL or _is_applicable(name, shape.given)}
    steps = {
        name: step
        for name, step in steps.items()
        if not quantity(name).used_when.isdisjoint(shape.given) or not quantity(name).used_when
    }
    reached = set(shape.given)
    while new := {name for name, step in steps.items() if name not in reached and reached.issuperset(step.arguments)}:
        reached |= new
    return tuple(name for name in vocabulary() if name in reached - shape.given - supplied)


def _is_applicable(name: str, given: Collection[str]) -> bool:
    condition = quantity(name).applies_with
    return not condition or condition in given


class _Gap(NamedTuple):
    """The missing quantities, the ways to compute each, and what may replace them.

    Those are the ``nearest`` computed quantities that have a default, and those that are ``enough`` by themselves.
    """

    missing: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    nearest: tuple[str, ...]
    enough: tuple[str, ...]


def _gap(outputs: tuple[str, ...], needs: Mapping[str, tuple[str, ...]], supply: _Supply) -> _Gap:
    """Return the missing quantities.

    A quantity that can be given or computed, and none of whose inputs is given, is missing itself: without any size of
    an architecture the message asks for the parameters, not for twenty widths.
    """
    given = supply.shape.given

    @cache
    def inputs_of(name: str) -> frozenset[str]:
        return frozenset(need for need in _reached((name,), needs) if need in given or supply.get(need) is None)

    def is_missing(name: str) -> bool:
        step = supply.get(name)
        if step is None:
            return True
        if step.origin != FORMULA or (supply.shape.assume and not defaults.is_asked(name)):
            return False
        inputs = inputs_of(name)
        return bool(inputs) and not quantity(name).is_derived and name not in outputs and inputs.isdisjoint(given)

    missing: dict[str, None] = {}
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in given or name in seen:
            return
        seen.add(name)
        if is_missing(name):
            missing[name] = None
            return
        for needed in needs[name]:
            visit(needed)

    for output in outputs:
        visit(output)
    for name in [n for n in missing if inputs_of(n) - {n} and missing.keys() >= inputs_of(n)]:
        del missing[name]  # it follows from the others
    sources = {name: tuple(_ways(name, inputs_of(name) - missing.keys(), supply)) for name in missing}
    free = (n for n in needs if n in catalogue() and n not in {*outputs, *missing} and not quantity(n).is_derived)
    below = {name: behind for name in free if not missing.keys().isdisjoint(behind := _reached(needs[name], needs))}
    filling = {name for name in below if name not in supply.alternatives and supply.default(name)}
    nearest = (name for name, reached in below.items() if name in filling and filling.isdisjoint(reached - {name}))
    enough = (name for name in below if missing.keys().isdisjoint(_reached(outputs, needs, name)))
    return _Gap(tuple(missing), sources, tuple(nearest), tuple(enough))


def _ways(name: str, inputs: Collection[str], supply: _Supply) -> Iterator[str]:
    """Yield the lists of inputs from which a missing quantity follows: of an assumption, a model, and its formula."""
    row = defaults.defaults().get(name)
    if row and row.grows_with and supply.shape.assume:
        yield row.grows_with
    for model in conditional_alternatives().get(name, ()):
        if quantity(model).used_when.issubset(needs := arguments(catalogue()[model])):
            yield ", ".join(need for need in needs if need not in supply.shape.given)
    if inputs and supply.get(name):
        yield ", ".join(sorted(inputs))


def _reached(names: Iterable[str], needs: Mapping[str, tuple[str, ...]], without: str = "") -> set[str]:
    """Return the quantities that some need and themselves, beyond one that is given."""
    # Not recursive: alternative models may form a cycle, refused elsewhere.
    reached, open_names = {without}, list(names)
    while open_names:
        if (name := open_names.pop()) not in reached:
            reached.add(name)
            open_names += needs.get(name, ())
    return reached - {without}


def _missing(gap: _Gap, outputs: tuple[str, ...], users: Mapping[str, list[str]], supply: _Supply) -> MissingQuantity:
    has_default = defaults.defaults().keys() if not supply.shape.assume else ()
    fillable = [name for name in gap.missing if name in has_default and not defaults.is_asked(name)]
    filled = [f"assume=True fills {', '.join(fillable)}"] if fillable else []
    if len(fillable) == len(gap.missing) > 1:
        filled = ["assume=True fills all of them with defaults"]
    if lacking := [name for name in gap.missing if supply.lacks_specification(name)]:
        message = accelerators.missing_message(lacking, supply.words)
        return MissingQuantity("; ".join((message, *(filled if "peak_flop_per_s" not in lacking else ()))), gap.missing)
    head = f"{', '.join(outputs)} cannot be computed: "
    if gap.enough:
        parts = [f"{head}give {' or '.join(gap.enough)}, or all of {', '.join(gap.missing)}"]
    elif len(gap.missing) > MAX_DESCRIBED:
        parts = [f"{head}{len(gap.missing)} inputs are missing: {', '.join(gap.missing)}"]
    else:
        wanted = [f"{name} ({quantity(name).described}){_purpose(users.get(name))}" for name in gap.missing]
        parts = [f"{head}give {', '.join(wanted)}"]
    parts += [f"{name} follows from {' or from '.join(ways)}" for name, ways in gap.sources.items() if ways]
    message = "; ".join((*parts, *filled))
    if len(message) > MAX_LINE:
        message = "\n".join(line for part in (*parts, *filled) for line in wrap(part, MAX_LINE, break_on_hyphens=False))
    return MissingQuantity(message, gap.missing)


def _purpose(users: list[str] | None) -> str:
    return f" for {' and '.join([*dict.fromkeys(users)][:MAX_DESCRIBED])}" if users else ""
