"""Plans of training runs: accelerators, layout, failures, money and power together."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import polars as pl

from factorykit.core import text_io
from factorykit.core.errors import (
    MAX_LINE,
    MissingQuantity,
    ScenarioError,
    UnknownName,
    short_repr,
    unknown_name_message,
    warn,
)
from factorykit.core.validation import as_list, boolean, integer, mapping, strings
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data.identifiers import identify
from factorykit.data.tables import table
from factorykit.engine.progress import progress
from factorykit.engine.question import Question
from factorykit.engine.resolve import compared, is_of_accelerator
from factorykit.engine.unused import warn_of_idle, warn_of_shared
from factorykit.model.economics.rent import PRICE
from factorykit.model.performance.calibration import Calibration, framework_named
from factorykit.model.performance.layouts import PARTS, best_layouts, memory_needed
from factorykit.model.planning import uncertainty
from factorykit.model.planning.candidates import (
    RESULTS,
    alternative_models,
    candidate_counts,
    chain_of,
    complete,
    default_counts,
    outputs,
    read_counts,
    usable_counts,
    with_batches,
)
from factorykit.model.planning.constraints import (
    COMPUTED,
    LARGEST,
    TIERS,
    WAYS,
    Request,
    cheapest_offers,
    check_no_results,
    check_not_both,
    limits_of,
    ranked,
    read_names,
    read_offers,
    split_choices,
)
from factorykit.model.planning.constraints import (
    sites as site_table,
)
from factorykit.model.planning.published_runs import conditions
from factorykit.model.planning.summary import BATCH, CHOICES, Plan
from factorykit.model.scenario.accelerators import own_chips
from factorykit.model.scenario.models import dense, model_of
from factorykit.model.scenario.scenario import Scenario
from factorykit.model.uncertainty.distributions import check, is_distribution

Group: TypeAlias = "tuple[pl.DataFrame, Search]"
"""Plans of one accelerator and precision, and the search that found them."""
Excluded: TypeAlias = "list[tuple[str, str, float | None, str]]"
Searched: TypeAlias = "dict[frozenset[tuple[str, Any]], dict[float, pl.DataFrame]]"
"""Best layouts by the inputs of their search and the number of accelerators."""
SAME: Final = {"chips": "accelerator", "counts": "accelerators"}
"""Arguments that a quantity replaces."""
DRAWS: Final = 256
MAX_DRAWS: Final = 2**14
MIN_PROVIDERS: Final = 3
"""Least number of providers on demand of the accelerators that are chosen from by default."""
MIN_PARAMETERS: Final = 2e8
MAX_PARAMETERS: Final = 1e15
SIZE_TOLERANCE: Final = 1.01
"""Ratio of sizes at which the search for the largest model ends."""
SIZE_DRAWS: Final = 2
FIRST_BLOCK: Final = 0.5
"""Share of the available accelerators down to which counts are evaluated first."""
COUNTS_AT_ONCE: Final = 16
"""Number of further counts that are evaluated where none has a layout so far."""


def plan(
    model: Any,
    *,
    tokens: Any = None,
    chips: str | Scenario | Iterable[str | Scenario] | None = None,
    counts: Any = None,
    deadline: Any = None,
    budget: Any = None,
    power: Any = None,
    acquire: str | Iterable[str] | None = None,
    sites: Iterable[str] | None = None,
    tiers: str | Iterable[str] = "one",
    offers: pl.DataFrame | list[dict[str, Any]] | None = None,
    objective: str | None = None,
    using: Mapping[str, str] | None = None,
    calibration: Mapping[str, float] | None = None,
    framework: str | None = None,
    as_run: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    **given: Any,
) -> Plan:
    """Plan a training run: accelerators, layout, failures, power and money, with the limits that bind.

    Parameters
    ----------
    model
        Name of a known model, path of a ``config.json``, a mapping of quantities, a size such as ``"70B"`` or
        ``"1T mixture"``, or ``"largest"``: the largest dense model that the limits and ``counts`` allow.
    tokens
        Training tokens; by default as many as are compute-optimal for the size.
    chips
        Accelerators to choose from; by default those that three or more providers rent on demand, joined by a fast
        fabric in eights or more. One of your own, of :func:`factorykit.accelerator`, may stand among them.
    counts
        Available accelerators, one number or several to choose from; a plan may leave some idle. Alone they give the
        fastest plan of each number. With a limit or an objective every usable number is a candidate, so that more
        accelerators never make the best plan that keeps the limits worse by its objective. By default four between two
        powers of two, as many as a run of an hour to three years needs. Without a deadline, and except with counts
        alone, runs of at most 90 days are preferred.
    deadline, budget, power
        Limits of wall-clock time, money (for owned machines their purchase) and facility power, with units:
        ``"60 d"``, ``"20 M USD"``, ``"20 MW"``.
    acquire
        ``"rent"``, ``"own"`` or both; by default rent, and own where a budget is given that may buy machines.
    sites
        Countries to choose from, by code or name; each brings the carbon of its grid and its price of electricity.
    tiers
        Checkpoints on remote storage, ``"one"``, or also in nodes or peers, ``"two"``; or both to choose from. With two
        tiers the interval is that between near checkpoints.
    offers
        Rental offers, one row each: ``provider``, ``accelerator``, ``rental_usd_per_accelerator_h`` and
        ``offered_accelerators``. A count that no offer covers is excluded. By default the median price of all listed
        providers.
    objective
        Quantity to minimise, such as ``"accelerators"`` (``goodput`` and ``predicted_mfu`` are maximised): by default
        the time with a budget alone, the product of time and cost with ``counts`` alone, else the cost.
    using
        Alternative models of quantities, as in :func:`factorykit.evaluate`.
    calibration
        Result of :func:`factorykit.calibrate`, as in :func:`factorykit.search`.
    framework
        Training framework whose features, pipeline schedules and published runs count, as in
        :func:`factorykit.search`.
    as_run
        Whether tokens, chips, count, sequence length, batch, number format and year of the software that are not given
        are those of the model's published run; ``plan.compare(other)`` shows the difference to the best plan of today.
    draws, seed
        Number of random draws, the same for every plan, and their seed.
    **given
        Known quantities; a list gives alternatives (``precision=["bf16", "fp8"]``, ``pipeline_parallel=[1, 2]``),
        a distribution is sampled.

    Returns
    -------
    Plan

    Raises
    ------
    FactorykitError
        If a name or a value is invalid, or no plan works; the message lists the reasons.

    Examples
    --------
    >>> found = plan("llama3_8b", tokens="1T", chips=["h100_sxm"], deadline="30 d")
    >>> found.best["wall_days"].item() <= 30.0
    True
    """
    asked = {name: value for name, value in locals().items() if name not in ("model", "as_run", "given")}
    asked |= {name: [*as_list(name, value)] for name, value in asked.items() if isinstance(value, Iterator)}
    usual = {"tiers": "one", "draws": DRAWS, "seed": 0}
    absent = {name for name, value in asked.items() if value is None or (name in usual and value == usual[name])}
    asked = {name: value for name, value in asked.items() if name not in absent}
    model = LARGEST if isinstance(model, str) and model.strip().lower() == LARGEST else model
    if boolean("as_run", as_run):
        asked, given = _as_published(model, asked, given)
    request, checked = _read(model, asked, given)
    result = _largest(request) if isinstance(model, str) and model == LARGEST else _answer(request)
    _warn_of_unused(request, checked)
    return result


def _as_published(model: Any, asked: dict[str, Any], given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is asked and given, with the conditions of the model's published run where nothing else is."""
    run = conditions(model)
    published = {name: run.pop(name) for name in ("tokens", "chips", "counts")}
    replaced = {name for name, same in SAME.items() if same in given}
    return {name: value for name, value in published.items() if name not in replaced} | asked, run | given


