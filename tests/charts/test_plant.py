"""Charts of energy, cost, operations and uncertainty: valid specifications whose fields exist."""

from __future__ import annotations

import polars as pl
import pytest

import factorykit as fk

RUN = {
    "active_parameters": 405e9,
    "tokens": 15.6e12,
    "accelerators": 16384.0,
    "peak_flop_per_s": 989e12,
    "goodput": 0.9,
}
DOUBT = {"mfu": fk.Uniform(0.35, 0.45), "tokens": fk.LogNormal(14e12, 17e12)}


def pictures():
    charts = fk.charts
    texts = {"title": "Question?", "source": "Table"}
    found = fk.sensitivity(RUN, DOUBT, "wall_days", 64)
    yield "tornado", charts.uncertainty.tornado(found, "wall_days", **texts)
    drawn = fk.sample(RUN, DOUBT, "wall_days", 64, grid={"accelerators": [8192.0, 16384.0]})
    yield "exceedance", charts.uncertainty.exceedance(fk.exceedance(drawn, "wall_days"), "wall_days", **texts)
    bands = fk.bands(drawn, "wall_days", by="accelerators")
    yield "band", charts.uncertainty.band(bands, "wall_days", "accelerators", **texts)
    steps = fk.decompose(RUN | {"mfu": 0.4}, RUN | {"mfu": 0.3, "goodput": 0.8}, "wall_days")
    yield "waterfall", charts.uncertainty.waterfall(steps, "wall_days", **texts)
    racks = pl.DataFrame({"rack": ["a"], "approach": ["air"], "rack_power_w": [4e4], "cooling_capacity_w": [3e4]})
    yield "cooling", charts.energy.cooling(racks.with_columns(cooling_fits=0.0), **texts)
    yield "energy", charts.energy.stated_and_computed(fk.validate_energy(), **texts)
    hours = pl.DataFrame({"hour": [0.0, 1.0], "busy_share": [0.5, 0.6], "policy": ["a", "a"]})
    yield "timeline", charts.operations.timeline(hours, **texts)
    yield "pue", charts.energy.pue_by_year(fk.table("pue").collect(), **texts)
    sites = pl.DataFrame({"site": ["a", "city"], "kind": ["computed", "stated"], "facility_power_w": [2e7, 5e8]})
    yield "scale", charts.energy.scale(sites, **texts)
    parts = pl.DataFrame({"policy": ["a", "a"], "part": ["work", "idle"], "rental_cost_usd": [3e6, 1e6]})
    yield "bill", charts.operations.bill(parts, **texts)
    sizes = pl.DataFrame({"accelerators": [8.0, 64.0], "failures_per_day": [0.1, 1.0], "way": ["stated", "computed"]})
    yield "sizes", charts.operations.stated_and_computed(sizes, "failures_per_day", **texts)
    saving = pl.DataFrame({"utilization": [0.5, 1.0], "horizon_years": [4.0, 4.0], "build_saving_usd": [-1e6, 1e6]})
    yield "surface", charts.cost.surface(saving, "utilization", "horizon_years", "build_saving_usd", **texts)
    yield "each", charts.cost.surface(saving, "utilization", "horizon_years", "build_saving_usd", per="chip", **texts)
    chips = fk.price_performance().with_columns(market=pl.lit("all"))
    line = fk.trend(chips, "accelerator_usd_per_flop_per_s").line.with_columns(market=pl.lit("all"))
    yield "prices", charts.cost.price_trend(chips, line, "market", **texts)
    run = fk.preset("llama_3_1_405b").replace(accelerators=1024)
    yield "offers", charts.cost.offers(fk.rent(run), **texts)
    paces = fk.table("halving_times").collect().with_columns(way=pl.lit("published"))
    yield "paces", charts.cost.halving_times(paces, **texts)


@pytest.fixture(scope="module")
def drawn():
    return dict(pictures())


NAMES = ["tornado", "exceedance", "band", "waterfall", "cooling", "energy", "timeline", "sizes", "surface", "each"]
NAMES += ["prices", "offers", "paces", "bill", "scale", "pue"]


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_valid_and_names_the_source_of_its_numbers(drawn, name):
    spec = drawn[name].to_dict()
    assert spec["usermeta"]["source"] == "Table"
    assert len(spec["description"]) > 20
    assert "<svg" in fk.charts.svg(spec)


def test_a_saving_for_each_chip_is_named_so_and_its_legend_has_both_ends(drawn):
    colour = drawn["each"].to_dict()["encoding"]["color"]
    assert colour["title"] == "Saving by building per chip [USD]"
    assert colour["field"] == "build_saving_usd_per_chip"
    assert sorted(colour["legend"]["values"]) == [-1e6, 1e6]
    assert drawn["surface"].to_dict()["encoding"]["color"]["title"] == "Saving by building [USD]"


LIVE = [
    ("energy", "power"),
    ("energy", "emissions"),
    ("cost", "build_or_rent"),
    ("operations", "utilization_value"),
    ("operations", "failures_by_size"),
]


@pytest.mark.parametrize(("topic", "name"), LIVE)
def test_a_live_chart_shows_numbers_from_the_first_preset(topic, name):
    live = getattr(getattr(fk.charts, topic), name)({"run": fk.preset("llama_3_1_405b")})
    assert live.rows().height > 100
    assert live.payload["controls"]
    assert all(value == value for value in live.now().values())
