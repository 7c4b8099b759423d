"""Inference of one model replica: cache and weights in memory, prefill, decode, latency, throughput and cost."""

from __future__ import annotations

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.types import Numeric
from factorykit.formulas.functions import ceil, exp, floor, log, maximum, minimum, sqrt, where

STATE_BYTES = 4.0
"""Bytes of one element of a recurrent state, which engines keep in 32 bits."""
ACTIVATION_BYTES = 2.0
"""Bytes of one element that ranks exchange: 16 bits."""
EXPERT_RATE_SHARE = 0.14
"""Rate of products with routed experts over that of others. This and the next five are fitted to serving_points."""
ATTENTION_RATE_SHARE = 0.6
"""Share of the 16-bit peak that attention sustains, which engines compute in 16 bits."""
EXPERT_LAYER_S = 4.3e-5
"""Time of a layer with experts that no other has: routing, sorting, two more kernels."""
STEP_TOKEN_S = 2.2e-5
"""Time of a decode step for each token of a rank that neither bytes nor products explain: sampling, scheduling."""
DRAFT_S = 2.4e-3
"""Time of a drafted token outside of its layer."""
SCALE_OUT_MESSAGE_S = 5.5e-5
"""Time of one small collective that leaves the scale-up domain, for each domain."""
PASS_TOKENS = 8192.0
"""Most prompt tokens of one pass over the weights, the default of the engines."""


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
    Each drafted token is accepted with probability :math:`\alpha` if those before it were. Without drafts one.

    References
    ----------
    .. [leviathan2023] equation 1

    Examples
    --------
    One token of a prediction layer, accepted in 85 % of the steps:

    >>> round(accepted_tokens(1.0, 0.85), 3)
    1.85
    """
    refused = maximum(1.0 - draft_acceptance, 1e-9)
    return (1.0 - exp((draft_tokens + 1.0) * log(maximum(draft_acceptance, 1e-12)))) / refused


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
    computing = work / (tensor_parallel * peak_16bit_flop_per_s * ATTENTION_RATE_SHARE)
    return maximum(decode_kv_bytes / (memory_bytes_per_s * decode_memory_share), computing)


def product_parameters(
    active_parameters: Numeric,
    embedding_parameters: Numeric,
    moe_layers: Numeric,
    routed_parameters: Numeric,
    experts: Numeric,
    experts_per_token: Numeric,
) -> Numeric:
    r"""Active parameters of the products of one token, those of routed experts weighted by their slower rate.

    .. math:: N_p = N_a - N_{emb} + \left(\frac{1}{\eta_e} - 1\right) \frac{k}{E} L_e N_{re}, \qquad \eta_e = 0.14

    Examples
    --------
    DeepSeek-V3, of 37 billion active parameters:

    >>> product_parameters(3.755e10, 9.27e8, 58.0, 1.127e10, 256.0, 8.0) / 1e9
    162.102375
    """
    routed = moe_layers * routed_parameters * experts_per_token / maximum(experts, 1.0)
    return active_parameters - embedding_parameters + (1.0 / EXPERT_RATE_SHARE - 1.0) * routed


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


def exchange_message_s(
    layers: Numeric,
    moe_layers: Numeric,
    tensor_parallel: Numeric,
    attention_data_parallel: Numeric,
    scale_up_domain: Numeric,
    serving_message_s: Numeric,
) -> Numeric:
    r"""Latency of all collectives of one pass through the layers of a replica.

    .. math::
        2 \left([t > 1]\, L + [d_a > 1]\, L_e\right) \cdot
        \begin{cases} \alpha & n \le n_{up} \\ 55\,\mathrm{us} \cdot n / n_{up} & \text{otherwise} \end{cases}, \qquad
        n = \max(t, d_a)

    Examples
    --------
    >>> round(exchange_message_s(80.0, 0.0, 8.0, 1.0, 8.0, 1.5e-5), 5)
    0.0024
    """
    domains = maximum(tensor_parallel, attention_data_parallel) / scale_up_domain
    message = where(domains > 1.0, domains * SCALE_OUT_MESSAGE_S, serving_message_s)
    collectives = where(tensor_parallel > 1.0, layers, 0.0) + where(attention_data_parallel > 1.0, moe_layers, 0.0)
    return 2.0 * collectives * message


def exchange_token_s(
    layers: Numeric,
    moe_layers: Numeric,
    hidden_size: Numeric,
    experts_per_token: Numeric,
    tensor_parallel: Numeric,
    expert_parallel: Numeric,
    attention_data_parallel: Numeric,
    scale_up_domain: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time to send one token of a rank through all-reduces and to its experts, all layers.

    .. math::
        \frac{2 h}{B} \left(4 L \frac{t - 1}{t} + 2 L_e x\right), \qquad
        x = \begin{cases} \min(k, e) \frac{e - 1}{e\, t} & e > 1, d_a > 1 \\ d_a - 1 & \text{otherwise} \end{cases}

    Notes
    -----
    Bandwidth is that of the scale-up network, or beyond its domain of the scale-out network. Two all-reduces a layer.
    Where attention is data parallel, tokens go to their experts and back, or to all ranks that share each expert.

    Examples
    --------
    >>> round(exchange_token_s(80.0, 0.0, 8192.0, 0.0, 8.0, 1.0, 1.0, 8.0, 4.5e11, 5e10) * 1e6, 2)
    10.19
    """
    outside = maximum(tensor_parallel, attention_data_parallel) > scale_up_domain
    vector = ACTIVATION_BYTES * hidden_size / where(outside, scale_out_bytes_per_s, scale_up_bytes_per_s)
    remote = minimum(experts_per_token, expert_parallel) * (expert_parallel - 1.0) / expert_parallel / tensor_parallel
    copies = where(expert_parallel > 1.0, remote, attention_data_parallel - 1.0)
    sent = where(attention_data_parallel > 1.0, 2.0 * moe_layers * copies, 0.0)
    return vector * (4.0 * layers * (tensor_parallel - 1.0) / tensor_parallel + sent)


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
    launched = layers * serving_layer_s + moe_layers * EXPERT_LAYER_S + serving_step_s + exchange_message_s
    tokens = decode_requests * (draft_tokens + 1.0) * (exchange_token_s + STEP_TOKEN_S)
    step = decode_products_s + decode_attention_s + launched + tokens
    return step * (1.0 + draft_tokens / layers) + draft_tokens * DRAFT_S


