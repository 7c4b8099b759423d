"""Power from chip to facility, and the energy, carbon and water of a run."""

from __future__ import annotations

from factorykit.core.constants import HOURS_PER_YEAR, JOULES_PER_KWH, WATTS_PER_KILOWATT
from factorykit.core.types import Numeric
from factorykit.formulas.functions import ceil, equal, floor, where


def node_power_w(
    accelerators_per_node: Numeric, accelerator_power_w: Numeric, node_overhead_power_w: Numeric
) -> Numeric:
    r"""Power of one server with its share of the network.

    .. math:: P_n = g P_a + P_o

    Notes
    -----
    A sum; mean powers give mean power, peaks give a bound that no measured server reaches.

    Examples
    --------
    DGX H100, eight chips at 700 W and 4,600 W around them:

    >>> node_power_w(8.0, 700.0, 4600.0)
    10200.0
    """
    return accelerators_per_node * accelerator_power_w + node_overhead_power_w


def it_power_w(nodes: Numeric, node_power_w: Numeric) -> Numeric:
    r"""Power of all servers.

    .. math:: P_{IT} = n_s P_n

    Notes
    -----
    Storage counts where its share is in ``node_overhead_power_w``.

    Examples
    --------
    >>> it_power_w(3072.0, 5800.0)
    17817600.0
    """
    return nodes * node_power_w


def facility_power_w(it_power_w: Numeric, pue: Numeric) -> Numeric:
    r"""Power at the meter of the site.

    .. math:: P_f = P_{IT}\, \mathrm{PUE}

    Notes
    -----
    PUE is a yearly ratio of energies; on a hot afternoon the ratio of powers is higher.

    References
    ----------
    .. [iso30134] equation 1

    Examples
    --------
    >>> round(facility_power_w(17.8e6, 1.1) / 1e6, 1)
    19.6
    """
    return it_power_w * pue


def training_energy_kwh(facility_power_w: Numeric, wall_s: Numeric) -> Numeric:
    r"""Energy of the run at the meter.

    .. math:: E = \frac{P_f T}{3.6 \times 10^{6}}

    Notes
    -----
    The cluster draws its training power for the whole wall-clock time, so stops are counted a little high.

    References
    ----------
    .. [patterson2021] section 2.5

    Examples
    --------
    A megawatt for an hour:

    >>> training_energy_kwh(1e6, 3600.0)
    1000.0
    """
    return facility_power_w * wall_s / JOULES_PER_KWH


def accelerator_limited_power_w(accelerator_load_power_w: Numeric, power_limit_share: Numeric) -> Numeric:
    r"""Mean power of an accelerator whose power is limited.

    .. math:: P_{a,\pi} = \pi P_{a,0}

    Notes
    -----
    A chip that computes at its limit draws in proportion to it; its rate falls by less, and so does the energy.

    Examples
    --------
    >>> accelerator_limited_power_w(650.0, 0.8)
    520.0
    """
    return power_limit_share * accelerator_load_power_w


def accelerator_energy_kwh(accelerator_hours: Numeric, accelerator_power_w: Numeric) -> Numeric:
    r"""Energy that accelerators take, without hosts, network and cooling.

    .. math:: E_a = \frac{H P_a}{1000}

    Examples
    --------
    Eight of them for a day at 650 W:

    >>> accelerator_energy_kwh(8 * 24.0, 650.0)
    124.8
    """
    return accelerator_hours * accelerator_power_w / WATTS_PER_KILOWATT


def annual_energy_kwh(facility_power_w: Numeric) -> Numeric:
    r"""Energy of a year at constant power.

    .. math:: E_y = \frac{8760\, P_f}{1000}

    Notes
    -----
    A load factor below one scales it.

    Examples
    --------
    >>> annual_energy_kwh(19.6e6)
    171696000.0
    """
    return facility_power_w * HOURS_PER_YEAR / WATTS_PER_KILOWATT


def training_carbon_kg(training_energy_kwh: Numeric, carbon_kg_per_kwh: Numeric) -> Numeric:
    r"""Operational emissions of the run.

    .. math:: M_c = E k

    Notes
    -----
    Location based: the mix of the grid, no certificates. Emissions from making the machines are not in it.

    References
    ----------
    .. [patterson2021] section 2.5

    Examples
    --------
    >>> training_carbon_kg(1000.0, 0.4)
    400.0
    """
    return training_energy_kwh * carbon_kg_per_kwh


