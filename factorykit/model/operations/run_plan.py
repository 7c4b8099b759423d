"""Plan of a simulated run: its schedule without failures, causes of failures, checkpoint tiers, planned stops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from factorykit.core.constants import SECONDS_PER_HOUR
from factorykit.core.errors import MissingQuantity, ScenarioError, short_repr
from factorykit.core.units import parse
from factorykit.core.validation import as_list, boolean, integer
from factorykit.core.vocabulary import as_float, duration, is_number, quantity
from factorykit.engine.evaluate import evaluate
from factorykit.formulas.checkpoint_runtime import checkpoint_failures
from factorykit.model.uncertainty.distributions import Distribution, in_units_of, is_distribution

Duration = Distribution | float
"""A distribution of seconds, or a number of seconds."""

MOST_FAILURES = 100_000
"""Expected failures of a run that counts as endless."""
NEEDED = ("training_s", "checkpoint_interval_s", "checkpoint_write_s", "cluster_mtbf_s", "restart_s", "downtime_s")


def _share(owner: str, name: str, value: float) -> None:
    if not is_number(value) or not 0.0 <= value < 1.0:
        raise ScenarioError(f"{owner}: {name} = {short_repr(value)} is outside [0, 1); give a fraction, e.g. 0.01")


def _seconds(owner: str, name: str, value: float | str, least: float = 0.0) -> float:
    seconds = parse(duration(name), value) if isinstance(value, str) else value
    if not is_number(seconds) or not least <= as_float(seconds) < math.inf:
        raise ScenarioError(
            f"{owner}: {name} = {short_repr(value)} is outside [{least:g}, inf); give seconds, or '30 min'"
        )
    return as_float(seconds)


def _duration(owner: str, name: str, given: Any) -> Duration:
    if not is_distribution(given):
        return _seconds(owner, name, given)
    distribution = in_units_of(duration(name), given)
    low, middle = float(distribution.ppf(1e-6)), float(distribution.ppf(0.5))
    if not 0.0 <= low <= middle < math.inf:
        raise ScenarioError(f"{owner}: {name} reaches {low:g} s; times are 0 or more and finite")
    return distribution


@dataclass(frozen=True, slots=True)
class FailureCause:
    """A cause of failures.

    Parameters
    ----------
    name
        The part that fails.
    weight
        Rate of this cause relative to the others; counts of a failure table serve.
    repair_s
        Time until the failed node is back, a distribution or a number [s]; None if no node is lost, as for software.
    destroys
        Number of the nearest tiers that lose their copy: 0 if the node survives, 1 if its own storage is lost.
    """

    name: str
    weight: float = 1.0
    repair_s: Duration | None = None
    destroys: int = 0

    def __post_init__(self) -> None:
        owner = f"FailureCause({short_repr(self.name)})"
        if not (is_number(self.weight) and 0.0 <= self.weight < math.inf):
            raise ScenarioError(f"{owner}: weight = {short_repr(self.weight)} is outside [0, inf); a count or a rate")
        integer("destroys", self.destroys)
        if self.repair_s is not None:
            object.__setattr__(self, "repair_s", _duration(owner, "repair_s", self.repair_s))


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
        owner = f"Tier({short_repr(self.name)})"
        for name in ("write_s", "restore_s", "lag_s"):
            object.__setattr__(self, name, _seconds(owner, name, getattr(self, name)))
        if integer("every", self.every) < 1:
            raise ScenarioError(f"{owner}: every = {short_repr(self.every)} is below 1")
        _share(owner, "corrupt_probability", self.corrupt_probability)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Planned stops: the job saves, stands still for ``duration_s``, restarts, and runs on for ``every_s``."""

    every_s: float
    duration_s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "every_s", _seconds("Maintenance", "every_s", self.every_s, least=1.0))
        object.__setattr__(self, "duration_s", _seconds("Maintenance", "duration_s", self.duration_s))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Schedule of a run without failures, and its failures."""

    training_s: float
    interval_s: float
    mtbf_s: float
    restart_s: float
    downtime_s: float
    usd_per_s: float | None
    causes: tuple[FailureCause, ...]
    tiers: tuple[Tier, ...]
    names_causes: bool
    names_tiers: bool
    gap_s: Distribution | None
    spare_nodes: int | None
    restart_failure_probability: float
    protected_restart: bool
    maintenance: Maintenance | None
    is_plain: bool

    @property
    def blocks(self) -> tuple[float, ...]:
        """Length of a block of each tier, from one of its checkpoints to the next."""
        lengths = [self.interval_s + self.tiers[0].write_s]
        for tier in self.tiers[1:]:
            lengths.append(lengths[-1] * tier.every + tier.write_s)
        return tuple(lengths)

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
        slow = f"checkpoint_interval_s = {self.interval_s:g}"
        if restart > self.interval_s + write:
            slow = f"restart_s = {self.restart_s:g}"
        return (
            f"about {expected:.2g} failures per run are expected, since {slow} "
            f"is long against cluster_mtbf_s = {self.mtbf_s:g}; make it shorter, or failures rarer"
        )


class RunConditions(TypedDict, total=False):
    """RunConditions of a simulated run, the keyword arguments of :func:`run_plan`."""

    causes: Sequence[FailureCause]
    tiers: Sequence[Tier]
    gap_s: Distribution | None
    spare_nodes: int | None
    restart_failure_probability: float
    protected_restart: bool
    maintenance: Maintenance | None


def run_plan(
    inputs: Mapping[str, Any],
    *,
    causes: Sequence[FailureCause] = (),
    tiers: Sequence[Tier] = (),
    gap_s: Distribution | None = None,
    spare_nodes: int | None = None,
    restart_failure_probability: float = 0.0,
    protected_restart: bool = False,
    maintenance: Maintenance | None = None,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> RunPlan:
    """Return the plan of a scenario under conditions, all of them checked; see :func:`factorykit.simulate`."""
    causes, tiers = as_list("causes", causes), as_list("tiers", tiers)
    for name, given, kind in (("causes", causes, FailureCause), ("tiers", tiers, Tier)):
        if wrong := [item for item in given if not isinstance(item, kind)]:
            raise ScenarioError(f"{name} must be fk.{kind.__name__}, got {short_repr(wrong[0])}")
    if maintenance is not None and not isinstance(maintenance, Maintenance):
        raise ScenarioError(f"maintenance = {short_repr(maintenance)}; give fk.Maintenance(every_s, duration_s)")
    if not isinstance(inputs, Mapping):
        raise ScenarioError(f"inputs are {type(inputs).__name__}; give a Scenario or a mapping of quantities to values")
    needed = [name for name in NEEDED if not (tiers and name == "checkpoint_write_s")]
    try:
        values = evaluate(inputs, [*needed, "cluster_usd_per_h"], using=using, assume=assume)
        usd_per_s = values.pop("cluster_usd_per_h") / SECONDS_PER_HOUR
    except MissingQuantity:
        values, usd_per_s = evaluate(inputs, needed, using=using, assume=assume), None
    for name, value in values.items():
        quantity(name).check(value)
    places = list(tiers) or [Tier("storage", values["checkpoint_write_s"])]
    if places[0].every != 1:
        raise ScenarioError(
            f"Tier({short_repr(places[0].name)}): the nearest tier is written every time; leave every at 1"
        )
    kinds: tuple[FailureCause, ...] = tuple(causes) or (FailureCause("failure"),)
    if sum(cause.weight for cause in kinds) <= 0.0:
        raise ScenarioError("the weights of the causes sum to 0; give counts or rates")
    if spare_nodes is not None:
        integer("spare_nodes", spare_nodes)
        if all(cause.repair_s is None for cause in kinds):
            raise ScenarioError(
                f"spare_nodes = {spare_nodes} has no effect without repairs; give causes with repair_s, "
                "e.g. FailureCause('GPU', repair_s=86400)"
            )
    if any(cause.destroys >= len(places) for cause in kinds):
        raise ScenarioError(f"a cause destroys all {len(places)} tiers; one must be left for the restart")
    if gap_s is not None:
        gap_s = cast("Distribution", _duration("simulate", "gap_s", gap_s))
        shortest = float(gap_s.ppf(0.5) if is_distribution(gap_s) else gap_s)
        if shortest * MOST_FAILURES < values["training_s"]:
            raise ScenarioError(
                f"gap_s = {short_repr(gap_s)}: half of the failures come within {shortest:g} s, so that a run of "
                f"{values['training_s']:g} s never ends; give longer ones"
            )
    _share("simulate", "restart_failure_probability", restart_failure_probability)
    special = causes or len(places) > 1 or places[0].lag_s or places[0].corrupt_probability or places[0].restore_s
    return RunPlan(
        training_s=values["training_s"],
        interval_s=values["checkpoint_interval_s"],
        mtbf_s=values["cluster_mtbf_s"],
        restart_s=values["restart_s"],
        downtime_s=values["downtime_s"],
        usd_per_s=usd_per_s,
        causes=kinds,
        tiers=tuple(places),
        names_causes=bool(causes),
        names_tiers=bool(tiers),
        gap_s=gap_s,
        spare_nodes=spare_nodes,
        restart_failure_probability=restart_failure_probability,
        protected_restart=boolean("protected_restart", protected_restart),
        maintenance=maintenance,
        is_plain=not (special or gap_s is not None or restart_failure_probability or maintenance),
    )
