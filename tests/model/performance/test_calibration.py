"""Calibration on a few measured layouts."""

import sys
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import NotInstalled, ScenarioError, UnknownName
from factorykit.engine.providers.constants import constants
from factorykit.model.performance.gaussian_process import Fit, calibrated_scale
from factorykit.model.performance.layout_features import LAYOUT_FEATURES, LOCAL_CORRECTION
from factorykit.model.performance.layouts import PARTS
from factorykit.model.performance.software import shared_residual
from factorykit.model.performance.training_runs import prepared
from factorykit.model.validation.validate import errors

GROUP = "fms-acceleration-mistral-7b-v0.1"


@pytest.fixture(scope="module")
def runs():
    return fk.table("training_runs").filter(pl.col("group") == GROUP).collect()


@pytest.fixture(scope="module")
def calibrated(runs):
    return fk.calibrate(runs.gather_every(4).head(5))


def test_five_rows_halve_the_error_of_the_others(runs, calibrated):
    others = runs.filter(~pl.col("id").is_in(runs.gather_every(4).head(5)["id"].to_list()))
    before = errors(fk.validate(others), "group")["median_absolute_error"][0]
    after = errors(fk.validate(others, calibration=calibrated), "group")["median_absolute_error"][0]
    assert after < 0.5 * before


def test_rows_need_no_column_of_memory_and_unknown_ones_are_named(runs):
    own = runs.head(5).drop("mem_gib_per_gpu").with_columns(step_time_ms=1.0)
    with pytest.warns(fk.FactorykitWarning, match="not read: 'step_time_ms' .nearest is 'step_time_s'"):
        assert fk.calibrate(own).rows == 5


@pytest.mark.parametrize("family", ["all_inn", ""])
def test_an_unknown_family_to_leave_out_is_refused(runs, family):
    with pytest.raises(UnknownName, match="no family of runs"):
        fk.calibrate(runs.head(5), left_out=family)


def test_rows_without_a_layout_can_be_used():
    slices = fk.table("training_runs").filter(pl.col("id").str.starts_with("tpu-ironwood-llama")).collect()
    assert "layout" in fk.validate(slices)["assumed"][0]
    assert fk.calibrate(slices).rows == slices.height


def test_a_calibration_is_part_of_any_scenario(calibrated):
    shape = fk.table("architectures").filter(architecture="llama3_70b").collect().row(0, named=True)
    known = {
        name: value for name, value in shape.items() if name in {row.name for row in _rows()} and value is not None
    }
    layout = {"accelerator": "h100_sxm", "accelerators": 64, "tensor_parallel": 8, "sequence_length": 8192}
    layout |= {"global_batch_size": 64, "micro_batch_size": 1}
    plain = fk.evaluate(known | layout, "step_s")["step_s"]
    moved = fk.evaluate({**known, **layout, **calibrated}, "step_s")["step_s"]
    assert moved != plain


def _rows():
    from factorykit.core.vocabulary import vocabulary

    return vocabulary().values()


def test_only_layouts_near_a_measured_one_share_its_residual(runs, calibrated):
    ready, _ = prepared(pl.concat([runs.head(1)] * 2))
    far = ready.with_columns(pl.Series("hidden_size", [1.0, 4096.0]) * pl.col("hidden_size"))
    near = calibrated.local_correction(far)
    assert abs(near["step_pace"][0] - 1.0) > 5.0 * abs(near["step_pace"][1] - 1.0)
    assert near["unexplained_variance"][0] < 0.5 * near["unexplained_variance"][1]


