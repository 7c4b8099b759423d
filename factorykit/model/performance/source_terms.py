"""Spellings of measured runs: words in the rows of users, read into columns of the ``training_runs`` table.

Rows may describe hardware, network, precision, sharding, recomputation, framework and details of a run in the words of
their source. Each description is read once, when the row enters, by the rules of this module; ``assumed`` names the
columns that come from a note. A column that the frame has, even if it is empty, is never read from notes, so that notes
of the shipped table have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from factorykit.core.errors import FactorykitError
from factorykit.data.identifiers import accelerator_in
from factorykit.engine.providers import frameworks

RECOMPUTED: Final = r"(?:\W*(?:ac|remat\w*|recompute\w*|activation checkpointing)\b[:= _-]+)+"
"""Words before a description of recomputation."""
MODULES: Final = r"(?:moe|mla|mlp|core|layernorm|norm)[_-]?(?:act|attn|up_proj)?\b"
"""Modules that are recomputed alone."""
MISSING: Final = ("", "-", "--", "?", "n/a", "na", "null", "nan", "unknown", "not stated")
"""Cells that state nothing, in lower case."""
PRECISIONS: Final[tuple[tuple[str, str], ...]] = (
    (r"(nv|mx)?fp4|e2m1", "nvfp4"),
    (r"mxfp8|fp8-?mx|mx-?(?:e4m3|e5m2)", "mxfp8"),
    (r"int8", "int8"),
    (r"fp8|float8|e4m3|e5m2|hif8", "fp8"),
    (r"fp16|(?<!b)float16|\bhalf\b|\b16-(mixed|true)", "fp16"),
    (r"bf16|bfloat16|nf4|\b4-?bits?\b|\b16-?bits?\b|^mixed( precision)?$|\bamp\b", "bf16"),
)
"""Patterns of a description, and the number format of its matrix products, the more specific ones first. Frozen weights
in 4 bits without a format of products (NF4, GPTQ) are widened to 16 bits before they are multiplied; four bits of
either maker run at the rate of four."""
DENIED: Final = r"\b(?:no|without)[ -]\w+|\b\w+[ -](?:off|disabled)\b"
"""Words about features that are off."""
FOUR_BIT_WEIGHTS: Final = r"nf4|\b4-?bits?\b|gptq|awq|qlora"
"""Words for frozen weights of 4 bits."""
STAGES: Final[tuple[tuple[str, float], ...]] = (
    (r"no[ _]shard", 0.0),
    (r"shard_grad_op|reshard_after_forward ?=? ?(?:false|0)|optim_grads\b(?!_params)|zero-?offload", 2.0),
    (r"[fh]sdp|full(?:y)?[ _-]shard|hybrid[ _-]shard|zero-?infinity|zero ?\+\+|\bmics\b|gemini|grads_params", 3.0),
    (r"dist(?:ributed)?[ _-]?opt|optim\w*(?: states?)? shard|shard\w* optim|zero redundancy|\bzero\b", 1.0),
    (r"\bnone\b|data[ -]parallel|\bddp\b|\bplain dp\b|replicated", 0.0),
)
"""Patterns of a description without the number of its ZeRO stage, and that stage, the more specific ones first."""
PORTS: Final = {"edr": 100.0, "hdr": 200.0, "ndr": 400.0, "xdr": 800.0}
"""Gb/s of a port of each generation of InfiniBand."""
GIGABITS: Final = r"(?:g(?:bit|b)(?:/s|ps)|gbe?\b|g\b)"
CHIPS: Final = r"(?:gpus?|gcds?|npus?|xpus?|hpus?|chips?|cards?|devices?|accelerators?|[a-z]+\d+\w*)"
DEVICES: Final[Mapping[str, tuple[str, float]]] = {
    "mi250x": ("gcd", 2.0),
    "max_1550": ("tile|stack", 2.0),
    "trainium1": ("(?:neuron)?[ -]?core", 2.0),
    "trainium2": ("(?:neuron)?[ -]?core", 8.0),
}
"""Chips that appear to software as several devices: the word for a device, and their number."""
WHOLE_CHIPS: Final = r"\b(?:chips|gpus|modules)\b"
"""Words for chips, which are counted then, even if their devices are named."""

NOTES: Final[tuple[tuple[str, str, Any], ...]] = (
    (r"deepep|hybridep|once (?:a|per|to a) (?:node|domain)", "dispatched_once", 1.0),
    (r"nccl all-to-all", "dispatched_once", 0.0),
    (r"no (?:flash attention|transformer engine)", "flash_attention", 0.0),
    (r"\b(?:fa|flash-?attention[ -]?)[34]\b", "native_attention", 1.0),
    (r"overlap off|no (?:all-to-all|ep) overlap", "expert_overlap", 0.0),
    (r"(?:all-to-all|ep) overlap", "expert_overlap", 1.0),
    (r"overlap off|no (?:all-to-all|ep) overlap", "interleaved_overlap", 0.0),
    (r"no sequence parallel", "sequence_parallel", 0.0),
    (r"padded dense experts", "dispatch_masks", 1.0),
    (r"capacity factor (\d+\.?\d*)", "expert_imbalance", float),
    (r"compile", "fused_kernels", 1.0),
    (r"liger|chunked (?:loss|cross|ce\b|logits)|cut cross|linear cross[ -]entropy", "chunked_loss", 1.0),
    (r"fp32 gradient accumulation", "gradient_bits", 32.0),
    (r"optimizer state in bfloat16|bf16 optimizer", "optimizer_state_bits", 16.0),
    (r"optimizer on the cpu|optimizer(?: states?)?[ -]offload|cpuadam", "offloaded_optimizer_share", 1.0),
    (r"8-?bit(?: paged)?[ -]?adam|adamw?[ -_]?8-?bit", "optimizer", "adam_8bit"),
    (r"(adafactor|\blion\b|\bmuon\b)", "optimizer", str),
    (r"(?<!no )(?<!without )\b(dualpipe)", "schedule", str),
    (r"\bzb-?(?:2p|h2)\b", "schedule", "zb2p"),
    (r"(?<!no )(?<!without )\bzero[ -]bubble", "schedule", "zb1p"),
    (r"\b(?:one|1) mtp layer|w/ mtp", "mtp_layers", 1.0),
    (
        r"\b(?:grad(?:ient)?[ _-]acc(?:um(?:ulation)?)?|ga)(?:[ _-]steps?)?\D{0,4}(\d+)\b",
        "gradient_accumulation_steps",
        float,
    ),
    (r"peak allocated|max_memory_allocated|max allocated", "memory_measure", "allocated"),
    (r"max_memory_reserved|peak reserved|reserved by", "memory_measure", "reserved"),
    (r"nvidia-smi|rocm-smi|of the device", "memory_measure", "process"),
    (r"\brank (\d+)|\br ?= ?(\d+)", "lora_rank", float),
    (
        r"gate_proj|up_proj|fc1|all[ -](?:linear|layers|modules|matrices|weights)|\bmlp\b|\bffn\b",
        "lora_matrices",
        "all",
    ),
    (
        r"o_proj|linear_proj|qkvo|(?:of|on|in|to) (?:the )?attention|attention (?:only|layers)",
        "lora_matrices",
        "attention",
    ),
    (r"q_proj|linear_qkv|\bqkv\b|\bqv\b|\bq(?:uery)?,? (?:and )?v(?:alue)?\b|c_attn", "lora_matrices", "query_value"),
    (r"dropout\W{0,3}(?:of )?0?\.\d*[1-9]", "adapter_dropout", 1.0),
    (FOUR_BIT_WEIGHTS, "weight_bits", 4.0),
    (r"before pue|no cooling", "energy_boundary", "it_equipment"),
)
"""Patterns of notes, their column, and its value or the type of the matched text; the first of a column counts."""
ADAPTERS: Final = ("lora_rank", "lora_matrices", "adapter_dropout", "weight_bits")
"""Columns that are read from the notes of runs with LoRA alone."""
NOTE_COLUMNS: Final = ("group", "model", "framework", "precision", "sharding", "note", "notes")
"""Columns whose words are searched for the patterns of notes."""


def number(text: str, base: float = 1000.0) -> float | None:
    """Return the number in a cell, with its multiple and its thousands, or None; ``base`` is the value of a k.

    >>> number("1,024"), number("7B"), number("4.2M"), number("8K", base=1024.0), number("4M tokens")
    (1024.0, 7000000000.0, 4200000.0, 8192.0, None)
    """
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.strip())
    found = re.fullmatch(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?) ?([kmbt]?)", plain.lower())
    return float(found[1]) * base ** ("kmbt".index(found[2]) + 1.0 if found[2] else 0.0) if found else None


def precision_of(text: str) -> str | None:
    """Return the number format of matrix products in a description, or None.

    >>> precision_of("bfloat16"), precision_of("FP8 (E4M3)"), precision_of("MXFP4"), precision_of("tf32")
    ('bf16', 'fp8', 'nvfp4', None)
    """
    lowered = re.sub(DENIED, "", text.lower().replace("_", "-")).strip()
    return next((name for words, name in PRECISIONS if re.search(words, lowered)), None)


def zero_stage(text: str) -> float | None:
    """Return the ZeRO stage of a description of sharding, None where it does not mention sharding.

    >>> zero_stage("FSDP (FULL_SHARD)"), zero_stage("ZeRO stage 2"), zero_stage("none"), zero_stage("sequence parallel")
    (3.0, 2.0, 0.0, None)
    """
    lowered = text.lower()
    stated = re.search(r"(?:zero|stage|\bz)(?:[ _-]*(?:dp|stage))?[ _=:-]*([0-3])(?!\d)", lowered)
    if stated:
        return float(stated[1])
    return next((stage for words, stage in STAGES if re.search(words, lowered)), None)


def _shards(sharding: str) -> dict[str, float]:
    """Return the ranks of a shard group where a description of sharding limits them."""
    within = re.search(r"zero-?1 within (\d+)", sharding.lower())
    return {"optimizer_shards": float(within[1])} if within else {}


def offloaded(sharding: str) -> dict[str, float]:
    """Return the shares of optimizer state and of weights in host memory; ZeRO-Infinity and FSDP keep weights there.

    >>> offloaded("ZeRO-2 + CPU offload"), offloaded("FSDP2"), offloaded("ZeRO-3, no offload")
    ({'offloaded_optimizer_share': 1.0}, {}, {})
    """
    lowered = re.sub(DENIED, "", re.sub(r"activations?[ -]offload\w*", "", sharding.lower()))
    weights = re.search(r"zero-?infinity|param\w*[ -]offload|fsdp.*offload", lowered)
    if not weights and not re.search("offload|optimizer on the cpu", lowered):
        return {}
    return {"offloaded_optimizer_share": 1.0} | ({"offloaded_weights_share": 1.0} if weights else {})


def recomputation(text: str) -> dict[str, Any]:
    """Return the columns of a description of activation checkpointing, empty where it is not specific.

    >>> recomputation("full, 1 layer of 4"), recomputation("block 20")["recompute_layers_per_chunk"]
    ({'recompute': 'full', 'recompute_share': 0.25}, 20.0)
    >>> recomputation("selective (every 2nd layer)")["recompute_share"], recomputation("yes"), recomputation("custom")
    (0.5, {'recompute': 'full'}, {})
    >>> recomputation("AC: full"), recomputation("per-op selective"), recomputation("mla_up_proj, moe_act")
    ({'recompute': 'full'}, {'recompute': 'selective'}, {'recompute': 'selective', 'kept_share': 0.6})
    """
    lowered = re.sub(f"^{RECOMPUTED}", "", text.lower().strip())
    part = re.search(r"(\d+)(?: layers?)? ?(?:of|/|out of) ?(?:the |all )?(\d+)", lowered)
    every = re.search(r"every (other|\d+)(?:st|nd|rd|th)? ?layers?", lowered)
    chunk = re.search(r"\bblock\D{0,20}(\d+)", lowered)
    offload = {"activation_offload_share": 1.0} if "offload" in lowered else {}
    if part and 0.0 < float(part[1]) <= float(part[2]):
        return {"recompute": "full", "recompute_share": float(part[1]) / float(part[2]), **offload}
    if every:
        share = 1.0 / (2.0 if every[1] == "other" else max(float(every[1]), 1.0))
        return {"recompute": "full", "recompute_share": share, **offload}
    if chunk:
        return {"recompute": "full", "recompute_layers_per_chunk": float(chunk[1]), **offload}
    if re.match(r"(none|no|off|false|disabled|without|not used|0)\b", lowered):
        return {"recompute": "none"}
    if re.match(rf"(?:per-op )?selective|minimal|sac\b|{MODULES}", lowered):
        cheap = {"kept_share": 0.6} if re.search(r"\bmoe\b|up_proj|layernorm", lowered) else {}
        return {"recompute": "selective", **offload, **cheap}
    if re.match(r"(full|uniform|all|yes|true|on|enabled|every layer|1)\b", lowered) or re.search(
        r"offload|(?:activation|gradient)[ -]?checkpoint", lowered
    ):
        return {"recompute": "full", **offload}
    return {}


def link_bytes_per_s(network: str, accelerators_per_node: float = 8.0) -> float | None:
    """Return the rate per accelerator and direction in a description of a network, or None.

    >>> link_bytes_per_s("8x200 Gb/s HDR per node"), link_bytes_per_s("400 Gbps RoCE per GPU")
    (25000000000.0, 50000000000.0)
    >>> link_bytes_per_s("50 GB/s per GPU"), link_bytes_per_s("8x400G NDR")
    (50000000000.0, 50000000000.0)
    >>> link_bytes_per_s("4x HDR InfiniBand") == link_bytes_per_s("0.8 Tb/s per node") == 12.5e9
    True
    """
    bits = re.sub(r"(\d+(?:\.\d+)?) ?([GT])B(?:/s|ps)", _in_bits, network)
    lowered = bits.lower().replace("\N{MULTIPLICATION SIGN}", "x")
    lowered = re.sub(r"(\d+(?:\.\d+)?) ?t(?:bit|b)(?:/s|ps)", lambda rate: f"{float(rate[1]) * 1e3:.0f} gb/s", lowered)
    for name, rate in PORTS.items():
        lowered = re.sub(rf"\b(\d+) ?x ?{name}\b", rf"\1x{rate:.0f} gb/s", lowered)
    ports = re.search(rf"(\d+) ?x ?(\d+) ?{GIGABITS}", lowered)
    if ports:
        return float(ports[1]) * float(ports[2]) * 1e9 / 8.0 / accelerators_per_node
    port = re.search(rf"(\d+) ?{GIGABITS}[^,;]*? (?:per|a) (gpu|gcd|npu|chip|accelerator|node)\b", lowered)
    if not port:
        return None
    return float(port[1]) * 1e9 / 8.0 / (accelerators_per_node if port[2] == "node" else 1.0)


def _in_bits(rate: re.Match[str]) -> str:
    """Return a rate in bytes, as its capital B says, in bits."""
    return f"{float(rate[1]) * 8.0:g} {rate[2]}b/s"


def node_size(text: str) -> float | None:
    """Return the number of accelerators of a node in a description of hardware or network, or None.

    >>> node_size("Slingshot-11, 8 GCDs per node"), node_size("4 GH200 a node"), node_size("800 Gb/s per node")
    (8.0, 4.0, None)
    """
    found = re.search(rf"\b(\d+) (?:{CHIPS} )?(?:a|per) node", text.lower())
    return float(found[1]) if found else None


def _hardware(text: str, _: Mapping[str, Any]) -> dict[str, Any]:
    lowered = text.lower()
    memory, watts = re.search(r"(\d+) ?gb", lowered), re.search(r"(\d+) ?w\b", lowered)
    try:
        word, devices = DEVICES.get(accelerator_in(text), ("", None))
    except FactorykitError:
        return {"accelerator": text}
    counted = devices and re.search(rf"\b(?:{word})s?\b", lowered) and not re.search(WHOLE_CHIPS, lowered)
    return {
        "accelerator": accelerator_in(text),
        "accelerator_memory_bytes": float(memory[1]) * 1e9 if memory else None,
        "devices_per_accelerator": devices if counted else None,
        "power_limit_w": float(watts[1]) if watts else None,
        "power_limited": 1.0 if "power limited" in lowered else None,
        "accelerators_per_node": node_size(text),
    }


def _network(text: str, row: Mapping[str, Any]) -> dict[str, Any]:
    node = row.get("accelerators_per_node") or node_size(text)
    words = text.lower().replace("_", "-")
    fabrics = (name for name in ("omni_path", "efa") if re.search(rf"\b{name.replace('_', '-')}(?:v\d)?\b", words))
    rate = link_bytes_per_s(text, node or 8.0)
    return {"accelerators_per_node": node, "scale_out_bytes_per_s": rate, "fabric": next(fabrics, None)}


def _precision(text: str, _: Mapping[str, Any]) -> dict[str, Any]:
    narrow = 4.0 if re.search(FOUR_BIT_WEIGHTS, text.lower()) else None
    return {"precision": precision_of(text), "weight_bits": narrow}


READERS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], Mapping[str, Any]]]] = {
    "hardware": _hardware,
    "network": _network,
    "precision": _precision,
    "sharding": lambda text, _: {"zero_stage": zero_stage(text), **_shards(text), **offloaded(text)},
    "recompute": lambda text, _: recomputation(text),
    "framework": lambda text, _: {"framework": frameworks.find(text)},
}
"""Columns with words, in the order in which they are read."""


CONTAINER: Final = r"v?(2\d)\.(\d\d?)(?!\d)"
"""Version of a container, its year and month."""
MLPERF_MONTHS: Final[Mapping[str, str]] = {
    "v2.1": "2022-07",
    "v3.0": "2023-07",
    "v3.1": "2023-11",
    "v4.0": "2024-06",
    "v4.1": "2024-11",
    "v5.0": "2025-06",
    "v5.1": "2025-11",
    "v6.0": "2026-06",
}
"""Month of the software of each round of MLPerf Training."""


def release_month(row: Mapping[str, Any], publication: str) -> str | None:
    """Return the month of the container or of the MLPerf release that a row names.

    >>> release_month({"framework_version": "26.02"}, ""), release_month({}, "training_results_v5.0")
    ('2026-02', '2025-06')
    """
    container = (
        re.match(CONTAINER, row.get("framework_version") or "")
        or re.search(rf"(?<![\d.]){CONTAINER}", row.get("framework") or "")
        or re.search(r"(2\d)\.(\d\d)(?:\.\d\d)? NeMo", publication)
    )
    if container and 1 <= int(container[2]) <= 12:
        return f"20{container[1]}-{int(container[2]):02d}"
    mlperf = re.search(r"training_results_(v\d\.\d)", publication)
    return MLPERF_MONTHS.get(mlperf[1]) if mlperf else None


PUBLICATION_COLUMNS: Final = ("locator", "source", "model")
"""Columns that may name the framework of a row that does not state it."""


def read_words(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the columns that follow from its words.

    >>> read_words({"sharding": "FSDP", "network": "4x100 Gb/s Omni-Path, 4 GPUs per node"})["zero_stage"]
    3.0
    """
    found = dict(row)
    for column, reader in READERS.items():
        text = row.get(column)
        if isinstance(text, str) and text.lower() not in MISSING:
            found |= {name: value for name, value in reader(text, found).items() if value is not None}
    text = " ".join(str(row.get(name) or "") for name in PUBLICATION_COLUMNS)
    found["release_month"] = found.get("release_month") or release_month(row, text)
    if frameworks.find(found.get("framework") or "") is None:
        found["framework"] = frameworks.find(text, is_publication=True) or found.get("framework")
    return found


