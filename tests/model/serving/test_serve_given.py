"""Values given to a serving plan are used, reported or refused."""

from __future__ import annotations

import pytest

import factorykit as fk
from factorykit.engine.providers.accelerators import brought
from factorykit.formulas.serving.decode import accepted_tokens
from factorykit.formulas.serving.prefill import prefill_flop
from factorykit.model.serving.points import chip, hardware

LOAD = {"load": 10.0, "prefill_separate": 0.0}


def test_a_given_value_that_no_serving_formula_uses_is_reported() -> None:
    with pytest.warns(fk.FactorykitWarning, match="goodput is not used for serving"):
        fk.serve("llama3_8b", "h200_sxm", **LOAD, goodput=0.5)


@pytest.mark.parametrize("name", ["accelerators", "serving_replicas", "time_per_output_token_s"])
def test_a_result_is_no_input(name: str) -> None:
    with pytest.raises(fk.FactorykitError, match=f"{name} is a result of serve"):
        fk.serve("llama3_8b", "h200_sxm", **LOAD, **{name: 1.0})


def test_a_chip_of_the_model_is_that_of_the_plan() -> None:
    run = {**fk.architecture("llama3_8b"), "accelerator": "b200"}
    assert fk.serve(run, **LOAD).best["accelerator"] == "b200"
    assert fk.serve(run, "H100", **LOAD).best["accelerator"] == "h100_sxm"


def test_any_concurrency_may_be_given() -> None:
    assert set(fk.serve("llama3_8b", **LOAD, concurrent_requests=100).candidates["concurrent_requests"]) == {100.0}


@pytest.mark.parametrize(("name", "value"), [("tpot", 25), ("ttft", 500), ("tpot", "25")])
def test_milliseconds_without_a_unit_are_refused(name: str, value: float | str) -> None:
    with pytest.raises(fk.FactorykitError, match=f"give '{value} ms' or '{value} s'"):
        fk.serve("llama3_8b", "h200_sxm", **LOAD, **{name: value})


def test_a_chip_without_a_price_is_left_out_with_a_warning() -> None:
    with pytest.warns(fk.FactorykitWarning, match="left out: AMD Instinct MI355X"):
        found = fk.serve("llama3_8b", ["mi355x", "h200_sxm"], **LOAD)
    assert set(found.candidates["accelerator"]) == {"h200_sxm"}
    with pytest.raises(fk.FactorykitError, match="give rental_usd_per_accelerator_h"):
        fk.serve("llama3_8b", "mi355x", **LOAD)


def test_an_accelerator_of_ones_own_is_given_as_a_chip_and_named_so() -> None:
    mine = fk.accelerator("mine", like="b200", memory_bytes_per_s="12 TB/s")
    found = fk.serve("llama3_8b", mine, **LOAD)
    given = fk.serve("llama3_8b", **mine, **LOAD)
    assert found.best == {**given.best, "accelerator": "mine"}
    assert "mine, like NVIDIA B200 (HGX) in" in str(found)
    assert "NVIDIA B200 (HGX) with values of your own" in str(given)
    assert found.best["tpot_s"] < fk.serve("llama3_8b", "b200", **LOAD).best["tpot_s"]


def test_requests_are_a_unit() -> None:
    assert fk.Scenario(requests_per_s="600 requests/min")["requests_per_s"] == 10.0


def test_an_unknown_model_is_an_unknown_name() -> None:
    with pytest.raises(fk.errors.UnknownName, match=r"no architecture 'lama9'.*or a size such as '70B'"):
        fk.serve("lama9", "h200_sxm", **LOAD)


@pytest.mark.parametrize(("size", "served"), [("70B", 70e9), ("1T A32B", 1e12), ("30B-A3B", 30e9)])
def test_a_model_is_given_by_its_size(size: str, served: float) -> None:
    best = fk.serve(size, "b200", **LOAD, precision="fp8").best
    assert best["served_weight_bytes"] * best["replica_accelerators"] == pytest.approx(served, rel=0.1)
    assert best["measured_points"] == 0.0


@pytest.mark.parametrize(
    "wrong",
    [{}, {"load": 1.0, "users": 5.0}, {"users": 5.0, "fleet": 8.0}]
    + [{name: 10.0, "requests_per_s": 20.0} for name in ("load", "users", "fleet")],
)
def test_one_of_load_users_and_fleet_is_needed(wrong: dict[str, float]) -> None:
    with pytest.raises(fk.FactorykitError, match="serve needs one of load"):
        fk.serve("llama3_8b", "h200_sxm", **wrong)


