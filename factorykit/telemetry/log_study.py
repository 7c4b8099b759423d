"""Logs as a study: Parquet files by format, day and node, written in batches and continued where files have grown."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from hashlib import blake2b
from itertools import accumulate, chain, groupby
from operator import itemgetter
from pathlib import Path
from secrets import token_hex
from typing import Any, Final
from urllib.parse import quote

import polars as pl

from factorykit.core import atomic_io
from factorykit.core.errors import DatasetError, ScenarioError, warn
from factorykit.core.storage import is_object, local_copy, storage_path
from factorykit.core.validation import as_list, one_of
from factorykit.data.query import quoted, sql_over
from factorykit.engine.progress import progress
from factorykit.model.uncertainty.study import backends
from factorykit.telemetry import compression, journals, log_file, tensorboard
from factorykit.telemetry.formats import MOMENT, TABLES, Format, detect, formats
from factorykit.telemetry.tidy import NOTES, WATCHED, Log, tidy_log

FILES: Final = "files"
"""Folder of the records of what was read; each is written when its batch is complete."""
PIECE: Final = {"file": pl.String, "start": pl.Int64, "end": pl.Int64, "size": pl.Int64, "modified": pl.Int64} | {
    "head": pl.String,
    "key": pl.String,
    "formats": pl.List(pl.String),
    "made": pl.Int64,
    "notes": pl.List(pl.Struct(NOTES)),
    "watched": pl.List(pl.Struct(WATCHED)),
}
"""One row per piece of a file: its bytes, the size, time and first bytes of the file, the name of its parts, notes and
watched nodes."""
PIECE_BYTES: Final = 2**26
"""Bytes of a file that are read at once."""
BATCH_BYTES: Final = 2**29
BATCH_FILES: Final = 600
"""Most bytes and files of a batch, the work that is lost when the process is killed."""
MIN_BATCH_FILES: Final = 50
"""Fewer files are not worth a batch: journals are read together."""
PROCESS_BATCHES: Final = 8
"""Most batches of a process, which takes as long to start as to read some hundred files."""
HEAD_BYTES: Final = 256
"""First bytes by which a file that has grown is told from another one of its name."""
Batch = Sequence[Mapping[str, Any]]
"""Files with the place where to start and the formats that are known."""
BYTES_PER_S: Final = 2e8
S_PER_FILE: Final = 0.001
"""Measured rate of one process on journals and its overhead per file, for the estimate."""
MAX_STUDY_S: Final = 24 * 3600.0
"""Longest estimated time that is accepted. [s]"""
DAYS: Final = {"jobs": ("ended", "started", "submitted")}
"""Columns of the day of a row, where it is not ``at``."""
NEWEST: Final = {"jobs": "QUALIFY ended IS NOT DISTINCT FROM max(ended) OVER (PARTITION BY job, submitted, started)"}
HELD: Final = (
    "CASE WHEN accelerator IS NOT NULL AND kind = 'failure' AND code IS NOT DISTINCT FROM lag(code) OVER "
    "(PARTITION BY node, accelerator ORDER BY \"at\") THEN 'notice' ELSE kind END AS kind"
)
"""Kind of an event, which a gauge reports once: a file may begin with one that it holds."""
GAUGES: Final = {f"source={name}" for name in ("prometheus_xid", "openmetrics_xid", "gcm_health", "several")}
PROCESSES: Final = os.cpu_count() or 1
LOOKS: Final = 32
"""Files that are looked at together: an object takes a request."""


@dataclass(frozen=True)
class LogStudy:
    """A folder of logs as Parquet, ``TABLE/source=FORMAT/day=DAY/node=NODE/``, and the records of the files read."""

    folder: Path

    def scan(self, table: str, days: tuple[date, date] | None = None) -> pl.LazyFrame:
        """Return a scan of ``events``, ``jobs``, ``steps`` or ``power``, of all days or from the first to the second.

        Rows are those of each file: repeated rows of several files are not removed.
        """
        paths = sorted(self._parts(one_of("table", table, TABLES)))
        ends = [f"day={day}" for day in days or ()]  # one that is not known is a word
        files = [str(path) for path in paths if not ends or ends[0] <= path.parts[-3] <= ends[1]]
        return pl.scan_parquet(files, hive_partitioning=False) if files else pl.LazyFrame(schema=TABLES[table])

    def sql(self, query: str, **values: Any) -> pl.DataFrame:
        """Return the result of a SELECT over the tables, out of core; times are in UTC, and ``at`` is named ``moment``.

        A row that several files have counts once, and so does an attempt of a job, with its newest record.

        Raises
        ------
        QueryError, ScenarioError
        """
        views = {}
        for table in TABLES:
            if parts := {(path.parent, path.name.partition("-")[0]) for path in self._parts(table)}:
                is_held = table == "events" and not GAUGES.isdisjoint(folder.parts[-3] for folder, _ in parts)
                columns = _sql_columns(table).replace('"kind"', HELD if is_held else "kind")
                distinct = "DISTINCT" if len({folder for folder, _ in parts}) < len(parts) else ""
                rows = f"read_parquet({quoted(self.folder / table / '**' / '*.parquet')}, hive_partitioning = false)"
                views[table] = f"SELECT {distinct} {columns} FROM {rows} {NEWEST.get(table, '')}"
        if not views:
            raise ScenarioError(f"{self.folder} has no rows of logs; read some with read_log(..., out=)")
        return sql_over(self.folder, views, query, values)

    def _parts(self, table: str) -> Iterator[Path]:
        """Yield the files of a table, all of which have the columns of the first one."""
        for number, path in enumerate((self.folder / table).glob("source=*/day=*/node=*/*.parquet")):
            if not number and (missing := ", ".join(sorted({*TABLES[table]} - {*pl.read_parquet_schema(str(path))}))):
                raise DatasetError(f"{table} lack {missing}, by another version; read the logs again into a new folder")
            yield path

    @property
    def files(self) -> pl.DataFrame:
        """One row per piece of a file that was read: ``file``, ``start``, ``end``, ``formats``, ``notes``, ``watched``.

        A file that begins with other bytes than the earlier one of its name is another one; the rows of both are kept.
        """
        records = [str(path) for path in sorted((self.folder / FILES).glob("*.parquet"))]
        pieces = pl.read_parquet(records) if records else pl.DataFrame(schema=PIECE)
        began = pl.col("made").filter(pl.col("start") == 0).max().over("key")
        return pieces.filter(pl.col("made") >= began).sort("file", "start")

    @property
    def counts(self) -> pl.DataFrame:
        """Counts over all files: one row per ``issue`` with its ``count``."""
        notes = self.files.select(pl.col("notes").explode()).drop_nulls().unnest("notes")
        return notes.group_by("issue", maintain_order=True).agg(pl.col("count").sum())

    def log(self, days: tuple[date, date] | None = None, tables: Sequence[str] = tuple(TABLES)) -> Log:
        """Return the log of all days, or from the first to the second, in memory; tables not named are empty."""
        chosen = [one_of("table", table, TABLES) for table in as_list("tables", tables)]
        rows = {
            table: [self.scan(table, days).sort(DAYS.get(table, ("at",)), maintain_order=True).collect()]
            if table in chosen
            else []
            for table in TABLES
        }
        notes, watched = (
            self.files.select(pl.col(name).explode()).drop_nulls().unnest(name) for name in ("notes", "watched")
        )
        if days:
            since, until = (pl.lit(day).cast(pl.Datetime("us")).dt.replace_time_zone("UTC") for day in days)
            until = until.dt.offset_by("1d")
            watched = watched.filter(pl.col("since") < until, pl.col("until") > since).with_columns(
                since=pl.max_horizontal("since", since), until=pl.min_horizontal("until", until)
            )
        return tidy_log(rows, notes.to_dicts(), [watched])

    def __repr__(self) -> str:
        files, size = self.files.select(pl.col("file").n_unique(), (pl.col("end") - pl.col("start")).sum() / 1e6).row(0)
        return f"LogStudy({str(self.folder)!r}): {files:,} files, {size:,.0f} MB"


def _sql_columns(table: str) -> str:
    names = {"at": "moment"}  # DuckDB reserves the word "at"
    return ", ".join(
        f'make_timestamp(epoch_us("{name}")) AS {names.get(name, name)}' if type_ == MOMENT else f'"{name}"'
        for name, type_ in TABLES[table].items()
    )


def read_study(files: Sequence[Path], out: Path, kind: str | None, zone: str, engine: str) -> LogStudy:
    """Read what is new in files into a study, in parallel processes or on Ray, each in bounded memory."""
    if not is_object(out):
        (out / FILES).mkdir(parents=True, exist_ok=True)
    if other := sorted({path.name for path in out.glob("*") if path.name[0] != "."} - {FILES, *TABLES}):
        raise ScenarioError(f"{out} has {other[0]}; give a folder that is empty or a study of logs")
    study = LogStudy(out)
    for table in TABLES:
        next(study._parts(table), None)
    for issue in study.counts["issue"]:
        if issue.startswith(log_file.LOCAL) and not issue.endswith(f" as {zone}"):
            raise ScenarioError(f"{out} has {issue}, got zone {zone!r}; give the same zone, or another folder")
    with ExitStack() as stack:
        stage: str | Path = str(out / "parts")
        if not is_object(out):  # an object is written at once, and a store has no locks
            stack.enter_context(atomic_io.locked(out / FILES))
            stage = stack.enter_context(atomic_io.temporary_folder(out, f".parts-{socket.gethostname()}-"))
        tasks = _new(files, study)
        workers = PROCESSES if engine == "local" else backends.workers(engine)
        _check_time(sum(task["size"] - task["start"] for task in tasks), len(tasks), workers)
        again = {task["key"] for task in tasks if not task["start"]}
        for path in out.glob("*/source=*/day=*/node=*/*.parquet") if again else ():
            if path.name.partition("-")[0] in again:
                path.unlink()
        make, batches = partial(_make, stage, kind, zone), _batches(tasks, workers)
        if engine != "local" and tasks:
            backends.run(engine, make, batches, range(len(batches)), [stage, storage_path("file", tasks[0]["file"])])
        elif len(batches) > 1:
            _in_processes(make, batches)
        elif tasks:
            make(batches, 0)
    return study


def _new(files: Iterable[Path], study: LogStudy) -> list[dict[str, Any]]:
    """Return the files to read, with the place where to start and the formats that are known."""
    last = {row["file"]: row for row in study.files.drop("notes", "watched").sort("made", "end").to_dicts()}
    with ThreadPoolExecutor(LOOKS) as pool:
        return [task for task in pool.map(lambda file: _task(file, last), files) if task]


def _task(file: Path, last: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what to read of a file, nothing if it has not changed."""
    status, name = file.stat(), str(file.absolute())
    task = {"file": name, "start": 0, "size": status.st_size, "modified": status.st_mtime_ns, "formats": []}
    if known := last.get(name):
        if all(known[field] == task[field] for field in ("size", "modified")):
            return {}
        if known["end"] <= task["size"] and known["head"] == _head(file, known["end"]):
            task["key"] = known["key"]
            if known["formats"]:
                task |= {"start": known["end"], "formats": known["formats"]}
    first = f"{name} {_head(file, task['size'])}".encode(errors="surrogateescape")
    return {"key": blake2b(first, digest_size=10).hexdigest()} | task


