import math

import numpy as np
import polars as pl
import pytest

import factorykit as fk
from factorykit.model.uncertainty.distributions import FURTHEST
from factorykit.model.uncertainty.sample import indices

RUN = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384.0, "peak_flop_per_s": 989e12}


def ishigami(x):
    return np.atleast_2d(np.sin(x["a"]) + 7.0 * np.sin(x["b"]) ** 2 + 0.1 * x["c"] ** 4 * np.sin(x["a"]))


def test_indices_of_the_ishigami_function_meet_its_closed_form():
    """Ishigami and Homma 1990; variance parts for a = 7, b = 0.1 as in Sobol and Levitan 1999."""
    circle = fk.Uniform(-math.pi, math.pi)
    first, total = indices(ishigami, {"a": circle, "b": circle, "c": circle}, 2**14, seed=1)
    both = 8 * 0.1**2 * math.pi**8 / 225
    alone = [0.5 * (1 + 0.1 * math.pi**4 / 5) ** 2, 7.0**2 / 8, 0.0]
    variance = sum(alone) + both
    np.testing.assert_allclose(first[0], np.array(alone) / variance, atol=0.01)
    np.testing.assert_allclose(total[0], np.array([alone[0] + both, alone[1], both]) / variance, atol=0.01)


def test_indices_of_a_product_of_lognormals_meet_their_closed_form():
    """For a product, 1 + V = prod(1 + v_i) with v_i = exp(sigma_i^2) - 1."""
    distributions = {"active_parameters": fk.LogNormal(2e11, 8e11), "tokens": fk.LogNormal(1e13, 2e13)}
    parts = [math.expm1(d.sigma**2) for d in distributions.values()]
    whole = math.prod(1 + part for part in parts) - 1
    found = fk.sensitivity({}, distributions, "training_flop", 2**14, seed=2).sort("input")
    np.testing.assert_allclose(found["first_order"], [part / whole for part in parts], atol=0.01)
    totals = [part * (1 + other) / whole for part, other in zip(parts, reversed(parts), strict=True)]
    np.testing.assert_allclose(found["total"], totals, atol=0.015)


def test_quantiles_of_a_product_of_lognormals_meet_their_closed_form():
    distributions = {"active_parameters": fk.LogNormal(2e11, 8e11), "tokens": fk.LogNormal(1e13, 2e13)}
    drawn = fk.sample({}, distributions, "training_flop", 2**14)
    sigma = math.hypot(*(d.sigma for d in distributions.values()))
    middle = 6 * math.sqrt(2e11 * 8e11) * math.sqrt(1e13 * 2e13)
    expected = [middle * math.exp(z * sigma) for z in (-1.6448536, 0.0, 1.6448536)]
    np.testing.assert_allclose(fk.bands(drawn, "training_flop").row(0)[1:], expected, rtol=0.01)


def test_a_draw_equals_evaluate():
    drawn = fk.sample(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, "training_days", 8)
    for draw, mfu, days in drawn.rows():
        assert days == pytest.approx(fk.evaluate(RUN | {"mfu": mfu}, "training_days")["training_days"]), draw


def test_the_seed_decides_the_rows():
    distributions = {"mfu": fk.Uniform(0.3, 0.5)}
    first, again, other = (fk.sample(RUN, distributions, "training_s", 100, seed=seed) for seed in (3, 3, 4))
    assert first.equals(again)
    assert not first.equals(other)


def test_a_grid_repeats_the_same_draws_at_every_point():
    drawn = fk.sample(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, "training_s", 16, grid={"accelerators": [8192, 16384]})
    few, many = drawn.partition_by("accelerators")
    assert few["mfu"].equals(many["mfu"])
    np.testing.assert_allclose(few["training_s"], 2 * many["training_s"])


@pytest.mark.parametrize("method", ["sobol", "latin"])
@pytest.mark.parametrize(
    "distribution",
    [
        fk.Uniform(2.0, 3.0),
        fk.LogUniform(1.0, 9.0),
        fk.Normal(5.0, 1.0, low=4.0),
        fk.LogNormal(1.0, 4.0),
        fk.Triangular(1.0, 2.0, 5.0),
        fk.from_samples([1.0, 2.0, 2.5, 7.0]),
    ],
)
def test_draws_follow_their_quantile_function(method, distribution):
    drawn = fk.sample({}, {"water_l_per_kwh": distribution}, "water_l_per_kwh", 4096, method=method)
    for share in (0.1, 0.5, 0.9):
        assert drawn["water_l_per_kwh"].quantile(share, "linear") == pytest.approx(distribution.ppf(share), rel=5e-3)


def test_scipy_distributions_serve_as_well():
    from scipy import stats

    drawn = fk.sample(RUN, {"mfu": stats.beta(20, 30)}, "mfu", 1024)
    assert drawn["mfu"].mean() == pytest.approx(0.4, rel=1e-3)


def test_the_lognormal_holds_the_stated_mass():
    d = fk.LogNormal(1.5, 6.0, mass=0.8)
    assert (float(d.ppf(0.1)), float(d.ppf(0.9))) == pytest.approx((1.5, 6.0))


