"""Step times of measured runs, predicted beside the rivals, each on the rows that both predict.

The performance model and the two regressions predict each family without its rows. Calculon and llm-analysis have no
constants to leave out; they take dense 16-bit runs on A100 and H100 without context parallelism or ZeRO 3. The
regressions need scikit-learn, Calculon the folder of its clone in the variable CALCULON, llm-analysis its package.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import Errors, Missing
from benchmarks.search import calculon_modules
from factorykit.data import tables
from factorykit.engine.providers.constants import constants
from factorykit.model.performance.fit_constants import Measured
from factorykit.model.performance.layout_features import LAYOUT_FEATURES, features
from factorykit.model.validation.validate import validate

NEIGHBOURS = 3
MFU = 0.4
"""Utilization that rules of thumb take."""
GATED_WIDTH = 1.5
"""Width of a gated feed-forward as that of one with two matrices of the same size."""
CALCULON_SYSTEMS = {"a100_sxm_80gb": "a100_80g", "h100_sxm": "h100_80g_nvl8"}
LLM_ANALYSIS_GPUS = {"a100_sxm_80gb": "a100-sxm-80gb", "a100_sxm_40gb": "a100-sxm-40gb", "h100_sxm": "h100-sxm-80gb"}
RECOMPUTE = {"none": ("none", 0), "selective": ("attn_only", 1), "full": ("full", 4)}
"""Names of recomputation in Calculon and llm-analysis."""


class Runs:
    """Measured runs with a stated layout, and what the performance model predicts for each without its family."""

    def __init__(self) -> None:
        rows = tables.table("training_runs").collect()
        measured = Measured(rows, as_stated=True)
        at = measured.chosen(dict(constants()))
        self.frame = measured.frame[at.tolist()]
        self.family = self.frame["family"].to_numpy()
        self.measured_s = self.frame["measured_s"].to_numpy()
        self.ours_s = validate(rows, leave_family_out=True)["step_s"].to_numpy()[self.frame["row"].to_numpy()]
        share = measured.results(dict(constants()), "predicted_mfu", "step_s", at=at)
        self.ideal_s = share["predicted_mfu"] * share["step_s"]
        """Time of the model FLOP at the peak."""

    def error(self, what: str, rival: str, predicted_s: np.ndarray) -> Errors:
        """Return median and 90th percentile of the absolute error of both, on the rows that the rival predicts."""
        both = np.isfinite(predicted_s) & np.isfinite(self.ours_s)
        ours, theirs = (np.abs(step / self.measured_s - 1.0)[both] for step in (self.ours_s, predicted_s))
        both_quantiles = (tuple(np.quantile(each, (0.5, 0.9))) for each in (ours, theirs))
        return Errors(f"{what}, {both.sum():,} rows", rival, *both_quantiles)


def rows() -> Iterator[Errors]:
    runs = Runs()
    yield runs.error("all runs, families left out", f"6 N D at {MFU:.0%}", runs.ideal_s / MFU)
    try:
        regressors = importlib.import_module("sklearn.neighbors"), importlib.import_module("sklearn.ensemble")
    except ImportError:
        yield Errors("all runs, families left out", "nearest layouts, trees", why_alone="pip install scikit-learn")
    else:
        near = regressors[0].KNeighborsRegressor(NEIGHBOURS, weights="distance")
        yield runs.error("all runs, families left out", f"{NEIGHBOURS} nearest layouts", regressed(runs, near))
        trees = regressors[1].HistGradientBoostingRegressor(random_state=0)
        yield runs.error("all runs, families left out", "boosted trees", regressed(runs, trees))
    for rival, prepare in (("Calculon", calculon_step), ("llm-analysis", llm_analysis_step)):
        try:
            step_s = prepare()
        except Missing as missing:
            yield Errors("dense 16-bit runs", rival, why_alone=str(missing))
        else:
            yield runs.error("dense 16-bit runs", rival, dense(runs, step_s))


def regressed(runs: Runs, regressor: Any) -> np.ndarray:
    """Return step times of a regression of utilization on layouts, each family predicted without its rows."""
    inputs = features(runs.frame.select(LAYOUT_FEATURES))
    lost, predicted = np.log(runs.measured_s / runs.ideal_s), np.empty(len(runs.ideal_s))
    for family in sorted(set(runs.family)):
        out = runs.family == family
        predicted[out] = regressor.fit(inputs[~out], lost[~out]).predict(inputs[out])
    return runs.ideal_s * np.exp(predicted)


def dense(runs: Runs, step_s: Callable[[dict[str, Any]], float]) -> np.ndarray:
    """Return step times of a tool that takes whole numbers of dense layouts, not a number where it refuses."""
    predicted = np.full(len(runs.ideal_s), np.nan)
    stated = tables.table("training_runs").select("accelerator").collect()["accelerator"].to_list()
    for place, row in enumerate(runs.frame.iter_rows(named=True)):
        plain = row["experts"] <= 1 and row["context_parallel"] == 1 and row["zero_stage"] < 3
        if plain and row["precision"] in ("bf16", "fp16") and row["recompute"] in RECOMPUTE:
            split = row["accelerators"] / (row["tensor_parallel"] * row["pipeline_parallel"])
            whole = {**row, "data_parallel": split, "accelerator": stated[row["row"]]}
            whole = {name: round(value) if isinstance(value, float) else value for name, value in whole.items()}
            predicted[place] = step_s(whole)
    return predicted


def calculon_step() -> Callable[[dict[str, Any]], float]:
    """Return Calculon's step time of a layout."""
    folder, llm, system, logger = calculon_modules()
    base = json.loads(next((folder / "examples").glob("*_full.json")).read_text())
    systems = {
        chip: system.System(json.loads((folder / "systems" / f"{name}.json").read_text()))
        for chip, name in CALCULON_SYSTEMS.items()
    }

    def step_s(row: dict[str, Any]) -> float:
        if row["accelerator"] not in systems:
            return np.nan
        ways = {"tensor_par": row["tensor_parallel"], "pipeline_par": row["pipeline_parallel"]}
        ways |= {"data_par": row["data_parallel"], "num_procs": row["accelerators"]}
        ways |= {"batch_size": row["global_batch_size"], "microbatch_size": row["micro_batch_size"]}
        ways |= {"pipeline_interleaving": row["virtual_stages"], "activation_recompute": RECOMPUTE[row["recompute"]][0]}
        across = row["tensor_parallel"] * row["pipeline_parallel"] > row["scale_up_domain"]
        ways |= {"pipeline_par_net": int(across), "data_par_net": int(row["accelerators"] > row["scale_up_domain"])}
        ways |= {"optimizer_sharding": row["zero_stage"] > 0 and row["data_parallel"] > 1}
        width = row["ffn_size"] * (GATED_WIDTH if row["gated_ffn"] else 1.0)
        model = {"hidden": row["hidden_size"], "feedforward": round(width), "seq_size": row["sequence_length"]}
        model |= {"attn_heads": row["attention_heads"], "attn_size": row["head_size"], "num_blocks": row["layers"]}
        try:
            one = llm.Llm(llm.Llm.Application(model), logger)
            one.compile(systems[row["accelerator"]], llm.Llm.Execution.from_json(base | ways))
            one.run(systems[row["accelerator"]])
        except (llm.Llm.Error, AssertionError):
            return np.nan
        return one.get_total_time()

    return step_s


