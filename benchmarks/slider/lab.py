"""A JupyterLab of one's own: loopback only, no token, settings and kernels in a folder that goes away."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--enable-precise-memory-info",
]  # fmt: skip


def chromium() -> str | None:
    """Path of a Chromium, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), headless=True, args=FLAGS)
        yield running
        running.close()


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """Start JupyterLab over ``folder`` and give its address."""
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port={port}",
        "--IdentityProvider.token=", "--LabApp.news_url=", f"--ServerApp.root_dir={folder}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    with serving(folder, command, "api/status") as address:
        yield address


@contextmanager
def serving(folder: Path, command: list[str], ready: str = "") -> Iterator[str]:
    """Start a server with a home of its own and give its address, when it answers at ``ready``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = folder / ".home"
    home.mkdir(exist_ok=True)
    own = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    environment = {**os.environ, **{name: str(home / name.lower()) for name in own}}
    address = f"http://127.0.0.1:{port}"
    with (home / "log").open("w") as log:
        arguments = [part.replace("{port}", str(port)) for part in command]
        server = subprocess.Popen(arguments, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            for _ in range(240):
                try:
                    urllib.request.urlopen(f"{address}/{ready}", timeout=30).close()
                    break
                except (urllib.error.URLError, OSError):
                    time.sleep(0.25)
            else:
                raise RuntimeError(f"{command[2]} did not start:\n{(home / 'log').read_text()[-2000:]}")
            yield address
        finally:
            server.terminate()
            try:
                server.wait(timeout=5)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def write(folder: Path, name: str, cells: list[str]) -> None:
    """Write a notebook of code cells that were not run."""
    import json

    made = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "execution_count": None, "outputs": [], "source": cell}
        for n, cell in enumerate(cells)
    ]
    kernel = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    notebook = {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (folder / name).write_text(json.dumps(notebook))


def run_all(page: Any, address: str, name: str) -> None:
    """Open a notebook and run its cells."""
    page.goto(f"{address}/lab/tree/{name}")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    # The kernel is shown as idle before the page is connected, and a cell run in between asks which kernel is meant.
    connected = "async (url) => (await (await fetch(url)).json()).some((kernel) => kernel.connections > 0)"
    page.wait_for_function(connected, arg=f"{address}/api/kernels")
    page.wait_for_timeout(500)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
