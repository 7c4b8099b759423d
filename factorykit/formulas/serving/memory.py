"""Memory of a model replica: weights, key-value cache and the requests that fit."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import floor, minimum, where

STATE_BYTES = 4.0
"""Bytes of one element of a recurrent state, which engines keep in 32 bits."""


def kv_elements_per_token(
    attention_layers: Numeric,
    kv_heads: Numeric,
    head_size: Numeric,
    value_head_size: Numeric,
    kv_lora_rank: Numeric,
    rope_head_size: Numeric,
) -> Numeric:
    r"""Elements that one token adds to the key-value cache, all layers.

    .. math:: e = L_a \cdot \begin{cases} r_{kv} + d_r & r_{kv} > 0 \\ a_{kv} (d + d_v) & \text{otherwise} \end{cases}

    Notes
    -----
    Multi-head latent attention keeps one compressed vector and the rotary key for all heads.

    References
    ----------
    .. [deepseekv2] section 2.1, Table 1

    Examples
    --------
    Llama 3 70B and DeepSeek-V3:

    >>> kv_elements_per_token(80.0, 8.0, 128.0, 128.0, 0.0, 0.0)
    163840.0
    >>> kv_elements_per_token(61.0, 128.0, 128.0, 128.0, 512.0, 64.0)
    35136.0
    """
    return attention_layers * where(
        kv_lora_rank > 0.0, kv_lora_rank + rope_head_size, kv_heads * (head_size + value_head_size)
    )


def kv_bytes_per_token(kv_elements_per_token: Numeric, kv_bytes_per_element: Numeric) -> Numeric:
    r"""Bytes that one token adds to the key-value cache.

    .. math:: b_t = e\, b_e

    Examples
    --------
    >>> kv_bytes_per_token(163840.0, 2.0)
    327680.0
    """
    return kv_elements_per_token * kv_bytes_per_element


def state_bytes_per_request(
    linear_attention_layers: Numeric,
    linear_value_heads: Numeric,
    linear_key_size: Numeric,
    linear_value_size: Numeric,
) -> Numeric:
    r"""Bytes of the recurrent states of one request, whatever its length.

    .. math:: b_s = 4 L_r a_v d_k d_{v,r}

    Notes
    -----
    Kept in 32 bits. The window of the convolution is left out.

    Examples
    --------
    >>> state_bytes_per_request(45.0, 64.0, 128.0, 128.0)
    188743680.0
    """
    return STATE_BYTES * linear_attention_layers * linear_value_heads * linear_key_size * linear_value_size


def context_tokens(input_tokens: Numeric, output_tokens: Numeric) -> Numeric:
    r"""Tokens of one request in the cache, mean over its decode steps.

    .. math:: c = s_{in} + s_{out} / 2

    Examples
    --------
    >>> context_tokens(8192.0, 1024.0)
    8704.0
    """
    return input_tokens + 0.5 * output_tokens


def cached_tokens(context_tokens: Numeric, attention_window: Numeric, windowed_layers_share: Numeric) -> Numeric:
    r"""Tokens of one request that a mean attention layer keeps.

    .. math:: c_a = (1 - \phi) c + \phi \min(c, w)

    Examples
    --------
    Every second layer sees 128 tokens:

    >>> cached_tokens(8192.0, 128.0, 0.5)
    4160.0
    """
    window = where(attention_window > 0.0, minimum(attention_window, context_tokens), context_tokens)
    return (1.0 - windowed_layers_share) * context_tokens + windowed_layers_share * window


def request_kv_bytes(kv_bytes_per_token: Numeric, cached_tokens: Numeric, state_bytes_per_request: Numeric) -> Numeric:
    r"""Bytes of cache and recurrent state of one request, mean over its decode steps.

    .. math:: b_r = b_t c_a + b_s

    Examples
    --------
    >>> request_kv_bytes(327680.0, 8704.0, 0.0)
    2852126720.0
    """
    return kv_bytes_per_token * cached_tokens + state_bytes_per_request


def kv_shards(tensor_parallel: Numeric, kv_heads: Numeric, kv_lora_rank: Numeric) -> Numeric:
    r"""Parts into which tensor parallelism cuts the cache of a request.

    .. math:: \min(t, a_{kv}) \quad (r_{kv} = 0), \qquad 1 \quad \text{otherwise}

    Notes
    -----
    With fewer heads of keys than ranks, ranks hold copies; the compressed vector of latent attention is on every rank.

    Examples
    --------
    >>> kv_shards(16.0, 8.0, 0.0), kv_shards(8.0, 128.0, 512.0)
    (8.0, 1.0)
    """
    return where(kv_lora_rank > 0.0, 1.0, minimum(tensor_parallel, kv_heads))


def replica_accelerators(
    tensor_parallel: Numeric, pipeline_parallel: Numeric, attention_data_parallel: Numeric
) -> Numeric:
    r"""Accelerators of one model replica.

    .. math:: n_r = t\, p\, d_a

    Examples
    --------
    >>> replica_accelerators(1.0, 1.0, 32.0)
    32.0
    """
    return tensor_parallel * pipeline_parallel * attention_data_parallel


def served_weight_bytes(
    parameters: Numeric,
    moe_layers: Numeric,
    routed_parameters: Numeric,
    served_bytes_per_parameter: Numeric,
    tensor_parallel: Numeric,
    pipeline_parallel: Numeric,
    replica_accelerators: Numeric,
) -> Numeric:
    r"""Bytes of the weights on one accelerator.

    .. math:: W = b_w \left[\frac{N - L_e N_{re}}{t\, p} + \frac{L_e N_{re}}{n_r}\right]

    Notes
    -----
    Ranks of attention data parallelism hold copies of all but the routed experts, which the whole replica shares.

    Examples
    --------
    A dense model of 70 billion parameters in 8 bits over four accelerators:

    >>> served_weight_bytes(7e10, 0.0, 0.0, 1.0, 4.0, 1.0, 4.0)
    17500000000.0
    """
    routed = moe_layers * routed_parameters
    split = (parameters - routed) / (tensor_parallel * pipeline_parallel) + routed / replica_accelerators
    return served_bytes_per_parameter * split


def requests_in_memory(
    accelerator_memory_bytes: Numeric,
    serving_memory_share: Numeric,
    served_weight_bytes: Numeric,
    kv_bytes_per_token: Numeric,
    state_bytes_per_request: Numeric,
    input_tokens: Numeric,
    output_tokens: Numeric,
    attention_window: Numeric,
    windowed_layers_share: Numeric,
    kv_shards: Numeric,
    pipeline_parallel: Numeric,
    attention_data_parallel: Numeric,
) -> Numeric:
    r"""Most requests of full length whose cache fits on one replica.

    .. math:: R_{max} = \left\lfloor d_a\, \frac{\mu M - W}{b_f} k_{kv}\, p \right\rfloor

    Notes
    -----
    :math:`b_f` is the cache of a request at its last token. Below zero the weights alone do not fit.

    Examples
    --------
    Llama 3 70B in 8 bits on four H100, prompts of 8,192 tokens and answers of 1,024:

    >>> requests_in_memory(8e10, 0.9, 1.75e10, 163840.0, 0.0, 8192.0, 1024.0, 0.0, 0.0, 4.0, 1.0, 1.0)
    144.0
    """
    length = input_tokens + output_tokens
    full = request_kv_bytes(
        kv_bytes_per_token,
        cached_tokens(length, attention_window, windowed_layers_share),
        state_bytes_per_request,
    )
    free = serving_memory_share * accelerator_memory_bytes - served_weight_bytes
    return floor(attention_data_parallel * free * kv_shards * pipeline_parallel / full)
