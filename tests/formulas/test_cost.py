import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.formulas import cost
from factorykit.quantities import vocabulary

LLAMA = {"accelerators": 16384, "rental_usd_per_accelerator_h": 3.0}
OWNED = {name: row.default for name, row in vocabulary().items() if row.default is not None and row.kind == "input"}
rates = st.floats(0.0, 0.3)
years = st.floats(0.5, 20.0)


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


@given(years)
def test_a_discount_rate_of_zero_is_the_straight_line(life):
    straight = cost.it_capital_straight_usd_per_year(1e6, 0.2, life)
    recovery = cost.capital_recovery_per_year(0.0, life)
    assert cost.it_capital_usd_per_year(1e6, 0.2, 0.0, life, recovery) == pytest.approx(straight, rel=1e-9)


@given(st.floats(0.001, 0.3), st.integers(1, 20))
def test_an_annuity_pays_back_exactly(rate, life):
    payment = cost.capital_recovery_per_year(rate, float(life))
    assert math.fsum(payment / (1 + rate) ** year for year in range(1, life + 1)) == pytest.approx(1.0, rel=1e-9)


def test_textbook_factors_are_met():
    """Blank and Tarquin, tables of compound interest factors: (A/P, 10 %, 5) = 0.26380, (A/P, 8 %, 20) = 0.10185."""
    assert cost.capital_recovery_per_year(0.10, 5.0) == pytest.approx(0.26380, abs=5e-6)
    assert cost.facility_capital_recovery_per_year(0.08, 20.0) == pytest.approx(0.10185, abs=5e-6)


def owned(**changes):
    run = {name: value for name, value in OWNED.items() if name not in ("years_later", "cost_halving_years")}
    return fk.Scenario(**run | changes)


def test_parts_of_ownership_sum_to_the_whole():
    parts = ["server_capital_usd", "network_capital_usd", "storage_capital_usd", "facility_capital_usd"]
    found = fk.evaluate(owned(), [*parts, "capital_usd"])
    assert found["capital_usd"] == pytest.approx(math.fsum(found[part] for part in parts), rel=1e-12)
    flows = ["it_capital_usd_per_year", "facility_capital_usd_per_year", "annual_electricity_cost_usd"]
    flows += ["maintenance_usd_per_year", "staff_usd_per_year"]
    year = fk.evaluate(owned(), [*flows, "ownership_usd_per_year"])
    assert year["ownership_usd_per_year"] == pytest.approx(math.fsum(year[flow] for flow in flows), rel=1e-12)


def test_at_the_break_even_utilization_owning_costs_the_rent():
    even = fk.evaluate(owned(), "break_even_utilization")["break_even_utilization"]
    found = fk.evaluate(owned(utilization=min(even, 1.0)), ["ownership_usd_per_year", "rental_usd_per_year"])
    expected = found["ownership_usd_per_year"] * min(1.0, 1.0 / even)
    assert found["rental_usd_per_year"] == pytest.approx(expected, rel=1e-12)


@given(rates, rates, st.floats(0.5, 10.0))
def test_falling_prices_make_renting_cheaper(discount, decline, horizon):
    falling = cost.rental_present_usd(100.0, horizon, discount, decline)
    assert falling <= cost.rental_present_usd(100.0, horizon, discount, 0.0) + 1e-9 <= 100.0 * horizon + 1e-6


def test_present_value_of_rent_is_the_integral():
    steps = 200_000
    width = 4.0 / steps
    flow = (100.0 * 0.85**t * 1.08**-t for t in ((i + 0.5) * width for i in range(steps)))
    assert cost.rental_present_usd(100.0, 4.0, 0.08, 0.15) == pytest.approx(math.fsum(flow) * width, rel=1e-8)


def test_a_full_life_leaves_the_residual_share():
    kept = cost.ownership_present_usd(100.0, 0.0, 0.0, 0.1, 5.0, 20.0, 5.0, 0.0)
    assert kept == pytest.approx(90.0, rel=1e-9)


def test_spot_saves_less_than_its_discount_and_can_cost_more():
    run = {"accelerators": 1024, "training_s": 1e6, "accelerator_mtbf_s": 1.8e8, "checkpoint_write_s": 60.0}
    run |= {"restart_s": 600.0, "downtime_s": 0.0, "rental_usd_per_accelerator_h": 3.0, "spot_discount": 0.6}
    calm = fk.evaluate(run | {"spot_reclaim_mtbf_s": 86400.0}, "spot_saving")["spot_saving"]
    wild = fk.evaluate(run | {"spot_reclaim_mtbf_s": 600.0}, "spot_saving")["spot_saving"]
    assert 0.5 < calm < 0.6
    assert wild < 0.0


def test_spot_without_reclaims_saves_its_discount():
    run = {"accelerators": 1024, "training_s": 1e6, "accelerator_mtbf_s": 1.8e8, "checkpoint_write_s": 60.0}
    run |= {"restart_s": 600.0, "downtime_s": 0.0, "rental_usd_per_accelerator_h": 3.0, "spot_discount": 0.6}
    assert fk.evaluate(run | {"spot_reclaim_mtbf_s": 1e15}, "spot_saving")["spot_saving"] == pytest.approx(
        0.6, abs=1e-6
    )


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


def test_servers_of_16384_chips_cost_less_than_the_document_says():
    """L49 prints 2 to 3 billion; 2,048 systems at 300,000 to 400,000 USD (L69) are 0.61 to 0.82 billion."""
    low, high = (cost.server_capital_usd(2048.0, usd) for usd in (300_000.0, 400_000.0))
    assert (low, high) == pytest.approx((0.614e9, 0.819e9), rel=0.001)
