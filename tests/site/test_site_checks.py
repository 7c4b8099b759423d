"""Each check fails when it should, with page and place, and passes otherwise."""

from __future__ import annotations

import pytest
import yaml
from made_site import Made, code, markdown, shown

from factorykit.core.errors import SiteError
from factorykit.site.checks import check


def test_a_site_without_faults_passes(made: Made):
    made.cells(markdown("# Fine?"), code("1", shown(text_html="<p>See https://example.org</p>")))
    assert made.problems() == ""
    assert str(check(made.root / "_site", project=made.root)).endswith("no problems")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[x](none.qmd)", "report/page.qmd, line 4: dead link none.html"),
        ("[x](other.qmd#none)", "dead link other.html#none: report/other.html has no such anchor"),
        ("[x](#none)", "dead link #none: report/page.html has no such anchor"),
        ("[x](../../outside.html)", "dead link ../../outside.html"),
        ("![x](none.png)", "report/page.qmd, line 4: missing image none.png"),
    ],
)
def test_a_fault_in_a_text_is_found(made: Made, text: str, message: str):
    made.page(text)
    assert message in made.problems()
    with pytest.raises(SiteError, match=r"the site has \d+ problems"):
        check(made.root / "_site", project=made.root)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js from another host"),
        ('<img src="//example.org/x.png">', "loads //example.org/x.png from another host"),
        (
            '<link rel="stylesheet" href="https://example.org/x.css">',
            "loads https://example.org/x.css from another host",
        ),
        ("<style>@import 'https://example.org/x.css';</style>", "loads https://example.org/x.css from another host"),
        ('<p style="background:url(//example.org/x)">a</p>', "loads //example.org/x from another host"),
        ('<iframe src="https://example.org/"></iframe>', "loads https://example.org/ from another host"),
        (
            '<img srcset="a.png 1x, https://example.org/b.png 2x" alt="">',
            "loads https://example.org/b.png from another host",
        ),
        ('<script>fetch("https://example.org/a")</script>', "loads https://example.org/a from another host"),
        ("<script>import('//example.org/a.js')</script>", "loads //example.org/a.js from another host"),
        ('<script>s.src = "https://example.org/a.js"</script>', "loads https://example.org/a.js from another host"),
        (
            '<script type="application/json">{"data": {"url": "https://example.org/a.csv"}}</script>',
            "example.org/a.csv",
        ),
        (
            "<script>var x = 'https://cdn.jsdelivr.net/npm/vega'</script>",
            "loads https://cdn.jsdelivr.net/npm/vega from another host",
        ),
        (
            "<div onclick=\"fetch('https://example.org/a')\">a</div>",
            "a script that the policy of the page forbids: fetch(",
        ),
        ("<script type=module>hit( 1 )</script>", "a script that the policy of the page forbids: hit( 1 )"),
        ('<script type="application/vnd.jupyter.widget-view+json">{}</script>', "a widget view"),
        ('<b id="x">a</b> <b id="x">b</b> <a href="#x">x</a>', "a link to #x, which is the id of 2 elements"),
    ],
)
def test_a_fault_in_the_markup_is_found(made: Made, body: str, message: str):
    made.raw(body)
    assert message in made.problems()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "report/assets/a.css",
            "body { background: url('https://example.org/a.png') }",
            "report/assets/a.css: loads https://example.org/a.png from",
        ),
        (
            "report/assets/a.js",
            "import 'https://example.org/a.js'",
            "report/assets/a.js: loads https://example.org/a.js from",
        ),
    ],
)
def test_a_fault_in_a_style_or_script_is_found(made: Made, name: str, text: str, message: str):
    made.raw("Text.")
    made.write(f"_site/{name}", text)
    assert message in made.problems()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```{python}\n1 + 1\n```", "report/page.qmd, line 4: ```{python} is not supported: an executable cell"),
        ("```{mermaid}\na --> b\n```", "is not supported: an executable cell"),
        ("::: {layout-ncol=2}\na\n:::", "is not supported: a layout"),
        ("::: {.column-margin}\na\n:::", "is not supported: a column"),
        ("See @lst-a.", "is not supported: a numbered listing"),
        ("{{< video a.mp4 >}}", "the shortcode video is not supported"),
    ],
)
def test_syntax_that_only_quarto_supports_is_refused(made: Made, text: str, message: str):
    made.write("report/page.qmd", f"---\ntitle: Page\n---\n{text}\n")
    assert message in made.problems()


def test_unsupported_front_matter_and_cell_options_are_refused(made: Made):
    made.write("report/page.qmd", "---\ntitle: Page\nlisting: default\n---\n")
    made.cells(code("#| fig-subcap: [a, b]\n1", shown(text_plain="1")))
    assert "report/page.qmd, front matter: listing" in made.problems()
    assert "notebooks/01-made.ipynb, cell 1: the cell option fig-subcap" in made.problems()


def test_a_code_block_is_not_an_executable_cell(made: Made):
    made.page("```python\n1 + 1\n```\n\n```{.python}\nx\n```\n\n````\n```{python}\n````\n")
    assert "{.python}" not in made.problems()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (code("1 + 1", count=None), "notebooks/01-made.ipynb, cell 1: was never executed"),
        (
            code("x", {"output_type": "error", "ename": "NameError", "evalue": "no x", "traceback": ["\x1b[31mno x"]}),
            "cell 1: a stored error, NameError: no x",
        ),
        (code("x", shown(**{"application_vnd.jupyter.widget-view+json": "{}"})), "cell 1: a stored widget view"),
        (code("#| label: fig-a\n#| tbl-cap: Rows.\n1"), "fig-a has the caption of a table; call the cell tbl-…"),
        (code("1") | {"id": "tbl-b"}, "cell 1: tbl-b has no caption"),
        (markdown("See @fig-none."), "notebooks/01-made.ipynb, cell 1: unresolved ?@fig-none"),
    ],
)
def test_a_fault_in_a_notebook_is_found_with_its_cell(made: Made, cell: dict, message: str):
    made.cells(cell)
    assert message in made.problems()


def test_a_page_that_was_not_rendered_is_reported(made: Made):
    made.raw("Text.")
    made.write("report/page.qmd", "---\ntitle: Page\n---\n")
    (made.root / "_site/report/page.html").unlink()
    assert "report/page.qmd: was not rendered" in made.problems()


def test_unresolved_references_of_quarto_are_found(made: Made):
    made.raw(
        '<p><strong>?@fig-a</strong> <span class="citation" data-cites="b1">(<strong>b1?</strong>)</span></p>'
        '<p>Is it <strong>true?</strong></p><span class="math display">$$ \\nothing $$</span>'
    )
    found = made.problems().splitlines()
    assert len(found) == 3
    assert "unresolved TeX source" in made.problems()
    assert "unresolved ?@fig-a" in made.problems()
    assert "unresolved citation @b1" in made.problems()


def test_a_folder_without_a_site_is_refused(tmp_path):
    with pytest.raises(SiteError, match="no site in"):
        check(tmp_path)


def test_a_page_that_the_sidebar_lacks_is_reported(made: Made):
    described = yaml.safe_load((made.root / "_quarto.yml").read_text())
    described["website"]["sidebar"]["contents"] = [
        "index.qmd",
        {"section": "Report", "contents": [{"auto": "report/*"}]},
    ]
    made.write("_quarto.yml", yaml.safe_dump(described))
    found = made.problems()
    assert "_quarto.yml, sidebar: does not name report/other.qmd, so that no menu leads there" in found
    assert "_quarto.yml, sidebar: auto: report/* becomes a folded section" in found
