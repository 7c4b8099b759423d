"""Rows of one log file: its formats are recognised, its cells parsed, and skipped lines counted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import polars as pl

from factorykit.core.errors import DatasetError
from factorykit.telemetry import compression, parsing, tensorboard
from factorykit.telemetry.formats import (
    CHART,
    HEAD,
    NEEDED,
    READERS,
    SURPLUS,
    TABLES,
    Column,
    Format,
    cell,
    detect,
    records,
    scan,
    series,
    unfolded,
    with_paths,
    without_unit,
)
from factorykit.telemetry.tidy import KIND, OTHER_LINES, WATCHED

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
UNTIMED: Final = "steps without a time, which no ledger has"
NOT_UTF8: Final = "rows with names that are not UTF-8, whose other letters may have been different"
REPLACEMENT: Final = "\ufffd"
WARNINGS: Final = "warnings of Prometheus, whose answer may lack samples"
SPREAD: Final = "events of which only their number is known, at even times from the first to the last"
REPLICAS: Final = "samples of other replicas of Prometheus, skipped"
UNNAMED: Final = "samples without an accelerator, taken as of one per node"
MIN_SAMPLES: Final = 20
MAX_TIMES: Final = 10_000
"""Most occurrences of an event that are counted together."""
IMPLAUSIBLE: Final = "implausible timestamps, skipped"
FIRST_DAY: Final = date(2005, 1, 1)
"""Earlier timestamps are those of a clock that was not set."""
PERIOD: Final = 9
"""First letters of a timestamp: lines of a node that share them sort by time (``2026-03-0``, ``Mar  1 12``)."""
SERIES: Final = r"^([^}]*\})"
"""Name and labels of a sample of Prometheus."""
MAX_GAP: Final = timedelta(days=366)
MIN_SHARE: Final = 0.05
"""A period more than a year from all others, with fewer of the timestamps of a file, is that of a wrong clock."""
DAY: Final = r"(.)[-_](?:19|20)\d\d-?[01]\d-?[0-3]\d$"
"""Day at the end of the name of a file, which is no part of the name of a node."""
STEM: Final = {"job": pl.col("stem"), "node": pl.col("stem").str.replace(DAY, "$1")}
START: Final = 64
"""Bytes that identify an event file."""


@dataclass(frozen=True)
class Source:
    """A file, and its text or the lines made of it; the last line may be unfinished, and others may be before them."""

    file: Path
    text: Path | bytes
    is_unfinished: bool
    is_continued: bool = False

    @property
    def modified(self) -> datetime:
        """Time of the last change."""
        return datetime.fromtimestamp(self.file.stat().st_mtime, UTC)

    @property
    def columns(self) -> dict[str, pl.Expr]:
        """What lines of the file need beside their text."""
        return {"file": pl.lit(0), "stem": pl.lit(self.stem), "modified": pl.lit(self.modified)}

    @property
    def stem(self) -> str:
        """Job or node in the name: the number of a Slurm job, or the part before the first point.

        Of an event file and of one without a number but a day, such as ``n1/power.csv``, the folder has that name.
        """
        folder, name = self.file.parent.name, self.file.name.partition(".")[0]
        is_numbered = re.search(r"\d", re.sub(DAY, r"\1", f".-{name}"))
        if ".tfevents." in self.file.name or (re.search(r"\d", folder) and not is_numbered):
            return folder
        number = re.search(r"(?:slurm|job)[-_]?(\d+(?:_\d{1,5}\b)?)", self.file.name)
        return number[1] if number else name


@dataclass
class Reading:
    """Rows and notes so far."""

    zone: str
    rows: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: {name: [] for name in TABLES})
    notes: list[dict[str, Any]] = field(default_factory=list)
    watched: list[pl.DataFrame] = field(default_factory=list)
    counted: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    def spread(self) -> None:
        """Add a row for each occurrence of the events that all files report together."""
        for known, reports in self.counted.items():
            counted = pl.concat(reports)
            events = _spread(counted)
            self.rows["events"].append(events.select(list(TABLES["events"])))
            self.note(Path(), known, SPREAD, events.height - counted.height)

    def note(self, file: Path, known: str, issue: str, count: int, line: int | None = None, shape: str = "") -> None:
        """Note how often an issue occurs, if it does."""
        if count:
            note = {"file": file.name, "format": known, "issue": issue, "count": count}
            self.notes.append(note | {"first_line": line, "masked_line": shape})


def read_file(file: Path, chosen: Format | None, reading: Reading) -> None:
    """Read one file, up to the cut if its compression is truncated."""
    source = _source(file, reading)
    file_formats = [chosen] if chosen else detect(source.text)
    if not file_formats:
        source, file_formats = _unfolded(source, reading)
    if not file_formats:
        reading.note(file, "", UNRECOGNISED, 1)
    for known in file_formats:
        rows = rows_of(known, source, reading)
        if rows.height:
            reading.rows[known.table].append(rows)


def _source(file: Path, reading: Reading) -> Source:
    with file.open("rb") as stream:
        if tensorboard.is_event_file(stream.read(START)):
            return Source(file, _scalars(file, stream, reading), False)
    is_truncated, tail = compression.ending(file)
    reading.note(file, "", TRUNCATED, int(is_truncated))
    text = compression.text_of(file, is_truncated)
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
    file_formats = detect(text)
    reading.note(source.file, file_formats[0].name if file_formats else "", WITHOUT_DETAILS, without_details)
    return Source(source.file, text, source.is_unfinished and is_unfinished(text)), file_formats


def _lines(text: Path | bytes) -> list[str]:
    return scan(text).collect()["line"].fill_null("").to_list() if text else []


def rows_of(known: Format, source: Source, reading: Reading) -> pl.DataFrame:
    """Return the tidy rows of a file, and note its other lines and the nodes that it observes."""
    frame, names = _frame(known, source, reading)
    columns = {
        column: theirs
        for column in known.columns
        if (theirs := [place for place in column.theirs if known.shape in ("line", "json") or place in names])
    }
    cells = [_cell(theirs, known).alias(column.ours) for column, theirs in columns.items()]
    if "at" in known.named:
        cells.append(cell(SERIES, "line").alias("series"))
    is_table = known.shape == "table"
    cells.append((pl.col(SURPLUS).is_not_null() if is_table else pl.lit(False)).alias("bad"))
    texts, head = (part.filter(*_belongs(known)).select("row", *cells) for part in (frame, frame.head(HEAD)))
    lines, last = frame.select(pl.len()), None
    if known.watches == "lines":  # most lines are not read, but watched: the file is scanned once
        collected = pl.collect_all([lines, texts, ends(frame)], engine="streaming")
        lines, texts, last = (part.lazy() for part in collected)
    if (some := head.head(SOME).collect()).height < SOME:  # a head is read much faster than what is filtered
        some = texts.head(SOME).collect(engine="streaming")
    marked = parsed(known, columns, texts.with_columns(**source.columns), some, reading.zone)
    undated = texts.filter(pl.col("at").is_null() if "at" in known.named else False).select("^series$")
    count, rows, scraped = pl.collect_all([lines, marked, undated], engine="streaming")
    if scraped.n_unique() < scraped.height:  # several scrapes have unknown times
        raise DatasetError("several scrapes without times; give one file per scrape, or Prometheus' own answer")
    reading.note(source.file, known.name, TIMED_BY_FILE, scraped.height)
    wrong = note_rows(known, source, reading, count.item(), rows)
    if is_table and len(wrong):
        _check_header(source, columns, texts.filter(pl.col("row").is_in(wrong.implode())))
    valid = rows.filter(~pl.col("bad"))
    single = _of_one_replica(valid)
    reading.note(source.file, known.name, REPLICAS, valid.height - single.height)
    kept, wrong_times = _plausible(single)
    if "times" in kept.columns:
        counted = kept.filter(pl.col("kind") != "notice").with_columns(continued=pl.lit(source.is_continued))
        reading.counted.setdefault(known.name, []).append(counted)
        kept = kept.filter(kind="notice")
    kept = kept.select(list(TABLES[known.table]))
    reading.note(source.file, known.name, IMPLAUSIBLE, wrong_times)
    reading.note(source.file, known.name, UNTIMED, kept["at"].null_count() if "at" in kept.columns else 0)
    if known.table == "power":
        unnamed = kept.filter(pl.col("accelerator").is_null())
        if _is_of_several(unnamed):
            raise DatasetError("several accelerators without names have samples of one time; give index or uuid, too")
        reading.note(source.file, known.name, UNNAMED, unnamed.height)
    if known.watches:
        kept_at = kept
        if last is not None:
            found_at = last.select("lines", *cells_of(known, "at", "node")).drop_nulls("at")
            kept_at = _plausible(stamps(found_at.with_columns(**source.columns).collect(), reading.zone))[0]
        reading.watched += [watched(known, kept_at)] if kept_at.height else []
    return kept


def _is_of_several(samples: pl.DataFrame) -> bool:
    """Return whether samples of one name are those of several accelerators, which are nearly at one time."""
    gap = pl.col("at").diff().over("node", order_by="at").dt.total_microseconds()
    short, interval = samples.select(gap.quantile(q).alias(str(q)) for q in (0.25, 0.95)).row(0)
    return samples["at", "node"].is_duplicated().any() or (samples.height >= MIN_SAMPLES and short < 0.1 * interval)


def parsed(
    known: Format, columns: Iterable[Column], texts: pl.LazyFrame, some: pl.DataFrame, zone: str
) -> pl.LazyFrame:
    """Return the values of texts of some files, and whether a row is ``bad``, and its time is a ``local`` one.

    Where all cells of a bad row can be read, ``word`` is that of its needed cell without a value. ``some`` are the
    first of the texts.
    """
    forms = {
        column.ours: (column.unit, None) if column.unit else parsing.usual(some[column.ours])
        for column in columns
        if column.read == "moment"
    }
    read = {column.ours: _value(column, pl.col(column.ours)) for column in columns if column.read != "moment"}
    for name, form in forms.items():
        read[name] = parsing.moment(pl.col(name), zone, form, some[name])
    for name in {"node", "job"}.intersection(known.named):
        read[name] = read.get(name, pl.lit(None, pl.String)).fill_null(STEM[name])
    if "at" in known.named:
        read["at"] = pl.when(pl.col("at").is_null()).then("modified").otherwise(read["at"])
    ours = [column.ours for column in columns]
    tried = [column.ours for column in columns if column.read in ("moment", "number")]
    table, needed = TABLES[known.table], NEEDED[known.table]
    values = texts.select(
        pl.col("^(file|row|bad)$"),
        *(read.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in table.items()),
        *(read[name].alias(name) for name in ours if name not in table),
        *(pl.col(name).alias(f"{name} cell") for name in ours if name in (*tried, *needed)),
    )
    values = values.with_columns(KIND) if known.table == "events" and "accelerator" in ours else values
    lacks = {name: pl.col(name).is_null() for name in needed}
    unread = [parsing.has_value(pl.when(pl.col(name).is_null()).then(f"{name} cell")) for name in tried]
    no_word = pl.lit("null" if known.shape == "json" else None, pl.String)
    words = [pl.when(lacks[name]).then(pl.coalesce(f"{name} cell", no_word)) for name in needed if name in ours]
    local = [pl.col(name).is_not_null() & parsing.is_local(pl.col(f"{name} cell")) for name in forms]
    marked = values.with_columns(
        bad=pl.any_horizontal("bad", *unread, *lacks.values()),
        word=pl.when(~pl.any_horizontal("bad", *unread)).then(pl.coalesce(*words, pl.lit(None, pl.String))),
        local=pl.any_horizontal(False, *local),
    )
    return marked.select(pl.exclude("^.* cell$"))


def _spread(counted: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each occurrence of events that were counted together, at even times from first to last.

    An event that is reported again has the number of all its occurrences so far; one from before a continued file was
    last reported by its former part.
    """
    if not (counted["times"] > 1.0).any():
        return counted
    key, times = pl.coalesce("id", pl.col("number").cast(pl.String)), pl.col("times").fill_null(1.0)
    earlier = pl.col("times", "at").shift(1).over(key, order_by="times").name.prefix("earlier ")
    reported = pl.when(pl.col("continued"), pl.col("since") < pl.col("at").min()).then(times - 1.0).otherwise(0.0)
    counted = counted.with_row_index("number").with_columns(earlier)
    counted = counted.with_columns(new=(times - pl.col("earlier times").fill_null(reported)).clip(1.0, MAX_TIMES))
    spans = pl.col("new") - pl.col("earlier times").is_null()
    span = pl.col("at") - pl.min_horizontal("at", pl.coalesce("earlier at", "since", "at"))
    between = pl.duration(microseconds=(span.dt.total_microseconds() / spans.clip(1.0)).cast(pl.Int64))
    numbers = pl.int_ranges(pl.col("new").cast(pl.Int64) - 1, -1, -1)
    numbered = counted.with_columns(between=between, before=numbers).explode("before")
    return numbered.with_columns(at=pl.col("at") - pl.col("between") * pl.col("before")).sort("at", maintain_order=True)


