"""`factorykit lab`: configuration of JupyterLab, and trusted notebooks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
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
    """The checkout of the installed version: a committed notebook, a modified one, and one that is not committed."""
    if shutil.which("git") is None:
        pytest.skip("git is absent")
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
    monkeypatch.setattr(lab, "PACKAGE", tmp_path / "work" / "factorykit")
    return notebooks


def is_trusted(folder: Path) -> dict[str, bool]:
    notary = NotebookNotary()
    return {path.name: notary.check_signature(nbformat.read(path, as_version=4)) for path in folder.glob("*.ipynb")}


def test_only_committed_notebooks_of_the_installed_version_are_trusted(checkout: Path) -> None:
    lab.sign(lab.trusted(checkout))
    assert is_trusted(checkout) == {"00-start.ipynb": True, "01-changed.ipynb": False, "02-own.ipynb": False}


def test_a_clone_beside_the_installed_version_is_trusted_where_it_is_identical(checkout: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(checkout, clone)
    (clone / "00-start.ipynb").write_text((clone / "00-start.ipynb").read_text().replace("Ten", "<script>"))
    shutil.copy(checkout / "00-start.ipynb", clone / "03-copy.ipynb")
    assert [path.name for path in lab.trusted(clone)] == ["03-copy.ipynb"]


def test_a_wheel_trusts_the_notebooks_it_was_built_with(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hashes").write_text(lab._digest(checkout / "02-own.ipynb"))
    monkeypatch.setattr(lab, "SHIPPED", tmp_path / "hashes")
    assert [path.name for path in lab.trusted(checkout)] == ["02-own.ipynb"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to pass on")
def test_a_lab_that_is_ended_ends_its_server() -> None:
    server = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    code = (
        f"import os, sys; from factorykit.widgets import lab; lab.serve([sys.executable, '-c', {server!r}], os.environ)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        process = int(started.stdout.readline())
        time.sleep(0.2)
        started.terminate()
        assert started.wait(timeout=10) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_lab_opens_the_start_page_without_dialogs(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(lab, "serve", lambda command, environment: calls.append((command, environment)) or 0)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/own")
    assert lab.lab(["--no-browser"]) == 0
    ((command, environment),) = calls
    assert "--LabApp.default_url=/lab/tree/00-start.ipynb" in command
    assert command[-2:] == ["notebooks", "--no-browser"]
    first, given = environment["JUPYTER_CONFIG_PATH"].split(":")
    assert given == "/own"
    page = json.loads((Path(first) / "labconfig" / "page_config.json").read_text())
    assert page == {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    names = json.loads((Path(first) / "labconfig" / "default_setting_overrides.json").read_text())
    assert names["@jupyterlab/filebrowser-extension:browser"] == {"showLastModifiedColumn": False}
    assert names["@jupyterlab/apputils-extension:themes"] == {"overrides": {"ui-font-size1": "12px"}}


def test_lab_copies_the_notebooks_of_the_installed_version_into_an_empty_folder(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setattr(lab, "notebooks_folder", lambda: checkout)
    monkeypatch.setattr(lab, "serve", lambda command, environment: 0)
    assert lab.lab() == 0
    assert {path.name for path in Path("notebooks").iterdir()} == {path.name for path in checkout.glob("*.ipynb")}
