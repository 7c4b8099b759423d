"""What a training fabric is made of: tiers, switches and links of a fat tree."""

from __future__ import annotations

from factorykit.formulas.functions import where
from factorykit.typing import Numeric


def network_endpoints(accelerators: Numeric, nics_per_accelerator: Numeric) -> Numeric:
    r"""Ports of the training fabric on the side of the accelerators.

    .. math:: n_e = n\, r_{nic}

    Notes
    -----
    Storage and management networks are not in it.

    Examples
    --------
    >>> network_endpoints(16384.0, 1.0)
    16384.0
    """
    return accelerators * nics_per_accelerator


def network_tiers(network_endpoints: Numeric, network_planes: Numeric, switch_ports: Numeric) -> Numeric:
    r"""Layers of switches that a non-blocking fat tree needs.

    .. math:: L = 1, 2, 3, 4 \quad \text{for} \quad n_e / n_p \le k,\ k^2/2,\ k^3/4,\ \text{more}

    Notes
    -----
    Full bisection in every plane; an oversubscribed top layer would carry more endpoints. Four layers end at
    :math:`k^4/8`.

    References
    ----------
    .. [leiserson1985]
    .. [zhao2025] table 3: 2,048 and 65,536 endpoints in two and three layers of 64 ports

    Examples
    --------
    64 ports carry 2,048 endpoints in two layers and 65,536 in three:

    >>> network_tiers(2048.0, 1.0, 64.0), network_tiers(65536.0, 1.0, 64.0)
    (2.0, 3.0)
    """
    endpoints = network_endpoints / network_planes
    two, three = switch_ports * switch_ports / 2.0, switch_ports * switch_ports * switch_ports / 4.0
    beyond = where(endpoints <= three, 3.0, 4.0)
    return where(endpoints <= switch_ports, 1.0, where(endpoints <= two, 2.0, beyond))


def switches(network_endpoints: Numeric, network_tiers: Numeric, switch_ports: Numeric) -> Numeric:
    r"""Switches of a non-blocking fat tree.

    .. math:: n_{sw} = (2 L - 1)\, n_e / k

    Notes
    -----
    Every layer but the top one uses half its ports downwards. A fraction where a switch is partly used.

    References
    ----------
    .. [zhao2025] table 3: 96, 768 and 5,120 switches

    Examples
    --------
    Three layers for 65,536 endpoints:

    >>> switches(65536.0, 3.0, 64.0)
    5120.0
    """
    return (2.0 * network_tiers - 1.0) * network_endpoints / switch_ports


def switch_links(network_endpoints: Numeric, network_tiers: Numeric) -> Numeric:
    r"""Links between the switches of a non-blocking fat tree.

    .. math:: n_l = (L - 1)\, n_e

    Notes
    -----
    Links from switches to endpoints come on top, one per endpoint.

    References
    ----------
    .. [zhao2025] table 3: 2,048, 16,384 and 131,072 links

    Examples
    --------
    >>> switch_links(65536.0, 3.0)
    131072.0
    """
    return (network_tiers - 1.0) * network_endpoints
