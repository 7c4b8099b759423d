"""Values given to a serving plan are used, reported or refused."""

from __future__ import annotations

import pytest

import factorykit as fk

LOAD = {"load": 10.0, "prefill_separate": 0.0}


def test_a_given_value_that_no_serving_formula_uses_is_reported() -> None:
    with pytest.warns(fk.FactorykitWarning, match="goodput is not used for serving"):
        fk.serve("llama3_8b", "h200_sxm", **LOAD, goodput=0.5)


@pytest.mark.parametrize("name", ["accelerators", "serving_replicas", "time_per_output_token_s"])
def test_a_result_is_no_input(name: str) -> None:
    with pytest.raises(fk.FactorykitError, match=f"{name} is a result of serve"):
        fk.serve("llama3_8b", "h200_sxm", **LOAD, **{name: 1.0})


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


def test_requests_are_a_unit() -> None:
    assert fk.Scenario(requests_per_s="600 requests/min")["requests_per_s"] == 10.0


def test_an_unknown_model_is_an_unknown_name() -> None:
    with pytest.raises(fk.errors.UnknownName, match=r"no architecture 'lama9'.*or a size such as '70B'"):
        fk.serve("lama9", "h200_sxm", **LOAD)


@pytest.mark.parametrize(("size", "served"), [("70B", 70e9), ("1T A32B", 1e12)])
def test_a_model_is_given_by_its_size(size: str, served: float) -> None:
    best = fk.serve(size, "b200", **LOAD, precision="fp8").best
    assert best["served_weight_bytes"] * best["replica_accelerators"] == pytest.approx(served, rel=0.1)
    assert best["measured_points"] == 0.0


@pytest.mark.parametrize("wrong", [{}, {"load": 1.0, "users": 5.0}, {"users": 5.0, "fleet": 8.0}])
def test_one_of_load_users_and_fleet_is_needed(wrong: dict[str, float]) -> None:
    with pytest.raises(fk.FactorykitError, match="serve needs one of load"):
        fk.serve("llama3_8b", "h200_sxm", **wrong)


def test_a_fleet_below_one_replica_is_refused() -> None:
    with pytest.raises(fk.FactorykitError, match="fleet = 4 is too small: one replica needs 8"):
        fk.serve("llama3_405b", "h100_sxm", fleet=4, prefill_separate=0.0)
    with pytest.raises(fk.FactorykitError, match="objective"):
        fk.serve("llama3_70b", "h100_sxm", fleet=16, objective="j_per_token")
