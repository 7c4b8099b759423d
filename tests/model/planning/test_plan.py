"""Plans equal evaluate, keep their limits, and list excluded candidates with the reason."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace
from datetime import date

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError, UnknownName
from factorykit.engine import progress
from factorykit.model.performance import run_architectures
from factorykit.model.planning.constraints import Limits, ranked, sites
from factorykit.model.planning.summary import LITTLE_MEASURED

MINE = fk.accelerator("mine", like="b200", peak_flop_per_s="3 PFLOP/s")
FEW = {"tokens": "15T", "counts": [1024, 2048, 3072, 4096]}


@pytest.fixture(scope="module")
def llama() -> fk.Plan:
    return fk.plan("llama3_70b", tokens="15T", chips=["h100_sxm", "b200"], deadline="60 d", budget="30 M USD")


@pytest.mark.parametrize("acquire", ["rent", "own"])
def test_the_best_plan_equals_evaluate(acquire: str) -> None:
    found = fk.plan("llama3_70b", **FEW, chips="h100_sxm", deadline="100 d", acquire=acquire)
    results = fk.evaluate(found.scenario, found.outputs)
    for name in found.outputs:
        assert results[name] == pytest.approx(found.best[name].item(), rel=1e-9), name


def test_every_plan_can_be_made_a_scenario(llama: fk.Plan) -> None:
    for row in llama.plans.sample(3, seed=1).iter_slices(1):
        days = fk.evaluate(llama.scenario_of(row), "wall_days")["wall_days"]
        assert days == pytest.approx(row["wall_days"].item(), rel=1e-9)


def test_days_and_dollars_by_hand(llama: fk.Plan) -> None:
    best = llama.best.row(0, named=True)
    steps = 15e12 / (best["global_batch_size"] * 8192.0)
    pace = 1.35 * (fk.evaluate(llama.scenario, "training_flop")["training_flop"] / 1e24) ** -0.05
    assert best["campaign_pace"] == pytest.approx(pace)
    days = pace * steps * best["step_s"] / best["goodput"] / 86400.0
    assert best["wall_days"] == pytest.approx(days)
    nodes = best["accelerators"] / 8.0 + best["spare_nodes"]
    assert best["run_cost_usd"] == pytest.approx(days * 24.0 * nodes * 8.0 * best["rental_usd_per_accelerator_h"])
    flop = fk.evaluate(llama.scenario, "model_flop_per_token")["model_flop_per_token"] * 15e12
    power_w = 1.1 * best["accelerators"] * (650.0 + 2000.0 / 8.0)
    assert best["training_energy_kwh"] == pytest.approx(days * 24.0 * power_w / 1000.0)
    rate = best["accelerators"] * best["predicted_mfu"] * 989.4e12
    assert days * best["goodput"] * 86400.0 == pytest.approx(pace * flop / rate)


def test_the_best_plan_keeps_the_limits_and_is_the_cheapest_that_does(llama: fk.Plan) -> None:
    kept = llama.plans.filter((pl.col("wall_days") <= 60.0) & (pl.col("run_cost_usd") <= 30e6))
    assert llama.best["run_cost_usd"].item() == kept["run_cost_usd"].min()
    assert llama.best["breaks"].item() is None


def test_results_lie_within_their_intervals(llama: fk.Plan) -> None:
    for name in ("wall_days", "run_cost_usd", "training_energy_kwh", "goodput", "failures_per_day"):
        inside = llama.plans[name].is_between(llama.plans[f"{name}_low"], llama.plans[f"{name}_high"])
        assert inside.all(), name


def test_nothing_that_was_given_is_drawn() -> None:
    known = {"accelerator_mtbf_s": 1.8e8, "rental_usd_per_accelerator_h": 2.0}
    found = fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=[256], **known)
    best = found.best.row(0, named=True)
    assert best["failures_per_day_low"] == best["failures_per_day_high"] == best["failures_per_day"]


def test_a_wider_distribution_widens_the_results_that_depend_on_it() -> None:
    inputs = {"tokens": "1T", "chips": "h100_sxm", "counts": [256], "campaign_pace": 1.0}
    narrow = fk.plan("llama3_8b", rental_usd_per_accelerator_h=fk.Uniform(1.9, 2.1), **inputs).best
    wide = fk.plan("llama3_8b", rental_usd_per_accelerator_h=fk.Uniform(1.0, 3.0), **inputs).best
    width = [row["run_cost_usd_high"].item() - row["run_cost_usd_low"].item() for row in (narrow, wide)]
    assert width[1] > 1.3 * width[0]
    assert narrow["run_cost_usd"].item() == pytest.approx(wide["run_cost_usd"].item())


def test_a_longer_deadline_never_costs_more() -> None:
    costs = [
        fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", deadline=f"{days} d").best["run_cost_usd"].item()
        for days in (5, 10, 30, 90)
    ]
    assert costs == sorted(costs, reverse=True)


def test_a_larger_budget_is_never_slower() -> None:
    days = [
        fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", budget=budget).best["wall_days"].item()
        for budget in (2e5, 2.5e5, 5e5, 1e7)
    ]
    assert days == sorted(days, reverse=True)


def test_no_plan_dominates_one_of_the_frontier(llama: fk.Plan) -> None:
    results = ["wall_days", "run_cost_usd", "training_carbon_kg"]
    every = llama.plans.select(results).rows()
    for days, dollars, carbon in llama.frontier.select(results).iter_rows():
        better = [row for row in every if row[0] <= days and row[1] <= dollars and row[2] <= carbon]
        assert set(better) == {(days, dollars, carbon)}


def test_contradicting_limits_give_the_nearest_plan_and_the_broken_limits() -> None:
    found = fk.plan("llama3_70b", **FEW, chips="h100_sxm", deadline="1 d", budget="1 USD")
    assert "deadline" in found.best["breaks"].item()
    assert "budget" in found.best["breaks"].item()
    assert found.nearest.filter(pl.col("at_least") > 1.0)["limit"].to_list() == ["deadline", "budget"]
    assert "No plan keeps every limit" in str(found)


def test_a_limit_exceeded_by_little_is_not_kept_in_words_either(llama: fk.Plan) -> None:
    limits = Limits(facility_power_w=0.999 * llama.best["facility_power_w"].item())
    assert ranked(llama.best, limits, "run_cost_usd", 90.0)["breaks"].item() == "1.01 x the power"


def test_a_run_too_large_for_every_default_count_has_a_nearest_plan() -> None:
    found = fk.plan("10T", deadline="90 d", chips="b200")
    assert "deadline" in found.best["breaks"].item()


def test_a_chip_that_lacks_a_cell_is_excluded_and_the_others_stay() -> None:
    found = fk.plan("llama3_8b", tokens="1T", chips=["h100_sxm", "mi355x"], counts=[64])
    assert found.plans["accelerator"].unique().to_list() == ["h100_sxm"]
    assert "rental_usd_per_accelerator_h" in found.excluded.filter(accelerator="mi355x")["reason"].item()


def test_a_value_missing_in_the_tables_can_be_given() -> None:
    found = fk.plan("llama3_8b", tokens="1T", chips="mi355x", counts=[64], rental_usd_per_accelerator_h=2.59)
    assert found.best["accelerator"].item() == "mi355x"


def test_assumptions_are_listed_with_defaults_before_neutral_values(llama: fk.Plan) -> None:
    neutral = (llama.assumed["basis"] == "neutral").to_list()
    assert neutral == sorted(neutral)
    assert {"pue", "accelerator_mtbf_s"} <= {*llama.assumed["quantity"].head(neutral.index(True))}


def test_a_search_without_any_plan_gives_the_reason() -> None:
    with pytest.raises(ScenarioError, match="no layout fits in memory"):
        fk.plan("llama3_405b", tokens="1T", chips="h100_sxm", counts=[8])


@pytest.mark.parametrize(
    ("model", "wrong", "message"),
    [
        ("lama3_70b", {}, "llama3_70b"),
        ("llama3_8b", {"chips": ["h1000"]}, "h100"),
        ("llama3_8b", {"deadline": "60 W"}, "deadline_s"),
        ("llama3_8b", {"facility_power_w": "lots"}, "such as '1 MW'"),
        ("llama3_8b", {"deadline": "2027-06-01"}, "2027-06-01 is a date; give a duration"),
        ("llama3_8b", {"deadline": date(2027, 6, 1)}, "2027-06-01 is a date; give a duration"),
        ("llama3_8b", {"budget": -1.0}, "budget_usd"),
        ("llama3_8b", {"counts": []}, "counts"),
        ("llama3_8b", {"counts": [1.5]}, "whole"),
        ("llama3_8b", {"acquire": "steal"}, "rent"),
        ("llama3_8b", {"sites": ["atlantis"]}, "atlantis"),
        ("llama3_8b", {"tokns": 1e12}, "tokens"),
        (["70B"], {}, "model"),
        ({"parameters": 7e9}, {}, "layers"),
        ("llama3_8b", {"objective": "pue"}, "wall_days"),
        ("llama3_8b", {"chips": [MINE, MINE.replace(pue=1.1)]}, "two of the chips are named 'mine'"),
        ("llama3_8b", {"chips": [MINE], "peak_flop_per_s": 2e15}, "for mine and for all chips"),
        ("llama3_8b", {"chips": [fk.Scenario(pue=1.1)]}, "names no accelerator"),
    ],
)
def test_an_invalid_argument_is_named(model: object, wrong: dict[str, object], message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        fk.plan(model, **{"tokens": 1e12, "chips": ["h100_sxm"], "counts": [64]} | wrong)


@pytest.mark.parametrize(
    ("limit", "likely"),
    [
        ({"deadline": 60}, "'60 d'"),
        ({"power": "20"}, "'20 MW'"),
        ({"deadline": 5_184_000.0}, "'60 d'"),
        ({"power": "20,000,000"}, "'20 MW'"),
    ],
)
def test_a_limit_without_a_unit_is_refused_with_the_likely_text(limit: dict[str, object], likely: str) -> None:
    with pytest.raises(ScenarioError, match=likely):
        fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", **limit)


def test_a_limit_by_the_name_of_its_quantity_holds() -> None:
    inputs = {"tokens": "1T", "chips": "h100_sxm", "draws": 2}
    one, two = (fk.plan("llama3_8b", **inputs, **limit) for limit in ({"deadline": "20 d"}, {"deadline_s": "20 d"}))
    assert one.best.equals(two.best)
    with pytest.raises(ScenarioError, match="are the same"):
        fk.plan("llama3_8b", **inputs, budget=1e6, budget_usd=1e6)
    with pytest.raises(ScenarioError, match="counts"):
        fk.plan("llama3_8b", **inputs, nodes=256)


def test_the_fewest_accelerators_keep_the_deadline() -> None:
    inputs = {"tokens": "1T", "chips": "h100_sxm", "deadline": "20 d", "draws": 2}
    found = fk.plan("llama3_8b", objective="accelerators", **inputs)
    kept = found.plans.filter(pl.col("breaks").is_null())
    assert found.best["accelerators"].item() == kept["accelerators"].min() > found.plans["accelerators"].min()


def test_a_limit_binds_only_where_most_of_it_is_used(llama: fk.Plan) -> None:
    rows = llama.bottlenecks.filter("binds", pl.col("limit").is_in(["deadline", "budget", "power"]))
    assert (rows["used"] >= 0.75 * rows["allowed"]).all()


def test_power_limits_the_largest_model_although_counts_differ_by_an_eighth(llama: fk.Plan) -> None:
    limits = Limits(facility_power_w=llama.best["facility_power_w"].item() / 0.9)
    largest = replace(llama, request=replace(llama.request, arguments=("largest", {}), limits=limits))
    assert largest.bottlenecks.filter(limit="power")["binds"].item()


def test_a_tie_is_reported(llama: fk.Plan) -> None:
    assert llama.best["accelerator"].item() == "h100_sxm"
    assert "Equal within the 90 % interval: NVIDIA B200 (HGX), rented, in days and dollars." in str(llama)
    alone = fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=[64])
    assert "tie" not in str(alone)


def test_the_code_of_a_plan_reproduces_it(llama: fk.Plan) -> None:
    names: dict[str, object] = {}
    exec(llama.code, names)
    assert names["p"].best.equals(llama.best)  # type: ignore[attr-defined]


def test_an_objective_that_is_a_share_is_maximised() -> None:
    inputs = {"tokens": "1T", "chips": "h100_sxm", "counts": [64, 256]}
    found = fk.plan("llama3_8b", objective="goodput", **inputs)
    shares = found.plans.filter(pl.col("wall_days") <= 90.0)["goodput"]
    assert found.best["goodput"].item() == shares.max() > shares.min()


def test_a_site_brings_its_grid() -> None:
    found = fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=[256], sites=["fra", "pol"])
    names = (("US", "usa"), ("u.k.", "gbr"), ("de", "deu"), (" Germany", "deu"), ("Czech Republic", "cze"))
    assert sites([name for name, _ in names])["site"].to_list() == [code for _, code in names]
    carbon = dict(found.plans.select("site", "training_carbon_kg").iter_rows())
    assert carbon["pol"] > 5.0 * carbon["fra"]


def test_the_price_of_a_country_is_its_own_and_none_of_its_states():
    price = fk.sql(
        "select electricity_usd_per_kwh from electricity where kind = 'industrial' and name = 'United States' "
        "order by year desc limit 1"
    ).item()
    assert sites(["usa"])["electricity_usd_per_kwh"].item() == price


def test_more_memory_or_bandwidth_never_saves_negative_time(llama: fk.Plan) -> None:
    days_saved = llama.bottlenecks.filter(pl.col("limit").is_in(["memory", "network"]))["days_saved"]
    assert all(saved >= -1e-9 for saved in days_saved)


def test_a_deadline_binds_where_more_time_costs_less(llama: fk.Plan) -> None:
    row = llama.bottlenecks.row(by_predicate=pl.col("limit") == "deadline", named=True)
    cheaper = llama.plans.row(by_predicate=pl.col("plan") == row["next_plan"], named=True)
    days = cheaper["wall_days"] - llama.best["wall_days"].item()
    saved = llama.best["run_cost_usd"].item() - cheaper["run_cost_usd"]
    assert row["usd_saved"] == pytest.approx(saved / days)
    assert row["usd_saved"] > 0.0


def test_plans_share_their_draws() -> None:
    found = fk.plan("llama3_70b", **FEW, chips="h100_sxm")
    rates = found.draws.pivot("plan", index="draw", values="failures_per_day").drop("draw")
    ratios = rates / rates[:, 0]
    assert all(math.isclose(column.std() or 0.0, 0.0, abs_tol=1e-9) for column in ratios)


def test_two_plans_are_compared_side_by_side() -> None:
    one, two = (fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=[n]) for n in (64, 128))
    rows = one.compare(two)
    assert dict(rows.select("quantity", "this").iter_rows())["accelerators"] == 64.0
    with pytest.raises(ScenarioError, match=r"fk\.plan"):
        one.compare("two")  # type: ignore[arg-type]


def test_an_unknown_model_suggests_a_configuration_file() -> None:
    with pytest.raises(UnknownName, match=r"config\.json"):
        fk.plan("my model")


def test_a_scenario_is_planned_unchanged() -> None:
    one = fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=[64])
    again = fk.plan(one.scenario)
    assert again.plans.height == 1
    assert again.best["wall_days"].item() == pytest.approx(one.best["wall_days"].item(), rel=1e-9)


def test_a_budget_that_does_not_buy_the_machines_is_not_kept() -> None:
    asked = {
        "tokens": "500B",
        "chips": "b200",
        "acquire": "own",
        "budget": "250k USD",
        "counts": [8],
        "tensor_parallel": 8,
    }
    found = fk.plan("llama3_8b", **asked)
    assert found.best["run_cost_usd"].item() < 250e3 < found.best["capital_usd"].item()
    assert found.bottlenecks.filter(limit="budget")["chance"].item() == 0.0
    assert "for the run, " in str(found)


def test_a_price_given_for_several_accelerators_causes_a_warning() -> None:
    asked = {"tokens": "1T", "counts": [64], "rental_usd_per_accelerator_h": 2.5, "draws": 2}
    with pytest.warns(
        fk.FactorykitWarning, match=r"rental_usd_per_accelerator_h = 2\.5 USD/h is taken for all 2 accel"
    ):
        fk.plan("llama3_8b", chips=["h100_sxm", "b200"], **asked)
    fk.plan("llama3_8b", chips="h100_sxm", **asked | {"rental_usd_per_accelerator_h": "$2.5"})
    published = {**fk.architecture("llama3_8b"), "peak_flop_per_s": "989 TFLOP/s"}
    with pytest.warns(fk.FactorykitWarning, match=r"peak_flop_per_s = 989 TFLOP/s of the model is taken for b200"):
        fk.plan(published, chips="b200", tokens="1T", counts=[64], draws=2)


def test_the_code_of_a_plan_has_its_draws_and_seed() -> None:
    asked = {"tokens": "1T", "chips": "h100_sxm", "counts": [64]}
    assert "draws=4,\n    seed=3," in fk.plan("llama3_8b", **asked, draws=4, seed=3).code
    assert "seed" not in fk.plan("llama3_8b", **asked, draws=4).code


def test_an_own_chip_is_compared_with_listed_ones_by_its_name_price_and_offers() -> None:
    mine = fk.accelerator("mine", like="b200", peak_flop_per_s="3 PFLOP/s", rental_usd_per_accelerator_h="$4")
    asked = {"tokens": "1T", "counts": [64], "draws": 2}
    alone = fk.plan("llama3_8b", **asked, **mine)
    assert "64 NVIDIA B200 (HGX) with values of your own, rented" in str(alone)
    both = fk.plan("llama3_8b", **asked, chips=[mine, "B200"])
    assert "64 mine, like NVIDIA B200 (HGX), rented" in str(both)
    assert set(both.plans["accelerator"]) == {"mine", "b200"}
    of_mine, listed = (both.plans.filter(accelerator=name) for name in ("mine", "b200"))
    for result in ("wall_days", "run_cost_usd", "rental_usd_per_accelerator_h"):
        assert of_mine[result].item() == alone.best[result].item()
    assert listed["wall_days"].item() == fk.plan("llama3_8b", **asked, chips="b200").best["wall_days"].item()
    assert both.bottlenecks.filter(limit="memory")["allowed"].item() == 180e9
    assert fk.evaluate(both.scenario, "wall_days")["wall_days"] == pytest.approx(of_mine["wall_days"].item())
    assert "B200 (HGX) with values of your own" in str(fk.plan(both.scenario, draws=2))
    names: dict[str, object] = {}
    exec(both.code, names)
    assert names["p"].best.equals(both.best)  # type: ignore[attr-defined]
    price = {"rental_usd_per_accelerator_h": 3.0, "offered_accelerators": 64}
    offers = [{"provider": "a", "accelerator": name, **price} for name in ("mine", "H100")]
    offered = fk.plan("llama3_8b", **asked, chips=[mine, "h100_sxm"], offers=offers)
    priced = offered.plans.select("accelerator", "rental_usd_per_accelerator_h").unique().rows()
    assert set(priced) == {("mine", 3.0), ("h100_sxm", 3.0)}


def test_a_quantity_with_several_values_is_not_drawn() -> None:
    asked = {"tokens": "1T", "chips": "h100_sxm", "counts": [64], "draws": 4}
    rows = fk.plan("llama3_8b", **asked, accelerator_mtbf_s=["30000 h", "60000 h"]).plans
    assert (rows["failures_per_day_low"] == rows["failures_per_day_high"]).all()


def test_fewer_spare_nodes_than_needed_are_named() -> None:
    """Meta's 16,384 chips fail 7.8 times a day; the machines of a day in repair are eight in the mean, 15 at most."""
    asked = {"tokens": "15T", "chips": "h100_sxm", "counts": [16384], "draws": 2}
    few, enough = (str(fk.plan("llama3_405b", **asked, spare_nodes=n)) for n in (0, 20))
    assert "0 of 15 spare nodes: the time in which failed nodes are missing is not counted." in few
    assert "spare nodes:" not in enough


