"""How often to save, and what share of the time is left for training."""

from __future__ import annotations

from factorykit.formulas.functions import exp, expm1, sqrt, where
from factorykit.typing import Numeric


def checkpoint_bytes(parameters: Numeric, checkpoint_bytes_per_parameter: Numeric) -> Numeric:
    r"""Size of one checkpoint.

    .. math:: S = N b

    Parameters
    ----------
    parameters : numeric
        All weights of the model, :math:`N`. [1]
    checkpoint_bytes_per_parameter : numeric
        Bytes saved for one weight, :math:`b`. [byte]

    Returns
    -------
    checkpoint_bytes : numeric
        Size, :math:`S`. [byte]

    Notes
    -----
    12 for a 32-bit master weight and two Adam moments, 14 with bf16 weights, 16 with gradients. Experts count in full.

    References
    ----------
    .. [1] S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models," SC 2020,
       arXiv:1910.02054, section 3.1.

    Examples
    --------
    >>> checkpoint_bytes(405e9, 14.0) / 1e12
    5.67
    """
    return parameters * checkpoint_bytes_per_parameter


def checkpoint_write_s(checkpoint_bytes: Numeric, storage_write_bytes_per_s: Numeric) -> Numeric:
    r"""Time the job stands still while a checkpoint is written at the storage's rate.

    .. math:: C_w = S / B_w

    Parameters
    ----------
    checkpoint_bytes : numeric
        Size of one checkpoint, :math:`S`. [byte]
    storage_write_bytes_per_s : numeric
        Aggregate rate for the whole job, :math:`B_w`. [byte/s]

    Returns
    -------
    checkpoint_write_s : numeric
        Time for one checkpoint, :math:`C_w`. [s]

    Notes
    -----
    For a blocking save. An asynchronous save blocks for less: give its blocking time as ``checkpoint_write_s``.

    References
    ----------
    .. [1] Llama Team, "The Llama 3 herd of models," arXiv:2407.21783, 2024, section 3.3.1: 2 TB/s sustained.

    Examples
    --------
    >>> round(checkpoint_write_s(5.67e12, 2e12), 2)
    2.83
    """
    return checkpoint_bytes / storage_write_bytes_per_s


def checkpoint_interval_young_s(checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Work between two checkpoints that loses least, to first order.

    .. math:: \tau = \sqrt{2 C_w M}

    Parameters
    ----------
    checkpoint_write_s : numeric
        Time the job stands still for one checkpoint, :math:`C_w`. [s]
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]

    Returns
    -------
    checkpoint_interval_young_s : numeric
        Work between checkpoints, :math:`\tau`; the write itself is not in it. [s]

    Notes
    -----
    Good while :math:`C_w \ll M`: the run takes 0.006 % longer than at the optimum for a write of 60 s and a failure
    every three hours, 14 % longer where a write lasts as long as the time between failures.

    References
    ----------
    .. [1] J. W. Young, "A first order approximation to the optimum checkpoint interval," Commun. ACM, vol. 17, no. 9,
       p. 530, 1974.

    Examples
    --------
    A minute per checkpoint, a failure every three hours:

    >>> round(checkpoint_interval_young_s(60.0, 3 * 3600.0))
    1138
    """
    return sqrt(2.0 * checkpoint_write_s * cluster_mtbf_s)


def checkpoint_interval_daly_s(checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Work between two checkpoints that loses least, to higher order.

    .. math::
        \tau = \sqrt{2 C_w M} \left[1 + \tfrac13 \sqrt{\tfrac{C_w}{2M}} + \tfrac19 \tfrac{C_w}{2M}\right] - C_w
        \quad (C_w < 2M), \qquad \tau = M \quad \text{otherwise}

    Parameters
    ----------
    checkpoint_write_s : numeric
        Time the job stands still for one checkpoint, :math:`C_w`. [s]
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]

    Returns
    -------
    checkpoint_interval_daly_s : numeric
        Work between checkpoints, :math:`\tau`; the write itself is not in it. [s]

    Notes
    -----
    The total time lies within 0.2 % of the least possible one where :math:`C_w < 2M`.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, equation 37.

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

    Parameters
    ----------
    checkpoint_write_s : numeric
        Time the job stands still for one checkpoint, :math:`C_w`. [s]
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]

    Returns
    -------
    checkpoint_interval_optimal_s : numeric
        Work between checkpoints, :math:`\tau`; the write itself is not in it. [s]

    Notes
    -----
    Restart time and downtime do not move the optimum. The start is the Padé approximant [1/2] of the branch-point
    series of :math:`W_0` in :math:`p = \sqrt{2 (1 - \mathrm{e}^{-C_w/M})}` [2]_, within 0.13 % and never above the
    root. Two Newton steps follow on the same equation written as :math:`x + (\mathrm{e}^{-(x + C_w/M)} - 1) = 0`, in
    which a step cannot leave :math:`(0, 1]`. Below :math:`C_w / M = 10^{-5}` the start is better than any step in
    doubles. Relative error below 1e-12 for every :math:`C_w / M`.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, equation 20, whose stationary point this is.
    .. [2] R. M. Corless et al., "On the Lambert W function," Adv. Comput. Math., vol. 5, pp. 329-359, 1996, section 4,
       equation 4.22.

    Examples
    --------
    >>> round(checkpoint_interval_optimal_s(60.0, 3 * 3600.0), 2)
    1098.78
    """
    ratio = checkpoint_write_s / cluster_mtbf_s
    p = sqrt(-2.0 * expm1(-ratio))
    start = p * (1.0 + 16.0 / 45.0 * p) / (1.0 + p * (31.0 / 45.0 + 83.0 / 1080.0 * p))
    root = start
    for _ in range(2):
        decay = expm1(-(root + ratio))
        root = root + (root + decay) / decay
    return cluster_mtbf_s * where(ratio < 1e-5, start, root)


