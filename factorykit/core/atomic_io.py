"""Files and folders that are written whole or not at all, by one process at a time."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from factorykit.core.errors import FactorykitWarning

try:
    import fcntl
except ImportError:  # Windows locks nothing here
    fcntl = None

INCOMING: Final = ".incoming"
"""Folder of finished files that an interrupted process had no time to move; they are the newest ones."""
STAGE: Final = ".build-"
"""Beginning of the names of folders in which files are made."""
PART: Final = ".part"
"""End of the names of files that are being written, which begin with a point."""
LOOKS_EVERY_S: Final = 0.1
BORN_S: Final = 1.0
"""Age from which an empty folder that nobody holds is nobody's; one with files in it has been held."""


@contextmanager
def held(place: Path) -> Iterator[None]:
    """Hold a folder or a file for oneself; who comes second says whom it waits for, and waits.

    What a process holds is free as soon as that process has ended, however it ended. Nothing is written.
    """
    opened = os.open(place, os.O_RDONLY)
    try:
        if fcntl and not _taken(opened):
            said = f"{place} is in use by {_holder(opened)}; this one goes on when that one is done"
            warnings.warn(said, FactorykitWarning, stacklevel=3)
            while not _taken(opened):
                time.sleep(LOOKS_EVERY_S)
        yield
    finally:
        os.close(opened)


def _taken(opened: int) -> bool:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[union-attr]
    except BlockingIOError:
        return False
    return True


def _holder(opened: int) -> str:
    """Return who holds an open file, where the system tells."""
    place = os.fstat(opened)
    known = f"{os.major(place.st_dev):02x}:{os.minor(place.st_dev):02x}:{place.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            words = line.split()
            if known in words and "->" not in words:
                return f"process {words[words.index(known) - 1]}"
    return "another process"


@contextmanager
def workplace(parent: Path, prefix: str) -> Iterator[Path]:
    """Give a folder of one's own that is gone afterwards; those that killed processes left are swept before."""
    sweep(parent, prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        with held(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path, prefix: str) -> None:
    """Remove the workplaces of processes that are no more."""
    for folder in parent.glob(f"{glob.escape(prefix)}*"):
        _discard(folder)


def tidy(folder: Path) -> None:
    """Remove what processes that are no more left anywhere below a folder: workplaces, and files half written."""
    for left in [*folder.rglob(f"{STAGE}*"), *folder.rglob(f".*{PART}")]:
        _discard(left)


def _discard(left: Path) -> None:
    """Remove what nobody holds, unless it is so new and empty that its process may not have come to hold it."""
    with suppress(OSError):
        is_empty = not any(left.iterdir()) if left.is_dir() else not left.stat().st_size
        if is_empty and time.time() - left.stat().st_ctime < BORN_S:
            return
        opened = os.open(left, os.O_RDONLY)
        try:
            if fcntl and _taken(opened):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
        finally:
            os.close(opened)


def remove(folder: Path) -> None:
    """Remove a folder at one stroke: whoever is killed meanwhile leaves none that holds a part of what it held."""
    with workplace(folder.parent, STAGE) as aside, suppress(OSError):
        folder.rename(aside / folder.name)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a place beside ``path`` to write to, which takes its place when all went well, and is gone otherwise.

    What a killed process left there is written over. What is no regular file, such as a pipe, is written to itself.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    aside = target.with_name(f".{target.name}{PART}")
    aside.touch()
    try:
        with held(aside):
            yield aside
            if target.exists():
                aside.chmod(target.stat().st_mode)
            aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    with whole(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)


def swap_in(files: Mapping[str, bytes], target: Path) -> set[str]:
    """Replace files of a folder by those whose bytes differ, all or none, and return their names.

    They are written apart; renaming their folder to `INCOMING` is the one moment that counts: before it there are the
    old files, after it the new ones, which `finish` moves to their place now or after an interruption.
    """
    target.mkdir(parents=True, exist_ok=True)
    finish(target)
    sweep(target, STAGE)
    changed = {name: content for name, content in files.items() if not _holds(target / name, content)}
    if changed:
        with workplace(target, STAGE) as stage:
            for name, content in changed.items():
                (stage / name).write_bytes(content)
            stage.chmod(0o755)
            stage.rename(target / INCOMING)
        finish(target)
    return set(changed)


def finish(target: Path) -> None:
    """Move finished files to their place, now or after an interruption."""
    incoming = target / INCOMING
    if incoming.is_dir():
        for path in sorted(incoming.iterdir()):
            path.replace(target / path.name)
        incoming.rmdir()


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content
