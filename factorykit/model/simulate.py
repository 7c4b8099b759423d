"""Monte Carlo of a whole run: failures, checkpoints in tiers, restarts, spares and maintenance; one row a run.

Two ways to one answer. The plain case (failures at a constant rate, one tier) is drawn as what it is, a compound
distribution: the number of failed attempts and the time each one took. Everything else steps through the failures of
all runs side by side. Both are vectorised over the runs and seeded.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from factorykit.constants import SECONDS_PER_HOUR
from factorykit.errors import FactorykitError, FactorykitWarning, MissingQuantity, ScenarioError
from factorykit.formulas.checkpoint_runtime import checkpoint_failures
from factorykit.model.distributions import Distribution
from factorykit.model.evaluate import evaluate
from factorykit.model.reliability import whole
from factorykit.quantities import quantity

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

Law = Distribution | float
"""How long something takes: a distribution of seconds with a quantile function, or a number of seconds."""

MOST_FAILURES = 100_000
"""Expected failures of one run above which it counts as never ending."""
CHUNK = 1 << 20
"""Draws held at once."""
NEEDED = ("training_s", "checkpoint_interval_s", "checkpoint_write_s", "cluster_mtbf_s", "restart_s", "downtime_s")


def _share(owner: str, name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value < 1.0:
        raise ScenarioError(f"{owner}: {name} = {value!r} is outside [0, 1); give a fraction, e.g. 0.01")


def _seconds(owner: str, name: str, value: float, least: float = 0.0) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < math.inf:
        raise ScenarioError(f"{owner}: {name} = {value!r} is outside [{least:g}, inf); give seconds")


def _law(owner: str, name: str, law: Any) -> None:
    if isinstance(law, Distribution):
        low, middle = float(law.ppf(1e-6)), float(law.ppf(0.5))
        if not 0.0 <= low <= middle < math.inf:
            raise ScenarioError(f"{owner}: {name} reaches {low:g} s; times are 0 or more and finite")
    else:
        _seconds(owner, name, law)


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of failures.

    Parameters
    ----------
    name
        What fails.
    weight
        Rate of this cause relative to the others; counts of a failure table serve.
    repair_s
        Time until the failed node is back, as a law or a number [s]; None if no node is taken, as for software.
    destroys
        How many of the nearest tiers lose their copy with it: 0 if the node lives on, 1 if its own storage goes.
    """

    name: str
    weight: float = 1.0
    repair_s: Law | None = None
    destroys: int = 0

    def __post_init__(self) -> None:
        owner = f"Cause({self.name!r})"
        if not (isinstance(self.weight, (int, float)) and 0.0 <= self.weight < math.inf):
            raise ScenarioError(f"{owner}: weight = {self.weight!r} is outside [0, inf); a count or a rate")
        whole("destroys", self.destroys)
        if self.repair_s is not None:
            _law(owner, "repair_s", self.repair_s)


