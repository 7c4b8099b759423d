"""Benchmark targets are compared with measurements, and a missed target fails the command."""

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
def test_a_target_is_compared_with_the_measurement(row: Row, verdict: str):
    assert row.verdict == verdict


@pytest.mark.parametrize(("seconds", "missed"), [(1.0, False), (3.0, True)])
def test_the_command_reports_a_missed_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: float, missed: bool
):
    def rows() -> Iterator[Row]:
        yield Row("made up", "alternative", seconds, 2.0, at_most_ratio=1.0)

    def absent() -> Iterator[Row]:
        raise Missing("no alternative on this machine")

    for name, made in (("made", rows), ("absent", absent)):
        module = ModuleType(name)
        module.__dict__["rows"] = made
        monkeypatch.setitem(sys.modules, f"benchmarks.{name}", module)
    main(["absent", "made"])
    printed = capsys.readouterr().out
    assert "absent: skipped; no alternative on this machine" in printed
    assert ("missed  ratio <= 1" in printed) == missed
