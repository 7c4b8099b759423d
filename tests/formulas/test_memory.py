"""Memory of the most loaded rank: reference values, and properties of sharding."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorykit.engine.evaluate import evaluate
from factorykit.formulas import arguments, memory

GOLDEN = Path(__file__).parents[1] / "golden" / "counting.csv"
with GOLDEN.open(encoding="utf-8", newline="") as file:
    ROWS = [row for row in csv.DictReader(file) if row["quantity"].startswith("memory")]
LAYOUT = {
    "layers": 96,
    "hidden_size": 12288,
    "attention_heads": 96,
    "ffn_size": 49152,
    "gated_ffn": 0,
    "tied_embeddings": 1,
    "vocabulary_size": 51200,
    "sequence_length": 2048,
    "tensor_parallel": 8,
    "pipeline_parallel": 8,
    "accelerators": 512,
    "micro_batch_size": 1,
    "global_batch_size": 1024,
    "scale_up_domain": 8,
    "precision": "bf16",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['case']}-{row['quantity']}")
def test_memory_meets_the_reference(row):
    given_ = json.loads(row["inputs"])
    stages = given_.get("pipeline_parallel", 1)
    # The reference takes mean layers per stage, one set of norms shared by all stages, and stores bf16 activations.
    inputs = {"micro_batch_size": 1, "recompute": "selective", "precision": "bf16", **given_}
    inputs |= {"stage_layers": given_["layers"] / stages, "global_batch_size": 2**20}
    if given_.get("experts"):
        inputs["stage_moe_layers"] = (given_["layers"] - given_["dense_layers"]) / stages
    value = evaluate(inputs, row["quantity"])[row["quantity"]]
    assert value == pytest.approx(float(row["value"]), rel=2e-5)


def test_activations_meet_korthikanti():
    # GPT-3, t = p = 8, selective recomputation and sequence parallelism; the paper's figure 1 prints 12.35 with v = 3,
    # which leaves out the embedding's dropout mask and token numbers (0.03 GiB).
    plain = evaluate(LAYOUT | {"recompute": "selective"}, "memory_activations_bytes")["memory_activations_bytes"]
    chunks = LAYOUT | {"recompute": "selective", "virtual_stages": 3}
    interleaved = evaluate(chunks, "memory_activations_bytes")["memory_activations_bytes"]
    assert plain / 2**30 == pytest.approx(9.56, abs=0.04)
    assert interleaved / 2**30 == pytest.approx(12.35, abs=0.05)
    assert interleaved / plain == pytest.approx(1.2917, abs=1e-4)


# Bytes per parameter on a rank: Rajbhandari et al., figure 1, and Megatron's 6 + 12/d.
@pytest.mark.parametrize(
    ("stage", "gradients", "expected"),
    [(0, 2, 16.0), (0, 4, 18.0), (1, 4, 6 + 12 / 8), (1, 2, 4 + 12 / 8), (2, 2, 2 + 14 / 8), (3, 2, 16 / 8)],
)
def test_zero_stages_keep_the_published_bytes(stage, gradients, expected):
    layout = LAYOUT | {"zero_stage": stage, "gradient_bytes_per_parameter": gradients}
    found = evaluate(layout, ["memory_weights_bytes", "stage_sharded_parameters", "stage_replicated_parameters"])
    weights = found["stage_sharded_parameters"] + found["stage_replicated_parameters"]
    assert found["memory_weights_bytes"] / weights == pytest.approx(expected)
    summed = evaluate(layout | {"accumulated_gradient_bytes": 4}, "memory_weights_bytes")["memory_weights_bytes"]
    assert summed / weights == pytest.approx(expected + 4.0)  # a sum that is not sharded


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_hybrid_sharding_needs_the_memory_of_one_shard_group(stage):
    """Copies of the shards on other nodes take nothing from a rank (Zhao et al. 2023, section 3.2.2)."""
    layout = LAYOUT | {"zero_stage": stage, "experts": 16, "experts_per_token": 2, "expert_ffn_size": 4096}
    layout |= {"moe_layers": 96, "expert_parallel": 2}
    group = evaluate(layout, "memory_weights_bytes")
    copies = evaluate(layout | {"accelerators": 2048, "optimizer_shards": 8}, "memory_weights_bytes")
    assert copies["memory_weights_bytes"] == pytest.approx(group["memory_weights_bytes"], rel=1e-12)
    whole = evaluate(layout | {"accelerators": 2048}, "memory_weights_bytes")
    assert whole["memory_weights_bytes"] < group["memory_weights_bytes"]


@given(st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]))
def test_ranks_together_hold_at_least_the_model(tensor, pipeline, chunks):
    layout = LAYOUT | {"tensor_parallel": tensor, "pipeline_parallel": pipeline}
    layout |= {"virtual_stages": chunks if pipeline > 1 else 1}
    outputs = ["parameters", "stage_sharded_parameters", "stage_replicated_parameters"]
    found = evaluate(layout, outputs)
    rank = found["stage_sharded_parameters"] + found["stage_replicated_parameters"]
    assert rank * tensor * pipeline >= found["parameters"] * (1 - 1e-12)


@given(st.sampled_from(["none", "selective", "full"]), st.integers(1, 8))
def test_more_recomputation_never_needs_more_kept_activations(recompute, size):
    layout = LAYOUT | {"micro_batch_size": size, "global_batch_size": 8 * 64 * size, "flash_attention": 0}
    kept = {
        word: evaluate(layout | {"recompute": word}, "memory_activations_bytes")["memory_activations_bytes"]
        for word in ("none", "selective", "full")
    }
    assert kept["none"] >= kept["selective"] >= kept["full"]


def test_too_little_memory_does_not_fit():
    layout = LAYOUT | {"zero_stage": 0}
    assert evaluate(layout | {"accelerator_memory_bytes": 40e9}, "fits") == {"fits": 0.0}
    assert evaluate(layout | {"accelerator_memory_bytes": 400e9}, "fits") == {"fits": 1.0}


STAGE = {
    "stage_layers": 12.0,
    "stage_ffn_layers": 12.0,
    "mixing_parameters": 3.0,
    "ffn_parameters": 5.0,
    "shared_parameters": 7.0,
    "routed_parameters": 64.0,
    "replicated_parameters": 11.0,
    "router_parameters": 13.0,
    "embedding_parameters": 0.0,
    "tied_embeddings": 0.0,
    "norm_vectors": 0.0,
    "hidden_size": 1.0,
    "tensor_parallel": 2.0,
    "pipeline_parallel": 1.0,
    "expert_parallel": 4.0,
    "expert_tensor_parallel": 2.0,
}
STAGES = (memory.stage_sharded_parameters, memory.stage_replicated_parameters, memory.stage_expert_parameters)


def of(formula, **changes):
    """Return the result of a formula for the stage with some values changed."""
    return formula(*[(STAGE | changes)[name] for name in arguments(formula)])


@pytest.mark.parametrize(("experts", "later"), [(0.0, 0.0), (12.0, 13.0)])
@pytest.mark.parametrize("formula", STAGES)
def test_a_prediction_layer_holds_as_much_as_another_layer_of_its_kind(formula, experts, later):
    predicting = of(formula, stage_moe_layers=experts, mtp_layers=1.0)
    further = {"stage_layers": 13.0, "stage_ffn_layers": 13.0}
    assert predicting == of(formula, **further, stage_moe_layers=later, mtp_layers=0.0)


@pytest.mark.parametrize(("experts", "held"), [(0.0, (12 * 3 + 12 * 5) / 2), (4.0, (12 * 3 + 8 * 5 + 4 * 7) / 2)])
def test_weights_that_tensor_parallelism_splits_are_counted_layer_by_layer(experts, held):
    assert of(memory.stage_sharded_parameters, stage_moe_layers=experts, mtp_layers=0.0) == held
    assert of(memory.stage_replicated_parameters, stage_moe_layers=experts, mtp_layers=0.0) == 12 * 11 + experts * 13
    assert of(memory.stage_expert_parameters, stage_moe_layers=experts, mtp_layers=0.0) == experts * 64 / (4 * 2)


@pytest.mark.parametrize(("stages", "tied", "matrices"), [(1.0, 0.0, 2), (1.0, 1.0, 1), (2.0, 0.0, 1), (2.0, 1.0, 1)])
def test_a_rank_holds_one_matrix_of_the_vocabulary_or_with_one_stage_both(stages, tied, matrices):
    ends = {"embedding_parameters": 100.0, "tied_embeddings": tied, "pipeline_parallel": stages}
    none = of(memory.stage_sharded_parameters, stage_moe_layers=0.0, mtp_layers=0.0)
    assert of(memory.stage_sharded_parameters, **ends, stage_moe_layers=0.0, mtp_layers=0.0) - none == matrices * 50.0


WORKSPACE = {
    "recompute_share": 0.0,
    "layer_activation_bytes": 3e9,
    "layer_score_bytes": 1e9,
    "micro_batch_tokens": 2048.0,
    "hidden_size": 12288.0,
    "vocabulary_size": 51200.0,
    "tensor_parallel": 8.0,
    "pipeline_parallel": 1.0,
    "kept_rows_share": 0.125,
    "zero_stage": 2.0,
    "stage_layers": 96.0,
    "stage_sharded_parameters": 9e9,
    "stage_expert_parameters": 6e8,
    "embedding_parameters": 12288 * 51200.0,
    "chunked_loss": 0.0,
    "whole_logits": 0.0,
    "memory_activations_bytes": 9e9,
    "first_stage_activation_bytes": 9e9 - 0.4e9,
    "last_stage_activation_bytes": 9e9,
    "logits_bytes": 0.4e9,
    "ffn_size": 49152.0,
    "weight_bytes_per_parameter": 2.0,
    "offloaded_weights_share": 0.0,
    "update_bytes_per_parameter": 0.0,
    "gather_buffer_bytes": 0.0,
    "trained_share": 1.0,
    "optimizer_shards": 8.0,
    "held_boundaries": 0.0,
}


@pytest.mark.parametrize(
    ("cause", "added"),
    [
        ({"zero_stage": 3.0}, 6 * 9.6e9 / 96),
        ({"zero_stage": 3.0, "stage_layers": 960.0}, 4 * 12288 * 51200 / 8),
        ({"zero_stage": 3.0, "gather_buffer_bytes": 4e9}, 6 * 9.6e9 / 96 + 4e9),
        ({"gather_buffer_bytes": 4e9}, 0.0),
        ({"offloaded_weights_share": 1.0}, 4 * 9.6e9 / 96),
        ({"weight_bytes_per_parameter": 0.5}, 2 * 12288 * 49152 / 8),
        ({"pipeline_parallel": 2.0}, 4 * 2048 * 12288 / 8),
        ({}, 0.0),
    ],
)
def test_transient_memory_adds_up(cause, added):
    """Beside 16-bit gradients of the logits: two layers gathered by ZeRO 3 or from a host, with a gradient under
    ZeRO 3, or the logits' matrix and its gradient; a quantized matrix in 16 bits; a stage that receives and sends."""
    gradient = 2 * 2048 * 51200 / 8
    found = of(memory.memory_workspace_bytes, **WORKSPACE | cause)
    assert found == pytest.approx(gradient + added, rel=1e-9)
    again = of(memory.memory_workspace_bytes, **WORKSPACE | cause | {"recompute_share": 1.0})
    assert 4e9 < again <= 2 * 4e9 + added