@dataclass(frozen=True, slots=True)
class Tier:
    """A place for checkpoints; tiers are given the nearest first.

    Parameters
    ----------
    name
        Where the copy lies.
    write_s
        Time the job stands still for a checkpoint here, on top of the nearer tiers. [s]
    restore_s
        Time to read it back, on top of ``restart_s`` of the scenario. [s]
    every
        Checkpoints of the next nearer tier per checkpoint of this one; 1 for the nearest.
    lag_s
        Time after the write until the copy can be read back. [s]
    corrupt_probability
        Chance that the copy cannot be read when it is needed; then the next tier serves, and in the last tier an
        older copy.
    """

    name: str
    write_s: float
    restore_s: float = 0.0
    every: int = 1
    lag_s: float = 0.0
    corrupt_probability: float = 0.0

    def __post_init__(self) -> None:
        owner = f"Tier({self.name!r})"
        for name in ("write_s", "restore_s", "lag_s"):
            _seconds(owner, name, getattr(self, name))
        if whole("every", self.every) < 1:
            raise ScenarioError(f"{owner}: every = {self.every!r} is below 1")
        _share(owner, "corrupt_probability", self.corrupt_probability)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Planned stops: the job saves, stands still for ``duration_s``, restarts, and runs on for ``every_s``."""

    every_s: float
    duration_s: float

    def __post_init__(self) -> None:
        _seconds("Maintenance", "every_s", self.every_s, least=1.0)
        _seconds("Maintenance", "duration_s", self.duration_s)


def simulate(
    scenario: Mapping[str, Any],
    runs: int = 10_000,
    seed: int = 0,
    *,
    causes: Sequence[Cause] = (),
    tiers: Sequence[Tier] = (),
    gap_s: Distribution | None = None,
    spare_nodes: int | None = None,
    restart_failure_probability: float = 0.0,
    protected_restart: bool = False,
    maintenance: Maintenance | None = None,
) -> pl.DataFrame:
    """Simulate whole runs with failures.

    Parameters
    ----------
    scenario
        Gives or leads to ``training_s``, ``checkpoint_interval_s``, ``checkpoint_write_s``, ``cluster_mtbf_s``,
        ``restart_s`` and ``downtime_s``; with ``cluster_usd_per_h`` runs have a cost.
    runs
        Rows.
    seed
        The same seed gives the same rows.
    causes
        Causes of failures with their shares, repairs and what they destroy; by default one that takes no node.
    tiers
        Places for checkpoints, the nearest first; by default one with ``checkpoint_write_s`` of the scenario.
    gap_s
        Law of the time at risk from one failure to the next; by default exponential with ``cluster_mtbf_s``.
    spare_nodes
        Nodes held ready at the start; a job whose node is lost waits when none is left. By default never.
    restart_failure_probability
        Chance that a restart fails by itself and begins again.
    protected_restart
        Whether no failure can strike a restart.
    maintenance
        Planned stops.

    Returns
    -------
    DataFrame
        One row per run: ``run`` counts from 1; ``wall_s`` [s]; ``goodput`` [1], work over wall-clock time; ``failures``
        [1]; ``lost_work_run_s`` [s], done again; ``recovery_s`` [s] in downtime and restarts, those of planned stops
        too; ``spare_wait_s`` [s]; ``maintenance_s`` [s]; ``rental_cost_usd`` [USD], null without a price. With
        ``causes`` a struct ``failures_by_cause``, with ``tiers`` a struct ``restores_by_tier``.

    Raises
    ------
    MissingQuantity, ScenarioError
        If the scenario does not lead to what is needed, or a number is out of range.

    Warns
    -----
    FactorykitWarning
        If runs would practically never end; ``wall_s`` is infinite then, and the warning says why.

    Notes
    -----
    Work is cut into segments of ``checkpoint_interval_s`` that each end with a checkpoint; a shorter last one does
    too. A failure loses what came after the newest copy that is left, costs ``downtime_s`` in which nothing fails,
    then ``restart_s`` and the tier's ``restore_s``. The first start costs nothing. For one tier and a constant rate the
    mean is ``checkpoint_wall_s`` and the standard deviation ``checkpoint_wall_sd_s``.

    Examples
    --------
    The rate of Llama 3, a minute to write, ten to restart:

    >>> run = {"training_s": 3802 * 1100.0, "checkpoint_interval_s": 1100.0, "checkpoint_write_s": 60.0,
    ...        "cluster_mtbf_s": 54 * 86400 / 419, "restart_s": 600.0, "downtime_s": 0.0}
    >>> simulate(run, runs=1000, seed=1)["wall_s"].mean() / 86400
    56.7...
    """
    import polars as pl

    plan = _plan(
        scenario,
        causes=causes,
        tiers=tiers,
        gap_s=gap_s,
        spare_nodes=spare_nodes,
        restart_failure_probability=restart_failure_probability,
        protected_restart=protected_restart,
        maintenance=maintenance,
    )
    count = whole("runs", runs)
    if count < 1:
        raise ScenarioError("runs = 0; give at least one")
    generator = _numpy().random.default_rng(whole("seed", seed))
    if reason := plan.endless():
        warnings.warn(f"wall_s is infinite: {reason}", FactorykitWarning, stacklevel=2)
        columns = _endless(count)
    elif plan.is_plain:
        columns = _compound(plan, count, generator)
    else:
        columns = _Stepper(plan, count, generator).finish()
    wall = columns["wall_s"]
    structs = {name: columns.pop(name) for name in ("failures_by_cause", "restores_by_tier") if name in columns}
    frame = pl.DataFrame(
        {"run": _numpy().arange(1.0, count + 1.0), "wall_s": wall, "goodput": plan.training_s / wall}
        | {name: values for name, values in columns.items() if name != "wall_s"}
    ).with_columns(
        pl.lit(None, pl.Float64).alias("rental_cost_usd")
        if plan.usd_per_s is None
        else (pl.col("wall_s") * plan.usd_per_s).alias("rental_cost_usd")
    )
    labels = {"failures_by_cause": [c.name for c in causes], "restores_by_tier": [tier.name for tier in tiers]}
    for name, table in structs.items():
        if labels[name]:
            fields = [pl.Series(label, table[:, i]) for i, label in enumerate(labels[name])]
            frame = frame.with_columns(pl.DataFrame(fields).to_struct(name))
    return frame


def timeline(scenario: Mapping[str, Any], seed: int = 0, **conditions: Any) -> pl.DataFrame:
    """Simulate one run and tell what it did when.

    Parameters
    ----------
    scenario, seed, **conditions
        As in :func:`simulate`.

    Returns
    -------
    DataFrame
        One row per stretch in the order of time: ``state`` (kept, lost, down, waiting, restart, maintenance),
        ``start_s`` and ``end_s`` [s] of wall-clock time, ``progress_s`` [s] of work and writes that is safe at its end,
        and ``cause`` of the failure that ends it, null if none does. Stretches of no length are left out.

    Notes
    -----
    ``kept`` is what the failure that follows leaves; a later failure that falls back further can still take it, which
    ``progress_s`` shows.
    """
    import polars as pl

    plan = _plan(scenario, **conditions)
    if reason := plan.endless():
        raise ScenarioError(f"the run would not end: {reason}")
    stepper = _Stepper(plan, 1, _numpy().random.default_rng(whole("seed", seed)), story=[])
    stepper.finish()
    schema = {
        "state": pl.String,
        "start_s": pl.Float64,
        "end_s": pl.Float64,
        "progress_s": pl.Float64,
        "cause": pl.String,
    }
    return pl.DataFrame(stepper.story, schema=schema, orient="row")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a run does when nothing fails, and what can fail."""

    training_s: float
    interval_s: float
    mtbf_s: float
    restart_s: float
    downtime_s: float
    usd_per_s: float | None
    causes: tuple[Cause, ...]
    tiers: tuple[Tier, ...]
    gap_s: Distribution | None
    spare_nodes: int | None
    restart_failure_probability: float
    protected_restart: bool
    maintenance: Maintenance | None
    is_plain: bool
    blocks: tuple[float, ...]
    """Length of a block of each tier: what lies between two of its checkpoints."""

    @property
    def segments(self) -> tuple[int, float]:
        """Whole segments, and the work of a shorter last one."""
        exact = self.training_s / self.interval_s
        count = round(exact) if math.isclose(exact, round(exact), rel_tol=1e-12, abs_tol=1e-9) else math.floor(exact)
        return count, max(self.training_s - count * self.interval_s, 0.0) if count < exact else 0.0

    @property
    def schedule_s(self) -> float:
        """Work and writes of the run without failures."""
        left, rest = self.segments
        total = 0.0
        sizes = [1]
        for tier in self.tiers[1:]:
            sizes.append(sizes[-1] * tier.every)
        for size, block in zip(reversed(sizes), reversed(self.blocks), strict=True):
            total += left // size * block
            left %= size
        return total + (rest + self.tiers[0].write_s if rest else 0.0)

    def endless(self) -> str:
        """Return why a run would practically never end, or nothing."""
        segments, rest = self.segments
        write = sum(tier.write_s for tier in self.tiers) if self.is_plain else self.tiers[0].write_s
        restore = min(tier.restore_s for tier in self.tiers)
        restart = 0.0 if self.protected_restart else self.restart_s + restore
        expected = checkpoint_failures(segments + (rest > 0), self.interval_s, write, self.mtbf_s, restart)
        if self.gap_s is not None or expected <= MOST_FAILURES:
            return ""
        slow = "restart_s" if restart > self.interval_s + write else "checkpoint_interval_s"
        return (
            f"about {expected:.2g} failures per run are expected, since {slow} = {getattr(self, _FIELD[slow]):g} "
            f"is long against cluster_mtbf_s = {self.mtbf_s:g}; make it shorter, or failures rarer"
        )


