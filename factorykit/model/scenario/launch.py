"""Launch scripts: the settings of a plan as options of a training framework or an inference engine."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from factorykit.core import __version__
from factorykit.core.validation import mapping, one_of
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data.tables import table
from factorykit.engine.question import Question, read_value
from factorykit.model.validation.recipes import evaluate_recipe

EXPECTED: Final = ("step_s", "predicted_mfu", "memory_peak_bytes")
"""Results that a log of the run can be compared with."""
SERVED: Final = {"ttft_s": "time_to_first_token_s", "tpot_s": "time_per_output_token_s"}
"""The same of an engine: columns of a serving plan, and their quantities."""
LAYOUT: Final = (
    *("precision", "zero_stage", "pipeline_parallel", "virtual_stages", "schedule", "context_parallel"),
    *("expert_parallel", "recompute", "recompute_share", "offloaded_optimizer_share", "training_sites"),
    *("attention_data_parallel", "served_bytes_per_parameter", "kv_bytes_per_element", "prefill_separate"),
)
"""Settings that a script states where the framework has no option for them."""
LIGHTER: Final = "lighter_stages"
"""Stages, or chunks of interleaved ones, with a layer less than the fullest."""
BATCH: Final = "#SBATCH --nodes={nodes:.0f} --ntasks-per-node=1 --gpus-per-node={accelerators_per_node:.0f}"
HEAD_NODE: Final = 'HEAD_NODE=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'


def launch(settings: Any, framework: str) -> str:
    r"""Return the shell script that starts a training run or an inference engine with these settings.

    Parameters
    ----------
    settings
        Result of :func:`factorykit.plan` or :func:`factorykit.serve`, or the quantities of a layout as a mapping.
    framework
        For training megatron_lm, megatron_bridge, torchtitan or maxtext, for serving vllm, sglang or trtllm: those of
        the table ``launch_options``.

    Returns
    -------
    str
        A bash script; those of Megatron-LM and torchtitan are for ``sbatch``. Its comments state the expected step
        time or latency, and settings that are no option of the framework. Data, paths and other options are added in
        the variable ``OPTIONS``, the model of an engine in ``MODEL``.

    Raises
    ------
    UnknownName
        If the table has no options of the framework.
    FactorykitError
        If a setting is invalid, or the accelerators of a training run are not known.

    Examples
    --------
    >>> layout = {"tensor_parallel": 8, "pipeline_parallel": 2, "served_bytes_per_parameter": 1}
    >>> print(launch(layout, "vllm").partition("set -eu")[2].strip())
    exec vllm serve $MODEL --tensor-parallel-size 8 \
      --pipeline-parallel-size 2 \
      --quantization fp8 \
      ${OPTIONS:-}
    """
    settings = getattr(settings, "scenario", getattr(settings, "best", settings))
    every = table("launch_options").collect()
    framework = one_of("framework with launch options", framework, every["framework"].unique(maintain_order=True))
    rows = every.filter(framework=framework).to_dicts()
    values = _values(rows, mapping("settings", settings))
    options = [row for row in rows if _holds(row["condition"], values)]
    command = " \\\n  ".join(text for row in options if (text := _filled(row["option"] or "", values)))
    stated = (name for name in (*EXPECTED, *SERVED.values(), *LAYOUT) if name in values)
    shown = {name: f"{quantity(name).label} {quantity(name).text(values[name])}" for name in stated}
    expected = [shown[name] for name in (*EXPECTED, *SERVED.values()) if name in shown]
    lines = [f"# factorykit {__version__} expects: {', '.join(expected)}"] if expected else []
    expressed = {row["quantity"] for row in options}
    lines += [
        f"# no option of {framework}: {shown[name]}"
        for name in LAYOUT
        if name in shown and name not in expressed and values[name] not in (quantity(name).neutral, 0.0)
    ]
    is_batch = "$HEAD_NODE" in command
    head = ["#!/bin/bash", *([BATCH.format(**values)] if is_batch else []), *lines, "set -eu"]
    return "\n".join([*head, *([HEAD_NODE] if is_batch else []), f"exec {command} \\", "  ${OPTIONS:-}"]) + "\n"


def _values(rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the quantities of options and comments: of an engine as given, of a run computed where not given."""
    texts = " ".join(text for row in rows for text in (row["condition"], *_fields(row["option"])) if text)
    names = sorted({*re.findall(r"[a-z]\w+", texts), *LAYOUT, *EXPECTED} & vocabulary().keys())
    if "nodes" not in names:
        latencies = {name: settings.get(column) for column, name in SERVED.items()}
        given = {**settings, **latencies, "precision": None}  # formats of weights are others than those of products
        names += SERVED.values()
        return {name: read_value(quantity(name), given[name]) for name in names if given.get(name) is not None}
    question = Question.read(settings)
    question.asking("nodes").resolve()
    values = {name: found[name] for name in names if (found := question.get(name))}
    if stages := question.get("layers", "pipeline_parallel", "virtual_stages"):
        layers, *cuts = stages.values()
        values[LIGHTER] = -layers % math.prod(cuts)
    return values


def _holds(condition: str | None, values: Mapping[str, Any]) -> bool:
    """Return whether quantities have the values of a condition.

    >>> _holds("recompute=modules; experts>=1", {"recompute": "modules", "experts": 8.0})
    True
    """
    for name, sign, limit in re.findall(r"(\w+)(>?=)([\w.]+)", condition or ""):
        value = values.get(name)
        if value is None or (value < float(limit) if sign == ">=" else str(value) not in (limit, f"{limit}.0")):
            return False
    return True


def _fields(option: str | None) -> list[str]:
    return re.findall(r"\{(.+?)\}", option or "")


def _filled(option: str, values: Mapping[str, Any]) -> str:
    """Return an option with its numbers, or nothing if one of them is unknown.

    >>> _filled("--steps {ceil(training_steps)}", {"training_steps": 99.5})
    '--steps 100'
    """
    for field in _fields(option):
        names = [name for name in re.findall(r"[a-z]\w+", field) if name in vocabulary() or name == LIGHTER]
        if any(name not in values for name in names):
            return ""
        numbers = re.sub(r"[a-z]\w+", lambda name: repr(values.get(name[0], name[0])).strip("'"), field)
        option = option.replace(f"{{{field}}}", f"{evaluate_recipe(numbers).value:.15g}", 1)
    return option
