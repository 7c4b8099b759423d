"""JupyterLab on this machine, with the first notebook open and its charts live."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from factorykit.core.extras import need
from factorykit.core.notebooks import notebooks_folder

FIRST: Final = "00-start.ipynb"
CONFIG: Final = Path(__file__).with_name("lab_config")
"""Settings of JupyterLab beside the user's: no question about news, and full names of notebooks instead of dates."""
PACKAGE: Final = Path(__file__).parents[1]
SHIPPED: Final = PACKAGE / "widgets" / "static" / "notebooks.sha256"
"""Hashes of the notebooks of a wheel's version, written when the wheel is built."""


def lab(passed_on: Sequence[str] = ()) -> int:
    """Open the notebooks of this folder in JupyterLab, with these options, and return its exit status.

    Where there are none, those of the installed version are copied into the folder ``notebooks``.
    """
    need("jupyterlab")
    if not Path("notebooks").exists() and not any(Path().glob("*.ipynb")) and notebooks_folder().is_dir():
        shutil.copytree(notebooks_folder(), "notebooks", ignore=shutil.ignore_patterns(".*"))
    home = Path("notebooks") if Path("notebooks").is_dir() else Path()
    sign(trusted(home))
    options = ["--ServerApp.ip=127.0.0.1", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if (home / FIRST).is_file():
        options.append(f"--LabApp.default_url=/lab/tree/{FIRST}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    config_paths = [str(CONFIG), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    environment = os.environ | {"JUPYTER_CONFIG_PATH": os.pathsep.join(config_paths)}
    command = [sys.executable, "-m", "jupyter", "lab", *options, str(home), *passed_on]
    return serve(command, environment)


def serve(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a server until it ends, and end it when this process is ended; return its exit status."""
    with subprocess.Popen(command, env=environment) as server:
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        return server.wait()


def trusted(folder: Path) -> list[Path]:
    """Return the notebooks of a folder that are identical to those of the installed version."""
    known = installed()
    return [path for path in sorted(folder.glob("*.ipynb")) if _digest(path) in known]


def installed() -> set[str]:
    """Return the hashes of the notebooks of the installed version: of the wheel, or as committed in a checkout."""
    if SHIPPED.is_file():
        return set(SHIPPED.read_text("utf-8").split())
    folder = PACKAGE.parent / "notebooks"

    def listed(*options: str) -> set[str]:
        command = ["git", "-C", str(folder), "ls-files", "-z", *options, "*.ipynb"]
        return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")) - {""}

    try:
        return {_digest(folder / name) for name in listed() - listed("--modified")}
    except (OSError, subprocess.CalledProcessError):
        return set()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sign(notebooks: Iterable[Path]) -> None:
    """Trust notebooks, so that JupyterLab shows their stored charts live before anything runs."""
    nbformat, notary = need("nbformat"), need("nbformat.sign").NotebookNotary()
    for path in notebooks:
        notary.sign(nbformat.read(path, as_version=4))
