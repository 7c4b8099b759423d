"""Reading of logs: files and folders into four tidy tables, in memory or as a study."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Final, overload
from zoneinfo import available_timezones

import polars as pl

from factorykit.core.errors import DatasetError, ScenarioError, short_repr
from factorykit.core.storage import files_in, local_copy, storage_path
from factorykit.core.validation import as_list, mapping, one_of, string
from factorykit.model.uncertainty.study.backends import check
from factorykit.telemetry import parsing
from factorykit.telemetry.formats import NEEDED, OWN, TABLES, Format, formats
from factorykit.telemetry.log_file import UNREADABLE, Reading, read_file
from factorykit.telemetry.log_study import LogStudy, read_study
from factorykit.telemetry.tidy import Log, tidy_log

START_OF_TEXT: Final = 10_000
"""Bytes that are searched for the reason why a file has no rows."""


Location = str | PathLike[str]
Locations = Location | Sequence[Location]
Names = Mapping[str, str]


@overload
def read_log(
    path: Locations, kind: str | None = None, *, columns: Names | None = None, zone: str = "UTC", out: None = None
) -> Log: ...
@overload
def read_log(
    path: Locations, kind: str | None = None, *, zone: str = "UTC", out: Location, engine: str = "local"
) -> LogStudy: ...
def read_log(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    kind: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    zone: str = "UTC",
    out: str | PathLike[str] | None = None,
    engine: str = "local",
) -> Log | LogStudy:
    """Read logs of schedulers, monitors and training into four tidy tables.

    Parameters
    ----------
    path
        A file, a folder with files in it, or several of them, local or ``s3://``, ``gs://``, ``az://``; plain, gzip,
        zstd, xz or bzip2. An object is copied to a temporary file while it is read.
    kind
        Format; by default it is recognised: ``slurm_sacct``, ``slurm_json``, ``slurm_events``, ``slurm_nodes``,
        ``gcm_sacct``, ``gcm_health``, ``gcm_nvml``, ``kubernetes_events``, ``kubernetes_events_v1``,
        ``kubernetes_jobs``, ``xid``, ``amdgpu``, ``prometheus_power``, ``prometheus_xid``, ``openmetrics_power``,
        ``openmetrics_xid``, ``nvidia_smi``, ``dcgm``, ``megatron``, ``nemo``, ``torchtitan``, ``deepspeed``,
        ``nanotron``, ``hf_trainer``, ``hf_trainer_state``, ``llama_factory``, ``maxtext``, ``verl``, ``slime``,
        ``wandb``, ``wandb_history``, ``wandb_chart``, ``tensorboard``, ``tensorboard_events``; or the table of a
        custom CSV: ``events``, ``jobs``, ``steps``, ``power``.
    columns
        Column names of a custom CSV that differ from ours, by our name: ``{"at": "When"}``. Needs ``kind``.
    zone
        Time zone of timestamps without one, such as ``Europe/Berlin``.
    out
        Folder of a study, local or in an object store, for logs larger than memory: rows are written as Parquet by
        table, format, day and node, in parallel processes. Called again, it reads new files and the new bytes of text
        files that have grown, and goes on after an interruption.
    engine
        Engine of the study, as in :func:`factorykit.sweep`: ``local``, ``ray``, or the address of a cluster of Ray.

    Returns
    -------
    Log or LogStudy
        With ``out``, a study: ``scan`` of a table, ``counts``, and the ``log`` of some days. Else a log:
        ``events``, ``jobs``, ``steps``, ``power``; ``watched``, the nodes and periods that the files observe; and
        ``notes``, the counts of skipped and changed rows.

    Raises
    ------
    DatasetError
        If nothing can be read, no file is a known log, or a file decompresses to more than 1 GB.
    UnknownName, ScenarioError
        If ``kind``, ``zone`` or a name in ``columns`` is unknown.

    Notes
    -----
    Journals are read in every form of ``journalctl`` with dates, ``-o json`` and ``json-seq`` included. Repeated rows
    count once, and rows are sorted by time. A line is a parse error if a required cell is empty, or a number or
    timestamp is invalid: decimal commas and separators of thousands are, units are converted. A word for a missing
    value (``[N/A]``, ``[GPU requires reset]``, ``Unknown``, ``NaN``, null) is read as null; a row with such a word in a
    required cell, such as the power of a MIG device, is skipped and counted by its column and word. A last line
    without line end is skipped unless it is a complete record of JSON, and so are timestamps before 2005 or a year away
    from nearly all others of their file. Timestamps of syslog and glog are of the last year before
    the file was modified. If lines name no node or job, the name of the file does, or of the folder of a file without
    a number in its name.

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
    zone = one_of("time zone", zone, available_timezones())
    kind = None if kind is None else one_of("format", kind, formats())
    if columns is not None and kind not in OWN:
        raise ScenarioError(f"columns need kind to be a table, got {kind!r}; give one of {', '.join(OWN)}")
    chosen = _renamed(kind, columns) if kind is not None else None
    given = [path] if isinstance(path, (str, PathLike)) else as_list("path", path)
    folder = None if out is None else storage_path("out", out, written=True)
    if check(engine) != "local" and folder is None:
        raise ScenarioError(f"engine = {engine!r} needs out=, the folder of a study")
    if folder is not None and columns is not None:
        raise ScenarioError("a study has no columns=; rename the columns of the files")
    reading = Reading(zone)
    try:
        files = [file for location in given for file in _files(storage_path("path", location))]
        if folder is not None:
            return read_study(files, folder, kind, zone, engine)
        for file in files:
            try:
                with local_copy(file) as copy:
                    read_file(copy, chosen, reading)
            except (DatasetError, pl.exceptions.PolarsError) as error:
                if len(files) > 1:
                    reading.note(file, "", UNREADABLE, 1)
                elif isinstance(error, DatasetError):
                    raise
                else:
                    reason = str(error).partition("\n")[0]
                    fix = _fix(file) or "give files of logs"
                    raise DatasetError(f"{file} cannot be read as text ({reason}); {fix}") from error
    except OSError as error:
        raise DatasetError(
            f"{short_repr(path)} cannot be read ({error.strerror or error}); give files of logs"
        ) from None
    reading.spread()
    if not any(reading.rows.values()) and not any(frame.height for frame in reading.watched):
        issues = "; ".join(f"{note['file']}: {note['issue']}" for note in reading.notes[:3])
        fix = _fix(files[0]) or "give kind=, the format of the logs"
        raise DatasetError(f"no rows in {len(files)} files ({issues}); {fix}")
    return tidy_log(reading.rows, reading.notes, reading.watched)


