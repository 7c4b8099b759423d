"""Published training runs as scenarios: the columns of the ``training_runs`` table read into quantities.

What a source leaves out is filled by rule, never by row: each filling is named in ``assumed``, and a row that cannot
be filled says why in ``reason``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from factorykit.core import validation
from factorykit.core.errors import FactorykitError, ScenarioError, UnknownName, unknown_name_message
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data.identifiers import accelerator_in, identify
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers import frameworks
from factorykit.engine.providers.accelerators import BROUGHT, brought, chip_in, chips
from factorykit.engine.providers.constants import constants
from factorykit.engine.rules import check
from factorykit.model.performance.activation_checkpointing import FIRST_LAYER, least_share
from factorykit.model.validation import source_terms

if TYPE_CHECKING:
    import polars as pl

COLUMNS: Final = ("id", "group", "layers", "hidden", "heads", "seq_len", "hardware", "accelerator_count")
"""Columns without which nothing can be predicted."""
NUMBERS: Final = frozenset(
    {
        *("year", "total_params", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "mlp_gated", "vocab"),
        *(
            "experts",
            "top_k",
            "moe_ffn",
            "shared_experts",
            "seq_len",
            "accelerator_count",
            "tp",
            "pp",
            "dp",
            "vp",
            "ep",
            "cp",
            "etp",
        ),
        *("micro_batch", "global_batch", "global_batch_tokens"),
    }
)
"""Columns of numbers that a scenario is read from."""
WHOLE: Final = NUMBERS - {"year", "total_params", "mlp_gated", "global_batch", "global_batch_tokens"}
"""Columns of counts; a batch may be the mean of a ramp."""
WITHOUT_STEPS: Final = ("training_run", "cost_estimate", "reliability", "energy_measured")
"""Kinds of rows about whole runs."""
UNSAID: Final = ("", "-", "--", "?", "n/a", "na", "none", "null", "nan", "unknown", "not stated")
"""How cells say that they say nothing, whatever their case."""
LARGEST: Final = 1e15
"""No cell of these columns comes near it; products of larger ones could overflow."""
TEXTS: Final = (
    *("kind", "group", "model", "organisation", "hardware", "precision"),
    *("recompute", "sharding", "network", "flops_basis"),
    *("framework", "framework_version", "cuda_graphs", "release_month"),
    *("source", "locator", "note", "notes"),
)
"""Columns of words."""
MEASURED: Final = ("step_time_s", "tokens_per_s_per_gpu", "mfu", "hfu", "tflops_per_gpu", "mem_gib_per_gpu")
"""Columns of measurements, of which a step time or a memory follows."""
INT8_TPU_YEAR: Final = 2023.0
"""TPUs multiply whole numbers of 8 bits twice as fast as those of 16 bits from v5e of that year on; v4 as fast."""
EIGHT_BITS_YEAR: Final = 2024.0
"""All 75 submissions to MLPerf from that year on that say their number format say one of 8 bits."""
USUAL_HEAD: Final = 128.0
"""Width of a head where a source gives no number of heads."""
SHAPE: Final = {
    "layers": "layers",
    "hidden": "hidden_size",
    "heads": "attention_heads",
    "kv_heads": "kv_heads",
    "head_dim": "head_size",
    "ffn": "ffn_size",
    "mlp_gated": "gated_ffn",
    "vocab": "vocabulary_size",
    "experts": "experts",
    "top_k": "experts_per_token",
    "moe_ffn": "expert_ffn_size",
    "shared_experts": "shared_experts",
}
"""Columns of a shape, and what the table of architectures calls them."""
OF_A_MODEL: Final = ("layers", "hidden", "heads")
"""Columns that tell one model from another."""
STATES: Final = (
    *("attention_layers", "linear_attention_layers", "ffn_layers", "linear_key_heads", "linear_key_size"),
    *("linear_value_heads", "linear_value_size", "linear_gates", "linear_gate_rank", "convolution_width", "step_rank"),
    *("state_element_flop", "gated_attention", "index_heads", "index_head_size"),
)
"""What else the shape of a hybrid has, which no column states: of the model that the row names."""
BINARY: Final = 1024.0
"""A k of the tokens of a sequence."""
NOT_FOUR: Final = 0.01
"""Blocks without a gate are four hidden sizes wide, as GPT's are, those with one are not: so where nobody says."""
USUAL_VOCABULARY: Final = 51_200.0
"""Rows of the GPT-2 vocabulary, padded: stands in where a source gives none."""
GIB: Final = 2.0**30
PLAIN_MOMENTS: Final = 4.0
"""Bytes of Adam's two moments in 16 bits."""
CHEAP_KEPT, CHEAP_YEAR = 0.6, 2025.0
"""Share of the activations of models with experts that software of that year keeps: it repeats norms, activations and
up-projections at little cost (Megatron-Core's ``recompute_modules``), and recipes do so without saying it. So does
selective recomputation that names them, or whole layers of experts (``moe``; ``moe_act`` is their activation alone)."""
KEPT_NARROW: Final = 0.5
"""Bytes of activations that a source says are kept in 8 bits over those of 16."""
FULL_GRADIENT_BYTES: Final = 4.0
"""Bytes of the copy in 32 bits that an update of fp16 training takes of each gradient."""
GRAPH_POOL: Final = 0.3
"""Share of activations that a graph of a whole step keeps in a pool of its own: 187 GB without graphs, 193 with those
of attention and routing and 225 with one of the step, for one layout of Hy3 on GB300 (activations about 90 GB)."""
FUSED_LOSS: Final = 0.25
"""Whole logits of a library whose loss is one kernel: 8 bytes for each token and entry of the vocabulary in place of
14, as it holds them in 16 bits beside those in 32 and their gradient. Slopes over the batch of Llama 3 8B with
adapters, fms-acceleration."""
USUAL_RANK: Final = 16.0
"""Rank of adapters where a source gives none: that of the MLPerf reference, on the four matrices of attention."""
LEAST_GAIN: Final = 0.02
"""Share of the stated parameters that one dense layer less has to explain."""
LAST_FP16_YEAR: Final = 2022.0
FP16_FRAMEWORKS: Final = (None, "megatron_lm", "megatron_deepspeed")
"""Runs of Megatron in fp16 use the software of the time before bf16 became the rule, whenever they were published."""
FABRICS: Final = {
    "omni-path": {"scale_out_share": 0.34},
    "efa": {"scale_out_share": 0.65, "scale_out_latency_s": 7e-4, "message_s": 1.5e-6},
}
"""What networks reach that are no InfiniBand, by a word of their description.

Omni-Path: 135 of 400 Gb/s between nodes of Jean Zay, measured before BLOOM and a year later (S. Bekman, "Machine
learning engineering," 744d01e, network, Omni-Path); its adapters leave messages to the processor. EFA: what the
tensor-parallel rows of nanotron over two and four nodes reach, and 0.7 ms for each further node of a ring; its messages
go through the processor, and DeepEP, which sends tokens one by one, takes 1.2 to 2 us for each."""
POWER_LIMITED: Final = 0.72
"""Share of a chip's design power where a source says that it is limited, not to what: 500 of 700 W in Meta's fleet."""
PARTS_APART: Final = 2.0
"""Most that the memories of two parts of one chip differ by (A100 of 40 and 80 GB); beyond it a name tells the memory
of the host or the node, as "GH200 480GB" does."""
CONTAINER: Final = r"v?(2\d)\.(\d\d?)(?!\d)"
"""Version of a container that is its year and month."""
PARTS: Final[Mapping[str, tuple[str, float]]] = {
    "mi250x": ("gcd", 2.0),
    "max_1550": ("tile|stack", 2.0),
    "trainium1": ("(?:neuron)?[ -]?core", 2.0),
    "trainium2": ("(?:neuron)?[ -]?core", 8.0),
}
"""Parts that some count instead of chips: the word for them, and how many a chip has."""
WHOLE_CHIPS: Final = r"\b(?:chips|gpus|modules)\b"
"""Words that say that chips are counted, whatever is said of their parts."""
OF_A_PART: Final = (
    *("peak_flop_per_s", "peak_16bit_flop_per_s", "exponentials_per_s", "accelerator_memory_bytes"),
    *("memory_bytes_per_s", "scale_up_bytes_per_s", "scale_out_bytes_per_s"),
)
"""What the parts of a chip have shares of."""
RELEASES: Final = {"v2.1": 2022.5, "v3.0": 2023.5, "v3.1": 2023.85, "v4.0": 2024.45, "v4.1": 2024.85} | {
    "v5.0": 2025.45,
    "v5.1": 2025.85,
    "v6.0": 2026.45,
}
"""Rounds of MLPerf Training and when their results appeared."""
SCHEDULES: Final = {"dualpipe": "dualpipe", "zero.bubble": "zb1p"}
"""Pipeline schedules by the word of a note."""
MICRO_BATCHES: Final = (1, 2, 4, 8, 16, 32)
"""Micro-batch sizes that are tried where a source states none; operators choose the fastest that fits."""
TENSOR_WAYS: Final = (1.0, 2.0, 4.0, 8.0)
PIPELINE_STAGES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
EXPERT_WAYS: Final = (1.0, 8.0, 16.0, 32.0, 64.0)
"""Degrees that are tried where a source states no layout; operators choose the fastest that fits."""
FROZEN_NARROW: Final = ("fp8", "mxfp8")
"""Precisions in which frozen weights are stored: they need no copy in 16 bits (Transformer Engine's
``quantized_model_init``), and H200 holds those of Llama 2 70B whole."""
LAYOUT_DEGREES: Final = 5
"""Inputs that are assumed where a source states no layout: tensor, pipeline, virtual, context and expert degree."""


