"""Layouts searched a second, beside Calculon, the fastest public analytic tool.

Calculon is on no package index: clone github.com/calculon-ai/calculon and give its folder in the variable CALCULON.
"""

from __future__ import annotations

import importlib
import itertools
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import factorykit as fk
from benchmarks import Missing, Row, median, timed

CLUSTER = {"accelerators": 512, "accelerator": "a100_sxm_80gb", "sequence_length": 2048}
FEW = {"context_parallel": [1, 2], "zero_stage": [0, 1], "schedule": ["1f1b"], "micro_batch_size": [1, 2, 4]}
WIDE = {
    "tensor_parallel": [1, 2, 4, 8],
    "context_parallel": [1, 2, 4, 8],
    "micro_batch_size": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256],
    "schedule": ["1f1b", "zb1p", "dualpipe", "interleaved"],
}
BATCH = 1536


def calculon_modules() -> tuple[Path, Any, Any, logging.Logger]:
    """Return Calculon's folder, its modules of models and systems, and its log."""
    folder = Path(os.environ.get("CALCULON", "-"))
    if not (folder / "calculon" / "llm").is_dir():
        raise Missing("Calculon is on no index; clone github.com/calculon-ai/calculon and set CALCULON to its folder")
    sys.path.insert(0, str(folder))
    try:
        llm, system = importlib.import_module("calculon.llm"), importlib.import_module("calculon.system")
    except ImportError as error:
        raise Missing(f"Calculon does not start: {error}") from error
    return folder, llm, system, logging.getLogger("calculon")


def calculon() -> Callable[[], int]:
    """Return a call that evaluates GPT-3 on 512 GPUs in many layouts and counts them, also those that do not fit."""
    folder, llm, system, logger = calculon_modules()
    model = llm.Llm.Application(json.loads((folder / "models" / "gpt3-175B.json").read_text()))
    cluster = system.System(json.loads((folder / "systems" / "a100_80g.json").read_text()))
    base = json.loads(next((folder / "examples").glob("*_full.json")).read_text())

    def layouts() -> Iterator[dict[str, Any]]:
        tensor, pipeline, micro = (1, 2, 4, 8), (1, 2, 4, 8, 16, 32), (1, 2, 4)
        for t, p, m, recompute in itertools.product(tensor, pipeline, micro, ("full", "attn_only", "none")):
            data = 512 // (t * p)
            if BATCH % (data * m) == 0:
                ways = {"tensor_par": t, "pipeline_par": p, "data_par": data, "microbatch_size": m}
                yield base | ways | {"num_procs": 512, "batch_size": BATCH, "activation_recompute": recompute}

    def run() -> int:
        count = 0
        for layout in layouts():
            count += 1
            try:
                one = llm.Llm(model, logger)
                one.compile(cluster, llm.Llm.Execution.from_json(layout))
                one.run(cluster)
            except llm.Llm.Error:
                continue
        return count

    return run


def rows() -> Iterator[Row]:
    try:
        rival, why_alone = calculon(), ""
    except Missing as missing:
        rival, why_alone = None, str(missing)
    tried = rival() if rival else 0
    ways: tuple[tuple[str, dict[str, Any] | None, bool, float], ...] = (
        ("all computed", FEW, True, 1e-5),
        ("pruned", None, False, 1e-5),
        ("all computed", WIDE, True, 1e-5),
    )
    for what, choices, excluded, at_most_s in ways:
        every = fk.search("gpt3_175b", CLUSTER, global_batch_size=BATCH, choices=choices, keep_excluded=True)
        layouts = every.select("excluded_by").collect().height
        wanted = fk.search("gpt3_175b", CLUSTER, global_batch_size=BATCH, choices=choices, keep_excluded=excluded)
        ours, theirs = [], []
        for _ in range(3):
            ours.append(timed(wanted.collect) / layouts)
            if rival:
                theirs.append(timed(rival) / tried)
        yield Row(
            f"a layout of GPT-3 on 512 of {layouts:,}, {what}", "Calculon, a layout", median(ours),
            median(theirs) if theirs else None, 0.01, at_most_s, why_alone,
        )  # fmt: skip
