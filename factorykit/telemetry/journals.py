"""Journals, which are most of the files of a cluster: many of them are read by one query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from factorykit.telemetry import log_file
from factorykit.telemetry.formats import MOMENT, TABLES, as_text, formats, is_likely, scan
from factorykit.telemetry.log_file import Reading, Source, cells_of

JOURNAL: Final = "xid"
HEAD_BYTES: Final = 2**16
"""First bytes of a file, among which a journal has a line of the kernel."""
NAMED: Final = {"file": pl.String, "stem": pl.String, "modified": MOMENT}


def read_together(files: Mapping[str, int], zone: str) -> dict[str, Reading]:
    """Return the rows and notes of those files of given sizes that are journals.

    Left out are files that may have another format, a parse error, an unfinished line or a clock that was not set.
    """
    known = formats()[JOURNAL]
    kernel, stamp = known.needs[-1], known.columns[0].theirs[0]
    journals = {name: Path(name) for name, size in files.items() if _is_journal(Path(name), size, kernel, stamp)}
    if not journals:
        return {}
    others = set(formats().values()) - {known}
    has_events = is_likely([replace(known, needs=()), *others])
    groups = log_file.ends(scan([*journals.values()], files="file"), "file", has_events=has_events.any())
    cells = groups.with_columns(cells_of(known, "at", "node")).collect(engine="streaming")
    counts = cells.group_by("file").agg(pl.col("lines").sum() // 2, pl.col("has_events").any())
    with_events = [journals[name] for name in counts.filter("has_events")["file"]]
    lines = scan(with_events or [*journals.values()][:1], files="file")
    of_other_formats = lines.filter(is_likely(others)).select("file").unique().collect(engine="streaming")
    events = lines.filter(pl.col("line").str.contains(known.lines))
    texts = events.select("file", "row", *cells_of(known, *TABLES[known.table]), bad=pl.lit(False)).collect()
    sources = {name: Source(file, file, False) for name, file in journals.items()}
    named = pl.DataFrame([(name, file.stem, file.modified) for name, file in sources.items()], NAMED, orient="row")
    cells, texts = (frame.join(named, on="file", maintain_order="left") for frame in (cells.drop_nulls("at"), texts))
    stamps = log_file.stamps(cells, zone)
    span = stamps.group_by("file").agg(since=pl.col("at").min(), until=pl.col("at").max()).drop_nulls()
    rows = log_file.parsed(known, known.columns, texts.lazy(), texts.head(log_file.SOME), zone).collect()
    kept = counts.join(span, on="file").filter(
        pl.col("since").dt.date() >= log_file.FIRST_DAY, pl.col("until") - pl.col("since") <= log_file.MAX_GAP
    )
    kept = kept.join(of_other_formats, on="file", how="anti").join(rows.filter("bad"), on="file", how="anti")
    periods = log_file.watched(known, stamps, "file").partition_by("file", as_dict=True, include_key=False)
    rows_of = rows.partition_by("file", as_dict=True)
    readings = {}
    for name, count in kept.select("file", "lines").iter_rows():
        if journals[name].stat().st_size == files[name]:
            readings[name] = Reading(zone, watched=[periods[name,]])
            those = rows_of.get((name,), rows.clear())
            log_file.note_rows(known, sources[name], readings[name], count, those)
            readings[name].rows[known.table] += [those.select(list(TABLES[known.table]))] * bool(those.height)
    return readings


def _is_journal(file: Path, size: int, kernel: str, at: str) -> bool:
    """Return whether a file begins with a timestamp, has a line of the kernel at first, and ends with a whole line."""
    with file.open("rb") as stream:
        head = stream.read(HEAD_BYTES).decode(errors="replace")
        head = "\n".join(as_text(pl.Series(head.split("\n"))))
        stream.seek(max(size - 1, 0))
        is_whole = stream.read() == b"\n"
    is_series = '"resultType"' in head
    return bool(is_whole and not is_series and re.match(at, head) and re.search(kernel, head, re.MULTILINE))
