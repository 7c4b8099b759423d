"""What failures, intervals and spares cost in a day, and what it is worth to make them better."""

from __future__ import annotations

from factorykit.constants import HOURS_PER_DAY
from factorykit.formulas.checkpoint import checkpoint_goodput
from factorykit.formulas.functions import expm1
from factorykit.typing import Numeric


def failures_usd_per_day(failures_per_day: Numeric, failure_cost_usd: Numeric) -> Numeric:
    r"""Rent that failures waste in a day.

    .. math:: K_d = f_d K_f

    Parameters
    ----------
    failures_per_day : numeric
        Failures of the job in a day, :math:`f_d`. [1/d]
    failure_cost_usd : numeric
        Cost of one failure, :math:`K_f`. [USD]

    Returns
    -------
    failures_usd_per_day : numeric
        Cost of failures in a day of running time, :math:`K_d`. [USD/d]

    Notes
    -----
    Repairs, spare parts and people are not in it.

    References
    ----------
    .. [1] Llama Team, "The Llama 3 herd of models," arXiv:2407.21783, 2024, section 3.3.4: 419 in 54 days.

    Examples
    --------
    Llama 3's rate at 12,500 USD a failure:

    >>> round(failures_usd_per_day(419 / 54, 12_500.0))
    96991
    """
    return failures_per_day * failure_cost_usd


def interval_usd_per_day(interval_penalty: Numeric, cluster_usd_per_h: Numeric) -> Numeric:
    r"""Rent that a wrong checkpoint interval wastes in a day.

    .. math:: K_\tau = 24\, p_c\, \frac{\epsilon_\tau}{1 + \epsilon_\tau}

    Parameters
    ----------
    interval_penalty : numeric
        Extra time over the best interval, :math:`\epsilon_\tau`. [1]
    cluster_usd_per_h : numeric
        Price of the cluster, :math:`p_c`. [USD/h]

    Returns
    -------
    interval_usd_per_day : numeric
        Cost in a day of an interval other than the best, :math:`K_\tau`. [USD/d]

    Notes
    -----
    The share of each day that the best interval would have saved.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, equation 20.

    Examples
    --------
    An interval that costs 2 % on a cluster for 50,000 USD an hour:

    >>> round(interval_usd_per_day(0.02, 50_000.0))
    23529
    """
    return HOURS_PER_DAY * cluster_usd_per_h * interval_penalty / (1.0 + interval_penalty)


def restart_saving_usd_per_day(
    restart_s: Numeric, restart_faster_s: Numeric, cluster_mtbf_s: Numeric, cluster_usd_per_h: Numeric
) -> Numeric:
    r"""Rent that a faster restart saves in a day.

    .. math:: V_R = 24\, p_c \left(1 - \mathrm{e}^{(R_f - R)/M}\right)

    Parameters
    ----------
    restart_s : numeric
        Restart time, :math:`R`. [s]
    restart_faster_s : numeric
        Restart time after an improvement, :math:`R_f`. [s]
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]
    cluster_usd_per_h : numeric
        Price of the cluster, :math:`p_c`. [USD/h]

    Returns
    -------
    restart_saving_usd_per_day : numeric
        What the faster restart saves in a day, :math:`V_R`; negative for a slower one. [USD/d]

    Notes
    -----
    Exact: goodput changes by this factor, whatever the interval is.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, equation 20.

    Examples
    --------
    Ten minutes down to five at Llama 3's rate and 50,000 USD an hour:

    >>> round(restart_saving_usd_per_day(600.0, 300.0, 54 * 86400 / 419, 50_000.0))
    31899
    """
    return -HOURS_PER_DAY * cluster_usd_per_h * expm1((restart_faster_s - restart_s) / cluster_mtbf_s)


def mtbf_saving_usd_per_day(
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    cluster_mtbf_s: Numeric,
    restart_s: Numeric,
    downtime_s: Numeric,
    mtbf_factor: Numeric,
    cluster_usd_per_h: Numeric,
) -> Numeric:
    r"""Rent that rarer failures save in a day.

    .. math:: V_M = 24\, p_c \left(1 - \frac{G_c(M)}{G_c(x_M M)}\right)

    Parameters
    ----------
    checkpoint_interval_s : numeric
        Work between two checkpoints, :math:`\tau`. [s]
    checkpoint_write_s : numeric
        Time the job stands still for one checkpoint, :math:`C_w`. [s]
    cluster_mtbf_s : numeric
        Mean time between failures of the job, :math:`M`. [s]
    restart_s : numeric
        Restart time, :math:`R`. [s]
    downtime_s : numeric
        Time before the restart begins, :math:`D_0`, in which nothing can fail. [s]
    mtbf_factor : numeric
        Mean time between failures after an improvement over today's, :math:`x_M`. [1]
    cluster_usd_per_h : numeric
        Price of the cluster, :math:`p_c`. [USD/h]

    Returns
    -------
    mtbf_saving_usd_per_day : numeric
        What rarer failures save in a day, :math:`V_M`; negative for a factor below 1. [USD/d]

    Notes
    -----
    The interval stays as it is; a longer one would save a little more.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, equation 20.

    Examples
    --------
    Half as many failures, in thousand USD a day:

    >>> round(mtbf_saving_usd_per_day(1100.0, 60.0, 54 * 86400 / 419, 600.0, 0.0, 2.0, 50_000.0) / 1000)
    62
    """
    better_mtbf_s = mtbf_factor * cluster_mtbf_s
    better = checkpoint_goodput(checkpoint_interval_s, checkpoint_write_s, better_mtbf_s, restart_s, downtime_s)
    today = checkpoint_goodput(checkpoint_interval_s, checkpoint_write_s, cluster_mtbf_s, restart_s, downtime_s)
    return HOURS_PER_DAY * cluster_usd_per_h * (1.0 - today / better)


def spares_usd_per_day(
    spare_nodes: Numeric, accelerators_per_node: Numeric, rental_usd_per_accelerator_h: Numeric
) -> Numeric:
    r"""Rent of the servers held ready.

    .. math:: K_s = 24\, n_\mathrm{sp}\, g\, p

    Parameters
    ----------
    spare_nodes : numeric
        Nodes held ready, :math:`n_\mathrm{sp}`. [1]
    accelerators_per_node : numeric
        Chips in one server, :math:`g`. [1]
    rental_usd_per_accelerator_h : numeric
        Price of one chip for one hour, :math:`p`. [USD/h]

    Returns
    -------
    spares_usd_per_day : numeric
        Rent of the spare nodes in a day, :math:`K_s`. [USD/d]

    Notes
    -----
    Spares that do other work in the meantime cost less.

    References
    ----------
    .. [1] Llama Team, "The Llama 3 herd of models," arXiv:2407.21783, 2024, section 3.3.4.

    Examples
    --------
    >>> spares_usd_per_day(16.0, 8.0, 2.0)
    6144.0
    """
    return HOURS_PER_DAY * spare_nodes * accelerators_per_node * rental_usd_per_accelerator_h