def _read(model: Any, asked: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Request, set[str]]:
    """Return the validated request, and the given quantities that some plan must use."""
    check_not_both({name: asked[name] for name, same in SAME.items() if name in asked and same in given}, SAME)
    fixed = dict(given)
    limits = limits_of(fixed, **{name: asked.get(name) for name in ("deadline", "budget", "power")})
    distributions = check(drawn) if (drawn := {n: v for n, v in fixed.items() if is_distribution(v)}) else {}
    values, choices = split_choices({name: value for name, value in fixed.items() if name not in distributions})
    calibration = asked.get("calibration", {})
    values = dict(mapping("calibration", calibration)) | values
    values |= {name: float(distribution.ppf(0.5)) for name, distribution in distributions.items()}
    architecture = _architecture(model)
    values = {name: architecture[name] for name in ("accelerator", "accelerators") if name in architecture} | values
    question = Question.read({**architecture, **values}, using=asked.get("using"))
    names, own = own_chips(asked.get("chips"), fixed)
    of_chips = {name for chip in own.values() for name in chip if name != "accelerator"}
    unsourced = question.values.keys() - architecture.sources.keys() - set(COMPUTED["model"].split())
    check_no_results((fixed.keys() - question.using.keys()) | unsourced | of_chips)
    question.check_consistency()
    values = {name: question.values.get(name, value) for name, value in values.items()}
    counts = asked.get("counts")
    if counts is None:
        counts = values.pop("accelerators", None) or choices.pop("accelerators", None)
    ways = asked.get("acquire", WAYS[: 1 + bool(limits.budget_usd)])
    objective, framework, offers = (asked.get(name) for name in ("objective", "framework", "offers"))
    request = Request(
        model=architecture.replace(accelerator=None, accelerators=None),
        given=values | {name: asked[name] for name in ("tokens",) if name in asked},
        choices=choices,
        limits=limits,
        chips=_chips(names, values),
        own=own,
        counts=counts,
        ways=read_names("way to acquire accelerators", ways, WAYS),
        default_ways="acquire" not in asked,
        sites=strings("sites", asked.get("sites", ())),
        tiers=read_names("number of checkpoint tiers", asked.get("tiers", "one"), TIERS),
        offers=None if offers is None else read_offers(offers, own),
        objective=_objective(objective) if objective else limits.objective(has_counts=counts is not None),
        using=question.using,
        distributions=distributions,
        draws=integer("draws", asked.get("draws", DRAWS), 2, MAX_DRAWS),
        seed=integer("seed", asked.get("seed", 0)),
        arguments=(model, {**asked, **given}),
        calibration=calibration if isinstance(calibration, Calibration) else None,
        framework=None if framework is None else framework_named(framework),
    )
    warn_of_shared(values, request.chips)
    for name in filter(is_of_accelerator, architecture if names else ()):
        stated = f"{name} = {quantity(name).text(float(architecture[name]))}"
        warn(f"{stated} of the model is taken for {', '.join(request.chips)}; drop it from the model, or chips")
    return request, {*values, *of_chips, *request.varied} - compared(question.shape()) - {"accelerators"}


