"""Requests for a plan: limits, choices, offers and sites, and the ranking of plans under them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from factorykit.core import validation
from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError, unknown_name_message
from factorykit.core.units import parse
from factorykit.core.vocabulary import quantity
from factorykit.data.identifiers import identify, known_key
from factorykit.data.tables import table
from factorykit.engine.evaluate import evaluate
from factorykit.engine.providers.accelerators import BROUGHT
from factorykit.engine.providers.defaults import defaults
from factorykit.engine.question import Question, read_value
from factorykit.model.economics.rent import PRICE, offered
from factorykit.model.performance.calibration import calibrated_on_software
from factorykit.model.performance.layouts import BEST_IS_MOST, PARTS, scheduled

if TYPE_CHECKING:
    from factorykit.model.performance.calibration import Calibration
    from factorykit.model.scenario.scenario import Scenario
    from factorykit.model.uncertainty.distributions import Distribution

LIMITS: Final = {"deadline": "deadline_s", "budget": "budget_usd", "power": "facility_power_w"}
"""The limits of a plan and the quantities that read them."""
LIKELY_UNITS: Final = {"deadline": ("d", SECONDS_PER_DAY), "power": ("MW", 1e6)}
WAYS: Final = ("rent", "own")
TIERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "one": MappingProxyType({}),
        "two": MappingProxyType(
            {
                "goodput": "two_level_goodput",
                "checkpoint_interval_s": "two_level_interval_s",
                "segments_per_pattern": "segments_per_pattern_first_order",
                "two_level_pattern_s": "two_level_pattern_exposed_s",
                "level_two_write_s": "checkpoint_write_s",
                "level_two_restart_s": "level_two_restart_same_s",
            }
        ),
    }
)
"""Alternative models by checkpoint tiers: remote storage alone, or storage in nodes or peers before it."""
LARGEST: Final = "largest"
"""Model name for the largest dense model that keeps the limits."""
MAX_USUAL_DAYS: Final = 90.0
"""Longest run that is preferred where there is neither a deadline nor a number of accelerators to use in full."""
OFFERED: Final = "offered_accelerators"
OFFER_COLUMNS: Final = ("provider", "accelerator", PRICE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a plan in the units of the vocabulary; None where there is no limit."""

    deadline_s: float | None = None
    budget_usd: float | None = None
    facility_power_w: float | None = None

    @classmethod
    def read(cls, **limits: Any) -> Limits:
        """Return validated limits: ``deadline="60 d", budget="20 M USD", power="20 MW"``.

        Raises
        ------
        ScenarioError
            If a deadline or a power has no unit, or a limit is a date.
        """
        for name, given in limits.items():
            if re.match(r"\d{4}-\d\d?-\d", str(given)):
                raise ScenarioError(f"{name} = {given} is a date; give a duration, such as '60 d'")
            if name in LIKELY_UNITS and re.fullmatch(r"[-+]?[\d.,_]+(e[-+]?\d+)?", str(given).strip()):
                (unit, size), number = LIKELY_UNITS[name], parse(quantity(LIMITS[name]), str(given))
                likely = number / size if number >= size / 100.0 else number
                raise ScenarioError(f"{name} = {given!r} has no unit; give '{likely:g} {unit}'")
        read = {
            LIMITS[name]: quantity(LIMITS[name]).check(given) for name, given in limits.items() if given is not None
        }
        return cls(**read)  # type: ignore[arg-type]

    def given(self) -> dict[str, float]:
        """Return the limits that are given."""
        return {field.name: limit for field in fields(self) if (limit := getattr(self, field.name)) is not None}

    def objective(self, *, has_counts: bool) -> str | None:
        """Return the default objective, None for the product of time and cost."""
        if self.deadline_s is not None:
            return "run_cost_usd"
        if self.budget_usd is not None:
            return "wall_days"
        return None if has_counts else "run_cost_usd"


