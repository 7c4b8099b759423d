"""Neighbours on the same links, and the bring-up of clusters: limits and a simulation of many steps."""

import numpy as np
import pytest

import factorykit as fk
from factorykit.formulas import bring_up, tenancy


def test_half_of_a_link_takes_twice_as_long_and_no_neighbour_costs_nothing() -> None:
    assert tenancy.neighbour_slowdown(0.2, 0.5) == pytest.approx(0.2)
    assert tenancy.neighbour_slowdown(0.2, 0.0) == 0.0
    assert tenancy.tenancy_goodput(0.0, 3.0) == tenancy.tenancy_goodput(1.0, 0.0) == 1.0


def test_a_simulated_cluster_with_neighbours_agrees_with_its_formula() -> None:
    """Jobs of one accelerator: some meet neighbours that take half of the links while they exchange."""
    draw = np.random.default_rng(4)
    met = draw.random(200_000) < 0.51
    step_s = 0.875 + np.where(met, 0.125 / (1.0 - 0.5), 0.125)
    asked = {"contended_share": 0.51, "exchange_share": 0.125, "neighbour_link_share": 0.5}
    assert (1.0 / step_s).mean() == pytest.approx(fk.evaluate(asked, "tenancy_goodput")["tenancy_goodput"], abs=1e-3)


def test_a_cluster_is_ready_with_its_last_part_and_colossus_in_122_days() -> None:
    day = 86400.0
    installed = bring_up.installation_s(1e5, 1e5 / 19.0)
    assert bring_up.ready_s(103 * day, 90 * day, 60 * day, installed, 0.0) == pytest.approx(122 * day)
    late = bring_up.ready_s(103 * day, 90 * day, 400 * day, installed, 7 * day)
    assert late == pytest.approx((400 + 19 + 7) * day)
    assert bring_up.bring_up_idle_usd(10.0, 7200.0, 3600.0, 1.0) == pytest.approx(20.0)
