"""Forty questions of users, answered over the Model Context Protocol with the SDK's own client, in one session."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import pytest
from mcp import Client

import factorykit as fk
from factorykit import cli, mcp

LLAMA = {"preset": "llama_3_1_405b"}
RUN = {"active_parameters": "70B", "tokens": "15T", "accelerators": 4096, "accelerator": "h100_sxm"}
NODES = {"accelerators": 64, "accelerator": "h100_sxm"}
SMALL = {"model": "llama3_8b", "tokens": "1T", "chips": ["h100_sxm"]}


def ask(*outputs: str, **inputs: Any) -> tuple[str, dict[str, Any]]:
    return "evaluate", {"outputs": [*outputs], "inputs": inputs}


def of_llama(output: str, **inputs: Any) -> tuple[str, dict[str, Any]]:
    return "evaluate", {"outputs": [output], "inputs": inputs, **LLAMA}


def rows(name: str, key: str | None = None) -> tuple[str, dict[str, Any]]:
    return "table", {"name": name, "key": key}


def query(text: str) -> tuple[str, dict[str, Any]]:
    return "sql", {"query": text}


Call = tuple[str, dict[str, Any]]
QUESTIONS: dict[str, tuple[Call, str, Any]] = {
    # question: the call, the place of the answer, and the answer; a pair of numbers is a range
    "How many FLOP does a 405B model on 15.6T tokens need?": (
        ask("training_flop", active_parameters=405e9, tokens="15.6T"), "training_flop.value", (3.75e25, 3.85e25),
    ),
    "How long does a 70B model on 15T tokens take on 4096 H100?": (
        ask("training_days", **RUN), "training_days.value", 6 * 70e9 * 15e12 / (4096 * 989.4e12 * 0.4) / 86400,
    ),
    "How often does that cluster fail?": (ask("failures_per_day", **RUN), "failures_per_day.value", (1.8, 2.1)),
    "What is its electricity bill?": (
        ask("electricity_cost_usd", **RUN), "electricity_cost_usd.value", (1e5, 6e5),
    ),
    "How often did the cluster of Llama 3.1 fail?": (of_llama("failures_per_day"), "failures_per_day.value", 419 / 54),
    "How often should it write checkpoints?": (
        of_llama("checkpoint_interval_young_s"), "checkpoint_interval_young_s.value", (200, 600),
    ),
    "What is its goodput?": (of_llama("goodput"), "goodput.value", (0.90, 0.95)),
    "And with hourly checkpoints?": (of_llama("goodput", checkpoint_interval_s="1 h"), "goodput.value", (0.75, 0.83)),
    "How much power does a facility of 16,384 H100 draw?": (
        ask("facility_power_w", accelerators=16384, accelerator="h100_sxm"), "facility_power_w.value", (14e6, 24e6),
    ),
    "What does renting 1000 accelerators for 30 days at 2.5 USD cost?": (
        ask("rental_cost_usd", accelerators=1000, wall_days=30, rental_usd_per_accelerator_h=2.5),
        "rental_cost_usd.value", 1000 * 30 * 24 * 2.5,
    ),
    "How many tokens are compute-optimal for 8B parameters?": (
        ask("compute_optimal_tokens", active_parameters="8B"), "compute_optimal_tokens.value", 20 * 8e9,
    ),
    "Why is the MTBF of Llama's cluster three hours?": (
        ("explain", {"output": "cluster_mtbf_s", **LLAMA}), "", "cluster_mtbf_s = 3.09 h = accelerator_mtbf_s / acc",
    ),
    "Where does its training time come from?": (
        ("explain", {"output": "training_days", **LLAMA}), "", "[llama3_paper",
    ),
    "How is the failure rate of my cluster computed?": (
        ("explain", {"output": "failures_per_day", "inputs": RUN}), "", "accelerator_mtbf_s",
    ),
    "Which hardware for an 8B model on 1T tokens in 30 days?": (
        ("plan", {**SMALL, "counts": [32, 64], "deadline": "30 d", "launch": "megatron_lm"}), "", "64 NVIDIA H100",
    ),
    "What does it cost on 64 H100?": (
        ("plan", {**SMALL, "chips": "H100", "counts": "64", "inputs": {"precision": ["bf16", "fp8"]}}), "", "USD"
    ),
    "How was DeepSeek-V3 trained?": (
        ("plan", {"model": "deepseek_v3", "as_run": True}), "", "2,048 NVIDIA H800",
    ),
    "How do I serve Llama 3 70B at 20 requests per second?": (
        ("serve", {"model": "llama3_70b", "load": "20/s", "tpot": 0.1, "inputs": {"pue": 1.2}}), "tpot_s", (0.0, 0.1),
    ),
    "Which layout is best for Llama 3 8B on 64 H100?": (
        ("search", {"model": "llama3_8b", "cluster": NODES, "global_batch_size": 128}), "0.tensor_parallel", 1,
    ),
    "Does GPT-3 fit on 64 H100?": (
        ("search", {"model": "GPT-3 175B", "cluster": {**NODES, "accelerator": "H100"}, "global_batch_size": "64"}),
        "0.memory_peak_bytes",
        (4e10, 8e10),
    ),
    "Which published claims are wrong?": (("audit", {"verdict": "disagrees"}), "0.verdict", "disagrees"),
    "Do the numbers of the first document hold?": (("audit", {"document": "seed_000"}), "0.document", "seed_000"),
    "What is wrong with the bisection of Grand Teton?": (("audit", {"claim": "C000_008"}), "0.recomputed", 3.6e12),
    "How fast is an H100?": (rows("Accelerators", "H100"), "0.peak_16bit_flop_per_s", 989.4e12),
    "How much memory has an A100?": (rows("accelerators", "a100_sxm_80gb"), "0.accelerator_memory_bytes", 80e9),
    "Which accelerators are known?": (rows("accelerators"), "0.vendor", "NVIDIA"),
    "What do cloud providers ask?": (rows("rental_offers"), "0.rental_usd_per_accelerator_h", (0.1, 20)),
    "How large is Meta's 24K cluster?": (rows("clusters", "meta_24k"), "0.accelerators", 24576),
    "How many accelerators train at night?": (
        (
            "life",
            {
                "model": "llama3_8b", "post_train": {"accelerators": 16}, "requests_per_s": [400.0] * 12 + [40.0] * 12,
                "serve": {"load": 400, "chips": "h100_sxm"},
            },
        ),
        "23.training_accelerators", (7, 17),
    ),
    "How was Llama 3.1 405B trained?": (rows("runs", "llama_3_1_405b"), "0.accelerators", 16384),
    "How do I split 64 H100 between rollouts and training of an 8B model?": (
        (
            "post_train",
            {"model": "llama3_8b", "accelerators": "64", "chips": ["H100"], "inputs": {"output_tokens": 1000}},
        ),
        "step_s", (1, 600),
    ),
    "What does a year of serving an 8B model after GRPO cost?": (
        (
            "life",
            {"model": "llama3_70b", "post_train": {"model": "llama3_8b", "accelerators": 64}, "serve": {"load": 20}},
        ),
        "2.usd",
        (1e4, 1e6),
    ),
    "How uncertain is the MTBF of an accelerator?": (rows("ranges", "accelerator_mtbf_s"), "0.low", (8e7, 1.3e8)),
    "How many clusters are in the data?": (query("select count(*) as n from clusters"), "0.n", (600, 2000)),
    "Which chip has the most memory?": (
        query("select accelerator_memory_bytes from accelerators order by 1 desc nulls last limit 1"),
        "0.accelerator_memory_bytes", (4e11, 1e12),
    ),
    "Which vendor has most accelerators in the table?": (
        query("select vendor, count(*) as n from accelerators group by 1 order by 2 desc"), "0.vendor", "NVIDIA",
    ),
    "What is the cheapest H100?": (
        query("select rental_usd_per_accelerator_h, source from rental_offers where accelerator='h100_sxm' order by 1"),
        "0.rental_usd_per_accelerator_h", (0.5, 2.5),
    ),
    "How many sources are cited?": (query("select count(*) as n from sources"), "0.n", (300, 2000)),
    "How many published claims were recomputed?": (query("select count(*) as n from claims"), "0.n", 452),
    "Which country has the cheapest industrial electricity?": (
        query("select country, electricity_usd_per_kwh, source from electricity order by 2 limit 1"),
        "0.electricity_usd_per_kwh", (0.0, 0.05),
    ),
}  # fmt: skip
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "sql": ({"query": "drop table clusters"}, "must be a SELECT"),
    "evaluate": ({"outputs": ["trainingdays"]}, "nearest is 'training_days'"),
    "table": ({"name": "clusters", "key": "meta_24"}, "meta_24k"),
    "plan": ({"model": "llama3_8b", "chips": ["h1000"]}, "h100"),
    "audit": ({"claim": "c999"}, "claim"),
    "search": ({"model": "llama3_8b", "cluster": NODES, "global_batch_size": 128, "rows": -1}, "rows must be"),
    "post_train": ({"model": "llama3_8b", "accelerators": 8, "inputs": {"lora": 8}}, "nearest is 'lora_rank'"),
    "life": ({"model": "llama3_8b", "post_train": {"gpus": 64}}, "no argument of post_train 'gpus'"),
    "serve": ({"model": "llama3_70b", "load": 20, "chip": "b200"}, "no argument 'chip'; nearest is 'chips'"),
    "serve ": ({"model": "llama3_70b", "load": 20, "trace": "trace.csv"}, "load and trace contradict each other"),
    "serve  ": ({"model": "llama3_70b", "inputs": {"load": 20}}, "load is an argument of the tool"),
}
EXACT = {"training_flop", "rental_cost_usd", "compute_optimal_tokens"}


@pytest.fixture(scope="module")
def session() -> dict[str, Any]:
    async def asked() -> dict[str, Any]:
        async with Client(mcp.server()) as client:
            answers = {question: await client.call_tool(*call) for question, (call, *_) in QUESTIONS.items()}
            for tool, (arguments, _) in REFUSED.items():
                answers[tool] = await client.call_tool(tool.strip(), arguments)
            uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
            for uri in (*uris, "factorykit://tables/accelerators", "factorykit://notebooks/00-start"):
                answers[uri] = (await client.read_resource(uri)).contents[0].text
            return answers

    with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
        return thread.submit(asyncio.run, asked()).result()


def test_there_are_forty_questions_for_every_tool() -> None:
    assert len(QUESTIONS) == 40
    assert {call[0] for call, *_ in QUESTIONS.values()} == {tool.__name__ for tool in mcp.TOOLS}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_with_units_intervals_assumptions_sources_and_version(
    question: str, session: dict[str, Any]
) -> None:
    assert not session[question].is_error, session[question].content
    content = session[question].structured_content
    (tool, _), place, expected = QUESTIONS[question]
    answer = content["answer"]
    for step in filter(None, place.split(".")):
        answer = answer[int(step) if step.isdigit() else step]
    match expected:
        case (low, high):
            assert low < answer < high
        case str():
            assert expected in answer
        case _:
            assert answer == pytest.approx(expected, rel=1e-3)
    assert content["version"] == fk.__version__
    assert content["sources"] or not content["assumptions"]
    assert {"units", "intervals", "assumptions"} <= content.keys()
    if tool in ("evaluate", "explain", "plan", "serve", "search"):
        assert content["units"]
        assert content["intervals"] or not content["assumptions"] or {*content["answer"]} <= EXACT


@pytest.mark.parametrize("tool", REFUSED)
def test_a_mistake_is_explained(tool: str, session: dict[str, Any]) -> None:
    assert session[tool].is_error
    assert REFUSED[tool][1] in session[tool].content[0].text


def test_a_plan_has_the_script_that_starts_it(session: dict[str, Any]) -> None:
    content = session["Which hardware for an 8B model on 1T tokens in 30 days?"].structured_content
    assert "#SBATCH --nodes=8 " in content["script"]


def test_a_value_has_unit_interval_assumptions_and_sources(session: dict[str, Any]) -> None:
    content = session["How often does that cluster fail?"].structured_content
    found = content["answer"]["failures_per_day"]
    low, high = found["interval"]
    assert found["unit"] == content["units"]["failures_per_day"] == "1/d"
    assert low < found["value"] == fk.evaluate(RUN, "failures_per_day", assume=True)["failures_per_day"] < high
    assert [row["quantity"] for row in content["assumptions"]] == ["accelerator_mtbf_s"]
    cited = {row["quantity"]: row["source"] for row in content["sources"]}
    assert cited["accelerator_mtbf_s"].startswith("computed: llama3_paper")
    flop = session["How many FLOP does a 405B model on 15.6T tokens need?"].structured_content
    assert flop["answer"]["training_flop"]["interval"] is None  # nothing was assumed


def test_the_range_of_an_assumed_mfu_is_that_of_published_runs() -> None:
    large = pl.col("mfu").is_not_null(), pl.col("accelerator_count") >= 1024, pl.col("lora_rank").is_null()
    by_source = fk.table("training_runs").filter(*large).group_by("source").agg(pl.col("mfu").median()).collect()
    stated = fk.table("ranges").filter(quantity="mfu").collect()
    for end, share in (("low", 0.05), ("high", 0.95)):
        assert stated[end].item() == pytest.approx(by_source["mfu"].quantile(share), abs=0.005)
    assert f"{by_source.height} sources" in stated["locator"].item()


def test_plans_layouts_and_services_have_intervals_and_a_table_has_the_rows_of_its_sources(
    session: dict[str, Any],
) -> None:
    for question, result in {
        "What does it cost on 64 H100?": "run_cost_usd",
        "Which layout is best for Llama 3 8B on 64 H100?": "step_s",
        "How do I serve Llama 3 70B at 20 requests per second?": "tpot_s",
    }.items():
        content = session[question].structured_content
        values = content.get("values", content["answer"])
        low, high = content["intervals"][result]
        assert low < (values[0] if isinstance(values, list) else values)[result] < high
    h100 = session["How fast is an H100?"].structured_content
    assert {row["accelerator"] for row in h100["sources"]} == {"h100_sxm"}
    cheapest = session["What is the cheapest H100?"].structured_content
    assert {row["source"] for row in cheapest["sources"]} == {row["source"] for row in cheapest["answer"]}


def test_resources_list_tables_vocabulary_and_notebooks(session: dict[str, Any]) -> None:
    read = {uri: json.loads(session[uri]) for uri in session if uri.startswith("factorykit") and "00-" not in uri}
    assert {row["table"] for row in read["factorykit://tables"]} == set(fk.tables()["table"])
    assert [row["name"] for row in read["factorykit://vocabulary"]] == fk.quantities()["name"].to_list()
    assert len(read["factorykit://tables/accelerators"]) == fk.table("accelerators").collect().height
    assert read["factorykit://notebooks"][0] == "00-start"
    assert "```python" in session["factorykit://notebooks/00-start"]


def test_the_command_line_prints_the_schema_of_a_tool(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(cli.main, ["schema", "plan"]).result() == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["required"] == ["model"]
    assert {"tokens", "deadline", "budget", "power"} < set(schema["properties"])
