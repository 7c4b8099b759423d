"""Layouts of training runs: degrees of parallelism, batch, sharding and micro-batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, Final

from factorykit.core.errors import ScenarioError
from factorykit.engine.providers import frameworks
from factorykit.engine.providers.accelerators import chip_in
from factorykit.engine.rules import EDGE_LAYERS
from factorykit.model.performance.run_cells import RECIPE_YEAR

TENSOR_DEGREES: Final = (1.0, 2.0, 4.0, 8.0)
PIPELINE_DEGREES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
EXPERT_DEGREES: Final = (1.0, 8.0, 16.0, 32.0, 64.0)
"""Degrees that are tried where a source states no layout; operators choose the fastest that fits."""
LAYOUT_DEGREES: Final = 5
"""Inputs that are assumed where a source states no layout: tensor, pipeline, virtual, context and expert degree."""
MICRO_BATCHES: Final = (1, 2, 4, 8, 16, 32)
"""Micro-batch sizes that are tried where a source states none; operators choose the fastest that fits."""
SEQUENCES_PER_REPLICA: Final = 8.0
"""Sequences of each replica per step where a source states a throughput without pipelines and no batch, on which it
hardly depends."""
DEFAULT_BATCH_TOKENS: Final = 4_194_304.0
"""Tokens of a batch where a source does not state them, as in LLaMA, BLOOM, PaLM and Falcon."""
MAX_BATCH_ROUNDING: Final = 0.05
"""Deviation of a batch in tokens from whole sequences on every replica; 2 to the power 20 is 4.9 % more than 1e6."""


def degrees_to_try(row: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return the degrees that a completed row without a layout may have. Models on TPUs are not split."""
    if row["accelerator_count"] == 1.0 or any(row.get(n) is not None for n in ("tp", "pp", "zero_stage", "sharding")):
        return []
    is_torus = chip_in(row.get("accelerator")).get("kind", "TPU") == "TPU"
    splits = ((1.0,), (1.0,)) if is_torus else (TENSOR_DEGREES, PIPELINE_DEGREES)
    experts = row.get("experts") or 0.0
    possible = [degree for degree in EXPERT_DEGREES if degree == 1.0 or (experts > 1.0 and experts % degree == 0.0)]
    return [{"tp": tp, "pp": pp, "ep": ep} for tp, pp, ep in itertools.product(*splits, possible)]


def quantities(row: Mapping[str, Any], software: Mapping[str, Any], year: float, assumed: list[str]) -> dict[str, Any]:
    """Return the degrees, batch and sharding of a row; raise if they do not fit each other."""
    count = row["accelerator_count"]
    tensor, pipeline, context, expert, chunks = _degrees(row, assumed)
    is_split, replicas = tensor * pipeline * context > 1.0, count / (tensor * pipeline * context)
    batch = (row.get("global_batch_tokens") or 0.0) / row["seq_len"]
    whole = round(batch / replicas) * replicas
    batch = row.get("global_batch") or (whole if abs(whole - batch) <= MAX_BATCH_ROUNDING * batch else batch)
    batch = batch or _batch(row, replicas, assumed)
    if batch < replicas:
        if "layout" not in assumed or replicas % batch:
            raise ScenarioError(f"a batch of {batch:g} sequences is less than {replicas:g} data-parallel copies")
        context *= replicas / batch
    stage, ranks = _zero_stage(row, is_split, year, assumed), count / (tensor * pipeline)
    return {
        "accelerators": count,
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "context_parallel": context,
        "expert_parallel": expert,
        "expert_tensor_parallel": row.get("etp") or (tensor if expert == 1.0 else 1.0),
        "virtual_stages": chunks,
        "global_batch_size": batch,
        "zero_stage": max(software["zero_stage"], 1.0) if stage == 1.0 else stage,
        "optimizer_shards": min(row.get("optimizer_shards") or math.inf, ranks) if stage >= 1.0 else 1.0,
        "schedule": row.get("schedule") or "1f1b",
    }


def _degrees(row: Mapping[str, Any], assumed: list[str]) -> tuple[float, float, float, float, float]:
    """Return tensor, pipeline, context and expert degree and the chunks of a stage, if they divide the run."""
    count = row["accelerator_count"]
    if row.get("tp") is None and row.get("pp") is None and count > 1.0:
        assumed.append("layout")
    tensor, pipeline, context = (1.0 if row.get(name) is None else row[name] for name in ("tp", "pp", "cp"))
    if min(tensor, pipeline, context) < 1.0:
        raise ScenarioError(f"tp {tensor:g}, pp {pipeline:g}, cp {context:g}: a degree is less than one")
    replicas = count / (tensor * pipeline * context)
    if replicas < 1 or replicas != math.floor(replicas):
        raise ScenarioError(f"tp {tensor:g} times pp {pipeline:g} times cp {context:g} does not divide {count:g} chips")
    if row.get("dp") and row["dp"] not in (replicas, replicas * context):
        assumed.append("data_parallel")
    if row["heads"] % tensor:
        raise ScenarioError(f"{row['heads']:g} heads do not divide by tp {tensor:g}")
    if pipeline > row["layers"]:
        raise ScenarioError(f"pp {pipeline:g} is more than {row['layers']:g} layers")
    expert, chunks = row.get("ep") or 1.0, row.get("vp") or 1.0
    if (count / pipeline) % expert:
        raise ScenarioError(f"ep {expert:g} does not divide the {count / pipeline:g} chips of a stage")
    if pipeline > 1.0 and pipeline * chunks > row["layers"] + 2.0:
        raise ScenarioError(f"pp {pipeline:g} times vp {chunks:g} is more than {row['layers']:g} layers")
    return tensor, pipeline, context, expert, chunks


