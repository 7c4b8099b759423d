"""What a published site was made from, so that a build of the same can be left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from factorykit.places import write_whole

PACKAGE = Path(__file__).parent.parent
LEFT_OUT = {"__pycache__", "static", "sources", "downloads"}
"""Folders of what is made here, and of what the tables are made from."""
DRAWN_BY = ("polars", "altair", "vl-convert-python", "great-tables", "jinja2", "pypandoc_binary", "selectolax")


def inputs(root: Path, names: Iterable[str], *words: str) -> str:
    """Return a hash of all that goes into a site: named files and folders of the project, code, packages, words."""
    digest = hashlib.sha256(json.dumps([*words, *map(_version, DRAWN_BY)]).encode())
    for place in (*(root / name for name in names), PACKAGE):
        for file in _files(place):
            digest.update(f"{file}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def published(folder: Path) -> str:
    """Return a hash of what lies in a folder: names, sizes and times."""
    lines = (f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in sorted(folder.rglob("*")))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def kept(stamp: Path, made_of: str, target: Path) -> int | None:
    """Return the number of pages if ``target`` still holds what was made of the same; None if it has to be made."""
    try:
        known = _known(stamp)[str(target)]
        same = known["made_of"] == made_of and known["published"] == published(target)
        return int(known["pages"]) if same else None
    except (KeyError, TypeError):
        return None


def keep(stamp: Path, made_of: str, target: Path, pages: int) -> None:
    """Remember what a published folder was made of."""
    stamp.parent.mkdir(parents=True, exist_ok=True)
    now = {folder: said for folder, said in _known(stamp).items() if Path(folder).is_dir()}
    now[str(target)] = {"made_of": made_of, "published": published(target), "pages": pages}
    write_whole(stamp, json.dumps(now, indent=1) + "\n")


def _known(stamp: Path) -> dict[str, Any]:
    try:
        known = json.loads(stamp.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _files(place: Path) -> Iterator[Path]:
    """Yield a file, or the files below a folder, in order."""
    if place.is_file():
        yield place
    for file in sorted(place.rglob("*")):
        parts = file.relative_to(place).parts
        if file.is_file() and not any(part in LEFT_OUT or part.startswith(".") for part in parts):
            yield file
