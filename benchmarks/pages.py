"""How soon pages of the built site show something, and how heavy they are: from a local server, and as on a phone.

The phone is a processor four times slower behind 150 ms and 4.8 Mbit/s; what is sent is not compressed, and a third of
that rate would do where it is.
"""

from __future__ import annotations

import gzip
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import Missing, Row, median
from benchmarks.slider import FIRST
from benchmarks.slider.lab import browser, chromium
from factorykit.site.serve import server

SITE = Path("_site")
RUNS = 5
SHOWN = {
    "the front page": "index.html",
    "a page of a chip": "entities/accelerators/h100_sxm.html",
    "the browser of clusters": "tables/clusters.html",
    "a page of methods": "report/methods/checkpoint.html",
}
CHART = "notebooks/07-checkpoints.html"
LINKED = re.compile(r'<(?:script|link rel="stylesheet")[^>]*(?:src|href)="([^":]+)"')
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
SOON = "async () => {{ while (!({0})) await new Promise(requestAnimationFrame); return {0}; }}"
PHONE = {"offline": False, "latency": 150, "downloadThroughput": 600_000, "uploadThroughput": 200_000}


def rows() -> Iterator[Row]:
    """Yield the times of some pages, each beside its budget; the heaviest pages are printed below them."""
    if not chromium():
        raise Missing("no Chromium on PATH (apt install chromium)")
    if not (SITE / "index.html").is_file():
        raise Missing(f"no site in {SITE}/ (make site)")
    with browser() as running, server(SITE, port=0) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{served.server_port}"
        page = running.new_page(viewport={"width": 1280, "height": 900})
        for name, place in SHOWN.items():
            painted = _times(page, f"{address}/{place}", PAINTED)
            yield Row(f"page: first paint of {name}", "", painted, None, at_most_s=0.3)
        page.close()
        desk, phone = (
            running.new_page(viewport={"width": 1280, "height": 900}),
            running.new_page(viewport={"width": 390, "height": 844}),
        )
        yield Row("page: live chart of a notebook", "", _drawn(desk, f"{address}/{CHART}"), None, at_most_s=0.6)
        session = phone.context.new_cdp_session(phone)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        session.send("Network.emulateNetworkConditions", PHONE)
        yield Row("page: live chart of a notebook, phone", "", _drawn(phone, f"{address}/{CHART}"), None, at_most_s=2.5)
        served.shutdown()
    for chart, budget in ((False, 120), (True, 450)):
        weight, page = max((weight, page) for page, weight, has in _weights() if has is chart)
        kind = "with" if chart else "without"
        print(f"    heaviest page {kind} a chart: {page}, {weight / 1e3:.0f} kB compressed, at most {budget}")


def _times(page: Any, address: str, asked: str) -> float:
    """Return the median seconds of what a page reports of itself, each time with nothing kept."""
    found = []
    for _ in range(RUNS):
        page.context.clear_cookies()
        page.goto(address, wait_until="load")
        found.append(page.evaluate(SOON.format(asked)))
    return median(found) / 1e3


def _drawn(page: Any, address: str) -> float:
    page.add_init_script(FIRST)
    return _times(page, address, "window.first")


def _weights() -> Iterator[tuple[str, int, bool]]:
    """Yield every page with the bytes of it, its scripts and its styles, compressed, and whether it has a chart."""
    sizes: dict[Path, int] = {}

    def packed(file: Path) -> int:
        return sizes.setdefault(file, len(gzip.compress(file.read_bytes(), 6)))

    for page in SITE.rglob("*.html"):
        text = page.read_text("utf-8")
        linked = [(page.parent / name).resolve() for name in LINKED.findall(text)]
        whole = packed(page) + sum(packed(file) for file in linked if file.is_file())
        yield page.relative_to(SITE).as_posix(), whole, "factorykit.js" in text or "data-factorykit-plan" in text
