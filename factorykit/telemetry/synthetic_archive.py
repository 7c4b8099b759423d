"""Synthetic archives: years of failures, jobs and power samples of a fleet, drawn from distributions as studies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.errors import ScenarioError, short_repr
from factorykit.core.extras import need
from factorykit.core.validation import file_path, finite_number, integer
from factorykit.model.operations.workload import JobDistribution, job_distribution
from factorykit.model.uncertainty.study import parts
from factorykit.model.uncertainty.study.parts import Design
from factorykit.model.uncertainty.study.study import answered
from factorykit.telemetry.synthetic_logs import (
    IDLE_SHARE,
    POWER_SPREAD,
    REPAIR_MEDIAN_S,
    REPAIR_SIGMA,
    SHARES,
    START,
)

if TYPE_CHECKING:
    import polars as pl

COLUMNS: Final = 4
"""Columns of each table."""
COUNTS: Final = ("nodes", "accelerators_per_node")
MAX_ACCELERATORS: Final = parts.CELLS_A_PART // COLUMNS
"""Accelerators of a fleet and failures of a node, whose rows must fit into one part of a study."""
MAX_ROWS: Final = 100_000_000_000
"""Rows of a study, about a terabyte."""
BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "nodes": (1.0, MAX_ACCELERATORS),
    "days": (1e-3, 36_600.0),
    "node_mtbf_s": (1.0, 1e12),
    "lifetime_shape": (0.01, 100.0),
    "accelerators_per_node": (1.0, 1000.0),
    "load": (1e-3, 10.0),
    "accelerator_power_w": (1e-3, 1e6),
    "every_s": (1e-3, 1e6),
    "busy_share": (0.0, 1.0),
}
"""Bounds of the parameters of a fleet, within the limits of timestamps and of a part of a study."""


def simulate_failures(
    out: str | Path,
    nodes: int,
    days: float,
    node_mtbf_s: float,
    *,
    lifetime_shape: float = 1.0,
    seed: int = 0,
    engine: str = "local",
) -> pl.LazyFrame:
    """Draw the failures of a fleet into a study.

    Parameters
    ----------
    out, engine
        The folder of the study and the engine that computes it, as in :func:`factorykit.sweep`.
    nodes, days
        Number of servers, and the period [d].
    node_mtbf_s
        Mean time from the end of a repair to the next failure [s].
    lifetime_shape
        Shape of the Weibull distribution of these times: below 1 failures cluster, above 1 they are spaced evenly.
    seed
        Random seed.

    Returns
    -------
    LazyFrame
        One row per failure, sorted by node: ``at``, ``node``, ``cause``, ``repair_s`` [s].
    """
    values = _checked(nodes=nodes, days=days, node_mtbf_s=node_mtbf_s, lifetime_shape=lifetime_shape)
    failures = _Failures(**values, seed=integer("seed", seed))
    if failures.max_per_node > MAX_ACCELERATORS:
        raise ScenarioError(f"a node fails {failures.max_per_node:,} times; give fewer days, or a longer node_mtbf_s")
    return _study(failures, out, engine)


def simulate_jobs(
    out: str | Path,
    workload: str,
    nodes: int,
    days: float,
    node_mtbf_s: float,
    *,
    accelerators_per_node: int = 8,
    load: float = 0.9,
    seed: int = 0,
    engine: str = "local",
) -> pl.LazyFrame:
    """Draw the job accounting of a shared cluster into a study.

    Sizes, run times and final states follow a published cluster; a job also ends when one of its nodes fails. Jobs are
    drawn independently: the number of running jobs is right on average, without a queue.

    Parameters
    ----------
    out, engine
        The folder of the study and the engine that computes it, as in :func:`factorykit.sweep`.
    workload
        A row of the ``workloads`` table: ``seren``, ``kalos``, ``philly`` or ``helios``.
    nodes, days
        Number of servers, and the period [d].
    node_mtbf_s
        Mean time between failures of a node [s].
    accelerators_per_node
        Accelerators of each server.
    load
        Share of the accelerator time that jobs would hold without failures.
    seed
        Random seed.

    Returns
    -------
    LazyFrame
        One row per job, sorted by start: ``state``, ``started``, ``ended``, ``accelerators`` [1].
    """
    values = _checked(
        nodes=nodes, days=days, node_mtbf_s=node_mtbf_s, accelerators_per_node=accelerators_per_node, load=load
    )
    job_distribution(workload)
    return _study(_Jobs(workload, **values, seed=integer("seed", seed)), out, engine)


def simulate_power(
    out: str | Path,
    nodes: int,
    days: float,
    accelerator_power_w: float,
    *,
    accelerators_per_node: int = 8,
    every_s: float = 60.0,
    busy_share: float = 0.9,
    seed: int = 0,
    engine: str = "local",
) -> pl.LazyFrame:
    """Draw power samples of every accelerator of a fleet into a study.

    Parameters
    ----------
    out, engine
        The folder of the study and the engine that computes it, as in :func:`factorykit.sweep`.
    nodes, days
        Number of servers, and the period [d].
    accelerator_power_w
        Mean power of a busy accelerator [W]; an idle one draws 15 % of it.
    accelerators_per_node
        Accelerators of each server.
    every_s
        Sampling interval of an accelerator [s].
    busy_share
        Share of busy hours of each node.
    seed
        Random seed.

    Returns
    -------
    LazyFrame
        One row per sample, sorted by time: ``at``, ``node``, ``accelerator``, ``accelerator_power_w`` [W].
    """
    values = _checked(
        nodes=nodes,
        days=days,
        accelerator_power_w=accelerator_power_w,
        accelerators_per_node=accelerators_per_node,
        every_s=every_s,
        busy_share=busy_share,
    )
    return _study(_Power(**values, seed=integer("seed", seed)), out, engine)


def _checked(**values: float) -> dict[str, Any]:
    """Return the parameters of a fleet, each within its bounds, counts as integers."""
    for name, value in values.items():
        minimum, maximum = BOUNDS[name]
        if not minimum <= finite_number(name, value) <= maximum:
            raise ScenarioError(f"{name} must be in [{minimum:g}, {maximum:g}], got {short_repr(value)}")
    if values["nodes"] * values.get("accelerators_per_node", 1.0) > MAX_ACCELERATORS:
        raise ScenarioError(f"nodes * accelerators_per_node must be at most {MAX_ACCELERATORS:,}; give fewer")
    return {name: integer(name, value) if name in COUNTS else float(value) for name, value in values.items()}


def _study(design: Design, out: str | Path, engine: str) -> pl.LazyFrame:
    """Return the rows of a study, unless they exceed the limit."""
    if design.rows > MAX_ROWS:
        raise ScenarioError(f"the study has {design.rows:,} rows, the limit is {MAX_ROWS:,}; give fewer nodes or days")
    return answered(design, file_path("out", out), "simulate", engine)


def _timestamp(at_s: str) -> pl.Expr:
    """Return the timestamps for a column of seconds since the start."""
    import polars as pl

    start = pl.lit(START.astimezone(UTC).replace(tzinfo=None))
    return start + pl.duration(microseconds=(pl.col(at_s) * 1e6).cast(pl.Int64))


@dataclass(frozen=True)
class _Failures(Design):
    """Failures of nodes, a number of nodes per part, each part with its own random generator."""

    nodes: int
    days: float
    node_mtbf_s: float
    lifetime_shape: float
    seed: int

    @property
    def max_per_node(self) -> int:
        """Failures drawn per node, exceeded with a probability below one in a billion."""
        mean = self.days * SECONDS_PER_DAY / self.node_mtbf_s
        return math.ceil(mean + 7.0 * math.sqrt(mean) / min(self.lifetime_shape, 1.0) + 20.0)

    @property
    def _nodes_per_part(self) -> int:
        return max(parts.CELLS_A_PART // COLUMNS // self.max_per_node, 1)

    @property
    def rows(self) -> int:
        """Expected number of failures."""
        return round(self.nodes * self.days * SECONDS_PER_DAY / self.node_mtbf_s)

    @property
    def parts(self) -> int:
        """Number of parts."""
        return math.ceil(self.nodes / self._nodes_per_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return the failures of the nodes of a part."""
        import polars as pl

        np = need("numpy")
        random = np.random.default_rng([self.seed, number])
        first = number * self._nodes_per_part
        shape = (min(self._nodes_per_part, self.nodes - first), self.max_per_node)
        scale = self.node_mtbf_s / math.gamma(1.0 + 1.0 / self.lifetime_shape)
        repair_s = REPAIR_MEDIAN_S * np.exp(REPAIR_SIGMA * random.standard_normal(shape))
        at_s = np.cumsum(scale * random.weibull(self.lifetime_shape, shape), axis=1)
        at_s[:, 1:] += np.cumsum(repair_s[:, :-1], axis=1)
        held = at_s < self.days * SECONDS_PER_DAY
        weights = np.array([*SHARES.values()])
        cause = random.choice(len(weights), int(held.sum()), p=weights / weights.sum())
        node = np.broadcast_to(np.arange(first, first + shape[0])[:, None], shape)[held]
        return pl.DataFrame({"at": at_s[held], "node": node, "cause": cause, "repair_s": repair_s[held]}).select(
            at=_timestamp("at"),
            node=pl.col("node").cast(pl.Int64),
            cause=pl.Series(list(SHARES)).gather(pl.Series(cause)),
            repair_s="repair_s",
        )


