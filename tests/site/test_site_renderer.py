"""The embedded renderer treats a page as Quarto does."""

from __future__ import annotations

import json
import re

import pytest
from made_site import Made, code, markdown, shown

from factorykit.core.errors import SiteError
from factorykit.site import finish, renderer
from factorykit.site.sources import load_project


def test_references_become_numbered_links(made: Made):
    page = made.page(
        "See @fig-a, @tbl-b, @eq-c, [@fig-a] and @sec-d.\n\n"
        "![A picture](assets/a.png){#fig-a}\n\n| x |\n|---|\n| 1 |\n\n: A table {#tbl-b}\n\n"
        "$$ x = 1 $$ {#eq-c}\n\n## A section {#sec-d}\n"
    )
    for href, text in (
        ("fig-a", "Figure\xa01"),
        ("tbl-b", "Table\xa01"),
        ("eq-c", "Equation\xa01"),
        ("sec-d", "A section"),
    ):
        assert f'<a href="#{href}" class="quarto-xref">{text}</a>' in page
    assert "Figure\xa01: </span>A picture" in page
    assert "Table\xa01: </span>A table" in page
    assert '<span class="fk-eqno">(1)</span>' in page
    assert "<math" in page


def test_an_unresolved_reference_is_left_visible_and_found(made: Made):
    assert "?@fig-none" in made.page("See @fig-none.")
    assert "report/page.qmd, line 4: unresolved ?@fig-none" in made.problems()


def test_citations_get_a_list_of_references(made: Made):
    page = made.page("As shown [@doe2020, p. 3]; @doe2020 agrees.")
    assert "(<a" in page
    assert "Doe 2020" in page
    assert re.search(r'<section id="references"[^>]*>\s*<h2', page)
    assert 'id="ref-doe2020"' in page


def test_an_unknown_citation_is_found(made: Made):
    made.page("As shown [@nobody1900].")
    assert "report/page.qmd, line 4: unresolved citation @nobody1900" in made.problems()


def test_callouts_take_titles_and_fold(made: Made):
    page = made.page(
        "::: {.callout-note}\nPlain.\n:::\n\n::: {.callout-warning}\n## Care\nBody.\n:::\n\n"
        '::: {.callout-tip collapse="true" title="Folded `x`"}\nInside.\n:::\n'
    )
    assert re.search(r'<div class="callout callout-note"><p class="callout-title">\s*Note', page)
    assert re.search(r'callout-warning"><p class="callout-title">\s*Care', page)
    assert re.search(
        r'<details class="callout callout-tip"><summary class="callout-title">\s*Folded <code>x</code>', page
    )
    assert "<h2" not in page


def test_tab_sets_are_tabs(made: Made):
    page = made.page("::: {.panel-tabset}\n## One\nFirst\n\n## Two\nSecond\n:::\n")
    assert page.count('role="tab"') == page.count('role="tabpanel"') == 2
    assert re.search(r'aria-controls="panel-1-2"[^>]*>\s*Two', page)
    assert "<h2" not in page


def test_footnotes_links_and_titles_work(made: Made):
    page = made.page("A note.[^1] [Home](/index.qmd) [there](other.qmd#sec-more)\n\n[^1]: Below.", "My title")
    assert 'class="footnote-ref"' in page
    assert 'href="../index.html"' in page
    assert 'href="other.html#sec-more"' in page
    assert page.count("My title") >= 2


def test_a_notebook_takes_its_first_heading_as_title(made: Made):
    page = made.cells(markdown("# How long?\n\nText."), code("1 + 1", shown(text_plain="2")))
    assert '<h1 class="title">How long?</h1>' in page
    assert page.count("How long?</") == 2  # heading and sidebar
    assert "<title>How long? – Made up</title>" in page
    assert '<details class="code-fold"><summary>Code</summary>' in page
    assert '<pre class="cell-output"><code>2</code></pre>' in page


@pytest.mark.parametrize(
    ("source", "tags", "has_code", "has_output"),
    [
        ("#| echo: false\nx", [], False, True),
        ("#| include: false\nx", [], False, False),
        ("#| output: false\nx", [], True, False),
        ("x", ["hide-code"], False, True),
        ("x", ["hide-output"], True, False),
        ("x", ["remove-cell"], False, False),
    ],
)
def test_cell_options_and_tags_are_honoured(made: Made, source: str, tags: list[str], has_code: bool, has_output: bool):
    page = made.cells(code(source, shown(text_plain="stored"), tags=tags))
    assert ('class="sourceCode' in page) == has_code
    assert ("stored" in page) == has_output
    assert "#|" not in page


def test_code_is_folded_on_request(made: Made):
    page = made.cells(code("#| code-fold: false\na"), code("#| code-fold: show\n#| code-summary: Look\nb"))
    assert page.count("<details") == 1
    assert '<details class="code-fold" open><summary>Look</summary>' in page


