"""Training across data centres: exchanged data, overlap with compute, and maximum distance."""

from __future__ import annotations

from math import inf

from factorykit.core.types import Numeric
from factorykit.formulas.functions import maximum, minimum, where
from factorykit.formulas.validity import holds_while

FIBRE_S_PER_M = 1.468 / 299_792_458.0
"""Time of light through a metre of fibre: the group index of ITU-T G.652 at 1,550 nm over the speed of light."""

FARTHEST_M = 2e7
"""Half the way round the earth: no two places are farther apart."""


def wan_latency_s(site_distance_m: Numeric) -> Numeric:
    r"""Latency between neighbouring sites, one way.

    .. math:: \alpha_W = \frac{1.468}{c} d_W

    Notes
    -----
    Propagation in fibre only; give a measured latency where there is one. Routes are longer than the straight line:
    two sites about 1,000 km apart measured 21 ms there and back, twice the straight fibre.

    References
    ----------
    .. [nvidia2025longhaul] the run of Nemotron-4 340B

    Examples
    --------
    >>> round(2e3 * wan_latency_s(1e6), 1)
    9.8
    """
    return FIBRE_S_PER_M * site_distance_m


def outer_bytes(parameters: Numeric, training_sites: Numeric, outer_bits: Numeric) -> Numeric:
    r"""Bytes that one site sends when all weights are averaged once.

    .. math:: S_o = 2 \frac{n_W - 1}{n_W} N \frac{b_o}{8}

    Notes
    -----
    A ring over the sites. Each site has reduced among its own accelerators before, so that every parameter crosses
    once. With one inner step these are gradients, otherwise differences of weights.

    References
    ----------
    .. [thakur2005] section 4
    .. [douillard2023] algorithm 1

    Examples
    --------
    >>> outer_bytes(1e9, 2.0, 16.0), outer_bytes(1e10, 1.0, 8.0)
    (2000000000.0, 0.0)
    """
    return 2.0 * (training_sites - 1.0) / training_sites * parameters * outer_bits / 8.0


def outer_exchange_s(
    outer_bytes: Numeric,
    outer_fragments: Numeric,
    training_sites: Numeric,
    wan_bytes_per_s: Numeric,
    wan_latency_s: Numeric,
) -> Numeric:
    r"""Time in which the sites average one fragment of the weights.

    .. math:: T_x = \frac{S_o}{P B_W} + 2 (n_W - 1) \alpha_W

    Notes
    -----
    All links of a site together carry :math:`B_W` each way; the slowest site sets the pace of a ring.

    References
    ----------
    .. [thakur2005] section 4

    Examples
    --------
    Ten billion parameters in 8 bits over 1.5 Gbit/s:

    >>> round(outer_exchange_s(outer_bytes(1e10, 14.0, 8.0), 1.0, 14.0, 1.5e9 / 8, 0.05))
    100
    """
    return outer_bytes / (outer_fragments * wan_bytes_per_s) + 2.0 * (training_sites - 1.0) * wan_latency_s


def outer_exposed_s(
    outer_exchange_s: Numeric,
    outer_fragments: Numeric,
    outer_hidden_steps: Numeric,
    inner_steps: Numeric,
    inner_step_s: Numeric,
) -> Numeric:
    r"""Part of a mean step in which a site waits for others.

    .. math:: T_o = \frac{P}{H} \max\left(T_x - \min\left(h,\, \min(h, 1) \tfrac{H}{P}\right) T_i,\, 0\right)

    Notes
    -----
    Each of :math:`P` fragments is exchanged once in :math:`H` steps, one after the other. An exchange hides behind
    :math:`h` steps: two thirds where it runs beside the backward pass, one more for each step that the update may come
    late. Fragments of the same step share the time they hide behind.

    References
    ----------
    .. [douillard2025] sections 2.2 to 2.4

    Examples
    --------
    >>> round(outer_exposed_s(469.0, 1.0, 0.0, 100.0, 22.8), 2)
    4.69
    """
    fragment_steps = minimum(outer_hidden_steps, 1.0) * inner_steps / outer_fragments
    hidden = minimum(outer_hidden_steps, fragment_steps) * inner_step_s
    return outer_fragments / inner_steps * maximum(outer_exchange_s - hidden, 0.0)


def site_utilization(inner_step_s: Numeric, step_s: Numeric) -> Numeric:
    r"""Share of the time in which a site does not wait for the others.

    .. math:: u_W = T_i / T

    Notes
    -----
    Called compute utilization in papers on training across sites.

    References
    ----------
    .. [douillard2025] section 3.5

    Examples
    --------
    >>> round(site_utilization(22.8, 22.8 + 4.69), 3)
    0.829
    """
    return inner_step_s / step_s


def outer_allowed_s(
    site_utilization_wanted: Numeric,
    outer_fragments: Numeric,
    outer_hidden_steps: Numeric,
    inner_steps: Numeric,
    inner_step_s: Numeric,
) -> Numeric:
    r"""Time that an exchange may take while sites wait no more than wanted.

    .. math::
        T_{x,max} = T_i \left[\min\left(h,\, \min(h, 1) \tfrac{H}{P}\right)
        + \frac{H}{P} \left(\frac{1}{u} - 1\right)\right]

    Notes
    -----
    ``outer_exposed_s`` solved for the exchange.

    Examples
    --------
    >>> round(outer_allowed_s(0.9, 1.0, 2 / 3, 100.0, 0.1), 3)
    1.178
    """
    between = inner_steps / outer_fragments
    hidden = minimum(outer_hidden_steps, minimum(outer_hidden_steps, 1.0) * between)
    return inner_step_s * (hidden + between * (1.0 / site_utilization_wanted - 1.0))


