"""Elastic jobs: simulations against formulas in their limits, formulas against published goodput."""

import numpy as np
import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.formulas import diagnosis, resilience

JOB = {
    "training_s": 5e6,
    "cluster_mtbf_s": 5e4,
    "replicas": 16,
    "reconfigure_s": 900.0,
    "correlated_share": 0.1,
    "checkpoint_interval_s": 1800.0,
    "cold_restart_s": 1200.0,
}
STALLED = JOB | {"replica_stall_s": 600.0, "cluster_mtbf_s": 1e4, "training_s": 1e6, "correlated_share": 0.0}


@pytest.mark.parametrize(("job", "cold"), [(JOB, 10.0), (STALLED, 0.0)])
def test_elastic_runs_meet_the_formula_where_failures_are_rare(job: dict[str, float], cold: float) -> None:
    found = fk.replicas.elastic_runs(job, runs=400, seed=1)
    mean, error = found["goodput"].mean(), found["goodput"].std() / 20.0
    assert mean == pytest.approx(fk.evaluate(job, "elastic_goodput")["elastic_goodput"], abs=4.0 * error + 1e-5)
    assert found["failures"].mean() == pytest.approx(100.0, rel=0.03)
    assert found["cold_restarts"].mean() == pytest.approx(cold, rel=0.1)


def test_elastic_runs_without_failures_lose_nothing_and_the_same_seed_gives_the_same() -> None:
    quiet = fk.replicas.elastic_runs(JOB | {"cluster_mtbf_s": 1e15}, runs=3)
    assert quiet["goodput"].to_list() == [1.0] * 3
    assert fk.replicas.elastic_runs(JOB, 5, 2).equals(fk.replicas.elastic_runs(JOB, 5, 2))
    with pytest.raises(ScenarioError, match="failures; give a shorter run"):
        fk.replicas.elastic_runs(JOB | {"cluster_mtbf_s": 1.0})


@pytest.mark.parametrize("nodes", [2, 16, 1024])
def test_doubled_servers_live_as_long_as_their_formula(nodes: int) -> None:
    found = fk.replicas.redundant_lives({"nodes": nodes, "node_mtbf_s": 1e7}, runs=3000, seed=3)
    error = found["life_s"].std() / np.sqrt(3000)
    assert found["life_s"].mean() == pytest.approx(resilience.redundant_mtbf_s(1e7, nodes), abs=4 * error)


def test_parts_of_the_cost_of_errors_sum_to_the_published_total() -> None:
    """C4: after the checkpoint, detection, diagnosis and restart before and with detection by collectives."""
    before, after = (7.53, 3.41, 19.65, 0.60), (0.23, 0.05, 0.73, 0.15)
    assert (sum(before), sum(after)) == pytest.approx((31.19, 1.16))
    mtbf_s = 1800.0 / 0.0341  # the timeout of a collective is the lag of detection
    hung = 1e9  # a part that hangs is as slow as can be
    assert diagnosis.straggler_loss_share(mtbf_s, hung, 1800.0, 0.0) == pytest.approx(0.0341, rel=1e-3)
    assert diagnosis.straggler_loss_share(mtbf_s, hung, 30.0, 0.0) == pytest.approx(0.0005, rel=0.2)


def test_the_best_interval_of_tests_loses_least() -> None:
    known = (600.0, 7.776e6, 0.5)
    best = diagnosis.sdc_test_interval_best_s(*known)

    def loss(interval: float) -> float:
        return known[0] / interval + diagnosis.sdc_test_lag_s(interval, known[2]) / known[1]

    assert loss(best) < min(loss(0.9 * best), loss(1.1 * best))


def test_detection_lags_of_tests_and_replays_lead_to_a_goodput() -> None:
    given = {"checkpoint_interval_s": 1740.0, "checkpoint_write_s": 60.0, "sdc_mtbf_s": 777_600.0, "restart_s": 600.0}
    tests = fk.evaluate(
        given
        | {
            "sdc_detection_s": "sdc_test_lag_s",
            "sdc_test_interval_s": 86400.0,
            "sdc_test_catch_share": 0.5,
            "sdc_test_s": 600.0,
        },
        "sdc_test_goodput",
    )
    replays = fk.evaluate(
        given | {"sdc_detection_s": "sdc_replay_lag_s", "replay_share": 0.01, "inner_step_s": 10.0, "parameters": 1e9},
        "sdc_replay_goodput",
    )
    assert 0.83 < tests["sdc_test_goodput"] < 0.87
    assert replays["sdc_replay_goodput"] == pytest.approx(0.987, abs=0.003)


def test_a_burn_in_saves_most_where_parts_die_young_and_costs_where_they_wear_out() -> None:
    saved = [diagnosis.burn_in_failures_saved(720.0, 168.0, 1e4, 39_500.0, shape) for shape in (0.5, 0.7, 1.0, 1.5)]
    assert saved == sorted(saved, reverse=True)
    assert saved[2] == pytest.approx(0.0, abs=1e-9)
    assert saved[3] < 0
