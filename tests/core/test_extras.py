"""Without the extras: what needs one says which, in one sentence, and the rest works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from factorykit.core.extras import EXTRAS

CALLS = {
    "fk.charts": "notebook",
    "fk.widgets": "notebook",
    "importlib.import_module('factorykit.charts.cost')": "notebook",
    "fk.simulate(RUN, 10)": "uncertainty",
    "fk.timeline(RUN)": "uncertainty",
    "fk.sample(RUN, {'mfu': fk.Uniform(0.3, 0.4)}, 'training_s', 8)": "uncertainty",
    "fk.sensitivity(RUN, {'mfu': fk.Uniform(0.3, 0.4)}, 'training_s', 8)": "uncertainty",
    "fk.Normal(1.0, 2.0).ppf(0.5)": "uncertainty",
    "fk.LogNormal(1.0, 2.0).ppf(0.5)": "uncertainty",
    "fk.Triangular(1.0, 2.0, 3.0).ppf(0.5)": "uncertainty",
    "fk.empirical([1.0, 2.0]).ppf(0.5)": "uncertainty",
    "fk.workload(100)": "uncertainty",
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
    "fk.decide(RUN)",
    "fk.audit()",
    "fk.sql('select 1')",
)
SITE = ("dataframely", "IPython", "jinja2", "nbclient", "nbformat", "pandas", "pypandoc", "yaml")
BROUGHT = [*EXTRAS, *SITE]
BARE = """
import importlib, json, sys, warnings
BROUGHT, asked = json.load(sys.stdin)
class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BROUGHT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Bare())
warnings.simplefilter("ignore")
import factorykit as fk
from factorykit.data.build import build
RUN = dict(fk.preset("llama_3_1_405b"))
told = {}
for call in asked:
    try:
        eval(call)
        told[call] = ""
    except Exception as error:
        told[call] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    asked, own = json.dumps([BROUGHT, [*CALLS, *WORKING]]), {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", BARE], input=asked, capture_output=True, text=True, check=True, env=os.environ | own,
        cwd=tmp_path_factory.mktemp("bare"),
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("call", CALLS)
def test_what_needs_an_extra_says_which_in_one_sentence(call: str, told: dict[str, str]) -> None:
    kind, _, said = told[call].partition(": ")
    assert kind == "NotInstalled"
    assert said.endswith(f" is not installed; pip install 'factorykit[{CALLS[call]}]'")


@pytest.mark.parametrize("call", WORKING)
def test_what_needs_none_works(call: str, told: dict[str, str]) -> None:
    assert told[call] == ""
