"""Architecture quantities from a Hugging Face ``config.json``: each from a field, or from a default that is named."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from factorykit import datasets, files
from factorykit.borders import file_path
from factorykit.errors import FactorykitWarning, ScenarioError
from factorykit.model.engine.assumed import FILLED
from factorykit.model.engine.rules import check
from factorykit.model.scenario.scenario import Scenario
from factorykit.quantities import quantity

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "kv_n_heads"),
    "head_size": ("head_dim", "attention_head_dim", "kv_channels"),
    "ffn_size": ("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim"),
    "vocabulary_size": ("vocab_size", "padded_vocab_size"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": (
        *("num_experts_per_tok", "num_experts_per_token", "experts_per_token"),
        *("moe_topk", "moe_top_k", "moe_k"),
    ),
    "expert_ffn_size": ("moe_intermediate_size",),
    "mtp_layers": ("num_nextn_predict_layers", "mtp_num_hidden_layers"),
}
"""Fields of the file that may hold each quantity; what is not asked for by name is not understood."""
INNER: Final = ("text_config", "llm_config", "language_config")
"""Objects that hold the language model of a file about several models."""
PARTS: Final = ("attn_config", "ffn_config")
"""Objects that hold a part of the fields."""
OTHERS: Final = ("vision_config", "audio_config", "visual")
"""Objects about a model beside the language model."""
ACTIVATIONS: Final = (
    "hidden_act",
    "hidden_activation",
    "mlp_hidden_act",
    "activation_function",
    "activation",
    "ffn_act_fn",
)
"""Fields that may name the activation of the feed-forward blocks, or an object that names it."""
GATED: Final = ("silu", "swish", "swiglu", "silu_glu", "geglu")
"""Activations that feed-forward blocks with a gate have; those of `PLAIN` stand in blocks of both kinds."""
PLAIN: Final = (
    "gelu",
    "gelu_new",
    "gelu_fast",
    "gelu_pytorch_tanh",
    "relu",
    "relu2",
    "quick_gelu",
    "xielu",
)
SPACING: Final = ("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step")
"""Fields that say in every how many layers there are experts, or for each layer whether there are."""
UNCOUNTED: Final = {
    "doge": "dynamic mask attention and cross-domain experts",
    "gemma3n_text": "embeddings of each layer, AltUp and LAuReL",
    "longcat_flash": "two attention blocks a layer and experts that do nothing",
    "nemotron-nas": "layers of different shapes",
    "recurrent_gemma": "gated linear recurrent units",
    "rwkv": "time mixing",
    "zamba": "shared attention blocks",
    "zamba2": "shared attention blocks with adapters",
}
"""What the formulas do not count, by the type of model that has it."""
UNIMPORTANT: Final = frozenset(
    """_name_or_path activation_dropout alibi_bias_max architectures attention_bias attention_chunk_size
    attention_dropout attention_multiplier attention_probs_dropout_prob attn_config attn_implementation
    block_dim block_mlp_init_scale block_norm_eps block_out_init_scale conv_dim conv_dim_out
    attn_logit_softcapping attn_pdrop attn_scale attn_temperature_tuning auto_map aux_loss_alpha bos_token_id
    chunk_size classifier_dropout clip_qkv decoder_start_token_id dropout dtype embd_pdrop embedding_dropout
    embedding_multiplier eos_token_id ep_size ffn_config final_logit_softcapping floor_scale
    full_attn_alpha_factor full_attn_beta_factor gradient_checkpointing head_dim_v hidden_dropout
    hidden_dropout_prob id2label initial_context_length initializer_range is_decoder key_multiplier label2id
    layer_norm_eps layer_norm_epsilon layerdrop layernorm_epsilon layernorm_full_attention_alpha
    layernorm_full_attention_beta layernorm_linear_attention_alpha layernorm_linear_attention_beta
    layernorm_mlp_alpha layernorm_mlp_beta length_penalty linear_attn_alpha_factor linear_attn_beta_factor
    lm_head_multiplier logit_scale logits_scaling mamba_chunk_size mamba_d_head max_length max_position_embeddings
    max_seq_len max_sequence_length max_window_layers mlp_alpha_factor mlp_beta_factor mlp_bias mlp_multipliers
    mlp_only_layers model_max_length model_type moe_jitter_eps moe_layers moe_loss_weight
    moe_normalize_expert_weights moe_router_dtype mtp_layers_block_type n_ctx n_group n_positions
    no_rope_layer_interval no_rope_layers norm_eps norm_epsilon norm_topk_prob num_beam_groups num_beams
    num_ln_in_parallel_attn num_logits_to_keep num_return_sequences offset_alibi original_max_position_embeddings
    output_router_logits pad_token_id partial_rotary_factor pretraining_tp qk_head_dim qk_norm_type quantization
    quantization_config query_pre_attn_scalar reorder_and_upcast_attn repetition_penalty resid_pdrop
    residual_multiplier rms_norm_eps rope_interleave rope_local_base_freq rope_parameters rope_ratio rope_scaling
    rope_theta rotary_dim rotary_emb_base rotary_pct routed_scaling_factor router_aux_loss_coef
    router_jitter_noise router_z_loss_coef router_z_loss_coefficient scale_attn_by_inverse_layer_idx
    scale_attn_weights scoring_func seq_aux seq_length ssm_multipliers summary_activation summary_first_dropout
    summary_proj_to_labels summary_type summary_use_proj swiglu_limit task_specific_params temperature
    time_step_floor time_step_limit time_step_max time_step_min time_step_rank tokenizer_class top_k top_p
    topk_group topk_method torch_dtype transformers_version typical_p unk_token_id use_bias use_cache
    use_parallel_residual use_qk_norm z_loss_coefficient""".split()  # noqa: SIM905
)
"""Fields that change no count, or that are read without being asked for by `NAMES`."""
SOFTMAX: Final = frozenset({"full_attention", "sliding_attention", "chunked_attention", "attention", "*"})
"""Kinds of layers with attention; a chunk is as long as the sequences it was trained on."""
CONVOLVED: Final = frozenset({"conv"})
"""Kinds of layers that keep the last few tokens alone: gated short convolutions."""
RECURRENT: Final = frozenset({"linear_attention", "mamba", "M"}) | CONVOLVED
"""Kinds of layers that keep a state instead."""
STATES_ALONE: Final = ("mamba", "mamba2", "falcon_mamba")
"""Types of models whose layers keep a state and have neither attention nor feed-forward blocks."""
EXPERTS: Final = frozenset({"moe", "E"})
DENSE: Final = frozenset({"mlp", "-"})
"""Kinds of layers that are a feed-forward block alone, with and without experts."""
DELTA_RULE, SELECTIVE, LIGHTNING = 8.0, 7.0, 4.0
"""FLOP of one forward on one element of the state: gated delta rule and Mamba as Megatron-LM d98e8a6 counts them in
training.py; without decay or delta an element is written and read with one multiplication and one addition each."""
LIBRARY: Final = "transformers 4.57"
"""Version whose defaults the table ``config_defaults`` holds."""
SHARED: Final = ("n_shared_experts", "moe_num_shared_experts", "num_shared_expert", "num_shared_experts")
"""Fields that say how many experts every token visits."""
STATE_SIZE: Final = ("ssm_state_size", "mamba_d_state", "state_size")
"""Fields that say how wide the state of Mamba is."""
LARGEST_FILE: Final = 16_000_000
"""Bytes beyond which a file is no configuration; lists of quantised modules are the longest."""
LARGEST_COUNT: Final = 2.0**53
"""Counts from here on are no longer exact."""
MOST_LAYERS: Final = 100_000
"""Layers beyond which a pattern is not written out."""
SHOWN: Final = 10
"""Fields that an error names before it counts the rest."""


def read_hf_config(path: str | Path) -> Scenario:
    """Return the architecture that a Hugging Face ``config.json`` describes.

    A field that the file lacks is filled from the default of its model type, as the Transformers library does when it
    reads the file, and named in ``sources``. What has no such default, or is not understood, is refused by name. Of a
    file about several models, such as vision and language, the language model is read. Biases and learned positions
    are not counted.

    Parameters
    ----------
    path
        The file, or the folder that holds it.

    Returns
    -------
    Scenario
        Quantities of the vocabulary, ready for :func:`factorykit.evaluate` and :func:`factorykit.search`. Its
        ``sources`` say ``config.json`` with the field, or ``default of model type … in transformers …``;
        :func:`factorykit.assumed` lists the latter.

    Raises
    ------
    ScenarioError
        If the file cannot be read, lacks a field without a default, or has one that is not understood: each is named.

    Warns
    -----
    FactorykitWarning
        If the file describes a model beside the language model, which is not counted.

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
    file, config = _parsed(path)
    inner = next((config[name] for name in INNER if isinstance(config.get(name), dict)), config)
    beside = [name for name in OTHERS if config.get(name)]
    if beside and inner is not config:
        warnings.warn(
            f"{file}: {', '.join(beside)} not counted; the quantities are those of the language model",
            FactorykitWarning,
            stacklevel=2,
        )
    outer = {name: config[name] for name in ("tie_word_embeddings", "model_type") if name in config}
    parts = [inner[name] for name in PARTS if isinstance(inner.get(name), dict)]
    fields = _Fields(file, {name: value for part in (outer, *parts, inner) for name, value in part.items()})
    values: dict[str, float] = {}
    sources: dict[str, str] = {}
    for name, value in _quantities(fields):
        values[name] = _number(name, value, file)
        sources[name] = fields.said()
    fields.refuse_strangers()
    try:
        check({name: values[name] for name in CHECKED if name in values})
    except ScenarioError as error:
        raise ScenarioError(f"{file}: {error}") from None
    return Scenario.sourced(f"{fields.kind or 'model'} of {file.name}", values, sources)


