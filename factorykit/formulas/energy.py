"""Power from chip to facility, and the energy, carbon and water of a run."""

from __future__ import annotations

from factorykit.constants import HOURS_PER_YEAR, JOULES_PER_KWH, WATTS_PER_KILOWATT
from factorykit.typing import Numeric


def node_power_w(
    accelerators_per_node: Numeric, accelerator_power_w: Numeric, node_overhead_power_w: Numeric
) -> Numeric:
    r"""Power of one server with its share of the network.

    .. math:: P_n = g P_a + P_o

    Parameters
    ----------
    accelerators_per_node : numeric
        Chips in one server, :math:`g`. [1]
    accelerator_power_w : numeric
        Mean electrical power of one chip under training load, :math:`P_a`. [W]
    node_overhead_power_w : numeric
        CPUs, memory, NICs, fans and switch share, :math:`P_o`. [W]

    Returns
    -------
    node_power_w : numeric
        Power of the server, :math:`P_n`. [W]

    Notes
    -----
    A sum; mean powers give mean power, peaks give a bound that no measured server reaches.

    References
    ----------
    .. [1] NVIDIA, "DGX H100/H200 user guide," 2024, power specifications: 10.2 kW at most with eight 700 W chips.

    Examples
    --------
    Eight chips at 700 W and 4,600 W around them:

    >>> node_power_w(8.0, 700.0, 4600.0)
    10200.0
    """
    return accelerators_per_node * accelerator_power_w + node_overhead_power_w


def it_power_w(nodes: Numeric, node_power_w: Numeric) -> Numeric:
    r"""Power of all servers.

    .. math:: P_{IT} = n_s P_n

    Parameters
    ----------
    nodes : numeric
        Servers, :math:`n_s`. [1]
    node_power_w : numeric
        Power of one server with its share of the network, :math:`P_n`. [W]

    Returns
    -------
    it_power_w : numeric
        IT power, :math:`P_{IT}`. [W]

    Notes
    -----
    Storage counts where its share is in ``node_overhead_power_w``.

    References
    ----------
    .. [1] ISO/IEC 30134-2:2016, "Power usage effectiveness," section 5: energy of the IT equipment.

    Examples
    --------
    >>> it_power_w(3072.0, 5800.0)
    17817600.0
    """
    return nodes * node_power_w


def facility_power_w(it_power_w: Numeric, pue: Numeric) -> Numeric:
    r"""Power at the meter of the site.

    .. math:: P_f = P_{IT}\, \mathrm{PUE}

    Parameters
    ----------
    it_power_w : numeric
        IT power, :math:`P_{IT}`. [W]
    pue : numeric
        Facility energy over IT energy. [1]

    Returns
    -------
    facility_power_w : numeric
        Facility power, :math:`P_f`. [W]

    Notes
    -----
    PUE is a yearly ratio of energies; on a hot afternoon the ratio of powers is higher.

    References
    ----------
    .. [1] ISO/IEC 30134-2:2016, "Power usage effectiveness," equation 1.

    Examples
    --------
    >>> round(facility_power_w(17.8e6, 1.1) / 1e6, 1)
    19.6
    """
    return it_power_w * pue


def training_energy_kwh(facility_power_w: Numeric, wall_s: Numeric) -> Numeric:
    r"""Energy of the run at the meter.

    .. math:: E = \frac{P_f T}{3.6 \times 10^{6}}

    Parameters
    ----------
    facility_power_w : numeric
        Facility power, :math:`P_f`. [W]
    wall_s : numeric
        Wall-clock time, :math:`T`. [s]

    Returns
    -------
    training_energy_kwh : numeric
        Energy, :math:`E`. [kWh]

    Notes
    -----
    The cluster draws its training power for the whole wall-clock time, so stops are counted a little high.

    References
    ----------
    .. [1] D. Patterson et al., "Carbon emissions and large neural network training," arXiv:2104.10350, 2021,
       section 2.5.

    Examples
    --------
    A megawatt for an hour:

    >>> training_energy_kwh(1e6, 3600.0)
    1000.0
    """
    return facility_power_w * wall_s / JOULES_PER_KWH


def annual_energy_kwh(facility_power_w: Numeric) -> Numeric:
    r"""Energy of a year at constant power.

    .. math:: E_y = \frac{8760\, P_f}{1000}

    Parameters
    ----------
    facility_power_w : numeric
        Facility power, :math:`P_f`. [W]

    Returns
    -------
    annual_energy_kwh : numeric
        Energy of 365 days, :math:`E_y`. [kWh]

    Notes
    -----
    A load factor below one scales it.

    References
    ----------
    .. [1] U.S. Energy Information Administration, "Glossary," 2024, entry "capacity factor": 8,760 hours a year.

    Examples
    --------
    >>> annual_energy_kwh(19.6e6)
    171696000.0
    """
    return facility_power_w * HOURS_PER_YEAR / WATTS_PER_KILOWATT


def training_carbon_kg(training_energy_kwh: Numeric, carbon_kg_per_kwh: Numeric) -> Numeric:
    r"""Operational emissions of the run.

    .. math:: M_c = E k

    Parameters
    ----------
    training_energy_kwh : numeric
        Energy at the meter, :math:`E`. [kWh]
    carbon_kg_per_kwh : numeric
        Carbon intensity of the grid, :math:`k`. [kg/kWh]

    Returns
    -------
    training_carbon_kg : numeric
        Emissions in CO2 equivalent, :math:`M_c`. [kg]

    Notes
    -----
    Location based: the mix of the grid, no certificates. Emissions from making the machines are not in it.

    References
    ----------
    .. [1] D. Patterson et al., "Carbon emissions and large neural network training," arXiv:2104.10350, 2021,
       section 2.5.

    Examples
    --------
    >>> training_carbon_kg(1000.0, 0.4)
    400.0
    """
    return training_energy_kwh * carbon_kg_per_kwh


def training_water_l(training_energy_kwh: Numeric, pue: Numeric, water_l_per_kwh: Numeric) -> Numeric:
    r"""Water that cooling evaporates on site during the run.

    .. math:: V_w = \frac{E}{\mathrm{PUE}}\, \mathrm{WUE}

    Parameters
    ----------
    training_energy_kwh : numeric
        Energy at the meter, :math:`E`. [kWh]
    pue : numeric
        Facility energy over IT energy. [1]
    water_l_per_kwh : numeric
        Litres per kWh of IT energy. [L/kWh]

    Returns
    -------
    training_water_l : numeric
        Water, :math:`V_w`. [L]

    Notes
    -----
    Water used to generate the electricity is not in it.

    References
    ----------
    .. [1] The Green Grid, "Water usage effectiveness (WUE)," white paper 35, 2011, equation 1.

    Examples
    --------
    >>> round(training_water_l(1.1e6, 1.1, 1.8))
    1800000
    """
    return training_energy_kwh / pue * water_l_per_kwh
