"""Cost of an owned cluster and data centre, and its comparison with renting."""

from __future__ import annotations

from factorykit.core.constants import HOURS_PER_YEAR
from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp, expm1, log, log1p, maximum

LOWEST = 1e-12
"""Stands for a rate of zero, by which nothing can be divided; moves an annuity by less than 1e-10. [1]"""


def server_capital_usd(nodes: Numeric, server_usd: Numeric) -> Numeric:
    r"""Price of all servers.

    .. math:: C_s = n_s c_s

    Notes
    -----
    With accelerators and adapters, without switches, storage and building.

    Examples
    --------
    2,048 systems at 300,000 USD:

    >>> server_capital_usd(2048.0, 300_000.0)
    614400000.0
    """
    return nodes * server_usd


def network_capital_usd(
    switches: Numeric,
    switch_usd: Numeric,
    switch_links: Numeric,
    link_usd: Numeric,
    circuit_switches: Numeric,
    circuit_switch_usd: Numeric,
) -> Numeric:
    r"""Price of the training fabric from its bill of materials.

    .. math:: C_n = n_{sw} c_{sw} + n_l c_l + n_{oc} c_{oc}

    Notes
    -----
    Adapters are in the price of the server; cables to them in the price of the switch. The default prices are those
    that the published totals of five topologies imply, each within 3 %.

    Examples
    --------
    Two layers for 2,048 endpoints; the paper prints 9 million USD:

    >>> round(network_capital_usd(96.0, 81_920.0, 2048.0, 550.0, 0.0, 64_000.0) / 1e6, 1)
    9.0
    """
    return switches * switch_usd + switch_links * link_usd + circuit_switches * circuit_switch_usd


def storage_capital_usd(storage_bytes: Numeric, storage_usd_per_byte: Numeric) -> Numeric:
    r"""Price of the parallel file system.

    .. math:: C_d = S_d c_b

    Notes
    -----
    Usable bytes; servers of the file system are in the price per byte.

    Examples
    --------
    Ten petabytes at 200 USD per terabyte:

    >>> round(storage_capital_usd(1e16, 2e-10))
    2000000
    """
    return storage_bytes * storage_usd_per_byte


def it_capital_usd(server_capital_usd: Numeric, network_capital_usd: Numeric, storage_capital_usd: Numeric) -> Numeric:
    r"""Price of everything that is replaced with the accelerators.

    .. math:: C_{IT} = C_s + C_n + C_d

    Notes
    -----
    Every component is in exactly one of the three.

    Examples
    --------
    >>> it_capital_usd(6e8, 7e7, 3e7)
    700000000.0
    """
    return server_capital_usd + network_capital_usd + storage_capital_usd


def network_capital_share(network_capital_usd: Numeric, it_capital_usd: Numeric) -> Numeric:
    r"""Share of the network in the IT capital.

    .. math:: s_n = C_n / C_{IT}

    Notes
    -----
    A result, not an input: two documents give 15-25 % and 30-40 % for it.

    Examples
    --------
    >>> network_capital_share(7e7, 7e8)
    0.1
    """
    return network_capital_usd / it_capital_usd


def facility_capital_usd(it_power_w: Numeric, facility_usd_per_w: Numeric) -> Numeric:
    r"""Price of building, power and cooling.

    .. math:: C_f = P_{IT} c_f

    Notes
    -----
    Per watt of IT power, as builders quote it.

    Examples
    --------
    >>> facility_capital_usd(20e6, 12.0)
    240000000.0
    """
    return it_power_w * facility_usd_per_w


def capital_usd(it_capital_usd: Numeric, facility_capital_usd: Numeric) -> Numeric:
    r"""All that has to be paid before the first step.

    .. math:: C_K = C_{IT} + C_f

    Notes
    -----
    Land and the connection to the grid are in the price of the facility.

    Examples
    --------
    >>> capital_usd(7e8, 2.4e8)
    940000000.0
    """
    return it_capital_usd + facility_capital_usd


def capital_recovery_per_year(discount_rate: Numeric, hardware_life_years: Numeric) -> Numeric:
    r"""Yearly payment for one dollar of IT capital.

    .. math:: f_h = \frac{i}{1 - (1 + i)^{-n_h}}

    Notes
    -----
    Payments at the end of each year. At a rate of zero it is one over the life, the straight line.

    References
    ----------
    .. [blank2018] section 2.2

    Examples
    --------
    Five years at 8 %:

    >>> round(capital_recovery_per_year(0.08, 5.0), 5)
    0.25046
    """
    rate = maximum(discount_rate, LOWEST)
    return rate / -expm1(-hardware_life_years * log1p(rate))


def facility_capital_recovery_per_year(discount_rate: Numeric, facility_life_years: Numeric) -> Numeric:
    r"""Yearly payment for one dollar of facility capital.

    .. math:: f_f = \frac{i}{1 - (1 + i)^{-n_f}}

    Notes
    -----
    Payments at the end of each year.

    References
    ----------
    .. [blank2018] section 2.2

    Examples
    --------
    Twenty years at 8 %:

    >>> round(facility_capital_recovery_per_year(0.08, 20.0), 5)
    0.10185
    """
    rate = maximum(discount_rate, LOWEST)
    return rate / -expm1(-facility_life_years * log1p(rate))


