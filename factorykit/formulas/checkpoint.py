"""Checkpoint size, write time and interval, and the resulting goodput."""

from __future__ import annotations

from typing import Final

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.types import Numeric
from factorykit.formulas.functions import ceil, exp, expm1, maximum, minimum, sqrt, where
from factorykit.formulas.validity import holds_while

LEAST_GROWTH: Final = 1e-300
"""Stands for no time at risk, by which nothing can be divided."""
restarts_end: Final = holds_while(
    "restart_s < cluster_mtbf_s (else most restarts are struck by the next failure)",
    lambda restart_s, cluster_mtbf_s: restart_s < cluster_mtbf_s,
)


def checkpoint_bytes(parameters: Numeric, checkpoint_bytes_per_parameter: Numeric) -> Numeric:
    r"""Size of one checkpoint.

    .. math:: S = N b

    Notes
    -----
    12 for a 32-bit master weight and two Adam moments, 14 with bf16 weights, 16 with gradients. Experts count in full.

    Examples
    --------
    >>> checkpoint_bytes(405e9, 14.0) / 1e12
    5.67
    """
    return parameters * checkpoint_bytes_per_parameter


def checkpoint_write_s(checkpoint_bytes: Numeric, storage_write_bytes_per_s: Numeric) -> Numeric:
    r"""Time the job stands still while a checkpoint is written at the storage's rate.

    .. math:: C_w = S / B_w

    Notes
    -----
    For a blocking save. An asynchronous save blocks for less: give its blocking time as ``checkpoint_write_s``.

    Examples
    --------
    405B at 2 TB/s, as Llama 3's storage sustains:

    >>> round(checkpoint_write_s(5.67e12, 2e12), 2)
    2.83
    """
    return checkpoint_bytes / storage_write_bytes_per_s


def checkpoint_bytes_per_accelerator(checkpoint_bytes: Numeric, accelerators: Numeric) -> Numeric:
    r"""Part of a checkpoint that one chip holds.

    .. math:: S_a = S / n

    Notes
    -----
    Fully sharded: every byte is written once.

    Examples
    --------
    >>> round(checkpoint_bytes_per_accelerator(5.67e12, 16384.0) / 1e6)
    346
    """
    return checkpoint_bytes / accelerators


def storage_slowest_bytes_per_s(
    nodes: Numeric, node_storage_bytes_per_s: Numeric, filesystem_bytes_per_s: Numeric
) -> Numeric:
    r"""Rate at which a whole job can write or read, set by the slowest link.

    .. math:: B_\mathrm{min} = \min(n_s B_n,\; B_\mathrm{fs})

    Notes
    -----
    Servers and filesystem in series; other jobs on the filesystem are not counted.

    Examples
    --------
    >>> storage_slowest_bytes_per_s(256.0, 5e9, 2e12) / 1e12
    1.28
    """
    return minimum(nodes * node_storage_bytes_per_s, filesystem_bytes_per_s)


def checkpoint_read_s(checkpoint_bytes: Numeric, storage_read_bytes_per_s: Numeric) -> Numeric:
    r"""Time to read one checkpoint back.

    .. math:: C_r = S / B_r

    Notes
    -----
    Where one replica reads and passes on, give the rate of that replica.

    Examples
    --------
    405B on 8,960 GPUs, as ByteCheckpoint read it in 129.49 s:

    >>> round(checkpoint_read_s(5.67e12, 43.787e9), 1)
    129.5
    """
    return checkpoint_bytes / storage_read_bytes_per_s


def checkpoint_bytes_per_day(
    checkpoint_bytes: Numeric, checkpoint_interval_s: Numeric, checkpoint_write_s: Numeric
) -> Numeric:
    r"""Bytes that checkpoints write in a day.

    .. math:: S_d = \frac{86400\, S}{\tau + C_w}

    Notes
    -----
    For a day without failures.

    Examples
    --------
    >>> checkpoint_bytes_per_day(5.67e12, 540.0, 60.0) / 1e12
    816.48
    """
    return SECONDS_PER_DAY * checkpoint_bytes / (checkpoint_interval_s + checkpoint_write_s)


def checkpoints_kept_by_age(
    checkpoint_retention_s: Numeric, checkpoint_interval_s: Numeric, checkpoint_write_s: Numeric
) -> Numeric:
    r"""Checkpoints on storage where each is deleted at an age.

    .. math:: n_{ka} = \left\lceil \frac{t_k}{\tau + C_w} \right\rceil + 1

    Notes
    -----
    For a run without stops, which keeps the most.

    Examples
    --------
    >>> checkpoints_kept_by_age(86400.0, 1740.0, 60.0)
    49.0
    """
    return ceil(checkpoint_retention_s / (checkpoint_interval_s + checkpoint_write_s)) + 1.0


