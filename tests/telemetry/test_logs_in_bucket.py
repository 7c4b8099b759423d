"""Logs in an object store: read from it, and written to it as a study."""

from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import factorykit as fk
from factorykit.core.storage import storage_path
from factorykit.telemetry import log_study
from factorykit.telemetry.formats import TABLES

XID = (
    "2026-03-0{day}T06:00:00+00:00 {node} kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
)
POWER = "timestamp, index, power.draw [W]\n2026/03/01 00:00:00.000, 0, 600.5 W\n2026/03/01 00:00:10.000, 0, 610.5 W\n"
SACCT = "JobID|State|Start|End|AllocTRES|NodeList\n7|FAILED|2026-03-01|2026-03-02|gres/gpu=16|n[0-1]\n"
LOGS = {
    "n1/journal.log": (XID.format(day=1, node="n1") + XID.format(day=2, node="n1")).encode(),
    "rack 2/journal.log": XID.format(day=2, node="n2/a%b").encode(),
    "n1/n1.csv": POWER.encode(),
    "sacct.txt.gz": gzip.compress(SACCT.encode()),
    "empty.log": b"",
}


@pytest.fixture
def logs(bucket: str, tmp_path: Path) -> Path:
    """The same logs in a folder and in the bucket."""
    for name, content in LOGS.items():
        file = tmp_path / "logs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        put(f"{bucket}/logs/{name}", content)
    return tmp_path / "logs"


def put(url: str, content: bytes) -> None:
    storage_path("object", url).write_bytes(content)


def assert_same(found: fk.Log, expected: fk.Log) -> None:
    for table in TABLES:
        assert_frame_equal(getattr(found, table), getattr(expected, table), check_row_order=False)
    assert dict(found.counts.iter_rows()) == dict(expected.counts.iter_rows())


def test_logs_in_a_bucket_are_read_as_those_in_a_folder(bucket: str, logs: Path) -> None:
    assert_same(fk.read_log(f"{bucket}/logs"), fk.read_log(logs))
    assert fk.read_log([f"{bucket}/logs/n1/journal.log"]).events.height == 2
    with pytest.raises(fk.FactorykitError, match="does not exist"):
        fk.read_log(f"{bucket}/logs/none.log")
    with pytest.raises(fk.FactorykitError, match="cannot be read as text"):
        fk.read_log(f"{bucket}/logs/empty.log")


@pytest.mark.parametrize("batch", [2, 300])
def test_a_study_of_logs_lies_in_the_bucket(bucket: str, logs: Path, batch: int, monkeypatch) -> None:
    monkeypatch.setattr(log_study, "BATCH_FILES", batch)
    study = fk.read_log(f"{bucket}/logs", out=f"{bucket}/study")
    assert_same(study.log(), fk.read_log(logs))
    assert study.log((date(2026, 3, 2), date(2026, 3, 2))).events["node"].sort().to_list() == ["n1", "n2/a%b"]
    hours = study.sql("select sum(accelerators * epoch(ended - started)) / 3600 as hours from jobs")
    assert hours["hours"].to_list() == [16 * 24.0]


def test_only_changed_objects_are_read_again(bucket: str, logs: Path) -> None:
    fk.read_log(f"{bucket}/logs", out=f"{bucket}/study")
    changed = LOGS["n1/n1.csv"] + POWER.splitlines(keepends=True)[-1].replace("10.000", "20.000").encode()
    put(f"{bucket}/logs/n1/n1.csv", changed)
    (logs / "n1" / "n1.csv").write_bytes(changed)
    study = fk.read_log(f"{bucket}/logs", out=f"{bucket}/study")
    assert study.files.filter(pl.col("file").str.ends_with("n1.csv"))["start"].to_list()[1:] == [len(LOGS["n1/n1.csv"])]
    assert_same(study.log(), fk.read_log(logs))
