import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.core.vocabulary import vocabulary
from factorykit.formulas import ownership

OWNED = {name: row.default for name, row in vocabulary().items() if row.default is not None and row.kind == "input"}
rates = st.floats(0.0, 0.3)
years = st.floats(0.5, 20.0)


@given(years)
def test_a_discount_rate_of_zero_is_the_straight_line(life):
    straight = ownership.it_capital_straight_usd_per_year(1e6, 0.2, life)
    recovery = ownership.capital_recovery_per_year(0.0, life)
    assert ownership.it_capital_usd_per_year(1e6, 0.2, 0.0, life, recovery) == pytest.approx(straight, rel=1e-9)


@given(st.floats(0.001, 0.3), st.integers(1, 20))
def test_an_annuity_pays_back_exactly(rate, life):
    payment = ownership.capital_recovery_per_year(rate, float(life))
    assert math.fsum(payment / (1 + rate) ** year for year in range(1, life + 1)) == pytest.approx(1.0, rel=1e-9)


def test_textbook_factors_are_met():
    """Blank and Tarquin, tables of compound interest factors: (A/P, 10 %, 5) = 0.26380, (A/P, 8 %, 20) = 0.10185."""
    assert ownership.capital_recovery_per_year(0.10, 5.0) == pytest.approx(0.26380, abs=5e-6)
    assert ownership.facility_capital_recovery_per_year(0.08, 20.0) == pytest.approx(0.10185, abs=5e-6)


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


@given(st.floats(0.05, 1.0), rates, rates, st.floats(0.5, 10.0))
def test_at_the_break_even_utilization_building_saves_nothing(utilization, discount, decline, horizon):
    given = {"rental_decline_per_year": decline, "discount_rate": discount, "horizon_years": horizon}
    even = fk.evaluate(owned(utilization=utilization, **given), "break_even_utilization")["break_even_utilization"]
    assume(even <= 1.0)
    found = fk.evaluate(owned(utilization=even, **given), ["build_saving_usd", "ownership_present_usd"])
    assert abs(found["build_saving_usd"]) < 1e-9 * found["ownership_present_usd"]


@given(rates, rates, st.floats(0.5, 10.0))
def test_falling_prices_make_renting_cheaper(discount, decline, horizon):
    falling = ownership.rental_present_usd(100.0, horizon, discount, decline)
    assert falling <= ownership.rental_present_usd(100.0, horizon, discount, 0.0) + 1e-9 <= 100.0 * horizon + 1e-6


def test_present_value_of_rent_is_the_integral():
    steps = 200_000
    width = 4.0 / steps
    flow = (100.0 * 0.85**t * 1.08**-t for t in ((i + 0.5) * width for i in range(steps)))
    assert ownership.rental_present_usd(100.0, 4.0, 0.08, 0.15) == pytest.approx(math.fsum(flow) * width, rel=1e-8)


def test_a_full_life_leaves_the_residual_share():
    kept = ownership.ownership_present_usd(100.0, 0.0, 0.0, 0.1, 5.0, 20.0, 5.0, 0.0)
    assert kept == pytest.approx(90.0, rel=1e-9)


def test_servers_of_16384_chips_cost_less_than_in_the_document():
    """L49 prints 2 to 3 billion; 2,048 systems at 300,000 to 400,000 USD (L69) are 0.61 to 0.82 billion."""
    low, high = (ownership.server_capital_usd(2048.0, usd) for usd in (300_000.0, 400_000.0))
    assert (low, high) == pytest.approx((0.614e9, 0.819e9), rel=0.001)
