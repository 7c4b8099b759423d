"""Bring-up of a cluster: waiting for parts, installation, burn-in, and the cost of idle accelerators."""

from __future__ import annotations

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.types import Numeric
from factorykit.formulas.functions import maximum


def installation_s(accelerators: Numeric, accelerators_per_day: Numeric) -> Numeric:
    r"""Time from the first rack to the last.

    .. math:: t_i = n / r_i

    References
    ----------
    .. [spectrumx2024] Colossus: 122 days in all, 19 from the first rack to training

    Examples
    --------
    100,000 at the mean rate of Colossus, in days:

    >>> round(installation_s(1e5, 5263.0) / 86400, 1)
    19.0
    """
    return accelerators / accelerators_per_day * SECONDS_PER_DAY


def ready_s(
    building_s: Numeric, delivery_lead_s: Numeric, power_lead_s: Numeric, installation_s: Numeric, burn_in_s: Numeric
) -> Numeric:
    r"""Time from the order until a cluster trains.

    .. math:: t_r = \max(t_g, t_d, t_p) + t_i + t_b

    Notes
    -----
    Building, chips and power are ordered together and waited for side by side: the longest counts. A cluster that is
    taken over in parts trains earlier with its first ones.

    Examples
    --------
    A hall in 103 days, chips and power before that, 19 days of racks, a week of burn-in:

    >>> day = 86400.0
    >>> ready_s(103 * day, 90 * day, 60 * day, 19 * day, 7 * day) / day
    129.0
    """
    return maximum(maximum(building_s, delivery_lead_s), power_lead_s) + installation_s + burn_in_s


def bring_up_idle_usd(
    accelerators: Numeric, installation_s: Numeric, burn_in_s: Numeric, rental_usd_per_accelerator_h: Numeric
) -> Numeric:
    r"""Price of the hours in which accelerators that stand already wait for the rest and for the burn-in.

    .. math:: K_i = n \left(\tfrac{t_i}{2} + t_b\right) p

    Notes
    -----
    Racks come evenly. At the price of renting them.

    Examples
    --------
    100,000 at two dollars an hour, 19 days of racks and a week of burn-in, in million USD:

    >>> round(bring_up_idle_usd(1e5, 19 * 86400.0, 7 * 86400.0, 2.0) / 1e6)
    79
    """
    return accelerators * (0.5 * installation_s + burn_in_s) / SECONDS_PER_HOUR * rental_usd_per_accelerator_h
