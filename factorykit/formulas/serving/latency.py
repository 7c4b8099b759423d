"""Latency of a request: time to the first token, time per output token, and their percentiles."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp, log, maximum, minimum, sqrt


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


def _lognormal_over_mean(share: Numeric, variance: Numeric) -> Numeric:
    normal = 4.91 * (exp(0.14 * log(share)) - exp(0.14 * log(1.0 - share)))
    return exp(normal * sqrt(variance) - 0.5 * variance)


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
    longer = maximum(_lognormal_over_mean(latency_percentile, log(1.0 + input_tokens_cv * input_tokens_cv)) - 1.0, 0.0)
    late = maximum(waiting, 0.0)
    return time_to_first_token_s + prefill_s * (minimum(waiting, 0.0) + sqrt(late * late + longer * longer))


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
    return time_per_output_token_s * _lognormal_over_mean(latency_percentile, variance)


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
    longest = output_tokens * _lognormal_over_mean(latency_percentile, log(1.0 + output_tokens_cv * output_tokens_cv))
    return time_to_first_token_s + time_per_output_token_s * longest