@dataclass(frozen=True)
class Request:
    """A validated request for a plan."""

    model: Scenario
    given: Mapping[str, Any]
    choices: Mapping[str, list[Any]]
    limits: Limits
    chips: tuple[str, ...]
    own: Mapping[str, Scenario]
    counts: Any
    ways: tuple[str, ...]
    default_ways: bool
    sites: tuple[str, ...]
    tiers: tuple[str, ...]
    offers: pl.DataFrame | None
    objective: str | None
    using: Mapping[str, str]
    distributions: Mapping[str, Distribution]
    draws: int
    seed: int
    arguments: tuple[Any, Mapping[str, Any]]
    calibration: Calibration | None
    framework: str | None = None

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """Inputs that all plans share: the model, given values, and defaults derived from both."""
        values = Question.read({**self.model, **self.given}).values
        return {**values} | {name: default for name, (default, _) in self.defaults.items()}

    def fixed_on(self, accelerator: str) -> dict[str, Any]:
        """Return the inputs that all plans on an accelerator share, with the features of the framework."""
        specified = self.own.get(accelerator, {"accelerator": accelerator})
        return {**(self._software(accelerator) or {}), **self.fixed, **specified}

    def calibration_on(self, accelerator: str) -> Calibration | None:
        """Return the calibration of layouts on an accelerator: that of the caller, otherwise that of the framework."""
        return self.calibration or self._software(accelerator)

    def _software(self, accelerator: str) -> Calibration | None:
        key = str(self.own[accelerator]["accelerator"]) if accelerator in self.own else accelerator
        return None if self.framework is None else calibrated_on_software(self.framework, key)

    @cached_property
    def defaults(self) -> dict[str, tuple[float, str]]:
        """Defaults of a plan's own, with their sources."""
        values = Question.read({**self.model, **self.given}).values
        plan_defaults: dict[str, tuple[float, str]] = {}
        if "sequence_length" not in values:
            row = defaults()["sequence_length"]
            plan_defaults["sequence_length"] = (row.value, row.why)
        if "tokens" not in values:
            tokens = evaluate(values, "compute_optimal_tokens")["compute_optimal_tokens"]
            plan_defaults["tokens"] = (tokens, "computed: hoffmann2022, 20 tokens per parameter")
        return plan_defaults

    @cached_property
    def step_tokens(self) -> float:
        """Default tokens per optimizer step."""
        asked = Question(self.fixed, outputs=("compute_optimal_step_tokens",), assume=True)
        return asked.resolve().run()["compute_optimal_step_tokens"]

    @cached_property
    def varied(self) -> dict[str, list[Any]]:
        """Choices other than accelerators, precisions and parts of a layout, such as the number of sites."""
        return {name: values for name, values in self.choices.items() if name not in (*PARTS, "precision")}

    @cached_property
    def layout_choices(self) -> dict[str, list[Any]]:
        """Choices of parts of a layout, with the schedules of the framework."""
        return scheduled(self.framework) | {name: values for name, values in self.choices.items() if name in PARTS}

    @property
    def has_own_values(self) -> bool:
        """Whether values of the chip were given, in the model or beside it."""
        return not BROUGHT.keys().isdisjoint({*self.model, *self.given})

    @property
    def is_soonest(self) -> bool:
        """Whether the plan is the fastest on the available accelerators: no limit, no offers, no other objective."""
        return not self.limits.given() and self.offers is None and self.objective in (None, "wall_days")

    @property
    def usual_days(self) -> float:
        """Days up to which a run is as good as a shorter one, without a deadline or accelerators that are all used."""
        is_open = self.limits.deadline_s is None and (self.counts is None or not self.is_soonest)
        return MAX_USUAL_DAYS if is_open else math.inf

    @property
    def given_parts(self) -> str:
        """The given parts of a layout, for messages."""
        given = [f"{name} = {quantity(name).text(self.fixed[name])}" for name in PARTS if name in self.fixed]
        given += [f"{name} in {values}" for name, values in self.choices.items() if name in PARTS]
        return f" with {', '.join(given)}" if given else ""

    def using_of(self, tier: str) -> dict[str, str]:
        """Return the alternative models for a number of checkpoint tiers."""
        return {**TIERS[tier], **self.using}


COMPUTED: Final = {
    "model": "parameters active_parameters",
    "deadline": "wall_days wall_s training_days training_s accelerator_hours",
    "budget": "run_cost_usd rental_cost_usd capital_usd network_capital_usd",
    "power": "training_energy_kwh training_carbon_kg",
    "a part of the layout, such as tensor_parallel,": "data_parallel micro_batches step_s predicted_mfu fits "
    "memory_peak_bytes model_flop_per_s_per_accelerator",
}
"""Quantities that a plan computes and that cannot be given, by the argument that decides them."""


def check_no_results(given: Collection[str]) -> None:
    """Refuse quantities that a plan computes."""
    for argument, names in COMPUTED.items():
        for name in names.split():
            if name in given:
                raise ScenarioError(f"{name} is not an input of a plan; give {argument} instead")


