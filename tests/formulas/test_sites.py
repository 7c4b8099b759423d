"""Runs over several data centres: published values, and the limit of one site."""

import polars as pl
import pytest

import factorykit as fk
from factorykit.formulas import sites

FAR = {"parameters": 1e10, "training_sites": 4, "inner_step_s": 10.0, "inner_steps": 50, "outer_fragments": 5}


@pytest.fixture(scope="module")
def published() -> pl.DataFrame:
    return fk.table("multi_site_runs").collect()


def test_the_rates_of_streaming_diloco_are_reproduced(published: pl.DataFrame) -> None:
    """The grid of the table is 20.7 % wide; at 99 % the authors' last layer never hides, here it does."""
    needed = published.filter(source="streaming_diloco").rename(
        {"wan_bytes_per_s": "stated", "site_utilization": "site_utilization_wanted"}
    )
    found = fk.evaluate(needed.with_columns(wan_latency_s=0.0), "wan_needed_bytes_per_s")
    error = (found["wan_needed_bytes_per_s"] / found["stated"] - 1.0).abs()
    assert len(error) == 75
    assert error.median() < 0.07
    assert (error < 0.21).sum() == 72


def test_times_of_exchanges_give_the_published_utilization(published: pl.DataFrame) -> None:
    measured = published.filter(pl.col("outer_exchange_s").is_not_null(), pl.col("inner_step_s").is_not_null())
    found = fk.evaluate(measured.rename({"site_utilization": "stated"}), "site_utilization")
    assert found.height == 4
    assert (found["site_utilization"] - found["stated"]).abs().max() < 0.002


def test_a_broadcast_takes_the_published_minutes(published: pl.DataFrame) -> None:
    sent = published.filter(multi_site_run="intellect_2").row(0, named=True)
    weights = sent["parameters"] * sent["outer_bits"] / 8.0
    assert sites.outer_exchange_s(weights, 1.0, 1.0, sent["wan_bytes_per_s"], 0.0) == pytest.approx(840.0, rel=0.06)


@pytest.mark.parametrize("latency_s", [0.0, 0.05])
def test_the_rate_needed_gives_the_utilization_wanted(latency_s: float) -> None:
    far = FAR | {"wan_latency_s": latency_s, "site_utilization_wanted": 0.93}
    needed = fk.evaluate(far, "wan_needed_bytes_per_s")["wan_needed_bytes_per_s"]
    assert fk.evaluate(far | {"wan_bytes_per_s": needed}, "site_utilization")["site_utilization"] == pytest.approx(0.93)


def test_sites_at_the_maximum_distance_wait_as_much_as_allowed_and_beyond_it_more() -> None:
    near = FAR | {"wan_bytes_per_s": 1e11, "inner_step_s": 0.1, "outer_hidden_steps": 0, "site_utilization_wanted": 0.9}
    reach = fk.evaluate(near, "site_reach_m")["site_reach_m"]
    at, beyond = (
        fk.evaluate(near | {"site_distance_m": factor * reach}, "site_utilization")["site_utilization"]
        for factor in (1.0, 1.5)
    )
    assert at == pytest.approx(0.9)
    assert beyond < 0.9


def test_too_long_a_latency_needs_an_infinite_rate_and_allows_no_distance() -> None:
    allowed = sites.outer_allowed_s(0.99, 5.0, 0.0, 5.0, 0.1)
    assert sites.wan_needed_bytes_per_s(1e10, 5.0, 4.0, 0.2, allowed) == float("inf")
    assert sites.site_reach_m(1e10, 5.0, 4.0, 1e7, allowed) == 0.0


def test_one_site_never_waits() -> None:
    known = {"inner_step_s": 10.0, "parameters": 1e10}
    slow, two = ({"wan_bytes_per_s": 1e5}, {"wan_bytes_per_s": 1e5, "training_sites": 2})
    alone, hurried, waiting = (fk.evaluate(known | more, "step_s")["step_s"] for more in (slow, {}, two))
    assert alone == hurried == 10.0 < waiting


def test_fragments_of_gradients_hide_no_more_than_the_whole() -> None:
    known = {"inner_step_s": 10.0, "parameters": 1e10, "training_sites": 2, "wan_bytes_per_s": 1e9}
    whole, parts = (fk.evaluate(known | {"outer_fragments": n}, "step_s")["step_s"] for n in (1, 20))
    assert whole == pytest.approx(parts)


def test_independent_sites_lose_less_the_more_there_are() -> None:
    lost = [
        (
            1.0 - sites.sites_apart_goodput(1.0, 604800.0, 7200.0, 100.0, 10.0),
            1.0 - sites.sites_together_goodput(1.0, n, 604800.0, 7200.0, 1000.0),
        )
        for n in (1.0, 2.0, 8.0)
    ]
    assert lost[0][0] == pytest.approx(lost[0][1], rel=1e-3)
    assert [round(together / apart, 1) for apart, together in lost] == [1.0, 2.0, 7.3]
