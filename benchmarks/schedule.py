"""How long a cluster's queue of 100,000 jobs on 16,384 accelerators takes, beside SimPy with one event a job."""

from __future__ import annotations

from collections.abc import Iterator

import factorykit as fk
from benchmarks import Missing, Row, pair

try:
    import simpy
except ImportError as error:
    raise Missing("SimPy is absent: pip install simpy") from error

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
            f"100,000 jobs like {name}",
            lambda jobs=jobs: fk.schedule(jobs),
            "SimPy, the bare events",
            lambda a=arrivals, d=durations: bare_events(a, d),
            at_most_s=10.0,
            runs=3,
        )
