"""Reading Hugging Face configurations: counts against published ones, errors for fields that are not understood."""

import csv
import json
from pathlib import Path

import pytest

import factorykit as fk
from factorykit.core.errors import FactorykitWarning, ScenarioError

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


def write(tmp_path, config):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    return file


# Billions of parameters as the models' cards print them, to a hundredth of them.
@pytest.mark.parametrize(
    ("config", "total"), [(LLAMA, 405.85), (MIXTRAL, 46.70), (DEEPSEEK, 671.03), (QWEN_MOE, 235.09), (NEOX, 20.55)]
)
def test_parameters_follow_from_the_file(tmp_path, config, total):
    found = fk.evaluate(fk.read_hf_config(write(tmp_path, config)), "parameters")
    assert found["parameters"] / 1e9 == pytest.approx(total, rel=2e-3)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"num_mamba_heads": 32}, "num_mamba_heads"),
        ({"hidden_act": "sinus"}, "sinus"),
        ({"hidden_size": None}, "hidden_size"),
        ({"vocab_size": "many"}, "vocab_size must be a whole number, got .many."),
        ({"num_key_value_heads": 7}, "kv_heads = 7"),
        ({"num_local_experts": 8}, "num_experts_per_tok"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "experts_per_token = 9"),
    ],
)
def test_invalid_fields_are_named(tmp_path, change, word):
    with pytest.raises(ScenarioError, match=word):
        fk.read_hf_config(write(tmp_path, LLAMA | change))


def test_a_file_without_json_is_an_error(tmp_path):
    (tmp_path / "config.json").write_text("[1, 2")
    with pytest.raises(ScenarioError, match=r"config\.json"):
        fk.read_hf_config(tmp_path)
    with pytest.raises(ScenarioError, match=r"absent\.json"):
        fk.read_hf_config(tmp_path / "absent.json")


@pytest.mark.parametrize(
    "spacing", [{"moe_layer_freq": [0, 1, 1]}, {"interleave_moe_layer_step": 2, "first_k_dense_replace": 3}]
)
def test_unknown_spacings_of_experts_are_named(tmp_path, spacing):
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
def test_attention_windows_are_read(tmp_path, change, share):
    found = fk.read_hf_config(write(tmp_path, LLAMA | change))
    assert found.get("windowed_layers_share") == share
    assert found.get("attention_window") == (change["sliding_window"] if share else None)


def test_expert_biases_follow_from_the_model_type(tmp_path):
    experts = {"num_local_experts": 8, "num_experts_per_tok": 2}
    biased = fk.read_hf_config(write(tmp_path, LLAMA | experts | {"model_type": "gpt_oss"}))
    plain = fk.read_hf_config(write(tmp_path, LLAMA | experts | {"model_type": "mixtral"}))
    assert (biased["expert_biases"], plain.get("expert_biases")) == (1.0, None)
    assert "gpt_oss" in biased.sources["expert_biases"]


def test_a_window_reduces_attention_flop_alone(tmp_path):
    flop = ["linear_flop_per_token", "attention_flop_per_token", "model_flop_per_token"]
    flop += ["model_flop_per_token_full_attention"]
    full = fk.evaluate({**fk.read_hf_config(write(tmp_path, LLAMA)), "sequence_length": 8192}, flop)
    band = fk.evaluate(
        {**fk.read_hf_config(write(tmp_path, LLAMA | {"sliding_window": 1024})), "sequence_length": 8192}, flop
    )
    pairs = sum(min(query + 1, 1024) for query in range(8192)) / sum(range(1, 8193))
    assert band["attention_flop_per_token"] / full["attention_flop_per_token"] == pytest.approx(pairs, rel=1e-3)
    assert band["linear_flop_per_token"] == full["linear_flop_per_token"]
    for name, part in (("model_flop_per_token", 0.5), ("model_flop_per_token_full_attention", 1.0)):
        saved = full["attention_flop_per_token"] - band["attention_flop_per_token"]
        assert full[name] - band[name] == pytest.approx(part * saved)


GOLDEN = Path(__file__).parents[2] / "golden" / "configurations.csv"
with GOLDEN.open(encoding="utf-8", newline="") as stream:
    PUBLISHED = list(csv.DictReader(stream))
UNITS = {"B": 1e9, "T": 1e12}
UNCOUNTED_SHARE = 1e-3
"""Share of a model in biases, learned positions and vectors of heads, which are not counted."""


