"""Logs as a study: the same rows as in memory, only new bytes are read, and nothing is counted twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import factorykit as fk
from factorykit.data import query
from factorykit.telemetry import log_study
from factorykit.telemetry.formats import TABLES

START = datetime(2026, 3, 1, tzinfo=UTC)
XID = "{at:%Y-%m-%dT%H:%M:%S+00:00} {node} kernel: {text}\n"
FAILURE = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."


def journal(node: str, hours: Iterable[int], failing: int) -> str:
    return "".join(
        XID.format(at=START + timedelta(hours=hour), node=node, text=FAILURE if hour == failing else "usb 1-1: new")
        for hour in hours
    )


def power(seconds: Iterable[int]) -> str:
    rows = (
        f"{START + timedelta(seconds=10 * second):%Y/%m/%d %H:%M:%S}.000, 3, {600 + second}.5 W\n" for second in seconds
    )
    return "".join(rows)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    for number in range(3):
        (folder / f"n{number}").mkdir(parents=True)
        (folder / f"n{number}" / "journal.log").write_text(journal(f"n{number}", range(48), 7 * number + 20))
        (folder / f"n{number}" / f"n{number}.csv").write_text("timestamp, index, power.draw [W]\n" + power(range(40)))
    (folder / "sacct.txt").write_text(
        "JobID|State|Start|End|AllocTRES|NodeList\n7|FAILED|2026-03-01|2026-03-02|gres/gpu=16|n[0-1]\n"
    )
    (folder / "a.json").write_text('[\n{"_step": 1, "_timestamp": 1772366400.0, "step_time": 4.25}\n]\n')
    (folder / "notes.txt").write_text("dear diary\n")
    return folder


def assert_same(study: fk.fleet.LogStudy, logs: Path) -> None:
    expected, found = fk.read_log(logs), study.log()
    for table in TABLES:
        assert_frame_equal(getattr(found, table), getattr(expected, table), check_row_order=False)
    keys = ["node", "source", "since"]
    ends = [
        log.watched.group_by("node", "source").agg(pl.col("since").min(), pl.col("until").max()).sort(keys)
        for log in (found, expected)
    ]
    assert_frame_equal(*ends)
    issues = [dict(log.counts.iter_rows()) for log in (found, expected)]
    assert issues[0] == issues[1]


@pytest.mark.parametrize(("batch", "engine"), [(2, "local"), (300, "local"), (2, "ray")])
def test_a_study_has_the_rows_of_the_log_in_memory(
    logs: Path, tmp_path: Path, batch: int, engine: str, monkeypatch
) -> None:
    if engine == "ray":
        ray = pytest.importorskip("ray")
        ray.init(num_cpus=2, log_to_driver=False, runtime_env={"env_vars": {"TZ": "Asia/Tokyo"}})
    monkeypatch.setattr(log_study, "BATCH_FILES", batch)
    study = fk.read_log(logs, out=tmp_path / "study", engine=engine)
    assert_same(study, logs)
    assert [path.name for path in (tmp_path / "study" / "events").iterdir()] == ["source=xid"]
    assert len(list((tmp_path / "study").glob("events/source=xid/day=2026-03-02/node=n1/*.parquet"))) == 1
    assert not [path for path in (tmp_path / "study").iterdir() if path.name.startswith(".")]


def test_only_new_bytes_are_read(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    fk.read_log(logs, out=out)
    before = sorted(out.rglob("*.parquet"))
    fk.read_log(logs, out=out)
    assert [path for path in out.rglob("*.parquet") if path.parent.name != "files"] == [
        path for path in out.rglob("*.parquet") if path in before and path.parent.name != "files"
    ]
    with (logs / "n1" / "journal.log").open("a") as file:
        file.write(journal("n1", range(48, 50), 49))
    with (logs / "n2" / "n2.csv").open("a") as file:
        file.write(power([40, 41])[:-3])
    (logs / "n3.log").write_text(journal("n3", range(24), 5))
    study = fk.read_log(logs, out=out)
    sizes = {Path(name).name: count for name, count in study.files.group_by("file").len().iter_rows()}
    assert (sizes["n2.csv"], sizes["n1.csv"], sizes["n3.log"]) == (2, 1, 1)
    assert study.scan("power").collect().height == 3 * 40 + 1
    with (logs / "n2" / "n2.csv").open("a") as file:
        file.write(power([41])[-3:])
    assert_same(fk.read_log(logs, out=out), logs)


def test_a_file_that_is_cut_loses_its_rows(logs: Path, tmp_path: Path) -> None:
    fk.read_log(logs, out=tmp_path / "study")
    (logs / "n0" / "journal.log").write_text(journal("n0", range(19), 5))
    (logs / "a.json").write_text((logs / "a.json").read_text().replace("4.25", "5.25"))
    (logs / "n1" / "n1.csv").write_text("timestamp, index, power.draw [W]\n" + power(range(20)))
    study = fk.read_log(logs, out=tmp_path / "study")
    assert study.log().power.equals(fk.read_log(logs).power)
    assert set(study.log().events["node"]) == {"n0", "n1", "n2"}


def test_the_rows_of_an_earlier_file_of_the_same_name_are_kept(logs: Path, tmp_path: Path) -> None:
    """A log that is rotated away, or written anew by a command."""
    before = fk.read_log(logs, out=tmp_path / "study").log()
    (logs / "n0" / "journal.log").write_text(journal("n0", range(50, 99), 60))
    for _ in range(2):
        study = fk.read_log(logs, out=tmp_path / "study")
        assert study.log().events.height == before.events.height + 1
        assert study.log().watched.filter(node="n0").height == 2


def test_an_interrupted_study_goes_on_without_counting_twice(logs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_study, "BATCH_FILES", 3)
    made, write = [], log_study._write

    def killed(make: Callable, batches: list) -> None:
        for number in range(len(batches)):
            made.append(number)
            if len(made) == 3:
                monkeypatch.setattr(
                    log_study, "_write", lambda *given: write(*given) if "node=" in str(given[2]) else 1 / 0
                )
            make(batches, number)

    monkeypatch.setattr(log_study, "PROCESSES", 1)
    with monkeypatch.context() as patch:
        patch.setattr(log_study, "_in_process", killed)
        with pytest.raises(ZeroDivisionError):
            fk.read_log(logs, out=tmp_path / "study")
    monkeypatch.setattr(log_study, "_write", write)
    kept = {path.stat().st_mtime_ns for path in (tmp_path / "study" / "files").iterdir()}
    assert len(kept) == 2
    assert_same(fk.read_log(logs, out=tmp_path / "study"), logs)
    assert kept < {path.stat().st_mtime_ns for path in (tmp_path / "study" / "files").iterdir()}


def test_a_large_file_is_read_in_pieces_of_whole_lines(logs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_study, "PIECE_BYTES", 200)
    study = fk.read_log(logs, out=tmp_path / "study")
    pieces = study.files.filter(pl.col("file").str.ends_with("n1.csv"))
    assert pieces["start"].to_list()[1:] == pieces["end"].to_list()[:-1]
    assert pieces.height > 3
    for table in TABLES:
        expected = getattr(fk.read_log(logs), table)
        assert_frame_equal(getattr(study.log(), table), expected, check_row_order=False)


def test_a_format_that_begins_in_new_bytes_is_read(logs: Path, tmp_path: Path) -> None:
    (logs / "job-7.out").write_text(" [2026-03-01 01:00:00] iteration 1/ 9 | elapsed time per iteration (ms): 4.5 |\n")
    fk.read_log(logs, out=tmp_path / "study")
    with (logs / "job-7.out").open("a") as file:
        file.write(journal("n9", range(3), 1))
    study = fk.read_log(logs, out=tmp_path / "study")
    assert_frame_equal(study.log().events, fk.read_log(logs).events, check_row_order=False)


def test_a_study_in_another_zone_is_refused(logs: Path, tmp_path: Path) -> None:
    fk.read_log(logs, out=tmp_path / "study")
    with pytest.raises(fk.FactorykitError, match="zone"):
        fk.read_log(logs, out=tmp_path / "study", zone="Europe/Berlin")


def test_rows_of_a_rotated_or_repeated_file_count_once_in_a_query(logs: Path, tmp_path: Path) -> None:
    running = (logs / "sacct.txt").read_text().replace("FAILED", "RUNNING").replace("2026-03-02", "Unknown")
    (logs / "earlier.txt").write_text(running)
    fk.read_log(logs, out=tmp_path / "study")
    for name in ("journal.log", "n0.csv"):
        (logs / "n0" / name).rename(logs / "n0" / f"{name}.1")
    study = fk.read_log(logs, out=tmp_path / "study")
    counts = "select (select count(*) from events), (select count(*) from power), (select string_agg(state) from jobs)"
    assert study.sql(counts).row(0) == (study.log().events.height, study.log().power.height, "failed")


def test_a_result_larger_than_memory_is_refused(logs: Path, tmp_path: Path, monkeypatch) -> None:
    study = fk.read_log(logs, out=tmp_path / "study")
    monkeypatch.setattr(query, "MAX_SQL_BYTES", 1e6)
    for text in ("repeat('x', 1000)", "[range, range, range]::text[]"):
        with pytest.raises(fk.FactorykitError, match="the result needs more than"):
            study.sql(f"select {text} as a from range(100000)")
    assert study.sql("select repeat('x', 100) as a from range(1000)").height == 1000


def test_days_are_read_alone(logs: Path, tmp_path: Path) -> None:
    study = fk.read_log(logs, out=tmp_path / "study")
    log = study.log((date(2026, 3, 2), date(2026, 3, 2)))
    assert (log.events["node"].to_list(), log.power.height) == (["n1", "n2"], 0)
    span = [START + timedelta(days=1), START + timedelta(hours=47)]
    assert log.watched.select("since", "until").unique().rows() == [tuple(span)]


def test_a_study_is_queried_out_of_core_in_utc(logs: Path, tmp_path: Path) -> None:
    study = fk.read_log(logs, out=tmp_path / "study")
    power = study.sql("select date_trunc('day', moment), count(*), avg(accelerator_power_w) from power group by 1")
    assert power.row(0) == (datetime(2026, 3, 1), 120, 620.0)
    hours = study.sql("select ended, sum(accelerators * epoch(ended - started)) / 3600 from jobs group by 1")
    assert hours.row(0) == (datetime(2026, 3, 2), 16 * 24.0)
    late = study.sql("select node from events where moment > $since", since=datetime(2026, 3, 2))
    assert sorted(late["node"]) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from read_csv('/etc/passwd')", "known are events, jobs, steps, power"),
        ("drop view events", "DROP is not allowed"),
    ],
)
def test_a_study_refuses_queries_of_anything_else(logs: Path, tmp_path: Path, query: str, message: str) -> None:
    study = fk.read_log(logs, out=tmp_path / "study")
    with pytest.raises(fk.FactorykitError, match=message):
        study.sql(query)
    with pytest.raises(fk.FactorykitError, match="has no rows of logs"):
        fk.fleet.LogStudy(tmp_path / "none").sql(query)


@pytest.mark.filterwarnings("ignore:.*are in no attempt")
def test_failures_goodput_and_energy_of_a_study_are_those_of_the_log(logs: Path, tmp_path: Path) -> None:
    study, log = fk.read_log(logs, out=tmp_path / "study"), fk.read_log(logs)
    for answer in (fk.fleet.mtbf, fk.fleet.goodput, fk.fleet.energy):
        assert_frame_equal(answer(study.log()), answer(log))
    events = study.log(tables=["events", "jobs"])
    assert events.power.is_empty()
    assert_frame_equal(fk.fleet.failures(events), fk.fleet.failures(log))


def test_too_long_work_is_refused_with_the_estimate(logs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_study, "MAX_STUDY_S", 0.0)
    with pytest.raises(fk.FactorykitError, match=r"9 files of 0.0 GB take about 0.0 h"):
        fk.read_log(logs, out=tmp_path / "study")


def test_a_folder_with_other_files_is_refused(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(fk.FactorykitError, match=r"has (a.json|n0|n1|n2|notes.txt)"):
        fk.read_log(logs, out=logs)


def test_a_failed_batch_names_its_files(logs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_study, "BATCH_FILES", 4)
    monkeypatch.setattr(
        log_study,
        "_new",
        lambda files, study: [{"file": str(file), "start": 0, "size": 9, "key": "a"} for file in files],
    )
    with pytest.raises(fk.FactorykitError, match=r"a.json and 7 more files cannot be read: KeyError"):
        fk.read_log(logs, out=tmp_path / "study")


def test_a_study_of_another_version_is_refused_with_the_fix(logs: Path, tmp_path: Path) -> None:
    study = fk.read_log(logs / "sacct.txt", out=tmp_path / "study")
    (part,) = (tmp_path / "study" / "jobs").rglob("*.parquet")
    pl.read_parquet(part).drop("name").write_parquet(part)
    for use in (
        study.log,
        lambda: study.sql("select * from jobs"),
        lambda: fk.read_log(logs / "a.json", out=study.folder),
    ):
        with pytest.raises(fk.FactorykitError, match="jobs lack name, by another version; read the logs again"):
            use()


def test_two_formats_of_one_table_in_a_file_are_both_kept(tmp_path: Path) -> None:
    reset = "amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!"
    (tmp_path / "n1.log").write_text("".join(XID.format(at=START, node="n1", text=text) for text in (FAILURE, reset)))
    study = fk.read_log(tmp_path, out=tmp_path / "study")
    assert study.scan("events").collect()["code"].to_list() == ["79", "GPU reset begin"]
