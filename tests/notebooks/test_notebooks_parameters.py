"""A notebook runs for another run: its cell of parameters is followed by one with other values, as papermill does."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ABOUT_A_RUN = ("00-start", "02-training-time-and-cost", "07-checkpoints", "11-power-and-cooling")
ABOUT_A_RUN += ("12-energy-and-carbon", "13-cost-of-a-run", "14-build-or-rent", "16-scaling", "17-uncertainty")


@pytest.mark.parametrize("stem", ABOUT_A_RUN)
def test_its_parameter_is_the_run(stem: str) -> None:
    cells = json.loads((NOTEBOOKS / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
    (given,) = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
    assert "".join(given["source"]) == 'preset = "llama_3_1_405b"'
    assert any(
        "preset" in "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code" and cell is not given
    )


@pytest.mark.parametrize(
    "stem", [pytest.param(stem, marks=[] if stem[:2] in ("11", "13") else pytest.mark.long) for stem in ABOUT_A_RUN]
)
def test_it_runs_for_another_run(stem: str) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the notebook extra is not installed; nothing was run")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed; nothing was run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notebook = nbformat.read(NOTEBOOKS / f"{stem}.ipynb", as_version=4)
        place = next(n for n, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", ()))
        notebook.cells.insert(place + 1, nbformat.v4.new_code_cell('preset = "opt_175b"'))
        nbclient.NotebookClient(
            notebook, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}
        ).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("OPT-175B" in str(output.get("data", {})) for output in shown)
