"""What a run, a day and a failure cost."""

from __future__ import annotations

from factorykit.constants import SECONDS_PER_HOUR
from factorykit.typing import Numeric


def cluster_usd_per_h(accelerators: Numeric, rental_usd_per_accelerator_h: Numeric) -> Numeric:
    r"""Price of the whole cluster for an hour.

    .. math:: p_c = n p

    Parameters
    ----------
    accelerators : numeric
        Chips that work on the run, :math:`n`. [1]
    rental_usd_per_accelerator_h : numeric
        Price of one accelerator-hour, :math:`p`. [USD/h]

    Returns
    -------
    cluster_usd_per_h : numeric
        Price of the cluster, :math:`p_c`. [USD/h]

    Notes
    -----
    Dollars of the year in which the price was quoted.

    References
    ----------
    .. [1] DeepSeek-AI, "DeepSeek-V3 technical report," arXiv:2412.19437, 2024, table 1: 2 USD per H800-hour.

    Examples
    --------
    >>> cluster_usd_per_h(2048.0, 2.0)
    4096.0
    """
    return accelerators * rental_usd_per_accelerator_h


def rental_cost_usd(accelerator_hours: Numeric, rental_usd_per_accelerator_h: Numeric) -> Numeric:
    r"""Rent for the accelerators of the run.

    .. math:: K = H p

    Parameters
    ----------
    accelerator_hours : numeric
        Hours of one chip, :math:`H`. [h]
    rental_usd_per_accelerator_h : numeric
        Price of one accelerator-hour, :math:`p`. [USD/h]

    Returns
    -------
    rental_cost_usd : numeric
        Rent, :math:`K`. [USD]

    Notes
    -----
    Power is in a rental price; storage, data, staff and earlier experiments are not.

    References
    ----------
    .. [1] DeepSeek-AI, "DeepSeek-V3 technical report," arXiv:2412.19437, 2024, table 1.

    Examples
    --------
    DeepSeek-V3 prints 5.576 million USD for 2.788 million hours:

    >>> rental_cost_usd(2_788_000.0, 2.0)
    5576000.0
    """
    return accelerator_hours * rental_usd_per_accelerator_h


def electricity_cost_usd(training_energy_kwh: Numeric, electricity_usd_per_kwh: Numeric) -> Numeric:
    r"""Electricity bill of the run.

    .. math:: K_e = E p_e

    Parameters
    ----------
    training_energy_kwh : numeric
        Energy at the meter, :math:`E`. [kWh]
    electricity_usd_per_kwh : numeric
        Price of electricity, :math:`p_e`. [USD/kWh]

    Returns
    -------
    electricity_cost_usd : numeric
        Bill, :math:`K_e`. [USD]

    Notes
    -----
    For owned clusters; a rental price contains it. Demand charges are not in it.

    References
    ----------
    .. [1] B. Cottier et al., "The rising costs of training frontier AI models," arXiv:2405.21015, 2024, section 2.3.

    Examples
    --------
    >>> electricity_cost_usd(1e6, 0.06)
    60000.0
    """
    return training_energy_kwh * electricity_usd_per_kwh


def annual_electricity_cost_usd(annual_energy_kwh: Numeric, electricity_usd_per_kwh: Numeric) -> Numeric:
    r"""Electricity bill of a year at constant power.

    .. math:: K_{e,y} = E_y p_e

    Parameters
    ----------
    annual_energy_kwh : numeric
        Energy of 365 days, :math:`E_y`. [kWh]
    electricity_usd_per_kwh : numeric
        Price of electricity, :math:`p_e`. [USD/kWh]

    Returns
    -------
    annual_electricity_cost_usd : numeric
        Bill of the year, :math:`K_{e,y}`. [USD]

    Notes
    -----
    The cluster is never idle.

    References
    ----------
    .. [1] B. Cottier et al., "The rising costs of training frontier AI models," arXiv:2405.21015, 2024, section 2.3.

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

    Parameters
    ----------
    lost_work_s : numeric
        Expected work that has to be done again, :math:`L_f`. [s]
    restart_s : numeric
        Restart time, :math:`R`. [s]
    downtime_s : numeric
        Time before the restart begins, :math:`D_0`. [s]
    cluster_usd_per_h : numeric
        Price of the cluster, :math:`p_c`. [USD/h]

    Returns
    -------
    failure_cost_usd : numeric
        Cost of one failure, :math:`K_f`. [USD]

    Notes
    -----
    Repair of the broken part and a second failure during the restart are not in it.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," Future Gener.
       Comput. Syst., vol. 22, no. 3, pp. 303-312, 2006, section 3: rework and restart.

    Examples
    --------
    A quarter of an hour lost at 50,000 USD an hour; restart and downtime left out:

    >>> failure_cost_usd(900.0, 0.0, 0.0, 50_000.0)
    12500.0
    """
    return (lost_work_s + restart_s + downtime_s) * cluster_usd_per_h / SECONDS_PER_HOUR
