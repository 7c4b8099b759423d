"""Architecture quantities from a Hugging Face ``config.json``; a field that matters and is not understood is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from factorykit.errors import ScenarioError
from factorykit.model.engine.rules import check
from factorykit.quantities import quantity

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"),
    "head_size": ("head_dim", "qk_nope_head_dim", "kv_channels"),
    "ffn_size": ("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim"),
    "vocabulary_size": ("vocab_size", "padded_vocab_size"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok", "experts_per_token", "moe_topk"),
    "expert_ffn_size": ("moe_intermediate_size",),
    "dense_layers": ("first_k_dense_replace",),
    "query_rank": ("q_lora_rank",),
    "kv_rank": ("kv_lora_rank",),
    "rope_head_size": ("qk_rope_head_dim",),
    "value_head_size": ("v_head_dim",),
    "mtp_layers": ("num_nextn_predict_layers",),
}
"""Fields of the file that may hold each quantity."""
GATED: Final = ("silu", "swish", "swiglu", "silu_glu", "geglu")
"""Activations of feed-forward blocks with a gate; ``gelu`` has one in Gemma alone, which says so by its type."""
PLAIN: Final = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "relu2", "quick_gelu")
SPACING: Final = ("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step")
"""Fields that say in every how many layers there are experts."""
PLAIN_TYPES: Final = (
    "gpt2",
    "gpt_neox",
    "opt",
    "bloom",
    "gptj",
    "gpt_bigcode",
    "phi",
    "falcon",
    "nemotron",
    "starcoder2",
)
"""Model types whose feed-forward has two matrices."""
TIED_TYPES: Final = (
    "gpt2",
    "opt",
    "bloom",
    "falcon",
    "gemma",
    "gemma2",
    "gemma3_text",
    "gpt_bigcode",
    "starcoder2",
    "cohere",
    "cohere2",
    "mpt",
)
"""Model types whose output layer is the embedding where the file does not say otherwise."""
UNIMPORTANT: Final = frozenset(
    """_name_or_path activation_dropout activation_function architectures attention_bias attention_chunk_size
    attention_dropout attention_multiplier attention_probs_dropout_prob attn_implementation
    attn_logit_softcapping attn_pdrop attn_scale attn_temperature_tuning auto_map aux_loss_alpha bos_token_id
    classifier_dropout clip_qkv decoder_start_token_id dropout dtype embd_pdrop embedding_dropout
    embedding_multiplier eos_token_id ep_size final_logit_softcapping floor_scale gradient_checkpointing
    head_dim_v hidden_act hidden_activation hidden_dropout hidden_dropout_prob id2label initial_context_length
    initializer_range is_decoder label2id layer_norm_eps layer_norm_epsilon layer_types layerdrop
    layernorm_epsilon length_penalty logit_scale logits_scaling max_length max_position_embeddings
    max_sequence_length max_window_layers mlp_bias mlp_only_layers model_max_length model_type moe_layers n_ctx
    n_group n_positions n_shared_experts no_rope_layers norm_eps norm_epsilon norm_topk_prob num_beams
    offset_alibi original_max_position_embeddings output_router_logits pad_token_id partial_rotary_factor
    pretraining_tp qk_head_dim quantization_config query_pre_attn_scalar reorder_and_upcast_attn
    repetition_penalty resid_pdrop residual_multiplier rms_norm_eps rope_interleave rope_local_base_freq
    rope_parameters rope_ratio rope_scaling rope_theta rotary_dim rotary_emb_base rotary_pct
    routed_scaling_factor router_aux_loss_coef router_jitter_noise router_z_loss_coef router_z_loss_coefficient
    scale_attn_by_inverse_layer_idx scale_attn_weights scoring_func seq_aux seq_length
    shared_expert_intermediate_size sliding_window sliding_window_pattern summary_activation summary_first_dropout
    summary_proj_to_labels summary_type summary_use_proj swiglu_limit task_specific_params temperature
    tie_word_embeddings tokenizer_class top_k top_p topk_group topk_method torch_dtype transformers_version
    unk_token_id use_cache use_parallel_residual use_qk_norm use_sliding_window""".split()  # noqa: SIM905
)
"""Fields that change no count, or that are read below."""
ATTENTIONS: Final = ("full_attention", "sliding_attention", "chunked_attention")
"""Kinds of layers, as ``layer_types`` names them; a chunk is as long as the sequences it was trained on."""
ALTERNATING_TYPES: Final = ("gemma2", "gpt_oss")
"""Model types with a window in every other layer, beginning with the first, where the file does not say otherwise."""


def read_hf_config(path: str | Path) -> dict[str, float]:
    """Return the architecture that a Hugging Face ``config.json`` describes.

    Parameters
    ----------
    path
        The file, or the folder that holds it.

    Returns
    -------
    dict
        Quantities of the vocabulary, ready for :func:`factorykit.evaluate` and :func:`factorykit.search`.

    Raises
    ------
    ScenarioError
        If the file cannot be read, lacks a field, or has one that is not understood: each is named.

    Examples
    --------
    >>> import tempfile
    >>> config = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
    >>> config |= {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "config.json").write_text(json.dumps(config))
    ...     read_hf_config(folder)["kv_heads"]
    8.0
    """
    file = Path(path)
    file = file / "config.json" if file.is_dir() else file
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ScenarioError(f"{file} cannot be read as a configuration: {error}") from None
    if not isinstance(config, dict):
        raise ScenarioError(f"{file} holds a {type(config).__name__}; a configuration is an object with fields")
    config = config.get("text_config", config) if isinstance(config.get("text_config", {}), dict) else config
    known = {field for fields in NAMES.values() for field in fields} | {*UNIMPORTANT, *SPACING}
    if config.get("word_embed_proj_dim") == config.get("hidden_size"):
        known |= {"word_embed_proj_dim"}
    strangers = sorted(field for field, value in config.items() if field not in known and _counts(value))
    if strangers:
        raise ScenarioError(
            f"{file}: {', '.join(strangers)} not understood; remove what changes no count, or give the quantities"
        )
    found = _named(config, file) | _window(config, file)
    found["gated_ffn"] = _gated(config, file)
    found["tied_embeddings"] = _tied(config)
    _experts(config, found, file)
    numbers = {name: _number(name, value, file) for name, value in found.items()}
    if "experts" in numbers and numbers["experts"] > 1.0 and "experts_per_token" not in numbers:
        raise ScenarioError(f"{file}: no field {' or '.join(NAMES['experts_per_token'])}")
    try:
        check(numbers)
    except ScenarioError as error:
        raise ScenarioError(f"{file}: {error}") from None
    return numbers


def _counts(value: Any) -> bool:
    """Whether a field may change a count: a number other than zero, a list or an object that says something."""
    return not (value is None or isinstance(value, (bool, str)) or value in (0, 0.0, [], {}))


def _named(config: Mapping[str, Any], file: Path) -> dict[str, Any]:
    found = {}
    for name, fields in NAMES.items():
        field = next((field for field in fields if config.get(field) is not None), None)
        if field is not None:
            found[name] = config[field]
    needed = ("layers", "hidden_size", "attention_heads", "vocabulary_size")
    missing = [" or ".join(NAMES[name]) for name in needed if name not in found]
    if missing:
        raise ScenarioError(f"{file}: no field {'; no field '.join(missing)}")
    if "ffn_size" not in found:
        found["ffn_size"] = 4 * found["hidden_size"]
    if config.get("multi_query") and "kv_heads" not in found:
        found["kv_heads"] = 1
    return found


def _window(config: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the attention window and the share of layers that have it; nothing for a model without one."""
    kinds = config.get("layer_types") or []
    strangers = sorted({str(kind) for kind in kinds} - set(ATTENTIONS))
    if strangers:
        raise ScenarioError(f"{file}: layer_types {', '.join(strangers)} not understood; give the quantities")
    window, layers = config.get("sliding_window"), config.get("num_hidden_layers")
    if not window or not layers or config.get("use_sliding_window") is False:
        return {}
    windowed = layers
    if kinds:
        windowed = sum(kind == "sliding_attention" for kind in kinds)
    elif pattern := config.get("sliding_window_pattern"):
        windowed = layers - layers // pattern
    elif config.get("model_type") in ALTERNATING_TYPES:
        windowed = (layers + 1) // 2
    elif config.get("use_sliding_window"):
        windowed = max(layers - (config.get("max_window_layers") or 0), 0)
    return {"attention_window": window, "windowed_layers_share": windowed / layers}


