"""Backends that compute the parts of a study: this process, or the workers of Ray."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final

from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import string
from factorykit.engine.progress import progress
from factorykit.model.uncertainty.study.parts import Design

LOCAL_THREADS: Final = 2
"""Parts that this process computes at the same time."""
TASKS_PER_CPU: Final = 2
"""Parts submitted to Ray per CPU: one that runs, and one that waits."""
WAITED_SHARE: Final = 8
"""An eighth of the running parts is awaited at once, since each call of ``ray.wait`` looks at all of them."""
MAX_RETRIES: Final = 3
"""Retries of a part whose worker died."""

Make = Callable[[Design, int], None]
"""Writes one part of a design."""


def check(engine: object) -> str:
    """Return the name of an engine: ``local``, ``ray``, or the address of a cluster of Ray.

    Raises
    ------
    ScenarioError
    """
    name = string("engine", engine)
    if name not in ("local", "ray") and "://" not in name:
        raise ScenarioError(
            f"engine must be local, ray, or the address of a cluster such as ray://host:10001, got {short_repr(name)}"
        )
    return name


def run(engine: str, make: Make, design: Design, missing: Sequence[int]) -> None:
    """Compute the missing parts of a design."""
    made = _local(make, design, missing) if engine == "local" else _ray(engine, make, design, missing)
    for _ in progress(made, len(missing), "parts", design.rows // design.parts):
        pass


def _local(make: Make, design: Design, missing: Sequence[int]) -> Iterator[Any]:
    """Yield finished parts; one is computed while another is written."""
    pool = ThreadPoolExecutor(LOCAL_THREADS)
    try:
        yield from pool.map(lambda number: make(design, number), missing)
    finally:
        pool.shutdown(cancel_futures=True)


def _ray(engine: str, make: Make, design: Design, missing: Sequence[int]) -> Iterator[Any]:
    """Yield finished parts; each worker has one, and that of a dead worker goes to another."""
    ray = need("ray")
    if not ray.is_initialized():
        ray.init(address=None if engine == "ray" else engine, log_to_driver=False)
    options = {"max_retries": MAX_RETRIES, "num_cpus": 1, "runtime_env": {"env_vars": {"POLARS_MAX_THREADS": "1"}}}
    task = ray.remote(**options)(_of_pickled)
    shared, waiting, running = ray.put(pickle.dumps(design)), list(reversed(missing)), []
    while waiting or running:
        slots = TASKS_PER_CPU * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        while waiting and len(running) < slots:
            running.append(task.remote(make, shared, waiting.pop()))
        finished, running = ray.wait(running, num_returns=max(len(running) // WAITED_SHARE, 1))
        ray.get(finished)
        yield from finished


def _of_pickled(make: Make, pickled: bytes, number: int) -> None:
    make(_design(pickled), number)


@lru_cache(maxsize=1)
def _design(pickled: bytes) -> Design:
    return pickle.loads(pickled)
