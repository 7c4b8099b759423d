"""Logs in: each format as its documentation shows it, and what is wrong with logs, counted."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk

SACCT = """JobID|User|State|Submit|Start|End|AllocNodes|AllocTRES|NodeList
7|ann|NODE_FAIL|2026-03-01T08:00:00|2026-03-01T08:10:00|2026-03-01T20:00:00|2|cpu=384,gres/gpu=16,node=2|n[01-02]
7.batch||CANCELLED||2026-03-01T08:10:00|2026-03-01T20:00:00|1||n01
8|bob|CANCELLED by 1000|2026-03-01T08:00:00|Unknown|Unknown|0||None assigned
9|bob|ON_STRIKE|2026-03-01T08:00:00|2026-03-01T09:00:00|2026-03-01T10:00:00|1|gres/gpu:h100=8|n03
"""


@pytest.fixture
def put(tmp_path: Path):
    """Write a file of a log and return its path."""

    def write(text: str, name: str = "a.log") -> Path:
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


def counted(log: fk.Log) -> dict[str, int]:
    return dict(log.counts.iter_rows())


def test_slurm_accounting_becomes_attempts_of_jobs(put) -> None:
    log = fk.read_log(put(SACCT))
    assert log.jobs.select("job", "state", "accelerators", "on").rows() == [
        ("8", "cancelled", None, "None assigned"),
        ("7", "node failure", 16.0, "n[01-02]"),
        ("9", "unknown", 8.0, "n03"),
    ]
    assert log.jobs["started"].to_list()[1] == datetime(2026, 3, 1, 8, 10, tzinfo=UTC)
    assert counted(log)["states that are not known, kept as unknown"] == 1
    assert counted(log)["lines of something else, left out"] == 1


def test_packed_files_say_the_same_as_plain_ones(put, tmp_path: Path) -> None:
    plain = put(SACCT, "sacct.txt")
    (tmp_path / "sacct.gz").write_bytes(gzip.compress(SACCT.encode()))
    pl.DataFrame({"line": SACCT.splitlines()}).lazy().sink_csv(
        tmp_path / "sacct.zst", include_header=False, quote_style="never", compression="zstd"
    )
    wanted = fk.read_log(plain).jobs
    assert fk.read_log(tmp_path / "sacct.gz").jobs.equals(wanted)
    assert fk.read_log(tmp_path / "sacct.zst").jobs.equals(wanted)
    together = fk.read_log([plain, tmp_path / "sacct.gz"])
    assert together.jobs.equals(wanted)
    assert counted(together)["rows told again, left out"] == wanted.height


def test_a_packed_file_that_ends_too_early_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-01T00:{n // 60:02d}:{n % 60:02d}Z,n{n * 7919 % 1000},notice\n" for n in range(3000))
    packed = gzip.compress(f"at,node,kind\n{rows}".encode())
    (tmp_path / "events.csv.gz").write_bytes(packed[: len(packed) // 2])
    log = fk.read_log(tmp_path / "events.csv.gz")
    assert 1000 < log.events.height < 2000
    assert counted(log)["files cut short, read as far as they go"] == 1


def test_bad_lines_are_counted_and_their_letters_are_not_shown(put) -> None:
    log = fk.read_log(put("at,node,kind\n2026-03-01,a,down\nyesterday,a,hunter2-token\n2026-03-02,a,up\n"))
    bad = log.notes.filter(what="bad lines, left out").row(0, named=True)
    assert (bad["count"], bad["line"], bad["shape"]) == (1, 3, "xxxxxxxxx,x,xxxxxx9-xxxxx")
    assert log.left_out == 1


def test_time_zones_are_those_of_the_lines_else_the_one_given(put) -> None:
    text = (
        "at,kind\n2026-03-01T12:00:00,down\n2026-03-01T12:00:00Z,down\n2026-03-01 12:00:00+02:00,down\n1772366400,up\n"
    )
    log = fk.read_log(put(text), zone="America/New_York")
    assert log.events["at"].dt.hour().to_list() == [10, 12, 12, 17]
    assert counted(log)["moments without a zone, taken as America/New_York"] == 1


def test_contradicting_jobs_are_counted_and_cut(put) -> None:
    rows = ["1,completed,05:00,03:00", "2,running,00:00,", "2,failed,00:00,04:00", "2,completed,03:00,09:00"]
    lines = [row.replace(",0", ",2026-03-01 0") for row in rows]
    log = fk.read_log(put("job,state,started,ended\n" + "\n".join(lines)))
    assert log.jobs.select("job", "state", pl.col("ended").dt.hour()).rows() == [
        ("2", "failed", 3),
        ("2", "completed", 9),
    ]
    told = counted(log)
    assert told["jobs that end before they start, left out"] == 1
    assert told["older records of an attempt, left out"] == 1
    assert told["attempts that overlap the next one of their job, cut"] == 1


def test_names_that_look_like_keys_are_hidden_and_names_can_be_hashed(put) -> None:
    key = "hf_" + "a1B2c3D4e5F6g7H8"
    log = fk.read_log(put(f"at,node,kind,cause\n2026-03-01,n1,failure,token={key}\n2026-03-02,n2,failure,{key}\n"))
    assert log.events["cause"].to_list() == ["(hidden)", "(hidden)"]
    jobs = fk.read_log(put(SACCT)).anonymised().jobs
    first, second = jobs.filter(state="node failure")["on"].item().split(",")
    assert first.startswith("node-")
    assert first != second
    assert not set(jobs["user"]) & {"ann", "bob"}
    assert jobs["user"].n_unique() == 2


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"kind": "slurm"}, "no format 'slurm'"),
        ({"zone": "Berlin"}, "time zone"),
        ({"columns": {"at": "When"}}, "say which table"),
        ({"kind": "events", "columns": {"when": "at"}}, "no column 'when'"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(put, asked, says: str) -> None:
    with pytest.raises(fk.FactorykitError, match=says):
        fk.read_log(put(SACCT), **asked)


def test_a_file_that_is_no_log_is_left_out_among_others(put, tmp_path: Path) -> None:
    put(SACCT, "sacct.txt")
    (tmp_path / "junk.bin").write_bytes(bytes(range(256)))
    put("dear diary\n", "notes.txt")
    log = fk.read_log(tmp_path)
    assert log.jobs.height == 3
    assert set(log.notes["file"]) >= {"junk.bin", "notes.txt"}


def test_a_file_that_is_no_log_is_refused(put) -> None:
    with pytest.raises(fk.FactorykitError, match="no known log"):
        fk.read_log(put("dear diary\n"))
