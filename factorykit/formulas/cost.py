"""Cost of runs, days and failures, and price indices over the years."""

from __future__ import annotations

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp

LOG_TWO = 0.6931471805599453
"""Natural logarithm of two: a halving. [1]"""


def cluster_usd_per_h(accelerators: Numeric, rental_usd_per_accelerator_h: Numeric) -> Numeric:
    r"""Price of the whole cluster for an hour.

    .. math:: p_c = n p

    Notes
    -----
    Dollars of the year in which the price was quoted.

    Examples
    --------
    The 2,048 H800 of DeepSeek-V3 at 2 USD:

    >>> cluster_usd_per_h(2048.0, 2.0)
    4096.0
    """
    return accelerators * rental_usd_per_accelerator_h


def rental_cost_usd(accelerator_hours: Numeric, rental_usd_per_accelerator_h: Numeric) -> Numeric:
    r"""Rent for the accelerators of the run.

    .. math:: K = H p

    Notes
    -----
    Power is in a rental price; storage, data, staff and earlier experiments are not.

    Examples
    --------
    DeepSeek-V3 prints 5.576 million USD for 2.788 million hours:

    >>> rental_cost_usd(2_788_000.0, 2.0)
    5576000.0
    """
    return accelerator_hours * rental_usd_per_accelerator_h


def run_cost_usd(rental_cost_usd: Numeric, spares_usd_per_day: Numeric, wall_days: Numeric) -> Numeric:
    r"""Rent of everything that the run keeps busy or ready.

    .. math:: K_r = K + K_s T_d

    Notes
    -----
    On owned machines ``run_cost_owned_usd`` stands for it.

    Examples
    --------
    >>> run_cost_usd(5e6, 6144.0, 50.0)
    5307200.0
    """
    return rental_cost_usd + spares_usd_per_day * wall_days


def budget_share(rental_cost_usd: Numeric, budget_usd: Numeric) -> Numeric:
    r"""Share of the budget that the rent of the run takes.

    .. math:: b_K = K / B

    Notes
    -----
    Above 1 the run cannot be paid. Experiments before it come out of the same budget.

    Examples
    --------
    >>> budget_share(92.5e6, 100e6)
    0.925
    """
    return rental_cost_usd / budget_usd


def electricity_cost_usd(training_energy_kwh: Numeric, electricity_usd_per_kwh: Numeric) -> Numeric:
    r"""Electricity bill of the run.

    .. math:: K_e = E p_e

    Notes
    -----
    For owned clusters; a rental price contains it. Demand charges are not in it.

    Examples
    --------
    >>> electricity_cost_usd(1e6, 0.06)
    60000.0
    """
    return training_energy_kwh * electricity_usd_per_kwh


def annual_electricity_cost_usd(annual_energy_kwh: Numeric, electricity_usd_per_kwh: Numeric) -> Numeric:
    r"""Electricity bill of a year at constant power.

    .. math:: K_{e,y} = E_y p_e

    Notes
    -----
    The cluster is never idle.

    Examples
    --------
    19.6 MW at 6 cents:

    >>> round(annual_electricity_cost_usd(171_696_000.0, 0.06) / 1e6, 1)
    10.3
    """
    return annual_energy_kwh * electricity_usd_per_kwh


def failure_cost_usd(
    lost_work_s: Numeric, restart_s: Numeric, downtime_s: Numeric, cluster_usd_per_h: Numeric
) -> Numeric:
    r"""Rent that one failure wastes.

    .. math:: K_f = \frac{(L_f + R + D_0)\, p_c}{3600}

    Notes
    -----
    Repair of the broken part and a second failure during the restart are not in it.

    Examples
    --------
    A quarter of an hour lost at 50,000 USD an hour; restart and downtime left out:

    >>> failure_cost_usd(900.0, 0.0, 0.0, 50_000.0)
    12500.0
    """
    return (lost_work_s + restart_s + downtime_s) * cluster_usd_per_h / SECONDS_PER_HOUR


