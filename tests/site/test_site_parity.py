"""Quarto and the embedded renderer make the same site: menu, headings, numbers, figures, tables, works, answers."""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from selectolax.lexbor import LexborHTMLParser

from factorykit.site import build, finish, pages, quarto, renderer
from factorykit.site.build import _stage
from factorykit.site.serve import server
from factorykit.site.sources import load_project

ROOT = Path(__file__).parents[2]
FEW = ["index.qmd", "404.qmd", "notebooks/07-checkpoints.ipynb", "report/methods/checkpoint.qmd", "report/cite.qmd"]
ASKED = {
    "young daly interval": "checkpoint",
    "B200 power": "entities/accelerators/b200",
    "MI300X": "entities/accelerators/mi300x",
    "H200 TDP": "entities/accelerators/h200_sxm",
    "build vs rent": "notebooks/14",
    "goodput": "methods/checkpoint",
    "daly young": "checkpoint",
    "electricity price": "report/vocabulary",
    "Colossus": "entities/clusters/xai_colossus",
    "BibTeX": "report/cite",
}
"""Search queries, and a part of the address of the answer."""


@pytest.fixture(scope="session")
def program() -> Path:
    """The Quarto that a build would use."""
    found, reason = quarto.find()
    if found is None:
        pytest.skip(f"{reason}; its pages were not compared")
    return found


def plain(node: Any) -> str:
    """Return the words of an element; one of the renderers marks where a function is applied."""
    return " ".join(node.text().replace("\N{FUNCTION APPLICATION}", "").split())


def content(file: Path, folder: PurePosixPath) -> dict[str, Any]:
    """Return the content of a page, independent of the markup of its renderer."""
    page = LexborHTMLParser(file.read_text("utf-8"))
    for node in page.css("button, svg, annotation, .visually-hidden, nav.arrows, [role=tablist]"):
        node.decompose()

    def texts(selector: str) -> list[str]:
        return [plain(node) for node in page.css(selector)]

    named = {node.attributes.get("name") or node.attributes.get("property"): node for node in page.css("head meta")}
    own = ("viewport", "generator", "quarto:offset", None)
    menu = page.css("#quarto-sidebar a.sidebar-link[href], nav#menu > ul a")
    return {
        "title": texts("title"),
        "metadata": {str(name): node.attributes["content"] for name, node in named.items() if name not in own},
        "canonical": [node.attributes["href"] for node in page.css("link[rel=canonical]")],
        "menu": [(plain(a), posixpath.normpath(folder / str(a.attributes["href"]))) for a in menu],
        "contents": texts("nav#TOC a, nav.toc a"),
        "headings": [(node.tag, plain(node)) for node in page.css("main :is(h1, h2, h3, h4)")],
        "equations": [(node.parent.attributes["id"], node.text()) for node in page.css(".fk-equation > .fk-eqno")],
        "formulas": len(page.css("main math")),
        "captions": texts("main figcaption"),
        "charts": len(page.css("main .factorykit-chart")),
        "pictures": len(page.css("main img")),
        "tables": [[plain(cell) for cell in table.css("th, td")] for table in page.css("main table")],
        "works": texts("main .csl-entry"),
        "leads": sorted(
            {
                posixpath.normpath(folder / str(a.attributes["href"])).lstrip("/")
                for a in page.css('main a[href]:not([href^="#cb"])')
            }
        ),
        "description": texts("main .description"),
        "text": texts("main :is(p:not(.description), li, pre)"),
    }


def compared(one: Path, other: Path) -> dict[str, tuple[Any, Any]]:
    """Return the differences between two sites, by page and kind."""
    assert (one / "index.html").is_file()
    found = {}
    for file in sorted(one.rglob("*.html")):
        place = file.relative_to(one).as_posix()
        if place.startswith(("entities/", "tables/", "charts/")):
            assert (other / place).read_bytes() == file.read_bytes(), place
            continue
        here, there = (content(site / place, PurePosixPath(place).parent) for site in (one, other))
        found |= {f"{place}: {kind}": (here[kind], there[kind]) for kind in here if here[kind] != there[kind]}
    assert {file.relative_to(other) for file in other.rglob("*.html")} == {
        file.relative_to(one) for file in one.rglob("*.html")
    }
    return found


def test_the_workflows_pin_their_version_of_quarto() -> None:
    flows = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in (ROOT / ".github/workflows").glob("*.yml")}
    taken = flows["tests"]["jobs"]["quarto"]["strategy"]["matrix"]["version"]
    assert tuple(map(int, taken[0].split(".")[:2])) == quarto.OLDEST_VERSION
    steps = [step for flow in flows.values() for job in flow["jobs"].values() for step in job["steps"]]
    named = [step["with"]["version"] for step in steps if "quarto-actions/setup" in step.get("uses", "")]
    assert {*named} == {taken[-1], "${{ matrix.version }}"}
    assert "conclusion == 'success'" in flows["pages"]["jobs"]["build"]["if"]