@dataclass(frozen=True)
class _Jobs(Design):
    """Jobs of a published cluster, sorted by start over all parts."""

    workload: str
    nodes: int
    accelerators_per_node: int
    days: float
    node_mtbf_s: float
    load: float
    seed: int

    @property
    def _distribution(self) -> JobDistribution:
        return job_distribution(self.workload)

    @property
    def _rows_per_part(self) -> int:
        return parts.CELLS_A_PART // COLUMNS

    @property
    def rows(self) -> int:
        """Number of jobs for the given load."""
        held_s = self.nodes * self.accelerators_per_node * self.days * SECONDS_PER_DAY * self.load
        return max(round(held_s / self._distribution.accelerator_s_mean), 1)

    @property
    def parts(self) -> int:
        """Number of parts."""
        return math.ceil(self.rows / self._rows_per_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return the jobs of a part, sorted by start."""
        import polars as pl

        np = need("numpy")
        random = np.random.default_rng([self.seed, number])
        first = number * self._rows_per_part
        count = min(self._rows_per_part, self.rows - first)
        requested, run_s = self._distribution.draw(random, count, self.nodes * self.accelerators_per_node)
        at_s = (first + np.sort(random.random(count)) * count) / self.rows * self.days * SECONDS_PER_DAY
        of_nodes = np.ceil(requested / self.accelerators_per_node)
        failed_s = random.exponential(1.0, count) * self.node_mtbf_s / of_nodes
        ends = random.choice(len(self._distribution.ends), count, p=[*self._distribution.ends.values()])
        state = np.where(failed_s < run_s, len(self._distribution.ends), ends)
        held_s = np.minimum(failed_s, run_s)
        rows = pl.DataFrame({"started": at_s, "ended": at_s + held_s, "accelerators": requested, "state": state})
        states = pl.Series([*self._distribution.ends, "node failure"])
        return rows.select(
            state=states.gather(rows["state"].cast(pl.UInt32)),
            started=_timestamp("started"),
            ended=_timestamp("ended"),
            accelerators="accelerators",
        )


@dataclass(frozen=True)
class _Power(Design):
    """Samples of every accelerator, a number of times per part; a node is busy or idle for an hour."""

    nodes: int
    accelerators_per_node: int
    days: float
    accelerator_power_w: float
    every_s: float
    busy_share: float
    seed: int

    @property
    def _accelerators(self) -> int:
        return self.nodes * self.accelerators_per_node

    @property
    def _times(self) -> int:
        return max(math.ceil(self.days * SECONDS_PER_DAY / self.every_s), 1)

    @property
    def _times_per_part(self) -> int:
        return max(parts.CELLS_A_PART // COLUMNS // self._accelerators, 1)

    @property
    def rows(self) -> int:
        """Number of samples."""
        return self._accelerators * self._times

    @property
    def parts(self) -> int:
        """Number of parts."""
        return math.ceil(self._times / self._times_per_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return the samples of a part."""
        import polars as pl

        np = need("numpy")
        random = np.random.default_rng([self.seed, number])
        first = number * self._times_per_part
        at_s = np.arange(first, min(first + self._times_per_part, self._times)) * self.every_s
        hours, hour = np.unique(at_s // SECONDS_PER_HOUR, return_inverse=True)
        busy = np.stack([self._busy(int(each_hour)) for each_hour in hours])[hour]
        share = np.repeat(np.where(busy, 1.0, IDLE_SHARE), self.accelerators_per_node, axis=1).ravel()
        spread = np.exp(POWER_SPREAD * random.standard_normal(len(share)) - POWER_SPREAD**2 / 2.0)
        rows = pl.DataFrame(
            {
                "at": np.repeat(at_s, self._accelerators),
                "node": np.tile(np.repeat(np.arange(self.nodes), self.accelerators_per_node), len(at_s)),
                "accelerator": np.tile(np.arange(self.accelerators_per_node), self.nodes * len(at_s)),
                "accelerator_power_w": self.accelerator_power_w * share * spread,
            }
        )
        return rows.with_columns(at=_timestamp("at"))

    def _busy(self, hour: int) -> Any:
        """Return which nodes are busy in an hour, the same in every part."""
        random = need("numpy").random.default_rng([self.seed, hour, self.nodes])
        return random.random(self.nodes) < self.busy_share
