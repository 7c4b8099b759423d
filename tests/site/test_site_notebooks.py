"""Notebooks run when something changed, give the same bytes each time, and errors name the cell."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from made_site import code, markdown, notebook, shown

from factorykit.core.errors import SiteError
from factorykit.site import notebooks

pytestmark = pytest.mark.filterwarnings("ignore")
SOURCE = "import sys\nprint('one')\nsys.stdout.flush()\nprint('two')\n{'b': 1, 'a': 2}"


def put(folder: Path, name: str, *cells: dict) -> Path:
    file = folder / "notebooks" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(notebook(*cells), encoding="utf-8")
    return file


def test_a_notebook_runs_when_it_changed_and_only_then(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    first = put(tmp_path, "01-a.ipynb", markdown("# A"), code(SOURCE, count=None))
    second = put(tmp_path, "02-b.ipynb", code("2 + 2", count=None))
    assert notebooks.execute([first, second]) == [first, second]
    stored = first.read_bytes()
    cells = json.loads(stored)["cells"]
    assert cells[1]["execution_count"] == 1
    assert cells[1]["outputs"][0]["text"] == ["one\n", "two\n"]
    assert notebooks.execute([first, second]) == []

    second.write_text(second.read_text().replace("2 + 2", "2 + 3"))
    assert notebooks.execute([first, second]) == [second]
    assert '"5"' in second.read_text()

    assert notebooks.execute([first], force=True) == [first]
    assert first.read_bytes() == stored
    assert "TCP" not in capfd.readouterr().err


def test_a_notebook_runs_again_when_a_table_changed(tmp_path: Path):
    file = put(tmp_path, "01-a.ipynb", code("1", count=None))
    notebooks.execute([file])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "runs.parquet").write_bytes(b"new")
    assert notebooks.execute([file]) == [file]


def test_a_notebook_can_be_run_from_inside_an_event_loop(tmp_path: Path):
    file = put(tmp_path, "01-a.ipynb", code("1 + 1", count=None))

    async def inside() -> list[Path]:
        return notebooks.execute([file])

    with ThreadPoolExecutor(max_workers=1) as pool:
        assert pool.submit(lambda: asyncio.run(inside())).result() == [file]


def test_a_failing_cell_is_named_and_the_notebook_left_alone(tmp_path: Path):
    file = put(tmp_path, "01-a.ipynb", markdown("# A"), code("#| label: x\nmissing + 1", count=None))
    before = file.read_bytes()
    with pytest.raises(SiteError, match=r"01-a\.ipynb, cell 2 \(missing \+ 1\): NameError: name 'missing'"):
        notebooks.execute([file])
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["01-a.ipynb"]


def test_a_notebook_that_is_saved_while_it_runs_keeps_the_saved_version(tmp_path: Path):
    file = put(tmp_path, "01-a.ipynb", code("1", count=None))
    saving = "from pathlib import Path; file = Path('01-a.ipynb')\n"
    saving += "file.write_text(file.read_text().replace('# A', '# B'))"
    put(tmp_path, "01-a.ipynb", markdown("# A"), code(saving, count=None))
    with pytest.raises(SiteError, match=r"01-a\.ipynb: was saved while it ran"):
        notebooks.execute([file])
    assert json.loads(file.read_text())["cells"][0]["source"] == "# B"


def test_normalising_drops_differences_between_runs():
    cell = code(
        "#| label: fig-a\nx",
        {"output_type": "stream", "name": "stdout", "text": "a"},
        {"output_type": "stream", "name": "stdout", "text": ["b\n"]},
        {
            **shown(text_html="<p>a</p>", **{"application_vnd.jupyter.widget-view+json": "random"}),
            "transient": {"display_id": "random"},
        },
    )
    cell |= {
        "id": "1f2e3d4c",
        "metadata": {"execution": {"iopub.status.busy": "now"}, "tags": ["keep"], "slideshow": {"slide_type": "slide"}},
    }
    raw = {
        "cells": [cell, {**cell, "id": "fixed"}],
        "metadata": {"widgets": {"state": {}}, "authors": ["A"]},
        "nbformat": 4,
    }
    clean = notebooks.normalise(raw)
    assert [kept["id"] for kept in clean["cells"]] == ["fig-a", "fixed"]
    assert clean["cells"][0]["metadata"] == {"slideshow": {"slide_type": "slide"}, "tags": ["keep"]}
    assert clean["metadata"]["authors"] == ["A"]
    assert "random" not in notebooks.dumps(clean)
    assert "widgets" not in clean["metadata"]
    assert clean["cells"][0]["outputs"][0]["text"] == ["ab\n"]
    assert notebooks.normalise(clean) == clean
