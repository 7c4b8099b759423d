"""Accelerators, storage and network required by a model of a given size."""

from __future__ import annotations

from factorykit.core.types import Numeric

TOKENS_PER_PARAMETER = 20.0
"""Hoffmann et al. 2022, table 3: 20.2 tokens per parameter at 67B, rounded as everybody quotes it. [1]"""
BATCH_TOKENS = 0.292
"""Bi et al. 2024, section 3.1: tokens of a step for a budget of one FLOP. [1]"""
BATCH_EXPONENT = 0.3271
"""Bi et al. 2024, section 3.1. [1]"""


def required_accelerators(
    training_flop: Numeric, peak_flop_per_s: Numeric, mfu: Numeric, goodput: Numeric, deadline_s: Numeric
) -> Numeric:
    r"""Accelerators that finish the work by a deadline.

    .. math:: n_d = \frac{C}{F\, \mathrm{MFU}\, G\, T_d}

    Notes
    -----
    MFU and goodput fall with scale; give those of the scale that comes out.

    Examples
    --------
    405B on 15.6 trillion tokens in 78.4 days at 38 % and no stops:

    >>> round(required_accelerators(3.79e25, 989e12, 0.38, 1.0, 78.4 * 86400))
    14888
    """
    return training_flop / (peak_flop_per_s * mfu * goodput * deadline_s)


def compute_optimal_tokens(parameters: Numeric) -> Numeric:
    r"""Tokens that make best use of a training budget.

    .. math:: D_* = 20 N

    Notes
    -----
    About 20 tokens per parameter; models meant to be served are trained far longer.

    References
    ----------
    .. [hoffmann2022] table 3

    Examples
    --------
    Chinchilla, 70B:

    >>> compute_optimal_tokens(70e9)
    1400000000000.0
    """
    return TOKENS_PER_PARAMETER * parameters


def compute_optimal_step_tokens(training_flop: Numeric) -> Numeric:
    r"""Tokens of an optimizer step that make best use of a training budget.

    .. math:: B_* = 0.292\, C^{0.3271}

    Notes
    -----
    Fitted on budgets from 1e17 to 2e19 FLOP and used for models of 7B and 67B. Losses near the optimum are flat: half
    as much or twice as much costs little.

    References
    ----------
    .. [bi2024] section 3.1, equation 1

    Examples
    --------
    DeepSeek LLM 67B took steps of 4,608 sequences of 4,096 tokens over two trillion; in millions:

    >>> round(4608 * 4096 / 1e6, 1), round(compute_optimal_step_tokens(6 * 67e9 * 2e12) / 1e6, 1)
    (18.9, 19.3)
    """
    return BATCH_TOKENS * training_flop**BATCH_EXPONENT


def data_read_bytes_per_s(tokens: Numeric, bytes_per_token: Numeric, training_s: Numeric) -> Numeric:
    r"""Rate at which training reads its tokens.

    .. math:: B_d = D b_t / T

    Notes
    -----
    While the run computes: failures and pauses are left aside. Text is tokenized beforehand. Images and video read
    more; start-up and shuffling come in bursts.

    Examples
    --------
    15 trillion tokens in 54 days:

    >>> round(data_read_bytes_per_s(15e12, 4.0, 54 * 86400.0) / 1e6, 1)
    12.9
    """
    return tokens * bytes_per_token / training_s


def data_read_share(data_read_bytes_per_s: Numeric, storage_read_bytes_per_s: Numeric) -> Numeric:
    r"""Share of the storage's read rate that training data takes.

    .. math:: z_d = B_d / B_r

    Notes
    -----
    Above 1 the accelerators wait for data.

    Examples
    --------
    >>> round(data_read_share(12.9e6, 10e9), 5)
    0.00129
    """
    return data_read_bytes_per_s / storage_read_bytes_per_s


def storage_write_needed_bytes_per_s(checkpoint_bytes: Numeric, checkpoint_stall_limit_s: Numeric) -> Numeric:
    r"""Write rate that keeps the stall for a checkpoint within a limit.

    .. math:: B_{w,min} = S / C_{max}

    Notes
    -----
    For saves that block; asynchronous saves only have to end within the interval.

    Examples
    --------
    405B at 14 bytes within a minute, in GB/s:

    >>> storage_write_needed_bytes_per_s(405e9 * 14.0, 60.0) / 1e9
    94.5
    """
    return checkpoint_bytes / checkpoint_stall_limit_s


def gradient_exchange_bytes(
    parameters: Numeric, gradient_bytes_per_parameter: Numeric, model_shards: Numeric
) -> Numeric:
    r"""Bytes that one accelerator sends in a step to agree on gradients.

    .. math:: S_g = 2 b_g N / n_m

    Notes
    -----
    A ring all-reduce, or reduce-scatter and all-gather, over many copies; each direction carries as much. Exchange
    inside a copy of the model comes on top.

    References
    ----------
    .. [thakur2005] section 4.4

    Examples
    --------
    405B over 128 accelerators, in GB:

    >>> gradient_exchange_bytes(405e9, 2.0, 128.0) / 1e9
    12.65625
    """
    return 2.0 * gradient_bytes_per_parameter * parameters / model_shards


def scale_out_needed_bytes_per_s(
    gradient_exchange_bytes: Numeric,
    active_parameters: Numeric,
    tokens_per_step: Numeric,
    cluster_peak_flop_per_s: Numeric,
    mfu: Numeric,
) -> Numeric:
    r"""Bandwidth per accelerator and direction at which the gradient exchange hides behind the arithmetic.

    .. math:: B_{out} = S_g \frac{F_c\, \mathrm{MFU}}{6 N_a B_t}

    Notes
    -----
    Perfect overlap with the whole step; in practice only the backward pass covers it, so the need is up to 1.5 times as
    high.

    References
    ----------
    .. [zeroinfinity] section 4

    Examples
    --------
    Llama 3 405B on 16,384 H100, 16 million tokens a step, in GB/s:

    >>> round(scale_out_needed_bytes_per_s(12.65625e9, 405e9, 16e6, 16384 * 989e12, 0.4) / 1e9, 2)
    2.11
    """
    return gradient_exchange_bytes * cluster_peak_flop_per_s * mfu / (6.0 * active_parameters * tokens_per_step)
