"""A wheel in an empty folder: tables, presets, charts' script and command are in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site-packages")
    return folder / "site-packages"


def run(installed: Path, cwd: Path, code: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    environment.pop("FACTORYKIT_DATA", None)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True, text=True).stdout


def test_an_installed_wheel_answers_without_the_repository(installed: Path, tmp_path: Path) -> None:
    code = """
import json, factorykit as fk
run = fk.preset("llama_3_1_405b")
print(json.dumps({
    "home": fk.__file__,
    "failures_per_day": fk.evaluate(run, "failures_per_day")["failures_per_day"],
    "clusters": fk.sql("select count(*) as n from clusters")["n"][0],
    "says": fk.sources("presets", "llama_3_1_405b")["source"][0],
}))
"""
    answer = json.loads(run(installed, tmp_path, code))
    assert answer["home"].startswith(str(installed))
    assert answer["failures_per_day"] == pytest.approx(419 / 54)
    assert answer["clusters"] > 30
    assert answer["says"] == "llama3_paper"


def test_the_wheel_brings_the_script_of_the_charts_along(installed: Path) -> None:
    assert (installed / "factorykit/widgets/static/factorykit.js").stat().st_size < 1_000_000
    assert (installed / "factorykit/data/datapackage.json").is_file()
    (extension,) = installed.glob("*.data/data/share/jupyter/labextensions/factorykit/package.json")
    assert json.loads(extension.read_text())["name"] == "factorykit"


def test_the_wheel_says_what_is_in_it(installed: Path) -> None:
    (told,) = installed.glob("*.dist-info/sboms/factorykit.cdx.json")
    components = {each["name"]: each for each in json.loads(told.read_text())["components"]}
    assert {"vega", "vega-lite"} == {n for n, each in components.items() if each["scope"] == "required"}
    assert components["polars"]["purl"].startswith("pkg:pypi/polars@")
    assert (installed / "factorykit_command.py").is_file()
