"""Charts of plans: every field is in the frame, and a limit is a line."""

from __future__ import annotations

import altair as alt
import pytest

import factorykit as fk


@pytest.fixture(scope="module")
def plans() -> fk.Plan:
    return fk.plan("llama3_8b", tokens="1T", chips=["h100_sxm", "h200_sxm"], counts=[64, 128])


def _fields(chart: alt.LayerChart) -> set[str]:
    layers = chart.to_dict()["layer"]
    return {part["field"] for layer in layers for part in layer["encoding"].values() if isinstance(part, dict)}


def test_days_are_drawn_against_dollars_with_the_limits(plans: fk.Plan) -> None:
    chart = fk.charts.plan.frontier(plans.plans, title="t", source="s", deadline_days=60.0, budget_usd=1e6)
    bare = fk.charts.plan.frontier(plans.plans, title="t", source="s")
    assert {"wall_days", "run_cost_usd", "run_cost_usd_low", "wall_days_low", "Chip"} <= _fields(chart)
    assert len(chart.to_dict()["layer"]) == len(bare.to_dict()["layer"]) + 2


def test_progress_is_drawn_below_utilization(plans: fk.Plan) -> None:
    chart = fk.charts.plan.scale(plans.plans, title="t", source="s").to_dict()
    rows = next(iter(chart["datasets"].values()))
    assert {row["Chip"] for row in rows} == {"NVIDIA H100 SXM5 80GB", "NVIDIA H200 SXM 141GB"}
    assert all(row["useful"] < row["predicted_mfu"] for row in rows)


def test_an_exceeded_limit_is_a_line_with_its_name(plans: fk.Plan) -> None:
    runs = plans.plans.with_columns(training_flop=1e20 * plans.plans["accelerators"])
    ends = {"100 MW": 1e22, "never": None}
    chart = fk.charts.plan.limits(runs, by="accelerator", ends=ends, title="t", source="s").to_dict()
    named = [rows for rows in chart["datasets"].values() if "end" in rows[0]]
    assert named == [[{"end": "100 MW", "training_flop": 1e22}]]
