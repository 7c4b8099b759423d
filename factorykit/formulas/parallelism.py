"""Parallel layouts of a model and the schedule of pipeline stages."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import ceil, equal, maximum, where


def data_parallel(
    accelerators: Numeric, tensor_parallel: Numeric, pipeline_parallel: Numeric, context_parallel: Numeric
) -> Numeric:
    r"""Data-parallel size, the copies of the model that train on different sequences.

    .. math:: d = \frac{n}{t p c}

    Notes
    -----
    A layout divides: the result is whole.

    Examples
    --------
    >>> data_parallel(16384.0, 8.0, 16.0, 1.0)
    128.0
    """
    return accelerators / (tensor_parallel * pipeline_parallel * context_parallel)


def expert_data_parallel(
    accelerators: Numeric, pipeline_parallel: Numeric, expert_parallel: Numeric, expert_tensor_parallel: Numeric
) -> Numeric:
    r"""Expert data-parallel size, the copies of each expert.

    .. math:: d_e = \frac{n}{p e t_e}

    Notes
    -----
    Experts are folded over the tensor-, context- and data-parallel ranks of a stage.

    References
    ----------
    .. [megatronlm] megatron/training/theoretical_memory_usage.py

    Examples
    --------
    >>> expert_data_parallel(2048.0, 16.0, 64.0, 1.0)
    2.0
    """
    return accelerators / (pipeline_parallel * expert_parallel * expert_tensor_parallel)


def optimizer_shards(zero_stage: Numeric, data_parallel: Numeric, context_parallel: Numeric) -> Numeric:
    r"""Ranks over which the optimizer state of each weight outside experts is sharded, by default all that hold it.

    .. math:: n_z = [d c]_{z \ge 1}

    References
    ----------
    .. [rajbhandari2020] section 5.1

    Examples
    --------
    >>> optimizer_shards(1.0, 64.0, 2.0), optimizer_shards(0.0, 64.0, 2.0)
    (128.0, 1.0)
    """
    return where(zero_stage >= 1.0, data_parallel * context_parallel, 1.0)


def micro_batches(global_batch_size: Numeric, micro_batch_size: Numeric, data_parallel: Numeric) -> Numeric:
    r"""Micro-batches that one copy of the model works through in a step.

    .. math:: m = \frac{B}{b d}

    Notes
    -----
    A layout divides: the result is whole.

    Examples
    --------
    >>> micro_batches(2048.0, 1.0, 128.0)
    16.0
    """
    return global_batch_size / (micro_batch_size * data_parallel)


def stage_layers(layers: Numeric, logits_layers: Numeric, pipeline_parallel: Numeric) -> Numeric:
    r"""Default number of layers of the fullest stage.

    .. math:: L_s = \lceil (L + [p > 1] L_v) / p \rceil

    Notes
    -----
    Layers that do not divide leave the first and last stages lighter, as Llama 3 405B did (126 layers, 16 stages).
    Where stages are cut by their work, the logits count as :math:`L_v` layers and the other stages take more.

    Examples
    --------
    >>> stage_layers(126.0, 0.0, 16.0)
    8.0
    """
    return ceil((layers + where(pipeline_parallel > 1.0, logits_layers, 0.0)) / pipeline_parallel)


def pipeline_idle_s(
    schedule: Numeric,
    pipeline_parallel: Numeric,
    virtual_stages: Numeric,
    stage_forward_s: Numeric,
    stage_backward_s: Numeric,
    stage_weight_gradient_s: Numeric,
    stage_overlapped_s: Numeric,
) -> Numeric:
    r"""Time that a pipeline rank waits for others in one step.

    .. math::
        (p - 1)(F + B_s) / v \quad \text{1f1b, interleaved}
        (p - 1)(F + B_s - 2 W) \quad \text{zb1p}
        (p - 1) \max(F + B_s - 3 W,\, 0) \quad \text{zb2p}
        (p/2 - 1)(F{B} + B_s - 3 W) \quad \text{dualpipe}
        \tfrac12 (p - 1)(F{B} + B_s - 3 W) \quad \text{dualpipe\_v}

    Notes
    -----
    Enough micro-batches to fill the pipeline (:math:`m \ge p`, twice that for DualPipe), equal stages, no time for
    transfers. Zero for one stage.

    References
    ----------
    .. [narayanan2021] section 2.2
    .. [qi2024] section 2: ZB-H1 and ZB-H2
    .. [deepseekv3] table 2

    Examples
    --------
    >>> pipeline_idle_s("1f1b", 4.0, 1.0, 1.0, 2.0, 1.0, 3.0)
    9.0
    >>> pipeline_idle_s("dualpipe", 4.0, 1.0, 1.0, 2.0, 1.0, 3.0)
    2.0
    """
    others = pipeline_parallel - 1.0
    plain = others * (stage_forward_s + stage_backward_s) / virtual_stages
    zero_bubble = others * (stage_forward_s + stage_backward_s - 2.0 * stage_weight_gradient_s)
    both_ways = stage_overlapped_s + stage_backward_s - 3.0 * stage_weight_gradient_s
    dual = where(equal(schedule, "dualpipe"), pipeline_parallel / 2.0 - 1.0, others / 2.0) * both_ways
    none = maximum(zero_bubble - others * stage_weight_gradient_s, 0.0)
    split = where(equal(schedule, "zb1p"), zero_bubble, where(equal(schedule, "zb2p"), none, dual))
    waits = where(equal(schedule, "1f1b"), plain, where(equal(schedule, "interleaved"), plain, split))
    return where(pipeline_parallel > 1.0, waits, 0.0)


def pipeline_makespan_s(
    micro_batches: Numeric, stage_forward_s: Numeric, stage_backward_s: Numeric, pipeline_idle_s: Numeric
) -> Numeric:
    """Time from the first forward to the last backward of a step.

    .. math:: m (F + B_s) + T_{idle}

    Notes
    -----
    Exact for the schedules of ``pipeline_idle_s``; equal to an emulator of schedules for 4 and 8 stages.

    References
    ----------
    .. [narayanan2021] section 2.2.1
    .. [victarry2026] emulated makespans

    Examples
    --------
    >>> pipeline_makespan_s(8.0, 1.0, 2.0, 9.0)
    33.0
    """
    return micro_batches * (stage_forward_s + stage_backward_s) + pipeline_idle_s
