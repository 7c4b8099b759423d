"""Spellings of measured runs: words in the rows of users, read into columns of the ``training_runs`` table.

Rows may describe hardware, network, precision, sharding, recomputation, framework and details of a run in the words of
their source. Each description is read once, when the row enters, by the rules of this module; ``assumed`` names the
columns that come from a note. A column that the frame has, even if it is empty, is never read from notes, so that notes
of the shipped table have no effect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from factorykit.core.errors import FactorykitError
from factorykit.core.text_io import package_rows
from factorykit.data.identifiers import accelerator_in
from factorykit.engine.providers import frameworks
from factorykit.engine.providers.accelerators import chip_in

RECOMPUTED: Final = (
    r"(?:\W*(?:ac|remat(?:_policy)?|recompute(?:_\w+)?|granularity|(?:activation|gradient)[ _]checkpointing)\b"
    r"[:= _-]+)+"
)
"""Words before a description of recomputation."""
MISSING: Final = ("", "-", "--", "?", "n/a", "na", "null", "nan", "unknown", "not stated")
"""Cells that state nothing, in lower case."""
DENIED: Final = r"\b(?:no|without)[ -]\w+|\b\w+[ -](?:off|disabled)\b"
"""Words about features that are off."""
FASTEST_PORT: Final = 1000.0
"""Gb/s above which a rate is that of a node; ports of 2026 have 800."""
INSIDE: Final = r"nvlink|nvswitch|xgmi|infinity fabric|\bici\b|hccs|neuronlink"
"""Links within a node or a torus."""
GIGABITS: Final = r"(?:g(?:bit|b)(?:/s|ps)|gbe?\b|g\b)"
NODES: Final = r"(?:nodes?|hosts?|servers?)"
CHIPS: Final = r"(?:[gnxh]pus?|gcds?|tiles?|stacks?|\w*cores?|chips?|cards?|devices?|accelerators?|[a-z]+\d+\w*)"
DEVICES: Final[Mapping[str, tuple[str, float]]] = {
    "mi250x": ("gcd", 2.0),
    "max_1550": ("tile|stack", 2.0),
    **dict.fromkeys(("tpu_v3", "tpu_v4", "tpu_v5p"), ("(?:tensor)?core", 2.0)),
    "tpu_v7": ("(?:jax )?device|(?:tensor)?core|chiplet", 2.0),
    "trainium1": ("(?:neuron)?[ -]?core", 2.0),
    "trainium2": ("(?:neuron)?[ -]?core", 8.0),
}
"""Chips of several dies or cores: the word for one, and their number."""
SEPARATE_DEVICES: Final[Mapping[str, float]] = {"trainium2": 4.0, "trainium3": 4.0} | dict.fromkeys(
    ("mi250x", "max_1550", "tpu_v7", "trainium1"), 2.0
)
"""Devices that software sees in a chip where a row counts chips: each has its own shard, weights and micro-batch."""
WHOLE_CHIPS: Final = r"\b(?:chips|gpus|modules)\b"
"""Words for chips, which are counted then, even if their devices are named."""

CONTAINER: Final = r"v?(2\d)\.(\d\d?)(?!\d)"
"""Version of a container, its year and month."""
ADAPTERS: Final = ("lora_rank", "lora_matrices", "adapter_dropout", "weight_bits")
"""Columns that are read from the notes of runs with LoRA alone."""
NOTE_COLUMNS: Final = ("model", "framework", "precision", "sharding", "note", "notes")
"""Columns whose words are searched for the patterns of notes."""


class Term(NamedTuple):
    """Pattern of a column, a row of ``source_terms.csv``; the first that is found in a text counts."""

    column: str
    is_noted: bool
    """Whether notes are searched for it, too; others are read in the text of the column itself."""
    pattern: str
    value: Any
    """Value of the column, or ``text`` or ``number`` for that of the first matched group."""

    def read(self, text: str) -> Any:
        """Return the value in a text in lower case, or None."""
        match = re.search(self.pattern, text)
        if not match or self.value not in ("text", "number"):
            return self.value if match else None
        stated = next(filter(None, match.groups()))
        return float(stated) if self.value == "number" else stated


def number(text: str, base: float = 1000.0) -> float | None:
    """Return the number in a cell, with its multiple and its thousands, or None; ``base`` is the value of a k.

    >>> number("1,024"), number("7B"), number("8K", base=1024.0), number("4M tokens"), number("40%"), number("True")
    (1024.0, 7000000000.0, 8192.0, None, 0.4, 1.0)
    """
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.strip()).lower()
    if plain in ("true", "yes", "false", "no"):
        return float(plain in ("true", "yes"))
    match = re.fullmatch(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?) ?([kmbt%]?)", plain)
    scale = {"": 1.0, "%": 0.01} | {unit: base ** (power + 1.0) for power, unit in enumerate("kmbt")}
    return float(match[1]) * scale[match[2]] if match else None


def _terms() -> Iterator[Term]:
    for row in package_rows(Path(__file__).with_suffix(".csv")):
        value, noted = number(row["value"]), row["read_in"] == "notes"
        yield Term(row["column"], noted, row["pattern"], row["value"] if value is None else value)


TERMS: Final = tuple(_terms())


def meaning(column: str, text: str) -> Any:
    """Return the value of a column in a text in lower case, or None."""
    values = (term.read(text) for term in TERMS if term.column == column)
    return next((value for value in values if value is not None), None)


def count(text: str, per_node: float | None = None) -> float | None:
    """Return the accelerators in words, or None; of nodes alone those of one are ``per_node``.

    >>> count("64 GPUs (8 nodes)"), count("16 x 8"), count("8 nodes x 8 H100"), count("16 nodes"), count("two")
    (64.0, 128.0, 64.0, None, None)
    """
    lowered = re.sub(r" *\(.*", "", text.lower().replace("\N{MULTIPLICATION SIGN}", "x"))
    parts = [re.fullmatch(rf"(\d[\d,]*) ?(?:{NODES}|{CHIPS})?", part) for part in re.split(r" *[x*] *(?=\d)", lowered)]
    nodes = per_node if len(parts) == 1 and re.search(NODES, lowered) else 1.0
    if None in parts or nodes is None:
        return None
    return nodes * math.prod(float(part[1].replace(",", "")) for part in parts if part)


def counted(hardware: str) -> float | None:
    """Return the accelerators that a description of hardware counts, or None.

    >>> counted("8x H100 SXM5 80GB"), counted("GB300 NVL72 (512 GPUs)"), counted("TPU v5p-512"), counted("80 GB A100")
    (8.0, 512.0, 256.0, None)
    """
    lowered = hardware.lower().replace("\N{MULTIPLICATION SIGN}", "x")
    number = None if node_size(hardware) else meaning("accelerator_count", lowered)
    cores = re.search(r"\bv(?:[2-4]|5p)-\d+$", lowered)
    found = count(number.strip(" x*")) if number else None
    return found and found / (2.0 if cores else 1.0)


def precision_of(text: str) -> str | None:
    """Return the number format of matrix products in a description, or None.

    >>> precision_of("bfloat16"), precision_of("MXFP4"), precision_of("MXFP4 -> bf16"), precision_of("tf32")
    ('bf16', 'nvfp4', 'bf16', None)
    """
    lowered = re.sub(DENIED, "", text.lower().replace("_", "-")).strip()
    return meaning("precision", lowered)


def zero_stage(text: str) -> float | None:
    """Return the ZeRO stage of a description of sharding, None where it does not mention sharding.

    >>> zero_stage("FSDP (FULL_SHARD)"), zero_stage("ZeRO stage 2"), zero_stage("none"), zero_stage("sequence parallel")
    (3.0, 2.0, 0.0, None)
    """
    lowered = text.lower()
    stated = re.search(r"(?:zero|stage|\bz)(?:[ _-]*(?:dp|stage))?[ _=:-]*([0-3])(?!\d)", lowered)
    if stated:
        return float(stated[1])
    return meaning("zero_stage", lowered)


def _shards(sharding: str) -> dict[str, float]:
    """Return the ranks of a shard group where a description of sharding limits them.

    >>> _shards("ZeRO-1 within 8 GPUs"), _shards("HSDP: FSDP 128 devices x 4"), _shards("FSDP over all 256 devices")
    ({'optimizer_shards': 8.0}, {'optimizer_shards': 128.0}, {})
    """
    within = re.search(r"(?:zero-?\d within|fsdp) (\d+)", sharding.lower())
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
    ({'recompute': 'full'}, {'recompute': 'selective'}, {'recompute': 'modules'})
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
    kind = meaning("recompute", lowered)
    experts = kind == "selective" and re.search(r"\bmoe\b", lowered)
    if kind == "selective" and not experts and re.search("up_proj|layernorm", lowered):
        kind = "modules"
    how = ({} if kind == "none" else offload) | ({"kept_share": 0.6} if experts else {})
    return {"recompute": kind, **how} if kind else {}


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
    for name, rate in ((term.pattern, term.value) for term in TERMS if term.column == "port_gigabits"):
        lowered = re.sub(rf"\b(\d+) ?x ?((?:[a-z][\w-]* )*?){name}(?:\d+)?\b", rf"\1x{rate:.0f} gb/s", lowered)
    lowered = re.sub(rf"(\d+) ?({GIGABITS}) ?[x*] ?(\d+)\b", r"\3x\1\2", lowered)
    lowered = re.sub(rf"\b(\d+) (?:[a-z][\w-]* )+?(?:of )?(\d+) ?({GIGABITS})(?= nics?\b|,|$)", r"\1x\2\3", lowered)
    lowered = re.sub(r"(?<=[a-z])/(?=(?:gpu|gcd|npu|chip|accelerator|node)\b)", " per ", lowered)
    ports = re.search(rf"(\d+) ?x ?(?:[a-z][\w-]* )*?(\d+) ?{GIGABITS}", lowered)
    if ports:
        return float(ports[1]) * float(ports[2]) * 1e9 / 8.0 / accelerators_per_node
    port = re.search(rf"(\d+) ?{GIGABITS}[^,;]*? (?:per|a) (gpu|gcd|npu|chip|accelerator|node)\b", lowered)
    if port:
        return float(port[1]) * 1e9 / 8.0 / (accelerators_per_node if port[2] == "node" else 1.0)
    outside = [part for part in re.split("[,;+(]", lowered) if not re.search(INSIDE, part)]
    rates = [float(rate) for rate in re.findall(rf"\b(\d{{4,}}) ?{GIGABITS}", ",".join(outside))]
    return rates[0] * 1e9 / 8.0 / accelerators_per_node if rates and rates[0] > FASTEST_PORT else None


def _in_bits(rate: re.Match[str]) -> str:
    """Return a rate in bytes, as its capital B says, in bits."""
    return f"{float(rate[1]) * 8.0:g} {rate[2]}b/s"


def node_size(text: str) -> float | None:
    """Return the number of accelerators of a node in a description of hardware or network, or None.

    >>> node_size("Slingshot-11, 8 GCDs per node"), node_size("4 GH200 a node"), node_size("800 Gb/s per node")
    (8.0, 4.0, None)
    """
    match = re.search(rf"\b(\d+) (?:{CHIPS} )?(?:a|per) node", text.lower())
    return float(match[1]) if match else None


def _hardware(text: str, row: Mapping[str, Any]) -> dict[str, Any]:
    text = re.sub(r"(?i)^v([34])-(?=\d+$)", r"TPU v\1-", text)  # the name of a slice
    lowered = text.lower()
    memory, watts = re.search(r"(\d+) ?gb", lowered), re.search(r"(\d+) ?w\b", lowered)
    stated = str(row.get("accelerator_count") or "").lower() not in MISSING
    try:
        word, devices = DEVICES.get(accelerator_in(text), ("", None))
    except FactorykitError:
        return {"accelerator": text}
    units = f"{lowered} {row.get('accelerator_count')}".lower()
    named = devices and re.search(rf"\b(?:{word})s?\b", units) and not re.search(WHOLE_CHIPS, units)
    return {
        "accelerator": accelerator_in(text),
        "accelerator_count": None if stated else counted(text),
        "accelerator_memory_bytes": float(memory[1]) * 1e9 if memory else None,
        "devices_per_accelerator": devices if named else None,
        "power_limit_w": float(watts[1]) if watts else None,
        "power_limited": 1.0 if "power limited" in lowered else None,
        "accelerators_per_node": node_size(text),
    }


def _count(text: str, row: Mapping[str, Any]) -> dict[str, Any]:
    domain = chip_in(row.get("accelerator")).get("scale_up_domain") or math.inf
    usual = domain if domain < frameworks.RACK else None
    return {"accelerator_count": count(text, row.get("accelerators_per_node") or usual)}


def _network(text: str, row: Mapping[str, Any]) -> dict[str, Any]:
    node = row.get("accelerators_per_node") or node_size(text)
    words = text.lower().replace("_", "-")
    fabrics = (name for name in ("omni_path", "efa") if re.search(rf"\b{name.replace('_', '-')}(?:v\d)?\b", words))
    rate = link_bytes_per_s(text, node or 8.0)
    return {"accelerators_per_node": node, "scale_out_bytes_per_s": rate, "fabric": next(fabrics, None)}


def _precision(text: str, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"precision": precision_of(text), "weight_bits": meaning("weight_bits", text.lower())}


def _choice(column: str, text: str, _: Mapping[str, Any]) -> dict[str, Any]:
    return {column: meaning(column, text.lower())}


READERS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], Mapping[str, Any]]]] = {
    "global_batch": lambda text, _: {"global_batch_tokens": text, "global_batch": ""} if "tok" in text.lower() else {},
    "year": lambda text, _: {"year": next(iter(re.findall(r"(?:19|20)\d\d", text)), None)},
    "mlp_gated": lambda text, _: {
        "mlp_gated": number(text) if number(text) is not None else float("glu" in text.lower())
    },
    **{name: partial(_choice, name) for name in ("optimizer", "schedule", "fabric", "memory_measure")},
    "hardware": _hardware,
    "accelerator_count": _count,
    "network": _network,
    "precision": _precision,
    "sharding": lambda text, _: {"zero_stage": zero_stage(text), **_shards(text), **offloaded(text)},
    "recompute": lambda text, _: recomputation(text),
    "framework": lambda text, _: {"framework": frameworks.find(text)},
}
"""Columns with words, in the order in which they are read."""


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
    return meaning("release_month", publication)


PUBLICATION_COLUMNS: Final = ("locator", "source", "model")
"""Columns that may name the framework of a row that does not state it."""


def read_words(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the columns that follow from its words.

    >>> read_words({"sharding": "FSDP", "network": "4x100 Gb/s Omni-Path, 4 GPUs per node"})["zero_stage"]
    3.0
    """
    completed = dict(row)
    for column, reader in READERS.items():
        text = row.get(column)
        if isinstance(text, str) and text.lower() not in MISSING:
            completed |= {name: value for name, value in reader(text, completed).items() if value is not None}
    text = " ".join(str(row.get(name) or "") for name in PUBLICATION_COLUMNS)
    completed["release_month"] = completed.get("release_month") or release_month(row, text)
    if frameworks.find(completed.get("framework") or "") is None:
        completed["framework"] = frameworks.find(text, is_publication=True) or completed.get("framework")
    return completed


