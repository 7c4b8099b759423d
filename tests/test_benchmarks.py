"""The table of speeds: targets are held against what was measured, and a missed one fails the command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from benchmarks import Missing, Row
from benchmarks.__main__ import main


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row("w", "r", 1.0, 2.0, at_most_ratio=0.5), "holds"),
        (Row("w", "r", 1.1, 2.0, at_most_ratio=0.5), "missed"),
        (Row("w", "r", 1.1, 2.0, at_most_ratio=0.6, at_most_s=1.0), "missed"),
        (Row("w", "r", 1.0, None, at_most_ratio=0.5), ""),
        (Row("w", "r", 1.0, None, at_most_ratio=0.5, at_most_s=1.0), "holds"),
        (Row("w", "r", 1.0, 2.0), ""),
    ],
)
def test_a_target_is_held_against_what_was_measured(row: Row, verdict: str):
    assert row.verdict == verdict


@pytest.mark.parametrize(("seconds", "status"), [(1.0, 0), (3.0, 1)])
def test_the_command_fails_where_a_target_is_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: float, status: int
):
    def rows() -> Iterator[Row]:
        yield Row("made up", "rival", seconds, 2.0, at_most_ratio=1.0)

    def absent() -> Iterator[Row]:
        raise Missing("no rival on this machine")

    for name, made in (("made", rows), ("absent", absent)):
        module = ModuleType(name)
        module.__dict__["rows"] = made
        monkeypatch.setitem(sys.modules, f"benchmarks.{name}", module)
    assert main(["absent", "made"]) == status
    said = capsys.readouterr().out
    assert "absent: skipped; no rival on this machine" in said
    assert ("missed  ratio <= 1" in said) == bool(status)
