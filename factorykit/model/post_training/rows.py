"""Published steps of post-training in the vocabulary: rollout and trainer of each row as two questions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from factorykit.core.errors import ScenarioError
from factorykit.engine.evaluate import evaluate
from factorykit.model.performance.search import search
from factorykit.model.serving.points import ALGORITHMS, OTHER, chip, hardware, model_of, number_in, word_of

PROMPT_TOKENS: Final = 110.0
"""Mean tokens of a prompt of the published rows: tokens per second times time, less the samples."""
ROLLOUT_MEMORY_SHARE: Final = 0.8
"""Share of the memory that engines of rollouts fill: the rest is the trainer's."""
LAYOUT: Final = ("tensor_parallel", "context_parallel", "expert_parallel", "pipeline_parallel")
PASSES: Final = {"grpo": 2.0, "dapo": 1.0, "ppo": 4.0, "sft": 0.0, "dpo": 1.0, "distillation": 1.0}
"""Forward passes over each sample: old policy and reference; without reference; with critic and reward model; of the
reference of preferences; of the teacher."""
OFFLINE: Final = ("sft", "dpo")
"""Algorithms that train on given sequences."""
ASSUMED: Final = {"generation_tp_pp": 0.1, "model": 0.2, "algorithm": 0.2}
"""What a row may lack, and the standard deviation of the logarithm of a step time without it."""
WEIGHTS: Final = 4.0
"""Bytes of memory for each parameter of a rollout replica, half of it for its cache."""


class Step(NamedTuple):
    """One step: questions about its rollout replica (none for given sequences) and trainer, and its own quantities."""

    rollout: dict[str, Any] | None
    trainer: dict[str, Any]
    step: dict[str, Any]
    assumed: tuple[str, ...] = ()


def read_step(row: Mapping[str, Any]) -> Step:
    """Return a row of the table rl_steps in the vocabulary; raise if a column that decides the time is missing."""
    prompt = number_in(row, "prompt_mean_sequence_length", PROMPT_TOKENS)
    answer = number_in(row, "generation_mean_sequence_length", None)
    key, shape = model_of({**row, "model_path": row.get("model")})
    section, policy = str(row.get("section")), str(row.get("policy") or "on policy").lower()
    lag = re.search(r"\d*\.?\d+", policy) or re.search(r"\bone\b|async|off", policy)
    if not lag and not re.match("on|sync|coloc", policy):
        raise ScenarioError(f"policy must be 'On policy' or give its lag, such as '1-step Off', got {policy!r}")
    off = 0.0 if not lag else float(lag[0]) if lag[0][-1].isdigit() else 1.0
    gpus = number_in(row, "gpus", None)
    samples = number_in(row, "prompts" if row.get("prompts") else "generation_global_batch", None)
    samples *= number_in(row, "samples_per_prompt") if row.get("prompts") else 1.0
    share = gpus if off == 0.0 else gpus / 2.0
    rollouts, accelerator = number_in(row, "rollout_gpus", share), str(chip(section)["accelerator"])
    algorithm = word_of("algorithm", row.get("algorithm"), ALGORITHMS, OTHER)
    least = evaluate(shape, ("parameters",))["parameters"] * WEIGHTS / memory_of({"accelerator": accelerator})
    layout = re.findall(r"\d+", str(row.get("generation_tp_pp") or 2 ** max(math.ceil(math.log2(least)), 0)))
    if not layout or not 1.0 <= float(layout[0]) <= rollouts:
        given = row.get("generation_tp_pp")
        raise ScenarioError(f"generation_tp_pp must begin with 1 to {rollouts:g}, such as '[1,1]', got {given!r}")
    text = str(row.get("train_tp_cp_ep_pp_vpp") or "").lower()
    named = dict(re.findall(r"([tcep]p)\D{0,3}(\d+)", text))
    trained = [named.get(f"{name}p", "1") for name in "tcep"] if named else re.findall(r"[\w/]+", text)
    degrees = [*trained[:3], *trained[max(3, len(trained) - 2) :][:1]]
    complete = len(degrees) == len(LAYOUT) and "".join(degrees).isdigit()
    step = step_of(
        shape,
        {"accelerator": accelerator},
        "fp8" if re.search("(?i)fp8", f"{section} {row.get('precision')}") else "bf16",
        trainer_accelerators=number_in(row, "trainer_gpus", share),
        rollout_accelerators=rollouts,
        rollout_tensor_parallel=0.0 if algorithm in OFFLINE else float(layout[0]),
        trainer_layout=dict(zip(LAYOUT, map(float, degrees), strict=True)) if complete else {},
        samples=samples,
        batch=number_in(row, "train_global_batch", samples),
        lengths=(prompt, answer, number_in(row, "train_max_sequence_length", None)),
        policy_lag_steps=off,
        forward_passes=PASSES.get(algorithm, PASSES["grpo"]),
        trained_models=2.0 if algorithm == "ppo" else 1.0,
    )
    read = {"model": key, "algorithm": algorithm, "generation_tp_pp": row.get("generation_tp_pp") or OTHER}
    return step._replace(assumed=tuple(name for name, word in read.items() if word == OTHER))