def _architecture(model: Any) -> Scenario:
    """Return the model, of which a layout needs the layers; the smallest where the largest is sought."""
    architecture = dense(MIN_PARAMETERS) if isinstance(model, str) and model == LARGEST else model_of(model)
    if "layers" not in architecture:
        raise ScenarioError(
            f"{architecture.label or 'the model'} gives no layers, and a layout needs them; join it with an "
            "architecture, {**fk.architecture('llama3_405b'), **run}, or name a model"
        )
    return architecture


def _warn_of_unused(request: Request, given: set[str]) -> None:
    """Warn of given quantities that no plan uses."""
    varied = ("accelerators", BATCH, *PARTS)
    ranges = {name: alternatives[0] for name, alternatives in request.varied.items()}
    for chip, way, tier in itertools.product(request.chips, request.ways, request.tiers):
        fixed = {**request.fixed_on(chip), **ranges}
        with contextlib.suppress(MissingQuantity):  # no plan on this chip
            given = given - chain_of(fixed, varied, way, request.using_of(tier)).resolution.used
        if not given:
            return
    values = {name: value for chip in request.chips for name, value in request.fixed_on(chip).items()} | ranges
    warn_of_idle({name: values.get(name) for name in sorted(given)}, ("a plan",))


def _objective(name: str) -> str:
    name = quantity(name).name
    results = dict.fromkeys(("accelerators", *(result for way in WAYS for result in outputs(way))))
    if name not in results:
        raise ScenarioError(unknown_name_message("result of a plan", name, results))
    return name


def _chips(chips: tuple[str, ...], values: dict[str, Any]) -> tuple[str, ...]:
    """Return the accelerators to choose from, and take a given one out of the values."""
    name = values.pop("accelerator", None)
    if chips:
        return chips
    return _listed_chips() if name is None else (identify("accelerator", name),)


