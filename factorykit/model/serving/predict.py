"""Latency and throughput of serving points: the formulas, corrected by measured points near them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from factorykit.core.errors import FactorykitError
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.formulas import arguments
from factorykit.formulas.serving import calibration
from factorykit.formulas.serving.prefill import prefill_backlog_s
from factorykit.model.scenario.architectures import architecture
from factorykit.model.serving import points
from factorykit.model.serving.features import tpot_features, ttft_features
from factorykit.model.serving.points import Point, architecture_of, chip, hardware, number_format, read_point
from factorykit.model.serving.residual import Process, bounded, constants, left_out, precision_of, widened

if TYPE_CHECKING:
    import numpy as np
DECODE: Final = (
    *("decode_step_s", "time_per_output_token_s", "decode_kv_bytes", "decode_weight_bytes"),
    *("requests_in_memory", "replica_accelerators", "served_weight_bytes", "draft_step_tokens"),
)
PREFILL: Final = ("time_to_first_token_s", "prefill_s", "replica_accelerators")
BENCHMARK_LAYOUTS: Final = tuple(
    (float(tensor), float(data), float(tensor * data), 2.0**doublings)
    for tensor, data in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 4), (1, 8))
    for doublings in range(2, 11)
)
"""Tensor, attention data and expert parallelism and concurrent requests of replicas; submissions take the fastest."""
LENGTHS: Final = ("input_tokens", "output_tokens", "input_tokens_cv", "output_tokens_cv")
LIMITS: Final = ("time_to_first_token_limit_s", "time_per_output_token_limit_s")
TAILS: Final = ("time_to_first_token_tail_s", "time_per_output_token_tail_s")
BENCHMARK_PERCENTILE: Final = 0.99
"""Share of the requests of a benchmark that keep its limits."""


class Rows(NamedTuple):
    """Points as columns: words of each row, quantities of decode and of prefill, numbers that only residuals use."""

    words: list[dict[str, str]]
    decode: pl.DataFrame
    prefill: pl.DataFrame
    load: pl.DataFrame


def rows_of(points: Sequence[Point]) -> Rows:
    """Return points as columns; where their cache does not fit at once, with the requests that run, and others waiting.

    Engines admit requests while the cache holds the prompt and a share of the answer of each.
    """
    words, *numbers = zip(*points, strict=True)
    decode, prefill, load = map(pl.DataFrame, numbers)
    room = evaluate(decode, ("requests_in_memory",), assume=True).select("requests_in_memory")
    flying, reserved = pl.col("concurrent_requests"), pl.Series(_of_engine(words, "reserved_output_share"))
    tokens = pl.col("input_tokens") + pl.col("output_tokens") * reserved
    admitted = pl.col("requests_in_memory") * calibration.ADMITTED_SHARE
    admitted *= (pl.col("input_tokens") + pl.col("output_tokens")) / tokens
    shared = (pl.col("prefill_separate") == 0.0) & (pl.col("requests_in_memory") >= 1.0)
    waiting = decode.hstack(room).select(pl.when(shared).then(flying / admitted).clip(1.0).fill_null(1.0)).to_series()
    decode, prefill = (side.with_columns(flying / waiting) for side in (decode, prefill))
    return Rows(list(words), decode, prefill, load.with_columns(waiting=waiting))


def _of_engine(words: Sequence[Mapping[str, str]], name: str) -> list[float]:
    """Return a constant of each row's engine."""
    known = {engine: constants(engine)[name] for engine in {row["engine"] for row in words}}
    return [known[row["engine"]] for row in words]


class Physics(NamedTuple):
    """Results of the formulas for rows, what their backlog depends on, and the features of both residuals."""

    decode: pl.DataFrame
    prompts: pl.DataFrame
    ttft: np.ndarray
    tpot: np.ndarray
    ttft_features: np.ndarray
    tpot_features: np.ndarray


