"""Kill whole builds, before a step or at any time, in processes of their own: ``python builds.py KIND FOLDER KILLS``.
``python builds.py both KIND FOLDER ROUNDS`` begins two at once.

Prints as JSON the number of trials and of killed builds, and the errors found afterwards: readers who see
neither the state before nor the new one, a next build that fails or gives another result, files, locks or kernels left.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from killed import watched

ROOT = Path(__file__).parents[2]
PR_SET_CHILD_SUBREAPER = 36
LEFT = re.compile(r"\.build-|\.incoming$|\.part$|\.new-|\.old$|^kernel-.*\.json$|^factorykit-")
"""Names of files that exist only while a build runs."""
ENDS_WITHIN_S = 10.0
"""Seconds until the child processes of a killed build must have ended."""
CELL = "import time\ntime.sleep(0.1)\nprint({number})"


@dataclass(frozen=True)
class Build:
    """A build below a folder: change of its sources, the build itself, and the files that readers see."""

    change: Callable[[int], None]
    make: Callable[[], Any]
    seen: Callable[[], Iterable[Path]]
    beside: Callable[[], Any] | None = None
    """Build of its inputs, where a separate command builds them, which may run at the same time."""


def site(folder: Path) -> Build:
    """A site of a few pages and tables, with the caches of all steps."""
    from made_site import GUARDED, Made

    from factorykit.site import build, finish

    made = Made(folder / "project")
    pages = sys.modules[build.__module__].pages  # type: ignore[attr-defined]
    pages.write = lambda _: None  # those of the formulas take seconds, and are written apart

    page = f"<!doctype html><html lang='en'><head>{GUARDED}<title>Entity</title></head><body></body></html>"

    def write(data: Path, out: Path, _: Any) -> list[list[str]]:
        for n in range(5):
            (out / "entities").mkdir(parents=True, exist_ok=True)
            (out / "entities" / f"{n}.html").write_text(page + (data / "datapackage.json").read_text("utf-8"), "utf-8")
        return []

    finish.entity_pages.write = write

    def change(number: int) -> None:
        made.write("data/datapackage.json", json.dumps({"resources": [], "state": number}))
        made.write("index.qmd", f"---\ntitle: Start\n---\nState {number}.\n")
        made.write("report/other.qmd", f"---\ntitle: Other page\n---\n## More {{#sec-more}}\n\nState {number}.\n")

    out = folder / "site"
    return Build(
        change,
        lambda: build(out, renderer="embedded", project=made.root, run=False),
        lambda: [path for path in sorted(out.rglob("*")) if path.is_file()],
    )


def notebooks(folder: Path) -> Build:
    """Three notebooks, each executed by a kernel of its own."""
    from made_site import code, markdown, notebook

    from factorykit.site import notebooks as ours

    files = [folder / "notebooks" / f"0{n}-made.ipynb" for n in (1, 2, 3)]

    def change(number: int) -> None:
        for file in files:
            file.parent.mkdir(exist_ok=True)
            file.write_text(notebook(markdown("# Made"), code(CELL.format(number=number), count=None)), "utf-8")

    return Build(change, lambda: ours.execute(files), lambda: files)


def data(folder: Path) -> Build:
    """All tables, of which the sources of one change."""
    from factorykit.data.build import build as data_build

    sources = folder / "sources"
    shutil.copytree(ROOT / "data" / "sources", sources)
    first = (sources / "workloads.csv").read_text("utf-8")
    last = first.rstrip("\n").rsplit("\n", 1)[0] + "\n"

    def change(number: int) -> None:
        (sources / "workloads.csv").write_text(last if number else first, "utf-8")

    out = folder / "data"
    return Build(
        change,
        lambda: data_build.build(out, sources=sources),
        lambda: [path for place in (out, out / ".incoming") for path in sorted(place.glob("*")) if path.is_file()],
    )


def whole(folder: Path, renderer: str = "embedded") -> Build:
    """The whole site of this project, from stored notebooks."""
    project, out = folder / "project", folder / "site"
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, project / name)
    first = (project / "index.qmd").read_text("utf-8")

    def change(number: int) -> None:
        (project / "index.qmd").write_text(f"{first}\nState {number}.\n", "utf-8")

    def make() -> None:
        from factorykit.site import build  # in the child: polars has threads, which no fork takes along

        build(out, renderer=renderer, project=project, run=False)

    return Build(change, make, lambda: [path for path in sorted(out.rglob("*")) if path.is_file()])


def tables(folder: Path) -> Build:
    """The whole site beside a build of its tables, of which the sources of one change."""
    of = whole(folder)
    source = folder / "project" / "data" / "sources" / "workloads.csv"
    first = source.read_text("utf-8")
    last = first.rstrip("\n").rsplit("\n", 1)[0] + "\n"

    def change(number: int) -> None:
        source.write_text(last if number else first, "utf-8")

    def make() -> None:
        from factorykit.data.build import build as data_build

        data_build.build(source.parents[1], sources=source.parent)

    return Build(change, of.make, of.seen, beside=make)


KINDS = {
    "site": site,
    "notebooks": notebooks,
    "data": data,
    "whole": whole,
    "quarto": partial(whole, renderer="quarto"),
    "tables": tables,
}


def run(
    make: Callable[[], Any], folder: Path, step: int | None = None, after_s: float | None = None
) -> tuple[int, int]:
    """Build in a child that is killed before a step, or after a time; return its status and the steps it reached."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        _child(make, folder, step, write_end)
    os.close(write_end)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    steps = os.read(read_end, 20)
    os.close(read_end)
    return os.waitstatus_to_exitcode(status), int(steps or 0)


