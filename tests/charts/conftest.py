"""Fixtures for charts: live charts of synthetic scenarios, and a static page with them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="the notebook extra is not installed; no chart was drawn")

from made_charts import MAKERS, PRESETS, months, wide

from factorykit.charts.bundle import page_script
from factorykit.charts.embed import BOOT, chart_payload, html
from factorykit.charts.live import Live
from factorykit.site.csp import policy


@pytest.fixture(scope="session", params=MAKERS)
def live(request: pytest.FixtureRequest) -> Live:
    return MAKERS[request.param](PRESETS)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one page of all live charts, one page each, and a broken one."""
    folder = tmp_path_factory.mktemp("page")
    folder.joinpath("factorykit.js").write_text(page_script(), encoding="utf-8")
    charts = {name: html(make(PRESETS).payload) for name, make in MAKERS.items()}
    broken = '<div class="factorykit-chart"></div><script type="application/json">{"specs": [{"mark": 3}]}</script>'
    made = {"wide": html(chart_payload(wide())), "months": html(chart_payload(months())) + charts["interval"]}
    pages = {**charts, **made, "all": "".join((*charts.values(), *made.values())), "broken": broken}
    for name, body in pages.items():
        folder.joinpath(f"{name}.html").write_text(
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Charts</title>'
            f'<meta http-equiv="Content-Security-Policy" content="{policy([BOOT])}">'
            '<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width, initial-scale=1">'
            "<style>body{margin:0 1rem;background:#fff;color:#1b1e24}.dark{background:#16181d;color:#e4e6ea}</style>"
            f'<script defer src="factorykit.js"></script></head><body><main><h1>Charts</h1>{body}</main></body></html>',
            encoding="utf-8",
        )
    return folder


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
