"""Failure rates of parts and jobs, and the availability of servers."""

from __future__ import annotations

from typing import Final

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_YEAR
from factorykit.core.types import Numeric
from factorykit.formulas.functions import ceil, exp, sqrt, where
from factorykit.formulas.validity import holds_while

SMALL_JOB_RATE: Final = 3.65
"""Rate measured for jobs of 1,024 GPUs over the rate fitted to large jobs; arXiv:2410.21680, section III."""
SUPERLINEAR_RATE: Final = 2.83
"""Rate measured at 98,304 GPUs over the linear model; arXiv:2602.00277: 18 minutes against 51."""
NORMAL_99: Final = 2.3263478740408408
"""Quantile of the normal distribution: 99 % lie below this many standard deviations."""
RARELY: Final = 0.010050335853501442
"""Mean of a Poisson number that is zero 99 % of the time: -ln 0.99."""


def cluster_mtbf_s(accelerator_mtbf_s: Numeric, accelerators: Numeric) -> Numeric:
    r"""Mean time between failures of a job that any one of its parts can stop.

    .. math:: M = m / n

    Notes
    -----
    Failures are independent and arrive at a constant rate. Published rates of small jobs are higher than this model's
    (3.65 times at 1,024 GPUs [kokolis2025]_), as are those near 100,000 GPUs.

    References
    ----------
    .. [kokolis2025] section III

    Examples
    --------
    Llama 3: 50,677 GPU-hours per interruption, 16,384 GPUs:

    >>> round(cluster_mtbf_s(50_677 * 3600.0, 16384.0) / 3600, 2)
    3.09
    """
    return accelerator_mtbf_s / accelerators


def failures_per_day(cluster_mtbf_s: Numeric) -> Numeric:
    r"""Failures of the job in a day.

    .. math:: f_d = 86400 / M

    Notes
    -----
    Counts failures of running time; days spent down have fewer.

    Examples
    --------
    419 failures in 54 days, as Llama 3 had them:

    >>> round(failures_per_day(54 * 86400 / 419), 2)
    7.76
    """
    return SECONDS_PER_DAY / cluster_mtbf_s


def cluster_mtbf_from_failures_s(failures_per_day: Numeric) -> Numeric:
    r"""Mean time between failures of a job, from its failures per day.

    .. math:: M = 86400 / f_d

    Examples
    --------
    The 419 unexpected interruptions of Llama 3.1 405B in 54 days, in hours:

    >>> round(cluster_mtbf_from_failures_s(419.0 / 54.0) / 3600, 1)
    3.1
    """
    return SECONDS_PER_DAY / failures_per_day


