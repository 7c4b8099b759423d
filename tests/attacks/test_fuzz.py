"""Whatever is given, a call answers or refuses in words: no stranger's exception, nothing long, nothing unprintable."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import attacks, calls

import factorykit as fk

QUICK = 20_000
LONG = 40_000


@contextlib.contextmanager
def _kept_within(folder: Path) -> Iterator[None]:
    """Work in a folder so deep that no "../../.." leads out of it; nothing is written beside temporary files.

    Calls get "/" and "../../etc/passwd" as places to write to, and whoever runs the tests may be allowed to.
    """
    here, deep = Path.cwd(), folder.joinpath(*"a" * 40)
    deep.mkdir(parents=True, exist_ok=True)
    os.chdir(deep)
    OWN.append(str(Path(tempfile.gettempdir()).resolve()))
    if len(OWN) == 1:
        sys.addaudithook(_refuse)
    try:
        yield
    finally:
        os.chdir(here)
        OWN.append("/")


OWN: list[str] = []
"""Where may be written, the last one counts."""
WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.symlink", "os.link"}


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        writes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    else:
        writes = event in WRITES
    if writes and isinstance(arguments[0], (str, bytes, os.PathLike)):
        place = str(Path(os.fsdecode(arguments[0])).resolve())
        if not place.startswith((OWN[-1], "/dev/", "/proc/")) and "__pycache__" not in place:
            raise PermissionError(13, "Permission denied", place)


def _foreign(seed: int, number: int, folder: Path) -> list[str]:
    """Return what went wrong in calls with damaged arguments, made in a folder of their own."""
    wrong: list[str] = []
    with _kept_within(folder):
        for name, function, arguments in attacks(seed, number):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(**arguments)
            except fk.FactorykitError as error:
                said = str(error)
                if max(map(len, said.split("\n"))) > 300 or any(letter < " " and letter != "\n" for letter in said):
                    wrong.append(f"{name}: says {said[:80]!r} in {len(said)} characters")
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {str(error)[:80]}; {_kinds(arguments)}")
    return wrong


def _kinds(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {type(value).__name__}" for name, value in arguments.items())


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
    assert _foreign(16, QUICK, tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_damaged_arguments_are_answered_or_refused_in_words(seed: int, tmp_path: Path) -> None:
    assert _foreign(seed, LONG, tmp_path) == []
