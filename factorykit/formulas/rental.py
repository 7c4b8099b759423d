"""Cost of rented capacity: commitments, spot instances with interruptions, and moving between providers."""

from __future__ import annotations

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.types import Numeric
from factorykit.formulas.checkpoint import checkpoint_goodput, checkpoint_interval_optimal_s
from factorykit.formulas.checkpoint_tiers import (
    segments_per_pattern_first_order,
    two_level_goodput,
    two_level_interval_s,
    two_level_pattern_s,
)
from factorykit.formulas.functions import log1p, maximum, where
from factorykit.formulas.validity import holds_while

SPOT_WINDOW_S = 30.0 * SECONDS_PER_DAY
"""Time over which providers publish how many machines they took away. [s]"""
LOWEST_USD_PER_H = 1e-12
"""Stands for no saving, by which nothing can be divided. [USD/h]"""


def reserved_usd_per_accelerator_h(rental_usd_per_accelerator_h: Numeric, reserved_discount: Numeric) -> Numeric:
    r"""Price of an accelerator-hour under a commitment.

    .. math:: p_r = p (1 - d_r)

    Notes
    -----
    Paid for every hour of the commitment, used or not.

    Examples
    --------
    >>> reserved_usd_per_accelerator_h(3.0, 0.5)
    1.5
    """
    return rental_usd_per_accelerator_h * (1.0 - reserved_discount)


def spot_usd_per_accelerator_h(rental_usd_per_accelerator_h: Numeric, spot_discount: Numeric) -> Numeric:
    r"""Price of an accelerator-hour that can be taken away.

    .. math:: p_s = p (1 - d_s)

    Notes
    -----
    The hourly price alone; ``spot_cost_usd`` includes the cost of interruptions.

    Examples
    --------
    H100 in the summer of 2026, medians of providers:

    >>> round(spot_usd_per_accelerator_h(3.25, 0.372), 2)
    2.04
    """
    return rental_usd_per_accelerator_h * (1.0 - spot_discount)


def spot_mtbf_s(cluster_mtbf_s: Numeric, spot_reclaim_mtbf_s: Numeric) -> Numeric:
    r"""Mean time between stops of a job that failures and reclaims interrupt.

    .. math:: M_c = \left(\frac{1}{M} + \frac{1}{M_s}\right)^{-1}

    Notes
    -----
    Both arrive at constant rates and independently, so that rates add. Reclaims that come in waves are worse.

    Examples
    --------
    >>> spot_mtbf_s(40_000.0, 40_000.0)
    20000.0
    """
    return 1.0 / (1.0 / cluster_mtbf_s + 1.0 / spot_reclaim_mtbf_s)


def spot_checkpoint_interval_s(checkpoint_write_s: Numeric, spot_mtbf_s: Numeric) -> Numeric:
    r"""Work between two checkpoints that is best under failures and reclaims.

    .. math:: \tau_s = M_c \left[1 + W_0(-\mathrm{e}^{-C_w/M_c - 1})\right]

    Notes
    -----
    The optimum of ``checkpoint_interval_optimal_s`` at the shorter time between stops.

    References
    ----------
    .. [daly2006] equation 20

    Examples
    --------
    >>> round(spot_checkpoint_interval_s(60.0, 3 * 3600.0), 2)
    1098.78
    """
    return checkpoint_interval_optimal_s(checkpoint_write_s, spot_mtbf_s)


def spot_goodput(
    spot_checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    spot_mtbf_s: Numeric,
    restart_s: Numeric,
    downtime_s: Numeric,
) -> Numeric:
    r"""Share of paid time that ends up as progress on capacity that can be taken away.

    .. math:: G_s = \frac{\tau_s}{(M_c + D_0)\, \mathrm{e}^{R/M_c} (\mathrm{e}^{(\tau_s + C_w)/M_c} - 1)}

    Notes
    -----
    Replacement capacity is there as soon as the downtime is over; waiting for it costs no rent and is not in it.

    References
    ----------
    .. [daly2006] equation 20

    Examples
    --------
    >>> round(spot_goodput(1100.0, 60.0, 54 * 86400 / 419, 600.0, 0.0), 4)
    0.8525
    """
    return checkpoint_goodput(spot_checkpoint_interval_s, checkpoint_write_s, spot_mtbf_s, restart_s, downtime_s)


def spot_cost_usd(
    accelerators: Numeric, training_s: Numeric, spot_goodput: Numeric, spot_usd_per_accelerator_h: Numeric
) -> Numeric:
    r"""Cost of the run on capacity that can be taken away, interruptions included.

    .. math:: K_s = \frac{n T_0 p_s}{3600\, G_s}

    Notes
    -----
    Infinite where reclaims come so fast that the run never ends.

    Examples
    --------
    >>> spot_cost_usd(1000.0, 3600.0, 0.5, 1.0)
    2000.0
    """
    return accelerators * training_s / SECONDS_PER_HOUR / spot_goodput * spot_usd_per_accelerator_h