def test_search_plan_validate_and_evaluate_give_a_calibrated_layout_the_same_step(calibrated):
    cluster = {"accelerators": 8, "accelerator": "a100_sxm_80gb", "precision": "bf16"}
    found = fk.search("llama3_8b", cluster, global_batch_size=64, calibration=calibrated).head(3).collect()
    model = {**fk.architecture("llama3_8b"), "sequence_length": 4096.0}
    parts = [name for name in found.columns if name in PARTS or name == "recompute_share"]
    layouts = found.select(parts).with_columns(
        pl.lit(value).alias(name) for name, value in {**model, **cluster, "global_batch_size": 64.0}.items()
    )
    outputs = ["step_s", "step_low_s", "step_high_s", "predicted_mfu"]
    framed = fk.evaluate(calibrated.apply(layouts), outputs)
    for row, layout in enumerate(layouts.iter_rows(named=True)):
        for scenario in (layout, fk.Scenario(**layout)):
            alone = fk.evaluate(calibrated.apply(scenario), outputs)
            assert [*alone.values()] == pytest.approx(found.select(outputs).row(row), rel=1e-9)
        assert framed.select(outputs).row(row) == pytest.approx(found.select(outputs).row(row), rel=1e-9)
    plan = fk.plan(
        "llama3_8b", tokens="1T", chips="a100_sxm_80gb", counts=8, global_batch_size=64, calibration=calibrated
    )
    laid_out = {name: plan.best[name].item() for name in [*PARTS, "recompute_share"] if name in plan.best.columns}
    layout = {
        **model,
        **cluster,
        "global_batch_size": 64.0,
        **laid_out,
        "sequence_length": plan.scenario.sequence_length,
    }
    assert fk.evaluate(calibrated.apply(layout), outputs[:1])["step_s"] == pytest.approx(
        plan.best["step_s"].item(), rel=1e-9
    )
    assert fk.evaluate(plan.scenario, outputs[:1])["step_s"] == pytest.approx(plan.best["step_s"].item(), rel=1e-9)
    row = pl.DataFrame(
        {"model": "llama3_8b", "hardware": "A100-80GB SXM", "accelerator_count": 8, "global_batch": 64, "seq_len": 4096}
        | {"tp": 1, "pp": 1, "micro_batch": 1, "sharding": "ZeRO-2", "recompute": "none", "precision": "bf16"}
    )
    first, second = fk.validate(row, calibration=dict(calibrated)), fk.validate(row, calibration=calibrated)
    ready, _ = prepared(row)
    paced = calibrated.local_correction(fk.evaluate(ready, list(LAYOUT_FEATURES)))["step_pace"][0]
    assert second["step_s"][0] / first["step_s"][0] == pytest.approx(paced)
    assert paced != pytest.approx(1.0, abs=1e-4)


def test_a_calibration_starts_from_published_runs_of_its_software_but_not_from_its_own_rows():
    rows = fk.table("training_runs").filter(pl.col("group").str.starts_with("nemo2407")).collect()
    ready, _ = prepared(rows)
    mine, layouts = fk.calibrate(rows.head(5)), fk.evaluate(ready, list(LAYOUT_FEATURES))
    assert (mine.software, mine.without) == ("nemo on NVIDIA", ("nemo2407",))
    published = shared_residual(layouts, without=mine.without)
    own = replace(mine, software="", generation="").local_correction(layouts.select(LAYOUT_FEATURES))
    together = mine.local_correction(layouts)
    assert published["unexplained_variance"].max() < 1.0
    for name in LOCAL_CORRECTION:
        assert (together[name] / (published[name] * own[name]) - 1.0).abs().max() < 1e-9


def test_a_saved_calibration_loads_equal(calibrated, tmp_path):
    assert fk.Calibration.load(calibrated.save(tmp_path / "mine.json")) == calibrated
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ScenarioError, match="not a calibration"):
        fk.Calibration.load(tmp_path / "other.json")


def test_one_row_is_reproduced_to_ten_percent(runs):
    one = fk.calibrate(runs.head(1))
    assert one.rows == 1
    assert errors(fk.validate(runs.head(1), calibration=one), "group")["median_absolute_error"][0] < 0.1