def expected_failures(wall_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Failures of the job in the run.

    .. math:: n_f = T / M

    Notes
    -----
    Exact for a constant rate without downtime; with downtime, in which nothing fails, a little high.

    Examples
    --------
    >>> round(expected_failures(54 * 86400.0, 11135.0))
    419
    """
    return wall_s / cluster_mtbf_s


def cluster_mtbf_counted_s(failures: Numeric, observed_s: Numeric) -> Numeric:
    r"""Mean time between failures of a job, from a count.

    .. math:: M_k = T_\mathrm{obs} / k_f

    Notes
    -----
    The most likely value for failures at a constant rate; a count of zero gives infinity.
    ``reliability.count_interval`` gives its confidence interval.

    Examples
    --------
    419 failures in 54 days, as Llama 3 had them:

    >>> round(cluster_mtbf_counted_s(419.0, 54 * 86400.0) / 3600, 3)
    3.093
    """
    return observed_s / failures


def accelerator_mtbf_counted_s(failures: Numeric, observed_s: Numeric, accelerators: Numeric) -> Numeric:
    r"""Mean time between failures that one chip and its share of the system cause, from a count.

    .. math:: m_k = n\, T_\mathrm{obs} / k_f

    Notes
    -----
    All failures of the job are attributed to the chips, those of hosts, network and software too.

    Examples
    --------
    419 failures in 54 days on 16,384 GPUs, as Llama 3 had them:

    >>> round(accelerator_mtbf_counted_s(419.0, 54 * 86400.0, 16384.0) / 3600)
    50677
    """
    return accelerators * observed_s / failures


def node_failures_per_node_day_counted(failures: Numeric, observed_s: Numeric, nodes: Numeric) -> Numeric:
    r"""Failures per server and day, from a count.

    .. math:: r_{f,k} = \frac{86400\, k_f}{n_s T_\mathrm{obs}}

    Notes
    -----
    A mean over the observed time; fleets that are brought up fail more often at first.

    Examples
    --------
    Llama 3, per 1,000 node-days:

    >>> round(1000 * node_failures_per_node_day_counted(419.0, 54 * 86400.0, 2048.0), 3)
    3.789
    """
    return failures * SECONDS_PER_DAY / (nodes * observed_s)


def node_failures_per_node_day_shrunk(
    failures: Numeric, node_days: Numeric, prior_failures: Numeric, prior_node_days: Numeric
) -> Numeric:
    r"""Failures per server and day, shrunk towards the rates of other fleets (empirical Bayes).

    .. math:: r_{f,s} = \frac{k_f + a_0}{T_n + b_0}

    Notes
    -----
    The posterior mean of a Poisson rate with a gamma prior: the rates of other fleets, with mean :math:`a_0 / b_0` and
    relative spread :math:`1 / \sqrt{a_0}`. Zero failures do not give a rate of zero; many make the prior negligible.

    References
    ----------
    .. [gelman2013] section 2.6

    Examples
    --------
    Per 1,000 node-days: none in 100 days of 4 servers, with a prior mean of 6.5 and a standard deviation of 6.5:

    >>> round(1000 * node_failures_per_node_day_shrunk(0.0, 400.0, 1.0, 1000 / 6.5), 2)
    1.81
    """
    return (failures + prior_failures) / (node_days + prior_node_days)


def node_failures_per_node_day_of_job(failures_per_day: Numeric, nodes: Numeric) -> Numeric:
    r"""Failures per server and day, from those of the job that runs on all of them.

    .. math:: r_{f,j} = \frac{f_d}{n_s}

    Examples
    --------
    Llama 3, per 1,000 node-days:

    >>> round(1000 * node_failures_per_node_day_of_job(419.0 / 54.0, 2048.0), 3)
    3.789
    """
    return failures_per_day / nodes


def cluster_mtbf_node_rate_s(nodes: Numeric, node_failures_per_node_day: Numeric) -> Numeric:
    r"""Mean time between failures of a job, from the failure rate of a server.

    .. math:: M_r = \frac{86400}{n_s r_f}

    Notes
    -----
    Failures are independent and arrive at a constant rate.

    References
    ----------
    .. [kokolis2025] section III: 1.8 h at 16,384 and 0.23 h at 131,072 GPUs

    Examples
    --------
    >>> round(cluster_mtbf_node_rate_s(2048.0, 0.0065) / 3600, 2)
    1.8
    """
    return SECONDS_PER_DAY / (nodes * node_failures_per_node_day)


def cluster_mtbf_small_job_s(accelerator_mtbf_s: Numeric, accelerators: Numeric) -> Numeric:
    r"""Mean time between failures of a small job, corrected for the rate measured at 1,024 GPUs.

    .. math:: M_\mathrm{small} = \frac{m}{3.65\, n}

    Notes
    -----
    The study measured 7.9 h at 1,024 GPUs where the rate fitted to its large jobs gives 28.8 h. One number from one
    fleet, not a general rule.

    References
    ----------
    .. [kokolis2025] section III: 7.9 h at 1,024 GPUs against 6.50 per 1,000 node-days

    Examples
    --------
    A fleet with 6.5 failures per 1,000 node-days of eight GPUs:

    >>> round(cluster_mtbf_small_job_s(8 * 86400 / 0.0065, 1024.0) / 3600, 1)
    7.9
    """
    return accelerator_mtbf_s / (SMALL_JOB_RATE * accelerators)


def cluster_mtbf_superlinear_s(accelerator_mtbf_s: Numeric, accelerators: Numeric) -> Numeric:
    r"""Mean time between failures of a very large job, corrected for the rate measured at 98,000 GPUs.

    .. math:: M_\mathrm{super} = \frac{m}{2.83\, n}

    Notes
    -----
    18 minutes were measured where 2.3 failures per 1,000 servers and day give 51. One number from one
    fleet, not a general rule.

    References
    ----------
    .. [salpekar2026] 18 minutes at 98,304 GPUs, 2.3 per 1,000 servers and day at 32,768

    Examples
    --------
    >>> round(cluster_mtbf_superlinear_s(8 * 86400 / 0.0023, 98304.0) / 60)
    18
    """
    return accelerator_mtbf_s / (SUPERLINEAR_RATE * accelerators)


def cluster_mtbf_network_s(
    accelerators: Numeric,
    accelerator_mtbf_s: Numeric,
    network_endpoints: Numeric,
    switch_links: Numeric,
    link_mtbf_s: Numeric,
    switches: Numeric,
    switch_mtbf_s: Numeric,
) -> Numeric:
    r"""Mean time between failures of a job that also stops when a link or a switch of its fabric fails.

    .. math:: M = \left( \frac{n}{m} + \frac{n_e + n_l}{m_l} + \frac{n_{sw}}{m_{sw}} \right)^{-1}

    Notes
    -----
    For a rate of the chips in which the network is not counted yet. Every link and switch is one whose loss stops the
    job: no second leaf behind an adapter, no detour before the collective times out. Alibaba counted 0.057 % of links
    to adapters and 0.051 % of leaf switches lost in a month: 4.5e9 and 5.1e9 seconds.

    References
    ----------
    .. [barlow1965] chapter 2
    .. [qian2024] section 2.3: rates of links and switches

    Examples
    --------
    A failure a day from each of three kinds of parts makes three a day:

    >>> cluster_mtbf_network_s(16.0, 16 * 86400.0, 16.0, 16.0, 32 * 86400.0, 3.0, 3 * 86400.0) / 3600
    8.0
    """
    links = (network_endpoints + switch_links) / link_mtbf_s
    return 1.0 / (accelerators / accelerator_mtbf_s + links + switches / switch_mtbf_s)


def accelerator_failures_per_year(accelerator_mtbf_s: Numeric) -> Numeric:
    r"""Failures expected of one chip in a year; one of two meanings of annual failure rate.

    .. math:: \mathrm{AFR}_n = \frac{8766 \cdot 3600}{m}

    Notes
    -----
    Above 1 where a chip fails more than once a year.

    Examples
    --------
    >>> round(accelerator_failures_per_year(50_677 * 3600.0), 3)
    0.173
    """
    return SECONDS_PER_YEAR / accelerator_mtbf_s


def survival_probability(span_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Chance that the job runs for a time without any failure.

    .. math:: S_t = \mathrm{e}^{-t / M}

    Notes
    -----
    For a constant rate; the past does not count.

    References
    ----------
    .. [barlow1965] chapter 2

    Examples
    --------
    An hour at the rate of Llama 3:

    >>> round(survival_probability(3600.0, 54 * 86400 / 419), 3)
    0.724
    """
    return exp(-span_s / cluster_mtbf_s)


def node_mtbf_s(node_failures_per_node_day: Numeric) -> Numeric:
    r"""Mean time between failures of one server.

    .. math:: m_n = 86400 / r_f

    Notes
    -----
    For a constant rate.

    Examples
    --------
    >>> round(node_mtbf_s(0.0065) / 86400, 1)
    153.8
    """
    return SECONDS_PER_DAY / node_failures_per_node_day


def node_failures_per_node_day_from_mtbf(node_mtbf_s: Numeric) -> Numeric:
    r"""Failures per server and day, from the mean time between failures of a server.

    .. math:: r_f = 86400 / m_n

    Examples
    --------
    >>> node_failures_per_node_day_from_mtbf(864000.0)
    0.1
    """
    return SECONDS_PER_DAY / node_mtbf_s


def availability(node_mtbf_s: Numeric, node_repair_s: Numeric) -> Numeric:
    r"""Share of time a server is up.

    .. math:: A = \frac{m_n}{m_n + r_n}

    Notes
    -----
    In the long run, for any distributions of lifetimes and repairs with these means.

    References
    ----------
    .. [barlow1965] chapter 3: alternating renewal

    Examples
    --------
    >>> round(availability(6334.67 * 3600, 86400.0), 5)
    0.99623
    """
    return node_mtbf_s / (node_mtbf_s + node_repair_s)


def unavailability(node_mtbf_s: Numeric, node_repair_s: Numeric) -> Numeric:
    r"""Share of time a server is down.

    .. math:: u = \frac{r_n}{m_n + r_n}

    Notes
    -----
    In the long run, for any distributions of lifetimes and repairs with these means.

    References
    ----------
    .. [barlow1965] chapter 3: alternating renewal

    Examples
    --------
    >>> round(unavailability(6334.67 * 3600, 86400.0), 5)
    0.00377
    """
    return node_repair_s / (node_mtbf_s + node_repair_s)


def nodes_in_repair(nodes: Numeric, node_mtbf_s: Numeric, node_repair_s: Numeric) -> Numeric:
    r"""Servers in repair at a given moment, on average, where spares keep every place filled.

    .. math:: m_r = n_s r_n / m_n

    Notes
    -----
    The mean of a Poisson distribution for any distribution of repair times. ``reliability.spares_poisson`` takes its
    quantile.

    References
    ----------
    .. [palm1938] the mean holds for every distribution of repair times

    Examples
    --------
    Llama 3's rate with repairs of one day:

    >>> round(nodes_in_repair(2048.0, 2048 * 54 * 86400 / 419, 86400.0), 2)
    7.76
    """
    return nodes * node_repair_s / node_mtbf_s


def spare_nodes_enough(node_repair_s: Numeric, cluster_mtbf_s: Numeric) -> Numeric:
    r"""Least number of spare nodes with which no place stays empty 99 % of the time.

    .. math:: n_\mathrm{sp,e} = \left\lceil m + z \sqrt{m} + \tfrac{z^2 - 1}{6} - \tfrac12 \right\rceil,
       \qquad m = \frac{t_r}{M}, \quad z = 2.326

    Notes
    -----
    The number in repair is Poisson; its quantile to second order, within one of the exact number, and none where a
    place stays empty less than 1 % of the time anyhow. Every failure takes a node away.

    References
    ----------
    .. [cornish1938] the second term of the expansion

    Examples
    --------
    Llama 3 405B, 7.8 failures a day and a day of repair:

    >>> spare_nodes_enough(86400.0, 54 * 86400 / 419)
    15.0
    """
    mean = node_repair_s / cluster_mtbf_s
    quantile = mean + NORMAL_99 * sqrt(mean) + (NORMAL_99 * NORMAL_99 - 1.0) / 6.0
    return where(mean < RARELY, 0.0, ceil(quantile - 0.5))


def node_repair_lognormal_s(node_repair_median_s: Numeric, node_repair_sigma: Numeric) -> Numeric:
    r"""Mean repair time where repair times are lognormal.

    .. math:: r_\mathrm{ln} = r_{50}\, \mathrm{e}^{\sigma_r^2 / 2}

    Notes
    -----
    Repair times have heavy tails: a mean of six times the median is common.

    References
    ----------
    .. [schroeder2006] section 6: lognormal fits repair times best

    Examples
    --------
    LANL's records have a median of 59 and a mean of 352 minutes:

    >>> round(node_repair_lognormal_s(59 * 60.0, 1.89) / 60)
    352
    """
    return node_repair_median_s * exp(0.5 * node_repair_sigma * node_repair_sigma)


@holds_while(
    "losses <= 1/4",
    lambda nodes, node_failures_per_node_day, restart_s, checkpoint_interval_s: (
        4.0 * nodes * node_failures_per_node_day * (restart_s + 0.5 * checkpoint_interval_s) <= SECONDS_PER_DAY
    ),
)
def ettr(
    nodes: Numeric,
    node_failures_per_node_day: Numeric,
    restart_s: Numeric,
    checkpoint_interval_s: Numeric,
    checkpoint_write_s: Numeric,
) -> Numeric:
    r"""Effective training time ratio by the first-order rule of Meta's study.

    .. math:: \mathrm{ETTR} = \frac{1 - n_s r_f (R + \tau / 2)}{1 + C_w / \tau}

    Notes
    -----
    Linear in the losses: good while they stay below a quarter, negative where failures come faster than restarts.
    ``checkpoint_goodput`` is exact for the same assumptions.

    References
    ----------
    .. [kokolis2025] section II-D

    Examples
    --------
    16,384 GPUs at 6.5 failures per 1,000 node-days, restart and interval of 5 minutes, no time for the write:

    >>> round(ettr(2048.0, 0.0065, 300.0, 300.0, 0.0), 3)
    0.931
    """
    loss = nodes * node_failures_per_node_day * (restart_s + 0.5 * checkpoint_interval_s) / SECONDS_PER_DAY
    return (1.0 - loss) / (1.0 + checkpoint_write_s / checkpoint_interval_s)
