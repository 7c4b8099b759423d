"""Numbers in the sentences of a notebook are computed in that notebook.

A number in a Markdown cell or in the finding of a notebook occurs in its code or in the output of its section, of the
same size: ``24.3 EFLOP/s`` matches ``24.3e18``, ``38 %`` matches ``0.38``, ``3.09`` an output of ``3.0897``. Names,
years, references and confidence levels are not claims; numbers quoted from others are listed in the notebook's
metadata.
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
ELSEWHERE = {"05-validation": "read-held-out"}
"""Cells whose numbers `python -m benchmarks.validation` computes, which takes minutes."""


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def printed(cell: dict[str, Any]) -> str:
    """Return the text output of a cell: prints, tables, numbers beside its charts."""
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
    """Yield each number of a text as written, its possible values, and its relative rounding error."""
    bare = NAMES.sub(" ", prose)
    for found in NUMBER.finditer(bare):
        value = float(found[1].replace(",", ""))
        unit = UNIT.match(bare, found.end())
        unit_name = next(filter(None, unit.groups()), "") if unit else ""
        reach = 0.5 * 10.0 ** -len(found[1].partition(".")[2])
        yield (
            f"{found[1]} {unit_name}".strip(),
            [value, value * SCALES.get(unit_name, 1.0)],
            reach / value if value else 0.0,
        )


def uncomputed(notebook: dict[str, Any], elsewhere: str = "") -> list[str]:
    """Return the numbers in the finding and the sentences of a notebook that none of its code or outputs gives."""
    cells, about = notebook["cells"], notebook["metadata"]["factorykit"]
    code = literals("\n".join(text(cell) for cell in cells if cell["cell_type"] == "code"))
    sections: list[list[dict[str, Any]]] = [[]]
    for cell in cells:
        if cell["cell_type"] == "markdown" and re.search(r"^## ", text(cell), re.MULTILINE):
            sections.append([])
        sections[-1].append(cell)

    def printed_numbers(cells: list[dict[str, Any]]) -> set[float]:
        return literals("\n".join(printed(cell) for cell in cells if cell["cell_type"] == "code"))

    everything = printed_numbers(cells)
    prose = [("finding", about["finding"], everything), (cells[0]["id"], text(cells[0]), everything)]
    for section in sections:
        numbers = printed_numbers(section)
        prose += [
            (cell["id"], text(cell), numbers)
            for cell in section
            if cell["cell_type"] == "markdown" and cell["id"] not in (elsewhere, cells[0]["id"])
        ]
    missing = []
    for place, sentences, numbers in prose:
        for written, values, reach in claims(sentences):
            exact = any(abs(value - one) <= 1e-9 * value for value in values for one in code)
            near = any(abs(value - one) <= 1.001 * reach * value for value in values for one in numbers)
            if not exact and not near and written not in about.get("quoted", ()):
                missing.append(f"{place}: {written}")
    return missing


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_numbers_in_sentences_are_computed(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert uncomputed(notebook, ELSEWHERE.get(path.stem, "")) == []


@pytest.mark.parametrize(
    ("stem", "written", "changed"),
    [
        ("06-failures", "7.76 failures a day", "9.99"),
        ("01-clusters", "24.3 EFLOP/s", "24.3 PFLOP/s"),
        ("13-cost-of-a-run", "about 94 million USD", "about 95 million USD"),
        ("19-power-claims", "34.5 and 146.6 MW", "34.5 and 146.7 MW"),
    ],
)
def test_a_changed_number_is_found(stem: str, written: str, changed: str) -> None:
    path = next(path for path in NOTEBOOKS if path.stem == stem)
    whole = path.read_text(encoding="utf-8")
    assert written in whole
    assert uncomputed(json.loads(whole.replace(written, changed)))
