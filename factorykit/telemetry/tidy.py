"""The log: tables of all files together, deduplicated, sorted by time, with their contradictions counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, Final

import polars as pl

from factorykit.core import validation
from factorykit.core.errors import ScenarioError
from factorykit.telemetry.formats import MOMENT, TABLES
from factorykit.telemetry.parsing import node_names

NOTES: Final = {
    "file": pl.String,
    "format": pl.String,
    "issue": pl.String,
    "count": pl.Int64,
    "first_line": pl.Int64,
    "masked_line": pl.String,
}
WATCHED: Final = {"node": pl.String, "since": MOMENT, "until": MOMENT, "source": pl.String}
DUPLICATES: Final = "duplicate rows, skipped"
DOMAINS: Final = "nodes named with and without domain or port, taken as one"
OF_JOBS: Final = "step logs with the number of a job in their name, taken as of it"
OTHER_LINES: Final = "lines of other programs, ignored"
PERSONAL: Final = {"user": "user", "node": "node", "node_list": "node", "job": "job", "name": "name"}
"""Columns with names of people and machines, and the prefix of their pseudonyms."""
ATTEMPT_KEY: Final = ("job", "submitted", "started")
"""Columns that two records of one attempt share."""
IS_HELD: Final = pl.col("code").eq_missing(pl.col("code").shift(1).over("node", "accelerator", order_by="at"))
IS_GAUGE: Final = pl.col("accelerator").is_not_null()
KIND: Final = pl.when(IS_GAUGE, IS_HELD, kind="failure").then(pl.lit("notice")).otherwise("kind").alias("kind")
"""Kind of an event: a gauge that holds the last one of an accelerator reports it once."""
MAX_ACCELERATOR_W: Final = 1e5
"""Power of one accelerator above which a sample is invalid. [W]"""


@dataclass(frozen=True)
class Log:
    """Tables read from logs, and the notes of their readers.

    Attributes
    ----------
    events, jobs, steps, power
        Frames sorted by time, empty if no file has such rows; the page of the package lists their columns.
    notes
        One row per file and issue: ``file``, ``format``, ``issue``, ``count``, and for parse errors the number of the
        ``first_line`` and the ``masked_line``: its letters as x and its digits as 9, so that it reveals no secret.
    watched
        One row per node and file that observes it, failing or not: ``node``, ``since``, ``until`` and the ``source``.
        Of a scheduler ``node`` is null: it observes all nodes.
    """

    events: pl.DataFrame
    jobs: pl.DataFrame
    steps: pl.DataFrame
    power: pl.DataFrame
    notes: pl.DataFrame
    watched: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=WATCHED))

    def __post_init__(self) -> None:
        """Validate the columns of the tables and their types."""
        for name, kinds in {**TABLES, "notes": NOTES, "watched": WATCHED}.items():
            frame = validation.frame(name, getattr(self, name), kinds)
            if wrong := next((column for column, kind in kinds.items() if frame.schema[column] != kind), None):
                raise ScenarioError(f"{name}: {wrong} must be {kinds[wrong]}, got {frame.schema[wrong]}; cast it")
            object.__setattr__(self, name, frame)

    def __repr__(self) -> str:
        rows = ", ".join(f"{getattr(self, name).height:,} {name}" for name in TABLES)
        return f"Log({rows}; {self.skipped:,} skipped)"

    @property
    def skipped(self) -> int:
        """Files, lines and rows that were skipped."""
        return int(self.notes.filter(pl.col("issue").str.ends_with("skipped"))["count"].sum())

    @property
    def counts(self) -> pl.DataFrame:
        """Counts over all files: one row per ``issue`` with its ``count``, in the order of first occurrence."""
        return self.notes.group_by("issue", maintain_order=True).agg(pl.col("count").sum())

    def anonymised(self) -> Log:
        """Return the log with pseudonyms of users, nodes and jobs, the same one in all tables.

        Names are hashed with a random key that is not kept, so that a list of names cannot be tried against them.
        """
        key = token_bytes(32)
        tables = {}
        for name in (*TABLES, "watched"):
            frame = getattr(self, name)
            columns = [column for column in PERSONAL if column in frame.columns]
            tables[name] = frame.with_columns(_pseudonyms(frame[column], column, key) for column in columns)
        files = self.notes["file"].replace({name: f"file {n}" for n, name in enumerate(self.notes["file"].unique(), 1)})
        return Log(**tables, notes=self.notes.with_columns(files))


def _pseudonyms(values: pl.Series, column: str, key: bytes) -> pl.Series:
    """Return names as keyed hashes; a node list stays a list of the same nodes."""
    prefix = PERSONAL[column]

    def pseudonym(name: str) -> str:
        return f"{prefix}-{blake2b(name.encode(), key=key, digest_size=4).hexdigest()}"

    hashed = {
        name: ",".join(map(pseudonym, node_names(name))) if column == "node_list" else pseudonym(name)
        for name in values.drop_nulls().unique()
    }
    return values.replace_strict(hashed, return_dtype=pl.String) if hashed else values


def tidy_log(
    rows: Mapping[str, Sequence[pl.DataFrame]], notes: Sequence[Mapping[str, Any]], watched: Sequence[pl.DataFrame]
) -> Log:
    """Return the log made of the rows of all files."""
    all_notes = list(notes)
    tables = {name: pl.concat([pl.DataFrame(schema=dict(kinds)), *rows[name]]) for name, kinds in TABLES.items()}
    known = set(tables["jobs"]["job"])
    others = {*tables["steps"]["job"].drop_nulls().unique()} - known
    of_job = {name: number for name in others for number in re.findall(r"\d{4,}", name)[-1:] if number in known}
    tables["steps"] = tables["steps"].with_columns(pl.col("job").replace(of_job))
    all_notes += [{"format": "steps", "issue": OF_JOBS, "count": len(of_job)}] * bool(of_job)
    tables["watched"] = pl.concat([pl.DataFrame(schema=WATCHED), *watched])
    short = _short_names(tables)
    for name, frame in tables.items():
        if short and "node" in frame.columns:
            tables[name] = frame.with_columns(pl.col("node").replace(short))
    for name in TABLES:
        frame = tables[name]
        tables[name], counts = _tidy_jobs(frame) if name == "jobs" else _sort(frame, rows[name], TIDY[name])
        all_notes += [{"format": name, "issue": issue, "count": count} for issue, count in counts.items() if count]
    all_notes += [{"format": "", "issue": DOMAINS, "count": len(short)}] * bool(short)
    noted = pl.DataFrame(all_notes, NOTES).with_columns(pl.col("file", "format", "masked_line").fill_null(""))
    return Log(**tables, notes=noted)


def _short_names(tables: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    """Return the nodes named with a domain or port whose name alone is that of a node, too, by their long name."""
    lists = tables["jobs"]["node_list"].drop_nulls().unique()
    named = pl.concat([frame["node"] for frame in tables.values() if "node" in frame.columns]).drop_nulls().unique()
    short = {name: match[1] for name in named if (match := re.match(r"([^.:]*[^.:\d][^.:]*)[.:]", name))}
    known = {*named, *(node for node_list in lists for node in node_names(node_list))} if short else set()
    counts = Counter(short.values())
    return {name: alone for name, alone in short.items() if alone in known and counts[alone] == 1}


Tidied = tuple[pl.DataFrame, dict[str, int]]
"""Rows, and the counts of issues among them."""


def _sort(frame: pl.DataFrame, files: Sequence[pl.DataFrame], tidy: Callable[[pl.DataFrame], Tidied]) -> Tidied:
    """Return distinct rows sorted by time, after the checks of their table.

    Rows with strictly increasing times, as one process writes them, are distinct and sorted.
    """
    if frame.height and frame.select((pl.col("at") > pl.col("at").shift(1)).sum()).item() == frame.height - 1:
        return tidy(frame)
    distinct = frame.unique(maintain_order=True)
    unordered = sum(int((rows["at"].diff().dt.total_microseconds() < 0).sum()) for rows in files)
    kept, counts = tidy(distinct.sort("at", maintain_order=True))
    return kept, {DUPLICATES: frame.height - distinct.height, "rows out of order, sorted": unordered} | counts


def _tidy_events(rows: pl.DataFrame) -> Tidied:
    backward = (pl.col("until") < pl.col("at")).fill_null(False)
    issues = {"events that end before they start, end removed": rows.filter(backward).height}
    issues["unknown kinds of events, kept as unknown"] = rows.filter(kind="unknown").height
    return rows.with_columns(KIND, until=pl.when(~backward).then("until")), issues


def _tidy_jobs(rows: pl.DataFrame) -> Tidied:
    """Keep the record of each attempt that ends last; end an attempt at the latest when the next of its job starts."""
    kept = rows.filter((pl.col("ended") >= pl.col("started")).fill_null(True))
    backward = {"jobs that end before they start, skipped": rows.height - kept.height}
    unknown = {"unknown states, kept as unknown": int((kept["state"] == "unknown").sum())}
    if kept["job"].n_unique() == kept.height:
        return kept.sort("started", maintain_order=True), backward | unknown
    distinct = kept.unique(maintain_order=True).sort(*ATTEMPT_KEY, "ended", maintain_order=True)
    newest = distinct.unique(ATTEMPT_KEY, keep="last", maintain_order=True)
    next_start = pl.when(pl.col("job") == pl.col("job").shift(-1)).then(pl.col("started").shift(-1))
    overlap = (next_start < pl.col("ended")).fill_null(False)
    tidy = newest.with_columns(ended=pl.when(overlap).then(next_start).otherwise("ended"))
    counts = {
        "older records of an attempt, skipped": distinct.height - newest.height,
        "attempts that overlap the next one of their job, shortened": int(newest.select(overlap.sum()).item()),
    }
    issues = {DUPLICATES: kept.height - distinct.height} | backward | counts | unknown
    return tidy.sort("started", maintain_order=True), issues


def _valid(is_valid: pl.Expr, issue: str, rows: pl.DataFrame) -> Tidied:
    kept = rows.filter(is_valid.fill_null(True))
    return kept, {issue: rows.height - kept.height}


IS_POWER: Final = pl.col("accelerator_power_w").is_between(0.0, MAX_ACCELERATOR_W)
TIDY: Final = {
    "events": _tidy_events,
    "steps": partial(_valid, pl.col("step_s") > 0.0, "step times that are not positive, skipped"),
    "power": partial(_valid, IS_POWER, f"power samples outside 0 to {MAX_ACCELERATOR_W:g} W, skipped"),
}
