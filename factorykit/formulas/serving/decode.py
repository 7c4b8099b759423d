"""Decode: the step that adds tokens to the requests of a batch, with speculative decoding."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp, log, maximum, minimum, where
from factorykit.formulas.serving import calibration


def decode_requests(
    concurrent_requests: Numeric, attention_data_parallel: Numeric, pipeline_parallel: Numeric
) -> Numeric:
    r"""Batch of requests that one rank decodes at once.

    .. math:: b = \max\left(\frac{R}{d_a\, p}, 1\right)

    Notes
    -----
    Pipeline stages work on :math:`p` batches in turn.

    Examples
    --------
    >>> decode_requests(256.0, 8.0, 1.0)
    32.0
    """
    return maximum(concurrent_requests / (attention_data_parallel * pipeline_parallel), 1.0)


def draft_step_tokens(draft_tokens: Numeric) -> Numeric:
    r"""Tokens of one request that a decode step computes: one, and the drafted tokens that it checks.

    .. math:: \gamma + 1

    Examples
    --------
    >>> draft_step_tokens(3.0)
    4.0
    """
    return draft_tokens + 1.0


def accepted_tokens(draft_tokens: Numeric, draft_acceptance: Numeric) -> Numeric:
    r"""Tokens that one decode step adds to a request, mean.

    .. math:: \frac{1 - \alpha^{\gamma + 1}}{1 - \alpha}

    Notes
    -----
    Each drafted token is accepted with probability :math:`\alpha` if those before it were. Without drafts one, and
    :math:`\gamma + 1` if all are accepted, within a millionth.

    References
    ----------
    .. [leviathan2023] equation 1

    Examples
    --------
    One token of a prediction layer, accepted in 85 % of the steps:

    >>> round(accepted_tokens(1.0, 0.85), 3)
    1.85
    """
    accepted = minimum(maximum(draft_acceptance, 1e-12), 1.0 - 1e-7)
    return (1.0 - exp((draft_tokens + 1.0) * log(accepted))) / (1.0 - accepted)


def touched_expert_share(
    experts: Numeric,
    experts_per_token: Numeric,
    concurrent_requests: Numeric,
    draft_step_tokens: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Share of the routed experts that a decode step reads.

    .. math:: 1 - \left(1 - \frac{k}{E}\right)^{R (\gamma + 1) / p}

    Notes
    -----
    For tokens that choose independently and all experts alike; of one token the exact share.

    Examples
    --------
    DeepSeek-V3: one request and 64 of them:

    >>> round(touched_expert_share(256.0, 8.0, 1.0, 1.0, 1.0), 4)
    0.0312
    >>> round(touched_expert_share(256.0, 8.0, 64.0, 1.0, 1.0), 3)
    0.869
    """
    left = maximum(1.0 - experts_per_token / maximum(experts, 1.0), 1e-12)
    spread = 1.0 - exp(concurrent_requests * draft_step_tokens / pipeline_parallel * log(left))
    return where(experts > 1.0, spread, 1.0)


