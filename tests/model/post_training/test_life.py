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
    [
        ({"fleet": 32}, "fleet = 32 is too small: a stage uses 64"),
        ({"days": -1.0}, "wall_days"),
    ],
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
    with pytest.raises(ScenarioError, match="fleet = 1 is too small: serving needs"):
        fk.shared_fleet(served, tuned, [100.0 * most], fleet=1)
