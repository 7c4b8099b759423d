"""More accelerators never take longer, and never cost more: a plan may leave some of them idle."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise

import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError

MODELS = ("llama3_8b", "llama3_70b", "llama3_405b", "deepseek_v3", "mixtral_8x7b", "30B dense", "gpt3_175b")
CHIPS = ("h100_sxm", "b200", "a100_sxm_80gb", "mi300x", "h200_sxm")


def test_round_numbers_of_accelerators_cost_no_more_than_useful_ones() -> None:
    asked = {"tokens": "15.6T", "chips": "h100_sxm", "draws": 2}
    for available, useful in ((100_000, 98_304), (25_000, 24_576), (50_000, 49_152)):
        many, few = (fk.plan("llama3_405b", counts=[n], **asked).best.row(0, named=True) for n in (available, useful))
        assert (many["wall_days"], many["run_cost_usd"]) == (few["wall_days"], few["run_cost_usd"])
        assert many["accelerators"] <= useful < many["available_accelerators"] == available
    assert "of 50,000 NVIDIA H100" in str(fk.plan("llama3_405b", counts=[50_000], **asked))


@pytest.mark.parametrize("cases", [3, pytest.param(250, marks=pytest.mark.long)])
def test_days_never_rise_with_the_number_of_accelerators(cases: int) -> None:
    """Forty numbers of accelerators in each case; dollars rise only with the accelerators that are used."""
    chance = random.Random(cases)
    for _ in range(cases):
        model, chip = chance.choice(MODELS), chance.choice(CHIPS)
        given = {"rental_usd_per_accelerator_h": 2.0, "tokens": 10.0 ** chance.uniform(11.0, 13.5), "draws": 2}
        if chance.random() < 0.3:
            given["global_batch_size"] = 2.0 ** chance.randint(9, 13)
        counts = sorted({round(2.0 ** chance.uniform(7.0, 17.0)) for _ in range(40)})
        try:
            plans = fk.plan(model, chips=chip, counts=counts, **given).plans.sort("available_accelerators")
        except fk.FactorykitError:
            continue
        assert plans["wall_days"].is_sorted(descending=True), (model, chip, given)
        assert (plans["accelerators"] <= plans["available_accelerators"]).all()
        for less, more in pairwise(plans.select("accelerators", "run_cost_usd").rows()):
            assert more[1] / less[1] <= more[0] / less[0] * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("model", "tokens", "count", "batch", "part"),
    [
        ("llama3_405b", "15T", 16_000, 1000, {"pipeline_parallel": 10}),
        ("llama3_8b", "1T", 1000, 1000, {"tensor_parallel": 1}),
        ("llama3_8b", "1T", 200, 1000, {"tensor_parallel": 1}),
    ],
)
def test_a_given_part_of_the_layout_is_never_faster_than_the_best(model, tokens, count, batch, part) -> None:
    """Round batches divide over 125 replicas times a power of two, and no other odd number."""
    asked = {"tokens": tokens, "chips": "h100_sxm", "counts": [count], "global_batch_size": batch, "draws": 2}
    best, fixed = (fk.plan(model, **asked, **given).best.row(0, named=True) for given in ({}, part))
    assert best["wall_days"] <= fixed["wall_days"] * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("tokens", "deadline", "given"), [("1T", "3 d", {"global_batch_size": 1000}), ("100B", "6 h", {})]
)
def test_a_short_deadline_is_kept_with_default_counts(tokens: str, deadline: str, given: dict[str, int]) -> None:
    """The 8B model takes six FLOP a parameter and token: 1,000 H100 at a third of their peak need 1.7 d and 4.1 h."""
    asked = {"tokens": tokens, "chips": "h100_sxm", "deadline": deadline, "draws": 2}
    assert fk.plan("llama3_8b", **asked, **given).best["breaks"].item() is None


OBJECTIVES = ("run_cost_usd", "wall_days", "accelerators", "training_carbon_kg")
LIMITS = ({}, {"deadline": "60 d"}, {"budget": "20 M USD"}, {"power": "5 MW"}, {"deadline": "30 d", "power": "8 MW"})


@pytest.mark.parametrize(("cases", "models"), [(2, MODELS[:1]), pytest.param(250, MODELS, marks=pytest.mark.long)])
def test_more_available_accelerators_never_make_the_best_plan_worse(cases: int, models: tuple[str, ...]) -> None:
    """Of plans that keep the limits, the objective never rises; three numbers of accelerators in each case."""
    chance = random.Random(cases)
    compared = 0
    for _ in range(cases):
        objective, limits = chance.choice(OBJECTIVES), chance.choice(LIMITS)
        given = {"tokens": 10.0 ** chance.uniform(11.0, 13.0), "draws": 2, "objective": objective, **limits}
        given |= {"chips": chance.sample(CHIPS, chance.choice((1, 1, 2)))}
        model, before = chance.choice(models), float("inf")
        for count in sorted(round(2.0 ** chance.uniform(7.0, 15.0)) for _ in range(3)):
            with suppress(ScenarioError):
                best = fk.plan(model, counts=[count], **given).best.row(0, named=True)
                assert best["accelerators"] <= count
                if best["breaks"] is None and (best["wall_days"] <= 90.0 or "deadline" in limits):
                    assert best[objective] <= before * (1.0 + 1e-12), (model, count, given)
                    before, compared = best[objective], compared + 1
    assert compared > cases


def test_the_cheapest_and_the_fastest_plan_of_many_accelerators() -> None:
    """Fewer chips have a higher utilization and fewer failures, and keep 90 days."""
    asked = {"tokens": "15.6T", "chips": "h100_sxm", "counts": [100_000], "draws": 2}
    fast, cheap, near = (
        fk.plan("llama3_405b", **asked, **limits).best.row(0, named=True)
        for limits in ({}, {"objective": "run_cost_usd"}, {"deadline": "1 d"})
    )
    assert cheap["run_cost_usd"] < 0.8 * fast["run_cost_usd"]
    assert cheap["wall_days"] <= 90.0
    assert cheap["accelerators"] < fast["accelerators"] / 2.0
    assert near["wall_days"] == pytest.approx(fast["wall_days"])


def test_a_given_part_may_be_what_alone_divides_the_accelerators() -> None:
    asked = {"tokens": "1T", "chips": "h100_sxm", "counts": [19 * 32], "draws": 2}
    best = fk.plan("llama3_70b", **asked, pipeline_parallel=19).best.row(0, named=True)
    assert (best["accelerators"], best["pipeline_parallel"]) == (19 * 32, 19)


@pytest.mark.parametrize("count", [100, 5000, 10_000, 88, 100_000])
def test_giving_the_part_that_a_plan_chooses_changes_nothing(count: int) -> None:
    asked = {"tokens": "2T", "chips": "h100_sxm", "counts": [count], "draws": 2}
    free = fk.plan("llama3_70b", **asked).best
    fixed = fk.plan("llama3_70b", **asked, schedule=free["schedule"].item()).best
    assert fixed["wall_days"].item() == free["wall_days"].item()
    assert free["accelerators"].item() / count > (0.93 if count <= 10_000 else 0.5)
