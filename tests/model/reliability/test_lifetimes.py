"""Fits of lifetimes, gaps and repairs: known distributions are recovered, wrong ones are rejected."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import CensoredData, expon, lognorm, weibull_min

import factorykit as fk
from benchmarks import fit_lifetimes
from factorykit.model.reliability.lifetimes import distribution, fit, misfit_limit, survival_curve

DISTRIBUTIONS = {
    "exponential": expon(scale=5e4),
    "weibull": weibull_min(0.65, scale=5e4),
    "lognormal": lognorm(1.8, scale=5e4),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_is_recovered_from_its_own_draws_with_censoring(name: str) -> None:
    draws = DISTRIBUTIONS[name].ppf(np.random.default_rng(4).random(4000))
    end = 2e5
    found = fit(np.minimum(draws, end), draws < end)
    row = found.filter(distribution=name).row(0, named=True)
    assert row["aic_difference"] < 2.1  # a distribution that includes another one costs one parameter
    assert row["scale_low_s"] < 5e4 < row["scale_high_s"]
    assert row["censored"] == (draws >= end).sum()
    assert row["largest_misfit"] < misfit_limit(row["events"])
    again = distribution(found, name)
    np.testing.assert_allclose(again.ppf(0.5), DISTRIBUTIONS[name].ppf(0.5), rtol=0.06)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_mean_of_a_fit_is_the_integral_of_its_quantiles(name: str) -> None:
    found = fit(DISTRIBUTIONS[name].ppf((np.arange(1000) + 0.5) / 1000))
    times = distribution(found, name).ppf((np.arange(400_000) + 0.5) / 400_000)
    assert found.filter(distribution=name)["mean_s"].item() == pytest.approx(times.mean(), rel=5e-3)


def test_the_fits_agree_with_scipys() -> None:
    draws = weibull_min(0.65, scale=5e4).ppf(np.random.default_rng(9).random(500))
    times, seen = np.minimum(draws, 1e5), draws < 1e5
    ours = fit(times, seen).filter(distribution="weibull").row(0, named=True)
    shape, _, scale = weibull_min.fit(CensoredData.right_censored(times, ~seen), floc=0)
    assert (ours["parameter"], ours["scale_s"]) == pytest.approx((shape, scale), rel=1e-3)


def test_a_wrong_distribution_is_rejected() -> None:
    draws = weibull_min(0.4, scale=5e4).ppf(np.random.default_rng(1).random(600))
    misfit = fit(draws).filter(distribution="exponential")["largest_misfit"].item()
    assert misfit > 2 * misfit_limit(600)


def test_stepfuns_faults_cluster_and_their_repairs_fit_no_simple_distribution(shared: Path) -> None:
    trace = fit_lifetimes.stepfun_faults(str(shared / "public" / "infinitehbd_faults.csv"))
    assert trace["cause"].count() == 584
    gaps = trace.filter(pl.col("gap_s") > 0)
    found = fit(gaps["gap_s"], gaps["gap_observed"])
    assert found["distribution"][0] == "weibull"
    assert 0.58 < found["parameter_low"][0] < found["parameter_high"][0] < 0.67
    assert found["largest_misfit"][0] < misfit_limit(found["events"][0])
    repairs = trace.filter(pl.col("repair_s") > 0)
    assert trace["repair_s"].median() / 3600 == pytest.approx(20.4, abs=0.05)  # type: ignore[operator]
    assert (fit(repairs["repair_s"], repairs["repair_observed"])["largest_misfit"] > misfit_limit(569)).all()


STEPFUN = """node,start_day,end_day,repair_hours,fault_level,fault_class,fault_description
n2,1.5,3.0,36.0,Hardware,Fan,x
n1,0.0,0.25,6.0,Hardware,GPU,x
"""


def test_a_trace_ends_with_the_time_since_its_last_fault(tmp_path: Path) -> None:
    (tmp_path / "stepfun.csv").write_text(STEPFUN)
    faults = fit_lifetimes.stepfun_faults(str(tmp_path / "stepfun.csv"))
    assert faults["cause"].to_list() == ["GPU", "Fan", None]
    assert faults["gap_s"].to_list() == [None, 1.5 * 86400, 1.5 * 86400]
    assert faults["gap_observed"].to_list() == [False, True, False]
    assert faults["repair_observed"].to_list() == [True, False, None]
    (tmp_path / "stepfun.csv").write_text(STEPFUN.replace("36.0", "37.0"))
    with pytest.raises(ValueError, match="of 1 faults is not the time from start_day"):
        fit_lifetimes.stepfun_faults(str(tmp_path / "stepfun.csv"))


def test_gaps_at_los_alamos_are_those_within_a_system(tmp_path: Path) -> None:
    rows = [(9, "3/2/2004 10:30"), (9, "3/1/2004 10:30"), (5, "3/1/2004 9:00"), (9, "3/2/2004 10:30")]
    lines = [f"{system},0,{at},6,,,,,,\n" for system, at in rows]
    causes = "Facilities,Hardware,Human Error,Network,Undetermined,Software"
    (tmp_path / "lanl.csv").write_text(f"System,nodenumz,Prob Started,Down Time,{causes}\n" + "".join(lines))
    faults = fit_lifetimes.lanl_failures(str(tmp_path / "lanl.csv"))
    assert faults.select("system", "gap_s").rows() == [(5.0, None), (9.0, None), (9.0, 86400.0), (9.0, 0.0)]


@pytest.mark.parametrize(
    ("times", "seen", "message"),
    [
        ([1.0, 0.0], None, "must be above 0"),
        ([1.0, 2.0], [True], "one for each"),
        ([1.0, 2.0], [True, False], "two or more"),
    ],
)
def test_durations_that_cannot_be_fitted_are_refused(times: list[float], seen: list[bool] | None, message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        fit(times, seen)


def test_limits_of_few_censored_events_stay_positive_and_hold_the_truth() -> None:
    """Five events in a thousand lives: limits that are symmetric around the scale would reach below zero."""
    draws = weibull_min(1.0, scale=1e9).ppf(np.random.default_rng(3).random(1000))
    found = fit(np.minimum(draws, 5e6), draws < 5e6).filter(distribution="weibull").row(0, named=True)
    assert found["events"] < 10
    assert 0.0 < found["scale_low_s"] < 1e9 < found["scale_high_s"]
    assert 0.0 < found["parameter_low"] < 1.0 < found["parameter_high"]


def test_a_survival_curve_is_the_share_that_lasts_longer() -> None:
    times = weibull_min(0.65, scale=5e4).ppf(np.random.default_rng(2).random(500))
    curve = survival_curve(times, points=20)
    shares = [float((times > span).mean()) for span in curve["span_s"][:-1]]
    assert curve["survival"][:-1].to_list() == pytest.approx(shares)
    inside = curve.filter(pl.col("survival").is_between(0.05, 0.95))
    assert (inside["survival_low"] < inside["survival"]).all()
    assert (inside["survival"] < inside["survival_high"]).all()


def test_the_shipped_fits_are_reproduced_from_the_record(shared: Path) -> None:
    for sample in fit_lifetimes.stepfun(str(shared / "public" / "infinitehbd_faults.csv")):
        for table, rows, key in (
            ("lifetime_fits", fit_lifetimes.fits, "lifetime_fit"),
            ("lifetime_curves", fit_lifetimes.curve, "lifetime_point"),
        ):
            made = rows(sample)
            kept = fk.table(table).collect().filter(pl.col(key).is_in(made[key].to_list()))
            assert kept[key].to_list() == made[key].to_list()
            for name in made.select(pl.selectors.float()).columns:
                np.testing.assert_allclose(
                    kept[name].fill_null(0.0), made[name].fill_null(0.0), rtol=2e-4, atol=1e-3, err_msg=name
                )


def test_llama_3s_shares_follow_from_its_counts_and_its_printed_ones_do_not() -> None:
    rates = fk.reliability.published_rates()
    paper = (
        fk.table("failures").filter(pl.col("source") == "llama3_paper", pl.col("share_printed").is_not_null()).collect()
    )
    assert paper["count"].sum() == 419
    assert paper["share_printed"].sum() == pytest.approx(0.949)
    gpu = paper.filter(category="GPU")
    assert gpu["count"].sum() / 419 == pytest.approx(0.6396, abs=5e-5)
    assert gpu["share_printed"].sum() == pytest.approx(0.587)
    wrong = paper.filter((pl.col("count") / 419 - pl.col("share_printed")).abs() > 0.001)
    assert wrong["cause"].to_list() == ["Faulty GPU"]
    llama = rates.filter(pl.col("statement") == "llama_3_1_405b_unexpected@llama3_paper").row(0, named=True)
    assert llama["per_1000_node_days"] == pytest.approx(3.789, abs=5e-4)
    assert (llama["per_1000_low"], llama["per_1000_high"]) == pytest.approx((3.434, 4.169), abs=1e-3)
    assert math.isfinite(rates["per_1000_node_days"].max())  # type: ignore[arg-type]
