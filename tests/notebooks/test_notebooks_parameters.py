"""A notebook runs for another run, chip, cluster or document: as papermill does, other values follow its parameters."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
RUN, COUNT = 'preset = "opt_175b"', 'statement = "opt_175b_restarts@opt_chronicles"'
OTHERS = {
    "00-start": RUN,
    "01-clusters": 'preset = "gb200_nvl72"',
    "02-training-time-and-cost": RUN,
    "03-step-time": 'accelerator = "b200"',
    "04-layout-search": 'architecture, accelerator = "llama3_70b", "h100_sxm"',
    "05-validation": 'hardware = "A100"',
    "06-failures": COUNT,
    "07-checkpoints": RUN,
    "08-tiers-and-spares": COUNT,
    "09-one-run-simulated": COUNT,
    "10-reliability-evidence": 'gaps_of, repairs_of = "Los Alamos, system 18", "Los Alamos, all systems"',
    "11-power-and-cooling": RUN,
    "12-energy-and-carbon": RUN,
    "13-cost-of-a-run": RUN,
    "14-build-or-rent": RUN,
    "15-scheduling": 'workload = "seren"',
    "16-scaling": RUN,
    "17-uncertainty": RUN,
    "18-plan-your-own-run": 'model, tokens, budget = "llama3_8b", "1T", "2 M USD"',
    "19-power-claims": 'node, node_power_w = "DGX B200", 14_300.0',
    "20-audit": 'sources = ["seed_001"]',
    "21-cost-levers": "parameters, tokens, accelerators = 8e9, 2e12, 256.0",
    "22-price-of-a-flop": 'market = "consumer"',
    "23-choice-of-provider": 'accelerator = "h200_sxm"',
    "24-your-own-cluster": "seed, slow = 3, 1.1",
    "25-across-data-centres": RUN,
    "26-networks": "accelerators = 4096.0",
    "27-data-in-time": RUN,
    "28-find-and-go-on": "sdc_mtbf_s = 2e6",
}
QUICK = ("13-cost-of-a-run", "23-choice-of-provider")


def names(source: str) -> set[str]:
    return {name.strip() for line in source.splitlines() for name in line.partition(" = ")[0].split(",")}


def shown(cell: Any) -> list[Any]:
    return [output.get("data") or output.get("text") for output in cell["outputs"]]


def test_every_notebook_has_parameters_after_its_title() -> None:
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == list(OTHERS)
    for stem, other in OTHERS.items():
        cells = json.loads((NOTEBOOKS / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
        (place,) = [n for n, cell in enumerate(cells) if "parameters" in cell["metadata"].get("tags", ())]
        assert place == 1, stem
        assert names(other) <= names("".join(cells[place]["source"])), stem


@pytest.mark.parametrize(
    ("stem", "other"),
    [pytest.param(*each, marks=[] if each[0] in QUICK else pytest.mark.long) for each in OTHERS.items()],
)
def test_it_runs_with_other_values_and_shows_something_else(stem: str, other: str) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the notebook extra is not installed; nothing was run")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed; nothing was run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notebook = nbformat.read(NOTEBOOKS / f"{stem}.ipynb", as_version=4)
        stored = {cell["id"]: shown(cell) for cell in notebook.cells if cell.cell_type == "code"}
        notebook.cells.insert(2, nbformat.v4.new_code_cell(other, id="injected"))
        nbclient.NotebookClient(
            notebook, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}
        ).execute()
    now = {cell["id"]: shown(cell) for cell in notebook.cells if cell.cell_type == "code"}
    assert [place for place, said in stored.items() if said and json.dumps(said) != json.dumps(now[place])]
    if other == RUN:
        assert "OPT-175B" in json.dumps(now)
