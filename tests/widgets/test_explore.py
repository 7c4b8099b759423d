"""`fk.explore`: an explorer from names alone, that can be read back, pinned and compared."""

from __future__ import annotations

import pytest

pytest.importorskip("anywidget", reason="the notebook extra is not installed; no widget was made")

import ipywidgets

import factorykit as fk
from factorykit.charts.explorer_spec import elasticities, exploring
from factorykit.core.errors import ScenarioError, UnknownName, UnknownQuantity

LLAMA = "llama_3_1_405b"
OWN = {"accelerator": "b200", "precision": "bf16", "accelerators": 1024, "parameters": "70B", "tokens": "15T"}


@pytest.fixture(scope="module")
def explorer() -> fk.widgets.Explorer:
    return fk.explore(LLAMA, ["wall_days", "rental_cost_usd"], over="accelerators")


@pytest.mark.filterwarnings("ignore:.*not used for")
@pytest.mark.parametrize(
    ("run", "outputs", "over"),
    [(LLAMA, (), None), ("deepseek_v3", ("goodput",), "checkpoint_interval_s"), (OWN, ("rental_cost_usd",), None)],
    ids=["a preset", "an output over its interval", "a run of the user"],
)
def test_the_screen_equals_evaluate(run, outputs, over) -> None:
    made = fk.explore(run, *outputs, over=over)
    values = made.now
    assert dict(values) == pytest.approx(fk.evaluate(made.scenario, list(values), assume=True), rel=1e-9)
    first = next(iter(made.sliders))
    made.set(**{first: made.sliders[first].value * 1.5})
    assert dict(made.now) == pytest.approx(fk.evaluate(made.scenario, list(values), assume=True), rel=1e-9)
    assert dict(made.now) != dict(values)


def test_only_an_axis_or_a_slider_starts_at_a_count_of_its_own() -> None:
    uncounted = {name: value for name, value in OWN.items() if name != "accelerators"}
    with pytest.raises(fk.errors.MissingQuantity, match="give accelerators"):
        fk.explore(uncounted, "wall_days", over="mfu")
    explorer = fk.explore(uncounted, "wall_days", over="accelerators")
    counted = {**uncounted, "accelerators": explorer.values["accelerators"]}
    assert explorer.now["wall_days"] == fk.evaluate(counted, "wall_days", assume=True)["wall_days"]


def test_elasticities_are_the_powers_of_the_formula() -> None:
    moves = elasticities(fk.preset(LLAMA), "training_s")
    assert {name: round(share, 2) for name, share in moves.items()} == {
        "active_parameters": 1.0,
        "tokens": 1.0,
        "accelerators": -1.0,
        "peak_flop_per_s": -1.0,
        "mfu": -1.0,
    }


def test_a_curve_of_decades_gets_a_logarithmic_axis(explorer) -> None:
    assert explorer.live.log == ("wall_days",)
    rows = explorer.rows()
    assert rows["wall_days"].max() > 100 * rows["wall_days"].min()
    assert rows["rental_cost_usd"].max() < 100 * rows["rental_cost_usd"].min()


def test_words_become_menus_of_valid_choices() -> None:
    made = fk.explore(OWN, "training_days")
    assert set(made.menus) == {"accelerator", "precision"}
    on_b200 = made.now["training_days"]
    made.set(accelerator="h100_sxm")
    peak = {chip: fk.evaluate({**OWN, "accelerator": chip}, "peak_flop_per_s") for chip in ("b200", "h100_sxm")}
    ratio = peak["b200"]["peak_flop_per_s"] / peak["h100_sxm"]["peak_flop_per_s"]
    assert made.now["training_days"] == pytest.approx(on_b200 * ratio)
    assert made.scenario["accelerator"] == "h100_sxm"
    with pytest.raises(ScenarioError, match="precision = 'fp3' is not one of"):
        made.set(precision="fp3")


def test_other_runs_are_drawn_in_the_same_picture() -> None:
    live = exploring(LLAMA, "goodput", over="checkpoint_interval_s", against=["deepseek_v3"])
    rows = live.rows()
    assert rows.columns[1:] == ["goodput (Llama 3.1 405B)", "goodput (DeepSeek-V3)"]
    x = rows["checkpoint_interval_s"][60]
    other = fk.preset("deepseek_v3").replace(checkpoint_interval_s=x, goodput=None)
    assert rows["goodput (DeepSeek-V3)"][60] == pytest.approx(fk.evaluate(other, "goodput", assume=True)["goodput"])


