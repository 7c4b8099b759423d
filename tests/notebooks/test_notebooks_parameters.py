"""Notebooks run with other parameters, which follow their own as in papermill."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
OTHERS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))["metadata"]["factorykit"]["other_parameters"]
    for path in sorted(NOTEBOOKS.glob("*.ipynb"))
}
QUICK = ("13-cost-of-a-run", "23-choice-of-provider")


def names(source: str) -> set[str]:
    return {name.strip() for line in source.splitlines() for name in line.partition(" = ")[0].split(",")}


def outputs(cell: Any) -> list[Any]:
    return [output.get("data") or output.get("text") for output in cell["outputs"]]


def test_every_notebook_has_parameters_after_its_title() -> None:
    for stem, other in OTHERS.items():
        cells = json.loads((NOTEBOOKS / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
        (place,) = [n for n, cell in enumerate(cells) if "parameters" in cell["metadata"].get("tags", ())]
        assert place == 1, stem
        assert names(other) <= names("".join(cells[place]["source"])), stem


@pytest.mark.parametrize(
    ("stem", "other"),
    [pytest.param(*each, marks=[] if each[0] in QUICK else pytest.mark.long) for each in OTHERS.items()],
)
def test_a_notebook_runs_with_other_values_and_other_results(stem: str, other: str) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the notebook extra is not installed; nothing was run")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed; nothing was run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notebook = nbformat.read(NOTEBOOKS / f"{stem}.ipynb", as_version=4)
        stored = {cell["id"]: outputs(cell) for cell in notebook.cells if cell.cell_type == "code"}
        notebook.cells.insert(2, nbformat.v4.new_code_cell(other, id="injected"))
        nbclient.NotebookClient(
            notebook, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}
        ).execute()
    now = {cell["id"]: outputs(cell) for cell in notebook.cells if cell.cell_type == "code"}
    assert [place for place, before in stored.items() if before and json.dumps(before) != json.dumps(now[place])]
    if "opt_175b" in other and "preset" in other:
        assert "OPT-175B" in json.dumps(now)