def _batch(row: Mapping[str, Any], replicas: float, assumed: list[str]) -> float:
    """Return the sequences of a step by micro-batch and accumulation; one micro-batch per replica by default.

    >>> _batch({"micro_batch": 2.0, "gradient_accumulation_steps": 4.0}, 8.0, [])
    64.0
    """
    size, steps = row.get("micro_batch"), row.get("gradient_accumulation_steps")
    split = (row.get("tp") or 1.0) * (row.get("pp") or 1.0)
    tried, waits = "layout" in assumed and split > 1.0, (row.get("pp") or 1.0) > 1.0
    if size and not tried and not (steps is None and waits):
        assumed += ["global_batch_size"] * (steps is None)
        return size * replicas * (steps or 1.0)
    if not any(row.get(name) for name in ("tokens_per_s_per_gpu", "tflops_per_gpu", "mfu", "hfu")):
        raise ScenarioError(
            "no global batch is stated; give global_batch, global_batch_tokens, or micro_batch and "
            "gradient_accumulation_steps"
        )
    assumed.append("global_batch_size")
    if not (size or steps or tried or waits):
        return SEQUENCES_PER_REPLICA * replicas
    return max(round(DEFAULT_BATCH_TOKENS / row["seq_len"] / replicas), 1) * replicas


def _zero_stage(row: Mapping[str, Any], is_split: bool, year: float, assumed: list[str]) -> float:
    """Return the stage of sharding; without one that of the framework, or models that may not be split are sharded."""
    if row.get("zero_stage") is not None or row["accelerator_count"] == 1.0:
        return row.get("zero_stage") or 0.0
    is_unknown = "layout" in assumed and not is_split
    assumed.append("zero_stage")
    usual = frameworks.frameworks().get(str(row.get("framework")), {}).get("zero_stage")
    return 3.0 if is_unknown else float(year >= RECIPE_YEAR) if usual is None else usual


def micro_batches(row: Mapping[str, Any], layout: Mapping[str, Any], assumed: list[str]) -> list[tuple[float, float]]:
    """Return the possible micro-batches of a row, in sequences of all chips that share a model, and their number.

    >>> layout = {"accelerators": 64.0, "tensor_parallel": 4.0, "pipeline_parallel": 1.0, "context_parallel": 1.0}
    >>> micro_batches({"micro_batch": 6.0, "framework": "maxtext"}, {**layout, "global_batch_size": 384.0}, [])
    [(24.0, 1.0)]
    """
    batch, split = layout["global_batch_size"], layout["tensor_parallel"] * layout["pipeline_parallel"]
    replicas = layout["accelerators"] / (split * layout["context_parallel"])
    per_replica, size = batch / replicas, row.get("micro_batch")
    by_device = frameworks.frameworks().get(str(row.get("framework")), {}).get("batch_per_device")
    if size and by_device and size * layout["accelerators"] == batch:
        size = per_replica
    if not size or size > per_replica:
        assumed.append("micro_batch_size")
    possible = [float(size) for size in MICRO_BATCHES if per_replica % size == 0.0] or [1.0]
    sizes = [min(size, per_replica)] if size else possible
    return [(size, max(batch / (size * replicas), 1.0)) for size in sizes]


def chunks_of_a_stage(run: Mapping[str, Any], micro_batches: float, assumed: list[str]) -> float:
    """Return the chunks of a stage; where they are unknown, a layer each, or two in deep stages, as recipes have."""
    if "virtual_stages" not in assumed or micro_batches % run["pipeline_parallel"]:
        return run["virtual_stages"]
    stages = run["pipeline_parallel"]
    deep = min(math.ceil(run["layers"] / stages), (run["layers"] + EDGE_LAYERS) // stages)
    return float(deep if deep <= 8 else math.ceil(deep / 2))


def logits_layers(run: Mapping[str, Any]) -> float:
    """Return the layers with as much work as the logits, which balanced stages take into account."""
    block = 2.0 * (run["attention_heads"] + run["kv_heads"]) * run["head_size"]
    block += (2.0 + run["gated_ffn"]) * run["ffn_size"]
    return run["balanced_stages"] * run["vocabulary_size"] / block
