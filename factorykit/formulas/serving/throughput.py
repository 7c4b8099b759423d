"""Throughput of a model replica, and the replicas and accelerators that a load needs."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import ceil


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


def serving_users(requests_per_s: Numeric, request_latency_s: Numeric, user_think_s: Numeric) -> Numeric:
    r"""Users who make a load, each of whom reads and thinks between answers.

    .. math:: U = \lambda\, (t_r + t_u)

    References
    ----------
    .. [little1961] theorem 1

    Examples
    --------
    >>> serving_users(6.4, 15.0, 60.0)
    480.0
    """
    return requests_per_s * (request_latency_s + user_think_s)


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
