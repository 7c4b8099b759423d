"""Reading of logs: tables, issues in the notes, refusals."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

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
def write(tmp_path: Path):
    """Write a file of a log and return its path."""

    def write_text(text: str, name: str = "a.log") -> Path:
        file = tmp_path / name
        file.write_text(text)
        return file

    return write_text


def counts(log: fk.Log) -> dict[str, int]:
    return dict(log.counts.iter_rows())


def test_slurm_accounting_becomes_attempts_of_jobs(write) -> None:
    log = fk.read_log(write(SACCT))
    assert log.jobs.select("job", "state", "accelerators", "node_list").rows() == [
        ("8", "cancelled", None, None),
        ("7", "node failure", 16.0, "n[01-02]"),
        ("9", "unknown", 8.0, "n03"),
    ]
    assert log.jobs["started"].to_list()[1] == datetime(2026, 3, 1, 8, 10, tzinfo=UTC)
    assert counts(log)["unknown states, kept as unknown"] == 1
    assert counts(log)["lines of other programs, ignored"] == 1


def test_compressed_files_give_the_same_rows_as_plain_ones(write, tmp_path: Path) -> None:
    plain = write(SACCT, "sacct.txt")
    (tmp_path / "sacct.gz").write_bytes(gzip.compress(SACCT.encode()))
    pl.DataFrame({"line": SACCT.splitlines()}).lazy().sink_csv(
        tmp_path / "sacct.zst", include_header=False, quote_style="never", compression="zstd"
    )
    expected = fk.read_log(plain).jobs
    assert fk.read_log(tmp_path / "sacct.gz").jobs.equals(expected)
    assert fk.read_log(tmp_path / "sacct.zst").jobs.equals(expected)
    together = fk.read_log([plain, tmp_path / "sacct.gz"])
    assert together.jobs.equals(expected)
    assert counts(together)["duplicate rows, skipped"] == expected.height


def test_a_truncated_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-01T00:{n // 60:02d}:{n % 60:02d}Z,n{n * 7919 % 1000},notice\n" for n in range(3000))
    packed = gzip.compress(f"at,node,kind\n{rows}".encode())
    (tmp_path / "events.csv.gz").write_bytes(packed[: len(packed) // 2])
    log = fk.read_log(tmp_path / "events.csv.gz")
    assert 1000 < log.events.height < 2000
    assert counts(log)["truncated files, read up to the cut"] == 1


def test_parse_errors_are_counted_and_their_lines_masked(write) -> None:
    log = fk.read_log(write("at,node,kind\n2026-03-01,a,down\nyesterday,a,hunter2-token\n2026-03-02,a,up\n"))
    bad = log.notes.filter(issue="parse errors, skipped").row(0, named=True)
    assert (bad["count"], bad["first_line"], bad["masked_line"]) == (1, 3, "xxxxxxxxx,x,xxxxxx9-xxxxx")
    assert log.skipped == 1


def test_the_hour_that_the_clock_repeats_is_read_twice(write) -> None:
    """Central European summer time ended on 25 October 2026 at 3:00, which became 2:00: four hours of two chips."""
    start = datetime(2026, 10, 24, 23, tzinfo=UTC)
    times = [(start + timedelta(minutes=n)).astimezone(ZoneInfo("Europe/Berlin")) for n in range(241)]
    lines = [f"{time:%Y/%m/%d %H:%M:%S}.000, {gpu}, 500.00 W" for time in times for gpu in (0, 1)]
    log = fk.read_log(write("\n".join(["timestamp, index, power.draw [W]", *lines, ""])), zone="Europe/Berlin")
    assert fk.fleet.energy(log)["accelerator_hours"].item() == pytest.approx(2 * 4.0)


@pytest.mark.parametrize("kind", [None, "nvidia_smi"])
def test_samples_without_a_header_are_refused_with_the_fix(write, kind) -> None:
    file = write("2026/03/01 00:00:00.123, 0, 300.10 W, 50 %\n2026/03/01 00:01:00.123, 0, 310.10 W, 50 %\n")
    with pytest.raises(fk.FactorykitError, match="header is missing; record with --format=csv, without noheader"):
        fk.read_log(file, kind=kind)


def test_timestamps_without_a_zone_have_the_given_one(write) -> None:
    text = (
        "at,kind\n2026-03-01T12:00:00,down\n2026-03-01T12:00:00Z,down\n2026-03-01 12:00:00+02:00,down\n1772366400,up\n"
    )
    log = fk.read_log(write(text), zone="America/New_York")
    assert log.events["at"].dt.hour().to_list() == [10, 12, 12, 17]
    assert counts(log)["timestamps without a zone, taken as America/New_York"] == 1


def test_contradicting_jobs_are_counted_and_shortened(write) -> None:
    rows = ["1,completed,05:00,03:00", "2,running,00:00,", "2,failed,00:00,04:00", "2,completed,03:00,09:00"]
    lines = [row.replace(",0", ",2026-03-01 0") for row in rows]
    log = fk.read_log(write("job,state,started,ended\n" + "\n".join(lines) + "\n"))
    assert log.jobs.select("job", "state", pl.col("ended").dt.hour()).rows() == [
        ("2", "failed", 3),
        ("2", "completed", 9),
    ]
    issues = counts(log)
    assert issues["jobs that end before they start, skipped"] == 1
    assert issues["older records of an attempt, skipped"] == 1
    assert issues["attempts that overlap the next one of their job, shortened"] == 1


def test_keys_in_names_are_hidden_and_names_can_be_hashed(write) -> None:
    key = "hf_" + "a1B2c3D4e5F6g7H8"
    log = fk.read_log(write(f"at,node,kind,cause\n2026-03-01,n1,failure,token={key}\n2026-03-02,n2,failure,{key}\n"))
    first, second = log.events["cause"]
    assert first != second
    assert not any("a1B2" in cause for cause in (first, second))
    jobs = fk.read_log(write(SACCT)).anonymised().jobs
    first, second = jobs.filter(state="node failure")["node_list"].item().split(",")
    assert first.startswith("node-")
    assert first != second
    assert not set(jobs["user"]) & {"ann", "bob"}
    assert jobs["user"].n_unique() == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "slurm"}, "no format 'slurm'"),
        ({"zone": "Berlin"}, "time zone"),
        ({"columns": {"at": "When"}}, "columns need kind"),
        ({"kind": "events", "columns": {"when": "at"}}, "no column 'when'"),
    ],
)
def test_invalid_arguments_are_refused(write, arguments, message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        fk.read_log(write(SACCT), **arguments)


def test_an_unrecognised_file_is_skipped_among_others(write, tmp_path: Path) -> None:
    write(SACCT, "sacct.txt")
    (tmp_path / "junk.bin").write_bytes(bytes(range(256)))
    write("dear diary\n", "notes.txt")
    log = fk.read_log(tmp_path)
    assert log.jobs.height == 3
    assert set(log.notes["file"]) >= {"junk.bin", "notes.txt"}


def test_an_unrecognised_file_is_refused(write) -> None:
    with pytest.raises(fk.FactorykitError, match="unrecognised"):
        fk.read_log(write("dear diary\n"))


def test_other_urls_are_refused() -> None:
    with pytest.raises(fk.FactorykitError, match="expected a local path or s3://, gs://, az://, hf://; give a local"):
        fk.read_log("ftp://host/logs")