_FIELD = {"restart_s": "restart_s", "checkpoint_interval_s": "interval_s"}


def _plan(
    scenario: Mapping[str, Any],
    *,
    causes: Sequence[Cause] = (),
    tiers: Sequence[Tier] = (),
    gap_s: Distribution | None = None,
    spare_nodes: int | None = None,
    restart_failure_probability: float = 0.0,
    protected_restart: bool = False,
    maintenance: Maintenance | None = None,
) -> _Plan:
    if not isinstance(scenario, Mapping):
        raise ScenarioError(f"scenario is {type(scenario).__name__}; give a Scenario or a mapping of quantities")
    values = evaluate(scenario, [name for name in NEEDED if not (tiers and name == "checkpoint_write_s")])
    try:
        usd_per_s = evaluate(scenario, "cluster_usd_per_h")["cluster_usd_per_h"] / SECONDS_PER_HOUR
    except MissingQuantity:
        usd_per_s = None
    for name, value in values.items():
        quantity(name).check(value)
    places = list(tiers) or [Tier("storage", values["checkpoint_write_s"])]
    if places[0].every != 1:
        raise ScenarioError(f"Tier({places[0].name!r}): the nearest tier is written every time; leave every at 1")
    kinds: tuple[Cause, ...] = tuple(causes) or (Cause("failure"),)
    if sum(cause.weight for cause in kinds) <= 0.0:
        raise ScenarioError("the weights of the causes sum to 0; give counts or rates")
    if spare_nodes is not None:
        whole("spare_nodes", spare_nodes)
        if all(cause.repair_s is None for cause in kinds):
            raise ScenarioError(
                f"spare_nodes = {spare_nodes} has no effect without repairs; give causes with repair_s, "
                "e.g. Cause('GPU', repair_s=86400)"
            )
    if any(cause.destroys >= len(places) for cause in kinds):
        raise ScenarioError(f"a cause destroys all {len(places)} tiers; one has to be left to restart from")
    if gap_s is not None:
        _law("simulate", "gap_s", gap_s)
    _share("simulate", "restart_failure_probability", restart_failure_probability)
    blocks = [values["checkpoint_interval_s"] + places[0].write_s]
    for tier in places[1:]:
        blocks.append(blocks[-1] * tier.every + tier.write_s)
    special = causes or len(places) > 1 or places[0].lag_s or places[0].corrupt_probability or places[0].restore_s
    return _Plan(
        training_s=values["training_s"],
        interval_s=values["checkpoint_interval_s"],
        mtbf_s=values["cluster_mtbf_s"],
        restart_s=values["restart_s"],
        downtime_s=values["downtime_s"],
        usd_per_s=usd_per_s,
        causes=kinds,
        tiers=tuple(places),
        gap_s=gap_s,
        spare_nodes=spare_nodes,
        restart_failure_probability=restart_failure_probability,
        protected_restart=protected_restart,
        maintenance=maintenance,
        is_plain=not (special or gap_s is not None or restart_failure_probability or maintenance),
        blocks=tuple(blocks),
    )


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise FactorykitError("simulations need NumPy; pip install 'factorykit[reliability]'") from None
    return numpy


