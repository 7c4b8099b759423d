"""Time of the whole optimizer step: pipeline stages, logits, optimizer and waiting."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import log, maximum, minimum, where
from factorykit.formulas.network import LN2
from factorykit.formulas.parallelism import pipeline_idle_s
from factorykit.formulas.step.layer import GRAPHED


def logits_s(
    micro_batch_tokens: Numeric,
    embedding_parameters: Numeric,
    vocabulary_size: Numeric,
    mtp_layers: Numeric,
    tensor_parallel: Numeric,
    gemm_16bit_flop_per_s: Numeric,
    elementwise_factor: Numeric,
    eager_traffic_factor: Numeric,
    fused_kernels: Numeric,
    sustained_memory_bytes_per_s: Numeric,
) -> Numeric:
    r"""Time of one micro-batch in the vocabulary's matrix and the loss, forward and backward.

    .. math::
        (1 + L_m) \left[\frac{6 T N_{emb}}{t F_{16}}
        + k_e \left(1 + (1 - f)(k_{eager} - 1)\right) \frac{10 T V}{t B_s}\right]

    Notes
    -----
    In 16 bits also where layers run in 8. The loss reads and writes the logits in 32 bits, eager code once for every
    operation. Prediction layers repeat it.

    Examples
    --------
    >>> round(logits_s(8192.0, 1.05e9, 128256.0, 0.0, 1.0, 7e14, 1.0, 2.0, 1.0, 2.68e12), 4)
    0.0776
    """
    product = 6.0 * micro_batch_tokens * embedding_parameters / gemm_16bit_flop_per_s
    eager = 1.0 + (1.0 - fused_kernels) * (eager_traffic_factor - 1.0)
    loss = elementwise_factor * eager * 10.0 * micro_batch_tokens * vocabulary_size / sustained_memory_bytes_per_s
    return (1.0 + mtp_layers) * (product + loss) / tensor_parallel


def logits_exposed_s(
    logits_s: Numeric,
    layer_s: Numeric,
    layers: Numeric,
    stage_layers: Numeric,
    pipeline_parallel: Numeric,
) -> Numeric:
    r"""Time of the logits that adds to the pace of the pipeline.

    .. math:: T_v = \max\left[T_{voc} - \min(p L_s - L,\, L_s)\, T_l,\, 0\right]

    Notes
    -----
    With one stage the logits weigh on every micro-batch. With more, layers missing from a lighter last stage make up
    for them.

    Examples
    --------
    >>> round(logits_exposed_s(0.05, 0.01, 126.0, 8.0, 16.0), 2)
    0.03
    """
    lighter = minimum(stage_layers * pipeline_parallel - layers, stage_layers) * layer_s
    return where(pipeline_parallel > 1.0, maximum(logits_s - lighter, 0.0), logits_s)


def stage_s(
    stage_layers: Numeric, mtp_layers: Numeric, pipeline_parallel: Numeric, layer_s: Numeric, stage_transfer_s: Numeric
) -> Numeric:
    r"""Time of one micro-batch in the fullest stage.

    .. math:: (L_s + L_m / p)\, T_l + T_{p2p}

    Notes
    -----
    Prediction layers are spread over the stages, as a balanced layout does.

    Examples
    --------
    >>> stage_s(8.0, 0.0, 16.0, 0.01, 0.001)
    0.081
    """
    return (stage_layers + mtp_layers / pipeline_parallel) * layer_s + stage_transfer_s


def pipeline_wait_s(
    schedule: Numeric,
    pipeline_parallel: Numeric,
    virtual_stages: Numeric,
    stage_s: Numeric,
    recompute_share: Numeric,
    layers: Numeric,
    logits_layers: Numeric,
    stage_layers: Numeric,
) -> Numeric:
    r"""Idle time of a pipeline rank in one step.

    .. math::
        T_{idle}\!\left(p = \min\left(p, \tfrac{L + L_v}{L_s}\right),\; F = \tfrac{T_s}{3 + \rho},\; B_s = T_s - F,\;
        W = F,\; F{B} = T_s\right)

    Notes
    -----
    A backward is two forwards, three with recomputation, half of the plain two for gradients of weights. A micro-batch
    passes lighter stages sooner: its way is as long as that through full stages that hold all layers.

    Examples
    --------
    >>> round(pipeline_wait_s("1f1b", 8.0, 1.0, 0.3, 0.0, 32.0, 0.0, 4.0), 6)
    2.1
    >>> round(pipeline_wait_s("1f1b", 32.0, 1.0, 0.3, 0.0, 32.0, 4.0, 2.0), 6)
    5.1
    """
    forward = stage_s / (3.0 + recompute_share)
    stages = minimum(pipeline_parallel, (layers + logits_layers) / stage_layers)
    return pipeline_idle_s(schedule, stages, virtual_stages, forward, stage_s - forward, forward, stage_s)


def optimizer_s(
    stage_sharded_parameters: Numeric,
    stage_replicated_parameters: Numeric,
    stage_expert_parameters: Numeric,
    zero_stage: Numeric,
    optimizer_shards: Numeric,
    expert_data_parallel: Numeric,
    optimizer_bytes_per_parameter: Numeric,
    gradient_bytes_per_parameter: Numeric,
    trained_share: Numeric,
    offloaded_optimizer_share: Numeric,
    sustained_memory_bytes_per_s: Numeric,
    host_link_bytes_per_s: Numeric,
    host_updates_per_s: Numeric,
    newton_schulz_steps: Numeric,
    hidden_size: Numeric,
    ffn_size: Numeric,
    expert_ffn_size: Numeric,
    gemm_16bit_flop_per_s: Numeric,
) -> Numeric:
    r"""Time of the update: state, gradients and weights read and written once, here or on the host.

    .. math::
        \tau \left(\frac{N_s + N_r}{n_z} + \frac{N_x}{[d_e]_{z \ge 1}}\right)
        \left[(1 - \omega_o) \frac{2 b_o + 6}{B_s} + \omega_o \left(\frac{b_g + 2}{B_h} + \frac{1}{U_h}\right)
        + k \frac{4 n + 2 n^2 / m}{F_{16}}\right]

    Notes
    -----
    A host updates with its processors: gradients come over its link and new weights of 16 bits return. Muon
    orthogonalises the update of each :math:`n \times m` matrix, :math:`n \le m`, in :math:`k` Newton-Schulz steps of
    :math:`4 n^2 m + 2 n^3` FLOP, on the rank that owns it; the sizes are those of a feed-forward block, or an expert.

    References
    ----------
    .. [ren2021] section 4 and table 4
    .. [jordan2024] FLOP overhead of Newton-Schulz steps

    Examples
    --------
    >>> share = (0.0, 0.0, 0.0, 1.0, 8.0, 12.0, 4.0, 1.0)
    >>> adam, muon = (optimizer_s(1e9, *share, 0.0, 2.7e12, 2.5e10, 4e8, k, 4096.0, 14336.0, 0.0, 6e14) for k in (0, 5))
    >>> round(adam, 4), round(muon - adam, 4)
    (0.0111, 0.156)
    """
    dense = (stage_sharded_parameters + stage_replicated_parameters) / optimizer_shards
    expert_ranks = where(zero_stage >= 1.0, maximum(expert_data_parallel, 1.0), 1.0)
    routed = stage_expert_parameters / expert_ranks
    parameters = trained_share * (dense + routed)
    narrow, routed_narrow = minimum(hidden_size, ffn_size), minimum(hidden_size, expert_ffn_size)
    dense_flop = narrow * (4.0 + 2.0 * narrow / maximum(hidden_size, ffn_size))
    routed_flop = routed_narrow * (4.0 + 2.0 * routed_narrow / maximum(hidden_size, expert_ffn_size))
    orthogonal_flop = newton_schulz_steps * trained_share * (dense * dense_flop + routed * routed_flop)
    here = (2.0 * optimizer_bytes_per_parameter + 6.0) / sustained_memory_bytes_per_s
    there = (gradient_bytes_per_parameter + 2.0) / host_link_bytes_per_s + 1.0 / host_updates_per_s
    moved_s = parameters * ((1.0 - offloaded_optimizer_share) * here + offloaded_optimizer_share * there)
    return moved_s + orthogonal_flop / gemm_16bit_flop_per_s


def inner_step_s(
    micro_batches: Numeric,
    stage_s: Numeric,
    logits_exposed_s: Numeric,
    stage_layers: Numeric,
    pipeline_wait_s: Numeric,
    gradient_exposed_s: Numeric,
    optimizer_s: Numeric,
    straggler_share: Numeric,
    accelerators: Numeric,
    layer_update_s: Numeric,
    fused_kernels: Numeric,
    cuda_graphs: Numeric,
    step_fixed_s: Numeric,
    step_pace: Numeric,
) -> Numeric:
    r"""Time of one optimizer step within a site.

    .. math::
        \pi \left\{\left[m (T_s + T_v) + T_{idle} + T_{grad} + T_{opt}\right] (1 + \lambda \log_2 n)
        + (1 - 0.9 c) (1 - f) L_s T_u + T_0\right\}

    Notes
    -----
    The slowest of many chips sets the pace of all, hence the logarithm. Eager code updates one tensor after the other;
    a fused update launches a few kernels for all. A calibration corrects the result near measured
    layouts (:math:`\pi`, :class:`factorykit.Calibration`). `factorykit.formulas.step.parts` has the parts of the sum.

    Examples
    --------
    >>> round(inner_step_s(8.0, 1.0, 0.1, 10.0, 0.5, 0.2, 0.1, 0.0, 512.0, 1e-3, 1.0, 0.0, 0.01, 1.0), 3)
    9.61
    """
    working = micro_batches * (stage_s + logits_exposed_s) + pipeline_wait_s + gradient_exposed_s + optimizer_s
    slowed = working * (1.0 + straggler_share * log(accelerators) / LN2)
    updating = (1.0 - GRAPHED * cuda_graphs) * (1.0 - fused_kernels) * stage_layers * layer_update_s
    return step_pace * (slowed + updating + step_fixed_s)


def step_s(inner_step_s: Numeric, outer_exposed_s: Numeric, loader_exposed_s: Numeric) -> Numeric:
    """Time of one optimizer step, waiting for other sites and for data included.

    .. math:: T_i + T_o + T_w

    Notes
    -----
    A single site does not wait for others. Data are assumed to arrive in time unless the scenario describes the loader.

    Examples
    --------
    >>> step_s(10.0, 0.5, 0.0)
    10.5
    """
    return inner_step_s + outer_exposed_s + loader_exposed_s


def pipeline_bubble(pipeline_wait_s: Numeric, step_s: Numeric) -> Numeric:
    """Idle share of the step.

    .. math:: T_{idle} / T_{step}

    Examples
    --------
    >>> pipeline_bubble(1.0, 10.0)
    0.1
    """
    return pipeline_wait_s / step_s
