"""The performance model on measured runs: accuracy targets, and invalid rows beside valid ones."""

import math

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.model.performance.measured_steps import measured_step_s
from factorykit.model.performance.training_runs import prepared
from factorykit.model.validation.validate import errors


@pytest.fixture(scope="module")
def validated():
    runs = fk.table("training_runs").select("id", "precision", "experts", "kind", "flags").collect()
    return fk.validate().join(runs, on="id", maintain_order="left")


@pytest.fixture(scope="module")
def stated(validated):
    return validated.filter(~pl.col("assumed").str.contains("layout"))


def test_one_row_a_run_in_order(validated):
    ids = fk.table("training_runs").select("id").collect()["id"]
    assert validated["id"].to_list() == ids.to_list()
    assert validated.select((pl.col("step_s").is_null() == pl.col("reason").is_not_null()).all()).item()


def test_the_interval_holds_nine_tenths_of_rows_no_constant_saw(stated):
    seen = stated.filter(pl.col("error").is_not_null())
    inside = seen.select(pl.col("measured_s").is_between("step_low_s", "step_high_s").mean()).item()
    assert 0.85 <= inside <= 0.95


def test_measured_steps_of_a_hybrid_lie_in_its_wider_interval(validated):
    """Nemotron 3 Nano: NVIDIA's own rows on five kinds of chips, and one campaign on GH200 that started slowly."""
    rows = validated.filter(pl.col("id").str.contains("nemotron3-nano"))
    inside = rows.filter(pl.col("measured_s").is_between("step_low_s", "step_high_s"))
    assert rows.height == 33
    assert inside.height >= 31
    own = rows.filter(pl.col("family") == "megatron")
    assert own["error"].abs().max() < 0.27


def test_families_left_out_are_met_on_average(stated):
    assert errors(stated)["median_absolute_error"].median() <= 0.12
    assert errors(stated, "group")["median_absolute_error"].median() <= 0.12


def test_left_out_rows_are_met_by_kind(stated):
    kinds = stated.with_columns(
        kind=pl.when(pl.col("experts") > 1)
        .then(pl.lit("experts"))
        .when(pl.col("precision").str.contains("(?i)fp8|fp4"))
        .then(pl.lit("few bits"))
        .otherwise(pl.lit("dense"))
    )
    met = {row["kind"]: row["median_absolute_error"] for row in errors(kinds, "kind").to_dicts()}
    assert met["dense"] <= 0.14
    assert met["few bits"] <= 0.10
    assert met["experts"] <= 0.19


def test_sweeps_of_layouts_keep_their_order(stated):
    batches = fk.table("training_runs").select("id", "global_batch").collect()
    sweeps = stated.join(batches, on="id", maintain_order="left").with_columns(
        (pl.col(name) / pl.col("global_batch")).alias(name) for name in ("step_s", "measured_s")
    )
    ranks = sweeps.group_by("family").agg(pl.corr("step_s", "measured_s", method="spearman"))
    held = dict(ranks.iter_rows())
    assert held["vtrain"] >= 0.84  # the goal is 0.85
    assert held["nanotron"] >= 0.84


def test_shards_over_many_ranks_cost_the_measured_time(validated):
    """InternEvo 7B on 16 to 1,024 GPUs, ZeRO-1 over all or within eight; nanotron without stalls over 64 and more."""
    runs = fk.table("training_runs").select("id", "zero_stage", "dp", "pp").collect()
    rows = validated.join(runs, on="id", maintain_order="left")
    evo = rows.filter(pl.col("id").str.contains("internevo-7b-(zero1-all|noac)"), pl.col("accelerator_count") > 512)
    every, within = (evo.filter(pl.col("id").str.contains(name)) for name in ("zero1-all-008", "noac-008"))
    measured, predicted = (every[name][0] - within[name][0] for name in ("measured_s", "step_s"))
    assert predicted == pytest.approx(measured, rel=0.35)
    wide = rows.filter(pl.col("family") == "nanotron", pl.col("zero_stage") == 1, pl.col("dp") >= 64, pl.col("pp") == 1)
    assert abs(wide.filter(pl.col("error") > -0.4)["error"].median()) < 0.1


