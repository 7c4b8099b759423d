"""How long samples, indices and sweeps take, each beside what it is measured against.

Run with ``python benchmarks/uncertainty.py``. Times are the best of three in one process; ratios carry over to other
machines, seconds do not.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import factorykit as fk
from factorykit.quantities import vocabulary

KNOWN = {name: row.default for name, row in vocabulary().items() if row.default is not None and row.kind == "input"}
DOUBT = {
    "mfu": fk.Uniform(0.35, 0.45),
    "rental_usd_per_accelerator_h": fk.LogNormal(1.5, 4.0),
    "accelerator_mtbf_s": fk.LogNormal(1e8, 3e8),
    "restart_s": fk.Triangular(200.0, 600.0, 1800.0),
    "pue": fk.Normal(1.15, 0.05, low=1.0),
    "storage_write_bytes_per_s": fk.LogUniform(1e10, 1e12),
}
CHAIN = ("rental_cost_usd", "training_carbon_kg", "training_water_l", "electricity_cost_usd", "failure_cost_usd")


def best(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    run = {name: value for name, value in KNOWN.items() if name not in ("checkpoint_write_s", "goodput")}
    drawn = fk.sample(run, DOUBT, 1_000_000, CHAIN)
    evaluated = best(lambda: fk.evaluate(drawn.select(list(DOUBT)).with_columns(**_literals(run)), CHAIN))
    sampled = best(lambda: fk.sample(run, DOUBT, 1_000_000, CHAIN))
    print(f"1 million draws, {len(DOUBT)} inputs, whole chain   {sampled:6.2f} s   (target 2 s)")
    print(f"  of which evaluate alone              {evaluated:6.2f} s   ratio {sampled / evaluated:.2f}")
    indices = best(lambda: fk.sensitivity(run, DOUBT, CHAIN, 4096))
    print(f"Sobol indices, n = 4096, 5 outputs     {indices:6.2f} s")
    grid = {
        "mfu": [0.2 + 0.4 * i / 999 for i in range(1000)],
        "rental_usd_per_accelerator_h": [1.0 + i / 100 for i in range(1000)],
        "accelerators": [8192.0, 16384.0, 24576.0, 32768.0],
    }
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        fk.sweep(run, grid, "rental_cost_usd", out=Path(folder) / "sweep.parquet")
        took = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    inner = best(lambda: fk.sweep(run, grid, "rental_cost_usd"))
    print(
        f"4 million scenarios to Parquet         {took:6.2f} s   ratio to memory {took / inner:.2f}, {memory:,.0f} MiB"
    )


def _literals(run: dict) -> dict:
    import polars as pl

    return {name: pl.lit(value) for name, value in run.items() if name not in DOUBT}


if __name__ == "__main__":
    main()