def test_no_draw_reaches_zero_or_one():
    drawn = fk.sample({}, {"pue": fk.Uniform(1.0, 2.0)}, "pue", 2**12)["pue"]
    assert drawn.min() >= 1.0 + FURTHEST
    assert drawn.max() <= 2.0 - FURTHEST


def test_an_output_that_does_not_vary_has_no_indices():
    found = fk.sensitivity(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, "training_flop", 64)
    assert found["first_order"].to_list() == [None]
    assert found["output_low"].to_list() == found["output_high"].to_list()


def test_draws_without_a_result_count_in_no_exceedance():
    curve = fk.exceedance(pl.DataFrame({"pue": [1.3, None, math.nan, 1.1]}), "pue")
    assert curve.rows() == [(1.1, 0.5), (1.3, 0.0)]
    with pytest.raises(fk.FactorykitError, match="pue has no result in any of 2 draws"):
        fk.exceedance(pl.DataFrame({"pue": [None, math.nan]}), "pue")


def test_exceedance_falls_from_one_to_zero():
    curve = fk.exceedance(fk.sample(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, "training_days", 512), "training_days", 50)
    assert curve.height == 50
    assert curve["exceedance"].is_sorted(descending=True)
    assert curve["exceedance"][-1] == 0.0


@pytest.mark.parametrize(
    ("distributions", "message"),
    [
        ({}, "distributions are empty"),
        ({"mfuu": fk.Uniform(0, 1)}, "nearest is 'mfu'"),
        ({"mfu": 0.4}, "mfu = 0.4 is no distribution"),
        ({"mfu": fk.Uniform(0.5, 1.5)}, r"mfu: the distribution reaches 1.5, outside \(0, 1\]"),
        ({"recompute": fk.Uniform(0, 1)}, "recompute is a word"),
    ],
)
def test_bad_distributions_are_refused(distributions, message):
    with pytest.raises(fk.FactorykitError, match=message):
        fk.sample(RUN, distributions, "training_s", 16)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fk.Uniform(1, 1), "not below"),
        (lambda: fk.Uniform(math.nan, 1), "must be a finite number"),
        (lambda: fk.LogUniform(0, 1), "not above zero"),
        (lambda: fk.LogNormal(1, 2, mass=90), "outside"),
        (lambda: fk.Normal(1, 0), "not above zero"),
        (lambda: fk.Triangular(0, 2, 1), "mode"),
        (lambda: fk.Quantiles((0.0, 0.9), (1, 2)), "rise from 0 to 1"),
        (lambda: fk.from_samples([1.0]), "two or more"),
        (lambda: fk.from_samples([1.0, None]), r"values\[1\] must be a finite number, got None"),
    ],
)
def test_impossible_distributions_are_refused(make, message):
    with pytest.raises(fk.FactorykitError, match=message):
        make()


@pytest.mark.parametrize("n", [0, 1.5, True])
def test_a_number_of_draws_is_a_whole_number(n):
    with pytest.raises(fk.FactorykitError, match=r"n (= 0; give at least one|must be an integer)"):
        fk.sample(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, "training_s", n)


def test_bands_are_those_of_a_scan_of_the_sample():
    rows = pl.DataFrame({"mfu": [0.3, 0.4, 0.5]})
    assert fk.bands(rows.lazy(), "mfu").equals(fk.bands(rows, "mfu"))


def test_bands_name_a_missing_column():
    with pytest.raises(fk.FactorykitError, match="no column 'wall_s'"):
        fk.bands(pl.DataFrame({"mfu": [0.4]}), "wall_s")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rows: fk.bands(rows, "mfu", ["5 %"]), "share = '5 %' is outside"),
        (lambda rows: fk.bands(rows.to_dicts(), "mfu"), "the sample must be a polars DataFrame"),
        (lambda rows: fk.exceedance(rows, "mfu", 2.5), "points must be an integer, got 2.5"),
        (lambda _: fk.sample(5, {"mfu": fk.Uniform(0.3, 0.5)}, "training_s", 8), "inputs must be a mapping"),
        (lambda _: fk.sample(RUN, [fk.Uniform(0.3, 0.5)], "training_s", 8), "distributions are list"),
        (
            lambda _: fk.sample(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, "training_s", 8, grid={"tokens": 1e12}),
            "grid: tokens must be a list",
        ),
        (
            lambda _: fk.sample(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, "training_s", 8, seed=-1),
            "seed must be between .* got -1",
        ),
        (lambda _: fk.sensitivity(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, "training_s", 8, swing=(None, 1.0)), "swing = "),
    ],
)
def test_impossible_summaries_of_a_sample_are_refused(call, message):
    with pytest.raises(fk.FactorykitError, match=message):
        call(pl.DataFrame({"mfu": [0.4, 0.5]}))


def test_the_number_of_draws_can_be_a_float():
    mfu = {"mfu": fk.Uniform(0.3, 0.5)}
    assert fk.sample(RUN, mfu, "training_s", 1e2).equals(fk.sample(RUN, mfu, "training_s", np.int64(100)))
