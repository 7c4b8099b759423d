"""Word counts that keep the language of the project plain: no private idioms in docstrings, messages and pages."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "formulas", "data", "engine", "model", "telemetry", "charts", "widgets", "site")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "*.qmd", "report/*.qmd")

WORDS = {
    "say": re.compile(r"\b(?:un)?sa(?:y|ys|id|ying)\b", re.IGNORECASE),
    "tell": re.compile(r"\b(?:tell|tells|told|telling)\b", re.IGNORECASE),
    "nobody": re.compile(r"\b(?:nobody|somebody|whoever|one's own)\b", re.IGNORECASE),
    "what": re.compile(r"\bwhat\b(?![^.?!]*\?)", re.IGNORECASE),
    "door": re.compile(r"\b(?:doors?|borders?(?![-:])|strangers?)\b", re.IGNORECASE),
}
"""Word groups by name. "What" inside a question is not counted."""

TARGET = {"say": 2.0, "tell": 1.0, "nobody": 0.5, "what": 15.0, "door": 1.0}
"""The most occurrences per 10,000 words; a group with fewer than ``SMALL_COUNT`` occurrences passes."""
SMALL_COUNT = 2


def python_texts(path: Path) -> Iterator[str]:
    """Yield the comments of a file and its strings that are sentences: docstrings, messages, help texts."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            text = " ".join(part.value for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if len(re.findall(r"\b[a-z]+ [a-z]+\b", text)) > 1:
            yield re.sub(r"^\s*(>>>|\.\.\.).*$", "", text, flags=re.MULTILINE)


def page_texts(path: Path) -> Iterator[str]:
    """Yield the prose of a page, without its code blocks."""
    yield re.sub(r"^```.*?^```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def notebook_texts(path: Path) -> Iterator[str]:
    """Yield the Markdown cells of a notebook."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"])


def texts(part: str) -> Iterator[str]:
    """Yield the texts of a part of the project: a package, "tests", "pages", "notebooks" or "vocabulary"."""
    if part == "pages":
        for path in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
            yield from page_texts(path)
    elif part == "notebooks":
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            yield from notebook_texts(path)
    elif part == "vocabulary":
        yield (ROOT / "factorykit/core/quantities.csv").read_text(encoding="utf-8")
    else:
        folder = ROOT / ("tests" if part == "tests" else f"factorykit/{part}")
        paths = ROOT.glob("factorykit/*.py") if part == "cli" else folder.rglob("*.py")
        for path in sorted(path for path in paths if path != Path(__file__)):
            yield from python_texts(path)


PARTS = (*PACKAGES, "cli", "tests", "vocabulary", "pages", "notebooks")


@cache
def counts(part: str) -> tuple[int, dict[str, int]]:
    """Return the number of words of a part, and the number of occurrences of each group."""
    joined = "\n".join(texts(part))
    return len(re.findall(r"[A-Za-z]{2,}", joined)), {name: len(found.findall(joined)) for name, found in WORDS.items()}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("group", WORDS)
def test_private_idioms_stay_below_their_limit(part, group):
    words, found = counts(part)
    assert found[group] <= SMALL_COUNT or found[group] * 10_000 / words < TARGET[group]


def table() -> Iterator[str]:
    """Yield the occurrences per 10,000 words, a line for each part."""
    yield f"{'part':12}{'words':>8}" + "".join(f"{group:>9}" for group in WORDS)
    for part in PARTS:
        words, found = counts(part)
        yield f"{part:12}{words:8}" + "".join(f"{found[group] * 10_000 / words:9.1f}" for group in WORDS)
    total = sum(counts(part)[0] for part in PARTS)
    sums = [sum(counts(part)[1][group] for part in PARTS) for group in WORDS]
    yield f"{'all':12}{total:8}" + "".join(f"{number * 10_000 / total:9.1f}" for number in sums)


if __name__ == "__main__":
    sys.stdout.write("\n".join(table()) + "\n")