def test_the_layout_that_a_search_picks_from_a_sweep_is_nearly_the_fastest(validated):
    """Of 46 published sweeps of six layouts and more; those of nanotron on 256 and 512 GPUs hold stalled layouts."""
    sweep = ["framework", "model", "accelerator", "global_batch", "seq_len"]
    runs = fk.table("training_runs").select("id", *sweep).collect()
    rows = validated.join(runs, on="id", maintain_order="left").filter(pl.col("error").is_not_null())
    picked = rows.sort(-pl.col("fits"), "step_s").group_by(*sweep, "accelerator_count", maintain_order=True)
    sweeps = picked.agg(pl.len(), regret=pl.col("measured_s").first() / pl.col("measured_s").min() - 1.0)
    sweeps = sweeps.filter(pl.col("len") >= 6)
    assert sweeps["regret"].median() <= 0.02
    assert sweeps["regret"].mean() <= 0.10
    large = sweeps.filter(pl.col("framework") == "nanotron", pl.col("accelerator_count") >= 256)
    assert large["regret"].mean() < 0.35  # 0.86 before parts of tensors were counted


@pytest.mark.filterwarnings("ignore:row")
def test_the_publisher_of_a_run_changes_no_prediction():
    runs = fk.table("training_runs").collect().gather_every(8)
    names = ["organisation", "submitter"]
    renamed = runs.with_columns(pl.lit("Another Author").alias(name) for name in names)
    assert fk.validate(renamed)["step_s"].equals(fk.validate(runs)["step_s"])


def test_the_expected_error_of_a_row_is_the_median_error_of_rows_like_it(validated):
    seen = validated.filter(pl.col("error").is_not_null()).sort("expected_error")
    known, unknown = (
        rows.select(pl.col("error", "expected_error").abs().median()) for rows in (seen[:800], seen[-800:])
    )
    for rows in (known, unknown):
        assert rows["error"].item() == pytest.approx(rows["expected_error"].item(), rel=0.5)
    assert known["error"].item() < unknown["error"].item()


def test_a_throughput_without_a_batch_is_predicted_where_no_pipeline_waits():
    shape = RUN | {"pp": 1, "micro_batch": None, "global_batch": None, "sharding": "ZeRO-2"}
    unrated, rated = shape | {"tokens_per_s_per_gpu": None}, shape | {"tokens_per_s_per_gpu": 800.0}
    found = fk.validate(pl.DataFrame([unrated, rated], infer_schema_length=None))
    assert "no global batch" in found["reason"][0]
    assert found["reason"][1] is None
    assert "global_batch_size" in found["assumed"][1]


def test_few_rows_are_refused(validated):
    steps = validated.filter(pl.col("kind").is_in(["throughput", "mlperf"]))
    assert steps["reason"].is_not_null().mean() <= 0.02


def test_one_set_of_constants_serves_both_megatron_tables():
    validated = fk.validate(leave_family_out=False)
    korthikanti = validated.filter(pl.col("id").str.starts_with("korthikanti"))["error"].abs().mean()
    narayanan = validated.filter(pl.col("id").str.starts_with("megatron-2021-t1"))["error"].abs().mean()
    assert korthikanti <= 0.055  # the goal is 0.0365
    assert narayanan <= 0.12


def test_predicted_memory_agrees_with_measurements(validated):
    missed = validated.with_columns(pl.col("memory_error").abs())
    adapted = pl.col("id").str.contains("lora")
    assert missed.filter(~adapted)["memory_error"].median() <= 0.055  # the goal is 0.03
    assert missed.filter(pl.col("experts") > 1)["memory_error"].median() <= 0.065
    others = missed.filter(~adapted, ~pl.col("id").str.starts_with("nanotron"))["memory_error"]
    assert others.median() <= 0.045
    assert others.quantile(0.9) <= 0.2
    assert missed.filter(adapted, pl.col("memory_error").is_not_null()).height == 79
    assert missed.filter(adapted)["memory_error"].median() <= 0.05
    assert missed.filter(adapted)["memory_error"].quantile(0.9) <= 0.1  # 0.35 before held inputs were counted


def test_a_reported_memory_is_compared_with_its_measure():
    """One run of Hugging Face Trainer on one A100: 67.5 GiB allocated and 75.9 GiB by nvidia-smi (fms-acceleration)."""
    run = fk.table("training_runs").filter(pl.col("id").str.starts_with("fms-acceleration-mistral")).head(1).collect()
    rows = pl.concat([run] * 3).with_columns(pl.Series("memory_measure", ["allocated", "reserved", "process"]))
    allocated, reserved, process = (fk.validate(rows)["memory_error"] + 1.0).to_list()
    assert allocated < reserved < process < 1.3 * allocated


