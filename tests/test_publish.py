"""Files that publish the package agree with it and with each other."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

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
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])


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
