"""Measured training runs as scenarios: rows of the ``training_runs`` table read into quantities.

Inputs that a source omits are filled by rule, never by row. Each filled input is named in ``assumed``; a row that
cannot be filled has the cause in ``reason``.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.core import units, validation
from factorykit.core.errors import FactorykitError, ScenarioError, short_repr, warn
from factorykit.core.text_io import package_rows
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data.identifiers import accelerator_in, identify, known_key, letters
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers import frameworks
from factorykit.engine.providers.accelerators import BROUGHT, brought, chip_in, chips
from factorykit.engine.providers.constants import constants
from factorykit.engine.rules import check_layout
from factorykit.model.performance import source_terms
from factorykit.model.performance.activation_checkpointing import FIRST_LAYER, least_share

NEEDED: Final = ("layers", "hidden", "heads", "seq_len", "accelerator", "accelerator_count")
"""Columns without which nothing can be predicted."""


COLUMNS: Final = {row["column"]: row for row in package_rows(Path(__file__).with_name("run_columns.csv"))}
"""Columns that are read, by name, with their ``kind``: counts, other numbers of the configuration, features of the
software that override the defaults of its framework, further optional numbers, texts, and quantities of hybrid models
that no column of the table states; they come from the architecture of the row's model. A number may have its ``unit``
behind it, or the column's name before it, as in TP8."""
COUNTS, SOFTWARE, STATED, TEXTS, STATES = (
    tuple(name for name, row in COLUMNS.items() if row["kind"] == kind)
    for kind in ("count", "software", "stated", "text", "state")
)
NUMBERS: Final = {name for name, row in COLUMNS.items() if row["kind"] in ("count", "number")}
SHAPE: Final = {name: row["architecture"] for name, row in COLUMNS.items() if row["architecture"]}
"""Columns of a shape, and their names in the table of architectures."""
MEASURED: Final = {
    "step_time_s": "seconds",
    "tokens_per_s_per_gpu": "tokens per second",
    "mfu": "a share, at most 1,",
    "hfu": "a share, at most 1,",
    "tflops_per_gpu": "TFLOP/s",
    "mem_gib_per_gpu": "GiB",
}
"""Columns of measurements that give a step time or a memory, and their units."""
MEASURED_IN: Final = {
    "step_time_s": ("step_s", 1.0),
    "tflops_per_gpu": ("peak_flop_per_s", 1e12),
    "mem_gib_per_gpu": ("memory_peak_bytes", 2.0**30),
}
"""Quantities as which such cells are read where they have a unit, and the unit of the column."""
WITHOUT_STEPS: Final = ("training_run", "cost_estimate", "reliability", "energy_measured")
"""Kinds of rows about whole runs."""
MAX_COLUMNS_SHOWN: Final = 8
"""Columns of a frame that a message lists."""
MAX_NUMBER: Final = 1e15
"""Bound of these columns; products of larger numbers could overflow."""
PRECISIONS: Final = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4", "int8")
"""Number formats of matrix products that are modelled."""
INT8_TPU_YEAR: Final = 2023.0
"""Year of TPU v5e, the first TPU that multiplies 8-bit integers twice as fast as 16-bit numbers."""
EIGHT_BITS_YEAR: Final = 2024.0
"""All 75 submissions to MLPerf from that year on that state a number format state one of 8 bits."""
DEFAULT_HEAD_SIZE: Final = 128.0
"""Size of a head where a source states no number of heads."""
IDENTIFYING: Final = ("layers", "hidden", "heads")
"""Columns that differ between models."""
MAX_SIZE_ROUNDING, LEAST_LETTERS = 0.1, 4
"""Deviation of the size in a name from the parameters, and letters by which a name without a size is known."""
SEQUENCE_K: Final = 1024.0
"""Value of a k in the tokens of a sequence."""
MAX_UNGATED_DEVIATION: Final = 0.01
"""Deviation of the feed-forward width from four hidden sizes, as in GPT, above which a feed-forward is taken as gated
where a source does not state it."""
DEFAULT_VOCABULARY: Final = 51_200.0
"""Padded GPT-2 vocabulary, where a source states none."""
GIB: Final = 2.0**30
MOMENT_BYTES: Final = {
    "adam_8bit": (2.0, 2.0),
    "adafactor": (0.0, 0.0),
    "sgd": (0.0, 0.0),
    "lion": (4.0, 2.0),
    "muon": (4.0, 2.0),
}
"""Bytes of the moments of an optimizer per parameter, with a state of 32 bits and of 16 bits."""
MUON_STEPS: Final = 5.0
"""Newton-Schulz steps of Muon, as in its reference implementation."""
CHOICES: Final = {
    "optimizer": ("adam", "adamw", *MOMENT_BYTES),
    "memory_measure": ("allocated", "reserved", "process"),
    "fabric": ("infiniband", "roce", "omni_path", "efa"),
}
"""Values of columns of text that are no quantities."""
ADAM_BYTES: Final = (8.0, 4.0)
"""Bytes of the two moments of Adam per parameter, with a state of 32 bits and of 16 bits."""
FULL_GRADIENT_BYTES: Final = 4.0
"""Bytes per parameter of the 32-bit copy of the gradients that an update in fp16 training needs."""
GRAPH_POOL: Final = 0.3
"""Share of activations in the memory pool of a graph of a whole step: 187 GB without graphs, 193 GB with graphs of
attention and routing and 225 GB with a graph of the step, for one layout of Hy3 on GB300 (activations about 90 GB)."""
DEFAULT_RANK: Final = 16.0
"""Rank of adapters where a source states none."""
MLPERF_ADAPTERS: Final = {"lora_rank": 16.0, "lora_matrices": "attention", "adapter_dropout": 1.0}
"""Adapters of the MLPerf reference."""
LEAST_GAIN: Final = 0.02
"""Share of the stated parameters that one dense layer less has to explain."""
LAST_FP16_YEAR: Final = 2022.0
FP16_FRAMEWORKS: Final = ("megatron_lm", "megatron_deepspeed")
"""Frameworks whose fp16 runs use software from before bf16 became the default, whenever they were published."""
FABRICS: Final = {
    "omni_path": {"scale_out_share": 0.34},
    "efa": {"scale_out_share": 0.65, "scale_out_latency_s": 7e-4, "message_s": 1.5e-6},
}
"""Constants of networks other than InfiniBand.

Omni-Path: 135 of 400 Gb/s between nodes of Jean Zay, measured before BLOOM and a year later (S. Bekman, "Machine
learning engineering," 744d01e, network, Omni-Path); its adapters leave messages to the processor. EFA: the rate of the
tensor-parallel rows of nanotron over two and four nodes, and 0.7 ms for each further node of a ring; its messages go
through the processor, and DeepEP, which sends tokens one by one, takes 1.2 to 2 us for each."""
NEWER_EFA: Final = (1e11, 5e-7)
"""Link rate of a chip from which EFA is of its fourth generation, and the time of a message there: 15 rows of DeepEP on
B300, beside 12 of NCCL with the same layouts, between 0.3 and 0.75 us."""
POWER_LIMITED: Final = 0.72
"""Share of a chip's design power where a source states a limit but not its value: 500 of 700 W in Meta's fleet."""
MAX_MEMORY_RATIO: Final = 2.0
"""Ratio of a stated memory to that of the chip (A100 of 40 and 80 GB) beyond which it is that of the host or node, as
in "GH200 480GB"."""
PER_DEVICE: Final = (
    *("peak_flop_per_s", "peak_16bit_flop_per_s", "exponentials_per_s", "accelerator_memory_bytes"),
    *("memory_bytes_per_s", "scale_up_bytes_per_s", "scale_out_bytes_per_s"),
)
"""Quantities of a chip that its devices share."""
SEQUENCES_PER_REPLICA: Final = 8.0
"""Sequences of each replica per step where a source states a throughput without pipelines and no batch, on which it
hardly depends."""
DEFAULT_BATCH_TOKENS: Final = 4_194_304.0
"""Tokens of a batch where a source does not state them, as in LLaMA, BLOOM, PaLM and Falcon."""
SHORT_SEQUENCE, LONG_SEQUENCE, LONG_YEAR = 2048.0, 4096.0, 2023.6
"""Tokens of a sequence where a source does not state them: of GPT-3, and since Llama 2."""
MICRO_BATCHES: Final = (1, 2, 4, 8, 16, 32)
"""Micro-batch sizes that are tried where a source states none; operators choose the fastest that fits."""
TENSOR_DEGREES: Final = (1.0, 2.0, 4.0, 8.0)
PIPELINE_DEGREES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
EXPERT_DEGREES: Final = (1.0, 8.0, 16.0, 32.0, 64.0)
"""Degrees that are tried where a source states no layout; operators choose the fastest that fits."""
FROZEN_8BIT: Final = ("fp8", "mxfp8")
"""Precisions in which frozen weights are stored without a copy in 16 bits (Transformer Engine's
``quantized_model_init``); H200 holds those of Llama 2 70B unsharded."""
OFFLOADED: Final = ("activation_offload_share", "offloaded_optimizer_share", "offloaded_weights_share")
LAYOUT_DEGREES: Final = 5
"""Inputs that are assumed where a source states no layout: tensor, pipeline, virtual, context and expert degree."""
FRAMEWORK_COLUMNS: Final = (
    *("reports_first_stage", "selective_share", "balanced_stages", "sequence_parallel", "zero_stage"),
    *("state_bytes", "gradient_bytes", "half_gradient_bytes", "update_bytes", "bucket_bytes", "gather_buffer_bytes"),
    *("whole_logits", "dropout", "cached_share", "arising_gradients", "held_boundaries", "accumulated_bytes"),
)
"""Columns of the ``frameworks`` table that are read for measured runs alone."""


