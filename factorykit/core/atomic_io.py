"""Atomic replacement of files and folders, with locks between processes."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from factorykit.core.errors import warn
from factorykit.core.storage import is_object

try:
    import fcntl
except ImportError:  # no locks on Windows
    fcntl = None

INCOMING: Final = ".incoming"
"""Folder of complete files that an interrupted process did not move to their place; they are the newest ones."""
STAGE_PREFIX: Final = ".build-"
"""Prefix of folders in which files are made."""
PART_SUFFIX: Final = ".part"
"""Suffix of files that are being written; their names begin with a point."""
POLL_S: Final = 0.1
MIN_STALE_AGE_S: Final = 1.0
"""Age from which an empty, unlocked file or folder is stale: its process had the time to lock it."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a folder or a file; warn and wait while another process holds the lock.

    The lock ends with its process. Nothing is written.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if fcntl and not _try_lock(descriptor):
            warn(f"{path} is in use by another process; waiting until it is free")
            while not _try_lock(descriptor):
                time.sleep(POLL_S)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[union-attr]
    except BlockingIOError:
        return False
    return True


@contextmanager
def temporary_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Create a locked folder and remove it afterwards; remove stale ones first."""
    remove_stale(parent, prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        with locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_stale(parent: Path, prefix: str) -> None:
    """Remove the temporary files and folders with this prefix whose process has ended."""
    for path in parent.glob(f"{glob.escape(prefix)}*"):
        _remove_if_stale(path)


def remove_all_stale(folder: Path) -> None:
    """Remove the stale temporary folders and partly written files anywhere below a folder."""
    for path in [*folder.rglob(f"{STAGE_PREFIX}*"), *folder.rglob(f".*{PART_SUFFIX}")]:
        _remove_if_stale(path)


def _remove_if_stale(path: Path) -> None:
    with suppress(OSError):
        is_empty = not any(path.iterdir()) if path.is_dir() else not path.stat().st_size
        if is_empty and time.time() - path.stat().st_ctime < MIN_STALE_AGE_S:
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if fcntl and _try_lock(descriptor):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        finally:
            os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically: after a kill it is complete or gone."""
    with temporary_folder(folder.parent, STAGE_PREFIX) as aside, suppress(OSError):
        folder.rename(aside / folder.name)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces it after success and is removed after an error.

    Several writers of one file do not disturb each other; the last one that ends wins. A path that is not a regular
    file, such as a pipe, is written to directly, and so is an object of a store, which appears when it is complete.
    """
    if is_object(path) or (path.exists() and not path.is_file()):
        yield path
        return
    target = path.resolve()
    prefix = f".{target.name[:50]}."
    remove_stale(target.parent, prefix)
    aside = target.with_name(f"{prefix}{secrets.token_hex(4)}{PART_SUFFIX}")
    aside.touch(exist_ok=False)
    try:
        with locked(aside):
            yield aside
            if target.exists():
                aside.chmod(target.stat().st_mode)
            aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically."""
    with replacing(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)


def replace_files(files: Mapping[str, bytes], target: Path) -> set[str]:
    """Replace the files of a folder whose bytes differ, all or none, and return their names.

    New files are written to a temporary folder. Renaming it to `INCOMING` commits them: before it the old files are
    valid, after it the new ones, which `move_incoming` moves to their place now or after an interruption.
    """
    target.mkdir(parents=True, exist_ok=True)
    move_incoming(target)
    remove_stale(target, STAGE_PREFIX)
    changed = {name: content for name, content in files.items() if not _has_content(target / name, content)}
    if changed:
        with temporary_folder(target, STAGE_PREFIX) as stage:
            for name, content in changed.items():
                (stage / name).write_bytes(content)
            stage.chmod(0o755)
            stage.rename(target / INCOMING)
        move_incoming(target)
    return set(changed)


def move_incoming(target: Path) -> None:
    """Move committed files to their place."""
    incoming = target / INCOMING
    if incoming.is_dir():
        for path in sorted(incoming.iterdir()):
            path.replace(target / path.name)
        incoming.rmdir()


def _has_content(path: Path, content: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content
