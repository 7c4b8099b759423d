"""Files of others become one log: each is recognised, read, and told with what was left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final
from zoneinfo import available_timezones

import polars as pl

from factorykit.core.errors import DatasetError, ScenarioError, short_repr
from factorykit.core.validation import as_list, file_path, mapping, one_of, string
from factorykit.telemetry import compression, parsing, tensorboard
from factorykit.telemetry.formats import (
    HEAD,
    NEEDED,
    OWN,
    READERS,
    TABLES,
    Column,
    Format,
    bare,
    cell,
    formats,
    recognised,
    scan,
    series,
    unfolded,
)
from factorykit.telemetry.tidy import OTHER_LINES, Log, tidy_log

SOME: Final = 100
"""Lines by which the form of moments is found."""
READ: Final = "lines read"
PARSE_ERRORS: Final = "parse errors, skipped"
LOCAL: Final = "timestamps without a zone"
UNRECOGNISED: Final = "unrecognised files, skipped"
UNREADABLE: Final = "unreadable files, skipped"
TRUNCATED: Final = "truncated files, read up to the cut"
WITHOUT_DETAILS: Final = "attempts without details, skipped"
START: Final = 64
"""Bytes by which an event file is known."""


@dataclass
class _Reading:
    """What is read so far."""

    zone: str
    rows: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: {name: [] for name in TABLES})
    notes: list[dict[str, Any]] = field(default_factory=list)

    def note(self, file: Path, known: str, what: str, count: int, line: int | None = None, shape: str = "") -> None:
        if count:
            told = {
                "file": file.name,
                "format": known,
                "issue": what,
                "count": count,
                "first_line": line,
                "masked_line": shape,
            }
            self.notes.append(told)

    def add(self, other: _Reading) -> None:
        """Take what another one read."""
        for name, frames in other.rows.items():
            self.rows[name] += frames
        self.notes += other.notes


def read_log(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    kind: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    zone: str = "UTC",
) -> Log:
    """Read logs of schedulers, monitors and training into four tidy tables.

    Parameters
    ----------
    path
        A file, a folder with files in it, or several of them; plain, gzip or zstd.
    kind
        Format, where it shall not be recognised: ``slurm_sacct``, ``slurm_events``, ``slurm_nodes``, ``gcm_sacct``,
        ``gcm_health``, ``gcm_nvml``, ``kubernetes_events``, ``xid``, ``prometheus_power``, ``prometheus_xid``,
        ``openmetrics_power``, ``openmetrics_xid``, ``nvidia_smi``, ``dcgm``, ``megatron``, ``nemo``, ``torchtitan``,
        ``deepspeed``, ``maxtext``, ``wandb``, ``wandb_history``, ``tensorboard``, ``tensorboard_events``,
        ``kubernetes_jobs``; or for a CSV of one's own the table it is: ``events``, ``jobs``, ``steps``, ``power``.
    columns
        Names in a CSV of one's own by the name of our column, where they differ: ``{"at": "When"}``. Needs ``kind``.
    zone
        Time zone of moments that say none, such as ``Europe/Berlin``.

    Returns
    -------
    Log
        ``events``, ``jobs``, ``steps``, ``power`` and ``notes``: what was counted and left out.

    Raises
    ------
    DatasetError
        If nothing can be read, or no file is a known log.
    UnknownName, ScenarioError
        If ``kind`` or ``zone`` is none, or ``columns`` name none of ours.

    Notes
    -----
    Repeated rows count once, rows are put into the order of time. A line is bad if what it needs is missing or a number
    or moment cannot be read. Where lines name no node or job, the name of the file does.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "sacct.txt")
    >>> _ = file.write_text('''JobID|User|State|Submit|Start|End|AllocNodes|AllocTRES|NodeList
    ... 7|ann|NODE_FAIL|2026-03-01T08:00:00|2026-03-01T08:10:00|2026-03-01T20:00:00|2|gres/gpu=16|n[1-2]
    ... 7.batch||CANCELLED||2026-03-01T08:10:00|2026-03-01T20:00:00|1||n1
    ... 8|ann|COMPLETED|2026-03-01T08:00:00|yesterday|2026-03-02T20:00:00|2|gres/gpu=16|n[1-2]
    ... ''')
    >>> log = read_log(file)
    >>> log
    Log(0 events, 1 jobs, 0 steps, 0 power; 1 skipped)
    >>> log.jobs["state"].item(), log.jobs["accelerators"].item(), log.jobs["node_list"].item()
    ('node failure', 16.0, 'n[1-2]')
    """
    if one_of("time zone", zone, available_timezones()) and kind is not None:
        one_of("format", kind, formats())
    if columns is not None and kind not in OWN:
        raise ScenarioError(f"columns are given and kind = {kind!r}; say which table it is: {', '.join(OWN)}")
    chosen = _renamed(kind, columns) if kind is not None else None
    given = [path] if isinstance(path, (str, PathLike)) else as_list("path", path)
    reading = _Reading(zone)
    try:
        files = [file for each in given for file in _files(file_path("path", each))]
        for file in files:
            try:
                _read(file, chosen, reading)
            except (DatasetError, pl.exceptions.PolarsError) as error:
                if len(files) > 1:
                    reading.note(file, "", UNREADABLE, 1)
                elif isinstance(error, DatasetError):
                    raise
                else:
                    said = str(error).partition("\n")[0]
                    raise DatasetError(f"{file} cannot be read as text ({said}); give files of logs") from error
    except OSError as error:
        raise DatasetError(
            f"{short_repr(path)} cannot be read ({error.strerror or error}); give files of logs"
        ) from None
    if not any(reading.rows.values()):
        issues = "; ".join(f"{note['file']}: {note['issue']}" for note in reading.notes[:3])
        raise DatasetError(f"no rows in {len(files)} files ({issues}); give kind=, the format of the logs")
    return tidy_log(reading.rows, reading.notes)


def _renamed(kind: str, columns: Mapping[str, str] | None) -> Format:
    """Return a format, its columns called as the caller says."""
    known = formats()[kind]
    if columns is None:
        return known
    for name, theirs in mapping("columns", columns).items():
        one_of("column", name, TABLES[known.table])
        string(f"columns[{name!r}]", theirs)
    needs = tuple(columns.get(name, name) for name in NEEDED[known.table])
    changed = (replace(each, theirs=(columns.get(each.ours, each.ours),)) for each in known.columns)
    return replace(known, needs=needs, columns=tuple(changed))


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise DatasetError(f"{path} does not exist; give a file or a folder of logs")
    if path.is_file():
        yield path
    else:
        found = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
        if not found:
            raise DatasetError(f"{path} holds no file; give a folder of logs")
        yield from found


def _read(file: Path, chosen: Format | None, reading: _Reading) -> None:
    """Read one file; one that ends in the middle of its packing is read again, as far as it goes."""
    with file.open("rb") as stream:
        start = stream.read(START)
        source = _scalars(file, stream, reading) if tensorboard.is_event_file(start) else file
    is_packed = start.startswith((compression.GZIP, compression.ZSTD))
    try:
        told = _told(source, file, chosen, reading.zone)
        if is_packed and not any(told.rows.values()):  # then nobody came to where its packing ends
            scan(file).select(pl.len()).collect(engine="streaming")
    except (OSError, pl.exceptions.PolarsError):
        if not is_packed:
            raise
        reading.note(file, "", TRUNCATED, 1)
        told = _told(compression.truncated(file), file, chosen, reading.zone)
    reading.add(told)


def _scalars(file: Path, stream: BinaryIO, reading: _Reading) -> bytes:
    """Return the scalars of an event file as lines of JSON."""
    stream.seek(0)
    lines, wrong, is_cut = tensorboard.scalars(stream)
    reading.note(file, "tensorboard_events", PARSE_ERRORS, wrong)
    reading.note(file, "tensorboard_events", TRUNCATED, int(is_cut))
    return lines


def _told(source: Path | bytes, file: Path, chosen: Format | None, zone: str) -> _Reading:
    """Return what a file tells by every format that it shows, or by the one that was chosen."""
    told = _Reading(zone)
    head = _head(source)
    found = [chosen] if chosen else recognised(head)
    if not found and any(line[:1] in "[{ " for line in head if line):
        source, untold = unfolded(_lines(source))
        found = recognised(_head(source))
        told.note(file, found[0].name if found else "", WITHOUT_DETAILS, untold)
    if not found:
        told.note(file, "", UNRECOGNISED, 1)
    for known in found:
        rows = _rows(known, source, file, told)
        if rows.height:
            told.rows[known.table].append(rows)
    return told


def _head(source: Path | bytes) -> list[str]:
    return scan(source).head(HEAD).collect()["line"].fill_null("").to_list() if source else []


def _lines(source: Path | bytes) -> list[str]:
    return scan(source).collect()["line"].fill_null("").to_list()


def _rows(known: Format, source: Path | bytes, file: Path, reading: _Reading) -> pl.DataFrame:
    """Return the tidy rows of a file; note what it has besides."""
    frame, names = _frame(known, source)
    year = datetime.fromtimestamp(file.stat().st_mtime, UTC).year
    found = [
        (column, theirs)
        for column in known.columns
        if (theirs := [each for each in column.theirs if known.shape in ("line", "json") or each in names])
    ]
    texts = frame.filter(_is_meant(known, names)).select(
        "row", *(_cell(theirs, known).alias(column.ours) for column, theirs in found)
    )
    some = texts.head(SOME).collect(engine="streaming")
    forms = {column.ours: parsing.usual(some[column.ours]) for column, _ in found if column.read == "moment"}
    read = {column.ours: _value(column, pl.col(column.ours)) for column, _ in found if column.read != "moment"}
    read |= {name: parsing.moment(pl.col(name), reading.zone, year, form) for name, form in forms.items()}
    if known.named:
        read.setdefault(known.named, pl.lit(_stem(file)))
    tried = [column.ours for column, _ in found if column.read in ("moment", "number")]
    local = [parsing.is_local(pl.col(name), form) for name, form in forms.items()]
    values = texts.select(
        "row",
        *(read.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in TABLES[known.table].items()),
        *(
            parsing.is_told(pl.when(read[name].is_null()).then(pl.col(name))).fill_null(False).alias(f"{name} unread")
            for name in tried
        ),
        local=pl.any_horizontal(local) if local else pl.lit(False),
    )
    missing = [pl.col(name).is_null() for name in NEEDED[known.table]]
    unread = [f"{name} unread" for name in tried]
    told = values.with_columns(bad=pl.any_horizontal(*missing, *unread)).drop(unread)
    lines, rows = pl.collect_all([frame.select(pl.len()), told], engine="streaming")
    reading.note(file, known.name, READ, lines.item())
    reading.note(file, known.name, OTHER_LINES, lines.item() - rows.height)
    wrong = rows.filter("bad")["row"]
    if len(wrong):
        line = int(wrong[0]) + (2 if known.shape == "table" else 1)
        reading.note(file, known.name, PARSE_ERRORS, len(wrong), line, _shape(source, line))
    reading.note(file, known.name, f"{LOCAL}, taken as {reading.zone}", int(rows["local"].sum()))
    return rows.filter(~pl.col("bad")).drop("row", "bad", "local")


def _is_meant(known: Format, names: Iterable[str]) -> pl.Expr:
    """Return whether a line is one of the format's, and not of something else that writes there."""
    if not known.lines:
        return pl.lit(True)
    first = "line" if known.shape == "line" else "__name__" if "__name__" in names else known.needs[0]
    mark = cell(first, known.shape) if known.shape == "json" else pl.col(first)
    return mark.str.contains(known.lines).fill_null(False)


