"""Simulation of a shared cluster with a queue: gang scheduling, priorities, preemption, backfill, topology, failures.

Events are arrivals, ends, failures and repairs, in a heap by time. Jobs start with all accelerators or not at all. The
first job in the queue that does not fit gets a reservation at the time when, by the estimates of the running jobs,
enough accelerators will be free; later jobs start ahead of it only if they do not move that time (EASY backfill: A. W.
Mu'alem and D. G. Feitelson, IEEE Trans. Parallel Distrib. Syst. 12(6), 2001).
"""

from __future__ import annotations

import heapq
import math
import random
import re
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY, SECONDS_PER_HOUR
from factorykit.core.errors import FactorykitError, ScenarioError, short_repr
from factorykit.core.units import parse_column
from factorykit.core.validation import MAX_EXACT_INTEGER, frame, integer, one_of
from factorykit.core.vocabulary import duration, format_number, quantity
from factorykit.engine.html import html_table
from factorykit.engine.providers.defaults import defaults
from factorykit.engine.question import Question
from factorykit.model.operations.placement import Nodes

ARRIVAL, END, FAILURE, REPAIR = range(4)
BACKFILL_DEPTH: Final = 100
"""Jobs behind the reservation that are considered, as Slurm's bf_max_job_test does with a default of 500."""
MOST_FAILURES: Final = 1000
"""Failures of a job that counts as endless."""
LONGEST_WAIT_S: Final = 365.0 * SECONDS_PER_DAY
"""Longest wait of the first job of the queue; a longer one counts as endless. [s]"""


@dataclass(frozen=True, slots=True)
class Policy:
    """Policy of the scheduler.

    ``backfill``: later jobs fill holes that do not delay the first. ``preempt``: a job of higher priority takes the
    accelerators of jobs of lower priority, which save and queue again. ``packed``: a job goes to as few pods as
    possible; otherwise to nodes at random.
    """

    backfill: bool = True
    preempt: bool = True
    packed: bool = True


def _usual(name: str) -> Any:
    return field(default_factory=lambda: defaults()[name].value)