def _listed_chips() -> tuple[str, ...]:
    """Return the accelerators that three or more providers rent on demand and whose fast fabric joins eight or more."""
    providers = (
        table("rental_offers").filter(kind="on demand").group_by("accelerator").agg(pl.col("provider").n_unique())
    )
    rows = table("accelerators").filter(pl.col("scale_up_domain") >= 8.0).select("accelerator").collect()
    known = set(providers.filter(pl.col("provider") >= MIN_PROVIDERS).collect()["accelerator"])
    return tuple(chip for chip in rows["accelerator"] if chip in known)


def _answer(request: Request) -> Plan:
    """Return the plan of a request."""
    groups: list[Group] = []
    rows: Excluded = []
    searched: Searched = {}
    precisions = request.choices.get("precision") or [request.fixed.get("precision", "bf16")]
    every = [*itertools.product(request.chips, precisions, request.ways, request.tiers, *request.varied.values())]
    for chip, precision, way, tier, *picked in progress(every, len(every), "chips and ways planned"):
        varied = dict(zip(request.varied, picked, strict=True))
        fixed = {**request.fixed_on(chip), **varied, "precision": precision}
        search = Search(request, chip, fixed, way, tier, searched)
        try:
            plans = _plans(search, rows)
        except MissingQuantity as error:
            rows.append((chip, precision, None, str(error)))
        else:
            groups += [(plans, search)] if plans.height else []
    schema = {"accelerator": pl.String, "precision": pl.String, "accelerators": pl.Float64, "reason": pl.String}
    excluded = pl.DataFrame(rows, schema, orient="row").unique(maintain_order=True)
    if not groups:
        reasons = excluded.select("accelerator", "reason").unique(maintain_order=True).rows()
        message = f"no plan works: {'; '.join(f'{chip}: {reason}' for chip, reason in reasons)}"
        lines = ("no plan works", *(f"{chip}:\n{reason}" for chip, reason in reasons))
        raise ScenarioError(message if len(message) <= MAX_LINE else "\n".join(lines))
    return _ranked(request, groups, excluded)


def _plans(search: Search, excluded: Excluded) -> pl.DataFrame:
    """Return the plans of an accelerator and precision, one row per count and site, and list the excluded counts."""
    request, fixed, way = search.request, search.fixed, search.way
    left = default_counts(fixed) if request.counts is None else read_counts(request.counts)

    def kept(rows: pl.DataFrame, reason: str) -> pl.DataFrame:
        """Return the rows, and exclude the counts that have none left."""
        nonlocal left
        works = set(rows["accelerators"])
        least = math.inf if request.counts is None else min(works, default=math.inf)
        lost = [count for count in left if count not in works and count < least]
        excluded.extend((search.chip, fixed["precision"], count, reason) for count in lost)
        left = [count for count in left if count not in lost]
        return rows

    undivided = f"no layout{request.given_parts} divides the model and the batch"
    if fixed["tokens"] < fixed["sequence_length"]:
        undivided = f"tokens = {fixed['tokens']:g} are less than one sequence of {fixed['sequence_length']:,.0f}"
    rows = kept(search.within(left), undivided)
    fitting = rows.filter(pl.col("layouts") > 0)
    note = search.memory_note(rows) if fitting.height < rows.height else ""
    rows = kept(fitting, f"no layout{request.given_parts} fits in memory{note}")
    if request.sites:
        rows = rows.join(site_table(request.sites), how="cross", maintain_order="left_right")
    if way == "rent" and request.offers is not None:
        rows = cheapest_offers(rows, request.offers, search.chip)
        rows = kept(rows.filter(pl.col("provider").is_not_null()), "no offer states enough offered_accelerators")
    if rows.is_empty():
        return rows
    plans = complete(rows, fixed, way, search.using)
    if way == "own" and request.default_ways and request.limits.budget_usd is not None:
        affordable = pl.col("capital_usd") <= request.limits.budget_usd
        plans = kept(plans.filter(affordable), "the budget is too small to buy them")
    return plans


