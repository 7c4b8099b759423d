"""Search for layouts: only valid layouts, sorted by time, and errors for invalid calls."""

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName, UnknownQuantity
from factorykit.core.vocabulary import vocabulary
from factorykit.model.performance.layouts import CANDIDATES, MODULES_YEAR, PARTS, candidates

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
    assert layouts["fits"].is_sorted(descending=True)
    assert layouts.filter(fits=1.0)["step_s"].is_sorted()
    assert layouts.filter(fits=0.5)["step_s"].is_sorted()
    assert layouts["step_s"].null_count() == 0


def test_the_front_is_not_dominated(layouts):
    front = layouts.filter("pareto")
    for row in front.iter_rows(named=True):
        better = layouts.filter(
            (pl.col("step_s") <= row["step_s"]) & (pl.col("memory_peak_bytes") < row["memory_peak_bytes"])
        )
        assert better.is_empty()
    assert layouts["step_s"].min() == front["step_s"].min()


def test_search_and_evaluate_are_one_model(layouts):
    best = layouts.row(0, named=True)
    named = dict(fk.architecture("gpt3_175b"))
    parts = {name: best[name] for name in layouts.columns if name.endswith("parallel") and name != "data_parallel"}
    names = ("virtual_stages", "micro_batch_size", "zero_stage", "recompute", "recompute_share", "schedule")
    parts |= {name: best[name] for name in names}
    inputs = named | parts | A100 | {"sequence_length": 4096, "global_batch_size": 1536}
    assert fk.evaluate(inputs, "step_s")["step_s"] == pytest.approx(best["step_s"], rel=1e-9)


def test_every_excluded_layout_names_its_rule():
    few = {"recompute": ["none"], "schedule": ["1f1b"], "zero_stage": [1]}
    kept = fk.search("gpt3_175b", A100, global_batch_size=1536, choices=few, keep_excluded=True).collect()
    excluded = kept.filter(excluded_by="memory")
    assert excluded["fits"].max() == 0.0
    listed = kept.filter(pl.col("excluded_by").is_null())
    assert listed["fits"].is_sorted(descending=True)
    assert listed.filter(fits=1.0)["memory_peak_bytes"].max() < 80e9 < listed["memory_peak_bytes"].max()
    assert kept["excluded_by"].n_unique() > 4


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
def test_an_invalid_search_is_an_error(model, cluster, more, error):
    with pytest.raises(error):
        fk.search(model, cluster, global_batch_size=1536, **more)


def test_every_row_equals_evaluate():
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
    for row in found.select(*PARTS, *checked).sample(20, seed=1).to_dicts():
        alone = fk.evaluate(shape | site | {name: row[name] for name in PARTS} | {"sequence_length": 4096}, checked)
        assert alone == pytest.approx({name: row[name] for name in checked})


def test_a_preset_with_its_chip_is_a_cluster():
    site = {**fk.preset("dgx_h100"), "accelerator": "h100_sxm"}
    assert fk.search("llama3_8b", site, global_batch_size=64).collect().height > 0


SMALL = {"accelerators": 64, "accelerator": "h100_sxm"}
PLAIN = {"recompute": ["none"], "schedule": ["1f1b"]}


@pytest.fixture(scope="module")
def everything():
    return fk.search("llama3_8b", SMALL, global_batch_size=128, choices=PLAIN, keep_excluded=True).collect()


def test_the_front_holds_every_layout_that_is_not_dominated(layouts, everything):
    for found in (layouts, everything.filter(pl.col("excluded_by").is_null())):
        front = found.filter("pareto")
        for step_s, bytes_ in found.filter(~pl.col("pareto")).select("step_s", "memory_peak_bytes").sample(50).rows():
            beaten = (pl.col("step_s") <= step_s) & (pl.col("memory_peak_bytes") <= bytes_)
            assert not front.filter(beaten).is_empty()
    assert not everything.filter(pl.col("excluded_by").is_not_null())["pareto"].any()


RATES = ("predicted_mfu", "model_flop_per_s_per_accelerator")


@pytest.mark.parametrize("objective", [*RATES, "step_s", "memory_peak_bytes"])
def test_more_is_better_of_a_rate_and_less_of_a_time_or_of_bytes(objective):
    found = fk.search("llama3_8b", SMALL, global_batch_size=128, choices=PLAIN, objective=objective).collect()
    rate = objective in RATES
    assert found[objective][0] == (found[objective].max() if rate else found[objective].min())
    assert found[objective].is_sorted(descending=rate)


def test_valid_layouts_come_before_excluded_ones(everything):
    excluded = everything["excluded_by"].is_not_null()
    assert excluded.is_sorted()
    assert everything.filter(~excluded)["step_s"].is_sorted()
    broken = everything.filter(excluded & (pl.col("excluded_by") != "memory"))
    assert broken["step_s"].null_count() == broken.height > 0


