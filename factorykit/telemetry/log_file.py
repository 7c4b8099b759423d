"""Rows of one log file: its formats are recognised, its cells parsed, and skipped lines counted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final

import polars as pl

from factorykit.core.errors import DatasetError
from factorykit.telemetry import compression, parsing, tensorboard
from factorykit.telemetry.formats import (
    CHART,
    NEEDED,
    READERS,
    TABLES,
    Column,
    Format,
    bare,
    cell,
    recognised,
    records,
    scan,
    series,
    unfolded,
    with_paths,
)
from factorykit.telemetry.tidy import OTHER_LINES, WATCHED

SOME: Final = 100
"""Lines from which the form of timestamps is inferred."""
READ: Final = "lines read"
PARSE_ERRORS: Final = "parse errors, skipped"
LOCAL: Final = "timestamps without a zone"
UNRECOGNISED: Final = "unrecognised files, skipped"
UNREADABLE: Final = "unreadable files, skipped"
TRUNCATED: Final = "truncated files, read up to the cut"
WITHOUT_DETAILS: Final = "attempts without details, skipped"
UNFINISHED: Final = "unfinished last line, skipped"
TIMED_BY_FILE: Final = "rows without a time, which have that of the file"
IMPLAUSIBLE: Final = "implausible timestamps, skipped"
FIRST_DAY: Final = date(2005, 1, 1)
"""Earlier timestamps are those of a clock that was not set."""
HOUR: Final = pl.when(pl.col("line") < "A").then(13).otherwise(9)
"""Letters of a timestamp up to the hour: ``2026-03-01T12``, ``Mar  1 12``."""
SERIES: Final = r"^([^}]*\})"
"""Name and labels of a sample of Prometheus."""
MAX_GAP: Final = timedelta(days=366)
MIN_SHARE: Final = 0.05
"""A period more than a year from all others, with fewer of the timestamps of a file, is that of a wrong clock."""
PACKED: Final = (compression.GZIP, compression.ZSTD)
START: Final = 64
"""Bytes that identify an event file."""


@dataclass(frozen=True)
class Source:
    """A file, and its text or the lines made of it; the last line may be unfinished."""

    file: Path
    text: Path | bytes
    is_unfinished: bool

    @property
    def modified(self) -> datetime:
        """Time of the last change."""
        return datetime.fromtimestamp(self.file.stat().st_mtime, UTC)

    @property
    def stem(self) -> str:
        """Job or node in the name: the number of a Slurm job, or the part before the first point.

        The folder of an event file has the name of its run.
        """
        if ".tfevents." in self.file.name:
            return self.file.parent.name
        number = re.search(r"(?:slurm|job)[-_]?(\d+)", self.file.name)
        return number[1] if number else self.file.name.partition(".")[0]


@dataclass
class Reading:
    """Rows and notes so far."""

    zone: str
    rows: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: {name: [] for name in TABLES})
    notes: list[dict[str, Any]] = field(default_factory=list)
    watched: list[pl.DataFrame] = field(default_factory=list)

    def note(self, file: Path, known: str, issue: str, count: int, line: int | None = None, shape: str = "") -> None:
        """Note how often an issue occurs, if it does."""
        if count:
            note = {"file": file.name, "format": known, "issue": issue, "count": count}
            self.notes.append(note | {"first_line": line, "masked_line": shape})


def read_file(file: Path, chosen: Format | None, reading: Reading) -> None:
    """Read one file, up to the cut if its compression is truncated."""
    source = _source(file, reading)
    found = [chosen] if chosen else recognised(source.text)
    if not found:
        source, found = _unfolded(source, reading)
    if not found:
        reading.note(file, "", UNRECOGNISED, 1)
    for known in found:
        rows = rows_of(known, source, reading)
        if rows.height:
            reading.rows[known.table].append(rows)


def _source(file: Path, reading: Reading) -> Source:
    with file.open("rb") as stream:
        if tensorboard.is_event_file(stream.read(START)):
            return Source(file, _scalars(file, stream, reading), False)
    is_truncated, tail = compression.ending(file)
    reading.note(file, "", TRUNCATED, int(is_truncated))
    text = compression.truncated(file) if is_truncated else file
    return Source(file, text, not is_truncated and is_unfinished(tail))


def is_unfinished(tail: bytes) -> bool:
    """Return whether a text ends within a line; a complete record of JSON is one without a line end, too."""
    last = tail.rpartition(b"\n")[2].strip()
    return bool(last) and not (last.startswith(b"{") and records([last.decode(errors="replace")]))


def _scalars(file: Path, stream: BinaryIO, reading: Reading) -> bytes:
    """Return the scalars of an event file as lines of JSON."""
    stream.seek(0)
    lines, wrong, is_cut = tensorboard.scalars(stream)
    reading.note(file, "tensorboard_events", PARSE_ERRORS, wrong)
    reading.note(file, "tensorboard_events", TRUNCATED, int(is_cut))
    return lines


def _unfolded(source: Source, reading: Reading) -> tuple[Source, list[Format]]:
    """Return a document of JSON or indented paragraphs as a record per line, and their formats."""
    lines = _lines(source.text)
    if not any(line[:1] in ("[", "{", " ") or line.startswith(CHART) for line in lines if line):
        return source, []
    text, without_details = unfolded(lines)
    found = recognised(text)
    reading.note(source.file, found[0].name if found else "", WITHOUT_DETAILS, without_details)
    return Source(source.file, text, source.is_unfinished and is_unfinished(text)), found


def _lines(text: Path | bytes) -> list[str]:
    return scan(text).collect()["line"].fill_null("").to_list() if text else []


def rows_of(known: Format, source: Source, reading: Reading) -> pl.DataFrame:
    """Return the tidy rows of a file, and note its other lines and the nodes that it observes."""
    frame, names = _frame(known, source)
    found = {
        column: theirs
        for column in known.columns
        if (theirs := [each for each in column.theirs if known.shape in ("line", "json") or each in names])
    }
    cells = [_cell(theirs, known).alias(column.ours) for column, theirs in found.items()]
    if "at" in known.named:
        cells.append(cell(SERIES, "line").alias("series"))
    texts = frame.filter(_is_meant(known, names)).select("row", *cells)
    lines, last = frame.select(pl.len()), None
    if known.watches == "lines":  # most lines are not read, but watched: the file is scanned once
        collected = pl.collect_all([lines, texts, ends(frame)], engine="streaming")
        lines, texts, last = (part.lazy() for part in collected)
        if collected[1].is_empty():
            return _watch_only(known, source, reading, collected[0].item(), last)
    some = texts.head(SOME).collect(engine="streaming")
    forms = {
        column.ours: (column.unit, None) if column.unit else parsing.usual(some[column.ours])
        for column in found
        if column.read == "moment"
    }
    read = {column.ours: _value(column, pl.col(column.ours)) for column in found if column.read != "moment"}
    read |= {
        name: parsing.moment(pl.col(name), reading.zone, form, _without_year(some[name], source))
        for name, form in forms.items()
    }
    for name in {"node", "job"}.intersection(known.named):
        read[name] = read.get(name, pl.lit(None, pl.String)).fill_null(source.stem)
    if "at" in known.named and (count := _scraped(texts)):
        read["at"] = pl.when(pl.col("at").is_null()).then(pl.lit(source.modified)).otherwise(read["at"])
        reading.note(source.file, known.name, TIMED_BY_FILE, count)
    tried = [column.ours for column in found if column.read in ("moment", "number")]
    local = [parsing.is_local(pl.col(name), form) for name, form in forms.items()]
    values = texts.select(
        "row",
        *(read.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in TABLES[known.table].items()),
        *(
            parsing.has_value(pl.when(read[name].is_null()).then(pl.col(name))).fill_null(False).alias(f"{name} unread")
            for name in tried
        ),
        local=pl.any_horizontal(local) if local else pl.lit(False),
    )
    missing = [pl.col(name).is_null() for name in NEEDED[known.table]]
    unread = [f"{name} unread" for name in tried]
    marked = values.with_columns(bad=pl.any_horizontal(*missing, *unread)).drop(unread)
    count, rows = pl.collect_all([lines, marked], engine="streaming")
    _note(known, source, reading, count.item(), rows)
    kept, wrong = _plausible(rows.filter(~pl.col("bad")).drop("row", "bad", "local"))
    reading.note(source.file, known.name, IMPLAUSIBLE, wrong)
    if known.watches:
        stamps = kept if last is None else _stamps(known, source, last, reading.zone)
        reading.watched += [watched(known, stamps)] if stamps.height else []
    return kept


def _watch_only(known: Format, source: Source, reading: Reading, lines: int, last: pl.LazyFrame) -> pl.DataFrame:
    """Note that a file has no event, and the nodes that it observes; return no rows."""
    rows = pl.DataFrame(schema=TABLES[known.table])
    _note(known, source, reading, lines, rows.with_columns(bad=False, local=False))
    if (stamps := _stamps(known, source, last, reading.zone)).height:
        reading.watched.append(watched(known, stamps))
    return rows


def _scraped(texts: pl.LazyFrame) -> int:
    """Return the number of samples without a time, which are those of one scrape.

    Raises
    ------
    DatasetError
        If there are several scrapes, whose times are not known.
    """
    samples = texts.filter(pl.col("at").is_null()).select("series").collect(engine="streaming")["series"]
    if samples.n_unique() < samples.len():
        raise DatasetError("several scrapes without times; give one file per scrape, or Prometheus' own answer")
    return samples.len()


def _note(known: Format, source: Source, reading: Reading, lines: int, rows: pl.DataFrame) -> None:
    """Note how many lines of a file were read, which ones are not, and which have no zone."""
    reading.note(source.file, known.name, READ, lines)
    reading.note(source.file, known.name, OTHER_LINES, lines - rows.height)
    reading.note(source.file, known.name, UNFINISHED, int(source.is_unfinished and known.shape != "series"))
    if rows.height and len(wrong := rows.filter("bad")["row"]):
        line = int(wrong[0]) + (2 if known.shape == "table" else 1)
        reading.note(source.file, known.name, PARSE_ERRORS, len(wrong), line, _shape(source.text, line))
    reading.note(source.file, known.name, f"{LOCAL}, taken as {reading.zone}", int(rows["local"].sum()))


def _without_year(stamps: pl.Series, source: Source) -> pl.Expr | None:
    """Return when a file was modified, if its timestamps have no year."""
    return pl.lit(source.modified) if stamps.str.contains(parsing.WITHOUT_YEAR).any() else None


def _plausible(rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the rows whose timestamps are those of a clock that was set, and the number of the others.

    One wrong timestamp would stretch the period of a log, and so the time between failures, by decades.
    """
    if rows.is_empty():
        return rows, 0
    names = rows.select(pl.selectors.datetime()).columns
    count = pl.col("lines") if "lines" in rows.columns else pl.lit(1)
    dates = (rows.select(pl.col(name).dt.date().alias("day"), count.alias("count")) for name in names)
    days = pl.concat(dates).drop_nulls("day").group_by("day").agg(pl.col("count").sum()).sort("day")
    periods = days.with_columns(period=(pl.col("day").diff() > MAX_GAP).fill_null(False).cum_sum())
    share = pl.col("count").sum().over("period") / pl.col("count").sum()
    wrong = periods.filter((pl.col("day") < FIRST_DAY) | (share < MIN_SHARE))["day"]
    is_wrong = pl.any_horizontal(pl.col(name).dt.date().is_in(wrong.implode()).fill_null(False) for name in names)
    kept = rows.filter(~is_wrong) if len(wrong) else rows
    return kept, rows.height - kept.height