def read_notes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that a row lacks and its words state.

    >>> read_notes({"note": "DeepEP; capacity factor 1.25; gradient accumulation 4"})
    {'dispatched_once': 1.0, 'expert_imbalance': 1.25, 'gradient_accumulation_steps': 4.0}
    >>> read_notes({"note": "DeepEP", "dispatched_once": None})
    {}
    """
    text = " ".join(str(row.get(name) or "") for name in NOTE_COLUMNS).lower()
    found: dict[str, Any] = {"lora": 1.0} if "lora" in text and "lora_rank" not in row else {}
    for pattern, column, value in NOTES:
        if column in row or column in found or (column in ADAPTERS and "lora" not in found):
            continue
        if match := re.search(pattern, text):
            stated = next(filter(None, match.groups()), "")
            found[column] = value(stated) if isinstance(value, type) else value
    return found


def is_no_language_model(text: str) -> bool:
    """Return whether a name is of a model for images, sound or ranking, or of one that reads in both directions.

    >>> is_no_language_model("ViT-22B"), is_no_language_model("Stable Diffusion v2"), is_no_language_model("Vicuna 7B")
    (True, True, False)
    """
    others = r"\bvit\b|\b(?:ro)?bert\b|bert-(?:base|large)|resnet|u-?net\b|diffusion|sdxl|\bdit\b|\bclip\b|whisper|dlrm"
    return re.search(rf"{others}|retinanet|mask r-?cnn|\brnn-?t\b|\bgnn\b|r-gat|alphafold", text.lower()) is not None


def model_names(text: str) -> list[str]:
    """Return the names that a description of a model may contain, the longest first.

    >>> model_names("meta-llama/Llama-3.1-8B-Instruct, QLoRA")
    ['meta-llama/Llama-3.1-8B-Instruct, QLoRA', 'Llama-3.1-8B-Instruct, QLoRA', 'Llama-3.1-8B-Instruct', 'Llama-3.1-8B']
    """
    short = text.rpartition("/")[2] if re.fullmatch(r"[\w.-]+/\S.*", text) else text
    bare = re.split(r"\s*[,(;]", short)[0]
    kinds = r"[ _-]+(?:instruct|base|chat|hf|it|sft|q?lora|pre-?train(?:ing|ed)?|fine-?tun(?:ing|ed)|v0\.\d)\b.*"
    plain = re.sub(r"^meta-(?=llama)", "", re.sub(kinds, "", bare, flags=re.IGNORECASE), flags=re.IGNORECASE)
    return list(dict.fromkeys((text, short, bare, plain)))
