"""Live charts: inputs, summaries, and consistent specifications."""

from __future__ import annotations

import json
import re

import altair as alt
import pytest
import vl_convert
from conftest_values import encoded_fields, known_fields

from factorykit.charts import encoding
from factorykit.charts.checkpoint import MODELS, goodput_by_interval
from factorykit.charts.control import control
from factorykit.charts.live import Case, Live
from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName, UnknownQuantity
from factorykit.core.vocabulary import quantity
from factorykit.engine.evaluate import evaluate


def test_specifications_are_valid_vega_lite(live: Live) -> None:
    for spec in live.specs:
        alt.LayerChart.from_dict(spec)
        assert vl_convert.vegalite_to_vega(spec, vl_version="6.4")["marks"]


def test_every_encoded_field_exists(live: Live) -> None:
    for spec in live.specs:
        assert encoded_fields(spec) <= known_fields(spec)


def test_axes_are_labelled_by_the_vocabulary(live: Live) -> None:
    for spec, output in zip(live.specs, live.outputs, strict=True):
        text = json.dumps(spec, ensure_ascii=False)
        assert f'"title": "{encoding.axis_title(quantity(live.x))}"' in text
        assert f'"title": "{encoding.axis_title(quantity(output))}"' in text


def test_every_slider_is_an_input_and_starts_at_its_value(live: Live) -> None:
    for made in live.controls:
        assert made.minimum <= live.parameters[made.name] == made.value <= made.maximum


def test_rows_equal_evaluate(live: Live) -> None:
    rows = live.rows()
    assert rows[live.x].to_list() == list(live.grid)
    assert rows[live.x].null_count() == 0


def test_summary_names_every_column_and_is_stable(live: Live) -> None:
    assert all(name in live.summary() for name in live.rows().columns)
    assert live.summary() == live.summary()


def test_presets_set_their_quantities(live: Live) -> None:
    label, inputs_of_preset = list(live.presets.items())[-1]
    values = live.preset(label)
    assert values.keys() == live.parameters.keys()
    shared = values.keys() & inputs_of_preset.keys()
    assert {name: values[name] for name in shared} == {name: inputs_of_preset[name] for name in shared}
    assert shared


def test_the_exact_optimum_is_the_best_case() -> None:
    live = goodput_by_interval()
    found = {case.label: live.now(case=case)["checkpoint_goodput"] for case in MODELS}
    assert found["Exact optimum"] >= max(found["Young"], found["Daly"], live.now()["checkpoint_goodput"])


def test_a_change_reaches_the_rows() -> None:
    live = goodput_by_interval()
    fewer = live.now({"accelerators": 1024})
    assert fewer["checkpoint_goodput"] > live.now()["checkpoint_goodput"]
    inputs = {name: live.parameters[name] for name in ("checkpoint_write_s", "checkpoint_interval_s", "restart_s")}
    inputs |= {"accelerators": 1024.0, "accelerator_mtbf_s": live.parameters["accelerator_mtbf_s"], "downtime_s": 0.0}
    assert fewer["checkpoint_goodput"] == evaluate(inputs, "checkpoint_goodput")["checkpoint_goodput"]


def test_no_formula_is_written_twice_in_a_specification(live: Live) -> None:
    for spec in live.specs:
        expressions = [param["expr"] for param in spec["params"] if "expr" in param and "format(" not in param["expr"]]
        assert len(expressions) == len(set(expressions))


def test_unknown_inputs_are_refused_with_the_nearest() -> None:
    live = goodput_by_interval()
    with pytest.raises(UnknownName, match="no input 'mfu'"):
        live.values({"mfu": 0.4})
    with pytest.raises(UnknownQuantity, match="accelerators"):
        live.values({"acelerators": 8})
    with pytest.raises(UnknownName, match="no preset 'Lage'; nearest is 'Large'"):
        goodput_by_interval({"Large": {}}).preset("Lage")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0, "many", None, True])
def test_bad_values_are_refused(value: object) -> None:
    with pytest.raises(ScenarioError, match="accelerators"):
        goodput_by_interval().values({"accelerators": value})


def test_a_chart_without_its_inputs_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Live, "initial", lambda *_: None)
    with pytest.raises(MissingQuantity, match="give"):
        _ = goodput_by_interval().parameters


def test_a_quantity_without_a_slider_is_refused() -> None:
    with pytest.raises(ScenarioError, match="rental_cost_usd has no slider"):
        control("rental_cost_usd", 1.0)


def test_a_slider_grows_to_hold_its_value() -> None:
    assert control("accelerators", 4e6).maximum == 4e6


def test_signals_carry_the_names_of_quantities(live: Live) -> None:
    for spec in live.specs:
        names = [param["name"] for param in spec["params"]]
        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"[a-z_0-9]+", name) for name in names)
        assert set(live.parameters) <= set(names)


def test_an_alternative_case_replaces_one_formula_only() -> None:
    live = goodput_by_interval()
    young = live.now(case=Case("Young", {"checkpoint_interval_s": "checkpoint_interval_young_s"}))
    assert young["cluster_mtbf_s"] == live.now()["cluster_mtbf_s"]
    assert young["checkpoint_interval_s"] != live.now()["checkpoint_interval_s"]
