import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk

LLAMA = {
    "active_parameters": 405e9,
    "tokens": 15.6e12,
    "accelerators": 16384.0,
    "peak_flop_per_s": 989e12,
    "mfu": 0.4,
    "goodput": 0.9,
    "rental_usd_per_accelerator_h": 3.0,
}
DEEPSEEK = LLAMA | {"active_parameters": 37e9, "tokens": 14.8e12, "accelerators": 2048.0, "mfu": 0.346}
positive = st.floats(0.5, 2.0)


def cost(scenario):
    return fk.evaluate(scenario, "rental_cost_usd")["rental_cost_usd"]


def test_effects_sum_to_the_whole_difference():
    parts = fk.decompose(LLAMA, DEEPSEEK, "rental_cost_usd")
    assert math.fsum(parts["effect"]) == pytest.approx(cost(DEEPSEEK) - cost(LLAMA), rel=1e-12)
    assert parts["after"][-1] == pytest.approx(cost(DEEPSEEK), rel=1e-9)
    assert parts["quantity"][0] == "active_parameters"


def test_an_input_without_influence_explains_nothing():
    parts = fk.decompose(LLAMA, DEEPSEEK, "rental_cost_usd").filter(quantity="accelerators")
    assert parts["effect"].item() == pytest.approx(0.0, abs=1e-6)


@given(positive, positive)
def test_two_factors_share_a_product_by_shapley_values(a, b):
    """Closed form: each gets its own change at the mean of the other."""
    first = {"accelerators": 1000.0, "rental_usd_per_accelerator_h": 2.0}
    last = {"accelerators": 1000.0 * a, "rental_usd_per_accelerator_h": 2.0 * b}
    parts = dict(fk.decompose(first, last, "cluster_usd_per_h").select("quantity", "effect").iter_rows())
    assert parts.get("accelerators", 0.0) == pytest.approx(1000.0 * (a - 1) * 2.0 * (1 + b) / 2, abs=1e-9)


def test_an_order_is_followed():
    parts = fk.decompose(LLAMA, DEEPSEEK, "rental_cost_usd", ["tokens", "active_parameters", "accelerators", "mfu"])
    assert parts["quantity"].to_list() == ["tokens", "active_parameters", "accelerators", "mfu"]
    assert parts["after"][0] == pytest.approx(cost(LLAMA | {"tokens": 14.8e12}))
    assert parts["before"][1:].to_list() == parts["after"][:-1].to_list()


def test_alternative_models_can_be_compared():
    first = {"accelerator_mtbf_s": 1.8e8, "accelerators": 16384.0, "checkpoint_write_s": 60.0}
    first |= {"restart_s": 600.0, "downtime_s": 0.0, "checkpoint_interval_s": "checkpoint_interval_young_s"}
    last = first | {"checkpoint_interval_s": 3600.0, "restart_s": 300.0}
    parts = fk.decompose(first, last, "checkpoint_goodput")
    assert set(parts["quantity"]) == {"checkpoint_interval_s", "restart_s"}
    table = fk.compare({"young": first, "hourly": last}, "checkpoint_goodput")
    assert table.filter(quantity="checkpoint_interval_s")["young (model)"].item() == "checkpoint_interval_young_s"


def test_an_order_that_forgets_an_input_is_refused():
    with pytest.raises(fk.FactorykitError, match="order must name each input that differs"):
        fk.decompose(LLAMA, DEEPSEEK, "rental_cost_usd", ["tokens"])


def test_the_missing_inputs_of_a_mixture_are_named():
    other = {"training_s": 1e6, "goodput": 0.9, "accelerators": 100.0, "rental_usd_per_accelerator_h": 2.0}
    with pytest.raises(fk.FactorykitError, match="cannot be evaluated"):
        fk.decompose(LLAMA, other, "rental_cost_usd")


def test_a_comparison_needs_two_scenarios():
    with pytest.raises(fk.FactorykitError, match="give two or more"):
        fk.compare({"a": LLAMA}, "rental_cost_usd")
