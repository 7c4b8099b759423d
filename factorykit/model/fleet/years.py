"""Years of failures, jobs and power of a fleet, drawn from laws as studies: what an archive of them would hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from factorykit.borders import file_path, need, number, whole
from factorykit.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.errors import ScenarioError, shown
from factorykit.model.fleet.imitation import (
    BEGIN,
    IDLE_SHARE,
    POWER_SPREAD,
    REPAIR_MEDIAN_S,
    REPAIR_SIGMA,
    SHARES,
)
from factorykit.model.operations.workload import Law, law
from factorykit.model.study import design
from factorykit.model.study.design import Design
from factorykit.model.study.study import answered

if TYPE_CHECKING:
    import polars as pl

COLUMNS: Final = 4
"""Of each table."""
COUNTS: Final = ("nodes", "accelerators_per_node")
MOST_ACCELERATORS: Final = design.CELLS_A_PART // COLUMNS
"""Of a fleet, as failures of one node: so many rows fill a part."""
MOST_ROWS: Final = 100_000_000_000
"""Of a study: about a terabyte."""
LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "nodes": (1.0, MOST_ACCELERATORS),
    "days": (1e-3, 36_600.0),
    "node_mtbf_s": (1.0, 1e12),
    "lifetime_shape": (0.01, 100.0),
    "accelerators_per_node": (1.0, 1000.0),
    "load": (1e-3, 10.0),
    "accelerator_power_w": (1e-3, 1e6),
    "every_s": (1e-3, 1e6),
    "busy_share": (0.0, 1.0),
}
"""Of what is said of a fleet: a century, and what moments of the calendar and a part of a study can hold."""


def imitate_failures(
    out: str | Path,
    nodes: int,
    days: float,
    node_mtbf_s: float,
    *,
    lifetime_shape: float = 1.0,
    seed: int = 0,
    engine: str = "local",
) -> pl.LazyFrame:
    """Draw the failures of a fleet, as many as wanted, into a study: what an archive of them would hold.

    Parameters
    ----------
    out, engine
        The folder of the study and who makes its parts, as in :func:`factorykit.sweep`.
    nodes, days
        Servers, and how long they are watched [d].
    node_mtbf_s
        Mean time at risk from the end of a repair to the next failure [s].
    lifetime_shape
        Of the Weibull law of these times: below 1 failures come in bursts, above 1 they keep a distance.
    seed
        The same seed gives the same rows.

    Returns
    -------
    LazyFrame
        One row per failure, node by node: ``at``, ``node``, ``cause``, ``repair_s`` [s].
    """
    told = _told(nodes=nodes, days=days, node_mtbf_s=node_mtbf_s, lifetime_shape=lifetime_shape)
    failures = _Failures(**told, seed=whole("seed", seed))
    if failures.most > MOST_ACCELERATORS:
        raise ScenarioError(f"a node fails {failures.most:,} times; give fewer days, or a longer node_mtbf_s")
    return _drawn(failures, out, engine)


def imitate_jobs(
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
    """Draw the accounts of a shared cluster's jobs, as many as wanted, into a study.

    Sizes, run times and ends are those of a published cluster; a job also ends when one of its nodes fails. Jobs are
    drawn apart from each other: how many run at one time is right in the mean, and no queue is kept.

    Parameters
    ----------
    out, engine
        The folder of the study and who makes its parts, as in :func:`factorykit.sweep`.
    workload
        A row of the ``workloads`` table: seren, kalos, philly or helios.
    nodes, days
        Servers, and how long they are watched [d].
    node_mtbf_s
        Mean time between failures of a node [s].
    accelerators_per_node
        Of each server.
    load
        Accelerator time that jobs would hold without failures, over what there is.
    seed
        The same seed gives the same rows.

    Returns
    -------
    LazyFrame
        One row per job, in the order of starts: ``state``, ``started``, ``ended``, ``accelerators`` [1].
    """
    told = _told(
        nodes=nodes, days=days, node_mtbf_s=node_mtbf_s, accelerators_per_node=accelerators_per_node, load=load
    )
    law(workload)
    return _drawn(_Jobs(workload, **told, seed=whole("seed", seed)), out, engine)


def imitate_power(
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
    """Draw samples of the power of every accelerator of a fleet, as many as wanted, into a study.

    Parameters
    ----------
    out, engine
        The folder of the study and who makes its parts, as in :func:`factorykit.sweep`.
    nodes, days
        Servers, and how long they are watched [d].
    accelerator_power_w
        Mean of a busy accelerator [W]; an idle one takes 15 % of it.
    accelerators_per_node
        Of each server.
    every_s
        Between two samples of one accelerator [s].
    busy_share
        Of the hours of each node.
    seed
        The same seed gives the same rows.

    Returns
    -------
    LazyFrame
        One row per sample, in the order of time: ``at``, ``node``, ``accelerator``, ``accelerator_power_w`` [W].
    """
    told = _told(
        nodes=nodes,
        days=days,
        accelerator_power_w=accelerator_power_w,
        accelerators_per_node=accelerators_per_node,
        every_s=every_s,
        busy_share=busy_share,
    )
    return _drawn(_Power(**told, seed=whole("seed", seed)), out, engine)


def _told(**told: float) -> dict[str, Any]:
    """Return what is said of a fleet by its name, each within its limits, counts whole."""
    for name, value in told.items():
        least, most = LIMITS[name]
        if not least <= number(name, value) <= most:
            raise ScenarioError(f"{name} = {shown(value)} is outside [{least:g}, {most:g}]")
    if told["nodes"] * told.get("accelerators_per_node", 1.0) > MOST_ACCELERATORS:
        raise ScenarioError(f"nodes and accelerators_per_node make more than {MOST_ACCELERATORS:,}; give fewer")
    return {name: whole(name, value) if name in COUNTS else float(value) for name, value in told.items()}


def _drawn(made: Design, out: str | Path, engine: str) -> pl.LazyFrame:
    """Return the rows of a study, unless there are more than a disk holds."""
    if made.rows > MOST_ROWS:
        raise ScenarioError(f"these are {made.rows:,} rows; give fewer nodes or days, at most {MOST_ROWS:,} rows")
    return answered(made, file_path("out", out), "imitate", engine)


def _moment(at_s: str) -> pl.Expr:
    """Return the moments that a column of seconds after the begin tells."""
    import polars as pl

    begin = pl.lit(BEGIN.astimezone(UTC).replace(tzinfo=None))
    return begin + pl.duration(microseconds=(pl.col(at_s) * 1e6).cast(pl.Int64))


@dataclass(frozen=True)
class _Failures(Design):
    """Failures of nodes, some nodes to a part, each drawn by its own seed."""

    nodes: int
    days: float
    node_mtbf_s: float
    lifetime_shape: float
    seed: int

    @property
    def most(self) -> int:
        """Failures of a node that are drawn: as many as come but once in a billion."""
        mean = self.days * SECONDS_PER_DAY / self.node_mtbf_s
        return math.ceil(mean + 7.0 * math.sqrt(mean) / min(self.lifetime_shape, 1.0) + 20.0)

    @property
    def _nodes_a_part(self) -> int:
        return max(design.CELLS_A_PART // COLUMNS // self.most, 1)

    @property
    def rows(self) -> int:
        """As many as are expected."""
        return round(self.nodes * self.days * SECONDS_PER_DAY / self.node_mtbf_s)

    @property
    def parts(self) -> int:
        """Some nodes to a part."""
        return math.ceil(self.nodes / self._nodes_a_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return the failures of some nodes."""
        import polars as pl

        np = need("numpy")
        random = np.random.default_rng([self.seed, number])
        first = number * self._nodes_a_part
        shape = (min(self._nodes_a_part, self.nodes - first), self.most)
        scale = self.node_mtbf_s / math.gamma(1.0 + 1.0 / self.lifetime_shape)
        repair_s = REPAIR_MEDIAN_S * np.exp(REPAIR_SIGMA * random.standard_normal(shape))
        at_s = np.cumsum(scale * random.weibull(self.lifetime_shape, shape), axis=1)
        at_s[:, 1:] += np.cumsum(repair_s[:, :-1], axis=1)
        held = at_s < self.days * SECONDS_PER_DAY
        weights = np.array([*SHARES.values()])
        cause = random.choice(len(weights), int(held.sum()), p=weights / weights.sum())
        node = np.broadcast_to(np.arange(first, first + shape[0])[:, None], shape)[held]
        return pl.DataFrame({"at": at_s[held], "node": node, "cause": cause, "repair_s": repair_s[held]}).select(
            at=_moment("at"),
            node=pl.col("node").cast(pl.Int64),
            cause=pl.Series(list(SHARES)).gather(pl.Series(cause)),
            repair_s="repair_s",
        )


