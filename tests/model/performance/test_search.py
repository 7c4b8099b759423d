"""Searching layouts: nothing invalid, best first, and errors where the question makes no sense."""

import polars as pl
import pytest

import factorykit as fk
from factorykit.errors import MissingQuantity, ScenarioError, UnknownName, UnknownQuantity
from factorykit.model.performance.search import CHOICES
from factorykit.quantities import vocabulary

A100 = {"accelerators": 512, "accelerator": "a100_sxm_80gb"}


@pytest.fixture(scope="module")
def layouts():
    return fk.search("gpt3_175b", A100, global_batch_size=1536).collect()


def test_layouts_divide_and_fit(layouts):
    parts = pl.col("tensor_parallel") * pl.col("pipeline_parallel") * pl.col("context_parallel")
    assert layouts.select((parts * pl.col("data_parallel") == 512).all()).item()
    assert layouts.select((pl.col("micro_batches") % 1 == 0).all()).item()
    assert layouts["fits"].min() > 0.0


def test_the_best_layout_comes_first(layouts):
    assert layouts["step_s"].is_sorted()
    assert layouts["step_s"].null_count() == 0


def test_the_front_is_not_beaten(layouts):
    front = layouts.filter("pareto")
    for row in front.iter_rows(named=True):
        better = layouts.filter(
            (pl.col("step_s") <= row["step_s"]) & (pl.col("memory_peak_bytes") < row["memory_peak_bytes"])
        )
        assert better.is_empty()
    assert layouts["step_s"].min() == front["step_s"].min()


def test_search_and_evaluate_are_one_model(layouts):
    best = layouts.row(0, named=True)
    shape = fk.datasets.table("architectures").filter(architecture="gpt3_175b").collect().row(0, named=True)
    named = {name: value for name, value in shape.items() if name in vocabulary()}
    parts = {name: best[name] for name in layouts.columns if name.endswith("parallel") and name != "data_parallel"}
    parts |= {
        name: best[name] for name in ("virtual_stages", "micro_batch_size", "zero_stage", "recompute", "schedule")
    }
    inputs = named | parts | A100 | {"sequence_length": 4096, "global_batch_size": 1536}
    assert fk.evaluate(inputs, "step_s")["step_s"] == pytest.approx(best["step_s"], rel=1e-9)


def test_every_excluded_layout_names_its_rule():
    few = {"recompute": ["none"], "schedule": ["1f1b"], "zero_stage": [1]}
    kept = fk.search("gpt3_175b", A100, global_batch_size=1536, choices=few, keep_excluded=True).collect()
    room = (pl.col("memory_peak_bytes") <= 80e9).fill_null(value=False)
    assert kept.filter(pl.col("excluded_by").is_null() != room).is_empty()
    assert kept["excluded_by"].n_unique() > 5


def test_cost_follows_from_the_step_time():
    site = A100 | {"tokens": 3e11, "rental_usd_per_accelerator_h": 2.0, "goodput": 0.9}
    found = fk.search("gpt3_175b", site, global_batch_size=1536, objective="rental_cost_usd").head(1).collect()
    seconds = 3e11 / (1536 * 4096) * found["step_s"][0]
    assert found["rental_cost_usd"][0] == pytest.approx(seconds / 0.9 / 3600 * 512 * 2.0)


@pytest.mark.parametrize(
    ("model", "cluster", "more", "error"),
    [
        ("gpt9", A100, {}, UnknownName),
        ("gpt3_175b", "meta_24k", {}, ScenarioError),
        ("gpt3_175b", A100 | {"accelerator": "a1000"}, {}, UnknownName),
        ("mixtral_8x7b", A100 | {"experts_per_token": 9}, {}, ScenarioError),
        ("gpt3_175b", A100, {"choices": {"tensor_parallel": 8}}, ScenarioError),
        ("gpt3_175b", A100, {"choices": {"recompute": "full"}}, ScenarioError),
        ("gpt3_175b", A100 | {"accelerator": "x100"}, {}, UnknownName),
        ("gpt3_175b", {"accelerator": "h100_sxm"}, {}, ScenarioError),
        ("gpt3_175b", fk.preset("meta_24k"), {}, ScenarioError),
        ("gpt3_175b", A100, {"objective": "step"}, UnknownQuantity),
        ("gpt3_175b", A100, {"objective": "rental_cost_usd"}, MissingQuantity),
        ("gpt3_175b", A100, {"choices": {"tensor": [1]}}, UnknownName),
        ("gpt3_175b", A100, {"choices": {"zero_stage": [5]}}, ScenarioError),
        ("gpt3_175b", A100 | {"accelerators": 12.5}, {}, ScenarioError),
    ],
)
def test_what_cannot_be_searched_is_an_error(model, cluster, more, error):
    with pytest.raises(error):
        fk.search(model, cluster, global_batch_size=1536, **more)


def test_every_row_is_what_evaluate_gives():
    few = {
        "tensor_parallel": [1, 2, 8],
        "pipeline_parallel": [1, 2],
        "context_parallel": [1, 2],
        "virtual_stages": [1, 2],
    }
    few |= {"expert_parallel": [1, 4], "micro_batch_size": [1, 2], "zero_stage": [1, 3], "recompute": ["full"]}
    site = {"accelerators": 64, "accelerator": "h200_sxm", "global_batch_size": 128}
    found = fk.search("mixtral_8x7b", site, global_batch_size=128, choices=few).collect()
    shape = fk.table("architectures").filter(architecture="mixtral_8x7b").collect().row(0, named=True)
    shape = {name: value for name, value in shape.items() if name in vocabulary() and value is not None}
    checked = ("step_s", "step_low_s", "step_high_s", "memory_peak_bytes", "predicted_mfu", "fits")
    assert found.height > 20
    for row in found.select(*CHOICES, *checked).sample(20, seed=1).to_dicts():
        alone = fk.evaluate(shape | site | {name: row[name] for name in CHOICES} | {"sequence_length": 4096}, checked)
        assert alone == pytest.approx({name: row[name] for name in checked})


def test_a_preset_with_its_chip_is_a_cluster():
    site = {**fk.preset("dgx_h100"), "accelerator": "h100_sxm"}
    assert fk.search("llama3_8b", site, global_batch_size=64).collect().height > 0
