"""Random draws of a simulation, vectorised over the runs of one plan."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from factorykit.core.errors import ScenarioError
from factorykit.model.operations.run_plan import MOST_FAILURES, Duration, RunPlan
from factorykit.model.uncertainty.distributions import is_distribution

CHUNK = 1 << 20
"""Most draws in memory."""
MOST_HELD = 500_000_000
"""Most numbers of all runs: ten million runs with a few tiers, or fewer with many spare nodes."""
NONE = np.empty(0, np.intp)
Columns = dict[str, np.ndarray]


class Draws(NamedTuple):
    """Results: a column per quantity, counts by run and cause or tier, and the reason why runs never end."""

    columns: Columns
    failures_by_cause: np.ndarray | None = None
    restores_by_tier: np.ndarray | None = None
    endless: str = ""


class Attempt(NamedTuple):
    """The course of one run from one stop to the next, and the stop."""

    start_s: float
    at_s: float
    restart_s: float
    work_s: float
    lost_s: float
    pause_s: float
    wait_s: float
    cause: str | None
    is_planned: bool


def draw(plan: RunPlan, runs: int, seed: int) -> Draws:
    """Draw a number of runs."""
    generator = np.random.default_rng(seed)
    if reason := plan.endless():
        never, nothing = np.full(runs, math.inf), np.zeros(runs)
        names = {"wall_s": never, "failures": never, "lost_work_run_s": never, "recovery_s": never}
        return Draws(names | {"spare_wait_s": nothing, "maintenance_s": nothing}, endless=f": {reason}")
    if plan.is_plain:
        return Draws(_compound(plan, runs, generator))
    return _Steps(plan, runs, generator).finish()


def follow(plan: RunPlan, seed: int) -> list[Attempt]:
    """Draw one run and return its course from stop to stop."""
    attempts: list[Attempt] = []
    _Steps(plan, 1, np.random.default_rng(seed), attempts).finish()
    return attempts


def _compound(plan: RunPlan, count: int, generator: np.random.Generator) -> Columns:
    """Draw the plain case: geometric numbers of failed attempts of truncated exponential length."""
    segments, rest = plan.segments
    write = plan.tiers[0].write_s
    failed = np.zeros(count, np.int64)
    lost = np.zeros(count)
    for number, length in ((segments, plan.interval_s + write), (1, rest + write if rest else 0.0)):
        if number and length:
            attempts = _failed_attempts(np.full(count, float(number)), length / plan.mtbf_s, generator)
            failed += attempts
            lost += _cut_off_sums(attempts, length, plan.mtbf_s, generator)
    failures = failed
    recovery = failed * plan.restart_s
    if plan.restart_s and not plan.protected_restart:
        again = _failed_attempts(failed.astype(float), plan.restart_s / plan.mtbf_s, generator)
        failures = failed + again
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
    """Draw failed attempts before a number of successes: negative binomial, as a gamma mixture of Poisson."""
    return generator.poisson(generator.standard_gamma(successes) * math.expm1(length))


def _cut_off_sums(numbers: np.ndarray, length: float, mean: float, generator: np.random.Generator) -> np.ndarray:
    """Draw sums of exponential times truncated at ``length``."""
    sums = np.zeros(len(numbers))
    ends = np.cumsum(numbers)
    share = -math.expm1(-length / mean)
    first = 0
    while first < len(numbers):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + CHUNK, side="right")), first + 1)
        draws = generator.random(int(ends[last - 1]) - before)
        draws *= -share
        np.log1p(draws, out=draws)
        some = numbers[first:last] > 0
        if some.any():
            starts = (ends[first:last] - numbers[first:last] - before)[some]
            sums[first:last][some] = np.add.reduceat(draws, starts)
        first = last
    return sums * -mean


class _Sampler:
    """Draws from one distribution, in blocks."""

    def __init__(self, distribution: Duration | None, mean: float, generator: np.random.Generator) -> None:
        self.distribution, self.mean, self.generator = distribution, mean, generator
        self.draws = np.empty(0)
        self.used = 0

    def take(self, number: int) -> np.ndarray:
        if self.used + number > len(self.draws):
            block = max(number, 1 << 16)
            if self.distribution is None:
                self.draws = self.generator.exponential(self.mean, block)
            elif is_distribution(self.distribution):
                self.draws = np.maximum(self.distribution.ppf(self.generator.random(block)), 0.0)
            else:
                self.draws = np.full(block, float(self.distribution))
            self.used = 0
        self.used += number
        return self.draws[self.used - number : self.used]


class _Steps:
    """Each step takes every run to its next failure or planned stop, and back to the point at which it resumes.

    ``state`` has a column for each run that is not done. Its rows have names in :meth:`_set_state`: ``at`` is the place
    of a run in the schedule of work and writes, ``need`` the rest of a recovery, ``source`` the tier it reads, ``gap``
    the time at risk until the next failure, ``planned`` when the next planned stop is due, ``safe`` the place of the
    newest copy in each tier, and ``free`` when each spare is ready, the earliest first, with a last row that is never.
    """

    def __init__(
        self, plan: RunPlan, count: int, generator: np.random.Generator, attempts: list[Attempt] | None = None
    ) -> None:
        self.plan, self.generator, self.attempts = plan, generator, attempts
        self.total, self.blocks = plan.schedule_s, plan.blocks
        self.gaps = _Sampler(plan.gap_s, plan.mtbf_s, generator)
        weights = np.array([cause.weight for cause in plan.causes], float)
        self.shares = np.cumsum(weights / weights.sum())[:-1]
        self.destroys = np.array([cause.destroys for cause in plan.causes])
        durations = list(dict.fromkeys(cause.repair_s for cause in plan.causes if cause.repair_s is not None))
        self.repairs = [_Sampler(duration, 0.0, generator) for duration in durations]
        self.repair_of = np.array([-1 if c.repair_s is None else durations.index(c.repair_s) for c in plan.causes])
        self.restarts = np.array([plan.restart_s + tier.restore_s for tier in plan.tiers])
        self.counts = _Counts(count, len(plan.causes), len(plan.tiers))
        self.done = np.full((4, count), math.inf)
        self.ready = 0  # spares, at least, that are ready in every run
        spares = 0 if plan.spare_nodes is None else int(plan.spare_nodes) + 1
        if (held := (9 + len(plan.tiers) + spares) * count) > MOST_HELD:
            raise ScenarioError(f"these runs and spare nodes hold {held:,} numbers; give fewer, at most {MOST_HELD:,}")
        self._set_state(np.arange(count), np.zeros((9 + len(plan.tiers) + spares, count)))
        self.gap[:] = self.gaps.take(count)
        self.planned[:] = plan.maintenance.every_s if plan.maintenance else math.inf
        self.free[-1:] = math.inf

    def _set_state(self, run: np.ndarray, state: np.ndarray) -> None:
        self.run, self.state = run, state
        self.wall, self.lost, self.wait, self.paused = state[:4]
        self.at, self.need, self.source, self.gap, self.planned = state[4:9]
        self.safe, self.free = np.split(state[9:], [len(self.plan.tiers)])

    def finish(self) -> Draws:
        """Step until every run is done, or has stopped too often to end."""
        for _ in range(MOST_FAILURES):
            ahead = self.need + (self.total - self.at)
            due = np.maximum(self.planned - self.wall, self.need) if self.plan.maintenance else None
            stop = self.gap.copy() if due is None else np.minimum(due, self.gap)
            going = np.flatnonzero(stop < ahead)
            if len(going) < len(stop):
                self._end_runs(np.flatnonzero(stop >= ahead), going, ahead)
                stop, due = stop[going], None if due is None else due[going]
                if not len(stop):
                    break
            self._stop(stop, NONE if due is None else np.flatnonzero(due < self.gap))
        wall, lost, wait, paused = self.done
        plan, (by_cause, by_tier) = self.plan, self.counts.tables()
        never = np.isinf(wall)
        reason = (
            f" in {never.sum()} runs: they stopped {MOST_FAILURES:,} times without an end; "
            "failures come faster than restarts end, or than checkpoints that survive them are written"
        )
        lost_all = self.total + lost + wait + paused
        columns = {
            "wall_s": wall,
            "failures": np.where(never, math.inf, by_cause.sum(axis=1)),
            "lost_work_run_s": lost,
            "recovery_s": np.subtract(wall, lost_all, out=np.full(len(wall), math.inf), where=~never),
            "spare_wait_s": np.where(never, 0.0, wait),
            "maintenance_s": np.where(never, 0.0, paused),
        }
        counts = by_cause if plan.names_causes else None, by_tier if plan.names_tiers else None
        return Draws(columns, *counts, reason if never.any() else "")

    def _end_runs(self, done: np.ndarray, going: np.ndarray, ahead: np.ndarray) -> None:
        if self.attempts is not None:
            work = float(self.total - self.at[0])
            self.attempts.append(Attempt(self.wall[0], self.at[0], self.need[0], work, 0.0, 0.0, 0.0, None, False))
        self.wall[done] += ahead[done]
        self.done[:, self.run[done]] = self.state[:4, done]
        self._set_state(self.run[going], self.state.take(going, axis=1))

    def _stop(self, stop: np.ndarray, planned: np.ndarray) -> None:
        """Take every run to its next stop, which is planned for the runs of these numbers and a failure for others."""
        plan, count = self.plan, len(stop)
        before = self.wall[0], self.at[0], min(self.need[0], stop[0])
        work = np.maximum(stop - self.need, 0.0)
        reached = self.at + work
        chance = self.generator.random(count)
        cause = np.zeros(count, np.intp)
        for share in self.shares:
            cause += chance >= share
        self._save(reached)
        tier = self.destroys.take(cause)
        if len(plan.tiers) > 1:
            np.maximum(tier, self.source, out=tier, where=stop < self.need, casting="unsafe")
        back = self._fall_back(tier)
        restart = self.restarts.take(tier)
        if plan.restart_failure_probability:
            restart *= self.generator.geometric(1.0 - plan.restart_failure_probability, count)
        self.wall += stop
        wait = self._replace(self.repair_of.take(cause), planned)
        pause = wait + plan.downtime_s
        left = self.gap[planned] - stop[planned]
        self.gap[:] = self.gaps.take(count)
        if len(planned):
            assert plan.maintenance is not None
            save = sum(rules.write_s for rules in plan.tiers) + plan.maintenance.duration_s
            back[planned], restart[planned], pause[planned] = reached[planned], self.restarts[0], save
            tier[planned] = 0
            self.gap[planned] = left
            self.planned[planned] = self.wall[planned] + save + plan.maintenance.every_s
            self.paused[planned] += save
        lost = reached - back
        self.counts.add(self.run, cause, tier, planned)
        if self.attempts is not None:
            name = None if len(planned) else plan.causes[cause[0]].name
            self.attempts.append(
                Attempt(*before, work[0], lost[0], pause[0] - wait[0], wait[0], name, bool(len(planned)))
            )
        self.lost += lost
        self.wait += wait
        self.wall += pause
        self.at[:], self.need[:], self.source[:] = back, restart, tier
        np.minimum(self.safe, back, out=self.safe)
        self.safe[:, planned] = reached[planned]
        if plan.protected_restart:
            self.gap += restart

    def _save(self, reached: np.ndarray) -> None:
        """Note the checkpoints on the way there that can be read back."""
        for tier, rules in enumerate(self.plan.tiers):
            ready = np.maximum(reached - rules.lag_s, 0.0) if rules.lag_s else reached
            np.maximum(self.safe[tier], self._place(ready, tier), out=self.safe[tier])

    def _place(self, place: np.ndarray, tier: int) -> np.ndarray:
        """Return the place of the last regular checkpoint of a tier."""
        start = np.floor(place / self.blocks[-1]) * self.blocks[-1]
        for inner in range(len(self.blocks) - 2, tier - 1, -1):
            steps = np.floor((place - start) / self.blocks[inner])
            start += np.minimum(steps, self.plan.tiers[inner + 1].every - 1.0) * self.blocks[inner]
        return start

    def _fall_back(self, tier: np.ndarray) -> np.ndarray:
        """Return the place of the newest copy that can be read; ``tier`` becomes the tier that holds it."""
        tiers = self.plan.tiers
        last = len(tiers) - 1
        for number, rules in enumerate(tiers[:last]):
            if rules.corrupt_probability:
                tier += (tier == number) & (self.generator.random(len(tier)) < rules.corrupt_probability)
        back = self.safe[0].copy()
        for number in range(1, last + 1):
            np.copyto(back, self.safe[number], where=tier == number)
        if tiers[last].corrupt_probability:
            older = self.generator.geometric(1.0 - tiers[last].corrupt_probability, len(tier)) - 1.0
            block = self.blocks[-1]
            before = np.maximum((np.ceil(back / block) - older) * block, 0.0)
            np.copyto(back, np.minimum(before, back), where=(tier == last) & (older > 0.0))
        return back

    def _replace(self, repair: np.ndarray, planned: np.ndarray) -> np.ndarray:
        """Send failed nodes to repair, take the first free one for each, and return how long that takes."""
        if not len(self.free):
            return np.zeros(len(repair))
        repair[planned] = -1
        back = np.full(len(repair), -math.inf)
        for number, sampler in enumerate(self.repairs):
            sent = np.flatnonzero(repair == number)
            back[sent] = sampler.take(len(sent))
        back += self.wall
        wait = np.minimum(self.free[0], back) - (self.wall + self.plan.downtime_s)
        self.ready = max(self.ready - 1, 0)
        while (self.free[self.ready] <= self.wall).all():
            self.ready += 1
        late = self.free[max(self.ready - 1, 0) :]  # which of the ready ones is taken does not matter
        np.maximum(late[:-1], np.minimum(late[1:], back), out=late[:-1])
        return np.maximum(wait, 0.0)


class _Counts:
    """Failures by run, cause and tier, added up in batches; planned stops end up in a bin of their own."""

    def __init__(self, runs: int, causes: int, tiers: int) -> None:
        self.shape = (runs, causes, tiers)
        self.bins = np.zeros(math.prod(self.shape) + 1)
        self.waiting: list[np.ndarray] = []

    def add(self, run: np.ndarray, cause: np.ndarray, tier: np.ndarray, planned: np.ndarray) -> None:
        _, causes, tiers = self.shape
        code = (run * causes + cause) * tiers + tier
        code[planned] = len(self.bins) - 1
        self.waiting.append(code)
        if len(self.waiting) == 32:
            self._flush()

    def _flush(self) -> None:
        self.bins += np.bincount(np.concatenate(self.waiting), minlength=len(self.bins))
        self.waiting.clear()

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return one row per run, with a column per cause and with a column per tier."""
        if self.waiting:
            self._flush()
        counts = self.bins[:-1].reshape(self.shape)
        return counts.sum(axis=2), counts.sum(axis=1)