@dataclass(frozen=True)
class _Jobs(Design):
    """Jobs of a published cluster, as many to a part as fill it, those of later parts later."""

    workload: str
    nodes: int
    accelerators_per_node: int
    days: float
    node_mtbf_s: float
    load: float
    seed: int

    @property
    def _law(self) -> Law:
        return law(self.workload)

    @property
    def _rows_a_part(self) -> int:
        return design.CELLS_A_PART // COLUMNS

    @property
    def rows(self) -> int:
        """As many as fill the cluster to its load."""
        held_s = self.nodes * self.accelerators_per_node * self.days * SECONDS_PER_DAY * self.load
        return max(round(held_s / self._law.accelerator_s_mean), 1)

    @property
    def parts(self) -> int:
        """So many jobs to a part."""
        return math.ceil(self.rows / self._rows_a_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return some jobs in the order of their starts."""
        import polars as pl

        np = need("numpy")
        random = np.random.default_rng([self.seed, number])
        first = number * self._rows_a_part
        count = min(self._rows_a_part, self.rows - first)
        asked, run_s = self._law.drawn(random, count, self.nodes * self.accelerators_per_node)
        at_s = (first + np.sort(random.random(count)) * count) / self.rows * self.days * SECONDS_PER_DAY
        of_nodes = np.ceil(asked / self.accelerators_per_node)
        failed_s = random.exponential(1.0, count) * self.node_mtbf_s / of_nodes
        ends = random.choice(len(self._law.ends), count, p=[*self._law.ends.values()])
        state = np.where(failed_s < run_s, len(self._law.ends), ends)
        held_s = np.minimum(failed_s, run_s)
        rows = pl.DataFrame({"started": at_s, "ended": at_s + held_s, "accelerators": asked, "state": state})
        states = pl.Series([*self._law.ends, "node failure"])
        return rows.select(
            state=states.gather(rows["state"].cast(pl.UInt32)),
            started=_moment("started"),
            ended=_moment("ended"),
            accelerators="accelerators",
        )


@dataclass(frozen=True)
class _Power(Design):
    """Samples of every accelerator, some moments to a part; a node is busy or idle for an hour."""

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
    def _moments(self) -> int:
        return max(math.ceil(self.days * SECONDS_PER_DAY / self.every_s), 1)

    @property
    def _moments_a_part(self) -> int:
        return max(design.CELLS_A_PART // COLUMNS // self._accelerators, 1)

    @property
    def rows(self) -> int:
        """One for each accelerator and moment."""
        return self._accelerators * self._moments

    @property
    def parts(self) -> int:
        """Some moments to a part."""
        return math.ceil(self._moments / self._moments_a_part)

    def part(self, number: int) -> pl.DataFrame:
        """Return the samples of some moments."""
        import polars as pl

        np = need("numpy")
        random = np.random.default_rng([self.seed, number])
        first = number * self._moments_a_part
        at_s = np.arange(first, min(first + self._moments_a_part, self._moments)) * self.every_s
        hours, hour = np.unique(at_s // SECONDS_PER_HOUR, return_inverse=True)
        busy = np.stack([self._busy(int(each)) for each in hours])[hour]
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
        return rows.with_columns(at=_moment("at"))

    def _busy(self, hour: int) -> Any:
        """Return which nodes are busy in an hour, whatever part asks."""
        random = need("numpy").random.default_rng([self.seed, hour, self.nodes])
        return random.random(self.nodes) < self.busy_share
