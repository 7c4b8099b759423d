"""Counts of parameters and FLOP: reference values, and independence of irrelevant inputs."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorykit.engine.evaluate import evaluate

GOLDEN = Path(__file__).parents[1] / "golden" / "counting.csv"
COUNTS = ("model_flop_per_token", "parameters", "active_parameters")
with GOLDEN.open(encoding="utf-8", newline="") as file:
    ROWS = [row for row in csv.DictReader(file) if row["quantity"] in COUNTS]

GPT3 = {
    "layers": 96,
    "hidden_size": 12288,
    "attention_heads": 96,
    "ffn_size": 49152,
    "gated_ffn": 0,
    "tied_embeddings": 1,
    "vocabulary_size": 51200,
    "sequence_length": 2048,
}
MIXTRAL = {
    "layers": 32,
    "hidden_size": 4096,
    "attention_heads": 32,
    "kv_heads": 8,
    "ffn_size": 14336,
    "gated_ffn": 1,
    "experts": 8,
    "experts_per_token": 2,
    "vocabulary_size": 32000,
    "sequence_length": 4096,
}
LLAMA2_70B = {
    "layers": 80,
    "hidden_size": 8192,
    "attention_heads": 64,
    "kv_heads": 8,
    "ffn_size": 28672,
    "gated_ffn": 1,
    "vocabulary_size": 32000,
    "sequence_length": 4096,
}
QWEN3_32B = {
    "layers": 64,
    "hidden_size": 5120,
    "attention_heads": 64,
    "kv_heads": 8,
    "head_size": 128,
    "ffn_size": 25600,
    "gated_ffn": 1,
    "vocabulary_size": 151936,
    "sequence_length": 4096,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['case']}-{row['quantity']}")
def test_counts_meet_the_reference(row):
    value = evaluate(json.loads(row["inputs"]), row["quantity"])[row["quantity"]]
    assert value == pytest.approx(float(row["value"]), rel=0, abs=float(row["tolerance"]))


# Published counts in billions, from the models' public configuration files, printed with two decimals.
@pytest.mark.parametrize(
    ("model", "total", "active"),
    [(GPT3, 174.58, 174.58), (LLAMA2_70B, 68.98, 68.98), (MIXTRAL, 46.70, 12.88), (QWEN3_32B, 32.76, 32.76)],
)
def test_parameters_meet_the_published_counts(model, total, active):
    found = evaluate(model, ["parameters", "active_parameters"])
    assert found["parameters"] / 1e9 == pytest.approx(total, abs=0.005)
    assert found["active_parameters"] / 1e9 == pytest.approx(active, abs=0.005)


# GFLOP per token by the reference: causal half, and the whole square.
@pytest.mark.parametrize(
    ("model", "half", "full"), [(GPT3, 1061.9, 1076.4), (LLAMA2_70B, 428.4, 444.5), (MIXTRAL, 79.7, 82.9)]
)
def test_the_attention_conventions_are_named_apart(model, half, full):
    found = evaluate(model, ["model_flop_per_token", "model_flop_per_token_full_attention"])
    assert found["model_flop_per_token"] / 1e9 == pytest.approx(half, abs=0.06)
    assert found["model_flop_per_token_full_attention"] / 1e9 == pytest.approx(full, abs=0.06)


@given(st.integers(1, 4), st.integers(2, 16))
def test_more_experts_per_token_cost_more_work_but_no_more_weights(visited, experts):
    base = MIXTRAL | {"experts": experts, "experts_per_token": min(visited, experts - 1)}
    more = base | {"experts_per_token": base["experts_per_token"] + 1}
    outputs = ["parameters", "active_parameters", "model_flop_per_token"]
    few, many = evaluate(base, outputs), evaluate(more, outputs)
    assert few["parameters"] == many["parameters"]
    assert few["active_parameters"] < many["active_parameters"]
    assert few["model_flop_per_token"] < many["model_flop_per_token"]


@given(st.integers(1, 128), st.integers(1, 64), st.integers(1, 256))
def test_a_dense_model_uses_all_its_weights(layers, heads, width):
    model = GPT3 | {"layers": layers, "attention_heads": heads, "hidden_size": 128 * heads, "ffn_size": 64 * width}
    found = evaluate(model, ["parameters", "active_parameters"])
    assert found["parameters"] == found["active_parameters"]


@given(st.integers(1, 200), st.integers(0, 1))
def test_twice_the_layers_are_twice_the_blocks(layers, gated):
    def blocks(count):
        model = GPT3 | {"layers": count, "gated_ffn": gated}
        found = evaluate(model, ["parameters", "embedding_parameters", "norm_vectors"])
        return found["parameters"] - found["embedding_parameters"] - found["norm_vectors"] * model["hidden_size"]

    assert blocks(2 * layers) == 2 * blocks(layers)


def test_each_prediction_layer_brings_its_own_logits():
    plain, deeper = (evaluate(MIXTRAL | {"mtp_layers": n}, "linear_flop_per_token") for n in (0, 1))
    logits = 6 * MIXTRAL["hidden_size"] * MIXTRAL["vocabulary_size"]
    assert deeper["linear_flop_per_token"] - plain["linear_flop_per_token"] > logits
