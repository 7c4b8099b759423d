"""Builds publish a folder in one step, replace only folders of their own, and use Quarto where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from made_site import Made

from factorykit.core import atomic_io
from factorykit.core.errors import FactorykitWarning, SiteError
from factorykit.core.vocabulary import vocabulary
from factorykit.formulas import catalogue
from factorykit.site import build, build_cache, finish, quarto
from factorykit.site.build import MARKER, _stage, choose_renderer, publish, restore
from factorykit.site.pages import methods
from factorykit.site.pages.vocabulary import vocabulary_page
from factorykit.site.sources import load_project

ROOT = Path(__file__).parent.parent.parent


def folder(path: Path, text: str) -> Path:
    """Return a folder as a build publishes it."""
    path.mkdir()
    (path / "index.html").write_text(text)
    (path / MARKER).write_text("index.html\n")
    return path


@pytest.fixture
def one_page_from_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print one page from code instead of a hundred, which the project's own site is rendered with."""

    def write(stage: Path) -> None:
        (stage / "report" / "printed.qmd").write_text("---\ntitle: Printed\n---\nText.\n", "utf-8")

    monkeypatch.setattr("factorykit.site.pages.write", write)


@pytest.mark.usefixtures("one_page_from_code")
def test_a_build_renders_checks_and_publishes_and_is_not_repeated(made: Made, tmp_path: Path):
    done = build(tmp_path / "out", renderer="embedded", project=made.root)
    assert done.renderer == "embedded"
    assert "as asked" in str(done)
    assert (tmp_path / "out/report/printed.html").is_file()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("out.")]
    again = build(tmp_path / "out", renderer="embedded", project=made.root)
    assert (again.rendered, again.pages) == (False, done.pages)
    made.write("index.qmd", "---\ntitle: Start\n---\nChanged.\n")
    assert build(tmp_path / "out", renderer="embedded", project=made.root).rendered
    assert "Changed." in (tmp_path / "out/index.html").read_text()


def test_a_published_folder_that_changed_is_built_again(tmp_path: Path):
    out = folder(tmp_path / "out", "made")
    build_cache.keep(tmp_path / "stamp.json", "of this", out, pages=1)
    assert build_cache.kept(tmp_path / "stamp.json", "of this", out) == 1
    assert build_cache.kept(tmp_path / "stamp.json", "of that", out) is None
    (out / "index.html").write_text("spoilt")
    assert build_cache.kept(tmp_path / "stamp.json", "of this", out) is None


@pytest.mark.usefixtures("one_page_from_code")
def test_a_failing_build_leaves_the_previous_site(made: Made, tmp_path: Path):
    out = folder(tmp_path / "out", "before")
    made.write("index.qmd", "---\ntitle: Start\n---\n[x](none.qmd)\n")
    with pytest.raises(SiteError, match=r"index\.qmd, line 4: dead link none\.html"):
        build(out, renderer="embedded", project=made.root)
    assert (out / "index.html").read_text() == "before"


@pytest.mark.usefixtures("one_page_from_code")
def test_a_build_waits_while_its_tables_are_built(made: Made, tmp_path: Path):
    made.write("data/beside.txt", "no tables")
    made.write("index.qmd", "---\ntitle: Start\n---\n[x](none.qmd)\n")
    order, begun = [], threading.Event()

    def tables() -> None:
        with atomic_io.locked(made.root / "data"):
            begun.set()
            time.sleep(0.3)
            order.append("tables")

    thread = threading.Thread(target=tables)
    thread.start()
    begun.wait()
    with pytest.warns(FactorykitWarning, match="data is in use by"), pytest.raises(SiteError):
        build(tmp_path / "out", renderer="embedded", project=made.root, run=False)
    order.append("site")
    thread.join()
    assert order == ["tables", "site"]


