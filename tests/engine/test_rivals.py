"""Rival models are declared: each stands for its quantity, within its bounds, and nothing else does."""

from __future__ import annotations

import warnings
from contextlib import suppress

import pytest

import factorykit as fk
from factorykit.core.errors import CycleError, MissingQuantity, ScenarioError
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.question import read_model
from factorykit.formulas import catalogue

PAIRS = [(name, rival) for name, row in vocabulary().items() for rival in row.alternatives]
USUAL = dict(fk.quantities().select("name", "default").drop_nulls().iter_rows())


@pytest.mark.parametrize(("name", "rival"), PAIRS)
def test_a_declared_rival_is_a_formula_in_the_same_unit_that_stands_for_its_quantity(name: str, rival: str) -> None:
    assert rival in catalogue()
    assert quantity(rival).unit == quantity(name).unit
    run = {"goodput": 0.9, "nodes": 16.0} if name == "accelerators" else {"accelerators": 128.0}
    found = fk.evaluate(run, name, using={name: rival}, assume=True)
    itself = fk.evaluate(run, rival, assume=True)
    assert found[name] == itself[rival]
    assert quantity(name).reaches(found[name])


@pytest.mark.parametrize(("name", "stranger"), [("goodput", "nodes"), ("mfu", "nodes"), ("wall_s", "restart_s")])
def test_a_formula_of_the_same_unit_is_no_rival_unless_it_is_declared(name: str, stranger: str) -> None:
    with pytest.raises(ScenarioError, match=f"is not an alternative model of {name}"):
        fk.evaluate(fk.preset("llama_3_1_405b"), "wall_days", using={name: stranger})


def test_a_result_infinitely_far_out_of_bounds_is_refused() -> None:
    lost = {"goodput": "ettr", "checkpoint_interval_s": "checkpoint_interval_ettr_s"}
    with pytest.raises(ScenarioError, match="wall_days = -inf is outside"):
        fk.evaluate(fk.preset("xai_colossus_200k"), "wall_days", using=lost, assume=True)


@pytest.mark.long
def test_of_all_pairs_of_quantities_and_formulas_only_the_declared_ones_are_taken() -> None:
    taken = []
    for name in vocabulary():
        for rival in catalogue():
            with suppress(ScenarioError):
                taken.append((name, read_model(name, rival)))
    assert sorted(taken) == sorted(PAIRS)


@pytest.mark.long
def test_no_pair_of_rivals_leaves_the_bounds_in_any_preset() -> None:
    asked = ("wall_days", "rental_cost_usd", "training_energy_kwh", "goodput", "failures_per_day")
    tried = 0
    for label in fk.presets()["preset"]:
        run = fk.preset(label)
        for i, (name, rival) in enumerate(PAIRS):
            for other, its_rival in PAIRS[i + 1 :]:
                if name == other or {name, other} & set(run):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        found = fk.evaluate(run, asked, using={name: rival, other: its_rival}, assume=True)
                    except (CycleError, MissingQuantity, ScenarioError):
                        continue
                tried += 1
                assert all(quantity(each).reaches(value) for each, value in found.items()), (label, name, other)
    assert tried > 10_000
