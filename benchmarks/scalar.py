"""One scenario through the chain to its cost, beside the same formulas called by hand."""

from __future__ import annotations

from collections.abc import Iterator

import factorykit as fk
from benchmarks import Row, pair
from factorykit.formulas import checkpoint, compute, cost, reliability

RUN = {
    "active_parameters": 405e9,
    "parameters": 405e9,
    "tokens": 15.6e12,
    "accelerators": 16384.0,
    "peak_flop_per_s": 989e12,
    "mfu": 0.41,
    "accelerator_mtbf_s": 1.824e8,
    "restart_s": 600.0,
    "downtime_s": 0.0,
    "checkpoint_bytes_per_parameter": 14.0,
    "storage_write_bytes_per_s": 2e12,
    "rental_usd_per_accelerator_h": 2.0,
}


def by_hand() -> float:
    r = RUN
    write = checkpoint.checkpoint_write_s(
        checkpoint.checkpoint_bytes(r["parameters"], r["checkpoint_bytes_per_parameter"]),
        r["storage_write_bytes_per_s"],
    )
    mtbf = reliability.cluster_mtbf_s(r["accelerator_mtbf_s"], r["accelerators"])
    interval = checkpoint.checkpoint_interval_optimal_s(write, mtbf)
    goodput = checkpoint.checkpoint_goodput(interval, write, mtbf, r["restart_s"], r["downtime_s"])
    flop = compute.training_flop(r["active_parameters"], r["tokens"])
    peak = compute.cluster_peak_flop_per_s(r["accelerators"], r["peak_flop_per_s"])
    wall = compute.wall_s(compute.training_s(flop, peak, r["mfu"]), goodput)
    return cost.rental_cost_usd(compute.accelerator_hours(r["accelerators"], wall), r["rental_usd_per_accelerator_h"])


def rows() -> Iterator[Row]:
    yield pair(
        "1 scenario to its cost, 12 steps",
        lambda: fk.evaluate(RUN, "rental_cost_usd"),
        "the formulas called by hand",
        by_hand,
        at_most_s=1e-4,
        runs=501,
    )
