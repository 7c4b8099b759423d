"""The real site in Chromium: no requests to other hosts; mouse, keyboard, phone and screen reader work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from factorykit.formulas import catalogue, topic
from factorykit.site.pages.markdown import dashed
from factorykit.site.serve import server

ROOT = Path(__file__).parent.parent.parent
pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

PAGES = (
    "index.html",
    "plan.html",
    "serve.html",
    *(f"notebooks/{file.stem}.html" for file in sorted((ROOT / "notebooks").glob("*.ipynb"))),
    "report/methods.html",
    *list(dict.fromkeys(f"report/methods/{dashed(topic(formula))}.html" for formula in catalogue().values()))[::6],
    "report/vocabulary.html",
    "report/data.html",
    "report/data/equipment.html",
    "report/audit.html",
    "report/python/command-line.html",
    "report/decisions.html",
    "report/cite.html",
    "charts/index.html",
    "charts/training-time-and-cost-run.html",
    "entities/clusters/meta_24k.html",
    "tables/clusters.html",
)
KINDS = (
    "index.html",
    "plan.html",
    "notebooks/07-checkpoints.html",
    "notebooks/20-audit.html",
    "report/methods/checkpoint.html",
    "report/vocabulary.html",
    "report/data.html",
    "report/data/equipment.html",
    "report/decisions.html",
    "charts/checkpoints-goodput.html",
    "entities/clusters/meta_24k.html",
    "tables/clusters.html",
)
"""One page of each kind."""
FRAME = "charts/checkpoints-goodput.embed.html"
INTRUDE = """async () => {
    const box = document.body.appendChild(document.createElement("div")), found = {};
    box.innerHTML = "<img src=x onerror='window.ran = true'><svg onload='window.ran = true'></svg>";
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    box.append(script);
    await new Promise((done) => setTimeout(done, 300));
    found.markup = Boolean(window.ran);
    const named = (error) => error.name;
    const made = async () => new Function("return 1")();
    found.text = await new Promise((done) => setTimeout(() => made().then(done, (error) => done(named(error)))));
    found.host = await fetch("https://other.example/").then(() => "asked", named);
    const worker = new Worker(URL.createObjectURL(new Blob(["postMessage('ran')"])));
    found.worker = await new Promise((done) => {
        worker.onmessage = () => done("ran");
        worker.onerror = () => done("error");
    });
    return found;
}"""


def colour_of(page: Any, query: str, name: str = "backgroundColor") -> str:
    return page.eval_on_selector(query, f"element => getComputedStyle(element).{name}")


@pytest.fixture(scope="module")
def phone(chromium: Any, address: str) -> Iterator[tuple[Any, list[str]]]:
    """One page of a phone's width for all visits, with its errors and its requests to other hosts."""
    page = chromium.new_context(viewport={"width": 390, "height": 844}).new_page()
    wrong: list[str] = []
    ours = (address, "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(ours) else wrong.append(request.url))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page, wrong
    page.context.close()


@pytest.mark.parametrize("path", PAGES)
def test_every_page_fits_a_phone_and_contacts_no_other_host(phone: tuple[Any, list[str]], address: str, path: str):
    page, wrong = phone
    wrong.clear()
    page.goto(f"{address}/{path}", wait_until="load")
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("h1").count() == 1
    assert not wrong


MOVED = """() => new Promise((done) => {
    let moved = 0;
    const add = (list) => list.getEntries().forEach(({ value }) => { moved += value; });
    new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(moved), 200);
})"""


@pytest.mark.parametrize("path", ["index.html", "charts/checkpoints-goodput.html"])
def test_little_moves_while_a_page_is_read_on_a_phone(visit: Callable[..., Any], path: str):
    """Layout shift is at most 0.05, Google's "good" is 0.1; the chart takes the place of its picture."""
    page = visit(path, width=390, height=844)
    place = "document.querySelector('.factorykit-chart').getBoundingClientRect().top"
    while page.evaluate(place) > 300:
        page.mouse.wheel(0, 800)
        page.wait_for_timeout(50)
    page.wait_for_function("document.querySelector('.fk-view svg') && !document.querySelector('.fk-still')")
    page.wait_for_timeout(300)
    assert page.evaluate(MOVED) <= 0.05


def test_no_page_scrolls_sideways_at_320_pixels(visit: Callable[..., Any], address: str):
    page = visit("index.html", width=320, height=700)
    wide = {}
    for path in (*KINDS, "notebooks/01-clusters.html", "report/methods/memory.html", "report/python/own-models.html"):
        page.goto(f"{address}/{path}", wait_until="load")
        wide[path] = page.evaluate("document.documentElement.scrollWidth")
    assert {path: width for path, width in wide.items() if width > 320} == {}


@pytest.mark.parametrize(
    ("path", "scheme"), [*((path, "light") for path in KINDS), *((path, "dark") for path in KINDS[:2])]
)
def test_axe_finds_nothing_serious(visit: Callable[..., Any], path: str, scheme: str):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = visit(path, color_scheme=scheme)
    page.wait_for_load_state("networkidle")
    # The rows of a long list are alike, and reading the contrast of all takes most of the time.
    first = {"exclude": [["tr:nth-child(n+12)"], ["dl > :nth-child(n+25)"], ["section > section:nth-of-type(n+6)"]]}
    found = axe.Axe().run(page, context=first, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [
        (rule["id"], [node["html"][:160] for node in rule["nodes"]][:4])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert not serious


def test_the_theme_follows_the_system_then_the_reader(visit: Callable[..., Any]):
    page = visit(color_scheme="dark")
    assert page.get_attribute("html", "data-theme") == "dark"
    dark = colour_of(page, "body")
    page.evaluate("window.addEventListener('factorykit:theme', event => { window.chosen = event.detail.theme; })")
    page.get_by_role("button", name="Dark mode").click()
    assert page.get_attribute("html", "data-theme") == "light"
    assert page.evaluate("window.chosen") == "light"
    assert colour_of(page, "body") != dark
    page.goto(page.url.replace("index.html", "report/methods.html"))
    assert page.get_attribute("html", "data-theme") == "light"


def test_search_finds_a_formula_by_keyboard(visit: Callable[..., Any]):
    page = visit()
    page.keyboard.press("/")
    page.get_by_label("Search the site").fill("exact optimum")
    page.wait_for_selector("#found li")
    page.keyboard.press("ArrowDown")
    assert page.locator('#found li[aria-selected="true"]').count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url("**/report/methods/checkpoint.html#checkpoint-interval-optimal-s")


def test_search_works_where_pages_are_opened_as_files(visit: Callable[..., Any], site: Path):
    page = visit((site / "report" / "data.html").as_uri())
    page.get_by_role("button", name="Search").click()
    page.get_by_label("Search the site").fill("checkpoint_write_s")
    page.wait_for_selector("#found li")
    assert "../" in page.locator("#found a").first.get_attribute("href")
    page.keyboard.press("Escape")
    assert not page.locator("dialog.search").is_visible()


def test_the_reader_gets_from_page_to_page(visit: Callable[..., Any]):
    page = visit()
    page.get_by_role("link", name="Every 4 minutes, not every 30").first.click()
    assert page.locator('.side a[aria-current="page"]').inner_text() == "Checkpoints"
    assert page.locator("h1").inner_text() == "How often should a job save?"
    page.locator("nav.toc a").last.click()
    following = page.get_by_role("link", name="Next").inner_text().split("\n")[-1]
    page.get_by_role("link", name="Next").click()
    assert page.locator('.side a[aria-current="page"]').inner_text() == following == "Tiers and spares"
    assert page.locator("h1").inner_text() == "Where should a job save, and how many spares does it need?"


def test_the_current_entry_of_a_long_menu_is_visible(visit: Callable[..., Any]):
    page = visit("notebooks/17-uncertainty.html", width=1280, height=600)
    box = page.locator(".side a[aria-current]").bounding_box()
    assert 0 < box["y"] < 600 - box["height"]
    assert page.evaluate("scrollY") == 0


def test_the_vocabulary_folds_and_a_link_opens_the_fold(visit: Callable[..., Any]):
    page = visit("report/vocabulary.html", width=390, height=844)
    assert page.evaluate("document.documentElement.scrollHeight") < 12_000
    page.goto(f"{page.url}#pue")
    page.wait_for_function("(y => 0 < y && y < innerHeight)(document.getElementById('pue').getBoundingClientRect().y)")


def test_the_landing_page_is_short_on_a_phone_and_loads_its_chart_when_it_is_near(visit: Callable[..., Any]):
    page = visit("index.html", width=390, height=844)
    assert page.evaluate("document.documentElement.scrollHeight") <= 9 * 844
    assert page.evaluate("!window.factorykit")
    page.locator(".factorykit-chart").first.scroll_into_view_if_needed()
    page.wait_for_selector(".factorykit-chart .fk-view svg")


def test_the_menu_opens_on_a_phone(visit: Callable[..., Any]):
    page = visit("report/methods.html", width=390, height=844)
    link = page.locator(".side").get_by_role("link", name="Vocabulary")
    assert not link.is_visible()
    page.get_by_role("button", name="Menu").click()
    link.click()
    assert page.locator("h1").inner_text() == "Vocabulary"
    page.locator("footer").get_by_role("link", name="About").click()
    assert page.locator("h1").inner_text() == "How to cite"


def test_tabs_move_by_arrow_key(visit: Callable[..., Any]):
    page = visit("report/cite.html")
    page.get_by_role("tab", name="BibTeX").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Text").get_attribute("aria-selected") == "true"
    assert page.get_by_role("tabpanel", name="Text").is_visible()
    assert not page.get_by_role("tabpanel", name="BibTeX").is_visible()


def test_equations_are_set_and_the_skip_link_leads_to_the_text(visit: Callable[..., Any]):
    page = visit("report/methods/checkpoint.html")
    height = page.eval_on_selector(
        "#checkpoint-goodput math[display=block]", "math => math.getBoundingClientRect().height"
    )
    assert height > 30
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the text"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_code_and_checks_are_behind_one_control_and_a_tick_shows_its_check(visit: Callable[..., Any]):
    page = visit("notebooks/07-checkpoints.html")
    folds = page.locator("details.code-fold")
    assert not any(fold.is_visible() for fold in folds.all())
    page.locator(".fk-how a").first.click()
    assert [fold.is_visible() for fold in folds.all()].count(True) == 1
    page.get_by_role("button", name="Code and checks").click()
    assert all(fold.is_visible() for fold in folds.all())


def test_a_chart_draws_and_follows_the_theme(visit: Callable[..., Any]):
    page = visit("notebooks/07-checkpoints.html", color_scheme="light")
    page.wait_for_selector("main .factorykit-chart svg, main .factorykit-chart canvas", timeout=5000)
    ink = colour_of(page, ".factorykit-chart", "color")
    page.get_by_role("button", name="Dark mode").click()
    assert colour_of(page, ".factorykit-chart", "color") != ink


def test_other_sites_can_frame_a_chart_and_nothing_else(chromium: Any, address: str, tmp_path: Path):
    stated = '<meta http-equiv="Content-Security-Policy" content="frame-src *">'
    frames = "".join(f"<iframe src='{address}/{path}'></iframe>" for path in (FRAME, "index.html"))
    (tmp_path / "index.html").write_text(f"<head>{stated}</head>{frames}", encoding="utf-8")
    page = chromium.new_page()
    with server(tmp_path, port=0) as other:
        thread = threading.Thread(target=other.serve_forever, daemon=True)
        thread.start()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        shown, refused = (page.frame_locator("iframe").nth(n) for n in (0, 1))
        shown.locator(".fk-view svg").first.wait_for()
        assert shown.locator("input[type=range]").count()
        assert refused.locator("main").count() == 0
        page.close()
        other.shutdown()
        thread.join()


def test_no_script_that_is_put_into_a_page_runs(chromium: Any, address: str):
    """The second line, for where the first is forgotten: markup, code in text, another host, a worker of text."""
    page = chromium.new_page()
    page.goto(f"{address}/index.html")
    ran = page.evaluate(INTRUDE)
    assert ran == {"markup": False, "text": "EvalError", "host": "TypeError", "worker": "error"}
    page.close()


def test_the_first_slider_is_within_ten_tabs(visit: Callable[..., Any]):
    page = visit("notebooks/07-checkpoints.html")
    page.wait_for_selector(".fk-control input")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the chart"
    page.keyboard.press("Enter")
    for _ in range(7):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "range":
            return
    pytest.fail("no slider within ten tabs")


def test_a_page_prints_without_its_frame(visit: Callable[..., Any]):
    page = visit("report/methods.html", color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator(".top").is_visible()
    assert colour_of(page, "body") == "rgb(255, 255, 255)"
