"""The committed notebooks: executed in order, checked by asserts, and compared by numbers."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from factorykit.site import notebook_markdown

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
DIGIT = re.compile(r"\d")


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def words(notebook: dict[str, Any]) -> str:
    return "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")


def texts(cell: dict[str, Any]) -> list[str]:
    found = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell["outputs"]]
    return ["".join(text) for text in found]


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestStored:
    def test_every_cell_was_run_in_order(self, path: Path) -> None:
        assert [cell["execution_count"] for cell in code(read(path))] == [*range(1, len(code(read(path))) + 1)]

    def test_outputs_hold_numbers_and_no_errors(self, path: Path) -> None:
        outputs = [output for cell in code(read(path)) for output in cell["outputs"]]
        assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
        assert any(DIGIT.search(text) for cell in code(read(path)) for text in texts(cell))

    def test_a_chart_is_stored_as_a_picture_too(self, path: Path) -> None:
        stored = [output["data"] for cell in code(read(path)) for output in cell["outputs"] if "data" in output]
        charts = [data for data in stored if "factorykit-chart" in "".join(data.get("text/html", ""))]
        assert charts
        assert all("".join(data["image/svg+xml"]).startswith("<svg") for data in charts)

    def test_the_title_is_a_question(self, path: Path) -> None:
        title = words(read(path)).splitlines()[0]
        assert title.startswith("# ")
        assert title.endswith("?")

    def test_it_opens_with_its_answer(self, path: Path) -> None:
        _, answer, *_ = words(read(path)).split("\n\n")
        assert re.match(r"\*\*[^*]*(\d|half)[^*]*\*\*", answer, re.IGNORECASE)
        assert len(answer.split()) <= 60

    def test_a_picture_comes_first_and_the_limits_last(self, path: Path) -> None:
        notebook = read(path)
        first = next(cell for cell in code(notebook) if "parameters" not in cell["metadata"].get("tags", []))
        assert any("text/html" in output.get("data", {}) for output in first["outputs"])
        headings = re.findall(r"^## (.*?)(?: \{#.*\})?$", words(notebook), re.MULTILINE)
        assert headings[-2:] == ["Limitations", "Sources"]

    def test_claims_are_checked_by_asserts(self, path: Path) -> None:
        assert sum("assert " in "".join(cell["source"]) for cell in code(read(path))) >= 3

    def test_asserts_are_in_separate_folded_cells(self, path: Path) -> None:
        for cell in code(read(path)):
            if re.search(r"^\s*assert ", "".join(cell["source"]), re.MULTILINE):
                assert cell["metadata"] == {"jupyter": {"source_hidden": True}, "tags": ["checks"]}, cell["id"]
                assert not cell["outputs"]

    def test_it_reads_without_marks_of_a_renderer(self, path: Path) -> None:
        everything = "\n".join("".join(cell["source"]) for cell in read(path)["cells"])
        assert not re.findall(r"\{#[\w-]+\}|\[@\w+|(?<![\w.])@(?:fig|tbl|eq|sec)-|^#\||^:::", everything, re.MULTILINE)

    def test_captions_and_citations_are_those_of_their_order_and_work(self, path: Path) -> None:
        cells = read(path)["cells"]
        assert notebook_markdown.numbered(cells) == cells
        assert "[Figure ?]" not in words(read(path))
        for found in notebook_markdown.CITED.finditer(words(read(path))):
            if "](http" in found[0]:
                cell = {"cell_type": "markdown", "source": found[0]}
                keys = re.findall(r"@(\w+)", "".join(notebook_markdown.quarto({"cells": [cell]})["cells"][0]["source"]))
                assert found[0] == notebook_markdown.cite(*keys)

    def test_cells_are_short(self, path: Path) -> None:
        assert max(len(cell["source"]) for cell in code(read(path))) <= 16

    def test_nothing_stored_differs_from_run_to_run(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        assert "widget-view" not in text
        assert '"widgets"' not in json.dumps(read(path)["metadata"])
        assert not re.search(r" at 0x[0-9a-f]{6,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-|altair-viz-", text)

    def test_no_cell_escapes_the_comparison(self, path: Path) -> None:
        assert "nbval-ignore-output" not in path.read_text(encoding="utf-8")
        assert "NBVAL_IGNORE_OUTPUT" not in path.read_text(encoding="utf-8")


# The comparison itself


@pytest.fixture(scope="module")
def conftest() -> Any:
    pytest.importorskip("nbval", reason="nbval is absent; notebooks were not compared")
    spec = importlib.util.spec_from_file_location("notebooks_conftest", ROOT / "notebooks" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("min 0.30000000000000004", "min 0.3", True),
        ("min 0.30001", "min 0.3", False),
        ("12,345 rows", "12345 rows", True),
        ("mean 3", "mean 3 s", False),
        ('{"x": [1.0, 2.0]}', '{"x": [1.0, 2.1]}', False),
        ({"a": [1, True]}, {"a": [1.0, True]}, True),
        ({"a": 1}, {"b": 1}, False),
        ('<img class="fk-still" src="M0,1">7', '<img class="fk-still" src="M0,2">7', True),
        ('<svg width="7"><path d="M0,1"/></svg>', '<svg width="7"><path d="M0,2"/></svg>', True),
    ],
)
def test_numbers_compare_as_numbers(conftest: Any, one: object, other: object, equal: bool) -> None:
    assert conftest.same(one, other) is equal


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Report of nbval for short notebooks with the project's conftest: unchanged, changed, and never executed."""
    pytest.importorskip("nbval", reason="nbval is absent; notebooks were not compared")
    folder = tmp_path_factory.mktemp("compared")
    shutil.copy(ROOT / "notebooks" / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    source = ["print('training_flop', 6 * 405e9 * 15.6e12)"]
    for name, stored, count in (("same", "3.7908e+25", 1), ("changed", "3.7909e+25", 1), ("unrun", "3.7908e+25", None)):
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": count, "source": source}
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": [f"training_flop {stored}\n"]}]
        notebook = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook))
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-rA", "-p", "no:cacheprovider", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120).stdout


def test_an_unchanged_notebook_passes_and_a_changed_number_fails(compared: str) -> None:
    assert "PASSED same.ipynb::Cell 0" in compared
    assert "FAILED changed.ipynb::Cell 0" in compared
    assert "3.7909e+25" in compared


def test_a_notebook_that_was_not_run_fails(compared: str) -> None:
    assert "FAILED unrun.ipynb::Cell 0" in compared
    assert "without being run" in compared
    assert "1 passed" in compared
