"""How far a predicted step may be from the measured one."""

from __future__ import annotations

from factorykit.formulas.functions import exp, log, maximum, sqrt
from factorykit.formulas.network import LN2
from factorykit.typing import Numeric

NORMAL_95 = 1.6448536269514722
"""Quantile of the normal distribution: 90 % lie between minus and plus this many standard deviations."""


def step_spread(
    spread_model: Numeric,
    spread_new_chip: Numeric,
    spread_assumed: Numeric,
    spread_scale: Numeric,
    scale_seen: Numeric,
    evidence_families: Numeric,
    assumed_inputs: Numeric,
    accelerators: Numeric,
) -> Numeric:
    r"""Spread of the step time, as standard deviation of its logarithm.

    .. math::
        \sqrt{\sigma_0^2 + \frac{\sigma_c^2}{1 + n_f} + a \sigma_a^2 + \left(\sigma_s \max(\log_2 n / n_s, 0)\right)^2}

    Notes
    -----
    Wider where evidence is thin: few families :math:`n_f` on the chip, assumed inputs, a scale never measured.

    References
    ----------
    .. [gelman2013] section 5.4: groups never seen

    Examples
    --------
    >>> step_spread(0.1, 0.0, 0.0, 0.0, 1e4, 0.0, 0.0, 8.0)
    0.1
    """
    beyond = maximum(log(accelerators / scale_seen) / LN2, 0.0) * spread_scale
    chip = spread_new_chip * spread_new_chip / (1.0 + evidence_families)
    assumed = assumed_inputs * spread_assumed * spread_assumed
    return sqrt(spread_model * spread_model + chip + assumed + beyond * beyond)


def step_low_s(step_s: Numeric, step_spread: Numeric) -> Numeric:
    r"""Lower end of the 90 % prediction interval.

    .. math:: T\, \mathrm{e}^{-1.645 \sigma}

    Notes
    -----
    Measured over predicted times are about lognormal.

    Examples
    --------
    >>> round(step_low_s(10.0, 0.1), 2)
    8.48
    """
    return step_s * exp(-NORMAL_95 * step_spread)


def step_high_s(step_s: Numeric, step_spread: Numeric) -> Numeric:
    r"""Upper end of the 90 % prediction interval.

    .. math:: T\, \mathrm{e}^{1.645 \sigma}

    Notes
    -----
    Measured over predicted times are about lognormal.

    Examples
    --------
    >>> round(step_high_s(10.0, 0.1), 2)
    11.79
    """
    return step_s * exp(NORMAL_95 * step_spread)
