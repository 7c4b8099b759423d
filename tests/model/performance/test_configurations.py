"""Configuration files of models: counts come out right, and what is not understood is named."""

import json

import pytest

import factorykit as fk
from factorykit.errors import ScenarioError

LLAMA = {
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 16384,
    "intermediate_size": 53248,
    "num_attention_heads": 128,
    "num_hidden_layers": 126,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "rope_scaling": {"factor": 8.0},
    "max_position_embeddings": 131072,
}
MIXTRAL = {
    "model_type": "mixtral",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
}
DEEPSEEK = {
    "model_type": "deepseek_v3",
    "hidden_act": "silu",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "num_hidden_layers": 61,
    "first_k_dense_replace": 3,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_layer_freq": 1,
    "vocab_size": 129280,
}
QWEN_MOE = {
    "model_type": "qwen3_moe",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_hidden_layers": 94,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "vocab_size": 151936,
}
NEOX = {
    "model_type": "gpt_neox",
    "hidden_act": "gelu_fast",
    "hidden_size": 6144,
    "intermediate_size": 24576,
    "num_attention_heads": 64,
    "num_hidden_layers": 44,
    "vocab_size": 50432,
    "tie_word_embeddings": False,
    "rotary_pct": 0.25,
}


def written(tmp_path, config):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    return file


# Billions of parameters as the models' cards print them, to a hundredth of them.
@pytest.mark.parametrize(
    ("config", "total"), [(LLAMA, 405.85), (MIXTRAL, 46.70), (DEEPSEEK, 671.03), (QWEN_MOE, 235.09), (NEOX, 20.55)]
)
def test_parameters_follow_from_the_file(tmp_path, config, total):
    found = fk.evaluate(fk.read_hf_config(written(tmp_path, config)), "parameters")
    assert found["parameters"] / 1e9 == pytest.approx(total, rel=2e-3)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"num_mamba_heads": 32}, "num_mamba_heads"),
        ({"hidden_act": "sinus"}, "sinus"),
        ({"hidden_size": None}, "hidden_size"),
        ({"vocab_size": "many"}, "vocabulary_size"),
        ({"num_key_value_heads": 7}, "kv_heads = 7"),
        ({"num_local_experts": 8}, "num_experts_per_tok"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "experts_per_token = 9"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path, change, word):
    with pytest.raises(ScenarioError, match=word):
        fk.read_hf_config(written(tmp_path, LLAMA | change))


def test_a_file_that_is_no_configuration_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("[1, 2")
    with pytest.raises(ScenarioError, match=r"config\.json"):
        fk.read_hf_config(tmp_path)
    with pytest.raises(ScenarioError, match=r"absent\.json"):
        fk.read_hf_config(tmp_path / "absent.json")


# Parameters as the model cards print them, to the printed digit; position embeddings and biases are not counted.
PUBLISHED = {
    "opt-6.7b": (
        6.65e9,
        {"model_type": "opt", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "ffn_dim": 16384}
        | {"vocab_size": 50272, "word_embed_proj_dim": 4096, "activation_function": "relu", "dropout": 0.1},
    ),
    "falcon-40b": (
        41.3e9,
        {"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128}
        | {"num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": True},
    ),
    "gemma-2-9b": (
        9.24e9,
        {"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16}
        | {"num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336, "vocab_size": 256000}
        | {"hidden_activation": "gelu_pytorch_tanh", "attn_logit_softcapping": 50.0, "query_pre_attn_scalar": 256},
    ),
    "llama-4-maverick": (
        400.7e9,
        {"model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 40}
        | {"num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "intermediate_size_mlp": 16384}
        | {"num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "vocab_size": 202048}
        | {"hidden_act": "silu"},
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes_come_out(tmp_path, name):
    stated, config = PUBLISHED[name]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    assert fk.evaluate(fk.read_hf_config(file), "parameters")["parameters"] == pytest.approx(stated, rel=1e-3)


@pytest.mark.parametrize(
    "spacing", [{"moe_layer_freq": [0, 1, 1]}, {"interleave_moe_layer_step": 2, "first_k_dense_replace": 3}]
)
def test_spacings_of_experts_that_are_not_understood_are_named(tmp_path, spacing):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(DEEPSEEK | spacing))
    with pytest.raises(ScenarioError, match=f"{next(iter(spacing))} = .* is not understood"):
        fk.read_hf_config(file)


@pytest.mark.parametrize(
    ("change", "share"),
    [
        ({}, None),
        ({"sliding_window": None}, None),
        ({"sliding_window": 4096, "use_sliding_window": False}, None),
        ({"sliding_window": 4096}, 1.0),
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28}, 98 / 126),
        ({"sliding_window": 4096, "sliding_window_pattern": 6}, 105 / 126),
        ({"sliding_window": 128, "model_type": "gpt_oss"}, 0.5),
        ({"sliding_window": 128, "layer_types": ["sliding_attention"] * 42 + ["full_attention"] * 84}, 1 / 3),
    ],
)
def test_windows_are_read(tmp_path, change, share):
    found = fk.read_hf_config(written(tmp_path, LLAMA | change))
    assert found.get("windowed_layers_share") == share
    assert found.get("attention_window") == (change["sliding_window"] if share else None)


def test_kinds_of_layers_that_are_not_understood_are_named(tmp_path):
    with pytest.raises(ScenarioError, match="linear_attention"):
        fk.read_hf_config(written(tmp_path, LLAMA | {"layer_types": ["linear_attention", "full_attention"]}))


def test_a_window_takes_flop_and_time_from_attention_alone(tmp_path):
    flop = ["linear_flop_per_token", "attention_flop_per_token", "model_flop_per_token"]
    flop += ["model_flop_per_token_full_attention"]
    full = fk.evaluate({**fk.read_hf_config(written(tmp_path, LLAMA)), "sequence_length": 8192}, flop)
    band = fk.evaluate(
        {**fk.read_hf_config(written(tmp_path, LLAMA | {"sliding_window": 1024})), "sequence_length": 8192}, flop
    )
    pairs = sum(min(query + 1, 1024) for query in range(8192)) / sum(range(1, 8193))
    assert band["attention_flop_per_token"] / full["attention_flop_per_token"] == pytest.approx(pairs, rel=1e-3)
    assert band["linear_flop_per_token"] == full["linear_flop_per_token"]
    for name, part in (("model_flop_per_token", 0.5), ("model_flop_per_token_full_attention", 1.0)):
        saved = full["attention_flop_per_token"] - band["attention_flop_per_token"]
        assert full[name] - band[name] == pytest.approx(part * saved)
