"""Simulated runs against exact means and spreads, and the rules of each part of a run."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import factorykit as fk
from factorykit.formulas.checkpoint import lost_work_s
from factorykit.formulas.checkpoint_runtime import (
    checkpoint_failures,
    checkpoint_goodput_protected,
    checkpoint_wall_s,
    checkpoint_wall_sd_s,
    lost_work_run_s,
)
from factorykit.formulas.checkpoint_tiers import checkpoint_goodput_async
from factorykit.model.operations.run_plan import RunConditions, run_plan

LLAMA = 54 * 86400 / 419
RUN = {
    "training_s": 3802 * 1100.0,
    "checkpoint_interval_s": 1100.0,
    "checkpoint_write_s": 60.0,
    "cluster_mtbf_s": LLAMA,
    "restart_s": 600.0,
    "downtime_s": 0.0,
}
ONE = (fk.FailureCause("any"),)
CASES = {
    "llama, 54 days": (3802, 1100.0, 60.0, 600.0, 0.0, LLAMA),
    "with downtime": (2000, 1800.0, 30.0, 300.0, 300.0, LLAMA),
    "98,000 GPUs": (4000, 240.0, 10.0, 600.0, 0.0, 1080.0),
    "writes longer than the time between failures": (10, 500.0, 900.0, 300.0, 60.0, 800.0),
    "rare failures": (300, 3600.0, 60.0, 600.0, 0.0, 1e7),
}


def scenario(n: float, tau: float, write: float, restart: float, down: float, mtbf: float) -> dict[str, float]:
    names = ("checkpoint_interval_s", "checkpoint_write_s", "restart_s", "downtime_s", "cluster_mtbf_s")
    return {"training_s": n * tau} | dict(zip(names, (tau, write, restart, down, mtbf), strict=True))


def z(frame: pl.DataFrame, column: str, mean: float) -> float:
    """Standard errors between the sample mean and the exact one."""
    spread = float(frame[column].std() or 0.0)  # type: ignore[arg-type]
    return (float(frame[column].mean()) - mean) / (spread / math.sqrt(frame.height))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("causes", [(), ONE], ids=["compound", "stepped"])
def test_mean_and_spread_are_the_exact_ones(name: str, causes: tuple[fk.FailureCause, ...]) -> None:
    n, tau, write, restart, down, mtbf = CASES[name]
    frame = fk.simulate(scenario(*CASES[name]), 10_000 if not causes else 4000, 11, causes=causes)
    exact = (float(n), tau, write, mtbf, restart, down)
    assert abs(z(frame, "wall_s", checkpoint_wall_s(*exact))) < 4
    assert frame["wall_s"].std() == pytest.approx(checkpoint_wall_sd_s(*exact), rel=0.05)
    assert abs(z(frame, "failures", checkpoint_failures(*exact[:5]))) < 4
    lost = lost_work_run_s(float(n), lost_work_s(tau, write, mtbf), tau, write, mtbf)
    assert abs(z(frame, "lost_work_run_s", lost)) < 4


@pytest.mark.parametrize("causes", [(), ONE], ids=["compound", "stepped"])
def test_protected_restarts_have_their_own_exact_mean(causes: tuple[fk.FailureCause, ...]) -> None:
    frame = fk.simulate(RUN, 5000, 5, causes=causes, protected_restart=True)
    mean = 3802.0 * 1100.0 / checkpoint_goodput_protected(1100.0, 60.0, LLAMA, 600.0, 0.0)
    spread = checkpoint_wall_sd_s(3802.0, 1100.0, 60.0, LLAMA, 0.0, 600.0)
    assert abs(z(frame, "wall_s", mean)) < 4
    assert frame["wall_s"].std() == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize("case", ["mc/llama54_b", "mc/fthsdp_98k"])
def test_a_golden_simulation_is_met(shared: Path, case: str) -> None:
    cases = json.loads((shared / "golden" / "reliability.json").read_text(encoding="utf-8"))["cases"]
    i, expected = next((row["inputs"], row["expected"]) for row in cases if row["id"] == case)
    values = (i["n_segments"], i["tau_s"], i["C_s"], i["R_s"], i["D_s"], i["M_s"])
    frame = fk.simulate(scenario(*values), i["reps"], 3)
    assert abs(frame["wall_s"].mean() - expected["E_T_s"]) < expected["tol_mean_s"]  # type: ignore[operator]
    assert frame["wall_s"].std() == pytest.approx(expected["sd_T_s"], rel=0.05)


TIERED = {
    "two": ((0.85, 1.0, 300.0, 1), (0.15, 30.0, 1500.0, 20)),
    "three": ((0.7, 1.0, 60.0, 1), (0.25, 10.0, 250.0, 4), (0.05, 120.0, 900.0, 7)),
}
"""Share of failures, write, restart, and checkpoints per checkpoint, of each tier."""


@pytest.mark.parametrize("name", TIERED)
@pytest.mark.parametrize("protected", [True, False])
def test_tiers_have_the_exact_mean_of_their_pattern(name: str, protected: bool) -> None:
    rows = TIERED[name]
    levels = [fk.checkpoint_patterns.Level(share, write, restart) for share, write, restart, _ in rows]
    tiers = [fk.Tier(f"tier {i}", write, restart, every) for i, (_, write, restart, every) in enumerate(rows)]
    causes = [fk.FailureCause(f"cause {i}", share, destroys=i) for i, (share, *_) in enumerate(rows)]
    counts = [every for *_, every in rows[1:]]
    size, patterns, (tau, down, mtbf) = math.prod(counts), 40, (100.0, 40.0, 3000.0)
    run = scenario(size * patterns, tau, 1.0, 0.0, down, mtbf)
    frame = fk.simulate(run, 4000, 2, tiers=tiers, causes=causes, protected_restart=protected)
    exact = fk.checkpoint_patterns.pattern_s(levels, counts, tau, mtbf, downtime_s=down, protected_restart=protected)
    assert abs(z(frame, "wall_s", patterns * exact)) < 4
    if protected:
        near = frame["restores_by_tier"].struct.field("tier 0").sum() / frame["failures"].sum()
        assert near == pytest.approx(rows[0][0], abs=0.01)


def test_a_failed_far_restart_repeats_from_the_far_copy() -> None:
    """The near copy is gone: a failure during the far restart cannot be repaired from it."""
    run = scenario(100, 100.0, 1.0, 0.0, 0.0, 500.0)
    tiers = (fk.Tier("near", 1.0, 1.0), fk.Tier("far", 1.0, 2000.0))
    causes = (fk.FailureCause("process", 0.5), fk.FailureCause("node", 0.5, destroys=1))
    story = fk.timeline(run, 3, tiers=tiers, causes=causes)
    restarts = story.filter(state="restart").select("cause", length=pl.col("end_s") - pl.col("start_s"))
    assert restarts.filter(pl.col("cause").is_null())["length"].round(6).is_in([1.0, 2000.0]).all()
    after_strike = restarts.filter(pl.col("cause").shift().is_not_null(), pl.col("cause").is_null())
    assert (after_strike["length"].round(6) == 2000.0).all()
    assert after_strike.height > 5


def test_a_durability_lag_costs_as_much_as_in_the_formula() -> None:
    run = scenario(2000, 600.0, 0.59, 300.0, 0.0, LLAMA)
    frame = fk.simulate(run, 4000, 6, tiers=(fk.Tier("store", 0.59, lag_s=51.06),))
    goodput = checkpoint_goodput_async(600.0, 0.59, LLAMA, 300.0, 0.0, 51.06)
    assert abs(z(frame, "wall_s", run["training_s"] / goodput)) < 4


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    first, again, other = (fk.simulate(RUN, 50, seed) for seed in (7, 7, 8))
    assert first.equals(again)
    assert not first["wall_s"].equals(other["wall_s"])


def test_the_parts_of_a_run_sum_to_its_wall_clock_time() -> None:
    frame = fk.simulate(RUN | {"training_s": 500_500.0, "downtime_s": 60.0}, 200, 1)
    schedule = 455 * 1160.0  # 500,500 s are 455 whole segments
    parts = frame.select(pl.sum_horizontal("lost_work_run_s", "recovery_s", "spare_wait_s", "maintenance_s"))
    np.testing.assert_allclose(parts.to_series() + schedule, frame["wall_s"], rtol=1e-9)
    assert frame["goodput"].is_between(0, 1).all()


def test_a_shorter_last_segment_is_saved_too() -> None:
    calm = RUN | {"cluster_mtbf_s": 1e15, "training_s": 2500.0}
    assert fk.simulate(calm, 3)["wall_s"].to_list() == [2500.0 + 3 * 60.0] * 3
    assert fk.simulate(calm, 3, causes=ONE)["wall_s"].to_list() == [2500.0 + 3 * 60.0] * 3


def test_without_failures_a_run_takes_its_work_and_writes() -> None:
    frame = fk.simulate(RUN | {"cluster_mtbf_s": 1e15}, 10)
    assert frame["wall_s"].unique().to_list() == [3802 * 1160.0]
    assert frame["failures"].sum() == 0


def test_spares_that_run_out_make_the_job_wait() -> None:
    causes = (fk.FailureCause("node", repair_s=86400.0),)
    waits = [fk.simulate(RUN, 100, 1, causes=causes, spare_nodes=n)["spare_wait_s"].mean() for n in (0, 2, 8, 40)]
    assert waits == sorted(waits, reverse=True)  # type: ignore[type-var]
    assert waits[-1] == 0.0
    none = fk.simulate(RUN, 100, 1, causes=causes, spare_nodes=0)
    np.testing.assert_allclose(none["spare_wait_s"], none["failures"] * 86400.0)


def test_the_time_waited_for_spares_equals_a_reference_loop() -> None:
    """One run, followed failure by failure with a sorted list of times at which nodes are free."""
    causes = (fk.FailureCause("node", repair_s=50_000.0),)
    story = fk.timeline(RUN, 3, causes=causes, spare_nodes=3)
    frame = fk.simulate(RUN, 1, 3, causes=causes, spare_nodes=3)
    waiting = story.filter(state="waiting")
    assert (waiting["end_s"] - waiting["start_s"]).sum() == pytest.approx(frame["spare_wait_s"].item())
    free = [0.0] * 3
    waited = 0.0
    for end in story.filter(pl.col("cause").is_not_null())["end_s"]:
        free.append(end + 50_000.0)
        free.sort()
        waited += max(free.pop(0) - end, 0.0)
    assert waited == pytest.approx(frame["spare_wait_s"].item())


def test_restarts_that_fail_are_repeated() -> None:
    rare = RUN | {"cluster_mtbf_s": 1e6}
    frame = fk.simulate(rare, 4000, 1, restart_failure_probability=0.5, protected_restart=True)
    each = frame["recovery_s"].sum() / frame["failures"].sum()
    assert each == pytest.approx(1200.0, rel=0.03)  # two attempts of 600 s on average


def test_corrupt_copies_send_a_run_further_back() -> None:
    def lost(share: float) -> float:
        tiers = (fk.Tier("near", 1.0), fk.Tier("far", 10.0, every=5, corrupt_probability=share / 2))
        near = (fk.Tier("near", 1.0, corrupt_probability=share), tiers[1])
        return float(fk.simulate(RUN, 200, 1, tiers=near, causes=ONE)["lost_work_run_s"].mean())  # type: ignore[arg-type]

    assert lost(0.0) < lost(0.2) < lost(0.8)


def test_planned_stops_lose_no_work() -> None:
    calm = RUN | {"cluster_mtbf_s": 1e15}
    frame = fk.simulate(calm, 5, maintenance=fk.Maintenance(86400.0, 7200.0))
    stops = frame["maintenance_s"] / 7260.0
    assert stops.round(9).to_list() == [51.0] * 5  # 3,802 segments of 1,160 s are 51.04 days of running
    assert frame["lost_work_run_s"].sum() == 0.0
    np.testing.assert_allclose(frame["wall_s"], 3802 * 1160.0 + stops * (7260.0 + 600.0))


def test_causes_fail_in_proportion_to_their_weights() -> None:
    causes = [fk.FailureCause("GPU", 268), fk.FailureCause("software", 54), fk.FailureCause("rest", 97)]
    counts = fk.simulate(RUN, 300, 1, causes=causes)["failures_by_cause"].struct.unnest()
    shares = (counts.sum() / counts.sum().sum_horizontal()).row(0)
    assert shares == pytest.approx((268 / 419, 54 / 419, 97 / 419), abs=0.006)


def test_clustered_gaps_with_the_same_mean_change_the_spread() -> None:
    from scipy.stats import weibull_min

    gaps = weibull_min(0.6, scale=LLAMA / math.gamma(1 + 1 / 0.6))
    clustered, plain = fk.simulate(RUN, 1000, 1, gap_s=gaps), fk.simulate(RUN, 1000, 1)
    assert clustered["wall_s"].std() > 1.2 * plain["wall_s"].std()  # type: ignore[operator]


def test_the_timeline_of_a_run_adds_up() -> None:
    tiers = (fk.Tier("near", 1.0, 30.0), fk.Tier("far", 30.0, 300.0, every=10))
    causes = (fk.FailureCause("process", 3), fk.FailureCause("node", 1, 86400.0, 1))
    conditions: dict[str, Any] = {"tiers": tiers, "causes": causes, "spare_nodes": 4}
    conditions["maintenance"] = fk.Maintenance(3 * 86400.0, 3600.0)
    run = RUN | {"downtime_s": 60.0}
    story = fk.timeline(run, 9, **conditions)
    frame = fk.simulate(run, 1, 9, **conditions)
    assert story["end_s"][-1] == pytest.approx(frame["wall_s"].item())
    np.testing.assert_allclose(story["start_s"][1:], story["end_s"][:-1])
    assert story["cause"].count() == frame["failures"].item()
    lengths = story.group_by("state").agg((pl.col("end_s") - pl.col("start_s")).sum()).rows()
    spent = dict(lengths)
    assert spent["maintenance"] == pytest.approx(frame["maintenance_s"].item())
    assert spent["restart"] + spent["down"] == pytest.approx(frame["recovery_s"].item())
    assert spent["waiting"] == pytest.approx(frame["spare_wait_s"].item())
    assert spent["lost"] <= frame["lost_work_run_s"].item() * (1 + 1e-9)


def test_a_price_gives_every_run_a_cost() -> None:
    frame = fk.simulate(RUN | {"accelerators": 16384.0, "rental_usd_per_accelerator_h": 2.0}, 5)
    np.testing.assert_allclose(frame["rental_cost_usd"], frame["wall_s"] / 3600 * 16384 * 2.0)
    assert fk.simulate(RUN, 5)["rental_cost_usd"].null_count() == 5


def test_a_simulated_run_that_never_ends_is_infinite_with_the_reason() -> None:
    with pytest.warns(fk.FactorykitWarning, match=r"wall_s is infinite: .* restart_s = 10000 is long against"):
        frame = fk.simulate(RUN | {"cluster_mtbf_s": 10.0, "restart_s": 1e4}, 4)
    assert frame["wall_s"].to_list() == [math.inf] * 4
    assert frame["goodput"].to_list() == [0.0] * 4


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"runs": 0}, "runs must be between 1 and 10,000,000, got 0"),
        ({"runs": 2.5}, "runs must be an integer, got 2.5"),
        ({"seed": -1}, "seed must be between .* got -1"),
        ({"spare_nodes": 3}, "no effect without repairs"),
        ({"causes": [fk.FailureCause("x", destroys=1)]}, "destroys all 1 tiers"),
        ({"causes": [fk.FailureCause("x", 0.0)]}, "sum to 0"),
        ({"causes": ["GPU"]}, "causes must be fk.FailureCause, got 'GPU'"),
        ({"tiers": [60.0]}, "tiers must be fk.Tier, got 60.0"),
        ({"maintenance": 3600.0}, "maintenance = 3600.0"),
        ({"tiers": [fk.Tier("x", 1.0, every=3)]}, "nearest tier is written every time"),
        ({"restart_failure_probability": 1.0}, "restart_failure_probability = 1.0"),
    ],
)
def test_invalid_conditions_are_refused(conditions: dict[str, Any], message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        fk.simulate(RUN, **conditions)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fk.Tier("x", -1.0), r"Tier\('x'\): write_s = -1"),
        (lambda: fk.Tier("x", 1.0, corrupt_probability=5), "corrupt_probability = 5"),
        (lambda: fk.FailureCause("x", math.nan), "weight = nan"),
        (lambda: fk.FailureCause("x", repair_s=math.inf), "repair_s = inf"),
        (lambda: fk.FailureCause("x", repair_s=fk.Normal(-5.0, 1.0)), "repair_s reaches"),
        (lambda: fk.Maintenance(0.0, 5.0), "every_s = 0"),
    ],
)
def test_parts_of_a_simulation_are_checked_when_made(make: Any, message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        make()


def test_missing_inputs_of_a_simulation_are_named() -> None:
    with pytest.raises(fk.FactorykitError, match="restart_s"):
        fk.simulate({name: value for name, value in RUN.items() if name != "restart_s"})


def test_runs_whose_far_checkpoint_is_never_reached_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from factorykit.model.operations import draws as simulate_draws

    monkeypatch.setattr(simulate_draws, "MOST_FAILURES", 2000)
    tiers = (fk.Tier("near", 1.0), fk.Tier("far", 60.0, every=500))
    with pytest.warns(fk.FactorykitWarning, match="wall_s is infinite in 3 runs: they stopped 2,000 times"):
        frame = fk.simulate(
            RUN | {"cluster_mtbf_s": 6000.0},
            3,
            tiers=tiers,
            causes=[fk.FailureCause("node", destroys=1)],
            protected_restart=True,
        )
    assert frame["goodput"].to_list() == [0.0] * 3


def test_simulate_and_timeline_take_the_conditions_of_a_plan() -> None:
    names = inspect.signature(run_plan).parameters.keys() - {"inputs", "using", "assume"}
    assert names == RunConditions.__annotations__.keys()
    assert names == {"causes", "tiers", "gap_s", "spare_nodes", "maintenance"} | {
        "restart_failure_probability",
        "protected_restart",
    }