def training_water_l(training_energy_kwh: Numeric, pue: Numeric, water_l_per_kwh: Numeric) -> Numeric:
    r"""Water that cooling evaporates on site during the run.

    .. math:: V_w = \frac{E}{\mathrm{PUE}}\, \mathrm{WUE}

    Notes
    -----
    Water used to generate the electricity is not in it.

    References
    ----------
    .. [greengrid2011] equation 1

    Examples
    --------
    >>> round(training_water_l(1.1e6, 1.1, 1.8))
    1800000
    """
    return training_energy_kwh / pue * water_l_per_kwh


def network_power_w(
    switches: Numeric,
    switch_power_w: Numeric,
    network_transceivers: Numeric,
    transceiver_power_w: Numeric,
    circuit_switches: Numeric,
    circuit_switch_power_w: Numeric,
) -> Numeric:
    r"""Power of the training fabric outside the servers.

    .. math:: P_{net} = n_{sw} P_{sw} + n_t P_t + n_{oc} P_{oc}

    Notes
    -----
    The end of each endpoint's cable in the server is counted with the adapter.

    Examples
    --------
    2,048 endpoints in a fat tree of two layers:

    >>> network_power_w(96.0, 1000.0, 6144.0, 15.0, 0.0, 108.0)
    188160.0
    """
    return (
        switches * switch_power_w
        + network_transceivers * transceiver_power_w
        + circuit_switches * circuit_switch_power_w
    )


PLUGGABLE_J_PER_BIT = 30.0 / 1.6e12
"""A pluggable module of 1.6 Tb/s takes 30 W [seyedi2025]."""
COPACKAGED_J_PER_BIT = 9.0 / 1.6e12
"""The same port with the optics beside the switch chip takes 9 W, with its share of the lasers [seyedi2025]."""


def transceiver_power_by_optics_w(
    optics: Numeric, scale_out_bytes_per_s: Numeric, nics_per_accelerator: Numeric
) -> Numeric:
    r"""Power of one end of an optical link from the energy of a bit.

    .. math:: P_t = 8\, e_b\, B_{out} / r_{nic}

    Notes
    -----
    18.75 pJ a bit for modules that plug into the front of a switch, 5.6 pJ for co-packaged optics: one maker's figures,
    at 200 Gb/s a lane. The power runs whether or not the link is used.

    References
    ----------
    .. [seyedi2025] 30 W and 9 W a port of 1.6 Tb/s

    Examples
    --------
    Ports of 800 Gb/s:

    >>> round(transceiver_power_by_optics_w("pluggable", 1e11, 1.0), 6)
    15.0
    >>> transceiver_power_by_optics_w("copackaged", 1e11, 1.0)
    4.5
    """
    per_bit = where(equal(optics, "copackaged"), COPACKAGED_J_PER_BIT, PLUGGABLE_J_PER_BIT)
    return 8.0 * per_bit * scale_out_bytes_per_s / nics_per_accelerator


def node_overhead_power_built_w(
    host_power_w: Numeric,
    nics_per_node: Numeric,
    nic_power_w: Numeric,
    fan_power_w: Numeric,
    network_power_w: Numeric,
    nodes: Numeric,
) -> Numeric:
    r"""Power of one server besides its chips, with its share of the network.

    .. math:: P_{o,b} = P_h + n_{nic} P_{nic} + P_{fan} + P_{net} / n_s

    Notes
    -----
    Each part is counted once: the switch share stands here and nowhere else. A scenario that names it for
    ``node_overhead_power_w`` uses it.

    Examples
    --------
    >>> round(node_overhead_power_built_w(1300.0, 8.0, 25.0, 1000.0, 188160.0, 256.0))
    3235
    """
    return host_power_w + nics_per_node * nic_power_w + fan_power_w + network_power_w / nodes


def rack_power_w(nodes_per_rack: Numeric, node_power_w: Numeric) -> Numeric:
    r"""Power of one full rack.

    .. math:: P_r = n_r P_n

    Notes
    -----
    All of it leaves as heat.

    Examples
    --------
    Four DGX H100 at their limit:

    >>> rack_power_w(4.0, 10_200.0)
    40800.0
    """
    return nodes_per_rack * node_power_w


def racks(nodes: Numeric, nodes_per_rack: Numeric) -> Numeric:
    r"""Racks that the servers fill.

    .. math:: n_{rack} = \lceil n_s / n_r \rceil

    Notes
    -----
    Racks of switches and storage come on top.

    Examples
    --------
    A SuperPOD of 32 systems:

    >>> racks(32.0, 4.0)
    8.0
    """
    return ceil(nodes / nodes_per_rack)