def family(group: str) -> str:
    """Return the family of a group: the word before the first hyphen.

    >>> family("mosaicml-7b")
    'mosaicml'
    """
    return group.partition("-")[0]


@cache
def _architectures() -> Mapping[tuple[float, float, float], Mapping[str, Any]]:
    rows = table("architectures").reverse().collect().iter_rows(named=True)  # the first of a shape counts
    return {(row["hidden_size"], row["attention_heads"], row["vocabulary_size"]): row for row in rows}


class _Unpredictable(Exception):
    """Why a row cannot be predicted."""


def _precision(row: Mapping[str, Any], assumed: list[str]) -> str:
    stated = row.get("precision")
    if not stated:
        assumed.append("precision")
        late = row.get("kind") == "mlperf" and (software_year(row) or 0.0) >= EIGHT_BITS_YEAR
        return "fp8" if late and chip_in(row.get("hardware")).get("peak_fp8_flop_per_s") else "bf16"
    found = source_terms.precision_of(stated)
    if found is None:
        raise _Unpredictable(
            f"precision {stated!r} is not modelled; give that of matrix products: bf16, fp16, fp8, mxfp8, nvfp4 or int8"
        )
    return found


def _chip(row: Mapping[str, Any], precision: str) -> dict[str, Any]:
    hardware = row["hardware"] or ""
    try:
        key = accelerator_in(hardware)
    except FactorykitError as error:
        raise _Unpredictable(f"{error}; for a chip of one's own ask fk.evaluate with fk.accelerator") from None
    chip: dict[str, Any] = brought(key, "bf16" if precision == "int8" else precision)
    if precision == "int8" and chip["chip_year"] >= INT8_TPU_YEAR:
        chip["peak_flop_per_s"] *= 2.0
    if unsaid := [name for name in BROUGHT if name not in chip]:
        raise _Unpredictable(f"{chips()[key]['name']}: the tables do not say {', '.join(unsaid)} at {precision}")
    memory = re.search(r"(\d+) ?GB", hardware)
    if memory and float(memory[1]) * 1e9 <= PARTS_APART * chip["accelerator_memory_bytes"]:
        chip["accelerator_memory_bytes"] = float(memory[1]) * 1e9
    word, parts = PARTS.get(key, ("", 0.0))
    if parts and re.search(rf"\b(?:{word})s?\b", hardware.lower()) and not re.search(WHOLE_CHIPS, hardware.lower()):
        chip |= {name: chip[name] / parts for name in OF_A_PART}
        chip["scale_up_domain"] *= parts if chips()[key]["scale_up_domain"] else 1.0
    network = row.get("network") or ""
    node = source_terms.node_size(f"{hardware} {network}")
    if node and chip["scale_up_domain"] < frameworks.RACK:
        chip["scale_up_domain"] = node
    watts = re.search(r"(\d+) ?W\b", hardware)
    design = chips()[key]["tdp_w"] or chips()[key]["tdp_estimated_w"]
    limited = POWER_LIMITED if "power limited" in hardware.lower() else 1.0
    chip["power_limit_share"] = float(watts[1]) / design if watts and design else limited
    cut = re.search(r"NVLink cut to (\d+) GB/s", network)
    if cut:
        chip["scale_up_bytes_per_s"] = float(cut[1]) * 0.5e9
    stated = source_terms.link_bytes_per_s(network, node or 8.0)
    if stated:
        chip["scale_out_bytes_per_s"] = stated
    fabric = next((what for word, what in FABRICS.items() if re.search(rf"\b{word}\b", network.lower())), {})
    usual = {name: constants()[name] for name in ("scale_out_share", "scale_out_latency_s")}
    return {**chip, **usual, "message_s": 0.0, **fabric, "accelerator": key}