def test_an_offer_at_the_price_of_the_plan_costs_the_same() -> None:
    offers = [
        {"provider": "a", "accelerator": "h100_sxm", "rental_usd_per_accelerator_h": 2.0, "offered_accelerators": 512}
    ]
    for listed in (None, offers):
        found = fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=[160], offers=listed, draws=2)
        best, offer = found.best.row(0, named=True), found.offers.row(0, named=True)
        hourly = [row["rental_usd_per_accelerator_h"] for row in (best, offer)]
        assert best["run_cost_usd"] / hourly[0] == pytest.approx(offer["offer_cost_usd"] / hourly[1], rel=1e-6)


def test_offers_price_the_plan_sorted_by_cost(llama: fk.Plan) -> None:
    assert llama.offers["taken"].null_count() == llama.offers.height > 5
    assert llama.offers["offer_cost_usd"].is_sorted()


def test_two_tiers_of_checkpoints_agree_with_their_formulas() -> None:
    found = fk.plan("llama3_405b", tokens="15.6T", chips="h100_sxm", counts=[16384], tiers=["one", "two"])
    two, one = found.plans.rows(named=True)
    assert (two["tiers"], one["tiers"]) == ("two", "one")
    values = fk.evaluate(found.scenario, ["checkpoint_write_s", "cluster_mtbf_s", "level_one_write_s", *found.outputs])
    for name in found.outputs:
        assert values[name] == pytest.approx(two[name], rel=1e-9), name
    near = values["checkpoint_write_s"], values["cluster_mtbf_s"], values["level_one_write_s"]
    segments = math.sqrt(0.85 * near[0] / (0.15 * near[2]))
    wanted = math.sqrt(2.0 * near[1] * (near[2] + near[0] / segments) / (0.85 + 0.15 * segments))
    assert two["checkpoint_interval_s"] == pytest.approx(wanted)
    assert one["goodput"] < two["goodput"] < 1.0


