"""Binary, nested and compressed logs: TensorBoard event files, Kubernetes pods, truncated files."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.telemetry.tensorboard import masked_crc

TRUNCATED = "truncated files, read up to the cut"
PARSE_ERRORS = "parse errors, skipped"


def counted(log: fk.Log) -> dict[str, int]:
    return dict(log.counts.iter_rows())


def number(value: int) -> bytes:
    encoded = b""
    while value > 127:
        encoded += bytes([value & 127 | 128])
        value >>= 7
    return encoded + bytes([value])


def field(of: int, kind: int, value: bytes) -> bytes:
    return number(of << 3 | kind) + (number(len(value)) if kind == 2 else b"") + value


def record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + struct.pack("<I", masked_crc(length)) + message + struct.pack("<I", masked_crc(message))


def event(at: float, step: int, tag: str, value: float, *, as_tensor: bool = False) -> bytes:
    """An event as PyTorch writes it, or as TensorFlow 2 does, whose scalars are tensors."""
    plain = field(2, 5, struct.pack("<f", value))
    tensor = field(8, 2, field(1, 0, number(1)) + field(2, 2, b"") + field(4, 2, struct.pack("<f", value)))
    summary = field(1, 2, field(1, 2, tag.encode()) + (tensor if as_tensor else plain))
    return record(field(1, 1, struct.pack("<d", at)) + field(2, 0, number(step)) + field(5, 2, summary))


FIRST = record(field(1, 1, struct.pack("<d", 1772366400.0)) + field(3, 2, b"brain.Event:2"))
WRITTEN = [
    event(1772366400.0 + step, step, tag, value, as_tensor=tag == "lm loss")
    for step in range(300)
    for tag, value in (("iteration-time", 1.5), ("lm loss", 2.5))
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run-7"
    folder.mkdir()
    return folder / "events.out.tfevents.1772366400.n1.1.0"


def test_event_files_are_read_as_the_job_of_their_folder(run: Path) -> None:
    run.write_bytes(FIRST + b"".join(WRITTEN))
    steps = fk.read_log(run).steps
    assert steps.select("job", "step", "step_s").row(299) == ("run-7", 299.0, 1.5)
    assert steps["at"][0] == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_corrupt_records_are_counted_and_a_truncated_one_ends_the_file(run: Path) -> None:
    spoilt = WRITTEN[4][:20] + bytes([WRITTEN[4][20] ^ 1]) + WRITTEN[4][21:]
    run.write_bytes(FIRST + b"".join([*WRITTEN[:4], spoilt, *WRITTEN[5:]])[:-5])
    log = fk.read_log(run)
    assert (counted(log)[PARSE_ERRORS], counted(log)[TRUNCATED], log.steps.height) == (1, 1, 300)
    assert log.steps["step_s"].null_count() == 1


LINES = [f"2026-03-01T{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}Z,n{i % 7},failure" for i in range(60_000)]


@pytest.mark.parametrize(("pack", "least"), [(gzip.compress, 59_000), (lzma.compress, 55_000), (bz2.compress, 25_000)])
@pytest.mark.parametrize("members", [1, 3])
def test_a_truncated_file_is_read_up_to_the_cut_over_all_members(
    members: int, pack: Callable[[bytes], bytes], least: int, tmp_path: Path
) -> None:
    text = "\n".join(["at,node,kind", *LINES, ""]).encode()
    part = -(-len(text) // members)
    packed = b"".join(pack(text[at : at + part]) for at in range(0, len(text), part))
    (tmp_path / "a.csv.gz").write_bytes(packed)
    assert fk.read_log(tmp_path / "a.csv.gz").events.height == 60_000
    (tmp_path / "a.csv.gz").write_bytes(packed[:-200])
    log = fk.read_log(tmp_path / "a.csv.gz")
    assert least < log.events.height < 60_000
    assert log.events["node"].to_list() == [f"n{i % 7}" for i in range(log.events.height)]
    assert counted(log)[TRUNCATED] == 1


@pytest.mark.parametrize("kept", [0.3, 0.999])
def test_truncated_zstandard_is_refused_with_the_remedy(kept: float, tmp_path: Path) -> None:
    file = tmp_path / "a.csv.zst"
    frame = pl.DataFrame({"line": ["at,node,kind", *LINES]}).lazy()
    frame.sink_csv(file, include_header=False, quote_style="never", compression="zstd")
    assert fk.read_log(file).events.height == 60_000
    packed = file.read_bytes()
    file.write_bytes(packed[: int(len(packed) * kept)])
    with pytest.raises(fk.FactorykitError, match=r"cannot be unpacked; give the whole file, or what .* zstd -dc"):
        fk.read_log(file)


def at(minute: int) -> str:
    return (datetime(2026, 3, 1, 12) + timedelta(minutes=minute)).isoformat() + "Z"


def ended(start: int, end: int, code: int, reason: str = "Error") -> dict[str, Any]:
    value = {"startedAt": at(start), "finishedAt": at(end), "exitCode": code, "reason": reason}
    return {"terminated": value}


def pod(
    index: int, node: str, state: dict[str, Any], before: dict[str, Any] | None = None, **status: Any
) -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-name": "train", "batch.kubernetes.io/job-completion-index": str(index)}
    container = {"state": state, "lastState": before or {}, "restartCount": status.pop("restarts", 0), "name": "train"}
    sidecar = {"name": "proxy", "state": ended(0, 99, 0, "Completed"), "restartCount": 9}
    limits = {"name": "train", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": f"train-{index}", "namespace": "ann", "creationTimestamp": at(-1), "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "proxy"}, limits]},
        "status": {"containerStatuses": [sidecar, container], **status},
    }


def read(items: list[Any], tmp_path: Path) -> fk.Log:
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": items}, indent=1))
    return fk.read_log(tmp_path / "pods.json")


def test_pods_with_one_index_are_successive_attempts_of_their_job(tmp_path: Path) -> None:
    running = {"running": {"startedAt": at(70)}}
    log = read(
        [
            pod(0, "n1", running, ended(0, 60, 1), restarts=3),
            pod(1, "n2", running, ended(1, 60, 137, "OOMKilled"), restarts=1),
            {"kind": "Job", "metadata": {"name": "train"}, "status": {"failed": 4, "startTime": at(0)}},
        ],
        tmp_path,
    )
    assert log.jobs.select("job", "user", "state", "nodes", "accelerators", "node_list").rows() == [
        ("train", "ann", "out of memory", 2.0, 16.0, "n1,n2"),
        ("train", "ann", "running", 2.0, 16.0, "n1,n2"),
    ]
    assert log.jobs["ended"].to_list() == [datetime(2026, 3, 1, 13, tzinfo=UTC), None]
    assert counted(log)["attempts without details, skipped"] == 2


def test_a_pod_lost_with_its_node_is_a_node_failure(tmp_path: Path) -> None:
    gone = pod(0, "n1", ended(0, 30, 137), phase="Failed", reason="NodeLost")
    again = pod(0, "n2", ended(31, 90, 0, "Completed"), phase="Succeeded")
    moved = pod(
        1,
        "n3",
        ended(0, 30, 143),
        conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
    )
    log = read([gone, again, moved], tmp_path)
    assert log.jobs.select("state", "node_list").rows() == [("node failure", "n1,n3"), ("completed", "n2")]


def test_a_job_without_its_pods_is_one_attempt(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}
    over = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "lastTransitionTime": at(90)}
    done = {
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "ann", "creationTimestamp": at(-5)},
        "spec": {"parallelism": 4, "template": template},
        "status": {"startTime": at(0), "failed": 3, "conditions": [over]},
    }
    log = read([done], tmp_path)
    assert log.jobs.select("job", "state", "accelerators").rows() == [("train", "timeout", 32.0)]
    assert log.jobs["ended"].item() == datetime(2026, 3, 1, 13, 30, tzinfo=UTC)
    assert counted(log)["attempts without details, skipped"] == 2
