"""Realistic faults of logs: each is read right or counted in the notes, never silently wrong."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit.telemetry import compression, formats, log_file

MEGATRON = " [2026-03-01 12:00:{at:02d}] iteration {step:8d}/ 1000 | elapsed time per iteration (ms): {ms} |\n"
XID = "{at} {node} kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"


def counts(log: fk.Log) -> dict[str, int]:
    return dict(log.counts.iter_rows())


@pytest.fixture
def read(tmp_path: Path):
    """Read a text as a file, written at a given time."""

    def read_text(text: str, name: str = "a.log", modified: datetime | None = None, **options: str) -> fk.Log:
        file = tmp_path / name
        file.write_text(text)
        if modified:
            os.utime(file, (modified.timestamp(),) * 2)
        return fk.read_log(file, **options)

    return read_text


@pytest.mark.parametrize("banner", [0, 2_500, 20_000])
def test_a_log_is_recognised_after_any_number_of_other_lines(read, banner: int) -> None:
    steps = "".join(MEGATRON.format(at=step, step=step, ms=4321.5) for step in range(1, 6))
    log = read("loading library 12 of 99\n" * banner + steps)
    assert log.steps["step_s"].to_list() == [4.3215] * 5


def test_records_of_two_formats_in_one_file_are_all_read(read) -> None:
    health = '{"node": "n1", "health_check": "gpu", "result": 2, "start_time": 1772366400.0}\n'
    power = '{"time": 1772366400, "gpu_id": 3, "hostname": "n1", "power_draw": 612.5}\n'
    log = read(health * 2_100 + power)
    assert (log.events.filter(kind="failure").height, log.power.height) == (1, 1)
    assert log_file.PARSE_ERRORS not in counts(log)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("JobID|State|Start|End|AllocTRES\n" + "7|FAILED|2026-03-01|2026-03-02|gres/gpu=16\n" * 2, 1),
        ("at,accelerator_power_w\n2026-03-01,359.25\n2026-03-02,359.25\n", 1),
        (MEGATRON.format(at=1, step=1, ms=5099.1) + MEGATRON.format(at=2, step=2, ms=5099.1), 1),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_an_unfinished_last_line_is_not_counted(tmp_path: Path, text: str, kept: int, is_packed: bool) -> None:
    cut = text[: len(text) - 3].encode()
    (tmp_path / "a.log").write_bytes(gzip.compress(cut) if is_packed else cut)
    log = fk.read_log(tmp_path)
    assert log.jobs.height + log.steps.height + log.power.height == kept
    assert counts(log)["unfinished last line, skipped"] == 1


def test_a_complete_record_without_a_line_end_counts(read) -> None:
    assert read('{"_step": 10, "_timestamp": 1772366400.0, "step_time": 4.25}').steps.height == 1


@pytest.mark.parametrize(
    ("cell", "step_s"),
    [("5.1", 5.1), ("5100 ms", 5.1), ("5.1 s", 5.1), ("2 min", 120.0), ("5.1e0", 5.1)]
    + [(cell, None) for cell in ('"5,123"', '"5,1"', "1.234.567", "00:05:10", "5.1 W", "5.1 of 6", "0x5", "inf")],
)
def test_a_number_has_one_meaning_or_is_a_parse_error(read, cell: str, step_s: float | None) -> None:
    log = read(f"step,step_s\n1,4.25\n2,{cell}\n")
    assert log.steps["step_s"].to_list() == pytest.approx([4.25] + [step_s] * (step_s is not None))
    assert counts(log).get("parse errors, skipped", 0) == (step_s is None)


def test_power_has_the_unit_of_its_cell(read) -> None:
    power = read(
        "timestamp, index, power.draw [W]\n"
        + "".join(f"2026/03/01 12:00:0{n}.000, 3, {cell}\n" for n, cell in enumerate(["612.5 W", "0.35 kW", "612.5"]))
    ).power
    assert power["accelerator_power_w"].to_list() == [612.5, 350.0, 612.5]


@pytest.mark.parametrize("number", ["5,210.5", "1.234,5"])
def test_a_number_with_separators_within_a_line_is_a_parse_error(read, number: str) -> None:
    log = read(MEGATRON.format(at=1, step=1, ms=4321.5) + MEGATRON.format(at=2, step=2, ms=number))
    assert (log.steps.height, counts(log)["parse errors, skipped"]) == (1, 1)


def test_years_of_syslog_go_back_from_the_time_of_the_file(read) -> None:
    stamps = ["Nov 30 08:00:00", "Dec 31 23:59:58", "Jan  1 00:00:01", "Dec 31 23:59:59", "Jan  2 07:00:00"]
    text = "".join(XID.format(at=at, node=f"n{n}") for n, at in enumerate(stamps))
    log = read(text, modified=datetime(2026, 1, 2, 8, tzinfo=UTC))
    years = dict(log.events.select("node", pl.col("at").dt.year()).iter_rows())
    assert years == {"n0": 2025, "n1": 2025, "n2": 2026, "n3": 2025, "n4": 2026}
    december = read(XID.format(at="Dec 31 23:59:58", node="n"), modified=datetime(2026, 1, 2, 8, tzinfo=UTC))
    assert december.events["at"].item().year == 2025


def test_a_leap_day_of_syslog_is_read(read) -> None:
    log = read(XID.format(at="Feb 29 12:00:00", node="n"), modified=datetime(2024, 3, 2, tzinfo=UTC))
    assert log.events["at"].item() == datetime(2024, 2, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize("absurd", ["1970-01-01 00:00:07", "2000-01-01 00:00:00", "2062-03-01 00:00:00"])
def test_lines_with_a_wrong_clock_are_set_apart_and_counted(read, absurd: str) -> None:
    days = [f"2026-03-{day:02d} 12:00:00,n{day % 5},failure" for day in range(1, 26)]
    log = read("\n".join(["at,node,kind", *days[:20], f"{absurd},n1,notice", *days[20:], ""]))
    assert counts(log)["implausible timestamps, skipped"] == 1
    rate = fk.fleet.mtbf(log, exposure=5).row(0, named=True)
    assert rate["failures"] == 25
    assert rate["cluster_mtbf_s"] == pytest.approx(24 * 86400 / 25)


def test_hidden_names_stay_distinct(read) -> None:
    names = [f"hf_llama3_70b_run_{n}" for n in range(3)] + [f"{'x' * 85}{n}" for n in range(2)]
    rows = [f"{name},completed,2026-03-01 00:00,2026-03-01 10:00,1,8" for name in names]
    log = read("\n".join(["job,state,started,ended,nodes,accelerators", *rows, *rows, ""]))
    assert log.jobs["job"].n_unique() == log.jobs.height == 5
    assert fk.fleet.goodput(log, accelerators=40)["accelerator_hours"].head(8).sum() == pytest.approx(400)
    assert not log.jobs["job"].str.contains("llama").any()
    again = read("\n".join(["job,state,started,ended,nodes,accelerators", *rows, ""]), "b.log")
    assert set(again.jobs["job"]) == set(log.jobs["job"])


def test_the_end_of_a_long_name_is_a_token(read) -> None:
    names = [f"{'a-b.' * 25}{n}" for n in range(2)]
    found = read("at,node,kind\n" + "".join(f"2026-03-01,{name},failure\n" for name in names)).events["node"]
    assert found.n_unique() == 2
    assert all(len(name) < 60 and name.startswith("a-b.a-b.") for name in found)


@pytest.mark.parametrize("form", ["gzip", "zstd"])
def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, form: str, monkeypatch) -> None:
    monkeypatch.setattr(compression, "MAX_BYTES", 1_000_000)
    file = tmp_path / "a.log"
    if form == "gzip":
        file.write_bytes(gzip.compress(b"at,node,kind\n" + b"0" * 2_000_000))
    else:
        pl.LazyFrame({"line": ["at,node,kind", "0" * 2_000_000]}).sink_csv(
            file, include_header=False, quote_style="never", compression="zstd", check_extension=False
        )
    with pytest.raises(fk.FactorykitError, match="more than 1 MB"):
        fk.read_log(file)


def journals(folder: Path, *, nodes: int, failing: int, lines: int, days: int) -> None:
    """Write a journal of each node; the first ones have one Xid each, at a line of their own."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    for node in range(nodes):
        stamps = [start + timedelta(days=days) * line / (lines - 1) for line in range(lines)]
        text = [f"{at:%Y-%m-%dT%H:%M:%S+00:00} n{node} kernel: usb 1-1: new device\n" for at in stamps]
        if node < failing:
            line = lines * (2 * node + 1) // (2 * failing)
            text[line] = XID.format(at=f"{stamps[line]:%Y-%m-%dT%H:%M:%S+00:00}", node=f"n{node}")
        (folder / f"n{node}.log").write_text("".join(text))


