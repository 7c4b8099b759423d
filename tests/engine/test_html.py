"""HTML of results: an explanation is a tree, the others are tables, and all text is escaped."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.vocabulary import quantity

RUN = fk.preset("llama_3_1_405b")
PLANT = fk.Cluster(accelerators=8, node_failures_per_node_day=0.0, checkpoint_write_s=0.0)
JOBS = pl.DataFrame({"arrival_s": [0.0], "accelerators": 8.0, "run_s": 3600.0, "estimate_s": 3600.0, "priority": 0})


class Page(HTMLParser):
    """Parsed HTML: names of quantities with their depth, texts, links, and unclosed tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[tuple[str, int]] = []
        self.texts: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.open.append(tag)
        values = dict(attributes)
        assert not any(name.startswith("on") for name in values)
        if "title" in values:
            self.names.append((values["title"], self.open.count("ul")))
        if tag == "a":
            self.links.append(values["href"])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_an_explanation_is_a_tree_from_the_answer_to_the_inputs() -> None:
    explanation = fk.explain(RUN, "training_energy_kwh")
    page = Page(explanation._repr_html_())
    assert page.open == []
    assert page.names[0] == ("training_energy_kwh", 0)
    assert {name for name, _ in page.names} == {step.quantity for step in explanation}
    depths = dict(page.names)
    for step in explanation:
        for need in step.needs:
            assert depths[need] > 0
    shown = [quantity(step.quantity).text(step.value) for step in explanation if not isinstance(step.value, str)]
    assert set(shown) <= set(page.texts)


def test_every_step_shows_its_origin_and_links_its_source() -> None:
    run = {"parameters": 70e9, "tokens": 15e12, "accelerators": 2048.0, "accelerator": "h100_sxm"}
    page = Page(fk.explain(run, "rental_cost_usd", assume=True)._repr_html_())
    text = "".join(page.texts)
    for origin in ("[given]", "[default: ", "[specification: ", "[neutral: ", "[computed"):
        assert origin in text
    address = fk.table("sources").filter(source="llama3_paper").collect()["url"].item()
    assert address in page.links
    assert any(link.startswith("https://doi.org/10.") for link in page.links)


def test_text_of_the_user_is_escaped() -> None:
    bad = '<script>alert("$1")</script>'
    run = fk.Scenario.sourced(bad, {"accelerators": 8.0, "peak_flop_per_s": 1e15}, {"accelerators": bad})
    for html in (run._repr_html_(), fk.explain(run, "cluster_peak_flop_per_s")._repr_html_()):
        page = Page(html)
        assert page.open == []
        assert bad in "".join(page.texts)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (fk.evaluate(RUN, "training_days"), "66 d"),
        (fk.build_or_rent({"parameters": 405e9, "budget_usd": 120e6}), "build"),
        (fk.schedule(JOBS, PLANT), "accelerator_hours"),
        (fk.reliability.count_interval(6), "2.2 to 13.1"),
        (RUN, "llama3_paper, section 3.2"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_result_is_shown_whole(result: Any, expected: str) -> None:
    page = Page(result._repr_html_())
    assert page.open == []
    assert expected in "".join(page.texts)
