"""Memory of fine-tuning: adapters, quantized weights and offload against papers and frameworks."""

import pytest

import factorykit as fk

GIB = 2.0**30
# Full activation checkpointing and a loss in chunks, as torchtune's recipes have them.
FINE_TUNE = {
    "precision": "bf16",
    "recompute": "full",
    "chunked_loss": 1.0,
    "zero_stage": 0.0,
    "accelerators": 1.0,
    "accelerator": "a100_sxm_80gb",
    "micro_batch_size": 2.0,
    "sequence_length": 2048.0,
}
PARTS = ["memory_weights_bytes", "memory_activations_bytes", "memory_workspace_bytes"]


def scenario(model, **layout):
    found = {**fk.architecture(model), **FINE_TUNE, **layout}
    return found | {"global_batch_size": found["micro_batch_size"] * found["accelerators"]}


# Hu et al. 2021, table 4 (GPT-3, query and value): 4.7 and 37.7 million; Dettmers et al. adapt every linear layer.
@pytest.mark.parametrize(("rank", "millions"), [(1.0, 4.7), (8.0, 37.7)])
def test_adapters_of_gpt3_are_counted_as_published(rank, millions):
    given = {**fk.architecture("gpt3_175b"), "lora_rank": rank, "lora_matrices": "query_value"}
    assert fk.evaluate(given, "adapter_parameters")["adapter_parameters"] / 1e6 == pytest.approx(millions, abs=0.05)


def test_gpt3_with_adapters_takes_its_16_bit_weights_and_little_more():
    """Hu et al. 2021, section 4.2: 350 GB in place of 1.2 TB."""
    given = scenario("gpt3_175b", lora_rank=4.0, lora_matrices="query_value")
    assert fk.evaluate(given, "memory_weights_bytes")["memory_weights_bytes"] == pytest.approx(350e9, rel=0.01)


# torchtune README at 0031bfb, "Memory and training speed": peak of tensors, batch 2 of 2,048 packed tokens.
@pytest.mark.parametrize(
    ("model", "layout", "printed"),
    [
        ("llama3_8b", {"lora_rank": 8.0}, 16.2),
        ("llama3_8b", {"lora_rank": 8.0, "recompute": "none"}, 30.3),
        ("llama3_8b", {"lora_rank": 8.0, "weight_bits": 4.0}, 7.4),
        ("llama3_70b", {"lora_rank": 16.0, "accelerators": 8.0, "zero_stage": 3.0}, 27.6),
    ],
)
def test_memory_of_torchtune_equals_its_published_peaks(model, layout, printed):
    found = fk.evaluate(scenario(model, **layout), PARTS)
    assert sum(found.values()) / GIB == pytest.approx(printed, rel=0.1)


# QLoRA's abstract: 65B on one GPU of 48 GB. Unsloth: Llama 3.3 70B below 48 GB. axolotl's examples/llama-3: 70B on two
# GPUs at 21 GB each. In 16 bits the weights of 70B alone are 141 GB.
@pytest.mark.parametrize(
    ("layout", "fits"),
    [
        ({"weight_bits": 4.0, "accelerator": "rtx_a6000"}, True),
        ({"weight_bits": 4.0, "accelerator": "rtx_4090"}, False),
        ({"weight_bits": 4.0, "accelerators": 2.0, "zero_stage": 3.0, "accelerator": "rtx_4090"}, True),
        ({"weight_bits": 4.0, "accelerator": "a100_sxm_80gb"}, True),
        ({"weight_bits": 16.0, "accelerator": "a100_sxm_80gb"}, False),
    ],
)
def test_a_fine_tune_of_70b_fits_the_published_hardware(layout, fits):
    given = scenario("llama3_70b", lora_rank=16.0, micro_batch_size=1.0, **{"sequence_length": 512.0, **layout})
    assert (fk.evaluate(given, "fits")["fits"] > 0.0) == fits


# Unsloth, "Unsloth Benchmarks" (docs.unsloth.ai, read 2026-11): the longest context that trains, by memory of the GPU;
# QLoRA of rank 32 on all linear layers, batch 1. Unsloth keeps inputs of layers on the host, the loss is in chunks.
UNSLOTH = {"llama3_8b": {8: 2972, 12: 21848, 16: 40724, 24: 78475, 40: 153977, 48: 191728, 80: 342733}} | {
    "llama3_70b": {48: 12106, 80: 89389}
}
HUGGING_FACE = {"llama3_8b": {12: 932, 16: 2551, 24: 5789, 40: 12264, 48: 15502, 80: 28454}, "llama3_70b": {80: 6916}}


def longest(table, **layout):
    for model, limits in table.items():
        for gib, context in limits.items():
            given = scenario(model, micro_batch_size=1.0, lora_rank=32.0, weight_bits=4.0, **layout)
            yield gib, given | {"sequence_length": float(context), "accelerator_memory_bytes": gib * GIB}


