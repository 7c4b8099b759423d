"""A shared cluster under a queue of jobs: gang scheduling, priorities, preemption, backfill, topology, failures.

An event is an arrival, an end, a failure or a repair; a heap holds them in order of time. Jobs start whole or not at
all. The first job in the queue that does not fit gets a reservation at the time when, by the estimates of the running
jobs, enough accelerators will be free; later jobs start ahead of it only if they do not move that time (EASY backfill:
A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel Distrib. Syst. 12(6), 2001).
"""

from __future__ import annotations

import heapq
import math
import random
from bisect import insort
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from factorykit import datasets
from factorykit.constants import SECONDS_PER_DAY
from factorykit.errors import FactorykitError, ScenarioError, UnknownName, unknown

if TYPE_CHECKING:
    import polars as pl

ARRIVAL, END, FAILURE, REPAIR = range(4)
BACKFILL_DEPTH: Final = 100
"""Jobs behind the reservation that are looked at, as Slurm's bf_max_job_test does with a default of 500."""
MOST_FAILURES: Final = 1000
"""Failures after which a job counts as one that never ends."""
LONGEST_WAIT_S: Final = 365.0 * SECONDS_PER_DAY
"""Time after which the first job of the queue counts as one that never starts. [s]"""
SINGLE_SHARE: Final = 0.55
"""Share of jobs on one accelerator in a synthetic workload; published medians are 1, so it is at least a half."""
PRIORITY_SHARES: Final = (0.3, 0.6, 0.1)
"""Shares of experimental, normal and critical jobs in a synthetic workload: an assumption, no trace publishes them."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the scheduler does.

    ``backfill``: later jobs fill holes that do not delay the first. ``preempt``: a job of higher priority takes the
    accelerators of jobs of lower priority, which save and queue again. ``packed``: a job goes to as few pods as
    possible; otherwise to nodes at random.
    """

    backfill: bool = True
    preempt: bool = True
    packed: bool = True