@pytest.mark.parametrize("is_dmesg", [False, True])
def test_journals_of_healthy_nodes_count_as_watched(tmp_path: Path, is_dmesg: bool) -> None:
    journals(tmp_path, nodes=10, failing=4, lines=5_000, days=30)
    for file in tmp_path.glob("*.log") if is_dmesg else ():
        lines = (line.split(" ", 3) for line in file.read_text().splitlines())
        file.write_text(
            "".join(f"[{datetime.fromisoformat(at):%a %b %e %H:%M:%S %Y}] {text}\n" for at, *_, text in lines)
        )
    rate = fk.fleet.mtbf(fk.read_log(tmp_path)).row(0, named=True)
    assert (rate["failures"], rate["nodes"], rate["exposure"]) == (4.0, 10.0, "xid")
    assert rate["node_days"] == pytest.approx(300.0)
    assert rate["node_mtbf_s"] == pytest.approx(75 * 86400.0)


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%S+00:00", "%b %e %H:%M:%S"])
def test_a_journal_watches_each_of_its_nodes_from_its_first_to_its_last_line(tmp_path: Path, form: str) -> None:
    """The clock of one line is wrong; its file is short."""
    start, file = datetime(2025, 12, 31, 22, 59, tzinfo=UTC), tmp_path / "journal.log"
    stamps = [start + timedelta(minutes=minute) for minute in range(130)]
    lines = [f"{at:{form}} n{minute % 3 and 1} kernel: usb 1-1: new device\n" for minute, at in enumerate(stamps)]
    wrong = [f"{at} n1 kernel: clock\n" for at in ("2062-03-01T00:00:00+00:00", "1970-01-01T00:00:00+00:00")]
    file.write_text("".join([*lines[:50], " continued\n", *(wrong if "Y" in form else []), *lines[50:]]))
    os.utime(file, (stamps[-1].timestamp(),) * 2)
    watched = fk.read_log(file, "xid").watched.select("node", "since", "until").sort("node")
    assert watched.rows() == [("n0", stamps[0], stamps[129]), ("n1", stamps[1], stamps[128])]