def test_a_plan_is_rented_from_an_offer_that_states_enough_accelerators() -> None:
    price = "rental_usd_per_accelerator_h"
    names = {"provider": ["silent", "small", "large"], "accelerator": "h100_sxm", price: [1.0, 2.0, 3.0]}
    offers = pl.DataFrame(names | {"offered_accelerators": [None, 1024.0, 4096.0]})
    inputs = {"tokens": "15T", "chips": "h100_sxm", "counts": [1024, 2048, 8192]}
    found = fk.plan("llama3_70b", **inputs, offers=offers)
    providers = dict(found.plans.select("accelerators", "provider").iter_rows())
    assert (providers[1024.0], providers[2048.0], max(providers)) == ("small", "large", 4096.0)
    with pytest.raises(ScenarioError, match="no offer states"):
        fk.plan("llama3_70b", **inputs, offers=offers.drop("offered_accelerators"))


def test_a_plan_recomputes_the_least_that_lets_it_fit() -> None:
    hand = {"tensor_parallel": 8, "pipeline_parallel": 16, "context_parallel": 1, "virtual_stages": 1}
    inputs = {"tokens": "1T", "chips": "h100_sxm", "counts": [1024], "micro_batch_size": 1}
    found = fk.plan("llama3_405b", **inputs, **hand, recompute=["none"])
    share = found.best["recompute_share"].item()
    assert 0.0 < share < 1.0
    assert fk.evaluate(found.scenario, "fits")["fits"] == 1.0
    assert fk.evaluate(found.scenario.replace(recompute_share=share - 0.01), "fits")["fits"] < 1.0


