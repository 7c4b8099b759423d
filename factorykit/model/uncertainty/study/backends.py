"""Backends that compute the parts of a study: this process, or the workers of Ray."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from factorykit.core.errors import FactorykitError, ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import string
from factorykit.engine.progress import progress

LOCAL_THREADS: Final = 2
"""Parts that this process computes at the same time."""
TASKS_PER_CPU: Final = 2
"""Tasks submitted to Ray per CPU of the moment: one that runs, and one that waits."""
ROUNDS: Final = 4
MAX_TASK_PARTS: Final = 16
"""A task makes so many parts that each CPU has `ROUNDS` tasks or more left, at most this number."""
WAITED_SHARE: Final = 8
"""An eighth of the running tasks is awaited at once, since each call of ``ray.wait`` looks at all of them."""
WAIT_S: Final = 5.0
"""Longest wait before new CPUs of the cluster get tasks. [s]"""
MAX_RETRIES: Final = 3
"""Retries of a part whose worker died."""

Make = Callable[[Any, int], None]
"""Writes one part of a design."""


def check(engine: object) -> str:
    """Return the name of an engine, ``local``, ``ray`` or the address of a cluster of Ray, or raise a ScenarioError."""
    name = string("engine", engine)
    if name not in ("local", "ray") and "://" not in name:
        raise ScenarioError(
            f"engine must be local, ray, or the address of a cluster such as ray://host:10001, got {short_repr(name)}"
        )
    return name


def run(
    engine: str, make: Make, design: Any, missing: Sequence[int], shared: Sequence[object] = (), rows: int = 0
) -> None:
    """Compute the missing parts of a design, of some ``rows`` each; all workers need the local ``shared`` paths."""
    made = _local(make, design, missing) if engine == "local" else _ray(engine, make, design, missing, shared)
    for _ in progress(made, len(missing), "parts", rows):
        pass


def workers(engine: str) -> int:
    """Return the CPUs that a cluster of Ray has at the moment."""
    return max(int(_connected(engine).cluster_resources().get("CPU", 1)), 1)


def _connected(engine: str) -> Any:
    """Return Ray; its runtime environment is that of ``ray.init``, if the caller has called it."""
    ray = need("ray")
    if not ray.is_initialized():
        ray.init(address=None if engine == "ray" else engine, log_to_driver=False)
    return ray


def _local(make: Make, design: Any, missing: Sequence[int]) -> Iterator[Any]:
    """Yield finished parts; one is computed while another is written."""
    pool = ThreadPoolExecutor(LOCAL_THREADS)
    try:
        yield from pool.map(lambda number: make(design, number), missing)
    finally:
        pool.shutdown(cancel_futures=True)


def _ray(engine: str, make: Make, design: Any, missing: Sequence[int], shared: Sequence[object]) -> Iterator[Any]:
    """Yield finished parts; a task makes some, and the task of a dead worker goes to another.

    If a part fails, the other tasks are cancelled, and the finished parts are kept.
    """
    ray = _connected(engine)
    for path in shared:
        if isinstance(path, Path):
            _check_shared(ray, path)
    options = {"max_retries": MAX_RETRIES, "num_cpus": 1, "runtime_env": {"env_vars": {"POLARS_MAX_THREADS": "1"}}}
    task = ray.remote(**options)(_of_pickled)
    pickled, waiting, running = ray.put(pickle.dumps(design)), deque(missing), {}
    try:
        while waiting or running:
            slots = TASKS_PER_CPU * workers(engine)
            while waiting and len(running) < slots:
                count = min(max(len(waiting) // (ROUNDS * slots), 1), MAX_TASK_PARTS)
                numbers = [waiting.popleft() for _ in range(count)]
                running[task.remote(make, pickled, numbers)] = numbers
            finished, _ = ray.wait([*running], num_returns=max(len(running) // WAITED_SHARE, 1), timeout=WAIT_S)
            for done in finished:
                yield from _made(ray, done, running.pop(done))
    finally:
        for left in running:
            ray.cancel(left, force=True)


def _made(ray: Any, done: Any, numbers: Sequence[int]) -> Sequence[int]:
    """Return the parts that a task has made; an error names the part that failed."""
    try:
        failure = ray.get(done)
    except ray.exceptions.RayError as error:
        failure = f"{numbers[0]} to {numbers[-1]}: {str(error).strip().splitlines()[-1]}"
    if failure:
        raise FactorykitError(f"part {failure}; repeat the call, which resumes the study")
    return numbers


def _check_shared(ray: Any, path: Path) -> None:
    """Check that every node sees a local file or folder; an error names those that do not."""
    affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    nodes = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    look = ray.remote(num_cpus=0)(_exists)
    looks = [look.options(scheduling_strategy=affinity(key, soft=False)).remote(str(path)) for key in nodes]
    if blind := [name for name, sees in zip(nodes.values(), ray.get(looks), strict=True) if not sees]:
        raise ScenarioError(
            f"{', '.join(blind[:3])}: no access to {path.parent}; give a folder on storage that all nodes mount"
        )


def _exists(path: str) -> bool:
    return Path(path).exists()


def _of_pickled(make: Make, pickled: bytes, numbers: Sequence[int]) -> str:
    """Make some parts; return the number of one that fails and the reason."""
    for number in numbers:
        try:
            make(_design(pickled), number)
        except Exception as error:
            return f"{number}: {type(error).__name__}: {error}"
    return ""


@lru_cache(maxsize=1)
def _design(pickled: bytes) -> Any:
    return pickle.loads(pickled)