def test_copies_of_a_row_count_little_more_than_the_row(runs):
    once, often = fk.calibrate(runs.head(1)), fk.calibrate(pl.concat([runs.head(1)] * 8))
    assert often["gemm_share_16bit"] == pytest.approx(once["gemm_share_16bit"], rel=0.05)


def test_an_outlier_moves_predictions_little(runs):
    five = runs.gather_every(4).head(5)
    slow = five.with_columns(
        pl.when(pl.int_range(pl.len()) == 2)
        .then(pl.col("step_time_s") * 4)
        .otherwise("step_time_s")
        .alias("step_time_s"),
        pl.lit(None, dtype=pl.Float64).alias("tokens_per_s_per_gpu"),
    )
    plain = fk.validate(runs, calibration=fk.calibrate(five))["step_s"]
    moved = fk.validate(runs, calibration=fk.calibrate(slow))["step_s"]
    assert (moved / plain).median() == pytest.approx(1.0, abs=0.08)


@pytest.mark.filterwarnings("ignore:.*is not compared")
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"step_time_s": 1e-3, "tokens_per_s_per_gpu": None}, "times the prediction"),
        ({"step_time_s": 100.0, "tokens_per_s_per_gpu": 9e4}, "contradict"),
        (
            dict.fromkeys(("step_time_s", "tokens_per_s_per_gpu", "mfu", "tflops_per_gpu", "mem_gib_per_gpu")),
            "no step time or throughput",
        ),
        (
            dict.fromkeys(("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mem_gib_per_gpu")) | {"mfu": 49.3},
            "did you mean 0.493",
        ),
        ({"accelerator": "Abacus 9"}, "Abacus"),
    ],
)
def test_a_row_that_cannot_be_used_is_listed_with_its_reason(runs, change, word):
    wrong = runs.head(1).with_columns(pl.lit(value).alias(name) for name, value in change.items())
    both = pl.concat([runs.slice(1, 2), wrong], how="vertical_relaxed")
    found = fk.calibrate(both)
    assert word in found.excluded[wrong["id"][0]]
    with pytest.raises(ScenarioError, match=word):
        fk.calibrate(wrong)


def test_five_rows_reduce_the_error_more_than_one_ratio_for_all_layouts():
    """Families that no constant saw, as benchmarks.validation found them in four draws of five rows each."""
    five = fk.table("few_shots").filter(rows_taken="drawn", measured_rows=5.0).collect()
    own, scaled = five["median_absolute_error"], five["scaled_median_error"]
    assert five.height >= 20
    assert own.mean() < 0.8 * scaled.mean()
    assert (own - scaled).max() < 0.02


@pytest.mark.long
def test_designed_layouts_reduce_the_error_more_than_random_ones_averaged_over_families():
    rows = fk.table("training_runs").collect()
    before = fk.validate(rows, leave_family_out=True).with_row_index("number").filter(pl.col("error").is_not_null())
    chosen, drawn = [], []
    for (family,), some in before.group_by("family", maintain_order=True):
        if not 20 <= some.height <= 150:
            continue
        pool = rows[some["number"].to_list()]

        def missed(taken, family=family, pool=pool):
            mine = fk.calibrate(taken, left_out=family)
            mine = replace(mine, constants={**constants(family), **mine.constants})
            others = pool.filter(~pl.col("id").is_in(taken["id"].to_list()))
            return fk.validate(others, calibration=mine)["error"].abs().median()

        drawn.append(sum(missed(pool.sample(5, seed=seed)) for seed in range(3)) / 3)
        chosen.append(missed(fk.Calibration.design(pool, 5)))
    assert len(chosen) > 15
    assert sum(chosen) < sum(drawn)
    assert sum(one < other for one, other in zip(chosen, drawn, strict=True)) > 0.5 * len(chosen)


