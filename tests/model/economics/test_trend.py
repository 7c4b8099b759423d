import math

import numpy as np
import polars as pl
import pytest

import factorykit as fk

PRICE = "accelerator_usd_per_flop_per_s"


def falling(halving_years, noise=0.0, n=40, seed=0):
    years = np.linspace(2010.0, 2025.0, n)
    scatter = np.exp(noise * np.random.default_rng(seed).standard_normal(n))
    return pl.DataFrame({"year": years, "usd": 1e-9 * 2.0 ** (-(years - 2010.0) / halving_years) * scatter})


@pytest.mark.parametrize("years", [0.7, 2.0, 5.0])
def test_an_exact_pace_is_found_exactly(years):
    found = fk.trend(falling(years), "usd")
    assert found.halving_years == pytest.approx(years, rel=1e-9)
    assert found.r_squared == pytest.approx(1.0)
    assert found.line["usd"].to_list() == pytest.approx(falling(years)["usd"].to_list())


def test_nineteen_intervals_in_twenty_hold_the_truth():
    inside = 0
    for seed in range(400):
        found = fk.trend(falling(2.5, noise=0.8, n=15, seed=seed), "usd")
        inside += found.halving_years_low < 2.5 < found.halving_years_high
    assert inside / 400 == pytest.approx(0.95, abs=0.03)  # three standard errors of 400 trials


def test_an_interval_that_holds_a_level_line_has_no_upper_end():
    found = fk.trend(falling(1e6, noise=0.5), "usd")
    assert found.halving_years_high == math.inf


def test_a_rising_series_halves_in_negative_years():
    rising = falling(2.0).with_columns(usd=1.0 / pl.col("usd"))
    assert fk.trend(rising, "usd").halving_years == pytest.approx(-2.0)


def test_dollars_of_another_year_move_the_pace_by_inflation():
    """Rates of change add: real pace = nominal pace + inflation, here 2.2 to 3.3 % a year."""
    nominal, real = (
        fk.price_performance(year).filter(market="data centre", precision="16 bits, matrix units")
        for year in (None, 2025)
    )
    paces = [math.log(2) / fk.trend(rows, PRICE).halving_years for rows in (nominal, real)]
    assert 0.02 < paces[1] - paces[0] < 0.045
    newest = real.filter(pl.col("year") > 2025.0)
    assert newest["accelerator_usd"].to_list() == nominal.filter(pl.col("year") > 2025.0)["accelerator_usd"].to_list()


def test_the_published_pace_of_machine_learning_gpus_is_in_our_interval():
    """Epoch AI 2022, table 1: 2.07 years [1.54, 3.13]."""
    chips = fk.price_performance().filter(market="data centre", precision="16 bits, matrix units")
    found = fk.trend(chips, PRICE)
    assert found.points >= 15
    assert found.halving_years_low < 2.07 < found.halving_years_high
    assert found.halving_years < 3.13


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fk.trend(falling(2.0), "eur"), "no column 'eur'"),
        (lambda: fk.trend(falling(2.0).head(2), "usd"), "give three or more"),
        (lambda: fk.trend(falling(2.0).with_columns(usd=0.0), "usd"), "not above zero"),
        (lambda: fk.trend(falling(2.0), "usd", mass=95), r"must be in \(0, 1\)"),
        (lambda: fk.price_performance(1999), "no price level of year '1999'"),
    ],
)
def test_a_series_without_a_pace_is_refused(call, message):
    with pytest.raises(fk.FactorykitError, match=message):
        call()


@pytest.mark.parametrize("year", [1900, "soon", 2020.5])
def test_a_year_without_a_price_level_is_refused(year):
    with pytest.raises(fk.FactorykitError, match="no price level of year"):
        fk.price_performance(year)