def test_a_long_search_prints_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "DELAY_S", -1.0)
    monkeypatch.setattr(progress, "UPDATE_S", -1.0)
    assert list(progress.progress([1, 2], 2, "chips planned")) == [1, 2]
    assert "1 of 2 chips planned" in terminal.getvalue()


def test_a_plan_chooses_among_values_of_any_quantity() -> None:
    """Any quantity can be given as a list of alternatives, also one that is not part of the layout."""
    inputs = {"training_sites": [1, 2], "inner_steps": [1, 100], "wan_bytes_per_s": "2 GB/s"}
    found = fk.plan("llama3_70b", tokens="15T", chips="h100_sxm", counts=[1024], draws=16, **inputs)
    steps = {tuple(row[:2]): row[2] for row in found.plans.select("training_sites", "inner_steps", "step_s").rows()}
    assert len(steps) == found.alternatives.height + 1 == 4
    assert steps[1.0, 1.0] == steps[1.0, 100.0] <= steps[2.0, 100.0] < steps[2.0, 1.0]
    for row in found.plans.iter_slices(1):
        assert fk.evaluate(found.scenario_of(row), "step_s")["step_s"] == pytest.approx(row["step_s"].item(), rel=1e-9)


def test_the_topology_of_the_network_is_chosen_and_priced() -> None:
    wirings = ["fat_tree", "optical_spine"]
    inputs = {"tokens": "1T", "chips": ["h100_sxm"], "counts": [4096], "acquire": "own", "draws": 4}
    found = fk.plan("llama3_8b", **inputs, network_topology=wirings)
    assert found.plans["network_topology"].to_list() == [found.scenario["network_topology"], "fat_tree"]
    dear, cheap = (found.plans.filter(network_topology=word)["network_capital_usd"].item() for word in wirings)
    fabric = {"accelerators": 4096.0, "network_planes": 1.0, "nics_per_accelerator": 1.0}
    tree = fk.evaluate(fabric, "network_capital_usd", assume=True)["network_capital_usd"]
    assert cheap < dear == tree
    assert found.alternatives["network_topology"].to_list() == ["fat_tree"]


