"""Launch scripts state every setting of a plan, and a shell splits them as meant."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import factorykit as fk
from factorykit.core.errors import MissingQuantity, ScenarioError, UnknownName
from factorykit.core.vocabulary import vocabulary

TRAINING = {
    "megatron_lm": ("--{}-model-parallel-size", "--context-parallel-size", " "),
    "megatron_bridge": ("model.{}_model_parallel_size", "model.context_parallel_size", "="),
    "torchtitan": ("--parallelism.{}_parallel_degree", "--parallelism.context_parallel_degree", " "),
}
RUN = {
    **fk.architecture("deepseek_v3"), "tokens": "14.8T", "sequence_length": 4096, "accelerator": "h800",
    "precision": "fp8", "accelerators": 2048, "accelerators_per_node": 8, "global_batch_size": 15360,
    "tensor_parallel": 1, "pipeline_parallel": 16, "expert_parallel": 64, "micro_batch_size": 1, "zero_stage": 1,
    "recompute": "modules", "schedule": "dualpipe", "checkpoint_interval_s": 1800,
}  # fmt: skip
"""The published run of DeepSeek-V3."""


def arguments(script: str, tmp_path: Path) -> list[str]:
    """Run a script with stand-ins for its programs; return the arguments that they get."""
    for name in ("srun", "vllm", "python3", "trtllm-serve", "scripts/training/train.sh"):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
        program.chmod(0o755)
    (tmp_path / "scontrol").write_text("#!/bin/bash\necho n1; echo n2\n")
    (tmp_path / "scontrol").chmod(0o755)
    names = ("MODEL", "RECIPE", "MODULE", "CONFIG", "SLURM_JOB_NODELIST")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **dict.fromkeys(names, "mine")}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def value(found: list[str], option: str, sign: str) -> float:
    if sign == " ":
        return float(found[found.index(option) + 1])
    return float(next(text for text in found if text.startswith(f"{option}=")).partition("=")[2])


def test_options_name_quantities_of_the_vocabulary():
    rows = fk.table("launch_options").collect().to_dicts()
    for row in rows:
        assert row["quantity"] in vocabulary()
        names = re.findall(r"[a-z]\w+", " ".join(re.findall(r"\{(.+?)\}", row["option"] or "")))
        assert set(names) <= vocabulary().keys() | {"ceil"}
        conditions = re.findall(r"(\w+)>?=[\w.]+(?:; |$)", row["condition"] or "nodes=1")
        assert conditions
        assert set(conditions) <= vocabulary().keys()


@pytest.mark.parametrize("framework", TRAINING)
def test_a_script_states_the_layout_of_the_run(framework: str, tmp_path: Path):
    degree, context, sign = TRAINING[framework]
    script = fk.launch(RUN, framework)
    found = arguments(script, tmp_path)
    assert value(found, degree.format("tensor"), sign) == 1.0
    assert value(found, degree.format("pipeline"), sign) == 16.0
    assert value(found, degree.format("expert"), sign) == 64.0
    assert value(found, context, sign) == 1.0
    per_node = "--gpus-per-node" if framework == "megatron_bridge" else "--nproc-per-node"
    nodes = "--nodes" if framework == "megatron_bridge" else "--nnodes"
    assert value(found, nodes, " ") * value(found, per_node, " ") == 2048.0
    assert f"# no option of {framework}: Pipeline schedule dualpipe" in script
    step = fk.evaluate({**RUN, "data_parallel": 128}, "step_s")["step_s"]
    interval = next(text for text in found if "interval" in text)
    every = float(interval.partition("=")[2] or found[found.index(interval) + 1])
    assert every == math.ceil(1800 / step)


def test_megatron_gets_the_published_architecture(tmp_path: Path):
    found = arguments(fk.launch(RUN, "megatron_lm"), tmp_path)
    assert "([0]*3+[1]*58)" in found
    published = {
        "--num-layers": 61, "--hidden-size": 7168, "--ffn-hidden-size": 18432, "--num-attention-heads": 128,
        "--q-lora-rank": 1536, "--kv-lora-rank": 512, "--qk-head-dim": 128, "--qk-pos-emb-head-dim": 64,
        "--v-head-dim": 128, "--num-experts": 256, "--moe-router-topk": 8, "--moe-ffn-hidden-size": 2048,
        "--moe-shared-expert-intermediate-size": 2048, "--seq-length": 4096, "--global-batch-size": 15360,
        "--train-iters": math.ceil(14.8e12 / (15360 * 4096)),
    }  # fmt: skip
    assert {name: value(found, name, " ") for name in published} == published


@pytest.mark.parametrize(
    ("framework", "wanted"),
    [
        ("vllm", "--tensor-parallel-size 4 --pipeline-parallel-size 2 --data-parallel-size 2 --max-num-seqs 32"),
        ("sglang", "--tp-size 8 --pp-size 2 --dp-size 2 --enable-dp-attention --max-running-requests 64"),
        ("trtllm", "--tp_size 8 --pp_size 2 --max_batch_size 32"),
    ],
)
def test_an_engine_gets_its_layout(framework: str, wanted: str, tmp_path: Path):
    layout = {"tensor_parallel": 4, "attention_data_parallel": 2, "pipeline_parallel": 2, "concurrent_requests": 64}
    assert wanted in " ".join(arguments(fk.launch(layout, framework), tmp_path))


def test_a_serving_plan_starts_its_engine_and_states_its_latency():
    found = fk.serve("llama3_8b", "h100_sxm", load=5.0, tpot="30 ms")
    script = fk.launch(found.best, found.best["engine"])
    assert f"--tensor-parallel-size {found.best['tensor_parallel']:.0f}" in script
    assert f"Time per output token {fk.quantity('time_per_output_token_s').text(found.best['tpot_s'])}" in script


@pytest.mark.parametrize(
    ("settings", "framework", "error", "words"),
    [
        ({"tensor_parallel": 8}, "megatron_lm", MissingQuantity, "accelerators"),
        ({**RUN, "nodes": 9}, "megatron_lm", ScenarioError, "nodes"),
        ({"tensor_parallel": 8}, "vlm", UnknownName, "vllm"),
        ({"tensor_parallel": 0}, "vllm", ScenarioError, "tensor_parallel"),
    ],
)
def test_settings_that_start_nothing_are_refused(settings: dict[str, Any], framework: str, error: type, words: str):
    with pytest.raises(error, match=words):
        fk.launch(settings, framework)
