"""Files that publish the package agree with it and with each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import factorykit as fk
from factorykit.core.extras import EXTRAS

ROOT = Path(__file__).parent.parent
YAML = [
    ".github/dependabot.yml",
    ".pre-commit-config.yaml",
    "conda.recipe/recipe.yaml",
    *(
        str(path.relative_to(ROOT))
        for folder in ("workflows", "ISSUE_TEMPLATE")
        for path in (ROOT / ".github" / folder).glob("*")
    ),
]


def test_every_file_names_the_same_version() -> None:
    recipe = yaml.safe_load((ROOT / "conda.recipe/recipe.yaml").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    deposit = json.loads((ROOT / ".zenodo.json").read_text())
    assert {recipe["context"]["version"], citation["version"], deposit["version"]} == {fk.__version__}


def test_the_recipe_has_the_requirements_of_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = yaml.safe_load((ROOT / "conda.recipe/recipe.yaml").read_text())["requirements"]["run"]
    required = {
        line.replace(">", " >", 1) for line in (f"python{project['requires-python']}", *project["dependencies"])
    }
    assert {line.removeprefix("python-") for line in recipe} == required
    binder = re.findall(r"[\w-]+", (ROOT / ".binder/requirements.txt").read_text())
    assert {*EXTRAS.values(), *binder} <= set(project["optional-dependencies"])


@pytest.mark.parametrize("name", YAML)
def test_a_configuration_is_yaml(name: str) -> None:
    assert isinstance(yaml.safe_load((ROOT / name).read_text()), dict)


def test_the_image_does_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert lines.index("USER 1000") < lines.index('ENTRYPOINT ["factorykit"]')
    assert all(re.search(r":3\.\d+-slim", line) for line in lines if line.startswith("FROM"))
    assert json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["postCreateCommand"].startswith(
        "make setup"
    )


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A site of one page, and the sites of three releases below it."""
    site, archives = tmp_path / "site", tmp_path / "archives"
    (site / "site_libs").mkdir(parents=True)
    archives.mkdir()
    shutil.copy(ROOT / "factorykit/site/theme/bridge.js", site / "site_libs")
    (site / "page.html").write_text(
        '<!doctype html><title>Page</title><script src="site_libs/bridge.js" defer></script>'
        '<header class="top-in"><button class="find">Search</button></header>'
    )
    for version in ("v0.2", "v0.9", "v0.10"):
        subprocess.run(["tar", "-czf", archives / f"site-{version}.tar.gz", "-C", site, "."], check=True)
    subprocess.run([ROOT / ".github/versions.sh", site, archives, str(site)], check=True)
    return site


def test_releases_stand_below_the_site_and_the_newest_is_latest(published: Path) -> None:
    assert sorted(file.parent.name for file in published.glob("*/page.html")) == ["latest", "v0.10", "v0.9"]
    listed = [file.read_text().splitlines()[0] for file in published.rglob("bridge.js")]
    assert len(listed) == 4
    assert len({*listed}) == 1
    assert re.findall("version: '([^']*)'", listed[0]) == ["main", "latest", "v0.10", "v0.9"]


@pytest.mark.browser
def test_a_reader_goes_to_the_same_page_of_another_version(published: Path, chromium: Any) -> None:
    page = chromium.new_page()
    page.goto(f"file://{published}/latest/page.html?q=1#part")
    assert page.get_by_label("Version").locator("option:checked").inner_text() == "latest"
    page.get_by_label("Version").select_option("v0.9")
    page.wait_for_url("**/v0.9/page.html?q=1#part")
    assert page.get_by_label("Version").locator("option:checked").inner_text() == "v0.9"
    page.close()