def _of_one_replica(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the samples of each accelerator and hour of the server that has most of them, one of several replicas."""
    if "replica" not in rows.columns or rows["replica"].n_unique() < 2:
        return rows
    by = ["node", "accelerator", pl.col("at").dt.truncate("1h")]
    samples = pl.len().over(*by, "replica")
    best = pl.col("replica").sort_by(samples, "replica", descending=[True, False]).first().over(by)
    return rows.filter(pl.col("replica").eq_missing(best))


def _missing(known: Format, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a word for a missing value in a needed cell: ``row``, ``name`` of the cell and ``word``.

    A row without any needed value is a parse error.
    """
    lacks = {name: pl.col(name).is_null() for name in NEEDED[known.table]}
    name = pl.coalesce(pl.when(is_null).then(pl.lit(name)) for name, is_null in lacks.items())
    stated = rows.filter("bad").filter(parsing.is_blank(pl.col("word")), ~pl.all_horizontal(lacks.values()))
    return stated.select("row", "word", name=name)


def _check_header(source: Source, columns: Iterable[Column], wrong: pl.LazyFrame) -> None:
    """Check that no line of a table is a header with another order, by which the cells below it would be read."""
    names = {name for column in columns for name in column.theirs}
    cells = {column: pl.col(column.ours).str.replace(r" \[[^\]]*\]$", "") for column in columns}
    is_header = pl.sum_horizontal(text.is_in(names) for text in cells.values()) > 1
    is_same = pl.all_horizontal(text.is_in(column.theirs).fill_null(False) for column, text in cells.items())
    others = wrong.filter(is_header & ~is_same).head(1).collect()["row"]
    if len(others):
        raise DatasetError(f"{source.file.name} has another header in line {others[0] + 2}; split the file there")


def note_rows(known: Format, source: Source, reading: Reading, lines: int, rows: pl.DataFrame) -> pl.Series:
    """Note how many lines of a file were read, which ones are not and why, and which have no zone.

    Returns
    -------
    Series
        Numbers of the rows with parse errors.
    """
    reading.note(source.file, known.name, READ, lines)
    reading.note(source.file, known.name, OTHER_LINES, lines - rows.height)
    reading.note(source.file, known.name, UNFINISHED, int(source.is_unfinished and known.shape != "series"))
    missing = _missing(known, rows)
    for (name, word), part in missing.group_by("name", "word", maintain_order=True):
        reading.note(source.file, known.name, f"rows without {name} ({word or 'empty'}), skipped", part.height)
    if len(wrong := rows.filter("bad").join(missing, on="row", how="anti")["row"]):
        line = int(wrong[0]) + (2 if known.shape == "table" else 1)
        reading.note(source.file, known.name, PARSE_ERRORS, len(wrong), line, _shape(source.text, line))
    reading.note(source.file, known.name, f"{LOCAL}, taken as {reading.zone}", int(rows["local"].sum()))
    unread = pl.any_horizontal(pl.col(pl.String).str.contains(REPLACEMENT, literal=True))
    reading.note(source.file, known.name, NOT_UTF8, rows.filter(~pl.col("bad") & unread).height)
    return wrong


def _plausible(rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the rows whose timestamps are those of a clock that was set, and the number of the others.

    One wrong timestamp would stretch the period of a log, and so the time between failures, by decades.
    """
    if rows.is_empty():
        return rows, 0
    names = rows.select(pl.selectors.datetime().exclude("since")).columns
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
    """Return the first and the last line of each node in each period, in the order of the file."""
    line = pl.col("line")
    keys = line.str.head(PERIOD).alias("period"), line.str.slice(PERIOD).str.splitn(" ", 3).struct[1].alias("node")
    groups = frame.group_by(*by, *keys).agg(
        pl.col("row").min(), first=line.min(), last=line.max(), lines=pl.len(), **more
    )
    return groups.sort("row").select(*by, *more, "lines", line=pl.concat_list("first", "last")).explode("line")


def cells_of(known: Format, *names: str) -> list[pl.Expr]:
    """Return the texts of some of our columns in the lines of a format."""
    return [_cell(column.theirs, known).alias(column.ours) for column in known.columns if column.ours in names]


def stamps(lines: pl.DataFrame, zone: str) -> pl.DataFrame:
    """Return node and time of lines of some files, whether they are events or not."""
    at = parsing.moment(pl.col("at"), zone, parsing.usual(lines["at"].head(SOME)), lines["at"])
    return lines.with_columns(parsing.text(pl.col("node")).fill_null(STEM["node"]), at)


def watched(known: Format, rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return the period in which a file observes each node, or for a scheduler that of all its nodes."""
    node = pl.lit(None, pl.String) if known.watches == "scheduler" else pl.col("node")
    last = "until" if "until" in rows.columns else "at"
    periods = rows.drop_nulls("at").group_by(*by, node.alias("node"), maintain_order=True)
    spans = periods.agg(since=pl.col("at").min(), until=pl.max_horizontal(pl.col("at").max(), pl.col(last).max()))
    return spans.with_columns(source=pl.lit(known.name)).cast(pl.Schema(WATCHED))


def _belongs(known: Format) -> list[pl.Expr]:
    """Return the condition, if any, that a line belongs to the format, and not to another program in the same file."""
    first = {"line": "line", "series": "__name__"}.get(known.shape) or known.needs[0]
    is_line = [pl.col(first).str.contains(known.lines).fill_null(False)] if known.lines else []
    return [pl.col(first).is_not_null() | ~pl.col("valid")] if known.shape == "json" and not is_line else is_line


def _cell(theirs: Iterable[str], known: Format) -> pl.Expr:
    """Return the text of the first of some places that has one; commas are often followed by a space."""
    text = pl.coalesce(cell(place, known.shape) for place in theirs)
    return text.str.strip_chars() if known.separator != "|" else text


def _shape(source: Path | bytes, line: int) -> str:
    """Return a line with its letters as x and its digits as 9, so that it reveals no secret."""
    lines = scan(source).filter(pl.col("row") == line - 1).head(1).collect()["line"]
    text = str(lines[0])[:120] if len(lines) else ""
    return re.sub(r"[^\W\d_]", "x", re.sub(r"\d", "9", text))


def _frame(known: Format, source: Source, reading: Reading) -> tuple[pl.LazyFrame, list[str]]:
    """Return the text of a file as columns without an unfinished last line, and their names."""
    if known.shape == "series":
        frame, warnings = series(_lines(source.text))
        reading.note(source.file, known.name, WARNINGS, warnings)
        return frame, [name for name in frame.collect_schema().names() if name != "row"]
    frame = scan(source.text, known.separator) if known.shape == "table" else scan(source.text)
    if known.shape == "table":
        frame = scan(source.text, known.separator, names=frame.drop("row").collect_schema().names())
    elif known.separator:
        frame = frame.with_columns(pl.col("line").str.split("\r")).explode("line")
    if source.is_unfinished:
        frame = frame.head(max(frame.select(pl.len()).collect(engine="streaming").item() - 1, 0))
    if known.shape != "table":
        return with_paths(frame, known) if known.shape == "json" else frame, ["line"]
    theirs = frame.collect_schema().names()
    names = [without_unit(name) for name in theirs]
    return frame.rename(dict(zip(theirs, names, strict=True))), names[1:]


def _value(column: Column, cells: pl.Expr) -> pl.Expr:
    if column.read == "number":
        return parsing.number(cells, column.unit)
    return parsing.once(READERS.get(column.read) or partial(parsing.word, column.read), cells)