def prefill_flop(
    active_parameters: Numeric,
    embedding_parameters: Numeric,
    input_tokens: Numeric,
    cached_input_share: Numeric,
    attention_layers: Numeric,
    attention_heads: Numeric,
    head_size: Numeric,
    rope_head_size: Numeric,
    value_head_size: Numeric,
) -> Numeric:
    r"""Work of one prompt.

    .. math:: C_p = (1 - h_p)\, s_{in} \left[2 (N_a - N_{emb}) + L_a a (d + d_r + d_v) s_{in} (1 + h_p)\right]

    Notes
    -----
    Products with weights, and the causal half of the attention square. The share :math:`h_p` of the prompt found in
    the prefix cache is not computed, but attended to. Logits count for every token, which overstates by a percent.

    Examples
    --------
    >>> prefill_flop(7.06e10, 1.05e9, 8192.0, 0.0, 80.0, 64.0, 128.0, 0.0, 128.0) / 1e15
    1.22746...
    """
    computed = (1.0 - cached_input_share) * input_tokens
    scores = attention_layers * attention_heads * (head_size + rope_head_size + value_head_size)
    seen = input_tokens * (1.0 + cached_input_share)
    return computed * (2.0 * (active_parameters - embedding_parameters) + scores * seen)


def prefill_work_s(
    product_parameters: Numeric,
    input_tokens: Numeric,
    cached_input_share: Numeric,
    attention_layers: Numeric,
    attention_heads: Numeric,
    head_size: Numeric,
    rope_head_size: Numeric,
    value_head_size: Numeric,
    peak_flop_per_s: Numeric,
    peak_16bit_flop_per_s: Numeric,
    prefill_flop_share: Numeric,
    replica_accelerators: Numeric,
) -> Numeric:
    r"""Time of the products of one prompt, spread over a replica.

    .. math::
        t_{pc} = \frac{(1 - h_p)\, s_{in}}{n_r} \left[\frac{2 N_p}{\eta_c F}
        + \frac{L_a a (d + d_r + d_v) s_{in} (1 + h_p)}{\eta_a F_{16}}\right]

    Notes
    -----
    Attention is computed in 16 bits, whatever the format of the weights.

    Examples
    --------
    >>> round(prefill_work_s(6.95e10, 8192.0, 0.0, 80.0, 64.0, 128.0, 0.0, 128.0, 1.979e15, 9.89e14, 0.75, 4.0), 3)
    0.229
    """
    computed = (1.0 - cached_input_share) * input_tokens / replica_accelerators
    scores = attention_layers * attention_heads * (head_size + rope_head_size + value_head_size)
    attention = scores * input_tokens * (1.0 + cached_input_share) / (peak_16bit_flop_per_s * ATTENTION_RATE_SHARE)
    return computed * (2.0 * product_parameters / (peak_flop_per_s * prefill_flop_share) + attention)


