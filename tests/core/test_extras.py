"""Without optional dependencies: calls that need one name it in one sentence, and the others work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import factorykit as fk
from factorykit.core.extras import EXTRAS, grouped_names

CALLS = {
    "fk.charts": "notebook",
    "fk.widgets": "notebook",
    "importlib.import_module('factorykit.charts.cost')": "notebook",
    "fk.simulate(RUN, 10)": "uncertainty",
    "fk.timeline(RUN)": "uncertainty",
    "fk.sample(RUN, {'mfu': fk.Uniform(0.3, 0.4)}, 'training_s', 8)": "uncertainty",
    "fk.sensitivity(RUN, {'mfu': fk.Uniform(0.3, 0.4)}, 'training_s', 8)": "uncertainty",
    "fk.from_samples([1.0, 2.0]).ppf(0.5)": "uncertainty",
    "fk.workload(100)": "uncertainty",
    "fk.serve('llama3_70b', load=10)": "uncertainty",
    "fk.validate_serving()": "uncertainty",
    "fk.post_train('llama3_8b', 64)": "uncertainty",
    "fk.validate_post_training()": "uncertainty",
    "fk.reliability.count_interval(6)": "uncertainty",
    "fk.reliability.renewal_failures(1e6, 8, 1e7, 0.8)": "uncertainty",
    "fk.lifetimes.fit([1.0, 2.0, 3.0])": "reliability",
    "fk.lifetimes.survival_curve([1.0, 2.0, 3.0])": "reliability",
    "fk.sweep(RUN, {'mfu': [0.3]}, 'training_s', 'absent', 'ray')": "ray",
    "build('absent')": "site",
    "importlib.import_module('factorykit.site')": "site",
}
WORKING = (
    "fk.evaluate(RUN, 'training_s', assume=True)",
    "fk.explain(RUN, 'training_s')._repr_html_()",
    "fk.search('gpt3_175b', {'accelerators': 64, 'accelerator': 'a100'}, global_batch_size=64).head(1).collect()",
    "fk.sweep(RUN, {'mfu': [0.3]}, 'training_s')",
    "fk.compare({'a': RUN, 'b': RUN}, 'training_s')",
    "fk.build_or_rent(RUN)",
    "fk.audit()",
    "fk.plan('llama3_8b', tokens='1T', chips='h100_sxm', counts=[64], draws=16, pue=fk.Triangular(1.05, 1.1, 1.2))",
    "[pydoc.render_doc(module) for module in (fk, fk.fleet, fk.lifetimes, fk.reliability)]",
    "fk.sql('select 1')",
)
SITE = ("dataframely", "IPython", "jinja2", "nbclient", "nbformat", "pandas", "pypandoc", "yaml")
OPTIONAL = [*EXTRAS, *SITE]
BARE = """
import importlib, json, pydoc, sys, warnings
OPTIONAL, calls = json.load(sys.stdin)
sys.modules.update(dict.fromkeys(OPTIONAL))
warnings.simplefilter("ignore")
import factorykit as fk
from factorykit.data.build import build
RUN = dict(fk.preset("llama_3_1_405b"))
results = {}
for call in calls:
    try:
        eval(call)
        results[call] = ""
    except Exception as error:
        results[call] = f"{type(error).__name__}: {error}"
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    calls, own = json.dumps([OPTIONAL, [*CALLS, *WORKING]]), {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", BARE], input=calls, capture_output=True, text=True, check=True, env=os.environ | own,
        cwd=tmp_path_factory.mktemp("bare"),
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_needs_an_extra_names_it_in_one_sentence(call: str, results: dict[str, str]) -> None:
    kind, _, message = results[call].partition(": ")
    assert kind == "NotInstalled"
    assert message.endswith(
        f" is not installed; pip install 'factorykit[{CALLS[call]}]', or 'factorykit[all]' for all extras"
    )


@pytest.mark.parametrize("call", WORKING)
def test_a_call_that_needs_no_extra_works(call: str, results: dict[str, str]) -> None:
    assert results[call] == ""


def test_dir_lists_public_names_only() -> None:
    modules = [value for name in fk.__all__ if isinstance(value := getattr(fk, name), ModuleType)]
    for module in (fk, *modules):
        foreign = [name for name in dir(module) if not getattr(getattr(module, name), "__doc__", "")]
        imported = {"Any", "Final", "annotations", "need", "np", "pl"} & set(dir(module))
        assert (imported, foreign) == (set(), []), module.__name__


def test_every_public_name_has_one_task() -> None:
    groups = grouped_names(str(fk.__doc__))
    assert sorted(name for names in groups.values() for name in names) == fk.__all__
