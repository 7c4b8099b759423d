"""Data on their way to the accelerators: MLPerf Storage found again, and what a step waits for."""

from pathlib import Path

import polars as pl
import pytest

import factorykit as fk

FED = {"inner_step_s": 6.0, "outer_exposed_s": 0.0, "global_batch_size": 2048, "sample_bytes": 16384}
SLOW = {
    "readers": 8,
    "request_bytes": 16384,
    "request_s": 0.03,
    "storage_left_bytes_per_s": 1e12,
    "dataset_bytes": 3e13,
}
STARVED = {"loader_exposed_s": "loader_starved_s"}


@pytest.fixture(scope="module")
def demanded() -> pl.DataFrame:
    """Workloads of one accelerator with the rate that its share of busy time takes."""
    rows = fk.table("loader_workloads").collect().with_columns(accelerators=1.0)
    return fk.evaluate(rows.rename({"accelerator_read_bytes_per_s": "median"}), "accelerator_read_bytes_per_s")


def test_results_of_mlperf_storage_read_what_their_rule_asks_for(demanded: pl.DataFrame) -> None:
    """Submitters add accelerators until the least allowed share is near."""
    error = demanded["accelerator_read_bytes_per_s"] / demanded["median"] - 1.0
    assert demanded["results"].sum() == 130
    assert error.abs().max() < 0.04
    full = demanded["accelerator_read_bytes_per_s"] / demanded["busy_wanted"]
    assert (demanded["accelerator_read_bytes_per_s_high"] < full).all()


def test_accelerators_fed_by_a_system_are_those_that_it_reported(shared: Path, demanded: pl.DataFrame) -> None:
    told = pl.read_csv(shared / "public" / "mlperf_storage_v1.csv").filter(division="closed")
    asked = demanded.select("loader_workload", "accelerator_read_bytes_per_s")
    key = pl.concat_str("workload", "emulated_accelerator", separator="_")
    rows = told.with_columns(loader_workload=key, loader_bytes_per_s=pl.col("read_mb_per_s") * 2**20)
    found = fk.evaluate(rows.join(asked, on="loader_workload"), "accelerators_fed")
    error = (found["accelerators_fed"] / found["emulated_accelerators"] - 1.0).abs()
    assert len(error) == 130
    assert error.median() < 0.03
    assert (error < 0.15).mean() > 0.95


def test_data_are_there_in_time_unless_a_scenario_says_what_delivers_them() -> None:
    given = FED | SLOW | {"stream_bytes_per_s": 1e8}
    at_once = fk.evaluate(given, ["step_s", "starvation_share"])
    assert at_once == {"step_s": 6.0, "starvation_share": 0.0}
    waiting = fk.evaluate(given | STARVED, ["step_s", "starvation_share", "loader_starved_s"])
    assert waiting["loader_starved_s"] == pytest.approx(2048 * (0.03 + 16384 / 1e8) / 8 - 6.0)
    assert waiting["starvation_share"] == pytest.approx(waiting["loader_starved_s"] / waiting["step_s"])
    shards = fk.evaluate(given | STARVED | {"request_bytes": 6.4e7}, "starvation_share")
    assert shards["starvation_share"] == 0.0


def test_caches_relieve_storage_from_the_second_pass_on_and_saves_burden_it() -> None:
    given = FED | SLOW | {"readers": 1e6, "stream_bytes_per_s": 1e9, "storage_read_bytes_per_s": 1e9}
    given |= {"checkpoint_bytes": 3e11, "storage_write_bytes_per_s": 1e9, "checkpoint_interval_s": 600.0}
    given.pop("storage_left_bytes_per_s")
    rates = [
        fk.evaluate(given | more, "loader_bytes_per_s")["loader_bytes_per_s"]
        for more in ({}, {"cache_bytes": 3e13}, {"cache_bytes": 3e13, "epochs": 4})
    ]
    assert rates == pytest.approx([5e8, 5e8, 2e9])
