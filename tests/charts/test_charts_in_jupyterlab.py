"""An explorer and a stored chart, opened in a real JupyterLab."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
pytest.importorskip("jupyterlab", reason="JupyterLab is absent; no notebook was opened")
from benchmarks.slider.lab import jupyterlab, run_all, write

pytestmark = pytest.mark.browser

CELLS = [
    """import factorykit as fk
live = fk.charts.checkpoint.goodput_by_interval({"A": {"accelerators": 16384.0}, "B": {"accelerators": 512.0}})
explorer = fk.widgets.explore(live)
explorer""",
    """from factorykit.widgets import LiveChart
chart = LiveChart(fk.charts.checkpoint.goodput_by_interval())
explorer.sliders["accelerators"].observe(lambda change: chart.set(accelerators=change["new"]), "value")
chart""",
]

WATCH = """() => {
    const svg = document.querySelector('.fk-view svg'), line = () => svg.querySelector('[class*="mark-line"] path');
    const top = () => document.querySelectorAll('.jp-CodeCell')[1].getBoundingClientRect().top;
    window.seen = { blank: 0, jump: 0, moves: 0, same: true };
    let last = line().getAttribute('d'), at = top();
    const look = () => {
        const now = document.querySelector('.fk-view svg');
        if (now !== svg) seen.same = false;
        if (!now || !line()?.getAttribute('d')) seen.blank++;
        else if (line().getAttribute('d') !== last) { seen.moves++; last = line().getAttribute('d'); }
        seen.jump = Math.max(seen.jump, Math.abs(top() - at));
        requestAnimationFrame(look);
    };
    look();
}"""


@pytest.fixture(scope="module")
def lab(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str, Path]]:
    folder = tmp_path_factory.mktemp("lab")
    write(folder, "explorer.ipynb", CELLS)
    with jupyterlab(folder) as address:
        page = chromium.new_page(viewport={"width": 1200, "height": 1000})
        page.outside = []
        page.on(
            "request",
            lambda r: r.url.startswith((address, "data:", "blob:", "about:")) or page.outside.append(r.url),
        )
        yield page, address, folder
        page.close()


def test_a_slider_moves_the_picture_in_place(lab: tuple[Any, str, Path]) -> None:
    page, address, _ = lab
    run_all(page, address, "explorer.ipynb")
    page.wait_for_function("document.querySelectorAll('.fk-view svg [class*=\"mark-line\"] path').length === 2")
    slider = page.get_by_label("Accelerators", exact=True).first
    slider.focus()
    page.wait_for_timeout(500)
    page.evaluate(WATCH)
    fed = "document.querySelectorAll('.fk-view svg')[1].innerHTML"
    before = page.evaluate(fed)
    for _ in range(8):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(60)
    page.wait_for_function("window.seen.moves >= 4")
    page.wait_for_function(f"(before) => {fed} !== before", arg=before)
    seen = page.evaluate("window.seen")
    assert seen["same"]
    assert seen["blank"] == 0
    assert seen["jump"] == 0
    assert slider.get_attribute("aria-valuetext") != "16,384"


def test_preset_and_reset_reach_the_chart(lab: tuple[Any, str, Path]) -> None:
    page, *_ = lab
    page.get_by_label("Preset").first.select_option("B")
    page.wait_for_function(
        "document.querySelector('input[name=accelerators]').getAttribute('aria-valuetext') === '512'"
    )
    page.wait_for_function("document.querySelector('[data-quantity=cluster_mtbf_s]').textContent === '97.7 h'")
    page.get_by_role("button", name="Reset").first.click()
    page.wait_for_function("document.querySelector('[data-quantity=cluster_mtbf_s]').textContent === '3.05 h'")


def test_a_value_is_typed_and_settings_stay_pinned(lab: tuple[Any, str, Path]) -> None:
    page, *_ = lab
    typed = page.get_by_label("Accelerators, typed").first
    page.get_by_role("button", name="Pin").first.click()
    typed.fill("24k")
    typed.press("Enter")
    page.wait_for_function("document.querySelector('[data-quantity=cluster_mtbf_s]').textContent === '2.08 h'")
    pinned = page.locator(".fk-pins tbody tr").first
    assert pinned.inner_text().split("\t") == ["Accelerators", "16,384", "24,000"]
    typed.fill("24 kg")
    typed.press("Enter")
    page.wait_for_function(
        "document.querySelector('.fk-control .fk-refused').textContent.startsWith('accelerators = ')"
    )
    assert typed.input_value() == "24 kg"
    typed.fill("16384")
    typed.press("Enter")
    page.get_by_role("button", name="Remove A").first.click()


def test_an_explorer_without_its_kernel_shows_a_message_and_stops(lab: tuple[Any, str, Path]) -> None:
    page, *_ = lab
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_text("Restart Kernel…", exact=True).click()
    page.locator(".jp-Dialog .jp-mod-accept").click()
    page.wait_for_function("document.body.innerText.includes('Stopped: the kernel was restarted')")
    assert page.locator("input[name=accelerators]").first.is_disabled()
    assert page.get_by_label("Accelerators, typed").first.is_disabled()


def test_stored_outputs_show_a_picture_before_anything_is_run(lab: tuple[Any, str, Path]) -> None:
    page, address, folder = lab
    from factorykit.charts import checkpoint

    data = checkpoint.goodput_by_interval()._repr_mimebundle_()
    output = {"output_type": "display_data", "metadata": {}, "data": data}
    write(folder, "stored.ipynb", ["1"])
    notebook = json.loads((folder / "stored.ipynb").read_text())
    notebook["cells"][0] |= {"outputs": [output], "execution_count": 1}
    (folder / "stored.ipynb").write_text(json.dumps(notebook))
    page.goto(f"{address}/lab/tree/stored.ipynb")
    still = "[...document.querySelectorAll('.fk-still')].some((still) => still.naturalWidth > 300)"
    page.wait_for_function(f"{still} || document.querySelector('.fk-view svg')")


def test_no_other_host_was_contacted(lab: tuple[Any, str, Path]) -> None:
    assert lab[0].outside == []