def _cell(theirs: Iterable[str], known: Format) -> pl.Expr:
    """Return what the first of some places says; commas are often followed by a space."""
    told = pl.coalesce(cell(each, known.shape) for each in theirs)
    return told.str.strip_chars() if known.separator != "|" else told


def _shape(source: Path | bytes, line: int) -> str:
    """Return a line with its letters as x and its digits as 9, so that it tells no secret."""
    found = scan(source).filter(pl.col("row") == line - 1).head(1).collect()["line"]
    text = str(found[0])[:120] if len(found) else ""
    return re.sub(r"[^\W\d_]", "x", re.sub(r"\d", "9", text))


def _frame(known: Format, source: Path | bytes) -> tuple[pl.LazyFrame, list[str]]:
    """Return the text of a file as columns, and their names."""
    match known.shape:
        case "table":
            frame = scan(source, known.separator)
            theirs = frame.collect_schema().names()
            names = [bare(name) for name in theirs]
            return frame.rename(dict(zip(theirs, names, strict=True))), names[1:]
        case "series":
            frame = series(_lines(source))
            return frame, [name for name in frame.collect_schema().names() if name != "row"]
        case _:
            return scan(source), ["line"]


def _value(column: Column, told: pl.Expr) -> pl.Expr:
    if column.read not in READERS:
        return parsing.word(column.read, told)
    value = READERS[column.read](told)
    return value * column.factor if column.factor != 1.0 else value


def _stem(file: Path) -> str:
    """Return what a file's name says of job or node: the number of a Slurm job, or all before the first point.

    Event files stand in a folder of the run's name.
    """
    if ".tfevents." in file.name:
        return file.parent.name
    number = re.search(r"(?:slurm|job)[-_]?(\d+)", file.name)
    return number[1] if number else file.name.partition(".")[0]
