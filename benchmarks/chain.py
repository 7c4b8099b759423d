"""Ten million rows from parameters to cost, beside the same arithmetic by hand in polars and NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

import factorykit as fk
from benchmarks import Row, pair

ROWS = 10_000_000
OUTPUTS = [
    "training_flop",
    "cluster_peak_flop_per_s",
    "training_s",
    "training_days",
    "cluster_mtbf_s",
    "failures_per_day",
    "checkpoint_bytes",
    "checkpoint_write_s",
    "checkpoint_interval_s",
    "goodput",
    "wall_s",
    "wall_days",
    "accelerator_hours",
    "nodes",
    "node_power_w",
    "it_power_w",
    "facility_power_w",
    "training_energy_kwh",
    "electricity_cost_usd",
    "rental_cost_usd",
]
RANGES = {
    "parameters": (1e9, 1e12),
    "active_parameters": (1e9, 1e12),
    "tokens": (1e11, 1e13),
    "accelerators": (8, 1e5),
    "accelerators_per_node": (4, 72),
    "peak_flop_per_s": (1e14, 2e15),
    "mfu": (0.2, 0.6),
    "accelerator_mtbf_s": (1e8, 1e9),
    "restart_s": (60, 1200),
    "downtime_s": (1, 600),
    "checkpoint_bytes_per_parameter": (12, 16),
    "storage_write_bytes_per_s": (1e11, 1e13),
    "accelerator_power_w": (400, 1000),
    "node_overhead_power_w": (1e3, 5e3),
    "pue": (1.05, 1.5),
    "electricity_usd_per_kwh": (0.03, 0.2),
    "rental_usd_per_accelerator_h": (1, 5),
}
VARYING = ("active_parameters", "tokens", "accelerators", "mfu")
CONSTANT = {
    "accelerators_per_node": 8.0,
    "peak_flop_per_s": 989e12,
    "accelerator_mtbf_s": 1.8e8,
    "accelerator_power_w": 700.0,
    "node_overhead_power_w": 3000.0,
    "pue": 1.1,
    "electricity_usd_per_kwh": 0.06,
    "rental_usd_per_accelerator_h": 2.0,
}
ARITHMETIC = [
    "training_flop",
    "cluster_peak_flop_per_s",
    "training_s",
    "training_days",
    "cluster_mtbf_s",
    "failures_per_day",
    "nodes",
    "node_power_w",
    "it_power_w",
    "facility_power_w",
    "annual_energy_kwh",
    "annual_electricity_cost_usd",
    "cluster_usd_per_h",
]


def inputs() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({name: rng.uniform(low, high, ROWS) for name, (low, high) in RANGES.items()})
    return frame.with_columns(pl.max_horizontal("parameters", "active_parameters").alias("parameters"))


def by_hand_in_polars(frame: pl.LazyFrame) -> pl.LazyFrame:
    c = pl.col

    def expm1(x: pl.Expr) -> pl.Expr:
        return (0.5 * x).tanh() * (x.exp() + 1.0)

    return (
        frame.with_columns(
            training_flop=6.0 * c("active_parameters") * c("tokens"),
            cluster_peak_flop_per_s=c("accelerators") * c("peak_flop_per_s"),
            cluster_mtbf_s=c("accelerator_mtbf_s") / c("accelerators"),
            checkpoint_bytes=c("parameters") * c("checkpoint_bytes_per_parameter"),
            nodes=c("accelerators") / c("accelerators_per_node"),
            node_power_w=c("accelerators_per_node") * c("accelerator_power_w") + c("node_overhead_power_w"),
        )
        .with_columns(
            training_s=c("training_flop") / (c("cluster_peak_flop_per_s") * c("mfu")),
            failures_per_day=86400.0 / c("cluster_mtbf_s"),
            checkpoint_write_s=c("checkpoint_bytes") / c("storage_write_bytes_per_s"),
            it_power_w=c("nodes") * c("node_power_w"),
        )
        .with_columns(
            training_days=c("training_s") / 86400.0,
            facility_power_w=c("it_power_w") * c("pue"),
            ratio=c("checkpoint_write_s") / c("cluster_mtbf_s"),
        )
        .with_columns(p=(-2.0 * expm1(-c("ratio"))).sqrt())
        .with_columns(start=c("p") * (1 + 16 / 45 * c("p")) / (1 + c("p") * (31 / 45 + 83 / 1080 * c("p"))))
        .with_columns(decay=expm1(-(c("start") + c("ratio"))))
        .with_columns(root=c("start") + (c("start") + c("decay")) / c("decay"))
        .with_columns(decay=expm1(-(c("root") + c("ratio"))))
        .with_columns(root=c("root") + (c("root") + c("decay")) / c("decay"))
        .with_columns(
            checkpoint_interval_s=c("cluster_mtbf_s") * pl.when(c("ratio") < 1e-5).then(c("start")).otherwise(c("root"))
        )
        .with_columns(
            goodput=c("checkpoint_interval_s")
            / (
                (c("cluster_mtbf_s") + c("downtime_s"))
                * (c("restart_s") / c("cluster_mtbf_s")).exp()
                * expm1((c("checkpoint_interval_s") + c("checkpoint_write_s")) / c("cluster_mtbf_s"))
            )
        )
        .with_columns(wall_s=c("training_s") / c("goodput"))
        .with_columns(
            wall_days=c("wall_s") / 86400.0,
            accelerator_hours=c("accelerators") * c("wall_s") / 3600.0,
            training_energy_kwh=c("facility_power_w") * c("wall_s") / 3.6e6,
        )
        .with_columns(
            electricity_cost_usd=c("training_energy_kwh") * c("electricity_usd_per_kwh"),
            rental_cost_usd=c("accelerator_hours") * c("rental_usd_per_accelerator_h"),
        )
        .select(*RANGES, *OUTPUTS)
    )


def arithmetic_in_polars(frame: pl.DataFrame) -> pl.DataFrame:
    """Multiply and divide as :data:`ARITHMETIC` does; constants are columns here, too."""
    c = pl.col
    return (
        frame.lazy()
        .with_columns(
            training_flop=6.0 * c("active_parameters") * c("tokens"),
            cluster_peak_flop_per_s=c("accelerators") * c("peak_flop_per_s"),
            cluster_mtbf_s=c("accelerator_mtbf_s") / c("accelerators"),
            nodes=c("accelerators") / c("accelerators_per_node"),
            node_power_w=c("accelerators_per_node") * c("accelerator_power_w") + c("node_overhead_power_w"),
            cluster_usd_per_h=c("accelerators") * c("rental_usd_per_accelerator_h"),
        )
        .with_columns(
            training_s=c("training_flop") / (c("cluster_peak_flop_per_s") * c("mfu")),
            failures_per_day=86400.0 / c("cluster_mtbf_s"),
            it_power_w=c("nodes") * c("node_power_w"),
        )
        .with_columns(training_days=c("training_s") / 86400.0, facility_power_w=c("it_power_w") * c("pue"))
        .with_columns(annual_energy_kwh=c("facility_power_w") * 8.76)
        .with_columns(annual_electricity_cost_usd=c("annual_energy_kwh") * c("electricity_usd_per_kwh"))
        .select(*VARYING, *CONSTANT, *ARITHMETIC)
        .collect()
    )


def by_hand_in_numpy(c: dict[str, Any]) -> dict[str, Any]:
    d = {}
    d["training_flop"] = 6.0 * c["active_parameters"] * c["tokens"]
    d["cluster_peak_flop_per_s"] = c["accelerators"] * c["peak_flop_per_s"]
    d["training_s"] = d["training_flop"] / (d["cluster_peak_flop_per_s"] * c["mfu"])
    d["training_days"] = d["training_s"] / 86400.0
    d["cluster_mtbf_s"] = mtbf = c["accelerator_mtbf_s"] / c["accelerators"]
    d["failures_per_day"] = 86400.0 / mtbf
    d["checkpoint_bytes"] = c["parameters"] * c["checkpoint_bytes_per_parameter"]
    d["checkpoint_write_s"] = d["checkpoint_bytes"] / c["storage_write_bytes_per_s"]
    ratio = d["checkpoint_write_s"] / mtbf
    p = np.sqrt(-2.0 * np.expm1(-ratio))
    start = root = p * (1 + 16 / 45 * p) / (1 + p * (31 / 45 + 83 / 1080 * p))
    for _ in range(2):
        decay = np.expm1(-(root + ratio))
        root = root + (root + decay) / decay
    d["checkpoint_interval_s"] = interval = mtbf * np.where(ratio < 1e-5, start, root)
    stretch = np.exp(c["restart_s"] / mtbf) * np.expm1((interval + d["checkpoint_write_s"]) / mtbf)
    d["goodput"] = interval / ((mtbf + c["downtime_s"]) * stretch)
    d["wall_s"] = d["training_s"] / d["goodput"]
    d["wall_days"] = d["wall_s"] / 86400.0
    d["accelerator_hours"] = c["accelerators"] * d["wall_s"] / 3600.0
    d["nodes"] = c["accelerators"] / c["accelerators_per_node"]
    d["node_power_w"] = c["accelerators_per_node"] * c["accelerator_power_w"] + c["node_overhead_power_w"]
    d["it_power_w"] = d["nodes"] * d["node_power_w"]
    d["facility_power_w"] = d["it_power_w"] * c["pue"]
    d["training_energy_kwh"] = d["facility_power_w"] * d["wall_s"] / 3.6e6
    d["electricity_cost_usd"] = d["training_energy_kwh"] * c["electricity_usd_per_kwh"]
    d["rental_cost_usd"] = d["accelerator_hours"] * c["rental_usd_per_accelerator_h"]
    return c | d


def collected(plan: pl.LazyFrame) -> pl.DataFrame:
    return plan.collect()


def streamed(plan: pl.LazyFrame) -> pl.DataFrame:
    return plan.select(pl.col(OUTPUTS).mean()).collect(engine="streaming")


def rows() -> Iterator[Row]:
    frame = inputs()
    lazy = frame.lazy()
    arrays = {name: frame[name].to_numpy() for name in frame.columns}

    def ours() -> pl.LazyFrame:
        return fk.evaluate(lazy, OUTPUTS)

    def hand() -> pl.LazyFrame:
        return by_hand_in_polars(lazy)

    polars, numpy = "polars by hand", "NumPy by hand"
    ways = (
        ("10 M rows, 20 columns, lazy", lambda: collected(ours()), lambda: collected(hand())),
        ("10 M rows, 20 means, streamed", lambda: streamed(ours()), lambda: streamed(hand())),
        ("10 M rows, 20 columns, every value checked", lambda: fk.evaluate(frame, OUTPUTS), lambda: collected(hand())),
    )
    for what, one, other in ways:
        yield pair(what, one, polars, other, at_most_ratio=1.15, runs=5)
    yield pair(ways[0][0], ways[0][1], numpy, lambda: by_hand_in_numpy(arrays), at_most_ratio=1.0, runs=5)
    few = frame.select(VARYING).with_columns(pl.lit(value).alias(name) for name, value in CONSTANT.items())
    what = "10 M rows, 13 columns, 4 inputs vary"
    yield pair(
        what, lambda: fk.evaluate(few, ARITHMETIC), polars, lambda: arithmetic_in_polars(few), at_most_ratio=1.3, runs=5
    )