class _Unpredictable(Exception):
    """Cause for which a row cannot be predicted."""


def family(group: str) -> str:
    """Return the family of a group: the word before the first hyphen.

    >>> family("mosaicml-7b")
    'mosaicml'
    """
    return group.partition("-")[0]


def software_year(row: Mapping[str, Any]) -> float | None:
    """Return the release of a row's software as a year with fraction: that of its month, or the middle of its year.

    >>> software_year({"release_month": "2026-04", "year": 2026}), software_year({"year": 2023})
    (2026.25, 2023.5)
    """
    year, _, month = (row.get("release_month") or "").partition("-")
    if year.isdigit() and month.isdigit():
        return float(year) + (float(month) - 1.0) / 12.0
    return float(row["year"]) + 0.5 if row.get("year") else None


def _precision(row: Mapping[str, Any], assumed: list[str]) -> str:
    stated = row.get("precision")
    if not stated:
        assumed.append("precision")
        late = row.get("kind") == "mlperf" and (software_year(row) or 0.0) >= EIGHT_BITS_YEAR
        return "fp8" if late and chip_in(row.get("accelerator")).get("peak_fp8_flop_per_s") else "bf16"
    if stated not in PRECISIONS:
        raise _Unpredictable(
            f"precision {stated!r} is not modelled; give that of matrix products: bf16, fp16, fp8, mxfp8, nvfp4 or int8"
        )
    return str(stated)


def _year(row: Mapping[str, Any], precision: str, assumed: list[str]) -> float:
    stated = software_year(row)
    if stated is None:
        assumed.append("software_year")
    year = stated or constants()["software_year"]
    if precision == "fp16" and not row.get("release_month") and _framework(row) in FP16_FRAMEWORKS:
        return min(year, LAST_FP16_YEAR + 0.5)
    return year