OWN: Final = (
    *("logs_first_stage", "selective_share", "balanced_stages", "sequence_parallel", "zero_stage"),
    *("state_bytes", "gradient_bytes", "half_gradient_bytes", "update_bytes", "bucket_bytes", "gather_buffer_bytes"),
    *("whole_logits", "dropout", "cached_share", "arising_gradients"),
)
"""Columns of frameworks that only the reading of rows needs."""


LOGS: Final = {
    "allocated": ("peak allocated", "max_memory_allocated", "max allocated"),
    "reserved": ("max_memory_reserved", "peak reserved", "reserved by"),
    "process": ("nvidia-smi", "rocm-smi", "of the device"),
}
"""Words of a note that say what a printed memory is of: tensors, what the allocator holds for them, or the process."""


def logged(row: Mapping[str, Any], usual: str) -> str:
    """Return what a row's memory is of, by the words of its note, or what is usual.

    >>> logged({"note": "memory is the peak of nvidia-smi"}, "reserved"), logged({}, "reserved")
    ('process', 'reserved')
    """
    said = f"{row.get('note')} {row.get('notes')}".lower()
    return next((what for what, words in LOGS.items() if any(word in said for word in words)), usual)


def software_year(row: Mapping[str, Any]) -> float | None:
    """Return year and part of a year of the software that a row states, the middle of a year stated alone, or None.

    >>> software_year({"release_month": "2026-04", "year": 2026}), software_year({"year": 2023})
    (2026.25, 2023.5)
    """
    texts = " ".join(str(row.get(name) or "") for name in ("locator", "source", "note", "notes"))
    month = re.match(r"(20\d\d)-(\d\d)", row.get("release_month") or "")
    container = (
        re.match(CONTAINER, row.get("framework_version") or "")
        or re.search(rf"(?<![\d.]){CONTAINER}", row.get("framework") or "")
        or re.search(r"(2\d)\.(\d\d)(?:\.\d\d)? NeMo", texts)
    )
    mlperf = re.search(r"training_results_(v\d\.\d)", texts)
    if month:
        return float(month[1]) + (float(month[2]) - 1.0) / 12.0
    if container and 1 <= int(container[2]) <= 12:
        return 2000.0 + float(container[1]) + (float(container[2]) - 1.0) / 12.0
    if mlperf and mlperf[1] in RELEASES:
        return RELEASES[mlperf[1]]
    return float(row["year"]) + 0.5 if row.get("year") else None


