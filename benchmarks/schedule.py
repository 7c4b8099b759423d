"""How long 100,000 jobs on 16,384 accelerators take.

Run with ``python benchmarks/schedule.py``.
"""

from __future__ import annotations

import time

import factorykit as fk


def main() -> None:
    for name in ("kalos", "seren"):
        jobs = fk.workload(name, 100_000)
        start = time.perf_counter()
        done = fk.schedule(jobs)
        took = time.perf_counter() - start
        events = 2 * jobs.height + done.summary["preemptions"] + done.summary["failures"]
        print(
            f"100,000 jobs like {name} on 16,384 accelerators {took:6.2f} s   ratio to target {took / 10:.2f}, ", end=""
        )
        print(f"{events / took:,.0f} events/s")


if __name__ == "__main__":
    main()
