"""Rows of all files become one log: each once, in the order of time, and what contradicts itself counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, Final

import polars as pl

from factorykit import borders
from factorykit.errors import ScenarioError
from factorykit.logs.cells import names
from factorykit.logs.formats import TABLES

NOTES: Final = {
    "file": pl.String,
    "format": pl.String,
    "what": pl.String,
    "count": pl.Int64,
    "line": pl.Int64,
    "shape": pl.String,
}
AGAIN: Final = "rows told again, left out"
OTHER: Final = "lines of something else, left out"
PERSONAL: Final = {"user": "user", "node": "node", "on": "node", "job": "job"}
"""Columns with names of people and machines, and what stands for one of them."""
ATTEMPT: Final = ("job", "submitted", "started")
"""What two records of one attempt share."""
MOST_W: Final = 1e5
"""Of one accelerator; what is more is no power. [W]"""


@dataclass(frozen=True)
class Log:
    """What logs say: four tidy tables, and what was counted, changed and left out on the way.

    Attributes
    ----------
    events, jobs, steps, power
        Frames in the order of time, empty where no file has any; the page of the package lists their columns.
    notes
        One row per file and thing counted: ``file``, ``format``, ``what``, ``count``, and of bad lines the number of
        the first ``line`` and its ``shape``: letters as x and digits as 9, so that no secret is told.
    """

    events: pl.DataFrame
    jobs: pl.DataFrame
    steps: pl.DataFrame
    power: pl.DataFrame
    notes: pl.DataFrame

    def __post_init__(self) -> None:
        """Check tables that others made.

        Raises
        ------
        ScenarioError
            If a table lacks a column, or has one of another type.
        """
        for name, kinds in {**TABLES, "notes": NOTES}.items():
            found = borders.frame(name, getattr(self, name), kinds)
            if wrong := next((column for column, kind in kinds.items() if found.schema[column] != kind), None):
                raise ScenarioError(f"{name}: {wrong} is {found.schema[wrong]}, not {kinds[wrong]}; cast it")
            object.__setattr__(self, name, found)

    def __repr__(self) -> str:
        told = ", ".join(f"{getattr(self, name).height:,} {name}" for name in TABLES)
        return f"Log({told}; {self.left_out:,} left out)"

    @property
    def left_out(self) -> int:
        """Lines and rows that should be in a table and are not."""
        meant = pl.col("what").str.ends_with("left out") & (pl.col("what") != OTHER)
        return int(self.notes.filter(meant)["count"].sum())

    @property
    def counts(self) -> pl.DataFrame:
        """What was counted in all files together: ``what`` and ``count``, in the order in which it was met."""
        return self.notes.group_by("what", maintain_order=True).agg(pl.col("count").sum())

    def anonymised(self) -> Log:
        """Return the log with names of users, nodes and jobs replaced, each by the same one in all tables.

        Names are hashed with a key that is drawn for this call and kept nowhere: nobody can try names against them.
        """
        key = token_bytes(32)
        tables = {}
        for name in TABLES:
            frame = getattr(self, name)
            given = [column for column in PERSONAL if column in frame.columns]
            tables[name] = frame.with_columns(_hashed(frame[column], column, key) for column in given)
        files = self.notes["file"].replace({name: f"file {n}" for n, name in enumerate(self.notes["file"].unique(), 1)})
        return Log(**tables, notes=self.notes.with_columns(files))


def _hashed(series: pl.Series, column: str, key: bytes) -> pl.Series:
    """Return names hashed; a list of nodes stays a list of the same nodes."""
    kind = PERSONAL[column]

    def made(text: str) -> str:
        return f"{kind}-{blake2b(text.encode(), key=key, digest_size=4).hexdigest()}"

    known = {
        text: ",".join(map(made, names(text))) if column == "on" else made(text)
        for text in series.drop_nulls().unique()
    }
    return series.replace_strict(known, return_dtype=pl.String) if known else series


def tidied(rows: Mapping[str, Sequence[pl.DataFrame]], notes: Sequence[Mapping[str, Any]]) -> Log:
    """Return rows of all files as a log."""
    counted = list(notes)
    tables = {}
    for name, kinds in TABLES.items():
        frame = pl.concat([pl.DataFrame(schema=dict(kinds)), *rows[name]])
        tidy, found = _jobs(frame) if name == "jobs" else _ordered(frame, rows[name], TIDY[name])
        counted += [{"format": name, "what": what, "count": count} for what, count in found.items() if count]
        tables[name] = tidy
    told = pl.DataFrame(counted, NOTES).with_columns(pl.col("file", "format", "shape").fill_null(""))
    return Log(**tables, notes=told)


Tidied = tuple[pl.DataFrame, dict[str, int]]


def _ordered(frame: pl.DataFrame, files: Sequence[pl.DataFrame], tidy: Callable[[pl.DataFrame], Tidied]) -> Tidied:
    """Return rows in the order of time, each once, and what further tidying leaves of them.

    Rows that are each later than the one above, as one process writes them, are so already.
    """
    if frame.height and frame.select((pl.col("at") > pl.col("at").shift(1)).sum()).item() == frame.height - 1:
        return tidy(frame)
    once = frame.unique(maintain_order=True)
    unordered = sum(int((each["at"].diff().dt.total_microseconds() < 0).sum()) for each in files)
    kept, found = tidy(once.sort("at", maintain_order=True))
    return kept, {AGAIN: frame.height - once.height, "rows before the one above them, sorted": unordered} | found


def _events(rows: pl.DataFrame) -> Tidied:
    backward = pl.col("until") < pl.col("at")
    count = rows.filter(backward).height
    return rows.with_columns(until=pl.when(~backward.fill_null(False)).then("until")), {"ends before begins": count}


def _jobs(rows: pl.DataFrame) -> Tidied:
    """One row an attempt: the record that ends last; an attempt ends at the latest when the next of its job starts.

    Jobs that are told once each have one attempt and one record of it.
    """
    kept = rows.filter((pl.col("ended") >= pl.col("started")).fill_null(True))
    backward = {"jobs that end before they start, left out": rows.height - kept.height}
    if kept["job"].n_unique() == kept.height:
        return kept.sort("started", maintain_order=True), backward | _unknown(kept)
    ordered = kept.sort(*ATTEMPT, "ended", maintain_order=True)
    is_newest, is_once = (
        pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(-1)) for name in names)
        | (pl.int_range(pl.len()) == pl.len() - 1)
        for names in (ATTEMPT, rows.columns)
    )
    again = ordered.height - int(ordered.select(is_once.sum()).item())
    newest = ordered.filter(is_newest)
    following = pl.when(pl.col("job") == pl.col("job").shift(-1)).then(pl.col("started").shift(-1))
    overlap = (following < pl.col("ended")).fill_null(False)
    tidy = newest.with_columns(ended=pl.when(overlap).then(following).otherwise("ended"))
    found = {
        "older records of an attempt, left out": kept.height - newest.height - again,
        "attempts that overlap the next one of their job, cut": int(newest.select(overlap.sum()).item()),
    }
    return tidy.sort("started", maintain_order=True), {AGAIN: again} | backward | found | _unknown(tidy)


def _unknown(jobs: pl.DataFrame) -> dict[str, int]:
    return {"states that are not known, kept as unknown": int((jobs["state"] == "unknown").sum())}


def _steps(rows: pl.DataFrame) -> Tidied:
    right = (pl.col("step_s") > 0.0).fill_null(True)
    kept = rows.filter(right)
    return kept, {"step times that are not above 0, left out": rows.height - kept.height}


def _power(rows: pl.DataFrame) -> Tidied:
    right = pl.col("accelerator_power_w").is_between(0.0, MOST_W)
    kept = rows.filter(right)
    return kept, {f"powers outside 0 to {MOST_W:g} W, left out": rows.height - kept.height}


TIDY: Final = {"events": _events, "steps": _steps, "power": _power}
