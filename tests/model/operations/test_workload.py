import polars as pl
import pytest

import factorykit as fk


@pytest.mark.parametrize("name", ["seren", "kalos", "philly", "helios"])
def test_synthetic_jobs_have_the_published_summary(name):
    """Acme trace summary, arXiv:2403.07648, and Philly and Helios as printed beside it."""
    seen = fk.workload(name, 400_000, seed=1)
    published = fk.table("workloads").filter(pl.col("workload") == name).collect().row(0, named=True)
    assert seen["run_s"].median() == pytest.approx(published["run_s_median"], rel=0.03)
    assert seen["run_s"].mean() == pytest.approx(published["run_s_mean"], rel=0.05)
    assert seen["accelerators"].mean() == pytest.approx(published["accelerators_mean"], rel=0.03)
    assert seen["accelerators"].median() == 1.0
    assert (seen["run_s"] * seen["accelerators"]).mean() == pytest.approx(published["accelerator_s_mean"], rel=0.2)
    assert seen["run_s"].max() <= published["run_s_max"]


def test_the_load_is_the_requested_one():
    seen = fk.workload("helios", 200_000, 0.8, 4096)
    asked = (seen["run_s"] * seen["accelerators"]).sum() / (seen["arrival_s"].max() * 4096)
    assert asked == pytest.approx(0.8, rel=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fk.workload("kalo"), "nearest is 'kalos'"),
        (lambda: fk.workload("kalos", jobs=10.7), "jobs must be an integer, got 10.7"),
        (lambda: fk.workload("kalos", jobs=0.5), "jobs must be an integer, got 0.5"),
        (lambda: fk.workload("kalos", jobs=0), "jobs must be between 1 and 100,000,000, got 0"),
        (lambda: fk.workload("kalos", accelerators=3.5), "accelerators must be an integer, got 3.5"),
        (lambda: fk.workload("kalos", load=0.0), "load must be above zero, got 0.0"),
        (lambda: fk.workload("kalos", estimate_factor=0.5), "estimate_factor = 0.5"),
        (lambda: fk.workload("kalos", estimate_factor="2"), "estimate_factor must be a finite number, got '2'"),
        (lambda: fk.workload("kalos", seed=-1), "seed must be between .* got -1"),
        (lambda: fk.workload(3), "name of the workload must be a string, got 3"),
    ],
)
def test_impossible_workloads_are_refused(call, message):
    with pytest.raises(fk.FactorykitError, match=message):
        call()
