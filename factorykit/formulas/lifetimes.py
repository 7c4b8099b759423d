"""Lifetimes of parts: early failures during bring-up, and wear-out."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp, log
from factorykit.formulas.validity import holds_while


def first_failure_s(lifetime_mean_s: Numeric, accelerators: Numeric, lifetime_shape: Numeric) -> Numeric:
    r"""Time from bring-up to the first failure among new parts, on average.

    .. math:: t_1 = m_w\, n^{-1/k_w}

    Notes
    -----
    Weibull lifetimes, all parts new at once. For a shape of 1 this is the MTBF of the job; below 1 far shorter.

    References
    ----------
    .. [weibull1951]
    .. [aupy2014] platforms whose parts age

    Examples
    --------
    50,000 hours and 16,384 GPUs, minutes for a shape of 0.7 against 3.05 hours for 1:

    >>> round(first_failure_s(50_000 * 3600.0, 16384.0, 0.7) / 60, 1), round(first_failure_s(50_000.0, 16384.0, 1.0), 2)
    (2.9, 3.05)
    """
    return lifetime_mean_s * exp(-log(accelerators) / lifetime_shape)


@holds_while("span_s <= lifetime_scale_s / 4", lambda span_s, lifetime_scale_s: span_s <= 0.25 * lifetime_scale_s)
def bring_up_failures(
    span_s: Numeric, accelerators: Numeric, lifetime_scale_s: Numeric, lifetime_shape: Numeric
) -> Numeric:
    r"""Failures expected since all parts were new.

    .. math:: n_b = n \left( t / \eta \right)^{k_w}

    Notes
    -----
    A failed part is repaired to the state it was in (minimal repair), or its replacement is as old as the rest. Good
    while few parts have failed, :math:`t \ll \eta`; later the rate tends to one per mean lifetime and part.

    References
    ----------
    .. [barlow1965] chapter 4

    Examples
    --------
    The first day of 16,384 GPUs, a shape of 0.7 and a scale of 39,500 hours:

    >>> round(bring_up_failures(24.0, 16384.0, 39_500.0, 0.7), 1)
    91.8
    """
    return accelerators * exp(lifetime_shape * log(span_s / lifetime_scale_s))


def bring_up_survival(bring_up_failures: Numeric) -> Numeric:
    r"""Chance that nothing fails from bring-up on.

    .. math:: S_b = \mathrm{e}^{-n_b}

    Notes
    -----
    Exact for the first failure among new Weibull parts.

    References
    ----------
    .. [weibull1951]

    Examples
    --------
    >>> round(bring_up_survival(bring_up_failures(1.0, 16384.0, 50_000.0, 1.0)), 4)
    0.7206
    """
    return exp(-bring_up_failures)


def bring_up_mtbf_s(span_s: Numeric, bring_up_failures: Numeric, lifetime_shape: Numeric) -> Numeric:
    r"""Time between failures at an age of the cluster.

    .. math:: M_b = \frac{t}{k_w n_b}

    Notes
    -----
    The rate is that of ``bring_up_failures``, whose assumptions hold here too.

    References
    ----------
    .. [barlow1965] chapter 4

    Examples
    --------
    A constant rate has no age:

    >>> round(bring_up_mtbf_s(3600.0, bring_up_failures(3600.0, 16384.0, 1.8e8, 1.0), 1.0) / 3600, 2)
    3.05
    """
    return span_s / (lifetime_shape * bring_up_failures)
