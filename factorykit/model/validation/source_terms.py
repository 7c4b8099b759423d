"""What sources mean by their words: number formats, sharding, recomputation, links, names of models.

Frameworks and papers word one thing in many ways. Each reading here is a rule; what no rule knows is None, and whoever
asks says so or assumes.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

PRECISIONS: Final[tuple[tuple[str, str], ...]] = (
    (r"(nv|mx)?fp4|e2m1", "nvfp4"),
    (r"mxfp8", "mxfp8"),
    (r"int8", "int8"),
    (r"fp8|float8|e4m3|e5m2|hif8", "fp8"),
    (r"fp16|(?<!b)float16|\bhalf\b|\b16-(mixed|true)", "fp16"),
    (r"bf16|bfloat16|nf4|\b4-?bits?\b|\b16-?bits?\b|^mixed( precision)?$|\bamp\b", "bf16"),
)
"""Number formats of matrix products by words of a description, the more special ones first. Weights stored in 4 bits
without a format of products (NF4, GPTQ) are widened to 16 before they are multiplied; four bits of either maker run at
the rate of four."""
DENIED: Final = r"\b(?:no|without)[ -]\w+|\b\w+[ -](?:off|disabled)\b"
"""Words about what is not done."""
NARROW_WEIGHTS: Final = r"nf4|\b4-?bits?\b|gptq|awq|qlora"
"""Words for frozen weights of 4 bits."""
STAGES: Final[tuple[tuple[str, float], ...]] = (
    (r"no[ _]shard", 0.0),
    (r"shard_grad_op|reshard_after_forward ?=? ?(?:false|0)|optim_grads\b(?!_params)|zero-?offload", 2.0),
    (r"[fh]sdp|full(?:y)?[ _-]shard|hybrid[ _-]shard|zero-?infinity|zero ?\+\+|\bmics\b|gemini|grads_params", 3.0),
    (r"dist(?:ributed)?[ _-]?opt|optim\w*(?: states?)? shard|shard\w* optim|zero redundancy|\bzero\b", 1.0),
    (r"\bnone\b|data[ -]parallel|\bddp\b|\bplain dp\b|replicated", 0.0),
)
"""ZeRO stages by words of a description, the more special ones first, where it states none in digits."""


DROPPED: Final = r"dropout\W{0,3}(?:of )?0?\.\d*[1-9]"
"""Words for adapters that drop a part of their inputs."""
LOSS_IN_PARTS: Final = r"liger|chunked (?:loss|cross|ce\b|logits)|cut cross|fused linear cross|linear cross[ -]entropy"
"""Words for logits and a loss that are computed in parts."""
MOMENTS: Final[tuple[tuple[str, float, float], ...]] = (
    (r"8-?bit(?: paged)?[ -]?adam|adamw?[ -_]?8-?bit|adam\w* (?:in|of) 8 bits", 2.0, 2.0),
    (r"adafactor|\bsgd\b(?! with momentum)|signsgd|\badam-?mini\b", 0.0, 0.0),
    (r"\blion\b|\bmuon\b|sgd with momentum", 4.0, 2.0),
)
"""Bytes of an optimizer's moments for each parameter, where state is in 32 bits and where it is in 16, by its name."""
ADAPTED: Final[tuple[tuple[str, str], ...]] = (
    (r"gate_proj|up_proj|fc1|all[ -](?:linear|layers|modules|matrices|weights)|all linear|\bmlp\b|\bffn\b", "all"),
    (r"o_proj|linear_proj|qkvo|(?:of|on|in|to) (?:the )?attention|attention (?:only|layers|modules)", "attention"),
    (r"q_proj|linear_qkv|\bqkv\b|\bqv\b|\bq(?:uery)?,? (?:and )?v(?:alue)?\b|query_key_value|c_attn", "query_value"),
)
"""Matrices that adapters stand beside, by words of a note; the first that is said counts."""


class Recomputation(NamedTuple):
    """What a source says of recomputed activations."""

    kind: str
    """``none``, ``selective`` (the attention core) or ``full``."""
    share: float | None
    """Share of the layers that is recomputed whole; None where ``kind`` tells it."""
    layers_a_chunk: float | None = None
    """Layers of each chunk of a stage that are recomputed whole, where that is what is said."""


def number(text: str, base: float = 1000.0) -> float | None:
    """Return the number that a cell holds, with its multiple and its thousands, or None; ``base`` is that of a k.

    >>> number("1,024"), number("7B"), number("4.2M"), number("8K", base=1024.0), number("4M tokens")
    (1024.0, 7000000000.0, 4200000.0, 8192.0, None)
    """
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.strip())
    found = re.fullmatch(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?) ?([kmbt]?)", plain.lower())
    return float(found[1]) * base ** ("kmbt".index(found[2]) + 1.0 if found[2] else 0.0) if found else None