PRINTED = {
    "__REALTIME_TIMESTAMP": "1342540861421465",
    "_HOSTNAME": "epsilon",
    "SYSLOG_IDENTIFIER": "/USR/SBIN/CROND",
    "MESSAGE": "(root) CMD (run-parts /etc/cron.hourly)",
    "_UDEV_DEVLINK": ["/dev/alias1", "/dev/alias2"],
    "LARGE": None,
}
"""Fields of systemd's own examples, https://systemd.io/JOURNAL_EXPORT_FORMATS/."""
KERNEL = PRINTED | {"__REALTIME_TIMESTAMP": "1342540861416409", "SYSLOG_IDENTIFIER": "kernel"}


@pytest.mark.parametrize("start", ["", "\x1e"], ids=["json", "json-seq"])
def test_a_journal_in_json_is_read_as_the_lines_that_journalctl_prints(read, start: str) -> None:
    text = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    of_bytes = KERNEL | {"MESSAGE": [*f"{text} \a".encode()], "_HOSTNAME": "bupkis"}
    records = [KERNEL | {"MESSAGE": text}, of_bytes, KERNEL | {"MESSAGE": None}, PRINTED]
    lines = [start + json.dumps(record) for record in records]
    log = read("\n".join([*lines, f"{start}{{{text}", lines[0][:-9]]))
    at = [datetime(2012, 7, 17, 16, 1, 1, microsecond, tzinfo=UTC) for microsecond in (416409, 421465)]
    found = log.events.select("at", "node", "kind", "cause", "code")
    assert found.rows() == [(at[0], node, "failure", "accelerator", "79") for node in ("epsilon", "bupkis")]
    assert set(log.watched.rows()) == {("epsilon", *at, "xid"), ("bupkis", at[0], at[0], "xid")}
    assert [counts(log)[issue] for issue in (log_file.READ, log_file.PARSE_ERRORS, log_file.UNFINISHED)] == [5, 1, 1]


@pytest.mark.parametrize("record", [PRINTED, KERNEL | {"__REALTIME_TIMESTAMP": None}], ids=["user", "no time"])
def test_records_that_are_no_journal_of_the_kernel_are_refused(read, record: dict[str, object]) -> None:
    with pytest.raises(fk.FactorykitError, match="no rows"):
        read(json.dumps(record) + "\n")


def test_no_rate_without_exposure(read) -> None:
    log = read("at,node,kind\n2026-03-01,a,failure\n2026-03-11,b,failure\n")
    with pytest.raises(fk.FactorykitError, match="exposure"):
        fk.fleet.mtbf(log)
    assert fk.fleet.mtbf(log, exposure=20)["node_days"].item() == 200.0


def test_failures_outside_the_exposure_are_counted_apart(read) -> None:
    log = read("at,node,kind\n2026-03-01,a,failure\n2026-03-11,b,failure\n2026-03-21,c,failure\n")
    day = lambda number: datetime(2026, 3, number, tzinfo=UTC)  # noqa: E731
    watched = pl.DataFrame(
        {"node": ["a", "a", "b"], "since": [day(1), day(5), day(12)], "until": [day(6), day(9), day(20)]}
    )
    rate = fk.fleet.mtbf(log, exposure=watched).row(0, named=True)
    assert (rate["failures"], rate["failures_unwatched"], rate["nodes"], rate["node_days"]) == (1.0, 2.0, 2.0, 16.0)
    by_age = fk.fleet.mtbf(log, "age", exposure=watched)
    assert by_age["node_days"].sum() == pytest.approx(16.0)


SACCT = "JobID|User|State|Start|End|AllocNodes|AllocTRES|NodeList\n"
JOB = "{job}|ann|{state}|2026-03-01T08:00:00|{end}|2|{tres}|n[1-2]\n".format
SMI = "timestamp, index, power.draw [W]\n"
SAMPLE = "2026/03/01 12:0{minute}:00.000, 3, {watts}\n".format
QUIET = "{at} {node} kernel: usb 1-1: new device\n".format
NOON = "2026-03-01T12:00:00+00:00"
RANGE = (
    '{"status":"success",%s"data":{"resultType":"matrix","result":[{"metric":{"__name__":"DCGM_FI_DEV_POWER_USAGE",'
    '"gpu":"0","Hostname":"n1"},"values":[[1772366400,"300.5"],[1772366430,"NaN"],[1772366460,"+Inf"]]}]}}'
)
GARBAGE = gzip.compress((SMI + SAMPLE(minute=0, watts="300.5 W")).encode()) + b"garbage"


