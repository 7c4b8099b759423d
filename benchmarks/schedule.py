"""How long a cluster's queue of 100,000 jobs on 16,384 accelerators takes, beside SimPy with one event a job."""

from __future__ import annotations

from collections.abc import Iterator

import simpy

import factorykit as fk
from benchmarks import Row, pair

JOBS = 100_000


def bare_events(arrivals: list[float], durations: list[float]) -> None:
    """Run every job on an endless cluster: two events a job, and no decision."""
    environment = simpy.Environment()

    def job(arrival: float, duration: float) -> Iterator[simpy.Event]:
        yield environment.timeout(arrival)
        yield environment.timeout(duration)

    for arrival, duration in zip(arrivals, durations, strict=True):
        environment.process(job(arrival, duration))
    environment.run()


def rows() -> Iterator[Row]:
    for name in ("kalos", "seren"):
        jobs = fk.workload(name, JOBS)
        arrivals, durations = jobs["arrival_s"].to_list(), jobs["run_s"].to_list()
        yield pair(
            f"100,000 jobs like {name} (target: below 10 s)",
            lambda jobs=jobs: fk.schedule(jobs),
            "SimPy, the bare events",
            lambda a=arrivals, d=durations: bare_events(a, d),
            "",
            runs=3,
        )
