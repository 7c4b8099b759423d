"""Who makes the parts of a study: this process, or the workers of Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from factorykit.borders import need, text
from factorykit.errors import ScenarioError
from factorykit.model.engine.progress import told

AT_ONCE: Final = 2
"""Parts that this process makes side by side."""
AHEAD: Final = 2
"""Parts handed to Ray for each of its processors: one that is made, and one that waits."""
TRIES: Final = 3
"""Times that a part is tried again whose worker died."""

Write = Callable[[bytes, str, int], None]


def check(engine: object) -> str:
    """Return the name of an engine: ``local``, ``ray``, or the address of a cluster of Ray.

    Raises
    ------
    ScenarioError
    """
    if text("engine", engine) not in ("local", "ray") and "://" not in str(engine):
        raise ScenarioError(
            f"engine = {engine!r}; there are local, ray, and the address of a cluster, ray://host:10001"
        )
    return str(engine)


def run(engine: str, write: Write, design: bytes, folder: str, missing: Sequence[int], rows: int) -> None:
    """Write the missing parts of a design into a folder."""
    made = _local(write, design, folder, missing) if engine == "local" else _ray(engine, write, design, folder, missing)
    for _ in told(made, len(missing), "parts", rows):
        pass


def _local(write: Write, design: bytes, folder: str, missing: Sequence[int]) -> Iterator[Any]:
    """Yield parts as they are finished: one is computed while another is written."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield from pool.map(lambda number: write(design, folder, number), missing)
    finally:
        pool.shutdown(cancel_futures=True)


def _ray(engine: str, write: Write, design: bytes, folder: str, missing: Sequence[int]) -> Iterator[Any]:
    """Yield parts as they are finished; each worker holds one, and a dead worker's goes to another."""
    ray = need("ray")
    if not ray.is_initialized():
        ray.init(address=None if engine == "ray" else engine, log_to_driver=False)
    task = ray.remote(max_retries=TRIES, num_cpus=1, runtime_env={"env_vars": {"POLARS_MAX_THREADS": "1"}})(write)
    shared, waiting, under_way = ray.put(design), list(reversed(missing)), []
    at_once = AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
    while waiting or under_way:
        while waiting and len(under_way) < at_once:
            under_way.append(task.remote(shared, folder, waiting.pop()))
        finished, under_way = ray.wait(under_way)
        ray.get(finished)
        yield from finished
