"""Tables whose cells contain markup, scripts and Markdown: pages show them as text, and no script runs."""

from __future__ import annotations

import csv
import importlib
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from made_site import Made

from factorykit.charts.embed import html
from factorykit.data.tables import table
from factorykit.model.validation import audit
from factorykit.site.pages import audit_pages, data_pages, methods_pages, vocabulary_page
from factorykit.site.pages.markdown import escaped

ROOT = Path(__file__).parent.parent.parent
HOSTILE = (
    "<svg onload=hit()>",
    "</title></summary></td><script>hit()</script>",
    '"><img src=x onerror="hit()">',
    "`<svg onload=hit()>`{=html}",
    "``` \n\n```{=html}\n<script>hit()</script>\n```",
    "[x](javascript:hit())",
    ']{onclick="hit()"} x} )<svg onload=hit()>',
    "$<svg onload=hit()>$ \\",
    "a\n\n<script>hit()</script>\n\n:::",
    "\\<svg onload=hit()\\>",
    "&lt;script&gt;hit()&lt;/script&gt; &#60;svg onload=hit()>",
    "| x |\n|---|\n| <svg onload=hit()> |",
    "<!--factorykit--><!--output-0--><svg onload=hit()>",
    "---\ntitle: <svg onload=hit()>\n---",
    "{{< embed ../notebooks/01-made.ipynb >}}",
    "[@doe2020]{=html} <https://x/onload=hit()>",
)
ADDRESSES = itertools.cycle(
    ("javascript:hit()", "https://x) <script>hit()</script>", 'https://x"onclick="hit()', "http://x")
)


@pytest.fixture
def dirty() -> Callable[[object], str]:
    """Return a function that appends the next hostile text to a value."""
    texts = itertools.cycle(HOSTILE)
    return lambda value: f"{value or 'x'} {next(texts)}"