def test_power_of_a_node_that_no_scheduler_names_is_no_exposure(tmp_path: Path) -> None:
    jobs, power = tmp_path / "sacct.txt", tmp_path / "smi.csv"
    jobs.write_text(SACCT + JOB(job=1, state="NODE_FAIL", end="2026-03-02T08:00:00", tres="gres/gpu=16"))
    power.write_text(SMI + "".join(SAMPLE(minute=minute, watts="300 W") for minute in range(3)))
    rates = [fk.fleet.mtbf(fk.read_log(files)).row(0, named=True) for files in ([str(jobs)], [str(jobs), str(power)])]
    assert [(rate["nodes"], rate["node_days"]) for rate in rates] == [(2.0, 2.0)] * 2


def test_nodes_without_accelerators_are_no_exposure_of_a_cluster_with_accelerators(tmp_path: Path) -> None:
    """n2 also runs a job without accelerators; c1 only such jobs, one of which its failure ends."""
    on_host = JOB(job=2, state="NODE_FAIL", end="2026-03-02T08:00:00", tres="cpu=64").replace("n[1-2]", "c1,n2")
    jobs = JOB(job=1, state="NODE_FAIL", end="2026-03-02T08:00:00", tres="gres/gpu=16") + on_host
    (tmp_path / "sacct.txt").write_text(SACCT + jobs)
    for node in ("c1", "n1"):
        (tmp_path / f"{node}.log").write_text(XID.format(at=NOON, node=node) + QUIET(at=NOON, node=node))
    log = fk.read_log(tmp_path)
    rate = fk.fleet.mtbf(log).row(0, named=True)
    assert (rate["nodes"], rate["node_days"], rate["failures"], rate["failures_unwatched"]) == (2.0, 2.0, 2.0, 0.0)
    hours = fk.fleet.goodput(log)["accelerator_hours"]
    assert hours.head(8).sum() == pytest.approx(16 * 24)


def test_events_of_nodes_are_exposure_without_jobs(read) -> None:
    rows = (
        "c|n1|2026-03-01T12:00:00|2026-03-01T15:00:00|DOWN|Not responding\nc|n2|2026-03-11T12:00:00|Unknown|DRAIN|gpu\n"
    )
    rate = fk.fleet.mtbf(read(f"Cluster|NodeName|TimeStart|TimeEnd|State|Reason\n{rows}")).row(0, named=True)
    assert (rate["failures"], rate["nodes"], rate["node_days"]) == (2.0, 2.0, 20.0)


def job(number: int, state: str = "COMPLETED", tres: str = "gres/gpu=16", end: str = "2026-03-01T20:00:00") -> str:
    return JOB(job=number, state=state, tres=tres, end=end)


def at(hour: int, month: int = 3) -> datetime:
    return datetime(2026, month, 1, hour, tzinfo=UTC)


def jobs_of(*tres: str) -> str:
    return SACCT + "".join(job(number, tres=each) for number, each in enumerate(tres))


