"""JupyterLab that greets: on this machine alone, the first notebook open, its charts live at first sight."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from factorykit.borders import need

FIRST: Final = "00-start.ipynb"
CONFIG: Final = Path(__file__).with_name("lab_config")
"""What JupyterLab is told beside the user's own settings: no question about news over the first chart, and names of
notebooks in full, in the room of the dates beside them."""


def lab(passed_on: Sequence[str] = ()) -> int:
    """Open the notebooks of this folder in JupyterLab; options go on to it. Return its exit status."""
    need("jupyterlab")
    home = Path("notebooks") if Path("notebooks").is_dir() else Path()
    sign(unchanged(home))
    options = ["--ServerApp.ip=127.0.0.1", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if (home / FIRST).is_file():
        options.append(f"--LabApp.default_url=/lab/tree/{FIRST}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    found = [str(CONFIG), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    environment = os.environ | {"JUPYTER_CONFIG_PATH": os.pathsep.join(found)}
    command = [sys.executable, "-m", "jupyter", "lab", *options, str(home), *passed_on]
    return subprocess.call(command, env=environment)


def unchanged(folder: Path) -> list[Path]:
    """Return the notebooks of a checkout that are as they were committed; none where git does not say."""

    def listed(*options: str) -> set[str]:
        command = ["git", "-C", str(folder), "ls-files", "-z", *options, "*.ipynb"]
        return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")) - {""}

    try:
        return [folder / name for name in sorted(listed() - listed("--modified"))]
    except (OSError, subprocess.CalledProcessError):
        return []


def sign(notebooks: Iterable[Path]) -> None:
    """Trust notebooks, so that JupyterLab shows their stored charts live before anything is run."""
    nbformat, notary = need("nbformat"), need("nbformat.sign").NotebookNotary()
    for path in notebooks:
        notary.sign(nbformat.read(path, as_version=4))