def decode_weight_bytes(
    parameters: Numeric,
    embedding_parameters: Numeric,
    moe_layers: Numeric,
    routed_parameters: Numeric,
    touched_expert_share: Numeric,
    served_bytes_per_parameter: Numeric,
    tensor_parallel: Numeric,
    replica_accelerators: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Bytes of weights that one accelerator of each stage reads in one decode step, stages summed.

    .. math:: W_d = b_w \left[\frac{N - N_{emb} - L_e N_{re}}{t} + \frac{p\, \epsilon L_e N_{re}}{n_r}\right]

    Notes
    -----
    The input embedding is looked up, not read.

    Examples
    --------
    >>> decode_weight_bytes(7e10, 0.0, 0.0, 0.0, 1.0, 1.0, 4.0, 4.0, 1.0)
    17500000000.0
    """
    routed = moe_layers * routed_parameters
    dense = (parameters - embedding_parameters - routed) / tensor_parallel
    return served_bytes_per_parameter * (
        dense + routed * touched_expert_share * pipeline_parallel / replica_accelerators
    )


def decode_kv_bytes(request_kv_bytes: Numeric, decode_requests: Numeric, kv_shards: Numeric) -> Numeric:
    r"""Bytes of cache that one accelerator of each stage reads in one decode step, stages summed.

    .. math:: K_d = b\, b_r / k_{kv}

    Examples
    --------
    >>> decode_kv_bytes(2852126720.0, 32.0, 4.0)
    22817013760.0
    """
    return decode_requests * request_kv_bytes / kv_shards


def decode_attention_s(
    decode_kv_bytes: Numeric,
    decode_requests: Numeric,
    draft_step_tokens: Numeric,
    cached_tokens: Numeric,
    attention_layers: Numeric,
    attention_heads: Numeric,
    head_size: Numeric,
    value_head_size: Numeric,
    kv_lora_rank: Numeric,
    rope_head_size: Numeric,
    tensor_parallel: Numeric,
    peak_16bit_flop_per_s: Numeric,
    memory_bytes_per_s: Numeric,
    decode_memory_share: Numeric,
) -> Numeric:
    r"""Time of attention in one decode step: the cache is read, or every head's scores are computed.

    .. math::
        t_a = \max\left(\frac{K_d}{\eta_m B_m}, \frac{2 L_a a\, w\, c_a b (\gamma + 1)}{t\, \eta_a F_{16}}\right),
        \qquad
        w = \begin{cases} 2 r_{kv} + d_r & r_{kv} > 0 \\ d + d_v & \text{otherwise} \end{cases}

    Notes
    -----
    All heads of latent attention work on the one compressed vector, which makes products of it, not reads.

    References
    ----------
    .. [deepseekv2] section 2.1.3

    Examples
    --------
    DeepSeek-V3 on an H200: 32 requests of 8,192 tokens, all heads on one accelerator:

    >>> work = (32.0, 1.0, 8192.0, 61.0, 128.0, 128.0, 128.0, 512.0, 64.0, 1.0)
    >>> round(decode_attention_s(9.2e9, *work, 9.895e14, 4.8e12, 0.8), 5)
    0.0075
    """
    width = where(kv_lora_rank > 0.0, 2.0 * kv_lora_rank + rope_head_size, head_size + value_head_size)
    work = 2.0 * attention_layers * attention_heads * width * cached_tokens * decode_requests * draft_step_tokens
    computing = work / (tensor_parallel * peak_16bit_flop_per_s * calibration.ATTENTION_RATE_SHARE)
    return maximum(decode_kv_bytes / (memory_bytes_per_s * decode_memory_share), computing)


def product_parameters(
    active_parameters: Numeric, embedding_parameters: Numeric, moe_layers: Numeric, routed_parameters: Numeric
) -> Numeric:
    r"""Active parameters of the products of one token, with those that the products of few tokens an expert cost.

    .. math:: N_p = N_a - N_{emb} + \lambda_e L_e N_{re}, \qquad \lambda_e = 0.14

    Notes
    -----
    Products with :math:`n` tokens an expert run at the share :math:`n / (n + n_0)` of the rate of large ones; of passes
    of equal length the rest of the time is proportional to all routed parameters.

    Examples
    --------
    DeepSeek-V3, of 37 billion active parameters:

    >>> round(product_parameters(3.755e10, 9.27e8, 58.0, 1.127e10) / 1e9, 1)
    128.1
    """
    return active_parameters - embedding_parameters + calibration.EXPERT_LOAD * moe_layers * routed_parameters


def decode_products_s(
    decode_weight_bytes: Numeric,
    product_parameters: Numeric,
    decode_requests: Numeric,
    draft_step_tokens: Numeric,
    tensor_parallel: Numeric,
    peak_flop_per_s: Numeric,
    prefill_flop_share: Numeric,
    memory_bytes_per_s: Numeric,
    decode_memory_share: Numeric,
) -> Numeric:
    r"""Time of the products with weights in one decode step: the weights are read, or the products computed.

    .. math:: t_w = \max\left(\frac{W_d}{\eta_m B_m}, \frac{2 N_p\, b (\gamma + 1)}{t\, \eta_c F}\right)

    References
    ----------
    .. [pope2023] section 2.2

    Examples
    --------
    >>> round(decode_products_s(1.75e10, 7e10, 64.0, 1.0, 4.0, 1.979e15, 0.75, 3.35e12, 0.8), 5)
    0.00653
    """
    work = 2.0 * product_parameters * decode_requests * draft_step_tokens
    computing = work / (tensor_parallel * peak_flop_per_s * prefill_flop_share)
    return maximum(decode_weight_bytes / (memory_bytes_per_s * decode_memory_share), computing)


def decode_step_s(
    decode_products_s: Numeric,
    decode_attention_s: Numeric,
    exchange_message_s: Numeric,
    exchange_token_s: Numeric,
    decode_requests: Numeric,
    draft_tokens: Numeric,
    layers: Numeric,
    moe_layers: Numeric,
    serving_layer_s: Numeric,
    serving_step_s: Numeric,
) -> Numeric:
    r"""Time of one decode step of a replica, the drafts of the next one included.

    .. math::
        t_d = \left(1 + \frac{\gamma}{L}\right) \left[t_w + t_a + t_\alpha + L\, \tau_L + L_e \tau_e + \tau_0
        + b (\gamma + 1) (t_x + \tau_s)\right] + \gamma \tau_\gamma

    Notes
    -----
    Each token is drafted by one layer. Constants of a layer with experts (43 us), of a token in a step (22 us) and of a
    draft (2.4 ms) are fitted to measured points.

    Examples
    --------
    >>> round(decode_step_s(0.0075, 0.009, 0.002, 0.0, 32.0, 0.0, 80.0, 0.0, 3.3e-5, 2e-4), 4)
    0.022
    """
    launched = layers * serving_layer_s + moe_layers * calibration.EXPERT_LAYER_S + serving_step_s + exchange_message_s
    tokens = decode_requests * (draft_tokens + 1.0) * (exchange_token_s + calibration.STEP_TOKEN_S)
    step = decode_products_s + decode_attention_s + launched + tokens
    return step * (1.0 + draft_tokens / layers) + draft_tokens * calibration.DRAFT_S
