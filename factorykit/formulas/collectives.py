"""Time of one collective by size, ranks and algorithm, and its bus bandwidth."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import ceil, equal, log, maximum, minimum, sqrt, where
from factorykit.formulas.network import LN2


def _domains(collective_ranks: Numeric, domain_ranks: Numeric) -> tuple[Numeric, Numeric]:
    local = maximum(minimum(domain_ranks, collective_ranks), 1.0)
    return local, maximum(collective_ranks / local, 1.0)


def _within_s(
    bus_factor: Numeric,
    collective_bytes: Numeric,
    scale_up_bytes_per_s: Numeric,
    collective_up_share: Numeric,
    domain_reduction_share: Numeric,
) -> Numeric:
    share = where(domain_reduction_share > 0.0, domain_reduction_share, collective_up_share)
    return bus_factor * collective_bytes / (scale_up_bytes_per_s * share)


def _pipelined(waiting: Numeric, sending: Numeric) -> Numeric:
    return waiting + sending + 2.0 * sqrt(waiting * sending)


def bus_factor(collective: Numeric, collective_ranks: Numeric) -> Numeric:
    r"""Bytes that one rank sends for each byte of a collective, at least.

    .. math:: 2 \frac{n - 1}{n} \text{ of an all-reduce}, \qquad \frac{n - 1}{n} \text{ of the others}

    Notes
    -----
    By it tests make bus bandwidth of size over time, so that runs of unlike size can stand beside a link's rate.

    References
    ----------
    .. [nccltests] doc/PERFORMANCE.md

    Examples
    --------
    >>> bus_factor("all_reduce", 16.0), bus_factor("all_gather", 16.0)
    (1.875, 0.9375)
    """
    share = (collective_ranks - 1.0) / collective_ranks
    return where(equal(collective, "all_reduce"), 2.0 * share, share)


def ring_collective_s(
    collective: Numeric,
    bus_factor: Numeric,
    collective_bytes: Numeric,
    collective_ranks: Numeric,
    domain_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    collective_up_share: Numeric,
    collective_out_share: Numeric,
    collective_start_s: Numeric,
    collective_up_s: Numeric,
    collective_out_s: Numeric,
) -> Numeric:
    r"""Time of a collective over rings that leave each domain through all its links.

    .. math::
        \tau + s \left[(n - D) \alpha_{up} + (D - 1) \alpha_{out}\right]
        + \frac{\beta S}{\min(\eta_{up} B_{up},\, g\, \eta_{out} B_{out})}, \qquad D = n / g

    Notes
    -----
    :math:`s` is two for an all-reduce, which goes around twice, else one. Within one domain the network is not used.

    References
    ----------
    .. [thakur2005] section 4
    .. [nccl] src/graph/tuning.cc: constants of start and hops

    Examples
    --------
    An all-gather of 8 GiB over two nodes of eight H100 with 25 GB/s each; 42.7 ms were measured:

    >>> links = (4.5e11, 2.5e10, 0.82, 0.92, 8.4e-6, 3.4e-6, 1.4e-5)
    >>> round(ring_collective_s("all_gather", 0.9375, 2.0**33, 16.0, 8.0, *links), 4)
    0.0438
    """
    local, domains = _domains(collective_ranks, domain_ranks)
    inside = scale_up_bytes_per_s * collective_up_share
    outside = local * scale_out_bytes_per_s * collective_out_share
    rate = where(domains > 1.0, minimum(inside, outside), inside)
    rounds = where(equal(collective, "all_reduce"), 2.0, 1.0)
    waiting = (collective_ranks - domains) * collective_up_s + (domains - 1.0) * collective_out_s
    taken = collective_start_s + rounds * waiting + bus_factor * collective_bytes / rate
    return where(collective_ranks > 1.0, taken, 0.0)


def tree_collective_s(
    bus_factor: Numeric,
    collective_bytes: Numeric,
    collective_ranks: Numeric,
    domain_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    collective_up_share: Numeric,
    collective_out_share: Numeric,
    domain_reduction_share: Numeric,
    collective_start_s: Numeric,
    collective_up_s: Numeric,
    collective_out_s: Numeric,
) -> Numeric:
    r"""Time of an all-reduce over trees of domains, in chunks that follow each other.

    .. math::
        \tau + \left(\sqrt{\lambda} + \sqrt{w}\right)^2, \qquad
        \lambda = 2 \log_2(g)\, \alpha_{up} + 2 \log_2(D)\, \alpha_{out}, \qquad
        w = \max\left(\frac{\beta S}{\eta B_{up}},\, [D > 1] \frac{\beta_D S}{g\, \eta_{out} B_{out}}\right)

    Notes
    -----
    Chunks of the size that suits best cost :math:`2 \sqrt{\lambda w}` beyond waiting and sending. Where the switches of
    a domain add, :math:`\eta` is the share they reach, else that of its links. Two domains send each byte once,
    :math:`\beta_D = 1`; from three on the inner nodes of two trees send as much as a ring, :math:`\beta_D = \beta`.

    References
    ----------
    .. [sanders2009] section 4
    .. [nccl] src/graph/tuning.cc: constants of start and hops

    Examples
    --------
    8 GiB in one node of eight H100; 31.3 ms were measured:

    >>> links = (4.5e11, 5e10, 0.82, 0.92, 1.07, 8.4e-6, 3.4e-6, 1.4e-5)
    >>> round(tree_collective_s(1.75, 2.0**33, 8.0, 8.0, *links), 4)
    0.0328
    """
    local, domains = _domains(collective_ranks, domain_ranks)
    links = scale_up_bytes_per_s, collective_up_share, domain_reduction_share
    inside = _within_s(bus_factor, collective_bytes, *links)
    sent = where(domains > 2.0, bus_factor, 1.0) * collective_bytes
    across = where(domains > 1.0, sent / (local * scale_out_bytes_per_s * collective_out_share), 0.0)
    waiting = 2.0 * (log(local) * collective_up_s + log(domains) * collective_out_s) / LN2
    taken = collective_start_s + _pipelined(waiting, maximum(inside, across))
    return where(collective_ranks > 1.0, taken, 0.0)


def in_network_collective_s(
    bus_factor: Numeric,
    collective_bytes: Numeric,
    collective_ranks: Numeric,
    domain_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    collective_up_share: Numeric,
    collective_sum_share: Numeric,
    domain_reduction_share: Numeric,
    network_tiers: Numeric,
    collective_start_s: Numeric,
    collective_up_s: Numeric,
    collective_out_s: Numeric,
) -> Numeric:
    r"""Time of an all-reduce whose sums the switches of the network form on the way.

    .. math::
        \tau + \left(\sqrt{\lambda} + \sqrt{w}\right)^2, \qquad
        \lambda = 2 \log_2(g)\, \alpha_{up} + [D > 1]\, L\, \alpha_{out}, \qquad
        w = \max\left(\frac{\beta S}{\eta B_{up}},\, [D > 1] \frac{S}{g\, \eta_s B_{out}}\right)

    Notes
    -----
    Every byte crosses the switches once up and once down, at the same time: half the bytes of a ring, at a lower share
    of the rate. Waiting grows with the tiers of the fabric and not with the ranks; a tier counts as half a hop between
    nodes, whose other half is software.

    References
    ----------
    .. [graham2016] section III
    .. [nccl] src/graph/tuning.cc: bandwidth of CollNetDirect

    Examples
    --------
    8 GiB over four nodes of eight B200; 30.2 ms were measured:

    >>> links = (9e11, 5e10, 0.82, 0.765, 0.93, 2.0, 8.4e-6, 3.4e-6, 1.4e-5)
    >>> round(in_network_collective_s(1.9375, 2.0**33, 32.0, 8.0, *links), 4)
    0.0305
    """
    local, domains = _domains(collective_ranks, domain_ranks)
    links = scale_up_bytes_per_s, collective_up_share, domain_reduction_share
    inside = _within_s(bus_factor, collective_bytes, *links)
    across = where(domains > 1.0, collective_bytes / (local * scale_out_bytes_per_s * collective_sum_share), 0.0)
    waiting = 2.0 * log(local) / LN2 * collective_up_s + where(domains > 1.0, network_tiers * collective_out_s, 0.0)
    taken = collective_start_s + _pipelined(waiting, maximum(inside, across))
    return where(collective_ranks > 1.0, taken, 0.0)


def pat_collective_s(
    bus_factor: Numeric,
    collective_bytes: Numeric,
    collective_ranks: Numeric,
    domain_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    collective_up_share: Numeric,
    collective_out_share: Numeric,
    collective_start_s: Numeric,
    collective_up_s: Numeric,
    collective_out_s: Numeric,
) -> Numeric:
    r"""Time of an all-gather or reduce-scatter over parallel aggregated trees.

    .. math::
        \tau + (g - 1) \alpha_{up} + \lceil \log_2 D \rceil\, \alpha_{out}
        + \frac{\beta S}{\min(\eta_{up} B_{up},\, g\, \eta_{out} B_{out})}

    Notes
    -----
    As many bytes as a ring, waiting for the logarithm of the domains. NCCL 2.23 to 2.28 choose it with one accelerator
    a node.

    References
    ----------
    .. [jeaugey2025] section 4

    Examples
    --------
    >>> links = (4.5e11, 5e10, 0.82, 0.92, 8.4e-6, 3.4e-6, 1.4e-5)
    >>> round(1e6 * pat_collective_s(0.998, 2.0**20, 512.0, 1.0, *links))
    157
    """
    local, domains = _domains(collective_ranks, domain_ranks)
    inside = scale_up_bytes_per_s * collective_up_share
    rate = where(domains > 1.0, minimum(inside, local * scale_out_bytes_per_s * collective_out_share), inside)
    waiting = (local - 1.0) * collective_up_s + ceil(log(domains) / LN2) * collective_out_s
    taken = collective_start_s + waiting + bus_factor * collective_bytes / rate
    return where(collective_ranks > 1.0, taken, 0.0)


def torus_collective_s(
    collective: Numeric,
    bus_factor: Numeric,
    collective_bytes: Numeric,
    collective_ranks: Numeric,
    torus_axes: Numeric,
    scale_up_bytes_per_s: Numeric,
    collective_up_share: Numeric,
    collective_start_s: Numeric,
    collective_up_s: Numeric,
) -> Numeric:
    r"""Time of a collective over rings along every axis of a torus, both ways at once.

    .. math:: \tau + s\, d\, \tfrac12 \sqrt[d]{n}\, \alpha_{up} + \frac{\beta S}{\eta_{up} B_{up}}

    Notes
    -----
    Each axis takes its part of the bytes, so that all :math:`2 d` links of a chip, which :math:`B_{up}` sums, are busy.
    Equal sides, long enough that their ends are joined: slices smaller than 4x4x4 chips have open ends and half the
    rate. :math:`s` is two for an all-reduce.

    References
    ----------
    .. [austin2025] sharding: an all-gather over several axes has the bandwidth of all

    Examples
    --------
    An all-gather of 1 GB over 4,096 chips of TPU v4 with six links of 50 GB/s, and over a ring of as many:

    >>> round(torus_collective_s("all_gather", 1.0, 1e9, 4096.0, 3.0, 3e11, 1.0, 0.0, 1e-6), 5)
    0.00336
    >>> round(torus_collective_s("all_gather", 1.0, 1e9, 4096.0, 1.0, 1e11, 1.0, 0.0, 1e-6), 4)
    0.012
    """
    rounds = where(equal(collective, "all_reduce"), 2.0, 1.0)
    axes = maximum(torus_axes, 1.0)
    waiting = axes * collective_ranks ** (1.0 / axes) / 2.0 * collective_up_s
    sending = bus_factor * collective_bytes / (scale_up_bytes_per_s * collective_up_share)
    return where(collective_ranks > 1.0, collective_start_s + rounds * waiting + sending, 0.0)


def exchange_collective_s(
    collective_bytes: Numeric,
    collective_ranks: Numeric,
    domain_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    collective_up_share: Numeric,
    collective_out_share: Numeric,
    collective_start_s: Numeric,
    collective_up_s: Numeric,
) -> Numeric:
    r"""Time in which every rank sends an equal share of its bytes to every other.

    .. math::
        \tau + (n - 1) \alpha_{up}
        + \max\left(\frac{g - 1}{n} \frac{S}{\eta_{up} B_{up}},\, \frac{n - g}{n} \frac{S}{\eta_{out} B_{out}}\right)

    Notes
    -----
    Traffic within domains and between domains moves at the same time. Full bisection bandwidth.

    References
    ----------
    .. [thakur2005] section 4

    Examples
    --------
    8 GiB over two nodes of eight B300 with 100 GB/s each; 44.5 ms were measured:

    >>> round(exchange_collective_s(2.0**33, 16.0, 8.0, 9e11, 1e11, 0.82, 0.92, 8.4e-6, 3.4e-6), 4)
    0.0467
    """
    local, _ = _domains(collective_ranks, domain_ranks)
    share_bytes = collective_bytes / maximum(collective_ranks, 1.0)
    inside = (local - 1.0) * share_bytes / (scale_up_bytes_per_s * collective_up_share)
    across = (collective_ranks - local) * share_bytes / (scale_out_bytes_per_s * collective_out_share)
    taken = collective_start_s + (collective_ranks - 1.0) * collective_up_s + maximum(inside, across)
    return where(collective_ranks > 1.0, taken, 0.0)


def collective_s(
    collective: Numeric,
    collective_algorithm: Numeric,
    ring_collective_s: Numeric,
    tree_collective_s: Numeric,
    pat_collective_s: Numeric,
    exchange_collective_s: Numeric,
) -> Numeric:
    r"""Time of a collective by the algorithm named, or by the faster of ring and tree.

    .. math:: \min(T_{ring}, T_{tree}) \text{ of an all-reduce}

    Notes
    -----
    Trees are for an all-reduce, parallel aggregated trees for an all-gather or reduce-scatter; where the algorithm
    named does not know the collective, a ring stands for it. Sums in the network are ``in_network_collective_s``.

    References
    ----------
    .. [nccl] src/graph/tuning.cc: the algorithm with the least predicted time is taken

    Examples
    --------
    >>> collective_s("all_reduce", "fastest", 3e-3, 2e-3, 1e-3, 4e-3)
    0.002
    >>> collective_s("all_gather", "pat", 3e-3, 2e-3, 1e-3, 4e-3)
    0.001
    """
    reduced = where(
        equal(collective_algorithm, "tree"),
        tree_collective_s,
        where(equal(collective_algorithm, "fastest"), minimum(ring_collective_s, tree_collective_s), ring_collective_s),
    )
    gathered = where(equal(collective_algorithm, "pat"), pat_collective_s, ring_collective_s)
    return where(
        equal(collective, "all_reduce"),
        reduced,
        where(equal(collective, "all_to_all"), exchange_collective_s, gathered),
    )


def bus_bytes_per_s(bus_factor: Numeric, collective_bytes: Numeric, collective_s: Numeric) -> Numeric:
    r"""Bus bandwidth of a collective.

    .. math:: \beta S / T

    Notes
    -----
    The size of an all-gather is that of each rank's result, of a reduce-scatter that of each rank's input.

    References
    ----------
    .. [nccltests] doc/PERFORMANCE.md

    Examples
    --------
    >>> bus_bytes_per_s(1.875, 8e9, 0.04) / 1e9
    375.0
    """
    return bus_factor * collective_bytes / collective_s