def prefill_s(
    prefill_work_s: Numeric,
    exchange_message_s: Numeric,
    exchange_token_s: Numeric,
    served_weight_bytes: Numeric,
    pipeline_parallel: Numeric,
    memory_bytes_per_s: Numeric,
    decode_memory_share: Numeric,
    layers: Numeric,
    moe_layers: Numeric,
    serving_layer_s: Numeric,
    attention_data_parallel: Numeric,
    concurrent_requests: Numeric,
    input_tokens: Numeric,
    cached_input_share: Numeric,
) -> Numeric:
    r"""Time by which one prompt occupies a replica.

    .. math::
        t_p = t_{pc} + t_\alpha + \frac{s_{in} (1 - h_p)}{d_a} t_x
        + \frac{1}{d_a m} \left[\frac{p\, W}{\eta_m B_m} + L\, \tau_L + L_e \tau_e\right], \qquad
        m = \min\left(\max\left(\frac{8192}{s_{in}}, 1\right), 1 + \frac{R}{40\, d_a}\right)

    Notes
    -----
    One pass over the weights serves a prompt of each group of attention data parallelism, and :math:`m` short ones that
    wait. The time that enters throughput; a single prompt waits longer where attention data parallelism or stages leave
    it only a part of the accelerators.

    Examples
    --------
    >>> round(prefill_s(0.229, 0.002, 8e-6, 1.75e10, 1.0, 3.35e12, 0.8, 80.0, 0.0, 3.3e-5, 1.0, 64.0, 8192.0, 0.0), 3)
    0.306
    """
    reading = pipeline_parallel * served_weight_bytes / (memory_bytes_per_s * decode_memory_share)
    once = reading + layers * serving_layer_s + moe_layers * EXPERT_LAYER_S
    together = minimum(
        maximum(PASS_TOKENS / input_tokens, 1.0), 1.0 + concurrent_requests / (40.0 * attention_data_parallel)
    )
    sent = exchange_message_s + input_tokens * (1.0 - cached_input_share) / attention_data_parallel * exchange_token_s
    return prefill_work_s + sent + once / (attention_data_parallel * together)


def time_per_output_token_s(
    decode_step_s: Numeric,
    accepted_tokens: Numeric,
    prefill_s: Numeric,
    output_tokens: Numeric,
    concurrent_requests: Numeric,
    prefill_separate: Numeric,
) -> Numeric:
    r"""Time between output tokens of one request under continuous batching.

    .. math:: t_o = \frac{t_d}{A} + (1 - z) \frac{(R - 1)\, t_p}{s_{out}}

    Notes
    -----
    While a request decodes, each of the others ends once and its successor's prompt is computed by the same
    accelerators. With accelerators of their own for prompts (:math:`z = 1`) the decode step is left.

    References
    ----------
    .. [yu2022] section 3.2
    .. [zhong2024] section 3

    Examples
    --------
    >>> round(time_per_output_token_s(0.02, 1.0, 0.3, 1024.0, 64.0, 0.0), 4)
    0.0385
    """
    between = (concurrent_requests - 1.0) * prefill_s / output_tokens
    return decode_step_s / accepted_tokens + (1.0 - prefill_separate) * maximum(between, 0.0)


def kv_transfer_s(
    kv_bytes_per_token: Numeric, input_tokens: Numeric, scale_out_bytes_per_s: Numeric, prefill_separate: Numeric
) -> Numeric:
    r"""Time to send the cache of a prompt from its prefill to its decode accelerators.

    .. math:: t_k = z\, \frac{b_t s_{in}}{B_{out}}

    Notes
    -----
    Over one port; engines send layer by layer while they compute, which hides most of it.

    Examples
    --------
    >>> kv_transfer_s(35136.0, 8192.0, 5e10, 1.0)
    0.00575668224
    """
    return prefill_separate * kv_bytes_per_token * input_tokens / scale_out_bytes_per_s