def _adapters(row: Mapping[str, Any], precision: str, assumed: list[str]) -> dict[str, Any]:
    """Return the low-rank adapters that a row names, in its group, model or note, and the bits of frozen weights."""
    texts = " ".join(str(row.get(name) or "") for name in ("group", "model", "note", "notes")).lower()
    if "lora" not in texts:
        return {"lora_rank": 0.0, "lora_matrices": "all", "adapter_dropout": 0.0, "weight_bits": 16.0}
    rank = re.search(r"\brank (\d+)|\br ?= ?(\d+)", texts)
    reference = row.get("kind") == "mlperf" or "mlperf" in texts
    if not rank and not reference:
        assumed.append("lora_rank")
    matrices = source_terms.adapted(texts)
    if not matrices and not reference:
        assumed.append("lora_matrices")
    narrow = re.search(source_terms.NARROW_WEIGHTS, f"{texts} {row.get('precision')}".lower())
    return {
        "lora_rank": float(rank[1] or rank[2]) if rank else USUAL_RANK,
        "lora_matrices": matrices or ("attention" if reference else "all"),
        "adapter_dropout": float(reference or re.search(source_terms.DROPPED, texts) is not None),
        "weight_bits": 4.0 if narrow else 8.0 if precision in FROZEN_NARROW else 16.0,
    }


def _framework(row: Mapping[str, Any], vendor: str, domain: float, year: float, assumed: list[str]) -> dict[str, Any]:
    """Return the features of the software that a row names, in its own column or in the words of its source."""
    stated = row.get("framework") or ""
    found = frameworks.named(row)
    brought: dict[str, Any] = {}
    if found is None:
        assumed.append("framework")
        brought |= frameworks.unnamed(year) | dict.fromkeys(("chunked_loss", "graph_pool_share", *OWN), 0.0)
        brought |= dict.fromkeys(("sequence_parallel", "dropout"), 1.0)
        return brought | _said(row) | {"logs": logged(row, "process")}
    brought |= frameworks.features(found, year, vendor, domain)
    if "compile" in f"{stated} {row.get('precision')} {row.get('note')}".lower():
        brought["fused_kernels"] = 1.0
    brought |= {name: frameworks.frameworks()[found][name] or 0.0 for name in OWN}
    brought["logs"] = logged(row, frameworks.frameworks()[found]["logs"])
    in_parts = float(re.search(source_terms.LOSS_IN_PARTS, f"{stated} {row.get('note')}".lower()) is not None)
    brought["chunked_loss"] = max(frameworks.frameworks()[found]["chunked_loss"] or 0.0, in_parts)
    if brought["fused_kernels"] == 1.0:
        brought["whole_logits"] = 0.0
    elif "foak" in stated.lower():
        brought["whole_logits"] = FUSED_LOSS
    graphs = (row.get("cuda_graphs") or "").lower()
    if graphs:
        brought["cuda_graphs"] = float(graphs not in ("none", "no", "off", "0"))
    brought["graph_pool_share"] = GRAPH_POOL * ("full" in graphs)
    return brought | _said(row)


SAID: Final[tuple[tuple[str, str, float], ...]] = (
    (r"deepep|hybridep|once (a|per|to a) (node|domain)", "dispatched_once", 1.0),
    (r"nccl all-to-all", "dispatched_once", 0.0),
    (r"no (flash attention|transformer engine)", "flash_attention", 0.0),
    (r"(all-to-all|ep) overlap", "expert_overlap", 1.0),
    (r"overlap off|no (all-to-all|ep) overlap", "expert_overlap", 0.0),
    (r"overlap off|no (all-to-all|ep) overlap", "interleaved_overlap", 0.0),
    (r"no sequence parallel", "sequence_parallel", 0.0),
    (r"padded dense experts", "dispatch_masks", 1.0),
)
"""Words of a note, the feature of the software that they tell of, and its value; what comes later prevails."""


