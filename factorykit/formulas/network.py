"""Time of collectives on one tier of links and across two."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import log, maximum, minimum, where

LN2 = 0.6931471805599453
"""Natural logarithm of two."""


def ring_all_reduce_s(
    collective_bytes: Numeric, collective_ranks: Numeric, link_bytes_per_s: Numeric, link_latency_s: Numeric
) -> Numeric:
    r"""Time of a ring all-reduce: a reduce-scatter and an all-gather.

    .. math:: 2 \frac{n - 1}{n} \frac{S}{B_l} + 2 (n - 1) \alpha

    Notes
    -----
    One tier of equal links, no other traffic.

    References
    ----------
    .. [thakur2005] section 4

    Examples
    --------
    >>> ring_all_reduce_s(8e9, 8.0, 1e11, 0.0)
    0.14
    """
    once = all_to_all_s(collective_bytes, collective_ranks, link_bytes_per_s, link_latency_s)
    return 2.0 * once


def all_to_all_s(
    collective_bytes: Numeric, collective_ranks: Numeric, link_bytes_per_s: Numeric, link_latency_s: Numeric
) -> Numeric:
    r"""Time in which every rank sends an equal share of its bytes to every other rank.

    .. math:: \frac{n - 1}{n} \frac{S}{B_l} + (n - 1) \alpha

    Notes
    -----
    Full bisection bandwidth; one message to each peer.

    References
    ----------
    .. [thakur2005] section 4

    Examples
    --------
    >>> all_to_all_s(8e9, 8.0, 1e11, 0.0)
    0.07
    """
    share = (collective_ranks - 1.0) / collective_ranks
    return share * collective_bytes / link_bytes_per_s + (collective_ranks - 1.0) * link_latency_s


def two_tier_ring_s(
    collective_bytes: Numeric,
    collective_ranks: Numeric,
    domain_ranks: Numeric,
    scale_up_bytes_per_s: Numeric,
    scale_out_bytes_per_s: Numeric,
    scale_up_share: Numeric,
    scale_out_share: Numeric,
    scale_up_latency_s: Numeric,
    scale_out_latency_s: Numeric,
) -> Numeric:
    r"""Time of a reduce-scatter or all-gather over rings that leave each domain through all links of their ranks.

    .. math::
        T = \frac{n - 1}{n} \frac{S}{B} + \tau, \qquad
        B = \eta_{up} B_{up}, \quad \tau = \log_2(n)\, \alpha_{up} \quad (n \le g), \qquad
        B = \min(\eta_{up} B_{up},\, g\, \eta_{out} B_{out}), \quad
        \tau = \log_2(g)\, \alpha_{up} + \left(\tfrac{n}{g} - 1\right) \alpha_{out} \quad (n > g)

    Notes
    -----
    A group of which :math:`g` ranks sit in one domain drives :math:`g` network links at once; a group that straddles
    domains is held to them, and a ring waits for the network once for each further domain: libraries have no trees for
    these two collectives. Tensor parallelism over two and four nodes of H100 with EFA took 0.9 and 2.2 ms beyond its
    bytes, about 0.7 ms for each further node.

    References
    ----------
    .. [nccltests] doc/PERFORMANCE.md: bus bandwidth

    Examples
    --------
    >>> round(two_tier_ring_s(1e9, 64.0, 8.0, 4.5e11, 5e10, 0.75, 0.8, 1e-5, 1.5e-5), 5)
    0.00321
    """
    crosses = collective_ranks > domain_ranks
    inside = scale_up_bytes_per_s * scale_up_share
    outside = minimum(inside, domain_ranks * scale_out_bytes_per_s * scale_out_share)
    ranks = maximum(collective_ranks, 1.0)
    sending = (ranks - 1.0) / ranks * collective_bytes / where(crosses, outside, inside)
    inside_s = log(minimum(ranks, domain_ranks)) / LN2 * scale_up_latency_s
    return sending + inside_s + maximum(ranks / domain_ranks - 1.0, 0.0) * scale_out_latency_s