def checkpoint_kept_bytes(checkpoint_bytes: Numeric, checkpoints_kept: Numeric) -> Numeric:
    r"""Storage that the kept checkpoints take.

    .. math:: S_k = S\, n_k

    Notes
    -----
    Full checkpoints; differences are not exploited.

    Examples
    --------
    >>> checkpoint_kept_bytes(5.67e12, 49.0) / 1e12
    277.83
    """
    return checkpoint_bytes * checkpoints_kept


def storage_needed_bytes_per_s(checkpoint_bytes: Numeric, checkpoint_target_s: Numeric) -> Numeric:
    r"""Rate at which a checkpoint moves in a given time.

    .. math:: B_t = S / C_t

    Notes
    -----
    The rate that a wanted time needs, or that a measured one implies.

    Examples
    --------
    405B in the 51.06 s that ByteCheckpoint needs:

    >>> round(storage_needed_bytes_per_s(5.67e12, 51.06) / 1e9)
    111
    """
    return checkpoint_bytes / checkpoint_target_s


@holds_while(
    "checkpoint_write_s <= cluster_mtbf_s / 4",
    lambda checkpoint_write_s, cluster_mtbf_s: 4.0 * checkpoint_write_s <= cluster_mtbf_s,
)
def checkpoint_interval_young_s(checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Work between two checkpoints that loses least, to first order.

    .. math:: \tau = \sqrt{2 C_w M}

    Notes
    -----
    Good while :math:`C_w \ll M`: the run takes 0.006 % longer than at the optimum for a write of 60 s and a failure
    every three hours, 14 % longer where a write lasts as long as the time between failures.

    References
    ----------
    .. [young1974] p. 530

    Examples
    --------
    A minute per checkpoint, a failure every three hours:

    >>> round(checkpoint_interval_young_s(60.0, 3 * 3600.0))
    1138
    """
    return sqrt(2.0 * checkpoint_write_s * cluster_mtbf_s)


@holds_while(
    "checkpoint_write_s < 2 cluster_mtbf_s",
    lambda checkpoint_write_s, cluster_mtbf_s: checkpoint_write_s < 2.0 * cluster_mtbf_s,
)
def checkpoint_interval_daly_s(checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Work between two checkpoints that loses least, to higher order.

    .. math::
        \tau = \sqrt{2 C_w M} \left[1 + \tfrac13 \sqrt{\tfrac{C_w}{2M}} + \tfrac19 \tfrac{C_w}{2M}\right] - C_w
        \quad (C_w < 2M), \qquad \tau = M \quad \text{otherwise}

    Notes
    -----
    The total time lies within 0.2 % of the least possible one where :math:`C_w < 2M`.

    References
    ----------
    .. [daly2006] equation 37

    Examples
    --------
    Five minutes per checkpoint, a failure a day; the paper prints 117 minutes:

    >>> round(checkpoint_interval_daly_s(300.0, 86400.0) / 60)
    117
    """
    ratio = checkpoint_write_s / (2.0 * cluster_mtbf_s)
    series = 1.0 + sqrt(ratio) / 3.0 + ratio / 9.0
    interval = sqrt(2.0 * checkpoint_write_s * cluster_mtbf_s) * series - checkpoint_write_s
    return where(checkpoint_write_s < 2.0 * cluster_mtbf_s, interval, cluster_mtbf_s)


def checkpoint_interval_optimal_s(checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Work between two checkpoints that makes the expected run shortest.

    .. math:: \tau = M x, \qquad x + \ln(1 - x) + C_w / M = 0, \qquad x = 1 + W_0(-\mathrm{e}^{-C_w/M - 1})

    Notes
    -----
    Restart time and downtime do not move the optimum. The start is the Padé approximant [1/2] of the branch-point
    series of :math:`W_0` in :math:`p = \sqrt{2 (1 - \mathrm{e}^{-C_w/M})}` [corless1996]_, within 0.13 % and never
    above the root. Two Newton steps follow on the same equation written as :math:`x + (\mathrm{e}^{-(x + C_w/M)} - 1) =
    0`, in which a step cannot leave :math:`(0, 1]`. The exponential of the second is that of the first times
    :math:`\mathrm{e}^{-\Delta}`, of which three terms of the series suffice: :math:`\Delta < 0.0013`. Below
    :math:`C_w / M = 10^{-5}` the start is better than any step in doubles. Relative error below 1e-12 for every
    :math:`C_w / M`.

    References
    ----------
    .. [daly2006] equation 20, whose stationary point this is
    .. [corless1996] section 4, equation 4.22

    Examples
    --------
    >>> round(checkpoint_interval_optimal_s(60.0, 3 * 3600.0), 2)
    1098.78
    """
    ratio = checkpoint_write_s / cluster_mtbf_s
    p = sqrt(-2.0 * expm1(-ratio))
    start = p * (1.0 + 16.0 / 45.0 * p) / (1.0 + p * (31.0 / 45.0 + 83.0 / 1080.0 * p))
    decay = expm1(-(start + ratio))
    step = 1.0 + start / decay
    later = decay - (1.0 + decay) * step * (1.0 - step / 2.0 * (1.0 - step / 3.0))
    root = start + step
    return cluster_mtbf_s * where(ratio < 1e-5, start, root + (1.0 + root / later))


@holds_while(
    "checkpoint_write_s <= cluster_mtbf_s / 8",
    lambda checkpoint_write_s, cluster_mtbf_s: 8.0 * checkpoint_write_s <= cluster_mtbf_s,
)
def checkpoint_interval_saxena_s(checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric, restart_s: Numeric) -> Numeric:
    r"""Work between two checkpoints that makes the availability of the job highest.

    .. math:: \tau = \sqrt{2 (M + R) C_w + C_w^2}

    Notes
    -----
    The paper's period :math:`C_w + \tau` has the save in it. At most one failure a period: good for :math:`C_w \ll M`.

    References
    ----------
    .. [saxena2024] abstract

    Examples
    --------
    >>> round(checkpoint_interval_saxena_s(60.0, 54 * 86400 / 419, 600.0), 1)
    1188.2
    """
    return sqrt(checkpoint_write_s * (2.0 * (cluster_mtbf_s + restart_s) + checkpoint_write_s))


@holds_while(
    "downtime_s + restart_s + checkpoint_write_s <= cluster_mtbf_s / 4",
    lambda checkpoint_write_s, cluster_mtbf_s, restart_s, downtime_s: (
        4.0 * (downtime_s + restart_s + checkpoint_write_s) <= cluster_mtbf_s
    ),
)
def checkpoint_interval_rfo_s(
    checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric, restart_s: Numeric, downtime_s: Numeric
) -> Numeric:
    r"""Work between two checkpoints that makes the first-order waste least.

    .. math:: \tau = \sqrt{2 (M - D_0 - R)\, C_w} - C_w

    Notes
    -----
    The paper's period is :math:`\tau + C_w` and never below :math:`C_w`. Means nothing for :math:`D_0 + R \ge M`, where
    the first-order waste is above 1.

    References
    ----------
    .. [aupy2014] section 2 and table 2

    Examples
    --------
    The paper prints a period of 67,961 s for 1,024 nodes:

    >>> round(checkpoint_interval_rfo_s(600.0, 3_849_609.0, 600.0, 60.0) + 600)
    67961
    """
    period = sqrt(2.0 * maximum(cluster_mtbf_s - downtime_s - restart_s, 0.0) * checkpoint_write_s)
    return maximum(period - checkpoint_write_s, 0.0)


@holds_while(
    "restart_s <= a quarter of the time between failures",
    lambda nodes, node_failures_per_node_day, restart_s: (
        4.0 * nodes * node_failures_per_node_day * restart_s <= SECONDS_PER_DAY
    ),
)
def checkpoint_interval_ettr_s(
    nodes: Numeric, node_failures_per_node_day: Numeric, restart_s: Numeric, checkpoint_write_s: Numeric
) -> Numeric:
    r"""Work between two checkpoints that makes the effective training time ratio highest.

    .. math::
        \tau = \sqrt{C_w^2 + b} - C_w = \frac{b}{\sqrt{C_w^2 + b} + C_w},
        \qquad b = \frac{2 C_w (1 - a R)}{a}, \qquad a = \frac{n_s r_f}{86400}

    Notes
    -----
    The exact maximiser of ``ettr``, derived from it; 0 where a restart lasts longer than the time between failures.
    Good while ``ettr`` is: losses below a quarter.

    References
    ----------
    .. [kokolis2025] section II-D: the ratio that is maximised

    Examples
    --------
    >>> round(checkpoint_interval_ettr_s(1500.0, 0.0065, 300.0, 10.0), 2)
    403.92
    """
    rate = nodes * node_failures_per_node_day / SECONDS_PER_DAY
    square = 2.0 * checkpoint_write_s * maximum(1.0 - rate * restart_s, 0.0) / rate
    return square / (sqrt(checkpoint_write_s * checkpoint_write_s + square) + checkpoint_write_s)


def interval_penalty(checkpoint_interval_s: Numeric, checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Extra time of the run over the best possible interval.

    .. math::
        \epsilon_\tau = \frac{\mathrm{e}^{\delta} - 1 - \delta}{\tau / M},
        \qquad \delta = \frac{\tau - \tau_\mathrm{opt}}{M}

    Notes
    -----
    Exact: the ratio of the two expected times, shortened with the equation of the optimum. Restart and downtime cancel.
    Near the optimum :math:`\delta^2 M / (2 \tau)`: the optimum is flat. Three terms of the series serve below
    :math:`|\delta| = 10^{-3}`.

    References
    ----------
    .. [daly2006] equation 20

    Examples
    --------
    Young's interval at the rate of Llama 3 with writes of a minute costs 0.006 %:

    >>> M = 54 * 86400 / 419
    >>> round(100 * interval_penalty(checkpoint_interval_young_s(60.0, M), 60.0, M), 4)
    0.0061
    """
    delta = (checkpoint_interval_s - checkpoint_interval_optimal_s(checkpoint_write_s, cluster_mtbf_s)) / cluster_mtbf_s
    series = 0.5 * delta * delta * (1.0 + delta / 3.0 * (1.0 + 0.25 * delta))
    excess = where(maximum(delta, -delta) < 1e-3, series, expm1(delta) - delta)
    return excess * cluster_mtbf_s / checkpoint_interval_s


def checkpoint_interval_s(checkpoint_interval_optimal_s: Numeric) -> Numeric:
    r"""Default work between two checkpoints: the exact optimum.

    .. math:: \tau = \tau_{\mathrm{opt}}

    Notes
    -----
    Used unless the scenario gives ``checkpoint_interval_s`` or selects an alternative model.

    Examples
    --------
    >>> checkpoint_interval_s(1100.0)
    1100.0
    """
    return checkpoint_interval_optimal_s


@restarts_end
def checkpoint_goodput(
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    cluster_mtbf_s: Numeric,
    restart_s: Numeric,
    downtime_s: Numeric,
) -> Numeric:
    r"""Share of the time that ends up as progress, exactly, for failures at a constant rate.

    .. math:: G_c = \frac{\tau}{(M + D_0)\, \mathrm{e}^{R/M} \left(\mathrm{e}^{(\tau + C_w)/M} - 1\right)}

    Notes
    -----
    Exact for exponential times between failures and a save that blocks. Zero where the run would never end. Where saves
    and work between them take no time, no work is ever lost, and downtime and restarts alone are left.

    References
    ----------
    .. [daly2006] equation 20
    .. [bougeret2011] proposition 1: downtime

    Examples
    --------
    Llama 3's rate, a minute to write, ten to restart:

    >>> round(checkpoint_goodput(1100.0, 60.0, 54 * 86400 / 419, 600.0, 0.0), 4)
    0.8525
    """
    period = checkpoint_interval_s + checkpoint_write_s
    recovery = exp(restart_s / cluster_mtbf_s)
    stretch = recovery * maximum(expm1(period / cluster_mtbf_s), LEAST_GROWTH)
    kept = checkpoint_interval_s / ((cluster_mtbf_s + downtime_s) * stretch)
    return where(period > 0.0, kept, cluster_mtbf_s / ((cluster_mtbf_s + downtime_s) * recovery))


def goodput(checkpoint_goodput: Numeric) -> Numeric:
    r"""Default share of wall-clock time that ends up as progress: the goodput under failures and checkpoints.

    .. math:: G = G_c

    Notes
    -----
    Used unless the scenario gives ``goodput`` or selects an alternative model such as ``ettr``.

    Examples
    --------
    >>> goodput(0.9)
    0.9
    """
    return checkpoint_goodput


def lost_work_s(checkpoint_interval_s: Numeric, checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Time since the last checkpoint that a failure takes with it, on average.

    .. math:: L_f = M - \frac{x}{\mathrm{e}^{x/M} - 1}, \qquad x = \tau + C_w

    Notes
    -----
    Tends to half the period for :math:`x \ll M` and to :math:`M` for :math:`x \gg M`. Below :math:`x/M = 0.01` three
    terms of the series in :math:`x/M` replace the difference, which would cancel; they are good to 4e-15 there.

    References
    ----------
    .. [daly2006] section 3

    Examples
    --------
    A little less than half of 30 minutes:

    >>> round(lost_work_s(1800.0, 0.0, 11135.0) / 60, 1)
    14.6
    """
    period = checkpoint_interval_s + checkpoint_write_s
    ratio = period / cluster_mtbf_s
    series = period * (0.5 - ratio / 12.0 * (1.0 - ratio * ratio / 60.0))
    return where(ratio < 0.01, series, cluster_mtbf_s - period / expm1(ratio))
