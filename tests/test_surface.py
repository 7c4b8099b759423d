"""The public surface: names, signatures, old names, and their support in type checkers and editors."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import factorykit as fk

RUN = {"accelerators": 64.0, "mfu": 0.4, "tokens": 1e10, "active_parameters": 7e10, "peak_flop_per_s": 989e12}
FAILING = RUN | {
    "accelerator_mtbf_s": 1.8e8,
    "checkpoint_write_s": 60.0,
    "restart_s": 600.0,
    "downtime_s": 0.0,
    "checkpoint_interval_s": 1800.0,
}
ON_INPUTS: dict[str, Callable[..., Any]] = {
    name: getattr(fk, name)
    for name in (
        *("evaluate", "explain", "assumed", "out_of_range", "sweep", "sample", "sensitivity"),
        *("simulate", "timeline", "rent", "build_or_rent", "check_recipe"),
    )
} | {"Cluster.of": fk.Cluster.of, "reliability.spares_table": fk.reliability.spares_table}
JUDGED = [*(set(ON_INPUTS) - {"assumed"}), "compare", "decompose", "search"]


@pytest.mark.parametrize("verb", ON_INPUTS)
def test_the_first_argument_of_every_verb_is_inputs(verb: str) -> None:
    assert next(iter(inspect.signature(ON_INPUTS[verb]).parameters)) == "inputs"


@pytest.mark.parametrize("verb", sorted(JUDGED))
def test_every_verb_accepts_alternatives_and_defaults_by_keyword(verb: str) -> None:
    parameters = inspect.signature(ON_INPUTS.get(verb) or getattr(fk, verb)).parameters
    kinds = [(parameters[name].kind, parameters[name].default) for name in ("using", "assume")]
    assert kinds == [(inspect.Parameter.KEYWORD_ONLY, None), (inspect.Parameter.KEYWORD_ONLY, False)]


@pytest.mark.parametrize("verb", ["sample", "sensitivity"])
def test_verbs_that_draw_have_the_same_order_of_arguments(verb: str) -> None:
    names = list(inspect.signature(ON_INPUTS[verb]).parameters)
    assert names[:5] == ["inputs", "distributions", "outputs", "n", "seed"]


def _mfu() -> dict[str, Any]:
    return {"mfu": fk.Uniform(0.3, 0.5)}


def test_an_unknown_condition_is_an_error_of_timeline() -> None:
    with pytest.raises(TypeError, match=r"^timeline\(\) got an unexpected keyword argument 'cause'"):
        fk.timeline(FAILING, cause=())  # type: ignore[call-arg]


SHORT = {"accelerators": 2048.0, "accelerator": "h100_sxm", "parameters": 70e9, "tokens": 15e12}


@pytest.mark.filterwarnings("ignore:.*not used for")
def test_defaults_are_the_same_for_every_verb() -> None:
    wanted = fk.evaluate(SHORT, "training_s", assume=True)["training_s"]
    assert fk.compare({"a": SHORT, "b": SHORT}, "training_s", assume=True)["a"].item() == wanted
    double = SHORT | {"tokens": 30e12}
    assert fk.decompose(SHORT, double, "training_s", assume=True)["effect"].sum() == pytest.approx(wanted)
    drawn = fk.simulate(SHORT, runs=4, assume=True)
    assert (drawn["goodput"] * drawn["wall_s"]).to_list() == pytest.approx([wanted] * 4)
    assert fk.timeline(SHORT, assume=True)["progress_s"].max() >= wanted
    assert fk.Cluster.of(SHORT, assume=True).restart_s == fk.evaluate(SHORT, "restart_s", assume=True)["restart_s"]


def test_defaults_price_a_run_at_every_offer_and_give_the_saving_of_building() -> None:
    with pytest.raises(fk.FactorykitError, match="missing"):
        fk.rent(SHORT)
    assert fk.rent(SHORT, assume=True)["offer_cost_usd"].is_not_nan().all()
    with_defaults, without = fk.build_or_rent(SHORT, assume=True), fk.build_or_rent(SHORT)
    saving = fk.evaluate(SHORT, "build_saving_usd", assume=True)["build_saving_usd"]
    assert (with_defaults.saving_usd, with_defaults.answer) == (saving, without.answer)
    assert without.saving_usd != without.saving_usd


def test_an_alternative_model_is_used_by_every_verb() -> None:
    daly = {"checkpoint_interval_s": "checkpoint_interval_daly_s"}
    run = {name: value for name, value in FAILING.items() if name not in daly}
    wanted = fk.evaluate(run, "checkpoint_interval_s", using=daly)["checkpoint_interval_s"]
    assert wanted != fk.evaluate(run, "checkpoint_interval_s")["checkpoint_interval_s"]
    assert fk.compare({"a": run, "b": run}, "checkpoint_interval_s", using=daly)["a"].item() == wanted
    assert fk.Cluster.of(run, using=daly).checkpoint_interval_s == wanted
    assert fk.simulate(run, 50, 1, using=daly).equals(fk.simulate(run | {"checkpoint_interval_s": wanted}, 50, 1))
    verdict = fk.check_recipe(run | {"accelerators": 512.0}, using=daly).filter(step="pipeline bubble")["verdict"]
    assert verdict.item() == "unknown"


TYPED = """
import factorykit as fk
run = fk.preset(input())
fk.evaluate(run, [input(), "mfu"])
fk.Scenario(**dict.fromkeys(run, 1.0)).replace(mfu=None)
fk.nope
fk.build
fk.Scenario(tokns=1.0)
fk.simulate(run, rusn=3)
"""


def test_a_type_checker_knows_the_names_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(TYPED)
    settings = {"extraPaths": [str(Path(fk.__file__).parent.parent)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    errors = [row for row in json.loads(done.stdout)["generalDiagnostics"] if row["severity"] == "error"]
    assert [row["range"]["start"]["line"] for row in errors] == [5, 6, 7, 8], errors