def _endless(count: int) -> dict[str, Any]:
    np = _numpy()
    never = {name: np.full(count, math.inf) for name in ("wall_s", "failures", "lost_work_run_s", "recovery_s")}
    return never | {name: np.zeros(count) for name in ("spare_wait_s", "maintenance_s")}


def _compound(plan: _Plan, count: int, generator: np.random.Generator) -> dict[str, Any]:
    """Draw the plain case: failed attempts are geometric in number and exponential, cut off, in length."""
    np = _numpy()
    segments, rest = plan.segments
    write = plan.tiers[0].write_s
    struck = np.zeros(count, np.int64)
    lost = np.zeros(count)
    for number, length in ((segments, plan.interval_s + write), (1, rest + write if rest else 0.0)):
        if number and length:
            attempts = _failed_attempts(np.full(count, float(number)), length / plan.mtbf_s, generator)
            struck += attempts
            lost += _cut_off_sums(attempts, length, plan.mtbf_s, generator)
    failures = struck
    recovery = struck * plan.restart_s
    if plan.restart_s and not plan.protected_restart:
        again = _failed_attempts(struck.astype(float), plan.restart_s / plan.mtbf_s, generator)
        failures = struck + again
        recovery = recovery + _cut_off_sums(again, plan.restart_s, plan.mtbf_s, generator)
    recovery = recovery + failures * plan.downtime_s
    return {
        "wall_s": plan.schedule_s + lost + recovery,
        "failures": failures.astype(float),
        "lost_work_run_s": lost,
        "recovery_s": recovery,
        "spare_wait_s": np.zeros(count),
        "maintenance_s": np.zeros(count),
    }


