"""The pages about Python list every public name, and show the output of their code."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import factorykit as fk
from factorykit import cli
from factorykit.core.errors import SiteError
from factorykit.core.text_io import package_rows
from factorykit.site.page_layout import PageContext
from factorykit.site.pages import api, recipes

ROOT = Path(__file__).parents[2]


def test_every_public_name_has_its_place_in_the_reference(site):
    page = (site / "report" / "python" / "api.html").read_text("utf-8")
    assert set(re.findall(r'id="fk-([\w-]+)"', page)) == {name.replace("_", "-") for name in fk.__all__}
    led = re.findall(r'href="([^"]+)" id="fk-', page)
    assert {(site / "report" / "python" / href).resolve() for href in led} == {*(site / api.PLACE).glob("*.html")}


def test_every_public_name_has_a_page_with_call_text_and_source(tmp_path):
    found = api.write(tmp_path, PageContext(repository="https://x.org/r"))
    files = {file.name.lower() for file in (tmp_path / api.PLACE).iterdir()}  # no two differ in case alone
    assert len(found) == len(files) == len(fk.__all__)
    pages = [(tmp_path / href).read_text("utf-8") for href, *_ in found]
    for page, (_, title, _, text) in zip(pages, found, strict=True):
        assert f"<h1>{title}</h1>" in page
        assert len(text) > len(title) + 10
        path, line = re.search(r'"https://x.org/r/blob/main/(factorykit/[\w/]+\.py)(?:#L(\d+))?"', page).groups()
        lines = (ROOT / path).read_text("utf-8").splitlines()
        assert line is None or title.removeprefix("fk.") in " ".join(lines[int(line) - 1 : int(line) + 3])
        assert len(page) < 60_000
    assert sum("<strong>Parameters</strong>" in page for page in pages) > 40
    assert sum("&gt;&gt;&gt;" in page for page in pages) > 50
    assert not any(":func:" in page for page in pages)


def test_every_command_has_its_arguments_and_the_output_of_an_example(site):
    page = (site / "report" / "python" / "command-line.html").read_text("utf-8")
    headings = {html.unescape(title) for title in re.findall(r"<h2[^>]*>factorykit ([^<]+)</h2>", page)}
    names = {run.__name__.strip("_").replace("_", "-") for run in cli.COMMANDS}
    assert {title.replace(" ", "-") for title in headings} == names
    text = html.unescape(re.sub(r"<[^>]+>", "", page)).replace("’", "'")
    for run in cli.COMMANDS:
        assert str(run.__doc__).partition(":")[0].rstrip(".") in text
    for row in package_rows(Path(cli.__file__).with_name("commands.csv")):
        assert row["argument"].split()[0].rstrip("?*+") in text or row["value"] in text
    assert "training_flop     3.79 × 10²⁵ FLOP" in text
    assert "cluster_mtbf_s = 3.09 h = accelerator_mtbf_s / accelerators" in text


def test_recipes_show_answers_and_no_place_of_this_machine(site):
    for file in recipes.FOLDER.glob("*.md"):
        page = (site / "report" / "python" / f"{file.stem}.html").read_text("utf-8")
        assert page.count('<div class="sourceCode"') == file.read_text("utf-8").count("```") // 2
        assert "/tmp" not in page
    assert "ScenarioError: config.json: num_hidden_layers must be a whole number" in (
        site / "report" / "python" / "own-models.html"
    ).read_text("utf-8")


def test_a_recipe_that_no_longer_works_stops_the_build():
    with pytest.raises(SiteError, match="How many\\? no table 'clustres'"):
        recipes.with_answers("## How many?\n\n```python\nfk.sql('from clustres')\n```")