@dataclass(frozen=True, slots=True)
class Plant:
    """The cluster under the scheduler; names and units are those of the vocabulary.

    ``nodes_per_pod`` nodes share a switch. A job that spans more pods than it needs takes ``spread_penalty`` longer.
    Node failures arrive at a constant rate; repairs are lognormal, since published ones have a heavy tail: half of
    them end within ``repair_median_s`` and their mean is ``repair_mean_s`` (InfiniteHBD trace: 20.4 h and 133 h).
    """

    accelerators: int = 16384
    accelerators_per_node: int = 8
    nodes_per_pod: int = 32
    node_failures_per_node_day: float = 0.0065
    repair_median_s: float = 20.4 * 3600.0
    repair_mean_s: float = 133.0 * 3600.0
    checkpoint_interval_s: float = 1800.0
    checkpoint_write_s: float = 30.0
    restart_s: float = 300.0
    spread_penalty: float = 0.05

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
                raise ScenarioError(f"{name} = {value!r} is no finite number of zero or more; give one")
        for name in ("accelerators", "accelerators_per_node", "nodes_per_pod", "checkpoint_interval_s"):
            if getattr(self, name) < 1:
                raise ScenarioError(f"{name} = {getattr(self, name)!r} is below 1; give 1 or more")
        if self.accelerators % self.accelerators_per_node:
            raise ScenarioError(
                f"accelerators = {self.accelerators} are no whole number of nodes of {self.accelerators_per_node}"
            )
        if not 0.0 < self.repair_median_s <= self.repair_mean_s:
            raise ScenarioError(
                f"repair_median_s = {self.repair_median_s!r} is outside (0, repair_mean_s = {self.repair_mean_s!r}]"
            )

    def replace(self, **changes: Any) -> Plant:
        """Return a plant with these values changed."""
        return replace(self, **changes)

    @property
    def nodes(self) -> int:
        """Servers."""
        return int(self.accelerators // self.accelerators_per_node)


@dataclass(frozen=True, slots=True)
class Schedule:
    """What came of it: one row a job, one row an hour, and the sums."""

    jobs: pl.DataFrame
    timeline: pl.DataFrame
    summary: dict[str, float]


def schedule(jobs: pl.DataFrame, plant: Plant | None = None, policy: Policy | None = None, seed: int = 0) -> Schedule:
    """Run a queue of jobs through a cluster.

    Parameters
    ----------
    jobs
        One row per job: ``arrival_s``, ``accelerators``, ``run_s`` (work without stops), ``estimate_s`` (run time that
        its user asks for), ``priority`` (larger goes first). :func:`workload` makes such rows.
    plant
        The cluster; 16,384 accelerators by default.
    policy
        What the scheduler does; everything by default.
    seed
        Decides failures, repairs and random placement.

    Returns
    -------
    Schedule
        ``jobs``: the rows given, in order of arrival, with ``start_s``, ``end_s``, ``queue_s`` (all waiting, requeues
        included), ``preemptions``, ``failures``, ``lost_s`` (work done again), ``pods`` (of its last start) and
        ``spread`` (whether more pods than needed). ``timeline``: per hour of simulated time the share of accelerators
        that is busy and the share that is down. ``summary``: ``utilization`` (busy over all, from the first to the
        last arrival), ``useful_share`` (work over busy time), ``queue_s_mean``, ``queue_s_median``, ``queue_s_p95``,
        ``preemptions``, ``failures``, ``lost_accelerator_h``, ``spread_share``, ``makespan_s``.

    Raises
    ------
    ScenarioError
        If a column is missing or holds a value that no job can have, or a job is larger than the cluster.

    Examples
    --------
    >>> import polars as pl
    >>> two = {"arrival_s": [0.0, 1.0], "accelerators": [8.0, 8.0], "run_s": 3600.0, "estimate_s": 3600.0}
    >>> one_node = Plant(accelerators=8, node_failures_per_node_day=0.0, checkpoint_write_s=0.0)
    >>> schedule(pl.DataFrame(two).with_columns(priority=0), one_node).jobs["queue_s"].to_list()
    [0.0, 3599.0]
    """
    plant, policy = plant or Plant(), policy or Policy()
    rows = _checked(jobs, plant)
    run = _Run(rows, plant, policy, random.Random(seed))
    run.play()
    return run.result(rows)


def _checked(jobs: pl.DataFrame, plant: Plant) -> pl.DataFrame:
    import polars as pl

    needed = ("arrival_s", "accelerators", "run_s", "estimate_s", "priority")
    for name in needed:
        if name not in jobs.columns:
            raise ScenarioError(f"jobs have no column {name}; give {', '.join(needed)}")
        if not jobs.schema[name].is_numeric():
            raise ScenarioError(f"column {name} is {jobs.schema[name]}, not numeric")
    if jobs.is_empty():
        raise ScenarioError("jobs have no rows; give at least one")
    for name, least in (("arrival_s", 0.0), ("accelerators", 1.0), ("run_s", 0.0), ("estimate_s", 0.0)):
        column = jobs[name].cast(pl.Float64)
        if column.null_count() or not (column.is_finite() & (column >= least)).all():
            raise ScenarioError(f"column {name} holds a value below {least:g}, missing or not finite")
    if jobs["priority"].null_count():
        raise ScenarioError("column priority holds a missing value")
    largest = jobs["accelerators"].max()
    if largest > plant.accelerators:  # type: ignore[operator]
        raise ScenarioError(
            f"a job needs {largest:g} accelerators, the cluster has {plant.accelerators}; it never starts"
        )
    return jobs.sort("arrival_s", maintain_order=True)


class _Nodes:
    """Which accelerators are free. Small jobs share nodes, larger ones take whole nodes."""

    def __init__(self, plant: Plant, packed: bool, draw: random.Random) -> None:
        self.size = int(plant.accelerators_per_node)
        self.pods_of = [node // int(plant.nodes_per_pod) for node in range(plant.nodes)]
        self.per_pod = int(plant.nodes_per_pod)
        self.free = [self.size] * plant.nodes
        self.up = [True] * plant.nodes
        self.whole: list[set[int]] = [set() for _ in range(self.pods_of[-1] + 1)]
        for node, pod in enumerate(self.pods_of):
            self.whole[pod].add(node)
        self.partly: list[set[int]] = [set() for _ in range(self.size)]
        self.whole_nodes = plant.nodes
        self.free_total = plant.nodes * self.size
        self.packed, self.draw = packed, draw

    def take(self, accelerators: int) -> list[tuple[int, int]] | None:
        """Return nodes and accelerators for a job, or None if it does not fit now."""
        if accelerators > self.free_total:
            return None
        if accelerators < self.size:
            return self._share(accelerators)
        nodes = -(-accelerators // self.size)
        if nodes > self.whole_nodes:
            return None
        chosen = self._pack(nodes) if self.packed else self._scatter(nodes)
        for node in chosen:
            self.whole[self.pods_of[node]].discard(node)
            self.free[node] = 0
        self.whole_nodes -= nodes
        self.free_total -= nodes * self.size
        return [(node, self.size) for node in chosen]

    def _share(self, accelerators: int) -> list[tuple[int, int]] | None:
        for left in range(accelerators, self.size):
            if self.partly[left]:
                node = self.partly[left].pop()
                break
        else:
            if not self.whole_nodes:
                return None
            pod = min((pod for pod in range(len(self.whole)) if self.whole[pod]), key=lambda pod: len(self.whole[pod]))
            node = self.whole[pod].pop()
            self.whole_nodes -= 1
        self.free[node] -= accelerators
        self.free_total -= accelerators
        if self.free[node]:
            self.partly[self.free[node]].add(node)
        return [(node, accelerators)]

    def _pack(self, nodes: int) -> list[int]:
        """Fill the pod that is just large enough, or else as few pods as possible."""
        sizes = [len(pod) for pod in self.whole]
        fitting = [pod for pod, size in enumerate(sizes) if size >= nodes]
        if fitting:
            pod = min(fitting, key=sizes.__getitem__)
            return self._first(pod, nodes)
        chosen: list[int] = []
        for pod in sorted(range(len(sizes)), key=lambda pod: -sizes[pod]):
            chosen += self._first(pod, min(nodes - len(chosen), sizes[pod]))
            if len(chosen) == nodes:
                break
        return chosen

    def _first(self, pod: int, nodes: int) -> list[int]:
        members = iter(self.whole[pod])
        return [next(members) for _ in range(nodes)]

    def _scatter(self, nodes: int) -> list[int]:
        return self.draw.sample([node for pod in self.whole for node in pod], nodes)

    def give(self, held: list[tuple[int, int]]) -> None:
        """Take back what a job held; what is down stays out."""
        for node, accelerators in held:
            if not self.up[node]:
                self.free[node] += accelerators
                continue
            before = self.free[node]
            if before:
                self.partly[before].discard(node)
            self.free[node] = now = before + accelerators
            self.free_total += accelerators
            self._offer(node, now)

    def _offer(self, node: int, free: int) -> None:
        if free == self.size:
            self.whole[self.pods_of[node]].add(node)
            self.whole_nodes += 1
        elif free:
            self.partly[free].add(node)

    def fail(self, node: int) -> None:
        """Take a node out."""
        self.up[node] = False
        free = self.free[node]
        self.free_total -= free
        if free == self.size:
            self.whole[self.pods_of[node]].discard(node)
            self.whole_nodes -= 1
        elif free:
            self.partly[free].discard(node)

    def repair(self, node: int) -> None:
        """Put a node back."""
        self.up[node] = True
        self.free_total += self.free[node]
        self._offer(node, self.free[node])

    def spread(self, held: list[tuple[int, int]]) -> tuple[int, bool]:
        """Return how many pods a job spans and whether it could do with fewer."""
        pods = len({self.pods_of[node] for node, _ in held})
        return pods, pods > -(-len(held) // self.per_pod)


class _Run:
    """One pass through the events."""

    def __init__(self, rows: pl.DataFrame, plant: Plant, policy: Policy, draw: random.Random) -> None:
        self.plant, self.policy, self.draw = plant, policy, draw
        self.nodes = _Nodes(plant, policy.packed, draw)
        self.arrival: list[float] = rows["arrival_s"].to_list()
        self.need = [math.ceil(value) for value in rows["accelerators"].to_list()]
        self.work: list[float] = rows["run_s"].to_list()
        self.estimate: list[float] = rows["estimate_s"].to_list()
        self.priority: list[float] = rows["priority"].to_list()
        count = len(self.need)
        self.saved = [0.0] * count
        self.overhead = [0.0] * count
        self.slow = [1.0] * count
        self.began = [0.0] * count
        self.ends = [0.0] * count
        self.first = [math.nan] * count
        self.done = [math.nan] * count
        self.waited = [0.0] * count
        self.queued = [0.0] * count
        self.lost = [0.0] * count
        self.preemptions = [0] * count
        self.failures = [0] * count
        self.pods = [0] * count
        self.spread = [False] * count
        self.version = [0] * count
        self.held: dict[int, list[tuple[int, int]]] = {}
        self.on_node: list[set[int]] = [set() for _ in range(plant.nodes)]
        self.queue: list[tuple[float, int]] = []
        self.running: list[tuple[float, int]] = []
        self.segments: list[tuple[float, float, int]] = []
        self.down: list[tuple[float, float]] = []
        self.pace = 1.0 + plant.checkpoint_write_s / plant.checkpoint_interval_s
        self.reserved, self.spare = math.inf, 0
        self.events: list[tuple[float, int, int, int, int]] = []
        self.order = 0
        self.left = count

    def push(self, time: float, kind: int, which: int, version: int = 0) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, kind, self.order, which, version))

    def play(self) -> None:
        for job, time in enumerate(self.arrival):
            self.events.append((time, ARRIVAL, job, job, 0))
        self.order = len(self.events)
        heapq.heapify(self.events)
        self.next_failure(self.arrival[0])
        while self.left:
            time, kind, _, which, version = heapq.heappop(self.events)
            if kind == ARRIVAL:
                self.arrive(time, which)
            elif kind == END:
                if self.version[which] == version:
                    self.end(time, which)
            elif kind == FAILURE:
                self.fail(time)
            else:
                self.nodes.repair(which)
                self.fill(time)

    def next_failure(self, now: float) -> None:
        rate = self.plant.nodes * self.plant.node_failures_per_node_day / SECONDS_PER_DAY
        if rate > 0.0:
            self.push(now + self.draw.expovariate(rate), FAILURE, 0)

    def arrive(self, now: float, job: int) -> None:
        self.queued[job] = now
        key = (-self.priority[job], job)
        if self.queue and key > self.queue[0]:
            if not (self.policy.backfill and self.may_pass(now, job) and self.start(now, job)):
                insort(self.queue, key)
            return
        insort(self.queue, key)
        self.fill(now)

    def end(self, now: float, job: int) -> None:
        self.done[job] = now
        self.left -= 1
        self.release(now, job)
        self.fill(now)

    def release(self, now: float, job: int) -> None:
        self.version[job] += 1
        held = self.held.pop(job)
        self.segments.append((self.began[job], now, self.need[job]))
        for node, _ in held:
            self.on_node[node].discard(job)
        self.nodes.give(held)
        self.running.remove((self.ends[job], job))

    def fill(self, now: float) -> None:
        """Start what fits, in order of priority and arrival; then look behind the first that does not."""
        queue = self.queue
        while queue and self.start(now, queue[0][1]):
            queue.pop(0)
        if not queue:
            return
        head = queue[0][1]
        if self.policy.preempt and self.make_room(now, head) and self.start(now, head):
            queue.pop(0)
            self.fill(now)
            return
        if not self.policy.backfill:
            return
        self.reserve(now, head)
        place, seen = 1, 0
        while place < len(queue) and seen < BACKFILL_DEPTH and self.nodes.free_total:
            job = queue[place][1]
            if self.may_pass(now, job) and self.start(now, job):
                queue.pop(place)
            else:
                place += 1
            seen += 1

    def reserve(self, now: float, head: int) -> None:
        """Find when the first job can start, and how many accelerators are left over then."""
        missing = self.need[head] - self.nodes.free_total
        self.reserved, self.spare = (now, -missing) if missing <= 0 else (math.inf, 0)
        for time, job in self.running:
            if missing <= 0:
                break
            missing -= self.need[job]
            if missing <= 0:
                self.reserved, self.spare = time, -missing

    def may_pass(self, now: float, job: int) -> bool:
        if self.need[job] > self.nodes.free_total:
            return False
        if now + self.remaining(job, self.estimate[job]) <= self.reserved:
            return True
        if self.need[job] <= self.spare:
            self.spare -= self.need[job]
            return True
        return False

    def remaining(self, job: int, work: float) -> float:
        return max(work - self.saved[job], 0.0) * self.pace + self.overhead[job]

    def start(self, now: float, job: int) -> bool:
        held = self.nodes.take(self.need[job])
        if held is None:
            return False
        self.pods[job], self.spread[job] = self.nodes.spread(held)
        self.slow[job] = 1.0 + self.plant.spread_penalty * self.spread[job]
        self.held[job] = held
        for node, _ in held:
            self.on_node[node].add(job)
        self.began[job] = now
        self.waited[job] += now - self.queued[job]
        if math.isnan(self.first[job]):
            self.first[job] = now
        self.ends[job] = now + self.remaining(job, max(self.estimate[job], self.work[job])) * self.slow[job]
        insort(self.running, (self.ends[job], job))
        self.push(now + self.remaining(job, self.work[job]) * self.slow[job], END, job, self.version[job])
        return True

    def progress(self, now: float, job: int) -> float:
        """Return the work done since the last start."""
        ran = (now - self.began[job]) / self.slow[job] - self.overhead[job]
        return min(max(ran, 0.0) / self.pace, self.work[job] - self.saved[job])

    def make_room(self, now: float, head: int) -> bool:
        """Preempt jobs of lower priority, the lowest and youngest first, if that makes room for ``head``."""
        whole = self.need[head] >= self.nodes.size
        missing = -(-self.need[head] // self.nodes.size) - self.nodes.whole_nodes if whole else 1
        victims: list[int] = []
        lower = [job for job in self.held if self.priority[job] < self.priority[head]]
        for job in sorted(lower, key=lambda job: (self.priority[job], -self.began[job])):
            if missing <= 0:
                break
            if whole and self.need[job] >= self.nodes.size:
                missing -= len(self.held[job])
                victims.append(job)
            elif not whole and self.need[job] >= self.need[head]:
                missing -= 1
                victims.append(job)
        if missing > 0:
            return False
        for job in victims:
            self.saved[job] += self.progress(now, job)
            self.overhead[job] = self.plant.checkpoint_write_s + self.plant.restart_s
            self.preemptions[job] += 1
            self.again(now, job)
        return True

    def again(self, now: float, job: int) -> None:
        self.release(now, job)
        self.queued[job] = now
        insort(self.queue, (-self.priority[job], job))

    def fail(self, now: float) -> None:
        self.next_failure(now)
        if self.queue and now - self.queued[self.queue[0][1]] > LONGEST_WAIT_S:
            need = self.need[self.queue[0][1]]
            raise FactorykitError(
                f"a job of {need} accelerators waits for more than a year: failures leave fewer of "
                f"{self.plant.accelerators} up; shorten repairs or give spare nodes"
            )
        node = self.draw.randrange(self.plant.nodes)
        if not self.nodes.up[node]:
            return
        interval = self.plant.checkpoint_interval_s
        self.nodes.fail(node)
        for job in sorted(self.on_node[node]):
            done = self.progress(now, job)
            kept = done // interval * interval
            self.saved[job] += kept
            self.lost[job] += done - kept
            self.overhead[job] = self.plant.restart_s
            self.failures[job] += 1
            if self.failures[job] == MOST_FAILURES:
                raise FactorykitError(
                    f"job {job} of {self.need[job]} accelerators failed {MOST_FAILURES} times without an end; "
                    f"shorten checkpoint_interval_s = {interval:g} or lower node_failures_per_node_day"
                )
            self.again(now, job)
        sigma = math.sqrt(2.0 * math.log(self.plant.repair_mean_s / self.plant.repair_median_s))
        until = now + self.plant.repair_median_s * math.exp(sigma * self.draw.gauss(0.0, 1.0))
        self.down.append((now, until))
        self.push(until, REPAIR, node)
        self.fill(now)

    def result(self, rows: pl.DataFrame) -> Schedule:
        import polars as pl

        jobs = rows.with_columns(
            pl.Series("start_s", self.first, pl.Float64),
            pl.Series("end_s", self.done, pl.Float64),
            pl.Series("queue_s", self.waited, pl.Float64),
            pl.Series("preemptions", self.preemptions, pl.Float64),
            pl.Series("failures", self.failures, pl.Float64),
            pl.Series("lost_s", self.lost, pl.Float64),
            pl.Series("pods", self.pods, pl.Float64),
            pl.Series("spread", self.spread),
        )
        start, stop = self.arrival[0], max(self.arrival[-1], self.arrival[0] + 1.0)
        total = float(self.plant.accelerators)
        window = _clipped(self.segments, start, stop) / (total * (stop - start))
        busy = math.fsum((until - since) * need for since, until, need in self.segments)
        work = math.fsum(run * need for run, need in zip(self.work, self.need, strict=True))
        wide = jobs.filter(pl.col("accelerators") > self.nodes.size)
        summary = {
            "utilization": window,
            "useful_share": work / busy if busy else math.nan,
            "queue_s_mean": _number(jobs["queue_s"].mean()),
            "queue_s_median": _number(jobs["queue_s"].median()),
            "queue_s_p95": _number(jobs["queue_s"].quantile(0.95, "linear")),
            "preemptions": float(sum(self.preemptions)),
            "failures": float(sum(self.failures)),
            "lost_accelerator_h": math.fsum(a * b for a, b in zip(self.lost, self.need, strict=True)) / 3600.0,
            "spread_share": _number(wide["spread"].mean()) if wide.height else 0.0,
            "makespan_s": _number(jobs["end_s"].max()) - start,
        }
        return Schedule(jobs, self.timeline(), summary)

    def timeline(self) -> pl.DataFrame:
        """Return one row an hour: ``hour``, ``busy_share`` and ``down_share`` of all accelerators."""
        import polars as pl

        start = self.arrival[0]
        hours = math.ceil((max(until for _, until, _ in self.segments) - start) / 3600.0) or 1
        down = [(since, until, self.nodes.size) for since, until in self.down]
        whole = self.plant.accelerators * 3600.0
        return pl.DataFrame(
            {
                "hour": [float(hour) for hour in range(hours)],
                "busy_share": [area / whole for area in _hourly(self.segments, start, hours)],
                "down_share": [area / whole for area in _hourly(down, start, hours)],
            }
        )


def _number(value: Any) -> float:
    return float(value)


def _clipped(segments: Sequence[tuple[float, float, int]], start: float, stop: float) -> float:
    return math.fsum((min(until, stop) - max(since, start)) * n for since, until, n in segments if since < stop)


def _hourly(segments: Sequence[tuple[float, float, int]], start: float, hours: int) -> list[float]:
    """Return the area of the segments in each hour: the level at its beginning, and what changes within."""
    steps, areas = [0.0] * (hours + 1), [0.0] * (hours + 1)
    for since, until, n in segments:
        for time, sign in ((since, n), (until, -n)):
            hour, within = divmod(min(time - start, hours * 3600.0), 3600.0)
            place = int(hour)
            areas[place] += sign * (3600.0 - within)
            steps[place] += sign
    level, result = 0.0, []
    for hour in range(hours):
        result.append(level * 3600.0 + areas[hour])
        level += steps[hour]
    return result


def workload(
    name: str,
    jobs: int = 10_000,
    load: float = 0.9,
    accelerators: int = 16384,
    seed: int = 0,
    *,
    estimate_factor: float = 2.0,
) -> pl.DataFrame:
    """Return synthetic jobs that follow the published summary of a cluster.

    Sizes are powers of two: ``SINGLE_SHARE`` of the jobs take one accelerator, the others fall off geometrically, with
    the published mean. Run times are lognormal about a median that grows with size and end at the longest one seen;
    mean run time, median run time and mean accelerator time of a job are the published ones. Arrivals are Poisson.

    Parameters
    ----------
    name
        A row of the ``workloads`` table: seren, kalos, philly or helios.
    jobs
        Rows.
    load
        Accelerator time asked for over accelerator time there is.
    accelerators
        Size of the cluster for which the load is meant.
    seed
        The same seed gives the same rows.
    estimate_factor
        Mean ratio of the time a user asks for to the time the job takes.

    Returns
    -------
    DataFrame
        One row per job as :func:`schedule` takes them, in order of arrival. ``priority`` is 0, 1 or 2.

    Raises
    ------
    FactorykitError
        If the name is unknown, a number is out of range, or SciPy is missing.

    Examples
    --------
    >>> workload("kalos", 1000)["accelerators"].median()
    1.0
    """
    import polars as pl

    try:
        import numpy as np
        from scipy import optimize, special
    except ImportError:
        raise FactorykitError("workload needs NumPy and SciPy: pip install 'factorykit[uncertainty]'") from None
    for what, value in (("jobs", jobs), ("load", load), ("accelerators", accelerators)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
            raise ScenarioError(f"{what} = {value!r} is not above zero; give a finite number above zero")
    if not estimate_factor >= 1.0:
        raise ScenarioError(
            f"estimate_factor = {estimate_factor!r} is below 1; a job that outruns its estimate is killed"
        )
    row = _published(name)
    sizes, shares = _sizes(row, optimize)
    medians, sigma = _run_times(row, sizes, shares, optimize, special)
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(sizes), size=int(jobs), p=shares)
    run = np.minimum(medians[kind] * np.exp(sigma * rng.standard_normal(int(jobs))), row["run_s_max"])
    asked = np.minimum(sizes[kind], accelerators)
    gaps = rng.exponential(row["accelerator_s_mean"] / (load * accelerators), size=int(jobs))
    return pl.DataFrame(
        {
            "arrival_s": np.cumsum(gaps),
            "accelerators": asked,
            "run_s": run,
            "estimate_s": run * (1.0 + rng.exponential(estimate_factor - 1.0, size=int(jobs))),
            "priority": rng.choice(3, size=int(jobs), p=PRIORITY_SHARES).astype(float),
        }
    )


def _published(name: str) -> dict[str, Any]:
    import polars as pl

    table = datasets.table("workloads").filter(pl.col("accelerator_s_mean").is_not_null()).collect()
    if name not in table["workload"]:
        raise UnknownName(unknown("workload", name, table["workload"]))
    return table.row(by_predicate=pl.col("workload") == name, named=True)


def _sizes(row: dict[str, Any], optimize: Any) -> tuple[Any, Any]:
    """Return powers of two and their shares, with the published mean."""
    import numpy as np

    sizes = 2.0 ** np.arange(int(math.log2(row["accelerators_max"])) + 1)

    def shares(decay: float) -> Any:
        tail = decay ** np.arange(1, len(sizes))
        return np.append(SINGLE_SHARE, (1.0 - SINGLE_SHARE) * tail / tail.sum())

    decay = optimize.brentq(lambda decay: sizes @ shares(decay) - row["accelerators_mean"], 1e-6, 4.0)
    return sizes, shares(decay)


def _run_times(row: dict[str, Any], sizes: Any, shares: Any, optimize: Any, special: Any) -> tuple[Any, float]:
    """Return the median run time per size and the sigma of its logarithm.

    Three unknowns, the median on one accelerator, its growth with every doubling and sigma, meet three published
    numbers: mean and median run time and mean accelerator time. Run times end at the longest that was seen.
    """
    import numpy as np

    longest, doublings = math.log(row["run_s_max"]), np.arange(len(sizes))

    def off(guess: Any) -> list[float]:
        mu, sigma = guess[0] + guess[1] * doublings, math.exp(guess[2])
        short = np.exp(mu + sigma**2 / 2.0) * special.ndtr((longest - mu - sigma**2) / sigma)
        means = short + row["run_s_max"] * special.ndtr((mu - longest) / sigma)
        below = shares @ special.ndtr((math.log(row["run_s_median"]) - mu) / sigma)
        return [
            math.log(shares @ means / row["run_s_mean"]),
            math.log(shares @ (sizes * means) / row["accelerator_s_mean"]),
            special.ndtri(below),
        ]

    found = optimize.root(off, [math.log(row["run_s_median"]), 0.3, math.log(2.0)])
    if not found.success:
        raise FactorykitError(f"{row['workload']}: no lognormal meets the published summary ({found.message})")
    return np.exp(found.x[0] + found.x[1] * doublings), math.exp(found.x[2])