def time_to_first_token_s(
    prefill_s: Numeric,
    attention_data_parallel: Numeric,
    queued_prefills: Numeric,
    kv_transfer_s: Numeric,
    serving_request_s: Numeric,
) -> Numeric:
    r"""Time from a request to its first token.

    .. math:: t_f = t_p (d_a + q) + t_k + \tau_r

    Notes
    -----
    One prompt is computed by one group of attention data parallelism; :math:`q` prompts are before it, mean.

    Examples
    --------
    >>> round(time_to_first_token_s(0.3, 1.0, 1.5, 0.0, 0.05), 2)
    0.8
    """
    return prefill_s * (attention_data_parallel + queued_prefills) + kv_transfer_s + serving_request_s


def prefill_utilization(
    concurrent_requests: Numeric,
    prefill_s: Numeric,
    output_tokens: Numeric,
    time_per_output_token_s: Numeric,
    prefill_workers: Numeric,
) -> Numeric:
    r"""Share of the time in which a replica, or each of its prefill workers, computes prompts.

    .. math:: \rho = \min\left(\frac{R\, t_p}{x (t_p + s_{out} t_o)}, 0.99\right)

    Examples
    --------
    >>> round(prefill_utilization(64.0, 0.3, 1024.0, 0.0385, 1.0), 3)
    0.483
    """
    share = concurrent_requests * prefill_s / (prefill_s + output_tokens * time_per_output_token_s)
    return minimum(share / prefill_workers, 0.99)


def prompt_cost_share(
    prefill_utilization: Numeric,
    prefill_separate: Numeric,
    prefill_accelerators: Numeric,
    replica_accelerators: Numeric,
) -> Numeric:
    r"""Share of the rent of a replica that prompts take: of the time, or of the accelerators where they have their own.

    .. math:: \sigma = (1 - z) \rho + z\, n_x / n_r

    Examples
    --------
    >>> prompt_cost_share(0.4, 0.0, 0.0, 8.0), prompt_cost_share(0.4, 1.0, 4.0, 12.0)
    (0.4, 0.333...)
    """
    apart = prefill_separate * prefill_accelerators / replica_accelerators
    return (1.0 - prefill_separate) * prefill_utilization + apart


def queued_prefills(prefill_utilization: Numeric, concurrent_requests: Numeric, input_tokens_cv: Numeric) -> Numeric:
    r"""Default number of prompts before one that arrives, mean.

    .. math:: q = \min\left(\frac{\rho\, (1 + v_{in}^2)}{2 (1 - \rho)}, \frac{R - 1}{2}\right)

    Notes
    -----
    Prompts arrive at random times; no more than half of the others wait, which a burst of all would be.

    References
    ----------
    .. [pollaczek1930] mean queue

    Examples
    --------
    >>> queued_prefills(0.5, 64.0, 0.0), queued_prefills(0.5, 64.0, 1.0)
    (0.5, 1.0)
    """
    waiting = 0.5 * (1.0 + input_tokens_cv * input_tokens_cv) * prefill_utilization / (1.0 - prefill_utilization)
    return minimum(waiting, maximum(0.5 * (concurrent_requests - 1.0), 0.0))


def _normal_quantile(share: Numeric) -> Numeric:
    return 4.91 * (exp(0.14 * log(share)) - exp(0.14 * log(1.0 - share)))


def time_to_first_token_tail_s(
    time_to_first_token_s: Numeric,
    prefill_s: Numeric,
    queued_prefills: Numeric,
    prefill_utilization: Numeric,
    input_tokens_cv: Numeric,
    latency_percentile: Numeric,
) -> Numeric:
    r"""Time to first token that a share of the requests stays below.

    .. math::
        t_f(p) = t_f + t_p \left[\min(w, 0) + \sqrt{\max(w, 0)^2 + \max(l, 0)^2}\right], \qquad
        w = \frac{q}{\rho} \max\left(\ln \frac{\rho}{1 - p}, 0\right) - q, \qquad
        l = e^{z_p \sigma - \sigma^2 / 2} - 1, \qquad \sigma^2 = \ln(1 + v_{in}^2)

    Notes
    -----
    A share :math:`\rho` of the prompts waits, these exponentially long; the request's own prompt has a lognormal
    length, :math:`z_p` as in the tail of the time per output token. Both at once are added as standard deviations are.
    Within 12 % of a request-level simulation.

    References
    ----------
    .. [kleinrock1975] section 5.12

    Examples
    --------
    >>> round(time_to_first_token_tail_s(0.6, 0.3, 1.0, 0.5, 0.0, 0.95), 3)
    1.682
    >>> round(time_to_first_token_tail_s(0.6, 0.3, 1.0, 0.5, 1.0, 0.95), 3)
    1.807
    """
    busy = maximum(prefill_utilization, 1e-6)
    waiting = queued_prefills * (maximum(log(busy / (1.0 - latency_percentile)), 0.0) / busy - 1.0)
    normal = _normal_quantile(latency_percentile)
    variance = log(1.0 + input_tokens_cv * input_tokens_cv)
    longer = maximum(exp(normal * sqrt(variance) - 0.5 * variance) - 1.0, 0.0)
    late = maximum(waiting, 0.0)
    return time_to_first_token_s + prefill_s * (minimum(waiting, 0.0) + sqrt(late * late + longer * longer))


