"""Fine-tuning with frozen weights: low-rank adapters (LoRA) and quantized weights (QLoRA)."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import equal, where

QUANTIZATION_BITS = 0.127
"""Bits that the constants of a block of weights add to each weight where the constants are quantized too."""

ADAPTER_BYTES = 5.0
"""Bytes for each input and output of a matrix with an adapter: 2 for an input, 8 for an output."""
DROPPED_BYTES = 2.0
"""Bytes for each of both where a part of the inputs is dropped: 4 for an input, which is read and written once more."""


def adapter_parameters(
    lora_rank: Numeric,
    lora_matrices: Numeric,
    layers: Numeric,
    moe_layers: Numeric,
    hidden_size: Numeric,
    attention_heads: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    value_head_size: Numeric,
    ffn_size: Numeric,
    expert_ffn_size: Numeric,
    experts: Numeric,
    shared_experts: Numeric,
    gated_ffn: Numeric,
) -> Numeric:
    r"""Weights of the low-rank adapters beside the matrices of all layers.

    .. math::
        N_A = r \left\{L \left[h + a d + h + a_{kv} d_v + s \left(h + a_{kv} d + a d_v + h\right)\right]
        + u (2 + g) \left[(L - L_e)(h + f) + L_e (E + E_s)(h + f_e)\right]\right\}

    Notes
    -----
    An adapter of a matrix has one row and one column of it for each rank. Query and value always have one, :math:`s`
    counts key and output, :math:`u` the feed-forward blocks. Under multi-head latent attention it is an estimate.

    References
    ----------
    .. [hu2021] section 4.1 and table 4: 37.7 million at rank 8 of query and value in GPT-3
    .. [dettmers2023] section 4: adapters on all linear layers

    Examples
    --------
    >>> gpt3 = (96.0, 0.0, 12288.0, 96.0, 96.0, 128.0, 128.0, 49152.0, 49152.0, 0.0, 0.0, 0.0)
    >>> adapter_parameters(8.0, "query_value", *gpt3)
    37748736.0
    """
    heads = attention_heads, kv_heads, head_size, value_head_size
    blocks = layers, moe_layers, ffn_size, expert_ffn_size, experts + shared_experts
    return lora_rank * _sides(lora_matrices, hidden_size, heads, blocks, gated_ffn)


def _sides(
    lora_matrices: Numeric,
    hidden_size: Numeric,
    heads: tuple[Numeric, Numeric, Numeric, Numeric],
    blocks: tuple[Numeric, Numeric, Numeric, Numeric, Numeric],
    gated_ffn: Numeric,
) -> Numeric:
    """Return the inputs and outputs of the matrices with adapters in all layers, with as many experts as counted."""
    attention_heads, kv_heads, head_size, value_head_size = heads
    layers, moe_layers, ffn_size, expert_ffn_size, experts = blocks
    query_value = 2.0 * hidden_size + attention_heads * head_size + kv_heads * value_head_size
    key_output = 2.0 * hidden_size + kv_heads * head_size + attention_heads * value_head_size
    both = where(equal(lora_matrices, "query_value"), 0.0, 1.0)
    ffn_matrices = where(equal(lora_matrices, "all"), 2.0 + gated_ffn, 0.0)
    dense = (layers - moe_layers) * (hidden_size + ffn_size)
    sparse = moe_layers * experts * (hidden_size + expert_ffn_size)
    return layers * (query_value + both * key_output) + ffn_matrices * (dense + sparse)


def adapter_bytes(
    lora_rank: Numeric,
    lora_matrices: Numeric,
    layers: Numeric,
    moe_layers: Numeric,
    hidden_size: Numeric,
    attention_heads: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    value_head_size: Numeric,
    ffn_size: Numeric,
    expert_ffn_size: Numeric,
    experts_per_token: Numeric,
    shared_experts: Numeric,
    gated_ffn: Numeric,
    adapter_dropout: Numeric,
) -> Numeric:
    r"""Bytes that adapters read and write for one token in a mean layer, forward.

    .. math:: (5 + 2 \delta_A) \sum_i (n_i + m_i) \quad (r > 0)

    Notes
    -----
    The product of an adapter reads :math:`n_i` inputs in 16 bits, two bytes each; one that drops a part of them reads
    and writes them before, four more. It writes :math:`m_i` outputs, and their sum with those of the matrix reads both
    and writes, eight bytes each. Its products are small beside those of the matrix. Inputs and outputs are about as
    many.

    References
    ----------
    .. [hu2021] section 4.1

    Examples
    --------
    Attention of Llama 2 70B, and no adapters:

    >>> shape = (80.0, 0.0, 8192.0, 64.0, 8.0, 128.0, 128.0, 28672.0, 28672.0, 0.0, 0.0, 1.0, 1.0)
    >>> adapter_bytes(16.0, "attention", *shape), adapter_bytes(0.0, "attention", *shape)
    (358400.0, 0.0)
    """
    heads = attention_heads, kv_heads, head_size, value_head_size
    blocks = layers, moe_layers, ffn_size, expert_ffn_size, experts_per_token + shared_experts
    widths = _sides(lora_matrices, hidden_size, heads, blocks, gated_ffn) / layers
    return where(lora_rank > 0.0, (ADAPTER_BYTES + DROPPED_BYTES * adapter_dropout) * widths, 0.0)


def trained_share(lora_rank: Numeric, adapter_parameters: Numeric, parameters: Numeric) -> Numeric:
    r"""Weights that are trained over the weights of the model.

    .. math:: \tau = N_A / N \quad (r > 0), \qquad 1 \quad \text{otherwise}

    References
    ----------
    .. [hu2021] section 4.1

    Examples
    --------
    >>> trained_share(16.0, 1.4e8, 7e10), trained_share(0.0, 0.0, 7e10)
    (0.002, 1.0)
    """
    return where(lora_rank > 0.0, adapter_parameters / parameters, 1.0)


def weight_bytes_per_parameter(weight_bits: Numeric) -> Numeric:
    r"""Bytes of one stored weight.

    .. math:: b_w = \tfrac18 \left(q + 0.127 [q < 8]\right)

    Notes
    -----
    Of 4-bit NormalFloat each 64 weights share a constant; quantized to 8 bits in blocks of 256 constants it takes
    :math:`8 / 64 + 32 / (64 \cdot 256)` bits a weight.

    References
    ----------
    .. [dettmers2023] section 3, double quantization: 0.127 bits

    Examples
    --------
    >>> weight_bytes_per_parameter(16.0), round(weight_bytes_per_parameter(4.0), 3)
    (2.0, 0.516)
    """
    return (weight_bits + where(weight_bits < 8.0, QUANTIZATION_BITS, 0.0)) / 8.0


def offloaded_gradients_share(offloaded_optimizer_share: Numeric) -> Numeric:
    r"""Default share of the gradients kept in host memory.

    .. math:: \omega_g = \omega_o

    Notes
    -----
    Who updates on the host sends each gradient there as soon as it is summed.

    References
    ----------
    .. [ren2021] section 3: gradients leave for the processor as they are made

    Examples
    --------
    >>> offloaded_gradients_share(1.0)
    1.0
    """
    return offloaded_optimizer_share
