import math

import pytest

import factorykit as fk
from factorykit.core.vocabulary import vocabulary


@pytest.mark.parametrize(
    ("scenario", "answer"),
    [
        ({"parameters": 7e9, "budget_usd": 3e5}, "rent"),
        ({"parameters": 405e9, "budget_usd": 120e6}, "build"),
        ({"parameters": 200e9, "budget_usd": 75e6}, "undetermined"),
        ({"parameters": 405e9, "budget_usd": 10e6}, "undetermined"),
    ],
)
def test_rules_of_the_documents_decide_within_their_range(scenario, answer):
    assert fk.build_or_rent(scenario).answer == answer


def test_the_gap_between_70_and_400_billion_is_named():
    because = fk.build_or_rent({"parameters": 200e9, "budget_usd": 75e6}).because
    assert "70 billion and 400 billion" in because
    assert "50 million USD and 100 million USD" in because


def test_contradicting_rules_are_both_named():
    because = fk.build_or_rent({"parameters": 405e9, "budget_usd": 10e6}).because
    assert "Training 400B+ params" in because
    assert "< $50M budget" in because


def test_a_named_condition_decides_where_no_rule_does():
    assert fk.build_or_rent({"parameters": 200e9}, ["b4"]).answer == "build"


def test_cost_is_computed_where_the_inputs_are_given():
    run = {name: row.default for name, row in vocabulary().items() if row.default is not None and row.kind == "input"}
    decision = fk.build_or_rent(run)
    assert decision.saving_usd == fk.evaluate(run, "build_saving_usd")["build_saving_usd"]
    assert math.isnan(fk.build_or_rent({"parameters": 1e9}).saving_usd)


def test_an_unknown_condition_offers_the_nearest():
    with pytest.raises(fk.FactorykitError, match="no condition 'b9'"):
        fk.build_or_rent({"parameters": 1e9}, ["b9"])


def test_a_budget_is_not_the_cost_of_the_run():
    """A cheap run with a large budget is judged by its budget; a rent is not a budget."""
    rich = fk.build_or_rent({"parameters": 200e9, "budget_usd": 150e6, "rental_cost_usd": 5e6})
    assert (rich.answer, rich.budget_share) == ("build", pytest.approx(1 / 30))
    bare = fk.build_or_rent({"parameters": 200e9, "rental_cost_usd": 150e6})
    assert bare.answer == "undetermined"
    assert math.isnan(bare.budget_share)


def test_a_budget_below_the_rent_is_reported():
    poor = fk.build_or_rent({"parameters": 7e9, "budget_usd": 1e6, "rental_cost_usd": 3e6})
    assert poor.answer == "rent"
    assert "does not pay the rent, which is 3 times as high" in poor.because


def test_a_scenario_that_is_no_mapping_is_refused():
    with pytest.raises(fk.FactorykitError, match="inputs must be a mapping"):
        fk.build_or_rent([7e9])
