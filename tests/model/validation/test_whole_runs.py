"""Whole runs predicted from their plans: hours, days and energy."""

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.model.validation.whole_runs import OUTCOMES, OVERHEAD_SHARE


@pytest.fixture(scope="module")
def runs():
    return fk.table("training_runs").filter(kind="training_run").collect()


@pytest.fixture(scope="module")
def found(runs):
    return fk.validate_runs(runs)


def test_hours_of_whole_runs_are_met_and_beat_one_line_of_arithmetic(found):
    judged = found.filter(pl.col("error").is_not_null())
    assert judged.height >= 27
    assert judged["error"].abs().median() <= 0.14
    assert judged["error"].abs().median() < 0.6 * judged["null_error"].abs().median()
    assert (
        judged.select(pl.col("measured_gpu_hours").is_between("gpu_hours_low", "gpu_hours_high").mean()).item() > 0.75
    )
    assert found["days_error"].abs().median() <= 0.2
    assert found["energy_error"].abs().median() <= 0.2


def test_outcomes_of_a_run_are_not_read(runs, found):
    blind = fk.validate_runs(runs.drop(*OUTCOMES, "note", strict=False))
    assert blind["gpu_hours"].to_list() == found["gpu_hours"].to_list()
    assert blind["wall_days"].to_list() == found["wall_days"].to_list()


def test_hours_computed_from_a_step_time_contain_no_stops(runs):
    one = runs.filter(id="bloom-001").with_columns(gpu_hours_basis=pl.lit(None, dtype=pl.String))
    alone = one.with_columns(gpu_hours_basis=pl.lit("step_time"))
    with_stops, without = (fk.validate_runs(rows) for rows in (one, alone))
    assert without["gpu_hours"][0] == pytest.approx(
        with_stops["gpu_hours"][0] * with_stops["goodput"][0] / (1.0 + OVERHEAD_SHARE)
    )


def test_hours_are_days_of_all_accelerators(found):
    hours = found["wall_days"] * 24.0 * found["accelerators"]
    assert ((hours / found["gpu_hours"] - 1.0).abs() < 1e-9).all()


def test_twice_the_tokens_take_twice_the_hours(runs):
    one = runs.filter(id="bloom-001")
    twice = one.with_columns(pl.col("tokens") * 2.0)
    assert fk.validate_runs(twice)["gpu_hours"][0] == pytest.approx(2.0 * fk.validate_runs(one)["gpu_hours"][0])


def test_missing_inputs_of_a_plan_are_named(runs):
    found = fk.validate_runs(runs.filter(id="meta-llama-009"))
    assert {"global_batch_size", "accelerators", "layout"} <= set(found["assumed"][0].split(", "))


def test_no_rows_are_refused(runs):
    with pytest.raises(ScenarioError, match="no rows"):
        fk.validate_runs(runs.head(0))
