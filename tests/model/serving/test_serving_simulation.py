"""The queueing formulas against a request-level simulation, and traces of requests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.formulas.serving import latency, prefill
from factorykit.model.serving.trace import Trace

PROMPT, ANSWER, PREFILL_S = 1000.0, 200.0, 0.05
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def step_s(requests: float) -> float:
    return 0.01 + 1e-4 * requests


def steady_state(load: float, cv: float, percentile: float) -> dict[str, float]:
    """Latencies by the formulas, with the requests in flight by Little's law."""
    requests = 1.0
    for _ in range(600):
        tpot = latency.time_per_output_token_s(step_s(requests), 1.0, PREFILL_S, ANSWER, requests, 0.0)
        busy = prefill.prefill_utilization(requests, PREFILL_S, ANSWER, tpot, 1.0)
        queue = prefill.queued_prefills(busy, requests, cv)
        ttft = latency.time_to_first_token_s(PREFILL_S, 1.0, queue, 0.0, 0.0)
        requests = max(0.5 * (requests + load * latency.request_latency_s(ttft, tpot, ANSWER)), 1.0)
    tails = (ttft, PREFILL_S, queue, busy, cv, percentile)
    growing = step_s(requests) - step_s(0.0)
    share = latency.batch_time_share(tpot, growing, 1.0, PREFILL_S, requests, ANSWER, 0.0)
    return {
        "ttft": ttft,
        "tpot": tpot,
        "step": step_s(requests),
        "ttft_tail": latency.time_to_first_token_tail_s(*tails),
        "tpot_tail": latency.time_per_output_token_tail_s(tpot, share, requests, cv, cv, percentile),
        "latency_tail": latency.request_latency_tail_s(ttft, tpot, ANSWER, cv, percentile),
    }


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("load", [2.0, 5.0, 8.0])
def test_formulas_of_queueing_agree_with_the_simulation(load: float, cv: float) -> None:
    """Up to 56 % of the load that this replica can bear; prompts also wait for half of a decode step."""
    requests = Trace.drawn(5000, load, PROMPT, ANSWER, input_tokens_cv=cv, output_tokens_cv=cv, seed=1)
    found = fk.simulate_serving(requests, prefill_s=lambda n: PREFILL_S * n / PROMPT, decode_step_s=step_s)[500:]
    first, between, whole = (found[name] for name in found.columns[3:])
    mean, tail = steady_state(load, cv, 0.5), steady_state(load, cv, 0.95)
    per_token = (whole.sum() - first.sum()) / (found["output_tokens"] - 1.0).sum()
    assert first.mean() == pytest.approx(mean["ttft"] + 0.5 * mean["step"], rel=0.08)
    assert per_token == pytest.approx(mean["tpot"], rel=0.06)
    assert first.quantile(0.95) == pytest.approx(tail["ttft_tail"] + 0.5 * mean["step"], rel=0.12)
    assert between.drop_nulls().quantile(0.95) == pytest.approx(tail["tpot_tail"], rel=0.15)
    if cv:
        assert whole.quantile(0.95) == pytest.approx(tail["latency_tail"], rel=0.06)


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("load", [2.0, 5.0, 8.0, 10.0, 12.0])
def test_tails_of_the_time_per_token_agree_with_the_simulation_near_capacity(load: float, cv: float) -> None:
    """Up to 84 % of the load that this replica can bear."""
    requests = Trace.drawn(8000, load, PROMPT, ANSWER, input_tokens_cv=cv, output_tokens_cv=cv, seed=1)
    found = fk.simulate_serving(requests, prefill_s=lambda n: PREFILL_S * n / PROMPT, decode_step_s=step_s)[500:]
    between = found["time_per_output_token_s"].drop_nulls()
    for percentile, error in ((0.95, 0.13), (0.99, 0.17)):
        tail = steady_state(load, cv, percentile)["tpot_tail"]
        assert between.quantile(percentile) == pytest.approx(tail, rel=error)


def test_a_full_batch_makes_requests_wait() -> None:
    """Two requests at once on a batch of one: the second waits for the answer of the first, 10 steps of 20 ms."""
    two = pl.DataFrame({"arrival_s": [0.0, 0.0], "input_tokens": [100.0] * 2, "output_tokens": [11.0] * 2})
    found = fk.simulate_serving(
        two, prefill_s=lambda n: 0.1 + 0.0 * n, decode_step_s=lambda b: 0.02, concurrent_requests=1
    )
    assert found["time_to_first_token_s"].to_list() == pytest.approx([0.1, 0.4])
    assert found["request_latency_s"].to_list() == pytest.approx([0.3, 0.6])


def test_lengths_and_times_of_a_simulation_are_checked() -> None:
    bad = pl.DataFrame({"arrival_s": [0.0], "input_tokens": [100.0], "output_tokens": [0.0]})
    with pytest.raises(ScenarioError, match="lengths of at least 1"):
        fk.simulate_serving(bad, prefill_s=lambda n: n, decode_step_s=lambda b: b)