def spot_saving(spot_cost_usd: Numeric, rental_cost_usd: Numeric) -> Numeric:
    r"""Share of the on-demand cost that spot capacity saves.

    .. math:: \eta_s = 1 - K_s / K

    Notes
    -----
    Below the discount, because reclaims cost goodput; negative where they cost more than the discount.

    Examples
    --------
    >>> spot_saving(40.0, 100.0)
    0.6
    """
    return 1.0 - spot_cost_usd / rental_cost_usd


def spot_reclaim_mtbf_grouped_s(spot_reclaim_groups: Numeric, spot_interruption_share: Numeric) -> Numeric:
    r"""Mean time between reclaims of a job, from the share of machines that a provider takes back in a month.

    .. math:: M_{s,g} = \frac{T_{30}}{-g_s \ln(1 - s_{30})}

    Notes
    -----
    One group: all machines are reclaimed at once, the mildest case. As many groups as machines: each is reclaimed
    independently, and one is enough to stop the job. More than nine reclaims in ten come within minutes of another, so
    one group is nearer.

    References
    ----------
    .. [spotandscoot2026] abstract: 92 % of interruptions that go together come within three minutes

    Examples
    --------
    The band of H100 on AWS, 10 to 20 % a month; 128 servers reclaimed together or independently, in days:

    >>> [round(spot_reclaim_mtbf_grouped_s(groups, 0.15) / 86400, 1) for groups in (1.0, 128.0)]
    [184.6, 1.4]
    """
    return SPOT_WINDOW_S / (spot_reclaim_groups * -log1p(-spot_interruption_share))


def spot_near_share(level_one_share: Numeric, cluster_mtbf_s: Numeric, spot_mtbf_s: Numeric) -> Numeric:
    r"""Share of stops on spot that the near checkpoint survives.

    .. math:: \phi_s = p_1 M_c / M

    Notes
    -----
    A reclaim takes the machine and its memory and disks with it, so only the far checkpoint survives one.

    Examples
    --------
    Half of the stops are reclaims:

    >>> spot_near_share(0.8, 40_000.0, 20_000.0)
    0.4
    """
    return level_one_share * spot_mtbf_s / cluster_mtbf_s


def spot_segments_per_pattern(
    level_one_write_s: Numeric, level_two_write_s: Numeric, spot_near_share: Numeric
) -> Numeric:
    r"""Near checkpoints per far one that lose least on spot, to first order.

    .. math:: n_s = \max\left(\sqrt{\frac{\phi_s C_2}{(1 - \phi_s) C_1}},\; 1\right)

    Notes
    -----
    One where reclaims are most of the stops: then near checkpoints save nothing.

    References
    ----------
    .. [benoit2017]

    Examples
    --------
    >>> round(spot_segments_per_pattern(1.0, 30.0, 0.85), 1)
    13.0
    """
    return segments_per_pattern_first_order(level_one_write_s, level_two_write_s, spot_near_share)


def spot_tiered_interval_s(
    spot_segments_per_pattern: Numeric,
    level_one_write_s: Numeric,
    level_two_write_s: Numeric,
    spot_near_share: Numeric,
    spot_mtbf_s: Numeric,
) -> Numeric:
    r"""Work between near checkpoints on spot that loses least, to first order.

    .. math:: \tau_{s,2} = \sqrt{\frac{2 M_c (C_1 + C_2 / n_s)}{\phi_s + (1 - \phi_s)\, n_s}}

    Notes
    -----
    ``two_level_interval_s`` at the rate and the mixture of stops on spot.

    References
    ----------
    .. [benoit2017]

    Examples
    --------
    >>> round(spot_tiered_interval_s(20.0, 1.0, 30.0, 0.85, 3600.0))
    68
    """
    return two_level_interval_s(
        spot_segments_per_pattern, level_one_write_s, level_two_write_s, spot_near_share, spot_mtbf_s
    )


@holds_while(
    "level_two_restart_s <= spot_mtbf_s / 4",
    lambda level_two_restart_s, spot_mtbf_s: 4.0 * level_two_restart_s <= spot_mtbf_s,
)
def spot_tiered_goodput(
    spot_segments_per_pattern: Numeric,
    spot_tiered_interval_s: Numeric,
    level_one_write_s: Numeric,
    level_two_write_s: Numeric,
    level_one_restart_s: Numeric,
    level_two_restart_s: Numeric,
    spot_near_share: Numeric,
    spot_mtbf_s: Numeric,
) -> Numeric:
    r"""Share of paid time that ends up as progress on spot with near and far checkpoints.

    .. math:: G_{s,2} = \frac{n_s \tau_{s,2}}{E_0(n_s, \tau_{s,2}, \phi_s, M_c)}

    Notes
    -----
    :math:`E_0` is ``two_level_pattern_s``, in which nothing strikes a restart: too hopeful where stops come as fast as
    restarts. Replacement capacity is there at once; waiting for it costs no rent.

    References
    ----------
    .. [moody2010] section 3

    Examples
    --------
    >>> round(spot_tiered_goodput(20.0, 120.0, 1.0, 30.0, 60.0, 300.0, 0.85, 3600.0), 4)
    0.8925
    """
    pattern_s = two_level_pattern_s(
        spot_segments_per_pattern,
        spot_tiered_interval_s,
        level_one_write_s,
        level_two_write_s,
        level_one_restart_s,
        level_two_restart_s,
        spot_near_share,
        spot_mtbf_s,
    )
    return two_level_goodput(spot_segments_per_pattern, spot_tiered_interval_s, pattern_s)


