import math

import numpy as np
import polars as pl
import pytest

import factorykit as fk
from factorykit.model.operations.schedule import Cluster, Policy

CALM = Cluster(
    accelerators=64, nodes_per_pod=4, node_failures_per_node_day=0.0, checkpoint_write_s=0.0, pod_spread_penalty=0.0
)


BROKEN = CALM.replace(node_failures_per_node_day=1.0, node_repair_median_s=1e7, node_repair_sigma=0.0)
NEVER = CALM.replace(
    node_failures_per_node_day=50.0, checkpoint_interval_s=86400.0, node_repair_median_s=1, node_repair_sigma=0.0
)


def jobs(*rows):
    """Return jobs from (arrival, accelerators, run, priority)."""
    names = ("arrival_s", "accelerators", "run_s", "priority")
    return pl.DataFrame(rows, names, orient="row").cast(pl.Float64).with_columns(estimate_s="run_s")


def test_a_single_server_waits_as_long_as_in_queueing_theory():
    """M/M/1: mean wait = rho / (1 - rho) service times."""
    rng = np.random.default_rng(1)
    n, rho = 60_000, 0.6
    run = rng.exponential(100.0, n)
    rows = pl.DataFrame({"arrival_s": np.cumsum(rng.exponential(100.0 / rho, n)), "run_s": run, "estimate_s": run})
    rows = rows.with_columns(accelerators=1.0, priority=0.0)
    one = CALM.replace(accelerators=1, accelerators_per_node=1, nodes_per_pod=1)
    found = fk.schedule(rows, one, Policy(backfill=False)).summary
    assert found["queue_s_mean"] == pytest.approx(100.0 * rho / (1 - rho), rel=0.05)
    assert found["utilization"] == pytest.approx(rho, rel=0.02)


def test_many_servers_wait_as_long_as_in_the_erlang_c_formula():
    """M/M/c with the Erlang C formula, c = 8, offered load 6.4."""
    rng = np.random.default_rng(2)
    n, servers, offered = 60_000, 8, 6.4
    run = rng.exponential(100.0, n)
    rows = pl.DataFrame({"arrival_s": np.cumsum(rng.exponential(100.0 / offered, n)), "run_s": run, "estimate_s": run})
    rows = rows.with_columns(accelerators=1.0, priority=0.0)
    eight = CALM.replace(accelerators=8, accelerators_per_node=1, nodes_per_pod=8)
    found = fk.schedule(rows, eight, Policy(backfill=False)).summary
    top = offered**servers / math.factorial(servers) * servers / (servers - offered)
    wait = top / (sum(offered**k / math.factorial(k) for k in range(servers)) + top)
    assert found["queue_s_mean"] == pytest.approx(wait * 100.0 / (servers - offered), rel=0.08)


def test_a_gang_waits_for_all_its_accelerators():
    found = fk.schedule(jobs((0, 8, 100, 0), (1, 64, 50, 0)), CALM).jobs
    assert found["start_s"].to_list() == [0.0, 100.0]


def test_backfill_fills_gaps_without_delaying_other_jobs():
    queue = jobs((0, 48, 100, 0), (1, 64, 50, 0), (2, 16, 90, 0), (3, 16, 200, 0))
    with_, without = (fk.schedule(queue, CALM, Policy(backfill=on)).jobs for on in (True, False))
    assert with_["start_s"].to_list() == [0.0, 100.0, 2.0, 150.0]
    assert without["start_s"].to_list() == [0.0, 100.0, 150.0, 150.0]


def test_a_critical_job_preempts_others_which_lose_only_the_restart():
    cluster = CALM.replace(checkpoint_write_s=10.0, checkpoint_interval_s=1000.0, restart_s=20.0)
    found = fk.schedule(jobs((0, 64, 500, 0), (100, 64, 50, 2)), cluster).jobs
    assert found["start_s"].to_list() == [0.0, 100.0]
    assert found["preemptions"].to_list() == [1.0, 0.0]
    pace = 1.01
    assert found["end_s"].to_list() == pytest.approx(
        [100 + 50 * pace + 30 + (500 - 100 / pace) * pace, 100 + 50 * pace]
    )
    assert found["lost_s"].sum() == 0.0


def test_without_preemption_a_critical_job_waits():
    found = fk.schedule(jobs((0, 64, 500, 0), (100, 64, 50, 2)), CALM, Policy(preempt=False)).jobs
    assert found["start_s"].to_list() == [0.0, 500.0]


def test_equal_priorities_do_not_preempt_each_other():
    found = fk.schedule(jobs((0, 64, 500, 1), (100, 64, 50, 1)), CALM).jobs
    assert found["preemptions"].sum() == 0.0


def test_packing_keeps_a_job_in_one_pod():
    queue = jobs((0, 8, 1000, 0), (1, 8, 10, 0), (20, 32, 100, 0))
    assert fk.schedule(queue, CALM).jobs["pods"][2] == 1
    scattered = [fk.schedule(queue, CALM, Policy(packed=False), seed=s).jobs["pods"][2] for s in range(5)]
    assert max(scattered) > 1