CHECKED: Final = ("attention_heads", "kv_heads", "experts", "experts_per_token")
"""Quantities of an architecture that a rule of layouts speaks of, whatever the layout."""


def _parsed(path: str | Path) -> tuple[Path, dict[str, Any]]:
    file = file_path("path", path)
    try:
        file = file / "config.json" if file.is_dir() else file
        config = files.fields(files.content(file, LARGEST_FILE, ScenarioError))
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{file} cannot be read as a configuration: {error}") from None
    if not isinstance(config, dict):
        raise ScenarioError(f"{file} holds a {type(config).__name__}; a configuration is an object with fields")
    return file, config


@cache
def defaults_of_types() -> Mapping[str, Mapping[str, Any]]:
    """Return the defaults of each model type by field."""
    rows = datasets.table("config_defaults").select("model_type", "field", "value").collect()
    found: dict[str, dict[str, Any]] = {}
    for kind, field, value in rows.iter_rows():
        found.setdefault(kind, {})[field] = json.loads(value)
    return found


class _Fields:
    """The fields of a file and the defaults of its model type; remembers which were read."""

    def __init__(self, file: Path, given: Mapping[str, Any]) -> None:
        self.file, self.given = file, given
        self.kind = str(given.get("model_type") or "")[:60]
        key = self.kind.replace("-", "_")
        self.defaults = defaults_of_types().get(key) or defaults_of_types().get(key.removesuffix("_text"), {})
        self._read: set[str] = set()
        self._now: dict[str, bool] = {}

    def get(self, *names: str, otherwise: Any = None) -> Any:
        """Return the first of these fields that the file has, or a default of the model type has.

        A field that the file sets to null has no value, whatever the default.
        """
        self._read.update(names)
        stated = [name for name in names if name in self.given]
        source = self.given if stated else self.defaults
        name = next((name for name in names if source.get(name) is not None), None)
        if name is None:
            return otherwise
        self._now[name] = bool(stated)
        return source[name]

    def count(self, *names: str, otherwise: float | None = None) -> float:
        """Return the first of these fields as a whole number; a list of equal numbers is one.

        Raises
        ------
        ScenarioError
            If there is none, neither in the file nor as a default, or it is no whole number of at least zero.
        """
        value = self.get(*names, otherwise=otherwise)
        if value is None:
            raise self.lacking(*names)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = float(min(max(value, -1), LARGEST_COUNT))
            if 0.0 <= number < LARGEST_COUNT and number == math.floor(number):
                return number
        name = next((name for name in names if name in self.given), names[0])
        raise ScenarioError(f"{self.file}: {name} = {str(value)[:60]!r} is no count; give a whole number")

    def lacking(self, *names: str) -> ScenarioError:
        """Return the error for a field that nobody gives."""
        known = f"model type {self.kind!r} has no default for it" if self.kind else "no model_type says what it is"
        return ScenarioError(f"{self.file}: no field {' or '.join(names)}, and {known}; add it to the file")

    def said(self) -> str:
        """Return who says what was read since the last call."""
        assumed = [name for name, stated in self._now.items() if not stated]
        stated = [name for name, stated in self._now.items() if stated]
        self._now = {}
        default = f"{FILLED} {self.kind} in {LIBRARY}: {', '.join(assumed)}" if assumed else ""
        return "; ".join(filter(None, (default, f"config.json: {', '.join(stated)}" if stated else "")))

    def refuse_strangers(self) -> None:
        """Refuse fields that may change a count and that nobody asked for."""
        known = self._read | UNIMPORTANT
        names = sorted(str(field)[:60] for field, value in self.given.items() if field not in known and _counts(value))
        if names:
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            raise ScenarioError(
                f"{self.file}: {', '.join(map(_printable, names[:SHOWN]))}{more} not understood; "
                "remove what changes no count, or give the quantities"
            )