def _queued(rows: Rows, decode_step_s: pl.Series) -> pl.DataFrame:
    """Return the quantities of prefill with the queue and the overhead of a request of each row's engine.

    Where prompts and answers share accelerators, a first token also waits for some decode steps of the others, and for
    more where the engine balances prompts over groups of attention data parallelism.
    """
    names = ("queued_share", "serving_request_s", "first_token_steps", "balancing_steps")
    share, overhead, steps, balancing = (pl.Series(_of_engine(rows.words, name)) for name in names)
    steps += balancing * (rows.decode["attention_data_parallel"] > 1.0)
    overhead += steps * decode_step_s * (1.0 - rows.decode["prefill_separate"])
    given = {"queued_prefills": share * rows.prefill["concurrent_requests"], "serving_request_s": overhead}
    return rows.prefill.with_columns(**{name: each for name, each in given.items() if name not in rows.prefill.columns})


def _of(function: Callable[..., Any], *frames: pl.DataFrame) -> Any:
    """Return the results of a function, of quantities of the first frame that has each."""
    names = arguments(function)
    return function(*(next(frame[name] for frame in frames if name in frame.columns).to_numpy() for name in names))


def physics(rows: Rows) -> Physics:
    """Return latencies by the formulas alone, none where weights exceed the memory that prompts and decode share."""
    import numpy as np

    decode, load = rows.decode, rows.load
    decoded = evaluate(decode, DECODE, assume=True)
    prefill = _queued(rows, decoded["decode_step_s"])
    filled = evaluate(prefill, PREFILL, assume=True)
    prompts = filled.select("prefill_s").hstack(prefill.select("concurrent_requests"))
    prompts = prompts.hstack(decode.select("output_tokens", "prefill_separate"))
    per_token, waiting = decoded["time_per_output_token_s"].to_numpy(), load["waiting"].to_numpy()
    held = decoded["served_weight_bytes"] <= decode["accelerator_memory_bytes"]
    per_token = np.where(held | (decode["prefill_separate"] > 0.0), per_token, np.nan)
    backlog = prompts["prefill_separate"].to_numpy() * _of(prefill_backlog_s, prompts, decoded)
    first = waiting * (filled["time_to_first_token_s"].to_numpy() + backlog)
    first += (waiting - 1.0) * (decode["output_tokens"].to_numpy() - 1.0) * per_token
    step = decoded.select("decode_step_s", "requests_in_memory", "draft_step_tokens")
    ttft = _of(ttft_features, load, pl.DataFrame({"time_to_first_token_s": first}), step, filled, prefill)
    tpot = _of(tpot_features, filled.select("prefill_s"), decode, decoded, load)
    return Physics(decoded, prompts, first, per_token, np.column_stack(ttft), np.column_stack(tpot))


@cache
def measured() -> tuple[Rows, Physics, np.ndarray, np.ndarray]:
    """Return the points of the table serving_points, their physics, and their residuals of both latencies."""
    import numpy as np

    frame = table("serving_points").collect()
    rows = rows_of([read_point(row) for row in frame.iter_rows(named=True)])
    found = physics(rows)
    ttft = np.log(frame["silicon_ttft_ms"].to_numpy() / 1e3 / found.ttft)
    return rows, found, ttft, np.log(frame["silicon_tpot_ms"].to_numpy() / 1e3 / found.tpot)


@cache
def newest() -> float:
    """Return the month of the newest measured points, after the end of 2025."""
    return float(measured()[0].load["month"].max())  # type: ignore[arg-type]


def known(target: str) -> tuple[list[dict[str, str]], np.ndarray, np.ndarray]:
    """Return words, features and residuals of the shipped rows of one target: ``ttft``, ``tpot`` or ``benchmark``."""
    if target == "benchmark":
        return benchmark_residuals()
    rows, found, ttft, tpot = measured()
    return (rows.words, found.ttft_features, ttft) if target == "ttft" else (rows.words, found.tpot_features, tpot)


@cache
def process(target: str) -> Process:
    """Return the posterior of one target given the shipped rows."""
    return Process(target, *known(target))


