"""Request-level simulation of one replica with continuous batching: the check of the queueing formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from factorykit.core import validation
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.model.serving.trace import COLUMNS, Trace


def simulate_serving(
    requests: Any,
    *,
    prefill_s: Callable[[Any], Any],
    decode_step_s: Callable[[Any], Any],
    concurrent_requests: int = 256,
) -> pl.DataFrame:
    """Simulate one replica of a served model, request by request.

    Parameters
    ----------
    requests
        A :func:`factorykit.read_trace`, or a frame with its columns ``arrival_s``, ``input_tokens``, ``output_tokens``.
    prefill_s
        Function of an array of prompt lengths: the time by which each occupies the replica.
    decode_step_s
        Function of an array of batches: the time of one step that adds a token to each request of the batch.
    concurrent_requests
        Most requests in the batch; others wait.

    Returns
    -------
    polars.DataFrame
        The requests by arrival, with ``time_to_first_token_s``, ``time_per_output_token_s`` (null for one output token)
        and ``request_latency_s``.

    Raises
    ------
    ScenarioError
        If a time or a length is not finite, a length is below 1, there is no request, or a time is no function.

    Notes
    -----
    Prompts are computed in the order of arrival, one at a time, between decode steps; the batch waits for them. The
    prompt gives the first token.

    Examples
    --------
    >>> import polars as pl
    >>> requests = Trace.drawn(100, 1e-3, 1000, 100, input_tokens_cv=0.0, output_tokens_cv=0.0)
    >>> alone = simulate_serving(requests, prefill_s=lambda s: 1e-4 * s, decode_step_s=lambda b: 0.02 + 0.0 * b)
    >>> alone.select("time_to_first_token_s", "time_per_output_token_s").median().with_columns(pl.all().round(6)).row(0)
    (0.1, 0.02)
    """
    np = need("numpy")
    for name, function in (("prefill_s", prefill_s), ("decode_step_s", decode_step_s)):
        if not callable(function):
            raise ScenarioError(f"{name} must be a function, such as lambda array: 0.1, got {short_repr(function)}")
    frame = validation.frame("requests", requests.requests if isinstance(requests, Trace) else requests)
    frame = frame.select(pl.col(name).cast(pl.Float64) for name in COLUMNS).sort("arrival_s", maintain_order=True)
    arrival, prompt_tokens, answer = (frame[name].to_numpy() for name in COLUMNS)
    if not (len(arrival) and np.isfinite(frame.to_numpy()).all() and min(prompt_tokens.min(), answer.min()) >= 1.0):
        raise ScenarioError("requests must have finite times and lengths of at least 1, and one row or more")
    slots = validation.integer("concurrent_requests", concurrent_requests)
    prompts = np.broadcast_to(np.asarray(prefill_s(prompt_tokens), float), arrival.shape)
    steps = np.broadcast_to(np.asarray(decode_step_s(np.arange(slots + 1.0)), float), slots + 1)
    first, last = np.empty(len(arrival)), np.empty(len(arrival))
    batch, left = np.empty(0, int), np.empty(0)
    now, head = float(arrival[0]), 0
    while head < len(arrival) or len(batch):
        if head < len(arrival) and arrival[head] <= now and len(batch) < slots:
            now += prompts[head]
            first[head] = last[head] = now
            if answer[head] > 1.0:
                batch, left = np.append(batch, head), np.append(left, np.ceil(answer[head] - 1.0))
            head += 1
        elif not len(batch):
            now = float(arrival[head])
        else:
            step, count = steps[len(batch)], left.min()
            if head < len(arrival) and len(batch) < slots:
                count = min(count, max(np.ceil((arrival[head] - now) / step), 1.0))
            now, left = now + count * step, left - count
            last[batch[left <= 0.0]] = now
            batch, left = batch[left > 0.0], left[left > 0.0]
    between = np.where(answer > 1.0, (last - first) / np.maximum(answer - 1.0, 1.0), np.nan)
    return frame.with_columns(
        time_to_first_token_s=first - arrival,
        time_per_output_token_s=pl.Series(between).fill_nan(None),
        request_latency_s=last - arrival,
    )