def test_layouts_that_did_not_run_fit_less_than_those_that_did(validated):
    like = fk.table("training_runs").filter(pl.col("id") == "nanotron-ultrascale-8b-001").collect()
    failed = fk.table("failed_layouts").filter(pl.col("like") == "nanotron-ultrascale-8b-001").collect()
    outcome = ["step_time_s", "tokens_per_s_per_gpu", "mfu", "mem_gib_per_gpu"]
    layouts = pl.concat([like.drop(outcome)] * failed.height).with_columns(
        failed[name].alias(name) for name in ("accelerator_count", "tp", "pp", "dp", "micro_batch", "global_batch")
    )
    crashed = fk.validate(layouts.with_columns((failed["zero"] > 0).cast(pl.Float64).alias("zero_stage")))[
        "fits"
    ].drop_nulls()
    ran = validated.filter(pl.col("id").str.starts_with("nanotron-ultrascale-8b"))["fits"]
    assert (ran <= 0.0).mean() <= 0.03
    assert (crashed < 1.0).mean() >= 0.9
    assert (crashed < 1.0).mean() > 3.0 * (ran < 1.0).mean()


def test_measured_runs_fit(validated):
    ran = validated.filter(pl.col("measured_s").is_not_null() | pl.col("memory_error").is_not_null())
    assert (ran["fits"] <= 0.0).mean() <= 0.022


def test_predictions_beat_a_constant_utilization(stated):
    constant = stated.with_columns(null=pl.col("predicted_mfu") / 0.4 * (pl.col("error") + 1.0) - 1.0)
    dense = constant.filter(pl.col("precision").is_in(["bf16", "fp16"]), pl.col("error").is_not_null())
    assert dense["error"].abs().median() < 0.6 * dense["null"].abs().median()


def test_counts_agree_with_the_sources():
    runs = fk.table("training_runs").filter(pl.col("check_params").is_not_null()).collect()
    ready, _ = prepared(runs)
    counted = fk.evaluate(ready.unique("row", maintain_order=True), "parameters")
    ratio = counted["parameters"] / runs["total_params"].gather(counted["row"])
    recounted = runs["check_params"].gather(counted["row"])
    # The only differences are learned positions of long sequences and biases, which the reference excludes.
    assert ((ratio - 1.0).abs() < 0.02).mean() > 0.91
    assert ((ratio / recounted - 1.0).abs() < 0.02).mean() > 0.91


RUN = {
    "hardware": "H100-80GB SXM",
    "accelerator_count": 64,
    "layers": 80,
    "hidden": 8192,
    "heads": 64,
    "kv_heads": 8,
    "ffn": 28672,
    "mlp_gated": 1,
    "vocab": 128256,
    "seq_len": 8192,
    "tp": 4,
    "pp": 4,
    "micro_batch": 1,
    "global_batch": 128,
    "precision": "bf16",
    "year": 2025,
}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"hardware": "Abacus 9"}, "Abacus"),
        ({"hardware": None}, "hardware"),
        ({"precision": "int4"}, "int4"),
        ({"tp": 3}, "divide"),
        ({"pp": 128, "accelerator_count": 512}, "layers"),
        ({"global_batch": None}, "batch"),
        ({"global_batch": 2}, "batch"),
        ({"layers": None}, "layers"),
        ({"hidden": -1}, "hidden"),
        ({"heads": 0}, "heads"),
        ({"accelerator_count": math.inf}, "accelerator_count"),
        ({"hidden": 1e300}, "hidden"),
        ({"kv_heads": 2.5}, "kv_heads"),
        ({"vp": 21}, "vp 21"),
        ({"kv_heads": 48}, "kv_heads"),
        ({"vocab": "many"}, "vocab must be a number"),
        ({"model": "ViT-22B"}, "predict the next token"),
        ({"optimizer": "shampoo"}, "optimizer must be one of adam"),
        ({"memory_measure": "peak"}, "memory_measure must be one of"),
        ({"experts": 8, "moe_ffn": 3584}, "top_k"),
        ({"experts": 8, "top_k": 16}, "experts_per_token = 16"),
        ({"experts": 8, "top_k": 2, "ep": 3}, "ep 3"),
        ({"experts": 8, "top_k": 2, "ep": 16}, "expert_parallel = 16"),
        ({"experts": 64, "top_k": 2, "ep": 32}, "ep 32"),
        ({"precision": "fp8", "hardware": "A100-80GB SXM"}, "fp8"),
    ],
)
def test_a_row_that_cannot_be_predicted_has_a_reason(change, word):
    rows = pl.DataFrame([RUN, RUN | change], infer_schema_length=None, strict=False)
    found = fk.validate(rows)
    assert found["step_s"][0] > 0
    assert found["step_s"][1] is None
    assert word in found["reason"][1]


