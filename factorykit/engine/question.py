"""Questions to the engine: inputs read and checked once, resolved into a chain of steps, and run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from factorykit.core import plausibility
from factorykit.core.errors import (
    CycleError,
    FactorykitError,
    MissingQuantity,
    ScenarioError,
    nearest,
    short_repr,
)
from factorykit.core.units import example
from factorykit.core.validation import boolean, frame_schema, is_frame, mapping, polars_frame, strings
from factorykit.core.vocabulary import Quantity, begins_with_digit, quantity, vocabulary
from factorykit.data.identifiers import identify
from factorykit.engine import assumptions, floats, frames, unused
from factorykit.engine.answer import Answer
from factorykit.engine.emit import sql
from factorykit.engine.emit.javascript import chain_function
from factorykit.engine.emit.vega import Program
from factorykit.engine.explanation import Explanation, explained
from factorykit.engine.grids import Gridded
from factorykit.engine.resolve import Resolution, Shape, resolve
from factorykit.engine.run import add_columns, compute, fold
from factorykit.engine.step import Step

if TYPE_CHECKING:
    import polars as pl

    from factorykit.core._names import QuantityName

Outputs: TypeAlias = "QuantityName | str | Iterable[QuantityName | str] | None"


@dataclass(frozen=True)
class Question:
    """Checked inputs and the outputs that are asked for.

    ``values`` are the same for all rows; ``varying`` quantities are given with values that differ by row, such as the
    columns of ``frame`` or the axes of a grid. ``using`` maps quantities to alternative models. ``outputs`` of None ask
    for everything that the inputs determine.
    """

    values: Mapping[str, float | str]
    using: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] | None = None
    assume: bool = False
    varying: frozenset[str] = frozenset()
    frame: Any = None
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def read(
        cls,
        inputs: Any,
        outputs: Outputs = None,
        *,
        using: Mapping[str, str] | None = None,
        assume: bool = False,
        varying: Iterable[str] = (),
    ) -> Question:
        """Return the question of a mapping, a DataFrame or a LazyFrame, with names, units and bounds checked.

        Parameters
        ----------
        inputs
            Quantities with numbers, words or texts with units, or a frame with a column for each; in a mapping the name
            of an alternative model may stand for a number.
        outputs
            One quantity or several; None for everything that the inputs determine.
        using
            Alternative models by quantity.
        assume
            Whether defaults fill missing inputs.
        varying
            Quantities given elsewhere, with values that differ by row; a value among ``inputs`` is left out.

        Raises
        ------
        UnknownQuantity, UnknownName, ScenarioError
        """
        models, asked = read_models(using), read_outputs(outputs)
        boolean("assume", assume)
        inputs = polars_frame(inputs)
        if is_frame(inputs):
            names = frozenset(name for name in frame_schema("inputs", inputs) if name in vocabulary())
            _check_given_once(names, models)
            question = cls({}, models, asked, assume, names, inputs)
            question.check_used()
            return question
        if not isinstance(inputs, Mapping):
            expected = "a mapping such as {'parameters': '70B', 'accelerators': 512}, or a frame"
            raise ScenarioError(f"inputs must be {expected}, got {short_repr(inputs)}")
        values: dict[str, float | str] = {}
        skipped = frozenset(varying)
        for name, given in mapping("inputs", inputs).items():
            row = quantity(name)
            if name in skipped:
                continue
            if isinstance(given, str) and not row.is_text and not begins_with_digit(given):
                models = {name: read_model(row, given)} | models
            else:
                values[name] = read_value(row, given)
        _check_given_once({*values, *skipped}, models)
        plausibility.warn_unusual(values)
        sources = getattr(inputs, "sources", {})
        names = frozenset(name for name in skipped if name in vocabulary())
        question = cls(values, models, asked, assume, names, sources=sources)
        question.check_used()
        return question

    def asking(self, *outputs: str) -> Question:
        """Return the question with other outputs."""
        return replace(self, outputs=outputs)

    def without(self, *names: str) -> Question:
        """Return the question without some of its values."""
        return replace(self, values={name: value for name, value in self.values.items() if name not in names})

    def get(self, *names: str) -> dict[str, Any] | None:
        """Return these quantities, given or computed, or None if one of them is missing."""
        try:
            return self.asking(*names).resolve().run()
        except MissingQuantity:
            return None

    def over(self, names: Iterable[str]) -> Question:
        """Return the question with these quantities given by row, instead of their values and models."""
        names = frozenset(name for name in names if name in vocabulary())
        values = {name: value for name, value in self.values.items() if name not in names}
        using = {name: model for name, model in self.using.items() if name not in names}
        return replace(self, values=values, using=using, varying=self.varying | names)

    def on(self, frame: pl.DataFrame | pl.LazyFrame) -> Question:
        """Return the question asked of every row of a frame."""
        return replace(self.over(frame_schema("rows", frame)), frame=frame)

    def describe(self) -> dict[str, Any]:
        """Return the question as values that can be written as JSON."""
        outputs = None if self.outputs is None else list(self.outputs)
        return {"inputs": dict(self.values), "outputs": outputs, "using": dict(self.using), "assume": self.assume}

    def shape(self) -> Shape:
        """Return the part of the question that decides the steps."""
        given = frozenset((*self.values, *self.varying))
        words = tuple(sorted((name, word) for name, word in self.values.items() if isinstance(word, str)))
        return Shape(given, words, tuple(sorted(self.using.items())), self.outputs, self.assume)

    def check_consistency(self) -> None:
        """Raise a ScenarioError if values contradict each other."""
        floats.check_consistency(replace(self.shape(), given=frozenset(self.values)), self.values)

    def check_used(self) -> None:
        """Refuse values that contradict each other or an assumption, or that are not used where others are assumed.

        With several outputs, and of the columns of a frame, those that are not used cause a warning. Values of a preset
        or of a known model, which have a source, are excepted.
        """
        if self.outputs is not None:
            with suppress(MissingQuantity, CycleError):
                try:
                    unused.check_used(self.shape(), self.values, self.sources, is_frame=self.frame is not None)
                except ScenarioError:
                    self.check_consistency()
                    raise

    def resolve(self) -> Chain:
        """Return the chain of steps to the outputs.

        Raises
        ------
        MissingQuantity, CycleError
            If the inputs do not lead to the outputs.
        ScenarioError
            If the values contradict each other.
        """
        shape = self.shape()
        if not self.varying:
            floats.check_consistency(shape, self.values)
        try:
            resolution = resolve(shape)
        except MissingQuantity as error:
            if self.frame is None:
                raise
            raise MissingQuantity(f"{error}{_similar_columns(error.missing, self.frame)}", error.missing) from None
        return Chain(self, resolution)


@dataclass(frozen=True)
class Chain:
    """The steps that answer a question."""

    question: Question
    resolution: Resolution

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs asked for."""
        return self.resolution.outputs

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in order of computation."""
        return self.resolution.steps

    @cached_property
    def _folded(self) -> tuple[dict[str, Any], tuple[Step, ...]]:
        return fold(self.steps, self.question.values)

    @property
    def known(self) -> dict[str, Any]:
        """The values and the results that depend on them alone."""
        return self._folded[0]

    @property
    def open_steps(self) -> tuple[Step, ...]:
        """The steps that depend on varying quantities, with the known values put in."""
        return self._folded[1]

    @property
    def columns(self) -> list[str]:
        """The outputs that are computed, in order, each once."""
        return [name for name in dict.fromkeys(self.outputs) if name in self.resolution.computed]

    def run(self) -> Any:
        """Return the outputs: a dict for a mapping, the frame with further columns for a frame.

        Raises
        ------
        ScenarioError
            If a value or a result is invalid; in a LazyFrame the outputs that depend on it are null instead.

        Warns
        -----
        FactorykitWarning
            If a value is unusual, a result infinite, or a formula used outside its validity range.
        """
        if self.question.frame is None:
            results = self.results()
            floats.warn_of_results(self.resolution, results)
            return Answer((name, results[name]) for name in self.outputs)
        if getattr(self.question.frame, "height", 1) == 0:
            raise ScenarioError("the frame has no rows; give at least one")
        frame = frames.prepare(self.question.frame, self.resolution)
        if not hasattr(frame, "height"):
            return frames.evaluate_lazy(frame, self.resolution, self.question.values)
        rows, valid = frames.evaluate_eager(frame, self.resolution, self.question.values)
        if not valid.all():
            self._refuse(frame, valid)
        return rows

    def _refuse(self, frame: pl.DataFrame, valid: pl.Series) -> None:
        """Raise the error that the first invalid row causes by itself."""
        number = valid.arg_min() or 0
        row = frame.row(number, named=True)
        invalid = len(valid) - valid.sum()
        where = f"row {number} ({invalid} of {len(valid)} rows are invalid)" if len(valid) > 1 else f"row {number}"
        given = {name: value for name, value in row.items() if name in self.question.varying}
        question = replace(self.question, frame=None, varying=frozenset())
        try:
            values = {name: read_value(quantity(name), value) for name, value in given.items()}
            replace(question, values={**self.question.values, **values}).resolve().results()
        except FactorykitError as error:
            missing = (error.missing,) if isinstance(error, MissingQuantity) else ()
            raise type(error)(f"{where}: {error}", *missing) from None
        raise ScenarioError(f"{where}: {', '.join(self.outputs)} cannot be computed there; evaluate this row by itself")

    def results(self) -> dict[str, Any]:
        """Return the values and the result of every step, checked."""
        results = compute(self.steps, self.question.values)
        floats.check(self.resolution, results)
        return results

    def compute(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the known values, the given ones and the results of the open steps, without checks."""
        return compute(self.open_steps, {**self.known, **values})

    def extend(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return rows of the varying quantities with a column for every open step, without checks."""
        return add_columns(rows, self.open_steps)

    def grid(self, axes: Mapping[str, pl.Series], columns: Iterable[str]) -> Gridded:
        """Return the runner of every combination of the values of some axes."""
        return Gridded(self.resolution, axes, self.question.values, columns)

    def explain(self) -> Explanation:
        """Return the steps with values, units, formulas and sources."""
        results = self.results()
        floats.warn_of_results(self.resolution, results)
        return explained(self.resolution, results, self.question.sources)

    def assumed(self) -> pl.DataFrame:
        """Return the defaults and neutral values that are used, each with its source."""
        steps = self.steps if self.question.frame is None else [step for step in self.steps if not step.arguments]
        results = compute(steps, self.question.values)
        return assumptions.table_of(self.resolution, results, self.question.sources)

    def to_sql(self, relation: str) -> str:
        """Return a DuckDB query of a table or view with a column for each of the varying quantities."""
        return sql.query(relation, self.open_steps, {name: self.known.get(name) for name in self.columns})

    def to_javascript(self, name: str = "chain") -> str:
        """Return a JavaScript function of the given quantities that returns them and the result of every step."""
        return chain_function(self.steps, name)

    def to_vega(
        self, program: Program, have: Mapping[str, str], words: Mapping[str, Collection[str]]
    ) -> dict[str, str]:
        """Add the steps to a Vega program; return the expression of every quantity. See `Program.compute`."""
        return program.compute(self.steps, have, words)


def read_value(row: Quantity, given: Any) -> float | str:
    """Return a value of a quantity, or raise a ScenarioError or UnknownName; the name of an entity becomes its key."""
    return identify(row.entity, given) if row.entity and isinstance(given, str) else row.check(given)


def read_model(row: Quantity, model: Any) -> str:
    """Return ``model`` if it is an alternative model of a quantity, else raise a ScenarioError.

    >>> read_model(quantity("goodput"), "ettr")
    'ettr'
    """
    if isinstance(model, str) and model in row.alternatives:
        return model
    models = ", ".join(row.alternatives)
    if model in vocabulary():
        expected = f"a number or one of {models}" if models else "a number"
        raise ScenarioError(f"{row.name} = {model!r} is not an alternative model of {row.name}; give {expected}")
    close = nearest(str(model), row.alternatives)
    others = f"; the nearest model of it is {close!r}" if close else f", or a model of it: {models}" if models else ""
    raise ScenarioError(f"{row.name} = {short_repr(model)} is not a number; give one such as '{example(row)}'{others}")


def read_models(using: Mapping[str, str] | None) -> dict[str, str]:
    """Return alternative models by quantity, or raise an UnknownQuantity or ScenarioError."""
    if using is None:
        return {}
    return {name: read_model(quantity(name), model) for name, model in mapping("using", using).items()}


def read_outputs(outputs: Outputs) -> tuple[str, ...] | None:
    """Return the names of the outputs, None for everything, or raise an UnknownQuantity or ScenarioError."""
    if outputs is None:
        return None
    names = strings("outputs", outputs)
    if not names:
        raise ScenarioError("outputs is empty; name at least one quantity, or omit outputs for all of them")
    return tuple(quantity(name).name for name in names)


def _check_given_once(given: Iterable[str], using: Mapping[str, str]) -> None:
    for name in given:
        if name in using:
            raise ScenarioError(f"{name} is given and also computed with {using[name]}; drop one of them")


def _similar_columns(missing: Iterable[str], frame: Any) -> str:
    unknown = [name for name in frame_schema("inputs", frame) if name not in vocabulary()]
    pairs = [(near, name) for name in missing if (near := nearest(name, unknown))]
    return "".join(f" (column {near!r} is not a quantity; did you mean {name}?)" for near, name in pairs)
