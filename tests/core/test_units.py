"""Values as text with a unit: clear texts are parsed, ambiguous ones are refused."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.cli import main
from factorykit.core.errors import FactorykitError, ScenarioError
from factorykit.core.units import begins_with_digit, parse
from factorykit.core.vocabulary import Quantity, quantity, vocabulary

NUMBERS = [row for row in vocabulary().values() if not row.is_text]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("parameters", "70B", 70e9),
        ("tokens", "15T", 15e12),
        ("tokens", "15T tokens", 15e12),
        ("tokens", "15.6 trillion", 15.6e12),
        ("tokens", "1.5e13", 1.5e13),
        ("accelerators", "24,576", 24576.0),
        ("accelerators", "16K GPUs", 16000.0),
        ("sequence_length", "8Ki", 8192.0),
        ("staff", "35 people", 35.0),
        ("accelerators_per_node", "8 GPUs/node", 8.0),
        ("storage_write_bytes_per_s", "500 GB/s", 500e9),
        ("scale_out_bytes_per_s", "400 Gb/s", 50e9),
        ("scale_out_bytes_per_s", "400 Gbit/s per direction", 50e9),
        ("scale_out_bytes_per_s", "400 Gbps", 50e9),
        ("accelerator_memory_bytes", "80 GiB", 80 * 2**30),
        ("storage_bytes", "80 B", 80.0),
        ("checkpoint_bytes_per_parameter", "14 B/parameter", 14.0),
        ("restart_s", "30 min", 1800.0),
        ("restart_s", "10 mins", 600.0),
        ("deadline_s", "12 d", 12 * 86400.0),
        ("link_latency_s", "5 µs", 5e-6),
        ("hardware_life_years", "18 months", 1.5),
        ("failures_per_day", "7.8 per day", 7.8),
        ("accelerator_mtbf_s", "50k h", 1.8e8),
        ("accelerator_hours", "30.84M GPU hours", 30.84e6),
        ("accelerator_hours", "3 d", 72.0),
        ("rental_usd_per_accelerator_h", "2.5 USD/h", 2.5),
        ("rental_usd_per_accelerator_h", "$2.5/h", 2.5),
        ("rental_usd_per_accelerator_h", "$2.5", 2.5),
        ("electricity_usd_per_kwh", "0.08 USD", 0.08),
        ("accelerator_hours", "30.84M", 30.84e6),
        ("requests_per_s", "10 rps", 10.0),
        ("rental_usd_per_accelerator_h", "$2.5/GPU-h", 2.5),
        ("rental_usd_per_accelerator_h", "2.5 USD per GPU hour", 2.5),
        ("budget_usd", "$63M", 63e6),
        ("budget_usd", "63.2 million USD", 63.2e6),
        ("electricity_usd_per_kwh", "6 ct/kWh", 0.06),
        ("storage_usd_per_byte", "0.02 USD/GB", 2e-11),
        ("carbon_kg_per_kwh", "350 g/kWh", 0.35),
        ("rental_decline_per_year", "15 %", 0.15),
        ("discount_rate", "8 %/yr", 0.08),
        ("mfu", "41 %", 0.41),
        ("mfu", "41%", 0.41),
        ("mfu", ".41", 0.41),
        ("facility_power_w", "146 MW", 146e6),
        ("peak_flop_per_s", "989 TFLOP/s", 989e12),
        ("peak_flop_per_s", "989 TFLOPS", 989e12),
        ("design_j_per_flop", "0.7 pJ/FLOP", 7e-13),
    ],
)
def test_a_text_with_a_unit_is_parsed(name: str, text: str, value: float) -> None:
    assert quantity(name).check(text) == value


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("restart_s", "5 m", "'m' is ambiguous; write '5 ms', '5 Ms', '5 min', '5 mo'"),
        ("restart_s", "5M", "'M' is ambiguous; write '5 ms', '5 Ms', '5 min', '5 mo'"),
        ("storage_bytes", "2T", "'T' is ambiguous; write '2 TB', '2 TiB', '2 Tb'"),
        ("storage_write_bytes_per_s", "500G", "write '500 GB/s', '500 GiB/s', '500 Gb/s'"),
        ("scale_out_bytes_per_s", "400 gb/s", "write '400 GB/s', '400 Gb/s'"),
        ("accelerator_power_w", "0.7 mw", "write '0.7 mW', '0.7 MW'"),
        ("peak_flop_per_s", "989 TFLOPs", "write '989 TFLOPS'"),
        ("parameters", "70m", "write '70 million', '70 M'"),
        ("sequence_length", "8k", "can be 8,000 or 8,192; write the number, or '8Ki'"),
        ("restart_s", "5 GB", "'GB' is not a unit of Restart time; give s, e.g. '10 min'"),
        ("parameters", "5 GB", "'GB' is not a unit of Parameters; give a plain number, e.g. '405 billion'"),
        ("rental_usd_per_accelerator_h", "$2.5/kWh", "give USD/h, e.g. '"),
        ("global_batch_size", "16M tokens", "does not count tokens; it is sequences of one optimizer step"),
        ("nodes", "64 GPUs", "does not count GPUs"),
        ("deadline_s", "50k GPU-h", "does not count GPU;"),
        ("storage_write_bytes_per_s", "2 GB/s/GPU", "it is aggregate rate for the whole job"),
        ("budget_usd", "€5M", "currencies are not converted; give US dollars"),
        ("electricity_usd_per_kwh", "0.2 EUR/kWh", "currencies are not converted; give US dollars"),
        ("mfu", "2,5 %", "thousands with commas"),
        ("accelerators", "10-20", "'-20' is not a unit of Accelerators"),
        ("parameters", "-70B", "outside"),
        ("tokens", "1e999", "outside"),
        ("pue", "130 %  per", "is not a unit of"),
    ],
)
def test_an_ambiguous_or_wrong_unit_is_refused_with_a_fix(name: str, text: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(why)):
        quantity(name).check(text)


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: row.name)
def test_every_quantity_can_be_written_in_its_own_unit(row: Quantity) -> None:
    assert parse(row, f"0.75 {row.unit}".removesuffix(" 1")) == 0.75


@given(st.sampled_from(NUMBERS), st.floats(1e-3, 1e15))
@example(quantity("failures_per_day"), 7.8)
def test_a_printed_quantity_can_be_parsed(row: Quantity, value: float) -> None:
    assert parse(row, row.text(value, digits=6)) == pytest.approx(value, rel=1e-5)


@given(st.floats(1e-6, 1e9), st.sampled_from([("restart_s", "min", 60), ("storage_bytes", "TiB", 2**40)]))
def test_a_number_in_a_unit_is_the_number_times_the_unit(value: float, unit: tuple[str, str, float]) -> None:
    name, symbol, factor = unit
    assert parse(quantity(name), f"{value!r} {symbol}") == pytest.approx(value * factor, rel=1e-15)


@given(st.sampled_from(NUMBERS), st.from_regex(r"[0-9]{1,3} ?[A-Za-z0-9%$/*().,_^ -]{0,12}", fullmatch=True))
@example(quantity("tokens"), "5 **")
@example(quantity("tokens"), "5 s**99999999999")
@example(quantity("tokens"), "1e999999999 %")
def test_any_text_is_a_number_or_one_clear_error(row: Quantity, text: str) -> None:
    try:
        found = parse(row, text)
    except ScenarioError as error:
        found = str(error)
    assert isinstance(found, float) or found.startswith(row.name)


def test_every_interface_accepts_a_text_with_a_unit() -> None:
    run = {"active_parameters": "70B", "tokens": "15T", "accelerators": "2,048", "peak_flop_per_s": "989 TFLOP/s"}
    days = fk.evaluate({**run, "mfu": "40 %"}, "training_days")["training_days"]
    assert days == pytest.approx(6 * 70e9 * 15e12 / (2048 * 989e12 * 0.4) / 86400)
    assert fk.Scenario(tokens="15T").tokens == 15e12
    assert fk.Scenario(tokens=1e12).replace(tokens="15T").tokens == 15e12
    swept = fk.sweep(run, {"mfu": ["40 %", 0.4]}, "training_days")["training_days"]
    assert swept.to_list() == [days, days]


def test_a_column_of_texts_is_read_value_by_value() -> None:
    frame = pl.DataFrame({"active_parameters": ["70B", "8e9", "70B"], "tokens": "15T"})
    work = fk.evaluate(frame, "training_flop")
    assert work["training_flop"].to_list() == [6 * 70e9 * 15e12, 6 * 8e9 * 15e12, 6 * 70e9 * 15e12]
    assert work.schema["active_parameters"] == pl.Float64
    with pytest.raises(ScenarioError, match=r"column tokens, row 1: tokens = 'many' is not a value such as"):
        fk.evaluate(pl.DataFrame({"active_parameters": [8e9, 8e9], "tokens": ["15T", "many"]}), "training_flop")
    with pytest.raises(ScenarioError, match=r"row 1 .*: tokens = None is NoneType"):
        fk.evaluate(pl.DataFrame({"active_parameters": [8e9, 8e9], "tokens": ["15T", None]}), "training_flop")


def test_a_lazy_column_of_texts_is_refused_with_a_fix() -> None:
    frame = pl.LazyFrame({"active_parameters": [70e9], "tokens": ["15T"]})
    with pytest.raises(ScenarioError, match=r"column tokens is String, not numeric; .*collect"):
        fk.evaluate(frame, "training_flop")


def test_words_remain_names_of_alternative_models() -> None:
    assert fk.Scenario(goodput="ettr")["goodput"] == "ettr"
    with pytest.raises(ScenarioError, match="is not a number"):
        fk.Scenario(tokens="T15")


def test_a_text_quantity_that_begins_with_a_digit_stays_a_word() -> None:
    schedules = [word for row in vocabulary().values() for word in row.choices if begins_with_digit(word)]
    assert schedules
    for row in vocabulary().values():
        for word in row.choices:
            assert row.check(word) == word


def test_the_command_line_takes_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "active_parameters=70B", "tokens=15T", "-o", "training_flop"]) == 0
    assert "6.3 × 10²⁴ FLOP" in capsys.readouterr().out
    grid = ["--grid", "wall_s=1h:3h:3", "-o", "wall_days"]
    assert main(["sweep", *grid, "--json"]) == 0
    assert '"wall_days": 0.125' in capsys.readouterr().out
    assert main(["evaluate", "restart_s=5m", "-o", "restart_s"]) == 2
    assert "write '5 ms'" in capsys.readouterr().err


def test_errors_of_texts_are_errors_of_the_package() -> None:
    with pytest.raises(FactorykitError):
        fk.evaluate({"tokens": "15 furlongs"}, "tokens")


def test_distributions_accept_units_which_are_checked_when_they_are_drawn() -> None:
    pytest.importorskip("scipy", reason="scipy is absent; nothing was drawn")
    run = fk.preset("llama_3_1_405b")
    texts = fk.sample(run, {"restart_s": fk.Uniform("5 min", "1 h"), "mfu": fk.Normal("41 %", 0.02)}, "wall_days", n=64)
    plain = fk.sample(run, {"restart_s": fk.Uniform(300.0, 3600.0), "mfu": fk.Normal(0.41, 0.02)}, "wall_days", n=64)
    assert texts.equals(plain)
    with pytest.raises(ScenarioError, match="restart_s = '5 kg'"):
        fk.sample(run, {"restart_s": fk.Uniform("5 kg", "1 h")}, "wall_days")
    with pytest.raises(ScenarioError, match=r"low = 3600\.0 is not below high = 300\.0"):
        fk.sample(run, {"restart_s": fk.Uniform("1 h", "5 min")}, "wall_days")


def test_causes_tiers_and_planned_stops_take_units() -> None:
    assert fk.FailureCause("GPU", repair_s="1 d").repair_s == 86400.0
    assert fk.FailureCause("GPU", repair_s=fk.LogNormal("1 h", "2 d")).repair_s == fk.LogNormal(3600.0, 172800.0)
    assert fk.Tier("disk", "30 s", lag_s="2 min") == fk.Tier("disk", 30.0, lag_s=120.0)
    assert fk.Maintenance("30 d", "4 h") == fk.Maintenance(2592000.0, 14400.0)
    with pytest.raises(ScenarioError, match=r"write_s = '30 kg'"):
        fk.Tier("disk", "30 kg")


def test_columns_of_jobs_and_offers_take_units() -> None:
    jobs = pl.DataFrame({"arrival_s": ["0 s", "1 h"], "accelerators": "8", "run_s": "2 h", "estimate_s": "2 h"})
    plant = fk.Cluster(accelerators=8, node_failures_per_node_day=0.0, checkpoint_write_s=0.0)
    assert fk.schedule(jobs.with_columns(priority=0), plant).jobs["queue_s"].to_list() == [0.0, 3600.0]
    offers = {"provider": ["a", "b"], "rental_usd_per_accelerator_h": ["$2/GPU-h", "2.5"], "offered_accelerators": "1k"}
    priced = fk.rent({"accelerators": 512, "training_s": "30 d"}, pl.DataFrame(offers), assume=True)
    assert priced["rental_usd_per_accelerator_h"].to_list() == [2.0, 2.5]
