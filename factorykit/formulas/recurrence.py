"""Layers that keep a state instead of attending to all that came before: gated delta net, Mamba, linear attention."""

from __future__ import annotations

from factorykit.formulas.functions import where
from factorykit.typing import Numeric


def attention_layers(layers: Numeric, linear_attention_layers: Numeric) -> Numeric:
    r"""Layers that attend, where a model does not say otherwise: those that keep no state.

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
    r"""Feed-forward blocks where a model does not say otherwise: one a layer.

    .. math:: L_f = L

    Examples
    --------
    >>> ffn_layers(48.0)
    48.0
    """
    return layers


def linear_value_heads(linear_key_heads: Numeric) -> Numeric:
    r"""Value heads of a state where a model does not say otherwise: one for each key head.

    .. math:: a_v = a_k

    Examples
    --------
    >>> linear_value_heads(16.0)
    16.0
    """
    return linear_key_heads


def linear_value_size(linear_key_size: Numeric) -> Numeric:
    r"""Width of a value of a state where a model does not say otherwise: that of a key.

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
    step_rank: Numeric,
) -> Numeric:
    r"""Weights of the matrices and the convolution of one block that keeps a state.

    .. math::
        N_{lin} = h (2 K + 2 V + g_r a_v) + c_w (2 K + V) + V h, \qquad
        N_{lin} = 2 h V + V (2 r_s + 3 d_k + c_w) + V h \quad (r_s > 0), \qquad K = a_k d_k, \quad V = a_v d_v

    Notes
    -----
    One shape for three families: queries and keys of gated delta net are what Mamba 2 calls C and B, key heads its
    groups, the width of a key its state size; values with their gate are its inner width, twice. A step rank stands
    for Mamba 1, whose keys and step come from the inner width and whose decay is a matrix. Vectors, such as norms and
    biases of the step, are left out (3e-5 of Qwen3-Next).

    References
    ----------
    .. [megatronlm] megatron/training/training.py, gated delta net and mamba_layer_flops

    Examples
    --------
    A layer of Qwen3-Next 80B, and one of Jamba:

    >>> linear_attention_parameters(2048.0, 16.0, 128.0, 32.0, 128.0, 4.0, 2.0, 0.0)
    33718272.0
    >>> linear_attention_parameters(4096.0, 1.0, 16.0, 1.0, 8192.0, 4.0, 0.0, 256.0)
    105283584.0
    """
    keys, values = linear_key_heads * linear_key_size, linear_value_heads * linear_value_size
    steering = linear_gates * linear_value_heads
    from_stream = hidden_size * (2.0 * keys + 2.0 * values + steering) + convolution_width * (2.0 * keys + values)
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