def _failed_attempts(successes: np.ndarray, length: float, generator: np.random.Generator) -> np.ndarray:
    """Draw the failed attempts before so many successes: negative binomial, as a Poisson law with a gamma mean."""
    return generator.poisson(generator.standard_gamma(successes) * math.expm1(length))


def _cut_off_sums(numbers: np.ndarray, length: float, mean: float, generator: np.random.Generator) -> np.ndarray:
    """Draw sums of so many exponential times cut off at ``length``."""
    np = _numpy()
    sums = np.zeros(len(numbers))
    ends = np.cumsum(numbers)
    failed = -math.expm1(-length / mean)
    first = 0
    while first < len(numbers):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + CHUNK, side="right")), first + 1)
        draws = generator.random(int(ends[last - 1]) - before)
        draws *= -failed
        np.log1p(draws, out=draws)
        some = numbers[first:last] > 0
        if some.any():
            starts = (ends[first:last] - numbers[first:last] - before)[some]
            sums[first:last][some] = np.add.reduceat(draws, starts)
        first = last
    return sums * -mean


class _Draws:
    """A stock of draws from one law, filled in blocks."""

    def __init__(self, law: Law | None, mean: float, generator: np.random.Generator) -> None:
        self.law, self.mean, self.generator = law, mean, generator
        self.stock = _numpy().empty(0)
        self.used = 0

    def take(self, number: int) -> np.ndarray:
        if self.used + number > len(self.stock):
            block = max(number, 1 << 16)
            if self.law is None:
                self.stock = self.generator.exponential(self.mean, block)
            elif isinstance(self.law, Distribution):
                self.stock = _numpy().maximum(self.law.ppf(self.generator.random(block)), 0.0)
            else:
                self.stock = _numpy().full(block, float(self.law))
            self.used = 0
        self.used += number
        return self.stock[self.used - number : self.used]


