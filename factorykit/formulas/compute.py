"""Training compute and the time a cluster needs for it."""

from __future__ import annotations

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.types import Numeric

TENTH = 0.1
"""Added by the published function for each unit of its overhead multiplier."""
PACE_FLOP = 1e24
PACE_AT_1E24 = 1.35
PACE_TREND = -0.05
"""Compute of a published run, its pace, and the exponent of the pace by compute: Theil-Sen line of `validate_plans`."""


def training_flop(active_parameters: Numeric, tokens: Numeric) -> Numeric:
    r"""Work of a training run: two FLOP per weight and token forward, four backward.

    .. math:: C = 6 N_a D

    Notes
    -----
    Attention scores are left out; they add :math:`s / 6h` for sequences of :math:`s` tokens in a model of width
    :math:`h`, 8 % for Llama 3 405B at 8,192 tokens. Columns and numbers broadcast as in polars.

    References
    ----------
    .. [kaplan2020] section 2.1, table 1

    Examples
    --------
    Llama 3.1 405B on 15.6 trillion tokens; the paper prints 3.8e25:

    >>> f"{training_flop(405e9, 15.6e12):.2e}"
    '3.79e+25'
    """
    return 6.0 * active_parameters * tokens


def nodes(accelerators: Numeric, accelerators_per_node: Numeric) -> Numeric:
    r"""Servers that hold the accelerators.

    .. math:: n_s = n / g

    Notes
    -----
    Power and failures are proportional to the share of a server that is used, so the result is not rounded up.

    Examples
    --------
    >>> nodes(16384.0, 8.0)
    2048.0
    """
    return accelerators / accelerators_per_node


def accelerators_in_nodes(nodes: Numeric, accelerators_per_node: Numeric) -> Numeric:
    r"""Accelerators of a number of nodes.

    .. math:: n = n_s g

    Examples
    --------
    The 2,048 nodes of eight H100 that trained Llama 3.1 405B:

    >>> accelerators_in_nodes(2048.0, 8.0)
    16384.0
    """
    return nodes * accelerators_per_node


def cluster_peak_flop_per_s(accelerators: Numeric, peak_flop_per_s: Numeric) -> Numeric:
    r"""Dense peak rate of all accelerators together.

    .. math:: F_c = n F

    Notes
    -----
    Rates printed "with sparsity" are twice the dense ones; no training run reaches them.

    Examples
    --------
    24,576 H100 are 24.3 EFLOP/s, not PFLOP/s:

    >>> f"{cluster_peak_flop_per_s(24576.0, 989e12):.3g}"
    '2.43e+19'
    """
    return accelerators * peak_flop_per_s


def training_s(training_flop: Numeric, cluster_peak_flop_per_s: Numeric, mfu: Numeric) -> Numeric:
    r"""Time the work takes if nothing stops it.

    .. math:: T_0 = \frac{C}{F_c\, \mathrm{MFU}}

    Notes
    -----
    MFU and peak have to belong to one precision, and MFU to the count of FLOP that is used.

    References
    ----------
    .. [chowdhery2022] appendix B

    Examples
    --------
    >>> round(training_s(3.79e25, 16384 * 989e12, 0.40) / 86400, 1)
    67.7
    """
    return training_flop / (cluster_peak_flop_per_s * mfu)


def training_days(training_s: Numeric) -> Numeric:
    r"""Time the work takes if nothing stops it, in days.

    .. math:: T_{0,d} = T_0 / 86400

    Notes
    -----
    Exact.

    Examples
    --------
    >>> training_days(864000.0)
    10.0
    """
    return training_s / SECONDS_PER_DAY


def training_from_days_s(training_days: Numeric) -> Numeric:
    r"""Time the work takes if nothing stops it, from days.

    .. math:: T_0 = 86400\,T_{0,d}

    Examples
    --------
    >>> training_from_days_s(10.0)
    864000.0
    """
    return training_days * SECONDS_PER_DAY


def training_from_wall_s(wall_s: Numeric, goodput: Numeric) -> Numeric:
    r"""Time the work takes if nothing stops it, from the time with stops.

    .. math:: T_0 = T G

    Examples
    --------
    >>> training_from_wall_s(1.0e7, 0.9)
    9000000.0
    """
    return wall_s * goodput


