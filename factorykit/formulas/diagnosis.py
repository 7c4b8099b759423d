"""Tests, alarms and admission checks: detection rates and delays, costs, and prevented losses."""

from __future__ import annotations

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp, log, sqrt
from factorykit.formulas.validity import holds_while

BOLTZMANN_EV_PER_K = 8.617333262e-5
"""Boltzmann constant: CODATA 2018."""
KELVIN = 273.15
"""Zero degrees Celsius in kelvin."""


def sdc_test_lag_s(sdc_test_interval_s: Numeric, sdc_test_catch_share: Numeric) -> Numeric:
    r"""Time from a silent corruption to the test that finds it.

    .. math:: t_\mathrm{sdc} = I \left(\frac{1}{c} - \frac12\right)

    Notes
    -----
    A test every :math:`I` that catches a bad chip with probability :math:`c`, each time anew. Stands for
    ``sdc_detection_s`` where a scenario names it.

    References
    ----------
    .. [dixit2021] section 5: tests out of production and beside it
    .. [wan2025robust] section 9: a maker's diagnosis finds about 70 %

    Examples
    --------
    Daily tests that catch half of the bad chips, in hours:

    >>> sdc_test_lag_s(86400.0, 0.5) / 3600
    36.0
    """
    return sdc_test_interval_s * (1.0 / sdc_test_catch_share - 0.5)


def sdc_test_goodput(sdc_goodput: Numeric, sdc_test_interval_s: Numeric, sdc_test_s: Numeric) -> Numeric:
    r"""Share of the time that is kept under silent corruption, tests included.

    .. math:: G_\mathrm{sdc} \frac{I}{I + t_t}

    Notes
    -----
    The job stands still while all its chips are tested.

    Examples
    --------
    >>> round(sdc_test_goodput(0.99, 86400.0, 600.0), 4)
    0.9832
    """
    return sdc_goodput * sdc_test_interval_s / (sdc_test_interval_s + sdc_test_s)


def sdc_test_interval_best_s(sdc_test_s: Numeric, sdc_mtbf_s: Numeric, sdc_test_catch_share: Numeric) -> Numeric:
    r"""Interval of tests that loses least, to first order.

    .. math:: I^* = \sqrt{\frac{t_t\, M_\mathrm{sdc}}{1/c - 1/2}}

    Notes
    -----
    Tests cost :math:`t_t / I`, corruption found late :math:`I (1/c - 1/2) / M`. Good while both are small.

    References
    ----------
    .. [young1974] the same balance for checkpoints

    Examples
    --------
    Ten minutes, a corruption in nine days, in hours:

    >>> round(sdc_test_interval_best_s(600.0, 777_600.0, 0.5) / 3600, 1)
    4.9
    """
    return sqrt(sdc_test_s * sdc_mtbf_s / (1.0 / sdc_test_catch_share - 0.5))


def sdc_replay_lag_s(step_s: Numeric, replay_share: Numeric) -> Numeric:
    r"""Time from a silent corruption to the repeated step that shows it.

    .. math:: t_\mathrm{sdc} = T / r

    Notes
    -----
    A chip keeps computing wrongly, and a share :math:`r` of steps is repeated on other chips. An alternative model of
    ``sdc_detection_s``.

    References
    ----------
    .. [gemini2023] section 4: deterministic replay

    Examples
    --------
    One step of a hundred, ten seconds each:

    >>> sdc_replay_lag_s(10.0, 0.01)
    1000.0
    """
    return step_s / replay_share


def sdc_replay_goodput(sdc_goodput: Numeric, replay_share: Numeric) -> Numeric:
    r"""Share of the time that is kept under silent corruption, repeated steps included.

    .. math:: \frac{G_\mathrm{sdc}}{1 + r}

    Examples
    --------
    >>> round(sdc_replay_goodput(0.99, 0.01), 4)
    0.9802
    """
    return sdc_goodput / (1.0 + replay_share)