def wasted_cost_usd(rental_cost_usd: Numeric, goodput: Numeric) -> Numeric:
    r"""Rent for time without progress.

    .. math:: K_w = K (1 - G)

    Notes
    -----
    Already inside ``rental_cost_usd``: adding it again would count it twice.

    Examples
    --------
    >>> round(wasted_cost_usd(63.7e6, 0.9) / 1e6, 2)
    6.37
    """
    return rental_cost_usd * (1.0 - goodput)


def failures_cost_usd(expected_failures: Numeric, failure_cost_usd: Numeric) -> Numeric:
    r"""Rent that all failures of the run waste.

    .. math:: K_F = n_f K_f

    Notes
    -----
    Part of ``wasted_cost_usd``, which holds the time for checkpoints too.

    Examples
    --------
    419 failures at 12,500 USD:

    >>> failures_cost_usd(419.0, 12_500.0)
    5237500.0
    """
    return expected_failures * failure_cost_usd


def rental_usd_per_token(rental_cost_usd: Numeric, tokens: Numeric) -> Numeric:
    r"""Rent per training token.

    .. math:: k_t = K / D

    Notes
    -----
    Of one model; larger models cost more per token.

    Examples
    --------
    DeepSeek-V3, dollars per million tokens:

    >>> round(rental_usd_per_token(5.328e6, 14.8e12) * 1e6, 2)
    0.36
    """
    return rental_cost_usd / tokens


def rental_usd_per_flop(rental_cost_usd: Numeric, training_flop: Numeric) -> Numeric:
    r"""Rent per FLOP of useful work.

    .. math:: k_C = K / C

    Notes
    -----
    Model FLOP: utilization and stops are in the price.

    Examples
    --------
    Dollars per EFLOP:

    >>> round(rental_usd_per_flop(92.5e6, 3.79e25) * 1e18, 2)
    2.44
    """
    return rental_cost_usd / training_flop


def accelerator_usd_per_flop_per_s(accelerator_usd: Numeric, peak_flop_per_s: Numeric) -> Numeric:
    r"""Price of a chip over its peak rate.

    .. math:: c_F = c_a / F

    Notes
    -----
    Comparable at one precision only: a chip is several times cheaper at 16 bits than at 32. Server, network and power
    come on top.

    Examples
    --------
    An H100 at 33,600 USD, in dollars for a TFLOP/s:

    >>> round(accelerator_usd_per_flop_per_s(33_600.0, 989.4e12) * 1e12, 1)
    34.0
    """
    return accelerator_usd / peak_flop_per_s


def real_usd(nominal_usd: Numeric, price_level: Numeric, price_level_wanted: Numeric) -> Numeric:
    r"""Amount in the dollars of another year.

    .. math:: K_{real} = K_n I_w / I

    Notes
    -----
    Purchasing power of consumers; prices of chips have a path of their own. Levels: table ``price_levels``.

    Examples
    --------
    100 USD of 2020 in 2025:

    >>> round(real_usd(100.0, 258.811, 321.943), 1)
    124.4
    """
    return nominal_usd * price_level_wanted / price_level


def later_cost_usd(rental_cost_usd: Numeric, years_later: Numeric, cost_halving_years: Numeric) -> Numeric:
    r"""Cost of the same run some years later.

    .. math:: K_l = K\, 2^{-t_l / t_2}

    Notes
    -----
    Price per FLOP halves at a constant pace. Published halving times run from 2.1 years for machine-learning GPUs to
    2.5 for all.

    References
    ----------
    .. [hobbhahn2022] 2.46 years; 2.07 for machine-learning GPUs

    Examples
    --------
    A hundred million dollars after four years at a halving every two:

    >>> round(later_cost_usd(100e6, 4.0, 2.0) / 1e6, 6)
    25.0
    """
    return rental_cost_usd * exp(-LOG_TWO * years_later / cost_halving_years)