def read_notes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that a row lacks and its words state.

    >>> read_notes({"note": "DeepEP; capacity factor 1.25; gradient accumulation 4"})
    {'dispatched_once': 1.0, 'expert_imbalance': 1.25, 'gradient_accumulation_steps': 4.0}
    >>> read_notes({"note": "DeepEP", "dispatched_once": None}), read_notes({"sharding": "TP=8 x PP 4, EP8"})
    ({}, {'tp': 8.0, 'pp': 4.0, 'ep': 8.0})
    >>> read_notes({"note": "zero-bubble (ZB-1p)"}), read_notes({"group": "zerobubble", "note": "plain 1F1B"})
    ({'schedule': 'zb1p'}, {})
    """
    text = " ".join(str(row.get(name) or "") for name in NOTE_COLUMNS).lower()
    columns: dict[str, Any] = {"lora": 1.0} if "lora" in text and "lora_rank" not in row else {}
    for term in TERMS:
        noted = term.is_noted and term.column not in row and term.column not in columns
        if noted and ("lora" in columns or term.column not in ADAPTERS) and (value := term.read(text)) is not None:
            columns[term.column] = value
    return columns


def is_no_language_model(text: str) -> bool:
    """Return whether a name is of a model for images, sound or ranking, or of one that reads in both directions.

    >>> is_no_language_model("ViT-22B"), is_no_language_model("Stable Diffusion v2"), is_no_language_model("Vicuna 7B")
    (True, True, False)
    """
    others = r"\bvit\b|\b(?:ro)?bert\b|bert-(?:base|large)|resnet|u-?net\b|diffusion|sdxl|\bdit\b|\bclip\b|whisper|dlrm"
    return re.search(rf"{others}|retinanet|mask r-?cnn|\brnn-?t\b|\bgnn\b|r-gat|alphafold", text.lower()) is not None
