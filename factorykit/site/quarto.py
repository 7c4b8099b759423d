"""Quarto, where it can be had: found, or installed once into the running environment, and called."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from factorykit.errors import SiteError
from factorykit.site import children

OLDEST = (1, 7)
INSTALL_SECONDS = 180


def find() -> tuple[Path | None, str]:
    """Return the ``quarto`` to use and its version, or None and why there is none.

    QUARTO_PATH is looked at first, then the running environment, then PATH.
    """
    tried = []
    for origin, candidate in _candidates():
        try:
            ran = children.run([candidate, "--version"], 20)
        except (OSError, subprocess.TimeoutExpired) as error:
            tried.append(f"{origin} does not run ({error.__class__.__name__})")
            continue
        version = re.match(r"(\d+)\.(\d+)", ran.stdout.strip())
        if ran.returncode or not version:
            tried.append(f"{origin} says {(ran.stderr or ran.stdout).strip()[:80]!r}")
        elif (int(version[1]), int(version[2])) < OLDEST:
            tried.append(f"{origin} is Quarto {ran.stdout.strip()}, older than {OLDEST[0]}.{OLDEST[1]}")
        else:
            return candidate, f"Quarto {ran.stdout.strip()} from {origin}"
    return None, "; ".join(tried) or "no quarto in QUARTO_PATH or PATH"


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if given := os.environ.get("QUARTO_PATH"):
        path = Path(given)
        inside = [path / "quarto", path / "bin" / "quarto"] if path.is_dir() else [path]
        found.append(("QUARTO_PATH", next((file for file in inside if file.is_file()), path)))
    if beside := shutil.which("quarto", path=str(Path(sys.executable).parent)):
        found.append(("this environment", Path(beside)))
    if listed := shutil.which("quarto"):
        found.append(("PATH", Path(listed)))
    return found


def install(marker: Path, *, seconds: int = INSTALL_SECONDS) -> str:
    """Try once to install the package ``quarto-cli`` into the running environment; return what came of it.

    A failure is remembered in ``marker``, with its date and reason, and not tried again until that file is removed.
    """
    if sys.prefix == sys.base_prefix:
        return "not tried to install it, since Python does not run in a virtual environment"
    if marker.is_file():
        try:
            kept = json.loads(marker.read_text(encoding="utf-8"))
            return f"installing it failed on {kept['date']} ({kept['reason']}); remove {marker} to try again"
        except (ValueError, KeyError, TypeError):
            marker.unlink()
    command = [sys.executable, "-m", "pip", "install", "--quiet", "quarto-cli"]
    if not find_spec("pip"):
        command = ["uv", "pip", "install", "--quiet", "--python", sys.executable, "quarto-cli"]
    reason = _run_limited(command, seconds)
    if reason is None:
        return "installed quarto-cli"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text(json.dumps({"date": date.today().isoformat(), "reason": reason}) + "\n", encoding="utf-8")
    return f"installing quarto-cli failed ({reason})"


def _run_limited(command: list[str], seconds: int) -> str | None:
    """Run a command for at most so many seconds; return why it failed, or None."""
    try:
        ran = children.run(command, seconds)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"no end after {seconds} s"
    if ran.returncode == 0:
        return None
    lines = [line.strip() for line in ran.stderr.splitlines()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    named = [line for line in lines if line.lower().startswith("error")]
    return (raised or named or [f"exit status {ran.returncode}"])[-1][:160]


def render(program: Path, root: Path, log: Path) -> list[str]:
    """Render the project in ``root`` with Quarto into ``root/_site``; return what its log complains about.

    Raises
    ------
    SiteError
        If Quarto exits with another status than 0.
    """
    command = [str(program), "render", str(root), "--log", str(log), "--log-format", "json-stream"]
    ran = children.run(command, env=environment())
    if ran.returncode:
        raise SiteError(f"quarto render failed: {(ran.stderr or ran.stdout).strip()[-1500:]}")
    return complaints(log.read_text(encoding="utf-8") if log.is_file() else "")


def environment() -> dict[str, str]:
    """Return the environment for a Quarto whose pages are printed before it runs and finished after it."""
    package = str(Path(__file__).parent.parent.parent)
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "QUARTO_PYTHON": sys.executable, "FACTORYKIT_PAGES": "written", "PYTHONPATH": paths}


def complaints(log: str) -> list[str]:
    """Return the sentences of Quarto's log that mean a broken page; it exits with 0 all the same.

    >>> complaints('{"level": 20, "levelName": "INFO", "msg": "Unable to resolve crossref @fig-x"}')
    ['quarto: Unable to resolve crossref @fig-x']
    """
    found: list[str] = []
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
        if unfinished and found:
            found[-1] += f" {text}"
            unfinished = False
        elif warns or re.search(r"Unable to resolve crossref|[Cc]itation .*not found|[Cc]iteproc: *citation", text):
            found.append(f"quarto: {text}")
            unfinished = bool(re.search(r"[Cc]itation", text)) and "not found" not in text
    return found
