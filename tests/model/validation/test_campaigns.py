"""Plans of published runs against their outcomes: errors, coverage and the pace of campaigns."""

import math

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.formulas import compute
from factorykit.formulas.step.interval import NORMAL_95
from factorykit.model.planning.candidates import nearest_batch
from factorykit.model.planning.published_runs import published_runs
from factorykit.model.validation.campaigns import fit_pace


@pytest.fixture(scope="module")
def found():
    return fk.validate_plans()


def test_nine_of_ten_published_runs_lie_within_the_interval_of_their_plan(found):
    """Every run is left out of the pace that its interval is drawn with."""
    judged = found.drop_nulls("error")
    assert judged.height >= 40
    assert 0.85 <= judged["inside"].mean() <= 0.95
    assert judged["error"].abs().median() < 0.2
    assert abs(judged["error"].median()) < 0.1


def test_campaigns_are_slower_than_their_best_layout(found):
    judged = found.drop_nulls("pace")
    assert judged.select((pl.col("pace") > 1.0).mean()).item() > 0.85
    assert judged.select((pl.col("pace") - 1.0).abs().median() > pl.col("error").abs().median()).item()


def test_the_pace_of_plans_is_that_of_published_runs(found):
    flop = published_runs().select("run", "training_flop")
    intercept, slope, sigma = fit_pace(found.join(flop, on="run"))
    assert pytest.approx(math.exp(intercept), rel=0.03) == compute.PACE_AT_1E24
    assert pytest.approx(slope, abs=0.005) == compute.PACE_TREND
    row = fk.table("ranges").filter(quantity="campaign_factor").collect().row(0, named=True)
    for end, sign in (("low", -1.0), ("high", 1.0)):
        assert row[end] == pytest.approx(math.exp(sign * NORMAL_95 * sigma), rel=0.05)


def test_larger_runs_come_nearer_to_their_best_layout(found):
    """Slope of Theil and Sen: its 90 % interval over the published runs does not hold zero."""
    runs = found.join(published_runs().select("run", "training_flop"), on="run").drop_nulls("pace")
    slopes = [fit_pace(runs.sample(fraction=1.0, with_replacement=True, seed=seed))[1] for seed in range(200)]
    assert pl.Series(slopes).quantile(0.95) < 0.0


def test_the_slope_of_theil_and_sen_ignores_an_outlier():
    paces = pl.DataFrame({"training_flop": [1e22, 1e23, 1e24, 1e25, 1e26], "spread": 0.1})
    line = paces.with_columns(pace=1.2 * (pl.col("training_flop") / 1e24) ** -0.1)
    outlier = line.with_columns(pace=pl.when(pl.col("training_flop") == 1e26).then(50.0).otherwise("pace"))
    for runs in (line, outlier):
        assert fit_pace(runs)[:2] == pytest.approx((math.log(1.2), -0.1), rel=1e-9)


def test_a_plan_has_the_days_and_the_interval_that_are_validated():
    run = published_runs().filter(run="smollm3_3b")
    row = fk.validate_plans(run).row(0, named=True)
    given = run.select("sequence_length", "precision", "software_year", counts="accelerators").row(0, named=True)
    given["global_batch_size"] = nearest_batch(run["batch_tokens"].item() / 4096.0, 384.0)
    best = fk.plan("smollm3_3b", tokens="11.2T", chips="h100_sxm", **given).best
    assert best["wall_days"].item() == pytest.approx(row["wall_days"], rel=0.01)
    for end in ("wall_days_low", "wall_days_high"):
        assert best[end].item() == pytest.approx(row[end], rel=0.08)  # draws beside the lognormal law


def test_outcomes_of_a_run_are_not_read():
    run = published_runs().filter(run="bloom_176b")
    known, blind = (fk.validate_plans(rows) for rows in (run, run.with_columns(measured_days=1.0, measured_usd=None)))
    assert known["wall_days"].to_list() == blind["wall_days"].to_list()


def test_a_run_without_a_plan_has_the_reason(found):
    lost = found.filter(pl.col("error").is_null())
    assert lost["reason"].null_count() == 0
    assert found.filter(pl.col("reason").is_not_null()).height == lost.height


def test_no_runs_are_refused():
    with pytest.raises(ScenarioError, match="rows are empty"):
        fk.validate_plans(published_runs().head(0))
