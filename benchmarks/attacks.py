"""Attack the package as the long tests do, count, and write what survived into data/sources/attacks.csv.

``python -m benchmarks.attacks [CALLS [MUTATIONS [KILLS [SEED]]]]``: calls with damaged arguments, mutations of each
kind of file, and kills of each writer; 0 leaves a part out. Rows of other kinds, such as pages, stay as they are.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import factorykit as fk

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "data" / "sources" / "attacks.csv"
COLUMNS = (
    "attack",
    "kind",
    "tried",
    "survived",
    "seed",
    "day",
    "version",
    "promise",
    "source",
    "locator",
    "as_of",
    "note",
)
SEED = 7001
KILLED = {
    "swap": "files of a folder",
    "file": "one file",
    "publish": "the folder of a site",
    "site": "builds of a small site",
    "notebooks": "runs of notebooks",
    "data": "builds of all tables",
    "whole": "builds of the whole site",
}
BUILDS = ("site", "notebooks", "data", "whole")


def row(attack: str, kind: str, tried: int, survived: int, promise: str, locator: str) -> dict[str, str]:
    today = datetime.now(UTC).date().isoformat()
    said = {"attack": attack, "kind": kind, "tried": tried, "survived": survived, "day": today}
    said |= {"version": fk.__version__, "promise": promise, "source": "factorykit_attacks", "locator": locator}
    return {name: str(said.get(name, "")) for name in COLUMNS} | {"as_of": today}


def attacked_calls(number: int, seed: int, folder: Path) -> Iterator[dict[str, str]]:
    from slices import failed_in_slices

    bad: set[str] = set()
    for line in failed_in_slices(seed, number, folder):
        bad.add(line.partition(" ")[0])
        print(line, flush=True)
    promise = "an answer or a FactorykitError of short, printable lines"
    yield row("calls", "calls with damaged arguments", number, number - len(bad), promise, "tests/attacks/calls.py")


def attacked_files(number: int, seed: int, folder: Path) -> Iterator[dict[str, str]]:
    from mutated import subjects, wrong

    counts: dict[str, list[int]] = {}
    every = subjects()
    for name, subject in every.items():
        kind = name.partition(" ")[0]
        each = number // sum(other.partition(" ")[0] == kind for other in every)
        bad, _ = wrong(name, subject, folder, seed, each)
        counted = counts.setdefault(kind, [0, 0])
        counted[0], counted[1] = counted[0] + each, counted[1] + each - len(bad)
        print(*bad, name, each, len(bad), flush=True)
    promise = "refused in words, or read as a second reader reads it"
    for kind, (tried, survived) in counts.items():
        yield row(f"file_{kind}", f"mutated files: {kind}", tried, survived, promise, "tests/attacks/mutated.py")


def killed_writers(number: int, _: int, folder: Path) -> Iterator[dict[str, str]]:
    from test_kills import killed, killed_builds

    promise = "the state before or the new one, whole; nothing left after the next"
    for kind, said in KILLED.items():
        is_build = kind in BUILDS
        told = (killed_builds if is_build else killed)(kind, folder / "kills" / kind, number)
        print(kind, told, flush=True)
        survived = told["tried"] - len({line.partition(":")[0] for line in told["wrong"]})
        place = f"tests/attacks/{'builds' if is_build else 'killed'}.py"
        yield row(f"kill_{kind}", f"kills: {said}", told["tried"], survived, promise, place)


def main(calls: int = 120_000, mutations: int = 10_000, kills: int = 100, seed: int = SEED) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "attacks"))
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    found: list[dict[str, str]] = []
    for attack, number in ((attacked_calls, calls), (attacked_files, mutations), (killed_writers, kills)):
        found += [each | {"seed": str(seed)} for each in attack(number, seed, folder)] if number else ()
    names = {each["attack"] for each in found}
    if TABLE.is_file():
        with TABLE.open(encoding="utf-8", newline="") as file:
            found += [each for each in csv.DictReader(file) if each["attack"] not in names]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
