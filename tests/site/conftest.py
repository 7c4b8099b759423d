"""Fixtures for the site: a synthetic project, the rendered site of this project, and a browser."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_site import Made

from factorykit.core.errors import FactorykitWarning

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def made(tmp_path: Path) -> Made:
    pytest.importorskip("pypandoc")
    return Made(tmp_path)


# The real site in a browser


@pytest.fixture(scope="session")
def site() -> Path:
    """The site of this project, rendered once from stored outputs for all parallel tests."""
    from factorykit.site import build

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is in use by", FactorykitWarning)
        return build(ROOT / ".cache" / "site", renderer="embedded", project=ROOT, run=False).path


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Address of the site on a server of this machine."""
    from factorykit.site.serve import server

    with server(site, port=0) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def visit(context: Callable[..., Any], address: str) -> Iterator[Callable[..., Any]]:
    """Open a page of the site; at the end there must be no error on it and no request to another host."""
    requests: list[str] = []
    wrong: list[str] = []
    pages = []

    def open_page(path: str = "index.html", *, width: int = 1280, height: int = 900, **options: Any) -> Any:
        page = context(**options).new_page()
        page.set_viewport_size({"width": width, "height": height})
        pages.append(page)
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path if "://" in path else f"{address}/{path}", wait_until="load")
        return page

    yield open_page
    for page in pages:
        page.evaluate("localStorage.clear()")
        page.close()
    assert not [url for url in requests if not url.startswith((address, "data:", "blob:", "file:"))]
    assert not wrong
