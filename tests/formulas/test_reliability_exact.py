"""Formulas of failures and checkpoints against fifty-digit arithmetic, over inputs drawn at random and at extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import factorykit as fk
from factorykit.formulas import catalogue

F: dict[str, Callable[..., float]] = dict(catalogue())
exp, expm1, sqrt = mp.exp, mp.expm1, mp.sqrt


def optimum(c: Any, m: Any) -> Any:
    return m * (1 + mp.lambertw(-exp(-c / m - 1)).real)


def wall(n: Any, t: Any, c: Any, m: Any, r: Any, d: Any) -> Any:
    return n * (m + d) * exp(r / m) * expm1((t + c) / m)


def cut_off(x: Any, m: Any) -> tuple[Any, Any]:
    """First two moments of an exponential time cut off at x."""
    first = m - x / expm1(x / m)
    return first, 2 * m * m - (x * x + 2 * m * x) / expm1(x / m)


def compound(x: Any, m: Any, base: Any, mean: Any, var: Any) -> tuple[Any, Any]:
    """Mean and variance of a base plus, for each failure before a success of length x, its time and a recovery."""
    first, second = cut_off(x, m)
    p = exp(-x / m)
    tries, spread = (1 - p) / p, (1 - p) / p**2
    return base + tries * (first + mean), tries * (second - first**2 + var) + spread * (first + mean) ** 2


def spread(n: Any, t: Any, c: Any, m: Any, r: Any, d: Any) -> Any:
    mean, var = compound(r, m, d + r, d, 0) if r else (d, mp.mpf(0))
    return sqrt(n * compound(t + c, m, t + c, mean, var)[1])


def two_levels(n: Any, t: Any, c1: Any, c2: Any, r1: Any, r2: Any, p: Any, m: Any, *, d: Any, exposed: bool) -> Any:
    """Solve the Markov chain over segments, near recoveries and the far recovery, back from its end."""
    s1, s2 = (exp(-r1 / m), exp(-r2 / m)) if exposed else (mp.mpf(1), mp.mpf(1))
    at_risk1, at_risk2 = (m * (1 - s1), m * (1 - s2)) if exposed else (r1, r2)
    far = (d + at_risk2) / s2  # and then from the beginning of the pattern
    again = 1 - p * (1 - s1)
    near = (d + at_risk1 + (1 - s1) * (1 - p) * far) / again
    stays = s1 / again
    # E_i = a_i + b_i E_0, from the last segment back; E_n = 0
    a, b = mp.mpf(0), mp.mpf(0)
    for i in reversed(range(int(n))):
        q = exp(-(t + c1 + (c2 if i == n - 1 else 0)) / m)
        cost = (1 - q) * (m + p * near + (1 - p) * far)
        keep = 1 - (1 - q) * p * stays
        a, b = (cost + q * a) / keep, ((1 - q) * (1 - p * stays) + q * b) / keep
    return a / (1 - b)


EXACT: dict[str, Callable[..., Any]] = {
    "checkpoint_interval_young_s": lambda c, m: sqrt(2 * c * m),
    "checkpoint_interval_daly_s": lambda c, m: (
        sqrt(2 * c * m) * (1 + sqrt(c / (2 * m)) / 3 + c / (2 * m) / 9) - c if c < 2 * m else m
    ),
    "checkpoint_interval_optimal_s": optimum,
    "checkpoint_interval_saxena_s": lambda c, m, r: sqrt(2 * (m + r) * c + c * c),
    "checkpoint_interval_ettr_s": lambda n, f, r, c: max(
        sqrt(c * c + 2 * c * max(1 - n * f * r / 86400, 0) * 86400 / (n * f)) - c, 0
    ),
    "interval_penalty": lambda t, c, m: (
        wall(1 / t, t, c, m, 0, 0) / wall(1 / optimum(c, m), optimum(c, m), c, m, 0, 0) - 1
    ),
    "checkpoint_goodput": lambda t, c, m, r, d: t / wall(1, t, c, m, r, d),
    "checkpoint_goodput_protected": lambda t, c, m, r, d: t / ((m + d + r) * expm1((t + c) / m)),
    "checkpoint_goodput_async": lambda t, c, m, r, d, lag: t / wall(1, t, c, m, r + lag, d),
    "lost_work_s": lambda t, c, m: cut_off(t + c, m)[0],
    "checkpoint_wall_s": wall,
    "checkpoint_failures": lambda n, t, c, m, r: wall(n, t, c, m, r, 0) / m,
    "checkpoint_wall_sd_s": spread,
    "ettr": lambda n, f, r, t, c: (1 - n * f * (r + t / 2) / 86400) / (1 + c / t),
    "level_interval_s": lambda c, p, m: sqrt(2 * c * m / p),
    "level_overhead": lambda c, p, m: sqrt(2 * p * c / m),
    "two_level_pattern_s": lambda *a: two_levels(*a, d=0, exposed=False),
    "two_level_pattern_exposed_s": lambda *a: two_levels(*a[:-1], d=a[-1], exposed=True),
    "survival_probability": lambda t, m: exp(-t / m),
    "first_failure_s": lambda mean, n, k: mean * n ** (-1 / k),
    "bring_up_failures": lambda t, n, scale, k: n * (t / scale) ** k,
    "sdc_goodput": lambda t, c, m, lag, r: (t + c) / expm1((t + c) / m) / (m + lag + r),
}
"""The equations, written without regard to cancellation."""
SPANS = {
    "cluster_mtbf_s": (10.0, 3.2e9),
    "sdc_mtbf_s": (1e3, 3.2e9),
    "accelerator_mtbf_s": (3.6e3, 3.6e12),
    "checkpoint_segments": (1.0, 1e6),
    "segments_per_pattern": (1.0, 40.0),
    "level_one_share": (1e-3, 0.999),
    "level_share": (1e-6, 1.0),
    "nodes": (1.0, 1e5),
    "accelerators": (1.0, 1e6),
    "node_failures_per_node_day": (1e-5, 0.1),
    "unavailability": (1e-12, 0.9),
    "lifetime_shape": (0.3, 4.0),
}
OF_THE_MTBF = {
    "checkpoint_write_s": (1e-12, 10.0),
    "checkpoint_block_s": (1e-12, 1.0),
    "checkpoint_interval_s": (1e-9, 3.0),
    "restart_s": (1e-9, 2.0),
    "downtime_s": (1e-9, 2.0),
    "checkpoint_lag_s": (1e-9, 1.0),
    "sdc_detection_s": (1e-6, 1.0),
    "level_write_s": (1e-9, 1.0),
    "level_one_write_s": (1e-9, 0.1),
    "level_two_write_s": (1e-9, 0.3),
    "level_one_restart_s": (1e-9, 1.0),
    "level_two_restart_s": (1e-9, 2.0),
    "span_s": (1e-12, 100.0),
}
"""Times as a multiple of the time between failures, from negligible to far too long."""
LOOSE = {"interval_penalty": 1e-6, "bring_up_failures": 1e-10, "first_failure_s": 1e-12}
"""Where powers are taken as exponentials of logarithms, and where a difference of intervals is small by nature."""


def draw(name: str, generator: np.random.Generator) -> list[float]:
    names = fk.formulas.arguments(F[name])
    mtbf = next((n for n in names if n in ("cluster_mtbf_s", "sdc_mtbf_s")), None)
    unit = math.exp(generator.uniform(*np.log(SPANS[mtbf]))) if mtbf else 1e4
    values = []
    for argument in names:
        if argument == mtbf:
            values.append(unit)
        else:
            low, high = SPANS.get(argument, OF_THE_MTBF.get(argument, (1.0, 1e9)))
            value = math.exp(generator.uniform(math.log(low), math.log(high)))
            value *= unit if argument in OF_THE_MTBF else 1.0
            values.append(float(round(value)) if argument == "segments_per_pattern" else value)
    return values


@pytest.mark.parametrize("name", EXACT)
def test_a_formula_agrees_with_fifty_digits(name: str) -> None:
    generator = np.random.default_rng(len(name))
    with mp.workdps(50):
        for _ in range(150):
            values = draw(name, generator)
            exact = float(EXACT[name](*map(mp.mpf, values)))
            found = F[name](*values)
            least = 1e-13 if name == "interval_penalty" else 1e-300
            assert found == pytest.approx(exact, rel=LOOSE.get(name, 2e-12), abs=least), values


@pytest.mark.parametrize("count", [0, 1, 2, 6, 419, 100_000])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_limits_of_a_count_have_equal_tails(count: int, confidence: float) -> None:
    low, high = fk.reliability.count_interval(count, confidence)
    tail = (1 - confidence) / 2
    assert float(mp.gammainc(count + 1, high, regularized=True)) == pytest.approx(tail, rel=1e-7)  # P(X <= k)
    if count:
        assert float(mp.gammainc(count, 0, low, regularized=True)) == pytest.approx(tail, rel=1e-7)  # P(X >= k)


@pytest.mark.parametrize("mean", [1e-6, 0.3, 7.759, 260.0, 5000.0])
@pytest.mark.parametrize("confidence", [0.5, 0.99, 0.99999])
def test_poisson_spares_are_the_smallest_sufficient_number(mean: float, confidence: float) -> None:
    spares = fk.reliability.spares_poisson(mean, confidence)
    enough = [float(mp.gammainc(k + 1, mean, regularized=True)) if k >= 0 else 0.0 for k in (spares - 1, spares)]
    assert enough[0] < confidence <= enough[1] * (1 + 1e-12)


@pytest.mark.parametrize("nodes", [1, 8, 2048, 30_000])
@pytest.mark.parametrize("repair", [60.0, 86400.0, 1e7])
def test_binomial_spares_are_the_smallest_sufficient_number(nodes: int, repair: float) -> None:
    mtbf, confidence = 1.3e7, 0.99
    spares = fk.reliability.spares_binomial(nodes, mtbf, repair, confidence)
    up = F["availability"](mtbf, repair)
    assert fk.reliability.nodes_up_probability(nodes, nodes + spares, up) >= confidence
    if spares:
        assert fk.reliability.nodes_up_probability(nodes, nodes + spares - 1, up) < confidence


@pytest.mark.parametrize(
    ("nodes", "copies", "lost"), [(6, 2, 3), (8, 2, 4), (9, 3, 5), (8, 4, 6), (6, 1, 1), (6, 3, 2)]
)
def test_remaining_copies_agree_with_an_enumeration_of_lost_nodes(nodes: int, copies: int, lost: int) -> None:
    from itertools import combinations

    sets = list(combinations(range(nodes), lost))
    groups = [set(range(first, first + copies)) for first in range(0, nodes, copies)]
    fine = sum(not any(group <= set(gone) for group in groups) for gone in sets)
    assert fk.reliability.copies_left_probability(nodes, copies, lost) == pytest.approx(fine / len(sets), rel=1e-14)


def test_copies_in_groups_that_do_not_fit_are_refused() -> None:
    with pytest.raises(fk.FactorykitError, match="nodes = 7 is no multiple of copies = 2"):
        fk.reliability.copies_left_probability(7, 2, 1)
    with pytest.raises(fk.FactorykitError, match="nodes_lost = 9 is more than nodes = 8"):
        fk.reliability.copies_left_probability(8, 2, 9)


@pytest.mark.parametrize("shape", [0.4, 0.7, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("span", [0.05, 0.5, 1.5])
def test_replaced_parts_fail_at_the_rate_of_the_series_of_smith_and_leadbetter(shape: float, span: float) -> None:
    """The renewal function of the Weibull distribution as a power series, which needs many digits to sum."""
    with mp.workdps(60):
        gammas = [mp.gamma(k * shape + 1) / mp.factorial(k) for k in range(1, 120)]
        series: list[Any] = []
        for n, gamma in enumerate(gammas):
            series.append(gamma - sum(gammas[j] * series[n - 1 - j] for j in range(n)))
        exact = sum(
            (-1) ** k * a * mp.mpf(span) ** ((k + 1) * shape) / mp.gamma((k + 1) * shape + 1)
            for k, a in enumerate(series)
        )
    assert fk.reliability.renewal_failures(span, 1.0, 1.0, shape) == pytest.approx(float(exact), rel=1e-6)


@pytest.mark.parametrize("mtbf", [10.0, 3600.0, 3.2e9])
def test_saves_that_take_no_time_leave_only_downtime_and_restarts(mtbf: float) -> None:
    run = {"checkpoint_write_s": 0.0, "cluster_mtbf_s": mtbf, "restart_s": 1.0, "downtime_s": 2.0, "training_s": 1e6}
    found = fk.evaluate(run, ["checkpoint_interval_optimal_s", "wall_s"])
    assert found["checkpoint_interval_optimal_s"] == 0.0
    assert found["wall_s"] == pytest.approx(1e6 * (1 + 2.0 / mtbf) * math.exp(1.0 / mtbf), rel=1e-12)
    soon = F["checkpoint_goodput"](1e-9 * mtbf, 0.0, mtbf, 1.0, 2.0)
    assert F["checkpoint_goodput"](0.0, 0.0, mtbf, 1.0, 2.0) == pytest.approx(soon, rel=1e-8)


def test_rows_outside_a_validity_range_are_marked() -> None:
    import polars as pl

    frame = pl.DataFrame({"checkpoint_write_s": [60.0, 5000.0, 60.0], "cluster_mtbf_s": [1e4, 1e4, 1e2]})
    frame = frame.with_columns(restart_s=600.0, downtime_s=0.0)
    young = {"checkpoint_interval_s": "checkpoint_interval_young_s"}
    reasons = fk.out_of_range(frame, "checkpoint_goodput", using=young)["out_of_range"].to_list()
    assert reasons[0] is None
    assert "checkpoint_interval_young_s is valid for" in reasons[1]
    assert "restart_s < cluster_mtbf_s" in reasons[2]
    lazy = fk.out_of_range(frame.lazy(), "checkpoint_goodput", using=young).collect()
    assert lazy["out_of_range"].to_list() == reasons
    assert fk.out_of_range(frame, "failures_per_day")["out_of_range"].null_count() == 3
    assert fk.out_of_range(frame, "checkpoint_goodput").columns == [*frame.columns, "out_of_range"]


def test_infinite_rows_of_a_frame_are_announced_and_undefined_ones_refused() -> None:
    import polars as pl

    frame = pl.DataFrame({"cluster_mtbf_s": [1e4, 1.0], "checkpoint_write_s": 60.0, "restart_s": [60.0, 1e4]})
    frame = frame.with_columns(downtime_s=0.0, training_s=1e6)
    with pytest.warns(fk.FactorykitWarning, match="wall_s is infinite in 1 of 2 rows, first in row 1"):
        assert math.isinf(fk.evaluate(frame, "wall_s")["wall_s"][1])
    assert "restart_s < cluster_mtbf_s" in fk.out_of_range(frame, "wall_s")["out_of_range"][1]
    free = frame.with_columns(checkpoint_write_s=0.0, restart_s=60.0)
    with pytest.raises(fk.FactorykitError, match=r"row 0 .*: checkpoint_wall_s is undefined"):
        fk.evaluate(free, "checkpoint_wall_s")


SPARES = {"nodes": 100.0, "node_mtbf_s": 64e6, "node_repair_s": 1e5}
SPARES |= {"accelerators_per_node": 8.0, "rental_usd_per_accelerator_h": 2.0}


def test_counts_from_numpy_are_counts() -> None:
    assert fk.reliability.count_interval(np.int64(419)) == fk.reliability.count_interval(419)
    assert fk.reliability.rate_interval(np.int32(3), np.float32(2.0)) == fk.reliability.rate_interval(3, 2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fk.reliability.renewal_failures(1e5, 10, 1e6, 0.7, steps=0), "steps = 0"),
        (lambda: fk.reliability.renewal_failures(1e6, 1, 0.5, 1e6, 50), "from a few lives on"),
        (lambda: fk.reliability.renewal_failures(1e3, 1, 0.5, 2.0, 50), r"steps = 50 is outside \[1202, 20000\]"),
        (lambda: fk.reliability.spares_table(SPARES | {"nodes": 0.0}), "nodes = 0.0 is outside"),
        (lambda: fk.reliability.spares_table(SPARES | {"node_repair_s": None}), "node_repair_s = None is NoneType"),
        (lambda: fk.reliability.spares_table(SPARES | {"node_mtbf_s": "long"}), "is not a number"),
        (
            lambda: fk.checkpoint_patterns.pattern_s([(1.0, 30.0)], [], 100.0, 3600.0),
            r"levels must be Level.*got \(1.0, 30.0\)",
        ),
    ],
)
def test_reliability_refuses_invalid_numbers(call: Callable[[], object], message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        call()


def test_spares_follow_from_a_rate_of_failures_as_from_a_time_between_them() -> None:
    from_rate = {name: value for name, value in SPARES.items() if name != "node_mtbf_s"}
    from_rate |= {"node_failures_per_node_day": 86400.0 / SPARES["node_mtbf_s"]}
    assert fk.reliability.spares_table(from_rate).equals(fk.reliability.spares_table(SPARES))