READ_RIGHT: dict[str, tuple[str | bytes, str, list, dict[str, int]]] = {
    "CRLF and a byte order mark": ("\ufeff" + (SACCT + job(1)).replace("\n", "\r\n"), "accelerators", [16.0], {}),
    "a separator at the end of lines": (jobs_of("gres/gpu=16").replace("\n", "|\n"), "accelerators", [16.0], {}),
    "a header in the middle": (SACCT + job(1) + SACCT + job(2), "job", ["1", "2"], {"parse errors, skipped": 1}),
    "accelerators by type and in total": (jobs_of("gres/gpu:a=4,gres/gpu:b=4,gres/gpu=8"), "accelerators", [8.0], {}),
    "accelerators by type alone": (jobs_of("gres/gpu:tesla-v100=4,gres/gpu:b=2"), "accelerators", [6.0], {}),
    "accelerators with a prefix": (
        jobs_of("gres/gpu=2K", "gres/gpumem=80G,gres/gpu=8"),
        "accelerators",
        [None, 8.0],
        {},
    ),
    "a separator in a name": (
        "JobID|State|Start|End|JobName|AllocNodes\n7|FAILED|2026-03-01|2026-03-02|a|4|2\n8|FAILED|2026-03-01|2026-03-02|a|2\n",
        "nodes",
        [2.0],
        {"parse errors, skipped": 1},
    ),
    "a line cut by a kill, and the next one behind it": (
        SACCT + job(1, tres="gres/gpu=1")[:-8] + job(2) + job(3),
        "job",
        ["3"],
        {"parse errors, skipped": 1},
    ),
    "names in Latin-1": (
        (SACCT + job(1) + job(2).replace("ann", "jürgen")).encode("latin-1"),
        "job",
        ["1", "2"],
        {log_file.NOT_UTF8: 1},
    ),
    "a leap second": (
        SACCT + job(1, end="2016-12-31T23:59:60").replace("2026", "2016"),
        "ended",
        [datetime(2017, 1, 1, tzinfo=UTC)],
        {},
    ),
    "an export while the job ran, and a later one": (
        SACCT + job(1, "RUNNING", end="Unknown") + job(1),
        "state",
        ["completed"],
        {},
    ),
    "a job that was requeued": (
        SACCT + job(1, "NODE_FAIL", end="2026-03-01T10:00:00") + job(1).replace("01T08", "01T11"),
        "state",
        ["node failure", "completed"],
        {},
    ),
    "Slurm's own words for no value": (
        SACCT + job(1, "PENDING", end="None").replace("n[1-2]", "None assigned"),
        "node_list",
        [None],
        {},
    ),
    "other programs' lines among samples": (
        SMI
        + SAMPLE(minute=0, watts="300.5 W")
        + "Unable to determine the device handle: Unknown Error\n"
        + SAMPLE(minute=1, watts="[Unknown Error]")
        + SAMPLE(minute=2, watts="[N/A]"),
        "accelerator_power_w",
        [300.5],
        {
            "parse errors, skipped": 1,
            "rows without accelerator_power_w ([Unknown Error]), skipped": 1,
            "rows without accelerator_power_w ([N/A]), skipped": 1,
        },
    ),
    "two writers of one file": (
        SMI + SAMPLE(minute=0, watts="300")[:-2] + SAMPLE(minute=0, watts="310") + SAMPLE(minute=1, watts="305"),
        "accelerator_power_w",
        [305.0],
        {"parse errors, skipped": 1},
    ),
    "a gzip with other bytes behind it": (GARBAGE, "accelerator_power_w", [300.5], {log_file.TRUNCATED: 1}),
    "samples that are not finite": (
        RANGE % "",
        "accelerator_power_w",
        [300.5],
        {f"rows without accelerator_power_w ({value}), skipped": 1 for value in ("NaN", "+Inf")},
    ),
    "an answer with warnings": (
        RANGE % '"warnings":["partial"],',
        "accelerator_power_w",
        [300.5],
        {log_file.WARNINGS: 1, "rows without accelerator_power_w (NaN), skipped": 1},
    ),
    "a step cut by a kill": (
        MEGATRON.format(at=1, step=1, ms=4321.5)
        + MEGATRON.format(at=2, step=2, ms=43)[:-3]
        + "slurmstepd: error: *** JOB 7 CANCELLED\n",
        "step_s",
        [4.3215, None],
        {},
    ),
    "a step cut by a kill, and the next one behind it": (
        MEGATRON.format(at=1, step=1, ms=43)[:-3] + MEGATRON.format(at=2, step=2, ms=4321.5),
        "step_s",
        [4.3215],
        {},
    ),
    "padded days of journalctl": (XID.format(at="Mar 01 12:00:00", node="n1"), "at", [at(12)], {}),
    "an offset without a colon": (XID.format(at="2026-03-01T12:00:00+0100", node="n1"), "at", [at(11)], {}),
    "short-full in UTC": (XID.format(at="Sun 2026-03-01 12:00:00 UTC", node="n1"), "at", [at(12)], {}),
    "short-full in another zone": (
        XID.format(at="Sun 2026-03-01 12:00:00 CET", node="n1")
        + XID.format(at="Sun 2026-03-01 12:00:00 +03", node="n1")
        + XID.format(at="Sun 2026-03-01 12:00:00 MSK", node="n1")
        + XID.format(at="Sun 2026-03-01 12:00:00 UTC", node="n1"),
        "at",
        [at(12)],
        {"parse errors, skipped": 3},
    ),
    "short-unix": (XID.format(at="1772366400.000000", node="n1"), "at", [at(12)], {}),
    "dmesg in ISO": ("2026-03-01T12:00:00,000000+01:00 NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n", "at", [at(11)], {}),
    "an Xid of an old driver": (XID.format(at=NOON, node="n1").replace("PCI:", ""), "code", ["79"], {}),
    "German months": (
        "".join(XID.format(at=f"{month} 01 12:00:00", node="n1") for month in ("Mär", "Apr", "Mai")),
        "at",
        [at(12, month=4)],
        {"parse errors, skipped": 2},
    ),
    "a clock that was set back": (
        XID.format(at="2026-03-01T14:00:00+00:00", node="n1") + XID.format(at=NOON, node="n1"),
        "at",
        [at(12), at(14)],
        {"rows out of order, sorted": 1},
    ),
    "bytes of zero after a power failure": (
        "\0" * 4096 + XID.format(at=NOON, node="n1") + XID.format(at="2026-03-01T13:00:00+00:00", node="n1"),
        "at",
        [at(13)],
        {"parse errors, skipped": 1},
    ),
    "samples in milliseconds": (
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",Hostname="n1"} 300.5 1772366400000\n',
        "at",
        [at(12)],
        {},
    ),
    "days before months": (
        "at,node,kind\n01.03.2026 12:00,n1,failure\n03/01/2026 12:00:00,n1,failure\n2026-03-02,n1,failure\n",
        "at",
        [datetime(2026, 3, 2, tzinfo=UTC)],
        {"parse errors, skipped": 2},
    ),
}
REFUSED = {
    "a second header with other columns": (
        SMI
        + SAMPLE(minute=0, watts="300.5 W")
        + "timestamp, power.draw [W], index\n2026/03/01 12:01:00.000, 301.0, 3\n",
        "another header in line 3",
    ),
    "a second header of sacct": (SACCT + job(1) + SACCT.replace("Start|End", "End|Start") + job(2), "header in line 3"),
    "UTF-16": ((SACCT + job(1)).encode("utf-16"), "iconv"),
    "an answer that is cut": (RANGE[:-20] % "", "no result of a range query"),
    "two answers": ((RANGE + "\n" + RANGE) % ("", ""), "no result of a range query"),
    "short-full in another zone": (XID.format(at="Sun 2026-03-01 12:00:00 +03", node="n1"), "no rows"),
    "accelerators without names": (
        "timestamp, power.draw [W]\n2026/03/01 12:00:00.000, 300 W\n2026/03/01 12:00:00.000, 300 W\n",
        "several accelerators without names",
    ),
    "accelerators without names, each with a time of its own": (
        "timestamp, name, power.draw [W]\n"
        + "".join(f"2026/03/01 12:{n // 4:02}:00.{n % 4:03}, NVIDIA H100, 300.00 W\n" for n in range(40)),
        "several accelerators without names",
    ),
    "decimal commas": ("at;accelerator_power_w\n2026-03-01;300,5\n", "no rows"),
}