def printed(text):
    """Return a printed number and half a unit of its last digit."""
    number, unit = text[:-1], UNITS[text[-1]]
    return float(number) * unit, 0.5 * unit * 10.0 ** -len(number.partition(".")[2])


@pytest.mark.filterwarnings("ignore:.* not counted")
@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row["model"])
def test_parameters_agree_with_published_counts(tmp_path, row):
    """Counted as the publisher does: with or without prediction layers and embeddings."""
    outputs = ["parameters", "active_parameters", "mtp_parameters", "embedding_parameters"]
    found = fk.evaluate(fk.read_hf_config(write(tmp_path, json.loads(row["config"]))), outputs)
    embedding, ahead = found["embedding_parameters"], found["mtp_parameters"] * int(row["with_mtp"])
    total, unit = printed(row["parameters"])
    counted = found["parameters"] + ahead - int(row["embeddings_left_out"]) * embedding
    assert counted == pytest.approx(total, abs=max(unit, UNCOUNTED_SHARE * total))
    if row["active_parameters"]:
        active, unit = printed(row["active_parameters"])
        counted = found["active_parameters"] - int(row["active_embeddings_left_out"]) * embedding
        assert counted == pytest.approx(active, abs=max(unit, UNCOUNTED_SHARE * active))


GLM = next(json.loads(row["config"]) for row in PUBLISHED if row["model"] == "GLM-4.5")


def test_a_missing_activation_takes_the_default_of_the_model_type(tmp_path):
    assert "hidden_act" not in GLM
    model = fk.read_hf_config(write(tmp_path, GLM))
    assert model.gated_ffn == 1.0
    assert model.sources["gated_ffn"] == "default of model type glm4_moe in transformers 4.57: hidden_act"
    assert model.sources["layers"] == "config.json: num_hidden_layers"
    assert [name for name, source in model.sources.items() if source.startswith("default")] == ["gated_ffn"]
    assert fk.evaluate(model, "parameters")["parameters"] / 1e9 == pytest.approx(353, abs=0.5)
    listed = fk.assumed(model, "parameters").row(0, named=True)
    assert (listed["quantity"], listed["value"], listed["source"]) == ("gated_ffn", 1.0, model.sources["gated_ffn"])
    assert "gated_ffn" not in fk.assumed(model, "embedding_parameters")["quantity"]


@pytest.mark.parametrize("field", ["hidden_act", "tie_word_embeddings", "vocab_size", "intermediate_size"])
def test_a_missing_field_without_a_default_is_an_error(tmp_path, field):
    config = {"tie_word_embeddings": False} | LLAMA | {"model_type": "my_own"}
    with pytest.raises(ScenarioError, match=rf"no field .*{field}.* 'my_own' has no default for it; add it"):
        fk.read_hf_config(write(tmp_path, {name: value for name, value in config.items() if name != field}))


@pytest.mark.parametrize("act", ["gelu", "relu2"])
def test_a_gate_of_an_unknown_type_is_not_guessed_from_the_activation(tmp_path, act):
    with pytest.raises(ScenarioError, match="may have a gate or not"):
        fk.read_hf_config(write(tmp_path, LLAMA | {"model_type": "my_own", "hidden_act": act}))
    assert fk.read_hf_config(write(tmp_path, LLAMA | {"hidden_act": "gelu"})).gated_ffn == 1.0


def test_a_null_field_has_no_value_even_with_a_default(tmp_path):
    lite = {name: value for name, value in DEEPSEEK.items() if name != "q_lora_rank"}
    assert fk.read_hf_config(write(tmp_path, lite)).q_lora_rank == 1536.0
    assert "q_lora_rank" not in fk.read_hf_config(write(tmp_path, lite | {"q_lora_rank": None}))


def test_defaults_are_those_of_the_library():
    rows = fk.table("config_defaults").collect()
    found = {
        (kind, field): json.loads(value) for kind, field, value in rows.select("model_type", "field", "value").rows()
    }
    assert found["gemma3_text", "vocab_size"] == 262208
    assert found["qwen3_next", "linear_num_value_heads"] == 32
    assert found["mixtral", "num_local_experts"] == 8
    assert found["bitnet", "gated_ffn"] is True
    assert found["falcon", "gated_ffn"] is False


