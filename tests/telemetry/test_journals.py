"""Journals are read together, with the same rows and notes as when each is read alone; all others are left out."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import factorykit as fk
from factorykit.telemetry import journals, log_file, log_study
from factorykit.telemetry.formats import TABLES

KERNEL = "kernel: usb 1-1: new high-speed USB device"
TEXTS = ("sshd[2211]: Accepted publickey for ann", KERNEL, "kubelet[18]: I0301 12:00:01 reconciler.go:42] attached", "")
EVENT = "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
ISO, SYSLOG, DMESG = "%Y-%m-%dT%H:%M:%S+00:00", "%b %e %H:%M:%S", "[%a %b %e %H:%M:%S %Y]"
NEW_YEAR = datetime(2025, 12, 31, 20, tzinfo=UTC)


def journal(form: str, texts: list[str], every_s: float = 3000.0, nodes: int = 2) -> str:
    stamps = [(NEW_YEAR + timedelta(seconds=every_s * i)).strftime(form) for i in range(len(texts))]
    names = [f"n{i % nodes} " if "%a" not in form else "" for i in range(len(texts))]
    return "".join(f"{at} {node}{text}\n" for at, node, text in zip(stamps, names, texts, strict=True))


EMPTY = pl.DataFrame(schema=dict(TABLES["events"]))
QUIET = [KERNEL, *TEXTS * 4]
JOURNALS = {"iso": journal(ISO, QUIET), "syslog": journal(SYSLOG, QUIET), "old": journal(SYSLOG, QUIET, nodes=1)}
JOURNALS |= {"event": journal(ISO, [*QUIET, EVENT]), "events": journal(SYSLOG, [*QUIET, EVENT, *QUIET, EVENT])}
RECORDS = [
    f'{{"__REALTIME_TIMESTAMP": "17{i:014}", "_HOSTNAME": "n1", "SYSLOG_IDENTIFIER": "kernel", "MESSAGE": "{text}"}}'
    for i, text in enumerate([KERNEL, EVENT.removeprefix("kernel: "), *TEXTS])
]
JOURNALS["json"] = "\n".join([*RECORDS, "", ""])
OTHERS = {
    "cut": "\n".join([RECORDS[1][:-9], *RECORDS, RECORDS[1][:-9]]),
    "error": journal(ISO, [*QUIET, EVENT]) + EVENT + "\n",
    "unfinished": JOURNALS["iso"] + "2026-01-01T00:00:00+00:00 n1 half",
    "training": journal(ISO, [*QUIET, "iteration 5/ 9 | elapsed time per iteration (ms): 500.0 |"]),
    "records": journal(ISO, QUIET) + '{"_step": 1, "_timestamp": 1772366400.0, "step_time": 4.25}\n',
    "clock": f"1970-01-01T00:00:01+00:00 n1 {KERNEL}\n" + JOURNALS["iso"],
    "years": journal(ISO, QUIET, every_s=86400.0 * 40),
    "user": journal(ISO, list(TEXTS[:1] * 9)),
    "table": f"timestamp, index, power.draw [W]\n2026-01-01 00:00:00 n1 {KERNEL}\n",
    "empty": "",
}


def read(folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch, *, together: bool) -> fk.fleet.LogStudy:
    with monkeypatch.context() as patch:
        if not together:
            patch.setattr(journals, "read_together", lambda files, zone: {})
        return fk.read_log(folder, out=out, zone="Europe/Berlin")


def test_journals_are_noted_as_when_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, sizes = tmp_path / "logs", {}
    folder.mkdir()
    for name, text in (JOURNALS | OTHERS).items():
        (folder / f"{name}.log").write_text(text)
        sizes[str(folder / f"{name}.log")] = len(text)
    os.utime(folder / "old.log", (1.4e9, 1.4e9))
    assert {Path(name).stem for name in journals.read_together(sizes, "UTC")} == {*JOURNALS}
    studies = [read(folder, tmp_path / f"{together}", monkeypatch, together=together) for together in (True, False)]
    assert_frame_equal(*(study.files.drop("made").sort("file") for study in studies))
    for table in ("events", "steps", "watched"):
        assert_frame_equal(*(getattr(study.log(), table) for study in studies), check_row_order=False)


def test_a_file_that_grows_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(JOURNALS["iso"])
    assert not journals.read_together({str(tmp_path / "a.log"): len(JOURNALS["iso"]) - 1}, "UTC")


@given(
    st.lists(st.sampled_from([*TEXTS, EVENT, "{", '"resultType"', "NodeName=n1", "a\r", "\x1f"]), max_size=12),
    st.sampled_from([ISO, SYSLOG, DMESG, "%Y-%m-%d %H:%M:%S"]),
    st.floats(0.0, 4e6),
)
def test_any_journal_is_noted_as_when_read_alone(tmp_path_factory, texts: list[str], form: str, every_s: float) -> None:
    file = tmp_path_factory.mktemp("logs") / "node7.log"
    text = journal(form, [KERNEL, *texts], every_s)
    file.write_text(text, newline="")
    task = {"file": str(file), "start": 0, "size": len(text), "modified": 1, "key": "a", "formats": []}
    for found in journals.read_together({str(file): len(text)}, "UTC").values():
        (alone,) = log_study._read_file(task, [], "UTC", file.parent, None)
        assert {name: alone[name] for name in ("notes", "watched", "formats")} == log_study._noted(found) | {
            "formats": [journals.JOURNAL]
        }
        whole = log_file.Reading("UTC")
        log_file.read_file(file, None, whole)
        assert_frame_equal(*(pl.concat([EMPTY, *reading.rows["events"]]) for reading in (found, whole)))
