"""Default features of training software by year: overlap of communication, grouped experts."""

from __future__ import annotations

from factorykit.core.types import Numeric
from factorykit.formulas.functions import where


def tensor_overlap(software_year: Numeric) -> Numeric:
    r"""Default for whether tensor-parallel collectives overlap with matrix products.

    .. math:: 1 \quad (y \ge 2024), \qquad 0 \quad \text{otherwise}

    Notes
    -----
    Transformer Engine split collectives into chunks beside products in 2023; recipes used it from the next year on.

    Examples
    --------
    >>> tensor_overlap(2025.0)
    1.0
    """
    return where(software_year >= 2024.0, 1.0, 0.0)


def gradient_overlap(software_year: Numeric) -> Numeric:
    r"""Default for whether the gradient exchange overlaps with the backward pass.

    .. math:: 1 \quad (y \ge 2023), \qquad 0 \quad \text{otherwise}

    Notes
    -----
    Megatron got it for its distributed optimizer in 2023; fully sharded data parallelism had it from the start.

    Examples
    --------
    >>> gradient_overlap(2025.0)
    1.0
    """
    return where(software_year >= 2023.0, 1.0, 0.0)


def grouped_experts(software_year: Numeric) -> Numeric:
    r"""Default for whether the experts of a rank are computed in one grouped kernel.

    .. math:: 1 \quad (y \ge 2024), \qquad 0 \quad \text{otherwise}

    Notes
    -----
    Without it the experts run one after the other, each with separate launches and casts.

    Examples
    --------
    >>> grouped_experts(2025.0)
    1.0
    """
    return where(software_year >= 2024.0, 1.0, 0.0)


def interleaved_overlap(software_year: Numeric) -> Numeric:
    r"""Default for whether the expert exchange overlaps with another micro-batch in interleaved pipelines.

    .. math:: 1 \quad (y \ge 2025.5), \qquad 0 \quad \text{otherwise}

    Notes
    -----
    Megatron splits the steps of neighbouring micro-batches against each other from the middle of 2025; it asks for
    interleaved stages, and recipes set it where experts span more than a domain.

    References
    ----------
    .. [megatronlm] megatron/core/model_parallel_config.py: overlap_moe_expert_parallel_comm

    Examples
    --------
    >>> interleaved_overlap(2025.0)
    0.0
    """
    return where(software_year >= 2025.5, 1.0, 0.0)
