"""An explorer in every available front end: the picture is drawn, and the arrow keys of a slider change it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
pytest.importorskip("anywidget", reason="the notebook extra is not installed; no widget was made")
import vs_code  # noqa: E402

from benchmarks.slider.lab import serving, write  # noqa: E402
from factorykit.charts import page_script  # noqa: E402

start_new_kernel = pytest.importorskip("jupyter_client.manager", reason="no kernel can be started").start_new_kernel

pytestmark = [pytest.mark.browser, pytest.mark.long]

EXPLORER = """import factorykit as fk
explorer = fk.explore("llama_3_1_405b", "wall_days", over="accelerators", sliders=["mfu", "restart_s"])
explorer"""
VIEW = "application/vnd.jupyter.widget-view+json"
CURVE = ".fk-view svg [class*=mark-line] path"


def needed(name: str, front_end: str) -> None:
    if find_spec(name) is None:
        pytest.skip(f"{front_end} is absent (pip install {name}); no explorer was opened in it")


def moved_by_keys(page: Any) -> None:
    """Move the first slider with the arrow keys: the curve follows, and no other cell or page takes the key."""
    page.wait_for_selector(CURVE, state="attached", timeout=90_000)
    slider = page.locator("input[name=mfu][type=range]").first
    before, at = page.locator(CURVE).first.get_attribute("d"), slider.input_value()
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(80)
    assert float(slider.input_value()) > float(at)
    for _ in range(100):  # a locator sees into marimo's shadows, the page's own functions do not
        if page.locator(CURVE).first.get_attribute("d") != before:
            return
        page.wait_for_timeout(100)
    pytest.fail("the curve did not change")


def test_in_notebook_7(chromium: Any, tmp_path: Path) -> None:
    needed("notebook", "Jupyter Notebook 7")
    write(tmp_path, "explorer.ipynb", [EXPLORER])
    command = [sys.executable, "-m", "notebook", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port={port}"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={tmp_path}"]
    with serving(tmp_path, command, "api/status") as address:
        page = chromium.new_page()
        script = page_script()  # the installed extension may be older than the checkout
        page.route("**/static/factorykit.js*", lambda it: it.fulfill(body=script, content_type="text/javascript"))
        page.goto(f"{address}/notebooks/explorer.ipynb")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        connected = "async (url) => [].concat(await (await fetch(url)).json()).some((kernel) => kernel.connections > 0)"
        page.wait_for_function(connected, arg=f"{address}/api/kernels", timeout=60_000)
        page.wait_for_timeout(1000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        moved_by_keys(page)
        page.close()


def test_in_voila(chromium: Any, tmp_path: Path) -> None:
    needed("voila", "Voila")
    write(tmp_path, "explorer.ipynb", [EXPLORER])
    command = [sys.executable, "-m", "voila", "explorer.ipynb", "--no-browser", "--port={port}", "--Voila.ip=127.0.0.1"]
    with serving(tmp_path, command, "voila/static/voila.js") as address:
        page = chromium.new_page()
        page.goto(address, timeout=120_000)
        moved_by_keys(page)
        page.close()


def test_in_marimo(chromium: Any, tmp_path: Path) -> None:
    needed("marimo", "marimo")
    cell = EXPLORER.replace("\n", "\n    ")
    (tmp_path / "explorer.py").write_text(
        f"import marimo\n\napp = marimo.App()\n\n\n@app.cell\ndef _():\n    {cell}\n    return\n"
    )
    command = [sys.executable, "-m", "marimo", "run", "explorer.py", "--headless", "--no-token", "--port={port}"]
    with serving(tmp_path, [*command, "--host=127.0.0.1"], "health") as address:
        page = chromium.new_page()
        page.goto(address)
        moved_by_keys(page)
        page.close()


def test_in_the_widget_manager_of_vs_code(chromium: Any, tmp_path: Path) -> None:
    if reason := vs_code.fetch(tmp_path):
        pytest.skip(f"{reason}; no explorer was opened in it")
    manager, client = start_new_kernel(kernel_name="python3")
    command = [sys.executable, "-m", "http.server", "{port}", "--bind=127.0.0.1"]
    try:
        with serving(tmp_path, command, "index.html") as address:
            page = chromium.new_page()
            bridge = vs_code.Bridge(page, client)
            page.goto(f"{address}/index.html")
            page.evaluate("ready")
            client.execute(EXPLORER)
            bridge.carry(lambda: bridge.results)
            page.evaluate("(id) => { show(id) }", bridge.results[0]["content"]["data"][VIEW]["model_id"])
            bridge.carry(page.locator(CURVE).count)
            slider, typed = page.locator("input[name=mfu][type=range]"), page.get_by_label("utilization, typed")
            before, value = page.locator(CURVE).first.get_attribute("d"), typed.input_value()
            slider.focus()
            page.keyboard.press("ArrowRight")
            bridge.carry(lambda: typed.input_value() != value)
            assert page.locator(CURVE).first.get_attribute("d") != before
            page.close()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_page_by_nbconvert_keeps_every_picture(chromium: Any, tmp_path: Path) -> None:
    needed("nbconvert", "nbconvert")
    chart = "fk.charts.checkpoint.goodput_by_interval()"
    write(tmp_path, "explorer.ipynb", [EXPLORER, f"fk.widgets.LiveChart({chart})", chart])
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to=html", "--execute", "explorer.ipynb"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = chromium.new_context(offline=True).new_page()
    page.goto((tmp_path / "explorer.html").as_uri())
    page.wait_for_function(
        "[...document.querySelectorAll('.fk-still')].filter((it) => it.naturalWidth > 300).length === 3"
    )
    assert page.locator(".fk-still").first.get_attribute("alt") == "Wall-clock time by accelerators"
    page.context.close()
