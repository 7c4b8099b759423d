"""The page *Serve* gives the results of :func:`factorykit.serve`, in Node and in a browser."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import factorykit as fk
from factorykit.core.errors import ScenarioError
from factorykit.site.planner import launch_script, serving

ASK = Path(__file__).with_name("ask_serving.mjs")
BLANK = "<!doctype html><title>Serve</title><div data-factorykit-serve></div><script src=serve.js></script>"
BLANK += "<script src=plan-launch.js></script>"
ANSWERED = "() => { const d = document.querySelector('[data-asked]')?.dataset; return d && d.answered === d.asked; }"
CHIPS = ("h100_sxm", "h200_sxm", "b200", "gb200", "a100_sxm_80gb", "mi300x", "l40s", "tpu_v6e")
MODELS = ("llama3_70b", "deepseek_v3", "qwen3_235b", "gpt_oss_120b", "llama3_8b", "minimax_m2", "nemotron_h_56b")
MOVED = {
    "rental_usd_per_accelerator_h": (0.5, 12.0),
    "cached_input_share": (0.0, 0.95),
    "draft_tokens": (1.0, 4.0),
    "serving_load_share": (0.3, 1.0),
    "pue": (1.02, 1.6),
}
COMPARED = (
    "accelerators",
    "requests_per_s",
    "users",
    "tokens_per_s_per_accelerator",
    "usd_per_million_output_tokens",
    "j_per_token",
    "latency_s",
)
LAYOUT = ("tensor_parallel", "attention_data_parallel", "prefill_tensor_parallel", "concurrent_requests")


def _random_question(chance: random.Random, number: int) -> dict[str, Any]:
    limits = {"ttft": 10.0 ** chance.uniform(-1.0, 1.0), "tpot": 10.0 ** chance.uniform(-2.3, -1.0)}
    load = [{}, {"users": 10.0 ** chance.uniform(1.0, 5.0)}, {"fleet": chance.randint(8, 500)}][number % 3]
    given = {} if load else {"requests_per_s": 10.0 ** chance.uniform(-1.0, 3.0)}
    given |= {name: 2.0 ** chance.randint(7, 14) for name in ("input_tokens", "output_tokens")}
    moved = chance.sample(sorted(MOVED), chance.randint(0, 3))
    return load | {
        "model": chance.choice(MODELS),
        "chips": chance.sample(CHIPS, chance.randint(1, 2)),
        "precision": chance.choice(("bf16", "fp8", "fp4", "int4")),
        "engine": chance.choice(("vllm", "sglang", "trtllm")),
        "objective": chance.choice(("cost_usd_per_h", "accelerators", "j_per_token")),
        "limits": dict(chance.sample(sorted(limits.items()), chance.randint(0, 2))),
        "given": given | {name: chance.uniform(*MOVED[name]) for name in moved},
    }


def _python(question: dict[str, Any]) -> fk.ServingPlan:
    model, limits, given = (question[name] for name in ("model", "limits", "given"))
    rest = {name: question[name] for name in ("chips", "precision", "engine", "users", "fleet") if name in question}
    rest |= {} if "fleet" in question else {"objective": question["objective"]}
    others = {name: value for name, value in given.items() if name != "requests_per_s"}
    return fk.serve(model, load=given.get("requests_per_s"), **rest, **limits, **others)


@pytest.fixture(scope="module")
def asked(node: str, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Random questions of loads, users and fleets with the answers of the engine of the page."""
    chance = random.Random(29)
    questions = [_random_question(chance, number) for number in range(12)]
    for question, limits in zip(questions, ({"ttft": 9.0}, {"tpot": 0.05}), strict=False):
        question["given"]["output_tokens"], question["limits"] = 1.0, limits
    questions[2] |= {"model": "qwen3_235b", "chips": ["h100_sxm"], "precision": "bf16"}  # best on two nodes
    folder = tmp_path_factory.mktemp("serving")
    (folder / "model.js").write_text(serving.model_script(), encoding="utf-8")
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    (folder / "launch.js").write_text(launch_script(), encoding="utf-8")
    command = [node, str(ASK), *(str(folder / name) for name in ("model.js", "questions.json", "launch.js"))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return list(zip(questions, json.loads(ran.stdout), strict=True))


@pytest.mark.filterwarnings("ignore:.*is taken for all")
def test_random_questions_equal_python(asked: list[Any]) -> None:
    for question, found in asked:
        if "refused" in found:
            with pytest.raises(ScenarioError, match=re.escape(found["refused"])):
                _python(question)
            continue
        plan = _python(question)
        best, wanted = found["best"], plan.best
        assert best["chip"] == wanted["accelerator"], question
        assert list(plan.breaks) == found["breaks"]
        assert found["script"] == fk.launch(wanted, question["engine"])
        for name in LAYOUT:
            assert best[name] == wanted[name], (name, question)
        ends = [f"{name}_{end}" for name in COMPARED for end in ("low", "high")]
        times = [f"{name}{end}_s" for name in ("ttft", "tpot") for end in ("", "_low", "_high")]
        for name in (*COMPARED, *ends, *times, "limit_probability", "expected_cost_ratio", "measured_points"):
            expected = wanted[name] and pytest.approx(wanted[name], rel=1e-9)  # null without a second token
            assert best.get(name) == expected, (name, question)


def test_the_script_is_small() -> None:
    assert len(gzip.compress(serving.script().encode())) < 150_000


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_link_brings_the_answer_of_python_on_a_phone(chromium: Any, tmp_path: Path) -> None:
    (tmp_path / "serve.js").write_text(serving.script(), encoding="utf-8")
    (tmp_path / "plan-launch.js").write_text(launch_script(), encoding="utf-8")
    (tmp_path / "serve.html").write_text(BLANK, encoding="utf-8")
    context, wrong = chromium.new_context(viewport={"width": 390, "height": 844}), []
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"file://{tmp_path}/serve.html?v=1&model=llama3_8b&chips=h100_sxm,l40s&requests_per_s=20&pue=0.1")
    page.wait_for_function(ANSWERED)
    best = fk.serve("llama3_8b", ("h100_sxm", "l40s"), load=20.0, ttft=2.0, tpot=0.05).best
    answer = page.text_content(".fkp-says")
    assert answer.startswith(f"{best['accelerators']:.0f} NVIDIA {best['accelerator'][:4].upper()}")
    assert f"{best['usd_per_million_output_tokens']:.3g} USD" in answer
    assert "weights in FP8, vLLM" in answer
    page.click("text=Bash script")
    assert page.input_value('[aria-label="Launch script"]') == fk.launch(best, "vllm")
    assert "0.1 is outside [1, inf)" in page.text_content(".fkp-noted")
    assert page.locator(".fkp-compare tbody tr").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.fill('input[name="time_per_output_token_s"]', "20")
    page.press('input[name="time_per_output_token_s"]', "Enter")
    assert "has no unit; give '20 ms'" in page.text_content(".fkp-left")
    page.fill('input[name="requests_per_s"]', "")
    page.press('input[name="requests_per_s"]', "Enter")
    page.wait_for_function("document.querySelector('.fkp-refused').textContent.includes('got none')")
    page.fill('input[name="requests_per_s"]', "20")
    page.press('input[name="requests_per_s"]', "Enter")
    page.fill('input[name="time_per_output_token_s"]', "1 ms")
    page.press('input[name="time_per_output_token_s"]', "Enter")
    page.wait_for_function(ANSWERED)
    assert "ms, above 1 ms." in page.text_content(".fkp-says")
    assert "time_per_output_token_s=1e-3" in page.url
    page.click("text=Python")
    assert 'tpot="0.001 s"' in page.input_value(".fkp-text")
    context.close()
    assert not wrong