def wan_needed_bytes_per_s(
    outer_bytes: Numeric,
    outer_fragments: Numeric,
    training_sites: Numeric,
    wan_latency_s: Numeric,
    outer_allowed_s: Numeric,
) -> Numeric:
    r"""Rate between sites at which they wait no more than wanted.

    .. math:: B_{W,min} = \frac{S_o / P}{T_{x,max} - 2 (n_W - 1) \alpha_W}

    Notes
    -----
    Infinite where latency alone takes longer than the exchange may.

    References
    ----------
    .. [douillard2025] table 4

    Examples
    --------
    A billion parameters over two sites, every step and every hundred, in Gbit/s:

    >>> allowed = [outer_allowed_s(0.9, 1.0, 2 / 3, steps, 0.1) for steps in (1.0, 100.0)]
    >>> [round(wan_needed_bytes_per_s(2e9, 1.0, 2.0, 0.0, budget) * 8e-9, 1) for budget in allowed]
    [205.7, 13.6]
    """
    sending = outer_allowed_s - 2.0 * (training_sites - 1.0) * wan_latency_s
    return where(sending > 0.0, outer_bytes / (outer_fragments * where(sending > 0.0, sending, 1.0)), inf)


def site_reach_m(
    outer_bytes: Numeric,
    outer_fragments: Numeric,
    training_sites: Numeric,
    wan_bytes_per_s: Numeric,
    outer_allowed_s: Numeric,
) -> Numeric:
    r"""Length of fibre between neighbouring sites up to which they wait no more than wanted.

    .. math:: d_{max} = \min\left(\frac{c}{1.468} \frac{\max(T_{x,max} - S_o / (P B_W),\, 0)}{2 (n_W - 1)},\, d_E\right)

    Notes
    -----
    Zero where bandwidth is too low at any distance; :math:`d_E`, half the way round the earth, where sites may stand
    anywhere. One site counts as two that send nothing.

    Examples
    --------
    >>> round(site_reach_m(2e9, 1.0, 2.0, 1.25e10, 0.25) / 1e3)
    9190
    """
    left = maximum(outer_allowed_s - outer_bytes / (outer_fragments * wan_bytes_per_s), 0.0)
    return minimum(left / (2.0 * maximum(training_sites - 1.0, 1.0) * FIBRE_S_PER_M), FARTHEST_M)


def wan_traffic_bytes(
    outer_bytes: Numeric, training_sites: Numeric, training_steps: Numeric, inner_steps: Numeric
) -> Numeric:
    r"""Bytes that all sites send one another in a run.

    .. math:: S_W = n_W S_o \frac{n_{st}}{H}

    Notes
    -----
    Checkpoints and data that are copied between sites come on top.

    References
    ----------
    .. [douillard2025] table 1: 400 times fewer bytes with 100 inner steps and 4 bits than with 16 bits in every step

    Examples
    --------
    >>> [wan_traffic_bytes(outer_bytes(1e9, 2.0, b), 2.0, 1e5, h) / 1e12 for b, h in ((16.0, 1.0), (4.0, 100.0))]
    [400.0, 1.0]
    """
    return training_sites * outer_bytes * training_steps / inner_steps


def wan_cost_usd(wan_traffic_bytes: Numeric, egress_usd_per_byte: Numeric) -> Numeric:
    r"""Price of the bytes that sites send one another, where providers charge for them.

    .. math:: K_W = S_W p_x

    Notes
    -----
    Own or rented fibres are paid by the month instead.

    Examples
    --------
    >>> wan_cost_usd(4e14, 5e-11)
    20000.0
    """
    return wan_traffic_bytes * egress_usd_per_byte


@holds_while(
    "inner_steps step_s < 2 site_mtbf_s",
    lambda inner_steps, step_s, site_mtbf_s: inner_steps * step_s < 2.0 * site_mtbf_s,
)
def sites_apart_goodput(
    checkpoint_goodput: Numeric, site_mtbf_s: Numeric, site_repair_s: Numeric, inner_steps: Numeric, step_s: Numeric
) -> Numeric:
    r"""Share of the time that ends up as progress where the other sites go on without one that fails.

    .. math:: G_a = G_c \frac{M_W - H T / 2}{M_W + R_W}

    Notes
    -----
    Of all sites' time. A site that returns takes the weights of the others and has lost its own steps since the last
    exchange, half of them on average. Failures inside sites are in the goodput that this multiplies.

    References
    ----------
    .. [jaghouar2024] section 2: nodes that leave and join

    Examples
    --------
    A week between failures, an hour without the site:

    >>> round(sites_apart_goodput(1.0, 604800.0, 3600.0, 100.0, 20.0), 4)
    0.9924
    """
    return checkpoint_goodput * (site_mtbf_s - 0.5 * inner_steps * step_s) / (site_mtbf_s + site_repair_s)


def sites_together_goodput(
    checkpoint_goodput: Numeric,
    training_sites: Numeric,
    site_mtbf_s: Numeric,
    site_repair_s: Numeric,
    checkpoint_interval_s: Numeric,
) -> Numeric:
    r"""Share of the time that ends up as progress where all sites stop with any of them.

    .. math:: G_t = G_c \frac{M_W}{M_W + n_W (R_W + \tau / 2)}

    Notes
    -----
    Gradients that are averaged in every step. All sites wait for the repair and repeat the work since the last
    checkpoint; nothing fails while all wait.

    Examples
    --------
    Eight sites, each a week between failures:

    >>> round(sites_together_goodput(1.0, 8.0, 604800.0, 3600.0, 1800.0), 4)
    0.9438
    """
    lost = training_sites * (site_repair_s + 0.5 * checkpoint_interval_s)
    return checkpoint_goodput * site_mtbf_s / (site_mtbf_s + lost)