def test_a_trace_of_azure_is_read_and_its_problems_are_counted(tmp_path: Path) -> None:
    """Ten requests a second, then one after 30 s; one pair out of order, three rows that cannot be requests."""
    rows = [f"2023-11-16 18:15:{n // 10:02d}.{n % 10}680590,{100 + n % 2 * 200},50" for n in range(100)]
    rows[3], rows[4] = rows[4], rows[3]
    rows += [
        "2023-11-16 18:15:40.0000000,100,50",
        "2023-11-16 18:15:41.0,-3,50",
        "no time,100,50",
        "2023-11-16 18:15:42.0,100,",
    ]
    (tmp_path / "trace.csv").write_text(AZURE + "\n".join(rows))
    trace = fk.read_trace(tmp_path / "trace.csv")
    assert trace.problems == {"invalid": 3, "unordered": 1, "gaps": 1}
    assert trace.requests.height == 101
    assert trace.requests["arrival_s"].is_sorted()
    assert trace.quantities["input_tokens_cv"] == pytest.approx(0.5, rel=0.01)
    assert "3 invalid, 1 unordered, 1 gaps" in str(trace)
    assert trace.cached_input_share is None


def test_a_trace_of_hours_loads_its_busiest_one(tmp_path: Path) -> None:
    """One request a second for an hour, then one in four, and half an hour that is left out."""
    times = [*range(3600), *range(3600, 7200, 4), *range(7200, 9000)]
    lines = ["arrival_s,input_tokens,output_tokens", *(f"{at},100,50" for at in times)]
    (tmp_path / "trace.csv").write_text("\n".join(lines))
    trace = fk.read_trace(tmp_path / "trace.csv")
    assert trace.hourly() == [1.0, 0.25]
    assert trace.quantities["requests_per_s"] == 1.0


def test_a_trace_of_mooncake_says_which_blocks_are_cached(tmp_path: Path) -> None:
    """The second prompt repeats one of two blocks, the third both of its own: 512 + 600 of 2,800 tokens."""
    rows = [(0, 1000, [1, 2]), (1000, 1200, [1, 3, 2]), (3000, 600, [1, 3])]
    lines = [
        json.dumps({"timestamp": at, "input_length": size, "output_length": 10, "hash_ids": blocks})
        for at, size, blocks in rows
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join([*lines, "{broken", '{"timestamp": 4000, "input_length": true, "output_length": 1}']))
    trace = fk.read_trace(path)
    assert trace.problems["invalid"] == 2
    assert trace.quantities["requests_per_s"] == pytest.approx(2.0 / 3.0)
    assert trace.cached_input_share == pytest.approx((512.0 + 600.0) / 2800.0)


def test_a_trace_is_a_load_to_serve() -> None:
    trace = Trace.drawn(400, 5.0, 2000.0, 300.0, input_tokens_cv=0.7)
    given = trace.quantities
    plan = fk.serve("llama3_8b", "h100_sxm", load=trace)
    assert plan.best["input_tokens"] == pytest.approx(given["input_tokens"])
    assert plan.best["replicas"] * plan.best["tokens_per_s"] >= given["requests_per_s"] * given["output_tokens"]
    assert "input_tokens_cv" not in plan.assumed["quantity"]
    assert fk.serve("llama3_8b", "h100_sxm", load=trace, input_tokens=500).best["input_tokens"] == 500.0


@pytest.mark.parametrize("text", ["", "a,b\n1,2", "{}", AZURE, AZURE + "2023-11-16 18:15:46.1,5,5"])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "trace").write_text(text)
    with pytest.raises(ScenarioError, match="must have"):
        fk.read_trace(tmp_path / "trace")


def test_drawn_lengths_have_the_given_mean_and_variation() -> None:
    found = Trace.drawn(20_000, 3.0, 1000.0, 200.0, input_tokens_cv=0.5, seed=2).quantities
    wanted = {"requests_per_s": 3.0, "input_tokens": 1000.0, "output_tokens": 200.0, "input_tokens_cv": 0.5}
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=0.03)
    assert np.isclose(found["output_tokens_cv"], 1.0, rtol=0.05)


@pytest.mark.parametrize("wrong", [(0, 5.0, 100.0, 100.0), (10, 0.0, 100.0, 100.0), (10, 5.0, "8k", 100.0)])
def test_requests_that_cannot_be_drawn_are_refused(wrong: tuple) -> None:
    with pytest.raises(ScenarioError):
        Trace.drawn(*wrong)


def test_a_time_of_the_simulation_that_is_no_function_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"decode_step_s must be a function, .* got 0\.02"):
        fk.simulate_serving(Trace.drawn(10, "5/s", 100, 100), prefill_s=len, decode_step_s=0.02)  # type: ignore[arg-type]


def test_an_infinite_length_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("arrival_s,input_tokens,output_tokens\n0,9,4\n3,9,4\n7,inf,4\n")
    trace = fk.read_trace(tmp_path / "trace.csv")
    assert trace.problems["invalid"] == 1
    assert trace.quantities["input_tokens"] == 9.0


def test_a_trace_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        fk.read_trace(tmp_path / "absent.csv")
    (tmp_path / "zeros.csv").write_bytes(b"TIMESTAMP\0")
    with pytest.raises(ScenarioError, match="zero bytes"):
        fk.read_trace(tmp_path / "zeros.csv")