def test_the_load_may_have_its_full_name() -> None:
    named = fk.serve("llama3_8b", "h200_sxm", requests_per_s=10.0, prefill_separate=0.0)
    assert named.best == fk.serve("llama3_8b", "h200_sxm", **LOAD).best


def test_engines_and_number_formats_are_read_in_any_spelling() -> None:
    plain = fk.serve("llama3_8b", "h200_sxm", **LOAD, engine="trtllm", precision="int4").best
    assert fk.serve("llama3_8b", "h200_sxm", **LOAD, engine="TensorRT-LLM", precision="W4A16").best == plain
    for wrong in ({"engine": "tgi"}, {"precision": "fp12"}, {"engine": None}):
        with pytest.raises(fk.errors.UnknownName):
            fk.serve("llama3_8b", "h200_sxm", **LOAD, **wrong)


@pytest.mark.parametrize("name", ["input_tokens", "output_tokens"])
def test_thousands_of_tokens_may_be_powers_of_two_and_are_refused(name: str) -> None:
    with pytest.raises(fk.FactorykitError, match="can be 8,000 or 8,192"):
        fk.serve("llama3_8b", "h200_sxm", **LOAD, **{name: "8k"})


def test_a_load_share_near_one_warns_of_the_wait_that_latencies_leave_out() -> None:
    with pytest.warns(fk.FactorykitWarning, match="includes the wait for replicas; give up to 0.9"):
        fk.serve("llama3_8b", "h200_sxm", **LOAD, serving_load_share=1.0)


def test_a_fleet_below_one_replica_is_refused() -> None:
    with pytest.raises(fk.FactorykitError, match="fleet = 4 is too small: one replica needs 8"):
        fk.serve("llama3_405b", "h100_sxm", fleet=4, prefill_separate=0.0)
    with pytest.raises(fk.FactorykitError, match="objective"):
        fk.serve("llama3_70b", "h100_sxm", fleet=16, objective="j_per_token")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({**LOAD, "ttft": 0}, "ttft must be above 0 s, got 0"),
        ({**LOAD, "tpot": "0 ms"}, "tpot must be above 0 s, got 0 ms"),
        ({**LOAD, "chips": []}, "chips are empty; give at least one"),
        ({**LOAD, "tensor_parallel": 3}, "no layout has tensor_parallel = 3, prefill_separate = 0: a"),
        ({**LOAD, "pipeline_parallel": 1.5}, "pipeline_parallel = 1.5 must be whole and at most 8"),
        ({**LOAD, "pipeline_parallel": 9}, "pipeline_parallel = 9 must be whole and at most 8"),
        ({"users": 0}, r"serving_users = 0.0 is outside \(0, inf\); Users must be above 0"),
    ],
)
def test_limits_chips_and_users_of_zero_are_refused(given: dict, message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        fk.serve("llama3_8b", **given)


def test_a_prompt_that_the_cache_holds_computes_its_last_token() -> None:
    """The logits of the last token give the first of the answer: vLLM recomputes it at a hit of the whole prompt."""
    whole, half = (fk.serve("llama3_8b", "h200_sxm", **LOAD, cached_input_share=share).best for share in (1.0, 0.5))
    assert 0.0 < whole["prefill_s"] < half["prefill_s"]
    assert whole["usd_per_million_cached_tokens"] > 0.0
    work = ("active_parameters", "embedding_parameters", "input_tokens", "attention_layers", "attention_heads")
    given = dict(zip(work, (8e9, 5e8, 1000.0, 32.0, 32.0), strict=True)) | {"head_size": 128.0, "rope_head_size": 0.0}
    given |= {"value_head_size": 128.0}
    assert prefill_flop(cached_input_share=1.0, **given) == 2.0 * 7.5e9 + 32.0 * 32.0 * 256.0 * 2000.0


@pytest.mark.parametrize("drafts", [1.0, 3.0])
def test_drafts_that_are_all_accepted_add_a_token_each(drafts: float) -> None:
    assert accepted_tokens(drafts, 1.0) == pytest.approx(drafts + 1.0, rel=1e-6)


def test_accelerators_without_a_price_are_counted() -> None:
    free = fk.serve("llama3_8b", "h200_sxm", **LOAD, rental_usd_per_accelerator_h=0.0).best
    fewest = fk.serve("llama3_8b", "h200_sxm", **LOAD, objective="accelerators").best
    assert free["accelerators"] == fewest["accelerators"]


@pytest.mark.parametrize("name", ["a100_pcie", "b300", "h100_sxm", "l4"])
def test_serving_and_training_have_the_same_links(name: str) -> None:
    trained = brought(name)
    links = ("scale_out_bytes_per_s", "scale_up_bytes_per_s")
    assert {link: hardware(chip(name), "bf16")[link] for link in links} == {link: trained[link] for link in links}
