"""Log formats of ``formats.csv`` and ``columns.csv``: how each is recognised, and where its cells are."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core import text_io
from factorykit.core.errors import DatasetError
from factorykit.telemetry import kubernetes, parsing

MOMENT: Final = pl.Datetime("us", "UTC")
TABLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "events": {"at": MOMENT, "until": MOMENT, "node": pl.String, "accelerator": pl.String, "job": pl.String}
    | {"kind": pl.String, "cause": pl.String, "code": pl.String},
    "jobs": {"job": pl.String, "name": pl.String, "user": pl.String, "state": pl.String}
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
"""Columns without which a row is invalid."""
HEAD: Final = 200
"""Lines of a file that are searched first."""
END: Final = "\x1f"
"""A separator that no format has: a line is one cell."""
SURPLUS: Final = "cell beyond the header"
JOURNAL: Final = ("$.__REALTIME_TIMESTAMP", "$._HOSTNAME", "$.SYSLOG_IDENTIFIER", "$.MESSAGE")
"""Fields of a record of ``journalctl -o json`` that its short forms print."""
COLOURS: Final = r"\x1b\[[\d;]*[mK]"
RFC_5424: Final = r"^<\d{1,3}>1 (\S+ \S+ \S+) \S+ \S+ (?:-|(?:\[[^\]]*\])+) ?\x{FEFF}?"
PRIORITY: Final = r"^<\d{1,3}>"
NOT_BLANK: Final = re.compile(r"\S")
LETTERS: Final = {str(byte): chr(byte) for byte in range(256)}
"""Letters of a message with letters that cannot be printed, which is a list of bytes."""
CHART: Final = '"Step","'
"""Start of a chart that was exported from the page of W&B."""
LISTS: Final = ("items", "log_history", "jobs")
"""Names of the lists of records in a document of JSON."""
OWN: Final = tuple(TABLES)
"""Formats with our column names, for tables of no other format."""


@dataclass(frozen=True)
class Column:
    """One of our columns, and the names, paths or expressions of its cells; the first one with a value counts.

    ``unit`` is that of a number without one, or the form of timestamps where the format fixes it.
    """

    ours: str
    theirs: tuple[str, ...]
    read: str
    unit: str


@dataclass(frozen=True)
class Format:
    """A format of logs.

    ``needs`` are the columns or paths of a record, or patterns of lines that show the format; ``lines`` is the pattern
    of the lines that are read, or of the first of the columns ``needs``; the ``separator`` is that of cells, or of
    the refreshes of a progress bar in one line; ``named`` are the columns that a file gives if
    its lines do not: the node or job by its name, the time by its modification; ``watches`` is the source of the nodes
    and times that a file observes.
    """

    name: str
    table: str
    shape: str
    separator: str
    needs: tuple[str, ...]
    lines: str
    named: tuple[str, ...]
    watches: str
    document: str
    columns: tuple[Column, ...]

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of lines, each of which shows a format of lines or of series, or that all records have."""
        if self.shape == "json":
            return (f'"{self.needs[0].split(".")[1]}"',)
        return (f'"{self.lines[1:-1]}"',) if self.shape == "series" else self.needs or (self.lines,)

    def is_shown(self) -> pl.Expr:
        """Return whether any line of a file shows this format."""
        line = pl.col("line")
        if self.shape != "json":
            return pl.any_horizontal(line.str.contains(pattern).any() for pattern in self.patterns)
        record = pl.when(line.str.starts_with("{")).then(line)
        names = (record.str.contains(f'"{path.rpartition(".")[2]}"', literal=True) for path in self.needs)
        likely = pl.when(*names).then(record)
        return pl.all_horizontal(likely.str.json_path_match(path).is_not_null() for path in self.needs).any()


@cache
def formats() -> Mapping[str, Format]:
    """Return all formats by name."""
    columns: dict[str, list[Column]] = {}
    for row in text_io.package_rows(Path(__file__).with_name("columns.csv")):
        column = Column(row["ours"], tuple(row["theirs"].split(" || ")), row["read"], row["unit"])
        columns.setdefault(row["format"], []).append(column)
    by_name = {}
    for row in text_io.package_rows(Path(__file__).with_name("formats.csv")):
        lists = {key: tuple(filter(None, row[key].split(";"))) for key in ("needs", "named")}
        cells: dict[str, Any] = row | lists | {"columns": tuple(columns[row["format"]])}
        by_name[row["format"]] = Format(name=cells.pop("format"), **cells)
    return by_name