def test_the_longest_context_of_unsloth_fits_and_twice_of_it_does_not():
    for gib, given in longest(UNSLOTH, activation_offload_share=1.0):
        needed, fits = fk.evaluate(given, ["memory_needed_bytes", "fits"]).values()
        assert needed / (gib * GIB) == pytest.approx(0.96, abs=0.09)
        assert fits > 0.0
        if gib > 16:
            assert fk.evaluate(given | {"sequence_length": 2.0 * given["sequence_length"]}, "fits") == {"fits": 0.0}


def test_the_longest_context_of_hugging_face_leaves_room_for_its_allocator():
    """A quarter more than is needed: 308 runs of Hugging Face Trainer by nvidia-smi against peaks of tensors."""
    for gib, given in longest(HUGGING_FACE, whole_logits=1.0, fused_kernels=0.0, chunked_loss=0.0):
        needed = fk.evaluate(given, "memory_needed_bytes")["memory_needed_bytes"]
        assert 1.25 * needed / (gib * GIB) == pytest.approx(1.0, abs=0.04)


def test_search_answers_whether_a_fine_tune_fits():
    cluster = {"accelerators": 2, "accelerator": "rtx_4090", "sequence_length": 512, "lora_rank": 16, "chunked_loss": 1}
    found = fk.search("llama3_70b", cluster | {"weight_bits": 4}, global_batch_size=8).collect()
    assert found.height > 0
    assert fk.search("llama3_70b", cluster, global_batch_size=8).collect().is_empty()


# 13 billion weights in 40 layers of 5,120 (GPT-2 style), batch 4 of 1,024 tokens, as ZeRO-Offload measures.
THIRTEEN = {
    "layers": 40.0,
    "hidden_size": 5120.0,
    "attention_heads": 32.0,
    "ffn_size": 20480.0,
    "gated_ffn": 0.0,
    "tied_embeddings": 1.0,
    "vocabulary_size": 50304.0,
}


@pytest.mark.parametrize(("share", "fits"), [(1.0, True), (0.0, False)])
def test_thirteen_billion_weights_train_on_one_v100_with_the_state_on_the_host(share, fits):
    """Ren et al. 2021, abstract and figure 7: models of 13 billion parameters on one V100 of 32 GB."""
    layout = {"accelerator": "v100_sxm", "sequence_length": 1024.0, "precision": "fp16", "accelerators": 1.0}
    layout |= {"gradient_bytes_per_parameter": 2.0, "offloaded_optimizer_share": share, "global_batch_size": 1.0}
    found = fk.evaluate({**FINE_TUNE, **THIRTEEN, **layout, "micro_batch_size": 1.0}, ["fits", "host_peak_bytes"])
    assert (found["fits"] > 0.0) == fits
    assert found["host_peak_bytes"] == pytest.approx(share * 14 * 12.85e9, rel=0.01)


def test_a_trillion_weights_fine_tune_on_one_node_of_16_v100_with_drives():
    """Rajbhandari et al. 2021, table 1 and section 8.2: 1T on one DGX-2, whose drives hold 28 TB."""
    trillion = {**THIRTEEN, "layers": 128.0, "hidden_size": 25600.0, "attention_heads": 256.0, "ffn_size": 102400.0}
    layout = {"accelerators": 16.0, "accelerator": "v100_sxm", "zero_stage": 3.0, "sequence_length": 1024.0}
    layout |= {"offloaded_optimizer_share": 1.0, "offloaded_weights_share": 1.0, "activation_offload_share": 1.0}
    layout |= {"precision": "fp16", "micro_batch_size": 1.0, "global_batch_size": 16.0, "tensor_parallel": 4.0}
    found = fk.evaluate({**FINE_TUNE, **trillion, **layout}, ["parameters", "fits", "host_peak_bytes"])
    assert found["parameters"] == pytest.approx(1.0e12, rel=0.02)
    assert found["fits"] > 0.0
    assert 16 * found["host_peak_bytes"] < 28e12
    whole = {"offloaded_optimizer_share": 0.0, "offloaded_weights_share": 0.0}
    assert fk.evaluate({**FINE_TUNE, **trillion, **layout, **whole}, "fits") == {"fits": 0.0}


def test_frozen_weights_save_a_third_of_the_products():
    full, adapted = (fk.evaluate(scenario("llama3_8b", lora_rank=rank), "step_gemm_s") for rank in (0.0, 16.0))
    assert adapted["step_gemm_s"] / full["step_gemm_s"] == pytest.approx(3 / 4, abs=0.01)


def test_a_step_of_mlperfs_fine_tune_on_eight_h200_is_met():
    """MLPerf v5.0, llama2_70b_lora: 3.18 s a step in two submissions, frozen weights in 8 bits."""
    layout = {"accelerator": "h200_sxm", "accelerators": 8.0, "tensor_parallel": 2.0, "sequence_length": 8192.0}
    layout |= {"lora_rank": 16.0, "lora_matrices": "attention", "weight_bits": 8.0, "precision": "fp8"}
    shape = fk.architecture("llama2_70b")
    found = fk.evaluate({**shape, **layout, "global_batch_size": 8.0, "micro_batch_size": 1.0}, ["step_s", "fits"])
    assert found["step_s"] == pytest.approx(3.18, rel=0.1)
    assert found["fits"] == 1.0