@pytest.fixture
def hostile_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dirty: Callable[[object], str]) -> Iterator[None]:
    """A vocabulary whose labels, symbols, units and meanings are hostile."""
    with (ROOT / "factorykit" / "core" / "quantities.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {name: dirty(row[name]).replace("\n", " ") for name in ("label", "meaning")}
        row["symbol"] = row["symbol"] and f"{row['symbol']}$<svg onload=hit()>"
        row["unit"] = row["unit"] if row["unit"] in ("1", "text") else f"{row['unit']}|<svg onload=hit()>"
    with (tmp_path / "quantities.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    quantities = importlib.import_module("factorykit.core.vocabulary")
    monkeypatch.setattr(quantities, "files", lambda _: tmp_path)
    quantities.vocabulary.cache_clear()
    yield
    quantities.vocabulary.cache_clear()


def hostile_claims(monkeypatch: pytest.MonkeyPatch, dirty: Callable[[object], str]) -> dict[str, str]:
    """Return the pages of an audit whose claims and sources are hostile."""
    rows = audit.audit().group_by("document", maintain_order=True).head(2 * len(HOSTILE))
    tables = {name: table(name).collect() for name in ("claims", "sources")}

    def soiled(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
        cells = ({name: dirty(row[name]) for name in names} for row in frame.to_dicts())
        return frame.with_columns(pl.DataFrame(list(cells)))

    tables["claims"] = soiled(tables["claims"], "recipe")
    tables["sources"] = soiled(tables["sources"], "title", "file").with_columns(
        pl.Series("url", [next(ADDRESSES) for _ in range(tables["sources"].height)])
    )
    claims = soiled(rows, "subject", "claimed", "printed", "why", "locator", "recipe")
    monkeypatch.setattr("factorykit.data.tables.table", lambda name: tables[name].lazy())
    monkeypatch.setattr(audit, "audit", lambda: claims.with_columns(error=pl.lit("fails")))
    return audit_pages(ROOT / "data")


def hostile_tables(folder: Path, dirty: Callable[[object], str]) -> dict[str, str]:
    """Return the pages of a data package whose words are hostile."""
    package = json.loads((ROOT / "data" / "datapackage.json").read_text(encoding="utf-8"))
    kept = [next(each for each in package["resources"] if each["name"] == name) for name in ("power", "sources")]
    for resource in kept:
        shutil.copy(ROOT / "data" / resource["path"], folder)
        resource["title"] = dirty(resource.get("title"))
        for field in resource["schema"]["fields"]:
            field |= {name: dirty(field.get(name)) for name in ("name", "unit", "type", "description")}
        for named in (*resource.get("licenses", ()), *resource.get("sources", ())):
            named |= {"title": dirty(named.get("title")), "path": next(ADDRESSES)}
        resource["description"] = dirty(resource["description"])
    for each in package["subjects"]:
        each["description"] = dirty(each["description"])
    package |= {"resources": kept, "description": dirty(""), "version": dirty("1")}
    (folder / "datapackage.json").write_text(json.dumps(package), encoding="utf-8")
    return data_pages(folder, folder / "downloads")


class Markup(HTMLParser):
    """Parser for the executable parts and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []
        self.text = ""
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag if dict(attrs).get("type") != "application/json" else "data"
        self.runs += [f"<{tag} {name}={value}>" for name, value in attrs if name.startswith("on")]
        self.runs += [f"<{tag} {name}={value}>" for name, value in attrs if str(value).startswith("javascript:")]
        self.runs += [f"<{tag}>"] if tag in ("img", "iframe", "object", "embed") else []

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.inside == "script" and "hit" in data:
            self.runs.append(data)


@pytest.fixture
def pages(
    made: Made, monkeypatch: pytest.MonkeyPatch, dirty: Callable[[object], str], hostile_words: None
) -> dict[str, str]:
    """The pages made from hostile tables, rendered, by name."""
    data = made.root / "data"
    data.mkdir()
    methods = methods_pages()
    written = {name: methods[name] for name in ("methods", "methods/checkpoint", "methods/memory")}
    rows = enumerate(vocabulary_page().split("\n"))
    written["vocabulary"] = "\n".join(line for place, line in rows if place % 5 == 0 or not line.startswith("| [["))
    written |= hostile_tables(data, dirty)
    written |= hostile_claims(monkeypatch, dirty)
    for name, text in written.items():
        made.write(f"report/{name}.qmd", text)
    made.render("index.html")
    return {name: (made.root / f"_site/report/{name}.html").read_text(encoding="utf-8") for name in written}


def test_hostile_cells_are_shown_and_do_not_run(pages: dict[str, str], made: Made, request: pytest.FixtureRequest):
    for name, text in pages.items():
        read = Markup()
        read.feed(text)
        assert not read.runs, name
    shown = Markup()
    shown.feed(pages["vocabulary"])
    assert "<svg onload=hit()>" in shown.text
    assert "{{< embed" in shown.text
    chromium = request.getfixturevalue("chromium")
    page = chromium.new_page()
    page.add_init_script("window.hits = 0; window.hit = () => { window.hits += 1; };")
    for name in pages:
        page.goto((made.root / f"_site/report/{name}.html").as_uri(), wait_until="load")
        assert page.evaluate("window.hits") == 0, name
    page.close()


def test_a_label_of_a_chart_does_not_end_its_script():
    label = "<!--<script></script><svg onload=hit()>"
    payload = {"specs": [], "title": label, "columns": []}
    read = Markup()
    read.feed(html(payload))
    assert not read.runs
    data = html(payload).split('<script type="application/json">')[1].split("</script>")[0]
    assert json.loads(data)["title"] == label
    assert "<" not in data


@pytest.mark.parametrize(
    "text",
    [
        "100 % of x_y",
        "3.5 *of* 4 | 5",
        "- a",
        "1. a",
        "$5 and $6",
        "@x",
        "~a~ ^b^",
        "# a",
        ": a",
        "a\\",
        "[a](b)",
        "&lt;",
    ],
)
def test_escaped_text_reads_as_it_was_written(made: Made, text: str):
    page = made.page(f"{escaped(text)}\n\n| x |\n|---|\n| {escaped(text)} |\n\nend")
    read = Markup()
    read.feed(page.split("</header>")[-1].split('<nav class="arrows"')[0])
    assert read.text.split() == [*text.split(), "x", *text.split(), "end"]
