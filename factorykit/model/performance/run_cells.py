"""Cells of rows of training runs, read as numbers and words; a cell that states nothing is None."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from factorykit.core.errors import ScenarioError
from factorykit.core.text_io import package_rows
from factorykit.model.performance import source_terms

NEEDED: Final = ("layers", "hidden", "heads", "seq_len", "accelerator", "accelerator_count")
"""Columns without which nothing can be predicted."""
COLUMNS: Final = {row["column"]: row for row in package_rows(Path(__file__).with_name("run_columns.csv"))}
"""Columns that are read, by name, with their ``kind``: counts, other numbers of the configuration, features of the
software that override the defaults of its framework, further optional numbers, texts, and quantities of hybrid models
that no column of the table states; they come from the architecture of the row's model."""
COUNTS, SOFTWARE, TEXTS, STATES = (
    tuple(name for name, row in COLUMNS.items() if row["kind"] == kind)
    for kind in ("count", "software", "text", "state")
)
NUMBERS: Final = {name for name, row in COLUMNS.items() if row["kind"] in ("count", "number")}
NUMERIC: Final = COLUMNS.keys() - {*TEXTS, *STATES}
"""All columns of numbers."""
SHAPE: Final = {name: row["architecture"] for name, row in COLUMNS.items() if row["architecture"]}
"""Columns of a shape, and their names in the table of architectures."""
CHOICES: Final = {
    "optimizer": ("adam", "adamw", "adam_8bit", "adafactor", "sgd", "lion", "muon"),
    "memory_measure": ("allocated", "reserved", "process"),
    "fabric": ("infiniband", "roce", "omni_path", "efa"),
}
"""Values of columns of text that are no quantities."""
MAX_NUMBER: Final = 1e15
"""Bound of these columns; products of larger numbers could overflow."""
SEQUENCE_K: Final = 1024.0
"""Value of a k in the tokens of a sequence."""
RECIPE_YEAR: Final = 2023.0
"""Year from which recipes shard the optimizer, split norms and interleave stages where a source does not state it."""


def family(group: str) -> str:
    """Return the family of a group: the word before the first hyphen.

    >>> family("mosaicml-7b")
    'mosaicml'
    """
    return group.partition("-")[0]


def software_year(row: Mapping[str, Any]) -> float | None:
    """Return the release of a row's software as a year with fraction: that of its month, or the middle of its year.

    >>> software_year({"release_month": "2026-04", "year": 2026}), software_year({"year": 2023})
    (2026.25, 2023.5)
    """
    year, _, month = (row.get("release_month") or "").partition("-")
    if year.isdigit() and month.isdigit():
        return float(year) + (float(month) - 1.0) / 12.0
    return float(row["year"]) + 0.5 if row.get("year") else None


def read_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its numbers as floats, after a check of the texts that have a choice of values."""
    read = {name: None if _is_missing(cell) else cell for name, cell in row.items()}
    read |= {name: read_number(row, name) for name in row if name in NUMERIC}
    for name, choices in CHOICES.items():
        if read.get(name) not in (None, *choices):
            raise ScenarioError(f"{name} must be one of {', '.join(choices)}, got {read[name]!r}")
    return read


def read_number(row: Mapping[str, Any], name: str) -> float | None:
    """Return the number in a cell, which may have its unit behind it, or the column's name before it, as in TP8."""
    cell = row.get(name)
    if _is_missing(cell) or (isinstance(cell, str) and cell.lower() == "none"):
        return None
    read = None
    try:
        if isinstance(cell, str):
            plain = re.sub(rf"^{name}[ =:-]?| ?{COLUMNS[name]['unit'] or name}$", "", cell, flags=re.IGNORECASE)
            read = source_terms.number(plain, SEQUENCE_K if name == "seq_len" else 1000.0)
        number = float(cell) if read is None else read  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ScenarioError(f"{name} must be a number, got {cell!r}") from None
    if not abs(number) < MAX_NUMBER:
        raise ScenarioError(f"{name} must be below {MAX_NUMBER:g}, got {number:g}")
    if name in COUNTS and number % 1.0:
        raise ScenarioError(f"{name} must be a whole number, got {number:g}")
    return number


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.lower() in source_terms.MISSING)
