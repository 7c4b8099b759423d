"""Alternative models are declared: each replaces its quantity, within its bounds, and no other formula does."""

from __future__ import annotations

import warnings
from contextlib import suppress

import pytest

import factorykit as fk
from factorykit.core.errors import CycleError, MissingQuantity, ScenarioError
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.question import read_model
from factorykit.formulas import catalogue

PAIRS = [(name, alternative) for name, row in vocabulary().items() for alternative in row.alternatives]
INVERSE = {
    "accelerators_in_nodes": {"goodput": 0.9, "nodes": 16.0},
    "required_accelerators": {"goodput": 0.9},
    "training_from_days_s": {"training_days": 30.0},
    "training_from_wall_s": {"wall_s": 1e6, "goodput": 0.9},
    "wall_from_days_s": {"wall_days": 30.0},
    "wall_from_accelerator_hours_s": {"accelerator_hours": 1e6, "accelerators": 128.0},
    "cluster_mtbf_from_failures_s": {"failures_per_day": 8.0},
    "node_failures_per_node_day_from_mtbf": {"node_mtbf_s": 1e7},
}
"""Inputs of models that compute a quantity from one that is otherwise computed from it."""
USUAL = dict(fk.quantities().select("name", "default").drop_nulls().iter_rows())


@pytest.mark.filterwarnings("ignore:.*not used for")
@pytest.mark.parametrize(("name", "alternative"), PAIRS)
def test_a_declared_alternative_has_the_same_unit_and_replaces_its_quantity(name: str, alternative: str) -> None:
    assert alternative in catalogue()
    assert quantity(alternative).unit == quantity(name).unit
    run = fk.architecture("llama3_8b").replace(**INVERSE.get(alternative, {"accelerators": 128.0}))
    found = fk.evaluate(run, name, using={name: alternative}, assume=True)
    itself = fk.evaluate(run, alternative, assume=True)
    assert found[name] == itself[alternative]
    assert quantity(name).reaches(found[name])


@pytest.mark.parametrize(("name", "formula"), [("goodput", "nodes"), ("mfu", "nodes"), ("wall_s", "restart_s")])
def test_a_formula_of_the_same_unit_is_no_alternative_unless_declared(name: str, formula: str) -> None:
    with pytest.raises(ScenarioError, match=f"is not an alternative model of {name}"):
        fk.evaluate(fk.preset("llama_3_1_405b"), "wall_days", using={name: formula})


def test_a_result_infinitely_far_out_of_bounds_is_refused() -> None:
    lost = {"goodput": "ettr", "checkpoint_interval_s": "checkpoint_interval_ettr_s"}
    run = fk.preset("xai_colossus_200k").replace(node_failures_per_node_day=0.0065, parameters=314e9)
    with pytest.raises(ScenarioError, match="wall_days = -inf is outside"):
        fk.evaluate(run, "wall_days", using=lost, assume=True)


@pytest.mark.long
def test_only_declared_pairs_of_quantities_and_formulas_are_accepted() -> None:
    taken = []
    for name in vocabulary():
        for alternative in catalogue():
            with suppress(ScenarioError):
                taken.append((name, read_model(quantity(name), alternative)))
    assert sorted(taken) == sorted(PAIRS)


@pytest.mark.long
def test_no_pair_of_alternatives_leaves_the_bounds_in_any_preset() -> None:
    outputs = ("wall_days", "rental_cost_usd", "training_energy_kwh", "goodput", "failures_per_day")
    tried = 0
    for label in fk.presets()["preset"]:
        run = fk.preset(label)
        for i, (name, alternative) in enumerate(PAIRS):
            for other, its_model in PAIRS[i + 1 :]:
                if name == other or {name, other} & set(run):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        found = fk.evaluate(run, outputs, using={name: alternative, other: its_model}, assume=True)
                    except (CycleError, MissingQuantity, ScenarioError):
                        continue
                tried += 1
                assert all(quantity(each).reaches(value) for each, value in found.items()), (label, name, other)
    assert tried > 10_000
