"""Architecture quantities from a Hugging Face ``config.json``."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from factorykit.core import text_io
from factorykit.core.errors import ScenarioError, warn
from factorykit.core.validation import file_path
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.engine.assumptions import CONFIG_DEFAULT
from factorykit.engine.rules import check_layout
from factorykit.model.scenario.scenario import Scenario


def _field_roles() -> Mapping[str, tuple[str, ...]]:
    """Return the fields of each role, in order of precedence.

    A role is a quantity, or ``ignored`` for fields that change no count or are read by code below.
    """
    roles: dict[str, tuple[str, ...]] = {}
    for row in text_io.package_rows(Path(__file__).with_name("hf_fields.csv")):
        roles[row["role"]] = (*roles.get(row["role"], ()), row["field"])
    return roles


def _values(role: str) -> dict[str, str]:
    """Return the values of a role in ``hf_values.csv``, with what each means."""
    rows = text_io.package_rows(Path(__file__).with_name("hf_values.csv"))
    return {row["value"]: row["meaning"] for row in rows if row["role"] == role}


FIELDS: Final = _field_roles()
"""Fields by role, from ``hf_fields.csv``."""
LANGUAGE_MODELS: Final = ("text_config", "llm_config", "language_config")
"""Objects that hold the language model of a multimodal configuration."""
OTHER_MODELS: Final = ("vision_config", "audio_config", "visual")
"""Objects that hold the other models of such a configuration."""
PARTS: Final = ("attn_config", "ffn_config")
"""Objects that hold some of the fields of a model."""
COPIED: Final = {quantity: field for field, quantity in _values("copied").items()}
"""Optional quantities of attention and the field that each is copied from."""
DELTA_NET: Final = {quantity: field for field, quantity in _values("delta_net").items()}
"""Quantities of gated delta nets and the field that each is copied from."""
GATED_ACTIVATIONS: Final = tuple(_values("gated_activation"))
"""Activations of feed-forward blocks with a gate."""
OTHER_ACTIVATIONS: Final = tuple(_values("other_activation"))
"""Activations of blocks with and without a gate."""
UNSUPPORTED_TYPES: Final = _values("unsupported_type")
"""Model types with parts that no formula counts."""
ATTENTION_KINDS: Final = frozenset(_values("attention_layer"))
"""Kinds of layers with attention; a chunk is as long as the sequences in training."""
CONVOLUTION_KINDS: Final = frozenset(_values("convolution_layer"))
"""Kinds of layers with a short gated convolution, whose state is the last few tokens."""
RECURRENT_KINDS: Final = frozenset(_values("recurrent_layer")) | CONVOLUTION_KINDS
"""Kinds of layers with a recurrent state."""
STATE_SPACE_TYPES: Final = ("mamba", "mamba2", "falcon_mamba")
"""Model types whose layers have neither attention nor feed-forward blocks."""
EXPERT_KINDS: Final = frozenset(_values("expert_layer"))
DENSE_KINDS: Final = frozenset(_values("dense_layer"))
"""Kinds of layers that are a feed-forward block alone, with and without experts."""
DELTA_RULE_FLOP, SELECTIVE_SCAN_FLOP, LIGHTNING_FLOP = 8.0, 7.0, 4.0
"""FLOP of a forward pass for each element of the state: gated delta rule and Mamba as in training.py of Megatron-LM
d98e8a6; without decay or delta, one multiplication and one addition each for writing and reading."""
LIBRARY: Final = "transformers 4.57"
"""Version that the defaults in the table ``config_defaults`` are taken from."""
MAX_FILE_BYTES: Final = 16_000_000
"""Size limit of a configuration; lists of quantised modules are the longest."""
MAX_EXACT_COUNT: Final = 2.0**53
"""Limit of integers that a double holds exactly."""
MAX_PATTERN_LAYERS: Final = 100_000
"""Largest number of layers whose pattern is written out."""
MAX_FIELDS_SHOWN: Final = 10
"""Fields that an error names before it counts the rest."""
RULED: Final = ("attention_heads", "kv_heads", "experts", "experts_per_token")
"""Quantities of an architecture that are checked against the rules of layouts."""


def read_hf_config(path: str | Path) -> Scenario:
    """Read the architecture from a Hugging Face ``config.json``.

    Fields that the file lacks take the default of its model type in the Transformers library, and are named in
    ``sources``. Fields without such a default, and fields that are not understood, are errors. Of a multimodal model,
    the language model is read. Biases and learned positions are not counted.

    Parameters
    ----------
    path
        The file, or the folder that holds it.

    Returns
    -------
    Scenario
        Quantities of the vocabulary, ready for :func:`factorykit.evaluate` and :func:`factorykit.search`. Its
        ``sources`` are ``config.json`` with the field, or ``default of model type … in transformers …``;
        :func:`factorykit.assumed` lists the latter.

    Raises
    ------
    ScenarioError
        If the file cannot be read, lacks a field without a default, or has fields that are not understood.

    Warns
    -----
    FactorykitWarning
        If the file describes further models, which are not counted.

    Examples
    --------
    >>> import tempfile
    >>> config = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
    >>> config |= {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "config.json").write_text(json.dumps(config))
    ...     model = read_hf_config(folder)
    >>> model.kv_heads
    8.0
    >>> model.sources["gated_ffn"]
    'default of model type llama in transformers 4.57: hidden_act'
    """
    file, config = _load(path)
    fields = _Fields(file, _merged(file, config))
    values: dict[str, float] = {}
    sources: dict[str, str] = {}
    try:
        for name, value in _quantities(fields):
            values[name] = float(quantity(name).check(value))
            sources[name] = fields.source()
        fields.check_all_read()
        check_layout({name: values[name] for name in RULED if name in values})
    except ScenarioError as error:
        raise ScenarioError(f"{file}: {error}") from None
    return Scenario.sourced(f"{fields.kind or 'model'} of {file.name}", values, sources)


def _load(path: str | Path) -> tuple[Path, dict[str, Any]]:
    file = file_path("path", path)
    try:
        file = file / "config.json" if file.is_dir() else file
        config = text_io.parse_json(text_io.read_bytes(file, MAX_FILE_BYTES, ScenarioError))
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{file} cannot be read as a configuration: {error}") from None
    if not isinstance(config, dict):
        raise ScenarioError(f"{file} must be an object with fields, got a {type(config).__name__}")
    return file, config


def _merged(file: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the language model, those of nested parts included."""
    model = next((config[name] for name in LANGUAGE_MODELS if isinstance(config.get(name), dict)), config)
    others = [name for name in OTHER_MODELS if config.get(name)]
    if others and model is not config:
        warn(f"{file}: {', '.join(others)} not counted; the quantities are those of the language model")
    outer = {name: config[name] for name in ("tie_word_embeddings", "model_type") if name in config}
    parts = [model[name] for name in PARTS if isinstance(model.get(name), dict)]
    return {name: value for part in (outer, *parts, model) for name, value in part.items()}


