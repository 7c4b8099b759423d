"""Identities that follow from the definitions of the quantities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorykit.formulas import compute, cost, energy, reliability

positive = st.floats(1e-3, 1e15)


@given(positive, positive)
def test_twice_the_tokens_is_twice_the_work(parameters: float, tokens: float) -> None:
    once = compute.training_flop(parameters, tokens)
    assert compute.training_flop(parameters, 2 * tokens) == pytest.approx(2 * once)


@given(positive, st.floats(1.0, 1e8))
def test_energy_is_power_times_time(power: float, seconds: float) -> None:
    assert energy.training_energy_kwh(power, seconds) * 3.6e6 == pytest.approx(power * seconds)


@given(positive)
def test_a_year_of_power_is_8760_hours_of_it(power: float) -> None:
    assert energy.annual_energy_kwh(power) == pytest.approx(energy.training_energy_kwh(power, 8760 * 3600.0))


@given(st.floats(1, 1e6), st.floats(0.01, 100), st.floats(1, 1e8))
def test_rent_is_the_clusters_price_times_the_hours(n: float, price: float, seconds: float) -> None:
    rent = cost.rental_cost_usd(compute.accelerator_hours(n, seconds), price)
    assert rent == pytest.approx(cost.cluster_usd_per_h(n, price) * seconds / 3600)


@given(st.floats(1, 1e6), st.floats(1e5, 1e9))
def test_failures_a_day_grow_with_the_cluster(n: float, mtbf: float) -> None:
    daily = reliability.failures_per_day(reliability.cluster_mtbf_s(mtbf, n))
    assert daily == pytest.approx(n * 86400 / mtbf)


@given(st.floats(1, 1e6), st.floats(1e4, 1e7))
def test_one_accelerator_keeps_its_own_mtbf(mtbf: float, wall: float) -> None:
    assert reliability.cluster_mtbf_s(mtbf, 1.0) == mtbf
    assert reliability.expected_failures(wall, mtbf) == pytest.approx(
        reliability.failures_per_day(mtbf) * compute.wall_days(wall)
    )


def test_no_stops_mean_wall_time_is_training_time() -> None:
    assert compute.wall_s(1e6, 1.0) == 1e6


def test_free_electricity_costs_nothing() -> None:
    assert cost.electricity_cost_usd(1e9, 0.0) == 0.0
