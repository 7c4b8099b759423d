"""Readers' tasks, from the landing page to the answer, in at most six taps each, on a phone and on a desktop.

A step is a link, button or fold that a reader taps; ``"search: words"`` types them and opens the first result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import factorykit as fk

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

MOST_TAPS = 6


def tasks() -> dict[str, tuple[int, list[str], str]]:
    """Return the taps, the steps and a pattern of the answer of each task."""
    count = "select count(*) from runs where training_flop >= 1e25"
    existing = "select count(*) from clusters where status = 'existing' and accelerators >= 100000"
    return {
        "journalist: cost of GPT-4 with sources": (2, ["What did GPT-4 cost?", "sources"], r"78\.5 million USD"),
        "policy: runs above 10^25 FLOP": (1, ["Which runs exceed 10²⁵ FLOP?"], rf"{fk.sql(count).item()} rows,"),
        "student: why save every four minutes": (1, ["Why save every four minutes?"], r"4\.\d+ min"),
        "buyer: B200 or MI355X": (1, ["B200 or MI355X?"], r"180 GB\s+288 GB"),
        "engineer: a layout of my model": (
            1,
            ["Plan your own run"],
            r"layouts that fit: data \d+, tensor \d+, pipeline \d+",
        ),
        "investor: power by 2027": (
            2,
            ["How much power by 2027?", "Data as a table"],
            r"31 GW by the beginning of 2028",
        ),
        "operator: logs of a cluster": (3, ["search: slurm logs"], "read_log|schedulers, monitoring"),
        "analyst: clusters of 100,000 chips and more": (
            6,
            ["Take the data", "Clusters", "Filter Status", "existing", "Done", "Filter Accelerators: 100k"],
            rf"{fk.sql(existing).item()} rows,",
        ),
        "procurement: rent of an H100": (1, ["What does an H100 cost to rent?"], r"\d\.\d\d USD/h to rent"),
        "finance: build or rent": (1, ["Build or rent?"], r"72 %"),
        "geographer: a cluster on the map": (
            2,
            ["Where are the largest clusters?", "circle"],
            r"Facility power",
        ),
        "author: how to cite": (3, ["search: cite"], r"@\w+\{"),
    }


def step(page: Any, name: str) -> int:
    """Tap once, or type and tap; return the number of taps."""
    if name.startswith("search: "):
        page.get_by_role("button", name="Search").click()
        page.get_by_label("Search").last.fill(name.removeprefix("search: "))
        page.locator("#found li a").first.click()
        return 3
    if name == "circle":
        page.wait_for_load_state()  # before styles are there, the circles are elsewhere
        page.locator(".world a").last.click(force=True)  # circles overlap: the tap opens the upper one
    elif name.startswith("Filter") and ":" in name:
        page.get_by_role("button", name=name.partition(":")[0], exact=True).click()
        page.get_by_label("From").fill(name.rpartition(" ")[2])
    else:
        found = page.locator("a, button, summary, label", has_text=re.compile(rf"^\s*{re.escape(name)}"))
        aria = page.get_by_role("button", name=name, exact=True)
        found.or_(aria).filter(visible=True).first.click()
    return 1


@pytest.mark.parametrize("width", [390, 1280])
def test_readers_reach_their_answers_in_six_taps(visit: Callable[..., Any], width: int):
    page = visit("404.html", width=width, height=844)
    home = page.url.replace("404", "index")
    # The planner of the landing page computes for a second each time, and no task uses it there.
    page.route("**/plan.js", lambda route: route.fulfill(body="") if page.url == home else route.continue_())
    for task, (taps, steps, answer) in tasks().items():
        page.goto(home, wait_until="domcontentloaded")
        assert sum(step(page, name) for name in steps) == taps <= MOST_TAPS, task
        page.wait_for_function(
            "pattern => new RegExp(pattern).test(document.body.innerText)", arg=answer, timeout=10_000
        )
