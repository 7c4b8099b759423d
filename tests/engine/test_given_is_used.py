"""Each quantity that is given changes the answer, is reported, or is refused by name: in every verb.

The only others are those from which no formula leads to the answer, such as the price of electricity for a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.core.vocabulary import Quantity, vocabulary
from factorykit.formulas import arguments, catalogue
from factorykit.model.operations.run_plan import NEEDED

BASE: dict[str, Any] = {"parameters": 70e9, "tokens": 15e12, "accelerators": 2048.0, "accelerator": "h100_sxm"}
OUTPUTS = ("wall_days", "rental_cost_usd", "training_energy_kwh")
WORDS = {"accelerator": "b200", "precision": "fp8"}
EXPECTED = {"changed", "reported", "refused"}
Verb = Callable[[Mapping[str, Any]], Any]


def another_value(row: Quantity) -> float | str:
    """Return a plausible value of a quantity that is neither its default, its neutral value, nor that of the base."""
    if row.is_text:
        return WORDS.get(row.name) or row.choices[-1]
    lower, upper = row.usual_range
    middle = (lower * upper) ** 0.5 if lower > 0.0 and upper < float("inf") else (lower + min(upper, 4.0)) / 2.0
    candidates = ((row.default or 0.0) * 1.25, (row.slider_max or 0.0) / 2.0, middle, upper, 2.0, 0.5, 3.0, 0.25)
    known = [row.default, row.neutral, 0.0]
    for base in (BASE, BASE | dict(fk.architecture("llama3_8b")) | LAYOUT):
        with suppress(fk.FactorykitError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known += fk.evaluate(base, row.name, assume=True).values()
    return next(value for value in candidates if value not in known and row.holds(value) and row.is_usual(value))


def effect(verb: Verb, given: Mapping[str, Any], name: str, without: Any) -> str:
    """Return the effect of a given quantity: changed, reported, refused, or nothing."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            answer = verb(given)
        except fk.FactorykitError as error:
            return "refused" if name in str(error) else f"refused without its name: {error}"
    if answer != without:
        return "changed"
    reported = any(name in str(each.message) and "not used" in str(each.message) for each in found)
    return "reported" if reported else "nothing"


def leading_to(outputs: Iterable[str], given: Iterable[str]) -> set[str]:
    """Return the quantities from which formulas, or alternatives to the formulas of the base, lead to the outputs."""
    found: set[str] = set()
    open_names = list(outputs)
    steps = set()
    for output in outputs if len(tuple(outputs)) < len(vocabulary()) else ():
        with suppress(fk.errors.MissingQuantity), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps |= {step.quantity for step in fk.explain(BASE, output, assume=True)}
    while open_names:
        name = open_names.pop()
        if name not in found and name not in given:
            rows = [vocabulary()[model] for model in vocabulary()[name].alternatives if name in steps]
            open_names += [row.name for row in rows if not row.used_when]
            open_names += arguments(catalogue()[name]) if name in catalogue() else ()
        found.add(name)
    return found