def test_a_vision_model_is_reported_as_not_counted(tmp_path):
    config = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}, "vision_config": {"depth": 27}}
    with pytest.warns(FactorykitWarning, match="vision_config not counted"):
        assert fk.read_hf_config(write(tmp_path, config)).vocabulary_size == 262208.0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"model_type": "rwkv"}, "time mixing not counted"),
        ({"model_type": "zamba2"}, "shared attention blocks with adapters not counted"),
        ({"is_encoder_decoder": True}, "cross attention not counted"),
        ({"word_embed_proj_dim": 512}, "word_embed_proj_dim"),
        ({"moe_latent_size": 1024}, "moe_latent_size not understood"),
        ({"layer_types": ["hyena"] * 126}, "layer_types hyena not understood"),
        ({"layer_types": ["linear_attention", "full_attention"] * 63}, "linear attention without their shape"),
        ({"layer_types": ["full_attention"] * 3}, "kinds of 3 layers"),
        ({"num_hidden_layers": 1.5}, r"num_hidden_layers must be a whole number, got '1.5'"),
        ({"num_hidden_layers": 1e300}, "num_hidden_layers must be a whole number"),
        ({"num_hidden_layers": True}, "num_hidden_layers must be a whole number, got 'True'"),
        ({"num_hidden_layers": -3}, "num_hidden_layers must be a whole number, got '-3'"),
        ({"num_hidden_layers": 0}, "layers = 0"),
        ({"vocab_size": [1, 2]}, "vocab_size"),
        ({"vocab_size": {"a": 1}}, "vocab_size"),
        ({"hidden_act": ["silu"]}, "activation"),
        ({"sliding_window": "wide"}, "sliding_window must be a whole number, got 'wide'"),
        (
            {"num_local_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 0},
            "moe_intermediate_size must be",
        ),
        (
            {"num_local_experts": 8, "num_experts_per_tok": 2, "mlp_only_layers": 5, "moe_layer_freq": 0},
            "moe_layer_freq",
        ),
        ({f"field_{number}": 1 for number in range(100_000)}, "field_0.* and 99990 more not understood"),
        ({"\x1b[31m\x00": 1}, r"\\x1b\[31m\\x00"),
    ],
)
def test_unsupported_models_are_errors_that_name_the_field(tmp_path, change, word):
    with pytest.raises(ScenarioError, match=word) as raised:
        fk.read_hf_config(write(tmp_path, LLAMA | change))
    assert len(str(raised.value)) < 1200


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"num_hidden_layers": ' + b"9" * 5000 + b"}",
        b"NaN",
        b"3",
    ],
    ids=["empty", "not text", "deep list", "deep object", "long number", "no number", "a number"],
)
def test_content_that_is_not_an_object_is_an_error(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ScenarioError):
        fk.read_hf_config(tmp_path)


def test_paths_without_a_configuration_are_errors(tmp_path):
    (tmp_path / "config.json").mkdir()
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(17_000_000)
    for path in (tmp_path, "a\0b", "x" * 5000, 3, None, "/dev/null", tmp_path / "large.json"):
        with pytest.raises(ScenarioError):
            fk.read_hf_config(path)


def test_llama_4_swaps_the_names_of_its_widths(tmp_path):
    config = {"model_type": "llama4_text", "intermediate_size": 8192, "interleave_moe_layer_step": 2}
    model = fk.read_hf_config(write(tmp_path, config))
    assert (model.ffn_size, model.expert_ffn_size) == (16384.0, 8192.0)
    with pytest.raises(ScenarioError, match="intermediate_size"):
        fk.read_hf_config(write(tmp_path, LLAMA | {"intermediate_size": None, "intermediate_size_mlp": None}))


def test_a_list_of_spacings_gives_the_dense_layers(tmp_path):
    listed = fk.read_hf_config(write(tmp_path, DEEPSEEK | {"moe_layer_freq": [0] * 3 + [1] * 58}))
    assert listed.dense_layers == 3.0


def test_common_models_have_their_published_parameters():
    published = {"llama2_13b": 13.02e9, "llama_33b": 32.53e9, "llama_65b": 65.29e9, "mistral_nemo_12b": 12.25e9}
    published |= {"qwen2_5_0_5b": 0.494e9, "qwen2_5_1_5b": 1.544e9, "qwen2_5_3b": 3.086e9, "qwen2_5_14b": 14.77e9}
    published |= {"qwen2_5_32b": 32.76e9, "yi_34b": 34.39e9, "phi3_mini": 3.821e9}
    counted = {name: fk.evaluate(fk.architecture(name), "parameters", assume=True)["parameters"] for name in published}
    assert counted == pytest.approx(published, rel=1e-3)