@pytest.mark.parametrize("fault", READ_RIGHT)
def test_a_fault_is_read_right_or_counted(tmp_path: Path, fault: str) -> None:
    text, column, expected, noted = READ_RIGHT[fault]
    (tmp_path / "n1.log").write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(tmp_path / "n1.log", (datetime(2026, 5, 2, tzinfo=UTC).timestamp(),) * 2)
    log = fk.read_log(tmp_path)
    (table,) = [rows for name in formats.TABLES if (rows := getattr(log, name)).height]
    assert table[column].to_list() == expected
    assert "node" not in table.columns or table["node"].drop_nulls().unique().to_list() in ([], ["n1"])
    found = counts(log)
    assert noted == {issue: found.get(issue) for issue in noted}
    assert found.get("parse errors, skipped", 0) == noted.get("parse errors, skipped", 0)


@pytest.mark.parametrize("fault", REFUSED)
def test_a_fault_is_refused_with_its_reason(tmp_path: Path, fault: str) -> None:
    text, message = REFUSED[fault]
    (tmp_path / "n1.log").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(fk.FactorykitError, match=message):
        fk.read_log(tmp_path)


NVML = ("N/A", "Not Supported", "Not Found", "Unknown Error", "GPU requires reset", "GPU is lost", "Timeout")
SMI_ROW = SAMPLE(minute=0, watts="300.5 W")
POWER = "timestamp,Hostname,gpu,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_GPU_UTIL\n2026-03-01 12:00:00,n1,0,300.5,98\n"
DCGM = POWER + "2026-03-01 12:00:30,n1,0,{},98\n"
NVML_RECORD = '{{"time": 17723664{:02}, "gpu_id": 3, "hostname": "n1", "power_draw": {}}}\n'
SCRAPED = 'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="n1"}} {} 17723664{:02}\n'
MISSING: dict[str, tuple[str, str]] = {
    **{f"nvidia-smi, {word}": (SMI + SMI_ROW + SAMPLE(minute=1, watts=f"[{word}]"), f"[{word}]") for word in NVML},
    "nvidia-smi, without units": (SMI + SMI_ROW + SAMPLE(minute=1, watts="N/A"), "N/A"),
    "DCGM, power of a MIG device": (DCGM.format("N/A"), "N/A"),
    "DCGM, blank": (DCGM.format("140737488355328.0"), "140737488355328.0"),
    "DCGM, not supported": (DCGM.format("140737488355330.0"), "140737488355330.0"),
    "NVML in JSON": (NVML_RECORD.format(0, 300.5) + NVML_RECORD.format(1, "null"), "null"),
    "Prometheus, NaN": (SCRAPED.format("300.5", 0) + SCRAPED.format("NaN", 1), "NaN"),
    "Prometheus, infinity": (SCRAPED.format("300.5", 0) + SCRAPED.format("-Inf", 1), "-Inf"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_power_is_counted_with_its_word_and_is_no_parse_error(read, case: str) -> None:
    """NVML's error strings in brackets, DCGM's blank values, null of JSON, and the special values of Prometheus."""
    text, word = MISSING[case]
    log = read(text)
    found = {issue: count for issue, count in counts(log).items() if issue.endswith("skipped")}
    assert found == {f"rows without accelerator_power_w ({word}), skipped": 1}
    assert log.skipped == 1
    assert log.power.height == text.count("300.5")


@pytest.mark.parametrize("word", ["[Not Supported]", "[GPU requires reset]", "[Insufficient Permissions]", "N/A"])
def test_a_sample_without_utilization_keeps_its_power(read, word: str) -> None:
    header = "timestamp, index, power.draw [W], utilization.gpu [%]\n"
    log = read(f"{header}2026/03/01 12:00:00.000, 0, 300.50 W, {word}\n")
    assert log.power.select("accelerator_power_w", "utilization").rows() == [(300.5, None)]
    assert log.skipped == 0


@pytest.mark.parametrize("blank", ["140737488355328", "9223372036854775792", "9223372036854775794"])
def test_a_blank_utilization_of_dcgm_is_missing(read, blank: str) -> None:
    log = read(POWER + f"2026-03-01 12:00:30,n1,0,310.5,{blank}\n")
    assert log.power["utilization"].to_list() == [0.98, None]
    assert log.skipped == 0


@pytest.mark.parametrize("moment", ["Unknown", "None"])
def test_slurm_prints_words_for_times_that_are_not_known(read, moment: str) -> None:
    log = read(SACCT + job(1, "RUNNING", end=moment))
    assert log.jobs["ended"].to_list() == [None]
    assert log.skipped == 0


def test_a_sample_of_no_xid_is_no_event(read) -> None:
    line = 'DCGM_FI_DEV_XID_ERRORS{{gpu="0",Hostname="n1"}} {} 17723664{:02}\n'
    log = read(line.format("79", 0) + line.format("NaN", 30))
    assert log.events["code"].to_list() == ["79"]
    assert counts(log)["rows without kind (NaN), skipped"] == 1


def test_a_row_with_an_invalid_cell_is_a_parse_error_whatever_else_is_missing(read) -> None:
    log = read(SMI + "2026/13/41 12:00:00.000, 3, [N/A]\n" + SAMPLE(minute=1, watts="300"))
    assert counts(log)["parse errors, skipped"] == log.skipped == 1


def test_a_node_with_several_names_is_one(tmp_path: Path) -> None:
    """Its name alone, with its domain, and with the port of its exporter; localhost has the name of its file."""
    later = "2026-03-11T12:00:00+00:00"
    names = {"a": "n1.example.org", "b": "n1", "n2": "n2", "n3": "localhost", "n4": "localhost"}
    for file, node in names.items():
        (tmp_path / f"{file}.log").write_text(XID.format(at=NOON, node=node) + QUIET(at=later, node=node))
    (tmp_path / "scrape").write_text('DCGM_FI_DEV_XID_ERRORS{gpu="0",instance="n2:9400"} 79 1772366400\n')
    log = fk.read_log(tmp_path)
    rate = fk.fleet.mtbf(log).row(0, named=True)
    assert (rate["nodes"], rate["failures"], rate["node_days"]) == (4.0, 4.0, pytest.approx(40.0))
    assert counts(log)["nodes named with and without domain or port, taken as one"] == 2


def test_a_rotated_file_counts_once(tmp_path: Path) -> None:
    text = XID.format(at=NOON, node="n1") + QUIET(at="2026-03-11T12:00:00+00:00", node="n1")
    (tmp_path / "journal.log.1").write_text(text)
    (tmp_path / "journal.log.2.gz").write_bytes(gzip.compress(text.encode()))
    rate = fk.fleet.mtbf(fk.read_log(tmp_path)).row(0, named=True)
    assert (rate["failures"], rate["node_days"]) == (1.0, pytest.approx(10.0))


@pytest.mark.parametrize(("name", "job"), [("slurm-12_3.out", "12_3"), ("slurm-12.out", "12"), ("job_12.log.gz", "12")])
def test_the_job_is_in_the_name_of_a_file(tmp_path: Path, name: str, job: str) -> None:
    assert log_file.Source(tmp_path / name, b"", False).stem == job


def test_files_of_one_name_belong_to_the_nodes_of_their_folders(tmp_path: Path) -> None:
    for node in ("n1", "n2"):
        (tmp_path / node).mkdir()
        (tmp_path / node / "power.csv").write_text(SMI + SAMPLE(minute=0, watts="600") + SAMPLE(minute=5, watts="600"))
    log = fk.read_log(tmp_path)
    assert log.power["node"].to_list() == ["n1", "n2"] * 2
    assert fk.fleet.energy(log)["accelerator_energy_kwh"].item() == pytest.approx(2 * 0.6 / 12)


@pytest.mark.parametrize("name", ["n1/2026-03-01.csv", "n1/power-20260301.csv", "n1-2026-03-01.csv", "n1_20260301.log"])
def test_a_day_in_the_name_of_a_file_is_not_of_its_node(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(SMI + SAMPLE(minute=0, watts="600"))
    assert fk.read_log(tmp_path).power["node"].item() == "n1"


def test_steps_without_times_are_counted(read) -> None:
    log = read(" iteration  10/ 500 | elapsed time per iteration (ms): 4321.5 |\n")
    assert counts(log)["steps without a time, which no ledger has"] == 1


def test_a_file_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/a\xff.log"
    Path(os.fsdecode(file)).write_text(MEGATRON.format(at=1, step=1, ms=4321.5))
    with pytest.raises(fk.FactorykitError, match=r"a\\udcff.log' is not UTF-8; rename the file"):
        fk.read_log(tmp_path)


def energy_kwh(log: fk.Log) -> float:
    return fk.fleet.energy(log)["accelerator_energy_kwh"].sum()


@pytest.mark.parametrize("form", ["json", "prom"])
def test_two_replicas_of_prometheus_count_once(tmp_path: Path, form: str) -> None:
    """Both scrape each half minute, the second one two seconds later; one of them is down for the last two hours."""
    start, samples = 1772366400, {"a": range(360), "b": range(600)}
    labels = {"gpu": "0", "Hostname": "n1", "__name__": "DCGM_FI_DEV_POWER_USAGE"}
    results = [
        {
            "metric": labels | {"prometheus_replica": name},
            "values": [[start + 30 * n + 2 * (name == "b"), "600"] for n in of],
        }
        for name, of in samples.items()
    ]
    texts = {"json": json.dumps({"data": {"resultType": "matrix", "result": results}})}
    line = 'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="n1",replica="{}"}} 600 {}\n'
    texts["prom"] = "".join(
        line.format(name, start + 30 * n + 2 * (name == "b")) for name in "ab" for n in samples[name]
    )
    (tmp_path / f"a.{form}").write_text(texts[form])
    log = fk.read_log(tmp_path)
    assert (log.power.height, counts(log)[log_file.REPLICAS]) == (600, 360)
    assert energy_kwh(log) == pytest.approx(0.6 * 599 * 30 / 3600, rel=1e-3)


@pytest.mark.parametrize("other", [("0", 3599, 2), ("1", 3600, 1)], ids=["two monitors", "two intervals"])
def test_each_accelerator_has_its_own_sampling_interval(tmp_path: Path, other: tuple[str, int, int]) -> None:
    """A second monitor samples the same accelerator in turn, or another one samples sixty times as often."""
    accelerator, samples, apart = other
    rows = [f"{1772366400 + 60 * n},n1,0,600" for n in range(600)]
    rows += [
        f"{1772366400 + n + apart},n1,{accelerator},600"
        for n in (range(0, 36000, 60) if apart == 2 else range(samples))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["at,node,accelerator,accelerator_power_w", *rows, ""]))
    hours = (599 * 60 + 2) / 3600 if apart == 2 else (599 * 60 + 3599) / 3600
    assert energy_kwh(fk.read_log(tmp_path)) == pytest.approx(0.6 * hours)


def test_a_utilization_is_a_share_or_has_its_unit(read) -> None:
    rows = [f"2026-03-0{day},600,{cell}\n" for day, cell in enumerate(("0.98", "98 %", "98", "N/A"), 1)]
    log = read("at,accelerator_power_w,utilization\n" + "".join(rows))
    assert log.power["utilization"].to_list() == [0.98, 0.98, None]
    assert counts(log)["parse errors, skipped"] == 1


def test_unknown_kinds_of_events_are_counted(read) -> None:
    log = read("at,node,kind\n" + "".join(f"2026-03-01,n1,{kind}\n" for kind in ("failure", "notice", "xid 79")))
    assert log.events["kind"].to_list() == ["failure", "notice", "unknown"]
    assert counts(log)["unknown kinds of events, kept as unknown"] == 1


def test_samples_at_one_time_cause_a_warning(tmp_path: Path) -> None:
    """Two nodes write to one file that does not name them."""
    samples = "".join(SAMPLE(minute=minute, watts=watts) for minute in range(3) for watts in ("600", "500"))
    (tmp_path / "n1.csv").write_text(SMI + samples)
    with pytest.warns(fk.FactorykitWarning, match="3 power samples are at the time of another one"):
        fk.fleet.energy(fk.read_log(tmp_path))


def test_an_accelerator_without_a_name_is_one_of_its_node(read) -> None:
    minutes = [*range(30), *range(90, 100)]
    rows = (f"2026/03/01 {12 + minute // 60}:{minute % 60:02}:00.000, 300 W\n" for minute in minutes)
    log = read("timestamp, power.draw [W]\n" + "".join(rows))
    assert (log.power.height, counts(log)[log_file.UNNAMED]) == (40, 40)


def test_a_job_has_the_power_from_its_start_to_its_end(tmp_path: Path) -> None:
    """The accelerator is sampled each minute of three hours; the job has the second one."""
    jobs = "job,state,started,ended,nodes,accelerators,node_list\n7,completed,1772370000,1772373600,1,1,n1\n"
    rows = "".join(f"{1772366400 + 60 * minute},n1,0,600\n" for minute in range(181))
    (tmp_path / "jobs.csv").write_text(jobs)
    (tmp_path / "power.csv").write_text("at,node,accelerator,accelerator_power_w\n" + rows)
    by_job = fk.fleet.energy(fk.read_log(tmp_path)).select("job", "accelerator_hours", "coverage")
    assert by_job.rows() == [(None, pytest.approx(2.0), None), ("7", pytest.approx(1.0), pytest.approx(1.0))]
