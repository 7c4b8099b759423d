"""What a notebook's sentences say in numbers is computed in that notebook.

A number in a Markdown cell stands in a check or in other code of the notebook, or in what its section prints, in the
same size: ``24.3 EFLOP/s`` is met by ``24.3e18``, ``38 %`` by ``0.38``, ``3.09`` by an output of ``3.0897``. Names,
years, references and levels of confidence are no claims; what a sentence only quotes is listed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
NAMES = re.compile(
    r"Llama 3(?:\.1)?|Colossus 1|[Dd]ocuments? 00\d|\bL\d+(?:-\d+)?|RTX 4090|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|"
    r"\*\*(?:Figure|Table) \d+|!?\[[^\]]*\]\([^)]*\)|"
    r"95 % (?:confidence|limits|intervals?)|limits of 95 %|95 days in 100|90 % intervals?|"
    r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)(?: \d{4})?|"
    r"\b(?:mid-|early |late |in |of |from |since |until |by |and |to )(?:19|20)\d\d\b",
    re.DOTALL,
)
DIGITS = r"\d+(?:,\d{3})*(?:\.\d+)?"
NUMBER = re.compile(rf"(?<![\w.\-/,])({DIGITS})(?![\w]|,\d|\.\d)")
UNIT = re.compile(
    rf"(?:,? (?:to|and|or) {DIGITS})*"
    r"(?:\s?(%)|\s([kMGTPE])(?:Wh?|B|FLOP|USD)\b|\s(thousand|million|billion|trillion|cents)\b)"
)
LITERAL = re.compile(r"(?<![\w.])\d[\d_,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
SCALES = {"%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "cents": 0.01}
SCALES |= {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
QUOTED = {
    "01-clusters": "0.4",
    "04-layout-search": "27.6",
    "05-validation": "6; 2,090; 33; 20; 32; 20 %; 8.4 %; 14.7 %; 13.5 %",
    "06-failures": "25 %",
    "07-checkpoints": "51; 0.6",
    "10-reliability-evidence": "32,000; 98,000; 778,135; 584",
    "11-power-and-cooling": "200; 40; 1.3",
    "14-build-or-rent": "15 %; 25 %",
    "15-scheduling": "3",
    "16-scaling": "7.9; 20; 400; 15; 30",
    "19-power-claims": "150 M",
    "20-audit": "1000; 54; 40 %; 1.15 k; 10.2 k",
    "21-cost-levers": "70 %; 10 %; 20 %",
    "27-data-in-time": "3.5 %; 20",
    "28-find-and-go-on": "24,000; 98,000",
}
"""What sentences take from others, with the work beside it, or from the settings of a chart."""
ELSEWHERE = {"05-validation": "read-held-out"}
"""A cell whose numbers `python -m benchmarks.validation` prints, in minutes."""


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def printed(cell: dict[str, Any]) -> str:
    """What a cell shows as text: its prints, its tables, the numbers beside its charts."""
    shown = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        html = "".join(data.get("text/html", ""))
        table = re.sub(r"<[^>]+>", " ", html) if "<table" in html and "<script" not in html else ""
        shown.append("".join(output.get("text") or data.get("text/plain", "")) + table)
    return "\n".join(shown)


def literals(code: str) -> set[float]:
    return {float(re.sub("[_,]", "", word)) for word in LITERAL.findall(code)}


def claims(prose: str) -> Iterator[tuple[str, list[float], float]]:
    """Yield each number of a text as written, the values that it may stand for, and how far its digits reach."""
    bare = NAMES.sub(" ", prose)
    for found in NUMBER.finditer(bare):
        value = float(found[1].replace(",", ""))
        unit = UNIT.match(bare, found.end())
        said = next(filter(None, unit.groups()), "") if unit else ""
        reach = 0.5 * 10.0 ** -len(found[1].partition(".")[2])
        yield f"{found[1]} {said}".strip(), [value, value * SCALES.get(said, 1.0)], reach / value if value else 0.0


def unbound(notebook: dict[str, Any], quoted: str = "", elsewhere: str = "") -> list[str]:
    """Return the numbers of a notebook's sentences that nothing in it computes."""
    cells = notebook["cells"]
    code = literals("\n".join(text(cell) for cell in cells if cell["cell_type"] == "code"))
    sections: list[list[dict[str, Any]]] = [[]]
    for cell in cells:
        if cell["cell_type"] == "markdown" and re.search(r"^## ", text(cell), re.MULTILINE):
            sections.append([])
        sections[-1].append(cell)
    missing = []
    for section in sections:
        shown = literals("\n".join(printed(cell) for cell in section if cell["cell_type"] == "code"))
        for cell in section:
            if cell["cell_type"] != "markdown" or cell["id"] == elsewhere:
                continue
            for written, values, reach in claims(text(cell)):
                exact = any(abs(value - one) <= 1e-9 * value for value in values for one in code)
                near = any(abs(value - one) <= 1.001 * reach * value for value in values for one in shown)
                if not exact and not near and written not in quoted.split("; "):
                    missing.append(f"{cell['id']}: {written}")
    return missing


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_numbers_in_sentences_are_computed(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert unbound(notebook, QUOTED.get(path.stem, ""), ELSEWHERE.get(path.stem, "")) == []


@pytest.mark.parametrize(
    ("stem", "told", "changed"),
    [
        ("06-failures", "7.76 failures a day", "9.99"),
        ("01-clusters", "24.3 EFLOP/s", "24.3 PFLOP/s"),
        ("13-cost-of-a-run", "about 94 million USD", "about 95 million USD"),
        ("19-power-claims", "34.5 and 146.6 MW", "34.5 and 146.7 MW"),
    ],
)
def test_a_changed_number_is_found(stem: str, told: str, changed: str) -> None:
    path = next(path for path in NOTEBOOKS if path.stem == stem)
    whole = path.read_text(encoding="utf-8")
    assert told in whole
    assert unbound(json.loads(whole.replace(told, changed)), QUOTED.get(stem, ""))
