"""Journals without an event, which are most of the files of a cluster: many of them are read by one query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from factorykit.telemetry import parsing
from factorykit.telemetry.formats import MOMENT, formats, is_likely, scan
from factorykit.telemetry.log_file import FIRST_DAY, MAX_GAP, READ, SOME, Reading, Source, cells_of, ends, watched
from factorykit.telemetry.tidy import OTHER_LINES

JOURNAL: Final = "xid"
HEAD_BYTES: Final = 2**16
"""First bytes of a file, among which a journal has a line of the kernel."""
NAMED: Final = {"file": pl.String, "stem": pl.String, "modified": MOMENT}


def quiet(files: Mapping[str, int], zone: str) -> dict[str, Reading]:
    """Return what is noted of those files of given sizes that are journals without an event.

    Left out are files that may have another format, an event, an unfinished line or a clock that was not set.
    """
    known = formats()[JOURNAL]
    kernel, stamp = known.needs[-1], known.columns[0].theirs[0]
    journals = {name: Path(name) for name, size in files.items() if _is_journal(Path(name), size, kernel, stamp)}
    if not journals:
        return {}
    others = [replace(known, needs=()), *(each for each in formats().values() if each is not known)]
    groups = ends(scan([*journals.values()], files="file"), "file", is_loud=is_likely(others).any())
    cells = groups.with_columns(cells_of(known, "at", "node")).collect(engine="streaming")
    counts = cells.group_by("file").agg(pl.col("lines").sum() // 2, pl.col("is_loud").any())
    sources = [Source(file, file, False) for file in journals.values()]
    named = pl.DataFrame([(str(each.file), each.stem, each.modified) for each in sources], NAMED, orient="row")
    cells = cells.drop_nulls("at").join(named, on="file", maintain_order="left")
    form, has_no_year = parsing.usual(cells["at"].head(SOME)), cells["at"].str.contains(parsing.WITHOUT_YEAR).any()
    at = parsing.moment(pl.col("at"), zone, form, pl.col("modified").first() if has_no_year else None)
    stamps = cells.with_columns(
        parsing.text(pl.col("node")).fill_null(pl.col("stem")), at.over("file") if has_no_year else at
    )
    span = stamps.group_by("file").agg(since=pl.col("at").min(), until=pl.col("at").max()).drop_nulls()
    kept = counts.join(span, on="file").filter(
        ~pl.col("is_loud"), pl.col("since").dt.date() >= FIRST_DAY, pl.col("until") - pl.col("since") <= MAX_GAP
    )
    periods = watched(known, stamps, "file").partition_by("file", as_dict=True, include_key=False)
    found = {}
    for name, lines in kept.select("file", "lines").iter_rows():
        if (file := journals[name]).stat().st_size == files[name]:
            found[name] = Reading(zone, watched=[periods[name,]])
            for issue in (READ, OTHER_LINES):
                found[name].note(file, known.name, issue, lines)
    return found


def _is_journal(file: Path, size: int, kernel: str, at: str) -> bool:
    """Return whether a file begins with a timestamp, has a line of the kernel at first, and ends with a whole line."""
    with file.open("rb") as stream:
        head = stream.read(HEAD_BYTES).decode(errors="replace")
        stream.seek(max(size - 1, 0))
        is_whole = stream.read() == b"\n"
    is_series = '"resultType"' in head
    return bool(is_whole and not is_series and re.match(at, head) and re.search(kernel, head, re.MULTILINE))