@pytest.mark.parametrize("at_once", [True, False])
def test_an_interrupted_publication_leaves_the_previous_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
):
    new, out = folder(tmp_path / "new", "after"), folder(tmp_path / "out", "before")
    if not at_once:
        monkeypatch.setattr(sys.modules[publish.__module__], "_exchange", lambda *_: False)
    real = Path.rename

    def stopped(self: Path, target: Path) -> Path:
        if ".new-" in self.name:
            raise KeyboardInterrupt
        return real(self, target)

    if not at_once:
        monkeypatch.setattr(Path, "rename", stopped)
        with pytest.raises(KeyboardInterrupt):
            publish(new, out)
        assert (out / "index.html").read_text() == "before"
        monkeypatch.setattr(Path, "rename", real)
    publish(new, out)
    assert (out / "index.html").read_text() == "after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "out"]


def test_a_build_killed_between_two_renames_is_repaired_by_the_next(tmp_path: Path):
    folder(tmp_path / "out.old", "before")
    restore(tmp_path / "out")
    assert (tmp_path / "out/index.html").read_text() == "before"


@pytest.mark.parametrize("name", ["thesis.txt", "index.html", ".git"])
def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path, name: str):
    new = folder(tmp_path / "new", "after")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / name).write_text("years of work")
    with pytest.raises(SiteError, match=rf"holds files that no build put there \({name}\)"):
        publish(new, tmp_path / "home")
    assert (tmp_path / "home" / name).read_text() == "years of work"


def test_a_published_folder_with_an_added_file_is_not_replaced(tmp_path: Path):
    new, out = folder(tmp_path / "new", "after"), folder(tmp_path / "out", "before")
    publish(new, out)
    (out / "CNAME").write_text("example.org")
    with pytest.raises(SiteError, match=r"\(CNAME\)"):
        publish(new, out)
    assert (out / "CNAME").is_file()