def abft_goodput(
    sdc_rework_s: Numeric, restart_s: Numeric, sdc_mtbf_s: Numeric, abft_share: Numeric, abft_catch_share: Numeric
) -> Numeric:
    r"""Share of the time that is kept where checksums of matrix products mend most corruption.

    .. math:: \frac{1}{1 + a} \cdot \frac{M_\mathrm{sdc}}{M_\mathrm{sdc} + (1 - c)(L_\mathrm{sdc} + R)}

    Notes
    -----
    Errors caught by checksums are corrected at once; the others are found as late as without them.

    References
    ----------
    .. [huang1984] checksums that survive a product of matrices

    Examples
    --------
    2 % of more work, nine of ten caught:

    >>> round(abft_goodput(90000.0, 600.0, 777_600.0, 0.02, 0.9), 4)
    0.9691
    """
    lost = (1.0 - abft_catch_share) * (sdc_rework_s + restart_s)
    return sdc_mtbf_s / (sdc_mtbf_s + lost) / (1.0 + abft_share)


@holds_while(
    "straggler_detection_s + swap_s < straggler_mtbf_s",
    lambda straggler_detection_s, swap_s, straggler_mtbf_s: straggler_detection_s + swap_s < straggler_mtbf_s,
)
def straggler_loss_share(
    straggler_mtbf_s: Numeric, straggler_slowdown: Numeric, straggler_detection_s: Numeric, swap_s: Numeric
) -> Numeric:
    r"""Share of the time that slow parts cost until they are found and replaced.

    .. math:: \frac{D\, s / (1 + s) + T_x}{M_s}

    Notes
    -----
    To first order. One part that takes :math:`1 + s` times as long holds up the whole job; it is replaced in
    :math:`T_x`, at no price where spares stand by.

    References
    ----------
    .. [dong2025] detection by the timing of collectives

    Examples
    --------
    Twice a day a part takes a third longer: found within an hour, or by hand after eight:

    >>> [round(straggler_loss_share(43200.0, 0.34, lag, 300.0), 3) for lag in (3600.0, 8 * 3600.0)]
    [0.028, 0.176]
    """
    slowed = straggler_detection_s * straggler_slowdown / (1.0 + straggler_slowdown)
    return (slowed + swap_s) / straggler_mtbf_s


def fenced_mtbf_s(cluster_mtbf_s: Numeric, lemon_failure_share: Numeric, lemon_catch_share: Numeric) -> Numeric:
    r"""Time between failures once servers that fail again and again are kept out.

    .. math:: \frac{M}{1 - f_l c_l}

    References
    ----------
    .. [kokolis2025] lemon nodes: 1.2 % of the nodes, 13 % of the failed jobs of a day

    Examples
    --------
    >>> round(fenced_mtbf_s(3600.0, 0.13, 0.9))
    4077
    """
    return cluster_mtbf_s / (1.0 - lemon_failure_share * lemon_catch_share)


def bad_nodes_left(nodes: Numeric, bad_node_share: Numeric, admission_catch_share: Numeric) -> Numeric:
    r"""Defective servers that come through the tests before admission.

    .. math:: n_s b (1 - c_a)

    References
    ----------
    .. [xiong2024] 10.36 % of the nodes of a cluster of A100 were defective

    Examples
    --------
    >>> round(bad_nodes_left(3072.0, 0.1036, 0.9), 1)
    31.8
    """
    return nodes * bad_node_share * (1.0 - admission_catch_share)


def admitted_mtbf_s(
    node_mtbf_s: Numeric,
    nodes: Numeric,
    bad_node_share: Numeric,
    admission_catch_share: Numeric,
    bad_node_factor: Numeric,
) -> Numeric:
    r"""Time between failures of a job on servers that were tested before.

    .. math:: \frac{m_n}{n_s \left[1 + b' (k_b - 1)\right]}, \qquad b' = \frac{b (1 - c_a)}{1 - b c_a}

    Notes
    -----
    Sound servers fail every :math:`m_n`, defective ones :math:`k_b` times as often; rejected servers are replaced by
    tested servers of the same stock. An alternative model of ``cluster_mtbf_s``.

    References
    ----------
    .. [xiong2024] tests before admission

    Examples
    --------
    >>> [round(admitted_mtbf_s(1e7, 1000.0, 0.1, catch, 50.0)) for catch in (0.0, 0.9)]
    [1695, 6500]
    """
    left = bad_node_share * (1.0 - admission_catch_share) / (1.0 - bad_node_share * admission_catch_share)
    return node_mtbf_s / (nodes * (1.0 + left * (bad_node_factor - 1.0)))


