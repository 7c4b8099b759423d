"""How often a job stops."""

from __future__ import annotations

from factorykit.constants import SECONDS_PER_DAY
from factorykit.typing import Numeric


def cluster_mtbf_s(accelerator_mtbf_s: Numeric, accelerators: Numeric) -> Numeric:
    r"""Mean time between failures of a job that any one of its parts can stop.

    .. math:: M = m / n

    Parameters
    ----------
    accelerator_mtbf_s : numeric
        Mean time between interruptions caused by one chip and its share of the system, :math:`m`. [s]
    accelerators : numeric
        Chips that work on the run, :math:`n`. [1]

    Returns
    -------
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]

    Notes
    -----
    Failures are independent and arrive at a constant rate. Published rates of small jobs are higher than this law says
    (3.65 times at 1,024 GPUs [1]_), as are those near 100,000 GPUs.

    References
    ----------
    .. [1] A. Kokolis et al., "Revisiting reliability in large-scale machine learning research clusters," HPCA 2025,
       arXiv:2410.21680, section III.
    .. [2] Llama Team, "The Llama 3 herd of models," arXiv:2407.21783, 2024, section 3.3.4: 419 in 54 days.

    Examples
    --------
    Llama 3: 50,677 GPU-hours per interruption, 16,384 GPUs:

    >>> round(cluster_mtbf_s(50_677 * 3600.0, 16384.0) / 3600, 2)
    3.09
    """
    return accelerator_mtbf_s / accelerators


def failures_per_day(cluster_mtbf_s: Numeric) -> Numeric:
    r"""Failures of the job in a day.

    .. math:: f_d = 86400 / M

    Parameters
    ----------
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]

    Returns
    -------
    failures_per_day : numeric
        Expected number a day. [1/d]

    Notes
    -----
    Counts failures of running time; days spent down have fewer.

    References
    ----------
    .. [1] Llama Team, "The Llama 3 herd of models," arXiv:2407.21783, 2024, section 3.3.4: 419 in 54 days.

    Examples
    --------
    >>> round(failures_per_day(54 * 86400 / 419), 2)
    7.76
    """
    return SECONDS_PER_DAY / cluster_mtbf_s


def expected_failures(wall_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Failures of the job in the run.

    .. math:: n_f = T / M

    Parameters
    ----------
    wall_s : numeric
        Wall-clock time, :math:`T`. [s]
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]

    Returns
    -------
    expected_failures : numeric
        Expected number of failures. [1]

    Notes
    -----
    Exact for a constant rate without downtime; with downtime, in which nothing fails, a little high.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, section 3.

    Examples
    --------
    >>> round(expected_failures(54 * 86400.0, 11135.0))
    419
    """
    return wall_s / cluster_mtbf_s


def ettr(
    nodes: Numeric,
    node_failures_per_node_day: Numeric,
    restart_s: Numeric,
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
) -> Numeric:
    r"""Effective training time ratio by the first-order rule of Meta's study.

    .. math:: \mathrm{ETTR} = \frac{1 - n_s r_f (R + \tau / 2)}{1 + C_w / \tau}

    Parameters
    ----------
    nodes : numeric
        Servers, :math:`n_s`. [1]
    node_failures_per_node_day : numeric
        Failures per server and day, :math:`r_f`. [1/d]
    restart_s : numeric
        Restart time, :math:`R`, turned into days. [s]
    checkpoint_interval_s : numeric
        Work between two checkpoints, :math:`\tau`, turned into days. [s]
    checkpoint_write_s : numeric
        Time the job stands still for one checkpoint, :math:`C_w`. [s]

    Returns
    -------
    ettr : numeric
        Productive share of the job's time without queueing. [1]

    Notes
    -----
    Linear in the losses: good while they stay below a quarter, negative where failures come faster than restarts.
    ``checkpoint_goodput`` is exact for the same assumptions.

    References
    ----------
    .. [1] A. Kokolis et al., "Revisiting reliability in large-scale machine learning research clusters," HPCA 2025,
       arXiv:2410.21680, section II-D.

    Examples
    --------
    16,384 GPUs at 6.5 failures per 1,000 node-days, restart and interval of 5 minutes, no time for the write:

    >>> round(ettr(2048.0, 0.0065, 300.0, 300.0, 0.0), 3)
    0.931
    """
    loss = nodes * node_failures_per_node_day * (restart_s + 0.5 * checkpoint_interval_s) / SECONDS_PER_DAY
    return (1.0 - loss) / (1.0 + checkpoint_write_s / checkpoint_interval_s)