def _number(name: str, value: Any, file: Path) -> float:
    try:
        return float(quantity(name).check(value))
    except ScenarioError as error:
        raise ScenarioError(f"{file}: {error}") from None


def _gated(config: Mapping[str, Any], file: Path) -> float:
    fields = ("hidden_act", "hidden_activation", "activation_function")
    act = next((config[field] for field in fields if config.get(field)), "gelu_new")
    kind = str(config.get("model_type", ""))
    if act in GATED:
        return 1.0
    if act in PLAIN:
        return 0.0 if kind in PLAIN_TYPES or "gemma" not in kind else 1.0
    raise ScenarioError(f"{file}: activation {act!r} not understood; known are {', '.join((*GATED, *PLAIN))}")


def _tied(config: Mapping[str, Any]) -> float:
    usual = config.get("model_type") in TIED_TYPES
    return float(bool(config.get("tie_word_embeddings", usual)))


def _experts(config: Mapping[str, Any], found: dict[str, Any], file: Path) -> None:
    if found.get("experts", 0) in (0, 1):
        for name in ("experts_per_token", "expert_ffn_size", "dense_layers"):
            found.pop(name, None)
        return
    steps = {field: config.get(field) or 1 for field in SPACING}
    field, step = max(steps.items(), key=lambda pair: str(pair[1]) != "1")
    dense = found.get("dense_layers", 0) + len(config.get("mlp_only_layers") or ())
    if not isinstance(step, int) or (step > 1 and dense):
        raise ScenarioError(
            f"{file}: {field} = {step!r} after {dense} dense layers is not understood; give dense_layers"
        )
    found["dense_layers"] = dense or found["layers"] - found["layers"] // step
    if "intermediate_size_mlp" in config:
        found["expert_ffn_size"] = config["intermediate_size"]
    width = found.setdefault("expert_ffn_size", found["ffn_size"])
    shared = config.get("shared_expert_intermediate_size")
    usual = 1 if "intermediate_size_mlp" in config else 0
    count = shared / width if shared else config.get("n_shared_experts") or usual
    found["shared_experts"] = count