def test_settings_are_pinned_compared_and_explained(explorer) -> None:
    explorer.reset()
    explorer.pin("as published").set(accelerators="24,576", mfu="45 %")
    table = explorer.compare()
    assert table["quantity"].to_list()[:2] == ["accelerators", "mfu"]
    assert table.filter(quantity="accelerators").select("as published", "now").row(0) == (16384.0, 24576.0)
    shares = explorer.decompose("as published", "wall_days")
    change = (
        explorer.now["wall_days"] - fk.evaluate(explorer.pins["as published"], "wall_days", assume=True)["wall_days"]
    )
    assert shares["effect"].sum() == pytest.approx(change)
    (pin,) = explorer.chart.pins
    assert pin["label"] == "as published"
    assert pin["texts"]["accelerators"] == "16,384"
    assert len(pin["rows"]) == explorer.rows().height
    for _ in range(3):
        explorer.pin()
    with pytest.raises(ScenarioError, match=r"4 settings are pinned; explorer.unpin\('as published'\) makes room"):
        explorer.pin()
    for label in list(explorer.pins):
        explorer.unpin(label)
    with pytest.raises(ScenarioError, match="nothing is pinned"):
        explorer.compare()
    with pytest.raises(UnknownName):
        explorer.unpin("as published")


def test_the_code_of_an_explorer_reproduces_its_setting(explorer) -> None:
    explorer.reset()
    assert explorer.code == 'fk.preset("llama_3_1_405b")'
    explorer.set(accelerators=29_600)
    assert explorer.code == 'fk.preset("llama_3_1_405b").replace(accelerators=29600.0)'
    again = eval(explorer.code, {"fk": fk})
    assert fk.evaluate(again, "wall_days", assume=True)["wall_days"] == pytest.approx(explorer.now["wall_days"])
    own = fk.explore(OWN)
    assert fk.evaluate(eval(own.code, {"fk": fk}), "wall_days")["wall_days"] == pytest.approx(own.now["wall_days"])


def test_an_explorer_is_an_ordinary_widget(explorer) -> None:
    explorer.reset()
    seen = []
    explorer.observe(lambda change: seen.append(change["new"]["accelerators"]), "scenario")
    explorer.sliders["accelerators"].value = 1000.0
    assert seen == [1000.0]
    assert isinstance(explorer, ipywidgets.VBox)
    assert ipywidgets.interactive(lambda mfu: mfu, mfu=fk.widgets.slider("mfu", 0.4)).kwargs == {"mfu": 0.4}


@pytest.mark.parametrize(
    ("typed", "value"), [("24k", 24000.0), ("24,576", 24576.0), ("1.5e4", 15000.0), ("16384 GPUs", 16384.0)]
)
def test_values_can_be_typed_with_units(explorer, typed: str, value: float) -> None:
    explorer.sliders["accelerators"]._answer(None, {"kind": "typed", "text": typed}, [])
    assert explorer.values["accelerators"] == value


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fk.explore(LLAMA, "wall_day"), UnknownQuantity, "nearest is 'wall_days'"),
        (lambda: fk.explore("llama_3_1_405"), UnknownName, "nearest is 'llama_3_1_405b'"),
        (lambda: fk.explore(LLAMA, over="pue"), ScenarioError, "pue moves none of wall_days; draw it over"),
        (lambda: fk.explore(LLAMA, sliders=["pue"]), ScenarioError, "the slider pue moves none of wall_days"),
    ],
    ids=["output", "preset", "axis that moves nothing", "slider that moves nothing"],
)
def test_mistakes_give_the_usual_errors(call, error, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_setting_can_be_passed_to_the_planner() -> None:
    made = fk.explore(LLAMA, over="accelerators").set(accelerators=24_576)
    assert made.link is not None
    query = dict(part.split("=") for part in made.link.removeprefix("plan.html?").split("&"))
    assert (query["v"], query["model"], query["accelerators"], query["tokens"]) == ("1", "405B", "24576", "1.56e13")
    assert fk.explore("meta_24k", "facility_power_w", over="accelerators").link is None
