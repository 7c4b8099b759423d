"""Studies: a hundred million rows to a folder, and the whole chain beside a loop that Numba fuses.

Numba is no part of the project: install it, or give its folder in PYTHONPATH.
"""

from __future__ import annotations

import importlib
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import factorykit as fk
from benchmarks import Missing, Row, median, pair, timed
from factorykit.engine.question import Question
from factorykit.formulas.expressions import as_text
from factorykit.model.uncertainty.study.parts import columns, evaluate_rows
from factorykit.model.uncertainty.sweep import Crossed

RUN = {"active_parameters": 405e9, "tokens": 15.6e12, "peak_flop_per_s": 989e12}
AXES = {
    "goodput": [0.5 + share / 100 for share in range(40)],
    "accelerators": [1000.0 + chips for chips in range(1600)],
    "mfu": [0.2 + share / 4000 for share in range(1600)],
}
"""Some hundred million rows."""
OUTPUTS = ["wall_days", "accelerator_hours"]

WHOLE = {
    **fk.architecture("llama_3_1_405b"),
    "accelerator": "h100_sxm",
    "precision": "bf16",
    "recompute": "none",
    "schedule": "1f1b",
    "tensor_parallel": 8.0,
    "pipeline_parallel": 16.0,
    "micro_batch_size": 1.0,
    "global_batch_size": 2048.0,
    "sequence_length": 8192.0,
    "accelerators": 16384.0,
}
ALONG = {
    "gemm_ceiling": np.linspace(0.6, 0.9, 40).tolist(),
    "tokens": np.linspace(1e12, 2e13, 40).tolist(),
    "accelerator_mtbf_s": np.linspace(1e8, 1e9, 40).tolist(),
    "pue": np.linspace(1.05, 1.5, 40).tolist(),
}
"""Step time, failures, power and money of one layout, at 2.6 million places."""


def to_a_folder() -> None:
    with tempfile.TemporaryDirectory() as folder:
        fk.sweep(RUN, AXES, OUTPUTS, out=Path(folder) / "study")


def by_hand() -> None:
    """Write the same rows with polars: axes crossed, two columns computed, streamed to one file."""
    first, *others = [pl.LazyFrame({name: values}) for name, values in AXES.items()]
    for axis in others:
        first = first.join(axis, how="cross", maintain_order="left_right")
    c = pl.col
    flop = 6.0 * RUN["active_parameters"] * RUN["tokens"]
    seconds = flop / (c("accelerators") * RUN["peak_flop_per_s"] * c("mfu")) / c("goodput")
    rows = first.with_columns(seconds=seconds).select(
        *AXES, wall_days=c("seconds") / 86400.0, accelerator_hours=c("accelerators") * c("seconds") / 3600.0
    )
    with tempfile.TemporaryDirectory() as folder:
        rows.sink_parquet(Path(folder) / "rows.parquet")


def whole_chain() -> Crossed:
    question = Question({**WHOLE}, assume=True)
    return Crossed({name: tuple(values) for name, values in ALONG.items()}, question)


def in_parts(design: Crossed) -> None:
    for number in range(design.parts):
        design.part(number)


def as_a_frame(design: Crossed) -> None:
    """Evaluate the same rows as a LazyFrame, which looks at each alone."""
    rows = pl.LazyFrame({"": [0]})
    for name, values in ALONG.items():
        rows = rows.join(pl.LazyFrame({name: values}), how="cross")
    evaluate_rows(design.question, rows.drop("")).collect(engine="streaming")


def fused(design: Crossed) -> Callable[[], None]:
    """Return the same arithmetic as one loop over the rows, compiled by Numba, that fills a column for each output."""
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        raise Missing("Numba is not installed") from None
    chain = design.question.over(ALONG).resolve()
    steps = chain.open_steps
    outputs = [step.quantity for step in steps if step.quantity in chain.outputs]
    lines = [f"    {step.quantity} = {as_text(step.term)}" for step in steps]
    filled = [f"    out[{i}, at] = {name}" for i, name in enumerate(outputs)]
    head = [f"def row({', '.join(ALONG)}, out, at):", *lines, *filled]
    space: dict[str, Any] = {**vars(math), "minimum": min, "maximum": max, "where": numba.njit(chosen)}
    exec("\n".join(head), space)
    row = numba.njit(space["row"])
    lengths, chunk = [len(values) for values in ALONG.values()], 2**17

    @numba.njit
    def stretch(first: int, last: int, a: Any, b: Any, c: Any, d: Any, out: Any) -> None:
        for number in range(first, last):
            w = number % len(d)
            z = number // len(d) % len(c)
            y = number // (len(d) * len(c)) % len(b)
            row(a[number // (len(d) * len(c) * len(b))], b[y], c[z], d[w], out, number - first)

    columns = [np.array(values) for values in ALONG.values()]

    def run() -> None:
        for first in range(0, math.prod(lengths), chunk):
            out = np.empty((len(outputs), chunk))
            stretch(first, min(first + chunk, math.prod(lengths)), *columns, out)

    return run


def chosen(condition: bool, value: float, otherwise: float) -> float:
    return value if condition else otherwise


def rows() -> Iterator[Row]:
    if shutil.disk_usage(tempfile.gettempdir()).free < 4e9:
        raise Missing("a folder of 2 GB does not fit the disk for temporary files")
    yield pair(
        "100 M rows, 2 outputs, to a folder", to_a_folder, "polars to one file", by_hand, at_most_ratio=1.15, runs=1
    )
    design = whole_chain()
    what = f"2.6 M rows, {len(columns(design.question, list(ALONG)))} columns"
    yield pair(
        what, lambda: in_parts(design), "as a LazyFrame", lambda: as_a_frame(design), at_most_ratio=1 / 1.5, runs=3
    )
    try:
        loop = fused(design)
    except Missing as missing:
        yield Row(
            what, "Numba", median([timed(lambda: in_parts(design)) for _ in range(3)]), None, why_alone=str(missing)
        )
        return
    yield pair(what, lambda: in_parts(design), "Numba, one fused loop", loop, at_most_ratio=3.0, runs=3)
