"""The vocabulary: bounds, formatted values, errors with the nearest name."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorykit.core.errors import UnknownQuantity
from factorykit.core.vocabulary import format_number, neutral_values, quantities, quantity, vocabulary
from factorykit.formulas import catalogue


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("facility_power_w", 146e6, "146 MW"),
        ("cluster_peak_flop_per_s", 24.3e18, "24.3 EFLOP/s"),
        ("checkpoint_bytes", 5.67e12, "5.67 TB"),
        ("mfu", 0.381, "38.1 %"),
        ("checkpoint_interval_s", 90.0, "1.5 min"),
        ("rental_cost_usd", 5.576e6, "5.58 million USD"),
        ("accelerators", 16384.0, "16,384"),
        ("tokens", 15.6e12, "15.6 trillion"),
        ("wall_s", math.inf, "inf s"),
        ("restart_s", 0.0, "0 min"),
        ("training_energy_kwh", 26.4e6, "26.4 GWh"),
        ("training_energy_kwh", 33_400.0, "33.4 MWh"),
        ("training_energy_kwh", 3.357, "3.36 kWh"),
        ("training_flop", 2.67e20, "2.67 × 10²⁰ FLOP"),
    ],
)
def test_a_value_is_shown_with_its_unit(name: str, value: float, text: str) -> None:
    assert quantity(name).text(value) == text


@given(st.floats(1e-4, 9.9e8))
def test_a_rounded_number_is_within_half_a_unit_of_its_third_digit(value: float) -> None:
    assert float(format_number(value).replace(",", "")) == pytest.approx(value, rel=5.01e-3)


def test_the_frame_holds_every_quantity_with_its_bounds() -> None:
    frame = quantities()
    assert frame["name"].to_list() == list(vocabulary())
    assert frame.filter(name="mfu").select("lower", "upper").row(0) == (0.0, 1.0)


def test_a_typo_is_answered_with_the_nearest_name_and_its_label() -> None:
    with pytest.raises(UnknownQuantity, match=r"no quantity 'restart'; nearest is 'restart_s' \(Restart time \[s\]\)"):
        quantity("restart")


def test_the_vocabulary_as_a_frame_keeps_sliders_that_begin_at_zero() -> None:
    rows = {row["name"]: row for row in quantities().iter_rows(named=True)}
    assert rows["restart_s"]["slider_min"] == 0.0
    assert all((row["slider_min"] is None) == (row["slider_max"] is None) for row in rows.values())


@pytest.mark.parametrize(
    ("word", "found"), [("mtbf", "cluster_mtbf_s"), ("young", "checkpoint_interval_young_s"), ("token", "tokens")]
)
def test_an_unknown_name_is_answered_with_the_names_that_contain_it(word: str, found: str) -> None:
    with pytest.raises(UnknownQuantity, match=rf"no quantity '{word}'; .*\b{found}\b"):
        quantity(word)


def test_neutral_values_are_valid_and_computed_by_no_formula() -> None:
    assert {name: quantity(name).check(value) for name, value in neutral_values().items()} == dict(neutral_values())
    assert not set(neutral_values()) & set(catalogue())
    assert neutral_values()["tensor_parallel"] == 1.0
    assert quantity("tensor_parallel").default == 8.0