def it_capital_usd_per_year(
    it_capital_usd: Numeric,
    residual_share: Numeric,
    discount_rate: Numeric,
    hardware_life_years: Numeric,
    capital_recovery_per_year: Numeric,
) -> Numeric:
    r"""Yearly cost of the IT capital as an annuity.

    .. math:: A_h = C_{IT} \left(1 - s_r (1 + i)^{-n_h}\right) f_h

    Notes
    -----
    The resale value at the end of the hardware's life is discounted and subtracted.

    References
    ----------
    .. [blank2018] section 2.2

    Examples
    --------
    >>> round(it_capital_usd_per_year(1000.0, 0.0, 0.08, 5.0, 0.25046), 2)
    250.46
    """
    left = residual_share * exp(-hardware_life_years * log1p(discount_rate))
    return it_capital_usd * (1.0 - left) * capital_recovery_per_year


def it_capital_straight_usd_per_year(
    it_capital_usd: Numeric, residual_share: Numeric, hardware_life_years: Numeric
) -> Numeric:
    r"""Yearly cost of the IT capital in a straight line.

    .. math:: A_{h,\mathrm{lin}} = C_{IT} (1 - s_r) / n_h

    Notes
    -----
    Without the cost of capital; equals the annuity at a rate of zero.

    Examples
    --------
    >>> it_capital_straight_usd_per_year(1000.0, 0.0, 5.0)
    200.0
    """
    return it_capital_usd * (1.0 - residual_share) / hardware_life_years


def facility_capital_usd_per_year(
    facility_capital_usd: Numeric, facility_capital_recovery_per_year: Numeric
) -> Numeric:
    r"""Yearly cost of the facility as an annuity.

    .. math:: A_f = C_f f_f

    Notes
    -----
    Nothing is left at the end of its life.

    Examples
    --------
    >>> round(facility_capital_usd_per_year(2.4e8, 0.10185))
    24444000
    """
    return facility_capital_usd * facility_capital_recovery_per_year


def maintenance_usd_per_year(it_capital_usd: Numeric, maintenance_share: Numeric) -> Numeric:
    r"""Yearly cost of repair and support.

    .. math:: A_m = C_{IT} s_m

    Notes
    -----
    Staff is counted apart.

    Examples
    --------
    >>> maintenance_usd_per_year(7e8, 0.04)
    28000000.0
    """
    return it_capital_usd * maintenance_share


def staff_usd_per_year(staff: Numeric, staff_usd_per_person_year: Numeric) -> Numeric:
    r"""Yearly cost of the people who run the cluster.

    .. math:: A_w = n_w c_w

    Notes
    -----
    Researchers whose work is the model are counted only if they are in ``staff``.

    Examples
    --------
    >>> staff_usd_per_year(35.0, 285_000.0)
    9975000.0
    """
    return staff * staff_usd_per_person_year


def operating_usd_per_year(
    annual_electricity_cost_usd: Numeric, maintenance_usd_per_year: Numeric, staff_usd_per_year: Numeric
) -> Numeric:
    r"""Yearly operating cost of an owned cluster.

    .. math:: A_o = K_{e,y} + A_m + A_w

    Notes
    -----
    Electricity at full power all year: idle hours cost a little less.

    Examples
    --------
    >>> operating_usd_per_year(1e7, 2.8e7, 1e7)
    48000000.0
    """
    return annual_electricity_cost_usd + maintenance_usd_per_year + staff_usd_per_year


def ownership_usd_per_year(
    it_capital_usd_per_year: Numeric, facility_capital_usd_per_year: Numeric, operating_usd_per_year: Numeric
) -> Numeric:
    r"""Yearly cost of an owned cluster.

    .. math:: A = A_h + A_f + A_o

    Notes
    -----
    Everything a rental price contains except the owner's margin; each part once.

    Examples
    --------
    >>> ownership_usd_per_year(1.7e8, 2.4e7, 4.8e7)
    242000000.0
    """
    return it_capital_usd_per_year + facility_capital_usd_per_year + operating_usd_per_year


def ownership_usd_per_accelerator_h(
    ownership_usd_per_year: Numeric, accelerators: Numeric, utilization: Numeric
) -> Numeric:
    r"""Cost of one used accelerator-hour of an owned cluster.

    .. math:: p_o = \frac{A}{8760\, n\, u}

    Notes
    -----
    Idle hours are spread over used ones, so it is comparable with a rental price.

    Examples
    --------
    >>> round(ownership_usd_per_accelerator_h(2.42e8, 16384.0, 0.85), 2)
    1.98
    """
    return ownership_usd_per_year / (accelerators * HOURS_PER_YEAR * utilization)


def ownership_cost_usd(accelerator_hours: Numeric, ownership_usd_per_accelerator_h: Numeric) -> Numeric:
    r"""Cost of the run on an owned cluster.

    .. math:: K_o = H p_o

    Notes
    -----
    The run carries its share of capital, power, staff and idle hours; none comes on top.

    Examples
    --------
    >>> ownership_cost_usd(30.84e6, 2.0)
    61680000.0
    """
    return accelerator_hours * ownership_usd_per_accelerator_h


