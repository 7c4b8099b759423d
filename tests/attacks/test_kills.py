"""A process killed while writing leaves the complete old or new state, and the next one removes its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from factorykit.core import atomic_io
from factorykit.core.errors import FactorykitWarning

HERE = Path(__file__).parent


def killed(writer: str, folder: Path, kills: int = 0) -> dict[str, Any]:
    return run_script("killed.py", writer, str(folder / "place"), str(kills))


def killed_builds(kind: str, folder: Path, kills: int) -> dict[str, Any]:
    return run_script("builds.py", kind, str(folder), str(kills))


def run_script(script: str, *words: str) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(HERE.parents[1])}
    command = [sys.executable, "-W", "ignore", str(HERE / script), *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr[-1000:]
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("writer", "fewest"), [("swap", 9), ("file", 2), pytest.param("publish", 5, marks=pytest.mark.long)]
)
def test_a_kill_before_any_step_leaves_one_whole_state(writer: str, fewest: int, tmp_path: Path) -> None:
    found = killed(writer, tmp_path)
    assert found["wrong"] == []
    assert found["killed"] == found["tried"] == found["steps"] >= fewest


@pytest.mark.long
@pytest.mark.parametrize("writer", ["swap", "file", "publish"])
def test_a_hundred_kills_leave_one_whole_state(writer: str, tmp_path: Path) -> None:
    found = killed(writer, tmp_path, 100)
    assert (found["wrong"], found["tried"]) == ([], 100)


def test_the_second_process_waits_and_names_the_first(tmp_path: Path) -> None:
    order: list[str] = []

    def first() -> None:
        with atomic_io.locked(tmp_path):
            begun.set()
            time.sleep(0.3)
            order.append("first")

    begun, thread = threading.Event(), threading.Thread(target=first)
    thread.start()
    begun.wait()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with atomic_io.locked(tmp_path):
            order.append("second")
    thread.join()
    assert order == ["first", "second"]
    message = next(str(each.message) for each in caught if each.category is FactorykitWarning)
    assert message.startswith(f"{tmp_path} is in use by")


def test_work_folders_of_dead_processes_are_removed_and_those_of_living_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_io, "MIN_STALE_AGE_S", -1.0)
    (tmp_path / "work-dead").mkdir()
    (tmp_path / "work-dead" / "file").write_text("half")
    (tmp_path / "other").mkdir()
    with atomic_io.temporary_folder(tmp_path, "work-") as mine:
        atomic_io.remove_stale(tmp_path, "work-")
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["other", mine.name])
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_file_that_cannot_be_finished_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")

    def begin() -> None:
        with atomic_io.replacing(tmp_path / "a") as aside:
            aside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "before")]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "kills"), [("site", 100), ("notebooks", 100), ("data", 100), ("whole", 5)])
def test_kills_of_a_build_leave_one_whole_state_and_nothing_else(kind: str, kills: int, tmp_path: Path) -> None:
    found = killed_builds(kind, tmp_path / "place", kills)
    assert (found["wrong"], found["tried"]) == ([], kills)
    assert found["killed"] > 0.8 * kills


@pytest.mark.long
@pytest.mark.parametrize("kind", ["site", "notebooks", "data"])
def test_of_two_builds_at_once_one_waits_and_names_the_other(kind: str, tmp_path: Path) -> None:
    found = run_script("builds.py", "both", kind, str(tmp_path / "place"), "5")
    assert (found["wrong"], found["tried"]) == ([], 5)
    assert found["waited"] > 0


@pytest.mark.long
def test_a_site_built_beside_its_tables_is_made_of_the_old_or_the_new_ones(tmp_path: Path) -> None:
    found = run_script("builds.py", "both", "tables", str(tmp_path / "place"), "5")
    assert (found["wrong"], found["tried"]) == ([], 5)


def test_two_writers_of_a_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    with atomic_io.replacing(tmp_path / "a") as first, atomic_io.replacing(tmp_path / "a") as second:
        first.write_text("first")
        second.write_text("second")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "first")]