def cooling_fits(rack_power_w: Numeric, cooling_capacity_w: Numeric) -> Numeric:
    r"""Whether the cooling takes the heat out of a full rack.

    .. math:: z_c = [P_r \le Q_r]

    Notes
    -----
    Compares peak with capacity if peaks are given. Capacities are of the approach, not of one product.

    Examples
    --------
    Four DGX H100 in a rack that is cooled with 30 kW of air:

    >>> cooling_fits(40_800.0, 30_000.0)
    0.0
    """
    return where(rack_power_w <= cooling_capacity_w, 1.0, 0.0)


def nodes_per_rack_cooled(cooling_capacity_w: Numeric, node_power_w: Numeric) -> Numeric:
    r"""Servers that a rack may hold without outgrowing its cooling.

    .. math:: n_{r,max} = \lfloor Q_r / P_n \rfloor

    Notes
    -----
    Zero where not even one server can be cooled.

    Examples
    --------
    >>> nodes_per_rack_cooled(30_000.0, 10_200.0)
    2.0
    """
    return floor(cooling_capacity_w / node_power_w)


def facility_power_per_accelerator_w(node_power_w: Numeric, accelerators_per_node: Numeric, pue: Numeric) -> Numeric:
    r"""Power at the meter for each chip.

    .. math:: P_{f,1} = P_n\, \mathrm{PUE} / g

    Notes
    -----
    The same for any number of nodes.

    Examples
    --------
    DGX H100 at 7,200 W and a PUE of 1.1:

    >>> round(facility_power_per_accelerator_w(7200.0, 8.0, 1.1))
    990
    """
    return node_power_w * pue / accelerators_per_node


def training_embodied_carbon_kg(
    accelerator_hours: Numeric,
    embodied_carbon_kg_per_accelerator: Numeric,
    hardware_life_years: Numeric,
    utilization: Numeric,
) -> Numeric:
    r"""Share of the emissions from making the machines that the run uses up.

    .. math:: M_e = \frac{H m_e}{8760\, n_h u}

    Notes
    -----
    Spread over the hours in use. Building, network and storage are not in it unless the input holds their share.

    References
    ----------
    .. [luccioni2023] section 4.1: 2,500 kg a server of eight, 150 kg a GPU, six years, 85 % in use; 11.2 t

    Examples
    --------
    BLOOM, 1.08 million hours; the paper prints 11.2 t:

    >>> round(training_embodied_carbon_kg(1_082_990.0, 2500.0 / 8 + 150.0, 6.0, 0.85) / 1000, 1)
    11.2
    """
    return accelerator_hours * embodied_carbon_kg_per_accelerator / (HOURS_PER_YEAR * hardware_life_years * utilization)


def training_carbon_matched_kg(training_carbon_kg: Numeric, carbon_free_share: Numeric) -> Numeric:
    r"""Operational emissions after carbon-free energy of the same hour and grid.

    .. math:: M_h = M_c (1 - \gamma)

    Notes
    -----
    The share has to be counted hour by hour; yearly certificates do not qualify. The rest is taken at the grid's
    average.

    References
    ----------
    .. [google247] section 2

    Examples
    --------
    >>> training_carbon_matched_kg(1000.0, 0.9)
    99.99999999999997
    """
    return training_carbon_kg * (1.0 - carbon_free_share)


def training_carbon_total_kg(training_carbon_kg: Numeric, training_embodied_carbon_kg: Numeric) -> Numeric:
    r"""Operational emissions and the share of making the machines.

    .. math:: M_t = M_c + M_e

    Notes
    -----
    The two parts do not overlap.

    Examples
    --------
    BLOOM without its idle power, 24.7 t and 11.2 t:

    >>> round(training_carbon_total_kg(24_700.0, 11_200.0))
    35900
    """
    return training_carbon_kg + training_embodied_carbon_kg


def training_water_grid_l(training_energy_kwh: Numeric, grid_water_l_per_kwh: Numeric) -> Numeric:
    r"""Water that power stations consume for the electricity of the run.

    .. math:: V_g = E\, \mathrm{WUE}_g

    Notes
    -----
    Consumed, not withdrawn. Hydropower's evaporation dominates where it counts.

    References
    ----------
    .. [li2023] section 2: 3.1 L/kWh in the United States

    Examples
    --------
    >>> training_water_grid_l(1e6, 3.1)
    3100000.0
    """
    return training_energy_kwh * grid_water_l_per_kwh


def training_water_total_l(training_water_l: Numeric, training_water_grid_l: Numeric) -> Numeric:
    r"""Water on site and in the power stations.

    .. math:: V_t = V_w + V_g

    Notes
    -----
    The two parts do not overlap.

    Examples
    --------
    >>> training_water_total_l(1.8e6, 3.1e6)
    4900000.0
    """
    return training_water_l + training_water_grid_l
