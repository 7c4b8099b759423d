"""Asynchronous and multi-level checkpoints."""

from __future__ import annotations

from typing import Final

from factorykit.core.types import Numeric
from factorykit.formulas.checkpoint import checkpoint_goodput, checkpoint_interval_optimal_s
from factorykit.formulas.functions import exp, expm1, log1p, maximum, sqrt
from factorykit.formulas.validity import holds_while

LEAST_SHARE: Final = 1e-200
"""Stands for no failures that need the far checkpoint: small enough to be nothing, and dividing by it is safe."""


def checkpoint_goodput_async(
    checkpoint_interval_s: Numeric,
    checkpoint_block_s: Numeric,
    cluster_mtbf_s: Numeric,
    restart_s: Numeric,
    downtime_s: Numeric,
    checkpoint_lag_s: Numeric,
) -> Numeric:
    r"""Share of the time that ends up as progress where saves finish in the background.

    .. math::
        G_a = \frac{\tau\, \mathrm{e}^{-P/M}}
            {(M + D_0)\, \mathrm{e}^{R/M} \left(\mathrm{e}^{(\tau + C_b)/M} - 1\right)}

    Notes
    -----
    A durability lag acts exactly like a longer restart. Derived here and checked by simulation; saves may overlap the
    work but not each other.

    References
    ----------
    .. [wan2025] table 8: a save of 51.06 s blocks 0.59 s
    .. [daly2006] equation 20

    Examples
    --------
    >>> round(checkpoint_goodput_async(600.0, 0.59, 54 * 86400 / 419, 300.0, 0.0, 51.06), 4)
    0.9421
    """
    return checkpoint_goodput(
        checkpoint_interval_s, checkpoint_block_s, cluster_mtbf_s, restart_s + checkpoint_lag_s, downtime_s
    )


def checkpoint_interval_async_s(
    checkpoint_block_s: Numeric, cluster_mtbf_s: Numeric, checkpoint_lag_s: Numeric
) -> Numeric:
    r"""Work between two background saves that loses least.

    .. math:: \tau_a = \max(\tau_\mathrm{opt}(C_b),\; P - C_b)

    Notes
    -----
    The lag does not move the optimum, but one save has to be durable before the next begins. A blocking time of zero
    asks for continuous saves, as often as the lag allows.

    References
    ----------
    .. [daly2006] equation 20

    Examples
    --------
    >>> round(checkpoint_interval_async_s(0.59, 54 * 86400 / 419, 51.06), 1)
    114.2
    """
    return maximum(
        checkpoint_interval_optimal_s(checkpoint_block_s, cluster_mtbf_s), checkpoint_lag_s - checkpoint_block_s
    )