@dataclass(frozen=True)
class Search:
    """The search for layouts of an accelerator and precision.

    ``searched`` holds the layouts found so far: ways to acquire and checkpoint tiers share them.
    """

    request: Request
    chip: str
    fixed: Mapping[str, Any]
    way: str
    tier: str
    searched: Searched

    @property
    def using(self) -> Mapping[str, str]:
        """Alternative models for the checkpoint tiers."""
        return self.request.using_of(self.tier)

    def layouts(self, counts: Sequence[float]) -> pl.DataFrame:
        """Return the best layout of every count."""
        request, fixed = self.request, self.fixed
        searched = self.searched.setdefault(frozenset(fixed.items()), {})
        if unknown := [count for count in counts if count not in searched]:
            grid = with_batches(unknown, fixed, 0.0 if BATCH in fixed else request.step_tokens)
            models = alternative_models(self.way, fixed, self.using)
            calibration = request.calibration_on(self.chip)
            best = best_layouts(fixed, grid, request.layout_choices, models, calibration)
            searched |= {count: best.filter(accelerators=count) for count in unknown}
        return pl.concat([searched[count] for count in counts])

    def memory_note(self, rows: pl.DataFrame) -> str:
        """Return the memory that the largest count without a layout that fits needs, as the end of a sentence."""
        largest = rows.filter(layouts=0).sort("accelerators").tail(1)
        counts = largest.select(name for name in ("accelerators", BATCH) if name in rows.columns)
        models = alternative_models(self.way, self.fixed, self.using)
        needed, has = map(
            quantity("memory_peak_bytes").text,
            memory_needed(self.fixed, counts, self.request.layout_choices, models),
        )
        count = quantity("accelerators").text(largest["accelerators"].item())
        return f" (the smallest on {count} needs up to {needed}, an accelerator has {has})"

    def within(self, available: Sequence[float]) -> pl.DataFrame:
        """Return the layouts of the counts that plans may use of any of the available numbers of accelerators.

        Without limits only the count that finishes soonest is a candidate. ``available_accelerators`` is the least
        number that allows a count.
        """
        if self.request.counts is None:
            return self.layouts(available)
        exact = any(name in PARTS for name in (*self.fixed, *self.request.choices))
        if self.request.is_soonest:
            counts = self._soonest({most: usable_counts(most, self.fixed, exact=exact) for most in available})
        else:
            counts = candidate_counts(available, self.fixed, exact=exact)
        allowed = pl.DataFrame({"available_accelerators": available}, {"available_accelerators": pl.Float64})
        return self.layouts(sorted(counts)).join_asof(
            allowed, left_on="accelerators", right_on="available_accelerators", strategy="forward", coalesce=False
        )

    def _soonest(self, usable: Mapping[float, list[float]]) -> Iterable[float]:
        """Return the counts that finish soonest, one for every available number, and of equally fast ones the cheapest.

        The search goes from the available number downwards, and ends where no smaller count can be faster, even at full
        utilization and without failures: days never rise with the number of available accelerators.
        """
        least = {most: FIRST_BLOCK * most for most in usable}
        outcomes: dict[float, tuple[float, float, float]] = {}
        useful = (pl.col("accelerators") * pl.col("predicted_mfu") * pl.col("goodput")).alias("useful")
        while new := sorted({n for most in usable for n in usable[most] if n >= least[most]} - outcomes.keys()):
            rows = self.layouts(new).filter(pl.col("layouts") > 0)
            plans = complete(rows, self.fixed, self.way, self.using)
            results = plans.select("accelerators", "wall_days", "run_cost_usd", useful).iter_rows()
            outcomes |= dict.fromkeys(new, (math.inf, math.inf, math.inf)) | {row[0]: row[1:] for row in results}
            for most, numbers in usable.items():
                tried = [outcomes[n] for n in numbers if n in outcomes]
                days, _, share = min(tried)
                least[most] = numbers[: len(tried) + COUNTS_AT_ONCE][-1] if days == math.inf else share
        return {min((n for n in numbers if n in outcomes), key=lambda n: outcomes[n]) for numbers in usable.values()}


