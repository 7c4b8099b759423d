"""The known formats, as ``formats.csv`` and ``columns.csv`` say: by what each is recognised, where its cells lie."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core import text_io
from factorykit.core.errors import DatasetError
from factorykit.telemetry import kubernetes, parsing

MOMENT: Final = pl.Datetime("us", "UTC")
TABLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "events": {"at": MOMENT, "until": MOMENT, "node": pl.String, "job": pl.String}
    | {"kind": pl.String, "cause": pl.String, "code": pl.String},
    "jobs": {"job": pl.String, "user": pl.String, "state": pl.String}
    | {"submitted": MOMENT, "started": MOMENT, "ended": MOMENT}
    | {"nodes": pl.Float64, "accelerators": pl.Float64, "node_list": pl.String},
    "steps": {"at": MOMENT, "job": pl.String, "node": pl.String}
    | {"step": pl.Float64, "step_s": pl.Float64, "checkpoint_write_s": pl.Float64},
    "power": {"at": MOMENT, "node": pl.String, "accelerator": pl.String, "job": pl.String}
    | {"accelerator_power_w": pl.Float64, "utilization": pl.Float64},
}
"""The four tidy tables: their columns and types."""
NEEDED: Final = {
    "events": ("at", "kind"),
    "jobs": ("job", "state"),
    "steps": ("step",),
    "power": ("at", "accelerator_power_w"),
}
"""Columns without which a line says nothing."""
HEAD: Final = 2000
"""Lines of a file by which it is recognised."""
END: Final = "\x1f"
"""Separates cells in no format: a line is one cell."""
OWN: Final = tuple(TABLES)
"""Formats with our own names of columns: a table is one of them where it is nothing else."""


@dataclass(frozen=True)
class Column:
    """One of our columns, and where a format has it: names, paths or expressions, of which the first told wins."""

    ours: str
    theirs: tuple[str, ...]
    read: str
    factor: float


@dataclass(frozen=True)
class Format:
    """What a kind of log looks like.

    ``lines`` is what a line, or the first of the columns ``needs``, has to match to be meant; ``named`` is the column
    that the name of a file gives where its lines do not.
    """

    name: str
    table: str
    shape: str
    separator: str
    needs: tuple[str, ...]
    lines: str
    named: str
    document: str
    columns: tuple[Column, ...]

    def fits(self, head: Sequence[str]) -> bool:
        """Return whether the first lines of a file look like this."""
        match self.shape:
            case "table":
                return set(self.needs) <= set(header(head, self.separator))
            case "line":
                return any(re.search(self.lines, line) for line in head)
            case "json":
                return any(all(_told(record, path) for path in self.needs) for record in records(head))
            case _:
                start = "".join(head[:HEAD])
                return '"resultType"' in start[:4000] and re.search(rf'"{self.lines[1:-1]}"', start) is not None


def formats() -> Mapping[str, Format]:
    """Return all formats by name."""
    return _formats()


@cache
def _formats() -> Mapping[str, Format]:
    columns: dict[str, list[Column]] = {}
    for row in _rows("columns.csv"):
        theirs = tuple(row["theirs"].split(" || "))
        columns.setdefault(row["format"], []).append(
            Column(row["ours"], theirs, row["read"], float(row["factor"] or 1.0))
        )
    return {
        row["format"]: Format(
            row["format"],
            row["table"],
            row["shape"],
            row["separator"],
            tuple(filter(None, row["needs"].split(";"))),
            row["lines"],
            row["named"],
            row["document"],
            tuple(columns[row["format"]]),
        )
        for row in _rows("formats.csv")
    }


def _rows(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def recognised(head: Sequence[str]) -> list[Format]:
    """Return the formats that the first lines of a file show; our own names count where nothing else fits."""
    found = [each for each in formats().values() if each.fits(head)]
    return [each for each in found if each.name not in OWN] or found


def header(head: Sequence[str], separator: str) -> list[str]:
    """Return the names in the first line of a table, without the units that nvidia-smi writes behind them."""
    try:
        names = next(csv.reader(head[:1], delimiter=separator), [])
    except csv.Error:  # it is none
        return []
    return [bare(name) for name in names]


def bare(name: str) -> str:
    """Return the name of a column without the unit that nvidia-smi writes behind it.

    >>> bare("power.draw [W]")
    'power.draw'
    """
    return re.sub(r" \[[^\]]*\]$", "", name.strip())


def records(lines: Iterable[str]) -> list[Any]:
    """Return the records in lines of JSON; lines that are none are left out."""
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found


def _told(record: Any, path: str) -> bool:
    for name in path.split(".")[1:]:
        if not isinstance(record, dict) or name not in record:
            return False
        record = record[name]
    return True


def scan(source: Path | bytes, separator: str = END) -> pl.LazyFrame:
    """Return the lines of a file, or its cells, as text; packed ones too."""
    is_table = separator != END
    return pl.scan_csv(
        source,
        separator=separator,
        has_header=is_table,
        new_columns=None if is_table else ["line"],
        quote_char='"' if separator == "," else None,
        infer_schema=False,
        encoding="utf8-lossy",
        truncate_ragged_lines=True,
        row_index_name="row",
        glob=False,
    )


def cell(theirs: str, shape: str) -> pl.Expr:
    """Return the text that stands in one place of a line."""
    where, _, condition = theirs.partition(" ? ")
    match shape:
        case "line":
            return pl.col("line").str.extract(where)
        case "json":
            found = pl.col("line").str.json_path_match(where)
            path, _, value = condition.partition("=")
            return pl.when(cell(path, shape) == value).then(found) if condition else found
        case _:
            return pl.col(where)


def unfolded(lines: Sequence[str]) -> tuple[bytes, int]:
    """Return one record a line, of a document of JSON or of paragraphs whose further lines begin with a space.

    Jobs and pods of Kubernetes become their attempts; the second number is how many they count and do not tell.

    Raises
    ------
    DatasetError
    """
    text = "\n".join(lines)
    if text.lstrip()[:1] not in ("[", "{"):
        return re.sub(r"\n[ \t]+", " ", text).encode(), 0
    try:
        whole = text_io.parse_json(text.encode())
    except ValueError as error:
        raise DatasetError(f"no document of JSON: it {error}; give all of it, or one record a line") from None
    items = whole.get("items", [whole]) if isinstance(whole, dict) else whole
    if kubernetes.has_workloads(items):
        told, untold = kubernetes.attempts(items)
        return "\n".join(told).encode(), untold
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in items).encode(), 0


def series(lines: Sequence[str]) -> pl.LazyFrame:
    """Return Prometheus' answer to a range query as a table: labels, ``at`` and ``value`` of each sample."""
    try:
        result = text_io.parse_json("\n".join(lines).encode())["data"]["result"]
        rows = [
            (each["metric"], [str(at) for at, _ in values], [str(value) for _, value in values])
            for each in result
            for values in [each.get("values") or [each["value"]]]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"it is no answer to a range query ({error}); give the JSON of /api/v1/query_range"
        ) from None
    labels = sorted({label for metric, _, _ in rows for label in metric})
    wide = {label: [metric.get(label) for metric, _, _ in rows] for label in labels}
    kinds = {str(label): pl.String() for label in labels} | dict.fromkeys(("at", "value"), pl.List(pl.String))
    told = pl.LazyFrame(
        wide | {"at": [at for _, at, _ in rows], "value": [value for _, _, value in rows]},
        kinds,
    )
    return told.explode("at", "value").with_row_index("row")


READERS: Final = {"text": parsing.text, "list": parsing.listed, "number": parsing.number, "tres": parsing.accelerators}