def run_cost_owned_usd(ownership_cost_usd: Numeric, spare_nodes: Numeric, nodes: Numeric) -> Numeric:
    r"""Cost of the run on an owned cluster, with the nodes held ready.

    .. math:: K_{r,o} = K_o \left(1 + \frac{n_\mathrm{sp}}{n_s}\right)

    Notes
    -----
    A spare costs as much as a working node.

    Examples
    --------
    >>> run_cost_owned_usd(1e6, 16.0, 256.0)
    1062500.0
    """
    return ownership_cost_usd * (1.0 + spare_nodes / nodes)


def rental_usd_per_year(accelerators: Numeric, utilization: Numeric, rental_usd_per_accelerator_h: Numeric) -> Numeric:
    r"""Yearly rent for the hours in use.

    .. math:: A_r = 8760\, n\, u\, p

    Notes
    -----
    Rented by the hour: unused hours cost nothing.

    Examples
    --------
    >>> rental_usd_per_year(1000.0, 1.0, 1.0)
    8760000.0
    """
    return accelerators * HOURS_PER_YEAR * utilization * rental_usd_per_accelerator_h


def break_even_utilization(
    utilization: Numeric, ownership_present_usd: Numeric, rental_present_usd: Numeric
) -> Numeric:
    r"""Utilization above which building saves over the horizon.

    .. math:: u_* = \frac{u\, V_o}{V_r}

    Notes
    -----
    Rent is paid for hours in use, so that its present value is in proportion to utilization and that of owning does not
    depend on it: here the saving is zero, at the fall of prices, the discount and the horizon of both. Above 1 building
    never pays.

    Examples
    --------
    >>> round(break_even_utilization(0.85, 8.0e8, 1.0e9), 3)
    0.68
    """
    return utilization * ownership_present_usd / rental_present_usd


def rental_present_usd(
    rental_usd_per_year: Numeric, horizon_years: Numeric, discount_rate: Numeric, rental_decline_per_year: Numeric
) -> Numeric:
    r"""Present value of renting over the horizon, prices falling.

    .. math:: V_r = A_r \frac{1 - \mathrm{e}^{-\kappa n_y}}{\kappa}, \qquad \kappa = \ln(1 + i) - \ln(1 - d_p)

    Notes
    -----
    Rent is paid continuously. Prices fall by the same share each year; price lists of two months cannot confirm that.

    References
    ----------
    .. [blank2018] sections 2.2 and 4.8

    Examples
    --------
    Neither discount nor decline:

    >>> round(rental_present_usd(100.0, 4.0, 0.0, 0.0), 6)
    400.0
    """
    rate = maximum(log1p(discount_rate) - log1p(-rental_decline_per_year), LOWEST)
    return rental_usd_per_year * -expm1(-rate * horizon_years) / rate


def ownership_present_usd(
    it_capital_usd: Numeric,
    facility_capital_usd: Numeric,
    operating_usd_per_year: Numeric,
    residual_share: Numeric,
    hardware_life_years: Numeric,
    facility_life_years: Numeric,
    horizon_years: Numeric,
    discount_rate: Numeric,
) -> Numeric:
    r"""Present value of building and operating over the horizon, less the residual value.

    .. math::
       V_o = C_{IT} \left(1 - s_r^{n_y/n_h} v\right) + C_f \left(1 - (1 - n_y/n_f)^+ v\right)
       + A_o \frac{1 - v}{\rho}, \quad \rho = \ln(1+i),\ v = \mathrm{e}^{-\rho n_y}

    Notes
    -----
    Hardware loses the same share of its value each year and reaches ``residual_share`` at the end of its life; a share
    of zero is gone at once. The building loses value in a straight line. One generation of hardware: a horizon beyond
    its life needs a second purchase, which is not in it.

    References
    ----------
    .. [blank2018] sections 2.2 and 16.1

    Examples
    --------
    Nothing left, no discount, no operation:

    >>> round(ownership_present_usd(100.0, 0.0, 0.0, 0.0, 5.0, 20.0, 4.0, 0.0), 6)
    100.0
    """
    rate = maximum(log1p(discount_rate), LOWEST)
    later = exp(-rate * horizon_years)
    hardware = it_capital_usd * (
        1.0 - exp(horizon_years / hardware_life_years * log(maximum(residual_share, LOWEST))) * later
    )
    building = facility_capital_usd * (1.0 - maximum(1.0 - horizon_years / facility_life_years, 0.0) * later)
    return hardware + building + operating_usd_per_year * -expm1(-rate * horizon_years) / rate


def build_saving_usd(rental_present_usd: Numeric, ownership_present_usd: Numeric) -> Numeric:
    r"""Present value of the saving of building over renting during the horizon.

    .. math:: \Delta V = V_r - V_o

    Notes
    -----
    Negative where renting is cheaper. Risk, time to build and access to power have no price here.

    Examples
    --------
    >>> build_saving_usd(400.0, 300.0)
    100.0
    """
    return rental_present_usd - ownership_present_usd
