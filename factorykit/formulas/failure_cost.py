"""Daily cost of failures, checkpoints and spare nodes, and the savings from improving them."""

from __future__ import annotations

from factorykit.core.constants import HOURS_PER_DAY
from factorykit.core.types import Numeric
from factorykit.formulas.checkpoint import checkpoint_goodput
from factorykit.formulas.functions import expm1


def failures_usd_per_day(failures_per_day: Numeric, failure_cost_usd: Numeric) -> Numeric:
    r"""Rent that failures waste in a day.

    .. math:: K_d = f_d K_f

    Notes
    -----
    Repairs, spare parts and people are not in it.

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

    Notes
    -----
    The share of each day that the best interval would have saved.

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

    Notes
    -----
    Exact: goodput changes by this factor, whatever the interval is.

    References
    ----------
    .. [daly2006] equation 20

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

    Notes
    -----
    The interval stays as it is; a longer one would save a little more.

    References
    ----------
    .. [daly2006] equation 20

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

    Notes
    -----
    Spares that do other work in the meantime cost less.

    Examples
    --------
    >>> spares_usd_per_day(16.0, 8.0, 2.0)
    6144.0
    """
    return HOURS_PER_DAY * spare_nodes * accelerators_per_node * rental_usd_per_accelerator_h
