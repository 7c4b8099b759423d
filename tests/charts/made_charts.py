"""The live charts under test, of synthetic scenarios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

import factorykit as fk
from factorykit.charts import (
    checkpoint,
    compute,
    cost,
    diagnosis,
    energy,
    history,
    loader,
    network,
    operations,
    performance,
    reliability,
    serving,
    sites,
)
from factorykit.charts.finish import finish
from factorykit.charts.live import Live

LARGE = {
    "parameters": 405e9,
    "active_parameters": 405e9,
    "tokens": 15.6e12,
    "accelerators": 16384.0,
    "mfu": 0.41,
    "accelerator_mtbf_s": 1.8e8,
    "storage_write_bytes_per_s": 2e12,
}
SMALL = LARGE | {"parameters": 7e9, "active_parameters": 7e9, "tokens": 1e12, "accelerators": 512.0}
PRESETS = {"Large": LARGE, "Small": SMALL}
STEPS = {
    "Dense": {
        "accelerator": "h100_sxm",
        "layers": 80.0,
        "hidden_size": 8192.0,
        "attention_heads": 64.0,
        "kv_heads": 8.0,
        "ffn_size": 28672.0,
        "gated_ffn": 1.0,
        "vocabulary_size": 128256.0,
        "sequence_length": 8192.0,
        "accelerators": 512.0,
        "global_batch_size": 512.0,
        "micro_batch_size": 1.0,
        "tensor_parallel": 8.0,
        "pipeline_parallel": 4.0,
    }
}
CHIPS = {**STEPS, "Other chip": STEPS["Dense"] | {"accelerator": "mi300x", "precision": "fp8"}}
SERVED = {
    name: dict(fk.architecture(name)) | {"accelerator": "h100_sxm", "tensor_parallel": 2.0}
    for name in ("llama3_8b", "llama3_70b")
}
MAKERS: dict[str, Callable[[Any], Live]] = {
    "checkpoint": checkpoint.goodput_by_interval,
    "interval": checkpoint.interval_by_accelerators,
    "run": cost.time_and_cost,
    "cluster": compute.rate_and_power,
    "step": lambda _: performance.utilization_and_memory(CHIPS),
    "serving": lambda _: serving.replica(SERVED),
    "token": lambda _: serving.cost_of_a_token(SERVED),
}


TOPICS = (checkpoint, compute, cost, diagnosis, energy, loader, network, operations, reliability, sites)
READY: dict[str, Callable[[Any], Live]] = {
    f"{topic.__name__.rpartition('.')[2]}.{name}": make
    for topic in TOPICS
    for name, make in vars(topic).items()
    if callable(make)
    and getattr(make, "__annotations__", {}).get("return") == "Live"
    and name != "bring_up"
    and name[0] != "_"
}
SIZE = {"parameters": 405e9}
RUNS = {name: SIZE | dict(fk.preset(name)) for name in ("llama_3_1_405b", "deepseek_v3", "meta_24k", "gb200_nvl72")}
"""Every ready-made chart that takes runs, and runs for it."""


def wide() -> dict[str, Any]:
    """A chart whose legend and row labels are wider than a phone."""
    names = [f"one of many long names, number {n}" for n in range(8)]
    frame = pl.DataFrame({"name": names, "accelerators": [float(n + 1) for n in range(8)]})
    axis = alt.Axis(labelLimit=400)
    chart = alt.Chart(frame).mark_bar().encode(x="accelerators:Q", y=alt.Y("name:N", axis=axis), color="name:N")
    title = "Eight names with more words than fit on one line of a phone"
    return finish(chart, title, source="made up", description="Eight bars.").to_dict()


def months() -> dict[str, Any]:
    """A chart over time with two series, the second of which ends in a planned value."""
    rows = [
        (of, f"{year}-01", 1e9 * n * year % 7 + 1e9)
        for n, of in ((1, "largest"), (2, "all"))
        for year in range(2020, 2028)
    ]
    frame = pl.DataFrame(rows, ["of", "month", "value"], orient="row").with_columns(
        quantity=pl.lit("facility_power_w"), status=pl.when(month="2027-01").then(pl.lit("planned"))
    )
    return history.by_month(frame, title="Power", source="made up").to_dict()