def step_of(
    shape: Mapping[str, Any],
    specified: Mapping[str, Any],
    precision: str,
    *,
    trainer_accelerators: float,
    rollout_accelerators: float,
    rollout_tensor_parallel: float,
    trainer_layout: Mapping[str, float],
    samples: float,
    batch: float,
    lengths: tuple[float, float, float],
    **step: float,
) -> Step:
    """Return a step of a model by its layout; ``lengths`` are the mean prompt and sample, and the limit of a sequence.

    ``specified`` has the name of the chip, and values of its own. The trainer packs samples into sequences of the
    limit. Without ``trainer_layout`` it has the fastest one that fits; without ``rollout_tensor_parallel`` there is no
    rollout.
    """
    prompt, answer, limit = lengths
    packed = batch * (prompt + answer) / limit
    trainer = {**shape, **specified, "accelerators": trainer_accelerators}
    trainer |= {"precision": precision, "lora_rank": step.pop("lora_rank", 0.0), "sequence_length": limit}
    trainer |= {"micro_batch_size": 1.0, "recompute": "full", "zero_stage": 1.0}
    trainer |= trainer_layout or fastest_layout(trainer, packed)
    width = trainer["tensor_parallel"] * trainer["context_parallel"] * trainer["pipeline_parallel"]
    groups = trainer_accelerators / width
    trainer["global_batch_size"] = groups * max(round(packed / groups), 1.0)
    own = {**step, "optimizer_updates": max(samples / batch, 1.0)}
    if not rollout_tensor_parallel:
        return Step(None, trainer, own)
    physical = hardware({**chip(specified["accelerator"]), **specified}, precision)
    rollout = {**shape, **physical, **{name: specified[name] for name in physical if name in specified}}
    rollout |= {"kv_bytes_per_element": 2.0, "serving_memory_share": ROLLOUT_MEMORY_SHARE}
    rollout |= {"tensor_parallel": rollout_tensor_parallel, "input_tokens": prompt, "output_tokens": answer}
    rollout |= {"rollout_samples": samples, "rollout_accelerators": rollout_accelerators}
    rollout |= {"output_limit_tokens": max(limit - prompt, answer), "policy_lag_steps": step["policy_lag_steps"]}
    return Step(rollout, trainer, own)


def fastest_layout(trainer: Mapping[str, Any], sequences: float) -> dict[str, float]:
    """Return the fastest layout of a trainer that fits in memory; of none that fits, the error names the sizes."""
    count = float(trainer["accelerators"])
    batch = count * max(round(sequences / count), 1.0)
    choices = {"virtual_stages": [1.0], "schedule": ["1f1b"]}
    best = search(trainer, trainer, global_batch_size=batch, choices=choices, assume=True).head(1).collect()
    if best.is_empty():
        memory = f"{memory_of(trainer) / 1e9:,.0f} GB"
        raise ScenarioError(
            f"the trainer fits on no layout of {count:,.0f} {trainer['accelerator']} of {memory} each; give more "
            "accelerators, shorter sequences or lora_rank"
        )
    return {name: float(best[name].item()) for name in LAYOUT}


def memory_of(specified: Mapping[str, Any]) -> float:
    """Return the memory of an accelerator [byte]."""
    return float({**chip(specified["accelerator"]), **specified}["accelerator_memory_bytes"])
