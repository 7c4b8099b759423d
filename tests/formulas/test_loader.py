"""Loading of training data: results of MLPerf Storage, and the time that a step waits."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorykit as fk
from factorykit.formulas import checkpoint, loader

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
    """Workloads of one accelerator with the rate that its required utilization takes."""
    rows = fk.table("loader_workloads").collect().with_columns(accelerators=1.0)
    return fk.evaluate(rows.rename({"accelerator_read_bytes_per_s": "median"}), "accelerator_read_bytes_per_s")


def test_results_of_mlperf_storage_read_at_the_required_rate(demanded: pl.DataFrame) -> None:
    """Submitters add accelerators until the least allowed share is near."""
    error = demanded["accelerator_read_bytes_per_s"] / demanded["median"] - 1.0
    assert dict(demanded.group_by("source").agg(pl.sum("results")).iter_rows()) == {
        "mlperf_storage_v1": 130.0,
        "mlperf_storage_v3": 5.0,
    }
    assert error.abs().max() < 0.04
    full = demanded["accelerator_read_bytes_per_s"] / demanded["busy_wanted"]
    assert (demanded["accelerator_read_bytes_per_s_high"] < full).all()


def test_accelerators_fed_by_a_system_are_those_that_it_reported(shared: Path, demanded: pl.DataFrame) -> None:
    published = pl.read_csv(shared / "public" / "mlperf_storage_v1.csv").filter(division="closed")
    asked = demanded.select("loader_workload", "accelerator_read_bytes_per_s")
    key = pl.concat_str("workload", "emulated_accelerator", separator="_")
    rows = published.with_columns(loader_workload=key, loader_bytes_per_s=pl.col("read_mb_per_s") * 2**20)
    found = fk.evaluate(rows.join(asked, on="loader_workload"), "accelerators_fed")
    error = (found["accelerators_fed"] / found["emulated_accelerators"] - 1.0).abs()
    assert len(error) == 130
    assert error.median() < 0.03
    assert (error < 0.15).mean() > 0.95


def test_loading_takes_no_time_unless_a_scenario_describes_the_loader() -> None:
    known = FED | SLOW | {"stream_bytes_per_s": 1e8}
    at_once = fk.evaluate(known, ["step_s", "starvation_share"])
    assert at_once == {"step_s": 6.0, "starvation_share": 0.0}
    waiting = fk.evaluate(known | STARVED, ["step_s", "starvation_share", "loader_starved_s"])
    assert waiting["loader_starved_s"] == pytest.approx(2048 * (0.03 + 16384 / 1e8) / 8 - 6.0)
    assert waiting["starvation_share"] == pytest.approx(waiting["loader_starved_s"] / waiting["step_s"])
    shards = fk.evaluate(known | STARVED | {"request_bytes": 6.4e7}, "starvation_share")
    assert shards["starvation_share"] == 0.0


def test_caches_relieve_storage_from_the_second_pass_on_and_saves_burden_it() -> None:
    known = FED | SLOW | {"readers": 1e6, "stream_bytes_per_s": 1e9, "storage_read_bytes_per_s": 1e9}
    known |= {"checkpoint_bytes": 3e11, "storage_write_bytes_per_s": 1e9, "checkpoint_interval_s": 600.0}
    known.pop("storage_left_bytes_per_s")
    rates = [
        fk.evaluate(known | more, "loader_bytes_per_s")["loader_bytes_per_s"]
        for more in ({}, {"cache_bytes": 3e13}, {"cache_bytes": 3e13, "epochs": 4})
    ]
    assert rates == pytest.approx([5e8, 5e8, 2e9])


@given(st.floats(0.0, 0.95), st.floats(1e9, 1e13), st.floats(0.0, 1e13))
def test_neighbours_and_data_only_slow_saves_down(share: float, front: float, data: float) -> None:
    alone = loader.checkpoint_shared_write_s(1e12, 1e11, 1e13, 0.0, 0.0)
    assert alone == checkpoint.checkpoint_write_s(1e12, 1e11)
    shared = loader.checkpoint_shared_write_s(1e12, 1e11, front, data, share)
    assert shared >= alone * (1.0 - 1e-12)
    assert shared <= loader.checkpoint_shared_write_s(1e12, 1e11, front, 2.0 * data, share)
    left = loader.storage_left_bytes_per_s(1e11, 1e12, 1e11, 1e3, share)
    assert 0.0 <= left <= loader.storage_left_bytes_per_s(1e11, 1e12, 1e11, 1e3, 0.0)


@given(st.floats(0.0, 0.8), st.floats(0.0, 0.9), st.floats(0.1, 4.0))
def test_a_save_in_gaps_between_batches_meets_its_formula_where_the_front_end_binds(
    share: float, read: float, write: float
) -> None:
    front, step_s = 1e9, 1e-3
    own = (1.0 - share) * front
    rate, now, left = min(write, 1.0) * own, 0.0, 1e9
    while left > 0.0:
        written = min(left, rate * step_s * (1.0 - read))
        now += step_s * read + written / rate
        left -= written
    formula = loader.checkpoint_shared_write_s(1e9, write * front, front, read * own, share)
    assert now >= formula * (1.0 - 2e-3)
    if write >= 1.0:
        assert now == pytest.approx(formula, rel=2e-3)


def test_a_save_shares_the_front_end_on_request_and_neighbours_starve_readers() -> None:
    known = FED | SLOW | {"readers": 1e6, "stream_bytes_per_s": 1e9, "storage_read_bytes_per_s": 1e9}
    known |= {"checkpoint_bytes": 3e11, "storage_write_bytes_per_s": 1e9, "checkpoint_interval_s": 6000.0}
    known.pop("storage_left_bytes_per_s")
    rates = [
        fk.evaluate(known | {"neighbour_storage_share": share}, "loader_bytes_per_s")["loader_bytes_per_s"]
        for share in (0.0, 0.5)
    ]
    assert rates == pytest.approx([9.5e8, 4.5e8])
    front = {"checkpoint_write_s": "checkpoint_shared_write_s", "storage_front_bytes_per_s": 6e8}
    front |= {"data_read_bytes_per_s": 3e8}
    saved = fk.evaluate(
        {k: known[k] for k in ("checkpoint_bytes", "storage_write_bytes_per_s")} | front, "checkpoint_write_s"
    )
    assert saved["checkpoint_write_s"] == pytest.approx(1000.0)


def test_barriers_of_all_ranks_make_the_start_quadratic_in_the_job_size() -> None:
    sizes = (2048.0, 4096.0)
    all_groups, few = ([loader.group_setup_s(n, n * k, 2000.0) for n in sizes] for k in (0.5, 0.0))
    assert all_groups[1] == pytest.approx(4.0 * all_groups[0])
    assert few == [0.0, 0.0]
    started = {"start_fixed_s": 60.0, "image_load_s": 0.0, "metadata_storm_s": 0.0, "checkpoint_read_s": 5.0}
    started |= {"accelerators": 2048.0}
    plain = fk.evaluate(started, "job_start_s")["job_start_s"]
    asked = fk.evaluate(started | {"group_barriers": 1000.0, "store_requests_per_s": 2048.0}, "job_start_s")
    assert (plain, asked["job_start_s"]) == pytest.approx((65.0, 1065.0))
