"""A run.toml gives the same plan as the call, and errors name the invalid line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import factorykit as fk
from factorykit.cli import main
from factorykit.core.errors import FactorykitError
from factorykit.model.planning.plan import read_run

RUN = """
model = "llama3_8b"
tokens = "1T"
chips = ["h100_sxm"]
counts = [256, 512]
deadline = "60 d"

[given]
pue = 1.2
"""


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


def test_a_file_gives_the_same_plan_as_the_call(run_file: Path) -> None:
    options = read_run(run_file)
    found = fk.plan(options.pop("model"), **options)
    called = fk.plan("llama3_8b", tokens="1T", chips=["h100_sxm"], counts=[256, 512], deadline="60 d", pue=1.2)
    assert found.best.equals(called.best)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tokens = 1", "model"),
        ('model = "llama3_8b"\ndeadlin = "60 d"', "deadline"),
        ("model = ", "run.toml"),
        ('model = "a"\ngiven = 3', "given"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(FactorykitError, match=message):
        read_run(path)


def test_the_command_prints_json(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(run_file), "--counts", "256", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["best"][0]["accelerators"] <= printed["best"][0]["available_accelerators"] == 256.0
    assert printed["scenario"]["pue"] == 1.2
    assert {"frontier", "bottlenecks", "assumed", "excluded", "code"} <= printed.keys()


def test_the_command_fails_where_no_plan_keeps_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tokens", "1T", "--chips", "h100_sxm", "--counts", "64", "--deadline", "1h"]
    assert main(["plan", "llama3_8b", *options]) == 1
    assert "No plan keeps every limit" in capsys.readouterr().out


def test_a_file_can_contain_offers(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    offer = '[[offers]]\nprovider = "us"\naccelerator = "h100_sxm"\nrental_usd_per_accelerator_h = 2.0\n'
    path.write_text(f"{RUN.partition('[given]')[0]}tiers = 'two'\n{offer}offered_accelerators = 300\n")
    found = fk.plan(**read_run(path))
    assert set(found.plans.select("provider", "tiers").rows()) == {("us", "two")}
    assert found.plans["accelerators"].max() == 288.0


def test_quantities_may_follow_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tokens", "1T", "--chips", "h100_sxm", "--counts", "64"]
    assert main(["plan", "llama3_8b", *options, "precision=fp8"]) == 0
    assert "fp8" in capsys.readouterr().out
    assert main(["plan", "llama3_8b", *options, "fp8"]) == 2
    assert "'fp8' is not QUANTITY=VALUE" in capsys.readouterr().err
