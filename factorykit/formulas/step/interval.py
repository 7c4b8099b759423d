"""How far a predicted step may be from the measured one."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp, log, maximum, sqrt, where
from factorykit.formulas.network import LN2

NORMAL_95 = 1.6448536269514722
"""Quantile of the normal distribution: 90 % lie between minus and plus this many standard deviations."""


def step_spread(
    spread_model: Numeric,
    spread_new_chip: Numeric,
    spread_new_software: Numeric,
    spread_assumed: Numeric,
    spread_scale: Numeric,
    scale_seen: Numeric,
    spread_experts: Numeric,
    spread_states: Numeric,
    spread_overhead: Numeric,
    spread_across: Numeric,
    spread_alone: Numeric,
    unexplained_variance: Numeric,
    evidence_families: Numeric,
    evidence_software: Numeric,
    assumed_inputs: Numeric,
    accelerators: Numeric,
    experts: Numeric,
    linear_attention_layers: Numeric,
    index_heads: Numeric,
    tensor_parallel: Numeric,
    scale_up_domain: Numeric,
    step_gemm_s: Numeric,
    step_attention_s: Numeric,
    step_elementwise_s: Numeric,
    step_s: Numeric,
) -> Numeric:
    r"""Spread of the step time, as standard deviation of its logarithm.

    .. math::
        \sqrt{\sigma_1^2 + u \left[\sigma_0^2 + \frac{\sigma_c^2}{1 + n_f} + \frac{\sigma_f^2}{1 + n_s}
        + a \sigma_a^2 + \left(\sigma_s \max(\log_2 n / n_s, 0)\right)^2
        + [E > 1]\, \sigma_e^2 + [L_r + a_i > 0]\, \sigma_r^2 + [t > g]\, \sigma_t^2
        + \sigma_o^2 \left(1 - \frac{T_{gemm} + T_{attn} + T_{elem}}{T_{step}}\right)^2\right]}

    Notes
    -----
    Wider where evidence is thin: few families :math:`n_f` on the chip and :math:`n_s` with the
    software, assumed inputs, a scale never measured, layers with experts, layers that keep a state or pick what they
    attend to, tensor parallelism that leaves its domain of :math:`g` ranks, and steps of which much is communication,
    launching and waiting and little arithmetic. Measured layouts nearby leave a share :math:`u` of that,
    besides the noise of a single layout.

    References
    ----------
    .. [gelman2013] section 5.4: groups never seen

    Examples
    --------
    >>> none, layout = (0.0, 0.0, 0.0), (8.0, 0.0, 0.0, 0.0, 8.0, 8.0)
    >>> step_spread(0.1, *none, 0.0, 1e4, 0.1, 0.2, 0.0, 0.3, 0.0, 1.0, *none, *layout, 0.5, 0.2, 0.2, 1.0)
    0.1
    """
    beyond = maximum(log(accelerators / scale_seen) / LN2, 0.0) * spread_scale
    chip = spread_new_chip * spread_new_chip / (1.0 + evidence_families)
    software = spread_new_software * spread_new_software / (1.0 + evidence_software)
    assumed = assumed_inputs * spread_assumed * spread_assumed
    routed = where(experts > 1.0, spread_experts * spread_experts, 0.0)
    states = where(linear_attention_layers + index_heads > 0.0, spread_states * spread_states, 0.0)
    across = where(tensor_parallel > scale_up_domain, spread_across * spread_across, 0.0)
    idle = spread_overhead * (1.0 - (step_gemm_s + step_attention_s + step_elementwise_s) / step_s)
    shape = routed + states + across + idle * idle
    unseen = spread_model * spread_model + chip + software + assumed + beyond * beyond + shape
    return sqrt(spread_alone * spread_alone + unexplained_variance * unseen)


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