def test_candidates_follow_from_fabric_layers_sequence_and_count(everything):
    """Tensor parallel within the eight chips of NVLink; short sequences stay whole; stages divide 64 chips."""
    tried = {name: sorted(everything[name].unique().to_list()) for name in PARTS}
    assert tried["tensor_parallel"] == tried["micro_batch_size"] == [1, 2, 4, 8]
    assert tried["context_parallel"] == tried["expert_parallel"] == [1]
    assert tried["pipeline_parallel"] == [1, 2, 4, 8, 16, 32]
    assert tried["zero_stage"] == [1, 2, 3]
    chunks = everything.filter(pl.col("virtual_stages") > 1).select("pipeline_parallel", "virtual_stages").unique()
    assert chunks.select(((32 + 3) % pl.first() > 3) | ((32 + 3) % (pl.first() * pl.last()) <= 3)).to_series().all()
    alone = {"virtual_stages": [1], "micro_batch_size": [1]} | PLAIN
    rack = SMALL | {"accelerators": 72, "accelerator": "gb200"}
    wide = fk.search("mixtral_8x7b", rack, global_batch_size=72, choices=alone, keep_excluded=True).collect()
    assert sorted(wide["tensor_parallel"].unique()) == [1, 2, 4, 8, 16]
    assert sorted(wide["pipeline_parallel"].unique()) == [1, 2, 3, 4, 6, 8, 9, 12, 18, 24]
    assert sorted(wide["expert_parallel"].unique()) == [1, 2, 4, 8]


def test_published_layouts_of_large_runs_are_candidates():
    """Published parts of pipelines on at least 128 accelerators."""
    columns = {"tp": "tensor_parallel", "pp": "pipeline_parallel", "vp": "virtual_stages"}
    runs = fk.table("training_runs").filter(pl.col("accelerator_count") >= 128, pl.col("pp") > 1).collect()
    for column, name in columns.items():
        published = runs[column].drop_nulls()
        assert sum(value in CANDIDATES[name].values for value in published) > 0.9 * published.len() > 10.0, name


CASES = [
    ("llama3_405b", "h100_sxm", 4096, {}),
    ("llama3_70b", "h100_sxm", 1024, {}),
    ("llama3_70b", "mi300x", 768, {"sequence_length": 32_768.0}),
    ("gpt3_175b", "a100_sxm_80gb", 512, {"sequence_length": 2048.0}),
    ("mixtral_8x7b", "b200", 96, {"precision": "fp8"}),
    ("deepseek_v3", "h200_sxm", 2048, {"sequence_length": 4096.0}),
]


@pytest.mark.parametrize(("model", "chip", "count", "more"), CASES, ids=lambda case: str(case)[:16])
def test_search_and_plan_choose_the_same_layout(model, chip, count, more):
    given = {"sequence_length": 8192.0, "global_batch_size": 1536.0} | more
    plan = fk.plan(model, tokens="10T", chips=chip, counts=[count], draws=2, **given).best.row(0, named=True)
    cluster = {"accelerators": count, "accelerator": chip, **given}
    batch = cluster.pop("global_batch_size")
    best = fk.search(model, cluster, global_batch_size=batch, assume=True).head(1).collect().row(0, named=True)
    assert {name: best[name] for name in PARTS} == {name: plan[name] for name in PARTS}
    for name in ("step_s", "recompute_share", "memory_peak_bytes"):
        assert best[name] == pytest.approx(plan[name], rel=1e-12)


def test_weights_of_a_pipeline_stay_whole_by_default(everything):
    assert everything.filter(pl.col("zero_stage") >= 2)["pipeline_parallel"].unique().to_list() == [1.0]
    asked = fk.search("llama3_8b", SMALL, global_batch_size=128, choices=PLAIN | {"zero_stage": [2]}).collect()
    assert asked["pipeline_parallel"].max() > 1.0


@pytest.mark.parametrize(("name", "value"), [("accelerators", 12.5), ("layers", 31.5), ("global_batch_size", 127.5)])
def test_counts_must_be_whole_numbers(name, value):
    given = {**fk.architecture("llama3_8b"), **SMALL, "sequence_length": 4096, "global_batch_size": 128, name: value}
    cluster = {"accelerators": given.pop("accelerators"), "accelerator": given.pop("accelerator")}
    with pytest.raises(ScenarioError, match=f"{name} = {value} is not whole"):
        fk.search(given, cluster, global_batch_size=given.pop("global_batch_size"))


def test_a_long_sequence_is_split_further():
    layout = {"pipeline_parallel": 1, "tensor_parallel": 8, "zero_stage": 1, "recompute": "full", "schedule": "1f1b"}
    cluster = layout | {"accelerators": 512, "accelerator": "h100_sxm", "micro_batch_size": 1, "sequence_length": 2**20}
    found = fk.search("llama3_8b", cluster, global_batch_size=4).collect()
    assert {16.0, 32.0, 64.0} >= set(found["context_parallel"]) > set()