@holds_while(
    "level_write_s * level_share <= cluster_mtbf_s / 8",
    lambda level_write_s, level_share, cluster_mtbf_s: 8.0 * level_write_s * level_share <= cluster_mtbf_s,
)
def level_interval_s(level_write_s: Numeric, level_share: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Period of one level of a multilevel scheme, to first order.

    .. math:: T_l = \sqrt{\frac{2 C_l M}{f_l}}

    Notes
    -----
    One row per level: each level has a Young period of its own. Periods of higher levels are rounded to multiples of
    the lower.

    References
    ----------
    .. [benoit2017] theorem on the optimal pattern

    Examples
    --------
    >>> round(level_interval_s(2.0, 0.9, 54 * 86400 / 419), 1)
    222.5
    """
    return sqrt(2.0 * level_write_s * cluster_mtbf_s / level_share)


@holds_while(
    "level_overhead <= 1/4",
    lambda level_write_s, level_share, cluster_mtbf_s: 32.0 * level_share * level_write_s <= cluster_mtbf_s,
)
def level_overhead(level_write_s: Numeric, level_share: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Share of time that one level costs, to first order.

    .. math:: H_l = \sqrt{\frac{2 f_l C_l}{M}}

    Notes
    -----
    One row per level: overheads of the levels add up. Good while the sum is below a quarter.

    References
    ----------
    .. [benoit2017] theorem on the optimal pattern

    Examples
    --------
    >>> M = 54 * 86400 / 419
    >>> round(level_overhead(2.0, 0.9, M) + level_overhead(60.0, 0.1, M), 4)
    0.0508
    """
    return sqrt(2.0 * level_share * level_write_s / cluster_mtbf_s)


def segments_per_pattern_first_order(
    level_one_write_s: Numeric, level_two_write_s: Numeric, level_one_share: Numeric
) -> Numeric:
    r"""Near checkpoints per far one that lose least, to first order.

    .. math:: n_1^* = \max\left(\sqrt{\frac{p_1 C_2}{(1 - p_1) C_1}},\; 1\right)

    Notes
    -----
    The ratio of the two Young periods. Infinite where the near checkpoint survives every failure or costs nothing.

    References
    ----------
    .. [benoit2017] theorem on the optimal pattern

    Examples
    --------
    >>> round(segments_per_pattern_first_order(1.0, 30.0, 0.85), 1)
    13.0
    """
    ratio = level_one_share * level_two_write_s / ((1.0 - level_one_share) * level_one_write_s)
    return maximum(sqrt(ratio), 1.0)


def two_level_interval_s(
    segments_per_pattern: Numeric,
    level_one_write_s: Numeric,
    level_two_write_s: Numeric,
    level_one_share: Numeric,
    cluster_mtbf_s: Numeric,
) -> Numeric:
    r"""Work between near checkpoints that loses least, to first order.

    .. math:: \tau_2 = \sqrt{\frac{2 M (C_1 + C_2 / n_1)}{p_1 + (1 - p_1)\, n_1}}

    Notes
    -----
    Young's argument for a pattern of :math:`n_1` segments. ``checkpoint_patterns.best_pattern`` finds the exact
    optimum.

    References
    ----------
    .. [benoit2017] first-order analysis of a pattern

    Examples
    --------
    >>> round(two_level_interval_s(20.0, 1.0, 30.0, 0.85, 3600.0))
    68
    """
    writes = level_one_write_s + level_two_write_s / segments_per_pattern
    reach = level_one_share + (1.0 - level_one_share) * segments_per_pattern
    return sqrt(2.0 * cluster_mtbf_s * writes / reach)


def level_two_restart_same_s(restart_s: Numeric) -> Numeric:
    r"""Restart from the far tier, where it is a restart as without a near one.

    .. math:: R_2 = R

    Notes
    -----
    Both read the same checkpoint back from storage.

    Examples
    --------
    >>> level_two_restart_same_s(600.0)
    600.0
    """
    return restart_s


def two_level_pattern_s(
    segments_per_pattern: Numeric,
    checkpoint_interval_s: Numeric,
    level_one_write_s: Numeric,
    level_two_write_s: Numeric,
    level_one_restart_s: Numeric,
    level_two_restart_s: Numeric,
    level_one_share: Numeric,
    cluster_mtbf_s: Numeric,
) -> Numeric:
    r"""Time of a pattern, on average, of near checkpoints that ends with a far one.

    .. math::
        E_0 = \frac{K}{f} \left[ (1 + f g)^{n_1 - 1} (1 + f g') - 1 \right], \qquad f = 1 - p_1 \\
        K = M + p_1 R_1 + f R_2, \qquad g = \mathrm{e}^{(\tau + C_1)/M} - 1,
        \qquad g' = \mathrm{e}^{(\tau + C_1 + C_2)/M} - 1

    Notes
    -----
    The Markov chain :math:`E_i = (1 - q_i)(M + p_1 (R_1 + E_i) + f (R_2 + E_0)) + q_i E_{i+1}` of the reference, solved
    in closed form here. A failure falls back to the last near checkpoint with probability :math:`p_1`, else to the last
    far one. No failure strikes a restart.

    References
    ----------
    .. [moody2010] section 3: the Markov model

    Examples
    --------
    >>> round(two_level_pattern_s(20.0, 120.0, 1.0, 30.0, 60.0, 300.0, 0.85, 3600.0), 3)
    2688.957
    """
    far = maximum(1.0 - level_one_share, LEAST_SHARE)
    near = checkpoint_interval_s + level_one_write_s
    inner = (segments_per_pattern - 1.0) * log1p(far * expm1(near / cluster_mtbf_s))
    last = log1p(far * expm1((near + level_two_write_s) / cluster_mtbf_s))
    attempt = cluster_mtbf_s + level_one_share * level_one_restart_s + far * level_two_restart_s
    return attempt * expm1(inner + last) / far


def two_level_pattern_exposed_s(
    segments_per_pattern: Numeric,
    checkpoint_interval_s: Numeric,
    level_one_write_s: Numeric,
    level_two_write_s: Numeric,
    level_one_restart_s: Numeric,
    level_two_restart_s: Numeric,
    level_one_share: Numeric,
    cluster_mtbf_s: Numeric,
    downtime_s: Numeric,
) -> Numeric:
    r"""Time of a pattern, on average, of near checkpoints that ends with a far one, where failures strike restarts too.

    .. math::
        E_x = \frac{M + p_1 U_1 + f U_2}{f_x} \left[ (1 + f_x g)^{n_1 - 1} (1 + f_x g') - 1 \right],
        \qquad f_x = \frac{f}{f + p_1 s_1}, \qquad f = 1 - p_1 \\
        s_1 = \mathrm{e}^{-R_1/M}, \qquad U_1 = \frac{D_0 + (1 - s_1)(M + f U_2)}{f + p_1 s_1},
        \qquad U_2 = (M + D_0)\, \mathrm{e}^{R_2/M} - M

    Notes
    -----
    The chain of ``two_level_pattern_s`` with recoveries that begin again when they are struck, derived here and checked
    against the chain and by simulation. :math:`U_1` and :math:`U_2` are the times from a failure until work resumes;
    :math:`f_x` is the share of failures after which it resumes from the remote checkpoint, since a failure during a
    local restart can require the remote one. A remote restart is repeated until it succeeds.

    References
    ----------
    .. [moody2010] section 3: the Markov model
    .. [bougeret2011] proposition 1: restarts that fail

    Examples
    --------
    Four seconds more than where no failure strikes a restart:

    >>> round(two_level_pattern_exposed_s(20.0, 120.0, 1.0, 30.0, 60.0, 300.0, 0.85, 3600.0, 0.0), 1)
    2693.0
    """
    far_share = maximum(1.0 - level_one_share, LEAST_SHARE)
    struck = -expm1(-level_one_restart_s / cluster_mtbf_s)
    returns = maximum(far_share + level_one_share * (1.0 - struck), LEAST_SHARE)
    far_recovery = (cluster_mtbf_s + downtime_s) * exp(level_two_restart_s / cluster_mtbf_s) - cluster_mtbf_s
    near_recovery = (downtime_s + struck * (cluster_mtbf_s + far_share * far_recovery)) / returns
    attempt = cluster_mtbf_s + level_one_share * near_recovery + far_share * far_recovery
    far = far_share / returns
    near = (checkpoint_interval_s + level_one_write_s) / cluster_mtbf_s
    inner = (segments_per_pattern - 1.0) * log1p(far * expm1(near))
    last = log1p(far * expm1(near + level_two_write_s / cluster_mtbf_s))
    return attempt * expm1(inner + last) / far


def two_level_goodput(
    segments_per_pattern: Numeric, checkpoint_interval_s: Numeric, two_level_pattern_s: Numeric
) -> Numeric:
    r"""Share of the time that ends up as progress with near and far checkpoints.

    .. math:: G_2 = \frac{n_1 \tau}{E_0}

    Notes
    -----
    Exact under the assumptions of ``two_level_pattern_s``.

    Examples
    --------
    >>> round(two_level_goodput(20.0, 120.0, 2688.957), 4)
    0.8925
    """
    return segments_per_pattern * checkpoint_interval_s / two_level_pattern_s
