"""Predicted serving against measured points and benchmark results that were left out."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factorykit as fk
from benchmarks.validation import configurations, regrets
from factorykit.core.errors import ScenarioError
from factorykit.model.serving import predict
from factorykit.model.serving.points import architecture_of, read_point
from factorykit.model.serving.validate import sweep

ROW = {"id": "mine", "backend": "vllm", "model_path": "meta-llama/Llama-3.1-70B", "system": "h200_sxm"}
ROW |= {"mode": "agg", "precision": "fp8", "isl": 1024, "osl": 1024, "batch_size": 16, "tp_size": 4}


@cache
def shipped() -> pl.DataFrame:
    return fk.validate_serving()


@pytest.mark.parametrize(
    ("latency", "median", "p90", "low", "high"), [("tpot", 0.07, 0.27, 0.85, 0.95), ("ttft", 0.20, 0.80, 0.85, 0.95)]
)
def test_points_are_predicted_without_their_sweep(
    latency: str, median: float, p90: float, low: float, high: float
) -> None:
    points = fk.table("serving_points").collect()
    found = shipped().head(points.height)
    error = found[f"{latency}_error"].abs()
    measured = points[f"silicon_{latency}_ms"] / 1e3
    inside = measured.is_between(found[f"{latency}_low_s"], found[f"{latency}_high_s"]).mean()
    assert found["reason"].null_count() == points.height
    assert error.median() < median
    assert error.quantile(0.9) < p90
    assert low < inside < high


def test_a_layout_that_a_row_omits_comes_from_the_recipe_of_the_benchmark() -> None:
    """InferenceX: eight prefill workers of four GB200 and one decode worker of 32, three drafted tokens."""
    row = ROW | {"backend": "trtllm", "model_path": "deepseek-ai/DeepSeek-R1", "system": "gb200", "precision": "fp4"}
    row |= {"mode": "disagg", "isl": 8192.0, "osl": 1024.0, "concurrency": 666.0}
    row |= {"prefill_tp_size": 4, "decode_tp_size": 32, "locator": "measured=2026-03-23"}
    point = read_point(row)
    assert (point.load["prefill_workers"], point.load["workers"]) == pytest.approx((8.0, 1.0))
    assert point.decode["draft_tokens"] == 3.0
    assert point.decode["attention_data_parallel"] == pytest.approx(32.0)
    assert read_point(row | {"decode_tp_size": 7}).words["mode"] == "disagg_open"


@pytest.mark.parametrize("layout", [(16, 1, 4, 4), (4, 1, 1, 4), (4, 4, 1, 16)])
def test_a_server_whose_accelerators_an_export_counts_twice_is_read_as_one(layout: tuple[int, ...]) -> None:
    """Three exports of one measurement print four accelerators in three ways."""
    names = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    system = {"system": "b200_sxm", "model_path": "MiniMaxAI/MiniMax-M2.5"}
    point = read_point(ROW | system | dict(zip(names, map(float, layout), strict=True)))
    assert (point.decode["tensor_parallel"], point.decode["attention_data_parallel"]) == (4.0, 1.0)


@pytest.mark.parametrize(
    ("version", "day", "drafts"),
    [
        ("1.2.0rc6.post2", "2026-02-23", 0.0),
        ("1.2.0rc6.post3", "2026-02-23", 3.0),
        ("1.1.0rc2.post2", "2025-12-15", 0.0),
        ("1.1.0rc2.post2", "2026-01-14", 3.0),
    ],
)
def test_drafted_tokens_come_from_the_recipe_of_the_version_and_day(version: str, day: str, drafts: float) -> None:
    row = ROW | {"backend": "trtllm", "model_path": "deepseek-ai/DeepSeek-R1", "system": "b200_sxm", "tp_size": 8}
    row |= {"batch_size": 8, "isl": 8192.0, "osl": 1024.0}
    point = read_point(row | {"backend_version": version, "locator": f"measured={day}"})
    assert point.decode["draft_tokens"] == drafts


@pytest.mark.parametrize(("target", "median", "p90"), [("tpot", 0.035, 0.20), ("ttft", 0.07, 0.44)])
def test_points_are_predicted_from_the_others_of_their_table(target: str, median: float, p90: float) -> None:
    residual = predict.known(target)[2]
    mean, half = predict.without(target, np.arange(len(residual)))
    error = np.abs(np.expm1(mean - residual))
    assert np.median(error) < median
    assert np.quantile(error, 0.9) < p90
    assert 0.85 < (np.abs(mean - residual) < half).mean() < 0.95


@pytest.mark.parametrize("word", ["chip", "model"])
@pytest.mark.parametrize(("target", "median", "p90"), [("tpot", 0.15, 0.45), ("ttft", 0.375, 0.95)])
def test_points_are_predicted_without_their_chip_or_model(word: str, target: str, median: float, p90: float) -> None:
    words, _, residual = predict.known(target)
    mean, half = predict.without(target, [row[word] for row in words])
    error = np.abs(np.expm1(mean - residual))
    assert np.median(error) < median
    assert np.quantile(error, 0.9) < p90
    assert 0.85 < (np.abs(mean - residual) < half).mean() < 0.96


def test_benchmark_results_are_predicted_without_their_system() -> None:
    results = fk.table("inference_results").collect()
    found = shipped().tail(results.height).with_columns(results["scenario"])
    inside = results["tokens_per_s"].is_between(found["tokens_per_s_low"], found["tokens_per_s_high"])
    for scenario, median, p90 in (("Offline", 0.15, 0.40), ("Server", 0.20, 0.45), ("Interactive", 0.40, 1.0)):
        error = found.filter(scenario=scenario)["tokens_per_s_error"].abs()
        assert error.median() < median
        assert error.quantile(0.9) < p90
        most = 1.0 if scenario == "Interactive" else 0.96
        assert 0.85 <= inside.filter(results["scenario"] == scenario).mean() <= most
    assert found["reason"].null_count() == results.height


def test_formulas_alone_find_the_offline_throughput_of_gpus_within_a_factor_of_two() -> None:
    """Of all models alike: prompts of 9,429 tokens (Llama 3.1 405B) and of 222 (Llama 2 70B), dense and of experts."""
    words, _, residual = predict.known("benchmark")
    frame = pl.DataFrame(words).with_columns(ratio=pl.Series(np.exp(residual)))
    gpus = frame.filter(pl.col("mode") == "Offline", ~pl.col("chip").str.starts_with("xeon"))
    assert gpus["model"].n_unique() == 5
    assert gpus["ratio"].is_between(0.5, 2.0).all()


def test_tighter_limits_of_a_benchmark_never_serve_more() -> None:
    """MLPerf: offline has no limit, server 2 s and 200 ms, interactive 450 ms and 40 ms (Llama 2 70B)."""
    row = fk.table("inference_results").filter(id="5.1-0001_llama2-70b-99_offline").collect().row(0, named=True)
    scenarios = ("Offline", "Server", "Interactive")
    points = [predict.read_submission({**row, "scenario": scenario}) for scenario in scenarios]
    offline, server, interactive = predict.benchmark_tokens_per_s(points)
    assert offline >= server > interactive


@pytest.mark.parametrize(("word", "median", "p90"), [("chip", 0.10, 0.25), ("model", 0.20, 0.65)])
def test_offline_results_are_predicted_without_their_chip_or_model(word: str, median: float, p90: float) -> None:
    words, _, residual = predict.known("benchmark")
    mean, half = predict.without("benchmark", [row[word] for row in words])
    offline = np.array([row["mode"] == "Offline" for row in words])
    error = np.abs(np.expm1(mean - residual))[offline]
    assert np.median(error) < median
    assert np.quantile(error, 0.9) < p90
    assert (np.abs(mean - residual) < half).mean() > 0.85


def test_a_row_needs_no_measured_column_and_more_users_wait_longer() -> None:
    hybrid = {"model_path": "nvidia/Nemotron-3-Super-120B-A12B", "pp_size": float("nan")}
    rows = pl.DataFrame([ROW, ROW | {"batch_size": 64}, ROW | hybrid, ROW | {"model_path": "unheard/of"}])
    few, many, mixed, unknown = fk.validate_serving(rows).iter_rows(named=True)
    assert mixed["reason"] is None
    assert few["tpot_low_s"] < few["tpot_s"] < few["tpot_high_s"]
    assert many["tpot_s"] > few["tpot_s"]
    assert many["tokens_per_s"] > few["tokens_per_s"]
    assert few["ttft_error"] is None
    assert few["reason"] is None
    assert unknown["tpot_s"] is None
    assert "unheard/of" in unknown["reason"]


def test_requests_whose_cache_does_not_fit_wait_while_the_others_run() -> None:
    """Llama 3 70B in 8 bits on one H200: 57 GB are left, and 1.34 GB a request of 8,192 tokens in 8 bits."""
    loads = (16, 32, 64, 128, 256)
    rows = [ROW | {"tp_size": 1, "isl": 8192, "backend": "trtllm", "batch_size": load} for load in loads]
    found = predict.rows_of([read_point(row) for row in rows])
    running, waiting = found.decode["concurrent_requests"].to_numpy(), found.load["waiting"].to_numpy()
    assert running * waiting == pytest.approx(np.array(loads))
    assert waiting[:2].tolist() == [1.0, 1.0]
    assert running[-1] == running[-2] == pytest.approx(57e9 / 1.51e9 * 1.25, rel=0.05)
    latencies = predict.physics(found)
    per_token, first = latencies.tpot, latencies.ttft
    assert per_token[-1] == per_token[-2]
    assert waiting[-1] * (first[-2] + 1023.0 * per_token[-1]) == pytest.approx(
        waiting[-2] * (first[-1] + 1023.0 * per_token[-1])
    )  # Little: as many requests run at either load


def test_measured_points_beyond_the_memory_wait_as_long_as_the_formulas_say() -> None:
    """Of the points that wait at least half as long as they run, by the formulas; before, these found a tenth."""
    rows, _, ttft, tpot = predict.measured()
    full = (rows.load["waiting"] > 1.5).to_numpy()
    assert full.sum() >= 5
    assert np.median(np.abs(ttft[full])) < 0.5
    assert np.median(np.abs(tpot[full])) < 0.3


def test_points_of_one_layout_are_one_sweep_however_its_mean_is_rounded() -> None:
    words = {"engine": "vllm"}
    layout = {"input_tokens": 1.0, "output_tokens": 1.0, "attention_data_parallel": 1.0}
    first, second = (sweep(words, {**layout, "tensor_parallel": size}) for size in (8.0, 7.999999999999998))
    assert first == second


def test_a_configuration_that_is_predicted_exactly_is_chosen_without_regret() -> None:
    rows = predict.measured()[0]
    sweeps = [" ".join(row.values()) for row in rows.words]
    exact = configurations(rows, sweeps, sweeps, ("ttft", "tpot"))
    some = exact.filter(sweep="vllm b200 llama3_70b agg fp8")
    found = pl.concat(regrets(each) for _, each in some.group_by("input_tokens", "output_tokens"))
    assert found.height >= 20
    assert found["regret"].max() < 0.01


@pytest.mark.parametrize(
    ("change", "assumed"),
    [
        ({"backend": "TGI"}, "engine"),
        ({"backend": None}, "engine"),
        ({"system": "h20"}, None),
        (
            {"system": "X1", "peak_16bit_flop_per_s": 9.9e14, "accelerator_memory_bytes": 1.41e11}
            | {"memory_bytes_per_s": 4.8e12},
            "chip",
        ),
        ({"model_path": "of/mine-70B"}, "model"),
        ({"model_path": "of/mine", "layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672}, "model"),
    ],
)
def test_what_has_no_measured_points_is_predicted_with_a_wider_interval(change: dict, assumed: str | None) -> None:
    known, found = (fk.validate_serving(pl.DataFrame([row])).row(0, named=True) for row in (ROW, ROW | change))
    assert (known["assumed"], found["assumed"]) == (None, assumed)
    for name in ("ttft", "tpot"):
        widths = [row[f"{name}_high_s"] / row[f"{name}_low_s"] for row in (known, found)]
        assert widths[1] > widths[0]
    assert found["tpot_s"] == pytest.approx(known["tpot_s"], rel=0.5)


def test_an_unknown_engine_is_within_its_interval_as_often_as_a_known_one() -> None:
    """The points of vLLM without those of vLLM, and with the constants of an unknown engine."""
    rows, found, ttft, _ = predict.measured()
    mine = [row["engine"] == "vllm" for row in rows.words]
    rest = np.flatnonzero(np.logical_not(mine))
    process = predict.Process("ttft", [rows.words[row] for row in rest], found.ttft_features[rest], ttft[rest])
    points = fk.table("serving_points").collect().filter(pl.Series(mine)).with_columns(backend=pl.lit("TGI"))
    unknown = predict.rows_of([read_point(row) for row in points.iter_rows(named=True)])
    physics = predict.physics(unknown)
    mean, half = process.predict(unknown.words, physics.ttft_features)
    error = np.log(points["silicon_ttft_ms"].to_numpy() / 1e3 / physics.ttft) - mean
    assert np.mean(np.abs(error) < half) > 0.85


def test_usual_other_names_of_columns_are_found() -> None:
    names = {"backend": "Engine", "model_path": "model", "system": "GPU", "isl": "input_tokens", "osl": "output_len"}
    names |= {"batch_size": "max_batch", "tp_size": "tensor_parallel_size", "precision": "quantization"}
    row = pl.DataFrame([ROW | {"silicon_ttft_ms": 100.0}])
    renamed = row.rename(names | {"silicon_ttft_ms": "Mean TTFT (ms)"})
    assert fk.validate_serving(renamed).equals(fk.validate_serving(row))


def test_columns_of_the_publisher_are_read() -> None:
    row = {"ID": "5.1-1", "Submitter": "x", "System": "x", "Model": "llama2-70b-99", "Scenario": "Offline", "Nodes": 1}
    row |= {"Accelerator": "NVIDIA H200-SXM-141GB"}
    row |= {"a#": "8", "Software": "TensorRT 10.11, CUDA 12.8", "weight_data_types": "fp8"}
    found = fk.validate_serving(pl.DataFrame([row, row | {"Scenario": "offline", "weight_data_types": None}]))
    for rate in found["tokens_per_s"]:
        assert rate == pytest.approx(34_000, rel=0.1)  # eight submissions print 33,000 to 35,400
    larger = row | {"Model": "llama3.1-405b", "Accelerator": "NVIDIA L40S", "a#": "1"}
    assert "do not fit" in fk.validate_serving(pl.DataFrame([larger]))["reason"][0]


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek_v3"),
        ("openai/gpt-oss-120b", "gpt_oss_120b"),
        ("llama3.1-405b", "llama3_405b"),
        ("llama3_2_1b", "llama3_2_1b"),
        ("moonshotai/Kimi-K2.5", "kimi_k2"),
        ("Qwen/Qwen3-32B-FP8", "qwen3_32b"),
    ],
)
def test_a_model_is_found_by_its_published_name(model: str, key: str) -> None:
    assert architecture_of(model) == key


def test_a_separate_prefill_has_a_layout_of_its_own() -> None:
    row = ROW | {"mode": "disagg", "decode_tp_size": 8, "prefill_tp_size": 4}
    point = read_point(row | {"decode_batch_size": 8, "decode_num_workers": 2})
    sizes = (point.decode["tensor_parallel"], point.prefill["tensor_parallel"])
    assert (*sizes, point.load["concurrency"]) == (8.0, 4.0, 16.0)


@given(first=st.floats(-3.0, 3.0), following=st.floats(-3.0, 3.0))
@settings(max_examples=20, deadline=None)
def test_no_residual_makes_prompts_faster_than_the_accelerators_that_compute_them(
    first: float, following: float
) -> None:
    rows, found = predict.measured()[:2]
    ones = np.ones(len(rows.words))
    rate = predict.summary(rows, found, first * ones, ones, following * ones, ones)["tokens_per_s"]
    load = found.prompts.with_columns(rows.load["concurrency"] / found.prompts["concurrent_requests"], rate=rate)
    separate = pl.col("prefill_separate") == 1.0
    prompts = pl.col("rate") / pl.col("output_tokens") * pl.col("prefill_s") / pl.col("concurrency")
    busy = load.select(pl.when(separate).then(0.63 * prompts).otherwise(np.exp(following) * prompts)).to_series()
    assert busy.max() < 1.0 + 1e-9


def test_no_measured_prefill_workers_compute_more_prompts_than_the_formula_allows() -> None:
    rows, found, ttft, tpot = predict.measured()
    known = np.array([row["mode"] == "disagg" for row in rows.words])
    ones = np.ones(len(known))
    bounded = predict.summary(rows, found, ttft, ones, tpot, ones)["ttft_s"]
    assert bounded[known] == pytest.approx((found.ttft * np.exp(ttft))[known])


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"backend": "vLLM 0.9"}, {}),
        ({"backend": "TensorRT-LLM"}, {"backend": "trtllm"}),
        ({"precision": "AWQ"}, {"precision": "int4"}),
        ({"precision": "w4a16_mxfp4"}, {"precision": "fp4"}),
        ({"mode": "Aggregated"}, {}),
        *(({"isl": text}, {}) for text in ("1,024", "1k", "1024 tokens")),
        ({"tp_size": "TP4"}, {}),
        ({"tp_size": None, "accelerators": "4 GPUs"}, {"accelerators": "4 GPUs"}),
        ({"backend": "llm-d"}, {}),
        ({"precision": "float8_e4m3fn"}, {}),
        ({"mode": "in-flight batching"}, {}),
        ({"model_path": "DeepSeek-R1-Distill-Llama-70B"}, {}),
        ({"model_path": "Qwen/Qwen2.5-Math-7B"}, {"model_path": "qwen2_5_7b"}),
        ({"model_path": "deepseek-ai/DeepSeek-V3", "precision": None}, {"model_path": "deepseek_v3"}),
        ({"model_path": "meta-llama/Meta-Llama-3.1-70B-Instruct"}, {}),
    ],
)
def test_words_of_vendors_are_read_in_any_spelling(change: dict, same: dict) -> None:
    assert read_point(ROW | change) == read_point(ROW | same)


@pytest.mark.parametrize(
    "change",
    [
        *({"precision": "foo"}, {"mode": "foo"}, {"system": None}, {"system": "Atlantis X1"}),
        *({"batch_size": 0}, {"batch_size": None}, {"isl": 0}, {"isl": "many"}, {"system": "Cerebras CS-3"}),
        {"system": "h100_sxm", "precision": "bf16", "tp_size": 1},
        *({"model_path": "of/mine-0B"}, {"model_path": "mine", "layers": 0.5, "hidden": 4096, "heads": 32}),
        {"peak_16bit_flop_per_s": 1e15, "accelerator_memory_bytes": -1.0, "memory_bytes_per_s": 1e12},
        *({"tp_size": tp} for tp in (0, 12, 128)),
    ],
)
def test_a_word_or_number_that_is_not_understood_is_the_reason_and_no_other_row_suffers(change: dict) -> None:
    frame = pl.DataFrame([ROW, ROW | change], strict=False)
    good, bad = fk.validate_serving(frame).iter_rows(named=True)
    assert good["reason"] is None
    assert bad["tpot_s"] is None
    assert bad["reason"]
    assert "NoneType" not in bad["reason"]


def test_measured_cells_are_read_with_their_unit_and_others_and_misspelt_columns_warn() -> None:
    rows = pl.DataFrame([ROW | {"silicon_ttft_ms": cell} for cell in ("100", "100 ms", "0.1 s")])
    first, *others = fk.validate_serving(rows)["ttft_error"]
    assert others == pytest.approx([first] * 2)
    for wrong in ({"silicon_ttft_ms": -1}, {"silicon_ttft_ms": "abc"}, {"ttft_s": 0.1}, {"tps_size": 8}):
        row = {name: cell for name, cell in ROW.items() if name != "tp_size"} | wrong
        with pytest.warns(fk.FactorykitWarning, match="is not compared; give milliseconds|is not read; nearest is"):
            assert fk.validate_serving(pl.DataFrame([row]))["ttft_error"].item() is None


def test_one_output_token_has_no_time_per_output_token() -> None:
    found = fk.validate_serving(pl.DataFrame([ROW | {"osl": 1}])).row(0, named=True)
    assert found["tpot_s"] is None
    assert found["ttft_s"] > 0.0


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        (("id",), "serving_points; missing are system, model_path, isl, osl, got id"),
        (("Model", "gpu", "input_len"), "serving_points; missing are osl, got Model, gpu, input_len"),
        (("Model", "Nodes", "Accelerator"), "inference_results; missing are scenario, got"),
    ],
)
def test_columns_that_a_frame_lacks_are_named(columns: tuple[str, ...], missing: str) -> None:
    with pytest.raises(ScenarioError, match=f"must have the columns of the table {missing}"):
        fk.validate_serving(pl.DataFrame({name: ["a"] for name in columns}))
