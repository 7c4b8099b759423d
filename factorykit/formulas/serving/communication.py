"""Communication of a model replica: collectives of each pass, and the transfer of caches between replicas."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import maximum, minimum, where
from factorykit.formulas.serving import calibration

ACTIVATION_BYTES = 2.0
"""Bytes of one element that ranks exchange: 16 bits."""


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
    message = where(domains > 1.0, domains * calibration.SCALE_OUT_MESSAGE_S, serving_message_s)
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
