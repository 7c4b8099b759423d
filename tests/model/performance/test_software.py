"""Calibration on published runs of the same software."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import factorykit as fk
from benchmarks.fit_software import residuals
from factorykit.core.errors import ScenarioError, UnknownName
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers import frameworks
from factorykit.model.performance.calibration import calibrated_on_software
from factorykit.model.performance.layout_features import LAYOUT_FEATURES
from factorykit.model.performance.software import RUNS, shared_residual
from factorykit.model.performance.training_runs import prepared
from factorykit.model.validation.validate import errors

CLUSTER = {"accelerators": 64, "accelerator": "gb300"}


@pytest.fixture(scope="module")
def bridge():
    return fk.table("training_runs").filter(framework="megatron_bridge").collect()


@pytest.fixture(scope="module")
def layouts(bridge):
    return evaluate(prepared(bridge.head(20))[0], LAYOUT_FEATURES).select(LAYOUT_FEATURES)


def test_the_shipped_residuals_are_those_of_the_model_and_the_table(bridge):
    shipped = pl.read_parquet(RUNS).filter(pl.col("software") == "megatron_bridge on NVIDIA")
    found = residuals(bridge)
    assert found.height == shipped.height
    assert (found["residual"] - shipped["residual"]).abs().max() < 1e-3


def test_unknown_software_and_a_new_family_have_the_spread_of_the_population(layouts):
    own = pl.read_parquet(RUNS).filter(pl.col("software") == "nanotron on NVIDIA")["family"].unique().to_list()
    for software, without in (("", ()), ("unheard on NVIDIA", ()), ("nanotron on NVIDIA", own)):
        found = shared_residual(layouts, software, "blackwell", without)
        assert found["step_pace"].unique().to_list() == [1.0] == found["unexplained_variance"].unique().to_list()


def test_a_residual_does_not_depend_on_the_layouts_asked_with_it(layouts):
    software = ("megatron_bridge on NVIDIA", "blackwell")
    alone = pl.concat(shared_residual(layout, *software) for layout in layouts.iter_slices(1))
    assert_frame_equal(shared_residual(layouts, *software), alone, check_exact=False, abs_tol=1e-9, rel_tol=0.0)


def test_similar_layouts_have_narrower_intervals_than_distant_ones(layouts):
    far = layouts.with_columns(pl.col("accelerators") * 64.0, pl.col("layers") * 16.0, pl.col("hidden_size") / 8.0)
    near, wide = (
        shared_residual(rows, "megatron_bridge on NVIDIA", "blackwell")["unexplained_variance"]
        for rows in (layouts, far)
    )
    assert near.max() < 0.6 * wide.min()


def test_published_runs_of_the_software_cut_the_error_by_a_quarter_and_narrow_the_interval(bridge):
    physics, software = (errors(fk.validate(bridge, **given), "group") for given in ({"calibration": {}}, {}))
    for name, ratio in (("median_absolute_error", 0.75), ("half_width", 0.8)):
        assert software[name].median() < ratio * physics[name].median()


def test_rows_without_their_family_are_covered_in_each_stratum():
    runs = fk.table("training_runs").select("experts").collect()
    validated = fk.validate().with_columns(runs["experts"].fill_null(0.0) > 1.0)
    validated = validated.with_columns(large=pl.col("accelerator_count") > 256)
    for stratum in ("experts", "large"):
        assert errors(validated, stratum)["coverage"].is_between(0.85, 0.95).all()


def test_every_feature_has_a_release_and_a_source():
    features = fk.table("framework_features").collect()
    assert set(features["quantity"]) == {*frameworks.FROM, "layer_graphs", "recompute_modules"}
    assert features["since_year"].is_between(2019.0, 2027.0).all()
    assert features.select((pl.col("source").is_not_null() & pl.col("locator").is_not_null()).all()).item()
    known = set(fk.table("sources").collect()["source"])
    assert set(features["source"]) <= known


def test_a_feature_counts_from_its_release_on():
    before, after = (frameworks.features("megatron_bridge", year, "NVIDIA", 72.0) for year in (2025.4, 2025.8))
    assert (before["interleaved_overlap"], after["interleaved_overlap"]) == (0.0, 1.0)
    assert (before["cuda_graphs"], after["cuda_graphs"]) == (0.0, frameworks.PARTLY_GRAPHED)


def test_every_published_spelling_of_software_is_read():
    runs = fk.table("training_runs").select("framework", "framework_stated").drop_nulls().unique().collect()
    assert {(text, frameworks.find(text)) for _, text in runs.rows()} == {(text, key) for key, text in runs.rows()}


def test_a_port_by_another_vendor_is_software_of_its_own():
    own, port = (frameworks.features("megatron_deepspeed", 2025.0, vendor) for vendor in ("NVIDIA", "Intel"))
    assert own["evidence_software"] > port["evidence_software"] == 1.0


def test_a_search_uses_the_pace_of_a_framework():
    steps = {
        name: fk.search("llama3_70b", CLUSTER, global_batch_size=128, framework=name).head(1).collect()["step_s"][0]
        for name in ("megatron_bridge", "nanotron")
    }
    assert steps["megatron_bridge"] < steps["nanotron"]
    with pytest.raises(UnknownName, match="no framework 'typo'"):
        fk.search("llama3_70b", CLUSTER, global_batch_size=128, framework="typo")
    with pytest.raises(ScenarioError, match="name of an accelerator"):
        fk.search("llama3_70b", {"accelerators": 64, "gemm_ceiling": 0.8}, global_batch_size=8, framework="nemo")


def test_a_plan_uses_the_pace_of_a_framework_as_a_search_does():
    inputs = {"tokens": "1T", "chips": ["gb300"], "counts": [64], "global_batch_size": 128, "sequence_length": 4096}
    plans = {name: fk.plan("llama3_70b", **inputs, framework=name) for name in ("megatron_bridge", "nanotron")}
    best = {name: found.best.row(0, named=True) for name, found in plans.items()}
    assert best["megatron_bridge"]["step_s"] < best["nanotron"]["step_s"]
    layouts = fk.search("llama3_70b", CLUSTER, global_batch_size=128, framework="nanotron").collect()
    steps = layouts.filter(pl.col("fits") == 1.0)["step_s"]
    assert best["nanotron"]["step_s"] == pytest.approx(steps.min())
    again = fk.evaluate(plans["nanotron"].scenario, "step_s")["step_s"]
    assert again == pytest.approx(best["nanotron"]["step_s"])
    with pytest.raises(UnknownName, match="no framework 'typo'"):
        fk.plan("llama3_70b", framework="typo")


def test_the_calibration_of_a_framework_is_part_of_a_scenario():
    mine = calibrated_on_software("nanotron", "h100_sxm")
    run = {**fk.architecture("llama3_8b"), "accelerator": "h100_sxm", "accelerators": 8, "tensor_parallel": 8}
    run |= {"global_batch_size": 256, "micro_batch_size": 4, "sequence_length": 4096}
    assert fk.evaluate(mine.apply(run), "step_s")["step_s"] > fk.evaluate(run, "step_s")["step_s"]