def batch_time_share(
    time_per_output_token_s: Numeric,
    decode_attention_s: Numeric,
    accepted_tokens: Numeric,
    prefill_s: Numeric,
    concurrent_requests: Numeric,
    output_tokens: Numeric,
    prefill_separate: Numeric,
) -> Numeric:
    r"""Share of the time per output token that grows with the requests in flight.

    .. math::
        u = \min\left(\frac{1}{t_o} \left[\frac{t_a}{A} + (1 - z) \frac{R\, t_p}{s_{out}}\right], 0.95\right)

    Notes
    -----
    The load over the greatest load that a replica can bear, where its step is linear in requests.

    Examples
    --------
    >>> round(batch_time_share(0.0385, 0.004, 1.0, 0.3, 64.0, 1024.0, 0.0), 2)
    0.59
    """
    prompts = (1.0 - prefill_separate) * concurrent_requests * prefill_s / output_tokens
    return minimum((decode_attention_s / accepted_tokens + prompts) / time_per_output_token_s, 0.95)


def time_per_output_token_tail_s(
    time_per_output_token_s: Numeric,
    batch_time_share: Numeric,
    concurrent_requests: Numeric,
    input_tokens_cv: Numeric,
    output_tokens_cv: Numeric,
    latency_percentile: Numeric,
) -> Numeric:
    r"""Time per output token that a share of the requests stays below.

    .. math::
        t_o(p) = t_o\, e^{z_p \sigma - \sigma^2 / 2}, \qquad
        \sigma^2 = \ln\left(1 + \frac{u^2}{R} (1 - u)^{-1.4} \left[(1 + v_{in}^2)(1 + v_{out}^2)\right]^{2/3}\right),
        \qquad z_p = 4.91\, [p^{0.14} - (1 - p)^{0.14}]

    Notes
    -----
    Requests in flight vary as random arrivals do, and a request that takes longer meets more of them. Within 13 % of a
    request-level simulation at the 95th and 17 % at the 99th percentile, up to 84 % of the load that a replica can
    bear, to which the exponents are fitted. The quantile of the normal distribution is that of Tukey's lambda, within
    0.01 up to 99 %.

    References
    ----------
    .. [joiner1971] symmetric lambda

    Examples
    --------
    >>> round(time_per_output_token_tail_s(0.0385, 0.59, 64.0, 1.0, 1.0, 0.95), 4)
    0.0537
    """
    lengths = (1.0 + input_tokens_cv * input_tokens_cv) * (1.0 + output_tokens_cv * output_tokens_cv)
    grown = batch_time_share * batch_time_share / concurrent_requests * exp(-1.4 * log(1.0 - batch_time_share))
    variance = log(1.0 + grown * exp(2.0 / 3.0 * log(lengths)))
    return time_per_output_token_s * exp(_normal_quantile(latency_percentile) * sqrt(variance) - 0.5 * variance)


def request_latency_tail_s(
    time_to_first_token_s: Numeric,
    time_per_output_token_s: Numeric,
    output_tokens: Numeric,
    output_tokens_cv: Numeric,
    latency_percentile: Numeric,
) -> Numeric:
    r"""Time from a request to its last token that a share of the requests stays below.

    .. math::
        t_r(p) = t_f + t_o s_{out}\, e^{z_p \sigma - \sigma^2 / 2}, \qquad \sigma^2 = \ln(1 + v_{out}^2)

    Notes
    -----
    For answers of lognormal length; :math:`z_p` as in the tail of the time per output token.

    References
    ----------
    .. [joiner1971] symmetric lambda

    Examples
    --------
    >>> round(request_latency_tail_s(0.6, 0.02, 500.0, 1.0, 0.95), 1)
    28.5
    """
    normal = _normal_quantile(latency_percentile)
    variance = log(1.0 + output_tokens_cv * output_tokens_cv)
    longest = output_tokens * exp(normal * sqrt(variance) - 0.5 * variance)
    return time_to_first_token_s + time_per_output_token_s * longest


