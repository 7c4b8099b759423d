"""The parts of a step against counting: identities that no refit of a constant moves."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log2, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorykit.formulas import architecture, arguments, finetuning, parallelism, recurrence
from factorykit.formulas.network import all_to_all_s
from factorykit.formulas.step import communication, interval, layer, parts, rates, whole

LINKS = {
    "scale_up_domain": 8.0,
    "scale_up_bytes_per_s": 4.5e11,
    "scale_out_bytes_per_s": 5e10,
    **dict.fromkeys(("tensor_up_share", "context_up_share", "ring_up_share", "exchange_up_share"), 1.0),
    "torus_axes": 0.0,
    "sustained_out_share": 1.0,
    "ring_out_share": 1.0,
    "exchange_out_share": 1.0,
    "in_network_reduction": 0.0,
    **dict.fromkeys(("collective_sum_share", "collective_out_share"), 0.9),
    "scale_up_latency_s": 0.0,
    "scale_out_latency_s": 0.0,
}
ALONE = {"scale_up_domain": 1.0, "scale_up_bytes_per_s": 1e15}
"""Every rank in a domain of its own: all that is sent goes over the network."""
BASE: dict[str, Any] = LINKS | {
    "micro_batch_tokens": 8192.0,
    "sequence_length": 8192.0,
    "attended_tokens": 4096.0,
    "hidden_size": 4096.0,
    "ffn_size": 16384.0,
    "expert_ffn_size": 0.0,
    "gated_ffn": 1.0,
    "attention_heads": 32.0,
    "kv_heads": 8.0,
    "head_size": 128.0,
    "rope_head_size": 0.0,
    "value_head_size": 128.0,
    "index_heads": 0.0,
    "index_head_size": 0.0,
    "gated_attention": 0.0,
    "layers": 80.0,
    "attention_layers": 80.0,
    "linear_attention_layers": 0.0,
    "ffn_layers": 80.0,
    "layer_state_s": 0.0,
    "index_parameters": 0.0,
    **dict.fromkeys(("linear_key_heads", "linear_key_size", "linear_value_heads", "linear_value_size"), 0.0),
    "linear_attention_parameters": 0.0,
    "moe_layers": 0.0,
    "mtp_layers": 0.0,
    "expert_biases": 0.0,
    "experts": 0.0,
    "experts_per_token": 0.0,
    "shared_experts": 0.0,
    "attention_parameters": 1e8,
    "ffn_parameters": 2e8,
    "shared_parameters": 0.0,
    "routed_parameters": 0.0,
    "embedding_parameters": 5e8,
    "vocabulary_size": 128256.0,
    "stage_layers": 8.0,
    "stage_sharded_parameters": 1e9,
    "stage_replicated_parameters": 1e6,
    "stage_expert_parameters": 0.0,
    "gradient_bytes_per_parameter": 4.0,
    "weight_bits": 16.0,
    "adapter_dropout": 0.0,
    "weight_bytes_per_parameter": 2.0,
    "optimizer_bytes_per_parameter": 12.0,
    "trained_share": 1.0,
    "offloaded_optimizer_share": 0.0,
    "offloaded_weights_share": 0.0,
    "host_link_bytes_per_s": 2.5e10,
    "host_updates_per_s": 4.9e8,
    "zero_stage": 1.0,
    "tensor_parallel": 1.0,
    "pipeline_parallel": 1.0,
    "virtual_stages": 1.0,
    "context_parallel": 1.0,
    "data_parallel": 64.0,
    "expert_parallel": 1.0,
    "expert_data_parallel": 1.0,
    "recompute": "none",
    "recompute_share": 0.0,
    "flash_attention": 1.0,
    "precision": "bf16",
    "kept_rows_share": 1.0,
    "software_year": 2025.0,
    "software_gain_per_year": 0.0,
    "maturity_years": 1.5,
    "maturity": 1.0,
    "young_attention_share": 1.0,
    "power_limit_share": 1.0,
    "power_exponent": 0.4,
    "context_exposed_share": 1.0,
    "expert_exposed_share": 1.0,
    "gradient_overlap_share": 0.5,
    "gather_contention_share": 0.0,
    "peak_16bit_flop_per_s": 1e15,
    "attention_share": 0.5,
    "gemm_ceiling_16bit": 1.0,
    "exponentials_per_s": 1e300,
    "gemm_flop_per_s": 6e14,
    "gemm_16bit_flop_per_s": 6e14,
    "gemm_traffic_factor": 1.0,
    "gemm_wave_outputs": 0.0,
    "attention_ramp_tokens": 0.0,
    "elementwise_factor": 1.0,
    "score_bytes": 25.0,
    "expert_tensor_parallel": 1.0,
    "expert_imbalance": 1.0,
    "dispatch_masks": 0.0,
    "grouped_tile_tokens": 0.0,
    "matrix_tile": 128.0,
    "adapter_bytes": 0.0,
    "native_attention": 0.0,
    "message_s": 0.0,
    "tensorwise_shards": 0.0,
    "shard_part_s": 0.0,
    "narrow_rate_share": 1.0,
    "expert_exposed_across": 1.0,
    "dispatched_once": 1.0,
    "expert_overlap": 0.0,
    "interleaved_overlap": 0.0,
    "expert_exposed_overlapped": 0.25,
    "schedule": "1f1b",
    "reduced_bytes_per_parameter": 2.0,
    "routing_wait_s": 0.0,
    "accelerators": 8.0,
    "micro_batches": 3.0,
    "tensor_overlap": 1.0,
    "tensor_exposed_plain": 1.0,
    "tensor_exposed_overlapped": 0.5,
    "gradient_overlap": 1.0,
    "gather_overlap_share": 0.5,
    "misaligned_factor": 4.0,
    "fused_kernels": 1.0,
    "eager_traffic_factor": 2.0,
    "eager_launch_factor": 2.0,
    "cuda_graphs": 0.0,
    "grouped_experts": 1.0,
    "collective_skew_s": 0.0,
    "routing_launch_s": 0.0,
    "expert_launch_s": 0.0,
    "vendor_kernels": 0.0,
    "maker_gain": 1.25,
    "sustained_memory_bytes_per_s": 2.5e12,
    "newton_schulz_steps": 0.0,
}


MEAN: dict[str, Callable[..., Any]] = {
    "layer_blocks": architecture.layer_blocks,
    "optimizer_shards": parallelism.optimizer_shards,
    "mixing_parameters": architecture.mixing_parameters,
    "layer_dense_parameters": architecture.layer_dense_parameters,
    "mixing_bytes": recurrence.mixing_bytes,
    "mixing_outputs": recurrence.mixing_outputs,
}
"""Quantities of a mean layer, computed from the base."""


def of(formula: Callable[..., Any], **changes: Any) -> Any:
    """Return the result of a formula for the base with some values changed."""
    values = BASE | changes
    return formula(*[values[name] if name in values else of(MEAN[name], **changes) for name in arguments(formula)])


@given(st.floats(0.0, 1.0))
@pytest.mark.parametrize("formula", [communication.gradient_s, whole.optimizer_s])
def test_split_and_repeated_weights_are_exchanged_and_updated_equally(formula, split: float) -> None:
    """A weight is a weight, whether tensor parallelism splits it or not."""
    both = {"stage_sharded_parameters": split * 1e9, "stage_replicated_parameters": (1.0 - split) * 1e9}
    together = of(formula, stage_sharded_parameters=1e9, stage_replicated_parameters=0.0)
    assert of(formula, **both) == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize("copies", [1.0, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("formula", [communication.gradient_s, whole.optimizer_s])
def test_experts_are_exchanged_and_updated_over_their_own_copies(formula, copies: float) -> None:
    """Experts with as many copies as other weights cost the same."""
    none = {"stage_sharded_parameters": 0.0, "stage_replicated_parameters": 0.0}
    experts = of(formula, **none | ALONE, stage_expert_parameters=1e9, expert_data_parallel=copies)
    dense = of(formula, **ALONE, stage_sharded_parameters=1e9, stage_replicated_parameters=0.0, data_parallel=copies)
    assert experts == pytest.approx(dense, rel=1e-12)


@pytest.mark.parametrize(("stage", "sent"), [(0.0, 4 + 4), (1.0, 4 + 2), (2.0, 3 * 4 + 2), (3.0, 0)])
def test_a_ring_sends_all_but_its_own_part(stage: float, sent: int) -> None:
    """Gradients reduced, and gradients or 16-bit weights gathered: (n - 1) / n of the bytes, each on one link.

    Ranks that keep no whole gradient reduce it in each of three micro-batches.
    """
    found = of(communication.gradient_s, **ALONE, zero_stage=stage, stage_replicated_parameters=0.0)
    assert found == pytest.approx(63 / 64 * sent * 1e9 / 5e10, rel=1e-12)


def test_every_bucket_of_gradients_waits_for_the_ring_or_a_tree() -> None:
    """Of 640 million gradients over 64 ranks ten buckets of 64 million go there and back: 63 steps each, or six."""
    exchange = ALONE | {"stage_sharded_parameters": 6.4e8, "stage_replicated_parameters": 0.0}

    def waited(**changes: Any) -> float:
        slow, quick = (
            of(communication.gradient_s, **exchange | changes | {"scale_out_latency_s": latency_s})
            for latency_s in (1.0, 0.0)
        )
        return slow - quick

    assert waited() == pytest.approx(20 * 63)
    assert waited(zero_stage=0.0) == pytest.approx(63 + 19 * log2(64))
    assert waited(scale_up_domain=16.0) == pytest.approx(20 * 3)
    assert waited(gradient_overlap=0.0) == pytest.approx(63)
    assert waited(scale_up_domain=64.0) == 0.0


def test_at_most_four_bytes_of_a_gradient_travel() -> None:
    assert of(communication.gradient_s, gradient_bytes_per_parameter=8.0) == of(communication.gradient_s)
    assert of(communication.gradient_s, gradient_bytes_per_parameter=2.0) < of(communication.gradient_s)


@pytest.mark.parametrize("experts", [0.0, 1e9])
def test_one_copy_of_the_weights_exchanges_nothing(experts: float) -> None:
    one = {"data_parallel": 1.0, "expert_data_parallel": 1.0, "stage_expert_parameters": experts}
    assert of(communication.gradient_s, **one) == 0.0
    assert of(communication.gather_s, **one, zero_stage=3.0) == 0.0


def test_ranks_together_update_every_weight_once() -> None:
    """Two reads and writes of state in 12 bytes, and 6 bytes of gradient and weight: 30 bytes a weight."""
    experts = {"stage_expert_parameters": 1e9, "data_parallel": 8.0, "context_parallel": 2.0, "expert_data_parallel": 4}
    whole_s = of(whole.optimizer_s, **experts, zero_stage=0.0)
    assert whole_s == pytest.approx(30 * (1e9 + 1e6 + 1e9) / 2.5e12, rel=1e-12)
    dense = 16 * of(whole.optimizer_s, **experts | {"stage_expert_parameters": 0.0})
    routed = 4 * (of(whole.optimizer_s, **experts) - dense / 16)
    assert dense + routed == pytest.approx(whole_s, rel=1e-9)


@pytest.mark.parametrize("formula", [communication.gradient_s, whole.optimizer_s])
def test_frozen_weights_are_neither_exchanged_nor_updated(formula) -> None:
    assert of(formula, trained_share=0.25) == pytest.approx(0.25 * of(formula), rel=1e-12)


def test_frozen_weights_in_four_bits_are_gathered_in_four_bits_and_scatter_nothing() -> None:
    full = of(communication.gather_s, **ALONE, zero_stage=3.0)
    frozen = of(communication.gather_s, **ALONE, zero_stage=3.0, trained_share=0.0, weight_bytes_per_parameter=0.5)
    assert frozen == pytest.approx(full * 2 * 0.5 / (2 * 2 + 2), rel=1e-12)


def test_weights_on_the_host_come_over_its_link_forward_and_backward() -> None:
    """A layer of 300 million weights in 16 bits over 25 GB/s; with ZeRO 3 each of 64 ranks brings its part."""
    whole = of(communication.gather_s, offloaded_weights_share=1.0, zero_stage=1.0)
    assert whole == pytest.approx(2 * 2 * 3e8 / 2.5e10, rel=1e-12)
    sharded = {"zero_stage": 3.0, **ALONE}
    part = of(communication.gather_s, **sharded, offloaded_weights_share=1.0) - of(communication.gather_s, **sharded)
    assert part == pytest.approx(whole / 64, rel=1e-9)


def test_a_host_updates_at_its_own_pace_behind_its_link() -> None:
    """Four bytes of gradient come and two of weight return, beside the processors' work; one of 64 ranks' shares."""
    share = (1e9 + 1e6) / 64
    found = of(whole.optimizer_s, offloaded_optimizer_share=1.0)
    assert found == pytest.approx(share * (6 / 2.5e10 + 1 / 4.9e8), rel=1e-12)


@pytest.mark.parametrize(("zero_stage", "seconds"), [(2.0, 0.0), (3.0, 3 * 2 * 3e8 * 63 / 64 / 5e10)])
def test_sharded_weights_are_gathered_twice_and_gradients_scattered(zero_stage: float, seconds: float) -> None:
    assert of(communication.gather_s, **ALONE, zero_stage=zero_stage) == pytest.approx(seconds, rel=1e-12)
    wide = of(communication.gather_s, **ALONE, zero_stage=zero_stage, reduced_bytes_per_parameter=4.0)
    assert wide == pytest.approx(4 / 3 * seconds, rel=1e-12)


def test_hybrid_sharding_gathers_within_a_group_and_sums_gradients_over_its_copies() -> None:
    """Eight copies of eight shards: a rank sends 7/8 of three passes, and 7/8 of its eighth of the gradients twice."""
    hybrid = ALONE | {"zero_stage": 3.0, "optimizer_shards": 8.0}
    assert of(communication.gather_s, **hybrid) == pytest.approx(3 * 2 * 3e8 * 7 / 8 / 5e10, rel=1e-12)
    summed = of(communication.gradient_s, **hybrid, stage_replicated_parameters=0.0, micro_batches=1.0)
    assert summed == pytest.approx(7 / 8 * 2 * 4 * 1e9 / 8 / 5e10, rel=1e-12)


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_experts_as_large_as_a_dense_layer_are_gathered_in_the_same_time(share: float) -> None:
    sharded = ALONE | {"zero_stage": 3.0, "expert_data_parallel": 64.0}
    dense = of(communication.gather_s, **sharded)
    experts = sharded | {"moe_layers": 80.0 * share, "routed_parameters": 5e7, "shared_parameters": 1.5e8}
    assert of(communication.gather_s, **experts) == pytest.approx(dense, rel=1e-12)
    eight = experts | {"routed_parameters": 4e8, "expert_parallel": 8.0}
    assert of(communication.gather_s, **eight) == pytest.approx(dense, rel=1e-12)


def test_a_token_that_visits_all_experts_works_as_in_a_dense_layer() -> None:
    square = {"ffn_size": 4096.0, "expert_ffn_size": 4096.0}
    experts = square | {"moe_layers": 80.0, "experts": 8.0, "experts_per_token": 8.0}
    dense = of(layer.layer_gemm_s, **square)
    assert of(layer.layer_gemm_s, **experts, routed_parameters=2e8) == pytest.approx(dense, rel=1e-12)
    halves = experts | {"routed_parameters": 1e8, "shared_parameters": 1e8}
    assert of(layer.layer_gemm_s, **halves) == pytest.approx(dense, rel=1e-12)
    twice = of(layer.layer_gemm_s, **experts | {"experts": 16.0}, routed_parameters=4e8, gemm_traffic_factor=0.0)
    assert twice == pytest.approx(2 * 8192 * 3e8 / 6e14, rel=1e-12)


def test_a_product_without_traffic_takes_two_flop_a_weight_and_token() -> None:
    found = of(layer.layer_gemm_s, gemm_traffic_factor=0.0, tensor_parallel=4.0)
    assert found == pytest.approx(2 * 8192 * 3e8 / 4 / 6e14, rel=1e-12)


def test_a_product_reads_and_writes_its_three_matrices() -> None:
    """Of rows x inner x width: inverse sizes summed; weights of two bytes and gradients of four are (2 + 4) / 3."""
    traffic = of(layer.layer_gemm_s) - of(layer.layer_gemm_s, gemm_traffic_factor=0.0)
    inverse = 2.0 / 8192 + 1 / 4096 + 1 / 16384
    assert traffic == pytest.approx(2 * 8192 * 3e8 * inverse / 2.5e12, rel=1e-9)


def test_fused_attention_computes_the_attended_part_and_unfused_the_square() -> None:
    scores = 8192 * 32 * 256
    assert of(layer.layer_attention_s) == pytest.approx(scores * 4096 / (1e15 * 0.5), rel=1e-12)
    assert of(layer.layer_attention_s, exponentials_per_s=1e12) - of(layer.layer_attention_s) == pytest.approx(
        8192 * 32 * 4096 * 0.5 / 1e12 * 2 / 3.5, rel=1e-9
    )
    square = of(layer.layer_attention_s, flash_attention=0.0)
    written = 25.0 * 8192 * 32 * 8192 / (3 * 2.5e12)
    assert square == pytest.approx(2 * scores * 8192 / 6e14 + written, rel=1e-12)


@pytest.mark.parametrize(("head_size", "factor"), [(80.0, 1.0), (84.0, 4.0), (88.0, 1.0), (96.0, 1.0), (100.0, 4.0)])
def test_heads_that_no_eight_divides_leave_the_matrix_units_unless_fused(head_size: float, factor: float) -> None:
    heads = {"head_size": head_size, "value_head_size": head_size, "score_bytes": 0.0}
    product = 2 * 8192 * 32 * 2 * head_size * 8192 / 6e14
    assert of(layer.layer_attention_s, **heads, flash_attention=0.0) == pytest.approx(factor * product, rel=1e-12)
    fused = of(layer.layer_attention_s, **heads)
    assert fused == of(layer.layer_attention_s, **heads, misaligned_factor=1.0)


@pytest.mark.parametrize("precision_flop_per_s", [6e14, 1.2e15])
def test_dispatch_masks_multiply_every_token_with_every_place_in_16_bits(precision_flop_per_s: float):
    experts = {"moe_layers": 80.0, "experts": 8.0, "experts_per_token": 2.0, "routed_parameters": 4e8}
    experts |= {"expert_imbalance": 1.25, "gemm_flop_per_s": precision_flop_per_s}
    plain, masked = (of(layer.layer_gemm_s, **experts, dispatch_masks=masks) for masks in (0.0, 1.0))
    places = 1.25 * 2 * 8192
    assert masked - plain == pytest.approx(2 * 2 * 8192 * places * 4096 / 6e14, rel=1e-9)


def test_a_tile_shared_by_two_experts_is_computed_for_both() -> None:
    """Eight experts of 2,048 tokens each fill 32 tiles of 512; seven boundaries and an end cost eight more."""
    experts = {"moe_layers": 80.0, "experts": 8.0, "experts_per_token": 2.0, "routed_parameters": 4e8}
    plain, tiled = (of(layer.layer_gemm_s, **experts, grouped_tile_tokens=tokens) for tokens in (0.0, 512.0))
    assert tiled - plain == pytest.approx(8 / 32 * 2 * 8192 * 2 / 8 * 4e8 / 6e14, rel=1e-9)


@pytest.mark.parametrize(("tile", "tiles"), [(64.0, 45), (128.0, 23), (256.0, 12)])
def test_a_tile_beyond_the_sides_of_a_product_takes_its_time(tile: float, tiles: int) -> None:
    """2,880 by 2,880: 45 tiles of 64, 23 of 128 or 12 of 256 on a side, both sides in the gradient of weights."""
    sides = {"hidden_size": 2880.0, "ffn_size": 2880.0, "gemm_traffic_factor": 0.0}
    side = tiles * tile / 2880
    found = of(layer.layer_gemm_s, **sides, matrix_tile=tile) / of(layer.layer_gemm_s, **sides, matrix_tile=1.0)
    assert found == pytest.approx((2 * side + side**2) / 3, rel=1e-9)


def test_few_bits_hold_their_rate_on_less_power_and_like_16_bits_on_as_much() -> None:
    chip = {"design_j_per_flop": 4e-13, "power_limit_share": 1.0, "full_power_j_per_flop": 8e-13, "power_exponent": 0.5}
    wide = of(rates.held_rate_share, **chip)
    assert of(rates.narrow_rate_share, **chip, narrow_power_share=1.0) == wide == pytest.approx(sqrt(0.5))
    assert of(rates.narrow_rate_share, **chip, narrow_power_share=0.5) == 1.0


def test_native_attention_does_not_need_to_mature() -> None:
    young = {"maturity": 0.0, "software_year": 2022.4, "young_attention_share": 0.25}
    ripe = of(layer.layer_attention_s, **young, native_attention=1.0)
    assert of(layer.layer_attention_s, **young) == pytest.approx(16.0 * ripe, rel=1e-9)


@pytest.mark.parametrize("rate", [1e12, 1e15])
def test_native_attention_takes_the_longer_of_products_and_exponentials(rate: float) -> None:
    products = of(layer.layer_attention_s)
    both = of(layer.layer_attention_s, exponentials_per_s=rate)
    longer = max(products, both - products)
    assert of(layer.layer_attention_s, exponentials_per_s=rate, native_attention=1.0) == pytest.approx(longer, rel=1e-6)


def test_the_fullest_rank_sets_the_pace_of_the_experts_alone() -> None:
    experts = {"moe_layers": 80.0, "experts": 8.0, "experts_per_token": 2.0, "routed_parameters": 4e8}
    experts["expert_ffn_size"] = 4096.0
    even, uneven = (
        of(layer.layer_gemm_s, **experts, gemm_traffic_factor=0.0, expert_imbalance=by) for by in (1.0, 1.5)
    )
    assert uneven - even == pytest.approx(0.5 * 2 * 8192 * 1e8 / 6e14, rel=1e-9)


def test_weights_of_few_bits_are_widened_once_a_pass() -> None:
    """Llama 2 7B on A100 of 40 GB beside 4-bit NormalFloat: 79 ms a sequence longer in two passes, LitGPT measured."""
    model = {"layer_dense_parameters": 6.48e9, "sustained_memory_bytes_per_s": 0.8 * 1.555e12}
    plain = of(layer.layer_gemm_s, **model)
    narrow = of(layer.layer_gemm_s, **model, weight_bits=4.0, weight_bytes_per_parameter=0.516)
    assert 2.0 * (narrow - plain) == pytest.approx(0.079, rel=0.12)
    assert of(layer.layer_gemm_s, **model, weight_bits=8.0, weight_bytes_per_parameter=1.0) == plain


def test_young_kernels_mature_on_the_chip_and_since_they_were_published() -> None:
    slow = of(layer.layer_attention_s, young_attention_share=0.25, maturity=0.0, software_year=2000.0)
    assert slow == pytest.approx(of(layer.layer_attention_s) / 0.25**2, rel=1e-12)
    aged = of(layer.layer_attention_s, young_attention_share=0.25, maturity=0.0, software_year=2100.0)
    assert aged == pytest.approx(of(layer.layer_attention_s) / 0.25, rel=1e-12)
    assert rates.maturity(2022.0, 2022.75, 1.5, 0.0) == 0.0
    early, late = (1.0 - rates.maturity(year, 2022.75, 1.5, 0.0) for year in (2024.0, 2025.5))
    assert early / late == pytest.approx(exp(1.0))
    assert rates.maturity(2022.0, 2022.75, 1.5, 1.0) == 1.0


def test_less_power_slows_attention_by_its_exponent() -> None:
    half = of(layer.layer_attention_s, power_limit_share=0.5)
    assert half == pytest.approx(of(layer.layer_attention_s) * 2.0**0.4, rel=1e-12)


@pytest.mark.parametrize(("precision", "cast"), [("bf16", 0), ("fp16", 0), ("fp8", 4), ("mxfp8", 4), ("nvfp4", 7)])
def test_elementwise_traffic_is_counted_tensor_by_tensor(precision: str, cast: int) -> None:
    """Bytes of a token: 20 a hidden unit, 6 one of query, key and value, 2 + 4 of the gated half; casts of 4 or 7.

    Other kernels than the vendor's read the tensors cast to fp8 once more, for their scale.
    """
    inputs = 2 * 4096 + 32 * 128 + 16384
    moved = 20 * 4096 + 6 * (32 + 2 * 8) * 128 + 6 * 16384 + cast * inputs
    found = of(layer.layer_elementwise_s, precision=precision, vendor_kernels=1.0)
    assert found == pytest.approx(8192 * moved / 2.5e12, rel=1e-12)
    others = of(layer.layer_elementwise_s, precision=precision, vendor_kernels=0.0)
    assert others - found == pytest.approx(8192 * (precision == "fp8") * 2 * inputs / 2.5e12, rel=1e-9, abs=1e-12)


def test_routing_adds_the_traffic_of_tokens_to_experts_and_back() -> None:
    experts = {"moe_layers": 80.0, "experts_per_token": 3.0, "shared_experts": 1.0, "expert_ffn_size": 4096.0}
    routed = of(layer.layer_elementwise_s, **experts) - of(layer.layer_elementwise_s)
    assert routed == pytest.approx(8192 * (20 * 3 + 4) * 4096 / 2.5e12, rel=1e-9)
    biased = of(layer.layer_elementwise_s, **experts, expert_biases=1.0) - of(layer.layer_elementwise_s)
    assert biased - routed == pytest.approx(8192 * 28 * 3 * 4096 / 2.5e12, rel=1e-9)


def test_adapters_add_the_traffic_of_their_dropout_and_sum() -> None:
    """Of query and value alone: 4,096 in and out, and 4,096 in and 1,024 out; only experts that a token meets count."""
    adapted = of(finetuning.adapter_bytes, lora_rank=16.0, lora_matrices="query_value", adapter_dropout=1.0)
    assert adapted == 7 * (4096 + 4096 + 4096 + 1024)
    experts = {"moe_layers": 80.0, "expert_ffn_size": 2048.0, "lora_rank": 16.0, "lora_matrices": "all"}
    few, more = (of(finetuning.adapter_bytes, **experts, experts_per_token=count) for count in (1.0, 2.0))
    assert more - few == 5 * 3 * (4096 + 2048)
    grown = of(layer.layer_elementwise_s, adapter_bytes=adapted) - of(layer.layer_elementwise_s)
    assert grown == pytest.approx(8192 * adapted / 2.5e12, rel=1e-9)


@pytest.mark.parametrize(("recompute", "share", "passes"), [("none", 0, 3.5), ("selective", 0, 4.5), ("full", 1, 4.5)])
def test_attention_runs_again_where_it_is_recomputed(recompute: str, share: float, passes: float) -> None:
    assert of(layer.attention_passes, recompute=recompute, recompute_share=share) == passes
    assert of(layer.attention_passes, recompute=recompute, recompute_share=share, flash_attention=0.0) == passes - 0.5


def test_full_recomputation_sends_six_all_reduces_and_none_four() -> None:
    eight = {"tensor_parallel": 8.0}
    four = of(communication.tensor_parallel_s, **eight)
    assert four == pytest.approx(0.5 * 4 * 2 * 7 / 8 * 2 * 8192 * 4096 / 4.5e11, rel=1e-12)
    assert of(communication.tensor_parallel_s, **eight, recompute_share=1.0) == pytest.approx(1.5 * four, rel=1e-12)
    assert of(communication.tensor_parallel_s, **eight, tensor_overlap=0.0) == pytest.approx(2.0 * four, rel=1e-12)


def test_one_rank_sends_nothing() -> None:
    for sent in (communication.tensor_parallel_s, communication.context_parallel_s, communication.stage_transfer_s):
        assert of(sent, scale_up_latency_s=1.0, scale_out_latency_s=1.0) == 0.0
    assert of(communication.expert_parallel_s, moe_layers=80.0, experts_per_token=8.0) == 0.0


@pytest.mark.parametrize(("tensor", "rate"), [(4.0, 4.5e11), (8.0, 5e10)])
def test_keys_and_values_go_once_around_the_ring_and_with_gradients_back(tensor: float, rate: float) -> None:
    """Two ranks of a ring fill the domain of eight with four ways of tensor parallel, and leave it with eight."""
    one_block = 4 * 8192 * 8 * 128 / tensor
    found = of(communication.context_parallel_s, context_parallel=2.0, tensor_parallel=tensor)
    assert found == pytest.approx(3 * one_block / rate, rel=1e-12)


@pytest.mark.parametrize("ranks", [2.0, 8.0, 64.0])
def test_one_expert_a_token_over_lone_ranks_is_four_all_to_alls(ranks: float) -> None:
    experts = {"moe_layers": 80.0, "experts_per_token": 1.0, "expert_parallel": ranks}
    one = all_to_all_s(2.0 * 8192 * 4096, ranks, 5e10, 0.0)
    assert of(communication.expert_parallel_s, **experts | ALONE) == pytest.approx(4.0 * one, rel=1e-12)
    assert of(communication.expert_parallel_s, **experts | ALONE, layers=160.0) == pytest.approx(2.0 * one, rel=1e-12)


@pytest.mark.parametrize(("once", "sent"), [(0.0, 8.0), (1.0, 4 * (1 - 0.75**8))])
def test_a_token_is_sent_to_each_of_its_experts_or_once_to_every_domain_it_visits(once: float, sent: float) -> None:
    """Eight experts of a token over four lone ranks, of which three are elsewhere."""
    experts = {"moe_layers": 80.0, "experts_per_token": 8.0, "expert_parallel": 4.0, "dispatched_once": once}
    expected = 4 * 2 * 8192 * 4096 * sent * 3 / 4 / 5e10
    assert of(communication.expert_parallel_s, **experts | ALONE) == pytest.approx(expected, rel=1e-12)


SENT = {
    communication.tensor_parallel_s: {"tensor_parallel": 16.0},
    communication.context_parallel_s: {"context_parallel": 16.0},
    communication.expert_parallel_s: {"expert_parallel": 16.0, "moe_layers": 80.0, "experts_per_token": 4.0},
    communication.gather_s: {"zero_stage": 3.0},
    communication.stage_transfer_s: {"pipeline_parallel": 4.0},
    communication.gradient_s: {},
}


@pytest.mark.parametrize("side", ["up", "out"])
@pytest.mark.parametrize("formula", SENT, ids=lambda formula: formula.__name__)
def test_half_of_a_link_is_a_link_of_half_the_rate(formula, side: str) -> None:
    rate = f"scale_{side}_bytes_per_s"
    shares = [name for name in LINKS if name.endswith(f"{side}_share")]
    half = of(formula, **SENT[formula], **dict.fromkeys(shares, 0.5))
    assert half == pytest.approx(of(formula, **SENT[formula], **{rate: LINKS[rate] / 2}), rel=1e-12)


IN_TURN = {"interleaved_overlap": 1.0, "virtual_stages": 2.0}


@pytest.mark.parametrize("beside", [{"expert_overlap": 1.0}, {"schedule": "dualpipe"}, IN_TURN])
def test_an_exchange_beside_compute_exposes_a_quarter(beside: dict[str, Any]) -> None:
    experts = {"moe_layers": 80.0, "experts_per_token": 4.0, "expert_parallel": 16.0}
    plain = of(communication.expert_parallel_s, **experts)
    assert of(communication.expert_parallel_s, **experts | beside) == pytest.approx(0.25 * plain, rel=1e-12)


@pytest.mark.parametrize("alone", [{"virtual_stages": 1.0}, {"expert_parallel": 8.0}])
def test_experts_overlap_in_turn_only_where_stages_interleave_over_several_domains(alone: dict[str, Any]) -> None:
    experts = {"moe_layers": 80.0, "experts_per_token": 4.0, "expert_parallel": 16.0} | IN_TURN | alone
    plain = of(communication.expert_parallel_s, **experts | {"interleaved_overlap": 0.0})
    assert of(communication.expert_parallel_s, **experts) == plain


def test_tokens_sent_one_by_one_take_a_message_each_where_processors_send_them() -> None:
    experts = {"moe_layers": 80.0, "experts_per_token": 1.0, "expert_parallel": 16.0, "message_s": 1e-6}
    together, apart = (of(communication.expert_parallel_s, **experts, dispatched_once=once) for once in (0.0, 1.0))
    assert apart - together == pytest.approx(4 * 8192 * 0.5 * 1e-6, rel=1e-9)
    hidden = {"dispatched_once": 1.0, "expert_overlap": 1.0}
    assert of(communication.expert_parallel_s, **experts | hidden) == pytest.approx(apart - 0.75 * together, rel=1e-9)


def test_experts_within_a_domain_leave_the_network_alone() -> None:
    experts = {"moe_layers": 80.0, "experts_per_token": 4.0, "expert_parallel": 8.0}
    inside = of(communication.expert_parallel_s, **experts)
    assert inside == of(communication.expert_parallel_s, **experts, scale_out_bytes_per_s=1.0)
    assert inside == pytest.approx(4 * 2 * 8192 * 4096 * 4 * 7 / 8 / 4.5e11, rel=1e-12)


def test_interleaving_sends_twice_as_often_and_hides_half() -> None:
    pipeline = {"pipeline_parallel": 4.0}
    plain = of(communication.stage_transfer_s, **pipeline)
    assert plain == pytest.approx(4 * 2 * 8192 * 4096 / 5e10, rel=1e-12)
    assert of(communication.stage_transfer_s, **pipeline, virtual_stages=2.0) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(("overlap", "stage_s", "exposed"), [(0.0, 9.0, 1.0), (1.0, 1.0, 0.5), (1.0, 9.0, 0.1)])
def test_gradients_hide_behind_the_last_micro_batch_but_for_a_tenth(overlap: float, stage_s: float, exposed: float):
    found = of(communication.gradient_exposed_s, gradient_overlap=overlap, stage_s=stage_s, gradient_s=1.0)
    assert found == pytest.approx(exposed, rel=1e-12)


def test_gradients_of_every_micro_batch_hide_behind_it() -> None:
    hidden = {"gradient_s": 3.0, "stage_s": 1.0}
    once, each = (of(communication.gradient_exposed_s, **hidden, zero_stage=stage) for stage in (1.0, 2.0))
    assert (once, each) == pytest.approx((3.0 - 0.5, 3.0 - 3 * 0.5), rel=1e-12)


def test_parts_of_tensors_sharded_one_by_one_grow_with_ranks_and_layers() -> None:
    parts = {"tensorwise_shards": 1.0, "shard_part_s": 1e-3, "gradient_s": 0.0, "stage_s": 0.0}
    for stage, shards in ((0.0, 0.0), (1.0, 64.0), (2.0, 64.0), (3.0, 0.0)):
        found = of(communication.gradient_exposed_s, **parts, zero_stage=stage, optimizer_shards=64.0, stage_layers=4.0)
        assert found == pytest.approx(4.0 * shards * 1e-3)


def test_all_chunks_but_the_last_hide_behind_the_micro_batches_of_the_next() -> None:
    chunks = {"gradient_s": 9.0, "stage_s": 1.0, "pipeline_parallel": 4.0, "virtual_stages": 3.0}
    assert of(communication.gradient_exposed_s, **chunks) == pytest.approx(9.0 - 0.5 * (1 + 3 * 2 / 3), rel=1e-12)


@pytest.mark.parametrize(("zero", "sent"), [(0.0, 0.5), (1.0, 1.0)])
def test_switches_that_add_send_gradients_once_unless_ranks_keep_shares(zero: float, sent: float) -> None:
    own = {**ALONE, "zero_stage": zero, "data_parallel": 8.0}
    ranks, added = (of(communication.gradient_s, **own, in_network_reduction=each) for each in (0.0, 1.0))
    assert added == pytest.approx(sent * ranks, rel=1e-12)


def test_logits_are_six_flop_a_weight_and_ten_bytes_a_word() -> None:
    once = 6 * 8192 * 5e8 / 6e14 + 10 * 8192 * 128256 / 2.5e12
    assert of(whole.logits_s) == pytest.approx(once, rel=1e-12)
    assert of(whole.logits_s, mtp_layers=1.0, tensor_parallel=4.0) == pytest.approx(2 * once / 4, rel=1e-12)


@pytest.mark.parametrize(
    ("stages", "layers", "shown"), [(1.0, 8.0, 5.0), (2.0, 16.0, 5.0), (2.0, 14.0, 3.0), (2.0, 9.0, 0)]
)
def test_a_lighter_last_stage_makes_up_for_the_logits(stages: float, layers: float, shown: float) -> None:
    pipeline = {"pipeline_parallel": stages, "layers": layers}
    assert of(whole.logits_exposed_s, **pipeline, logits_s=5.0, layer_s=1.0) == shown


STEP = {
    "micro_batches": 10.0,
    "stage_s": 2.0,
    "logits_exposed_s": 0.5,
    "pipeline_wait_s": 3.0,
    "gradient_exposed_s": 1.0,
    "optimizer_s": 1.0,
    "straggler_share": 0.01,
    "accelerators": 1.0,
    "layer_update_s": 0.25,
    "step_fixed_s": 4.0,
    "step_pace": 1.0,
}


@pytest.mark.parametrize("accelerators", [1.0, 2.0, 1024.0])
def test_a_step_is_its_work_slowed_by_stragglers_and_recurring_costs(accelerators: float) -> None:
    found = of(whole.inner_step_s, **STEP | {"accelerators": accelerators})
    assert found == pytest.approx(30.0 * (1 + 0.01 * log2(accelerators)) + 4.0, rel=1e-12)
    assert of(whole.inner_step_s, **STEP | {"accelerators": accelerators, "step_pace": 1.5}) == 1.5 * found


def test_eager_code_updates_layer_by_layer_and_a_graph_saves_at_most_that() -> None:
    """Eight layers of a quarter second."""
    eager = {"fused_kernels": 0.0}
    fused, plain, graphed = (
        of(whole.inner_step_s, **STEP | changes) for changes in ({}, eager, eager | {"cuda_graphs": 1.0})
    )
    assert plain - fused == pytest.approx(8 * 0.25)
    assert 0.0 < plain - graphed <= 8 * 0.25


def test_prediction_layers_are_spread_over_the_stages() -> None:
    four = {"pipeline_parallel": 4.0, "layer_s": 1.0, "stage_transfer_s": 0.5}
    assert of(whole.stage_s, **four, mtp_layers=2.0) == 8 + 2 / 4 + 0.5


def test_layers_run_once_a_micro_batch_and_prediction_layers_on_their_share_of_stages() -> None:
    assert of(parts.layer_runs, micro_batches=16.0, mtp_layers=2.0, pipeline_parallel=4.0) == 16 * (8 + 2 / 4)


def test_launching_and_computing_overlap_and_gathers_hide() -> None:
    quick = {"tensor_parallel_s": 0.5, "context_parallel_s": 0.25, "expert_parallel_s": 0.25, "layer_fixed_s": 0.0}
    plain = quick | {"layer_compute_s": 2.0, "launch_s": 4.0, "gather_s": 0.0}
    alone = (3**4 + 4**4) ** 0.25
    assert of(layer.layer_s, **plain) == pytest.approx(alone)
    assert of(layer.layer_s, **plain | {"gather_s": 6.0}) == pytest.approx(alone + 6.0 - 0.5 * alone)
    contended = plain | {"gather_s": 2.0, "gather_contention_share": 0.1}
    assert of(layer.layer_s, **contended) == pytest.approx(alone + 0.1 * 2.0)
    fixed = plain | {"layer_compute_s": 0.0, "layer_fixed_s": 3.0, "recompute_share": 1.0, "launch_s": 0.0}
    assert of(layer.layer_s, **fixed) == pytest.approx(1.0 + 4 / 3 * 3.0)


def test_half_of_the_layers_have_experts_that_wait_for_their_tokens_unless_a_graph_holds_them() -> None:
    quick = {"tensor_parallel_s": 0.0, "context_parallel_s": 0.0, "expert_parallel_s": 0.0, "layer_fixed_s": 0.0}
    waiting = quick | {"layer_compute_s": 2.0, "launch_s": 0.0, "gather_s": 0.0, "routing_wait_s": 1.0}
    routed = waiting | {"experts": 8.0, "moe_layers": 40.0}
    assert of(layer.layer_s, **waiting) == pytest.approx(2.0)
    assert of(layer.layer_s, **routed) == pytest.approx(2.0 + 0.5)
    assert 2.0 < of(layer.layer_s, **routed, cuda_graphs=1.0) < 2.0 + 0.1


def test_eager_pipelines_over_nodes_launch_collectives_apart() -> None:
    eager = {"layer_launch_s": 0.0, "collective_launch_s": 0.0, "collective_skew_s": 1.0, "fused_kernels": 0.0}
    eager |= {"tensor_parallel": 4.0, "pipeline_parallel": 2.0}
    assert of(layer.launch_s, **eager) == 0.0
    assert of(layer.launch_s, **eager, accelerators=16.0) == 4.0 * 4.0
    assert of(layer.launch_s, **eager | {"fused_kernels": 1.0}, accelerators=16.0) == 0.0


def test_a_last_wave_of_tiles_is_lost_of_each_product() -> None:
    """Rows, inner and outer width alike: three products of 4,096 squared outputs, of which a sixteenth are lost."""
    square = {"micro_batch_tokens": 4096.0, "ffn_size": 4096.0, "gemm_traffic_factor": 0.0}
    whole_waves = of(layer.layer_gemm_s, **square)
    assert of(layer.layer_gemm_s, **square, gemm_wave_outputs=2.0**20) == pytest.approx(17 / 16 * whole_waves)
    experts = square | {"moe_layers": 80.0, "experts": 8.0, "experts_per_token": 8.0, "expert_ffn_size": 4096.0}
    experts |= {"attention_parameters": 0.0, "routed_parameters": 8e8}
    grouped = of(layer.layer_gemm_s, **experts, gemm_wave_outputs=2.0**20)
    assert grouped == pytest.approx((1 + 1 / 128) * of(layer.layer_gemm_s, **experts))


def test_fused_attention_follows_what_the_matrix_units_of_a_chip_reach() -> None:
    whole, half = (of(layer.layer_attention_s, gemm_ceiling_16bit=ceiling) for ceiling in (0.8, 0.4))
    assert half == pytest.approx(2.0 * whole, rel=1e-12)


def test_fused_attention_is_half_as_fast_at_the_tokens_of_its_ramp() -> None:
    slow, quick = (of(layer.layer_attention_s, attention_ramp_tokens=tokens) for tokens in (4096.0, 0.0))
    assert slow == pytest.approx(2.0 * quick)


def test_launches_are_three_passes_and_four_with_recomputation() -> None:
    launched = {"layer_launch_s": 3.0, "collective_launch_s": 1.0}
    assert of(layer.launch_s, **launched) == 3.0
    assert of(layer.launch_s, **launched, recompute_share=1.0) == pytest.approx(4.0)
    assert of(layer.launch_s, **launched, tensor_parallel=8.0) == pytest.approx(3.0 + 4.0)
    later = of(layer.launch_s, **launched, software_gain_per_year=0.1, software_year=2030.0)
    assert later == pytest.approx(3.0 * exp(-0.4))


def test_deviations_add_in_squares_and_evidence_narrows_them() -> None:
    none = {name: 0.0 for name in arguments(interval.step_spread) if name.startswith("spread")}
    seen = none | {"scale_seen": 1024.0, "accelerators": 512.0, "spread_scale": 1.0, "step_s": 1.0}
    seen |= {name: 0.0 for name in arguments(interval.step_spread) if name not in seen} | {"unexplained_variance": 1.0}
    spread = seen | {"spread_model": 2.0, "spread_new_chip": 3.0, "spread_assumed": 6.0, "assumed_inputs": 1.0}
    assert of(interval.step_spread, **spread) == pytest.approx(7.0)
    assert of(interval.step_spread, **spread | {"evidence_families": 8.0}) == pytest.approx(sqrt(4 + 1 + 36))
    wider = spread | {"assumed_inputs": 0.0, "accelerators": 4096.0}
    assert of(interval.step_spread, **wider) == pytest.approx(sqrt(4 + 9 + 2**2))
    near = spread | {"unexplained_variance": 0.25, "spread_alone": 0.5}
    assert of(interval.step_spread, **near) == pytest.approx(sqrt(0.5**2 + 0.25 * 49))


def test_a_step_of_little_arithmetic_is_less_certain() -> None:
    none = dict.fromkeys(arguments(interval.step_spread), 0.0) | {"spread_overhead": 0.5, "step_s": 10.0}
    none |= {"scale_seen": 1.0, "accelerators": 1.0, "unexplained_variance": 1.0}
    busy = {"step_gemm_s": 5.0, "step_attention_s": 2.0, "step_elementwise_s": 1.0}
    assert of(interval.step_spread, **none | busy) == pytest.approx(0.5 * 0.2)
    experts = none | busy | {"spread_experts": 0.3, "spread_overhead": 0.0, "experts": 8.0}
    assert of(interval.step_spread, **experts) == pytest.approx(0.3)
    assert of(interval.step_spread, **experts | {"experts": 1.0}) == 0.0
    apart = (
        none | busy | {"spread_across": 0.4, "spread_overhead": 0.0, "tensor_parallel": 16.0, "scale_up_domain": 8.0}
    )
    assert of(interval.step_spread, **apart) == pytest.approx(0.4)
    assert of(interval.step_spread, **apart | {"scale_up_domain": 16.0}) == 0.0


def test_the_step_is_the_middle_of_its_interval() -> None:
    low, high = interval.step_low_s(10.0, 0.3), interval.step_high_s(10.0, 0.3)
    assert low * high == pytest.approx(100.0, rel=1e-12)
    assert high / low == pytest.approx(exp(2 * 1.6448536269514722 * 0.3), rel=1e-12)


def test_mature_software_reaches_its_ceiling_on_a_chip() -> None:
    rate = {"peak_flop_per_s": 2e15, "gemm_ceiling": 0.8, "gemm_ceiling_16bit": 0.8}
    rate |= {"held_rate_share": 0.5, "narrow_rate_share": 0.5}
    shares = {"gemm_share_16bit": 0.5, "gemm_share_8bit": 0.75, "gemm_share_block": 0.25}
    ripe = rate | shares | {"maturity": 1.0, "young_gemm_share": 0.5, "young_attention_share": 0.25}
    assert of(rates.gemm_16bit_flop_per_s, **ripe) == pytest.approx(1e15 * 0.8 * 0.5 * 0.5)
    for precision, share in (("bf16", 0.5), ("fp16", 0.5), ("fp8", 0.75), ("mxfp8", 0.25), ("nvfp4", 0.25)):
        assert of(rates.gemm_flop_per_s, **ripe, precision=precision) == pytest.approx(2e15 * 0.8 * 0.5 * share)
        young = of(rates.gemm_flop_per_s, **ripe | {"maturity": 0.0}, precision=precision)
        assert young == pytest.approx((0.5 if "16" in precision else 0.25) * 2e15 * 0.8 * 0.5 * share)
        makers = of(rates.gemm_flop_per_s, **ripe | {"vendor_kernels": 1.0}, precision=precision)
        assert makers == pytest.approx(1.25 * 2e15 * 0.8 * 0.5 * share)
