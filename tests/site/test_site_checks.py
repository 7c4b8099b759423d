"""Each check fails when it should, naming page and place, and stays silent otherwise."""

from __future__ import annotations

import pytest
import yaml
from made_site import Made, code, markdown, shown

from factorykit.errors import SiteError
from factorykit.site.checks import check


def test_a_sound_site_passes(made: Made):
    made.cells(markdown("# Fine?"), code("1", shown(text_html="<p>See https://example.org</p>")))
    assert made.problems() == ""
    assert str(check(made.root / "_site", project=made.root)).endswith("nothing found wanting")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](none.qmd)", "report/page.qmd, line 4: dead link none.html"),
        ("[x](other.qmd#none)", "dead link other.html#none: no such place on report/other.html"),
        ("[x](#none)", "dead link #none: no such place on report/page.html"),
        ("[x](../../outside.html)", "dead link ../../outside.html"),
        ("![x](none.png)", "report/page.qmd, line 4: missing image none.png"),
    ],
)
def test_a_fault_in_a_text_is_found(made: Made, text: str, said: str):
    made.page(text)
    assert said in made.problems()
    with pytest.raises(SiteError, match="found wanting"):
        check(made.root / "_site", project=made.root)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<script src="https://example.org/x.js"></script>', "asks another host for https://example.org/x.js"),
        ('<img src="//example.org/x.png">', "asks another host for //example.org/x.png"),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "asks another host for https://example.org/x.css"),
        ("<style>@import 'https://example.org/x.css';</style>", "asks another host for https://example.org/x.css"),
        ('<p style="background:url(//example.org/x)">a</p>', "asks another host for //example.org/x"),
        ('<iframe src="https://example.org/"></iframe>', "asks another host for https://example.org/"),
        (
            '<img srcset="a.png 1x, https://example.org/b.png 2x" alt="">',
            "asks another host for https://example.org/b.png",
        ),
        ('<script>fetch("https://example.org/a")</script>', "asks another host for https://example.org/a"),
        ("<script>import('//example.org/a.js')</script>", "asks another host for //example.org/a.js"),
        ('<script>s.src = "https://example.org/a.js"</script>', "asks another host for https://example.org/a.js"),
        (
            '<script type="application/json">{"data": {"url": "https://example.org/a.csv"}}</script>',
            "example.org/a.csv",
        ),
        (
            "<script>var x = 'https://cdn.jsdelivr.net/npm/vega'</script>",
            "asks another host for https://cdn.jsdelivr.net",
        ),
        (
            "<div onclick=\"fetch('https://example.org/a')\">a</div>",
            "a script that the policy of the page refuses: fetch(",
        ),
        ("<script type=module>hit( 1 )</script>", "line 1: a script that the policy of the page refuses: hit( 1 )"),
        ('<script type="application/vnd.jupyter.widget-view+json">{}</script>', "a widget view"),
        ('<b id="x">a</b> <b id="x">b</b> <a href="#x">x</a>', "a link to #x, which stands 2 times"),
    ],
)
def test_a_fault_in_the_markup_is_found(made: Made, body: str, said: str):
    made.raw(body)
    assert said in made.problems()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "report/assets/a.css",
            "body { background: url('https://example.org/a.png') }",
            "report/assets/a.css: asks another",
        ),
        ("report/assets/a.js", "import 'https://example.org/a.js'", "report/assets/a.js: asks another host"),
    ],
)
def test_a_fault_in_a_style_or_script_is_found(made: Made, name: str, text: str, said: str):
    made.raw("Text.")
    made.write(f"_site/{name}", text)
    assert said in made.problems()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```{python}\n1 + 1\n```", "report/page.qmd, line 4: ```{python} is an executable cell"),
        ("```{mermaid}\na --> b\n```", "is an executable cell"),
        ("::: {layout-ncol=2}\na\n:::", "is a layout"),
        ("::: {.column-margin}\na\n:::", "is a column"),
        ("See @lst-a.", "is a numbered listing"),
        ("{{< video a.mp4 >}}", "the shortcode video is not in the shared dialect"),
    ],
)
def test_what_only_quarto_knows_is_refused(made: Made, text: str, said: str):
    made.write("report/page.qmd", f"---\ntitle: Page\n---\n{text}\n")
    assert said in made.problems()


def test_front_matter_and_cell_options_outside_the_dialect_are_refused(made: Made):
    made.write("report/page.qmd", "---\ntitle: Page\nlisting: default\n---\n")
    made.cells(code("#| fig-subcap: [a, b]\n1", shown(text_plain="1")))
    assert "report/page.qmd, front matter: listing" in made.problems()
    assert "notebooks/01-made.ipynb, cell 1: the cell option fig-subcap" in made.problems()


def test_shown_code_is_no_executable_cell(made: Made):
    made.page("```python\n1 + 1\n```\n\n```{.python}\nx\n```\n\n````\n```{python}\n````\n")
    assert "{.python}" not in made.problems()


@pytest.mark.parametrize(
    ("cell", "said"),
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
def test_a_fault_in_a_notebook_is_found_with_its_cell(made: Made, cell: dict, said: str):
    made.cells(cell)
    assert said in made.problems()


def test_a_page_that_was_not_rendered_is_missed(made: Made):
    made.raw("Text.")
    made.write("report/page.qmd", "---\ntitle: Page\n---\n")
    (made.root / "_site/report/page.html").unlink()
    assert "report/page.qmd: was not rendered" in made.problems()


def test_the_checks_read_quartos_marks_too(made: Made):
    made.raw(
        '<p><strong>?@fig-a</strong> <span class="citation" data-cites="b1">(<strong>b1?</strong>)</span></p>'
        '<p>Is it <strong>true?</strong></p><span class="math display">$$ \\nothing $$</span>'
    )
    found = made.problems().splitlines()
    assert len(found) == 3
    assert "unresolved TeX, left as it is" in made.problems()
    assert "unresolved ?@fig-a" in made.problems()
    assert "unresolved citation @b1" in made.problems()


def test_a_folder_without_a_site_is_refused(tmp_path):
    with pytest.raises(SiteError, match="no site in"):
        check(tmp_path)


def test_a_page_that_no_menu_leads_to_is_named(made: Made):
    described = yaml.safe_load((made.root / "_quarto.yml").read_text())
    described["website"]["sidebar"]["contents"] = [
        "index.qmd",
        {"section": "Report", "contents": [{"auto": "report/*"}]},
    ]
    made.write("_quarto.yml", yaml.safe_dump(described))
    found = made.problems()
    assert "_quarto.yml, sidebar: does not name report/other.qmd; no menu leads there" in found
    assert "_quarto.yml, sidebar: auto: report/* becomes a folded section" in found
