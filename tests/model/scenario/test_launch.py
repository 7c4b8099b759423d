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
from factorykit.model.scenario.launch import LIGHTER

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
        assert set(names) <= vocabulary().keys() | {"ceil", LIGHTER}
        conditions = re.findall(r"(\w+)>?=[\w.]+(?:; |$)", row["condition"] or "nodes=1")
        assert conditions
        assert set(conditions) <= vocabulary().keys() | {LIGHTER}


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


def stages(layout: str) -> list[str]:
    """Return the stages of a layout by the rules of Megatron-Core, in PipelineParallelLayerLayout.parse_str_to_list."""
    for pattern in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        layout = re.sub(pattern, lambda found: found[1] * int(found[2]), layout)
    return layout.split("|")


@pytest.mark.parametrize(
    ("model", "pipeline", "virtual"),
    [
        ("llama3_405b", 16, 1),
        ("llama3_405b", 16, 4),
        ("llama3_405b", 16, 8),
        ("deepseek_v3", 32, 1),
        ("gpt3_175b", 8, 6),
    ],
)
def test_layers_that_do_not_divide_stand_in_lighter_stages_at_both_ends(model: str, pipeline: int, virtual: int):
    """Llama 3 405B has one layer less on its first and its last stage: 126 of them on 128 chunks."""
    run = RUN | dict(fk.architecture(model)) | {"pipeline_parallel": pipeline, "virtual_stages": virtual}
    run |= {"global_batch_size": 2048, "expert_parallel": 1, "schedule": "1f1b", "recompute": "none"}
    layers, chunks = int(run["layers"]), pipeline * virtual
    for framework in ("megatron_lm", "megatron_bridge"):
        script = fk.launch(run, framework)
        layout = re.search(r"layout[= ]'(E.*L)'", script)
        if layers % chunks == 0:
            assert layout is None
            continue
        assert layout is not None
        found = stages(layout[1])
        counts = [stage.count("t") for stage in found]
        assert (len(found), sum(counts), max(counts)) == (chunks, layers, math.ceil(layers / chunks))
        assert (found[0][0], found[-1][-1]) == ("E", "L")
        assert counts[-1] == min(counts) == max(counts) - 1
        assert "virtual-stages-per" not in script


def test_stages_that_torchtitan_cannot_cut_are_a_comment():
    """Of 80 layers on 72 chunks 64 have one less; two layers a stage would make 41 stages, which it refuses."""
    run = RUN | dict(fk.architecture("llama3_70b")) | {"pipeline_parallel": 6, "virtual_stages": 12, "schedule": "1f1b"}
    run |= {"accelerators": 6 * 64, "global_batch_size": 3072, "expert_parallel": 1, "recompute": "none"}
    script = fk.launch(run, "torchtitan")
    assert "layers_per_stage" not in script
    assert "# no option of torchtitan: Virtual stages 12" in script


def test_layers_that_a_plan_recomputes_are_an_option_or_a_comment():
    """Of the layers of a stage, 126 / 16, as many are recomputed as the share says, rounded up."""
    run = RUN | dict(fk.architecture("llama3_405b")) | {"schedule": "1f1b", "recompute": "none", "expert_parallel": 1}
    for share, option in ((0.5, "full --recompute-method block --recompute-num-layers 4"), (0.0, "")):
        script = fk.launch(run | {"recompute_share": share}, "megatron_lm")
        assert ("--recompute" in script) == bool(option)
        assert option in script
        assert (
            "no option of torchtitan: Recomputed share" in fk.launch(run | {"recompute_share": share}, "torchtitan")
        ) == (share > 0.0)


@pytest.mark.parametrize(("layers", "less"), [(64, (0, 0)), (63, (0, 1)), (62, (1, 1))])
@pytest.mark.parametrize("virtual", [1, 2, 4])
def test_torchtitan_cuts_a_model_into_as_many_stages_as_planned(layers: int, less: tuple[int, int], virtual: int):
    """Its number of stages is that of the layers, and of those which the ends have less, by the layers of a stage."""
    run = RUN | dict(fk.architecture("gpt3_175b")) | {"layers": layers, "pipeline_parallel": 4, "schedule": "1f1b"}
    run |= {"global_batch_size": 2048, "recompute": "none", "expert_parallel": 1, "virtual_stages": virtual}
    script = fk.launch(run, "torchtitan")
    found = [re.search(rf"{end}_stage_less_layers (\d)", script) for end in ("first", "last")]
    assert tuple(1 if one is None else int(one[1]) for one in found) == less
    assert ("Interleaved1F1B" in script) == (virtual > 1)
    if virtual > 1:
        per_stage = re.search(r"layers_per_stage (\d+)", script)
        assert per_stage is not None
        assert math.ceil((layers + sum(less)) / int(per_stage[1])) == 4 * virtual


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
    script = fk.launch(found, found.best["engine"])
    assert f"--tensor-parallel-size {found.best['tensor_parallel']:.0f}" in script
    assert f"Time per output token {fk.quantity('time_per_output_token_s').text(found.best['tpot_s'])}" in script


@pytest.mark.parametrize("precision", ["fp4", "int8"])
def test_formats_that_only_engines_have_start_them(precision: str):
    found = fk.serve("llama3_8b", "b200", load=5.0, precision=precision)
    assert "vllm serve" in fk.launch(found, "vllm")


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


def test_a_plan_for_a_framework_takes_only_schedules_that_it_has():
    """DualPipe is DeepSeek's own: neither Megatron-LM nor torchtitan has it."""
    asked: dict[str, Any] = {"chips": "h100_sxm", "counts": 2048, "tensor_parallel": 2, "context_parallel": 2}
    free = fk.plan("deepseek_v3", **asked)
    assert free.scenario["schedule"] == "dualpipe"
    bound = fk.plan("deepseek_v3", **asked, framework="Megatron-LM")
    assert bound.scenario["schedule"] == "1f1b"
    assert "# no option" not in fk.launch(bound, "megatron_lm")
    cluster = {"accelerators": 256, "accelerator": "h100_sxm"}
    choices = {"tensor_parallel": [1], "micro_batch_size": [1], "zero_stage": [1], "recompute": ["none"]}
    found = fk.search("mixtral_8x7b", cluster, global_batch_size=1024, framework="torchtitan", choices=choices)
    assert found.select("schedule").unique().collect().to_series().to_list() == ["1f1b"]


@pytest.mark.parametrize(("pipeline", "steps"), [(1, "gradient_accumulation_steps"), (8, "num_pipeline_microbatches")])
def test_maxtext_gets_the_batch_by_device(pipeline: int, steps: str, tmp_path: Path):
    """Without a pipeline the global batch is that of a device times devices times accumulated steps."""
    run = RUN | dict(fk.architecture("llama3_70b")) | {"accelerator": "tpu_v5p", "precision": "bf16", "zero_stage": 3}
    run |= {"schedule": "1f1b", "recompute": "full", "expert_parallel": 1, "tensor_parallel": 4}
    run |= {"pipeline_parallel": pipeline, "micro_batch_size": 2, "global_batch_size": 2048}
    found = arguments(fk.launch(run, "maxtext"), tmp_path)
    of_device, count = value(found, "per_device_batch_size", "="), value(found, steps, "=")
    assert of_device * 2048 * (count if pipeline == 1 else 1) == 2048
    assert count == 2048 / (2 * 2048 / (4 * pipeline))
    assert value(found, "ici_tensor_parallelism", "=") == 4.0
    assert (f"ici_pipeline_parallelism={pipeline}" in found) == (pipeline > 1)
