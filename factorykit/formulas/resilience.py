"""Elastic jobs, redundant servers and silent data corruption."""

from __future__ import annotations

from math import pi

from factorykit.core.types import Numeric
from factorykit.formulas.checkpoint import lost_work_s
from factorykit.formulas.functions import ceil, expm1, maximum, sqrt
from factorykit.formulas.validity import holds_while


@holds_while(
    "losses <= 1/4",
    lambda reconfigure_s, replicas, cluster_mtbf_s, correlated_share, checkpoint_interval_s, cold_restart_s: (
        4.0 * (reconfigure_s / replicas + correlated_share * (0.5 * checkpoint_interval_s + cold_restart_s))
        <= cluster_mtbf_s
    ),
)
def elastic_goodput(
    reconfigure_s: Numeric,
    replicas: Numeric,
    cluster_mtbf_s: Numeric,
    correlated_share: Numeric,
    checkpoint_interval_s: Numeric,
    cold_restart_s: Numeric,
    replica_stall_s: Numeric,
) -> Numeric:
    r"""Share of the time that ends up as progress where the other replicas go on without the one that failed.

    .. math:: G_e = \frac{1 - \frac{\max(R_c - T_r, 0)}{n_R M} - \frac{f_c (\tau/2 + R_0)}{M}}{1 + (1 - f_c) T_r / M}

    Notes
    -----
    All replicas stand still for :math:`T_r` after a failure, and the one that failed for :math:`R_c`, both from the
    failure on. First order but for the stalls: good while the other losses stay below a quarter. A checkpoint is
    needed only where all replicas go down together.

    References
    ----------
    .. [salpekar2026] elastic recovery of one replica
    .. [gemini2025] section 2.3: slices that leave and return

    Examples
    --------
    Sixteen replicas, without and with stalls of three minutes:

    >>> [round(elastic_goodput(600.0, 16.0, 1080.0, 0.02, 1100.0, 900.0, stall), 3) for stall in (0.0, 180.0)]
    [0.938, 0.816]
    """
    alone = maximum(reconfigure_s - replica_stall_s, 0.0) / (replicas * cluster_mtbf_s)
    together = correlated_share * (0.5 * checkpoint_interval_s + cold_restart_s) / cluster_mtbf_s
    return (1.0 - alone - together) / (1.0 + (1.0 - correlated_share) * replica_stall_s / cluster_mtbf_s)


def redundant_mtbf_s(node_mtbf_s: Numeric, nodes: Numeric) -> Numeric:
    r"""Mean time between failures of a job whose every server works twice.

    .. math:: M_2 = \frac{m_n}{n_s} \left( 1 + \frac{4^b}{\binom{2b}{b}} \right), \qquad b = n_s / 2

    Notes
    -----
    From a start with all servers up, none repaired in between. The binomial is Stirling's series in :math:`1/b`, good
    to 1e-3 for one pair and 1e-8 from eight pairs on.

    References
    ----------
    .. [benoit2019] theorem 4.1

    Examples
    --------
    One pair outlives one server by half, 1,024 pairs fail after 58 failures:

    >>> round(redundant_mtbf_s(1.0, 2.0), 3), round(2048 * redundant_mtbf_s(1.0, 2048.0), 1)
    (1.499, 57.7)
    """
    z = 2.0 / nodes
    binomial = 1.0 - z / 8.0 * (1.0 - z / 16.0 * (1.0 + z * 5.0 / 8.0 * (1.0 - z * 21.0 / 160.0)))
    return node_mtbf_s / nodes * (1.0 + sqrt(pi / z) / binomial)


def redundant_goodput(checkpoint_goodput: Numeric) -> Numeric:
    r"""Share of the time that ends up as progress where every server works twice.

    .. math:: G_d = G_c / 2

    Notes
    -----
    Half of the servers repeat the work of the others. Give ``redundant_mtbf_s`` as ``cluster_mtbf_s`` for the goodput
    under failures.

    References
    ----------
    .. [benoit2019] section 3

    Examples
    --------
    >>> redundant_goodput(0.98)
    0.49
    """
    return 0.5 * checkpoint_goodput


def sdc_rework_s(
    checkpoint_interval_s: Numeric, checkpoint_write_s: Numeric, sdc_mtbf_s: Numeric, sdc_detection_s: Numeric
) -> Numeric:
    r"""Time that one silent corruption makes worthless.

    .. math:: L_\mathrm{sdc} = L_f(\tau, C_w, M_\mathrm{sdc}) + t_\mathrm{sdc}

    Notes
    -----
    A checkpoint from before the corruption has to be there still: see ``sdc_checkpoints_needed``.

    References
    ----------
    .. [daly2006] section 3

    Examples
    --------
    Half of a half hour and an hour:

    >>> round(sdc_rework_s(1740.0, 60.0, 777_600.0, 3600.0) / 60)
    75
    """
    return lost_work_s(checkpoint_interval_s, checkpoint_write_s, sdc_mtbf_s) + sdc_detection_s


def sdc_goodput(
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
    sdc_mtbf_s: Numeric,
    sdc_detection_s: Numeric,
    restart_s: Numeric,
) -> Numeric:
    r"""Share of the time that is kept under silent corruption.

    .. math::
        G_\mathrm{sdc} = \frac{x / (\mathrm{e}^{x / M_\mathrm{sdc}} - 1)}{M_\mathrm{sdc} + t_\mathrm{sdc} + R},
        \qquad x = \tau + C_w

    Notes
    -----
    Exact for corruptions at a constant rate and a detection lag with this mean: a cycle is the time to a corruption,
    the lag and the restart; the work up to the last clean checkpoint is kept.

    Examples
    --------
    >>> round(sdc_goodput(1740.0, 60.0, 777_600.0, 3600.0, 600.0), 4)
    0.9935
    """
    period = checkpoint_interval_s + checkpoint_write_s
    return period / expm1(period / sdc_mtbf_s) / (sdc_mtbf_s + sdc_detection_s + restart_s)


def sdc_checkpoints_needed(
    sdc_detection_s: Numeric, checkpoint_interval_s: Numeric, checkpoint_write_s: Numeric
) -> Numeric:
    r"""Checkpoints to keep so that one from before a corruption is left.

    .. math:: n_\mathrm{sdc} = \left\lceil \frac{t_\mathrm{sdc}}{\tau + C_w} \right\rceil + 1

    Notes
    -----
    For a lag that is always the same; a lag with a tail needs its quantile here.

    Examples
    --------
    >>> sdc_checkpoints_needed(3600.0, 1740.0, 60.0)
    3.0
    """
    return ceil(sdc_detection_s / (checkpoint_interval_s + checkpoint_write_s)) + 1.0
