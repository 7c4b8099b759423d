"""Layouts searched a second, beside the fastest public analytic tool's published rate."""

from __future__ import annotations

import time
from collections.abc import Iterator

import factorykit as fk
from benchmarks import Row

PUBLISHED_PER_S = 88.0
"""Evaluations a second and processor of calculon's search (caa4b11), those that do not fit counted."""
CLUSTER = {"accelerators": 512, "accelerator": "a100_sxm_80gb", "sequence_length": 2048}
FEW = {"context_parallel": [1, 2], "zero_stage": [0, 1], "schedule": ["1f1b"], "micro_batch_size": [1, 2, 4]}
WIDE = {
    "tensor_parallel": [1, 2, 4, 8],
    "context_parallel": [1, 2, 4, 8],
    "micro_batch_size": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256],
    "schedule": ["1f1b", "zb1p", "dualpipe", "interleaved"],
}


def timed(what: str, target: str, choices: dict[str, list[object]] | None, excluded: bool) -> Row:
    lazy = fk.search("gpt3_175b", CLUSTER, global_batch_size=1536, choices=choices, keep_excluded=excluded)
    count = fk.search("gpt3_175b", CLUSTER, global_batch_size=1536, choices=choices, keep_excluded=True)
    rows = count.select("excluded_by").collect().height
    start = time.perf_counter()
    lazy.collect()
    taken = time.perf_counter() - start
    return Row(f"{what}, {rows:,} layouts", "at 88 a second", taken, rows / PUBLISHED_PER_S, target)


def rows() -> Iterator[Row]:
    yield timed("GPT-3 on 512, all computed", "below 0.1 s per 10,000", FEW, True)
    yield timed("GPT-3 on 512, pruned", "below 60 s", None, False)
    yield timed("GPT-3 on 512, all computed", "below 10 s per million", WIDE, True)
