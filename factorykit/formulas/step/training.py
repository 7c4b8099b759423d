"""Training time, achieved rates and number of steps from the time of one step."""

from __future__ import annotations

from factorykit.core.types import Numeric


def step_tokens(global_batch_size: Numeric, sequence_length: Numeric) -> Numeric:
    """Tokens of one optimizer step.

    .. math:: B s

    Examples
    --------
    >>> step_tokens(2048.0, 8192.0)
    16777216.0
    """
    return global_batch_size * sequence_length


def training_steps(tokens: Numeric, step_tokens: Numeric) -> Numeric:
    """Optimizer steps of a run.

    .. math:: D / (B s)

    Examples
    --------
    >>> training_steps(1e12, 1e6)
    1000000.0
    """
    return tokens / step_tokens


def model_flop_per_s_per_accelerator(
    model_flop_per_token: Numeric,
    step_tokens: Numeric,
    step_s: Numeric,
    accelerators: Numeric,
    trained_share: Numeric,
) -> Numeric:
    r"""Model FLOP per second of one accelerator.

    .. math:: \frac{2 + \tau}{3} \frac{C_t B s}{T n}

    Notes
    -----
    Causal attention counted half, no recomputation, no gradients of frozen weights.

    Examples
    --------
    >>> model_flop_per_s_per_accelerator(1e12, 1e6, 10.0, 1000.0, 1.0) / 1e12
    100.0
    """
    return (2.0 + trained_share) / 3.0 * model_flop_per_token * step_tokens / (step_s * accelerators)


def predicted_mfu(model_flop_per_s_per_accelerator: Numeric, peak_flop_per_s: Numeric) -> Numeric:
    """Model FLOP utilization that the predicted step time means.

    .. math:: F_{model} / F

    Notes
    -----
    Of the dense peak at the precision of the run. Stands for ``mfu`` where a scenario names it.

    References
    ----------
    .. [chowdhery2022] appendix B

    Examples
    --------
    >>> predicted_mfu(4e14, 1e15)
    0.4
    """
    return model_flop_per_s_per_accelerator / peak_flop_per_s


def training_stepped_s(training_steps: Numeric, step_s: Numeric) -> Numeric:
    r"""Training time without stops, from the predicted time of a step.

    .. math:: T_{st} = \frac{D}{B s} T

    Notes
    -----
    Stands for ``training_s`` where a scenario names it: goodput, energy and cost follow from it.

    Examples
    --------
    >>> training_stepped_s(1e6, 10.0)
    10000000.0
    """
    return training_steps * step_s
