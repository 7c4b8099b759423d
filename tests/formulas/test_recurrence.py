"""Recurrent layers: reference FLOP, published counts, time and memory of the mean layer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorykit.engine.evaluate import evaluate
from factorykit.formulas.recurrence import layer_state_s
from factorykit.model.scenario.architectures import architecture

QWEN3_NEXT = {
    "layers": 48,
    "linear_attention_layers": 36,
    "hidden_size": 2048,
    "attention_heads": 16,
    "kv_heads": 2,
    "head_size": 256,
    "gated_attention": 1,
    "ffn_size": 512,
    "gated_ffn": 1,
    "experts": 512,
    "experts_per_token": 10,
    "shared_experts": 1,
    "vocabulary_size": 151936,
    "linear_key_heads": 16,
    "linear_key_size": 128,
    "linear_value_heads": 32,
    "linear_value_size": 128,
    "convolution_width": 4,
    "linear_gates": 2,
    "state_element_flop": 8,
    "sequence_length": 4096,
}
DEEPSEEK_V3 = {
    "layers": 61,
    "dense_layers": 3,
    "hidden_size": 7168,
    "ffn_size": 18432,
    "gated_ffn": 1,
    "attention_heads": 128,
    "head_size": 128,
    "rope_head_size": 64,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "experts": 256,
    "experts_per_token": 8,
    "shared_experts": 1,
    "expert_ffn_size": 2048,
    "vocabulary_size": 129280,
    "sequence_length": 4096,
}
LAYOUT = {
    "accelerators": 64,
    "accelerator": "h100_sxm",
    "precision": "bf16",
    "micro_batch_size": 1,
    "global_batch_size": 64,
    "schedule": "1f1b",
    "recompute": "full",
    "zero_stage": 1,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "context_parallel": 1,
}


def test_the_tensors_of_qwen3_next_are_counted():
    """79,674,391,296 in the files of Qwen3-Coder-Next, of which a token meets 3,874,929,408."""
    found = evaluate(QWEN3_NEXT, ["parameters", "active_parameters"])
    assert found["parameters"] == pytest.approx(79_674_391_296, rel=1e-5)
    assert found["active_parameters"] == pytest.approx(3_874_929_408, rel=1e-4)


def test_a_gated_delta_net_works_as_the_reference_counts():
    found = evaluate(QWEN3_NEXT, ["linear_attention_parameters", "state_flop_per_token"])
    keys, values, heads, size, hidden = 16 * 128, 32 * 128, 32, 128, 2048
    reference = 6 * (hidden * (2 * keys + 2 * values + 2 * heads) + 4 * (2 * keys + values))
    reference += 6 * (heads * size**2 * 4 + hidden * values)
    assert 6 * found["linear_attention_parameters"] + found["state_flop_per_token"] / 36 == reference


def test_a_mamba_layer_works_as_the_reference_counts():
    hidden, inner, heads, groups, state = 4096, 8192, 128, 8, 128
    mamba = QWEN3_NEXT | {"hidden_size": hidden, "linear_key_heads": groups, "linear_key_size": state}
    mamba |= {"linear_value_heads": heads, "linear_value_size": inner / heads, "linear_gates": 1}
    mamba |= {"state_element_flop": 7, "convolution_width": 0}
    found = evaluate(mamba, ["linear_attention_parameters", "state_flop_per_token"])
    forward = 2 * hidden * (2 * inner + 2 * groups * state + heads) + 7 * inner * state + 2 * inner * hidden
    assert 6 * found["linear_attention_parameters"] + found["state_flop_per_token"] / 36 == 3 * forward


@given(st.integers(1024, 65536))
def test_a_state_costs_the_same_at_every_sequence_length(length):
    flop = ["state_flop_per_token", "linear_flop_per_token"]
    assert evaluate(QWEN3_NEXT | {"sequence_length": length}, flop) == evaluate(QWEN3_NEXT, flop)


def test_a_model_without_a_state_does_no_work_on_it():
    plain = {name: value for name, value in QWEN3_NEXT.items() if not name.startswith(("linear", "state", "conv"))}
    found = evaluate(plain, ["attention_layers", "state_flop_per_token", "model_flop_per_token"])
    parts = evaluate(plain, ["linear_flop_per_token", "attention_flop_per_token"])
    assert (found["attention_layers"], found["state_flop_per_token"]) == (48.0, 0.0)
    assert found["model_flop_per_token"] == parts["linear_flop_per_token"] + 0.5 * parts["attention_flop_per_token"]


def test_prediction_layers_are_counted_apart_from_published_totals():
    """671 and 37 billion with the output embedding alone; 14 billion with both embeddings for the prediction layer."""
    outputs = ["parameters", "active_parameters", "embedding_parameters", "mtp_parameters"]
    plain, found = (evaluate(DEEPSEEK_V3 | {"mtp_layers": layers}, outputs) for layers in (0, 1))
    assert plain["mtp_parameters"] == 0.0
    assert {name: found[name] for name in outputs[:3]} == {name: plain[name] for name in outputs[:3]}
    assert found["parameters"] / 1e9 == pytest.approx(671.0, abs=0.05)
    assert (found["active_parameters"] - found["embedding_parameters"]) / 1e9 == pytest.approx(37, abs=0.5)
    assert (found["mtp_parameters"] + 2 * found["embedding_parameters"]) / 1e9 == pytest.approx(14, abs=0.6)


def test_an_index_scores_all_tokens_and_attention_only_those_it_picks():
    index = {"index_heads": 64, "index_head_size": 128, "attention_window": 2048}
    outputs = ["index_parameters", "parameters", "attention_flop_per_token"]
    plain, sparse = (evaluate(DEEPSEEK_V3 | more | {"sequence_length": 131072}, outputs) for more in ({}, index))
    assert sparse["parameters"] - plain["parameters"] == 61 * sparse["index_parameters"]
    picking = 6 * 61 * 64 * 128 * 131072
    attending = plain["attention_flop_per_token"] * 2048 * (2 - 2048 / 131072) / 131072
    assert sparse["attention_flop_per_token"] == pytest.approx(picking + attending)


NEMOTRON = architecture("nemotron_3_nano_30b")


@pytest.mark.parametrize(("length", "flop"), [(8192, 20.8e9), (32768, 24.432e9)])
def test_work_of_a_hybrid_equals_the_published_count(length, flop):
    """Per-token FLOP of Nemotron 3 Nano that the campaign of Isambard-AI states for sequences of 8K and 32K tokens."""
    found = evaluate({**NEMOTRON, "sequence_length": length}, "model_flop_per_token")
    assert found["model_flop_per_token"] == pytest.approx(flop, rel=2e-3)


@pytest.mark.parametrize("name", ["nemotron_3_nano_30b", "qwen3_next_80b", "falcon_h1_34b", "mamba2_2_7b", "lfm2_8b"])
def test_one_rank_of_a_hybrid_holds_its_parameters(name):
    held = ["stage_sharded_parameters", "stage_replicated_parameters", "stage_expert_parameters"]
    alone = LAYOUT | {"accelerators": 1, "global_batch_size": 1, "sequence_length": 4096}
    found = evaluate({**architecture(name), **alone}, [*held, "parameters"])
    assert sum(found[part] for part in held) == pytest.approx(found["parameters"], rel=1e-4)


def test_a_mean_layer_attends_as_much_as_its_share_of_layers_does():
    parts = ["layer_attention_s", "layer_score_bytes", "layer_state_s", "layer_blocks"]
    plain = QWEN3_NEXT | LAYOUT | {"linear_attention_layers": 0}
    every, some = evaluate(plain, parts), evaluate(QWEN3_NEXT | LAYOUT, parts)
    assert (every["layer_state_s"], every["layer_blocks"], some["layer_blocks"]) == (0.0, 2.0, 2.0)
    for part in parts[:2]:
        assert some[part] == pytest.approx(every[part] * 12 / 48)
    assert some["layer_state_s"] > 0.0


@given(st.integers(1, 5))
def test_states_take_time_in_step_with_tokens_and_attention_with_their_square(doubling):
    parts = ["layer_state_s", "layer_attention_s"]
    short, long = (
        evaluate(QWEN3_NEXT | LAYOUT | {"sequence_length": length}, parts) for length in (4096, 4096 * 2**doubling)
    )
    assert long["layer_state_s"] / short["layer_state_s"] == pytest.approx(2.0**doubling)
    assert long["layer_attention_s"] / short["layer_attention_s"] > 2.0 ** (1.8 * doubling)


@pytest.mark.parametrize("odd", [{"linear_attention_layers": 36.0}, {"index_heads": 64.0, "index_head_size": 128.0}])
def test_the_interval_of_a_hybrid_is_wider(odd):
    plain = QWEN3_NEXT | LAYOUT | {"linear_attention_layers": 0, "experts": 0, "spread_overhead": 0.0}
    outputs = ["step_spread", "step_s", "memory_peak_bytes"]
    before, after = evaluate(plain, outputs), evaluate(plain | odd, outputs)
    assert after["step_spread"] ** 2 - before["step_spread"] ** 2 == pytest.approx(0.2**2)
    assert min(after["step_s"], after["memory_peak_bytes"]) > 0.0


def test_a_scan_takes_an_exponential_for_each_element_and_chunks_one_for_each_pair():
    chip = (1e300, 4e12, 1.0)
    shape = (8192.0, 32.0, 16.0, 1.0, 16.0, 8192.0)
    assert layer_state_s(*shape, 256.0, 7.0, 128.0, 1.0, *chip) == pytest.approx(8192 * 0.5 * 16 * 8192 / 4e12)
    assert layer_state_s(*shape, 0.0, 7.0, 128.0, 1.0, *chip) == pytest.approx(8192 * 0.5 * 128 / 4e12)