def wall_s(training_s: Numeric, goodput: Numeric) -> Numeric:
    r"""Time from the first step to the last, stops included.

    .. math:: T = T_0 / G

    Notes
    -----
    Infinite where goodput is zero: the run never ends.

    References
    ----------
    .. [kokolis2025] section II-D: effective training time ratio

    Examples
    --------
    >>> wall_s(9.0e6, 0.9)
    10000000.0
    """
    return training_s / goodput


def wall_days(wall_s: Numeric) -> Numeric:
    r"""Wall-clock time in days.

    .. math:: T_d = T / 86400

    Notes
    -----
    Exact.

    Examples
    --------
    >>> wall_days(86400.0 * 54)
    54.0
    """
    return wall_s / SECONDS_PER_DAY


def wall_from_days_s(wall_days: Numeric) -> Numeric:
    r"""Wall-clock time from days.

    .. math:: T = 86400\,T_d

    Examples
    --------
    >>> wall_from_days_s(54.0)
    4665600.0
    """
    return wall_days * SECONDS_PER_DAY


def wall_campaign_s(training_s: Numeric, goodput: Numeric, campaign_pace: Numeric) -> Numeric:
    r"""Time from the first step to the last of a campaign: restarts by hand, evaluation and slow layouts included.

    .. math:: T_k = \pi_k T_0 / G

    Notes
    -----
    The pace is measured: duration of published runs over that of their best layout, :func:`validate_plans`.

    Examples
    --------
    >>> round(wall_campaign_s(9.0e6, 0.9, 1.3))
    13000000
    """
    return training_s * campaign_pace / goodput


def campaign_pace_typical(training_flop: Numeric, campaign_factor: Numeric) -> Numeric:
    r"""Pace that published runs of as much compute had; the larger a run, the nearer it came to its best layout.

    .. math:: \pi_k = 1.35\, f \left(\frac{C}{10^{24}}\right)^{-0.05}

    Notes
    -----
    The line through the paces of :func:`validate_plans`, whose 90 % interval the exponent leaves between -0.08 and
    -0.02; the factor is the rest, drawn in plans.

    Examples
    --------
    Llama 3.1 405B, and a run of a thousandth of its compute:

    >>> [round(campaign_pace_typical(flop, 1.0), 2) for flop in (3.8e25, 3.8e22)]
    [1.13, 1.59]
    """
    return campaign_factor * PACE_AT_1E24 * (training_flop / PACE_FLOP) ** PACE_TREND


def accelerator_hours(accelerators: Numeric, wall_s: Numeric) -> Numeric:
    r"""Accelerator-hours the run occupies, stops included.

    .. math:: H = n T / 3600

    Notes
    -----
    Spares that stand by are not in it.

    Examples
    --------
    >>> accelerator_hours(2048.0, 3600.0 * 24)
    49152.0
    """
    return accelerators * wall_s / SECONDS_PER_HOUR


def wall_from_accelerator_hours_s(accelerator_hours: Numeric, accelerators: Numeric) -> Numeric:
    r"""Wall-clock time from accelerator-hours.

    .. math:: T = 3600\,H / n

    Examples
    --------
    The 2.788 million H800-hours of DeepSeek-V3 on 2,048 of them, in days:

    >>> round(wall_from_accelerator_hours_s(2.788e6, 2048.0) / 86400, 1)
    56.7
    """
    return accelerator_hours * SECONDS_PER_HOUR / accelerators


def training_flop_padded(training_flop: Numeric, overhead_multiplier: Numeric) -> Numeric:
    r"""Training compute with a share on top, as a function of a published post counts it.

    .. math:: C_o = C \left( 1 + \frac{o}{10} \right)

    Notes
    -----
    The name misleads: a multiplier of 1 should change nothing and adds 10 %; 0 gives the plain count. Only the audit
    uses it, to reproduce a published number.

    References
    ----------
    .. [trainingclusters2025] compute_training_flops

    Examples
    --------
    >>> training_flop_padded(3.645e25, 0.0)
    3.645e+25
    >>> round(training_flop_padded(3.645e25, 1.0) / 1e25, 4)
    4.0095
    """
    return training_flop * (1.0 + overhead_multiplier * TENTH)


def corpus_bytes(tokens: Numeric, bytes_per_token: Numeric) -> Numeric:
    r"""Storage that the tokens of a run take.

    .. math:: S_D = D b_t

    Notes
    -----
    An upper bound where tokens repeat, since they are stored once.

    Examples
    --------
    >>> corpus_bytes(15e12, 4.0)
    60000000000000.0
    """
    return tokens * bytes_per_token