def llm_analysis_step() -> Callable[[dict[str, Any]], float]:
    """Return llm-analysis' step time of a layout."""
    try:
        analysis, config = (importlib.import_module(f"llm_analysis.{name}") for name in ("analysis", "config"))
    except ImportError as error:
        raise Missing("pip install git+https://github.com/cli99/llm-analysis") from error
    analysis.logger.setLevel("ERROR")

    def step_s(row: dict[str, Any]) -> float:
        if row["accelerator"] not in LLM_ANALYSIS_GPUS:
            return np.nan
        model = config.ModelConfig(
            "run", row["layers"], row["attention_heads"], row["hidden_size"], row["vocabulary_size"],
            row["sequence_length"], row["kv_heads"], ffn_embed_dim=row["ffn_size"],
            mlp_gated_linear_units=bool(row["gated_ffn"]),
        )  # fmt: skip
        ways = {"tp_size": row["tensor_parallel"], "pp_size": row["pipeline_parallel"], "dp_size": row["data_parallel"]}
        ways |= {"sp_size": row["tensor_parallel"]}
        chip = config.get_gpu_config_by_name(LLM_ANALYSIS_GPUS[row["accelerator"]])
        try:
            one = analysis.LLMAnalysis(model, chip, parallelism_config=config.ParallelismConfig(**ways))
            result = one.training(
                batch_size_per_gpu=row["micro_batch_size"],
                global_batch_size=row["global_batch_size"],
                activation_recomputation=analysis.ActivationRecomputation(RECOMPUTE[row["recompute"]][1]),
                ds_zero=analysis.DSZeRO(row["zero_stage"]),
                flash_attn=bool(row["flash_attention"]),
            )
        except AssertionError:
            return np.nan
        return result["latency_per_iter"]

    return step_s