def without(target: str, groups: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return residuals of the shipped rows of a target and half widths, each row without those of its group."""
    words, features, residual = known(target)
    values = constants(target)
    mean, variance = left_out(precision_of(values, words, features), bounded(values, residual), groups)
    return mean, widened(values, words, variance)


def latencies(rows: Rows, *, intervals: bool = True) -> dict[str, np.ndarray]:
    """Return time to first token and per output token of rows, and output tokens per second, with 90 % intervals."""
    found = physics(rows)
    first = process("ttft").predict(rows.words, found.ttft_features, intervals=intervals)
    following = process("tpot").predict(rows.words, found.tpot_features, intervals=intervals)
    columns = summary(rows, found, *first, *following)
    return columns if intervals else {name: columns[name] for name in ("ttft_s", "tpot_s", "tokens_per_s")}


def summary(
    rows: Rows, found: Physics, first: np.ndarray, ttft_half: np.ndarray, following: np.ndarray, tpot_half: np.ndarray
) -> dict[str, np.ndarray]:
    """Return latencies of residuals with intervals, and the throughput of the requests in flight (Little's law).

    No residual makes prompts faster than their accelerators compute them: a first token takes at least their backlog.
    """
    import numpy as np

    tpot = found.tpot * np.exp(following)
    slower = pl.when(prefill_separate=0.0).then(pl.Series(np.exp(following))).otherwise(1.0)
    prompts = found.prompts.with_columns(pl.col("prefill_s") * slower, time_per_output_token_s=pl.Series(tpot))
    ttft = np.maximum(found.ttft * np.exp(first), _of(prefill_backlog_s, prompts))
    tokens, requests = rows.decode["output_tokens"].to_numpy(), rows.load["concurrency"].to_numpy()
    decoding = (tokens - 1.0) * tpot
    rate = requests * tokens / (ttft + decoding)
    share = ttft / (ttft + decoding)
    half = np.sqrt((share * ttft_half) ** 2 + ((1.0 - share) * tpot_half) ** 2)
    columns = {}
    for name, value, width in (("ttft", ttft, ttft_half), ("tpot", tpot, tpot_half)):
        low, high = value * np.exp(-width), value * np.exp(width)
        columns |= {f"{name}_s": value, f"{name}_low_s": low, f"{name}_high_s": high}
    low, high = rate * np.exp(-half), rate * np.exp(half)
    return columns | {"tokens_per_s": rate, "tokens_per_s_low": low, "tokens_per_s_high": high}


@cache
def benchmarks() -> dict[str, dict[str, float]]:
    """Return the lengths of requests of the table serving_benchmarks, and their variation, by architecture."""
    rows = table("serving_benchmarks").group_by("architecture").agg(pl.col(LENGTHS).drop_nulls().first()).collect()
    stated = ({name: value for name, value in row.items() if value is not None} for row in rows.iter_rows(named=True))
    return {str(row.pop("architecture")): row for row in stated}


@cache
def latency_limits() -> dict[tuple[str, str], tuple[float, float]]:
    """Return the limits of both latencies that scenarios of benchmarks have, by architecture and scenario."""
    rows = table("serving_benchmarks").drop_nulls("scenario").select("architecture", "scenario", *TAILS).collect()
    return {(model, scenario): (first, following) for model, scenario, first, following in rows.iter_rows()}


def read_submission(row: Mapping[str, Any]) -> Point:
    """Return a row of the table inference_results in the vocabulary, with a replica that decodes.

    By default it has the narrowest format of its chip; raise if its chip or benchmark is unknown.
    """
    stated = str(row.get("accelerator_stated") or "").partition(",")[0]
    specification = chip(stated.partition("(x")[0] or str(row.get("processor")))
    model = architecture_of(str(row["benchmark"]))
    if model not in benchmarks():
        raise FactorykitError(
            f"benchmark {row['benchmark']!r} has no known lengths; known are {', '.join(benchmarks())}"
        )
    scenario = points.word_of("scenario", row.get("scenario"), points.SCENARIOS)
    narrowest = next((name for name in ("fp4", "fp8") if specification.get(f"peak_{name}_flop_per_s")), "int8")
    width = number_format({"weight_data_types": narrowest, **{name: cell for name, cell in row.items() if cell}})
    shape = {name: float(value) for name, value in architecture(model).items()}
    replica = {**shape, **hardware(specification, width), "kv_bytes_per_element": 1.0}
    replica |= {**benchmarks()[model], "latency_percentile": BENCHMARK_PERCENTILE}
    software = str(row.get("software") or "").partition(" ")[0].strip(",").lower()
    words = {"engine": software, "chip": str(specification["accelerator"]), "model": model, "format": width}
    count = float(row.get("nodes") or 1.0) * float(row.get("accelerators_per_node") or (8.0 if stated else 1.0))
    limits = latency_limits().get((model, scenario), (math.inf, math.inf))
    load = {"accelerators": count, **dict(zip(LIMITS, limits, strict=True))}
    return Point(words | {"mode": scenario}, replica, {}, load)


def benchmark_tokens_per_s(submissions: Sequence[Point]) -> np.ndarray:
    """Return output tokens per second of the fastest replica that fits and keeps the limits, over all accelerators."""
    names = ("tensor_parallel", "attention_data_parallel", "expert_parallel", "concurrent_requests")
    layouts = pl.DataFrame(BENCHMARK_LAYOUTS, schema=names, orient="row")
    loads = pl.DataFrame([submission.load for submission in submissions]).with_row_index("row")
    replicas = pl.DataFrame([submission.decode for submission in submissions])
    frame = replicas.hstack(loads).join(layouts, how="cross")
    outputs = ("requests_in_memory", "time_per_output_token_s", "prefill_s", "replica_accelerators", *TAILS)
    found = frame.hstack(evaluate(frame.drop(loads.columns), outputs, assume=True).select(outputs))
    latency = pl.col("output_tokens") * pl.col("time_per_output_token_s") + pl.col("prefill_s")
    replica = pl.col("concurrent_requests") * pl.col("output_tokens") / latency
    fits = pl.col("requests_in_memory") >= pl.col("concurrent_requests")
    kept = [pl.col(tail) <= pl.col(limit) for tail, limit in zip(TAILS, LIMITS, strict=True)]
    rate = pl.when(fits, *kept).then(replica * pl.col("accelerators") / pl.col("replica_accelerators"))
    return found.group_by("row", maintain_order=True).agg(rate.max().alias("rate"))["rate"].to_numpy()


def benchmark_features(submissions: Sequence[Point]) -> np.ndarray:
    """Return the one feature of a submission: the logarithm of its accelerators."""
    import numpy as np

    return np.log2([submission.load["accelerators"] for submission in submissions])[:, np.newaxis] / 3.0 - 1.0


def benchmark_residuals() -> tuple[list[dict[str, str]], np.ndarray, np.ndarray]:
    """Return words, features and residuals of the submissions of the table inference_results that can be predicted."""
    import numpy as np

    ready, rates = [], []
    for row in table("inference_results").collect().iter_rows(named=True):
        try:
            ready.append(read_submission(row))
        except FactorykitError:
            continue
        rates.append(row["tokens_per_s"])
    residual = np.log(np.array(rates) / benchmark_tokens_per_s(ready))
    return [submission.words for submission in ready], benchmark_features(ready), residual


def benchmark_rates(submissions: Sequence[Point], groups: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Return output tokens per second of submissions with 90 % intervals; of the shipped ones without their groups."""
    import numpy as np

    if groups is None:
        words = [submission.words for submission in submissions]
        shift, half = process("benchmark").predict(words, benchmark_features(submissions))
    else:
        shift, half = without("benchmark", groups)
    rate = benchmark_tokens_per_s(submissions) * np.exp(shift)
    low, high = rate * np.exp(-half), rate * np.exp(half)
    return {"tokens_per_s": rate, "tokens_per_s_low": low, "tokens_per_s_high": high}