def limits_of(given: dict[str, Any], **limits: Any) -> Limits:
    """Return the limits, whether given by their argument or by their quantity, which leaves ``given``.

    >>> limits_of({"deadline_s": 86400.0}, deadline=None, budget=1e6, power=None)
    Limits(deadline_s=86400.0, budget_usd=1000000.0, facility_power_w=None)
    """
    if "nodes" in given and "accelerators" not in given:
        raise ScenarioError("nodes alone are not an input of a plan; give counts, the numbers of accelerators")
    if "mfu" in given:
        raise ScenarioError("mfu is not an input of a plan, whose layout decides it; fk.evaluate takes an mfu")
    named = {LIMITS[name]: name for name in limits if LIMITS[name] in given}
    check_not_both({name: limits[name] for name in named.values()}, LIMITS)
    read = {field: float(quantity(field).check(given.pop(field))) for field in named}
    return replace(Limits.read(**limits), **read)


def check_not_both(arguments: Mapping[str, Any], fields: Mapping[str, str]) -> None:
    """Refuse an argument whose quantity is given, too."""
    for name, given in arguments.items():
        if given is not None:
            raise ScenarioError(f"{name} and {fields[name]} are the same; give one of them")


def read_names(kind: str, names: str | Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Return one or more validated names, each once.

    >>> read_names("number of checkpoint tiers", "two", TIERS)
    ('two',)
    """
    if not (listed := validation.strings(kind, names)):
        raise ScenarioError(f"no {kind} is given; give one or more of {', '.join(known)}")
    return tuple(validation.one_of(kind, name, known) for name in listed)


def split_choices(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the single values, and the lists of values to choose from."""
    single = {name: value for name, value in given.items() if not isinstance(value, (list, tuple, set, range))}
    return single, {name: options(name, value) for name, value in given.items() if name not in single}


def options(name: str, given: Any) -> list[Any]:
    """Return validated values to choose from; a single value is a list of one."""
    quantity(name)
    values: Sequence[Any] = [given] if isinstance(given, (str, float, int)) else [*validation.as_list(name, given)]
    if not values:
        raise ScenarioError(f"{name}: nothing to choose from; give at least one value")
    return list(dict.fromkeys(read_value(quantity(name), value) for value in values))


def read_offers(offers: Any, own: Collection[str] = ()) -> pl.DataFrame:
    """Return validated offers: ``provider``, ``accelerator``, the price and ``offered_accelerators``.

    ``own`` are the names of accelerators that the tables do not have.

    Raises
    ------
    ScenarioError, FactorykitError
        If a column is missing, there are no rows, or a value is invalid.
    """
    offers = offered(offers, OFFER_COLUMNS)
    counts = offers[OFFERED] if OFFERED in offers.columns else [None] * offers.height
    return pl.DataFrame(
        {
            "provider": offers["provider"].cast(pl.String),
            "accelerator": [name if name in own else identify("accelerator", name) for name in offers["accelerator"]],
            PRICE: [quantity(PRICE).check(price) for price in offers[PRICE]],
            OFFERED: [None if count is None else quantity(OFFERED).check(count) for count in counts],
        },
        {"provider": pl.String, "accelerator": pl.String, PRICE: pl.Float64, OFFERED: pl.Float64},
    )


def cheapest_offers(rows: pl.DataFrame, offers: pl.DataFrame, chip: str) -> pl.DataFrame:
    """Return the rows with ``provider`` and price of the cheapest offer with enough accelerators of a chip.

    Both are null where no offer states enough accelerators.

    >>> import polars as pl
    >>> given = {"provider": ["a", "b"], "accelerator": "b200", PRICE: [2.0, 3.0], OFFERED: [None, 4096.0]}
    >>> counts = pl.DataFrame({"accelerators": [1024.0, 8192.0]})
    >>> cheapest_offers(counts, read_offers(pl.DataFrame(given)), "b200")["provider"].to_list()
    ['b', None]
    """
    of_chip = offers.filter(accelerator=chip).sort(PRICE, maintain_order=True).select("provider", PRICE, OFFERED)
    enough = (
        rows.select("accelerators")
        .unique(maintain_order=True)
        .join(of_chip, how="cross")
        .filter(pl.col(OFFERED) >= pl.col("accelerators"))
        .unique("accelerators", keep="first", maintain_order=True)
        .drop(OFFERED)
    )
    return rows.join(enough, on="accelerators", how="left", maintain_order="left")


def sites(names: Sequence[str] | None = None) -> pl.DataFrame:
    """Return one row per country: ``site``, ``carbon_kg_per_kwh`` of its grid, the newest ``electricity_usd_per_kwh``.

    By default every country that has both.

    Raises
    ------
    ScenarioError
        If a country has no grid or no price.

    >>> sites(["fra"])["carbon_kg_per_kwh"].item() < 0.1
    True
    """
    prices = (
        table("electricity")
        .filter(
            pl.col("electricity_usd_per_kwh").is_not_null(),
            pl.col("kind").is_in(["industrial", "wholesale"]),
            pl.col("region").is_null(),
        )
        .sort("year")
        .group_by("country")
        .agg(pl.col("electricity_usd_per_kwh").last())
    )
    grids = table("country_grids").select("name", site="country", carbon_kg_per_kwh="carbon_kg_per_kwh")
    rows = grids.join(prices, left_on="site", right_on="country").sort("site").collect()
    countries = []
    for given in rows["site"] if names is None else names:
        found = rows.filter(site=known_key("country", given) or given)
        if found.is_empty():
            message = unknown_name_message("country with a grid and a price of electricity", given, rows["name"])
            raise ScenarioError(f"{message}; its code serves, too, such as 'us' or 'usa'")
        countries.append(found.drop("name"))
    return pl.concat(countries)


def ranked(plans: pl.DataFrame, limits: Limits, objective: str | None, usual_days: float) -> pl.DataFrame:
    """Return the plans, the best first, with ``breaks``: the limits that a plan exceeds, null where it keeps all.

    Plans that keep all limits come first, by the objective; then the others by the product of the ratios by which they
    exceed limits. Those that keep the same limits come by the ratio by which they exceed ``usual_days``, then by the
    objective, and if they tie the cheapest first.
    """
    ratios = limit_ratios(plans, limits)
    excess = pl.sum_horizontal(pl.lit(0.0), *(ratio.log().clip(0.0) for ratio in ratios.values()))
    broken = [
        pl.when(ratio > 1.0).then(pl.format("{} x the {}", _rounded(ratio), pl.lit(n))) for n, ratio in ratios.items()
    ]
    breaks = pl.concat_str(broken, separator=", ", ignore_nulls=True) if broken else pl.lit("")
    return (
        plans.with_columns(breaks=pl.when(breaks != "").then(breaks), excess=excess, goal=goal(objective))
        .with_columns(slow=(pl.col("wall_days") / usual_days).clip(1.0))
        .sort("excess", "slow", "goal", "run_cost_usd", "accelerators", maintain_order=True)
        .drop("excess", "slow", "goal")
    )


def _rounded(ratio: pl.Expr) -> pl.Expr:
    """Return a ratio above 1 as text with three digits, without decimals from a hundred on."""
    rounded = ratio.round_sig_figs(3).clip(1.01)
    digits = rounded.cast(pl.String)
    return pl.when(rounded < 100.0).then(digits).otherwise(digits.str.strip_suffix(".0"))


def goal(objective: str | None) -> pl.Expr:
    """Return the value that the best plan has the least of."""
    if objective is None:
        return pl.col("wall_days") * pl.col("run_cost_usd")
    return -pl.col(objective) if objective in BEST_IS_MOST else pl.col(objective)


def limit_ratios(plans: pl.DataFrame, limits: Limits) -> dict[str, pl.Expr]:
    """Return the ratio of what a plan takes to what is allowed, by limit."""
    ratios: dict[str, pl.Expr] = {}
    if limits.deadline_s is not None:
        ratios["deadline"] = pl.col("wall_days") * SECONDS_PER_DAY / limits.deadline_s
    if limits.budget_usd is not None:
        money = pl.col("run_cost_usd")
        if "capital_usd" in plans.columns:
            money = pl.max_horizontal(money, "capital_usd")
        ratios["budget"] = money / limits.budget_usd
    if limits.facility_power_w is not None:
        ratios["power"] = pl.col("facility_power_w") / limits.facility_power_w
    return ratios


def nondominated(rows: pl.DataFrame, results: Sequence[str]) -> pl.DataFrame:
    """Return the rows that no other row equals or beats in all results, sorted by the first result.

    >>> import polars as pl
    >>> nondominated(pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 1.0, 2.0]}), ("a", "b")).rows()
    [(1.0, 3.0), (2.0, 1.0)]
    """
    listed = rows.sort(*results, maintain_order=True)
    front: list[tuple[float, ...]] = []
    numbers = []
    for number, values in enumerate(listed.select(results).iter_rows()):
        if not any(all(a <= b for a, b in zip(other, values, strict=True)) for other in front):
            front.append(values)
            numbers.append(number)
    return listed[numbers]