@pytest.mark.parametrize(
    "written",
    [
        pl.all().cast(pl.String),
        pl.all().cast(pl.String) + "\r",
        pl.all().cast(pl.String).cast(pl.Categorical),
        pl.lit(None).alias("network"),
        pl.lit(5).alias("group"),
        pl.lit(math.nan).alias("network"),
        pl.lit("bfloat16").alias("precision"),
    ],
)
def test_types_of_columns_change_no_prediction(written):
    plain = pl.DataFrame([RUN | {"sharding": "none", "step_time_s": 9.0}])
    found, same = fk.validate(plain.with_columns(written)), fk.validate(plain)
    assert found["reason"].to_list() == [None]
    assert found["step_s"].to_list() == same["step_s"].to_list()
    assert found["error"].to_list() == same["error"].to_list()


def test_a_column_of_lists_is_refused():
    with pytest.raises(ScenarioError, match=r"column tp is List"):
        fk.validate(pl.DataFrame([RUN | {"tp": [4]}]))


@pytest.mark.filterwarnings("ignore:.*is not compared")
@pytest.mark.parametrize(
    "stated",
    [{"step_time_s": 0.0}, {"step_time_s": -1.0}, {"step_time_s": math.nan}, {"mfu": 43.0}, {"tflops_per_gpu": 4e14}],
)
def test_an_invalid_measurement_is_excluded(stated):
    found = fk.validate(pl.DataFrame([RUN | stated]))
    assert found["step_s"][0] > 0
    assert found["measured_s"].to_list() == found["error"].to_list() == [None]


def test_memory_of_the_host_is_not_that_of_the_chip():
    names = ["GH200 480GB", "GH200", "A100-80GB SXM"]
    shape = RUN | {"tp": 4, "pp": 1, "sharding": "ZeRO-1"}
    host, chip, small = fk.validate(pl.DataFrame([shape | {"hardware": name} for name in names])).to_dicts()
    assert 80e9 * 1.25 < host["memory_peak_bytes"] < 480e9
    assert max(host["fits"], chip["fits"], small["fits"]) < 1.0


def test_columns_a_frame_lacks_are_unknown():
    few = {name: RUN[name] for name in ("hardware", "accelerator_count", "layers", "hidden", "heads", "seq_len")}
    found = fk.validate(pl.LazyFrame([few | {"global_batch": 128}]))
    assert "layout" in found["assumed"][0]


@pytest.mark.parametrize("experts", [{}, {"experts": 8, "top_k": 2, "moe_ffn": 3584, "ep": 8}])
def test_an_unstated_layout_is_the_fastest_that_fits(experts):
    open_ = {"tp": None, "pp": None, "micro_batch": None, "ep": None}
    found = fk.validate(pl.DataFrame([RUN | experts, RUN | experts | open_], infer_schema_length=None))
    assert found["fits"].min() > 0.0
    assert found["step_s"][1] <= found["step_s"][0]
    width = found["step_high_s"] / found["step_low_s"]
    waits_alike = not experts  # the fastest layout of a mixture waits less, which narrows its interval
    assert width[1] > width[0] * (1.0 if waits_alike else 0.95)


def test_omni_path_is_slower_than_its_links():
    networks = ["4x100 Gb/s InfiniBand per node", "4x100 Gb/s Omni-Path per node"]
    found = fk.validate(pl.DataFrame([RUN | {"network": network} for network in networks]))
    assert found["step_s"][1] > found["step_s"][0]


