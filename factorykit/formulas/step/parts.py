"""Breakdown of the step time into parts that sum to it."""

from __future__ import annotations

from factorykit.core.types import Numeric


def layer_runs(
    micro_batches: Numeric,
    stage_layers: Numeric,
    mtp_layers: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Layers times micro-batches of the fullest rank.

    .. math:: R = m \left(L_s + \frac{L_{mtp}}{p}\right)

    Notes
    -----
    A prediction layer counts as a layer of a mean stage.

    Examples
    --------
    >>> layer_runs(16.0, 8.0, 0.0, 16.0)
    128.0
    """
    return micro_batches * (stage_layers + mtp_layers / pipeline_parallel)


def step_gemm_s(
    layer_runs: Numeric,
    gemm_passes: Numeric,
    layer_gemm_s: Numeric,
) -> Numeric:
    r"""Time of a step spent on matrix products.

    .. math:: R\, q_g\, T_g

    Notes
    -----
    One of the parts that sum to the time of a step; see step_lag_s.

    Examples
    --------
    >>> step_gemm_s(128.0, 3.0, 0.01)
    3.84
    """
    return layer_runs * gemm_passes * layer_gemm_s


def step_attention_s(
    layer_runs: Numeric,
    attention_passes: Numeric,
    layer_attention_s: Numeric,
    layer_state_s: Numeric,
) -> Numeric:
    r"""Time of a step spent on the attention core, and on states where layers keep them.

    .. math:: R\, q_a\, (T_a + T_r)

    Notes
    -----
    One of the parts that sum to the time of a step; see step_lag_s.

    Examples
    --------
    >>> step_attention_s(128.0, 3.0, 0.01, 0.0)
    3.84
    """
    return layer_runs * attention_passes * (layer_attention_s + layer_state_s)


def step_elementwise_s(
    layer_runs: Numeric,
    elementwise_passes: Numeric,
    layer_elementwise_s: Numeric,
) -> Numeric:
    r"""Time of a step spent on norms, residuals, activations and routing.

    .. math:: R\, q_e\, T_e

    Notes
    -----
    One of the parts that sum to the time of a step; see step_lag_s.

    Examples
    --------
    >>> step_elementwise_s(128.0, 3.0, 0.01)
    3.84
    """
    return layer_runs * elementwise_passes * layer_elementwise_s


def step_collective_s(
    layer_runs: Numeric,
    tensor_parallel_s: Numeric,
    context_parallel_s: Numeric,
    expert_parallel_s: Numeric,
) -> Numeric:
    r"""Time of a step in which layers wait for each other's data.

    .. math:: R\, (T_t + T_c + T_e)

    Notes
    -----
    One of the parts that sum to the time of a step; see step_lag_s. Only time that is not hidden behind compute is
    counted.

    Examples
    --------
    >>> step_collective_s(128.0, 0.01, 0.0, 0.0)
    1.28
    """
    return layer_runs * (tensor_parallel_s + context_parallel_s + expert_parallel_s)


def step_launch_s(
    layer_runs: Numeric,
    layer_s: Numeric,
    layer_compute_s: Numeric,
    tensor_parallel_s: Numeric,
    context_parallel_s: Numeric,
    expert_parallel_s: Numeric,
) -> Numeric:
    r"""Time of a step in which layers wait for kernels or for weights.

    .. math:: R\, (T_l - T_{comp} - T_t - T_c - T_e)

    Notes
    -----
    One of the parts that sum to the time of a step; see step_lag_s. With ZeRO 3 the gathers of weights that compute
    does not hide are here.

    Examples
    --------
    >>> round(step_launch_s(128.0, 0.02, 0.01, 0.005, 0.0, 0.0), 2)
    0.64
    """
    return layer_runs * (layer_s - layer_compute_s - tensor_parallel_s - context_parallel_s - expert_parallel_s)


def step_logits_s(
    micro_batches: Numeric,
    logits_exposed_s: Numeric,
) -> Numeric:
    r"""Time of a step spent on the vocabulary.

    .. math:: m\, T_v

    Notes
    -----
    One of the parts that sum to the time of a step; see step_lag_s.

    Examples
    --------
    >>> step_logits_s(16.0, 0.01)
    0.16
    """
    return micro_batches * logits_exposed_s


def step_transfer_s(
    micro_batches: Numeric,
    stage_transfer_s: Numeric,
) -> Numeric:
    r"""Time of a step in which stages hand micro-batches over.

    .. math:: m\, T_{p2p}

    Notes
    -----
    One of the parts that sum to the time of a step; see step_lag_s.

    Examples
    --------
    >>> step_transfer_s(16.0, 0.01)
    0.16
    """
    return micro_batches * stage_transfer_s


def step_lag_s(
    inner_step_s: Numeric,
    step_gemm_s: Numeric,
    step_attention_s: Numeric,
    step_elementwise_s: Numeric,
    step_collective_s: Numeric,
    step_launch_s: Numeric,
    step_logits_s: Numeric,
    step_transfer_s: Numeric,
    pipeline_wait_s: Numeric,
    gradient_exposed_s: Numeric,
    optimizer_s: Numeric,
) -> Numeric:
    r"""Rest of the step time: stragglers, fixed overheads of a step and the calibration factor of measured layouts.

    .. math:: T_i - \sum_j T_j

    Notes
    -----
    With these parts the step is whole: matrix products, attention, element-wise work, collectives, launches, logits,
    transfers, waiting for other stages, exposed gradients, optimizer, lag, outer_exposed_s and loader_exposed_s sum to
    step_s.

    Examples
    --------
    >>> step_lag_s(10.0, 5.0, 1.0, 0.5, 0.5, 0.0, 0.25, 0.25, 1.0, 0.25, 0.25)
    1.0
    """
    working = step_gemm_s + step_attention_s + step_elementwise_s + step_collective_s + step_launch_s
    waiting = step_logits_s + step_transfer_s + pipeline_wait_s + gradient_exposed_s + optimizer_s
    return inner_step_s - working - waiting