def detect(source: Path | bytes) -> list[Format]:
    """Return the formats that any line of a file shows; our own names count if nothing else fits.

    A table has its format in the first line. All others are searched in the first lines, then in the whole file.
    """
    lines = scan(source)
    head = lines.head(HEAD).collect()["line"].fill_null("").to_list() if source else []
    is_series = '"resultType"' in "".join(head)[:4000]
    is_document = bool(head) and head[0].lstrip()[:1] in ("[", "{") and not records(head[:1])  # of several lines
    shapes = ("series",) if is_series else ("table", "line") if is_document else ("table", "line", "json")
    possible = [kind for kind in formats().values() if kind.shape in shapes]
    tables = [kind for kind in possible if kind.shape == "table"]
    names = {separator: header(head, separator) for separator in {kind.separator for kind in tables}}
    matching = [kind for kind in tables if {*kind.needs} <= {*names[kind.separator]}]
    texts = pl.LazyFrame({"line": head}, {"line": pl.String})
    for part in (texts, lines) if len(head) == HEAD and not matching else (texts,):
        others = [kind for kind in possible if kind.shape != "table" and kind not in matching]
        likely = part.filter(is_likely(others))
        for test in (lambda kind: is_likely([kind]).any(), Format.is_shown):  # the second one is slow
            shown = likely.select(test(kind).alias(kind.name) for kind in others).collect(engine="streaming")
            others = [kind for kind in others if shown[kind.name].item()]
        matching += others
    return [kind for kind in matching if kind.name not in OWN] or matching


def is_likely(possible: Iterable[Format]) -> pl.Expr:
    """Return whether a line may show one of some formats: one pattern is much faster than many."""
    patterns = (f"(?:{pattern})" for kind in possible if kind.shape != "table" for pattern in kind.patterns)
    return pl.col("line").str.contains("|".join(patterns))


def header(head: Sequence[str], separator: str) -> list[str]:
    """Return the names in the first line of a table, without the units that nvidia-smi writes behind them."""
    try:
        names = next(csv.reader(head[:1], delimiter=separator), [])
    except csv.Error:  # no table
        return []
    return [without_unit(name) for name in names]


def without_unit(name: str) -> str:
    """Return the name of a column without the unit that nvidia-smi writes behind it.

    >>> without_unit("power.draw [W]")
    'power.draw'
    """
    return re.sub(r" \[[^\]]*\]$", "", name.strip())


def records(lines: Iterable[str]) -> list[Any]:
    """Return the records in lines of JSON, without other lines."""
    parsed = []
    for line in lines:
        try:
            parsed.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return parsed


def scan(
    source: Path | bytes | list[Path], separator: str = END, files: str | None = None, names: Sequence[str] = ()
) -> pl.LazyFrame:
    """Return the lines of a file, or its cells, as text; compressed ones too; the name of the file in ``files``.

    Records of a journal are the lines that ``journalctl`` prints. With the ``names`` of all columns, a cell beyond them
    is in a column of its own, ``SURPLUS``.
    """
    is_table = separator != END
    frame = pl.scan_csv(
        source,
        separator=separator,
        has_header=is_table,
        schema=dict.fromkeys([*names, SURPLUS], pl.String) if names else None,
        missing_columns="insert" if names else "raise",
        new_columns=None if is_table else ["line"],
        quote_char='"' if separator == "," else None,
        infer_schema=False,
        encoding="utf8-lossy",
        truncate_ragged_lines=True,
        row_index_name="row",
        include_file_paths=files,
        glob=False,
    )
    lines = pl.col("line").map_batches(as_text, return_dtype=pl.String, is_elementwise=True)
    return frame if is_table else frame.with_columns(lines)


def as_text(lines: pl.Series) -> pl.Series:
    """Return lines without colours, of RFC 5424 as syslog prints them, of ``journalctl -o json`` as it prints them."""
    if lines.str.contains("\x1b[", literal=True).any():
        lines = lines.str.replace_all(COLOURS, "")
    if lines.str.starts_with("<").any():
        lines = lines.str.replace(RFC_5424, "${1}: ").str.replace(PRIORITY, "")
    if not lines.str.contains(JOURNAL[0][2:], literal=True).any():
        return lines
    at, node, program, message = map(pl.col, JOURNAL)
    of_bytes = pl.when(message.str.contains(r"^\[[\d, ]+\]$")).then(message).str.extract_all(r"\d+")
    letters = of_bytes.list.eval(pl.element().replace_strict(LETTERS, default="?")).list.join("")
    number = pl.when(at.str.contains(r"^\d{1,16}$")).then(at).cast(pl.Int64)
    stamp = pl.from_epoch(number, "us").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
    text = pl.concat_str(stamp, node, program + ":", letters.fill_null(message), separator=" ", ignore_nulls=True)
    records = _values(JOURNAL, lines.str.strip_prefix("\x1e")).struct.unnest()
    return records.select(pl.when(at.is_not_null()).then(text)).to_series().fill_null(lines)


def cell(theirs: str, shape: str) -> pl.Expr:
    """Return the text at one place of a line."""
    where, _, condition = theirs.partition(" ? ")
    if shape == "line":
        return pl.col("line").str.extract(where)
    path, _, value = condition.partition("=")
    is_met = (pl.col(path.rstrip("!")) == value) ^ path.endswith("!")
    return pl.when(is_met).then(pl.col(where)) if condition else pl.col(where)


