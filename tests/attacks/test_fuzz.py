"""Whatever is given, a call answers or refuses in words: no stranger's exception, nothing long, nothing unprintable."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
import slices
from calls import calls
from slices import failed, failed_in_slices

import factorykit as fk

QUICK, LONG = 10_000, 40_000
"""Calls of a run: thirty-five of each, and a hundred and forty for each of three seeds."""


@pytest.mark.filterwarnings("ignore::factorykit.FactorykitWarning")
def test_every_call_that_is_attacked_works_when_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    absent = {"connect", "stepfun", "lanl", "titan", "read_hf_config", "Calibration.load", "changes", "refresh"}
    absent |= {"read_log", "archive", "datasets.build"}
    for name, (function, makers) in calls().items():
        if name in absent:
            with pytest.raises(fk.FactorykitError, match="nowhere"):
                function(**{key: make() for key, make in makers.items()})
        elif name.startswith("factorykit.charts."):  # their columns differ from chart to chart
            with contextlib.suppress(fk.FactorykitError):
                function(**{key: make() for key, make in makers.items()})
        else:
            function(**{key: make() for key, make in makers.items()})


def test_every_chart_checks_what_it_is_asked_for() -> None:
    charts = [function for name, (function, _) in calls().items() if name.startswith("factorykit.charts.")]
    assert len(charts) > 40
    assert [chart.__name__ for chart in charts if not hasattr(chart, "__wrapped__")] == []


def test_damaged_arguments_are_answered_or_refused_in_words(tmp_path: Path) -> None:
    assert [*failed(16, range(QUICK), tmp_path)] == []


def test_a_process_that_hangs_or_takes_too_much_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = tmp_path / "at"
    at.write_bytes(b"7")
    monkeypatch.setattr(slices, "HANGS_S", 0.2)
    for most, said in ((2**40, "hangs"), (0, "takes more than")):
        monkeypatch.setattr(slices, "MOST_BYTES", most)
        with subprocess.Popen(["sleep", "60"]) as process:
            assert slices.watched(process.pid, at).startswith(said)
            process.kill()
    with subprocess.Popen(["true"]) as process:
        assert slices.watched(process.pid, at) == ""


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_damaged_arguments_are_answered_or_refused_in_words(seed: int, tmp_path: Path) -> None:
    assert [*failed_in_slices(seed, LONG, tmp_path)] == []
