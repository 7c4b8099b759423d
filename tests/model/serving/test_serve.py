"""Plans that serve a load within limits of latency."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.cli import main
from factorykit.core.errors import ScenarioError, UnknownQuantity
from factorykit.model.serving.plan import SPECIFICATIONS
from factorykit.model.serving.points import chip, hardware


@cache
def chat(**given: Any) -> fk.ServingPlan:
    return fk.serve("llama3_70b", load=20.0, **given)


def test_a_plan_keeps_its_limits_and_carries_its_load() -> None:
    plan = fk.serve("llama3_70b", ["h200_sxm", "b200"], load=20.0, ttft="1 s", tpot="25 ms")
    best = plan.best
    assert plan.breaks == ()
    assert best["ttft_s"] <= 1.0
    assert best["tpot_s"] <= 0.025
    assert best["replicas"] * best["tokens_per_s"] >= 20.0 * 1024.0
    assert best["accelerators"] == best["replicas"] * best["replica_accelerators"]
    assert best["memory_left_bytes"] >= 0.0


def test_the_best_plan_costs_least_of_those_that_keep_the_limits() -> None:
    plan = chat(tpot="25 ms")
    kept = plan.candidates.filter(plan.candidates["tpot_s"] <= 0.025)
    expected = kept["cost_usd_per_h"] * kept["expected_cost_ratio"]
    assert plan.best["cost_usd_per_h"] * plan.best["expected_cost_ratio"] == expected.min()
    few = chat(tpot="25 ms", objective="accelerators")
    assert few.best["accelerators"] <= plan.best["accelerators"]


def test_a_mode_without_measured_points_does_not_win_by_its_median_alone() -> None:
    """Separate prefill costs a twentieth less, but its time to first token is uncertain by a factor of four."""
    plan = fk.serve("llama3_70b", "h100_sxm", load=50.0, input_tokens=8192, ttft="2 s", tpot="50 ms")
    rows = plan.candidates.filter(plan.candidates["ttft_s"] <= 2.0, plan.candidates["tpot_s"] <= 0.05)
    apart = rows.filter(rows["prefill_separate"] == 1.0)
    assert apart["cost_usd_per_h"].min() < plan.best["cost_usd_per_h"]
    assert plan.best["prefill_separate"] == 0.0
    assert plan.best["measured_points"] > 0.0
    assert (apart["measured_points"] == 0.0).all()


def test_a_fleet_carries_the_load_for_which_it_is_the_answer() -> None:
    limits = {"ttft": "2 s", "tpot": "50 ms"}
    most = fk.serve("llama3_70b", "h100_sxm", fleet=16, **limits).best  # type: ignore[arg-type]
    assert most["accelerators"] == most["replicas"] * most["replica_accelerators"] <= 16.0
    assert most["requests_per_s_low"] < most["requests_per_s"] < most["requests_per_s_high"]
    assert most["users"] == pytest.approx(most["requests_per_s"] * (most["latency_s"] + 60.0))
    asked = fk.serve("llama3_70b", "h100_sxm", users=most["users"], **limits).best  # type: ignore[arg-type]
    assert asked["users"] == pytest.approx(most["users"])
    assert asked["accelerators"] <= 16.0


def test_the_price_of_output_is_as_uncertain_as_its_latency() -> None:
    best = fk.serve("llama3_70b", "h200_sxm", load=20.0, input_tokens=8192, prefill_separate=0.0).best
    price = best["usd_per_million_output_tokens_high"] / best["usd_per_million_output_tokens"]
    assert price == pytest.approx(best["tpot_high_s"] / best["tpot_s"], rel=0.02)


def test_energy_and_cost_per_token_follow_from_power_and_price() -> None:
    best = chat(rental_usd_per_accelerator_h=3.0).best
    prompt = best["usd_per_million_input_tokens"] * best["input_tokens"]
    answer = best["usd_per_million_output_tokens"] * best["output_tokens"]
    per_request = 3.0 * best["replica_accelerators"] / 3600.0 / (best["tokens_per_s"] / best["output_tokens"])
    assert (prompt + answer) / 1e6 == pytest.approx(per_request)
    assert best["j_per_token"] * best["tokens_per_s_per_mw"] == pytest.approx(1e6)


def test_faster_users_leave_less_throughput_along_the_frontier() -> None:
    frontier = chat().frontier()
    assert frontier["tokens_per_s_per_user"].is_sorted(descending=True)
    assert frontier["tokens_per_s_per_accelerator"].is_sorted()


def test_limits_that_cannot_be_kept_give_the_nearest_plan_with_a_note() -> None:
    plan = chat(tpot="0.1 ms")
    assert plan.best["tpot_s"] == plan.candidates["tpot_s"].min()
    assert len(plan.breaks) == 1
    assert "tpot <= 0.0001 s" in str(plan)


def test_a_model_that_does_not_fit_names_the_missing_bytes() -> None:
    with pytest.raises(ScenarioError, match=r"on 8 h100_sxm about \d+\.\d GB are missing"):
        fk.serve("deepseek_v3", "h100_sxm", load=1.0, pipeline_parallel=1)


def test_a_model_larger_than_a_node_is_served_by_a_pipeline_of_nodes() -> None:
    """Llama 3.1 405B in 16 bits takes 811 GB: more than eight H100 of 80 GB hold, and less than sixteen."""
    asked = {"load": 1.0, "precision": "bf16"}
    plan = fk.serve("llama3_405b", "h100_sxm", **asked)
    assert (plan.best["pipeline_parallel"], plan.best["replica_accelerators"]) == (2.0, 16.0)
    assert "pipeline parallel 2" in str(plan)
    both = fk.serve("llama3_405b", ["h100_sxm", "b200"], **asked).candidates
    stages = dict(both.group_by("accelerator").agg(pl.col("pipeline_parallel").min()).iter_rows())
    assert stages == {"h100_sxm": 2.0, "b200": 1.0}


@pytest.mark.parametrize(("model", "chip"), [("1T A32B", "h200_sxm"), ("llama3_405b", "h100_sxm")])
def test_a_given_number_of_stages_never_costs_less_than_the_best_one(model: str, chip: str) -> None:
    """A trillion weights of 8 bits just fit on one node of H200, with room for few requests."""
    free = fk.serve(model, chip, load=5.0).best
    costs = [fk.serve(model, chip, load=5.0, pipeline_parallel=stages).best for stages in (1, 2, 4)]
    assert min(row["cost_usd_per_h"] * row["expected_cost_ratio"] for row in costs) >= (
        free["cost_usd_per_h"] * free["expected_cost_ratio"]
    )


def test_a_pipeline_is_no_faster_than_one_of_its_stages() -> None:
    """Each token passes all stages in turn; the residual of one node, where all points are measured, holds for it."""
    plan = fk.serve("llama3_405b", "h100_sxm", load=5.0, tpot="7 ms")
    assert plan.best["pipeline_parallel"] == 1.0
    assert plan.frontier()["pipeline_parallel"][0] == 1.0
    assert fk.serve("llama3_405b", "h100_sxm", load=5.0, pipeline_parallel=2).best["measured_points"] == 0.0


def test_a_larger_model_costs_no_less() -> None:
    costs = [fk.serve(f"{size} A32B", "h200_sxm", load=5.0).best["cost_usd_per_h"] for size in ("900B", "1T", "1.2T")]
    assert costs == sorted(costs)


def test_four_bits_without_units_for_them_are_computed_and_cached_as_integers() -> None:
    """An H100 has no FP4 units: kernels such as Marlin convert FP4 and INT4 weights to 16 bits."""
    names = ("peak_flop_per_s", "kv_bytes_per_element")
    hopper, blackwell = ({form: hardware(chip(name), form) for form in ("fp4", "int4")} for name in ("h100", "b200"))
    assert [hopper["fp4"][name] for name in names] == [hopper["int4"][name] for name in names]
    assert blackwell["fp4"]["peak_flop_per_s"] > 3.0 * blackwell["int4"]["peak_flop_per_s"]


def test_a_chip_of_ones_own_serves_as_the_one_whose_specifications_it_has() -> None:
    specifications = hardware(chip("b200"), "fp8")
    own = {name: specifications[name] for name in (*SPECIFICATIONS, "accelerator_memory_bytes")}
    plain = fk.serve("llama3_70b", "b200", load=20).best
    assert fk.serve("llama3_70b", load=20, accelerator="b200", **own).best == plain
    for name, value in own.items():
        assert fk.serve("llama3_70b", load=20, accelerator="b200", **{name: value}).best["accelerators"] > 0.0


def test_chips_of_ones_own_are_compared_with_listed_ones() -> None:
    """A B200 at nine tenths of the price is the cheaper one; values of one chip cannot be given for all, too."""
    price = fk.serve("llama3_70b", "b200", load=20).best["rental_usd_per_accelerator_h"]
    mine = fk.accelerator("mine", like="b200", rental_usd_per_accelerator_h=0.9 * price)
    plan = fk.serve("llama3_70b", [mine, "b200"], load=20)
    least = dict(plan.candidates.group_by("accelerator").agg(pl.col("cost_usd_per_h").min()).iter_rows())
    assert plan.best["accelerator"] == "mine"
    assert least["mine"] == pytest.approx(0.9 * least["b200"])
    assert "mine, like NVIDIA B200 (HGX) in" in str(plan)
    with pytest.raises(ScenarioError, match="rental_usd_per_accelerator_h is given for mine and for all chips"):
        fk.serve("llama3_70b", [mine, "b200"], load=20, rental_usd_per_accelerator_h=2.0)


def test_chips_on_which_a_model_does_not_fit_are_left_out_with_a_warning() -> None:
    with pytest.warns(fk.FactorykitWarning, match=r"left out: .* on 64 t4 about .* GB are missing"):
        plan = fk.serve("1.5T A32B", ["t4", "b200"], load=1)
    assert plan.candidates["accelerator"].unique().to_list() == ["b200"]


def test_inputs_are_read_as_in_every_verb() -> None:
    with pytest.raises(ScenarioError, match=r"requests_per_s = .many tokens. is not a number"):
        fk.serve("llama3_70b", load="many tokens")
    with pytest.raises(UnknownQuantity, match="draft_tokens"):
        fk.serve("llama3_70b", load=1.0, draft_token=2.0)
    with pytest.raises(ScenarioError, match="inconsistent"):
        fk.serve("llama3_70b", load=1.0, context_tokens=5.0)
    assert {"decode_memory_share", "serving_memory_share"} <= set(chat().assumed["quantity"])


def test_each_answer_lies_in_its_interval() -> None:
    best = chat().best
    for name in ("ttft_s", "tpot_s", "tokens_per_s", "j_per_token", "cost_usd_per_h", "usd_per_million_output_tokens"):
        stem = name.removesuffix("_s") if name in ("ttft_s", "tpot_s") else name
        low, high = (f"{stem}_low_s", f"{stem}_high_s") if stem != name else (f"{name}_low", f"{name}_high")
        assert best[low] <= best[name] <= best[high]


def test_an_answer_of_one_token_has_no_time_between_tokens() -> None:
    plan = chat(output_tokens=1.0, ttft="2 s")
    between = [name for name in plan.best if name.startswith(("tpot", "tokens_per_s_per_user"))]
    assert {plan.best[name] for name in between} == {None}
    assert plan.best["latency_s"] == plan.best["ttft_s"] <= 2.0
    assert "next" not in str(plan)
    with pytest.raises(ScenarioError, match="no time between tokens"):
        plan.plot()
    with pytest.raises(ScenarioError, match="tpot cannot be given with output_tokens = 1"):
        chat(output_tokens=1.0, tpot="25 ms")
    assert main(["serve", "llama3_70b", "20", "--output-tokens", "1", "--tpot", "25 ms"]) == 2


def test_short_answers_need_the_accelerators_of_their_prompts() -> None:
    one, few = (chat(output_tokens=tokens).best["accelerators"] for tokens in (1.0, 16.0))
    assert one == pytest.approx(few, rel=0.5)


def test_a_fixed_layout_is_kept_and_separate_prefill_has_workers_of_its_own() -> None:
    plan = chat(prefill_separate=1.0, tensor_parallel=4.0)
    assert plan.candidates["tensor_parallel"].unique().to_list() == [4.0]
    assert (plan.candidates["prefill_workers"] > 0.0).all()
    best = plan.best
    assert best["replica_accelerators"] == best["prefill_accelerators"] + best["decode_workers"] * 4.0
    assert "prefill" in str(plan)