def spot_tiered_cost_usd(
    accelerators: Numeric, training_s: Numeric, spot_tiered_goodput: Numeric, spot_usd_per_accelerator_h: Numeric
) -> Numeric:
    r"""Cost of the run on spot with near and far checkpoints.

    .. math:: K_{s,2} = \frac{n T_0 p_s}{3600\, G_{s,2}}

    Notes
    -----
    The storage of the far checkpoints comes on top.

    Examples
    --------
    >>> spot_tiered_cost_usd(1000.0, 3600.0, 0.8, 1.0)
    1250.0
    """
    return accelerators * training_s / SECONDS_PER_HOUR / spot_tiered_goodput * spot_usd_per_accelerator_h


def spot_tiered_saving(spot_tiered_cost_usd: Numeric, rental_cost_usd: Numeric) -> Numeric:
    r"""Share of the on-demand cost that spot saves with near and far checkpoints.

    .. math:: \eta_{s,2} = 1 - K_{s,2} / K

    Notes
    -----
    Negative where reclaims cost more than the discount.

    Examples
    --------
    >>> spot_tiered_saving(40.0, 100.0)
    0.6
    """
    return 1.0 - spot_tiered_cost_usd / rental_cost_usd


def transfer_bytes(tokens: Numeric, bytes_per_token: Numeric, checkpoint_bytes: Numeric) -> Numeric:
    r"""Bytes that follow a run to another provider.

    .. math:: S_x = D b_t + S

    Notes
    -----
    All tokens and one checkpoint, once. Raw documents, images and earlier checkpoints stay where they are.

    Examples
    --------
    Llama 3.1 405B: 15.6 trillion tokens of 4 bytes and a checkpoint of 5.67 TB, in TB:

    >>> round(transfer_bytes(15.6e12, 4.0, 5.67e12) / 1e12, 2)
    68.07
    """
    return tokens * bytes_per_token + checkpoint_bytes


def egress_cost_usd(transfer_bytes: Numeric, egress_usd_per_byte: Numeric) -> Numeric:
    r"""Price of moving a run away from where its data lie.

    .. math:: K_x = S_x p_x

    Notes
    -----
    One price for all bytes; lists fall with volume, and large customers pay less or nothing.

    Examples
    --------
    68 TB at 7 cents a gigabyte:

    >>> round(egress_cost_usd(68.07e12, 0.07e-9))
    4765
    """
    return transfer_bytes * egress_usd_per_byte


def offer_fits(accelerators: Numeric, offered_accelerators: Numeric) -> Numeric:
    r"""Whether one provider has the accelerators that a run needs at once.

    .. math:: z_q = [n \le n_q]

    Notes
    -----
    A synchronous run is never split between providers: the network between them is too slow.

    Examples
    --------
    >>> offer_fits(1024.0, 512.0)
    0.0
    """
    return where(accelerators <= offered_accelerators, 1.0, 0.0)


def offer_cost_usd(spot_cost_usd: Numeric, egress_cost_usd: Numeric) -> Numeric:
    r"""Cost of the run at one provider: hours with interruptions, and the move.

    .. math:: K_q = K_s + K_x

    Notes
    -----
    An offer that is never taken away is spot capacity with reclaims infinitely far apart.

    Examples
    --------
    >>> offer_cost_usd(2_000_000.0, 5000.0)
    2005000.0
    """
    return spot_cost_usd + egress_cost_usd


def move_pays_after_h(
    egress_cost_usd: Numeric,
    accelerators: Numeric,
    rental_usd_per_accelerator_h: Numeric,
    rental_elsewhere_usd_per_accelerator_h: Numeric,
) -> Numeric:
    r"""Hours of running after which a move to a cheaper provider has paid.

    .. math:: T_x = \frac{K_x}{n\, (p - p')}

    Notes
    -----
    Above 1e9 hours where the other provider is no cheaper. Downtime of the move is not in it.

    Examples
    --------
    >>> move_pays_after_h(4765.0, 1024.0, 3.31, 2.30) < 5.0
    True
    """
    saving = rental_usd_per_accelerator_h - rental_elsewhere_usd_per_accelerator_h
    return egress_cost_usd / (accelerators * maximum(saving, LOWEST_USD_PER_H))
