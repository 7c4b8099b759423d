"""Rendering with Quarto, an optional dependency."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from factorykit.core.errors import SiteError

OLDEST_VERSION = (1, 7)


def find() -> tuple[Path | None, str]:
    """Return the ``quarto`` to use and its version, or None and the reason.

    QUARTO_PATH is searched first, then the running environment, then PATH.
    """
    tried = []
    for origin, candidate in _candidates():
        try:
            ran = _run([str(candidate), "--version"], 20)
        except (OSError, subprocess.TimeoutExpired) as error:
            tried.append(f"{origin} does not run ({error.__class__.__name__})")
            continue
        version = re.match(r"(\d+)\.(\d+)", ran.stdout.strip())
        if ran.returncode or not version:
            tried.append(f"{origin} prints {(ran.stderr or ran.stdout).strip()[:80]!r} as its version")
        elif (int(version[1]), int(version[2])) < OLDEST_VERSION:
            tried.append(f"{origin} is Quarto {ran.stdout.strip()}, older than {OLDEST_VERSION[0]}.{OLDEST_VERSION[1]}")
        else:
            return candidate, f"Quarto {ran.stdout.strip()} from {origin}"
    return None, "; ".join(tried) or "no quarto in QUARTO_PATH or PATH"


def _candidates() -> list[tuple[str, Path]]:
    candidates = []
    if given := os.environ.get("QUARTO_PATH"):
        path = Path(given)
        inside = [path / "quarto", path / "bin" / "quarto"] if path.is_dir() else [path]
        candidates.append(("QUARTO_PATH", next((file for file in inside if file.is_file()), path)))
    if beside := shutil.which("quarto", path=str(Path(sys.executable).parent)):
        candidates.append(("this environment", Path(beside)))
    if listed := shutil.which("quarto"):
        candidates.append(("PATH", Path(listed)))
    return candidates


def _run(
    command: list[str], seconds: float | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a new session and terminate the whole session on a timeout or an interrupt."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=env, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def render(program: Path, root: Path, log: Path) -> list[str]:
    """Render the project in ``root`` with Quarto into ``root/_site``; return the errors in its log.

    Raises
    ------
    SiteError
        If Quarto exits with a status other than 0.
    """
    command = [str(program), "render", str(root), "--log", str(log), "--log-format", "json-stream"]
    ran = _run(command, env=environment())
    if ran.returncode:
        raise SiteError(f"quarto render failed: {(ran.stderr or ran.stdout).strip()[-1500:]}")
    return complaints(log.read_text(encoding="utf-8") if log.is_file() else "")


def environment() -> dict[str, str]:
    """Return the environment of Quarto; this package generates pages before and postprocesses them after the call."""
    package = str(Path(__file__).parent.parent.parent)
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "QUARTO_PYTHON": sys.executable, "FACTORYKIT_PAGES": "written", "PYTHONPATH": paths}


def complaints(log: str) -> list[str]:
    """Return the messages in the log of Quarto that indicate a broken page; Quarto still exits with status 0.

    >>> complaints('{"level": 20, "levelName": "INFO", "msg": "Unable to resolve crossref @fig-x"}')
    ['quarto: Unable to resolve crossref @fig-x']
    """
    messages: list[str] = []
    unfinished = False
    for line in log.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(record.get("msg", ""))).strip()
        warns = str(record.get("levelName", "")).upper().startswith("WARN") and re.search(
            r"link|resolve|not found", text
        )
        if unfinished and messages:
            messages[-1] += f" {text}"
            unfinished = False
        elif warns or re.search(r"Unable to resolve crossref|[Cc]itation .*not found|[Cc]iteproc: *citation", text):
            messages.append(f"quarto: {text}")
            unfinished = bool(re.search(r"[Cc]itation", text)) and "not found" not in text
    return messages