def _check_time(size: int, files: int, workers: int) -> None:
    """Warn of long work, and refuse work of more than a day, with the estimate."""
    estimate_s = (size / BYTES_PER_S + files * S_PER_FILE) / workers
    text = f"{files:,} files of {size / 1e9:,.1f} GB take about {estimate_s / 3600:,.1f} h with {workers} processes"
    if estimate_s > MAX_STUDY_S:
        raise DatasetError(f"{text}; give fewer files at once, or share them out among machines, a study each")
    if estimate_s > 600.0:
        warn(text)


def _batches(tasks: Sequence[dict[str, Any]], workers: int) -> list[Batch]:
    """Return batches of limited bytes and files, smaller ones where many workers would have none."""
    most = min(max(len(tasks) // (backends.ROUNDS * workers), MIN_BATCH_FILES), BATCH_FILES)
    ends = accumulate(task["size"] - task["start"] for task in tasks)
    places = ((number // most, end // BATCH_BYTES) for number, end in enumerate(ends))
    return [[task for _, task in batch] for _, batch in groupby(zip(places, tasks, strict=True), itemgetter(0))]


def _in_processes(make: backends.Make, batches: Sequence[Batch]) -> None:
    """Make batches in processes with one thread each, which make some before they end."""
    count = min(-(-len(batches) // PROCESSES), PROCESS_BATCHES)
    shares = [batches[at : at + count] for at in range(0, len(batches), count)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        for _ in progress(pool.map(partial(_in_process, make), shares), len(shares), "shares of log files"):
            pass


def _in_process(make: backends.Make, batches: Sequence[Batch]) -> None:
    command = [sys.executable, "-c", "from factorykit.telemetry.log_study import main; main()"]
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, input=pickle.dumps((make, batches)), capture_output=True, env=environment)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason, others = (lines or [f"exit status {done.returncode}"])[-1], sum(map(len, batches)) - 1
        raise DatasetError(f"{batches[0][0]['file']} and {others} more files cannot be read: {reason}; call again")


def main() -> None:
    """Make the batches in standard input."""
    make, batches = pickle.load(sys.stdin.buffer)
    for number in range(len(batches)):
        make(batches, number)


def _make(stage: str | Path, kind: str | None, zone: str, batches: Sequence[Batch], number: int) -> None:
    """Read a batch of files, write their rows, and then the record of the batch.

    New local journals are read together; if one cannot be read, each is read alone.
    """
    folder, noted = storage_path("out", stage, written=True), {}
    chosen = [formats()[kind]] if kind else []
    new = {task["file"]: task["size"] for task in batches[number] if task["size"] <= PIECE_BYTES and not task["start"]}
    with suppress(pl.exceptions.PolarsError, OSError):
        local = {name: size for name, size in new.items() if "://" not in name}
        noted = {} if chosen else journals.read_together(local, zone)
    read = (_read_file(task, chosen, zone, folder, noted.get(task["file"])) for task in batches[number])
    _write(pl.DataFrame([*chain.from_iterable(read)], PIECE), folder, folder.parent / FILES / f"{token_hex(8)}.parquet")


def _read_file(
    task: Mapping[str, Any], chosen: Sequence[Format], zone: str, stage: Path, noted: log_file.Reading | None
) -> Iterator[dict[str, Any]]:
    """Write the rows of the new pieces of a file, and yield the record of each."""
    origin, known = storage_path("file", task["file"]), list(chosen) or [formats()[name] for name in task["formats"]]
    piece = {key: task[key] for key in ("file", "size", "modified", "key")} | {"made": time.time_ns()}
    whole = {"start": 0, "end": task["size"], "head": "", "formats": []}
    try:
        with local_copy(origin) as file:
            whole["head"] = _head(file, task["size"])
            if noted:
                _write_rows(noted, task["key"], 0, stage)
                yield piece | whole | _noted(noted) | {"formats": [journals.JOURNAL]}
                return
            if not known and _is_plain(file):
                known = detect(file)
            if not known or not _is_plain(file) or any(kind.shape == "series" for kind in known):
                reading = log_file.Reading(zone)
                log_file.read_file(file, chosen[0] if chosen else None, reading)
                _write_rows(reading, task["key"], 0, stage)
                yield piece | whole | _noted(reading)
                return
            has_header = known[0].shape == "table"
            for start, end, text in _texts(file, task["start"], has_header=has_header):
                if task["start"] and not has_header and not chosen:
                    known = list(dict.fromkeys([*known, *detect(text)]))
                reading = log_file.Reading(zone)
                source = log_file.Source(file, text, False, start > 0)
                for kind in known:
                    reading.rows[kind.table].append(log_file.rows_of(kind, source, reading))
                _write_rows(reading, task["key"], start, stage)
                place = {"start": start, "end": end, "head": _head(file, end), "formats": [kind.name for kind in known]}
                yield piece | place | _noted(reading)
    except (DatasetError, pl.exceptions.PolarsError, OSError):
        reading = log_file.Reading(zone)
        reading.note(origin, "", log_file.UNREADABLE, 1)
        yield piece | whole | {"head": ""} | _noted(reading)


def _is_plain(file: Path) -> bool:
    """Return whether a file is text that may grow line by line."""
    with file.open("rb") as stream:
        start = stream.read(log_file.START)
    return not (compression.packing_of(file) or tensorboard.is_event_file(start))


def _texts(file: Path, start: int, has_header: bool) -> Iterator[tuple[int, int, bytes]]:
    """Yield pieces of whole lines: their first and last byte, and their text with the header of the file."""
    with file.open("rb") as stream:
        header = stream.readline() if has_header else b""
        stream.seek(start)
        while content := stream.read(PIECE_BYTES):
            content += stream.readline()
            if not content.endswith(b"\n") and log_file.is_unfinished(content):
                content = content[: content.rfind(b"\n") + 1]
            if content:
                yield start, start + len(content), header + content if start else content
            start += len(content)


def _head(file: Any, size: int) -> str:
    if is_object(file) and size:
        return blake2b(file.fs.cat_file(str(file), 0, min(HEAD_BYTES, size)), digest_size=8).hexdigest()
    with file.open("rb") as stream:
        return blake2b(stream.read(min(HEAD_BYTES, size)), digest_size=8).hexdigest()


def _noted(reading: log_file.Reading) -> dict[str, Any]:
    return {"notes": reading.notes, "watched": [row for frame in reading.watched for row in frame.to_dicts()]}


def _write_rows(reading: log_file.Reading, key: str, start: int, stage: Path) -> None:
    """Write the rows of a piece by format, day and node; a piece that is read again replaces its files."""
    reading.spread()
    names = {note["format"] for note in reading.notes if note["format"]}
    source = names.pop() if len(names) == 1 else "several"
    for table, frames in reading.rows.items():
        if frames:
            frame = pl.concat(frames)  # formats of one table share their files
            times = [pl.col(name) for name in DAYS.get(table, ("at",))]
            day = pl.coalesce(times).dt.date().cast(pl.String).fill_null("unknown")
            node = pl.col("node").fill_null("unknown") if "node" in frame.columns else pl.lit("all")
            rows = frame.with_columns(day.alias("of day"), node.alias("of node"))
            for (of_day, of_node), part in rows.partition_by("of day", "of node", as_dict=True).items():
                folder = stage.parent / table / f"source={source}" / f"day={of_day}" / f"node={quote(of_node, safe='')}"
                path = folder / f"{key}-{start:013d}.parquet"
                _write(part.select(list(TABLES[table])), stage, path)


def _write(frame: pl.DataFrame, stage: Path, path: Path) -> None:
    if is_object(path):
        frame.write_parquet(str(path))
        return
    part = stage / token_hex(8)
    frame.write_parquet(part)
    path.parent.mkdir(parents=True, exist_ok=True)
    part.replace(path)
