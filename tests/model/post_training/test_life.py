"""Stages in the life of a model: they add up, and missing inputs are named."""

from __future__ import annotations

import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError

TUNED = {"samples": 1024, "output_tokens": 1024, "sequence_length": 4096}


def stages() -> tuple[fk.PostTrainingPlan, fk.ServingPlan]:
    return fk.post_train("llama3_8b", 64, **TUNED), fk.serve("llama3_8b", "h100_sxm", load=50.0)  # type: ignore[arg-type]


def test_stages_follow_each_other_and_add_up():
    tuned, served = stages()
    found = fk.life(tuned, served, days=100.0, carbon_kg_per_kwh=0.1)
    first, second, total = found.iter_rows(named=True)
    assert second["start_day"] == first["days"] == pytest.approx(tuned.best["days"])
    assert second["served_tokens"] == pytest.approx(50.0 * 1024.0 * 100.0 * 86400.0)
    assert total["usd"] == pytest.approx(tuned.best["usd"] + 100.0 * 24.0 * served.best["cost_usd_per_h"])
    assert total["carbon_t"] == pytest.approx(0.1 * total["mwh"])
    assert total["usd_per_million_tokens"] == pytest.approx(total["usd"] / second["served_tokens"] * 1e6)
    assert total["usd"] - total["usd_low"] == pytest.approx(first["usd"] - first["usd_low"])


@pytest.mark.parametrize(
    ("given", "message"),
    [({"fleet": 32}, "32 is too small: a stage uses 64"), ({"fleet": 9.5}, "whole"), ({"days": -1}, "wall_days")],
)
def test_missing_inputs_are_named(given, message):
    with pytest.raises(ScenarioError, match=message):
        fk.life(*stages(), **given)


def test_other_objects_are_refused():
    with pytest.raises(ScenarioError, match="must be a result of plan, post_train or serve, got str"):
        fk.life("llama3_8b")  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="at least one stage"):
        fk.life()


def test_training_takes_what_serving_leaves_over_the_day():
    tuned, served = stages()
    best, most = served.best, served.best["requests_per_s"]
    fleet = best["accelerators"] + 32.0
    found = fk.shared_fleet(served, tuned, [most] * 12 + [1e-3] * 12, fleet=fleet)
    total = found.row(-1, named=True)
    used = found["serving_accelerators"] + found["training_accelerators"] + found["idle_accelerators"]
    assert used.to_list() == pytest.approx([fleet] * 25)
    assert found["serving_accelerators"].max() <= best["accelerators"]
    assert found["training_accelerators"][0] >= 32.0
    left = 1.0 - 2.0 * 600.0 / 86400.0 * (found["training_accelerators"].n_unique() > 2)
    assert total["days"] == pytest.approx(tuned.best["days"] * 64.0 / total["training_accelerators"] / left)
    assert total["usd"] == pytest.approx(tuned.best["usd"] / left)
    night = fk.shared_fleet(served, tuned, [most] * 12 + [0] * 12, fleet=fleet)
    assert night["serving_accelerators"][12:24].to_list() == [0.0] * 12
    with pytest.raises(ScenarioError, match="at least one hour"):
        fk.shared_fleet(served, tuned, [])
    with pytest.raises(ScenarioError, match="fleet = 1 is too small: serving needs"):
        fk.shared_fleet(served, tuned, [100.0 * most], fleet=1)


def test_training_stays_idle_where_its_states_do_not_fit():
    """The optimizer of 8 billion weights takes 96 GB: on few H100 of 80 GB no share of it fits, as post_train finds."""
    tuned = fk.post_train("llama3_8b", 64, rental_usd_per_accelerator_h=2.0)
    served = fk.serve("llama3_8b", "h100_sxm", load=400.0)
    best, most = served.best, served.best["requests_per_s"]
    width = tuned.best["rollout_tensor_parallel"]
    found = fk.shared_fleet(served, tuned, [most] * 12 + [1e-3] * 12, fleet=best["accelerators"] + width - 1.0)
    assert found["training_accelerators"][0] == 0.0
    assert found["training_accelerators"][23] % width == 0.0
    plan = fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=512, draws=8)
    found = fk.shared_fleet(served, plan, [most] * 12 + [1e-3] * 12, fleet=best["accelerators"] + 1.0)
    assert found["training_accelerators"][0] == 0.0


def test_a_fleet_has_one_chip_and_plans_of_both_kinds():
    tuned, served = stages()
    other = fk.serve("llama3_8b", "b200", load=50.0)
    for wrong in ((tuned, served, [1.0]), (served, served, [1.0]), (served, tuned, 1.0), (other, tuned, [1.0])):
        with pytest.raises(ScenarioError):
            fk.shared_fleet(*wrong)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="one kind of accelerator, got h100_sxm and b200"):
        fk.life(tuned, other, fleet=1000)
    own = fk.accelerator("mine", like="h100_sxm", accelerator_memory_bytes="160 GB")
    plan, mine = fk.plan("llama3_8b", tokens="1T", chips=own, counts=64, draws=8), fk.serve("llama3_8b", own, load=50.0)
    assert fk.life(plan, mine, fleet=1000).height == 3
    for stage in (served, tuned):
        with pytest.raises(ScenarioError, match="h100_sxm with values of your own"):
            fk.life(plan, stage, fleet=1000)


def test_grams_of_carbon_without_their_unit_are_noticed():
    with pytest.warns(fk.FactorykitWarning, match="did you mean '400 g/kWh'"):
        fk.life(stages()[1], carbon_kg_per_kwh=400)