def _child(make: Callable[[], Any], folder: Path, at: int | None, write_end: int) -> None:
    status = 1

    def concerns(event: str, arguments: tuple[Any, ...]) -> bool:
        if not any(str(each).startswith(str(folder)) for each in arguments[:2]):
            return False
        return event != "open" or (isinstance(arguments[1], str) and arguments[1][:1] in "wax+")

    seen = watched(at, concerns)
    try:
        make()
        status = 0
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
    finally:
        os.write(write_end, str(seen()).encode())
        os._exit(status)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def state(build: Build) -> dict[str, str]:
    """Return a digest of each file that readers see; those that have come in are the newest."""
    return {str(path).replace("/.incoming/", "/"): digest(path) for path in build.seen()}


def is_one_of(seen: Mapping[str, str], states: Iterable[Mapping[str, str]], kind: str) -> bool:
    """Return whether readers see one state; each notebook, which is published by itself, may be in another."""
    states = list(states)
    if kind != "notebooks":
        return seen in states
    return all(any(known.get(path) == digest for known in states) for path, digest in seen.items())


def orphans() -> list[str]:
    """Wait for the orphaned children of a killed build, which this process inherits; return those that do not end."""
    ends = time.monotonic() + ENDS_WITHIN_S
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return []
        if not ended and time.monotonic() > ends:
            break
        time.sleep(0 if ended else 0.05)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    lines = [Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:80] for each in children]
    for each in children:
        os.kill(int(each), signal.SIGKILL)
        os.waitpid(int(each), 0)
    return lines


def left(folder: Path) -> list[str]:
    """Return the files that a build left below a folder, and all temporary files."""
    found = [*(path for path in folder.rglob("*") if LEFT.search(path.name)), *(folder / "tmp").iterdir()]
    return [str(path.relative_to(folder)) for path in found]


def prepared(folder: Path) -> Path:
    """Return the working folder, with folders for temporary files and the home."""
    folder = folder.resolve()
    for name in ("tmp", "home"):
        (folder / name).mkdir(parents=True)
    os.environ |= {"TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home")}
    tempfile.tempdir = None
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    warnings.simplefilter("ignore")
    return folder