def test_outputs_prefer_html_then_pictures_and_keep_their_bytes(made: Made):
    html = '<div><script type="application/json">{"a": "<\\/script>"}</script>`` ```</div>'
    svg = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    page = made.cells(
        code("#| label: fig-a\n#| fig-cap: A *chart*\nc", shown(text_html=html, text_plain="no")),
        code("d", shown(**{"image_svg+xml": svg, "text_plain": "no"})),
        markdown("See @fig-a."),
    )
    assert html in page
    assert "Figure\xa01: </span>A <em>chart</em>" in page
    assert '<a href="#fig-a" class="quarto-xref">' in page
    assert '<img src="01-made_files/figure-1.svg"' in page
    assert (made.root / "_site/notebooks/01-made_files/figure-1.svg").read_text() == svg
    assert ">no<" not in page


def test_embed_brings_a_cell_of_a_notebook(made: Made):
    made.cells(code("#| label: fig-a\n#| fig-cap: Seen twice\nc", shown(text_html="<b>chart</b>")))
    page = made.page("{{< embed ../notebooks/01-made.ipynb#fig-a >}}\n\nSee @fig-a.")
    assert "<b>chart</b>" in page
    assert "Seen twice" in page
    assert "sourceCode" not in page
    with pytest.raises(SiteError, match=r"no cell with label, id or tag 'fig-b'; labels are fig-a"):
        made.page("{{< embed ../notebooks/01-made.ipynb#fig-b >}}")


def test_navigation_names_every_page_and_marks_this_one(made: Made):
    made.cells(markdown("# How long?"))
    page = made.page("Text.")
    other = (made.root / "_site/report/other.html").read_text()
    assert '<a href="other.html" aria-current="page">Other page</a>' in other
    assert '<a href="../notebooks/01-made.html">How long?</a>' in page
    assert re.search(r'class="previous"[^>]*href="../notebooks/01-made.html"', other)
    assert '<script src="../report/assets/page.js"></script>' in page


def test_the_search_index_knows_sections_and_leaves_out_scripts(made: Made):
    made.cells(
        markdown("# How long?\n\n## Deep inside\n\nNeedle $x$."), code("c", shown(text_html="<script>hidden</script>"))
    )
    finish.finish(load_project(made.root), made.root / "_site")
    text = (made.root / "_site/site_libs/search.js").read_text()
    rows = json.loads(text.removeprefix("window.siteSearch = ").rstrip(";\n"))
    row = next(row for row in rows if row[2] == "Deep inside")
    assert row[0] == "notebooks/01-made.html#deep-inside"
    assert "Needle" in row[3]
    assert "hidden" not in text


def test_two_renders_give_the_same_bytes(made: Made):
    first = made.page("See [@doe2020].")
    assert made.page("See [@doe2020].") == first


def test_a_page_is_converted_again_only_when_something_in_it_changed(made: Made, monkeypatch: pytest.MonkeyPatch):
    made.write("report/page.qmd", "---\ntitle: Page\n---\nSee [@doe2020].\n")
    converted = []
    real = renderer._pandoc
    monkeypatch.setattr(renderer, "_pandoc", lambda page, *rest: converted.append(page.href) or real(page, *rest))

    def render(name: str) -> str:
        converted.clear()
        renderer.render(made.root, made.root / name, cache=made.root / "kept")
        return (made.root / name / "report/page.html").read_text(encoding="utf-8")

    first = render("one")
    assert len(converted) == 3
    assert render("two") == first
    assert converted == []
    made.write("report/other.qmd", "---\ntitle: Renamed\n---\n## More {#sec-more}\n")
    assert "Renamed" in render("three")
    assert converted == ["report/other.html"]
    made.write("report/references.bib", "@book{doe2020, author = {Roe, Jane}, title = {The thing}, year = {2020}}\n")
    assert "Roe" in render("four")


@pytest.mark.parametrize("damage", [b"", b"half a page", b"\xff\xfe", "cut"], ids=["empty", "other", "bytes", "cut"])
def test_a_damaged_page_cache_is_rebuilt(made: Made, damage: bytes | str):
    def render(name: str) -> str:
        renderer.render(made.root, made.root / name, cache=made.root / "kept")
        return (made.root / name / "index.html").read_text(encoding="utf-8")

    first = render("one")
    for file in (made.root / "kept").iterdir():
        file.write_bytes(file.read_bytes()[:-40] if damage == "cut" else damage)
    assert render("two") == first


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("_quarto.yml", "website: [", "_quarto.yml: no YAML"),
        ("_quarto.yml", "project: {render: [none.qmd]}", "names no page that exists"),
        ("notebooks/01-made.ipynb", "{", r"01-made.ipynb: no notebook that can be read"),
        ("report/page.qmd", "---\ntitle: [\n---\n", "report/page.qmd: no YAML"),
        ("report/page.qmd", "{{< video x.mp4 >}}", "shortcode .* is not supported"),
        ("report/page.qmd", '::: {from="report/_x.qmd"}\n:::', r"report/_x\.qmd is missing; factorykit prints it"),
    ],
)
def test_unreadable_content_is_named(made: Made, name: str, text: str, match: str):
    made.write(name, text)
    with pytest.raises(SiteError, match=match):
        made.render("index.html")