@dataclass(frozen=True)
class Cluster:
    """The cluster under the scheduler; names, units and defaults are those of the vocabulary.

    ``nodes_per_pod`` nodes share a switch. A job that spans more pods than it needs takes ``pod_spread_penalty``
    longer. Node failures arrive at a constant rate; repairs are lognormal, since published ones have a heavy tail: half
    of them end within ``node_repair_median_s``, and ``node_repair_sigma`` is the spread of their logarithms. Every
    accelerator costs ``rental_usd_per_accelerator_h``, busy or not.
    """

    accelerators: float = _usual("accelerators")
    accelerators_per_node: float = _usual("accelerators_per_node")
    nodes_per_pod: float = _usual("nodes_per_pod")
    node_failures_per_node_day: float = _usual("node_failures_per_node_day")
    node_repair_median_s: float = _usual("node_repair_median_s")
    node_repair_sigma: float = _usual("node_repair_sigma")
    checkpoint_interval_s: float = _usual("checkpoint_interval_s")
    checkpoint_write_s: float = _usual("checkpoint_write_s")
    restart_s: float = _usual("restart_s")
    pod_spread_penalty: float = _usual("pod_spread_penalty")
    rental_usd_per_accelerator_h: float = _usual("rental_usd_per_accelerator_h")

    def __post_init__(self) -> None:
        for name in (attribute.name for attribute in fields(self)):
            object.__setattr__(self, name, float(quantity(name).check(getattr(self, name))))
        for name in ("accelerators", "accelerators_per_node", "nodes_per_pod"):
            integer(name, getattr(self, name))
        if self.accelerators % self.accelerators_per_node:
            raise ScenarioError(
                f"accelerators must be a multiple of accelerators_per_node = {self.accelerators_per_node:g}, "
                f"got {self.accelerators:g}"
            )

    @classmethod
    def of(
        cls, inputs: Mapping[str, Any], *, using: Mapping[str, str] | None = None, assume: bool = False, **changes: Any
    ) -> Cluster:
        """Return the cluster of a scenario, with ``changes``, computed quantities, and defaults for the rest.

        Failure rates by accelerator or by cluster are converted to those of nodes. ``using`` and
        ``assume`` are those of :func:`factorykit.evaluate`.
        """
        changes = {one_of("value of a cluster", name, _NAMED): value for name, value in changes.items()}
        question = Question.read(inputs, using=using, assume=assume)
        names = [field.name for field in fields(cls) if field.name not in changes]
        values = {name: result[name] for name in names if (result := question.get(name))}
        question.asking(*values).check_used()
        rate = "node_failures_per_node_day_of_job"
        if result := replace(question, assume=False).get(rate):
            values["node_failures_per_node_day"] = result[rate]
        return cls(**values | changes)

    def replace(self, **changes: Any) -> Cluster:
        """Return a cluster with these values changed."""
        changes = {one_of("value of a cluster", name, _NAMED): value for name, value in changes.items()}
        return replace(self, **changes)

    @property
    def nodes(self) -> int:
        """Servers."""
        return int(self.accelerators // self.accelerators_per_node)


_NAMED: Final = tuple(field.name for field in fields(Cluster))


@dataclass(frozen=True, slots=True)
class Schedule:
    """Result of a simulation: one row per job, one row per hour, and the summary."""

    jobs: pl.DataFrame
    timeline: pl.DataFrame
    summary: dict[str, float]

    def _repr_html_(self) -> str:
        caption = f"{self.jobs.height:,} jobs on the cluster"
        return html_table(("summary", "value"), [(n, _text(n, value)) for n, value in self.summary.items()], caption)


PRINTED_AS: Final = (
    *(("_usd", "rental_cost_usd"), ("_share", "utilization"), ("utilization", "utilization")),
    *(("_hours", "accelerator_hours"), ("_h", "accelerator_hours"), ("_s", "wall_s")),
)
"""Suffixes of the names in a summary, and the quantities whose units they have."""


def _text(name: str, value: float) -> str:
    if value != value:
        return "unknown"
    stem = re.sub("_(mean|median|p95)$", "", name)
    like = next((like for end, like in PRINTED_AS if stem.endswith(end)), None)
    return quantity(like).text(value) if like else format_number(value)


def schedule(
    jobs: pl.DataFrame, cluster: Cluster | None = None, policy: Policy | None = None, seed: int = 0
) -> Schedule:
    """Run a queue of jobs through a cluster.

    Parameters
    ----------
    jobs
        One row per job: ``arrival_s``, ``accelerators``, ``run_s`` (work without stops), ``estimate_s`` (run time that
        its user asks for), ``priority`` (larger goes first). :func:`workload` makes such rows.
    cluster
        The cluster; 16,384 accelerators by default.
    policy
        Policy of the scheduler; by default with backfill, preemption and packing.
    seed
        Decides failures, repairs and random placement.

    Returns
    -------
    Schedule
        ``jobs``: the rows given, in order of arrival, with ``start_s``, ``end_s``, ``queue_s`` (all waiting, requeues
        included), ``preemptions``, ``failures``, ``lost_s`` (work done again), ``pods`` (of its last start), ``spread``
        (whether more pods than needed), ``accelerator_hours`` (held), ``rental_cost_usd`` (of these) and
        ``wasted_cost_usd`` (of that, the cost of preemptions and failures). ``timeline``: per hour of simulated time
        the share of accelerators that is busy and the share that is down. ``summary``: ``utilization`` (busy over all,
        from the first to the last arrival), ``useful_share`` (work over busy time), ``queue_s_mean``,
        ``queue_s_median``, ``queue_s_p95``, ``preemptions``, ``failures``, ``lost_accelerator_h``, ``spread_share``,
        ``makespan_s``, ``accelerator_hours``, and ``rental_cost_usd`` with its parts: ``useful_cost_usd`` (work),
        ``saves_cost_usd`` (periodic checkpoints), ``preemption_cost_usd`` (saves and restarts they force),
        ``failures_cost_usd`` (restarts and work done again), ``spread_cost_usd`` (slower in too many pods).
        ``idle_cost_usd`` is separate: the accelerators that were down or unused between the first and the last arrival.

    Raises
    ------
    ScenarioError
        If a column is missing or has an invalid value, or a job is larger than the cluster.

    Examples
    --------
    >>> import polars as pl
    >>> two = {"arrival_s": [0.0, 1.0], "accelerators": [8.0, 8.0], "run_s": 3600.0, "estimate_s": 3600.0}
    >>> one_node = Cluster(accelerators=8, node_failures_per_node_day=0.0, checkpoint_write_s=0.0)
    >>> schedule(pl.DataFrame(two).with_columns(priority=0), one_node).jobs["queue_s"].to_list()
    [0.0, 3599.0]
    """
    cluster = Cluster() if cluster is None else cluster
    policy = Policy() if policy is None else policy
    for name, given, kind in (("cluster", cluster, Cluster), ("policy", policy, Policy)):
        if not isinstance(given, kind):
            raise ScenarioError(f"{name} must be a fk.{kind.__name__}, got {short_repr(given)}")
    rows = _checked(jobs, cluster)
    run = _Run(rows, cluster, policy, random.Random(integer("seed", seed)))
    run.play()
    return run.result(rows)


def _checked(jobs: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    needed = ("arrival_s", "accelerators", "run_s", "estimate_s", "priority")
    jobs = frame("jobs", jobs, needed)
    for name in needed:
        if jobs.schema[name] == pl.String and name != "priority":
            of = quantity("accelerators") if name == "accelerators" else duration(name)
            jobs = jobs.with_columns(parse_column(jobs[name], of))
        elif not jobs.schema[name].is_numeric():
            raise ScenarioError(f"column {name} is {jobs.schema[name]}, not numeric")
    if jobs.is_empty():
        raise ScenarioError("jobs have no rows; give at least one")
    for name, least in (("arrival_s", 0.0), ("accelerators", 1.0), ("run_s", 0.0), ("estimate_s", 0.0)):
        values = jobs[name].cast(pl.Float64)
        if values.null_count() or not values.is_between(least, MAX_EXACT_INTEGER).all():
            raise ScenarioError(
                f"column {name} holds a value that is missing or outside [{least:g}, {MAX_EXACT_INTEGER:,}]"
            )
    if jobs["priority"].null_count() or not jobs["priority"].cast(pl.Float64).is_finite().all():
        raise ScenarioError("column priority holds a value missing or not finite")
    largest = jobs["accelerators"].max()
    if largest > cluster.accelerators:  # type: ignore[operator]
        raise ScenarioError(
            f"a job needs {largest:g} accelerators, the cluster has {cluster.accelerators}; it never starts"
        )
    return jobs.sort("arrival_s", maintain_order=True)


class _Run:
    """One simulation."""

    def __init__(self, rows: pl.DataFrame, cluster: Cluster, policy: Policy, draw: random.Random) -> None:
        self.cluster, self.policy, self.draw = cluster, policy, draw
        self.nodes = Nodes(
            cluster.nodes, int(cluster.accelerators_per_node), int(cluster.nodes_per_pod), policy.packed, draw
        )
        self.arrival: list[float] = rows["arrival_s"].to_list()
        self.need = [math.ceil(value) for value in rows["accelerators"].to_list()]
        self.work: list[float] = rows["run_s"].to_list()
        self.estimate: list[float] = rows["estimate_s"].to_list()
        self.priority: list[float] = rows["priority"].to_list()
        count = len(self.need)
        self.saved = [0.0] * count
        self.overhead = [0.0] * count
        self.preempted = [False] * count
        self.busy_s = [0.0] * count
        self.spread_s = [0.0] * count
        self.preemption_s = [0.0] * count
        self.restarts_s = [0.0] * count
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
        self.priorities = dict.fromkeys(self.priority, 0)
        self.on_node: list[set[int]] = [set() for _ in range(cluster.nodes)]
        self.queue: list[tuple[float, int]] = []
        self.running: list[tuple[float, int]] = []
        self.segments: list[tuple[float, float, int]] = []
        self.down: list[tuple[float, float]] = []
        self.pace = 1.0 + cluster.checkpoint_write_s / cluster.checkpoint_interval_s
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
        rate = self.cluster.nodes * self.cluster.node_failures_per_node_day / SECONDS_PER_DAY
        if rate > 0.0:
            self.push(now + self.draw.expovariate(rate), FAILURE, 0)

    def arrive(self, now: float, job: int) -> None:
        self.queued[job] = now
        key = (-self.priority[job], job)
        if self.queue and key > self.queue[0]:
            fits = self.policy.backfill and self.need[job] <= self.nodes.free_total
            if not (fits and self.may_pass(now, job) and self.start(now, job)):
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
        self.priorities[self.priority[job]] -= 1
        self.segments.append((self.began[job], now, self.need[job]))
        self.account(job, now - self.began[job])
        for node, _ in held:
            self.on_node[node].discard(job)
        self.nodes.give(held)
        self.running.remove((self.ends[job], job))

    def account(self, job: int, busy_s: float) -> None:
        """Account for the time of a finished start: its restart, and the slowdown of its placement."""
        at_full_speed = busy_s / self.slow[job]
        stop = min(at_full_speed, self.overhead[job])
        (self.preemption_s if self.preempted[job] else self.restarts_s)[job] += stop
        self.spread_s[job] += busy_s - at_full_speed
        self.busy_s[job] += busy_s

    def fill(self, now: float) -> None:
        """Start jobs that fit, in order of priority and arrival; then backfill behind the first one that does not."""
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
        need, nodes = self.need, self.nodes
        for entry in queue[1 : BACKFILL_DEPTH + 1]:
            job = entry[1]
            if need[job] <= nodes.free_total and self.may_pass(now, job) and self.start(now, job):
                queue.remove(entry)

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
        self.slow[job] = 1.0 + self.cluster.pod_spread_penalty * self.spread[job]
        self.held[job] = held
        self.priorities[self.priority[job]] += 1
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
        if not any(held and priority < self.priority[head] for priority, held in self.priorities.items()):
            return False
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
            self.preemptions[job] += 1
            self.again(now, job, self.cluster.checkpoint_write_s + self.cluster.restart_s, preempted=True)
        return True

    def again(self, now: float, job: int, overhead_s: float, *, preempted: bool) -> None:
        self.release(now, job)
        self.overhead[job], self.preempted[job] = overhead_s, preempted
        self.queued[job] = now
        insort(self.queue, (-self.priority[job], job))

    def fail(self, now: float) -> None:
        self.next_failure(now)
        if self.queue and now - self.queued[self.queue[0][1]] > LONGEST_WAIT_S:
            need = self.need[self.queue[0][1]]
            raise FactorykitError(
                f"a job of {need} accelerators waits for more than a year: failures leave fewer of "
                f"{self.cluster.accelerators} up; shorten repairs or give spare nodes"
            )
        node = self.draw.randrange(self.cluster.nodes)
        if not self.nodes.up[node]:
            return
        interval = self.cluster.checkpoint_interval_s
        self.nodes.fail(node)
        for job in sorted(self.on_node[node]):
            done = self.progress(now, job)
            kept = done // interval * interval
            self.saved[job] += kept
            self.lost[job] += done - kept
            self.failures[job] += 1
            if self.failures[job] == MOST_FAILURES:
                raise FactorykitError(
                    f"job {job} of {self.need[job]} accelerators failed {MOST_FAILURES} times without an end; "
                    f"shorten checkpoint_interval_s = {interval:g} or lower node_failures_per_node_day"
                )
            self.again(now, job, self.cluster.restart_s, preempted=False)
        spread = math.exp(self.cluster.node_repair_sigma * self.draw.gauss(0.0, 1.0))
        until = now + self.cluster.node_repair_median_s * spread
        self.down.append((now, until))
        self.push(until, REPAIR, node)
        self.fill(now)

    def result(self, rows: pl.DataFrame) -> Schedule:
        usd_per_s = pl.Series(self.need) * self.cluster.rental_usd_per_accelerator_h / SECONDS_PER_HOUR
        jobs = rows.with_columns(
            pl.Series("start_s", self.first, pl.Float64),
            pl.Series("end_s", self.done, pl.Float64),
            pl.Series("queue_s", self.waited, pl.Float64),
            pl.Series("preemptions", self.preemptions, pl.Float64),
            pl.Series("failures", self.failures, pl.Float64),
            pl.Series("lost_s", self.lost, pl.Float64),
            pl.Series("pods", self.pods, pl.Float64),
            pl.Series("spread", self.spread),
            pl.Series("accelerator_hours", self.busy_s) * pl.Series(self.need) / SECONDS_PER_HOUR,
            pl.Series("rental_cost_usd", self.busy_s) * usd_per_s,
            (pl.Series("wasted_cost_usd", self.preemption_s) + pl.Series(self.failures_s())) * usd_per_s,
        )
        start, stop = self.arrival[0], max(self.arrival[-1], self.arrival[0] + 1.0)
        total = float(self.cluster.accelerators)
        busy_areas = ((min(until, stop) - max(since, start)) * n for since, until, n in self.segments if since < stop)
        window = math.fsum(busy_areas) / (total * (stop - start))
        busy = math.fsum((until - since) * need for since, until, need in self.segments)
        work = math.fsum(run * need for run, need in zip(self.work, self.need, strict=True))
        wide = [spread for need, spread in zip(self.need, self.spread, strict=True) if need > self.nodes.size]
        queue_s = pl.col("queue_s")
        waits = {"mean": queue_s.mean(), "median": queue_s.median(), "p95": queue_s.quantile(0.95, "linear")}
        summary = {
            "utilization": window,
            "useful_share": work / busy if busy else math.nan,
            **jobs.select(wait.alias(f"queue_s_{name}") for name, wait in waits.items()).row(0, named=True),
            "preemptions": float(sum(self.preemptions)),
            "failures": float(sum(self.failures)),
            "lost_accelerator_h": self.hours(self.lost),
            "spread_share": sum(wide) / len(wide) if wide else 0.0,
            "makespan_s": max(self.done) - start,
            "accelerator_hours": self.hours(self.busy_s),
            **self.bill(),
            "idle_cost_usd": self.cluster.rental_usd_per_accelerator_h
            * (1.0 - window)
            * total
            * (stop - start)
            / SECONDS_PER_HOUR,
        }
        return Schedule(jobs, self.timeline(), summary)

    def hours(self, seconds: Sequence[float]) -> float:
        """Return accelerator-hours of the seconds that each job spent."""
        return math.fsum(a * b for a, b in zip(seconds, self.need, strict=True)) / SECONDS_PER_HOUR

    def failures_s(self) -> list[float]:
        """Return the time that each job lost to failures: restarts, and repeated work and saves."""
        return [restart + lost * self.pace for restart, lost in zip(self.restarts_s, self.lost, strict=True)]

    def bill(self) -> dict[str, float]:
        """Return the rent of all jobs and its parts."""
        parts = {
            "rental_cost_usd": self.busy_s,
            "useful_cost_usd": self.work,
            "saves_cost_usd": [work * (self.pace - 1.0) for work in self.work],
            "preemption_cost_usd": self.preemption_s,
            "failures_cost_usd": self.failures_s(),
            "spread_cost_usd": self.spread_s,
        }
        return {
            name: self.cluster.rental_usd_per_accelerator_h * self.hours(seconds) for name, seconds in parts.items()
        }

    def timeline(self) -> pl.DataFrame:
        """Return one row an hour: ``hour``, ``busy_share`` and ``down_share`` of all accelerators."""
        start = self.arrival[0]
        hours = math.ceil((max(until for _, until, _ in self.segments) - start) / SECONDS_PER_HOUR) or 1
        down = [(since, until, self.nodes.size) for since, until in self.down]
        whole = self.cluster.accelerators * SECONDS_PER_HOUR
        return pl.DataFrame(
            {
                "hour": [float(hour) for hour in range(hours)],
                "busy_share": [area / whole for area in _hourly(self.segments, start, hours)],
                "down_share": [area / whole for area in _hourly(down, start, hours)],
            }
        )


def _hourly(segments: Sequence[tuple[float, float, int]], start: float, hours: int) -> list[float]:
    """Return the area of the segments in each hour: the level at its beginning, and the changes within."""
    steps, areas = [0.0] * (hours + 1), [0.0] * (hours + 1)
    for since, until, n in segments:
        for time, sign in ((since, n), (until, -n)):
            hour, within = divmod(min(time - start, hours * SECONDS_PER_HOUR), SECONDS_PER_HOUR)
            place = int(hour)
            areas[place] += sign * (SECONDS_PER_HOUR - within)
            steps[place] += sign
    level, result = 0.0, []
    for hour in range(hours):
        result.append(level * SECONDS_PER_HOUR + areas[hour])
        level += steps[hour]
    return result