@cache
def defaults_of_types() -> Mapping[str, Mapping[str, Any]]:
    """Return the defaults of each model type by field."""
    rows = table("config_defaults").select("model_type", "field", "value").collect()
    defaults: dict[str, dict[str, Any]] = {}
    for kind, field, value in rows.iter_rows():
        defaults.setdefault(kind, {})[field] = json.loads(value)
    return defaults


class _Fields:
    """Fields of a file with the defaults of its model type, and a record of which were read."""

    def __init__(self, file: Path, given: Mapping[str, Any]) -> None:
        self.file, self.given = file, given
        self.kind = str(given.get("model_type") or "")[:60]
        key = self.kind.replace("-", "_")
        self.defaults = defaults_of_types().get(key) or defaults_of_types().get(key.removesuffix("_text"), {})
        self._read: set[str] = set()
        self._stated: dict[str, bool] = {}

    def get(self, *names: str, default: Any = None) -> Any:
        """Return the first of these fields that the file has, otherwise the first default of the model type.

        A field that is null in the file has no value, whatever the default of the model type.
        """
        self._read.update(names)
        stated = any(name in self.given for name in names)
        source = self.given if stated else self.defaults
        name = next((name for name in names if source.get(name) is not None), None)
        if name is None:
            return default
        self._stated[name] = stated
        return source[name]

    def count(self, *names: str, default: float | None = None) -> float:
        """Return the first of these fields as a whole number; a list of equal numbers counts as one.

        Raises
        ------
        ScenarioError
            If neither file nor defaults have it, or it is not a whole number of at least zero.
        """
        value = self.get(*names, default=default)
        if value is None:
            raise self.missing(*names)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = float(min(max(value, -1), MAX_EXACT_COUNT))
            if 0.0 <= number < MAX_EXACT_COUNT and number == math.floor(number):
                return number
        name = next((name for name in names if name in self.given), names[0])
        raise ScenarioError(f"{name} must be a whole number, got {str(value)[:60]!r}")

    def missing(self, *names: str) -> ScenarioError:
        """Return the error for a field without a value."""
        reason = f"model type {self.kind!r} has no default for it" if self.kind else "model_type is missing too"
        return ScenarioError(f"no field {' or '.join(names)}, and {reason}; add it to the file")

    def source(self) -> str:
        """Return the source of the fields read since the last call."""
        assumed = [name for name, stated in self._stated.items() if not stated]
        stated = [name for name, stated in self._stated.items() if stated]
        self._stated = {}
        default = f"{CONFIG_DEFAULT} {self.kind} in {LIBRARY}: {', '.join(assumed)}" if assumed else ""
        return "; ".join(filter(None, (default, f"config.json: {', '.join(stated)}" if stated else "")))

    def check_all_read(self) -> None:
        """Raise if the file has fields that may change a count and were not read."""
        known = self._read.union(FIELDS["ignored"])
        names = sorted(str(field)[:60] for field, value in self.given.items() if field not in known and _counts(value))
        if names:
            more = f" and {len(names) - MAX_FIELDS_SHOWN} more" if len(names) > MAX_FIELDS_SHOWN else ""
            shown = ", ".join(map(_printable, names[:MAX_FIELDS_SHOWN]))
            raise ScenarioError(
                f"{shown}{more} not understood; remove fields that change no count, or give the quantities"
            )