def test_a_failure_costs_the_work_since_the_last_checkpoint():
    cluster = CALM.replace(node_failures_per_node_day=0.5, checkpoint_interval_s=3600.0, restart_s=60.0)
    found = fk.schedule(jobs((0, 48, 5 * 86400, 0)), cluster, seed=3).jobs
    assert found["failures"].item() > 3
    assert 0.0 < found["lost_s"].item() <= 3600.0 * found["failures"].item()
    spent = found["end_s"].item() - found["queue_s"].item()
    expected = 5 * 86400 + found["lost_s"].item() + 60.0 * found["failures"].item()
    assert spent == pytest.approx(expected, abs=61.0 * found["failures"].item())


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_handed_out_twice(seed):
    cluster = Cluster(
        accelerators=2048, node_failures_per_node_day=0.02, node_repair_median_s=3600, node_repair_sigma=1.177
    )
    queue = fk.workload("kalos", 2000, 1.1, 2048, seed)
    found = fk.schedule(queue, cluster, seed=seed)
    assert found.jobs["end_s"].is_finite().all()
    assert (found.jobs["end_s"] - found.jobs["start_s"] >= found.jobs["run_s"] * (1 - 1e-9)).all()
    assert (found.jobs["queue_s"] >= 0.0).all()
    assert found.timeline["busy_share"].max() <= 1.0 + 1e-9
    assert found.summary["failures"] > 0
    assert 0.0 < found.summary["useful_share"] < 1.0


def test_the_seed_decides_the_run():
    queue = fk.workload("seren", 500, 1.0, 2048)
    cluster = Cluster(accelerators=2048, node_failures_per_node_day=0.1)
    assert fk.schedule(queue, cluster, seed=1).jobs.equals(fk.schedule(queue, cluster, seed=1).jobs)


PARTS = [f"{part}_cost_usd" for part in ("useful", "saves", "preemption", "failures", "spread")]


@pytest.mark.parametrize("policy", [Policy(), Policy(packed=False, preempt=False)])
def test_the_parts_of_the_bill_sum_to_the_rent(policy):
    cluster = Cluster(accelerators=2048, node_failures_per_node_day=0.05, rental_usd_per_accelerator_h=2.5)
    found = fk.schedule(fk.workload("kalos", 2000, 1.0, 2048, seed=4), cluster, policy)
    bill, jobs = found.summary, found.jobs
    assert bill["rental_cost_usd"] == pytest.approx(2.5 * bill["accelerator_hours"], rel=1e-12)
    assert math.fsum(bill[part] for part in PARTS) == pytest.approx(bill["rental_cost_usd"], rel=1e-9)
    assert jobs["rental_cost_usd"].sum() == pytest.approx(bill["rental_cost_usd"], rel=1e-9)
    wasted = bill["preemption_cost_usd"] + bill["failures_cost_usd"]
    assert jobs["wasted_cost_usd"].sum() == pytest.approx(wasted, rel=1e-9)
    assert bill["useful_cost_usd"] / bill["rental_cost_usd"] == pytest.approx(bill["useful_share"], rel=1e-9)
    assert all(bill[part] > 0.0 for part in PARTS if policy.preempt or part != "preemption_cost_usd")


def test_a_preemption_costs_one_save_and_one_restart():
    cluster = CALM.replace(checkpoint_write_s=10.0, checkpoint_interval_s=1000.0, restart_s=20.0)
    found = fk.schedule(jobs((0, 64, 500, 0), (100, 64, 50, 2)), cluster.replace(rental_usd_per_accelerator_h=3600.0))
    assert found.summary["preemption_cost_usd"] == pytest.approx(30.0 * 64)
    assert found.jobs["wasted_cost_usd"].to_list() == pytest.approx([30.0 * 64, 0.0])
    assert found.summary["saves_cost_usd"] == pytest.approx(550.0 * 0.01 * 64)


def test_idle_accelerators_are_paid_too():
    found = fk.schedule(
        jobs((0, 32, 100, 0), (200, 1, 1, 0)), CALM.replace(rental_usd_per_accelerator_h=3600.0)
    ).summary
    assert found["idle_cost_usd"] == pytest.approx(200 * 64 - 100 * 32)


def test_by_default_the_scheduler_fills_holes_preempts_and_packs():
    hole = jobs((0, 48, 100, 0), (1, 64, 50, 0), (2, 16, 90, 0))
    critical = jobs((0, 64, 500, 0), (100, 64, 50, 2))
    assert fk.schedule(hole, CALM).jobs["start_s"].to_list() == [0.0, 100.0, 2.0]
    assert fk.schedule(critical, CALM).summary["preemptions"] == 1.0
    assert all(fk.schedule(jobs((0, 32, 1, 0)), CALM, seed=seed).jobs["pods"][0] == 1 for seed in range(9))
    assert any(
        fk.schedule(jobs((0, 32, 1, 0)), CALM, Policy(packed=False), seed=seed).jobs["pods"][0] > 1 for seed in range(9)
    )


