"""Checkpoint intervals and goodput: identities, limits and the minimum they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import lambertw

from factorykit.engine.evaluate import evaluate
from factorykit.formulas.checkpoint import (
    checkpoint_goodput,
    checkpoint_interval_daly_s,
    checkpoint_interval_optimal_s,
    checkpoint_interval_young_s,
    lost_work_s,
)
from factorykit.formulas.checkpoint_tiers import checkpoint_interval_async_s

writes = st.floats(1.0, 1e4)
mtbfs = st.floats(1e3, 1e7)
ratios = st.floats(1e-12, 10.0)


@given(ratios, st.floats(1.0, 1e9))
def test_the_optimum_solves_its_equation(ratio: float, mtbf: float) -> None:
    x = checkpoint_interval_optimal_s(ratio * mtbf, mtbf) / mtbf
    # x + log1p(-x) loses digits as x shrinks: one ulp of x against x squared over two
    assert x + math.log1p(-x) == pytest.approx(-ratio, rel=1e-9, abs=4e-16 * x)


@given(st.floats(1e-3, 10.0))
def test_the_optimum_is_lamberts_where_scipy_is_exact(ratio: float) -> None:
    lambert = 1.0 + lambertw(-math.exp(-ratio - 1.0)).real
    assert checkpoint_interval_optimal_s(ratio, 1.0) == pytest.approx(lambert, rel=1e-9)


@pytest.mark.parametrize("ratio", np.logspace(-12, -6, 7))
def test_the_optimum_is_the_series_for_fast_writes(ratio: float) -> None:
    s = math.sqrt(2.0 * ratio)  # x = s - s^2/3 + s^3/36 + ..., next term below s^4/270
    assert checkpoint_interval_optimal_s(ratio, 1.0) == pytest.approx(s - s**2 / 3 + s**3 / 36, rel=1e-9)


@given(writes, mtbfs)
def test_no_interval_beats_the_optimum(write: float, mtbf: float) -> None:
    def waste(log_interval: float) -> float:
        return -checkpoint_goodput(math.exp(log_interval), write, mtbf, 0.0, 0.0)

    best = minimize_scalar(waste, bounds=(math.log(write / 100), math.log(mtbf * 10)), method="bounded")
    optimum = checkpoint_goodput(checkpoint_interval_optimal_s(write, mtbf), write, mtbf, 0.0, 0.0)
    assert optimum >= -best.fun * (1 - 1e-12)


def test_daly_meets_young_when_writes_are_fast() -> None:
    assert checkpoint_interval_daly_s(1e-6, 1e6) == pytest.approx(checkpoint_interval_young_s(1e-6, 1e6), rel=1e-6)


@given(st.floats(1e-9, 1.99))
def test_daly_loses_less_than_two_tenths_of_a_percent(ratio: float) -> None:
    best = checkpoint_goodput(checkpoint_interval_optimal_s(ratio, 1.0), ratio, 1.0, 0.0, 0.0)
    daly = checkpoint_goodput(checkpoint_interval_daly_s(ratio, 1.0), ratio, 1.0, 0.0, 0.0)
    assert daly >= best * 0.998  # Daly 2006, section 5: better than 0.2 %


def test_dalys_interval_is_the_mtbf_when_writes_are_slow() -> None:
    assert checkpoint_interval_daly_s(2.5e4, 1e4) == 1e4


@given(writes, writes, mtbfs, st.floats(0, 3600), st.floats(0, 3600))
def test_goodput_is_a_share(interval: float, write: float, mtbf: float, restart: float, downtime: float) -> None:
    assert 0.0 <= checkpoint_goodput(interval, write, mtbf, restart, downtime) <= 1.0


def test_goodput_without_failures_is_the_time_left_by_writes() -> None:
    assert checkpoint_goodput(1000.0, 60.0, 1e18, 600.0, 600.0) == pytest.approx(1000 / 1060, rel=1e-12)


def test_goodput_is_zero_where_a_restart_never_ends() -> None:
    assert checkpoint_goodput(1000.0, 60.0, 1.0, 1e6, 0.0) == 0.0


@given(st.floats(1e-9, 1e6), mtbfs)
def test_lost_work_lies_between_nothing_and_half_the_period(period: float, mtbf: float) -> None:
    lost = lost_work_s(period, 0.0, mtbf)
    assert 0.0 <= lost <= min(period / 2, mtbf) * (1 + 1e-12)


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 0.009999, 0.010001, 1.0, 30.0])
def test_lost_work_is_the_mean_of_a_cut_off_exponential(ratio: float) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(80)
    t = (nodes + 1) * ratio / 2
    density = np.exp(-t) / -np.expm1(-ratio)
    mean = float(np.sum(weights * t * density) * ratio / 2)
    assert lost_work_s(ratio, 0.0, 1.0) == pytest.approx(mean, rel=1e-11)


@pytest.mark.parametrize(("block_s", "lag_s", "interval_s"), [(0.0, 50.0, 50.0), (1.0, 500.0, 499.0)])
def test_a_background_save_is_durable_before_the_next_begins(block_s: float, lag_s: float, interval_s: float) -> None:
    """The optimum would save more often: sqrt(2 x 1 s x 1e4 s) is 141 s."""
    saves = {"checkpoint_block_s": block_s, "checkpoint_lag_s": lag_s, "cluster_mtbf_s": 1e4}
    assert evaluate(saves, "checkpoint_interval_async_s")["checkpoint_interval_async_s"] == interval_s
    assert checkpoint_interval_async_s(1.0, 1e4, 50.0) == checkpoint_interval_optimal_s(1.0, 1e4)