class _Stepper:
    """All runs side by side, one step per stop of each run.

    ``at`` is the place of a run in the schedule of work and writes, ``safe`` the place of the newest copy in each
    tier, ``need`` what is left of a recovery, ``gap`` the time at risk until the next failure, ``planned`` the
    wall-clock time of the next planned stop. Every array has one entry for each run that is not done.
    """

    STATE = (
        "live",
        "wall",
        "at",
        "need",
        "gap",
        "planned",
        "empty",
        "failures",
        "lost",
        "recovery",
        "wait",
        "planned_s",
    )

    def __init__(
        self, plan: _Plan, count: int, generator: np.random.Generator, story: list[tuple[Any, ...]] | None = None
    ) -> None:
        np = _numpy()
        self.plan, self.generator, self.story = plan, generator, story
        self.total = plan.schedule_s
        self.gaps = _Draws(plan.gap_s, plan.mtbf_s, generator)
        weights = np.array([cause.weight for cause in plan.causes], float)
        self.shares = np.cumsum(weights / weights.sum())[:-1]
        self.destroys = np.array([cause.destroys for cause in plan.causes])
        laws = list(dict.fromkeys(cause.repair_s for cause in plan.causes if cause.repair_s is not None))
        self.repairs = [_Draws(law, 0.0, generator) for law in laws]
        self.law_of = np.array([-1 if c.repair_s is None else laws.index(c.repair_s) for c in plan.causes])
        self.restarts = np.array([plan.restart_s + tier.restore_s for tier in plan.tiers])
        self.live = np.arange(count)
        self.gap = self.gaps.take(count).copy()
        self.safe = np.zeros((len(plan.tiers), count))
        self.planned = np.full(count, plan.maintenance.every_s if plan.maintenance else math.inf)
        self.pool = None
        self.empty = np.zeros(count, np.int64)
        if plan.spare_nodes is not None:
            self.empty += plan.spare_nodes
            self.pool = np.zeros((count, int(plan.spare_nodes) + 1))
            self.pool[:, -1] = math.inf
        self.wall, self.at, self.need = np.zeros(count), np.zeros(count), np.zeros(count)
        self.failures, self.lost, self.recovery = np.zeros(count), np.zeros(count), np.zeros(count)
        self.wait, self.planned_s = np.zeros(count), np.zeros(count)
        self.results = {
            name: np.zeros(count)
            for name in ("wall_s", "failures", "lost_work_run_s", "recovery_s", "spare_wait_s", "maintenance_s")
        }
        self.by_cause = _Tally(count, len(plan.causes))
        self.by_tier = _Tally(count, len(plan.tiers))

    def finish(self) -> dict[str, Any]:
        """Step until every run is done, or has stopped so often that it never will be."""
        np, maintained = _numpy(), self.plan.maintenance is not None
        for _ in range(MOST_FAILURES):
            if not len(self.live):
                break
            ahead = self.need + (self.total - self.at)
            stop = self.gap
            halted = None
            if maintained:
                pause = np.maximum(self.planned - self.wall, self.need)
                halted = pause < self.gap
                stop = np.minimum(pause, self.gap)
            done = stop >= ahead
            if done.any():
                self._leave(done, ahead)
            else:
                self._stop(stop, halted)
        if len(self.live):
            for name in ("wall_s", "failures", "lost_work_run_s", "recovery_s"):
                self.results[name][self.live] = math.inf
            warnings.warn(
                f"wall_s is infinite in {len(self.live)} runs: they stopped {MOST_FAILURES:,} times without an end; "
                "failures come faster than restarts end, or than checkpoints that survive them are written",
                FactorykitWarning,
                stacklevel=3,
            )
        return self.results | {"failures_by_cause": self.by_cause.table(), "restores_by_tier": self.by_tier.table()}

    def _leave(self, done: np.ndarray, ahead: np.ndarray) -> None:
        if self.story is not None:
            self._tell_way(self.need, self.total - self.at, self.need * 0.0, None)
        runs, results = self.live[done], self.results
        results["wall_s"][runs] = (self.wall + ahead)[done]
        results["recovery_s"][runs] = (self.recovery + self.need)[done]
        for name, values in (
            ("failures", self.failures),
            ("lost_work_run_s", self.lost),
            ("spare_wait_s", self.wait),
            ("maintenance_s", self.planned_s),
        ):
            results[name][runs] = values[done]
        kept = ~done
        for name in self.STATE:
            setattr(self, name, getattr(self, name)[kept])
        self.safe = self.safe[:, kept]
        if self.pool is not None:
            self.pool = self.pool[kept]

    def _stop(self, stop: np.ndarray, halted: np.ndarray | None) -> None:
        """Take every run to its next failure or planned stop, and back to where it goes on from."""
        np, plan = _numpy(), self.plan
        count = len(self.live)
        useful = np.maximum(stop - self.need, 0.0)
        reached = self.at + useful
        cause = np.searchsorted(self.shares, self.generator.random(count), side="right")
        tier = self.destroys[cause]
        self._save(reached)
        back = self._fall_back(tier)
        attempts = 1.0
        if plan.restart_failure_probability:
            attempts = self.generator.geometric(1.0 - plan.restart_failure_probability, count)
        restart = self.restarts[tier] * attempts
        spent = np.minimum(stop, self.need)
        self.wall += stop
        wait = self._replace(cause, halted)
        pause = wait + plan.downtime_s
        gap = self.gaps.take(count)
        struck = 1.0
        if halted is not None:
            assert plan.maintenance is not None
            save = sum(rules.write_s for rules in plan.tiers) + plan.maintenance.duration_s
            back = np.where(halted, reached, back)
            restart = np.where(halted, self.restarts[0], restart)
            pause = np.where(halted, save, pause)
            gap = np.where(halted, self.gap - stop, gap)
            self.planned = np.where(halted, self.wall + (save + plan.maintenance.every_s), self.planned)
            self.planned_s += save * halted
            struck = 1.0 - halted
        lost = reached - back
        self.by_cause.add(self.live, cause, halted)
        self.by_tier.add(self.live, tier, halted)
        if self.story is not None:
            self.wall -= stop
            self._tell_stop(spent, useful, lost, wait, pause, cause, bool(halted is not None and halted[0]))
            self.wall += stop
        self.failures += struck
        self.lost += lost
        self.recovery += spent + plan.downtime_s * struck
        self.wait += wait
        self.wall += pause
        self.at, self.need = back, restart
        np.minimum(self.safe, back, out=self.safe)
        if halted is not None:
            self.safe = np.where(halted, reached, self.safe)
        self.gap = gap + restart if plan.protected_restart else gap.copy()

    def _place(self, place: np.ndarray, tier: int) -> np.ndarray:
        """Return the place of the last regular checkpoint of a tier."""
        np, blocks = _numpy(), self.plan.blocks
        start = np.floor(place / blocks[-1]) * blocks[-1]
        for inner in range(len(blocks) - 2, tier - 1, -1):
            steps = np.floor((place - start) / blocks[inner])
            np.minimum(steps, self.plan.tiers[inner + 1].every - 1.0, out=steps)
            start = start + steps * blocks[inner]
        return start

    def _save(self, reached: np.ndarray) -> None:
        """Note the checkpoints on the way there that can be read back."""
        np = _numpy()
        for tier, rules in enumerate(self.plan.tiers):
            ready = np.maximum(reached - rules.lag_s, 0.0) if rules.lag_s else reached
            np.maximum(self.safe[tier], self._place(ready, tier), out=self.safe[tier])

    def _fall_back(self, tier: np.ndarray) -> np.ndarray:
        """Return the place of the newest copy that can be read; ``tier`` becomes the tier that held it."""
        np, tiers = _numpy(), self.plan.tiers
        last = len(tiers) - 1
        for number, rules in enumerate(tiers[:last]):
            if rules.corrupt_probability:
                tier += (tier == number) & (self.generator.random(len(tier)) < rules.corrupt_probability)
        back = self.safe[0]
        for number in range(1, last + 1):
            back = np.where(tier == number, self.safe[number], back)
        if tiers[last].corrupt_probability:
            older = self.generator.geometric(1.0 - tiers[last].corrupt_probability, len(tier)) - 1.0
            block = self.plan.blocks[-1]
            before = np.maximum((np.ceil(back / block) - older) * block, 0.0)
            back = np.where((tier == last) & (older > 0.0), np.minimum(before, back), back)
        return back.copy() if last == 0 else back

    def _replace(self, cause: np.ndarray, halted: np.ndarray | None) -> np.ndarray:
        """Send failed nodes to repair, take the first free one for each, and return how long that takes."""
        np = _numpy()
        wait = np.zeros(len(cause))
        if self.pool is None:
            return wait
        law = self.law_of[cause]
        if halted is not None:
            law[halted] = -1
        for number, draws in enumerate(self.repairs):
            sent = np.flatnonzero(law == number)
            self.pool[sent, self.empty[sent]] = self.wall[sent] + draws.take(len(sent))
        taken = np.flatnonzero(law >= 0)
        first = self.pool.argmin(axis=1)[taken]
        free = self.pool[taken, first]
        wait[taken] = np.maximum(free - self.wall[taken] - self.plan.downtime_s, 0.0)
        self.pool[taken, first] = math.inf
        self.empty[taken] = first
        return wait

    def _tell_stop(
        self,
        spent: np.ndarray,
        useful: np.ndarray,
        lost: np.ndarray,
        wait: np.ndarray,
        pause: np.ndarray,
        cause: np.ndarray,
        halted: bool,
    ) -> None:
        name = None if halted else self.plan.causes[int(cause[0])].name
        end = self._tell_way(spent, useful, lost, name)
        place = float((self.at + useful - lost)[0])
        if halted:
            self._say("maintenance", end, float(pause[0]), place, None)
        else:
            self._say("down", end, self.plan.downtime_s, place, None)
            self._say("waiting", end + self.plan.downtime_s, float(wait[0]), place, None)

    def _tell_way(self, restart: np.ndarray, useful: np.ndarray, lost: np.ndarray, name: str | None) -> float:
        """Tell the way of the first run to its next stop, and return when that is."""
        began, at = float(self.wall[0]), float(self.at[0])
        work, gone = float(useful[0]), float(lost[0])
        kept, began = max(work - gone, 0.0), began + float(restart[0])
        self._say("restart", float(self.wall[0]), float(restart[0]), at, name if work == 0.0 else None)
        self._say("kept", began, kept, at + kept, name if gone == 0.0 else None)
        self._say("lost", began + kept, work - kept, at + work - gone, name)
        return began + work

    def _say(self, state: str, start: float, length: float, progress: float, cause: str | None) -> None:
        assert self.story is not None
        if length > 0.0:
            self.story.append((state, start, start + length, progress, cause))


class _Tally:
    """Counts by run and kind, added up in batches."""

    def __init__(self, runs: int, kinds: int) -> None:
        self.shape = (runs, kinds)
        self.counts = _numpy().zeros(runs * kinds)
        self.waiting: list[np.ndarray] = []

    def add(self, runs: np.ndarray, kinds: np.ndarray, skipped: np.ndarray | None) -> None:
        codes = runs * self.shape[1] + kinds
        self.waiting.append(codes if skipped is None else codes[~skipped])
        if len(self.waiting) == 32:
            self._flush()

    def _flush(self) -> None:
        np = _numpy()
        if self.waiting:
            self.counts += np.bincount(np.concatenate(self.waiting), minlength=len(self.counts))
            self.waiting.clear()

    def table(self) -> np.ndarray:
        """Return one row per run and one column per kind."""
        self._flush()
        return self.counts.reshape(self.shape)
