"""The pages about Python know every public name, and show what their code answers."""

from __future__ import annotations

import re

import pytest

import factorykit as fk
from factorykit.core.errors import SiteError
from factorykit.site.pages import recipes


def test_every_public_name_has_its_place_in_the_reference(site):
    page = (site / "report" / "python" / "api.html").read_text("utf-8")
    assert set(re.findall(r'id="fk-([\w-]+)"', page)) == {name.replace("_", "-") for name in fk.__all__}
    assert page.count("<strong>Parameters</strong>") > 50
    assert ":func:" not in page


def test_recipes_show_answers_and_no_place_of_this_machine(site):
    for name, (_, _, _, blocks, after) in recipes.PAGES.items():
        page = (site / "report" / f"{name}.html").read_text("utf-8")
        assert page.count('<div class="sourceCode"') == len(blocks) + after.count("```") // 2
        assert "/tmp" not in page
    assert "ScenarioError: config.json: num_hidden_layers must be a whole number" in (
        site / "report" / "python" / "own-models.html"
    ).read_text("utf-8")


def test_a_recipe_that_no_longer_works_stops_the_build():
    with pytest.raises(SiteError, match="How many\\? no table 'clustres'"):
        recipes._answered([("How many?", "fk.sql('from clustres')")])
