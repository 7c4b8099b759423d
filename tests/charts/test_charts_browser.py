"""Live charts on a static page, tested in a browser."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from made_charts import CHIPS, MAKERS, PRESETS, READY, RUNS

import factorykit as fk
from factorykit.charts.live import Live
from factorykit.core.vocabulary import quantity

pytestmark = pytest.mark.browser


@pytest.fixture
def page(context: Callable[..., Any], address: str) -> Any:
    """A page that records its requests and errors."""
    page = context().new_page()
    page.set_viewport_size({"width": 1000, "height": 900})
    page.asked, page.wrong = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda message: message.type in ("error", "warning") and page.wrong.append(message.text))
    yield page
    page.close()
    assert page.wrong == []
    assert [url for url in page.asked if not url.startswith((address, "data:", "blob:"))] == []


def look(page: Any, address: str, name: str) -> None:
    page.goto(f"{address}/{name}")
    page.wait_for_function("window.factorykit?.charts.length && !document.querySelector('.fk-still')")


def rows(page: Any, n: int = 0) -> list[list[float]]:
    return page.evaluate(f"factorykit.charts[{n}].rows()")


def close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300)


def positions(live: Live) -> list[dict[str, Any]]:
    """The start, every preset, and every slider at a third and at two thirds of its range."""
    moved: list[dict[str, Any]] = [{}, *map(live.preset, live.presets)]
    for made in live.controls:
        for part in (1 / 3, 2 / 3):
            low, high = made.minimum, made.maximum
            if made.doubling:
                moved.append({made.name: low * 2.0 ** round(part * math.log2(high / low))})
                continue
            value = low * (high / low) ** part if made.scale == "log" else low + part * (high - low)
            moved.append({made.name: float(f"{value:.3g}")})
    return moved


@pytest.mark.parametrize("name", MAKERS)
def test_vega_and_python_give_the_same_results(page: Any, address: str, name: str) -> None:
    live = MAKERS[name](PRESETS)
    look(page, address, f"{name}.html")
    for changes in positions(live):
        page.evaluate("async (values) => { await factorykit.charts[0].set(values) }", live.values(changes))
        found = rows(page)
        expected = live.rows(changes).rows()
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert all(close(a, b) for a, b in zip(ours, theirs, strict=True)), (changes, ours, theirs)
        for case in live.points:
            there = live.now(changes, case)
            x, y = (there[q] / quantity(q).display_scale for q in (live.x, live.outputs[0]))
            assert any(close(x, px) and close(y, py) for px, py in points(page)), (changes, case.label)


def points(page: Any) -> list[tuple[float, float]]:
    return page.evaluate("""() => {
        const { views: [view], sets: [sets] } = factorykit.charts[0];
        const single = sets.map((name) => view.data(name)).filter((rows) => rows.length === 1);
        return single.filter(([row]) => "x" in row).map(([row]) => [row.x, row.y]);
    }""")


def test_a_layout_that_does_not_divide_is_named_and_nothing_is_printed(page: Any, address: str) -> None:
    look(page, address, "step.html")
    assert page.inner_text(".fk-broken") == ""
    slider = page.locator('input[name="accelerators"]')
    slider.focus()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function("document.querySelector('.fk-broken').textContent")
    assert slider.get_attribute("aria-valuetext") == "8"
    assert (
        page.inner_text(".fk-broken")
        == "violates the rule that tensor, pipeline and context parallel divide the accelerators"
    )
    assert page.inner_text('[data-quantity="step_s"]') == "–"
    assert rows(page)[0][1] is None
    assert rows(page)[2][1] is not None


TEXTS_OF_SETTINGS = """async ([payload, settings]) => {
    const place = document.body.appendChild(document.createElement("div"));
    const chart = await factorykit.draw(place, payload, {});
    const texts = [];
    for (const values of settings) {
        await chart.set(values);
        texts.push(Object.fromEntries(
            [...place.querySelectorAll("[data-quantity]")].map((it) => [it.dataset.quantity, it.textContent])
        ));
    }
    place.remove();
    return texts;
}"""


def test_the_text_on_the_screen_equals_evaluate_for_every_explorer_and_preset(page: Any, address: str) -> None:
    look(page, address, "run.html")
    lives = {name: make(RUNS) for name, make in READY.items()}
    lives |= {"step": MAKERS["step"](CHIPS), "bring_up": fk.charts.reliability.bring_up()}
    for name, live in lives.items():
        settings = [live.values(live.preset(label)) for label in live.presets] or [live.values({})]
        texts = page.evaluate(TEXTS_OF_SETTINGS, [live.payload, settings])
        for values, shown in zip(settings, texts, strict=True):
            now = fk.evaluate(live.scenario(values), list(live.shown))
            typed = {each: text.replace("\N{MINUS SIGN}", "-") for each, text in shown.items()}
            assert typed == {each: quantity(each).text(now[each]) for each in live.shown}, name


def test_numbers_read_as_the_vocabulary_prints_them(page: Any, address: str) -> None:
    look(page, address, "run.html")
    live = MAKERS["run"](PRESETS)
    for name, value in live.now().items():
        if name in live.shown:
            assert page.inner_text(f'[data-quantity="{name}"]') == quantity(name).text(value)
    for made in live.controls:
        assert page.get_attribute(f'input[name="{made.name}"]', "aria-valuetext") == quantity(made.name).text(
            made.value
        )


def test_arrow_keys_move_a_slider_and_the_picture_follows(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html")
    box = page.locator(".fk-view svg").bounding_box()
    slider = page.get_by_label("Accelerators")
    slider.focus()
    before = rows(page)
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("(v) => factorykit.charts[0].rows()[60][1] !== v", arg=before[60][1])
    assert rows(page)[60][1] < before[60][1]
    assert page.locator(".fk-view svg").bounding_box() == box
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("(v) => factorykit.charts[0].rows()[60][1] === v", arg=before[60][1])


def test_a_preset_sets_every_input(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html")
    page.get_by_label("Preset").select_option("Small")
    page.wait_for_function("factorykit.charts[0].values.accelerators === 512")
    assert page.inner_text('[data-quantity="checkpoint_goodput"]') == quantity("checkpoint_goodput").text(
        MAKERS["checkpoint"](PRESETS).now(MAKERS["checkpoint"](PRESETS).preset("Small"))["checkpoint_goodput"]
    )


def test_a_link_holds_the_whole_state(page: Any, address: str) -> None:
    look(page, address, "all.html")
    values = {"accelerators": 23456.0, "checkpoint_write_s": 12.3456789}
    page.evaluate("async (v) => { await factorykit.charts[0].set(v) }", values)
    page.wait_for_function("location.hash.includes('23456')")
    expected, link = rows(page), page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_function("window.factorykit?.charts[0]?.values.accelerators === 23456")
    page.wait_for_function("factorykit.charts[0].rows().length > 0")
    assert rows(page) == expected


def test_a_broken_link_changes_nothing(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html#checkpoint:accelerators=many&nonsense=3;%E0%A4%A")
    assert page.evaluate("factorykit.charts[0].values.accelerators") == 16384


def test_a_link_with_a_value_out_of_bounds_is_refused_in_words(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html")
    for value in ("-5", "0", "Infinity", "1e999", "0.5"):
        link = f"#checkpoint:accelerators={value}&checkpoint_write_s=90&nonsense=3"
        page.evaluate("(link) => { location.hash = link; }", link)
        page.wait_for_function("factorykit.charts[0].values.checkpoint_write_s === 90")
        assert page.evaluate("factorykit.charts[0].values.accelerators") == 16384
        message = page.inner_text(".fk-refused")
        assert message.startswith("Not taken: Accelerators = ")
        assert f"is outside {quantity('accelerators').bounds}" in message
        assert not quantity("accelerators").holds(float(value))
        assert "there is no input nonsense" in message
        page.get_by_role("button", name="Reset").click()
        page.wait_for_function("document.querySelector('.fk-refused').textContent === ''")


def test_downloads_contain_the_drawn_rows(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV").click()
    text = waiting.value.path().read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    about, table = [line for line in lines if line[0] == "#"], [line for line in lines if line[0] != "#"]
    assert "# Settings: Accelerators 16,384; " in "".join(about)
    assert about[-1] == f"# {address}/checkpoint.html\n"
    head, *cells = csv.reader(table)
    assert head == ["checkpoint_interval_s", "checkpoint_goodput"]
    assert [[float(cell) for cell in row] for row in cells] == [pytest.approx(row, rel=1e-5) for row in rows(page)]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").click()
    svg = waiting.value.path().read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "currentColor" not in svg
    assert "Settings: Accelerators 16,384" in svg


def test_a_move_is_announced_in_one_sentence_and_the_picture_has_a_description(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html")
    assert page.inner_text(".fk-spoken") == ""
    page.locator('input[name="accelerators"]').press("ArrowRight")
    page.wait_for_function("document.querySelector('.fk-spoken').textContent")
    sentence = page.inner_text(".fk-spoken")
    assert (
        sentence
        == ", ".join(
            f"{label} {value}"
            for label, value in zip(
                page.locator(".fk-readouts .fk-name").all_inner_texts(),
                page.locator(".fk-readouts .fk-value").all_inner_texts(),
                strict=True,
            )
        )
        + "."
    )
    heard = page.locator(".fk-view").first.aria_snapshot()
    assert re.fullmatch(r'- img "Goodput rises[^"]*"', heard)


def test_the_picture_stays_in_view_on_a_phone_while_a_slider_moves(page: Any, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 700})
    look(page, address, "checkpoint.html")
    slider = page.locator('input[name="accelerators"]')
    slider.scroll_into_view_if_needed()
    slider.press("ArrowRight")
    page.wait_for_selector(".fk-moving")
    box, knob = page.locator(".fk-views").bounding_box(), slider.bounding_box()
    assert box["y"] + 200 < 700
    assert knob["y"] < box["y"]


def test_the_table_shows_the_curve(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html")
    page.get_by_text("Data as a table").click()
    page.wait_for_selector(".fk-table tbody tr")
    assert page.locator(".fk-table tbody tr").count() == 121
    assert page.locator(".fk-table thead th").all_inner_texts() == [
        "Checkpoint interval [min]",
        "Goodput under failures [%]",
    ]


def test_title_legend_and_labels_stay_in_their_place_while_a_phone_is_turned(page: Any, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    look(page, address, "wide.html")
    for width, lines in ((390, 2), (1280, 1), (820, 1), (390, 2)):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            """(wanted) => {
            const place = document.querySelector(".fk-view").getBoundingClientRect();
            const texts = [...document.querySelectorAll(".fk-view svg text")].map((it) => it.getBoundingClientRect());
            const lines = document.querySelectorAll(".fk-view .role-title-text tspan").length || 1;
            const inside = texts.every(({ left, right }) => left >= place.left - 1 && right <= place.right + 1);
            const filled = Math.abs(document.querySelector(".fk-view svg").clientWidth - place.width) < 2;
            return texts.length && lines === wanted && inside && filled;
        }""",
            arg=lines,
            timeout=5_000,
        )
        assert page.locator(".fk-view .role-legend-label text").count() == 8


def test_a_phone_shows_the_whole_chart(page: Any, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    look(page, address, "all.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(
        "[...document.querySelectorAll('.fk-view svg')].every(s => s.getBoundingClientRect().right <= 391)"
    )


def test_text_follows_a_page_that_turns_dark(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html")
    color = "getComputedStyle(document.querySelector('.fk-view svg text')).fill"
    light = page.evaluate(color)
    page.evaluate("document.body.classList.add('dark')")
    assert (light, page.evaluate(color)) == ("rgb(27, 30, 36)", "rgb(228, 230, 234)")


def test_zoom_is_kept_while_a_slider_moves(page: Any, address: str) -> None:
    look(page, address, "run.html")
    svg = page.locator(".fk-view svg").first.bounding_box()
    page.mouse.move(svg["x"] + svg["width"] / 2, svg["y"] + svg["height"] / 2)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    page.wait_for_function("factorykit.charts[0].views[0].scale('x').domain()[0] > 260")
    zoomed = page.evaluate("factorykit.charts[0].views[0].scale('x').domain()")
    page.evaluate("async () => { await factorykit.charts[0].set({tokens: 5e12}) }")
    assert page.evaluate("factorykit.charts[0].views[0].scale('x').domain()") == zoomed


def test_a_chart_that_cannot_be_drawn_shows_an_error(chromium: Any, address: str) -> None:
    page = chromium.new_page()
    page.goto(f"{address}/broken.html")
    assert "could not be drawn" in page.inner_text('[role="alert"]')
    page.close()


def test_a_screen_reader_finds_no_obstacle(page: Any, address: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    look(page, address, "all.html")
    found = axe.run(page).response["violations"]
    serious = [rule for rule in found if rule["impact"] in ("serious", "critical")]
    assert [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in serious] == []


def test_a_pointer_reads_the_curve(page: Any, address: str) -> None:
    look(page, address, "checkpoint.html")
    box = page.locator(".fk-view svg").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"])
    page.wait_for_selector(".fk-tip:visible")
    first, second = page.locator(".fk-tip tr").all_inner_texts()
    assert first.startswith("Checkpoint interval [min]")
    assert float(second.removeprefix("Goodput under failures [%]")) > 50
    page.mouse.move(0, 0)
    page.wait_for_selector(".fk-tip", state="hidden")


DIMMED = "(n) => [...document.querySelectorAll('.fk-view')][n].querySelectorAll('.fk-dim').length"


def test_a_selected_series_stands_out_by_pointer_and_by_key(page: Any, address: str) -> None:
    look(page, address, "months.html")
    series = page.get_by_role("group", name="Highlight a series").first
    series.get_by_role("button", name="largest").hover()
    assert page.evaluate(DIMMED, 0) == 2  # "all", in operation and planned
    page.mouse.move(0, 0)
    assert page.evaluate(DIMMED, 0) == 0
    series.get_by_role("button", name="all").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="CSV").first.focus()
    assert page.evaluate(DIMMED, 0) == 2
    assert series.get_by_role("button", pressed=True).get_attribute("aria-label") == "all"
    assert page.evaluate(DIMMED, 1) == 0  # no series of that name
    page.locator(".fk-view").first.locator(".mark-line path").first.dispatch_event("click")
    assert series.get_by_role("button", pressed=True).count() == 2
    assert page.evaluate(DIMMED, 0) == 0


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_chart_over_time_plays_unless_motion_is_unwanted(page: Any, address: str, motion: str) -> None:
    page.emulate_media(reduced_motion=motion)
    look(page, address, "months.html")
    slider, button = page.get_by_label("Show Power until"), page.get_by_role("button", name="Play")
    right = "document.querySelector('.fk-play rect').getAttribute('width')"
    clip = "getComputedStyle(document.querySelector('.fk-view .mark-line')).clipPath"
    assert page.evaluate(clip) == "none"
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "Jan 2021"
    assert 0 < float(page.evaluate(right)) < 0.25 * page.locator(".fk-view svg").first.bounding_box()["width"]
    assert page.evaluate(clip).startswith("url(")
    assert button.is_visible() == (motion == "no-preference")
    if button.is_visible():
        button.click()
        page.wait_for_function("document.querySelector('.fk-play output').textContent === 'Jan 2027'")
        assert page.evaluate(clip) == "none"
        assert button.text_content() == "Play"


def test_every_legend_can_be_selected_and_every_time_axis_plays(page: Any, address: str) -> None:
    page.goto(f"{address}/all.html")
    page.wait_for_function("window.factorykit?.charts.length === document.querySelectorAll('.factorykit-chart').length")
    found = page.evaluate("""factorykit.charts.flatMap(({ root, payload }) =>
        [...root.querySelectorAll(".fk-panel")].map((panel, n) => {
            const count = (what) => panel.querySelectorAll(what).length, labels = count(".role-legend-label text");
            const time = JSON.stringify(payload.specs[n]).includes('"temporal"');
            return [labels > 1 ? labels : 0, count(".fk-legend button"), time, count(".fk-play") === 1];
        }))""")
    assert [legend for legend, *_ in found] == [buttons for _, buttons, *_ in found]
    assert [time for *_, time, _ in found] == [plays for *_, plays in found]
    assert {True, False} == {plays for *_, plays in found}
    assert max(legend for legend, *_ in found) == 8