def test_late_mlperf_submissions_without_a_precision_use_8_bits_where_the_chip_has_them():
    submitted = RUN | {"kind": "mlperf", "release_month": "2025-11", "precision": None}
    rows = [submitted, submitted | {"hardware": "A100-80GB SXM"}, submitted | {"release_month": "2023-06"}]
    stated = [row | {"precision": precision} for row, precision in zip(rows, ("fp8", "bf16", "bf16"), strict=True)]
    implicit, explicit = (fk.validate(pl.DataFrame(some, infer_schema_length=None)) for some in (rows, stated))
    assert implicit["step_s"].to_list() == explicit["step_s"].to_list()
    assert implicit["assumed"].str.contains("precision").all()


@pytest.mark.parametrize("rows", [[RUN], pl.DataFrame(), pl.DataFrame({"x": [1]}), pl.DataFrame([RUN]).clear()])
def test_rows_must_be_a_table_of_runs(rows):
    with pytest.raises(ScenarioError):
        fk.validate(rows)


def test_a_throughput_is_a_step_time():
    rows = [RUN | {"tokens_per_s_per_gpu": 1000.0, "accelerator_count": count} for count in ("64", "64 GPUs", "8 x 8")]
    rows = pl.DataFrame(rows)
    assert measured_step_s(rows, prepared(rows)[0]).to_list() == pytest.approx([128 * 8192 / 64000] * 3)


def test_a_flop_rate_is_a_step_time():
    run = RUN | {"recompute": "full"}
    ready, _ = prepared(pl.DataFrame([run]))
    counted = fk.evaluate(ready, ["model_flop_per_token_full_attention", "peak_16bit_flop_per_s"])
    flop = 128 * 8192 * counted["model_flop_per_token_full_attention"][0] / 64
    rows = [
        run | {"tflops_per_gpu": 400.0, "mfu": None, "flops_basis": "model"},
        run | {"tflops_per_gpu": 400.0, "mfu": None, "flops_basis": "hardware"},
        run | {"tflops_per_gpu": None, "mfu": 0.4, "flops_basis": None},
    ]
    found = measured_step_s(pl.DataFrame(rows), prepared(pl.DataFrame(rows))[0])
    assert found[0] == pytest.approx(flop / 400e12)
    assert found[1] == pytest.approx(4 / 3 * flop / 400e12)
    assert found[2] == pytest.approx(flop / (0.4 * counted["peak_16bit_flop_per_s"][0]))


@pytest.mark.parametrize(
    ("column", "written", "plain"),
    [
        ("step_time_s", "17.5 s", 17.5),
        ("step_time_s", "17500 ms", 17.5),
        ("tflops_per_gpu", "0.4 PFLOP/s", 400.0),
        ("step_time_s", "17.5 s/it", 17.5),
        ("tflops_per_gpu", "~400 TFLOPs/GPU", 400.0),
        ("tokens_per_s_per_gpu", "1.1k tokens/s/GPU", 1100.0),
        ("mfu", "40%", 0.4),
    ],
)
def test_measurements_may_have_units(column, written, plain):
    values = [fk.validate(pl.DataFrame([RUN | {column: cell}]))["measured_s"][0] for cell in (written, plain)]
    assert values[0] == values[1] is not None


@pytest.mark.parametrize(("column", "cell"), [("step_time_s", "17,5"), ("mfu", 40.0)])
def test_a_measurement_that_cannot_be_read_is_reported(column, cell):
    with pytest.warns(fk.FactorykitWarning, match=f"{column} = {cell!r} is not compared"):
        assert fk.validate(pl.DataFrame([RUN | {column: cell}]))["measured_s"][0] is None


def test_a_network_whose_rate_cannot_be_read_is_among_the_assumptions():
    found = fk.validate(pl.DataFrame([RUN | {"network": text} for text in ("100 Gb/s Ethernet", "1x100 Gb/s")]))
    assert ["network" in assumed.split(", ") for assumed in found["assumed"]] == [True, False]


def test_a_stated_year_holds_for_both_formats_of_16_bits():
    rows = pl.DataFrame([RUN | {"precision": precision, "year": 2025} for precision in ("bf16", "fp16")])
    bf16, fp16 = fk.validate(rows)["step_s"]
    assert fp16 == pytest.approx(bf16, rel=0.1)


