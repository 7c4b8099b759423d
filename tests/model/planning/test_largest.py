"""The largest model that the limits allow: a slightly larger one breaks them."""

from __future__ import annotations

import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError

ASKED = {"chips": "h100_sxm", "counts": [64, 128], "deadline": "20 d"}


def test_the_largest_model_keeps_the_deadline_and_a_larger_one_does_not() -> None:
    found = fk.plan("largest", **ASKED)
    assert found.best["breaks"].item() is None
    size = fk.evaluate(found.scenario, "parameters")["parameters"]
    assert fk.plan(1.1 * size, **ASKED).best["breaks"].item() is not None


def test_more_time_allows_a_larger_model() -> None:
    sizes = [
        fk.evaluate(fk.plan("largest", **ASKED | {"deadline": f"{days} d"}).scenario, "parameters")["parameters"]
        for days in (10, 40)
    ]
    assert sizes[1] == pytest.approx(2.0 * sizes[0], rel=0.15)


def test_the_largest_model_needs_a_limit() -> None:
    with pytest.raises(ScenarioError, match="deadline"):
        fk.plan("largest", chips="h100_sxm")


def test_a_budget_too_small_for_any_model_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="budget"):
        fk.plan("largest", chips="h100_sxm", counts=[8], budget=1.0)
