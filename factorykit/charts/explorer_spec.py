"""Live charts from names alone: outputs, axis and the sliders with the largest effect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import polars as pl

from factorykit.charts.live import Case, Live
from factorykit.core.errors import FactorykitError, ScenarioError
from factorykit.core.validation import mapping, strings
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.accelerators import chips
from factorykit.engine.providers.defaults import is_asked
from factorykit.engine.question import Question, read_models
from factorykit.model.scenario.presets import preset
from factorykit.model.scenario.scenario import Scenario

MOST_SLIDERS: Final = 6
NUDGE: Final = 1.01
"""Factor by which an input is changed to measure its effect."""
DECADES: Final = 100.0
"""Ratio of a curve's ends from which its axis is logarithmic."""


def exploring(
    inputs: Mapping[str, Any] | str,
    *outputs: str | Iterable[str],
    over: str | None = None,
    sliders: Iterable[str] | None = None,
    against: Iterable[str] | Mapping[str, Mapping[str, Any]] = (),
    using: Mapping[str, str] | None = None,
) -> Live:
    """Return the live chart of outputs over one input; see :func:`factorykit.explore`.

    >>> exploring("llama_3_1_405b", "goodput", over="checkpoint_interval_s").sliders[0]
    'checkpoint_interval_s'
    """
    start = preset(inputs) if isinstance(inputs, str) else mapping("inputs", inputs)
    label = getattr(start, "label", "")
    drawn = tuple(quantity(name).name for each in outputs for name in strings("outputs", each)) or ("wall_days",)
    base = {name: value for name, value in start.items() if name not in drawn} | read_models(using)
    chosen = () if sliders is None else strings("sliders", sliders)
    moved = map(quantity, chosen if over is None else (over, *chosen))
    base |= {row.name: row.default for row in moved if is_asked(row.name) and row.name not in base}
    moves = elasticities(base, drawn[0])
    x = _axis(moves, drawn[0]) if over is None else quantity(over).name
    asked = list(moves)[:MOST_SLIDERS] if sliders is None else chosen
    named = [quantity(name).name for name in asked]
    others = _scenarios(against)
    live = Live(
        title=f"{_listed([quantity(name).label for name in drawn])} by {lower(quantity(x).label)}",
        base=Scenario.sourced(start.label, base, start.sources) if isinstance(start, Scenario) else base,
        x=x,
        outputs=drawn,
        sliders=tuple(dict.fromkeys((x, *named))) if quantity(x).slider_min is not None else tuple(named),
        presets={label or "As given": base} | others,
        source=f"Inputs of {label}" if label else "",
        key="explore",
    )
    menus = {name: words for name in live.parameters if quantity(name).is_text and len(words := _words(live, name)) > 1}
    curves = [Case((label or "As given") if others else "")]
    for named_rival, scenario in others.items():
        given = {name: live.initial(name, scenario) for name in live.parameters if name != x}
        curves.append(Case(named_rival, given={name: value for name, value in given.items() if value is not None}))
    live = replace(live, menus=menus, curves=tuple(curves))
    rows = live.rows()
    if all(column.n_unique() == 1 for column in rows.drop(x).iter_columns()):
        raise ScenarioError(f"{x} moves none of {', '.join(drawn)}; draw it over {', '.join(list(moves)[:3])} …")
    return replace(live, log=tuple(name for name in drawn if _spans_decades(rows, name)))


def elasticities(base: Mapping[str, Any], output: str) -> dict[str, float]:
    """Return by how many percent the output moves with one percent of each input that has a slider, largest first.

    >>> moves = elasticities(preset("llama_3_1_405b"), "training_s")
    >>> round(moves["mfu"], 3), round(moves["tokens"], 3)
    (-1.0, 1.0)
    """
    chain = Question.read(base, output, assume=True).resolve()
    inputs = {name: chain.known[name] for name in vocabulary() if name in chain.resolution.inputs}
    using = {name: model for name, model in chain.question.using.items() if name not in inputs}

    def output_of(changes: Mapping[str, float]) -> float:
        return evaluate({**inputs, **changes}, output, using=using, assume=True)[output]

    first = output_of({})
    moved: dict[str, float] = {}
    for name, value in inputs.items():
        row = quantity(name)
        if row.is_text or row.slider_min is None or not isinstance(value, float) or value <= 0.0:
            continue
        step = NUDGE if row.holds(value * NUDGE) else 1.0 / NUDGE
        with suppress(FactorykitError):  # a layout of 8.08 ranks is none
            later = output_of({name: value * step})
            if first > 0.0 and later > 0.0 and math.isfinite(later):
                moved[name] = math.log(later / first) / math.log(step)
    shares = {name: share for name, share in moved.items() if abs(share) > 1e-4}
    if not shares:
        raise ScenarioError(f"no input with a slider moves {output} at this point; name one with over= and sliders=")
    return dict(sorted(shares.items(), key=lambda pair: -round(abs(pair[1]), 2)))


def _words(live: Live, name: str) -> tuple[str, ...]:
    """Return the options of a quantity with text values: every chip whose specification is complete enough."""

    def works(word: str) -> bool:
        with suppress(FactorykitError):
            return bool(live.now({name: word}))
        return False

    return tuple(word for word in quantity(name).choices or chips() if works(word))


def _axis(moves: Mapping[str, float], output: str) -> str:
    first = next(name for name in moves if name != output)
    return "accelerators" if abs(moves.get("accelerators", 0.0)) > 0.5 * abs(moves[first]) else first


def _scenarios(against: Iterable[str] | Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    if isinstance(against, Mapping):
        return dict(mapping("against", against))
    return {(scenario := preset(name)).label: scenario for name in strings("against", against)}


def _spans_decades(rows: pl.DataFrame, output: str) -> bool:
    values = [value for name in rows.columns if name.startswith(output) for value in rows[name].drop_nulls()]
    return bool(values) and min(values) > 0.0 and max(values) > DECADES * min(values)


def lower(label: str) -> str:
    """Return a label as it stands within a sentence; abbreviations and names keep their capitals.

    >>> lower("Checkpoint interval"), lower("MFU"), lower("ZeRO stage")
    ('checkpoint interval', 'MFU', 'ZeRO stage')
    """
    return label[0].lower() + label[1:] if label.split()[0][1:].islower() else label


def _listed(labels: list[str]) -> str:
    *most, last = [labels[0], *map(lower, labels[1:])]
    return f"{', '.join(most)} and {last}" if most else last