def ends(frame: pl.LazyFrame, *by: str, **more: pl.Expr) -> pl.LazyFrame:
    """Return the first and the last line of each node in each hour, in the order of the file.

    Up to the hour, lines of one node and hour are the same; so the smallest text is that of the earliest time.
    """
    line = pl.col("line")
    keys = line.str.head(HOUR).alias("hour"), line.str.slice(HOUR).str.splitn(" ", 3).struct[1].alias("node")
    found = frame.group_by(*by, *keys).agg(
        pl.col("row").min(), first=line.min(), last=line.max(), lines=pl.len(), **more
    )
    return found.sort("row").select(*by, *more, "lines", line=pl.concat_list("first", "last")).explode("line")


def cells_of(known: Format, *names: str) -> list[pl.Expr]:
    """Return the texts of some of our columns in the lines of a format."""
    return [_cell(column.theirs, known).alias(column.ours) for column in known.columns if column.ours in names]


def _stamps(known: Format, source: Source, last: pl.LazyFrame, zone: str) -> pl.DataFrame:
    """Return node and time of lines of a file, whether they are events or not."""
    found = last.select("lines", *cells_of(known, "at", "node")).drop_nulls("at").collect()
    form, modified = parsing.usual(found["at"].head(SOME)), _without_year(found["at"], source)
    node = parsing.text(pl.col("node")).fill_null(source.stem)
    return _plausible(found.select("lines", node, parsing.moment(pl.col("at"), zone, form, modified)))[0]