def _said(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the features of the software that the notes of a row state, whatever the software is called.

    >>> said = _said({"framework": "DeepSpeed, FA3", "note": "DeepEP; capacity factor 1.25"})
    >>> said["expert_imbalance"], said["dispatched_once"], said["native_attention"]
    (1.25, 1.0, 1.0)
    """
    said = f"{row.get('note')} {row.get('notes')}".lower()
    capacity = re.search(r"capacity factor (\d+\.?\d*)", said)
    own = re.search(r"\b(fa|flash-?attention[ -]?)[34]\b", f"{row.get('framework')} {said}".lower())
    features = {
        "expert_imbalance": max(float(capacity[1]), 1.0) if capacity else 1.0,
        "dispatch_masks": 0.0,
        "native_attention": float(own is not None),
    }
    return features | {feature: value for words, feature, value in SAID if re.search(words, said)}


def _architecture(row: Mapping[str, Any], assumed: list[str]) -> dict[str, float]:
    layers, hidden, heads = (float(row[name]) for name in ("layers", "hidden", "heads"))
    experts = float(row.get("experts") or 0)
    known = _architectures().get((hidden, heads, float(row.get("vocab") or 0))) or _named_alike(row)
    public = known if experts > 1 and row.get("kv_heads") in (None, known.get("kv_heads")) else {}
    unsaid = {"vocab": "vocabulary_size", "mlp_gated": "gated_ffn"} | (
        {} if public or "attention_heads" in assumed else {"kv_heads": "kv_heads"}
    )
    assumed += [name for column, name in unsaid.items() if row.get(column) is None]
    head = float(row.get("head_dim") or public.get("head_size") or hidden / heads)
    expert_width = float(row.get("moe_ffn") or 0)
    width = float(row.get("ffn") or 0) or (expert_width if experts > 1 else 0.0)
    if not width:
        width = 4.0 * hidden
        assumed.append("ffn_size")
    narrow = abs((expert_width or width) / hidden - 4.0) > NOT_FOUR
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
        "query_rank": float(public.get("query_rank") or 0),
        "kv_rank": float(public.get("kv_rank") or 0),
        "ffn_size": width,
        "gated_ffn": gated,
        "vocabulary_size": float(row.get("vocab") or USUAL_VOCABULARY),
        "tied_embeddings": 1.0 - gated,
        "experts": experts,
        "experts_per_token": float(row.get("top_k") or 0),
        "shared_experts": float(row.get("shared_experts") or 0),
        "expert_ffn_size": expert_width or width,
        "dense_layers": _dense_layers(layers, public),
        "mtp_layers": _prediction_layers(row),
        "expert_biases": float(public.get("expert_biases") or 0),
        "sequence_length": float(row["seq_len"]),
    }


def _schedule(row: Mapping[str, Any]) -> str:
    """Return the pipeline schedule that a row names, or the plain one.

    >>> _schedule({"note": "own software; DualPipe"}), _schedule({"note": "no DualPipe"}), _schedule({})
    ('dualpipe', '1f1b', '1f1b')
    """
    said = " ".join(str(row.get(name) or "") for name in ("sharding", "note", "notes")).lower()
    found = next((key for word, key in SCHEDULES.items() if re.search(rf"(?<!no )(?<!without )\b{word}", said)), None)
    return found or "1f1b"


def _prediction_layers(row: Mapping[str, Any]) -> float:
    """Return the layers that predict further tokens, where a row says that they ran.

    >>> _prediction_layers({"note": "one MTP layer besides"}), _prediction_layers({"model": "DeepSeekV3 (w/o MTP)"})
    (1.0, 0.0)
    """
    said = " ".join(str(row.get(name) or "") for name in ("model", "note", "notes")).lower()
    return float(bool(re.search(r"\b(one|1) mtp layer|w/ mtp|multi-token prediction presumably on", said)))


def _dense_layers(layers: float, known: Mapping[str, Any]) -> float:
    """Return the dense layers of a known model with experts, fewer where it was cut, but one.

    >>> deepseek = {"layers": 61.0, "dense_layers": 3.0}
    >>> _dense_layers(61.0, deepseek), _dense_layers(4.0, deepseek)
    (3.0, 1.0)
    """
    dense = known.get("dense_layers") or 0.0
    return max(float(round(dense * layers / known["layers"])), 1.0) if dense else 0.0


def _layout(row: Mapping[str, Any], year: float, assumed: list[str]) -> dict[str, Any]:
    count = float(row["accelerator_count"])
    if row.get("tp") is None and row.get("pp") is None and count > 1.0:
        assumed.append("layout")
    tensor, pipeline, context = (1.0 if row.get(name) is None else row[name] for name in ("tp", "pp", "cp"))
    if min(tensor, pipeline, context) < 1.0:
        raise _Unpredictable(f"tp {tensor:g}, pp {pipeline:g}, cp {context:g}: a degree is less than one")
    alone = tensor * pipeline * context == 1.0
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
    spread = float(row.get("ep") or 1)
    if (count / pipeline) % spread:
        raise _Unpredictable(f"ep {spread:g} does not divide the {count / pipeline:g} chips of a stage")
    chunks = float(row.get("vp") or 1)
    if pipeline > 1.0 and pipeline * chunks > row["layers"] + 2.0:
        raise _Unpredictable(f"pp {pipeline:g} times vp {chunks:g} is more than {row['layers']:g} layers")
    batch = row.get("global_batch") or (
        row["global_batch_tokens"] / row["seq_len"] if row.get("global_batch_tokens") else None
    )
    if not batch:
        batch = _batch(row, replicas, assumed)
    if batch < replicas:
        if "layout" not in assumed or replicas % batch:
            raise _Unpredictable(f"a batch of {batch:g} sequences is less than {replicas:g} data-parallel copies")
        context *= replicas / batch
    stage = source_terms.zero_stage(row.get("sharding") or "")
    if stage is None and count == 1.0:
        stage = 0.0
    elif stage is None:
        unstated = alone and "layout" in assumed
        stage = 3.0 if unstated else 1.0 if year >= 2023 else 0.0
        assumed.append("zero_stage")
    return {
        "accelerators": count,
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "context_parallel": context,
        "expert_parallel": spread,
        "expert_tensor_parallel": row.get("etp") or (tensor if spread == 1.0 else 1.0),
        "virtual_stages": chunks,
        "global_batch_size": float(batch),
        "zero_stage": stage,
        "schedule": _schedule(row),
    }


def _batch(row: Mapping[str, Any], replicas: float, assumed: list[str]) -> float:
    """Return the sequences of a step by micro-batch and accumulation: one micro-batch of each copy where none is said.

    >>> _batch({"micro_batch": 2.0, "note": "gradient accumulation 4"}, 8.0, [])
    64.0
    """
    steps = source_terms.accumulated(f"{row.get('note')} {row.get('notes')}")
    split = (row.get("tp") or 1.0) * (row.get("pp") or 1.0)
    tried, waits = "layout" in assumed and split > 1.0, (row.get("pp") or 1.0) > 1.0
    if not row.get("micro_batch") or tried or (steps is None and waits):
        raise _Unpredictable(
            "no global batch is stated; give global_batch, global_batch_tokens, or micro_batch and how many are "
            "accumulated (note: gradient accumulation 8)"
        )
    if steps is None:
        assumed.append("global_batch_size")
    return float(row["micro_batch"]) * replicas * (steps or 1.0)


def _micro_batches(row: Mapping[str, Any], layout: Mapping[str, Any], assumed: list[str]) -> list[float]:
    """Return the micro-batches that a row may mean, in sequences of all chips that share a model.

    >>> laid = {"accelerators": 64.0, "tensor_parallel": 4.0, "pipeline_parallel": 1.0, "context_parallel": 1.0}
    >>> _micro_batches({"micro_batch": 24}, {**laid, "global_batch_size": 384.0}, [])
    [24.0]
    """
    replicas = layout["accelerators"] / (
        layout["tensor_parallel"] * layout["pipeline_parallel"] * layout["context_parallel"]
    )
    per_replica = layout["global_batch_size"] / replicas
    if row.get("micro_batch"):
        if float(row["micro_batch"]) > per_replica:
            assumed.append("micro_batch_size")
        return [min(float(row["micro_batch"]), per_replica)]
    assumed.append("micro_batch_size")
    return [float(size) for size in MICRO_BATCHES if per_replica % size == 0] or [1.0]


def scenarios(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield for each row the scenarios that it may mean, or one dict with a ``reason``.

    Each dict has ``row`` (its number), ``group``, ``family``, ``assumed`` (a sentence) and the quantities of a step.
    """
    for number, row in enumerate(rows.iter_rows(named=True)):
        group = row.get("group") or ""
        base: dict[str, Any] = {"row": number, "family": family(group)}
        try:
            yield from [{**base, **_checked(scenario)} for scenario in _read(row)]
        except (_Unpredictable, ScenarioError) as why:
            yield {**base, "reason": str(why)}


def _usual_heads(hidden: float, width: float, ways: float) -> float:
    """Return the number of heads of about a width that tensor parallelism divides, and that divide the hidden size.

    >>> _usual_heads(8192.0, 128.0, 8.0), _usual_heads(13824.0, 128.0, 8.0)
    (64.0, 96.0)
    """
    usual = max(float(round(hidden / width)), 1.0)
    if usual % ways == 0.0:
        return usual
    possible = [heads for heads in range(int(ways), int(2.0 * usual) + 1, int(ways)) if hidden % heads == 0.0]
    return float(min(possible, key=lambda heads: abs(math.log(heads / usual)))) if possible else usual


def shape_by_name(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with what it leaves open of the shape of the model that it names, where the tables know it.

    What the row states must agree with that shape in layers, hidden size and heads; otherwise it is another model.
    """
    known = _known_shape(str(row.get("model") or ""))
    if any(row.get(name) not in (None, "", known.get(SHAPE[name])) for name in OF_A_MODEL):
        return row
    shape = {column: known[name] for column, name in SHAPE.items() if name in known}
    states = {name: value for name, value in known.items() if name in STATES and value is not None}
    return {**row, **states, **{name: value for name, value in shape.items() if row.get(name) in (None, "")}}


def _named_alike(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the known model that a row names where it is as wide; rows may cut its layers or pad its vocabulary."""
    known = _known_shape(str(row.get("model") or ""))
    return known if all(row.get(name) == known.get(SHAPE[name]) for name in OF_A_MODEL[1:]) else {}


@cache
def _known_shape(model: str) -> Mapping[str, Any]:
    for name in source_terms.model_names(model):
        with suppress(FactorykitError):
            return _by_name()[identify("architecture", name)]
    return {}


@cache
def models_measured(parts: tuple[str, ...]) -> int:
    """Return how many known models with any of these parts of a shape have a measured run."""
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
    check(scenario, scenario)
    return scenario


def _read_number(row: Mapping[str, Any], name: str) -> float | None:
    cell = row.get(name)
    if cell is None or (isinstance(cell, str) and cell.lower() in UNSAID):
        return None
    try:
        read = source_terms.number(cell, BINARY if name == "seq_len" else 1000.0) if isinstance(cell, str) else None
        number = float(cell) if read is None else read
    except (TypeError, ValueError):
        raise _Unpredictable(f"{name} {cell!r} is no number; give one without words, such as 8192") from None
    if not abs(number) < LARGEST:
        raise _Unpredictable(f"{name} {number:g} is no number of a training run")
    if name in WHOLE and number % 1.0:
        raise _Unpredictable(f"{name} {number:g} is not whole")
    return number


def _read_words(cell: Any) -> Any:
    return None if isinstance(cell, str) and cell.lower() in UNSAID and cell.lower() != "none" else cell


def _read(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the scenarios that a row may mean: one, or many where it states no layout and its chips may have any.

    On TPUs, and where a row tells its sharding, weights are sharded and models left whole.
    """
    stated = any(row.get(name) not in (None, "") for name in ("tp", "pp", "sharding"))
    alone = _read_number(row, "accelerator_count") == 1.0
    if stated or alone or not _laid_out(row.get("hardware") or ""):
        return _scenarios(row, [])
    found, reasons = [], []
    for ways, stages, spread in itertools.product(TENSOR_WAYS, PIPELINE_STAGES, _expert_ways(row)):
        try:
            tried = _scenarios({**row, "tp": ways, "pp": stages, "ep": spread}, ["layout"])
            found += [_checked(scenario) for scenario in tried]
        except (_Unpredictable, ScenarioError) as reason:
            reasons.append(reason)
    if not found:
        raise reasons[0]
    return found


def _laid_out(hardware: str) -> bool:
    """Return whether models are split over the chips a text names by tensor, pipeline and expert."""
    try:
        return chips()[accelerator_in(hardware)]["kind"] != "TPU"
    except UnknownName:
        return False


def _expert_ways(row: Mapping[str, Any]) -> list[float]:
    experts = _read_number(row, "experts") or 0.0
    return [ways for ways in EXPERT_WAYS if ways == 1.0 or (experts > 1.0 and experts % ways == 0)]


def _scenarios(row: Mapping[str, Any], assumed: list[str]) -> list[dict[str, Any]]:
    if row.get("kind") in WITHOUT_STEPS:
        raise _Unpredictable(f"a row of kind {row['kind']!r} states no step")
    if source_terms.is_no_language_model(str(row.get("model") or "")):
        raise _Unpredictable(
            f"model {row['model']!r} is not modelled; known are language models that learn to predict the next token"
        )
    row = {name: _read_number(row, name) if name in NUMBERS else _read_words(value) for name, value in row.items()}
    row = shape_by_name(row)
    if row.get("accelerator_count") is None and all(row.get(name) for name in ("tp", "pp", "dp")):
        row["accelerator_count"] = row["tp"] * row["pp"] * row["dp"] * (row.get("cp") or 1.0)
    if row.get("heads") is None and row.get("hidden"):
        assumed.append("attention_heads")
        row["heads"] = _usual_heads(row["hidden"], row.get("head_dim") or USUAL_HEAD, row.get("tp") or 1.0)
    missing = [name for name in COLUMNS[2:] if row.get(name) in (None, "")]
    if (row.get("experts") or 0.0) > 1.0 and row.get("top_k") is None:
        missing.append("top_k")
    if missing:
        raise _Unpredictable(f"{', '.join(missing)} not stated")
    for name in COLUMNS[2:]:
        if name in NUMBERS and row[name] < 1.0:
            raise _Unpredictable(f"{name} {row[name]:g} is less than one")
    precision = _precision(row, assumed)
    chip = _chip(row, precision)
    precision = "fp8" if precision == "int8" else precision
    shape = _architecture(row, assumed)
    stated_year = software_year(row)
    if stated_year is None:
        assumed.append("software_year")
    year = stated_year or constants()["software_year"]
    if precision == "fp16" and not row.get("release_month") and frameworks.named(row) in FP16_FRAMEWORKS:
        year = min(year, LAST_FP16_YEAR + 0.5)
    vendor = chips()[str(chip["accelerator"])]["vendor"]
    chip |= _framework(row, vendor, chip["scale_up_domain"], year, assumed)
    block = 2.0 * (shape["attention_heads"] + shape["kv_heads"]) * shape["head_size"]
    block += (2.0 + shape["gated_ffn"]) * shape["ffn_size"]
    chip["logits_layers"] = chip.pop("balanced_stages") * shape["vocabulary_size"] / block
    layout = _layout(row, year, assumed)
    if layout["zero_stage"] == 1.0:
        layout["zero_stage"] = max(chip.pop("zero_stage"), 1.0)
    recompute = (row.get("recompute") or "").lower()
    said = source_terms.recomputation(recompute)
    stated = said.kind if said else None
    text = f"{row.get('precision')} {row.get('sharding')} {row.get('note')} {row.get('notes')}".lower()
    kept = CHEAP_KEPT if stated == "selective" and re.search(r"\bmoe\b|up_proj|layernorm", recompute) else 1.0
    if stated is None and "norms and up-projections" in text:
        stated, kept = "none", CHEAP_KEPT * (KEPT_NARROW if "kept in 8 bits" in text else 1.0)
    if stated is None:
        assumed.append("recompute")
    if row.get("vp") is None and layout["pipeline_parallel"] > 1 and stated is None and year >= 2023:
        assumed.append("virtual_stages")
    waiting = source_terms.offloaded(row.get("sharding") or "", f"{row.get('note')} {row.get('notes')}")
    halved = "optimizer state in bfloat16" in text or "bf16 optimizer" in text
    state = chip["state_bytes"]
    wide = not (halved or state)
    moments = source_terms.moment_bytes(text, wide=wide)
    optimizer = 4.0 * wide + moments
    gradients = (
        6.0
        if "fp32 gradient accumulation" in text
        else chip["gradient_bytes"] or (2.0 if precision == "fp16" or layout["zero_stage"] >= 2 or halved else 4.0)
    )
    update = chip["update_bytes"] * (1.0 if state or halved else 2.0)
    if state:
        gradients, optimizer = 2.0, state - 4.0 if moments == PLAIN_MOMENTS else moments
    elif precision == "fp16":
        optimizer += chip["half_gradient_bytes"]
        update = max(update, FULL_GRADIENT_BYTES - chip["half_gradient_bytes"])
    if layout["accelerators"] > layout["tensor_parallel"] * layout["pipeline_parallel"]:
        gradients += chip["bucket_bytes"]
    common = {
        **chip,
        **shape,
        **layout,
        **_adapters(row, precision, assumed),
        "precision": precision,
        "recompute": stated or "none",
        "share_stated": _share(said, layout, shape["layers"], chip["selective_share"]) if stated else None,
        "kept_stated": kept,
        "stated_parameters": float(row["total_params"]) if row.get("total_params") else None,
        "optimizer_bytes_per_parameter": optimizer,
        "offloaded_share": float("offload" in recompute),
        **dict(zip(("offloaded_optimizer_share", "offloaded_weights_share"), waiting, strict=True)),
        "dropout": chip["dropout"] * (1.0 - shape["gated_ffn"]),
        "sequence_parallel": chip["sequence_parallel"]
        if year >= 2023
        else float("sequence" in recompute or stated == "selective"),
        "software_year": year,
    }
    found = []
    for size in _micro_batches(row, layout, assumed):
        replicas = layout["accelerators"] / (
            layout["tensor_parallel"] * layout["pipeline_parallel"] * layout["context_parallel"]
        )
        count = max(layout["global_batch_size"] / (size * replicas), 1.0)
        chunks = layout["virtual_stages"]
        if "virtual_stages" in assumed and count % layout["pipeline_parallel"] == 0:
            deep = math.ceil(shape["layers"] / layout["pipeline_parallel"])
            chunks = float(deep if deep <= 8 else math.ceil(deep / 2))
        arising = gradients * chip["arising_gradients"] * (count == 1.0)
        state = {
            "gradient_bytes_per_parameter": gradients - arising,
            "update_bytes_per_parameter": update + arising,
        }
        sizes = {"micro_batch_size": size, "micro_batches": count, "virtual_stages": chunks}
        found.append({**common, **state, **sizes})
    names = list(dict.fromkeys(assumed))
    inputs = float(len(names) + (LAYOUT_DEGREES - 1 if "layout" in names else 0))
    return [{**one, "assumed_inputs": inputs, "assumed": ", ".join(names)} for one in found]


def _share(
    said: source_terms.Recomputation | None, layout: Mapping[str, Any], layers: float, selective: float
) -> float:
    """Return the share of layers that is recomputed whole where a source says what is; ``selective`` of a framework.

    >>> stages = {"pipeline_parallel": 4.0, "virtual_stages": 2.0}
    >>> _share(source_terms.recomputation("block 5"), stages, 80.0, 0.0), _share(None, stages, 80.0, 0.0)
    (0.5, 0.0)
    """
    if said is None:
        return 0.0
    if said.layers_a_chunk is not None:
        return min(said.layers_a_chunk * layout["pipeline_parallel"] * layout["virtual_stages"] / layers, 1.0)
    return selective if said.share is None else said.share


def tidied(rows: Any) -> pl.DataFrame:
    """Return rows of training runs as a frame whose columns of words are words.

    Raises
    ------
    ScenarioError
        If they are no frame, are empty, have none of the columns that a prediction needs, or have lists in one.
    """
    import polars as pl

    frame = validation.frame("rows", rows)
    if frame.height == 0:
        raise ScenarioError("the frame has no rows; nothing can be validated")
    needed = COLUMNS[2:]
    if not set(needed) & set(frame.columns):
        hint = unknown_name_message("column", frame.columns[0] if frame.columns else "", needed)
        raise ScenarioError(f"the frame has none of the columns {', '.join(needed)}; {hint}")
    read = [name for name in (*TEXTS, *NUMBERS, *MEASURED) if name in frame.columns]
    for name in read:
        if frame.schema[name].is_nested():
            raise ScenarioError(f"column {name} is {frame.schema[name]}; give one number or text a row")
    texts = [name for name in read if name in TEXTS or not frame.schema[name].is_numeric()]
    return frame.with_columns(pl.col(texts).cast(pl.String, strict=False).str.strip_chars())


def positive(rows: pl.DataFrame, name: str, most: float = LARGEST) -> pl.Expr:
    """Return a column as numbers above zero and up to ``most``; what a row states otherwise, or not, is null."""
    import polars as pl

    number = (pl.col(name) if name in rows.columns else pl.lit(None)).cast(pl.Float64, strict=False)
    return pl.when((number > 0.0) & (number <= most)).then(number)


def measured_step_s(rows: pl.DataFrame, ready: pl.DataFrame) -> pl.Series:
    """Return the measured time of a step: printed, or batch tokens over throughput, or batch FLOP over the FLOP rate.

    Where only a FLOP rate, an MFU or an HFU is printed, the whole attention square is counted, as most such sources
    do, MFU is of the dense 16-bit peak, and what counts the hardware's FLOP holds the recomputed forward pass. Such a
    rate needs the row's scenario, from ``ready``. A cell that is no positive number measures nothing, nor does a rate
    above the peak.
    """
    import polars as pl

    def column(name: str, most: float = LARGEST) -> pl.Expr:
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
    import polars as pl

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
    constants of ``memory`` where a calibration says some. The first recomputed layer costs room of its own, so the
    straight line to all layers starts just above none.
    """
    import polars as pl

    every = list(scenarios(rows))
    reasons = pl.DataFrame(
        [{"row": one["row"], "family": one["family"], "reason": one["reason"]} for one in every if "reason" in one],
        schema={"row": pl.Int64, "family": pl.String, "reason": pl.String},
    )
    predictable = [one for one in every if "reason" not in one]
    types = {"row": pl.Int64, "stated_parameters": pl.Float64, "share_stated": pl.Float64}
    ready = pl.DataFrame(predictable, infer_schema_length=None, schema_overrides=types if predictable else {})
    if ready.is_empty():
        return ready, reasons
    plain = _counted(ready.drop("accelerator"))
    room, needed = ready["accelerator_memory_bytes"], "memory_needed_bytes"
    said = [pl.lit(value).alias(name) for name, value in (memory or {}).items()]
    whole = evaluate(plain.with_columns(pl.lit(0.0).alias("recompute_share"), *said), needed)[needed]
    cheap = ready["share_stated"].is_null() & (ready["experts"] > 1.0) & (ready["software_year"] >= CHEAP_YEAR)
    kept = pl.when(cheap & (whole > room)).then(CHEAP_KEPT).otherwise(pl.col("kept_stated"))
    plain = plain.with_columns(kept.alias("kept_share")).drop("kept_stated")
    none, first, full = (
        evaluate(plain.with_columns(pl.lit(share).alias("recompute_share"), *said), needed)[needed]
        for share in (0.0, FIRST_LAYER, 1.0)
    )
    least = pl.select(least_share(none, first, full, room)).to_series()
    share = ready["share_stated"].fill_null(least)
    return plain.with_columns(share.alias("recompute_share")), reasons
