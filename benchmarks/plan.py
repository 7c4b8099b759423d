"""From a question to a plan: in Python, and on the planner's page in a real browser.

A time on the page is that from the input event to the changed readout, worker and back; the rival is the same question
asked of Python. The phone is that of `benchmarks.pages`; its workers are as fast as the machine's.
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import factorykit as fk
from benchmarks import Missing, Row, median, timed
from benchmarks.pages import PHONE
from benchmarks.slider import first_s, served
from benchmarks.slider.lab import browser, chromium

CHIPS = (
    "h100_sxm",
    "h200_sxm",
    "b200",
    "gb200",
    "a100_sxm_80gb",
    "a100_sxm_40gb",
    "mi300x",
    "mi325x",
    "mi350x",
    "gb300",
)
COUNTS = [64.0 * n for n in range(4, 24)]
MOVES = 60
QUESTIONS = {
    "dense": "?v=1&accelerators=1024",
    "mixture": "?v=1&model=1T+mixture&accelerator=b200&tokens=2e13&accelerators=2048",
}
"""From here the slider moves to numbers that were not asked for before."""
BLANK = "<!doctype html><title>Plan</title><div data-factorykit-plan=whole></div><script src=plan.js></script>"

MOVE = """async ([name, moves]) => {
    const place = document.querySelector('.fkp'), times = [];
    const input = document.querySelector(`[data-name="${name}"] input[type=range]`);
    const done = () => place.dataset.answered === place.dataset.asked;
    for (let n = 0; n < moves; n++) {
        const changed = new Promise((go) => {
            const observer = new MutationObserver(() => done() && (observer.disconnect(), go()));
            observer.observe(place, { attributeFilter: ['data-answered'] });
        });
        const start = performance.now();
        input.value = Number(input.value) + (n % 40 < 20 ? 1 : -1);
        input.dispatchEvent(new Event('input', { bubbles: true }));
        await changed;
        times.push([performance.now() - start, Number(place.dataset.took)]);
        await new Promise(requestAnimationFrame);
    }
    return times;
}"""
FIRST = """
new MutationObserver((_, observer) => {
    if (!document.querySelector('[data-answered]')) return;
    observer.disconnect();
    window.first = performance.now();
}).observe(document, { childList: true, subtree: true, attributes: true });"""


def rows() -> Iterator[Row]:
    asked = {"tokens": "15T", "chips": list(CHIPS), "counts": COUNTS}
    fk.plan("llama3_70b", **asked)
    times = [timed(lambda: fk.plan("llama3_70b", **asked)) for _ in range(5)]
    yield Row("plan: 10 chips, 20 counts", "", median(times), None, at_most_s=2.0)
    if not chromium():
        raise Missing("no Chromium on PATH (apt install chromium)")
    with tempfile.TemporaryDirectory() as name, browser() as running:
        yield from _page(running, Path(name))


def _page(running: Any, folder: Path) -> Iterator[Row]:
    from factorykit.site.planner import script

    (folder / "plan.js").write_text(script(), encoding="utf-8")
    (folder / "index.html").write_text(BLANK, encoding="utf-8")
    one = {"tokens": 15.6e12, "chips": "h100_sxm", "counts": [16384]}
    python = median([timed(lambda: fk.plan("llama3_405b", **one)) for _ in range(3)])
    with served(folder) as address:
        page = running.new_page(viewport={"width": 1280, "height": 900})
        first = first_s(page, address, FIRST)
        page.wait_for_selector("[data-drawn]")
        page.evaluate(MOVE, ["tokens", 40])
        shown = [whole / 1e3 for whole, _ in page.evaluate(MOVE, ["tokens", MOVES])]
        searched = {}
        for what, query in QUESTIONS.items():
            page.goto(f"{address}{query}")
            page.wait_for_selector("[data-answered]")
            searched[what] = [took / 1e3 for _, took in page.evaluate(MOVE, ["accelerators", 12])]
        page.close()
        phone = running.new_page(viewport={"width": 390, "height": 844})
        session = phone.context.new_cdp_session(phone)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", PHONE)
        on_a_phone = first_s(phone, address, FIRST)
        phone.close()
    yield Row("planner: slider to readouts", "fk.plan", statistics.median(shown), python, at_most_s=0.016)
    yield Row("planner: slider to readouts, p90", "", statistics.quantiles(shown, n=10)[-1], None, at_most_s=0.033)
    for what, took in searched.items():
        yield Row(f"planner: best layout and its futures, {what}", "", statistics.median(took), None, at_most_s=0.15)
    yield Row("planner: first answer, from a local server", "", first, None, at_most_s=1.0)
    yield Row("planner: first answer, phone", "", on_a_phone, None, at_most_s=3.0)
    print(f"    script {len(gzip.compress(script().encode())) / 1e3:.0f} kB compressed, at most 250")