def with_paths(lines: pl.LazyFrame, known: Format) -> pl.LazyFrame:
    """Return lines with the values at the paths of a format, each record parsed once."""
    places = [known.needs[0], *(part for column in known.columns for part in column.theirs)]
    paths = dict.fromkeys(part.partition("=")[0].rstrip("!") for place in places for part in place.split(" ? "))
    kind = pl.Struct(dict.fromkeys(paths, pl.String) | {"valid": pl.Boolean})
    values = pl.col("line").map_batches(partial(_values, tuple(paths)), return_dtype=kind, is_elementwise=True)
    return lines.with_columns(values.alias("found")).unnest("found")


def _values(paths: Sequence[str], lines: pl.Series) -> pl.Series:
    """Return the texts at some paths of records of JSON, with DuckDB, null where a line is no record, not ``valid``."""
    quoted = [re.sub(r"\['([^']*)'\]", r'."\1"', path) for path in paths]
    with text_io.database().cursor() as database:
        values = f"case when starts_with(line, '{{') then try(json_extract_string(line, {quoted})) end as found"
        relation = database.from_arrow(lines.to_frame("line").to_struct())  # a frame would need pyarrow
        found = text_io.frame_of_relation(relation.project(values))["found"]
    return found.list.to_struct(fields=paths).struct.unnest().with_columns(valid=found.is_not_null()).to_struct()


def unfolded(lines: Sequence[str]) -> tuple[bytes, int]:
    """Return a document of JSON, or paragraphs whose further lines begin with a space, as one record per line.

    Jobs and pods of Kubernetes become their attempts; the second number is that of attempts without details.
    """
    text = "\n".join(lines)
    if text.startswith(CHART):
        return "\n".join(_chart_rows(text)).encode(), 0
    if re.match(r"\s*(?:\{\s*[\"}]|\[\s*[{\]\"])", text) is None:
        return re.sub(r"\n[ \t]+", " ", text).encode(), 0
    items, rest = _items(text)
    if kubernetes.has_workloads(items):
        attempts, without_details = kubernetes.attempts(items)
        return "\n".join(attempts).encode(), without_details
    records = [*(json.dumps(item, ensure_ascii=False) for item in items), *rest]
    return "\n".join(records).encode(), 0


def _items(text: str) -> tuple[list[Any], list[str]]:
    """Return the records of documents of JSON, one behind the other, and the text of the last one if it is cut."""
    items: list[Any] = []
    decoder, at = json.JSONDecoder(), 0
    while found := NOT_BLANK.search(text, at):
        try:
            whole, at = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            if items:
                return items, [re.sub(r"\s+", " ", text[at:])]
            raise DatasetError(f"no document of JSON ({error}); give all of it, or one record per line") from None
        lists = [whole.get(name) for name in LISTS] if isinstance(whole, dict) else [whole]
        items += next((value for value in lists if isinstance(value, list)), [whole])
    return items, []


def _chart_rows(text: str) -> Iterator[str]:
    """Yield the rows of a chart that was exported from the page of W&B: each column is a run and its metric."""
    for row in csv.DictReader(io.StringIO(text), restkey=""):
        runs: dict[str, dict[str, str]] = {}
        for name, value in row.items():
            run, _, metric = name.rpartition(" - ")
            if run and value:
                runs.setdefault(run, {"run": run, "Step": row["Step"]})[metric] = value
        yield from map(json.dumps, runs.values())


def series(lines: Sequence[str]) -> tuple[pl.LazyFrame, int]:
    """Return the result of a range query of Prometheus as a table: labels, ``at`` and ``value`` of each sample.

    The second value is the number of warnings, such as of an answer without the samples of some servers.
    """
    try:
        answer = json.loads("\n".join(lines), parse_float=str, parse_int=str)
        results = answer["data"]["result"]
        metrics = [{str(name): str(label) for name, label in result["metric"].items()} for result in results]
        values = [result.get("values") or [result["value"]] for result in results]
        samples = pl.Series("sample", values, pl.List(pl.List(pl.String)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pl.exceptions.PolarsError) as error:
        raise DatasetError(f"no result of a range query ({error}); give the JSON of /api/v1/query_range") from None
    labels = {"__name__", *(label for metric in metrics for label in metric)}
    wide = pl.DataFrame(metrics, dict.fromkeys(sorted(labels), pl.String)).with_columns(samples).explode("sample")
    cells = {name: pl.col("sample").list.get(place, null_on_oob=True) for place, name in enumerate(("at", "value"))}
    return wide.lazy().with_columns(**cells).drop("sample").with_row_index("row"), len(answer.get("warnings") or ())


LISTED: Final = partial(parsing.text, max_letters=math.inf)
READERS: Final = {"text": parsing.text, "list": LISTED, "tres": parsing.accelerators, "pace": parsing.pace}
