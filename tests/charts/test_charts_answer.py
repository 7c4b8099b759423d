"""Live charts answer as the engine does: for every ready-made chart, preset and chip the same number."""

from __future__ import annotations

import pytest

pytest.importorskip("altair", reason="the notebook extra is not installed; no chart was drawn")

from made_charts import READY, RUNS, STEPS

import factorykit as fk
from factorykit.charts import performance
from factorykit.charts.live import Live
from factorykit.core.vocabulary import quantity


@pytest.mark.parametrize("name", READY)
def test_a_chart_prints_the_results_of_its_scenario(name: str) -> None:
    for preset in ({}, *({label: run} for label, run in RUNS.items())):
        live = READY[name](preset)
        changes = live.preset(next(iter(preset))) if preset else {}
        shown = {quantity: live.now(changes)[quantity] for quantity in live.shown}
        assert fk.evaluate(live.scenario(changes), list(shown)) == pytest.approx(shown, rel=1e-9)


@pytest.mark.parametrize("chip", ["h100_sxm", "b200", "a100_sxm_80gb", "mi300x", "tpu_v5p"])
def test_a_preset_of_another_chip_selects_that_chip(chip: str) -> None:
    run = next(iter(STEPS.values())) | {"accelerator": chip}
    live = performance.utilization_and_memory(STEPS | {"Other": run})
    shown = live.now(live.preset("Other"))
    expected = fk.evaluate(run | {"recompute": "none"}, ("step_s", "predicted_mfu"))
    assert {name: shown[name] for name in expected} == pytest.approx(expected, rel=1e-9)


def test_a_misspelt_slider_is_answered_like_any_name() -> None:
    with pytest.raises(fk.FactorykitError, match="nearest is 'nodes'"):
        _ = Live(title="x", base=RUNS["meta_24k"], x="accelerators", outputs=("nodes",), sliders=("nodez",)).payload


def test_a_readout_follows_the_model_of_its_curve() -> None:
    case = fk.charts.Case("layouts", using={"training_s": "training_stepped_s"})
    base = next(iter(STEPS.values())) | {"tokens": 1e12}
    live = Live(
        title="x", base=base, x="accelerators", outputs=("training_days",), sliders=("accelerators",), curves=(case,)
    )
    expected = fk.evaluate(base, "training_days", using=case.using)
    assert live.now()["training_days"] == pytest.approx(expected["training_days"], rel=1e-12)


@pytest.mark.parametrize("name", READY)
def test_the_scenario_of_an_explorer_equals_its_screen_at_any_sliders(name: str) -> None:
    pytest.importorskip("anywidget", reason="the notebook extra is not installed; no widget was made")
    explorer = fk.explore(READY[name](RUNS))
    for label in explorer.live.presets:
        explorer.preset(label)
        for moved in ({}, {slider: _nudged(slider, made.value) for slider, made in explorer.sliders.items()}):
            explorer.set(**moved)
            shown = {quantity: explorer.now[quantity] for quantity in explorer.live.shown}
            assert fk.evaluate(explorer.scenario, list(shown)) == pytest.approx(shown, rel=1e-9)
            assert {slider: explorer.scenario[slider] for slider in explorer.sliders} == {
                slider: made.value for slider, made in explorer.sliders.items()
            }


def _nudged(name: str, value: float) -> float:
    return value * 1.01 if quantity(name).holds(value * 1.01) else value * 0.99
