"""Features of the residuals of serving latencies: logarithms of layout and load and of what the formulas find."""

from __future__ import annotations

import math

from factorykit.core.types import Numeric
from factorykit.formulas.functions import log, maximum


def _log2(value: Numeric) -> Numeric:
    return log(maximum(value, 1e-9)) * (1.0 / math.log(2.0))


def tpot_features(
    concurrent_requests: Numeric,
    input_tokens: Numeric,
    output_tokens: Numeric,
    replica_accelerators: Numeric,
    pipeline_parallel: Numeric,
    attention_data_parallel: Numeric,
    expert_parallel: Numeric,
    decode_step_s: Numeric,
    prefill_s: Numeric,
    decode_kv_bytes: Numeric,
    decode_weight_bytes: Numeric,
    draft_step_tokens: Numeric,
    month: Numeric,
    workers: Numeric,
    known: Numeric,
    recipes: Numeric,
) -> tuple[Numeric, ...]:
    """Return the features of the time per output token, of a stage of decode and the time of a prompt.

    >>> [round(x, 2) for x in tpot_features(64.0, 2048.0, 1024.0, 4.0, *[1.0] * 3, 0.02, 0.1, 2.0, *[1.0] * 6)]
    [6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.36, -1.68, 1.0, 0.33, 0.0, 1.0, 0.0, 1.0]
    """
    return (
        *(_log2(concurrent_requests / pipeline_parallel), _log2(input_tokens) - 11.0, _log2(output_tokens) - 10.0),
        *(_log2(replica_accelerators / pipeline_parallel) - 2.0, _log2(attention_data_parallel)),
        *(_log2(expert_parallel), _log2(decode_step_s) + 6.0),
        _log2((concurrent_requests * prefill_s + 1e-4) / (output_tokens * decode_step_s)),
        _log2(decode_kv_bytes / decode_weight_bytes),
        *(month / 3.0, _log2(workers), known, draft_step_tokens - 1.0, _log2(1.0 + recipes)),
    )


def ttft_features(
    concurrent_requests: Numeric,
    input_tokens: Numeric,
    output_tokens: Numeric,
    replica_accelerators: Numeric,
    pipeline_parallel: Numeric,
    attention_data_parallel: Numeric,
    expert_parallel: Numeric,
    time_to_first_token_s: Numeric,
    prefill_s: Numeric,
    decode_step_s: Numeric,
    requests_in_memory: Numeric,
    draft_step_tokens: Numeric,
    month: Numeric,
    workers: Numeric,
    known: Numeric,
    prefill_workers: Numeric,
    recipes: Numeric,
) -> tuple[Numeric, ...]:
    """Return the features of the time to first token, of a stage of prefill and the step and memory of decode.

    >>> [round(x, 2) for x in ttft_features(*[1.0] * 17)][6:9]
    [1.0, 0.0, 6.0]
    """
    return (
        *(_log2(concurrent_requests / pipeline_parallel), _log2(input_tokens) - 11.0, _log2(output_tokens) - 10.0),
        *(_log2(replica_accelerators / pipeline_parallel) - 2.0, _log2(attention_data_parallel)),
        *(_log2(expert_parallel), _log2(time_to_first_token_s) + 1.0),
        _log2(concurrent_requests * prefill_s / (output_tokens * decode_step_s)),
        *(_log2(decode_step_s) + 6.0, _log2(1.0 + concurrent_requests / maximum(requests_in_memory, 1.0))),
        *(month / 3.0, _log2(workers), known, _log2(prefill_workers)),
        *(draft_step_tokens - 1.0, _log2(1.0 + recipes)),
    )