def watched(known: Format, rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return the period in which a file observes each node, or for a scheduler that of all its nodes."""
    node = pl.lit(None, pl.String) if known.watches == "scheduler" else pl.col("node")
    last = "until" if "until" in rows.columns else "at"
    periods = rows.drop_nulls("at").group_by(*by, node.alias("node"), maintain_order=True)
    found = periods.agg(since=pl.col("at").min(), until=pl.max_horizontal(pl.col("at").max(), pl.col(last).max()))
    return found.with_columns(source=pl.lit(known.name)).cast(pl.Schema(WATCHED))


def _is_meant(known: Format, names: Iterable[str]) -> pl.Expr:
    """Return whether a line belongs to the format, and not to another program that writes to the same file."""
    if not known.lines:
        return pl.lit(True)
    first = "line" if known.shape == "line" else "__name__" if "__name__" in names else known.needs[0]
    return pl.col(first).str.contains(known.lines).fill_null(False)


def _cell(theirs: Iterable[str], known: Format) -> pl.Expr:
    """Return the text of the first of some places that has one; commas are often followed by a space."""
    text = pl.coalesce(cell(each, known.shape) for each in theirs)
    return text.str.strip_chars() if known.separator != "|" else text


def _shape(source: Path | bytes, line: int) -> str:
    """Return a line with its letters as x and its digits as 9, so that it reveals no secret."""
    found = scan(source).filter(pl.col("row") == line - 1).head(1).collect()["line"]
    text = str(found[0])[:120] if len(found) else ""
    return re.sub(r"[^\W\d_]", "x", re.sub(r"\d", "9", text))


def _frame(known: Format, source: Source) -> tuple[pl.LazyFrame, list[str]]:
    """Return the text of a file as columns without an unfinished last line, and their names."""
    if known.shape == "series":
        frame = series(_lines(source.text))
        return frame, [name for name in frame.collect_schema().names() if name != "row"]
    frame = scan(source.text, known.separator) if known.shape == "table" else scan(source.text)
    if source.is_unfinished:
        frame = frame.head(max(frame.select(pl.len()).collect(engine="streaming").item() - 1, 0))
    if known.shape != "table":
        return with_paths(frame, known) if known.shape == "json" else frame, ["line"]
    theirs = frame.collect_schema().names()
    names = [bare(name) for name in theirs]
    return frame.rename(dict(zip(theirs, names, strict=True))), names[1:]


def _value(column: Column, cells: pl.Expr) -> pl.Expr:
    if column.read == "number":
        return parsing.number(cells, column.unit)
    return READERS[column.read](cells) if column.read in READERS else parsing.word(column.read, cells)
