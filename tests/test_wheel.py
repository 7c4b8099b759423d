"""A wheel installed in an empty folder contains tables, presets, the script of the charts and the command."""

from __future__ import annotations

import json
import os
import shutil
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
    environment = os.environ | {"FACTORYKIT_REPOSITORY": "https://example.org/owner/name"}
    subprocess.run(build, check=True, capture_output=True, env=environment)
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < 4_000_000
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
    "source": fk.sources("presets", "llama_3_1_405b")["source"][0],
}))
"""
    answer = json.loads(run(installed, tmp_path, code))
    assert answer["home"].startswith(str(installed))
    assert answer["failures_per_day"] == pytest.approx(419 / 54)
    assert answer["clusters"] > 30
    assert answer["source"] == "llama3_paper"


def test_a_plan_between_chips_is_printed_without_numpy(installed: Path, tmp_path: Path) -> None:
    code = """
import sys
sys.modules |= {"numpy": None, "scipy": None}
import factorykit as fk
print(fk.plan("llama3_8b", tokens="1T", chips=["h100_sxm", "b200"], counts=[64]))
"""
    assert "NVIDIA B200" in run(installed, tmp_path, code)


def test_the_wheel_has_the_notebooks_without_outputs(installed: Path) -> None:
    shipped = sorted((installed / "factorykit/notebooks").glob("*.ipynb"))
    assert [file.name for file in shipped] == sorted(file.name for file in (ROOT / "notebooks").glob("*.ipynb"))
    assert not any(cell.get("outputs") for file in shipped for cell in json.loads(file.read_text())["cells"])


def test_the_wheel_contains_the_script_of_the_charts(installed: Path) -> None:
    assert (installed / "factorykit/widgets/static/factorykit.js").stat().st_size < 1_000_000
    assert (installed / "factorykit/data/tables/datapackage.json").is_file()
    (extension,) = installed.glob("*.data/data/share/jupyter/labextensions/factorykit/package.json")
    assert json.loads(extension.read_text())["name"] == "factorykit"


def test_the_addresses_of_the_project_follow_from_its_repository(installed: Path) -> None:
    (file,) = installed.glob("*.dist-info/METADATA")
    head = file.read_text().split("\n\n", 1)[0]
    assert "Project-URL: Source, https://example.org/owner/name\n" in head
    assert "Project-URL: Documentation, https://owner.github.io/name/latest/\n" in head


def test_the_wheel_lists_its_components(installed: Path) -> None:
    (file,) = installed.glob("*.dist-info/sboms/factorykit.cdx.json")
    components = {each["name"]: each for each in json.loads(file.read_text())["components"]}
    assert {"vega", "vega-lite"} == {n for n, each in components.items() if each["scope"] == "required"}
    assert components["polars"]["purl"].startswith("pkg:pypi/polars@")


INTERFACES = """
import os, sys, threading, urllib.request, warnings
warnings.simplefilter("ignore")
import factorykit as fk
from factorykit.data.build import build
from factorykit.site.serve import server
run = fk.preset("llama_3_1_405b")
chips = {"accelerator": "h100_sxm", "accelerators": 8.0}
results = {
    "evaluate": fk.evaluate(run, "training_days")["training_days"],
    "explain": str(fk.explain(run, "training_days"))[:1],
    "sweep": fk.sweep(run, {"mfu": [0.3, 0.4]}, "training_days").lazy().collect().height,
    "explore": fk.explore(run, over="mfu", sliders=["accelerators"])._repr_mimebundle_() is not None,
    "plan": fk.plan("llama3_8b", tokens="1T", chips="h100_sxm", counts=[64], draws=16).best.height,
    "search": fk.search("llama3_8b", chips, global_batch_size=64.0, assume=True).lazy().collect().height,
    "table": fk.table("clusters").collect().height,
    "sql": fk.sql("select count(*) as n from clusters")["n"].item(),
    "tables": fk.tables().height,
    "read_log": fk.read_log(sys.argv[1], "events").events.height,
    "chart": "image/svg+xml" in fk.charts.checkpoint.goodput_by_interval({"one": run})._repr_mimebundle_(),
}
with server(sys.argv[2], port=0) as running:
    threading.Thread(target=running.serve_forever, daemon=True).start()
    results["serve"] = b"hello" in urllib.request.urlopen(f"http://127.0.0.1:{running.server_port}/index.html").read()
    running.shutdown()
try:
    build()
except fk.FactorykitError as error:
    results["build"] = "cannot be written" in str(error) or "not a folder of CSV" in str(error)
assert all(results.values()), results
assert not os.access(fk.__path__[0], os.W_OK)
print(len(results))
"""


@pytest.mark.long
def test_every_interface_works_on_a_read_only_file_system(installed: Path, tmp_path: Path) -> None:
    """Run as a user without write access and without a home folder; root switches to user 65534."""
    (tmp_path / "events.csv").write_text("at,kind,node\n2026-03-01,failure,n1\n")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("hello")
    for place in installed.rglob("*"):
        place.chmod(place.stat().st_mode & ~0o222)
    unprivileged: list[str] = []
    if os.geteuid() == 0:
        program = shutil.which("setpriv") or pytest.skip("root writes everywhere, and setpriv is absent")
        reads = [f"--{kind}=-all,+dac_read_search" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
        unprivileged = [program, "--reuid=65534", "--regid=65534", "--clear-groups", *reads]
    environment = os.environ | {"PYTHONPATH": str(installed), "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("FACTORYKIT_DATA", None)
    command = [*unprivileged, sys.executable, "-c", INTERFACES, str(tmp_path / "events.csv"), str(tmp_path / "site")]
    ran = subprocess.run(command, cwd="/", env=environment, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "13\n"), ran.stderr