def _printable(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _counts(value: Any) -> bool:
    """Return whether a field may change a count: a number other than zero, or a list or object with content."""
    return not (value is None or isinstance(value, (bool, str)) or value in (0, 0.0, [], {}))


def _quantities(fields: _Fields) -> Iterator[tuple[str, float]]:
    """Yield each quantity right after its fields were read, so that `_Fields.source` belongs to it."""
    if fields.kind in UNSUPPORTED_TYPES:
        raise ScenarioError(f"{fields.kind}: {UNSUPPORTED_TYPES[fields.kind]} not counted; give the quantities")
    if fields.get("is_encoder_decoder"):
        raise ScenarioError("encoder and cross attention not counted; give the quantities")
    fields.source()
    state_space = fields.kind in STATE_SPACE_TYPES
    kinds = ["mamba"] * int(fields.count(*FIELDS["layers"])) if state_space else _layer_kinds(fields)
    layers = float(len(kinds)) if kinds else fields.count(*FIELDS["layers"])
    yield "layers", layers
    hidden = fields.count(*FIELDS["hidden_size"])
    yield "hidden_size", hidden
    if fields.get("word_embed_proj_dim", default=hidden) != hidden:
        raise ScenarioError("word_embed_proj_dim: the projection of embeddings is not counted")
    fields.source()
    yield "vocabulary_size", fields.count(*FIELDS["vocabulary_size"])
    yield from _recurrence(fields, kinds, hidden)
    if state_space:
        yield "attention_heads", fields.count("num_heads", default=1.0)
        yield from {"attention_layers": 0.0, "ffn_layers": 0.0, "ffn_size": hidden}.items()
    else:
        yield from _attention(fields, kinds)
        yield from _window(fields, kinds, layers)
    fields.source()
    yield "gated_ffn", _gated(fields)
    yield "tied_embeddings", _tied(fields)
    if not state_space:
        yield from _feed_forward(fields, kinds, layers, hidden)
    modules = fields.count(*FIELDS["mtp_layers"], default=0.0)
    if fields.get("use_mtp"):
        modules = fields.count("num_mtp_modules") * fields.count("mtp_transformer_layers")
    if modules:
        yield "mtp_layers", modules


def _layer_kinds(fields: _Fields) -> list[str]:
    """Return the kind of each layer; empty where all layers have attention and a feed-forward block."""
    kinds = _listed_kinds(fields) or _periodic_kinds(fields)
    unknown = sorted(
        {str(kind)[:60] for kind in kinds} - ATTENTION_KINDS - RECURRENT_KINDS - EXPERT_KINDS - DENSE_KINDS
    )
    if unknown:
        shown = ", ".join(map(_printable, unknown[:MAX_FIELDS_SHOWN]))
        raise ScenarioError(f"layer_types {shown} not understood; give the quantities")
    if kinds and fields.get(*FIELDS["layers"]) is not None and len(kinds) != fields.count(*FIELDS["layers"]):
        raise ScenarioError(f"kinds of {len(kinds)} layers for another number of layers; correct one")
    return kinds


def _listed_kinds(fields: _Fields) -> list[str]:
    """Return the kinds of layers that the file lists one by one, as names, letters, switches or numbers of layers."""
    kinds = fields.get("hybrid_override_pattern", "layer_types", "layers_block_type", default=[])
    for period in ("attn_layer_period", "full_attention_interval"):
        fields.get(period)
    switches = fields.get("attn_type_list", default=[])
    linear = fields.get("linear_attn_config", default={})
    if not isinstance(kinds, (list, str)) or not isinstance(switches, list):
        raise ScenarioError("layer_types must be a list of kinds of layers")
    if isinstance(linear, dict) and isinstance(linear.get("kda_layers"), list):
        layers = range(1, _pattern_layers(fields) + 1)
        return ["linear_attention" if layer in linear["kda_layers"] else "attention" for layer in layers]
    return list(kinds) or ["attention" if switch else "linear_attention" for switch in switches]


def _periodic_kinds(fields: _Fields) -> list[str]:
    """Return the kinds of layers of a model in which every n-th layer has attention."""
    indices = fields.get("attn_layer_indices")
    period = fields.get("attn_layer_period")
    if not period and not fields.get("full_attention_interval") and indices is None:
        return []
    every = fields.count("attn_layer_period", "full_attention_interval", default=1.0)
    layers = range(_pattern_layers(fields))
    if isinstance(indices, list):
        return ["attention" if layer in indices else "mamba" for layer in layers]
    if period:
        offset = fields.count("attn_layer_offset", default=0.0)
        return ["attention" if layer % every == offset else "mamba" for layer in layers]
    return ["linear_attention" if (layer + 1) % every else "attention" for layer in layers]


def _pattern_layers(fields: _Fields) -> int:
    return int(min(fields.count(*FIELDS["layers"]), MAX_PATTERN_LAYERS))


def _attention(fields: _Fields, kinds: Sequence[str]) -> Iterator[tuple[str, float]]:
    yield "attention_heads", fields.count(*FIELDS["attention_heads"])
    if fields.get("multi_query") and not fields.get("new_decoder_architecture", default=False):
        fields.get(*FIELDS["kv_heads"])
        yield "kv_heads", 1.0
    elif fields.get(*FIELDS["kv_heads"]) is not None:
        yield "kv_heads", fields.count(*FIELDS["kv_heads"])
    fields.source()
    rank = fields.get("kv_lora_rank")
    if fields.get(*FIELDS["head_size"]) is not None or rank:
        fields.source()
        yield "head_size", fields.count("qk_nope_head_dim") if rank else fields.count(*FIELDS["head_size"])
    fields.source()
    for name, field in COPIED.items():
        if fields.get(field) is not None:
            yield name, fields.count(field)
    if fields.get("attn_output_gate", default=fields.kind == "qwen3_next"):
        yield "gated_attention", 1.0
    if RECURRENT_KINDS.intersection(kinds):
        yield "attention_layers", float(sum(kind in ATTENTION_KINDS for kind in kinds))


def _recurrence(fields: _Fields, kinds: Sequence[str], hidden: float) -> Iterator[tuple[str, float]]:
    """Yield the shape of the layers with a recurrent state."""
    layers = float(sum(kind in RECURRENT_KINDS for kind in kinds))
    if fields.get("mamba_d_ssm") is not None and not layers:
        # Falcon-H1: each layer has attention and Mamba in parallel.
        layers = len(kinds) or fields.count(*FIELDS["layers"])
        yield "attention_layers", float(layers)
    if not layers:
        return
    yield "linear_attention_layers", layers
    linear = fields.get("linear_attn_config")
    if CONVOLUTION_KINDS.intersection(kinds):
        yield from {"linear_value_heads": hidden, "linear_value_size": 1.0, "linear_gates": 1.0}.items()
        yield "convolution_width", fields.count("conv_L_cache")
    elif isinstance(linear, dict):
        yield from _kimi_delta(fields, linear)
    elif fields.get("linear_num_value_heads") is not None:
        yield from ((name, fields.count(field)) for name, field in DELTA_NET.items())
        yield from {"linear_gates": 2.0, "state_element_flop": DELTA_RULE_FLOP}.items()
    elif fields.get(*FIELDS["state_size"]) is not None:
        yield from _mamba(fields, hidden)
    elif fields.kind.startswith("minimax"):
        heads = fields.count(*FIELDS["attention_heads"])
        yield from _equal_heads(heads, fields.count("head_dim", default=hidden / heads))
        yield from {"convolution_width": 0.0, "linear_gates": 0.0, "state_element_flop": LIGHTNING_FLOP}.items()
    else:
        raise ScenarioError(f"{layers:g} layers of linear attention without their shape; give it")


def _equal_heads(heads: float, width: float) -> Iterator[tuple[str, float]]:
    for part in ("key", "value"):
        yield f"linear_{part}_heads", heads
        yield f"linear_{part}_size", width


def _mamba(fields: _Fields, hidden: float) -> Iterator[tuple[str, float]]:
    """Yield the shape of Mamba layers; models of Mamba alone name the same fields without a prefix."""
    alone = fields.kind in STATE_SPACE_TYPES

    def names(*prefixed: str, plain: str) -> tuple[str, ...]:
        return (*prefixed, plain) if alone else prefixed

    heads = fields.count(*names("mamba_num_heads", "mamba_n_heads", plain="num_heads"), default=0.0)
    expanded = hidden * fields.count("mamba_expand", "expand", default=2.0)
    inner = fields.count(*names("mamba_d_ssm", plain="intermediate_size"), default=expanded)
    width = names("mamba_head_dim", plain="head_dim")
    if heads and fields.get(*width) is not None:
        inner = heads * fields.count(*width)
    groups = fields.count("n_groups", "mamba_n_groups", default=1.0)
    rank_field = "time_step_rank" if alone else "mamba_dt_rank"
    rank = fields.get(rank_field)
    yield "linear_key_heads", groups
    yield "linear_key_size", fields.count(*FIELDS["state_size"])
    yield "linear_value_heads", heads or 1.0
    yield "linear_value_size", inner / (heads or 1.0)
    yield "convolution_width", fields.count("conv_kernel", "mamba_d_conv")
    yield "linear_gates", 1.0 if heads else 0.0
    if not heads:
        yield "step_rank", math.ceil(hidden / 16.0) if rank in (None, "auto") else fields.count(rank_field)
    yield "state_element_flop", SELECTIVE_SCAN_FLOP


def _kimi_delta(fields: _Fields, linear: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the shape of Kimi delta attention: keys as wide as values, gate and decay of the rank of a head's width."""
    part = _Fields(fields.file, linear)
    part.get("kda_layers", "full_attn_layers")  # read by `_listed_kinds`
    heads, width = part.count("num_heads"), part.count("head_dim")
    if part.get("use_full_rank_gate"):
        raise ScenarioError("use_full_rank_gate: a full-rank gate with a low-rank decay is not counted")
    yield from _equal_heads(heads, width)
    yield "linear_gate_rank", width
    yield "convolution_width", part.count("short_conv_kernel_size")
    yield from {"linear_gates": 1.0, "state_element_flop": DELTA_RULE_FLOP}.items()
    part.check_all_read()


def _window(fields: _Fields, kinds: Sequence[str], layers: float) -> Iterator[tuple[str, float]]:
    """Yield the attention window and the share of layers that have it, if any."""
    if fields.get("index_topk"):
        yield "attention_window", fields.count("index_topk")
        yield "windowed_layers_share", 1.0
        return
    if fields.get("use_sliding_window") is False:
        fields.get("sliding_window", "sliding_window_size", "sliding_window_pattern")
        return
    if not fields.get("sliding_window"):
        fields.get("sliding_window_pattern")
        return
    window = fields.count("sliding_window")
    attending = Counter(kind for kind in kinds if kind in ATTENTION_KINDS)
    if attending:
        windowed = float(attending["sliding_attention"])
    elif fields.get("sliding_window_pattern"):
        windowed = layers - layers // max(fields.count("sliding_window_pattern"), 1.0)
    elif fields.get("use_sliding_window"):
        windowed = max(layers - fields.count("max_window_layers", default=0.0), 0.0)
    else:
        windowed = layers
    if windowed:
        yield "attention_window", window
        yield "windowed_layers_share", windowed / (sum(attending.values()) or layers)


def _gated(fields: _Fields) -> float:
    stated = fields.get(*FIELDS["activation"])
    activation = stated.get("name") if isinstance(stated, dict) else stated
    known = fields.defaults.get("gated_ffn")
    if activation is None:
        raise fields.missing(*FIELDS["activation"])
    if activation not in (*GATED_ACTIVATIONS, *OTHER_ACTIVATIONS):
        supported = ", ".join((*GATED_ACTIVATIONS, *OTHER_ACTIVATIONS))
        raise ScenarioError(f"unknown activation {str(activation)[:60]!r}; expected one of {supported}")
    if known is None and activation in OTHER_ACTIVATIONS and fields.kind != "nemotron_h":
        raise ScenarioError(
            f"feed-forward blocks with {activation} may have a gate or not, and model type {fields.kind!r} is unknown; "
            "give the quantities"
        )
    return float(activation in GATED_ACTIVATIONS if known is None else known)


def _tied(fields: _Fields) -> float:
    tied = fields.get("tie_word_embeddings")
    if tied is None:
        raise fields.missing("tie_word_embeddings")
    return float(bool(tied))


def _feed_forward(fields: _Fields, kinds: Sequence[str], layers: float, hidden: float) -> Iterator[tuple[str, float]]:
    """Yield widths and numbers of the feed-forward blocks: dense, routed and shared."""
    blocks = layers
    if (EXPERT_KINDS | DENSE_KINDS).intersection(kinds):
        blocks = float(sum(kind in EXPERT_KINDS | DENSE_KINDS for kind in kinds))
        yield "ffn_layers", blocks
    experts = fields.count(*FIELDS["experts"], default=0.0)
    # Dense models of a type with experts state these fields too: mark them as read.
    for role in ("experts_per_token", "expert_ffn_size", "expert_spacing"):
        fields.get(*FIELDS[role])
    fields.get("first_k_dense_replace")
    fields.source()
    if experts <= 1.0:
        granite = fields.kind == "granitemoehybrid"
        yield "ffn_size", fields.count("shared_intermediate_size") if granite else _ffn_size(fields, hidden)
        return
    dense = _dense_layers(fields, kinds, layers, blocks)
    yield "dense_layers", dense
    yield "experts", fields.count(*FIELDS["experts"])
    yield "experts_per_token", fields.count(*FIELDS["experts_per_token"])
    if fields.get("expert_biases"):
        yield "expert_biases", 1.0
    yield from _expert_sizes(fields, hidden, dense)


def _expert_sizes(fields: _Fields, hidden: float, dense: float) -> Iterator[tuple[str, float]]:
    """Yield the widths of routed, dense and shared experts."""
    # Llama 4 names the width of its experts as others name that of dense blocks.
    llama = fields.kind.startswith("llama4") or "intermediate_size_mlp" in fields.given
    names = ("intermediate_size",) if llama else FIELDS["expert_ffn_size"]
    width = fields.count(*names) if fields.get(*names) is not None else _ffn_size(fields, hidden)
    if not width:
        raise ScenarioError(f"{names[0]} must be positive for a model with experts, got 0")
    yield "expert_ffn_size", width
    if dense or fields.get(*FIELDS["ffn_size"]) is not None:
        fields.source()
        yield "ffn_size", _ffn_size(fields, hidden)
    else:
        yield "ffn_size", width
    shared = fields.count(*FIELDS["shared_experts"], default=float(llama))
    total = fields.count(*FIELDS["shared_expert_size"], default=0.0)
    yield "shared_experts", max(shared, 1.0) * total / width if total else shared


def _ffn_size(fields: _Fields, hidden: float) -> float:
    names = ("intermediate_size_mlp",) if fields.kind.startswith("llama4") else FIELDS["ffn_size"]
    if fields.get(*names) is None and fields.get("expansion_ratio") is not None:
        return hidden * fields.count("expansion_ratio")
    width = fields.count(*names, *(("block_ff_dim",) if fields.kind.startswith("lfm2") else ()))
    unit = max(fields.count("block_multiple_of", default=1.0), 1.0)
    factor = fields.get("block_ffn_dim_multiplier", default=1.0)
    if fields.get("block_auto_adjust_ff_dim"):
        return math.ceil(math.floor(math.floor(2.0 * width / 3.0) * factor) / unit) * unit
    return width


def _dense_layers(fields: _Fields, kinds: Sequence[str], layers: float, blocks: float) -> float:
    """Return the number of feed-forward blocks without experts."""
    if blocks != layers:
        return float(sum(kind in DENSE_KINDS for kind in kinds))
    if fields.get("expert_layer_period") is not None:
        period, offset = fields.count("expert_layer_period"), fields.count("expert_layer_offset", default=0.0)
        return layers - sum(layer % max(period, 1.0) == offset for layer in range(int(min(layers, MAX_PATTERN_LAYERS))))
    first = fields.count("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers", default=0.0)
    last = fields.get("moe_layer_end_index", default=-1)
    spacings = {field: fields.get(field, default=1) for field in (*FIELDS["expert_spacing"], "moe_layer_interval")}
    field, step = max(spacings.items(), key=lambda pair: str(pair[1]) != "1")
    only = fields.get("mlp_only_layers", default=[])
    dense = first + (len(only) if isinstance(only, list) else 0)
    if isinstance(step, list) and len(step) == layers and set(step) <= {0, 1} and step.count(0) >= dense:
        return float(step.count(0))
    if not isinstance(step, int) or step < 1 or (step > 1 and dense) or last not in (-1, layers - 1):
        shown = f"{field} = {str(step)[:60]}"
        raise ScenarioError(f"{shown} after {dense:g} dense layers is not understood; give dense_layers")
    return dense or layers - layers // step
