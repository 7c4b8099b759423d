"""The landing page links every notebook, and its numbers are those of the model."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit.site.pages import landing

ROOT = Path(__file__).parent.parent.parent
CARDS = "".join(landing.notebooks(ROOT / "notebooks").values())
NUMBERS_SHOWN = landing.numbers()
NUMBERS = {
    "wall_days": (r"\[(\d+) days\]", 1.0),
    "facility_power_w": (r"\[(\d+) MW\]", 1e6),
    "failures_per_day": (r"\[([\d.]+) failures\]", 1.0),
    "checkpoint_interval_optimal_s": (r"\[(\d+) minutes\]", 60.0),
    "rental_cost_usd": (r"\[(\d+) million USD\]", 1e6),
    "training_carbon_kg": (r"\[([\d,]+) t of CO2\]", 1e3),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_six_numbers_are_those_of_the_preset(name: str) -> None:
    pattern, scale = NUMBERS[name]
    printed = re.search(pattern, NUMBERS_SHOWN)[1].replace(",", "")
    digits = len(printed.partition(".")[2]) if "." in printed else -(len(printed) - len(printed.rstrip("0")))
    found = fk.evaluate(fk.preset("llama_3_1_405b"), name)[name] / scale
    assert round(found, digits) == float(printed)


def test_every_notebook_has_a_card_and_every_group_a_place() -> None:
    found = re.findall(r"\]\(notebooks/([^)]+\.ipynb)\)", CARDS)
    assert sorted(found) == sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    placed = re.findall(r"_notebooks-(\w+)\.qmd", (ROOT / "index.qmd").read_text(encoding="utf-8"))
    assert tuple(placed) == landing.GROUPS


def test_answers_on_the_cards_are_those_of_the_model() -> None:
    audited = fk.audit().filter(pl.col("document").str.starts_with("seed_"))  # the five documents
    counts = dict(audited["verdict"].value_counts().iter_rows())
    assert f"[{counts['agrees'] + counts['rounding']} of {audited.height} published numbers hold]" in CARDS
    build = fk.charts.cost.build_or_rent({"": fk.preset("llama_3_1_405b")})
    assert f"[Building pays above {build.now()['break_even_utilization']:.0%}".replace("%", " %") in CARDS
    assert fk.evaluate(fk.preset("llama_3_1_405b"), "training_energy_kwh")["training_energy_kwh"] == pytest.approx(
        26e6, rel=0.02
    )


def test_each_number_leads_to_its_formula_and_each_notebook_shows_its_first_chart(site: Path) -> None:
    page = (site / "index.html").read_text("utf-8")
    for name in NUMBERS:
        assert f'#{name.replace("_", "-")}">formula</a>' in page
    assert page.count('class="fk-thumb"') == len([*(ROOT / "notebooks").glob("*.ipynb")])
    assert 'href="tables/data_changes.html?q=' in page
