"""Reliability and checkpoint economics: published values, identities, limits and properties of optima."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

import factorykit as fk
from factorykit.core.errors import FactorykitWarning
from factorykit.formulas import catalogue
from factorykit.formulas.checkpoint import (
    checkpoint_goodput,
    checkpoint_interval_daly_s,
    checkpoint_interval_ettr_s,
    checkpoint_interval_optimal_s,
    checkpoint_interval_rfo_s,
    checkpoint_interval_saxena_s,
    checkpoint_interval_young_s,
    interval_penalty,
    lost_work_s,
)
from factorykit.formulas.checkpoint_runtime import (
    checkpoint_failures,
    checkpoint_goodput_protected,
    checkpoint_wall_s,
    checkpoint_wall_sd_s,
    lost_work_run_s,
)
from factorykit.formulas.checkpoint_tiers import (
    checkpoint_goodput_async,
    checkpoint_interval_async_s,
    segments_per_pattern_first_order,
    two_level_goodput,
    two_level_interval_s,
    two_level_pattern_exposed_s,
    two_level_pattern_s,
)
from factorykit.formulas.cost import failure_cost_usd
from factorykit.formulas.failure_cost import interval_usd_per_day, mtbf_saving_usd_per_day, restart_saving_usd_per_day
from factorykit.formulas.lifetimes import bring_up_failures, bring_up_mtbf_s, bring_up_survival, first_failure_s
from factorykit.formulas.reliability import (
    cluster_mtbf_s,
    cluster_mtbf_superlinear_s,
    ettr,
    failures_per_day,
    node_repair_lognormal_s,
)
from factorykit.formulas.resilience import (
    elastic_goodput,
    redundant_mtbf_s,
    sdc_checkpoints_needed,
    sdc_goodput,
)

ROWS = pl.read_csv(Path(__file__).parent.parent / "golden" / "reliability.csv", infer_schema=False).to_dicts()
LLAMA = 54 * 86400 / 419
writes, mtbfs = st.floats(1.0, 1e4), st.floats(1e3, 1e7)
restarts = st.floats(0.0, 3600.0)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['quantity']}: {row['locator']}")
def test_a_formula_gives_the_golden_value(row: dict[str, str]) -> None:
    inputs = {name: float(value) for name, value in (pair.split("=") for pair in row["inputs"].split())}
    assert catalogue()[row["quantity"]](**inputs) == pytest.approx(float(row["value"]), rel=float(row["rtol"]))


@pytest.mark.parametrize(("accelerators", "a_day"), [(24_576, 12), (100_000, 48), (2_048, 1)])
def test_fifty_thousand_hours_give_the_quoted_failures_a_day(accelerators: float, a_day: float) -> None:
    found = failures_per_day(cluster_mtbf_s(50_000 * 3600.0, accelerators))
    assert found == pytest.approx(a_day, rel=0.02)  # quoted as "about"


def test_half_an_interval_of_a_cluster_costs_the_quoted_amount() -> None:
    assert failure_cost_usd(1800.0 / 2, 0.0, 0.0, 50_000.0) == 12_500.0
    exact = failure_cost_usd(lost_work_s(1800.0, 60.0, LLAMA), 600.0, 0.0, 50_000.0)
    assert exact == pytest.approx(20_800, rel=0.01)  # the quoted figure leaves out the restart and the begun write


@given(st.floats(1e-3, 10.0), st.floats(1e3, 1e7))
def test_the_penalty_is_the_ratio_of_expected_times(ratio: float, mtbf: float) -> None:
    write = ratio * mtbf
    best = checkpoint_interval_optimal_s(write, mtbf)
    for interval in (best / 3, best * 1.0001, best * 2):
        times = [checkpoint_goodput(t, write, mtbf, 0.0, 0.0) for t in (best, interval)]
        assert interval_penalty(interval, write, mtbf) == pytest.approx(times[0] / times[1] - 1, rel=1e-6, abs=1e-12)
    assert interval_penalty(best, write, mtbf) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("formula", "write", "percent"),
    [
        (checkpoint_interval_young_s, 60.0, 0.0061),
        (checkpoint_interval_young_s, LLAMA / 4, 1.8),
        (checkpoint_interval_young_s, LLAMA, 14),
    ],
)
def test_a_rule_of_thumb_costs_the_known_percentage(formula: object, write: float, percent: float) -> None:
    penalty = 100 * interval_penalty(formula(write, LLAMA), write, LLAMA)  # type: ignore[operator]
    assert penalty == pytest.approx(percent, rel=0.03)


def test_dalys_higher_order_costs_less_than_a_millionth() -> None:
    assert interval_penalty(checkpoint_interval_daly_s(60.0, LLAMA), 60.0, LLAMA) < 1e-6


@given(writes, mtbfs)
def test_rules_meet_where_writes_and_restarts_are_fast(write: float, mtbf: float) -> None:
    young = checkpoint_interval_young_s(write / 1e8, mtbf)
    assert checkpoint_interval_saxena_s(write / 1e8, mtbf, 0.0) == pytest.approx(young, rel=1e-3)
    assert checkpoint_interval_rfo_s(write / 1e8, mtbf, 0.0, 0.0) == pytest.approx(young, rel=1e-3)


@given(st.floats(100, 5000), st.floats(1e-4, 0.01), st.floats(0, 300), st.floats(1, 600))
def test_the_ettr_interval_is_the_numeric_maximum(nodes: float, rate: float, restart: float, write: float) -> None:
    best = checkpoint_interval_ettr_s(nodes, rate, restart, write)
    found = minimize_scalar(
        lambda x: -ettr(nodes, rate, restart, math.exp(x), write),
        bounds=(math.log(best) - 2, math.log(best) + 2),
        method="bounded",
    )
    assert ettr(nodes, rate, restart, best, write) >= -found.fun * (1 - 1e-12)


@given(writes, writes, mtbfs, restarts, restarts)
def test_goodputs_are_shares_and_agree_with_their_times(
    interval: float, write: float, mtbf: float, restart: float, down: float
) -> None:
    args = (interval, write, mtbf, restart, down)
    exposed, protected = checkpoint_goodput(*args), checkpoint_goodput_protected(*args)
    assert 0.0 <= exposed <= protected <= 1.0
    if exposed > 0:
        assert 7 * interval / exposed == pytest.approx(checkpoint_wall_s(7.0, *args), rel=1e-9)
        total = checkpoint_failures(7.0, interval, write, mtbf, restart) * (mtbf + down)
        assert total == pytest.approx(checkpoint_wall_s(7.0, *args), rel=1e-9)


@given(st.floats(1e-6, 3.0), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_the_spread_is_that_of_the_laplace_transform(period: float, restart: float, down: float) -> None:
    """Mean and variance of one segment from the moments of an exponential cut off at x, integrated numerically."""

    def moments(x: float) -> tuple[float, float]:
        if x == 0.0:
            return 0.0, 0.0
        first, second = (quad(lambda t, n=n: t**n * math.exp(-t), 0, x, epsrel=1e-12)[0] for n in (1, 2))
        return first / -math.expm1(-x), second / -math.expm1(-x)

    def compound(x: float, base: float, mean: float, var: float) -> tuple[float, float]:
        first, second = moments(x)
        tries = math.expm1(x)
        each = first + mean
        spread = tries * (second - first**2 + var) + tries * math.exp(x) * each**2
        return base + tries * each, spread

    recovery = compound(restart, down + restart, down, 0.0)
    mean, var = compound(period, period, *recovery)
    assert checkpoint_wall_s(1.0, period, 0.0, 1.0, restart, down) == pytest.approx(mean, rel=1e-8)
    assert checkpoint_wall_sd_s(1.0, period, 0.0, 1.0, restart, down) == pytest.approx(math.sqrt(var), rel=1e-6)
    _, alone = compound(period, period, down + restart, 0.0)
    found = checkpoint_wall_sd_s(1.0, period, 0.0, 1.0, 0.0, down + restart)
    assert found == pytest.approx(math.sqrt(alone), rel=1e-6)


@pytest.mark.parametrize("ratio", [1e-12, 1e-9, 1e-6, 0.0299999, 0.0300001, 1.0, 10.0])
def test_spread_and_time_are_stable_from_tiny_to_long_periods(ratio: float) -> None:
    series = math.sqrt(ratio**3 / 3) if ratio < 1e-5 else None  # E[K] E[Y^2] with Y uniform on the period
    found = checkpoint_wall_sd_s(1.0, ratio, 0.0, 1.0, 0.0, 0.0)
    assert math.isfinite(found)
    if series:
        assert found == pytest.approx(series, rel=1e-5)
    near = checkpoint_wall_sd_s(1.0, ratio * (1 + 1e-6), 0.0, 1.0, 0.0, 0.0)
    assert near == pytest.approx(found, rel=2e-5)


def test_parts_of_the_expected_time_sum_to_the_whole() -> None:
    n, tau, write, restart, down = 3802.0, 1100.0, 60.0, 600.0, 120.0
    struck = n * math.expm1((tau + write) / LLAMA)
    in_restarts = struck * math.expm1(restart / LLAMA)
    parts = (
        n * (tau + write)
        + lost_work_run_s(n, lost_work_s(tau, write, LLAMA), tau, write, LLAMA)
        + (struck + in_restarts) * down
        + struck * restart
        + in_restarts * lost_work_s(restart, 0.0, LLAMA)
    )
    assert parts == pytest.approx(checkpoint_wall_s(n, tau, write, LLAMA, restart, down), rel=1e-12)


@given(writes, st.floats(0.1, 60), mtbfs, restarts, st.floats(0, 600))
def test_a_durability_lag_is_a_longer_restart(t: float, block: float, mtbf: float, restart: float, lag: float) -> None:
    late = checkpoint_goodput_async(t, block, mtbf, restart, 0.0, lag)
    assert late == pytest.approx(checkpoint_goodput(t, block, mtbf, restart + lag, 0.0), rel=1e-12)
    assert checkpoint_interval_async_s(block, mtbf, lag) >= lag - block


@given(
    st.integers(1, 40),
    st.floats(30, 2000),
    st.floats(0.0, 60),
    st.floats(0.0, 300),
    st.floats(0, 1),
    st.floats(2e4, 1e6),
)
def test_two_levels_solve_their_markov_chain(n: int, tau: float, one: float, two: float, p: float, mtbf: float) -> None:
    near, far = 60.0, 300.0
    matrix, right = np.eye(n), np.zeros(n)
    for i in range(n):
        q = math.exp(-(tau + one + (two if i == n - 1 else 0.0)) / mtbf)
        matrix[i, i] -= (1 - q) * p
        matrix[i, 0] -= (1 - q) * (1 - p)
        if i + 1 < n:
            matrix[i, i + 1] -= q
        right[i] = (1 - q) * (mtbf + p * near + (1 - p) * far)
    chain = float(np.linalg.solve(matrix, right)[0])
    assert two_level_pattern_s(float(n), tau, one, two, near, far, p, mtbf) == pytest.approx(chain, rel=1e-7)
    levels = [fk.checkpoint_patterns.Level(p, one, near), fk.checkpoint_patterns.Level(1 - p, two, far)]
    if p < 1:
        assert fk.checkpoint_patterns.pattern_s(levels, [n], tau, mtbf) == pytest.approx(chain, rel=1e-7)
        exposed = two_level_pattern_exposed_s(float(n), tau, one, two, near, far, p, mtbf, 120.0)
        found = fk.checkpoint_patterns.pattern_s(levels, [n], tau, mtbf, downtime_s=120.0, protected_restart=False)
        assert exposed == pytest.approx(found, rel=1e-12)
        assert exposed > chain * (1 - 1e-12)


def test_three_levels_solve_their_markov_chain() -> None:
    levels = [
        fk.checkpoint_patterns.Level(*row) for row in ((0.7, 1.0, 10.0), (0.25, 10.0, 50.0), (0.05, 120.0, 400.0))
    ]
    counts, sizes, mtbf, tau = [4, 7], [1, 4, 28], 3000.0, 100.0
    matrix, right = np.eye(28), np.zeros(28)
    for i in range(28):
        writes_s = sum(level.write_s for level, size in zip(levels, sizes, strict=True) if (i + 1) % size == 0)
        q = math.exp(-(tau + writes_s) / mtbf)
        right[i] = (1 - q) * (mtbf + sum(level.share * level.restart_s for level in levels))
        if i + 1 < 28:
            matrix[i, i + 1] -= q
        for level, size in zip(levels, sizes, strict=True):
            matrix[i, i // size * size] -= (1 - q) * level.share
    chain = float(np.linalg.solve(matrix, right)[0])
    assert fk.checkpoint_patterns.pattern_s(levels, counts, tau, mtbf) == pytest.approx(chain, rel=1e-12)


def test_one_level_of_checkpoints_is_the_plain_case() -> None:
    only = [fk.checkpoint_patterns.Level(1.0, 60.0, 600.0)]
    plain = 1100.0 / checkpoint_goodput_protected(1100.0, 60.0, LLAMA, 600.0, 0.0)
    assert fk.checkpoint_patterns.pattern_s(only, [], 1100.0, LLAMA) == pytest.approx(plain, rel=1e-12)
    best = fk.checkpoint_patterns.best_pattern(only, LLAMA)
    assert best.checkpoint_interval_s == pytest.approx(checkpoint_interval_optimal_s(60.0, LLAMA), rel=1e-3)


def test_the_best_pattern_beats_the_first_order_and_its_neighbours() -> None:
    levels = [fk.checkpoint_patterns.Level(0.85, 1.0, 60.0), fk.checkpoint_patterns.Level(0.15, 30.0, 300.0)]
    best = fk.checkpoint_patterns.best_pattern(levels, 3600.0)

    def goodput(n: float, tau: float) -> float:
        return two_level_goodput(n, tau, two_level_pattern_s(n, tau, 1.0, 30.0, 60.0, 300.0, 0.85, 3600.0))

    count = segments_per_pattern_first_order(1.0, 30.0, 0.85)
    rule = goodput(round(count), two_level_interval_s(round(count), 1.0, 30.0, 0.85, 3600.0))
    assert rule < best.goodput < rule * 1.001
    for n, factor in (
        (best.counts[0] - 1, 1.0),
        (best.counts[0] + 1, 1.0),
        (best.counts[0], 0.9),
        (best.counts[0], 1.1),
    ):
        assert goodput(n, best.checkpoint_interval_s * factor) <= best.goodput


@given(st.floats(0.4, 3.0), st.floats(2, 1e6))
def test_the_first_failure_is_the_integral_of_its_survival(shape: float, number: float) -> None:
    scale = fk.reliability.weibull_scale_s(1.0, shape)
    mean = first_failure_s(1.0, number, shape)
    parts = [
        quad(lambda t: bring_up_survival(bring_up_failures(t * mean, number, scale, shape)), low, high, limit=200)[0]
        for low, high in ((1e-12, 1.0), (1.0, 60.0), (60.0, 3000.0))
    ]
    assert sum(parts) == pytest.approx(1.0, rel=1e-5)


def test_early_failures_dominate_bring_up() -> None:
    hours = first_failure_s(50_000.0, 16_384.0, 0.7)
    assert hours == pytest.approx(0.048, abs=0.0005)
    assert cluster_mtbf_s(50_000.0, 16_384.0) == pytest.approx(3.05, abs=0.005)
    assert bring_up_mtbf_s(10.0, bring_up_failures(10.0, 1.0, 7.0, 1.0), 1.0) == pytest.approx(7.0)


def test_replaced_parts_fail_at_the_steady_rate_in_the_end() -> None:
    scale = fk.reliability.weibull_scale_s(1.0, 2.0)
    late = fk.reliability.renewal_failures(20.0, 1.0, scale, 2.0) - fk.reliability.renewal_failures(
        15.0, 1.0, scale, 2.0
    )
    assert late == pytest.approx(5.0, rel=1e-3)
    early = fk.reliability.renewal_failures(0.01, 1.0, scale, 2.0)
    assert early == pytest.approx(bring_up_failures(0.01, 1.0, scale, 2.0), rel=1e-3)


@given(st.integers(1, 60))
def test_doubled_nodes_last_as_long_as_the_survival_integral(pairs: int) -> None:
    integral, _ = quad(lambda t: (1 - (1 - math.exp(-t)) ** 2) ** pairs, 0, 60)
    assert redundant_mtbf_s(1.0, 2.0 * pairs) == pytest.approx(integral, rel=2e-3 / pairs)


def test_corrections_equal_the_measurements() -> None:
    linear = cluster_mtbf_s(8 * 86400 / 0.0023, 98304.0)
    assert linear / 60 == pytest.approx(50.95, abs=0.01)
    assert cluster_mtbf_superlinear_s(8 * 86400 / 0.0023, 98304.0) / 60 == pytest.approx(18.0, abs=0.01)


@given(writes, writes, mtbfs, restarts)
def test_savings_are_differences_of_goodput(interval: float, write: float, mtbf: float, restart: float) -> None:
    usd, day = 50_000.0, 24 * 50_000.0
    slow, fast = (checkpoint_goodput(interval, write, mtbf, r, 0.0) for r in (restart, restart / 2))
    if slow > 0:
        saved = restart_saving_usd_per_day(restart, restart / 2, mtbf, usd)
        assert saved == pytest.approx(day * (1 - slow / fast), rel=1e-6, abs=1e-6)
        assert mtbf_saving_usd_per_day(interval, write, mtbf, restart, 0.0, 1.0, usd) == 0.0
        assert mtbf_saving_usd_per_day(interval, write, mtbf, restart, 0.0, 2.0, usd) > 0.0
    assert interval_usd_per_day(0.0, usd) == 0.0


def test_silent_corruption_costs_nothing_when_it_never_happens() -> None:
    assert sdc_goodput(1740.0, 60.0, 1e18, 3600.0, 600.0) == pytest.approx(1.0, rel=1e-9)
    assert sdc_goodput(1740.0, 60.0, 7776.0, 3600.0, 600.0) < 0.6
    assert sdc_checkpoints_needed(0.0, 1740.0, 60.0) == 1.0


def test_a_single_replica_stops_at_each_failure() -> None:
    assert elastic_goodput(600.0, 1.0, LLAMA, 0.0, 1100.0, 900.0, 0.0) == pytest.approx(1 - 600 / LLAMA)
    assert elastic_goodput(600.0, 16.0, LLAMA, 0.0, 1100.0, 900.0, 0.0) > 0.99


@given(st.floats(60, 1e6), st.floats(0, 2.5))
def test_lognormal_repairs_have_the_mean_of_their_distribution(median: float, sigma: float) -> None:
    draws = np.exp(sigma * np.sqrt(2) * np.polynomial.hermite.hermgauss(100)[0])
    weights = np.polynomial.hermite.hermgauss(100)[1] / math.sqrt(math.pi)
    assert node_repair_lognormal_s(median, sigma) == pytest.approx(median * float(draws @ weights), rel=1e-6)


def test_leaving_a_stated_range_warns_with_the_condition() -> None:
    with pytest.warns(FactorykitWarning, match=r"checkpoint_write_s <= cluster_mtbf_s / 4; here .* = 5000"):
        fk.evaluate({"checkpoint_write_s": 5000.0, "cluster_mtbf_s": 1e4}, "checkpoint_interval_young_s")


def test_a_run_that_never_ends_is_infinite_with_the_reason() -> None:
    run = {"training_s": 1e6, "checkpoint_write_s": 60.0, "cluster_mtbf_s": 10.0, "restart_s": 1e4, "downtime_s": 0.0}
    with pytest.warns(FactorykitWarning, match="wall_s is infinite") as caught:
        assert fk.evaluate(run, "wall_s") == {"wall_s": math.inf}
    messages = " ".join(str(warning.message) for warning in caught)
    assert "wall_s is infinite" in messages
    assert "restart_s < cluster_mtbf_s" in messages


@pytest.mark.parametrize("mtbf", [1.0, 86400.0, 3.2e9, 1e12])
def test_times_between_failures_from_seconds_to_millennia_do_not_overflow(mtbf: float) -> None:
    interval = checkpoint_interval_optimal_s(60.0, mtbf)
    assert 0.0 < interval <= mtbf
    assert 0.0 <= checkpoint_goodput(interval, 60.0, mtbf, 600.0, 0.0) <= 1.0
    assert checkpoint_wall_s(1e6 / interval, interval, 60.0, mtbf, 600.0, 0.0) >= 1e6


def test_a_count_of_nothing_has_an_upper_limit_only() -> None:
    assert fk.reliability.count_interval(0) == pytest.approx((0.0, 3.6889), abs=1e-4)
    assert fk.reliability.mtbf_interval_s(0, 86400.0).high == math.inf


@pytest.mark.parametrize(("failures", "confidence"), [(-1, 0.95), (1.5, 0.95), (math.nan, 0.95), (3, 95), (3, 1.0)])
def test_counts_and_confidences_out_of_range_are_refused(failures: float, confidence: float) -> None:
    with pytest.raises(fk.FactorykitError, match=r"must be"):
        fk.reliability.count_interval(failures, confidence)


def test_spares_are_enough_and_one_fewer_is_not() -> None:
    frame = fk.reliability.spares_table(
        {"nodes": 2048, "node_mtbf_s": 2048 * LLAMA, "node_repair_s": 86400, "accelerators_per_node": 8}
        | {"rental_usd_per_accelerator_h": 2.0}
    )
    enough = dict(frame.select("spare_nodes", "enough_probability").iter_rows())
    assert enough[15] >= 0.99 > enough[14]
    assert enough[18] >= 0.999 > enough[17]
    assert frame["places_empty"][0] == pytest.approx(419 / 54)
    assert fk.reliability.nodes_up_probability(2048, 2071, 0.993542) >= 0.99
