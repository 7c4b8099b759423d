import pytest

import factorykit as fk
from factorykit.formulas import cost

LLAMA = {"accelerators": 16384, "rental_usd_per_accelerator_h": 3.0}


def test_the_headline_of_63_million_dollars_is_its_own_arithmetic():
    """Course chapter, L150: 16,384 GPUs, 3 USD, 54 days."""
    run = fk.evaluate(LLAMA | {"wall_s": 54 * 86400.0}, "rental_cost_usd")
    assert run["rental_cost_usd"] == pytest.approx(63e6, rel=0.015)


def test_published_hours_of_llama_cost_92_million_dollars():
    """Llama 3.1 model card: 30.84 million H100-hours."""
    assert cost.rental_cost_usd(30.84e6, 3.0) == pytest.approx(92.5e6, rel=0.001)


def test_thirty_percent_waste_is_added_on_top_by_the_document():
    """L162: 63 with about 30 % waste is 82; a wall-clock time that holds the stops has them in already."""
    assert round(63 * 1.3) == 82
    run = fk.evaluate(LLAMA | {"wall_s": 54 * 86400.0, "goodput": 0.9}, ["rental_cost_usd", "wasted_cost_usd"])
    assert run["wasted_cost_usd"] < run["rental_cost_usd"]


def test_electricity_of_20_megawatts_is_1_46_million_a_month():
    """L156 prints 1.2 million; 20 MW at 0.10 USD are 17.5 million a year."""
    year = fk.evaluate({"facility_power_w": 20e6, "electricity_usd_per_kwh": 0.10}, "annual_electricity_cost_usd")
    assert year["annual_electricity_cost_usd"] / 12 == pytest.approx(1.46e6, rel=0.001)


def test_costs_per_unit_times_units_are_the_cost():
    run = {
        "tokens": 14.8e12,
        "active_parameters": 37e9,
        "accelerator_hours": 2.788e6,
        "rental_usd_per_accelerator_h": 2.0,
    }
    found = fk.evaluate(run, ["rental_cost_usd", "rental_usd_per_token", "rental_usd_per_flop", "training_flop"])
    assert found["rental_cost_usd"] == 5_576_000.0
    assert found["rental_usd_per_token"] * 14.8e12 == pytest.approx(5_576_000.0)
    assert found["rental_usd_per_flop"] * found["training_flop"] == pytest.approx(5_576_000.0)


def test_a_hundred_million_today_is_25_in_four_years():
    """Course chapter, L163."""
    assert cost.later_cost_usd(100e6, 4.0, 2.0) == pytest.approx(25e6, rel=1e-12)


def test_dollars_of_one_year_and_back_are_the_same():
    there = cost.real_usd(100.0, 258.811, 321.943)
    assert cost.real_usd(there, 321.943, 258.811) == pytest.approx(100.0, rel=1e-12)


def test_a_failure_costs_the_work_lost_the_restart_and_the_downtime():
    assert cost.failure_cost_usd(900.0, 600.0, 300.0, 50_000.0) == 25_000.0
