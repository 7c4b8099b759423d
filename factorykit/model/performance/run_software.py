"""Software of training runs: framework and its features, optimizer, adapters and recomputation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from factorykit.engine.providers import frameworks
from factorykit.engine.providers.accelerators import chips
from factorykit.engine.providers.constants import constants
from factorykit.model.performance.run_cells import RECIPE_YEAR, SOFTWARE, software_year

FRAMEWORK_COLUMNS: Final = (
    *("reports_first_stage", "selective_share", "balanced_stages", "sequence_parallel", "zero_stage"),
    *("state_bytes", "gradient_bytes", "half_gradient_bytes", "update_bytes", "bucket_bytes", "gather_buffer_bytes"),
    *("whole_logits", "dropout", "cached_share", "arising_gradients", "held_boundaries", "accumulated_bytes"),
)
"""Columns of the ``frameworks`` table that are read for measured runs alone."""
LAST_FP16_YEAR: Final = 2022.0
FP16_FRAMEWORKS: Final = ("megatron_lm", "megatron_deepspeed")
"""Frameworks whose fp16 runs use software from before bf16 became the default, whenever they were published."""
GRAPH_POOL: Final = 0.3
"""Share of activations in the memory pool of a graph of a whole step: 187 GB without graphs, 193 GB with graphs of
attention and routing and 225 GB with a graph of the step, for one layout of Hy3 on GB300 (activations about 90 GB)."""
DEFAULT_RANK: Final = 16.0
"""Rank of adapters where a source states none."""
MLPERF_ADAPTERS: Final = {"lora_rank": 16.0, "lora_matrices": "attention", "adapter_dropout": 1.0}
"""Adapters of the MLPerf reference."""
FROZEN_8BIT: Final = ("fp8", "mxfp8", "nvfp4")
"""Precisions in which frozen weights are stored without a copy in 16 bits (Transformer Engine's
``quantized_model_init``); H200 holds those of Llama 2 70B unsharded."""
ADAM_BYTES: Final = (8.0, 4.0)
"""Bytes of the two moments of Adam per parameter, with a state of 32 bits and of 16 bits."""
MOMENT_BYTES: Final = {
    "adam_8bit": (2.0, 2.0),
    "adafactor": (0.0, 0.0),
    "sgd": (0.0, 0.0),
    "lion": (4.0, 2.0),
    "muon": (4.0, 2.0),
}
"""The same of other optimizers."""
MUON_STEPS: Final = 5.0
"""Newton-Schulz steps of Muon, as in its reference implementation."""
OFFLOADED: Final = ("activation_offload_share", "offloaded_optimizer_share", "offloaded_weights_share")
FULL_GRADIENT_BYTES: Final = 4.0
"""Bytes per parameter of the 32-bit copy of the gradients that an update in fp16 training needs."""


def _known_framework(row: Mapping[str, Any]) -> str | None:
    name = row.get("framework")
    return name if name in frameworks.frameworks() else None


def year_of(row: Mapping[str, Any], precision: str, assumed: list[str]) -> float:
    """Return the year and part of a year of a row's software; fp16 may be a sign of older software."""
    stated = software_year(row)
    if stated is None:
        assumed.append("software_year")
    year = stated or constants()["software_year"]
    is_old = precision == "fp16" and not row.get("release_month") and _known_framework(row) in FP16_FRAMEWORKS
    return min(year, LAST_FP16_YEAR + 0.5) if is_old else year


def software_of(framework: str | None, accelerator: str) -> tuple[str, str]:
    """Return the key of a software on chips of a maker, and the generation of a chip.

    >>> software_of("maxtext", "tpu_v5p"), software_of(None, "h100_sxm")
    (('maxtext on Google', 'tpu'), ('', 'hopper'))
    """
    chip = chips()[accelerator]
    key = f"{framework} on {chip['vendor']}" if framework in frameworks.frameworks() else ""
    return key, str(chip["generation"] or accelerator)


def features(row: Mapping[str, Any], chip: Mapping[str, Any], year: float, assumed: list[str]) -> dict[str, Any]:
    """Return the features of a row's software: defaults of its framework, overridden by the columns of the row."""
    stated: dict[str, Any] = {"expert_imbalance": 1.0, "dispatch_masks": 0.0, "native_attention": 0.0}
    stated |= {name: row[name] for name in SOFTWARE if row.get(name) is not None}
    if year < RECIPE_YEAR:
        stated.setdefault("sequence_parallel", float(row.get("recompute") == "selective"))
    memory, graphs = row.get("memory_measure"), row.get("cuda_graphs")
    framework = _known_framework(row)
    stated["software"], stated["generation"] = software_of(framework, chip["accelerator"])
    if framework is None:
        assumed.append("framework")
        usual = frameworks.unnamed(year) | dict.fromkeys((*FRAMEWORK_COLUMNS, "chunked_loss", "graph_pool_share"), 0.0)
        return usual | {"sequence_parallel": 1.0, "dropout": 1.0, "memory_measure": memory or "process"} | stated
    known, vendor = frameworks.frameworks()[framework], chips()[chip["accelerator"]]["vendor"]
    usual = frameworks.features(framework, year, vendor, chip["scale_up_domain"])
    usual |= {name: known[name] or 0.0 for name in (*FRAMEWORK_COLUMNS, "chunked_loss")}
    if graphs:
        usual["cuda_graphs"] = float(graphs != "none")
    if stated.get("fused_kernels", usual["fused_kernels"]) == 1.0:
        usual["whole_logits"] = 0.0
    usual["graph_pool_share"] = GRAPH_POOL * (graphs == "full_iteration")
    return usual | {"memory_measure": memory or known["memory_measure"]} | stated


