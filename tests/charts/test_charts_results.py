"""Each result has a chart, and its title states the finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import FactorykitError

RUN = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384.0, "peak_flop_per_s": 989e12}
DOUBT = {"mfu": fk.Uniform(0.3, 0.5), "accelerators": fk.Uniform(16000, 17000)}
DAYS = "training_days"
SWEPT = {"accelerators": [8192, 16384], "mfu": [0.3, 0.4]}
GRID = {"accelerators": [8192, 16384]}
CHIPS = {"accelerator": ["h100_sxm", "b200"], DAYS: [9.0, 4.0]}
RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "sweep": (
        lambda: fk.sweep(RUN | {"mfu": 0.4}, SWEPT, DAYS),
        "67.7 d at 16,384 accelerators, 40 % model FLOP utilization, 181 d at 8,192 accelerators",
    ),
    "words": (lambda: pl.DataFrame(CHIPS), "4 d at b200, 9 d at h100_sxm"),
    "sample": (lambda: fk.sample(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, DAYS, n=256), "67.7 d in the middle, 55"),
    "grid": (lambda: fk.sample(RUN, {"mfu": fk.Uniform(0.3, 0.5)}, DAYS, n=64, grid=GRID), "135 d"),
    "sensitivity": (lambda: fk.sensitivity(RUN, DOUBT, DAYS, n=64), "Model FLOP utilization matters most"),
    "compare": (
        lambda: fk.compare({"as run": RUN | {"mfu": 0.3}, "best": RUN | {"mfu": 0.4}}, DAYS),
        "67.7 d in best, 90.3 d",
    ),
}
"""Results by verb, computed when tested rather than in each process that collects tests, and a part of their titles."""


@pytest.mark.parametrize("verb", RESULTS)
def test_the_chart_of_a_frame_states_its_finding(verb: str) -> None:
    result, finding = RESULTS[verb]
    assert finding in fk.plot(result()).to_dict()["title"]["text"]


def test_a_plan_a_search_and_a_serving_plan_have_charts() -> None:
    plan = fk.plan("llama3_8b", tokens="1T", chips=["h100_sxm", "b200"], counts=[64], deadline="60 d", draws=16)
    spec = plan.plot().to_dict()
    assert str(plan).startswith(spec["title"]["text"])
    assert any(rows == [{"wall_days": 60.0}] for rows in spec["datasets"].values())
    cluster = {"accelerator": "h100_sxm", "accelerators": 16.0}
    layouts = fk.search("llama3_8b", cluster, global_batch_size=64.0, assume=True)
    best = layouts.filter(fits=1.0).first().collect()["step_s"].item()
    assert fk.quantity("step_s").text(best) in fk.plot(layouts).to_dict()["title"]["text"]
    serving = fk.serve("llama3_70b", "h200_sxm", load=10.0, tpot="25 ms")
    assert serving.plot().to_dict()["title"]["text"].startswith(f"{serving.best['accelerators']:.0f} NVIDIA H200")


@pytest.mark.parametrize("frame", [{"a": [1.0]}, {"mfu": [0.4]}, {"mfu": [0.4, 0.4], DAYS: [1.0, 1.0]}])
def test_rows_of_another_kind_are_refused(frame: dict[str, list[float]]) -> None:
    with pytest.raises(FactorykitError):
        fk.plot(pl.DataFrame(frame))
