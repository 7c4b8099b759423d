"""Kill a writer before each of its steps, in a separate process: ``python killed.py WRITER FOLDER [KILLS]``.

Prints as JSON the number of steps, of trials and of kills, and the errors found afterwards.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = {
    *("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "os.utime", "os.link"),
    *(
        "shutil.rmtree",
        "shutil.copytree",
        "shutil.copyfile",
        "tempfile.mkdtemp",
        "tempfile.mkstemp",
        "ctypes.call_function",
    ),
}
"""Events of the interpreter that change files, or come right before."""
OLD, NEW = b"old " * 1000, b"new " * 1000


def watched(at: int | None, concerns: Callable[[str, tuple[Any, ...]], bool]) -> Callable[[], int]:
    """Count the steps of this process that concern a writer, and kill it before one; return a function that counts."""
    seen = 0

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event not in STEPS or not concerns(event, arguments):
            return
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    return lambda: seen


def _steps(write: Callable[[], Any], folder: Path, at: int | None) -> int:
    """Return at which step a child that writes was killed, or how many steps it has if it was not."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        seen = watched(at, lambda event, arguments: event != "open" or _writes(arguments, folder))
        try:
            write()
        finally:
            os.write(write_end, str(seen()).encode())
            os._exit(0)
    os.close(write_end)
    _, status = os.waitpid(child, 0)
    answer = os.read(read_end, 20)
    os.close(read_end)
    return int(answer) if answer else -os.waitstatus_to_exitcode(status)


def _writes(arguments: tuple[Any, ...], folder: Path) -> bool:
    place, mode, flags = arguments
    wants = (isinstance(mode, str) and mode[:1] in "wax+") or (
        isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
    )
    return bool(wants) and str(place).startswith(str(folder))


def _held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def swap(folder: Path) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Files of a folder, all or none: the last step of data builds, refreshes and connectors."""
    from factorykit.core import atomic_io

    names = ("a.csv", "b.csv", "c.json")

    def begin() -> None:
        for name in names:
            (folder / name).write_bytes(OLD)

    def write() -> None:
        with atomic_io.locked(folder):
            atomic_io.replace_files(dict.fromkeys(names, NEW), folder)

    return begin, write


def file(folder: Path) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A file by itself: calibrations, notebooks, caches of the site, frames of the command line."""
    from factorykit.core import atomic_io

    return lambda: (folder / "a.ipynb").write_bytes(OLD), lambda: atomic_io.write_file(folder / "a.ipynb", NEW)


def publish(folder: Path) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The folder of a site, which replaces the previous one."""
    from factorykit.site.build import MARKER, restore
    from factorykit.site.build import publish as put

    names = ("index.html", "a.html", "b.html")
    rendered, site = folder.parent / "rendered", folder / "_site"
    rendered.mkdir(exist_ok=True)
    for name in names:
        (rendered / name).write_bytes(NEW)

    def begin() -> None:
        site.mkdir()
        for name in names:
            (site / name).write_bytes(OLD)
        (site / MARKER).write_text("\n".join(names), "utf-8")

    def write() -> None:
        restore(site)
        put(rendered, site)

    return begin, write


WRITERS = {"swap": swap, "file": file, "publish": publish}


def main(name: str, folder: Path, kills: int = 0, seed: int = 16) -> dict[str, Any]:
    """Kill a writer before each step, or ``kills`` times at random steps, and write again after each."""
    folder.mkdir(parents=True, exist_ok=True)
    begin, write = WRITERS[name](folder)
    wrong: list[str] = []

    def fresh() -> None:
        shutil.rmtree(folder)
        folder.mkdir()
        begin()

    fresh()
    steps = _steps(write, folder, None)
    whole = _held(folder)
    chance = random.Random(seed)
    died = 0
    atomic_io = [chance.randint(1, steps) for _ in range(kills)] or range(1, steps + 1)
    for at in atomic_io:
        fresh()
        died += _steps(write, folder, at) == signal.SIGKILL
        seen = {Path(path).name: text for path, text in sorted(_seen(folder).items())}
        if len(set(seen.values()) & {OLD, NEW}) != 1 or set(seen) != {Path(path).name for path in whole}:
            wrong.append(f"step {at}: readers see { ({path: text[:3] for path, text in seen.items()}) }")
        _age(folder)
        _steps(write, folder, None)
        if _held(folder) != whole:
            wrong.append(f"step {at}: after the next, {sorted(_held(folder))}")
        if left := [path.name for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir())]:
            wrong.append(f"step {at}: left {left}")
    return {"steps": steps, "tried": len(atomic_io), "killed": died, "wrong": wrong}


def _seen(folder: Path) -> dict[str, bytes]:
    """Return the files as readers see them: incoming files are the newest, files of a running build do not count."""
    found = {path: text for path, text in _held(folder).items() if not _hidden(path)}
    if (folder / "_site.old").is_dir() and not (folder / "_site").is_dir():
        return {path: text for path, text in found.items() if path.startswith("_site.old")}
    found = {path: text for path, text in found.items() if not path.startswith(("_site.old", "_site.new-"))}
    come = {
        path.removeprefix(".incoming/"): text for path, text in _held(folder).items() if path.startswith(".incoming/")
    }
    return found | come


def _hidden(path: str) -> bool:
    return path.startswith(".")


def _age(folder: Path) -> None:
    """Treat the files of a killed process as older than a folder that is being made."""
    from factorykit.core import atomic_io

    atomic_io.MIN_STALE_AGE_S = -1.0  # type: ignore[misc]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))))
