"""Charts that compute: Vega-Lite whose expressions are printed from the model's own formulas.

A :class:`Live` chart knows its sliders, its curves and its presets. From the names alone the graph finds the formulas
between them; an expression without columns becomes a signal, the others become columns. The same specification is
drawn on a page without a kernel and in JupyterLab, where widgets set the same parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import polars as pl

from factorykit.charts import encoding
from factorykit.charts.bundle import SCHEMA
from factorykit.charts.control import Control, control
from factorykit.charts.embed import outputs, summary_lines
from factorykit.charts.theme import INK, PALETTE, config
from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName, unknown_name_message
from factorykit.core.validation import mapping, one_of, strings
from factorykit.core.vocabulary import Quantity, quantity, vocabulary
from factorykit.engine import rules
from factorykit.engine.assumptions import value_source
from factorykit.engine.emit.vega import Program, condition, vega_literal
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.accelerators import chips
from factorykit.engine.question import Chain, Question, read_models, read_value
from factorykit.engine.step import DEFAULT
from factorykit.model.scenario.scenario import Scenario

Presets: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Values to start from, by the label of each preset."""
START: Presets = {"": {"parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384.0}}
"""Size, tokens and count of the run at which charts without presets start: that of Llama 3.1 405B."""
LETTER_PX = 7.5  # widest mean width of a letter of the label
GRID_POINTS = 121
OFF = "off the axis"


@dataclass(frozen=True)
class Case:
    """Alternative models or values for one curve or point of a chart."""

    label: str
    using: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Live:
    """A chart with sliders: curves over one quantity, the present setting on them, rival models beside it.

    Parameters
    ----------
    title
        The question that the chart answers.
    x
        Quantity along the horizontal axis.
    outputs
        Quantities drawn against it, one panel each.
    sliders
        Quantities a reader may move.
    base
        Values to start from, by default the first preset; missing inputs of the curves come from the defaults.
    curves
        One line each. By default a single one.
    points
        Settings to mark, each with its own models.
    readouts
        Quantities whose present value is printed; ``outputs`` by default.
    band
        Relative doubt of inputs, ``{"accelerator_mtbf_s": 0.25}``; drawn around the first curve.
    domain
        Range of ``x``; that of its slider by default.
    y_domain, log
        Fixed range of an output; outputs drawn on a logarithmic axis.
    doubling
        Sliders, and ``x``, that move by factors of two, as degrees of parallelism do.
    only_where
        Quantities and the value of each below which nothing is drawn.
    presets
        Values by name, for a drop-down; those without a name only start.
    menus
        Words among which a reader may choose, by quantity: chips, precisions, schedules.
    key
        Short name of the chart in a shared link.
    source, description
        Where the inputs come from; the chart in a sentence.
    """

    title: str
    x: str
    outputs: tuple[str, ...]
    sliders: tuple[str, ...]
    base: Mapping[str, Any] = field(default_factory=dict)
    curves: tuple[Case, ...] = (Case(""),)
    points: tuple[Case, ...] = ()
    readouts: tuple[str, ...] = ()
    band: Mapping[str, float] = field(default_factory=dict)
    domain: tuple[float, float] | None = None
    y_domain: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    doubling: tuple[str, ...] = ()
    only_where: Mapping[str, float] = field(default_factory=dict)
    presets: Presets = field(default_factory=dict)
    menus: Mapping[str, Sequence[str]] = field(default_factory=dict)
    key: str = "chart"
    source: str = ""
    description: str = ""
    height: int = 300

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", self.base or first_of(self.presets))
        presets = {label: mapping(f"presets: {label}", values) for label, values in self.presets.items() if label}
        object.__setattr__(self, "presets", presets)
        for name in ("outputs", "sliders", "readouts", "log", "doubling"):
            object.__setattr__(self, name, strings(name, getattr(self, name)))
        for name in (self.x, *self.outputs, *self.sliders, *self.readouts, *self.log, *self.doubling):
            quantity(name)
        low, high = self.domain or (1.0, 2.0)
        by_factors = self.x in self.doubling or quantity(self.x).slider_scale == "log"
        if not low < high or (by_factors and low <= 0.0):
            least = ", above 0 since the axis goes by factors" if by_factors else ""
            raise ScenarioError(f"domain = {self.domain}; give two ends, the lower one first{least}")

    @property
    def shown(self) -> tuple[str, ...]:
        """Quantities whose present value is printed."""
        return self.readouts or self.outputs

    @cached_property
    def _start(self) -> Question:
        """The values to start from, and the alternative models that the base names."""
        question = Question.read(self.base, assume=True)
        moved = [name for name in (self.x, *self.sliders) if quantity(name).is_derived]
        question.without(*moved).check_consistency()
        return question

    @cached_property
    def parameters(self) -> dict[str, float | str]:
        """Every input of the chart and its value at the start, in the order of the vocabulary."""
        asked = (*self.outputs, *self.shown, *self.only_where)
        used = set().union(*(self._inputs_of(case, asked) for case in (*self.curves, *self.points)))
        if idle := [name for name in self.sliders if name not in used | {self.x}]:
            raise ScenarioError(
                f"{self.title}: the slider {idle[0]} moves none of {', '.join(self.outputs)}; remove it"
            )
        needed = {*used, *self.sliders, self.x}
        values = {name: self.initial(name, self.base) for name in vocabulary() if name in needed}
        for name, value in values.items():
            if value is None:
                raise MissingQuantity(f"{self.title}: give {name} ({quantity(name).meaning})", [name])
        return {name: quantity(name).check(value) for name, value in values.items()}

    @cached_property
    def assumed(self) -> dict[str, str]:
        """Source of each default that was taken, by quantity."""
        asked = (*self.outputs, *self.shown, *self.only_where)
        steps = {step.quantity: step for case in self.curves for step in self._chain(case, asked).steps}
        return {
            name: value_source(steps[name], self.parameters)
            for name in self.parameters
            if name in steps and steps[name].origin == DEFAULT
        }

    def initial(self, name: str, values: Mapping[str, Any]) -> float | str | None:
        """Return the value of a quantity that ``values`` give or determine, else its default."""
        question = Question.read(values)
        if name in question.values:
            return question.values[name]
        if name == self.x and quantity(name).default is not None:
            return quantity(name).default
        for assume in (False, True):
            with suppress(MissingQuantity):
                using = {other: model for other, model in question.using.items() if other != name}
                return replace(question, using=using, outputs=(name,), assume=assume).resolve().known[name]
        return quantity(name).default

    def _using(self, case: Case) -> dict[str, str]:
        return {n: r for n, r in self._start.using.items() if n not in case.given} | read_models(case.using)

    def _chain(self, case: Case, outputs: Sequence[str]) -> Chain:
        """Return the chain of a case: sliders, the base and its own values are given, defaults fill the rest."""
        given = {*self.sliders, self.x, *self._start.values} - set(case.using) | set(case.given)
        using = {name: rival for name, rival in self._using(case).items() if name not in given}
        words = {n: v for n, v in {**self._start.values, **case.given}.items() if n in given and isinstance(v, str)}
        return Question(words, using, tuple(outputs), assume=True).over(given - words.keys()).resolve()

    def _inputs_of(self, case: Case, outputs: Sequence[str]) -> set[str]:
        """Return the inputs of a case, without those that it sets itself."""
        return set(self._chain(case, outputs).resolution.inputs - set(case.given))

    @cached_property
    def controls(self) -> tuple[Control, ...]:
        """The sliders, in the order asked for."""
        values = {name: float(self.parameters[name]) for name in self.sliders}
        return tuple(control(name, value, doubling=name in self.doubling) for name, value in values.items())

    @cached_property
    def grid(self) -> tuple[float, ...]:
        """Values of ``x`` at which the curves are computed."""
        row = quantity(self.x)
        low, high = self.domain or (row.slider_min or 1.0, row.slider_max or 1.0)
        if self.x in self.doubling:
            return tuple(low * 2.0**i for i in range(math.floor(math.log2(high / low)) + 1))
        parts = [i / (GRID_POINTS - 1) for i in range(GRID_POINTS)]
        values = [low * (high / low) ** p if row.slider_scale == "log" else low + (high - low) * p for p in parts]
        return tuple(float(f"{value:.6g}") for value in values)

    def values(self, changes: Mapping[str, Any] | None = None) -> dict[str, float | str]:
        """Return all inputs with ``changes`` made, each checked.

        Raises
        ------
        UnknownName, ScenarioError
            If a name is no input of this chart, or a value is refused.
        """
        for name in changes or {}:
            quantity(name)
            if name not in self.parameters:
                raise UnknownName(f"{self.title}: {unknown_name_message('input', name, self.parameters)}")
        return self.parameters | {name: read_value(quantity(name), value) for name, value in (changes or {}).items()}

    def scenario(self, changes: Mapping[str, Any] | None = None) -> Scenario:
        """Return the present setting of the first curve as a scenario: inputs, options and alternative models."""
        case = self.curves[0]
        names = tuple(dict.fromkeys((self.x, *self.shown, *self.outputs)))
        chain, inputs = self._chain(case, names), self._inputs(case, self.values(changes), names)
        results = chain.compute(inputs)
        follow = {name: results[name] for name in chain.resolution.defaults}
        models = {n: model for n, model in self._using(case).items() if n in chain.resolution.computed}
        return Scenario.sourced(self.title, follow | inputs | models, self._sources(inputs))

    def _sources(self, inputs: Mapping[str, float | str]) -> dict[str, str]:
        """Return the sources of the values of the base or of a preset, and of defaults; chosen values have none."""
        starts = [
            (Question.read(start).values, getattr(start, "sources", {}))
            for start in (self.base, *self.presets.values())
        ]
        given, sources = max(starts, key=lambda start: sum(inputs.get(n) == value for n, value in start[0].items()))
        chosen = {n for n, value in inputs.items() if value != given.get(n, self.parameters.get(n))}
        return {name: source for name, source in (self.assumed | dict(sources)).items() if name not in chosen}

    def preset(self, label: str) -> dict[str, float | str]:
        """Return all inputs as the preset called ``label`` has them.

        Raises
        ------
        UnknownName
            With the nearest label.
        """
        label = one_of("preset", label, self.presets)
        inputs = {name: self.initial(name, self.presets[label]) for name in self.parameters}
        return self.values({name: value for name, value in inputs.items() if value is not None})

    # The chart as frames: the same grid, through the same formulas.

    def rows(self, changes: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """Return the curves: one row per grid point, ``x`` and one column per output and curve.

        Null means not drawn: see ``only_where``; or a layout that breaks a rule.
        """
        values = self.values(changes)
        frame = pl.DataFrame({self.x: self.grid})
        for curve in self.curves:
            results = self._evaluated(curve, values)
            if self.only_where:
                holds = pl.all_horizontal(pl.col(name) >= least for name, least in self.only_where.items())
                results = results.with_columns(pl.when(holds).then(pl.col(*self.outputs)))
            shown = (results[name].alias(_named(name, curve.label)) for name in self.outputs)
            frame = frame.with_columns(shown)
        columns = [_named(name, curve.label) for name in self.outputs for curve in self.curves]
        return frame.select(self.x, *columns)

    def now(self, changes: Mapping[str, Any] | None = None, case: Case | None = None) -> dict[str, float]:
        """Return ``x`` and the printed quantities at the present setting, as the first curve or ``case`` has them."""
        case = case or self.curves[0]
        names = tuple(dict.fromkeys((self.x, *self.shown, *self.outputs)))
        inputs = self._inputs(case, self.values(changes), names)
        return evaluate(inputs, names, using=self._used(case, inputs), assume=True)

    def _evaluated(self, case: Case, values: Mapping[str, float | str]) -> pl.DataFrame:
        asked = tuple(dict.fromkeys((*self.outputs, *self.only_where)))
        inputs = {name: value for name, value in self._inputs(case, values, asked).items() if name != self.x}
        frame = pl.DataFrame({self.x: self.grid})
        frame = frame.with_columns(pl.lit(value).alias(name) for name, value in inputs.items())
        wanted = [name for name in asked if name not in frame.columns]
        return evaluate(frame.lazy(), wanted, using=self._used(case, inputs), assume=True).collect()

    def _inputs(self, case: Case, values: Mapping[str, float | str], outputs: Sequence[str]) -> dict[str, float | str]:
        """Return the inputs of a case: those that it needs at their present values, and those that it sets itself."""
        needed = self._inputs_of(case, outputs)
        return {name: value for name, value in values.items() if name in needed} | dict(case.given)

    def _used(self, case: Case, inputs: Mapping[str, Any]) -> dict[str, str]:
        return {name: rival for name, rival in self._using(case).items() if name not in inputs}

    def summary(self, changes: Mapping[str, Any] | None = None) -> str:
        """Return the chart as lines of numbers, in the units of the vocabulary."""
        lines = [self.title, *summary_lines(self.rows(changes)), "now", *_pairs(self.now(changes))]
        for point in self.points:
            values = self.now(changes, point)
            lines += [point.label, *_pairs({name: values[name] for name in (self.x, *self.outputs)})]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002
        return outputs(self.payload, self.summary())

    # The chart as a payload for the script.

    @cached_property
    def payload(self) -> dict[str, Any]:
        """Payload for the script: specifications, controls, presets, readouts."""
        return {
            "key": self.key,
            "title": self.title,
            "source": " ".join([*([f"{self.source}."] if self.source else []), *self._doubts()]),
            "specs": [self._without_rows(spec) for spec in self.specs],
            "grid": {"field": self.x, "values": self.grid},
            "config": config(),
            "parameters": self.parameters,
            "bounds": {
                name: sorted(self._words[name]) if quantity(name).is_text else quantity(name).bounds
                for name in self.parameters
            },
            "controls": [control.payload for control in self.controls],
            **({"menus": [self._menu(name) for name in self.menus]} if self.menus else {}),
            "presets": [{"label": label, "values": self.preset(label)} for label in self.presets],
            "readouts": [{"name": name, "label": quantity(name).label} for name in self.shown],
            "assumptions": [
                {"name": name, "label": quantity(name).label}
                | ({"source": self.assumed[name]} if name in self.assumed else {})
                for name in self.parameters
                if name not in (*self.sliders, *self.menus)
            ],
            "columns": self._columns(),
        }

    def _menu(self, name: str) -> dict[str, Any]:
        words = [{"word": word, "label": word_label(name, word)} for word in self.menus[name]]
        return {"name": name, "label": quantity(name).label, "words": words}

    @cached_property
    def specs(self) -> list[dict[str, Any]]:
        """The Vega-Lite specifications, one per output."""
        return [self._spec(output) for output in self.outputs]

    def _without_rows(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the specification without the parts that all panels share: the grid and the theme."""
        curves, hover, points = spec["layer"]
        grid = {"data": {"name": "grid"}}
        return {**spec, "layer": [curves | grid, hover | grid, points], "config": {}}

    def _columns(self) -> list[dict[str, Any]]:
        columns = [{"spec": 0, "field": self.x} | _described(self.x, "")]
        for i, output in enumerate(self.outputs):
            for n, curve in enumerate(self.curves):
                columns.append({"spec": i, "field": f"curve {n}"} | _described(output, curve.label))
        return columns

    def _spec(self, output: str) -> dict[str, Any]:
        program = Program((*self.parameters, self.x))
        present = {name: name for name in self.parameters}
        along = present | {self.x: encoding.datum(self.x)}
        row, x_row = quantity(output), quantity(self.x)
        asked = (output, *self.only_where)
        for n, curve in enumerate(self.curves):
            have = self._printed(program, along, curve, asked)
            program.columns.append({"calculate": self._drawn(have, have[output]), "as": f"curve {n}"})
            program.columns.append({"calculate": self._drawn(have, _scaled(row, have[output])), "as": f"shown {n}"})
        for side in self._sides():
            have = self._printed(program, along | side, self.curves[0], asked)
            name = f"band {len([c for c in program.columns if c['as'].startswith('band')])}"
            program.columns.append({"calculate": self._drawn(have, _scaled(row, have[output])), "as": name})
        program.columns.append({"calculate": _scaled(x_row, encoding.datum(self.x)), "as": "x"})
        marks = [self._mark(program, case, output) for case in self.points]
        now = self._printed(program, present, self.curves[0], (self.x, *self.shown, *asked))
        y = self._drawn(now, _scaled(row, now[output]))
        text = program.emit("label", encoding.text_expression(row, now[output]))
        at = encoding.text_expression(x_row, now[self.x])
        marks.append(self._place(output, now[self.x], y) | {"text": text, "at": at})
        texts = self._texts(now) if output == self.outputs[0] else []
        grid = {"name": "grid", "values": [{self.x: value} for value in self.grid]}
        return {
            "$schema": SCHEMA,
            "description": self.description or self.title,
            "width": "container",
            "height": self.height,
            "params": [{"name": n, "value": v} for n, v in self.parameters.items()] + program.signals + texts,
            "layer": [
                {"data": grid, "transform": program.columns, "layer": self._lines(row)},
                {"data": grid, "transform": program.columns[-1:], **self._hover(row)},
                {"data": {"name": "points", "values": [{}]}, "layer": self._marks(marks)},
            ],
            "config": config(),
        }

    def _texts(self, now: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the signals of the rule that the present layout violates and of the printed values."""
        verdicts = "".join(
            f"!({holds}) ? {vega_literal(f'violates the rule that {rule}')} : "
            for rule, holds in self._rules(now).items()
        )
        texts = [{"name": "broken_rule", "expr": f"{verdicts}''"}]
        for name in dict.fromkeys((*self.parameters, *self.shown)):
            text = encoding.text_expression(quantity(name), now.get(name, name))
            if verdicts and name not in self.parameters:
                text = f"broken_rule ? '–' : {text}"
            texts.append({"name": f"{name}_text", "expr": text})
        return texts

    def _rules(self, have: Mapping[str, str]) -> dict[str, str]:
        """Return the rules of the inputs, and of a layout where one is divided, each with its condition."""
        applicable = rules.rules_of(have.keys() - self.parameters.keys(), have.keys() & self.parameters.keys())
        return {rule.name: condition(rule.holds, have) for rule in applicable}

    def _printed(self, program: Program, have: Mapping[str, str], case: Case, outputs: Sequence[str]) -> dict[str, str]:
        """Return an expression for every quantity of a case: its inputs as ``have`` writes them, and its steps."""
        chain = self._chain(case, outputs)
        stated = {name: vega_literal(value) for name, value in case.given.items()}
        needed = self._inputs_of(case, outputs)
        inputs = {name: text for name, text in have.items() if name in needed}
        return chain.to_vega(program, inputs | stated, self._words)

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        """Every word that a reader can set, by quantity: those of the base, the presets and the cases."""
        used: dict[str, set[str]] = {}
        for values in (self.base, *self.presets.values(), *(case.given for case in (*self.curves, *self.points))):
            for name, word in Question.read(values).values.items():
                if isinstance(word, str):
                    used.setdefault(name, set()).add(word)
        for name, words in self.menus.items():
            used.setdefault(name, set()).update(words)
        return used

    def _doubts(self) -> list[str]:
        names = [f"{quantity(name).label} {100 * spread:g} % lower or higher" for name, spread in self.band.items()]
        return [f"Band: {', '.join(names)}."] if names else []

    def _sides(self) -> list[dict[str, str]]:
        if not self.band:
            return []
        most = {name: min(quantity(name).upper, 1e300) for name in self.band}
        return [
            {name: f"min({name} * {(1.0 + spread) ** power!r}, {most[name]!r})" for name, spread in self.band.items()}
            for power in (-1, 1)
        ]

    def _drawn(self, have: Mapping[str, str], value: str) -> str:
        """Return the expression of ``value``, null where it is not finite, not wanted, or the layout breaks a rule."""
        conditions = [f"isFinite({value})"]
        conditions += [f"{have[name]} >= {least!r}" for name, least in self.only_where.items()]
        conditions += self._rules(have).values()
        return f"({' && '.join(conditions)} ? {value} : null)"

    def _mark(self, program: Program, case: Case, output: str) -> dict[str, str]:
        have = self._printed(program, {name: name for name in self.parameters}, case, (self.x, output))
        place = self._place(output, have[self.x], _scaled(quantity(output), have[output]))
        return place | {"text": vega_literal(case.label)}

    def _place(self, output: str, x: str, y: str) -> dict[str, str]:
        """Return where a mark stands, at the edge of an axis that ends before it, and whether one does."""
        axes, x = self._axes(output), _scaled(quantity(self.x), x)
        ends = {"x": (x, axes["x"]["scale"]["domain"])}
        if "domain" in axes["y"]["scale"]:
            ends["y"] = (y, axes["y"]["scale"]["domain"])
        within = {name: f"clamp({value}, {low!r}, {high!r})" for name, (value, (low, high)) in ends.items()}
        drawn = {name: f"(isValid({ends[name][0]}) ? {kept} : null)" for name, kept in within.items()}
        off = " || ".join(f"{value} != {within[name]}" for name, (value, _) in ends.items())
        return {"y": y} | drawn | {"off": f"({off})"}

    def _axes(self, output: str) -> dict[str, Any]:
        x_row, row = quantity(self.x), quantity(output)
        low, high = (value / x_row.display_scale for value in (self.grid[0], self.grid[-1]))
        x_scale = {"type": x_row.slider_scale or "linear", "domain": [low, high], "nice": False}
        y_scale: dict[str, Any] = {"type": "log"} if output in self.log else {"type": "linear", "zero": True}
        if output in self.y_domain:
            y_scale["domain"] = [value / row.display_scale for value in self.y_domain[output]]
        return {"x": {"field": "x"} | _position("x", x_row, x_scale), "y": _position("y", row, y_scale)}

    def _lines(self, row: Quantity) -> list[dict[str, Any]]:
        axes = self._axes(row.name)
        x = axes["x"]
        layers: list[dict[str, Any]] = []
        if self.band:
            area = {"type": "area", "opacity": 0.18, "clip": True, "color": PALETTE[0]}
            place = {"x": x, "y": axes["y"] | {"field": "band 0"}, "y2": {"field": "band 1"}}
            layers.append({"mark": area, "encoding": place})
        for n, curve in enumerate(self.curves):
            mark = {"type": "line", "clip": True, "strokeDash": [[1, 0], [6, 4], [2, 3]][n % 3]}
            transform, color = self._named(curve)
            place = {"x": x, "y": axes["y"] | {"field": f"shown {n}"}}
            layers.append({"transform": transform, "mark": mark, "encoding": place | color})
        wheel = "wheel![event.ctrlKey || event.metaKey || event.shiftKey]"
        layers[-1]["params"] = [{"name": "zoom", "select": {"type": "interval", "zoom": wheel}, "bind": "scales"}]
        return layers

    def _hover(self, row: Quantity) -> dict[str, Any]:
        """Return a rule at the nearest grid point; it hangs on the grid alone, so that no slider draws it again."""
        pick = {"type": "point", "on": "pointermove", "clear": "pointerout", "nearest": True, "fields": [self.x]}
        return {
            "params": [{"name": "hover", "select": pick}],
            "mark": {"type": "rule", "tooltip": {"content": "data"}, "color": INK},
            "encoding": {
                "x": self._axes(row.name)["x"],
                "opacity": {"condition": {"param": "hover", "empty": False, "value": 0.35}, "value": 0},
            },
        }

    def _named(self, case: Case) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Return the transform and the colour that give a case its place in the legend."""
        labels = [case.label for case in (*self.curves, *self.points) if case.label]
        if not case.label:
            return [], {"color": {"value": PALETTE[0]}}
        first = 0 if self.curves[0].label else 1
        scale = {"domain": labels, "range": list(PALETTE[first : first + len(labels)])}
        color = {"field": "case", "type": "nominal", "scale": scale, "legend": {"symbolOpacity": 1}}
        return [{"calculate": vega_literal(case.label), "as": "case"}], {"color": color}

    def _marks(self, marks: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
        *others, now = marks
        axes = {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}}
        shapes = ("circle", "diamond", "triangle-up", "square")
        layers: list[dict[str, Any]] = []
        for n, (case, mark) in enumerate(zip(self.points, others, strict=True)):
            transform, color = self._named(case)
            named = {"calculate": f"{mark['off']} ? {mark['text']} + ', {OFF}' : ''", "as": "text"}
            drawn = {"type": "point", "shape": shapes[n % 4], "clip": True, "size": 240 - 80 * n, "opacity": 1}
            both = [{"mark": drawn, "encoding": axes | color}, _beside(axes, dy=14 * (n + 1))]
            layers.append({"transform": [*transform, *_calculated(mark), named], "layer": both})
        text = f"{now['text']} + ({now['off']} ? ', {OFF} at ' + {now['at']} : '')"
        rule = {"type": "rule", "strokeDash": [3, 3], "opacity": 0.6, "clip": True}
        point = {"type": "point", "filled": True, "size": 90, "color": INK, "clip": True}
        words = _beside(axes, dy=-10, fontWeight=600)
        last = [{"mark": rule, "encoding": {"x": axes["x"]}}, {"mark": point, "encoding": axes}, words]
        return [*layers, {"transform": [*_calculated(now), {"calculate": text, "as": "text"}], "layer": last}]


def first_of(presets: Presets | None) -> Mapping[str, Any]:
    """Return the first preset of a chart, or an empty one.

    >>> first_of({"a": {"mfu": 0.4}, "b": {}}), first_of(None)
    ({'mfu': 0.4}, {})
    """
    return next(iter((presets or {"": {}}).values()))


def _calculated(mark: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"calculate": mark[name], "as": name} for name in ("x", "y")]


def _beside(axes: Mapping[str, Any], **look: float) -> dict[str, Any]:
    """Return the text beside a mark, on its left where there is no room on its right."""
    late = f"scale('x', datum.x) + 8 + {LETTER_PX} * length(datum.text) > width"
    sides = {"dx": {"expr": f"{late} ? -8 : 8"}, "align": {"expr": f"{late} ? 'right' : 'left'"}}
    return {"mark": {"type": "text"} | sides | look, "encoding": {**axes, "text": {"field": "text"}}}


def word_label(name: str, word: str) -> str:
    """Return the label of an option: the name of a chip, else the option itself."""
    return str(chips()[word]["name"]) if name == "accelerator" else word


def _position(channel: str, row: Quantity, scale: Mapping[str, Any]) -> dict[str, Any]:
    axis = encoding.axis(row, channel, scale["type"])
    return {"type": "quantitative", "title": encoding.axis_title(row), "scale": scale, "axis": axis}


def _scaled(row: Quantity, value: str) -> str:
    return f"{value} / {row.display_scale!r}" if row.display_scale != 1.0 else value


def _named(name: str, label: str) -> str:
    return f"{name} ({label})" if label else name


def _described(name: str, label: str) -> dict[str, Any]:
    row = quantity(name)
    title = f"{row.title}, {label}" if label else row.title
    return {"name": _named(name, label), "title": title, "scale": row.display_scale}


def _pairs(values: Mapping[str, float]) -> list[str]:
    width = max(map(len, values))
    return [f"  {name:<{width}}  {value:.6g}" for name, value in values.items()]
