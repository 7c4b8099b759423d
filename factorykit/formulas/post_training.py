"""Post-training: rollouts with a long tail, log-probabilities, updates and new weights of one step."""

from __future__ import annotations

from math import log as natural_log
from math import pi

from factorykit.core.types import Numeric
from factorykit.formulas.functions import exp, log, maximum, minimum, sqrt, where

FORWARD_SHARE = 1.0 / 3.0
"""Time of a pass without gradients over that of an update: one of three products of each weight."""
ASYNCHRONOUS_SYNC_SHARE = 0.2
"""Share of the exchange of weights that is left where rollouts go on meanwhile."""
BILLION = 1e9
GUMBEL = natural_log(4.0 * pi) - 2.0 * 0.5772156649
"""Twice the distance by which the largest of normal values falls short: ln 4 pi less twice Euler's constant."""


def replica_samples(rollout_samples: Numeric, replica_accelerators: Numeric, rollout_accelerators: Numeric) -> Numeric:
    r"""Batch of samples that one replica generates in a step.

    .. math:: S_r = S\, n_r / n_g

    Examples
    --------
    >>> replica_samples(2048.0, 2.0, 32.0)
    128.0
    """
    return rollout_samples * replica_accelerators / rollout_accelerators


def longest_output_tokens(
    output_tokens: Numeric, rollout_samples: Numeric, output_spread: Numeric, output_limit_tokens: Numeric
) -> Numeric:
    r"""Length of the longest sample of a step, expected output tokens.

    .. math::
        s_L = \min\left(s_{out}\, e^{\sigma_o z - \sigma_o^2 / 2},\, s_{max}\right), \qquad
        z = \sqrt{2 \ln S} - \frac{\ln \ln S + \ln 4 \pi - 2 \gamma}{2 \sqrt{2 \ln S}}

    Notes
    -----
    Lengths with a normal logarithm and the mean :math:`s_{out}`; :math:`z` is the expected largest of :math:`S` normal
    values, not below 0.

    References
    ----------
    .. [cramer1946] section 28.6

    Examples
    --------
    >>> round(longest_output_tokens(800.0, 2048.0, 1.0, 1e6))
    15573
    >>> longest_output_tokens(800.0, 2048.0, 1.0, 4096.0)
    4096.0
    """
    root = sqrt(2.0 * log(maximum(rollout_samples, 2.0)))
    largest = maximum(root - (log(0.5 * root * root) + GUMBEL) / (2.0 * root), 0.0)
    tail = output_tokens * exp(output_spread * largest - 0.5 * output_spread * output_spread)
    return minimum(maximum(tail, output_tokens), maximum(output_limit_tokens, output_tokens))


def rollout_decode_steps(
    longest_output_tokens: Numeric,
    policy_lag_steps: Numeric,
    replica_samples: Numeric,
    output_tokens: Numeric,
    requests_in_memory: Numeric,
    accepted_tokens: Numeric,
) -> Numeric:
    r"""Decode steps until the samples of a step are generated.

    .. math:: n_d = \frac1A \max\left(\frac{s_L}{\max(k, 1)},\, \frac{S_r s_{out}}{\max(R_{max}, 1)}\right)

    Notes
    -----
    The longest sample decides, or the tokens over the samples whose cache fits. Rollouts of :math:`k` steps off policy
    overlap, so a step bears a part of the tail.

    Examples
    --------
    >>> rollout_decode_steps(4096.0, 0.0, 128.0, 800.0, 400.0, 1.0)
    4096.0
    >>> rollout_decode_steps(4096.0, 8.0, 512.0, 800.0, 400.0, 1.0)
    1024.0
    """
    tail = longest_output_tokens / maximum(policy_lag_steps, 1.0)
    full = replica_samples * output_tokens / maximum(requests_in_memory, 1.0)
    return maximum(tail, full) / accepted_tokens


def running_requests(
    replica_samples: Numeric, output_tokens: Numeric, rollout_decode_steps: Numeric, accepted_tokens: Numeric
) -> Numeric:
    r"""Mean samples that a replica decodes at once over the steps of a rollout.

    .. math:: R_m = \max\left(\frac{S_r s_{out}}{n_d A},\, 1\right)

    Notes
    -----
    Continuous batching: fewer and fewer samples run until the longest ends.

    References
    ----------
    .. [yu2022] section 3.2

    Examples
    --------
    >>> running_requests(128.0, 800.0, 4096.0, 1.0)
    25.0
    """
    return maximum(replica_samples * output_tokens / (rollout_decode_steps * accepted_tokens), 1.0)


