"""Who makes the parts of a study: this process, or the workers of Ray."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final

from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import string
from factorykit.engine.progress import told
from factorykit.model.uncertainty.study.parts import Design

AT_ONCE: Final = 2
"""Parts that this process makes side by side."""
AHEAD: Final = 2
"""Parts handed to Ray for each of its processors: one that is made, and one that waits."""
TRIES: Final = 3
"""Times that a part is tried again whose worker died."""

Make = Callable[[Design, int], None]
"""Writes one part of a design."""


def check(engine: object) -> str:
    """Return the name of an engine: ``local``, ``ray``, or the address of a cluster of Ray.

    Raises
    ------
    ScenarioError
    """
    said = string("engine", engine)
    if said not in ("local", "ray") and "://" not in said:
        raise ScenarioError(
            f"engine = {short_repr(said)}; there are local, ray, and the address of a cluster, ray://host:10001"
        )
    return said


def run(engine: str, make: Make, design: Design, missing: Sequence[int]) -> None:
    """Make the missing parts of a design."""
    made = _local(make, design, missing) if engine == "local" else _ray(engine, make, design, missing)
    for _ in told(made, len(missing), "parts", design.rows // design.parts):
        pass


def _local(make: Make, design: Design, missing: Sequence[int]) -> Iterator[Any]:
    """Yield parts as they are finished: one is computed while another is written."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield from pool.map(lambda number: make(design, number), missing)
    finally:
        pool.shutdown(cancel_futures=True)


def _ray(engine: str, make: Make, design: Design, missing: Sequence[int]) -> Iterator[Any]:
    """Yield parts as they are finished; each worker holds one, and a dead worker's goes to another."""
    ray = need("ray")
    if not ray.is_initialized():
        ray.init(address=None if engine == "ray" else engine, log_to_driver=False)
    task = ray.remote(max_retries=TRIES, num_cpus=1, runtime_env={"env_vars": {"POLARS_MAX_THREADS": "1"}})(_of_pickled)
    shared, waiting, under_way = ray.put(pickle.dumps(design)), list(reversed(missing)), []
    at_once = AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
    while waiting or under_way:
        while waiting and len(under_way) < at_once:
            under_way.append(task.remote(make, shared, waiting.pop()))
        finished, under_way = ray.wait(under_way)
        ray.get(finished)
        yield from finished


def _of_pickled(make: Make, pickled: bytes, number: int) -> None:
    make(_design(pickled), number)


@lru_cache(maxsize=1)
def _design(pickled: bytes) -> Design:
    return pickle.loads(pickled)
