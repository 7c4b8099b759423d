"""Layers with a recurrent state: gated delta net, Mamba and linear attention."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import equal, where


def attention_layers(layers: Numeric, linear_attention_layers: Numeric) -> Numeric:
    r"""Default number of attention layers: those without a recurrent state.

    .. math:: L_a = L - L_r

    Notes
    -----
    Models whose layers do both at once (Falcon-H1), or whose feed-forward blocks are layers of their own (Nemotron-H),
    give ``attention_layers``.

    Examples
    --------
    >>> attention_layers(48.0, 36.0)
    12.0
    """
    return layers - linear_attention_layers


def ffn_layers(layers: Numeric) -> Numeric:
    r"""Default number of feed-forward blocks: one per layer.

    .. math:: L_f = L

    Examples
    --------
    >>> ffn_layers(48.0)
    48.0
    """
    return layers


def linear_value_heads(linear_key_heads: Numeric) -> Numeric:
    r"""Default number of value heads of a state: one for each key head.

    .. math:: a_v = a_k

    Examples
    --------
    >>> linear_value_heads(16.0)
    16.0
    """
    return linear_key_heads


def linear_value_size(linear_key_size: Numeric) -> Numeric:
    r"""Default width of a value of a state: that of a key.

    .. math:: d_v = d_k

    Examples
    --------
    >>> linear_value_size(128.0)
    128.0
    """
    return linear_key_size


def linear_attention_parameters(
    hidden_size: Numeric,
    linear_key_heads: Numeric,
    linear_key_size: Numeric,
    linear_value_heads: Numeric,
    linear_value_size: Numeric,
    convolution_width: Numeric,
    linear_gates: Numeric,
    linear_gate_rank: Numeric,
    step_rank: Numeric,
) -> Numeric:
    r"""Weights of the matrices and the convolution of one block that keeps a state.

    .. math::
        N_{lin} = h (2 K + V + g_r a_v) + G + c_w (2 K + V) + V h, \qquad
        G = h V \quad \text{or} \quad r_g (2 h + K + V) \quad (r_g > 0)
        N_{lin} = 2 h V + V (2 r_s + 3 d_k + c_w) + V h \quad (r_s > 0), \qquad K = a_k d_k, \quad V = a_v d_v

    Notes
    -----
    One shape for three families: queries and keys of gated delta net are C and B of Mamba 2, key heads its
    groups, the width of a key its state size; values with their gate are its inner width, twice. A step rank stands
    for Mamba 1, whose keys and step come from the inner width and whose decay is a matrix, a gate rank for Kimi delta
    attention, whose gate and decay of each key pass a narrow layer. A gated short convolution has a gate for each value
    and no keys. Vectors, such as norms and biases of the step, are left out (3e-5 of Qwen3-Next).

    References
    ----------
    .. [megatronlm] megatron/training/training.py, gated delta net and mamba_layer_flops

    Examples
    --------
    A layer of Qwen3-Next 80B, one of Kimi Linear, and one of Jamba:

    >>> linear_attention_parameters(2048.0, 16.0, 128.0, 32.0, 128.0, 4.0, 2.0, 0.0, 0.0)
    33718272.0
    >>> linear_attention_parameters(2304.0, 32.0, 128.0, 32.0, 128.0, 4.0, 1.0, 128.0, 0.0)
    39510016.0
    >>> linear_attention_parameters(4096.0, 1.0, 16.0, 1.0, 8192.0, 4.0, 0.0, 0.0, 256.0)
    105283584.0
    """
    keys, values = linear_key_heads * linear_key_size, linear_value_heads * linear_value_size
    steering = linear_gates * linear_value_heads
    narrow = linear_gate_rank * (2.0 * hidden_size + keys + values)
    gate = where(linear_gate_rank > 0.0, narrow, hidden_size * values)
    from_stream = hidden_size * (2.0 * keys + values + steering) + gate + convolution_width * (2.0 * keys + values)
    from_values = hidden_size * 2.0 * values + values * (2.0 * step_rank + 3.0 * linear_key_size + convolution_width)
    return where(step_rank > 0.0, from_values, from_stream) + values * hidden_size


def state_flop_per_token(
    linear_attention_layers: Numeric,
    linear_value_heads: Numeric,
    linear_key_size: Numeric,
    linear_value_size: Numeric,
    state_element_flop: Numeric,
) -> Numeric:
    r"""Work of one token on the states of all layers, forward and backward.

    .. math:: C_r = 3 L_r a_v d_k d_v c_r

    Notes
    -----
    Work of the recurrence. Kernels that take tokens in chunks do more of it, in matrix products.

    References
    ----------
    .. [megatronlm] megatron/training/training.py: 8 a forward and element for gated delta net, 7 for Mamba

    Examples
    --------
    >>> state_flop_per_token(36.0, 32.0, 128.0, 128.0, 8.0)
    452984832.0
    """
    state = linear_value_heads * linear_key_size * linear_value_size
    return 3.0 * linear_attention_layers * state * state_element_flop


def mixing_outputs(
    layers: Numeric,
    attention_layers: Numeric,
    linear_attention_layers: Numeric,
    attention_heads: Numeric,
    value_head_size: Numeric,
    linear_value_heads: Numeric,
    linear_value_size: Numeric,
) -> Numeric:
    r"""Input width of the output projection of attention and states, for a mean layer.

    .. math:: o = \left[L_a a d_v + L_r V\right] / L

    Examples
    --------
    >>> mixing_outputs(80.0, 80.0, 0.0, 64.0, 128.0, 0.0, 0.0)
    8192.0
    """
    attending = attention_layers * attention_heads * value_head_size
    return (attending + linear_attention_layers * linear_value_heads * linear_value_size) / layers


def mixing_bytes(
    layers: Numeric,
    attention_layers: Numeric,
    linear_attention_layers: Numeric,
    attention_heads: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    value_head_size: Numeric,
    gated_attention: Numeric,
    linear_key_heads: Numeric,
    linear_key_size: Numeric,
    linear_value_heads: Numeric,
    linear_value_size: Numeric,
) -> Numeric:
    r"""Bytes that a token moves around attention and states of a mean layer, forward and outside matrix products.

    .. math::
        b_{mix} = \frac{1}{L} \left\{L_a \left[6 (a + 2 a_{kv}) d + 6 g_a a d_v\right] + L_r (12 K + 14 V)\right\}

    Notes
    -----
    Numbers of 16 bits. Attention rotates and copies queries, keys and values, and multiplies by its gate. A state's
    queries, keys and values pass the convolution and are read once more; its output is written, and read with its gate
    and norm.

    Examples
    --------
    >>> mixing_bytes(80.0, 80.0, 0.0, 64.0, 8.0, 128.0, 128.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    61440.0
    """
    keys, values = linear_key_heads * linear_key_size, linear_value_heads * linear_value_size
    gate = gated_attention * attention_heads * value_head_size
    attending = 6.0 * ((attention_heads + 2.0 * kv_heads) * head_size + gate)
    return (attention_layers * attending + linear_attention_layers * (12.0 * keys + 14.0 * values)) / layers


def mixing_kept_bytes(
    layers: Numeric,
    attention_layers: Numeric,
    linear_attention_layers: Numeric,
    attention_heads: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    rope_head_size: Numeric,
    value_head_size: Numeric,
    q_lora_rank: Numeric,
    kv_lora_rank: Numeric,
    gated_attention: Numeric,
    linear_key_heads: Numeric,
    linear_key_size: Numeric,
    linear_value_heads: Numeric,
    linear_value_size: Numeric,
    recompute: Numeric,
) -> Numeric:
    r"""Bytes of a token that attention and states of a mean layer keep for the backward, without scores and inputs.

    .. math::
        k_{mix} = \frac{1}{L} \left\{L_a \left[2 a (d + d_r) + 2 a_{kv} (d + d_v) + 2 g_a a d_v\right]
        + L_r (8 K + 8 V)\right\}

    Notes
    -----
    Numbers of 16 bits: query, key, value and gate; of a state the input and output of its convolution, its gate and its
    output. States between chunks are computed again in the backward. Latent attention keeps keys of all heads, or the
    :math:`2 (r_q + r_{kv} + d_r)` bytes of its latents where modules are recomputed, its up-projections among them.

    References
    ----------
    .. [korthikanti2022] table 2
    .. [dao2024] section 6: states of chunks
    .. [deepseekv3] section 3.2.3: up-projections are computed again

    Examples
    --------
    >>> mixing_kept_bytes(80.0, 80.0, 0.0, 64.0, 8.0, 128.0, 0.0, 128.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "none")
    20480.0
    """
    keys, values = linear_key_heads * linear_key_size, linear_value_heads * linear_value_size
    heads_kept = where(kv_lora_rank > 0.0, attention_heads, kv_heads)
    query = attention_heads * (head_size + rope_head_size + gated_attention * value_head_size)
    attending = 2.0 * (query + heads_kept * (head_size + value_head_size))
    latents = 2.0 * (where(q_lora_rank > 0.0, q_lora_rank, query) + kv_lora_rank + rope_head_size)
    again = where(equal(recompute, "modules"), where(kv_lora_rank > 0.0, 1.0, 0.0), 0.0)
    attending = where(again > 0.0, latents, attending)
    return (attention_layers * attending + linear_attention_layers * 8.0 * (keys + values)) / layers


def layer_state_s(
    micro_batch_tokens: Numeric,
    layers: Numeric,
    linear_attention_layers: Numeric,
    linear_value_heads: Numeric,
    linear_key_size: Numeric,
    linear_value_size: Numeric,
    step_rank: Numeric,
    state_element_flop: Numeric,
    state_chunk_tokens: Numeric,
    tensor_parallel: Numeric,
    peak_16bit_flop_per_s: Numeric,
    exponentials_per_s: Numeric,
    state_share: Numeric,
) -> Numeric:
    r"""Time of one forward of one micro-batch through the states of a mean layer.

    .. math::
        \frac{T a_v}{t} \frac{L_r}{L} \left(\frac{c_r d_k d_v + 2 q (d_k + d_v)}{F_{16} \eta_r} + \frac{q}{E}\right),
        \qquad \frac{T}{t} \frac{L_r}{L} d_k V \left(\frac{c_r}{F_{16} \eta_r} + \frac{1}{E}\right) \quad (r_s > 0)

    Notes
    -----
    Kernels take :math:`q` tokens together: among them attention without its softmax, in matrix products, with one decay
    for each pair and head; between them the recurrence. The scan of Mamba 1 has a decay, and an exponential, for each
    element of the state. How much of the peak such kernels reach is far less known than for attention.

    References
    ----------
    .. [dao2024] section 6: chunks of a state
    .. [gu2023] section 3.3: scan

    Examples
    --------
    >>> shape, chip = (8192.0, 48.0, 36.0, 32.0, 128.0, 128.0, 0.0, 8.0), (128.0, 1.0, 9.89e14, 3.9e12)
    >>> round(layer_state_s(*shape, *chip, 0.25), 5)
    0.00016
    """
    scanned = step_rank > 0.0
    chunk = where(linear_key_size > 0.0, state_chunk_tokens, 0.0)
    elements = linear_key_size * linear_value_size
    together = where(scanned, 0.0, 2.0 * chunk * (linear_key_size + linear_value_size))
    work = (state_element_flop * elements + together) / (peak_16bit_flop_per_s * state_share)
    decays = where(scanned, elements, chunk) / exponentials_per_s
    tokens = micro_batch_tokens * linear_attention_layers / (layers * tensor_parallel)
    return tokens * linear_value_heads * (work + decays)