def _ranked(request: Request, groups: Sequence[Group], excluded: pl.DataFrame) -> Plan:
    """Return the plan: every candidate with its intervals, the limits it breaks, and its rank."""
    chips = tuple(dict.fromkeys(search.chip for _, search in groups))
    drawn = uncertainty.distributions(request.distributions)
    draws = uncertainty.draw(drawn, chips, request.draws, request.seed)
    rows: list[pl.DataFrame] = []
    futures: list[pl.DataFrame] = []
    start = 0
    for plans, search in groups:
        fixed, way = search.fixed, search.way
        numbered = plans.with_columns(plan=pl.int_range(start, start + plans.height, dtype=pl.Int64))
        start += plans.height
        settled = [name for name in plans.columns if name not in RESULTS]
        using = alternative_models(way, {**fixed, **dict.fromkeys(settled)}, search.using)
        unknown = draws.drop(name for name in drawn if name in fixed and name not in request.distributions)
        draw_price = way == "rent" and PRICE not in fixed and request.offers is None
        futures.append(uncertainty.futures(numbered, fixed, search.chip, unknown, using, draw_price=draw_price))
        shared = ("precision", *request.varied, *(part for part in PARTS if part in fixed))
        names = {name: pl.lit(fixed[name]) for name in shared} | {"accelerator": pl.lit(search.chip)}
        rows.append(
            numbered.with_columns(**names, acquire=pl.lit(way), tiers=pl.lit(search.tier)).join(
                uncertainty.intervals(futures[-1]), on="plan"
            )
        )
    every = pl.concat(rows, how="diagonal")
    leading = ("plan", *CHOICES, *request.varied, "acquire", "tiers", "site", "provider")
    first = list(dict.fromkeys(name for name in leading if name in every.columns))
    every = every.select(*first, pl.exclude(first))
    plans = ranked(every, request.limits, request.objective, request.usual_days)
    return Plan(request, plans, pl.concat(futures), excluded)


def _largest(request: Request) -> Plan:
    """Return the plan of the largest dense model that keeps all limits.

    Raises
    ------
    ScenarioError
        If nothing limits the size, or even the smallest model keeps no limit.
    """
    if not request.limits.given() and request.counts is None:
        raise ScenarioError("nothing limits the size of the model; give a deadline, budget, power or counts")
    low = MIN_PARAMETERS
    if not _keeps_limits(request, low):
        breaks = _answer(_of_size(request, low)).best["breaks"].item() or f"more than {request.usual_days:g} days"
        raise ScenarioError(f"even {low:.0e} parameters take {breaks}; allow more")
    high = 64.0 * low
    while _keeps_limits(request, high):
        low, high = high, 8.0 * high
        if high > MAX_PARAMETERS:
            raise ScenarioError(f"nothing limits the size of the model below {high:.0e} parameters; give a deadline")
    while high / low > SIZE_TOLERANCE:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _keeps_limits(request, middle) else (low, middle)
    return _answer(_of_size(request, low))


def _of_size(request: Request, parameters: float) -> Request:
    return replace(request, model=dense(float(f"{parameters:.3g}")))


def _keeps_limits(request: Request, parameters: float) -> bool:
    """Return whether a model of this size has a plan that keeps all limits and takes no more than the usual days."""
    try:
        best = _answer(replace(_of_size(request, parameters), draws=SIZE_DRAWS)).best
        return best["breaks"].item() is None and best["wall_days"].item() <= request.usual_days
    except ScenarioError:
        if parameters == MIN_PARAMETERS:
            raise
        return False


def read_run(path: str | Path) -> dict[str, Any]:
    """Return the arguments of :func:`factorykit.plan` in a TOML file.

    Parameters
    ----------
    path
        A TOML file with ``model`` and arguments of :func:`factorykit.plan`; known quantities stand beside them or under
        ``[given]``.

    Raises
    ------
    ScenarioError, UnknownName
        If the file cannot be read, names no model, or has a key that is no argument and no quantity.
    """
    content = text_io.read_bytes(path, error=ScenarioError)
    try:
        arguments = text_io.check_depth(tomllib.loads(text_io.decode(content)))
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: {error}") from None
    given = arguments.pop("given", {})
    if not isinstance(given, dict):
        raise ScenarioError(f"{path}: given = {short_repr(given)} is no table; write [given] above quantities")
    if twice := sorted(arguments.keys() & given.keys()):
        raise ScenarioError(f"{path} gives {twice[0]} twice, above [given] and under it; remove one")
    arguments |= given
    if "model" not in arguments:
        raise ScenarioError(f"{path} names no model; write model = 'llama3_70b'")
    known = [name for name in inspect.signature(plan).parameters if name != "given"]
    if unknown := [name for name in arguments if name not in (*known, *vocabulary())]:
        message = unknown_name_message("argument of plan or quantity", unknown[0], [*known, *vocabulary()])
        raise UnknownName(f"{path}: {message}")
    return arguments
