"""Wall-clock time of a run with failures: mean, standard deviation, number of failures and lost work."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.checkpoint import checkpoint_goodput, restarts_end
from factorykit.formulas.functions import exp, expm1, sqrt, where


def _struck_variance(length: Numeric, recovery: Numeric, recovery_variance: Numeric) -> Numeric:
    """Return the variance of the time to get through ``length`` when every failure adds a recovery; all in units of M.

    The failed attempts are geometric in number; each lasts an exponential time cut off at ``length``, whose first two
    moments are 1 - u/(e^u - 1) and 2 - (u^2 + 2u)/(e^u - 1). Their series in u take over where these would cancel.
    """
    u = length
    growth = expm1(u)
    small = u < 0.03
    denominator = where(small, 1.0, growth)
    mean = where(small, u * (0.5 - u / 12.0 * (1.0 - u * u / 60.0)), 1.0 - u / denominator)
    series = u * u * (1.0 / 3.0 - u * (1.0 / 12.0 - u * (1.0 / 360.0 + u * (1.0 / 720.0 - u / 15120.0))))
    square = where(small, series, 2.0 - (u * u + 2.0 * u) / denominator)
    attempt = mean + recovery
    return growth * (square - mean * mean + recovery_variance) + growth * exp(u) * attempt * attempt


def checkpoint_segments(training_s: Numeric, checkpoint_interval_s: Numeric) -> Numeric:
    r"""Pieces of work that each end with a checkpoint.

    .. math:: n_c = T_0 / \tau

    Notes
    -----
    A run of whole segments in the exact sense has an integer here.

    Examples
    --------
    >>> checkpoint_segments(4_182_200.0, 1100.0)
    3802.0
    """
    return training_s / checkpoint_interval_s


@restarts_end
def checkpoint_wall_s(
    checkpoint_segments: Numeric,
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    cluster_mtbf_s: Numeric,
    restart_s: Numeric,
    downtime_s: Numeric,
) -> Numeric:
    r"""Wall-clock time of the run, on average, where a failure can strike a restart.

    .. math:: T_c = n_c (M + D_0)\, \mathrm{e}^{R/M} \left(\mathrm{e}^{(\tau + C_w)/M} - 1\right)

    Notes
    -----
    Exact for failures at a constant rate. Every segment ends with a checkpoint, the last one too; the first start needs
    no restart. A last segment that is shorter than the others counts as a fraction. Infinite where doubles cannot hold
    it: restarts hundreds of times longer than :math:`M`.

    References
    ----------
    .. [daly2006] equation 20
    .. [bougeret2011] proposition 1: downtime

    Examples
    --------
    Llama 3's rate, 3,802 segments of 1,100 s, in days:

    >>> round(checkpoint_wall_s(3802.0, 1100.0, 60.0, 54 * 86400 / 419, 600.0, 0.0) / 86400, 4)
    56.7774
    """
    stretch = exp(restart_s / cluster_mtbf_s) * expm1((checkpoint_interval_s + checkpoint_write_s) / cluster_mtbf_s)
    return checkpoint_segments * (cluster_mtbf_s + downtime_s) * stretch


@restarts_end
def checkpoint_failures(
    checkpoint_segments: Numeric,
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    cluster_mtbf_s: Numeric,
    restart_s: Numeric,
) -> Numeric:
    r"""Failures of the run, on average, those during restarts included.

    .. math:: n_{fc} = n_c\, \mathrm{e}^{R/M} \left(\mathrm{e}^{(\tau + C_w)/M} - 1\right)

    Notes
    -----
    Exact for failures at a constant rate. Every segment ends with a checkpoint, the last one too; the first start needs
    no restart. A last segment that is shorter than the others counts as a fraction.

    References
    ----------
    .. [daly2006] equation 20

    Examples
    --------
    >>> round(checkpoint_failures(3802.0, 1100.0, 60.0, 54 * 86400 / 419, 600.0), 1)
    440.6
    """
    stretch = exp(restart_s / cluster_mtbf_s) * expm1((checkpoint_interval_s + checkpoint_write_s) / cluster_mtbf_s)
    return checkpoint_segments * stretch


def lost_work_run_s(
    checkpoint_segments: Numeric,
    lost_work_s: Numeric,
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    cluster_mtbf_s: Numeric,
) -> Numeric:
    r"""Time of the whole run that is lost since a last checkpoint and done again.

    .. math:: L_T = n_c \left(\mathrm{e}^{(\tau + C_w)/M} - 1\right) L_f

    Notes
    -----
    Exact for failures at a constant rate. Every segment ends with a checkpoint, the last one too; the first start needs
    no restart. A last segment that is shorter than the others counts as a fraction.

    References
    ----------
    .. [bougeret2011] the expectation of time lost

    Examples
    --------
    >>> round(lost_work_run_s(3802.0, 569.93, 1100.0, 60.0, 54 * 86400 / 419) / 86400, 2)
    2.75
    """
    struck = checkpoint_segments * expm1((checkpoint_interval_s + checkpoint_write_s) / cluster_mtbf_s)
    return struck * lost_work_s


@restarts_end
def checkpoint_wall_sd_s(
    checkpoint_segments: Numeric,
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    cluster_mtbf_s: Numeric,
    restart_s: Numeric,
    downtime_s: Numeric,
) -> Numeric:
    r"""Spread of the wall-clock time of the run where a failure can strike a restart.

    .. math::
        \sigma_T = \sqrt{n_c V(x, m_r, v_r)}, \qquad x = \tau + C_w \\
        V(x, m, v) = \left(\mathrm{e}^{x/M} - 1\right) (\mathrm{Var}\,Y_x + v)
        \qquad + \left(\mathrm{e}^{x/M} - 1\right) \mathrm{e}^{x/M} (\mathrm{E}\,Y_x + m)^2 \\
        m_r = (M + D_0)\, \mathrm{e}^{R/M} - M, \qquad v_r = V(R, D_0, 0)

    Notes
    -----
    :math:`Y_x` is an exponential time cut off at :math:`x`; :math:`m_r` and :math:`v_r` are mean and variance of a
    recovery. Exact for failures at a constant rate. Every segment ends with a checkpoint, the last one too; the first
    start needs no restart. A last segment that is shorter than the others counts as a fraction.

    References
    ----------
    .. [bougeret2011] proposition 1, whose argument gives the second moment

    Examples
    --------
    Seven hours on 57 days:

    >>> round(checkpoint_wall_sd_s(3802.0, 1100.0, 60.0, 54 * 86400 / 419, 600.0, 0.0) / 86400, 4)
    0.3066
    """
    segment = (checkpoint_interval_s + checkpoint_write_s) / cluster_mtbf_s
    restart = restart_s / cluster_mtbf_s
    downtime = downtime_s / cluster_mtbf_s
    recovery = expm1(restart) * (1.0 + downtime) + downtime
    variance = _struck_variance(segment, recovery, _struck_variance(restart, downtime, 0.0))
    return cluster_mtbf_s * sqrt(checkpoint_segments * variance)


def checkpoint_goodput_protected(
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    cluster_mtbf_s: Numeric,
    restart_s: Numeric,
    downtime_s: Numeric,
) -> Numeric:
    r"""Share of the time that ends up as progress where no failure strikes a restart.

    .. math:: G_{cp} = \frac{\tau}{(M + D_0 + R) \left(\mathrm{e}^{(\tau + C_w)/M} - 1\right)}

    Notes
    -----
    Exact for failures at a constant rate. Above ``checkpoint_goodput``, which counts failures during restarts.

    References
    ----------
    .. [bougeret2011] proposition 1 with the restart as downtime

    Examples
    --------
    >>> round(checkpoint_goodput_protected(3600.0, 300.0, 6490.384615, 300.0, 0.0), 4)
    0.6436
    """
    return checkpoint_goodput(
        checkpoint_interval_s, checkpoint_write_s, cluster_mtbf_s, 0.0 * restart_s, downtime_s + restart_s
    )