def adapters(row: Mapping[str, Any], precision: str, assumed: list[str]) -> dict[str, Any]:
    """Return the low-rank adapters of a row, and the bits of the weights beside them."""
    if not (row.get("lora") if row.get("lora_rank") is None else row["lora_rank"]):
        return {"lora_rank": 0.0, "lora_matrices": "all", "adapter_dropout": 0.0, "weight_bits": 16.0}
    published = MLPERF_ADAPTERS if row.get("lora") and row.get("kind") == "mlperf" else {}
    stated = published | {name: value for name, value in row.items() if value is not None}
    assumed += [name for name in ("lora_rank", "lora_matrices") if not stated.get(name)]
    usual = {"lora_rank": DEFAULT_RANK, "lora_matrices": "all", "adapter_dropout": 0.0}
    usual["weight_bits"] = 8.0 if precision in FROZEN_8BIT else 16.0
    return {name: stated.get(name) or value for name, value in usual.items()}


def training_state(row: Mapping[str, Any], run: Mapping[str, Any], micro_batches: float) -> dict[str, float]:
    """Return the bytes per parameter of optimizer, gradients and updates, and the shares of them that are offloaded."""
    halved, own_state = row.get("optimizer_state_bits") == 16.0, run["state_bytes"]
    wide = not (halved or own_state)
    moments = MOMENT_BYTES.get(row.get("optimizer") or "adam", ADAM_BYTES)[0 if wide else 1]
    optimizer = 4.0 * wide + moments
    narrow = run["precision"] == "fp16" or run["zero_stage"] >= 2 or halved
    gradients = 6.0 if row.get("gradient_bits") == 32.0 else run["gradient_bytes"] or (2.0 if narrow else 4.0)
    update = run["update_bytes"] * (1.0 if own_state or halved else 2.0)
    if own_state:
        gradients, optimizer = 2.0, own_state - 4.0 if moments == ADAM_BYTES[1] else moments
    elif run["precision"] == "fp16":
        optimizer += run["half_gradient_bytes"]
        update = max(update, FULL_GRADIENT_BYTES - run["half_gradient_bytes"])
    if run["accelerators"] > run["tensor_parallel"] * run["pipeline_parallel"]:
        gradients += run["bucket_bytes"]
    arising, sharded = run["arising_gradients"] * (micro_batches == 1.0), run["zero_stage"] == 3.0
    gathered = 2.0 * arising * (sharded and wide)  # weights of 16 bits exist only while they are gathered
    return {
        "optimizer_bytes_per_parameter": optimizer - gathered,
        "gradient_bytes_per_parameter": gradients * (1.0 - arising),
        "update_bytes_per_parameter": update + gradients * arising + gathered,
        "accumulated_gradient_bytes": run["accumulated_bytes"] * (sharded and micro_batches > 1.0),
        **{name: row.get(name) or 0.0 for name in OFFLOADED},
        "newton_schulz_steps": MUON_STEPS * (row.get("optimizer") == "muon"),
    }


def recomputation(row: Mapping[str, Any], run: Mapping[str, Any], assumed: list[str]) -> dict[str, Any]:
    """Return the kind of recomputation, and the share of layers that a row states, None if it is unknown.

    >>> run = {"pipeline_parallel": 4.0, "virtual_stages": 2.0, "layers": 80.0, "selective_share": 0.0}
    >>> recomputation({"recompute": "full", "recompute_layers_per_chunk": 5.0}, run, [])["share_stated"]
    0.5
    """
    kind, share = row.get("recompute"), row.get("recompute_share")
    shares = {"none": 0.0, "selective": run["selective_share"], "modules": 0.0, "full": 1.0}
    if kind not in shares:
        assumed.append("recompute")
        since = frameworks.releases().get(_known_framework(row) or "", {}).get("recompute_modules", math.inf)
        kind, share = "modules" if run["software_year"] >= since and run["experts"] > 1.0 else "none", None
    elif row.get("recompute_layers_per_chunk"):
        chunks = run["pipeline_parallel"] * run["virtual_stages"]
        share = min(row["recompute_layers_per_chunk"] * chunks / run["layers"], 1.0)
    elif share is None:
        share = shares[kind]
    return {"recompute": kind, "share_stated": share, "kept_share": row.get("kept_share") or 1.0}