def test_a_folder_named_old_is_not_taken_for_an_interrupted_build(tmp_path: Path):
    (tmp_path / "out.old").mkdir()
    restore(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unknown_renderer_is_refused():
    with pytest.raises(SiteError, match="unknown renderer 'latex'; expected auto, quarto, embedded"):
        build(renderer="latex")


# Quarto: a stand-in that copies pages as Quarto would have written them


@pytest.fixture
def no_quarto(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("QUARTO_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing" / "python"))


def fake_quarto(file: Path, version: str = "1.7.34", body: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"#!{sys.executable}\n"
        f"import json, pathlib, sys\nif sys.argv[1] == '--version':\n    print('{version}')\n    raise SystemExit\n"
        "root = pathlib.Path(sys.argv[2])\nlog = pathlib.Path(sys.argv[sys.argv.index('--log') + 1])\n"
        "log.write_text('')\n"
        "for page in [str(file.relative_to(root).with_suffix('')) for file in root.rglob('[!_]*.qmd')]:\n"
        "    file = root / '_site' / (page + '.html')\n    file.parent.mkdir(parents=True, exist_ok=True)\n"
        f"    file.write_text('<html><body><main>ok</main></body></html>')\n{body}\n"
    )
    file.chmod(0o755)
    return file


@pytest.mark.usefixtures("no_quarto")
def test_quarto_is_found_by_variable_and_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert quarto.find() == (None, "no quarto in QUARTO_PATH or PATH")
    monkeypatch.undo()
    program = fake_quarto(tmp_path / "bin" / "quarto")
    monkeypatch.setenv("QUARTO_PATH", str(program))
    assert quarto.find() == (program, "Quarto 1.7.34 from QUARTO_PATH")
    monkeypatch.setenv("QUARTO_PATH", str(tmp_path))
    assert quarto.find()[0] == program
    monkeypatch.setenv("QUARTO_PATH", str(fake_quarto(tmp_path / "old" / "quarto", "1.2.0")))
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert quarto.find() == (program, "Quarto 1.7.34 from PATH")


@pytest.mark.usefixtures("one_page_from_code")
def test_quarto_renders_where_it_is_found(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    outside = (
        "(root / '_site/report/other.html').write_text('<html><head><script src=\"https://cdnjs.cloudflare.com/r.js\">"
        "</script></head><body><main>ok</main></body></html>')"
    )
    monkeypatch.setenv("QUARTO_PATH", str(fake_quarto(tmp_path / "bin" / "quarto", body=outside)))
    done = build(tmp_path / "out", project=made.root)
    assert (done.renderer, done.reason) == ("quarto", "Quarto 1.7.34 from QUARTO_PATH")
    assert "cdnjs" not in (tmp_path / "out/report/other.html").read_text()


@pytest.mark.usefixtures("one_page_from_code")
def test_an_error_that_quarto_only_logs_fails_the_build(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    record = json.dumps({"level": 20, "levelName": "INFO", "msg": "Unable to resolve crossref @fig-x"})
    program = fake_quarto(tmp_path / "bin" / "quarto", body=f"log.write_text({record!r})")
    monkeypatch.setenv("QUARTO_PATH", str(program))
    with pytest.raises(SiteError, match="Unable to resolve crossref @fig-x"):
        build(tmp_path / "out", project=made.root)


def test_a_citation_message_over_two_records_is_read_as_one():
    records = [{"levelName": "INFO", "msg": "citeproc: citation nobody"}, {"levelName": "INFO", "msg": "not found"}]
    log = "\n".join(json.dumps({"level": 20, **record}) for record in records)
    assert quarto.complaints(log) == ["quarto: citeproc: citation nobody not found"]


@pytest.mark.usefixtures("no_quarto")
def test_without_quarto_nothing_is_installed():
    assert choose_renderer("auto") == (None, "the embedded renderer (no quarto in QUARTO_PATH or PATH)")
    with pytest.raises(SiteError, match="run `make quarto`, set QUARTO_PATH"):
        choose_renderer("quarto")


def test_a_program_that_hangs_ends_with_all_it_started(tmp_path: Path):
    script = f"sleep 60 & echo $! > {tmp_path}/child; wait"
    with pytest.raises(subprocess.TimeoutExpired):
        quarto._run(["sh", "-c", script], 1)
    command = Path("/proc", (tmp_path / "child").read_text().strip(), "cmdline")
    for _ in range(100):  # a killed process may take a moment to end on a busy machine
        if not command.exists() or not command.read_bytes():
            return
        time.sleep(0.1)
    pytest.fail("the child of the program still runs")


# Pages from code


def test_every_formula_and_quantity_has_its_place(tmp_path: Path):
    printed, words = "\n".join(methods.methods_pages().values()), vocabulary_page()
    for name, formula in catalogue().items():
        assert f"{{#{name.replace('_', '-')}}}" in printed
        assert f"{{#eq-{name.replace('_', '-')}}}" in printed
        assert methods.equations(formula)[-1].split(" = ")[0]
    assert words.count("{.fk-name}") == len(vocabulary())
    assert "number of ranks that one layer is split over [given; 1 by default; used by" in words


def test_a_build_takes_the_bibliography_along(tmp_path: Path):
    _stage(ROOT, tmp_path / "stage")
    described = load_project(tmp_path / "stage").config
    assert (tmp_path / "stage" / described["bibliography"]).is_file()


def test_a_formula_is_printed_with_the_works_it_cites_and_without_any_where_it_cites_none():
    checkpoint, cost = (methods.methods_pages()[f"methods/{topic}"] for topic in ("checkpoint", "cost"))
    assert "Source: @daly2006: equation 20. @bougeret2011: proposition 1: downtime. Used by:" in checkpoint
    assert "Padé" in checkpoint
    assert "[@corless1996], within 0.13 %" in checkpoint
    assert cost.partition("{#failure-cost-usd}")[2].partition("\n## ")[0].count("Source:") == 0


# Frames


def test_a_polars_frame_becomes_a_plain_table(made: Made):
    import polars as pl
    from made_site import code, shown

    frame = pl.DataFrame({"name": ["a<b", None], "tokens": [1.5, 2.0]})
    made.cells(code("frame", shown(text_html=frame._repr_html_())))
    finish.finish(load_project(made.root), made.root / "_site")
    page = (made.root / "_site/notebooks/01-made.html").read_text()
    assert '<td>a&lt;b</td><td class="fk-right">1.5</td>' in page
    assert '<td class="fk-null">–</td>' in page
    assert "<style>" not in page
    assert '<a href="01-made.ipynb" download="">' in page
    assert (made.root / "_site/notebooks/01-made.ipynb").is_file()


# Quarto's pages


@pytest.mark.parametrize("grouped", ["{}", "<mrow>{}</mrow>"], ids=["pandoc 3.8", "pandoc 3.6"])
def test_numbers_tables_and_navigation_of_a_quarto_page_are_set_as_elsewhere(made: Made, grouped: str):
    made.raw("")
    file = made.root / "_site/report/page.html"
    marks = '<nav id="TOC"><ul><li><a href="#a">A</a><ul><li><a href="#b">B</a></li></ul></li></ul></nav>'
    marks += '<section class="quarto-appendix-contents" role="doc-bibliography" id="quarto-bibliography"></section>'
    links = '<a class="nav-link active" href="../a.html" aria-current="page">A</a>'
    links += '<a class="nav-link" href="page.html">B</a>'
    table = '<table class="caption-top table"><tbody><tr><td>1</td></tr></tbody></table>'
    sign = '<mo stretchy="false" form="prefix">(</mo><mn>7</mn><mo stretchy="false" form="postfix">)</mo>'
    equation = (
        '<span id="eq-a"><math display="block"><semantics><mrow><mi>a</mi><mspace width="2.0em"></mspace>'
        f"{grouped.format(sign)}</mrow>"
        r'<annotation encoding="application/x-tex"> a  \qquad(7)</annotation></semantics></math></span>'
    )
    caption = '<figcaption class="x">\nFigure&nbsp;1: What it is.\n</figcaption>'
    file.write_text("\n".join([links, marks, f"<main>{table}</main>", equation, caption]))
    for _ in range(2):
        finish.finish(load_project(made.root), made.root / "_site")
        page = file.read_text()
        assert '<a class="nav-link" href="../a.html">A</a><a class="nav-link active" href="page.html" aria-cur' in page
        assert page.count('href="#quarto-bibliography"') == 1
        assert page.count(f'<div class="fk-scroll">{table}</div>') == page.count("fk-scroll") == 1
        assert '<span id="eq-a" class="fk-equation"><math' in page
        assert '</math><span class="fk-eqno">(7)</span></span>' in page
        assert "qquad" not in page
        assert page.count('<span class="fk-number">Figure&nbsp;1:</span> What') == 1
        assert 'B</a></li></ul></li><li><a href="#quarto-bibliography" class="nav-link"' in page


def test_finishing_pages_twice_equals_finishing_them_once(made: Made):
    import polars as pl
    from made_site import code, shown

    import factorykit as fk

    chart = fk.charts.cost.build_or_rent({"": fk.preset("llama_3_1_405b")})._repr_mimebundle_()["text/html"]
    frame = pl.DataFrame({"name": ["a<b", None], "tokens": [1.5, 2.0]})._repr_html_()
    made.cells(code("#| label: fig-a\n#| fig-cap: Costs", shown(text_html=chart)), code("x", shown(text_html=frame)))
    project, out = load_project(made.root), made.root / "_site"
    finish.finish(project, out, cache=made.root / ".cache")
    once = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    assert out / "charts/made-a.html" in once
    finish.finish(project, out, cache=made.root / ".cache")
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == once


def test_no_page_contains_the_local_path_of_a_notebook(made: Made):
    made.raw('<div data-notebook="/home/me/project/notebooks/01-made.ipynb" class="cell">Text</div>')
    finish.finish(load_project(made.root), made.root / "_site")
    assert '<div class="cell">Text</div>' in (made.root / "_site/report/page.html").read_text()


def test_both_renderers_search_the_same_places(made: Made):
    text = "<p>with <math><annotation>a</annotation></math> 5 &lt; 6.</p>"
    made.raw(f"<main><h1 class='title'>Page</h1><section id='x'><h2>High</h2>{text}</section></main>")
    library = made.write("_site/site_libs/quarto-search/fuse.min.js", "Fuse")
    finish.finish(load_project(made.root), made.root / "_site")
    script = (made.root / "_site/site_libs/search.js").read_text()
    index = made.write("_site/search.json", "[]")
    for _ in range(2):
        finish.finish(load_project(made.root), made.root / "_site")
        row = next(row for row in json.loads(index.read_text()) if row["section"])
        assert (row["href"], row["section"], row["text"]) == ("report/page.html#x", "High", "with 5 &lt; 6.")
        assert '["report/page.html#x", "Page", "High", "with 5 < 6."]' in script
        assert "window.siteFind" in library.read_text()
