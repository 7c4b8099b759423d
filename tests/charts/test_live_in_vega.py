"""Live charts as Vega computes them: the same numbers that evaluate gives, at every setting."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from made_charts import CHIPS, LARGE, PRESETS
from vega import drawn, marked, printed

from factorykit.charts import checkpoint, performance
from factorykit.charts.live import Case, Live
from factorykit.core.errors import ScenarioError
from factorykit.core.vocabulary import quantity
from factorykit.engine.evaluate import evaluate
from factorykit.engine.rules import RULES


def settings(live: Live) -> list[dict[str, Any]]:
    """The initial setting, and one in which every slider has moved a third of the way to its end."""
    moved = {made.name: made.value + (made.maximum - made.value) / 3.0 for made in live.controls}
    return [{}, moved] if not live.doubling else [{}]


def test_every_curve_equals_evaluate_at_every_setting(live: Live) -> None:
    for changes in settings(live):
        rows = live.rows(changes)
        for n, output in enumerate(live.outputs):
            made = drawn(live, changes, n)
            scale = quantity(output).display_scale
            for i, column in enumerate(c for c in rows.columns if c.partition(" (")[0] == output):
                drawn_at = [value is not None for value in rows[column]]
                assert [value is not None for value in made[f"curve {i}"]] == drawn_at
                expected = [value for value in rows[column] if value is not None]
                assert [v for v in made[f"curve {i}"] if v is not None] == pytest.approx(expected, rel=1e-9)
                shown = [v * scale for v in made[f"shown {i}"] if v is not None]
                assert shown == pytest.approx(expected, rel=1e-9)
            assert made["x"] == pytest.approx([v / quantity(live.x).display_scale for v in live.grid], rel=1e-12)


def test_every_mark_is_at_the_values_of_its_case(live: Live) -> None:
    for n, output in enumerate(live.outputs):
        *points, (label, *place) = marked(live, spec=n)
        now = live.now()
        found = [live.now(case=case) for case in live.points]
        assert label == quantity(output).text(now[output])
        scaled = [
            [values[name] / quantity(name).display_scale for name in (live.x, output)] for values in [*found, now]
        ]
        assert [[x, y] for _, x, y in points] + [place] == [pytest.approx(both, rel=1e-9) for both in scaled]
        assert [label for label, *_ in points] == [case.label for case in live.points]


def test_a_mark_beyond_its_axis_is_at_the_edge_with_a_note() -> None:
    half = Case("half", given={"mfu": 0.6})
    (_, x, _), (label, *_) = marked(line(points=(half,)))
    assert (x, label.count("off")) == (50, 0)
    chart = line(y_domain={"training_s": (0, 1e4)})
    label, *place = marked(chart, {"mfu": 0.05})[0]
    value = quantity("training_s").text(chart.now({"mfu": 0.05})["training_s"])
    assert (label, place) == (f"{value}, off the axis at 5 %", [10, 1e4 / quantity("training_s").display_scale])


def test_every_printed_number_is_the_present_one(live: Live) -> None:
    for changes in settings(live):
        values = live.values(changes) | live.now(changes)
        names = [name for name in values if f"{name}_text" in {param["name"] for param in live.specs[0]["params"]}]
        assert set(names) >= {*live.parameters, *live.shown}
        texts = printed(live, [f"{name}_text" for name in names], changes)
        assert texts == [quantity(name).text(values[name]) for name in names]


def test_a_band_covers_the_uncertainty() -> None:
    live = checkpoint.goodput_by_interval(PRESETS)
    ((name, share),) = live.band.items()
    made, start = drawn(live), live.parameters[name]
    for side, value in (("band 0", start / (1.0 + share)), ("band 1", start * (1.0 + share))):
        scale = quantity(live.outputs[0]).display_scale
        expected = [v / scale for v in live.rows({name: value})[live.outputs[0]]]
        assert made[side] == pytest.approx(expected, rel=1e-9)
    assert f"{quantity(name).label} {100 * share:g} % lower or higher" in live.payload["source"]


def test_an_invalid_layout_is_not_drawn_and_its_rule_is_named() -> None:
    live = performance.utilization_and_memory(CHIPS)
    assert printed(live, ["broken_rule"]) == [""]
    wrong = {"attention_heads": 60.0}
    (message,) = printed(live, ["broken_rule"], wrong)
    assert message.removeprefix("violates the rule that ") in {rule.name for rule in RULES}
    shown = [name for name in live.shown if name not in live.parameters]
    assert printed(live, [f"{name}_text" for name in shown], wrong) == ["–"] * len(shown)
    with pytest.raises(ScenarioError, match=message.replace("(", r"\(")):
        live.now(wrong)


def line(**more: Any) -> Live:
    base = {"active_parameters": 1e9, "cluster_peak_flop_per_s": 1e15, "tokens": 2e12}
    settings = {"x": "mfu", "outputs": ("training_s",), "sliders": ("tokens",), "domain": (0.1, 0.5)} | more
    return Live(title="Time", base=base | {"mfu": 0.4}, **settings)


def test_the_grid_is_linear_or_logarithmic_from_end_to_end() -> None:
    even, factors = line().grid, line(x="tokens", sliders=("mfu",), domain=(1e12, 1e14)).grid
    assert (even[0], even[-1], len(even)) == (0.1, 0.5, 121)
    assert {round(b - a, 4) for a, b in pairwise(even)} == {round(0.4 / 120, 4)}
    assert (factors[0], factors[60], factors[-1]) == (1e12, 1e13, 1e14)
    doubled = line(x="tokens", sliders=("mfu",), domain=(1e12, 9e12), doubling=("tokens",)).grid
    assert doubled == (1e12, 2e12, 4e12, 8e12)


def test_a_domain_is_that_of_the_slider_by_default() -> None:
    row = quantity("mfu")
    assert (line(domain=None).grid[0], line(domain=None).grid[-1]) == (row.slider_min, row.slider_max)


def test_nothing_is_drawn_outside_the_valid_domain() -> None:
    live = line(only_where={"training_s": 2e7})
    rows = live.rows()["training_s"].to_list()
    assert [value is None for value in rows] == [6 * 1e9 * 2e12 / (1e15 * mfu) < 2e7 for mfu in live.grid]
    assert [value is None for value in drawn(live)["curve 0"]] == [value is None for value in rows]


def test_axes_have_the_domain_and_are_logarithmic_on_request() -> None:
    spec = line(log=("training_s",), y_domain={"training_s": (86400.0, 864000.0)}).specs[0]
    axes = spec["layer"][0]["layer"][0]["encoding"]
    scale = quantity("training_s").display_scale
    assert axes["x"]["scale"] == {"type": "linear", "domain": [10.0, 50.0], "nice": False}
    assert axes["y"]["scale"] == {"type": "log", "domain": [86400.0 / scale, 864000.0 / scale]}
    assert line().specs[0]["layer"][0]["layer"][0]["encoding"]["y"]["scale"] == {"type": "linear", "zero": True}


def test_curves_and_cases_have_colours_and_dashes_of_their_own() -> None:
    cases = (Case("now"), Case("half", given={"tokens": 1e12}))
    layers = line(curves=cases).specs[0]["layer"][0]["layer"]
    assert [layer["mark"]["strokeDash"] for layer in layers] == [[1, 0], [6, 4]]
    scale = layers[0]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["now", "half"]
    assert len(set(scale["range"])) == 2
    alone = line().specs[0]["layer"][0]["layer"][0]["encoding"]["color"]
    pointed = line(points=(cases[1],)).specs[0]["layer"][2]["layer"][0]["layer"][0]["encoding"]["color"]["scale"]
    assert pointed["domain"] == ["half"]
    assert alone["value"] not in pointed["range"]


def test_the_payload_lists_fixed_inputs_with_their_sources() -> None:
    live = checkpoint.goodput_by_interval({"Large": LARGE})
    payload = live.payload
    assert [row["name"] for row in payload["assumptions"]] == [n for n in live.parameters if n not in live.sliders]
    sources = {row["name"]: row["source"] for row in payload["assumptions"] if "source" in row}
    assert sources == {name: source for name, source in live.assumed.items() if name not in live.sliders}
    assert payload["bounds"]["accelerators"] == quantity("accelerators").bounds
    assert payload["grid"]["values"] == live.grid


def test_words_may_be_those_of_the_base_and_the_presets() -> None:
    live = performance.utilization_and_memory(CHIPS)
    assert live.payload["bounds"]["accelerator"] == ["h100_sxm", "mi300x"]
    for label, preset in CHIPS.items():
        inputs = live.preset(label)
        assert inputs["accelerator"] == preset["accelerator"]
        name = live.outputs[0]
        assert live.now(inputs)[name] == pytest.approx(evaluate(live.scenario(inputs), name)[name], rel=1e-12)


def test_a_slider_that_moves_nothing_is_refused() -> None:
    with pytest.raises(ScenarioError, match="the slider pue moves none of training_s; remove it"):
        _ = line(sliders=("tokens", "pue")).parameters


def test_the_summary_has_one_line_a_number() -> None:
    live = checkpoint.goodput_by_interval(PRESETS)
    lines = live.summary().splitlines()
    assert lines[0] == live.title
    for case in live.points:
        place = lines.index(case.label)
        assert lines[place + 2].split() == [live.outputs[0], f"{live.now(case=case)[live.outputs[0]]:.6g}"]
    assert math.isclose(float(lines[lines.index("now") + 1].split()[1]), live.now()[live.x], rel_tol=1e-5)
