"""Calls that would fill the memory or run for ever are refused in advance, or end when they are interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import factorykit as fk
from factorykit.cli import main
from factorykit.core import text_io
from factorykit.core.errors import QueryError
from factorykit.data.identifiers import accelerator_in

ROOT = Path(__file__).parents[2]
BEGUN = "import sys; from factorykit.cli import main; print(flush=True); sys.exit(main())"
COMMAND = [sys.executable, "-W", "ignore", "-c", BEGUN]
ENDLESS = "select sum(a.range) from range(10000000) a, range(10000000) b where a.range * b.range % 7 = 3"
RUN = ["tokens=15T", "active_parameters=405e9", "accelerators=16384", "accelerator=h100_sxm", "mfu=0.4", "--assume"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fk.sweep({}, dict.fromkeys(("restart_s", "downtime_s", "tokens"), range(1, 1001))),
            "1,000,000,000 rows",
        ),
        (lambda: fk.sample({}, {"mfu": fk.Uniform(0.3, 0.4)}, n=2**25, grid={"pue": [1.1, 1.2]}), "67,108,864 rows"),
        (
            lambda: fk.simulate(fk.preset("llama_3_1_405b"), runs=10**12, assume=True),
            "runs must be between 1 and 10,000,000, got 1000000000000",
        ),
        (lambda: fk.reliability.renewal_failures(1e5, 10, 1e6, 0.7, steps=10**9), "outside"),
        (lambda: fk.sensitivity({}, {"mfu": fk.Uniform(0.3, 0.4)}, "training_s", n=2**30), "3,221,225,472 rows"),
        (lambda: accelerator_in("h100 " * 1_000_000), "no accelerator"),
        (
            lambda: fk.search("llama3_8b", {"accelerator": "h100_sxm", "accelerators": 2.0**63}, global_batch_size=64),
            r"more than 1e\+12",
        ),
        (lambda: fk.preset("x" * 10_000_000), "no preset"),
        (lambda: fk.sql(ENDLESS, timeout_s=0.2), "took longer than 0.2 s"),
        (lambda: fk.sql("select 1", timeout_s=-1), "timeout_s must be above 0, got -1"),
    ],
)
@pytest.mark.filterwarnings("ignore::factorykit.FactorykitWarning")
def test_an_endless_call_is_refused_or_ended(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(fk.FactorykitError, match=message):
        call()


@pytest.mark.long
def test_a_query_that_needs_more_than_its_memory_is_refused() -> None:
    with pytest.raises(QueryError, match=r"(?i)failed to allocate"):
        fk.sql("select list(a.range) from range(2000000000) a")


def test_axes_of_a_sweep_on_the_command_line_are_counted_before_they_are_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sweep", "-g", "mfu=0.1:0.2:99999999", "-g", "pue=1:2:99999999", "-o", "training_s"]) == 2
    assert "9,999,999,800,000,001 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "nested deeper than 50 levels"),
        (b"[" * 60 + b"]" * 60, "nested deeper than 50 levels"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number of 5000 digits"),
        (b'{"a": 1, "a": 2}', "has the key 'a' twice"),
        (b'{"a": 1e999}', "not a finite number"),
        (b'{"a": NaN}', "not a finite number"),
        ('{"a": 1}'.encode("utf-16"), "zero bytes"),
        (b"{}\0", "zero bytes"),
    ],
)
def test_invalid_json_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        text_io.parse_json(content)


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Restore the handling of interrupts of a terminal: background processes of a shell ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
def test_a_query_ends_when_its_thread_is_interrupted_and_the_next_one_is_answered() -> None:
    fk.sql("select 1")
    threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        fk.sql(ENDLESS)
    assert fk.sql("select 1 as a")["a"].item() == 1


def interrupted(arguments: list[str], after_s: float) -> tuple[int, str]:
    """Return the status and the error output of a command that is interrupted some time after Python has started."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout
    process.stdout.readline()
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=10.0)
    finally:
        process.kill()
    return process.returncode, errors


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize(
    "arguments", [["data", "sql", ENDLESS], ["sweep", *RUN, "-g", "mfu=0.1:0.9:10000000", "-o", "training_s"]]
)
def test_an_interrupt_ends_a_command_silently(arguments: list[str], tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "rows.parquet")] if arguments[0] == "sweep" else []
    assert interrupted([*arguments, *out], 1.5) == (130, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("after_s", [0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(
    "arguments",
    [
        ["sweep", *RUN, "-g", "mfu=0.1:0.9:6000", "-g", "pue=1:1.9:8000", "--out", "{}/.rows.parquet"],
        ["simulate", *RUN, "accelerator_mtbf_s=1.8e8", "checkpoint_write_s=20", "--runs", "3000000"],
        ["site", "build", "--stored", "--renderer", "embedded", "--out", "{}/_site"],
        ["data", "build", "--out", "{}/data"],
    ],
    ids=lambda each: each[0],
)
def test_an_interrupt_ends_every_long_command_whenever_it_comes(
    arguments: list[str], after_s: float, tmp_path: Path
) -> None:
    status, errors = interrupted([each.format(tmp_path) for each in arguments], after_s)
    assert status in (0, 130)
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith((".", "_site.new"))] in ([], ["data"])