def prefill_backlog_s(
    concurrent_requests: Numeric, prefill_s: Numeric, output_tokens: Numeric, time_per_output_token_s: Numeric
) -> Numeric:
    r"""Time that a prompt waits where separate prefill is slower than decode, of requests that are kept in flight.

    .. math:: t_b = \max(0.63\, R\, t_p - s_{out} t_o,\ 0)

    Notes
    -----
    The requests that decode cannot hold are at the prefill workers, :math:`R` for each. The factor is fitted: prefill
    under this load is faster than one prompt after the other.

    Examples
    --------
    >>> prefill_backlog_s(256.0, 0.35, 1024.0, 0.03)
    25.7...
    """
    return maximum(0.63 * concurrent_requests * prefill_s - output_tokens * time_per_output_token_s, 0.0)


def request_latency_s(
    time_to_first_token_s: Numeric, time_per_output_token_s: Numeric, output_tokens: Numeric
) -> Numeric:
    r"""Time from a request to its last token.

    .. math:: t_r = t_f + (s_{out} - 1)\, t_o

    Examples
    --------
    >>> request_latency_s(0.75, 0.02, 101.0)
    2.75
    """
    return time_to_first_token_s + (output_tokens - 1.0) * time_per_output_token_s


def output_tokens_per_s(concurrent_requests: Numeric, output_tokens: Numeric, request_latency_s: Numeric) -> Numeric:
    r"""Output tokens per second of one replica.

    .. math:: X = R\, s_{out} / t_r

    References
    ----------
    .. [little1961] theorem 1

    Examples
    --------
    >>> output_tokens_per_s(64.0, 1024.0, 32.0)
    2048.0
    """
    return concurrent_requests * output_tokens / request_latency_s


def output_tokens_per_s_per_accelerator(output_tokens_per_s: Numeric, replica_accelerators: Numeric) -> Numeric:
    r"""Output tokens per second of one accelerator.

    .. math:: X_g = X / n_r

    Examples
    --------
    >>> output_tokens_per_s_per_accelerator(2048.0, 4.0)
    512.0
    """
    return output_tokens_per_s / replica_accelerators


def output_tokens_per_s_per_user(time_per_output_token_s: Numeric) -> Numeric:
    r"""Output tokens per second that one user sees.

    .. math:: 1 / t_o

    Examples
    --------
    >>> output_tokens_per_s_per_user(0.02)
    50.0
    """
    return 1.0 / time_per_output_token_s


def serving_replicas(
    requests_per_s: Numeric, output_tokens: Numeric, output_tokens_per_s: Numeric, serving_load_share: Numeric
) -> Numeric:
    r"""Model replicas that a load needs.

    .. math:: n = \left\lceil \frac{\lambda\, s_{out}}{\nu X} \right\rceil

    Examples
    --------
    >>> serving_replicas(20.0, 500.0, 2048.0, 0.8)
    7.0
    """
    return ceil(requests_per_s * output_tokens / (serving_load_share * output_tokens_per_s))


def serving_j_per_token(
    replica_accelerators: Numeric, facility_power_per_accelerator_w: Numeric, output_tokens_per_s: Numeric
) -> Numeric:
    r"""Energy of one output token at the meter, its share of the prompt included.

    .. math:: E_t = n_r P_1 / X

    Examples
    --------
    >>> serving_j_per_token(4.0, 1400.0, 2048.0)
    2.734375
    """
    return replica_accelerators * facility_power_per_accelerator_w / output_tokens_per_s


def serving_usd_per_token(
    replica_accelerators: Numeric, rental_usd_per_accelerator_h: Numeric, output_tokens_per_s: Numeric
) -> Numeric:
    r"""Cost of one output token with its share of the prompt.

    .. math:: c_t = \frac{n_r c_h}{3600\, X}

    Examples
    --------
    Four accelerators at three dollars an hour, dollars per million tokens:

    >>> round(serving_usd_per_token(4.0, 3.0, 2048.0) * 1e6, 3)
    1.628
    """
    return replica_accelerators * rental_usd_per_accelerator_h / SECONDS_PER_HOUR / output_tokens_per_s