def test_a_few_pages_have_the_same_content(program: Path, tmp_path: Path) -> None:
    stage = tmp_path / "project"
    _stage(ROOT, stage)
    pages.write(stage)
    shutil.rmtree(stage / "data")

    def few(items: Any) -> Any:
        if isinstance(items, list):
            kept = [few(item) for item in items]
            return [item for item in kept if item]
        if isinstance(items, dict) and "contents" in items:
            return {**items, "contents": few(items["contents"])} if few(items["contents"]) else None
        place = items.get("href") if isinstance(items, dict) else items
        return items if place in FEW else FEW[2:3] if "*" in str(place) else None

    config = yaml.safe_load((stage / "_quarto.yml").read_text("utf-8"))
    config["project"]["render"] = FEW
    config["website"] |= {"site-url": "https://example.org/fk", "repo-url": "https://example.org/r"}
    for sidebar in config["website"]["sidebar"]:
        sidebar["contents"] = few(sidebar["contents"])
    config["website"]["navbar"]["left"] = []
    (stage / "_quarto.yml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
    assert quarto.render(program, stage, tmp_path / "log") == []
    renderer.render(stage, tmp_path / "embedded")
    for out in (stage / "_site", tmp_path / "embedded"):
        finish.finish(load_project(stage), out, cache=tmp_path / "cache")
    apart = compared(tmp_path / "embedded", stage / "_site")
    # Quarto leaves a link to a page that it does not render as it stands.
    assert {place: both for place, both in apart.items() if not place.endswith(": leads")} == {}
    assert (tmp_path / "embedded/sitemap.xml").read_bytes() == (stage / "_site/sitemap.xml").read_bytes()


@pytest.fixture(scope="module")
def by_quarto(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("quarto") / "out", renderer="quarto", project=ROOT, run=False).path


@pytest.mark.long
def test_every_page_has_the_same_content(by_quarto: Path, site: Path) -> None:
    assert compared(site, by_quarto) == {}


@pytest.fixture
def searched(chromium: Any, by_quarto: Path, site: Path) -> Iterator[list[Any]]:
    with server(by_quarto, port=0) as one, server(site, port=0) as other:
        open_pages = []
        for running in (one, other):
            threading.Thread(target=running.serve_forever, daemon=True).start()
            page = chromium.new_page()
            page.goto(f"http://127.0.0.1:{running.server_port}/report/cite.html")
            open_pages.append(page)
        yield open_pages
        for page in open_pages:
            page.close()
        for running in (one, other):
            running.shutdown()


@pytest.mark.long
@pytest.mark.browser
def test_ten_questions_have_the_same_answers(searched: list[Any]) -> None:
    by_quarto, embedded = searched
    by_quarto.locator(".aa-DetachedSearchButton, .aa-Input").first.click()
    embedded.keyboard.press("/")
    fields = by_quarto.locator(".aa-Input").last, embedded.locator("dialog.search input")
    lists = by_quarto.locator(".aa-Panel a.search-result-link"), embedded.locator("#found a")

    def first_three(links: Any) -> list[str]:
        links.first.wait_for()
        given = [str(link.get_attribute("href")) for link in links.all()]
        pages = [
            re.sub(r"^.*?(?=(report|notebooks|entities|tables|charts|index|plan)[/.])", "", each) for each in given
        ]
        return list(dict.fromkeys(re.sub(r"\?q=[^#]*|#.*", "", each) for each in pages))[:3]

    for query, answer in ASKED.items():
        found = []
        for field, links in zip(fields, lists, strict=True):
            field.fill("")
            links.first.wait_for(state="detached")
            field.fill(query)
            found.append(first_three(links))
        assert found[0] == found[1], query
        assert any(answer in place for place in found[0]), (query, found)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["typst", "docx"])
def test_a_document_keeps_every_figure(program: Path, tmp_path: Path, kind: str) -> None:
    stage = tmp_path / "project"
    _stage(ROOT, stage)
    pages.write(stage)
    command = [str(program), "render", "notebooks/07-checkpoints.ipynb", "--to", kind]
    subprocess.run(command, cwd=stage, check=True, capture_output=True, env=quarto.environment())
    notebook = next(page for page in load_project(stage).pages if page.source.name == "07-checkpoints.ipynb")
    figures = sum(str(cell.options.get("label")).startswith("fig-") for cell in notebook.cells)
    made = stage / f"_site/notebooks/07-checkpoints.{'pdf' if kind == 'typst' else kind}"
    if kind == "docx":
        shown = [name for name in zipfile.ZipFile(made).namelist() if re.fullmatch(r"word/media/.*\.svg", name)]
    else:
        shown = re.findall(rb"/Subtype ?/Form", made.read_bytes())
    assert len(shown) >= figures >= 4