@pytest.mark.parametrize("model", ["qwen3_next_80b", "nemotron_3_nano_30b", "deepseek_v3_2", "mamba2_2_7b"])
def test_a_plan_of_a_hybrid_names_the_number_of_measured_models(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = fk.plan(model, tokens="1T", chips="h100_sxm", counts=[512])
    best = planned.best.row(0, named=True)
    for result in ("wall_days", "run_cost_usd"):
        assert best[f"{result}_low"] < best[result] < best[f"{result}_high"]
    assert best["wall_days_high"] / best["wall_days_low"] > 2.0
    assert run_architectures.models_measured(LITTLE_MEASURED) == 1
    assert "one is measured" in str(planned)
    monkeypatch.setattr(run_architectures, "models_measured", lambda parts: len(parts))
    assert "two are measured" in str(planned)


def test_a_plan_as_it_was_run_takes_the_conditions_of_the_published_run() -> None:
    run = fk.plan("llama3_405b", as_run=True, draws=2)
    best = run.best.row(0, named=True)
    assert (best["accelerator"], best["accelerators"]) == ("h100_sxm", 16_384.0)  # Llama 3 paper, section 3.3.2
    assert run.request.fixed["tokens"] == 15.6e12
    assert fk.plan("llama3_405b", as_run=True, chips="b200", draws=2).best["accelerator"].item() == "b200"
    today = fk.plan("llama3_405b", tokens="15.6T", chips="h100_sxm", counts=16_384, draws=2)
    assert today.best["predicted_mfu"].item() > best["predicted_mfu"]  # software of today
    assert "software_year" in run.compare(today)["quantity"].to_list()
    with pytest.raises(ScenarioError, match="as_run needs a model whose run is published, got 'qwen3_8b'"):
        fk.plan("qwen3_8b", as_run=True)


def test_a_power_limit_lowers_power_and_energy_and_lengthens_the_run() -> None:
    plans = [
        fk.plan("llama3_8b", tokens="1T", counts=64, chips="h100_sxm", power_limit_share=share).best.row(0, named=True)
        for share in (1.0, 0.7)
    ]
    full, limited = plans
    saved_w = full["facility_power_w"] - limited["facility_power_w"]
    assert saved_w == pytest.approx(1.1 * 64 * 0.3 * 650.0)
    assert limited["training_energy_kwh"] < full["training_energy_kwh"]
    assert limited["wall_days"] > full["wall_days"]
