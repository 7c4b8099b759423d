"""Ray as a backend: tasks follow the cluster, a failing part is named, nodes without the folder are refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import FactorykitError
from factorykit.model.uncertainty.study import backends, parts
from factorykit.telemetry import log_study

RUN = {"training_flop": 1e25, "cluster_peak_flop_per_s": 1e18}
GRID = {"mfu": [i / 1000 for i in range(100, 900)]}


class FakeRay:
    """The calls of Ray that the backend makes, in this process: a task runs when it is awaited."""

    def __init__(self, cpus: list[int], blind: str = "") -> None:
        self.cpus, self.blind, self.pending, self.most, self.cancelled = cpus, blind, {}, [], []
        self.exceptions = SimpleNamespace(RayError=RuntimeError)
        affinity = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: node)
        self.util = SimpleNamespace(scheduling_strategies=affinity)

    def is_initialized(self) -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": name, "NodeManagerHostname": f"host-{name}", "Alive": name != "c"} for name in "abc"]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.cpus.pop(0) if len(self.cpus) > 1 else self.cpus[0])}

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **options: Any) -> Any:
        def task(call: Any, node: str = "") -> Any:
            def submit(*given: Any) -> object:
                ref = object()
                self.pending[ref] = (lambda *_: False) if node == self.blind != "" else call, given
                return ref

            return SimpleNamespace(remote=submit, options=lambda scheduling_strategy: task(call, scheduling_strategy))

        return task

    def wait(self, refs: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        self.most.append(len(refs))
        return refs[:num_returns], refs[num_returns:]

    def get(self, refs: Any) -> Any:
        if isinstance(refs, list):
            return [self.get(ref) for ref in refs]
        call, given = self.pending.pop(refs)
        return call(*given)

    def cancel(self, ref: Any, *, force: bool) -> None:
        self.cancelled.append(ref)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts, "CELLS_A_PART", 8)

    def start(cpus: list[int], blind: str = "") -> FakeRay:
        fake = FakeRay(cpus, blind)
        monkeypatch.setitem(sys.modules, "ray", fake)
        return fake

    return start


def swept(out: Path, engine: str = "ray"):
    return fk.sweep(RUN, pl.DataFrame(GRID), "training_days", out=out, engine=engine)


def test_tasks_follow_the_cpus_of_the_moment(tmp_path: Path, ray) -> None:
    fake = ray([1, 1, 1, 8])
    assert swept(tmp_path / "ray").collect().equals(swept(tmp_path / "local", "local").collect())
    assert fake.most[:3] == [2, 2, 2]
    assert max(fake.most) == 16
    assert len(fake.most) < fk.study(tmp_path / "ray").parts
    assert not fake.cancelled


def test_a_failing_part_ends_the_call_and_is_named(tmp_path: Path, ray, monkeypatch: pytest.MonkeyPatch) -> None:
    make = backends._of_pickled

    def failing(write: Any, pickled: bytes, numbers: list[int]) -> str:
        return make(lambda design, number: write(design, number) if number != 37 else 1 / 0, pickled, numbers)

    fake = ray([4])
    with monkeypatch.context() as patch:
        patch.setattr(backends, "_of_pickled", failing)
        with pytest.raises(FactorykitError, match="part 37: ZeroDivisionError: division by zero; repeat the call"):
            swept(tmp_path)
    assert fake.cancelled
    assert 0 < len(fk.study(tmp_path).done) < fk.study(tmp_path).parts
    assert swept(tmp_path).collect().height == 800


def test_the_tasks_of_a_dead_worker_are_named(tmp_path: Path, ray, monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(*_: Any) -> str:
        raise RuntimeError("task failed\nthe node died")

    ray([1])
    monkeypatch.setattr(backends, "_of_pickled", dead)
    with pytest.raises(FactorykitError, match=r"part 0 to \d+: the node died; repeat the call"):
        swept(tmp_path)


def test_a_node_without_the_folder_is_named_at_the_start(tmp_path: Path, ray) -> None:
    fake = ray([1], blind="b")
    with pytest.raises(
        FactorykitError, match=f"host-b: no access to {tmp_path}; give a folder on storage that all nodes"
    ):
        swept(tmp_path)
    assert not fake.most
    assert not fk.study(tmp_path).done


def test_workers_write_a_study_into_a_bucket(bucket: str, ray) -> None:
    fake = ray([4], blind="b")
    rows = pl.DataFrame(GRID).head(40)
    assert fk.sweep(RUN, rows, "training_days", out=f"{bucket}/study", engine="ray").collect().height == 40
    assert fake.most
    assert len(fk.study(f"{bucket}/study").done) == fk.study(f"{bucket}/study").parts


def test_a_log_has_a_line_of_progress_a_minute(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    from factorykit.engine import progress

    times = iter(range(0, 10_000, 30))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(times)))
    assert list(progress.progress("abcdefg", 7, "parts", rows=60)) == list("abcdefg")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "2 of 7 parts, 1 rows/s, 225 s left"
    assert len(lines) == 2


def test_logs_are_read_by_the_workers_in_batches_for_all_of_their_cpus(tmp_path: Path, ray, monkeypatch) -> None:
    monkeypatch.setattr(log_study, "MIN_BATCH_FILES", 2)
    (tmp_path / "logs").mkdir()
    for number in range(40):
        lines = f"2026-03-01T0{number % 9}:00:00+00:00 n{number} kernel: usb 1-1: new device\n" * 3
        (tmp_path / "logs" / f"n{number}.log").write_text(lines)
    fake = ray([4])
    studies = [fk.read_log(tmp_path / "logs", out=tmp_path / name, engine=name) for name in ("ray", "local")]
    assert max(fake.most) == 8
    assert len(list((tmp_path / "ray" / "files").iterdir())) == 20
    assert studies[0].files.drop("made").equals(studies[1].files.drop("made"))
    with pytest.raises(FactorykitError, match=r"engine = 'ray' needs out="):
        fk.read_log(tmp_path / "logs", engine="ray")  # type: ignore[call-overload]
    ray([4], blind="b")
    with pytest.raises(FactorykitError, match="host-b: no access to"):
        fk.read_log(tmp_path / "logs", out=tmp_path / "blind", engine="ray")