@pytest.mark.parametrize("first", [0.0, 1234.5])
def test_busy_accelerator_seconds_of_the_timeline_are_the_work_of_the_jobs(first):
    rows = [(first + 700.0 * i, 8 * (1 + i % 7), 900.0 + 333.0 * i, i % 2) for i in range(40)]
    found = fk.schedule(jobs(*rows), CALM, Policy(preempt=False))
    busy = found.timeline["busy_share"].sum() * 64 * 3600.0
    assert busy == pytest.approx(math.fsum(need * run for _, need, run, _ in rows), rel=1e-9)
    assert found.timeline["hour"].to_list() == [float(hour) for hour in range(found.timeline.height)]


def test_down_accelerator_seconds_of_the_timeline_are_the_repairs():
    """One node that always works, whose repairs all take two hours: each failure has a repair after it."""
    one = CALM.replace(accelerators=8, nodes_per_pod=1, node_failures_per_node_day=1.0, checkpoint_interval_s=600.0)
    fragile = one.replace(node_repair_median_s=7200.0, node_repair_sigma=0.0)
    found = fk.schedule(jobs((0, 8, 1e6, 0)), fragile)
    assert found.summary["failures"] > 3
    assert found.timeline["down_share"].sum() * 3600.0 == pytest.approx(found.summary["failures"] * 7200.0, rel=1e-9)


def test_the_clock_may_start_at_any_time():
    cluster = CALM.replace(rental_usd_per_accelerator_h=2.0)
    early, late = (
        fk.schedule(jobs(*[(start + 50 * i, 16, 300, 0) for i in range(20)]), cluster).summary for start in (0.0, 5e4)
    )
    assert late == pytest.approx(early, rel=1e-9)


def test_no_more_jobs_are_preempted_than_room_is_needed():
    """Two of four requested nodes are free: the younger job is preempted from its two nodes, the older continues."""
    found = fk.schedule(jobs((0, 32, 500, 0), (1, 16, 500, 0), (100, 32, 50, 2)), CALM).jobs
    assert found["preemptions"].to_list() == [0.0, 1.0, 0.0]
    assert found["start_s"][2] == 100.0


def test_a_critical_job_smaller_than_a_node_preempts_a_job_of_its_size():
    found = fk.schedule(jobs(*[(0, 4, 500, 0)] * 16, (100, 4, 50, 2)), CALM).jobs
    assert found["preemptions"].sum() == 1.0
    assert found["start_s"][16] == 100.0


def test_a_cluster_is_read_from_a_scenario():
    run = fk.preset("deepseek_v3")
    cluster = Cluster.of(run, pod_spread_penalty=0.0)
    assert (cluster.accelerators, cluster.rental_usd_per_accelerator_h) == (2048, 2.0)
    assert cluster.restart_s == run["restart_s"]
    assert cluster.pod_spread_penalty == 0.0


def test_a_cluster_fails_and_saves_as_its_scenario_does():
    run = fk.preset("llama_3_1_405b")
    cluster, found = (
        Cluster.of(run),
        fk.evaluate(run, ("failures_per_day", "checkpoint_interval_s", "checkpoint_write_s")),
    )
    assert cluster.node_failures_per_node_day * cluster.nodes == pytest.approx(found["failures_per_day"], rel=1e-12)
    assert cluster.checkpoint_interval_s == found["checkpoint_interval_s"]
    assert cluster.checkpoint_write_s == found["checkpoint_write_s"]
    calm = Cluster.of(run.replace(accelerator_mtbf_s=1e9))
    assert calm.node_failures_per_node_day / cluster.node_failures_per_node_day == pytest.approx(
        run["accelerator_mtbf_s"] / 1e9, rel=1e-12
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fk.schedule(jobs((0, 128, 1, 0)), CALM), "it never starts"),
        (lambda: fk.schedule(jobs((0, 1, -1, 0)), CALM), "column run_s"),
        (lambda: fk.schedule(jobs((0, 1, 1, 0)).drop("priority"), CALM), "no column 'priority'"),
        (lambda: fk.schedule(jobs((0, 1, 1, 0)).head(0), CALM), "no rows"),
        (lambda: fk.schedule(jobs((0, 1, 1, math.nan)), CALM), "column priority holds a value missing or not finite"),
        (lambda: fk.schedule([(0, 1, 1, 0)], CALM), "jobs must be a polars DataFrame"),
        (lambda: fk.schedule(jobs((0, 1, 1, 0)), 64), "cluster must be a fk.Cluster, got 64"),
        (lambda: fk.schedule(jobs((0, 1, 1, 0)), CALM, seed=0.5), "seed must be an integer, got 0.5"),
        (lambda: Cluster(accelerators=12), "must be a multiple of"),
        (lambda: Cluster(node_repair_median_s=0.0), "node_repair_median_s"),
        (lambda: fk.schedule(jobs((0, 64, 1e6, 0)), NEVER), "failed 1000 times without an end"),
        (lambda: fk.schedule(jobs((0, 64, 1e6, 0)), BROKEN), "waits for more than a year"),
    ],
)
def test_impossible_jobs_and_clusters_are_refused(call, message):
    with pytest.raises(fk.FactorykitError, match=message):
        call()