def _chip(row: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """Return the quantities of a row's accelerator and of its links, as far as stated by the row."""
    try:
        key = accelerator_in(row["accelerator"])
    except FactorykitError as error:
        raise _Unpredictable(f"{error}; for a chip outside the tables use fk.evaluate with fk.accelerator") from None
    known = chips()[key]
    chip: dict[str, Any] = brought(key, "bf16" if precision == "int8" else precision)
    if precision == "int8" and chip["chip_year"] >= INT8_TPU_YEAR:
        chip["peak_flop_per_s"] *= 2.0
    if missing := [name for name in BROUGHT if name not in chip]:
        raise _Unpredictable(f"{known['name']}: the tables have no {', '.join(missing)} at {precision}")
    memory = row.get("accelerator_memory_bytes")
    if memory and memory <= MAX_MEMORY_RATIO * chip["accelerator_memory_bytes"]:
        chip["accelerator_memory_bytes"] = memory
    if devices := row.get("devices_per_accelerator"):
        chip |= {name: chip[name] / devices for name in PER_DEVICE}
        chip["scale_up_domain"] *= devices if known["scale_up_domain"] else 1.0
    if row.get("accelerators_per_node") and chip["scale_up_domain"] < frameworks.RACK:
        chip["scale_up_domain"] = row["accelerators_per_node"]
    limit, design = row.get("power_limit_w"), known["tdp_w"] or known["tdp_estimated_w"]
    unstated_limit = POWER_LIMITED if row.get("power_limited") else 1.0
    chip["power_limit_share"] = limit / design if limit and design else unstated_limit
    chip |= {name: row[name] for name in ("scale_up_bytes_per_s", "scale_out_bytes_per_s") if row.get(name)}
    network = {name: constants()[name] for name in ("scale_out_share", "scale_out_latency_s")} | {"message_s": 0.0}
    network |= FABRICS.get(row.get("fabric") or "", {})
    if chip["scale_out_bytes_per_s"] >= NEWER_EFA[0]:
        network["message_s"] = min(network["message_s"], NEWER_EFA[1])
    return {**chip, **network, "accelerator": key}


def _adapters(row: Mapping[str, Any], precision: str, assumed: list[str]) -> dict[str, Any]:
    """Return the low-rank adapters of a row, and the bits of the weights beside them."""
    if row.get("lora") and row.get("kind") == "mlperf":
        row = MLPERF_ADAPTERS | {name: value for name, value in row.items() if value is not None}
    if row.get("lora") and row.get("lora_rank") is None:
        assumed.append("lora_rank")
        row = {**row, "lora_rank": DEFAULT_RANK}
    if not row.get("lora_rank"):
        return {"lora_rank": 0.0, "lora_matrices": "all", "adapter_dropout": 0.0, "weight_bits": 16.0}
    if not row.get("lora_matrices"):
        assumed.append("lora_matrices")
    return {
        "lora_rank": row["lora_rank"],
        "lora_matrices": row.get("lora_matrices") or "all",
        "adapter_dropout": row.get("adapter_dropout") or 0.0,
        "weight_bits": row.get("weight_bits") or (8.0 if precision in FROZEN_8BIT else 16.0),
    }


def _framework(row: Mapping[str, Any]) -> str | None:
    name = row.get("framework")
    return name if name in frameworks.frameworks() else None


def software_of(framework: str | None, accelerator: str) -> tuple[str, str]:
    """Return the key of a software on chips of a maker, and the generation of a chip.

    >>> software_of("maxtext", "tpu_v5p"), software_of(None, "h100_sxm")
    (('maxtext on Google', 'tpu'), ('', 'hopper'))
    """
    chip = chips()[accelerator]
    key = f"{framework} on {chip['vendor']}" if framework in frameworks.frameworks() else ""
    return key, str(chip["generation"] or accelerator)


def _software(row: Mapping[str, Any], chip: Mapping[str, Any], year: float, assumed: list[str]) -> dict[str, Any]:
    """Return the features of a row's software: defaults of its framework, overridden by the columns of the row."""
    stated = {name: row[name] for name in SOFTWARE if row.get(name) is not None}
    stated = {"expert_imbalance": 1.0, "dispatch_masks": 0.0, "native_attention": 0.0} | stated
    memory = row.get("memory_measure")
    framework = _framework(row)
    if framework is None:
        assumed.append("framework")
        features: dict[str, Any] = {**frameworks.unnamed(year)}
        features |= dict.fromkeys(("chunked_loss", "graph_pool_share", *FRAMEWORK_COLUMNS), 0.0)
        features |= {"sequence_parallel": 1.0, "dropout": 1.0, "memory_measure": memory or "process"}
        return features | stated
    known, vendor = frameworks.frameworks()[framework], chips()[str(chip["accelerator"])]["vendor"]
    features = frameworks.features(framework, year, vendor, chip["scale_up_domain"])
    features |= {name: known[name] or 0.0 for name in (*FRAMEWORK_COLUMNS, "chunked_loss")}
    if graphs := row.get("cuda_graphs"):
        features["cuda_graphs"] = float(graphs != "none")
    if stated.get("fused_kernels", features["fused_kernels"]) == 1.0:
        features["whole_logits"] = 0.0
    return {
        **features,
        "graph_pool_share": GRAPH_POOL * (graphs == "full_iteration"),
        "memory_measure": memory or known["memory_measure"],
        **stated,
    }


@cache
def _architectures() -> Mapping[tuple[float, float, float], Mapping[str, Any]]:
    rows = table("architectures").reverse().collect().iter_rows(named=True)  # the first of a shape counts
    return {(row["hidden_size"], row["attention_heads"], row["vocabulary_size"]): row for row in rows}


def _architecture(row: Mapping[str, Any], assumed: list[str]) -> dict[str, float]:
    """Return the shape of a row's model; the table of architectures completes the columns."""
    layers, hidden, heads = (float(row[name]) for name in IDENTIFYING)
    experts = float(row.get("experts") or 0)
    known = _same_width(row) or _architectures().get((hidden, heads, float(row.get("vocab") or 0)), {})
    public = known if experts > 1 and row.get("kv_heads") in (None, known.get("kv_heads")) else {}
    optional = {"vocab": "vocabulary_size", "mlp_gated": "gated_ffn"} | (
        {} if public or "attention_heads" in assumed else {"kv_heads": "kv_heads"}
    )
    assumed += [name for column, name in optional.items() if row.get(column) is None]
    head = float(row.get("head_dim") or public.get("head_size") or hidden / heads)
    expert_width = float(row.get("moe_ffn") or 0)
    width = float(row.get("ffn") or 0) or (expert_width if experts > 1 else 0.0)
    if not width:
        width = 4.0 * hidden
        assumed.append("ffn_size")
    narrow = abs((expert_width or width) / hidden - 4.0) > MAX_UNGATED_DEVIATION
    gated = float(narrow if row.get("mlp_gated") is None else row["mlp_gated"])
    attending = layers - float(row.get("linear_attention_layers") or 0)
    states = dict.fromkeys(STATES, 0.0) | {"attention_layers": attending, "ffn_layers": layers}
    return {
        **states,
        **{name: float(row[name]) for name in STATES if row.get(name) is not None},
        "layers": layers,
        "hidden_size": hidden,
        "attention_heads": heads,
        "kv_heads": float(row.get("kv_heads") or public.get("kv_heads") or heads),
        "head_size": head,
        "rope_head_size": float(public.get("rope_head_size") or 0),
        "value_head_size": float(public.get("value_head_size") or head),
        "attention_window": float(known.get("attention_window") or 0),
        "windowed_layers_share": float(known.get("windowed_layers_share") or 0),
        "q_lora_rank": float(public.get("q_lora_rank") or 0),
        "kv_lora_rank": float(public.get("kv_lora_rank") or 0),
        "ffn_size": width,
        "gated_ffn": gated,
        "vocabulary_size": float(row.get("vocab") or DEFAULT_VOCABULARY),
        "tied_embeddings": 1.0 - gated,
        "experts": experts,
        "experts_per_token": float(row.get("top_k") or 0),
        "shared_experts": float(row.get("shared_experts") or 0),
        "expert_ffn_size": expert_width or width,
        "dense_layers": _dense_layers(layers, public),
        "mtp_layers": row.get("mtp_layers") or 0.0,
        "expert_biases": float(public.get("expert_biases") or 0),
        "sequence_length": float(row["seq_len"]),
    }


def _dense_layers(layers: float, known: Mapping[str, Any]) -> float:
    """Return the dense layers of a known model with experts, fewer where it was cut, but one.

    >>> deepseek = {"layers": 61.0, "dense_layers": 3.0}
    >>> _dense_layers(61.0, deepseek), _dense_layers(4.0, deepseek)
    (3.0, 1.0)
    """
    dense = known.get("dense_layers") or 0.0
    return max(float(round(dense * layers / known["layers"])), 1.0) if dense else 0.0


def _degrees(row: Mapping[str, Any], assumed: list[str]) -> tuple[float, float, float, float, float]:
    """Return tensor, pipeline, context and expert degree and the chunks of a stage, if they divide the run."""
    count = float(row["accelerator_count"])
    if row.get("tp") is None and row.get("pp") is None and count > 1.0:
        assumed.append("layout")
    tensor, pipeline, context = (1.0 if row.get(name) is None else row[name] for name in ("tp", "pp", "cp"))
    if min(tensor, pipeline, context) < 1.0:
        raise _Unpredictable(f"tp {tensor:g}, pp {pipeline:g}, cp {context:g}: a degree is less than one")
    replicas = count / (tensor * pipeline * context)
    if replicas < 1 or replicas != math.floor(replicas):
        raise _Unpredictable(
            f"tp {tensor:g} times pp {pipeline:g} times cp {context:g} does not divide {count:g} chips"
        )
    if row.get("dp") and row["dp"] not in (replicas, replicas * context):
        assumed.append("data_parallel")
    if row["heads"] % tensor:
        raise _Unpredictable(f"{row['heads']:g} heads do not divide by tp {tensor:g}")
    if pipeline > float(row["layers"]):
        raise _Unpredictable(f"pp {pipeline:g} is more than {row['layers']:g} layers")
    expert = float(row.get("ep") or 1)
    if (count / pipeline) % expert:
        raise _Unpredictable(f"ep {expert:g} does not divide the {count / pipeline:g} chips of a stage")
    chunks = float(row.get("vp") or 1)
    if pipeline > 1.0 and pipeline * chunks > row["layers"] + 2.0:
        raise _Unpredictable(f"pp {pipeline:g} times vp {chunks:g} is more than {row['layers']:g} layers")
    return tensor, pipeline, context, expert, chunks


def _layout(row: Mapping[str, Any], year: float, assumed: list[str]) -> dict[str, Any]:
    count = float(row["accelerator_count"])
    tensor, pipeline, context, expert, chunks = _degrees(row, assumed)
    unsplit, replicas = tensor * pipeline * context == 1.0, count / (tensor * pipeline * context)
    batch = row.get("global_batch") or (
        row["global_batch_tokens"] / row["seq_len"] if row.get("global_batch_tokens") else None
    )
    if not batch:
        batch = _batch(row, replicas, assumed)
    if batch < replicas:
        if "layout" not in assumed or replicas % batch:
            raise _Unpredictable(f"a batch of {batch:g} sequences is less than {replicas:g} data-parallel copies")
        context *= replicas / batch
    stage, ranks = row.get("zero_stage"), count / (tensor * pipeline)
    if stage is None and count == 1.0:
        stage = 0.0
    elif stage is None:
        stage = 3.0 if unsplit and "layout" in assumed else 1.0 if year >= 2023 else 0.0
        assumed.append("zero_stage")
    return {
        "accelerators": count,
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "context_parallel": context,
        "expert_parallel": expert,
        "expert_tensor_parallel": row.get("etp") or (tensor if expert == 1.0 else 1.0),
        "virtual_stages": chunks,
        "global_batch_size": float(batch),
        "zero_stage": stage,
        "optimizer_shards": min(row.get("optimizer_shards") or math.inf, ranks) if stage >= 1.0 else 1.0,
        "schedule": row.get("schedule") or "1f1b",
    }


def _batch(row: Mapping[str, Any], replicas: float, assumed: list[str]) -> float:
    """Return the sequences of a step by micro-batch and accumulation; one micro-batch per replica by default.

    >>> _batch({"micro_batch": 2.0, "gradient_accumulation_steps": 4.0}, 8.0, [])
    64.0
    """
    steps = row.get("gradient_accumulation_steps")
    split = (row.get("tp") or 1.0) * (row.get("pp") or 1.0)
    tried, waits = "layout" in assumed and split > 1.0, (row.get("pp") or 1.0) > 1.0
    rated = any(row.get(name) for name in ("tokens_per_s_per_gpu", "tflops_per_gpu", "mfu", "hfu"))
    if not (row.get("micro_batch") or steps or tried or waits) and rated:
        assumed.append("global_batch_size")
        return SEQUENCES_PER_REPLICA * replicas
    if not row.get("micro_batch") or tried or (steps is None and waits):
        if rated:
            assumed.append("global_batch_size")
            return max(round(DEFAULT_BATCH_TOKENS / row["seq_len"] / replicas), 1) * replicas
        raise _Unpredictable(
            "no global batch is stated; give global_batch, global_batch_tokens, or micro_batch and "
            "gradient_accumulation_steps"
        )
    if steps is None:
        assumed.append("global_batch_size")
    return float(row["micro_batch"]) * replicas * (steps or 1.0)


def _replicas(layout: Mapping[str, Any]) -> float:
    split = layout["tensor_parallel"] * layout["pipeline_parallel"] * layout["context_parallel"]
    return float(layout["accelerators"] / split)


def _micro_batches(row: Mapping[str, Any], layout: Mapping[str, Any], assumed: list[str]) -> list[float]:
    """Return the possible micro-batches of a row, in sequences of all chips that share a model.

    >>> layout = {"accelerators": 64.0, "tensor_parallel": 4.0, "pipeline_parallel": 1.0, "context_parallel": 1.0}
    >>> _micro_batches({"micro_batch": 6, "framework": "maxtext"}, {**layout, "global_batch_size": 384.0}, [])
    [24.0]
    """
    per_replica = layout["global_batch_size"] / _replicas(layout)
    if row.get("micro_batch"):
        size = float(row["micro_batch"])
        by_device = frameworks.frameworks().get(str(row.get("framework")), {}).get("batch_per_device")
        if by_device and size * layout["accelerators"] == layout["global_batch_size"]:
            size = per_replica
        if size > per_replica:
            assumed.append("micro_batch_size")
        return [min(size, per_replica)]
    assumed.append("micro_batch_size")
    return [float(size) for size in MICRO_BATCHES if per_replica % size == 0] or [1.0]


def scenarios(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the possible scenarios of each row, or one dict with a ``reason``.

    Each dict has ``row`` (its number), ``group``, ``family``, ``assumed`` (a sentence) and the quantities of a step.
    """
    for number, row in enumerate(rows.iter_rows(named=True)):
        group = row.get("group") or ""
        base: dict[str, Any] = {"row": number, "family": family(group)}
        try:
            yield from [{**base, **_checked(scenario)} for scenario in _alternatives(row)]
        except (_Unpredictable, ScenarioError) as error:
            yield {**base, "reason": str(error)}


def _default_heads(hidden: float, size: float, tensor: float) -> float:
    """Return the number of heads of about a size that tensor parallelism divides, and that divides the hidden size.

    >>> _default_heads(8192.0, 128.0, 8.0), _default_heads(13824.0, 128.0, 8.0)
    (64.0, 96.0)
    """
    rounded = max(float(round(hidden / size)), 1.0)
    if rounded % tensor == 0.0:
        return rounded
    possible = [heads for heads in range(int(tensor), int(2.0 * rounded) + 1, int(tensor)) if hidden % heads == 0.0]
    return float(min(possible, key=lambda heads: abs(math.log(heads / rounded)))) if possible else rounded


def shape_by_name(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the missing columns of its shape, where the tables have a model of its name.

    The layers, hidden size and heads that the row states must be those of that model; otherwise it is another one.
    """
    known = _known_shape(str(row.get("model") or "")) or _sole_shape(row)
    if any(row.get(name) not in (None, "", known.get(SHAPE[name])) for name in IDENTIFYING):
        return row
    shape = {column: known[name] for column, name in SHAPE.items() if name in known}
    states = {name: value for name, value in known.items() if name in STATES and value is not None}
    return {**row, **states, **{name: value for name, value in shape.items() if row.get(name) in (None, "")}}


def _same_width(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the known model of a row's name if it is as wide; rows may cut its layers or pad its vocabulary."""
    known = _known_shape(str(row.get("model") or ""))
    return known if all(row.get(name) == known.get(SHAPE[name]) for name in IDENTIFYING[1:]) else {}


@cache
def _known_shape(model: str) -> Mapping[str, Any]:
    key = known_key("architecture", model)
    return _by_name()[key] if key else {}


def _sole_shape(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the only known model whose name begins with that of a row and has its size, layers, width and experts.

    >>> _sole_shape({"model": "gpt-oss", "total_params": 117e9})["architecture"]
    'gpt_oss_120b'
    """
    start = letters("architecture", str(row.get("model") or ""))
    matching = []
    for shape in _by_name().values():
        size, total = re.search(r"(\d+\.?\d*)b", shape["name"].lower()), row.get("total_params")
        near = not (total and size) or abs(float(size[1]) * 1e9 / total - 1.0) < MAX_SIZE_ROUNDING
        same = all(row.get(name) in (None, "", shape[SHAPE[name]]) for name in (*IDENTIFYING, "experts"))
        if near and same and letters("architecture", shape["name"]).startswith(start):
            matching.append(shape)
    return matching[0] if len(start) >= LEAST_LETTERS and len(matching) == 1 else {}


@cache
def models_measured(parts: tuple[str, ...]) -> int:
    """Return the number of known models that have any of these parts of a shape and a measured run."""
    rows = table("training_runs").select("model", "kind").unique().collect().iter_rows(named=True)
    named = {row["model"]: shape_by_name(row) for row in rows if row["kind"] in ("throughput", "mlperf")}
    return len({identify("architecture", name) for name, row in named.items() if any(map(row.get, parts))})


@cache
def _by_name() -> Mapping[str, Mapping[str, Any]]:
    return {row["architecture"]: row for row in table("architectures").collect().iter_rows(named=True)}


def _checked(scenario: dict[str, Any]) -> dict[str, Any]:
    for name, value in scenario.items():
        if name in vocabulary():
            quantity(name).check(value)
    check_layout(scenario, scenario)
    return scenario


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.lower() in source_terms.MISSING)


def _read_number(row: Mapping[str, Any], name: str) -> float | None:
    cell = row.get(name)
    if _is_missing(cell) or (isinstance(cell, str) and cell.lower() == "none"):
        return None
    read = None
    try:
        if isinstance(cell, str):
            plain = re.sub(rf"^{name}[ =:-]?| ?{COLUMNS[name]['unit'] or name}$", "", cell, flags=re.IGNORECASE)
            read = source_terms.number(plain, SEQUENCE_K if name == "seq_len" else 1000.0)
        number = float(cell) if read is None else read  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _Unpredictable(f"{name} must be a number, got {cell!r}") from None
    if not abs(number) < MAX_NUMBER:
        raise _Unpredictable(f"{name} must be below {MAX_NUMBER:g}, got {number:g}")
    if name in COUNTS and number % 1.0:
        raise _Unpredictable(f"{name} must be a whole number, got {number:g}")
    return number


def _cell(row: Mapping[str, Any], name: str) -> Any:
    if name in NUMBERS or name in STATED or name in SOFTWARE:
        return _read_number(row, name)
    return None if _is_missing(row[name]) else row[name]


def _alternatives(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the possible scenarios of a row: many where it states no layout and its chips may have any.

    On TPUs, and where a row states its sharding, weights are sharded and models are not split.
    """
    notes = source_terms.read_notes(row)
    row = _by_device(source_terms.read_words(row) | notes)
    stated = any(row.get(name) not in (None, "") for name in ("tp", "pp", "zero_stage", "sharding"))
    alone = _read_number(row, "accelerator_count") == 1.0
    if stated or alone:
        return [_with_notes(scenario, notes) for scenario in _scenarios(row, [])]
    is_torus = chip_in(row.get("accelerator")).get("kind", "TPU") == "TPU"
    splits = ((1.0,), (1.0,)) if is_torus else (TENSOR_DEGREES, PIPELINE_DEGREES)
    possible, reasons = [], []
    for tensor, stages, expert in itertools.product(*splits, _expert_degrees(row)):
        try:
            tried = _scenarios({**row, "tp": tensor, "pp": stages, "ep": expert}, ["layout"])
            possible += [_checked(_with_notes(scenario, notes)) for scenario in tried]
        except (_Unpredictable, ScenarioError) as reason:
            reasons.append(reason)
    if not possible:
        raise reasons[0]
    return possible


def _by_device(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row of chips that software sees as several devices as a row of these devices."""
    chip = chip_in(row.get("accelerator")).get("accelerator")
    parts = source_terms.SEPARATE_DEVICES.get(str(chip), 1.0)
    if parts == 1.0 or row.get("devices_per_accelerator"):
        return row
    counts = {name: _read_number(row, name) for name in ("accelerator_count", "accelerators_per_node", "dp")}
    sequences = _read_number(row, "micro_batch")
    split = {"micro_batch": sequences / parts} if sequences and sequences % parts == 0.0 else {}
    more = {name: number * parts for name, number in counts.items() if number}
    return {**row, **more, **split, "devices_per_accelerator": parts, "chip_devices": parts}


def _with_notes(scenario: dict[str, Any], notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario whose ``assumed`` also names the columns that were read from notes."""
    named = f"read from notes: {', '.join(notes)}" if notes else ""
    return {**scenario, "assumed": "; ".join(filter(None, (scenario["assumed"], named)))}


def _expert_degrees(row: Mapping[str, Any]) -> list[float]:
    experts = _read_number(row, "experts") or 0.0
    return [degree for degree in EXPERT_DEGREES if degree == 1.0 or (experts > 1.0 and experts % degree == 0)]


def _completed(row: Mapping[str, Any], assumed: list[str]) -> dict[str, Any]:
    """Return a row with numbers as numbers and the shape of its model; raise if a needed column is missing."""
    if row.get("kind") in WITHOUT_STEPS:
        raise _Unpredictable(f"a row of kind {row['kind']!r} states no step")
    if source_terms.is_no_language_model(str(row.get("model") or "")):
        raise _Unpredictable(
            f"model {row['model']!r} is not modelled; known are language models that learn to predict the next token"
        )
    row = shape_by_name({name: _cell(row, name) for name in row})
    for name, choices in CHOICES.items():
        if row.get(name) is not None and row[name] not in choices:
            raise _Unpredictable(f"{name} must be one of {', '.join(choices)}, got {row[name]!r}")
    if row.get("accelerator_count") is None and all(row.get(name) for name in ("tp", "pp", "dp")):
        row["accelerator_count"] = row["tp"] * row["pp"] * row["dp"] * (row.get("cp") or 1.0)
    total = row.get("total_params")
    is_dense = not (row.get("experts") or row.get("ep")) and row.get("active_params") in (None, total)
    if is_dense and total and not (row.get("layers") or row.get("hidden")):
        assumed += ["layers", "hidden_size"]
        row["layers"] = max(float(round((total / (12.0 * DEFAULT_HEAD_SIZE**2)) ** (1.0 / 3.0))), 1.0)
        row["hidden"] = DEFAULT_HEAD_SIZE * row["layers"]
    if row.get("seq_len") is None:
        assumed.append("sequence_length")
        late = (software_year(row) or constants()["software_year"]) >= LONG_YEAR
        row["seq_len"] = LONG_SEQUENCE if late else SHORT_SEQUENCE
    if row.get("heads") is None and row.get("hidden"):
        assumed.append("attention_heads")
        row["heads"] = _default_heads(row["hidden"], row.get("head_dim") or DEFAULT_HEAD_SIZE, row.get("tp") or 1.0)
    missing = ["hardware" if name == "accelerator" else name for name in NEEDED if row.get(name) in (None, "")]
    if (row.get("experts") or 0.0) > 1.0 and row.get("top_k") is None:
        missing.append("top_k")
    if missing:
        raise _Unpredictable(f"{', '.join(missing)} not stated")
    for name in NEEDED:
        if name in NUMBERS and row[name] < 1.0:
            raise _Unpredictable(f"{name} {row[name]:g} is less than one")
    return row


def _logits_layers(software: Mapping[str, Any], shape: Mapping[str, float]) -> float:
    """Return the layers with as much work as the logits, which balanced stages take into account."""
    block = 2.0 * (shape["attention_heads"] + shape["kv_heads"]) * shape["head_size"]
    block += (2.0 + shape["gated_ffn"]) * shape["ffn_size"]
    return float(software["balanced_stages"] * shape["vocabulary_size"] / block)


def _state(
    row: Mapping[str, Any], software: Mapping[str, Any], layout: Mapping[str, Any], precision: str, micro_batches: float
) -> dict[str, float]:
    """Return the bytes per parameter of optimizer and gradients, and of what an update or a sum of gradients needs."""
    halved, own_state = row.get("optimizer_state_bits") == 16.0, software["state_bytes"]
    wide = not (halved or own_state)
    moments = MOMENT_BYTES.get(row.get("optimizer") or "adam", ADAM_BYTES)[0 if wide else 1]
    optimizer = 4.0 * wide + moments
    narrow = precision == "fp16" or layout["zero_stage"] >= 2 or halved
    gradients = 6.0 if row.get("gradient_bits") == 32.0 else software["gradient_bytes"] or (2.0 if narrow else 4.0)
    update = software["update_bytes"] * (1.0 if own_state or halved else 2.0)
    if own_state:
        gradients, optimizer = 2.0, own_state - 4.0 if moments == ADAM_BYTES[1] else moments
    elif precision == "fp16":
        optimizer += software["half_gradient_bytes"]
        update = max(update, FULL_GRADIENT_BYTES - software["half_gradient_bytes"])
    if layout["accelerators"] > layout["tensor_parallel"] * layout["pipeline_parallel"]:
        gradients += software["bucket_bytes"]
    arising, sharded = software["arising_gradients"] * (micro_batches == 1.0), layout["zero_stage"] == 3.0
    gathered = 2.0 * arising * (sharded and wide)  # weights of 16 bits exist only while they are gathered
    return {
        "optimizer_bytes_per_parameter": optimizer - gathered,
        "gradient_bytes_per_parameter": gradients * (1.0 - arising),
        "update_bytes_per_parameter": update + gradients * arising + gathered,
        "accumulated_gradient_bytes": software["accumulated_bytes"] * (sharded and micro_batches > 1.0),
    }


def _recomputed_share(
    row: Mapping[str, Any], layout: Mapping[str, Any], layers: float, selective: float
) -> float | None:
    """Return the share of layers that a row recomputes, None if unknown; ``selective`` is that of a framework.

    >>> stages = {"pipeline_parallel": 4.0, "virtual_stages": 2.0}
    >>> _recomputed_share({"recompute": "full", "recompute_layers_per_chunk": 5.0}, stages, 80.0, 0.0)
    0.5
    """
    kind = row.get("recompute")
    if kind not in ("none", "selective", "modules", "full"):
        return None
    if row.get("recompute_layers_per_chunk"):
        chunks = layout["pipeline_parallel"] * layout["virtual_stages"]
        return min(row["recompute_layers_per_chunk"] * chunks / layers, 1.0)
    if row.get("recompute_share") is not None:
        return float(row["recompute_share"])
    return {"none": 0.0, "selective": selective, "modules": 0.0, "full": 1.0}[kind]


def _scenarios(row: Mapping[str, Any], assumed: list[str]) -> list[dict[str, Any]]:
    """Return the scenarios of a row with this layout, one for each micro-batch size that it may have."""
    row = _completed(row, assumed)
    precision = _precision(row, assumed)
    chip = _chip(row, precision)
    precision = "fp8" if precision == "int8" else precision
    shape = _architecture(row, assumed)
    year = _year(row, precision, assumed)
    if row.get("scale_out_bytes_per_s") is None and re.search(r"\d", str(row.get("network") or "")):
        assumed.append("network")
    software = _software(row, chip, year, assumed)
    layout = _layout(row, year, assumed)
    if layout["zero_stage"] == 1.0:
        layout["zero_stage"] = max(software["zero_stage"], 1.0)
    share = _recomputed_share(row, layout, shape["layers"], software["selective_share"])
    has_modules = year >= frameworks.releases().get(_framework(row) or "", {}).get("recompute_modules", math.inf)
    if share is None:
        assumed.append("recompute")
        row["recompute"] = "modules" if has_modules and shape["experts"] > 1.0 else "none"
    if row.get("vp") is None and layout["pipeline_parallel"] > 1 and share is None and year >= 2023:
        assumed.append("virtual_stages")
    if year < 2023:
        norms_split = row.get("sequence_parallel")
        software["sequence_parallel"] = (
            float(row.get("recompute") == "selective") if norms_split is None else norms_split
        )
    common = {
        **chip,
        **software,
        **shape,
        **layout,
        **_adapters(row, precision, assumed),
        "chip_devices": row.get("chip_devices", 1.0),
        "precision": precision,
        "recompute": row["recompute"],
        "share_stated": share,
        "kept_share": row.get("kept_share") or 1.0,
        "stated_parameters": float(row["total_params"]) if row.get("total_params") else None,
        "newton_schulz_steps": MUON_STEPS * (row.get("optimizer") == "muon"),
        **{name: row.get(name) or 0.0 for name in OFFLOADED},
        "logits_layers": _logits_layers(software, shape),
        "dropout": software["dropout"] * (1.0 - shape["gated_ffn"]),
        "software_year": year,
        **dict(zip(("software", "generation"), software_of(_framework(row), str(chip["accelerator"])), strict=True)),
    }
    variants = []
    for size in _micro_batches(row, layout, assumed):
        count = max(layout["global_batch_size"] / (size * _replicas(layout)), 1.0)
        variants.append(
            {
                **common,
                **_state(row, software, layout, precision, count),
                "micro_batch_size": size,
                "micro_batches": count,
                "virtual_stages": _chunks(layout, shape["layers"], count, assumed),
            }
        )
    names = list(dict.fromkeys(assumed))
    inputs = float(len(names) + (LAYOUT_DEGREES - 1 if "layout" in names else 0))
    return [{**variant, "assumed_inputs": inputs, "assumed": ", ".join(names)} for variant in variants]


def _chunks(layout: Mapping[str, Any], layers: float, micro_batches: float, assumed: list[str]) -> float:
    """Return the chunks of a stage; where they are unknown, a layer each, or two in deep stages, as recipes have."""
    if "virtual_stages" not in assumed or micro_batches % layout["pipeline_parallel"]:
        return float(layout["virtual_stages"])
    deep = math.ceil(layers / layout["pipeline_parallel"])
    return float(deep if deep <= 8 else math.ceil(deep / 2))


def tidied(rows: Any) -> pl.DataFrame:
    """Return rows of training runs as a frame with text in the columns of text.

    Raises
    ------
    ScenarioError
        If they are no frame, are empty, have none of the columns that a prediction needs, or have lists in one.
    """
    frame = validation.frame("rows", rows)
    if frame.height == 0:
        raise ScenarioError("the frame has no rows; nothing can be validated")
    needed = ("hardware", *NEEDED)
    if not set(needed) & set(frame.columns):
        got = ", ".join(frame.columns[:MAX_COLUMNS_SHOWN]) or "none"
        raise ScenarioError(
            f"rows must have columns of fk.table('training_runs') such as {', '.join(needed)}, got columns {got}"
        )
    read = [name for name in (*TEXTS, *NUMBERS, *STATED, *SOFTWARE, *MEASURED) if name in frame.columns]
    for name in read:
        if frame.schema[name].is_nested():
            raise ScenarioError(f"column {name} is {frame.schema[name]}; give one number or text a row")
    texts = [name for name in read if name in TEXTS or not frame.schema[name].is_numeric()]
    frame = frame.with_columns(pl.col(texts).cast(pl.String, strict=False).str.strip_chars())
    _warn_of_unread(frame)
    return frame


def positive(rows: pl.DataFrame, name: str, most: float = MAX_NUMBER) -> pl.Expr:
    """Return a column as numbers above zero and up to ``most``; other cells are null."""
    number = pl.col(name) if name in rows.columns else pl.lit(None, dtype=pl.Float64)
    if rows.schema.get(name) == pl.String:
        number = number.map_elements(lambda text: _number_in(name, text), return_dtype=pl.Float64)
    number = number.cast(pl.Float64, strict=False)
    return pl.when((number > 0.0) & (number <= most)).then(number)


def _number_in(name: str, text: str) -> float | None:
    """Return the number in a cell, in the unit of its column where the cell has another, or None."""
    if (plain := source_terms.number(text)) is None and name in MEASURED_IN:
        row, unit = MEASURED_IN[name]
        with contextlib.suppress(ScenarioError):
            return units.parse(quantity(row), text) / unit
    return plain


def _warn_of_unread(rows: pl.DataFrame) -> None:
    """Warn of measured cells that are not numbers of their column, which nothing is compared with."""
    for name in (name for name in MEASURED if name in rows.columns):
        read = positive(rows, name, 1.0 if name in ("mfu", "hfu") else MAX_NUMBER)
        given = pl.col(name).cast(pl.String, strict=False)
        lost = rows.filter(given.is_not_null() & (given != "") & read.is_null())[name].unique(maintain_order=True)
        if not lost.is_empty():
            cells = ", ".join(map(short_repr, lost.head(3)))
            warn(f"{name} = {cells} {'is' if lost.len() == 1 else 'are'} not compared; give {MEASURED[name]} above 0")


def measured_step_s(rows: pl.DataFrame, ready: pl.DataFrame) -> pl.Series:
    """Return the measured time of a step: printed, or batch tokens over throughput, or batch FLOP over the FLOP rate.

    Where only a FLOP rate, an MFU or an HFU is printed, the whole attention square is counted, as most such sources
    do, MFU is of the dense 16-bit peak, and hardware FLOP include the recomputed forward pass. Such a
    rate needs the row's scenario, from ``ready``. A cell that is no positive number measures nothing, nor does a rate
    above the peak.
    """

    def column(name: str, most: float = MAX_NUMBER) -> pl.Expr:
        return positive(rows, name, most)

    basis = pl.col("flops_basis") if "flops_basis" in rows.columns else pl.lit(None, dtype=pl.String)
    of_hardware = (basis == "hardware") | (column("tflops_per_gpu").is_null() & column("mfu", 1.0).is_null())
    batch_tokens = pl.coalesce(column("global_batch_tokens"), column("global_batch") * column("seq_len"))
    rate = column("tokens_per_s_per_gpu") * column("accelerator_count")
    if not ready.is_empty():
        read = ready.unique("row", keep="first").select(
            pl.col("row"), (pl.col("global_batch_size") * pl.col("sequence_length")).alias("read_tokens")
        )
        rows = (
            rows.with_row_index("row")
            .with_columns(pl.col("row").cast(pl.Int64))
            .join(read, on="row", how="left", maintain_order="left")
        )
    batch_tokens = pl.coalesce(batch_tokens, column("read_tokens"))
    printed = rows.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("row"),
        pl.coalesce(column("step_time_s"), batch_tokens / rate).alias("printed_s"),
        (batch_tokens / column("accelerator_count")).alias("tokens"),
        (column("tflops_per_gpu") * 1e12).alias("flop_per_s"),
        pl.coalesce(column("mfu", 1.0), column("hfu", 1.0)).alias("utilization"),
        of_hardware.alias("of_hardware"),
    )
    if ready.is_empty():
        return printed["printed_s"].alias("measured_s")
    counted = evaluate(ready.unique("row", keep="first", maintain_order=True), ["model_flop_per_token_full_attention"])
    wide = printed.join(counted, on="row", how="left", maintain_order="left")
    passes = 1.0 + pl.when("of_hardware").then(pl.col("recompute_share") / 3.0).otherwise(0.0)
    achieved = pl.coalesce("flop_per_s", pl.col("utilization") * pl.col("peak_16bit_flop_per_s"))
    possible = pl.when(achieved <= pl.col("peak_flop_per_s")).then(achieved)
    derived = pl.col("tokens") * pl.col("model_flop_per_token_full_attention") * passes / possible
    return wide.select(pl.coalesce("printed_s", derived).alias("measured_s"))["measured_s"]


def _counted(ready: pl.DataFrame) -> pl.DataFrame:
    """Return the scenarios with one embedding or two, and with fewer dense layers, as meets the stated parameters best.

    Cut models keep fewer dense layers than the whole one.
    """
    stated = ready["stated_parameters"]
    best = ready.select("tied_embeddings", "dense_layers").with_columns(miss=pl.lit(math.inf))
    cuts = (0.0, 1.0, 2.0, 3.0) if ready.select((pl.col("dense_layers") > 0.0).any()).item() else (0.0,)
    for cut, tied in itertools.product(cuts, (0.0, 1.0)):
        dense = (ready["dense_layers"] - cut).clip(0.0)
        tried = ready.with_columns(pl.lit(tied).alias("tied_embeddings"), dense.alias("dense_layers"))
        miss = (evaluate(tried, "parameters")["parameters"] / stated - 1.0).abs() + cut * LEAST_GAIN
        nearer = (miss < best["miss"]).fill_null(value=False)
        best = best.with_columns(
            tied_embeddings=pl.when(nearer).then(tied).otherwise("tied_embeddings"),
            dense_layers=pl.when(nearer).then(dense).otherwise("dense_layers"),
            miss=pl.when(nearer).then(miss).otherwise("miss"),
        )
    return ready.with_columns(best["tied_embeddings"], best["dense_layers"]).drop("stated_parameters")


def prepared(rows: pl.DataFrame, memory: Mapping[str, float] | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the scenarios of the rows with their recomputation settled, and the rows that have none with the reason.

    Where a source does not state recomputation, the least share of layers that lets the run go is recomputed, with
    calibrated constants of ``memory`` if any. The first recomputed layer needs temporary memory, so the
    straight line to all layers starts just above none.
    """
    every = list(scenarios(rows))
    reasons = pl.DataFrame(
        [{"row": run["row"], "family": run["family"], "reason": run["reason"]} for run in every if "reason" in run],
        schema={"row": pl.Int64, "family": pl.String, "reason": pl.String},
    )
    predictable = [run for run in every if "reason" not in run]
    types = {"row": pl.Int64, "stated_parameters": pl.Float64, "share_stated": pl.Float64}
    ready = pl.DataFrame(predictable, infer_schema_length=None, schema_overrides=types if predictable else {})
    if ready.is_empty():
        return ready, reasons
    plain = _counted(ready.drop("accelerator"))
    room, needed = ready["accelerator_memory_bytes"], "memory_needed_bytes"
    calibrated = [pl.lit(value).alias(name) for name, value in (memory or {}).items()]
    none, first, full = (
        evaluate(plain.with_columns(pl.lit(share).alias("recompute_share"), *calibrated), needed)[needed]
        for share in (0.0, FIRST_LAYER, 1.0)
    )
    least = pl.select(least_share(none, first, full, room)).to_series()
    share = ready["share_stated"].fill_null(least)
    return plain.with_columns(share.alias("recompute_share")), reasons
