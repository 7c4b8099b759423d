"""Caches of a build: a site, page, chart or set of pages is made again only after its inputs have changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from factorykit.core.atomic_io import remove_folder, write_file

PACKAGE = Path(__file__).parent.parent
EXCLUDED = {"__pycache__", "static", "sources", "downloads"}
"""Folders of generated files and of the sources of the tables, which are not hashed."""
PACKAGES = ("polars", "altair", "vl-convert-python", "jinja2", "pypandoc_binary", "selectolax")


def inputs(root: Path, names: Iterable[str], *options: str) -> str:
    """Return a hash of all inputs: files and folders below ``root``, code, package versions, options."""
    digest = hashlib.sha256(json.dumps([*options, *map(_version, PACKAGES)]).encode())
    for place in (*(root / name for name in names), PACKAGE):
        for file in _files(place):
            digest.update(f"{file.relative_to(place.parent)}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def published(folder: Path) -> str:
    """Return a hash of the files in a folder: names, sizes and modification times."""
    lines = (f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in sorted(folder.rglob("*")))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def kept(stamp: Path, inputs: str, target: Path) -> int | None:
    """Return the number of pages if ``target`` holds an unmodified site of the same inputs, else None."""
    try:
        known = read(stamp)[str(target)]
        same = known["inputs"] == inputs and known["published"] == published(target)
        return int(known["pages"]) if same else None
    except (KeyError, TypeError):
        return None


def keep(stamp: Path, inputs: str, target: Path, pages: int) -> None:
    """Store the inputs of a published folder."""
    stamp.parent.mkdir(parents=True, exist_ok=True)
    entries = {folder: entry for folder, entry in read(stamp).items() if Path(folder).is_dir()}
    entries[str(target)] = {"inputs": inputs, "published": published(target), "pages": pages}
    write_file(stamp, json.dumps(entries, indent=1) + "\n")


def cached(stamp: Path, made_of: Any, make: Callable[[Path], Any]) -> Any:
    """Return the result of ``make``, kept in the file ``stamp`` while its inputs and the files it wrote are unchanged.

    ``make`` may write files into the folder that it is given, ``stamp`` without its suffix. Its result and its inputs
    ``made_of`` are values that JSON can store.
    """
    folder, digest = stamp.with_suffix(""), hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    known = read(stamp)
    if known.get("made_of") == digest and known.get("files") == published(folder):
        return known["result"]
    stamp.parent.mkdir(parents=True, exist_ok=True)
    remove_folder(folder)
    result = make(folder)
    entry = {"made_of": digest, "files": published(folder), "result": result}
    write_file(stamp, json.dumps(entry, ensure_ascii=False))
    return result


def written(folder: Path | None, made_of: Any, make: Callable[[Path], Any], out: Path) -> Any:
    """Return the result of ``make``, which writes files into ``out``; with a cached ``folder`` its files are copied."""
    if folder is None:
        return make(out)
    result = cached(folder.with_name(f"{folder.name}.json"), made_of, make)
    if folder.is_dir():
        shutil.copytree(folder, out, dirs_exist_ok=True)
    return result


def read(stamp: Path) -> dict[str, Any]:
    """Return the content of a file of a cache; empty if it is missing or damaged."""
    try:
        known = json.loads(stamp.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_changed(file: Path, text: str) -> None:
    """Write a file atomically if its text has changed."""
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _files(place: Path) -> Iterator[Path]:
    """Yield a file, or the files below a folder in sorted order."""
    if place.is_file():
        yield place
    for file in sorted(place.rglob("*")):
        parts = file.relative_to(place).parts
        if file.is_file() and not any(part in EXCLUDED or part.startswith(".") for part in parts):
            yield file
