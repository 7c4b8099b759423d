"""Machine-readable parts of the site: a feed, descriptions, a data catalogue, dates and citations of each page."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import yaml

import factorykit as fk
from factorykit.data.tables import resources
from factorykit.site import finish
from factorykit.site.feeds import add
from factorykit.site.markup import read, write
from factorykit.site.page_layout import PageContext
from factorykit.site.sources import load_project

ATOM = {"a": "http://www.w3.org/2005/Atom"}


def test_the_feed_lists_changes_of_the_tables(site):
    feed = ElementTree.parse(site / "feed.xml")
    changes = fk.table("data_changes").collect()
    entries = feed.findall("a:entry", ATOM)
    assert len(entries) == min(30, changes.select("day", "table").unique().height)
    assert len({entry.findtext("a:id", "", ATOM) for entry in entries}) == len(entries)
    assert entries[0].findtext("a:updated", "", ATOM).startswith(changes["day"].max())
    for entry in entries:
        assert re.search(r"\d+ (values?|rows?) (changed|added|removed)$", entry.findtext("a:title", "", ATOM))
        address = entry.find("a:link", ATOM).attrib["href"].partition("?")[0]
        assert (site / address).is_file()


def test_the_monthly_note_counts_the_rents_that_moved_and_the_changed_values(site):
    up, down, chips = fk.sql("""
        select count(*) filter (now.value / before.value > 1.005), count(*) filter (now.value / before.value < 0.995),
        count(*)
        from months before join months now using (of, quantity)
        where quantity = 'rental_usd_per_accelerator_h' and before.month = '2026-07' and now.month = '2026-08'
        and before.rows >= 5 and now.rows >= 5""").row(0)
    page = (site / "report" / "news.html").read_text("utf-8")
    assert f"Rents in August 2026: {up} of {chips} chips cost more, {down} less" in page
    changed = fk.sql("select count(*) from data_changes where \"table\" = 'accelerators' and change = 'changed'").item()
    assert re.search(rf">Accelerators</a>: {changed} values changed", page)


def test_every_page_is_described_dated_and_cited(site):
    pages = [
        *({*site.glob("*.html")} - {site / "404.html"}),
        *(site / "notebooks").glob("*.html"),
        *({*(site / "report").rglob("*.html")} - {*(site / "report/python/api").iterdir()}),
    ]
    for page in pages:
        text = page.read_text("utf-8")
        assert re.search(r'<meta name="description" content="[^"]{20,}"', text), page
        assert text.count('property="og:title"') == 1, page
        assert re.search(r"changed last on <time>\d{4}-\d\d-\d\d</time>", text), page
        assert "@misc{factorykit_" in text, page
        assert 'type="application/atom+xml"' in text, page


def test_the_tables_are_described_as_a_data_catalogue(site):
    text = (site / "report" / "data.html").read_text("utf-8")
    catalogue = json.loads(re.search(r'<script type="application/ld\+json">(.*?)</script>', text)[1])
    assert catalogue["@type"] == "DataCatalog"
    assert {each["url"] for each in catalogue["dataset"]} == {f"tables/{name}.html" for name in resources()}
    assert all((site / each["url"]).is_file() for each in catalogue["dataset"])


def test_a_site_with_an_address_shows_it_and_links_to_its_sources(made, tmp_path):
    made.raw("")
    made.write("_site/report/other.html", "<html><body><main><h1>Page</h1></main></body></html>")
    context = PageContext(
        dates={"report/other.qmd": "2026-01-02"}, site="https://x.org/fk", repository="https://x.org/r"
    )
    project, out = load_project(made.root), made.root / "_site"
    pages = read(project, out)
    add(project, pages, out, context)
    write(pages, out)
    page = (made.root / "_site/report/other.html").read_text()
    assert '<link rel="canonical" href="https://x.org/fk/report/other.html">' in page
    assert 'href="https://x.org/r/edit/main/report/other.qmd"' in page
    assert "<time>2026-01-02</time>" in page
    assert "Sitemap: https://x.org/fk/sitemap.xml" in (made.root / "_site/robots.txt").read_text()
    assert "https://x.org/fk/index.html" in (made.root / "_site/sitemap.xml").read_text()
    assert '<meta name="citation_publication_date" content="2026/01/02">' in page
    assert '<meta name="citation_fulltext_html_url" content="https://x.org/fk/report/other.html">' in page


def test_a_profile_sets_the_address_of_the_site(made, monkeypatch):
    made.write("_quarto-published.yml", "website: {site-url: 'https://x.org/fk'}\n")
    made.write("404.qmd", "---\ntitle: Not here\nsearch: false\n---\nNothing.\n")
    config = yaml.safe_load((made.root / "_quarto.yml").read_text())
    config["project"]["render"].append("404.qmd")
    made.write("_quarto.yml", yaml.safe_dump(config))
    assert '<base href="/index.html">' in made.render("404.html")
    monkeypatch.setenv("QUARTO_PROFILE", "other,published")
    assert load_project(made.root).website == config["website"] | {"site-url": "https://x.org/fk"}
    assert '<base href="/fk/index.html">' in made.render("404.html")
    finish.finish(load_project(made.root), made.root / "_site")
    assert "404.html" not in (made.root / "_site/site_libs/search.js").read_text()