def test_fixed_quantities_are_not_varied():
    fixed = SMALL | {"tensor_parallel": 2, "recompute": "none", "schedule": "1f1b"}
    found = fk.search("llama3_8b", fixed, global_batch_size=128)
    assert "tensor_parallel" not in found.collect_schema()
    both = (
        fk.search("llama3_8b", SMALL, global_batch_size=128, choices=PLAIN | {"tensor_parallel": [2]}).head(1).collect()
    )
    assert found.head(1).collect()["step_s"].item() == pytest.approx(both["step_s"].item(), rel=1e-12)


def test_a_layout_takes_the_same_time_in_a_search_an_evaluation_and_a_measured_row() -> None:
    """Without a named framework, one rule determines its features, in all three interfaces."""
    degrees = {"tensor_parallel": 8.0, "pipeline_parallel": 16.0, "context_parallel": 1.0, "virtual_stages": 8.0}
    layout = degrees | {"expert_parallel": 1.0, "zero_stage": 1.0, "micro_batch_size": 1.0, "schedule": "1f1b"}
    cluster = {"accelerators": 16_384, "accelerator": "h100_sxm", "sequence_length": 8192.0, "recompute_share": 1.0}
    chosen = {"global_batch_size": 2048, "choices": {"recompute": ["full"]}}
    searched = fk.search("llama_3_1_405b", {**cluster, **layout}, **chosen).collect()["step_s"][0]
    scenario = {**fk.architecture("llama_3_1_405b"), **cluster, **layout, "recompute": "full"}
    shape = {"layers": 126, "hidden": 16384, "heads": 128, "kv_heads": 8, "ffn": 53248, "mlp_gated": 1, "vocab": 128256}
    row = shape | {"seq_len": 8192, "hardware": "H100-80GB SXM", "accelerator_count": 16384, "global_batch": 2048}
    row |= {"tp": 8, "pp": 16, "cp": 1, "vp": 8, "micro_batch": 1, "precision": "bf16", "recompute": "full"}
    validated = fk.validate(pl.DataFrame([row | {"sharding": "ZeRO-1"}]))["step_s"][0]
    evaluated = fk.evaluate({**scenario, "precision": "bf16", "global_batch_size": 2048}, "step_s")["step_s"]
    assert searched == pytest.approx(evaluated, rel=1e-9)
    assert validated == pytest.approx(evaluated, rel=1e-9)


def test_the_layout_of_llama_3_405b_comes_near_its_measured_step() -> None:
    published = {"tensor_parallel": [8], "pipeline_parallel": [16], "context_parallel": [1], "micro_batch_size": [1]}
    cluster = {"accelerators": 16384, "accelerator": "h100_sxm", "sequence_length": 8192}
    choices = published | {"zero_stage": [1]}
    best = fk.search("llama_3_1_405b", cluster, global_batch_size=2048, choices=choices).collect().row(0, named=True)
    assert best["step_s"] == pytest.approx(6.72, rel=0.1)  # Llama 3 paper, Table 4: 400 TFLOP/s, attention counted
    parts = ("virtual_stages", "recompute", "recompute_share", "schedule", "zero_stage")
    layout = {name: values[0] for name, values in published.items()} | {name: best[name] for name in parts}
    again = {**fk.architecture("llama_3_1_405b"), **cluster, "global_batch_size": 2048, **layout}
    assert fk.evaluate(again, "step_s")["step_s"] == pytest.approx(best["step_s"], rel=1e-12)


def test_deepseek_v3_fits_as_it_was_run_and_comes_near_its_step() -> None:
    """PP16, EP64, DualPipe and modules recomputed on 2,048 H800; 19.9 s a step (DeepSeek-V3; Insights, table 4)."""
    cluster = {"accelerators": 2048, "accelerator": "h800_sxm", "precision": "fp8"}
    layout = {"pipeline_parallel": [16], "expert_parallel": [64], "tensor_parallel": [1], "micro_batch_size": [1]}
    layout |= {"schedule": ["dualpipe"], "recompute": ["none", "modules"]}
    found = fk.search("deepseek_v3", cluster, global_batch_size=15360, choices=layout).collect()
    best = found.filter(virtual_stages=1.0, context_parallel=1.0, zero_stage=1.0).row(0, named=True)
    assert best["recompute"] == "modules"
    assert best["memory_peak_bytes"] < 0.9 * 80e9
    assert best["step_s"] == pytest.approx(19.9, rel=0.12)


@pytest.mark.parametrize(("year", "experts", "tried"), [(2025.0, 256.0, 3), (2026.0, 0.0, 3), (2026.0, 256.0, 4)])
def test_modules_are_recomputed_in_models_with_experts_once_software_can(year, experts, tried) -> None:
    fixed = {"experts": experts, "software_year": year, "layers": 61.0, "sequence_length": 4096.0}
    assert len(candidates({**fixed, "scale_up_domain": 8.0}, {}, [256.0])["recompute"]) == tried


def test_modules_are_tried_from_the_release_that_brought_them():
    brought = fk.table("framework_features").filter(quantity="recompute_modules").collect()["since_year"]
    assert brought.min() == MODULES_YEAR
