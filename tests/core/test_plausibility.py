"""Usual ranges: a value in the wrong unit gives a warning with the likely value, and published values give none."""

from __future__ import annotations

import re
import warnings

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.core import plausibility
from factorykit.core.errors import FactorykitWarning, ScenarioError
from factorykit.core.vocabulary import Quantity, quantity, vocabulary

RANGED = [row for row in vocabulary().values() if row.usual]


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("accelerator_power_w", 0.7, "'0.7 kW' (700)"),
        ("parameters", 70, "'70B' (7e+10)"),
        ("parameters", 8, "'8B' (8e+09)"),
        ("parameters", 405, "'405B' (4.05e+11)"),
        ("tokens", 15, "'15T' (1.5e+13)"),
        ("tokens", 1.4, "'1.4T' (1.4e+12)"),
        ("pue", 130, "'130 %' (1.3)"),
        ("restart_s", 0.17, "'0.17 h' (612)"),
        ("accelerator_mtbf_s", 50_000, "'50,000 h' (1.8e+08)"),
        ("storage_write_bytes_per_s", 500, "'500 GB/s' (5e+11)"),
        ("scale_out_bytes_per_s", 400, "'400 Gb/s' (5e+10)"),
        ("scale_out_bytes_per_s", 50, "'50 GB/s' (5e+10)"),
        ("accelerator_memory_bytes", 80, "'80 GB' (8e+10)"),
        ("peak_flop_per_s", 989, "'989 TFLOP/s' (9.89e+14)"),
        ("electricity_usd_per_kwh", 60, "'60 USD/MWh' (0.06)"),
        ("electricity_usd_per_kwh", 6, "'6 ct/kWh' (0.06)"),
        ("rental_usd_per_accelerator_h", 250, "'250 ct/h' (2.5)"),
        ("carbon_kg_per_kwh", 350, "'350 g/kWh' (0.35)"),
        ("deadline_s", 60, "'60 d' (5.184e+06)"),
        ("spot_reclaim_mtbf_s", 12, "'12 h' (43,200)"),
        ("storage_usd_per_byte", 0.02, "'0.02 USD/GB' (2e-11)"),
        ("link_latency_s", 5, "'5 us' (5e-06)"),
        ("tokens_per_step", 16, "'16M' (1.6e+07)"),
    ],
)
def test_a_value_without_its_unit_gives_a_warning_with_the_likely_unit(name: str, value: float, meant: str) -> None:
    message = rf"^{name} = {re.escape(f'{value:,.6g}')} is unusual \(usual .*\); did you mean {re.escape(meant)}\?$"
    with pytest.warns(FactorykitWarning, match=message):
        assert fk.Scenario(**{name: value})[name] == value


@pytest.mark.parametrize("row", RANGED, ids=lambda row: row.name)
def test_a_usual_range_lies_within_the_bounds_around_default_and_slider(row: Quantity) -> None:
    lower, upper = row.usual_range
    assert row.kind != "derived"
    assert row.lower <= lower < upper <= row.upper
    for value in (row.default, row.slider_min or lower, row.slider_max):
        assert value is None or row.is_usual(value)


def test_no_preset_and_no_row_of_the_tables_is_unusual() -> None:
    for name in fk.presets()["preset"]:
        for key, value in fk.preset(name).items():
            assert isinstance(value, str) or quantity(key).is_usual(value), f"{name}: {key} = {value}"
    for name in fk.tables()["table"]:
        frame = fk.table(name).collect()
        numbers = [key for key in frame.columns if key in vocabulary() and frame.schema[key].is_numeric()]
        for column in numbers:
            odd = [value for value in frame[column].drop_nulls() if not quantity(column).is_usual(value)]
            assert not odd, f"{name}: {column} holds {odd}"


@given(st.sampled_from(RANGED), st.floats(1e-6, 1e12))
def test_a_suggested_value_is_usual_and_can_be_parsed(row: Quantity, value: float) -> None:
    if row.is_usual(value) or not row.holds(value):
        return
    meant = re.search(r"did you mean '(.*)' \(", plausibility.unusual(row.name, value))
    assert meant is None or row.is_usual(float(row.check(meant[1])))


def test_zero_and_a_text_with_its_unit_give_no_warning() -> None:
    run = fk.Scenario(restart_s=0, node_overhead_power_w=0.0, accelerator_power_w="0.7 kW", pue="130 %")
    assert (run.accelerator_power_w, run.pue) == (700.0, 1.3)


def test_one_call_warns_once_of_each_value_at_the_line_of_the_caller() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fk.evaluate({"active_parameters": 70, "tokens": 15}, "training_flop")
    assert [str(warning.message).partition(" ")[0] for warning in caught] == ["active_parameters", "tokens"]
    assert {warning.filename for warning in caught} == {__file__}


def test_a_column_warns_once_by_its_extreme() -> None:
    frame = pl.DataFrame({"active_parameters": [0.5, 70.0, 405e9], "tokens": 15e12})
    frame = frame.with_columns(pl.col("active_parameters").clip(1.0))
    with pytest.warns(FactorykitWarning, match=r"column active_parameters: 1 is unusual .*; did you mean") as caught:
        fk.evaluate(frame, "training_flop")
    assert len(caught) == 1


def test_zeros_of_a_column_are_usual_and_values_near_zero_are_not() -> None:
    frame = pl.DataFrame(
        {"restart_s": [0.0, 600.0], "downtime_s": 0.0, "cluster_mtbf_s": 1e4, "checkpoint_write_s": 60.0}
    )
    assert fk.evaluate(frame, "checkpoint_goodput")["checkpoint_goodput"].is_between(0.0, 1.0).all()
    with pytest.warns(FactorykitWarning, match=r"column restart_s: 0.17 is unusual .* '0.17 h' \(612\)"):
        fk.evaluate(frame.with_columns(restart_s=pl.Series([0.0, 0.17])), "checkpoint_goodput")
    with pytest.raises(ScenarioError, match=r"row 1 .*: restart_s = -1.0 is outside"):
        fk.evaluate(frame.with_columns(restart_s=pl.Series([0.17, -1.0])), "checkpoint_goodput")


def test_the_vocabulary_lists_usual_ranges() -> None:
    frame = fk.quantities().filter(pl.col("name").is_in(["pue", "wall_s"]))
    assert frame["usual"].to_list() == [None, "[1, 3]"]
