"""Slowdown by other jobs on shared links."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.validity import holds_while


@holds_while("neighbour_link_share < 1", lambda neighbour_link_share: neighbour_link_share < 1.0)
def neighbour_slowdown(exchange_share: Numeric, neighbour_link_share: Numeric) -> Numeric:
    r"""Share by which a step gets longer where neighbours use the same links.

    .. math:: s_q = x\, \frac{q_l}{1 - q_l}

    Notes
    -----
    Of each step a share :math:`x` is exchange that no compute hides; neighbours take :math:`q_l` of its links
    meanwhile. A neighbour as large as the job takes half while both exchange.

    References
    ----------
    .. [cao2024] section 2.2: GPT and BERT on shared links

    Examples
    --------
    An eighth of a step, half of the links:

    >>> neighbour_slowdown(0.125, 0.5)
    0.125
    """
    return exchange_share * neighbour_link_share / (1.0 - neighbour_link_share)


def tenancy_goodput(contended_share: Numeric, neighbour_slowdown: Numeric) -> Numeric:
    r"""Share of a cluster's work that is left where some of its accelerators have neighbours on their links.

    .. math:: G_q = 1 - c_q\, \frac{s_q}{1 + s_q}

    References
    ----------
    .. [cao2024] section 2.2: 36.3 % of the jobs and 51 % of the GPUs share links with others

    Examples
    --------
    Half of the accelerators, steps that take 11 % longer:

    >>> round(tenancy_goodput(0.51, 0.11), 3)
    0.949
    """
    return 1.0 - contended_share * neighbour_slowdown / (1.0 + neighbour_slowdown)
