"""Training fabrics by topology: tiers, switches, links, optics and bandwidth."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import equal, floor, maximum, where
from factorykit.formulas.validity import holds_while

MAX_TORUS_CHIPS = 1e18
"""Stands for unlimited: a torus has no maximum size."""
ROUNDED = 1e-9
"""Tolerance for roots that are whole numbers up to rounding."""


def _dragonfly_terminals(switch_ports: Numeric) -> Numeric:
    return floor((switch_ports + 1.0) / 4.0)


def _by_wiring(
    network_topology: Numeric, tree: Numeric, circuits: Numeric, dragonfly: Numeric, plus: Numeric, torus: Numeric
) -> Numeric:
    groups = where(equal(network_topology, "dragonfly"), dragonfly, plus)
    tori = where(equal(network_topology, "torus_2d"), torus, where(equal(network_topology, "torus_3d"), torus, groups))
    rails = where(equal(network_topology, "rail_only"), tree, tori)
    trees = where(equal(network_topology, "rail_optimized"), tree, rails)
    switched = where(equal(network_topology, "fat_tree"), tree, trees)
    return where(equal(network_topology, "optical_spine"), circuits, switched)


def _dimensions(network_topology: Numeric) -> Numeric:
    return where(equal(network_topology, "torus_2d"), 2.0, 3.0)


def _most(switch_ports: Numeric, network_topology: Numeric) -> Numeric:
    terminals = _dragonfly_terminals(switch_ports)
    group = 2.0 * terminals * terminals
    plus = switch_ports * switch_ports / 4.0
    tree = switch_ports**4.0 / 8.0
    return _by_wiring(network_topology, tree, tree, group * (group + 1.0), plus * (plus + 1.0), MAX_TORUS_CHIPS)


def _fabrics(network_planes: Numeric, network_rails: Numeric, network_topology: Numeric) -> Numeric:
    return network_planes * where(equal(network_topology, "rail_only"), network_rails, 1.0)


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


@holds_while(
    "the endpoints of a plane are at most the maximum of the topology at this radix: 2p^2 (2p^2 + 1) of a dragonfly, "
    "p = (k + 1) / 4; k^2/4 (k^2/4 + 1) of a dragonfly+; k^4/8 of a tree",
    lambda network_endpoints, network_planes, network_rails, switch_ports, network_topology: (
        network_endpoints / _fabrics(network_planes, network_rails, network_topology)
        <= _most(switch_ports, network_topology)
    ),
)
def network_tiers(
    network_endpoints: Numeric,
    network_planes: Numeric,
    network_rails: Numeric,
    switch_ports: Numeric,
    network_oversubscription: Numeric,
    network_topology: Numeric,
) -> Numeric:
    r"""Layers of switches that a fabric needs.

    .. math::
        L = 1, 2, 3, 4 \quad \text{for} \quad
        n_e / n_p \le k,\ \tfrac{2 \sigma}{1 + \sigma} \tfrac{k^2}{2},\ \tfrac{2 \sigma}{1 + \sigma} \tfrac{k^3}{4},\
        \text{more} \quad \text{(trees)}, \qquad 1 \text{ of a dragonfly}, \quad 2 \text{ of a dragonfly+}, \quad
        0 \text{ of a torus}

    Notes
    -----
    Every layer of a tree but the top one carries all traffic that enters it; above the top layer's oversubscription
    :math:`\sigma` more endpoints fit. Rails without a spine between them are fabrics of their own, each with :math:`n_e
    / n_r` of the endpoints; messages change rails inside a scale-up domain. Four layers end at :math:`k^4/8`.

    References
    ----------
    .. [leiserson1985]
    .. [wang2023rail] section on the design: rail switches alone
    .. [zhao2025] table 3: 2,048 and 65,536 endpoints in two and three layers of 64 ports

    Examples
    --------
    64 ports carry 2,048 endpoints in two layers and 65,536 in three:

    >>> [network_tiers(ends, 1.0, 8.0, 64.0, 1.0, "fat_tree") for ends in (2048.0, 65536.0)]
    [2.0, 3.0]

    16,384 without a spine need two where the tree needs three:

    >>> [network_tiers(16384.0, 1.0, 8.0, 64.0, 1.0, wired) for wired in ("rail_only", "fat_tree")]
    [2.0, 3.0]
    """
    endpoints = network_endpoints / _fabrics(network_planes, network_rails, network_topology)
    wider = 2.0 * network_oversubscription / (1.0 + network_oversubscription)
    two, three = wider * switch_ports * switch_ports / 2.0, wider * switch_ports * switch_ports * switch_ports / 4.0
    beyond = where(endpoints <= three, 3.0, 4.0)
    tree = where(endpoints <= switch_ports, 1.0, where(endpoints <= two, 2.0, beyond))
    return _by_wiring(network_topology, tree, tree, 1.0, 2.0, 0.0)


def switches(
    network_endpoints: Numeric,
    network_tiers: Numeric,
    switch_ports: Numeric,
    network_oversubscription: Numeric,
    network_topology: Numeric,
) -> Numeric:
    r"""Packet switches of a fabric.

    .. math::
        n_{sw} = \frac{n_e}{k} \left(2 L - 3 + \frac{2}{\sigma}\right) \text{ of a tree } (L > 1), \quad
        \frac{n_e}{k} \left(2 L - 3 + \frac{1}{\sigma}\right) \text{ with circuits on top}, \quad
        \frac{n_e}{p} \text{ of a dragonfly}, \quad \frac{4 n_e}{k} \text{ of a dragonfly+}, \quad 0 \text{ of a torus}

    Notes
    -----
    Every layer of a tree but the top one uses half its ports downwards, the layer below the top one
    :math:`\sigma / (1 + \sigma)` of them; with :math:`\sigma = 1` a tree has :math:`(2 L - 1) n_e / k`. A balanced
    dragonfly has :math:`p = \lfloor (k + 1) / 4 \rfloor` endpoints a switch, :math:`2 p` switches a group and :math:`p`
    links of each switch to other groups. A fraction where a switch is partly used.

    References
    ----------
    .. [zhao2025] table 3: 96, 768 and 5,120 switches of fat trees, 16,352 of a dragonfly
    .. [alfares2008] section 2.2: 5 k^2/4 switches for k^3/4 hosts
    .. [kim2008] section 3.1: a = 2p = 2h
    .. [shpiner2017] section 2

    Examples
    --------
    Three layers for 65,536 endpoints, and the largest dragonfly of 511 groups:

    >>> switches(65536.0, 3.0, 64.0, 1.0, "fat_tree"), switches(261632.0, 1.0, 64.0, 1.0, "dragonfly")
    (5120.0, 16352.0)
    """
    share = network_endpoints / switch_ports
    below = 2.0 * network_tiers - 3.0 + 1.0 / network_oversubscription
    tree = share * where(network_tiers > 1.0, below + 1.0 / network_oversubscription, 1.0)
    circuits = share * where(network_tiers > 1.0, below, 1.0)
    dragonfly = network_endpoints / maximum(_dragonfly_terminals(switch_ports), 1.0)
    return _by_wiring(network_topology, tree, circuits, dragonfly, 4.0 * share, 0.0)


def switch_links(
    network_endpoints: Numeric,
    network_tiers: Numeric,
    switch_ports: Numeric,
    network_oversubscription: Numeric,
    network_topology: Numeric,
) -> Numeric:
    r"""Links between the switches of a fabric, or between the chips of a torus.

    .. math::
        n_l = n_e \left(L - 2 + \frac{1}{\sigma}\right) \text{ of a tree } (L > 1), \quad
        \frac{n_e}{p} \frac{3 p - 1}{2} \text{ of a dragonfly}, \quad \tfrac32 n_e \text{ of a dragonfly+}, \quad
        d\, n_e \text{ of a torus in } d \text{ dimensions}

    Notes
    -----
    Links from switches to endpoints come on top, one per endpoint. Circuit switches join the two ends of a link
    and count as part of it.

    References
    ----------
    .. [zhao2025] table 3: 2,048, 16,384 and 131,072 links of fat trees, 384,272 of a dragonfly
    .. [jouppi2023] section 2.2: six links a chip

    Examples
    --------
    >>> switch_links(65536.0, 3.0, 64.0, 1.0, "fat_tree"), switch_links(4096.0, 0.0, 64.0, 1.0, "torus_3d")
    (131072.0, 12288.0)
    """
    tree = network_endpoints * where(network_tiers > 1.0, network_tiers - 2.0 + 1.0 / network_oversubscription, 0.0)
    terminals = maximum(_dragonfly_terminals(switch_ports), 1.0)
    dragonfly = network_endpoints / terminals * (3.0 * terminals - 1.0) / 2.0
    torus = _dimensions(network_topology) * network_endpoints
    return _by_wiring(network_topology, tree, tree, dragonfly, 1.5 * network_endpoints, torus)


def circuit_switches(
    network_endpoints: Numeric,
    network_tiers: Numeric,
    network_oversubscription: Numeric,
    network_topology: Numeric,
    cube_side: Numeric,
    circuit_switch_ports: Numeric,
) -> Numeric:
    r"""Optical circuit switches of a fabric.

    .. math::
        n_{oc} = \frac{2 \cdot 3\, n_e}{c\, k_{oc}} \text{ of a torus of cubes with } c \text{ chips a side}, \qquad
        \frac{n_e}{\sigma\, k_{oc}} \text{ on top of a tree } (L > 1)

    Notes
    -----
    Links inside a cube are copper; each that leaves it ends in a circuit switch, as do all links that would enter the
    top layer of a tree. A torus in two dimensions is counted as copper.

    References
    ----------
    .. [jouppi2023] section 2.2: 48 switches of 128 used ports for 64 cubes of 4x4x4 chips
    .. [poutievski2022] section 3

    Examples
    --------
    >>> circuit_switches(4096.0, 0.0, 1.0, "torus_3d", 4.0, 128.0)
    48.0
    """
    spine = where(network_tiers > 1.0, network_endpoints / network_oversubscription, 0.0) / circuit_switch_ports
    cubes = 6.0 * network_endpoints / (cube_side * circuit_switch_ports)
    return where(
        equal(network_topology, "optical_spine"), spine, where(equal(network_topology, "torus_3d"), cubes, 0.0)
    )


def network_transceivers(
    network_endpoints: Numeric,
    network_tiers: Numeric,
    switch_links: Numeric,
    network_oversubscription: Numeric,
    network_topology: Numeric,
    cube_side: Numeric,
) -> Numeric:
    r"""Optical ends of a fabric's links outside the servers.

    .. math::
        n_t = 2 n_l + n_e, \qquad 2 n_l + n_e - \frac{n_e}{\sigma} \text{ with circuits on top}, \qquad
        \frac{2 n_l}{c} \text{ of a torus of cubes}

    Notes
    -----
    Every link between switches is optical with a transceiver at both ends; the switch end of each endpoint's cable is
    counted here, the other end with the adapter. Light passes a circuit switch without one. A torus in two dimensions
    is counted as copper.

    References
    ----------
    .. [jouppi2023] section 2.2: 96 optical links of each cube of 64 chips

    Examples
    --------
    64 cubes with 96 optical links each:

    >>> network_transceivers(4096.0, 0.0, 12288.0, 1.0, "torus_3d", 4.0)
    6144.0
    """
    tree = 2.0 * switch_links + network_endpoints
    circuits = tree - where(network_tiers > 1.0, network_endpoints / network_oversubscription, 0.0)
    cubes = where(equal(network_topology, "torus_3d"), 2.0 * switch_links / cube_side, 0.0)
    return _by_wiring(network_topology, tree, circuits, tree, tree, cubes)


def network_diameter(network_endpoints: Numeric, network_tiers: Numeric, network_topology: Numeric) -> Numeric:
    r"""Links between switches, or chips of a torus, on the longest of the shortest ways through a fabric.

    .. math::
        2 (L - 1) \text{ of a tree}, \quad 2 (L - 1) - 1 \text{ with circuits on top}, \quad
        3 \text{ of a dragonfly or dragonfly+}, \quad d \left\lfloor \sqrt[d]{n_e} / 2 \right\rfloor \text{ of a torus}

    Notes
    -----
    A torus with equal sides. The links to both endpoints come on top of those between switches.

    References
    ----------
    .. [kim2008] section 3: a way has at most one link between groups

    Examples
    --------
    >>> network_diameter(65536.0, 3.0, "fat_tree"), network_diameter(4096.0, 0.0, "torus_3d")
    (4.0, 24.0)
    """
    tree = 2.0 * (network_tiers - 1.0)
    dimensions = _dimensions(network_topology)
    torus = dimensions * floor(network_endpoints ** (1.0 / dimensions) / 2.0 + ROUNDED)
    return _by_wiring(network_topology, tree, maximum(tree - 1.0, 0.0), 3.0, 3.0, torus)


def bisection_bytes_per_s(
    accelerators: Numeric,
    scale_out_bytes_per_s: Numeric,
    network_tiers: Numeric,
    network_oversubscription: Numeric,
    network_topology: Numeric,
) -> Numeric:
    r"""Rate in one direction over the narrowest cut through a fabric's middle.

    .. math::
        \frac{n B_{out}}{2 \sigma} \text{ of a tree}, \quad
        \frac{n B_{out}}{4} \text{ of a dragonfly or dragonfly+}, \quad
        2\, n^{(d - 1)/d}\, \frac{B_{out}}{2 d} \text{ of a torus}

    Notes
    -----
    Groups of a dragonfly send to each other over as many links as they have endpoints, half of which cross the middle
    where groups are many. The rate of a chip in a torus is shared by its :math:`2 d` links, of which a ring has two in
    the cut.

    References
    ----------
    .. [leiserson1985]
    .. [kim2008] section 3.1
    .. [jouppi2023] section 2.8: the bisection of a 3D torus grows as n^(2/3), of a 2D torus as n^(1/2)

    Examples
    --------
    4,096 chips of TPU v4 with six links of 50 GB/s, and as many in a fat tree:

    >>> round(bisection_bytes_per_s(4096.0, 3e11, 0.0, 1.0, "torus_3d") / 1e12, 1)
    25.6
    >>> bisection_bytes_per_s(4096.0, 3e11, 3.0, 1.0, "fat_tree") / 1e12
    614.4
    """
    injected = accelerators * scale_out_bytes_per_s
    tree = injected / 2.0 / where(network_tiers > 1.0, network_oversubscription, 1.0)
    dimensions = _dimensions(network_topology)
    torus = accelerators ** (1.0 - 1.0 / dimensions) * scale_out_bytes_per_s / dimensions
    return _by_wiring(network_topology, tree, tree, injected / 4.0, injected / 4.0, torus)