def both(kind: str, folder: Path, rounds: int = 5, seed: int = 16) -> dict[str, Any]:
    """Start two builds shortly after each other, for several rounds; return how many waited, and the errors.

    Both are of one kind, or one builds the inputs of the other: then readers see a result of the old or new inputs.
    """
    folder = prepared(folder)
    build = KINDS[kind](folder)
    chance = random.Random(seed)
    wrong, waited = [], 0
    states: dict[int, dict[str, str]] = {}
    for n in range(rounds + 2):
        build.change(n % 2)
        begun = time.monotonic()
        if n < 2:  # in sequence, to record the expected results
            assert run(build.beside or build.make, folder)[0] == run(build.make, folder)[0] == 0
            states[n], took_s = state(build), time.monotonic() - begun
            continue
        after_s = chance.uniform(0.0, took_s / 2.0)
        children = []
        pair = [(build.beside or build.make, "one"), (build.make, "other")]
        chance.shuffle(pair)
        for wait_s, (make, name) in zip((0.0, after_s), pair, strict=True):
            time.sleep(wait_s)
            child = os.fork()
            if child == 0:
                log = (folder / name).open("w", encoding="utf-8")
                warnings.simplefilter("always")
                warnings.showwarning = lambda message, *_, log=log: log.write(f"{message}\n") and log.flush()  # type: ignore[assignment]
                _child(make, folder, None, os.open(os.devnull, os.O_WRONLY))
            children.append(child)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        waited += any("is in use by another process" in (folder / name).read_text("utf-8") for name in ("one", "other"))
        at = f"round {n - 2}, {after_s:.3f} s later"
        if statuses != [0, 0]:
            wrong.append(f"{at}: they end with {statuses}")
        if build.beside:
            if state(build) not in states.values():
                wrong.append(f"{at}: made of neither the old nor the new")
            run(build.make, folder)
        if state(build) != states[n % 2]:
            wrong.append(f"{at}: another result")
        wrong += [f"{at}: left {each}" for each in left(folder)]
    return {"tried": rounds, "waited": waited, "wrong": wrong}


def main(kind: str, folder: Path, kills: int = 10, seed: int = 16) -> dict[str, Any]:
    """Kill a build several times, half of them before a step, half at any time, and build again after each."""
    folder = prepared(folder)
    build = KINDS[kind](folder)
    from factorykit.core import atomic_io

    states, steps, took_s = [], 0, 0.0
    for number in (0, 1, 0):
        build.change(number)
        sources = state(build) if kind == "notebooks" else {}
        begun = time.monotonic()
        status, steps = run(build.make, folder)
        took_s = time.monotonic() - begun
        assert status == 0, f"{kind} cannot be built"
        states.append((sources, state(build)))
    assert states[0] == states[-1], f"{kind} gives other bytes each time"
    assert states[0] != states[1], f"{kind} does not change"
    atomic_io.MIN_STALE_AGE_S = -1.0  # type: ignore[misc]  # no other process builds here
    chance = random.Random(seed)
    wrong: list[str] = []
    died = 0
    for kill in range(kills):
        number = 1 - kill % 2
        build.change(number)
        allowed = [states[number][1], states[number][0] if kind == "notebooks" else states[1 - number][1]]
        step, after_s = chance.randint(1, steps), chance.uniform(0.0, took_s)
        by_step = bool(chance.getrandbits(1))
        at = f"kill {kill}, before step {step}" if by_step else f"kill {kill}, after {after_s:.3f} s"
        status, _ = run(build.make, folder, step=step) if by_step else run(build.make, folder, after_s=after_s)
        died += status == -signal.SIGKILL
        if not is_one_of(state(build), allowed, kind):
            wrong.append(f"{at}: readers see neither the old nor the new state")
        wrong += [f"{at}: goes on: {line}" for line in orphans()]
        status, _ = run(build.make, folder)
        if status:
            wrong.append(f"{at}: the next build ends with {status}")
        elif state(build) != states[number][1]:
            wrong.append(f"{at}: the next build gives another result")
        wrong += [f"{at}: left {each}" for each in left(folder)]
    return {"steps": steps, "tried": kills, "killed": died, "wrong": wrong}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "site"))
    work, (kind, place, *numbers) = (both, sys.argv[2:]) if sys.argv[1] == "both" else (main, sys.argv[1:])
    print(json.dumps(work(kind, Path(place), *map(int, numbers))))
