"""A site of hostile tables, labels and charts: no page runs their scripts, and the content policy refuses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mutated import mutations

MADE = "notebooks/07-checkpoints.html"
HOSTILE = Path(__file__).with_name("hostile.py")
WATCH = """
window.hits = 0;
window.hit = () => { window.hits += 1; };
window.refused = [];
const note = (event) => window.refused.push(`${event.violatedDirective} ${event.sample}`);
document.addEventListener("securitypolicyviolation", note);
"""
MOVED = """async (hash) => {
  const chart = factorykit.charts.find((each) => each.linked);
  history.replaceState(null, "", hash);
  await chart.recall();
  const finite = Object.values(chart.values).every((each) => typeof each === "string" || Number.isFinite(each));
  return { finite, message: chart.refused?.textContent ?? "" };
}"""
pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def rendered(folder: Path, *requested: str) -> dict[str, int]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(HOSTILE), str(folder), *requested]
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, [str(HOSTILE.parents[2]), os.environ.get("PYTHONPATH")]))}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **paths})
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout.splitlines()[-1])


def looked_at(chromium: Any, site: Path) -> int:
    """Open every page, use those that a script fills, and return their number."""
    page = chromium.new_page()
    page.add_init_script(WATCH)
    ran = {}
    files = sorted(site.rglob("*.html"))
    for file in files:
        page.goto(file.as_uri(), wait_until="load")
        used(page)
        if any(found := page.evaluate("[hits, ...refused]")):
            ran[file.relative_to(site).as_posix()] = found
    page.close()
    assert not ran
    return len(files)


def used(page: Any) -> None:
    """Wait for charts and plans, sort a table, hold a tooltip, and search for text of the cells."""
    if page.locator("[data-factorykit-plan]").count():
        page.wait_for_selector("[data-answered]")
    for place in page.locator(".factorykit-chart").all():
        place.scroll_into_view_if_needed()
        place.locator(".fk-view svg").first.wait_for()
        place.locator(".fk-view svg").first.hover()
    if page.locator("#q").count():
        page.fill("#q", "onload")
        page.locator("#head button").first.click()
    elif page.locator("button.find").count() and page.locator("[data-factorykit-plan]").count():
        page.keyboard.press("/")
        page.get_by_label("Search the site").fill("hit onload")
        page.wait_for_selector("#found li")


def linked(chromium: Any, site: Path, number: int) -> int:
    """Open the planner and a page of live charts by mutated addresses; return how many of these were refused."""
    page, broken = chromium.new_page(), []
    page.add_init_script(WATCH)
    page.on("pageerror", lambda error: broken.append(str(error)))
    refused_links = 0
    for query, _ in mutations(b"v=1&accelerator=b200&tokens=2e13&pue=1.2&way=own", 3, number):
        page.goto(f"{(site / 'plan.html').as_uri()}?{quote(query, safe='&=+%;:?')}")
        page.wait_for_selector("[data-answered]")
        refused_links += bool(page.text_content(".fkp-noted"))
        assert not any(page.evaluate("[hits, ...refused]")), query
    assert refused_links > number / 4
    page.goto((site / MADE).as_uri())
    page.locator(".factorykit-chart .fk-view svg").first.wait_for()
    link = page.evaluate("factorykit.charts.find((chart) => chart.linked).link()")
    for text, _ in mutations(link.encode(), 4, number):
        found = page.evaluate(MOVED, "#" + quote(text.lstrip(b"#"), safe="&=+%;:?#"))
        refused_links += bool(found["message"])
        assert found["finite"], text
        assert not any(page.evaluate("[hits, ...refused]")), text
    page.close()
    assert not broken
    return refused_links


def test_no_page_of_any_template_runs_text_of_hostile_tables(chromium: Any, tmp_path: Path):
    tried = rendered(tmp_path, "few")
    assert looked_at(chromium, tmp_path / "site") == tried["pages"] > 15
    assert linked(chromium, tmp_path / "site", 3) > 1


@pytest.mark.long
def test_mutated_addresses_run_nothing_and_break_no_page(chromium: Any, tmp_path: Path):
    rendered(tmp_path, "few")
    assert linked(chromium, tmp_path / "site", 500) > 250


@pytest.mark.long
def test_no_page_of_hostile_tables_runs_a_script(chromium: Any, tmp_path: Path):
    tried = rendered(tmp_path)
    assert tried["cells"] > 100_000
    assert looked_at(chromium, tmp_path / "site") == tried["pages"] > 100


@pytest.mark.long
def test_no_page_of_the_whole_hostile_site_runs_a_script(chromium: Any, tmp_path: Path):
    tried = rendered(tmp_path, "whole")
    assert looked_at(chromium, tmp_path / "site") == tried["pages"] > 1_500