def test_designed_layouts_differ(runs):
    picked = fk.Calibration.design(fk.table("training_runs").filter(group="nanotron-ultrascale-1b").collect(), k=5)
    assert picked.height == 5
    assert picked.select("tp", "pp", "micro_batch", "accelerator_count").is_unique().all()
    assert picked["tp"].n_unique() >= 3


def test_measured_memories_move_the_activation_factor_and_an_outlier_moves_it_little():
    """Peaks of software that keeps 1.5 times the counted activations; then one of them is 2.5 times higher."""
    some = fk.table("training_runs").filter(group="nanotron-ultrascale-8b", tp=2, micro_batch=2).head(5).collect()
    counted = fk.validate(some, calibration={"activation_factor": 1.5})["memory_error"] + 1.0
    measured = some.with_columns(pl.col("mem_gib_per_gpu") * counted)
    calibrated = fk.calibrate(measured)
    assert calibrated["activation_factor"] > 1.2
    assert any("activation_factor" in sentence for sentence in calibrated.summary)
    odd = measured.with_columns(pl.col("mem_gib_per_gpu") * pl.Series([1.0, 1.0, 1.0, 1.0, 2.5]))
    assert fk.calibrate(odd)["activation_factor"] == pytest.approx(calibrated["activation_factor"], rel=0.2)


def test_rows_with_memory_alone_calibrate_memory_alone(runs):
    """Rows without a time move the constants of memory; search uses them, and its step times stay the same."""
    missing = dict.fromkeys(("step_time_s", "tokens_per_s_per_gpu", "mfu", "tflops_per_gpu"))
    memories = runs.head(4).with_columns(pl.lit(value, dtype=pl.Float64).alias(name) for name, value in missing.items())
    found = fk.calibrate(memories.with_columns(pl.col("mem_gib_per_gpu") * 1.3))
    assert set(found) == {"state_factor", "activation_factor", "context_bytes"}
    assert (found.rows, found.excluded) == (4, {})
    given = {"accelerators": 64, "accelerator": "h100_sxm"}
    few = {"choices": {"micro_batch_size": [1], "recompute": ["full"], "schedule": ["1f1b"]}, "global_batch_size": 64}
    usual, own = (fk.search("llama3_8b", given | dict(more), **few).collect() for more in ({}, found))
    layout = usual.columns[: usual.columns.index("data_parallel")]
    both = usual.join(own, on=layout, suffix="_own")
    assert both.height > 20
    assert (both["memory_peak_bytes_own"] > both["memory_peak_bytes"]).all()
    assert both["step_s"].to_list() == both["step_s_own"].to_list()


def test_calibrated_intervals_reach_their_coverage_after_few_rows_and_after_most():
    shots = fk.table("few_shots").collect().group_by("rows_taken", "measured_rows").agg(pl.col("in_interval").mean())
    assert shots.height == 8
    calibrated = shots.filter(pl.col("measured_rows").ne_missing(0.0))
    assert calibrated["in_interval"].is_between(0.85, 0.95).all()
    assert shots["in_interval"].round(2).is_between(0.85, 0.95).all()


@pytest.mark.parametrize(("layouts", "factor"), [(400, 2.0), (1, (10.0 / 11.0) ** 0.5)])
def test_intervals_widen_with_leave_one_out_residuals_and_one_row_changes_them_little(layouts, factor):
    missed = np.abs([NormalDist().inv_cdf((rank + 0.5) / layouts) for rank in range(layouts)]) * 2.0
    one = np.ones(layouts)
    far_apart = 100.0 * np.arange(layouts)[:, None] * np.ones(len(LAYOUT_FEATURES))
    found = Fit(np.zeros(1), np.zeros(1), 0.0 * one, one, 0.0, missed)
    assert calibrated_scale(found, far_apart, one, one) == pytest.approx(factor, rel=0.03)


def test_without_numpy_the_error_names_the_command_to_install_it(runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(NotInstalled, match=r"pip install 'factorykit\[uncertainty\]'"):
        fk.calibrate(runs.head(1))
