"""Properties of all results: a change of the inputs has the expected effect on the outputs."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import factorykit as fk
from factorykit.core.vocabulary import quantity, vocabulary

PRESETS = fk.presets()["preset"].to_list()
RISES = {
    "tokens": ("training_flop", "training_s", "wall_s", "rental_cost_usd", "training_energy_kwh"),
    "restart_s": ("wall_s", "rental_cost_usd"),
    "rental_usd_per_accelerator_h": ("rental_cost_usd",),
    "pue": ("facility_power_w", "training_energy_kwh"),
    "electricity_usd_per_kwh": ("annual_electricity_cost_usd",),
    "checkpoint_write_s": ("wall_s", "checkpoint_interval_s"),
}
FALLS = {
    "mfu": ("training_s", "wall_s", "rental_cost_usd"),
    "accelerator_mtbf_s": ("failures_per_day", "wall_s", "rental_cost_usd"),
    "peak_flop_per_s": ("training_s",),
}


def _all(run: dict[str, Any]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(fk.evaluate(run))


def _close(one: Any, other: Any) -> bool:
    return one == other or (isinstance(one, float) and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300))


@pytest.mark.parametrize("factor", [2.0, 0.125])
def test_another_currency_scales_money_and_nothing_else(factor: float) -> None:
    checked = 0
    for label in PRESETS:
        run = dict(fk.preset(label))
        money = {name for name in run if quantity(name).unit.startswith("USD")}
        changed = {name: value * factor if name in money else value for name, value in run.items()}
        if not money or not all(quantity(name).holds(changed[name]) for name in money):
            continue
        before, after = _all(run), _all(changed)
        assert before.keys() == after.keys()
        for name, value in before.items():
            wanted = value * factor if quantity(name).unit.startswith("USD") and isinstance(value, float) else value
            assert _close(after[name], wanted), (label, name, value, after[name])
            checked += 1
    assert checked > 100


@pytest.mark.parametrize(("moves", "sign"), [(RISES, 1.0), (FALLS, -1.0)])
def test_results_are_monotonic_in_their_inputs(moves: dict[str, tuple[str, ...]], sign: float) -> None:
    checked = 0
    for label in PRESETS:
        run = dict(fk.preset(label))
        before = _all(run)
        for name, outputs in moves.items():
            if not isinstance(run.get(name), float) or not quantity(name).holds(run[name] * 1.1):
                continue
            after = _all(run | {name: run[name] * 1.1})
            for output in set(outputs) & before.keys() & after.keys() - run.keys():
                assert sign * (after[output] - before[output]) >= -1e-9 * abs(before[output]), (label, name, output)
                checked += 1
    assert checked > 30


def test_a_computed_value_gives_the_same_results_as_an_input() -> None:
    checked = 0
    for label in PRESETS:
        run = dict(fk.preset(label))
        found = _all(run)
        for name in sorted(found)[:: max(len(found) // 8, 1)]:
            if name in run or quantity(name).is_text or not quantity(name).holds(found[name]):
                continue
            again = _all(run | {name: found[name]})
            for other, value in again.items():
                assert other not in found or _close(found[other], value), (label, name, other)
                checked += 1
    assert checked > 1000


def test_every_output_that_moves_is_a_quantity() -> None:
    names = (
        {name for moves in (RISES, FALLS) for outputs in moves.values() for name in outputs} | set(RISES) | set(FALLS)
    )
    assert names <= set(vocabulary())
