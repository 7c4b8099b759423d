import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.formulas import checkpoint_tiers, rental

RUN = {"accelerators": 1024, "training_s": 1e6, "accelerator_mtbf_s": 1.8e8, "restart_s": 600.0, "downtime_s": 0.0}
RUN |= {"rental_usd_per_accelerator_h": 3.0, "spot_discount": 0.6}
TIERS = {"level_one_write_s": 2.0, "level_two_write_s": 60.0, "level_one_restart_s": 60.0, "level_two_restart_s": 600.0}
TIERS |= {"level_one_share": 0.8}


def test_spot_saves_less_than_its_discount_and_can_cost_more():
    run = RUN | {"checkpoint_write_s": 60.0}
    calm = fk.evaluate(run | {"spot_reclaim_mtbf_s": 86400.0}, "spot_saving")["spot_saving"]
    wild = fk.evaluate(run | {"spot_reclaim_mtbf_s": 600.0}, "spot_saving")["spot_saving"]
    assert 0.5 < calm < 0.6
    assert wild < 0.0


def test_spot_without_reclaims_saves_its_discount():
    run = RUN | {"checkpoint_write_s": 60.0}
    assert fk.evaluate(run | {"spot_reclaim_mtbf_s": 1e15}, "spot_saving")["spot_saving"] == pytest.approx(
        0.6, abs=1e-6
    )


@pytest.mark.parametrize("reclaim_s", [7200.0, 86400.0, 1e15])
def test_tiers_raise_the_goodput_of_a_spot_run(reclaim_s):
    plan = RUN | TIERS | {"spot_reclaim_mtbf_s": reclaim_s, "checkpoint_write_s": 62.0, "accelerator_mtbf_s": 1e7}
    found = fk.evaluate(plan, ["spot_goodput", "spot_tiered_goodput", "spot_near_share"])
    assert found["spot_tiered_goodput"] > found["spot_goodput"]
    assert found["spot_near_share"] < 0.8 + 1e-9


def test_without_reclaims_tiers_are_those_of_the_reliability_formulas():
    plan = RUN | TIERS | {"spot_reclaim_mtbf_s": 1e18}
    found = fk.evaluate(plan, ["spot_segments_per_pattern", "spot_tiered_interval_s", "spot_tiered_goodput"])
    mtbf = 1.8e8 / 1024
    segments = checkpoint_tiers.segments_per_pattern_first_order(2.0, 60.0, 0.8)
    interval = checkpoint_tiers.two_level_interval_s(segments, 2.0, 60.0, 0.8, mtbf)
    pattern = checkpoint_tiers.two_level_pattern_s(segments, interval, 2.0, 60.0, 60.0, 600.0, 0.8, mtbf)
    assert found["spot_segments_per_pattern"] == pytest.approx(segments, rel=1e-9)
    assert found["spot_tiered_interval_s"] == pytest.approx(interval, rel=1e-9)
    assert found["spot_tiered_goodput"] == pytest.approx(segments * interval / pattern, rel=1e-9)


def test_near_checkpoints_are_of_no_use_where_reclaims_rule():
    plan = RUN | TIERS | {"spot_reclaim_mtbf_s": 600.0}
    assert fk.evaluate(plan, "spot_segments_per_pattern")["spot_segments_per_pattern"] == 1.0


@given(st.floats(1.0, 1e4), st.floats(0.01, 0.9))
def test_machines_that_go_one_by_one_stop_a_job_as_often_as_there_are_machines(groups, share):
    together, apart = (rental.spot_reclaim_mtbf_grouped_s(n, share) for n in (1.0, groups))
    assert together == pytest.approx(groups * apart, rel=1e-9)


def test_a_monthly_share_is_kept_by_an_exponential_wait():
    """The probability that a machine survives 30 days is one minus the share."""
    mean = rental.spot_reclaim_mtbf_grouped_s(1.0, 0.15)
    assert fk.formulas.functions.exp(-30 * 86400.0 / mean) == pytest.approx(0.85, rel=1e-12)


def test_a_move_has_paid_when_the_saving_reaches_its_price():
    hours = rental.move_pays_after_h(5000.0, 1024.0, 3.31, 2.30)
    assert hours * 1024.0 * (3.31 - 2.30) == pytest.approx(5000.0)
    assert rental.move_pays_after_h(5000.0, 1024.0, 2.0, 2.5) > 1e9


def test_spot_with_tiers_costs_as_much_as_in_a_simulation_of_failures_and_reclaims():
    """A process that dies leaves the near copy; a lost node and a reclaim do not."""
    mtbf, reclaims, size, patterns, interval = 30_000.0, 20_000.0, 12, 30, 200.0
    stops = rental.spot_mtbf_s(mtbf, reclaims)
    near = rental.spot_near_share(0.8, mtbf, stops)
    goodput = rental.spot_tiered_goodput(float(size), interval, 2.0, 60.0, 60.0, 600.0, near, stops)
    run = {"training_s": size * patterns * interval, "checkpoint_interval_s": interval, "checkpoint_write_s": 2.0}
    run |= {"cluster_mtbf_s": stops, "restart_s": 0.0, "downtime_s": 0.0}
    causes = [fk.FailureCause("process", 0.8 / mtbf), fk.FailureCause("node", 0.2 / mtbf, destroys=1)]
    causes += [fk.FailureCause("reclaim", 1.0 / reclaims, destroys=1)]
    tiers = [fk.Tier("near", 2.0, 60.0), fk.Tier("far", 60.0, 600.0, every=size)]
    seen = fk.simulate(run, 4000, 5, causes=causes, tiers=tiers, protected_restart=True)["wall_s"]
    error = seen.std() / seen.len() ** 0.5
    assert abs(seen.mean() - run["training_s"] / goodput) < 4.0 * error