def serving_usd_per_input_token(
    prompt_cost_share: Numeric,
    replica_accelerators: Numeric,
    rental_usd_per_accelerator_h: Numeric,
    output_tokens_per_s: Numeric,
    input_tokens: Numeric,
    output_tokens: Numeric,
) -> Numeric:
    r"""Cost of one input token, by the share of prompts in the rent.

    .. math:: c_{in} = \frac{\sigma\, n_r c_h}{3600\, X} \frac{s_{out}}{s_{in}}

    Examples
    --------
    >>> round(serving_usd_per_input_token(0.5, 4.0, 3.0, 2048.0, 8192.0, 1024.0) * 1e6, 4)
    0.1017
    """
    hourly = replica_accelerators * rental_usd_per_accelerator_h / SECONDS_PER_HOUR
    return prompt_cost_share * hourly / output_tokens_per_s * output_tokens / input_tokens


def serving_usd_per_output_token(serving_usd_per_token: Numeric, prompt_cost_share: Numeric) -> Numeric:
    r"""Cost of one output token without the prompt.

    .. math:: c_{out} = (1 - \sigma)\, c_t

    Examples
    --------
    >>> serving_usd_per_output_token(2e-6, 0.5)
    1e-06
    """
    return (1.0 - prompt_cost_share) * serving_usd_per_token


def serving_usd_per_cached_token(
    serving_usd_per_input_token: Numeric,
    input_tokens: Numeric,
    cached_input_share: Numeric,
    prefill_flop: Numeric,
    attention_layers: Numeric,
    attention_heads: Numeric,
    head_size: Numeric,
    rope_head_size: Numeric,
    value_head_size: Numeric,
) -> Numeric:
    r"""Cost of one input token that is found in the prefix cache: the attention of the others to it.

    .. math:: c_h = c_{in} s_{in}\, \frac{2 L_a a (d + d_r + d_v) (1 - h_p) s_{in}}{C_p}

    Notes
    -----
    The memory that holds the cache between requests is not counted.

    Examples
    --------
    A quarter of the two dollars per million of a mean token, for a model of 8 billion parameters:

    >>> round(serving_usd_per_cached_token(2e-6, 8192.0, 0.0, 1.5e14, 32.0, 32.0, 128.0, 0.0, 128.0) * 1e6, 2)
    0.47
    """
    scores = 2.0 * attention_layers * attention_heads * (head_size + rope_head_size + value_head_size)
    work = scores * (1.0 - cached_input_share) * input_tokens
    return serving_usd_per_input_token * input_tokens * work / prefill_flop


def break_even_requests_per_s(
    cluster_usd_per_h: Numeric,
    api_usd_per_input_token: Numeric,
    api_usd_per_output_token: Numeric,
    input_tokens: Numeric,
    output_tokens: Numeric,
) -> Numeric:
    r"""Load above which rented accelerators cost less than an interface that is paid by the token.

    .. math:: \lambda^* = \frac{n c_h}{3600\, (p_{in} s_{in} + p_{out} s_{out})}

    Examples
    --------
    Eight accelerators at three dollars an hour, half a dollar and two dollars per million tokens:

    >>> round(break_even_requests_per_s(24.0, 5e-7, 2e-6, 1000.0, 500.0), 2)
    4.44
    """
    request = api_usd_per_input_token * input_tokens + api_usd_per_output_token * output_tokens
    return cluster_usd_per_h / SECONDS_PER_HOUR / request


def users_per_accelerator(
    output_tokens_per_s_per_accelerator: Numeric,
    serving_load_share: Numeric,
    output_tokens: Numeric,
    request_latency_s: Numeric,
    user_think_s: Numeric,
) -> Numeric:
    r"""Users that one accelerator serves, each of whom reads and thinks between answers.

    .. math:: u = \frac{\nu X_g}{s_{out}} (t_r + t_u)

    References
    ----------
    .. [little1961] theorem 1

    Examples
    --------
    >>> users_per_accelerator(512.0, 0.8, 512.0, 15.0, 60.0)
    60.0
    """
    return serving_load_share * output_tokens_per_s_per_accelerator / output_tokens * (request_latency_s + user_think_s)