def test_numbers_written_as_text_are_numbers():
    numbers = pl.DataFrame([RUN | {"step_time_s": 20.0}])
    texts = numbers.cast(pl.String)
    assert fk.validate(texts)["step_s"][0] == fk.validate(numbers)["step_s"][0]
    assert "hidden must be a number" in fk.validate(texts.with_columns(hidden=pl.lit("wide")))["reason"][0]


LAYOUT = {
    "accelerator": "h100_sxm",
    "accelerators": 64,
    "layers": 80,
    "hidden_size": 8192,
    "ffn_size": 28672,
    "gated_ffn": 1,
    "attention_heads": 64,
    "kv_heads": 8,
    "vocabulary_size": 128256,
    "sequence_length": 8192,
    "tensor_parallel": 4,
    "pipeline_parallel": 4,
    "micro_batch_size": 1,
    "global_batch_size": 128,
}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"tensor_parallel": 3, "accelerators": 48}, "attention_heads"),
        ({"accelerators": 10}, "data_parallel"),
        ({"pipeline_parallel": 128, "accelerators": 512}, "layers"),
        ({"micro_batch_size": 3}, "micro_batches"),
        ({"experts": 8, "experts_per_token": 2, "expert_parallel": 3}, "experts"),
    ],
)
def test_an_invalid_layout_has_no_prediction(change, word):
    with pytest.raises(ScenarioError, match=word):
        fk.evaluate(LAYOUT | change, "step_s")
    rows = pl.DataFrame([LAYOUT | {"experts": 0, "experts_per_token": 0, "expert_parallel": 1}])
    both = pl.concat(
        [rows, rows.with_columns(**{name: pl.lit(value) for name, value in change.items()})], how="vertical_relaxed"
    )
    with pytest.raises(ScenarioError, match="row 1"):
        fk.evaluate(both, "step_s")
    lazily = fk.evaluate(both.lazy(), "step_s").collect()["step_s"]
    assert lazily[0] > 0
    assert lazily[1] is None


def test_an_unknown_accelerator_is_refused():
    with pytest.raises(fk.FactorykitError, match="x100"):
        fk.evaluate(LAYOUT | {"accelerator": "x100"}, "step_s")
    with pytest.raises(fk.FactorykitError, match="x100"):
        fk.evaluate(pl.DataFrame([LAYOUT | {"accelerator": "x100"}]), "step_s")


ROW = {"hardware": "H100-80GB SXM", "accelerator_count": 64, "model": "Llama 3 70B", "seq_len": 8192, "tp": 4, "pp": 4}
ROW |= {"cp": 2, "vp": 5, "micro_batch": 1, "global_batch": 128, "precision": "bf16", "year": 2025}


MISTAKES = (
    ({"tflops_per_gpu": 4e14}, "a rate of 4e+14 is not compared, above the peak of the chip; give tflops_per_gpu"),
    ({"mem_gib_per_gpu": 5e10}, "the measured memory is 7.41e+08 times the prediction; check units and counts"),
    ({"step_time_s": 17_000.0}, "the measured time of a step is 1.03e+03 times the prediction; check units and counts"),
    ({"global_batch_tokens": 4e6}, "global_batch_tokens = 4e+06 contradicts the other columns, from which 1.04858e+06"),
    ({"gradient_accumulation_steps": 32}, "global_batch = 128 contradicts the other columns, from which 64 follows"),
    ({"dp": 3}, "dp = 3 contradicts the other columns, from which 2 follows"),
    ({"dp": 4, "global_batch_tokens": 1e6, "gradient_accumulation_steps": 64}, ""),
    ({"step_time_s": 200.0, "mfu": 0.04}, ""),
)


def test_honest_mistakes_in_rows_cause_a_warning_each():
    rows = [ROW | mistake | {"step_time_ms": 17.0, "flavour": 1} for mistake, _ in MISTAKES]
    with pytest.warns(fk.FactorykitWarning) as caught:
        fk.validate(pl.DataFrame(rows, infer_schema_length=None))
    messages = sorted(str(warning.message) for warning in caught)
    unknown = "columns that the table training_runs does not have are not read: "
    assert messages[0] == f"{unknown}'step_time_ms' (nearest is 'step_time_s'), 'flavour'"
    assert len(messages) == len([text for _, text in MISTAKES if text]) + 1
    for number, (message, (_, text)) in enumerate(zip(messages[1:], MISTAKES, strict=False)):
        assert message.startswith(f"row {number}: {text}")