@pytest.mark.parametrize(
    ("layout", "times"),
    [({}, 1.0), ({"recompute_share": 0.5}, 0.5), ({"zero_stage": 2.0}, 0.0), ({"trained_share": 1.0}, 0.0)],
)
def test_hooks_on_frozen_layers_hold_the_gradients_of_their_inputs(layout, times):
    """Fully sharded, with adapters, and each recomputed layer's input of 2 T h / t bytes has a gradient as large."""
    frozen = WORKSPACE | {"zero_stage": 3.0, "trained_share": 0.01, "recompute_share": 1.0} | layout
    bare, held = (of(memory.memory_workspace_bytes, **frozen | {"held_boundaries": each}) for each in (0.0, 1.0))
    assert held - bare == pytest.approx(times * 96 * 2 * 2048 * 12288 / 8)


def test_an_update_of_all_weights_at_once_needs_its_own_room_when_activations_are_gone():
    update = WORKSPACE | {"update_bytes_per_parameter": 2.0, "zero_stage": 0.0, "optimizer_shards": 1.0}
    assert of(memory.memory_workspace_bytes, **update) + 9e9 == pytest.approx(2.0 * 9.6e9)


def test_eager_code_keeps_the_logits_of_the_previous_micro_batch():
    """nanotron, 1B, 128 H100, micro-batch 2: 34.8 GiB with a micro-batch before and 30.8 without (32-bit logits)."""
    shape = (8192.0, 2048.0, 131072.0, 1.0, 0.0)
    first, later = (memory.logits_bytes(*shape, 0.0, 0.0, count) for count in (1.0, 2.0))
    assert (later - first) / 2**30 == pytest.approx(34.8 - 30.8, abs=0.1)
    assert memory.logits_bytes(*shape, 1.0, 0.0, 2.0) == first


def test_logits_are_on_the_last_stage_and_in_flight_micro_batches_on_the_first():
    pipeline = evaluate(LAYOUT, ["memory_activations_bytes", "first_stage_activation_bytes", "logits_bytes"])
    assert pipeline["memory_activations_bytes"] == pipeline["first_stage_activation_bytes"]
    outputs = ["memory_activations_bytes", "last_stage_activation_bytes"]
    words = evaluate(LAYOUT | {"vocabulary_size": 10**7, "recompute": "full"}, outputs)
    assert words["memory_activations_bytes"] == words["last_stage_activation_bytes"]