def precision_of(text: str) -> str | None:
    """Return the number format of matrix products that a description means, or None.

    >>> precision_of("bfloat16"), precision_of("FP8 (E4M3)"), precision_of("MXFP4"), precision_of("tf32")
    ('bf16', 'fp8', 'nvfp4', None)
    """
    said = re.sub(DENIED, "", text.lower().replace("_", "-")).strip()
    return next((name for words, name in PRECISIONS if re.search(words, said)), None)


def zero_stage(text: str) -> float | None:
    """Return the ZeRO stage that a description of sharding means, None where it says nothing of sharding.

    >>> zero_stage("FSDP (FULL_SHARD)"), zero_stage("ZeRO stage 2"), zero_stage("none"), zero_stage("sequence parallel")
    (3.0, 2.0, 0.0, None)
    """
    said = text.lower()
    stated = re.search(r"(?:zero|stage|\bz)(?:[ _-]*(?:dp|stage))?[ _=:-]*([0-3])(?!\d)", said)
    if stated:
        return float(stated[1])
    return next((stage for words, stage in STAGES if re.search(words, said)), None)


def recomputation(text: str) -> Recomputation | None:
    """Return what a description of activation checkpointing means, None where it leaves it open.

    >>> recomputation("full, 1 layer of 4").share, recomputation("block 20").layers_a_chunk, recomputation("custom")
    (0.25, 20.0, None)
    >>> recomputation("selective (every 2nd layer)").share, recomputation("yes").kind
    (0.5, 'full')
    """
    said = text.lower().strip()
    part = re.search(r"(\d+)(?: layers?)? ?(?:of|/|out of) ?(?:the |all )?(\d+)", said)
    every = re.search(r"every (other|\d+)(?:st|nd|rd|th)? ?layers?", said)
    chunk = re.search(r"\bblock\D{0,20}(\d+)", said)
    if part and 0.0 < float(part[1]) <= float(part[2]):
        return Recomputation("full", float(part[1]) / float(part[2]))
    if every:
        return Recomputation("full", 1.0 / (2.0 if every[1] == "other" else max(float(every[1]), 1.0)))
    if chunk:
        return Recomputation("full", None, float(chunk[1]))
    if re.match(r"(none|no|off|false|disabled|without|not used|0)\b", said):
        return Recomputation("none", 0.0)
    if re.match(r"selective|minimal", said):
        return Recomputation("selective", None)
    if re.match(r"(full|uniform|all|yes|true|on|enabled|every layer|1)\b", said) or re.search(
        r"offload|(?:activation|gradient)[ -]?checkpoint", said
    ):
        return Recomputation("full", 1.0)
    return None


PORTS: Final = {"edr": 100.0, "hdr": 200.0, "ndr": 400.0, "xdr": 800.0}
"""Gb/s of a port of each generation of InfiniBand."""
GIGABITS: Final = r"(?:g(?:bit|b)(?:/s|ps)|gbe?\b)"
CHIPS: Final = r"(?:gpus?|gcds?|npus?|xpus?|hpus?|chips?|cards?|devices?|accelerators?|[a-z]+\d+\w*)"


def link_bytes_per_s(network: str, accelerators_per_node: float = 8.0) -> float | None:
    """Return the rate per accelerator and direction that a description of a network means, or None.

    >>> link_bytes_per_s("8x200 Gb/s HDR per node"), link_bytes_per_s("400 Gbps RoCE per GPU")
    (25000000000.0, 50000000000.0)
    >>> link_bytes_per_s("4x HDR InfiniBand") == link_bytes_per_s("0.8 Tb/s per node") == 12.5e9
    True
    """
    said = network.lower().replace("\N{MULTIPLICATION SIGN}", "x")
    said = re.sub(r"(\d+(?:\.\d+)?) ?t(?:bit|b)(?:/s|ps)", lambda rate: f"{round(float(rate[1]) * 1000.0)} gb/s", said)
    for name, rate in PORTS.items():
        said = re.sub(rf"\b(\d+) ?x ?{name}\b", rf"\1x{rate:.0f} gb/s", said)
    several = re.search(rf"(\d+) ?x ?(\d+) ?{GIGABITS}", said)
    if several:
        return float(several[1]) * float(several[2]) * 1e9 / 8.0 / accelerators_per_node
    one = re.search(rf"(\d+) ?{GIGABITS}[^,;]*? (?:per|a) (gpu|gcd|npu|chip|accelerator|node)\b", said)
    if not one:
        return None
    return float(one[1]) * 1e9 / 8.0 / (accelerators_per_node if one[2] == "node" else 1.0)


