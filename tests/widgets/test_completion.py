"""Completion of names in IPython and JupyterLab, tested with IPython's completer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import factorykit as fk
from factorykit.widgets.completion import names, place

SHELL = """
import json, sys
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
options = Config()
options.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=options)
shell.run_cell("import factorykit as fk; run = fk.preset('llama_3_1_405b')")
with provisionalcompleter():
    typed = json.load(sys.stdin)
    print(json.dumps({text: [name.text for name in shell.Completer.completions(text, len(text))] for text in typed}))
"""
TYPED = {
    'fk.preset("llama_3_1': "llama_3_1_405b",
    'fk.table("chip': "chip_prices",
    'fk.evaluate(run, ["training_f': "training_flop",
    'fk.evaluate({"accelerator": "h100_s': "h100_sxm",
    'fk.sweep(run, {"precision": ["fp': "fp8",
    'fk.accelerator("mine", like="b2': "b200",
    'fk.search("llama3_7': "llama3_70b",
    'fk.plan("llama3_7': "llama3_70b",
    'fk.plan("llama3_70b", tokens=15e12, pu': "pue=",
    "run.replace(mf": "mfu=",
    "fk.Scenario(\n    mfu=0.4,\n    checkpoint_wr": "checkpoint_write_s=",
    'fk.preset("gpt_3_175b").replace(mf': "mfu=",
    'fk.evaluate(run, using={"goodput": "ett': "ettr",
    'run["tok': "tokens",
    "fk.timel": "timeline",
}
SILENT = ('fk.read_hf_config("tok', 'fk.sql("tok', 'print("tok', 'fk.sample(run, method="tok', "print(mf")


@pytest.fixture(scope="module")
def completions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    pytest.importorskip("IPython")
    home = tmp_path_factory.mktemp("ipython")
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        input=json.dumps([*TYPED, *SILENT]),
        env=os.environ | {"IPYTHONDIR": str(home), "PYTHONPATH": str(Path(fk.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("text", TYPED)
def test_ipython_completes_a_name(text: str, completions: dict[str, list[str]]) -> None:
    assert TYPED[text] in completions[text]


@pytest.mark.parametrize("text", SILENT)
def test_no_name_is_offered_where_none_is_accepted(text: str, completions: dict[str, list[str]]) -> None:
    assert not any(name.startswith(("tokens", "mfu")) for name in completions[text])


def test_a_call_of_something_else_is_left_alone() -> None:
    class Other:
        def preset(self, name: str) -> str:
            return name

    assert names('fk.preset("lla', {"fk": Other()}) == ("", [])
    assert names('fk.preset("lla', {}) == ("", [])


@pytest.mark.parametrize("text", ["", "x = 3", 'fk.preset("llama")', "fk.preset('a\\'b')", "]"])
def test_nothing_is_completed_outside_a_call(text: str) -> None:
    assert place(text) is None
