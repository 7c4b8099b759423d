"""The built site is consistent: a preset has one value of a quantity, and printed text is readable."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import factorykit as fk

PAYLOAD = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)
HIDDEN = re.compile(r"<(script|style|pre|code|math|svg)\b.*?</\1>|<[^>]+>", re.DOTALL)
WRITTEN = ("index.html", "notebooks/*.html", "report/**/*.html")


def payloads(site: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the charts of all pages, each with its page."""
    for page in sorted(site.rglob("*.html")):
        if "factorykit-chart" in (text := page.read_text("utf-8")):
            yield from ((page.name, json.loads(found)) for found in PAYLOAD.findall(text) if '"specs"' in found)


def texts(site: Path, *patterns: str) -> Iterator[tuple[str, str]]:
    """Yield the visible text of the pages, without code and equations."""
    for pattern in patterns:
        for page in sorted(site.glob(pattern)):
            yield page.relative_to(site).as_posix(), html.unescape(HIDDEN.sub(" ", page.read_text("utf-8")))


@pytest.fixture(scope="module")
def charts(site: Path) -> list[tuple[str, dict[str, Any]]]:
    return list(payloads(site))


def test_one_preset_has_one_value_of_a_quantity_on_every_page(charts):
    shown: dict[tuple[str, str], set[float]] = defaultdict(set)
    for page, chart in charts:
        # Notebook 3 gives whole layouts of its own names; each other label is that of a preset.
        for preset in chart.get("presets") or () if not page.startswith("03") else ():
            for name, value in preset["values"].items():
                shown[preset["label"], name].add(value)
    assert ("Llama 3.1 405B", "rental_usd_per_accelerator_h") in shown
    presets = {fk.preset(name).label: fk.preset(name) for name in fk.presets()["preset"]}
    apart = {key: values for key, values in shown.items() if len(values) > 1 and key[0] in presets}
    assert not apart


def test_the_price_of_the_headline_run_is_the_one_of_its_preset(site):
    run = fk.preset("llama_3_1_405b")
    cost = fk.evaluate(run, "rental_cost_usd")["rental_cost_usd"]
    price = (
        fk.table("prices").filter(price="h100_sxm_on_demand").collect()["rental_usd_per_accelerator_h_median"].item()
    )
    assert dict(run)["rental_usd_per_accelerator_h"] == price
    for name, text in texts(site, "notebooks/02-*.html", "notebooks/13-*.html"):
        found = re.search(r"comes to about (\d+) million USD|rents for about (\d+) million USD", text)
        assert found, name
        assert abs(float(found[1] or found[2]) * 1e6 / cost - 1) < 0.02, name


def test_no_chart_has_more_than_eight_colours(charts):
    for page, chart in charts:
        for spec in chart["specs"]:
            text = json.dumps(spec)
            assert "tableau20" not in text, page
            assert "category20" not in text, page
            for listed in re.findall(r'"range": (\[(?:"#[0-9a-f]{6}",? ?)+\])', text):
                assert len(json.loads(listed)) <= 8, page


def titles_of_tips(spec: Any) -> Iterator[str]:
    """Yield the titles of the values in the tooltips of a chart."""
    for name, each in spec.items() if isinstance(spec, dict) else enumerate(spec if isinstance(spec, list) else ()):
        if name == "tooltip" and isinstance(each, list):
            yield from (tip.get("title", tip["field"]) for tip in each)
        elif name != "datasets":
            yield from titles_of_tips(each)


def test_tooltips_use_words(charts):
    for page, chart in charts:
        titles = [*titles_of_tips(chart["specs"])]
        assert not [title for title in titles if title[:1].islower() or "_" in title], (page, chart["title"])


def test_tables_and_sources_of_a_chart_link_to_their_pages(charts, site):
    tables, sources = {*fk.tables()["table"]}, set()
    for page, chart in charts:
        led = {f"../{re.sub(r'^(../)*|[?#].*', '', address)}" for _, address in chart["leads"].values()}
        assert not [address for address in led if not (site / "charts" / address).resolve().is_file()], page
        for table in tables.intersection(re.findall(r"\b[Tt]able (\w+)", chart["source"])):
            assert f"../tables/{table}.html" in led, (page, chart["source"])
        sources |= {address for address in led if "/sources/" in address}
    assert len(sources) >= 20


def test_sentences_are_whole_and_numbers_are_for_reading(site):
    for name, text in texts(site, *WRITTEN):
        assert not re.search(r"(?<![\w])with \.", text), name
        if not name.startswith(("report/methods", "report/vocabulary", "report/data", "report/audit")):
            assert not re.search(r"\d\.\d{9,}", text), (name, re.findall(r"\d\.\d{9,}", text)[:3])
            assert not re.search(r"\bseed_00\d\b", text), name


def test_every_citation_in_a_table_leads_to_its_source(site):
    tables = 0
    for page in sorted((site / "notebooks").glob("*.html")):
        for found in re.findall(r"<th[^>]*>Citation</th>.*?</table>", page.read_text("utf-8"), re.DOTALL):
            assert all("entities/sources/" in row for row in found.split("<tr>")[1:]), page.name
            tables += 1
    assert tables >= 15


def test_the_script_of_the_charts_is_where_a_chart_is(site):
    for page in sorted(site.rglob("*.html")):
        text = page.read_text("utf-8")
        loads = bool(re.search(r'<script[^>]+src="[^"]*assets/factorykit\.js"', text))
        later = "data-charts=" in text
        assert later == (page == site / "index.html")
        assert loads == ('class="factorykit-chart"' in text and not later), page


def test_a_page_is_small(site):
    """120 kB gzip without a chart, as the landing page before it is scrolled; 450 kB with charts or the planner."""
    sizes: dict[Path, int] = {}

    def packed(file: Path) -> int:
        return sizes.setdefault(file, len(gzip.compress(file.read_bytes(), 6)))

    for page in [
        *site.glob("*.html"),
        *site.glob("notebooks/*.html"),
        *site.glob("report/**/*.html"),
        *sorted(site.glob("charts/*.html"))[::6],
    ]:
        text = page.read_text("utf-8")
        named = re.findall(r'<(?:script|link rel="stylesheet")[^>]*(?:src|href)="([^":]+)"', text)
        whole = packed(page) + sum(packed((page.parent / name).resolve()) for name in named)
        draws = page != site / "index.html" and ("factorykit.js" in text or "data-factorykit-plan" in text)
        assert whole < (450_000 if draws else 120_000), (page.name, whole)