def node_size(text: str) -> float | None:
    """Return how many accelerators a node has by a description of hardware and network, or None.

    >>> node_size("Slingshot-11, 8 GCDs per node"), node_size("4 GH200 a node"), node_size("800 Gb/s per node")
    (8.0, 4.0, None)
    """
    found = re.search(rf"\b(\d+) (?:{CHIPS} )?(?:a|per) node", text.lower())
    return float(found[1]) if found else None


def offloaded(sharding: str, notes: str) -> tuple[float, float]:
    """Return the shares of optimizer state and of weights that wait on the host, by the words of a source.

    >>> offloaded("ZeRO-2 + CPU offload", ""), offloaded("ZeRO-Infinity", ""), offloaded("ZeRO-3", "no offload")
    ((1.0, 0.0), (1.0, 1.0), (0.0, 0.0))

    FSDP keeps weights there, too: ``offloaded("FSDP2 + CPU offload", "") == (1.0, 1.0)``.
    """
    both = re.sub(DENIED, "", f"{sharding} {notes}".lower())
    of_state = re.sub(DENIED, "", re.sub(r"activations?[ -]offload\w*", "", sharding.lower()))
    weights = r"zero-?infinity|param\w*[ -]offload|offload\w*[ -](?:of )?(?:the )?(?:param|weight)"
    state = r"optimizer on the cpu|optimizer(?: states?)?[ -]offload|offload\w* (?:of )?(?:the )?optim|cpuadam"
    whole = "fsdp" in sharding.lower() and "offload" in of_state
    infinite = whole or bool(re.search(weights, both))
    return float(infinite or bool(re.search(state, both)) or "offload" in of_state), float(infinite)


def adapted(notes: str) -> str | None:
    """Return the matrices that adapters stand beside, by the words of a note, or None.

    >>> adapted("LoRA rank 16 on q_proj, k_proj, v_proj, o_proj"), adapted("r=8, q and v"), adapted("flash attention")
    ('attention', 'query_value', None)
    """
    return next((matrices for words, matrices in ADAPTED if re.search(words, notes.lower())), None)


def moment_bytes(notes: str, *, wide: bool) -> float:
    """Return the bytes of the optimizer's moments for each parameter, those of Adam where no other is named.

    >>> moment_bytes("", wide=True), moment_bytes("PagedAdamW8bit", wide=True), moment_bytes("8-bit AdamW", wide=False)
    (8.0, 2.0, 2.0)
    """
    said = notes.lower()
    found = next(((full, half) for words, full, half in MOMENTS if re.search(words, said)), (8.0, 4.0))
    return found[0] if wide else found[1]


def accumulated(notes: str) -> float | None:
    """Return how many micro-batches each copy of the model accumulates, where a note says so.

    >>> accumulated("LoRA; gradient accumulation steps = 8"), accumulated("padded")
    (8.0, None)
    """
    found = re.search(r"\b(?:grad(?:ient)?[ _-]acc(?:um(?:ulation)?)?|ga)(?:[ _-]steps?)?\D{0,4}(\d+)\b", notes.lower())
    return float(found[1]) if found else None


def is_no_language_model(text: str) -> bool:
    """Return whether a model sees, hears, draws or ranks, or reads in both directions, by its name.

    >>> is_no_language_model("ViT-22B"), is_no_language_model("Stable Diffusion v2"), is_no_language_model("Vicuna 7B")
    (True, True, False)
    """
    others = r"\bvit\b|\b(?:ro)?bert\b|bert-(?:base|large)|resnet|u-?net\b|diffusion|sdxl|\bdit\b|\bclip\b|whisper|dlrm"
    return re.search(rf"{others}|retinanet|mask r-?cnn|\brnn-?t\b|\bgnn\b|r-gat|alphafold", text.lower()) is not None


def model_names(text: str) -> list[str]:
    """Return the names that a description of a model may hold, the longest first.

    >>> model_names("meta-llama/Llama-3.1-8B-Instruct, QLoRA")
    ['meta-llama/Llama-3.1-8B-Instruct, QLoRA', 'Llama-3.1-8B-Instruct, QLoRA', 'Llama-3.1-8B-Instruct', 'Llama-3.1-8B']
    """
    short = text.rpartition("/")[2] if re.fullmatch(r"[\w.-]+/\S.*", text) else text
    bare = re.split(r"\s*[,(;]", short)[0]
    kinds = r"[ _-]+(?:instruct|base|chat|hf|it|sft|q?lora|pre-?train(?:ing|ed)?|fine-?tun(?:ing|ed)|v0\.\d)\b.*"
    plain = re.sub(r"^meta-(?=llama)", "", re.sub(kinds, "", bare, flags=re.IGNORECASE), flags=re.IGNORECASE)
    return list(dict.fromkeys((text, short, bare, plain)))