def _printable(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _counts(value: Any) -> bool:
    """Whether a field may change a count: a number other than zero, a list or an object that says something."""
    return not (value is None or isinstance(value, (bool, str)) or value in (0, 0.0, [], {}))


def _number(name: str, value: Any, file: Path) -> float:
    try:
        return float(quantity(name).check(value))
    except ScenarioError as error:
        raise ScenarioError(f"{file}: {error}") from None


def _quantities(fields: _Fields) -> Iterator[tuple[str, float]]:
    """Yield each quantity right after the fields that it follows from were read."""
    if fields.kind in UNCOUNTED:
        raise ScenarioError(f"{fields.file}: {fields.kind}: {UNCOUNTED[fields.kind]} not counted; give the quantities")
    if fields.get("is_encoder_decoder"):
        raise ScenarioError(f"{fields.file}: encoder and cross attention not counted; give the quantities")
    fields.said()
    kinds = ["mamba"] * int(fields.count(*NAMES["layers"])) if fields.kind in STATES_ALONE else _kinds(fields)
    layers = float(len(kinds)) if kinds else fields.count(*NAMES["layers"])
    yield "layers", layers
    hidden = fields.count(*NAMES["hidden_size"])
    yield "hidden_size", hidden
    if fields.get("word_embed_proj_dim", otherwise=hidden) != hidden:
        raise ScenarioError(f"{fields.file}: word_embed_proj_dim: the projection of embeddings is not counted")
    fields.said()
    yield "vocabulary_size", fields.count(*NAMES["vocabulary_size"])
    yield from _recurrent(fields, kinds, hidden)
    if fields.kind in STATES_ALONE:
        yield "attention_heads", fields.count("num_heads", otherwise=1.0)
        yield from (("attention_layers", 0.0), ("ffn_layers", 0.0), ("ffn_size", hidden))
    else:
        yield from _attention(fields, kinds)
        yield from _window(fields, kinds, layers)
    fields.said()
    yield "gated_ffn", _gated(fields)
    yield "tied_embeddings", _tied(fields)
    if fields.kind not in STATES_ALONE:
        yield from _feed_forward(fields, kinds, layers, hidden)
    modules = fields.count(*NAMES["mtp_layers"], otherwise=0.0)
    if fields.get("use_mtp"):
        modules = fields.count("num_mtp_modules") * fields.count("mtp_transformer_layers")
    if modules:
        yield "mtp_layers", modules


def _kinds(fields: _Fields) -> list[str]:
    """Return the kind of each layer, or nothing where all have attention and feed-forward and the file says no more."""
    kinds = fields.get("hybrid_override_pattern", "layer_types", "layers_block_type", otherwise=[])
    periods = [fields.get(name) for name in ("attn_layer_period", "full_attention_interval")]
    switches = fields.get("attn_type_list", otherwise=[])
    linear = fields.get("linear_attn_config", otherwise={})
    if not isinstance(kinds, (list, str)) or not isinstance(switches, list):
        raise ScenarioError(f"{fields.file}: layer_types is no list of kinds of layers; give one")
    kinds = list(kinds) or ["attention" if switch else "linear_attention" for switch in switches]
    if isinstance(linear, dict) and isinstance(linear.get("kda_layers"), list):
        layers = range(1, int(min(fields.count(*NAMES["layers"]), MOST_LAYERS)) + 1)
        kinds = ["linear_attention" if layer in linear["kda_layers"] else "attention" for layer in layers]
    if not kinds:
        indices = fields.get("attn_layer_indices")
        if not any(periods) and indices is None:
            return []
        period = fields.count("attn_layer_period", "full_attention_interval", otherwise=1.0)
        layers = range(int(min(fields.count(*NAMES["layers"]), MOST_LAYERS)))
        if isinstance(indices, list):
            kinds = ["attention" if layer in indices else "mamba" for layer in layers]
        elif periods[0]:
            offset = fields.count("attn_layer_offset", otherwise=0.0)
            kinds = ["attention" if layer % period == offset else "mamba" for layer in layers]
        else:
            kinds = ["linear_attention" if (layer + 1) % period else "attention" for layer in layers]
    strangers = sorted({str(kind)[:60] for kind in kinds} - SOFTMAX - RECURRENT - EXPERTS - DENSE)
    if strangers:
        shown = ", ".join(map(_printable, strangers[:SHOWN]))
        raise ScenarioError(f"{fields.file}: layer_types {shown} not understood; give the quantities")
    if fields.get(*NAMES["layers"]) is not None and len(kinds) != fields.count(*NAMES["layers"]):
        raise ScenarioError(f"{fields.file}: kinds of {len(kinds)} layers for another number of layers; correct one")
    return kinds


def _attention(fields: _Fields, kinds: list[str]) -> Iterator[tuple[str, float]]:
    heads = fields.count(*NAMES["attention_heads"])
    yield "attention_heads", heads
    if fields.get("multi_query") and not fields.get("new_decoder_architecture", otherwise=False):
        fields.get(*NAMES["kv_heads"])
        yield "kv_heads", 1.0
    elif fields.get(*NAMES["kv_heads"]) is not None:
        yield "kv_heads", fields.count(*NAMES["kv_heads"])
    fields.said()
    rank = fields.get("kv_lora_rank")
    sizes = ("qk_nope_head_dim",) if rank else NAMES["head_size"]
    if fields.get(*NAMES["head_size"]) is not None or rank:
        fields.said()
        yield "head_size", fields.count(*sizes)
    fields.said()
    for name, field in (
        ("query_rank", "q_lora_rank"),
        ("kv_rank", "kv_lora_rank"),
        ("rope_head_size", "qk_rope_head_dim"),
        ("value_head_size", "v_head_dim"),
        ("index_heads", "index_n_heads"),
        ("index_head_size", "index_head_dim"),
    ):
        if fields.get(field) is not None:
            yield name, fields.count(field)
    if fields.get("attn_output_gate", otherwise=fields.kind == "qwen3_next"):
        yield "gated_attention", 1.0
    if RECURRENT.intersection(kinds):
        yield "attention_layers", float(sum(kind in SOFTMAX for kind in kinds))


def _recurrent(fields: _Fields, kinds: list[str], hidden: float) -> Iterator[tuple[str, float]]:
    """Yield the shape of the layers that keep a state: delta nets, Mamba, lightning attention, convolutions."""
    recurrent = sum(kind in RECURRENT for kind in kinds)
    if fields.get("mamba_d_ssm") is not None and not recurrent:
        recurrent = len(kinds) or fields.count(*NAMES["layers"])
        yield "attention_layers", float(recurrent)
    if not recurrent:
        return
    yield "linear_attention_layers", float(recurrent)
    linear = fields.get("linear_attn_config")
    if CONVOLVED.intersection(kinds):
        yield from (("linear_value_heads", hidden), ("linear_value_size", 1.0), ("linear_gates", 1.0))
        yield "convolution_width", fields.count("conv_L_cache")
    elif isinstance(linear, dict):
        yield from _delta_attention(fields, linear)
    elif fields.get("linear_num_value_heads") is not None:
        yield "linear_key_heads", fields.count("linear_num_key_heads")
        yield "linear_key_size", fields.count("linear_key_head_dim")
        yield "linear_value_heads", fields.count("linear_num_value_heads")
        yield "linear_value_size", fields.count("linear_value_head_dim")
        yield "convolution_width", fields.count("linear_conv_kernel_dim")
        yield "linear_gates", 2.0
        yield "state_element_flop", DELTA_RULE
    elif fields.get(*STATE_SIZE) is not None:
        alone = fields.kind in STATES_ALONE
        heads = fields.count("mamba_num_heads", "mamba_n_heads", *(("num_heads",) if alone else ()), otherwise=0.0)
        expanded = hidden * fields.count("mamba_expand", "expand", otherwise=2.0)
        inner = fields.count("mamba_d_ssm", *(("intermediate_size",) if alone else ()), otherwise=expanded)
        width = ("mamba_head_dim", *(("head_dim",) if alone else ()))
        if heads and fields.get(*width) is not None:
            inner = heads * fields.count(*width)
        groups = fields.count("n_groups", "mamba_n_groups", otherwise=1.0)
        ranks = ("time_step_rank",) if alone else ("mamba_dt_rank",)
        rank = fields.get(*ranks)
        yield "linear_key_heads", groups
        yield "linear_key_size", fields.count(*STATE_SIZE)
        yield "linear_value_heads", heads or 1.0
        yield "linear_value_size", inner / (heads or 1.0)
        yield "convolution_width", fields.count("conv_kernel", "mamba_d_conv")
        yield "linear_gates", 1.0 if heads else 0.0
        if not heads:
            yield "step_rank", math.ceil(hidden / 16.0) if rank in (None, "auto") else fields.count(*ranks)
        yield "state_element_flop", SELECTIVE
    elif fields.kind.startswith("minimax"):
        heads = fields.count(*NAMES["attention_heads"])
        width = fields.count("head_dim", otherwise=hidden / heads)
        yield from (("linear_key_heads", heads), ("linear_key_size", width))
        yield from (("linear_value_heads", heads), ("linear_value_size", width))
        yield from (("convolution_width", 0.0), ("linear_gates", 0.0), ("state_element_flop", LIGHTNING))
    else:
        raise ScenarioError(f"{fields.file}: {recurrent:g} layers of linear attention without their shape; give it")


def _delta_attention(fields: _Fields, linear: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the shape of Kimi delta attention: keys as wide as values, decay and gate through a rank of a head's width.

    The lists of its layers are read with the kinds of layers.
    """
    part = _Fields(fields.file, linear)
    part.get("kda_layers", "full_attn_layers")
    heads, width = part.count("num_heads"), part.count("head_dim")
    if part.get("use_full_rank_gate"):
        raise ScenarioError(f"{fields.file}: use_full_rank_gate: a gate beside a decay of low rank is not counted")
    yield from (("linear_key_heads", heads), ("linear_key_size", width), ("linear_gate_rank", width))
    yield from (("linear_value_heads", heads), ("linear_value_size", width))
    yield "convolution_width", part.count("short_conv_kernel_size")
    yield from (("linear_gates", 1.0), ("state_element_flop", DELTA_RULE))
    part.refuse_strangers()


def _window(fields: _Fields, kinds: list[str], layers: float) -> Iterator[tuple[str, float]]:
    """Yield the attention window and the share of layers that have it; nothing for a model without one."""
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
    attending = Counter(kind for kind in kinds if kind in SOFTMAX)
    if attending:
        windowed = float(attending["sliding_attention"])
    elif fields.get("sliding_window_pattern"):
        windowed = layers - layers // max(fields.count("sliding_window_pattern"), 1.0)
    elif fields.get("use_sliding_window"):
        windowed = max(layers - fields.count("max_window_layers", otherwise=0.0), 0.0)
    else:
        windowed = layers
    if windowed:
        yield "attention_window", window
        yield "windowed_layers_share", windowed / (sum(attending.values()) or layers)


def _gated(fields: _Fields) -> float:
    act = fields.get(*ACTIVATIONS)
    act = act.get("name") if isinstance(act, dict) else act
    known = fields.defaults.get("gated_ffn")
    if act is None:
        raise fields.lacking(*ACTIVATIONS)
    if act not in (*GATED, *PLAIN):
        raise ScenarioError(
            f"{fields.file}: activation {str(act)[:60]!r} not understood; known are {', '.join((*GATED, *PLAIN))}"
        )
    if known is None and act in PLAIN and fields.kind != "nemotron_h":
        raise ScenarioError(
            f"{fields.file}: whether the feed-forward blocks of model type {fields.kind!r} have a gate is not known, "
            f"and {act} says nothing of it; give the quantities"
        )
    return float(act in GATED if known is None else known)


def _tied(fields: _Fields) -> float:
    tied = fields.get("tie_word_embeddings")
    if tied is None:
        raise fields.lacking("tie_word_embeddings")
    return float(bool(tied))


def _feed_forward(fields: _Fields, kinds: list[str], layers: float, hidden: float) -> Iterator[tuple[str, float]]:
    """Yield widths and numbers of the feed-forward blocks: dense, routed and shared."""
    blocks = layers
    if EXPERTS.union(DENSE).intersection(kinds):
        blocks = float(sum(kind in EXPERTS | DENSE for kind in kinds))
        yield "ffn_layers", blocks
    experts = fields.count(*NAMES["experts"], otherwise=0.0)
    fields.get(*NAMES["experts_per_token"], *NAMES["expert_ffn_size"], *SPACING, "first_k_dense_replace")
    fields.said()
    if experts <= 1.0:
        granite = fields.kind == "granitemoehybrid"
        yield "ffn_size", fields.count("shared_intermediate_size") if granite else _width(fields, hidden)
        return
    dense = _dense_layers(fields, kinds, layers, blocks)
    yield "dense_layers", dense
    yield "experts", fields.count(*NAMES["experts"])
    yield "experts_per_token", fields.count(*NAMES["experts_per_token"])
    if fields.get("expert_biases"):
        yield "expert_biases", 1.0
    llama = fields.kind.startswith("llama4") or "intermediate_size_mlp" in fields.given
    own = ("intermediate_size",) if llama else NAMES["expert_ffn_size"]
    width = fields.count(*own) if fields.get(*own) is not None else _width(fields, hidden)
    if not width:
        raise ScenarioError(f"{fields.file}: {own[0]} = 0 with {experts:g} experts; give their width")
    yield "expert_ffn_size", width
    if dense or fields.get(*NAMES["ffn_size"]) is not None:
        fields.said()
        yield "ffn_size", _width(fields, hidden)
    else:
        yield "ffn_size", width
    shared = fields.count(*SHARED, otherwise=float(llama))
    whole = fields.count(
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        otherwise=0.0,
    )
    yield "shared_experts", max(shared, 1.0) * whole / width if whole else shared


def _width(fields: _Fields, hidden: float) -> float:
    names = ("intermediate_size_mlp",) if fields.kind.startswith("llama4") else NAMES["ffn_size"]
    if fields.get(*names) is None and fields.get("expansion_ratio") is not None:
        return hidden * fields.count("expansion_ratio")
    width = fields.count(*names, *(("block_ff_dim",) if fields.kind.startswith("lfm2") else ()))
    unit, wider = (
        fields.count("block_multiple_of", otherwise=1.0),
        fields.get("block_ffn_dim_multiplier", otherwise=1.0),
    )
    if fields.get("block_auto_adjust_ff_dim"):
        return math.ceil(math.floor(math.floor(2.0 * width / 3.0) * wider) / max(unit, 1.0)) * max(unit, 1.0)
    return width


def _dense_layers(fields: _Fields, kinds: list[str], layers: float, blocks: float) -> float:
    """Return how many of the feed-forward blocks have no experts."""
    if blocks != layers:
        return float(sum(kind in DENSE for kind in kinds))
    if fields.get("expert_layer_period") is not None:
        period, offset = fields.count("expert_layer_period"), fields.count("expert_layer_offset", otherwise=0.0)
        return layers - sum(layer % max(period, 1.0) == offset for layer in range(int(min(layers, MOST_LAYERS))))
    first = fields.count("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers", otherwise=0.0)
    last = fields.get("moe_layer_end_index", otherwise=-1)
    steps = {field: fields.get(field, otherwise=1) for field in (*SPACING, "moe_layer_interval")}
    field, step = max(steps.items(), key=lambda pair: str(pair[1]) != "1")
    only = fields.get("mlp_only_layers", otherwise=[])
    dense = first + (len(only) if isinstance(only, list) else 0)
    if isinstance(step, list) and len(step) == layers and set(step) <= {0, 1} and step.count(0) >= dense:
        return float(step.count(0))
    if not isinstance(step, int) or step < 1 or (step > 1 and dense) or last not in (-1, layers - 1):
        shown = f"{field} = {str(step)[:60]}"
        raise ScenarioError(f"{fields.file}: {shown} after {dense:g} dense layers is not understood; give dense_layers")
    return dense or layers - layers // step
