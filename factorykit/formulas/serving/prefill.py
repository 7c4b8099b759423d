"""Prefill: the time that a prompt occupies a replica, and the queue of prompts."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import maximum, minimum
from factorykit.formulas.serving import calibration

PASS_TOKENS = 8192.0
"""Most prompt tokens of one pass over the weights, the default of the engines."""


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

    .. math:: C_p = \max((1 - h_p)\, s_{in}, 1) \left[2 (N_a - N_{emb}) + L_a a (d + d_r + d_v) s_{in} (1 + h_p)\right]

    Notes
    -----
    Products with weights, and the causal half of the attention square. The share :math:`h_p` of the prompt found in
    the prefix cache is not computed, but attended to; the last token always is, since its logits start the answer.
    Logits count for every token, which overstates by a percent.

    Examples
    --------
    >>> prefill_flop(7.06e10, 1.05e9, 8192.0, 0.0, 80.0, 64.0, 128.0, 0.0, 128.0) / 1e15
    1.22746...
    """
    computed = maximum((1.0 - cached_input_share) * input_tokens, 1.0)
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
        t_{pc} = \frac{\max((1 - h_p)\, s_{in}, 1)}{n_r} \left[\frac{2 N_p}{\eta_c F}
        + \frac{L_a a (d + d_r + d_v) s_{in} (1 + h_p)}{\eta_a F_{16}}\right]

    Notes
    -----
    Attention is computed in 16 bits, whatever the format of the weights.

    Examples
    --------
    >>> round(prefill_work_s(6.95e10, 8192.0, 0.0, 80.0, 64.0, 128.0, 0.0, 128.0, 1.979e15, 9.89e14, 0.75, 4.0), 3)
    0.229
    """
    computed = maximum((1.0 - cached_input_share) * input_tokens, 1.0) / replica_accelerators
    scores = attention_layers * attention_heads * (head_size + rope_head_size + value_head_size)
    attention = (
        scores * input_tokens * (1.0 + cached_input_share) / (peak_16bit_flop_per_s * calibration.ATTENTION_RATE_SHARE)
    )
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
    once = reading + layers * serving_layer_s + moe_layers * calibration.EXPERT_LAYER_S
    together = minimum(
        maximum(PASS_TOKENS / input_tokens, 1.0), 1.0 + concurrent_requests / (40.0 * attention_data_parallel)
    )
    sent = exchange_message_s + input_tokens * (1.0 - cached_input_share) / attention_data_parallel * exchange_token_s
    return prefill_work_s + sent + once / (attention_data_parallel * together)


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


def prefill_backlog_s(
    concurrent_requests: Numeric,
    prefill_s: Numeric,
    output_tokens: Numeric,
    time_per_output_token_s: Numeric,
    prefill_separate: Numeric,
) -> Numeric:
    r"""Least time to the first token of requests that are kept in flight, where prompts limit their rate.

    .. math:: t_b = \max((1 - 0.37\, z)\, R\, t_p - (s_{out} - 1)\, t_o,\ 0)

    Notes
    -----
    The requests that decode cannot hold wait for their prompts, :math:`R` for each prefill worker. The factor is
    fitted: separate prefill under this load is faster than one prompt after the other.

    Examples
    --------
    >>> prefill_backlog_s(256.0, 0.35, 1024.0, 0.03, 1.0)
    25.75799...
    """
    prompts = (1.0 - 0.37 * prefill_separate) * concurrent_requests * prefill_s
    return maximum(prompts - (output_tokens - 1.0) * time_per_output_token_s, 0.0)