def admission_cost_usd(
    accelerators: Numeric, admission_test_s: Numeric, rental_usd_per_accelerator_h: Numeric
) -> Numeric:
    r"""Price of testing all accelerators once, at that of renting them.

    .. math:: n\, t_a\, p

    Examples
    --------
    >>> admission_cost_usd(16384.0, 3600.0, 2.0)
    32768.0
    """
    return accelerators * admission_test_s / SECONDS_PER_HOUR * rental_usd_per_accelerator_h


def burn_in_failures_saved(
    span_s: Numeric, burn_in_s: Numeric, accelerators: Numeric, lifetime_scale_s: Numeric, lifetime_shape: Numeric
) -> Numeric:
    r"""Failures of a run that a burn-in before it takes away.

    .. math:: n \left[\left(\tfrac{t}{\eta}\right)^{k_w} + \left(\tfrac{t_b}{\eta}\right)^{k_w}
        - \left(\tfrac{t + t_b}{\eta}\right)^{k_w}\right]

    Notes
    -----
    For parts that fail less as they age, :math:`k_w < 1`; negative for parts that wear out.

    References
    ----------
    .. [barlow1965] chapter 4

    Examples
    --------
    A month of 16,384 GPUs after a week of burn-in, a shape of 0.7 and a scale of 39,500 hours:

    >>> round(burn_in_failures_saved(720.0, 168.0, 16384.0, 39_500.0, 0.7))
    202
    """
    before = exp(lifetime_shape * log(span_s / lifetime_scale_s))
    during = exp(lifetime_shape * log(burn_in_s / lifetime_scale_s))
    after = exp(lifetime_shape * log((span_s + burn_in_s) / lifetime_scale_s))
    return accelerators * (before + during - after)


def burn_in_cost_usd(accelerators: Numeric, burn_in_s: Numeric, rental_usd_per_accelerator_h: Numeric) -> Numeric:
    r"""Price of the hours of a burn-in, at that of renting them.

    .. math:: n\, t_b\, p

    Examples
    --------
    >>> burn_in_cost_usd(16384.0, 3600.0, 2.0)
    32768.0
    """
    return accelerators * burn_in_s / SECONDS_PER_HOUR * rental_usd_per_accelerator_h


def temperature_failure_factor(
    temperature_c: Numeric, temperature_reference_c: Numeric, activation_energy_ev: Numeric
) -> Numeric:
    r"""Factor by which parts fail more often at a temperature than at another.

    .. math:: \exp\left[\frac{E_a}{k_B} \left(\frac{1}{T_0} - \frac{1}{T}\right)\right]

    Notes
    -----
    The Arrhenius equation, for mechanisms with an activation energy. Whole servers of seven data centres followed it
    weakly or not at all below 50 °C.

    References
    ----------
    .. [elsayed2012] sections 3 and 4

    Examples
    --------
    Ten degrees at 0.7 eV:

    >>> round(temperature_failure_factor(70.0, 60.0, 0.7), 2)
    2.04
    """
    inverse = 1.0 / (temperature_reference_c + KELVIN) - 1.0 / (temperature_c + KELVIN)
    return exp(activation_energy_ev / BOLTZMANN_EV_PER_K * inverse)


def alarm_loss_share(alarms_per_day: Numeric, alarm_check_s: Numeric) -> Numeric:
    r"""Share of the time that alarms of gradient norms and losses cost, false ones included.

    .. math:: n_a\, t_c / 86400

    Notes
    -----
    The job stands still for each check: a batch looked at, a step repeated or skipped.

    Examples
    --------
    >>> alarm_loss_share(4.0, 216.0)
    0.01
    """
    return alarms_per_day * alarm_check_s / SECONDS_PER_DAY


def diurnal_loss_share(diurnal_swing_share: Numeric) -> Numeric:
    r"""Share of the time that a daily swing of throughput costs.

    .. math:: s_d / 2

    Notes
    -----
    Throughput that falls by :math:`s_d` at noon and is whole at night, as a sine: clocks follow temperature.

    References
    ----------
    .. [llama3] section 3.3.4: 1 to 2 % by the time of day

    Examples
    --------
    >>> diurnal_loss_share(0.02)
    0.01
    """
    return 0.5 * diurnal_swing_share