def effects(verb: Verb, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the quantities by the effect of giving them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        without = verb(BASE)
    found: dict[str, list[str]] = {}
    for name in names:
        given = BASE | {name: another_value(vocabulary()[name])}
        found.setdefault(effect(verb, given, name, without), []).append(name)
    return found


LAYOUT_RESULTS = ("step_s", "memory_peak_bytes", "fits")
LAYOUT = {"tensor_parallel": 2, "pipeline_parallel": 2}


def plan_of(given: Mapping[str, Any]) -> fk.Plan:
    inputs = {name: value for name, value in given.items() if name not in ("parameters", "accelerator", "accelerators")}
    return fk.plan("llama3_8b", chips=given["accelerator"], counts=[given["accelerators"]], draws=2, **LAYOUT | inputs)


def planned(given: Mapping[str, Any]) -> dict[str, Any]:
    best = plan_of(given).best.row(0, named=True)
    return {name: value for name, value in best.items() if name not in given or name in BASE}


def is_explained(name: str) -> bool:
    """Return whether the explanation of a plan names a quantity, which may have no effect on a dense model."""
    with suppress(fk.errors.ScenarioError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = plan_of(BASE | {name: another_value(vocabulary()[name])})
        outputs = ("run_cost_usd", "fits", "step_spread")
        explained = {step.quantity for output in outputs for step in plan.explain(output)}
        return name in explained.union(plan.request.limits.given())
    return True


def searched(given: Mapping[str, Any]) -> Any:
    cluster = {name: value for name, value in given.items() if name not in ("parameters", "tokens")}
    batch = cluster.pop("global_batch_size", 1024.0)
    degrees = {name: [value] for name, value in LAYOUT.items() if name not in given}
    found = fk.search("llama3_8b", cluster, global_batch_size=batch, choices=degrees).collect()
    return found.drop(given.keys() - BASE.keys(), strict=False).rows()


RANGE = {"goodput": fk.Uniform(0.8, 0.9)}
VERBS: dict[str, Verb] = {
    "explain": lambda given: fk.explain(given, "rental_cost_usd", assume=True)[-1].value,
    "sweep": lambda given: fk.sweep(given, {"goodput": [0.8, 0.9]}, OUTPUTS, assume=True)[list(OUTPUTS)].rows(),
    "sample": lambda given: fk.sample(given, RANGE, OUTPUTS, 2, assume=True)[list(OUTPUTS)].rows(),
    "sensitivity": lambda given: fk.sensitivity(given, RANGE, OUTPUTS, 64, assume=True).rows(),
    "compare": lambda given: fk.compare({"a": given, "b": given}, OUTPUTS, assume=True).filter(role="output").rows(),
    "rent": lambda given: fk.rent(given, assume=True).rows(),
    "simulate": lambda given: fk.simulate(given, 2, assume=True).rows(),
    "Cluster.of": lambda given: fk.Cluster.of(given, assume=True),
    "spares_table": lambda given: fk.reliability.spares_table(given, assume=True).rows(),
    "elastic_runs": lambda given: fk.replicas.elastic_runs(given, assume=True).rows(),
}


AXIS = {"goodput": "the axis or the distribution of the verb gives it"}
EXCEPTIONS = {
    "sweep": AXIS,
    "sample": AXIS,
    "sensitivity": AXIS,
    "rent": {"spot_discount": "offers state the price after the discount, and the refusal names that price"},
}
"""Quantities with another effect, by verb, each with a reason."""
RESULTS = {
    "explain": ("rental_cost_usd",),
    "rent": ("offer_cost_usd", "spot_goodput", "egress_cost_usd"),
    "simulate": (*NEEDED, "cluster_usd_per_h"),
    "Cluster.of": ("node_failures_per_node_day", "node_repair_s"),
    "spares_table": ("nodes", "node_mtbf_s", "node_repair_s", "rental_usd_per_accelerator_h"),
    "elastic_runs": ("training_s", "cluster_mtbf_s", "reconfigure_s", "checkpoint_interval_s", "cold_restart_s"),
}
"""Quantities that a verb reads, where these are others than ``OUTPUTS``."""


def check(found: dict[str, list[str]], outputs: Iterable[str], given: Iterable[str] = BASE) -> None:
    """Check that each quantity has an effect, or that nothing leads from it to the outputs."""
    assert not leading_to(outputs, given).intersection(found.pop("nothing", []))
    assert not found.keys() - EXPECTED, {key: names for key, names in found.items() if key not in EXPECTED}


def test_every_quantity_given_to_evaluate_is_used_reported_or_refused() -> None:
    found = effects(lambda given: fk.evaluate(given, OUTPUTS, assume=True), tuple(vocabulary()))
    assert {"parameters", "tokens", "nodes", "mfu", "failures_per_day", "accelerator_hours"} <= set(found["changed"])
    check(found, OUTPUTS)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.long
def test_every_quantity_given_to_another_verb_is_used_reported_or_refused(verb: str) -> None:
    names = (name for name in vocabulary() if name not in EXCEPTIONS.get(verb, {}))
    given = {*BASE, "goodput"} if verb in ("sweep", "sample", "sensitivity") else BASE
    check(effects(VERBS[verb], tuple(names)), RESULTS.get(verb, OUTPUTS), given)


@pytest.mark.parametrize("number", [pytest.param(n, marks=() if n == 0 else pytest.mark.long) for n in range(40)])
def test_every_quantity_given_to_plan_and_search_is_used_reported_or_refused(number: int) -> None:
    names = tuple(name for name in vocabulary() if name not in BASE)[number::40]
    found = effects(planned, names)
    found["nothing"] = [name for name in found.get("nothing", []) if not is_explained(name)]
    check(found, vocabulary())
    found = effects(searched, names)
    relevant = leading_to(LAYOUT_RESULTS, BASE).intersection(found.get("nothing", []))
    found["nothing"] = [name for name in relevant if not is_explained(name)]
    check(found, LAYOUT_RESULTS)


def test_a_chip_beside_the_specifications_of_a_preset_is_refused() -> None:
    """The published run states the peak of H100, which another chip would not change."""
    run = fk.preset("llama_3_1_405b")
    for swept in (None, {"accelerator": ["h100_sxm", "b200"]}):
        with pytest.raises(
            ScenarioError, match=r"accelerator .*is not used for training_days, .* peak_flop_per_s = 989"
        ):
            fk.sweep(run, swept, "training_days") if swept else fk.evaluate(
                run.replace(accelerator="b200"), "training_days"
            )
    with pytest.warns(fk.FactorykitWarning, match="accelerator_power_w = 700 W, peak_flop_per_s = 989 TFLOP/s"):
        fk.evaluate(run.replace(accelerator="b200"), ["training_days", "it_power_w"])
    days = fk.evaluate(run.replace(accelerator="b200", peak_flop_per_s=None), "training_days")["training_days"]
    assert days == pytest.approx(fk.evaluate(run, "training_days")["training_days"] * 989.0 / 2250.0)