def rollout_s(
    rollout_decode_steps: Numeric,
    decode_step_s: Numeric,
    replica_samples: Numeric,
    prefill_s: Numeric,
    rollout_slowdown: Numeric,
    tool_wait_s: Numeric,
    policy_lag_steps: Numeric,
) -> Numeric:
    r"""Time to generate the samples of one step.

    .. math:: t_g = \kappa_g (n_d t_d + S_r t_p) + \frac{w}{\max(k, 1)}

    Notes
    -----
    The decode step is that of the mean number of running samples.

    Examples
    --------
    >>> round(rollout_s(4096.0, 0.0125, 128.0, 0.01, 1.0, 0.0, 0.0), 2)
    52.48
    """
    busy = rollout_decode_steps * decode_step_s + replica_samples * prefill_s
    return rollout_slowdown * busy + tool_wait_s / maximum(policy_lag_steps, 1.0)


def policy_update_s(
    step_s: Numeric, optimizer_updates: Numeric, trained_models: Numeric, update_slowdown: Numeric
) -> Numeric:
    r"""Time of the optimizer steps on the samples of one step.

    .. math:: t_u = \kappa_u\, m\, u\, t_{step}

    Examples
    --------
    Four updates of seven seconds:

    >>> policy_update_s(7.0, 4.0, 1.0, 1.0)
    28.0
    """
    return update_slowdown * trained_models * optimizer_updates * step_s


def log_probability_s(policy_update_s: Numeric, forward_passes: Numeric, trained_models: Numeric) -> Numeric:
    r"""Time of the passes without gradients over the samples of one step.

    .. math:: t_l = \frac{f}{3 m}\, t_u

    References
    ----------
    .. [kaplan2020] section 2.1: the backward pass takes twice the forward pass

    Examples
    --------
    Policy and reference:

    >>> round(log_probability_s(28.0, 2.0, 1.0), 1)
    18.7
    """
    return policy_update_s * FORWARD_SHARE * forward_passes / trained_models


def weight_sync_s(
    parameters: Numeric, trained_share: Numeric, weight_sync_base_s: Numeric, policy_lag_steps: Numeric
) -> Numeric:
    r"""Time until new weights generate that nothing hides.

    .. math:: t_y = \tau_w \sqrt{\tau N / 10^9} \cdot \begin{cases} 1 & k = 0 \\ 0.2 & k > 0 \end{cases}

    Notes
    -----
    The square root follows published times from 8 to 671 billion weights: more accelerators share larger models. Of
    adapters only the trained weights are sent.

    Examples
    --------
    >>> round(weight_sync_s(8e9, 1.0, 1.8, 0.0), 1), round(weight_sync_s(7e10, 1.0, 1.8, 0.0), 1)
    (5.1, 15.1)
    """
    exposed = where(policy_lag_steps > 0.0, ASYNCHRONOUS_SYNC_SHARE, 1.0)
    return exposed * weight_sync_base_s * sqrt(trained_share * parameters / BILLION)


def post_training_step_s(
    rollout_s: Numeric,
    reward_s: Numeric,
    log_probability_s: Numeric,
    policy_update_s: Numeric,
    weight_sync_s: Numeric,
    post_training_overhead_s: Numeric,
    policy_lag_steps: Numeric,
) -> Numeric:
    r"""Time of one step of post-training.

    .. math::
        t_p = \begin{cases} t_g + t_w + t_l + t_u & k = 0 \\ \max(t_g + t_w,\, t_l + t_u) & k > 0 \end{cases}
        + t_y + \tau_p

    Notes
    -----
    On policy the parts follow each other, on the same accelerators or apart. Off policy, which takes accelerators of
    their own, the slower side decides.

    Examples
    --------
    >>> post_training_step_s(58.0, 0.0, 18.0, 28.0, 5.0, 3.0, 0.0)
    112.0
    >>> post_training_step_s(58.0, 0.0, 18.0, 28.0, 1.0, 3.0, 1.0)
    62.0
    """
    generating, training = rollout_s + reward_s, log_probability_s + policy_update_s
    busy = where(policy_lag_steps > 0.0, maximum(generating, training), generating + training)
    return busy + weight_sync_s + post_training_overhead_s


def rollout_utilization(rollout_s: Numeric, post_training_step_s: Numeric) -> Numeric:
    r"""Share of a step in which rollout accelerators generate.

    .. math:: \rho_g = t_g / t_p

    Examples
    --------
    >>> rollout_utilization(58.0, 116.0)
    0.5
    """
    return rollout_s / post_training_step_s


def trainer_utilization(log_probability_s: Numeric, policy_update_s: Numeric, post_training_step_s: Numeric) -> Numeric:
    r"""Share of a step in which trainer accelerators compute log-probabilities and updates.

    .. math:: \rho_u = (t_l + t_u) / t_p

    Examples
    --------
    >>> trainer_utilization(18.0, 28.0, 115.0)
    0.4
    """
    return (log_probability_s + policy_update_s) / post_training_step_s