def _fix(file: Path) -> str:
    """Return what helps with a known file that has no rows."""
    with file.open("rb") as stream:
        head = stream.read(START_OF_TEXT).decode(errors="replace")
    return next((fix for start, fix in parsing.words("fix").items() if re.search(start, head, re.MULTILINE)), "")


def _renamed(kind: str, columns: Mapping[str, str] | None) -> Format:
    """Return a format with the column names of the caller."""
    known = formats()[kind]
    if columns is None:
        return known
    for name, theirs in mapping("columns", columns).items():
        one_of("column", name, TABLES[known.table])
        string(f"columns[{name!r}]", theirs)
    needs = tuple(columns.get(name, name) for name in NEEDED[known.table])
    changed = (replace(column, theirs=(columns.get(column.ours, column.ours),)) for column in known.columns)
    return replace(known, needs=needs, columns=tuple(changed))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise DatasetError(f"{path} does not exist; give a file or a folder of logs")
    files = [file for file in files_in(path) if file == path or not file.name.startswith(".")]
    if not files:
        raise DatasetError(f"{path} holds no file; give a folder of logs")
    if odd := [name for name in map(str, files) if name.encode(errors="replace").decode() != name]:
        raise DatasetError(f"{odd[0]!a} is not UTF-8; rename the file")
    return files
