"""`factorykit lab`: what JupyterLab is told, and which notebooks it trusts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jupyterlab", reason="JupyterLab is absent; nothing was opened")
pytest.importorskip("anywidget", reason="the notebook extra is not installed; no widget was made")

import nbformat
from nbformat.sign import NotebookNotary

from factorykit.widgets import lab

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a start notebook as committed, one that was changed, and one that nobody committed."""
    if shutil.which("git") is None:
        pytest.skip("git is absent; nobody says what was committed")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    notebooks = tmp_path / "work" / "notebooks"
    notebooks.mkdir(parents=True)
    for name in ("00-start", "01-changed", "02-own"):
        shutil.copy(ROOT / "notebooks" / "00-start.ipynb", notebooks / f"{name}.ipynb")
    git = ["git", "-C", str(notebooks), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "00-start.ipynb", "01-changed.ipynb"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    for name in ("01-changed", "02-own"):
        path = notebooks / f"{name}.ipynb"
        path.write_text(path.read_text().replace("Ten minutes", f"{name} minutes"))
    monkeypatch.chdir(tmp_path / "work")
    return notebooks


def test_only_notebooks_as_committed_are_trusted(checkout: Path) -> None:
    assert [path.name for path in lab.unchanged(checkout)] == ["00-start.ipynb"]
    lab.sign(lab.unchanged(checkout))
    notary = NotebookNotary()
    trusted = {p.name: notary.check_signature(nbformat.read(p, as_version=4)) for p in checkout.glob("*.ipynb")}
    assert trusted == {"00-start.ipynb": True, "01-changed.ipynb": False, "02-own.ipynb": False}


def test_outside_a_checkout_none_is(tmp_path: Path) -> None:
    assert lab.unchanged(tmp_path) == []


def test_it_opens_the_start_and_asks_nothing(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(lab.subprocess, "call", lambda command, env: calls.append((command, env)) or 0)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/own")
    assert lab.lab(["--no-browser"]) == 0
    ((command, environment),) = calls
    assert "--LabApp.default_url=/lab/tree/00-start.ipynb" in command
    assert command[-2:] == ["notebooks", "--no-browser"]
    first, own = environment["JUPYTER_CONFIG_PATH"].split(":")
    assert own == "/own"
    told = json.loads((Path(first) / "labconfig" / "page_config.json").read_text())
    assert told == {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    names = json.loads((Path(first) / "labconfig" / "default_setting_overrides.json").read_text())
    assert names["@jupyterlab/filebrowser-extension:browser"] == {"showLastModifiedColumn": False}
    assert names["@jupyterlab/apputils-extension:themes"] == {"overrides": {"ui-font-size1": "12px"}}