def checkpoint_interval_s(checkpoint_interval_optimal_s: Numeric) -> Numeric:
    r"""Work between two checkpoints where nobody says otherwise: the exact optimum.

    .. math:: \tau = \tau_{\mathrm{opt}}

    Parameters
    ----------
    checkpoint_interval_optimal_s : numeric
        Work between checkpoints that makes the expected run shortest, :math:`\tau_{\mathrm{opt}}`. [s]

    Returns
    -------
    checkpoint_interval_s : numeric
        Work between checkpoints, :math:`\tau`; the write itself is not in it. [s]

    Notes
    -----
    A scenario that gives ``checkpoint_interval_s``, or names a rival model for it, is taken at its word.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006.

    Examples
    --------
    >>> checkpoint_interval_s(1100.0)
    1100.0
    """
    return checkpoint_interval_optimal_s


def checkpoint_goodput(
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    cluster_mtbf_s: Numeric,
    restart_s: Numeric,
    downtime_s: Numeric,
) -> Numeric:
    r"""Share of the time that ends up as progress, exactly, for failures at a constant rate.

    .. math:: G_c = \frac{\tau}{(M + D_0)\, \mathrm{e}^{R/M} \left(\mathrm{e}^{(\tau + C_w)/M} - 1\right)}

    Parameters
    ----------
    checkpoint_interval_s : numeric
        Work between checkpoints, :math:`\tau`. [s]
    checkpoint_write_s : numeric
        Time the job stands still for one checkpoint, :math:`C_w`. [s]
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]
    restart_s : numeric
        Restart time, :math:`R`, during which a failure can strike. [s]
    downtime_s : numeric
        Time before the restart begins, :math:`D_0`, in which nothing can fail. [s]

    Returns
    -------
    checkpoint_goodput : numeric
        Work over expected time, :math:`G_c`. [1]

    Notes
    -----
    Exact for exponential times between failures and a save that blocks. Zero where the run would never end.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, equation 20.
    .. [2] M. Bougeret et al., "Checkpointing strategies for parallel jobs," SC 2011, proposition 1: downtime.

    Examples
    --------
    Llama 3's rate, a minute to write, ten to restart:

    >>> round(checkpoint_goodput(1100.0, 60.0, 54 * 86400 / 419, 600.0, 0.0), 4)
    0.8525
    """
    stretch = exp(restart_s / cluster_mtbf_s) * expm1((checkpoint_interval_s + checkpoint_write_s) / cluster_mtbf_s)
    return checkpoint_interval_s / ((cluster_mtbf_s + downtime_s) * stretch)


def goodput(checkpoint_goodput: Numeric) -> Numeric:
    r"""Share of wall-clock time that ends up as progress where nobody says otherwise: what failures and saves leave.

    .. math:: G = G_c

    Parameters
    ----------
    checkpoint_goodput : numeric
        Goodput under failures, :math:`G_c`. [1]

    Returns
    -------
    goodput : numeric
        Goodput, :math:`G`. [1]

    Notes
    -----
    A scenario that gives ``goodput``, or names a rival model such as ``ettr`` for it, is taken at its word.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, section 5.

    Examples
    --------
    >>> goodput(0.9)
    0.9
    """
    return checkpoint_goodput


def lost_work_s(checkpoint_interval_s: Numeric, checkpoint_write_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Time since the last checkpoint that a failure takes with it, on average.

    .. math:: L_f = M - \frac{x}{\mathrm{e}^{x/M} - 1}, \qquad x = \tau + C_w

    Parameters
    ----------
    checkpoint_interval_s : numeric
        Work between checkpoints, :math:`\tau`. [s]
    checkpoint_write_s : numeric
        Time the job stands still for one checkpoint, :math:`C_w`. [s]
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]

    Returns
    -------
    lost_work_s : numeric
        Time lost by one failure, :math:`L_f`; the begun write is in it. [s]

    Notes
    -----
    Tends to half the period for :math:`x \ll M` and to :math:`M` for :math:`x \gg M`. Below :math:`x/M = 0.01` three
    terms of the series in :math:`x/M` replace the difference, which would cancel; they are good to 4e-15 there.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, section 3.

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
