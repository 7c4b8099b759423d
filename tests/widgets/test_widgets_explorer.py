"""Explorers, sliders and live charts without a browser."""

from __future__ import annotations

import importlib
import json
import re

import pytest

pytest.importorskip("anywidget", reason="the notebook extra is not installed; no widget was made")

import altair as alt
from ipywidgets import Widget

import factorykit as fk
from factorykit.charts import checkpoint, compute, cost
from factorykit.charts.control import control
from factorykit.core.errors import FactorykitError, ScenarioError, UnknownName, UnknownQuantity
from factorykit.core.vocabulary import quantity
from factorykit.widgets import Explorer, LiveChart, Slider, explore, slider

VIEW = "application/vnd.jupyter.widget-view+json"
PRESETS = {"Large": {"accelerators": 16384.0}, "Small": {"accelerators": 512.0, "checkpoint_write_s": 5.0}}


def test_an_explorer_that_is_closed_leaves_nothing_in_memory() -> None:
    before = Widget.get_manager_state()["state"].keys()
    explore("llama_3_1_405b", "wall_days", against=["deepseek_v3"]).close()
    assert Widget.get_manager_state()["state"].keys() <= before


@pytest.fixture
def explorer() -> Explorer:
    return explore(checkpoint.goodput_by_interval(PRESETS))


@pytest.mark.parametrize("make", [checkpoint.goodput_by_interval, cost.time_and_cost, compute.rate_and_power])
def test_controls_are_made_from_the_vocabulary(make) -> None:
    explorer = explore(make())
    for name, made in explorer.sliders.items():
        row = quantity(name)
        assert made.control["label"] == row.label
        assert made.control["scale"] == row.slider_scale
        assert made.control["min"] <= made.value <= made.control["max"]
        assert made.text == row.text(made.value)


def test_a_slider_keeps_the_value_it_was_given() -> None:
    assert slider("checkpoint_write_s", 61.7).value == 61.7
    assert Slider(control("mfu", 0.381)).text == "38.1 %"


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_slider_refuses_values_out_of_bounds(value: float) -> None:
    made = slider("accelerators", 8.0)
    with pytest.raises(ScenarioError, match="accelerators"):
        made.value = value
    assert made.value == 8.0


def test_set_changes_sliders_and_fixed_inputs(explorer: Explorer) -> None:
    explorer.set(accelerators=1024, downtime_s=60)
    assert explorer.sliders["accelerators"].value == 1024.0
    assert explorer.values["downtime_s"] == 60.0
    assert explorer.chart.signals == {"downtime_s": 60.0}
    assert re.search(r"cluster_mtbf_s +175781", explorer.summary())


def test_moving_a_slider_is_enough(explorer: Explorer) -> None:
    before = explorer.summary()
    explorer.sliders["restart_s"].value = 1200.0
    assert explorer.values["restart_s"] == 1200.0
    assert explorer.summary() != before


def test_reset_restores_the_initial_values(explorer: Explorer) -> None:
    before = (explorer.values, explorer.summary())
    explorer.set(accelerators=1024, downtime_s=60).reset()
    assert (explorer.values, explorer.summary()) == before


def test_presets_are_chosen_by_name_or_by_drop_down(explorer: Explorer) -> None:
    assert explorer.preset("Small").values["checkpoint_write_s"] == 5.0
    explorer._preset.value = "Large"
    assert explorer.values["accelerators"] == 16384.0
    explorer.sliders["accelerators"].value = 100.0
    assert explorer._preset.value == ""


def test_mistakes_are_named(explorer: Explorer) -> None:
    with pytest.raises(UnknownQuantity, match="nearest is 'accelerators'"):
        explorer.set(acclerators=8)
    with pytest.raises(UnknownName, match="no input 'mfu'"):
        explorer.set(mfu=0.4)
    with pytest.raises(ScenarioError, match="accelerators"):
        explorer.set(accelerators=-1)
    with pytest.raises(UnknownName, match="no preset"):
        explorer.preset("Medium")
    assert explorer.values["accelerators"] == 16384.0


def test_an_output_serves_the_lab_the_page_and_the_reader_of_text(explorer: Explorer) -> None:
    data, _ = explorer._repr_mimebundle_()
    assert data[VIEW]["model_id"] == explorer.model_id
    assert json.dumps(explorer.live.title) in data["text/html"]
    assert data["text/plain"] == explorer.live.summary()


def test_an_output_does_not_depend_on_earlier_ones(explorer: Explorer) -> None:
    first, _ = explorer._repr_mimebundle_()
    again, _ = explore(checkpoint.goodput_by_interval(PRESETS))._repr_mimebundle_()
    assert first["text/html"] == again["text/html"]


@pytest.fixture
def chart() -> LiveChart:
    return LiveChart(alt.Chart(alt.NamedData("table")).mark_line().encode(x="x:Q", y="y:Q", color="who:N"))


def test_an_unknown_parameter_is_refused(chart: LiveChart, explorer: Explorer) -> None:
    with pytest.raises(UnknownName, match="k"):
        chart.set(k=1.0)
    with pytest.raises(FactorykitError, match="mfu"):
        explorer.chart.set(mfu=0.3)


def test_importing_factorykit_loads_no_widget() -> None:
    import subprocess
    import sys

    code = "import factorykit, sys; assert not {'altair', 'anywidget', 'ipywidgets', 'vl_convert'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert importlib.import_module("factorykit").widgets.explore is explore


def test_the_scenario_of_an_explorer_equals_its_screen_after_any_move(explorer: Explorer) -> None:
    explorer.set(accelerators=1024, accelerator_mtbf_s=5e7)
    shown = {name: explorer.now[name] for name in explorer.live.shown}
    assert fk.evaluate(explorer.scenario, list(shown)) == pytest.approx(shown, rel=1e-12)
    assert explorer.scenario["accelerators"] == 1024.0
    assert explorer.at(accelerators=2048)["cluster_mtbf_s"] == pytest.approx(explorer.now["cluster_mtbf_s"] / 2)
    assert explorer.values["accelerators"] == 1024.0


def test_a_chosen_value_is_not_attributed_to_the_source_of_the_preset() -> None:
    explorer = fk.explore("llama_3_1_405b", "training_days", over="accelerators")
    assert "llama3_paper" in explorer.scenario.sources["mfu"]
    moved = explorer.set(mfu=0.5, accelerators=100_000).scenario
    assert not {"mfu", "accelerators"} & moved.sources.keys()
    assert "llama3_paper" in moved.sources["tokens"]
    explained = str(fk.explain(moved, "training_days"))
    assert "mfu = 50 %  [given]" in explained
