"""Value of idle and busy accelerators."""

from __future__ import annotations

from factorykit.core.constants import HOURS_PER_YEAR
from factorykit.core.types import Numeric


def idle_usd_per_year(accelerators: Numeric, utilization: Numeric, rental_usd_per_accelerator_h: Numeric) -> Numeric:
    r"""Cost of idle accelerators in a year, at the price of renting them.

    .. math:: A_i = 8760\, n (1 - u)\, p

    Notes
    -----
    An owned machine costs less, but not nothing; see ``ownership_usd_per_accelerator_h``.

    Examples
    --------
    >>> round(idle_usd_per_year(1000.0, 0.5, 3.0))
    13140000
    """
    return accelerators * HOURS_PER_YEAR * (1.0 - utilization) * rental_usd_per_accelerator_h


def utilization_gain_usd_per_year(
    accelerators: Numeric, utilization: Numeric, utilization_before: Numeric, rental_usd_per_accelerator_h: Numeric
) -> Numeric:
    r"""Yearly value of a higher utilization of the same accelerators.

    .. math:: A_u = 8760\, n (u - u_0)\, p

    Notes
    -----
    Only realised if there is work for the hours gained.

    Examples
    --------
    1,000 GPUs from 50 to 90 %: 13 million USD take 3.71 USD an hour; at 3 and 4 USD:

    >>> [round(utilization_gain_usd_per_year(1000.0, 0.9, 0.5, price) / 1e6, 1) for price in (3.0, 4.0)]
    [10.5, 14.0]
    """
    return accelerators * HOURS_PER_YEAR * (utilization - utilization_before) * rental_usd_per_accelerator_h
