"""Energy and cost of a token, and the load at which rented accelerators pay."""

from __future__ import annotations

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.types import Numeric
from factorykit.formulas.functions import maximum


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

    .. math:: c_h = c_{in} s_{in}\, \frac{2 L_a a (d + d_r + d_v) \max((1 - h_p) s_{in}, 1)}{C_p}

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
    work = scores * maximum((1.0 - cached_input_share) * input_tokens, 1.0)
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
