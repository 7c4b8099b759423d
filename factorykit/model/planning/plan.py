"""One question about a run, and the whole plan that answers it: chips, count, layout, failures, money and power."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from factorykit.core.errors import MissingQuantity, ScenarioError, short_repr
from factorykit.core.validation import as_list, frame, frame_schema, integer, mapping, strings
from factorykit.core.vocabulary import quantity
from factorykit.data import tables
from factorykit.data.identifiers import identify
from factorykit.engine import progress
from factorykit.engine.chain import ask
from factorykit.engine.defaults import assumed
from factorykit.engine.evaluate import evaluate
from factorykit.engine.explain import Explanation, explain
from factorykit.engine.providers.defaults import defaults
from factorykit.engine.read import checked, chosen
from factorykit.engine.run import compute
from factorykit.model.economics.rent import rent
from factorykit.model.performance.calibration import Calibration
from factorykit.model.performance.layout_features import LOCAL_CORRECTION
from factorykit.model.planning import counts as numbers
from factorykit.model.planning import offers as offers_in_hand
from factorykit.model.planning import uncertainty
from factorykit.model.planning.constraints import WAYS, Wishes, parted, ways
from factorykit.model.planning.constraints import tiers as tiers_of
from factorykit.model.planning.frontier import nondominated, overdrawn, ranked
from factorykit.model.planning.layouts import PARTS, SHARE, best_layouts
from factorykit.model.planning.model_size import LARGEST, SMALLEST, largest
from factorykit.model.planning.sites import sites as grids_of
from factorykit.model.planning.sizes import dense, model_of
from factorykit.model.planning.summary import as_html, sentence, told
from factorykit.model.planning.whole import RESULTS, TIERS, complete, outputs, rivals_of
from factorykit.model.scenario.compare import compare
from factorykit.model.scenario.scenario import Scenario
from factorykit.model.uncertainty.distributions import Distribution, check, is_distribution

if TYPE_CHECKING:
    import polars as pl

Part: TypeAlias = "tuple[pl.DataFrame, dict[str, Any], str, str]"
"""Plans of one chip at a precision, what is the same for all, the way to acquire it, and the tiers of checkpoints."""
DRAWS: Final = 256
MOST_DRAWS: Final = 2**14
CHOICES: Final = ("accelerator", "precision", "accelerators", "global_batch_size", *PARTS, SHARE)


def plan(
    model: Any,
    *,
    tokens: Any = None,
    chips: str | Iterable[str] | None = None,
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
    draws: int = DRAWS,
    seed: int = 0,
    **given: Any,
) -> Plan:
    """Return the best whole plan of a training run, those it was chosen from, and what limits it.

    Parameters
    ----------
    model
        Name of a known model, path of a ``config.json``, a mapping of quantities, a size such as ``"70B"`` or
        ``"1T mixture"``, or ``"largest"``: dense and as large as the wishes and ``counts`` allow.
    tokens
        Training tokens; by default as many as are compute-optimal for the size.
    chips
        Accelerators to choose from; by default all that are rented on demand and joined by a fast fabric in eights or
        more.
    counts
        Numbers of accelerators to choose from; by default four between two powers of two, as many as a run of two days
        to three years needs.
    deadline, budget, power
        What the plan is held to: wall-clock time, money for the run (for owned machines what they cost to buy), power
        of the facility. Texts with units are read: ``"60 d"``, ``"20 M USD"``, ``"20 MW"``.
    acquire
        ``"rent"``, ``"own"`` or both; by default rent, and own where a budget is given that may buy machines.
    sites
        Countries to choose from, by their codes; each brings the carbon of its grid and its price of electricity.
    tiers
        Checkpoints on storage alone, ``"one"``, or near ones before it too, ``"two"``, in nodes or peers; or both to
        choose from. An interval is then that between near checkpoints.
    offers
        Offers in hand to rent at, one row each: ``provider``, ``accelerator``, ``rental_usd_per_accelerator_h`` and,
        where it is said, ``offered_accelerators``. A count that no offer says it has is left out. By default the
        median price of all listed providers, whatever they have.
    objective
        Quantity that makes a plan better, the least of it, or the most of ``goodput`` and ``predicted_mfu``: by default
        the cost where there is a deadline, the time where there is only a budget, else the product of both.
    using
        Which model stands for a quantity that has rivals, as in :func:`factorykit.evaluate`.
    calibration
        What :func:`factorykit.calibrate` found, as in :func:`factorykit.search`.
    draws, seed
        How many futures every plan meets, the same for all, and which.
    **given
        Quantities that are known; a list is chosen from (``precision=["bf16", "fp8"]``, ``pipeline_parallel=[1, 2]``),
        a distribution is drawn from.

    Returns
    -------
    Plan

    Raises
    ------
    FactorykitError
        If a name or a value is refused, or no chip is left; the message says why each one is left out.

    Examples
    --------
    >>> found = plan("llama3_8b", tokens="1T", chips=["h100_sxm"], deadline="30 d")
    >>> found.best["wall_days"].item() <= 30.0
    True
    """
    chips, counts, acquire, sites = map(_listed, (chips, counts, acquire, sites))
    tiers = _listed(tiers)
    asked = {
        "tokens": tokens,
        "chips": chips,
        "counts": counts,
        "deadline": deadline,
        "budget": budget,
        "power": power,
        "acquire": acquire,
        "sites": sites,
        "tiers": None if tiers_of(tiers) == ("one",) else tiers,
        "offers": offers,
        "objective": objective,
        "using": using,
        "calibration": calibration,
        **given,
    }
    said = {name: value for name, value in asked.items() if value is not None}
    wishes = Wishes.read(deadline=deadline, budget=budget, power=power)
    doubted = check(drawn) if (drawn := {n: v for n, v in given.items() if is_distribution(v)}) else {}
    once, choices = parted({name: value for name, value in given.items() if name not in doubted})
    once = ({} if calibration is None else dict(mapping("calibration", calibration))) | once
    once |= {name: float(distribution.ppf(0.5)) for name, distribution in doubted.items()}
    is_largest = isinstance(model, str) and model == LARGEST
    shape = dense(SMALLEST) if is_largest else model_of(model)
    if "layers" not in shape:
        raise ScenarioError(
            f"{shape.label or 'the model'} gives no layers, and a layout needs them; join it with a shape, "
            "{**fk.architecture('llama3_405b'), **run}, or name a model"
        )
    once = {name: shape[name] for name in ("accelerator", "accelerators") if name in shape} | once
    question = Question(
        shape.replace(accelerator=None, accelerators=None),
        once if tokens is None else once | {"tokens": tokens},
        choices,
        wishes,
        _chips(chips, once),
        counts if counts is not None else once.pop("accelerators", None) or choices.pop("accelerators", None),
        ways((("rent", "own") if wishes.budget_usd else ("rent",)) if acquire is None else acquire),
        acquire is None,
        strings("sites", () if sites is None else sites),
        tiers_of(tiers),
        None if offers is None else offers_in_hand.read(offers),
        None if objective is None else _objective(objective),
        checked({**shape, **once})[1] | chosen(using),
        doubted,
        integer("draws", draws, 2, MOST_DRAWS),
        integer("seed", seed),
        (model, said),
        calibration if isinstance(calibration, Calibration) else None,
    )
    return largest(question) if is_largest else question.answer()


def _listed(given: Any) -> Any:
    """Return what can be gone over but once as a list."""
    return list(as_list("plan", given)) if isinstance(given, Iterator) else given


def _objective(named: str) -> str:
    name = quantity(named).name
    told = dict.fromkeys(each for way in WAYS for each in outputs(way))
    if name not in told:
        raise ScenarioError(f"objective = {name!r} is no result of a plan; give one of {', '.join(told)}")
    return name


def _chips(chips: str | Iterable[str] | None, once: dict[str, Any]) -> tuple[str, ...]:
    if (named := once.pop("accelerator", None)) is not None:
        chips = named if chips is None else chips
    if chips is None:
        return _on_offer()
    listed = strings("chips", chips)
    if not listed:
        raise ScenarioError("chips are empty; give at least one, such as 'h100_sxm'")
    return tuple(dict.fromkeys(identify("accelerator", chip) for chip in listed))


def _on_offer() -> tuple[str, ...]:
    """Return the chips that are rented on demand and joined by a fast fabric in eights or more."""
    import polars as pl

    offered = tables.table("rental_offers").filter(kind="on demand").select("accelerator").collect()["accelerator"]
    rows = tables.table("accelerators").filter(pl.col("scale_up_domain") >= 8.0).select("accelerator").collect()
    known = set(offered.drop_nulls())
    return tuple(chip for chip in rows["accelerator"] if chip in known)


@dataclass(frozen=True)
class Question:
    """What is asked of a plan, read once."""

    model: Scenario
    once: Mapping[str, Any]
    choices: Mapping[str, list[Any]]
    wishes: Wishes
    chips: tuple[str, ...]
    counts: Any
    ways: tuple[str, ...]
    machines_are_bought: bool
    sites: tuple[str, ...]
    tiers: tuple[str, ...]
    offers: pl.DataFrame | None
    objective: str | None
    using: Mapping[str, str]
    doubted: Mapping[str, Distribution]
    draws: int
    seed: int
    said: tuple[Any, Mapping[str, Any]]
    calibration: Calibration | None

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """What is the same for every plan: the model, what was given, and what follows from both."""
        values, _ = checked({**self.model, **self.once})
        return values | {name: value for name, (value, _) in self._filled(values).items()}

    @cached_property
    def filled(self) -> dict[str, tuple[float, str]]:
        """What nobody said and plans need before anything is computed, with its source."""
        values, _ = checked({**self.model, **self.once})
        return self._filled(values)

    def _filled(self, values: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
        found: dict[str, tuple[float, str]] = {}
        if "sequence_length" not in values:
            row = defaults()["sequence_length"]
            found["sequence_length"] = (row.value, row.why)
        if "tokens" not in values:
            tokens = evaluate(values, "compute_optimal_tokens")["compute_optimal_tokens"]
            found["tokens"] = (tokens, "computed: hoffmann2022, 20 tokens per parameter")
        return found

    @cached_property
    def step_tokens(self) -> float:
        """Tokens of an optimizer step that suit the run, where nobody gives a batch."""
        return evaluate(self.fixed, "compute_optimal_step_tokens", assume=True)["compute_optimal_step_tokens"]

    def using_of(self, tier: str) -> dict[str, str]:
        """Return which model stands for a quantity where checkpoints have so many tiers."""
        return {**TIERS[tier], **self.using}

    @cached_property
    def varied(self) -> dict[str, list[Any]]:
        """What is chosen from lists beside chips, precisions and parts of a layout, such as the number of sites."""
        return {name: values for name, values in self.choices.items() if name not in (*PARTS, "precision")}

    def answer(self) -> Plan:
        """Return the plan."""
        import polars as pl

        parts: list[Part] = []
        left_out: list[tuple[str, str, float | None, str]] = []
        precisions = self.choices.get("precision") or [self.fixed.get("precision", "bf16")]
        every = [*itertools.product(self.chips, precisions, self.ways, self.tiers, *self.varied.values())]
        for chip, precision, way, tier, *picked in progress.told(every, len(every), "chips and ways planned"):
            chosen = dict(zip(self.varied, picked, strict=True))
            fixed = {**self.fixed, **chosen, "accelerator": chip, "precision": precision}
            try:
                part = self._planned(fixed, way, tier, left_out)
            except MissingQuantity as error:
                left_out.append((chip, precision, None, str(error)))
            else:
                parts += [(*part, way, tier)] if part else []
        schema = {"accelerator": pl.String, "precision": pl.String, "accelerators": pl.Float64, "reason": pl.String}
        out = pl.DataFrame(left_out, schema, orient="row").unique(maintain_order=True)
        if not parts:
            raise ScenarioError(_none(out))
        return _judged(self, parts, out)

    def _planned(
        self, fixed: dict[str, Any], way: str, tier: str, left_out: list[tuple[str, str, float | None, str]]
    ) -> tuple[pl.DataFrame, dict[str, Any]] | None:
        """Return the plans of a chip at a precision, one row per count and site."""
        import polars as pl

        listed = numbers.usual(fixed) if self.counts is None else numbers.given(self.counts)
        grid = numbers.batches(listed, fixed, 0.0 if "global_batch_size" in fixed else self.step_tokens)
        tried = {name: values for name, values in self.choices.items() if name in PARTS}
        using = self.using_of(tier)
        found = best_layouts(fixed, grid, tried, rivals_of(way, fixed, using), self.calibration)
        chip, precision = fixed["accelerator"], fixed["precision"]
        works = set(found["accelerators"])
        left_out += [
            (chip, precision, n, "no layout divides the model and the batch") for n in listed if n not in works
        ]
        small = found.filter(pl.col("layouts") == 0)["accelerators"]
        left_out += [(chip, precision, n, "no layout fits in memory") for n in small]
        rows = found.filter(pl.col("layouts") > 0)
        if rows.is_empty():
            return None
        if self.sites:
            rows = rows.join(grids_of(self.sites), how="cross", maintain_order="left_right")
        if way == "rent" and self.offers is not None:
            rows = offers_in_hand.placed(rows, self.offers, chip)
            left_out += [
                (chip, precision, n, "no offer says that it has so many")
                for n in rows.filter(pl.col("provider").is_null())["accelerators"]
            ]
            rows = rows.filter(pl.col("provider").is_not_null())
            if rows.is_empty():
                return None
        whole = complete(rows, fixed, way, using)
        if way == "own" and self.machines_are_bought and self.wishes.budget_usd is not None:
            dear = pl.col("capital_usd") > self.wishes.budget_usd
            left_out += [
                (chip, precision, n, "the budget does not buy them to own") for n in whole.filter(dear)["accelerators"]
            ]
            whole = whole.filter(~dear)
        return (whole, fixed) if whole.height else None


def _none(out: pl.DataFrame) -> str:
    reasons = out.group_by("accelerator", "reason", maintain_order=True).len().select("accelerator", "reason").rows()
    said = "; ".join(f"{chip}: {reason}" for chip, reason in reasons)
    return f"no plan works: {said}"


def _judged(question: Question, parts: Sequence[Part], left_out: pl.DataFrame) -> Plan:
    """Return the plan: every row with its interval, what it breaks, and its rank."""
    import polars as pl

    chips = tuple(dict.fromkeys(fixed["accelerator"] for _, fixed, *_ in parts))
    drawn = uncertainty.distributions(question.doubted)
    given = [name for name in drawn if name in question.fixed and name not in question.doubted]
    table = uncertainty.draw(drawn, chips, question.draws, question.seed).drop(given)
    priced = offers_in_hand.PRICE not in question.fixed and question.offers is None
    rows: list[pl.DataFrame] = []
    futures: list[pl.DataFrame] = []
    start = 0
    for found, fixed, way, tier in parts:
        numbered = found.with_columns(plan=pl.int_range(start, start + found.height, dtype=pl.Int64))
        start += found.height
        settled = [name for name in found.columns if name not in RESULTS]
        rivals = rivals_of(way, {**fixed, **dict.fromkeys(settled)}, question.using_of(tier))
        spread = uncertainty.futures(numbered, fixed, table, rivals, doubts_price=priced and way == "rent")
        futures.append(spread)
        words = {name: pl.lit(fixed[name]) for name in ("accelerator", "precision", *question.varied)}
        rows.append(
            numbered.with_columns(**words, acquire=pl.lit(way), tiers=pl.lit(tier)).join(
                uncertainty.intervals(spread), on="plan"
            )
        )
    every = pl.concat(rows, how="diagonal")
    leading = ("plan", *CHOICES, *question.varied, "acquire", "tiers", "site", "provider")
    first = list(dict.fromkeys(name for name in leading if name in every.columns))
    every = every.select(*first, pl.exclude(first))
    return Plan(question, ranked(every, question.wishes, question.objective), pl.concat(futures), left_out)


@dataclass(frozen=True, repr=False)
class Plan:
    """A whole plan of a run, and all it was chosen from."""

    question: Question
    plans: pl.DataFrame
    draws: pl.DataFrame
    left_out: pl.DataFrame

    def __post_init__(self) -> None:
        import polars as pl

        if not isinstance(self.question, Question):
            raise ScenarioError(f"question is {short_repr(self.question)}; a plan is what fk.plan returns")
        chosen = dict.fromkeys(("accelerator", "precision", "acquire", "tiers"), pl.String)
        results = {"plan": pl.Int64, **dict.fromkeys(RESULTS, pl.Float64)}
        for name, columns in (("plans", {**results, **chosen}), ("draws", results), ("left_out", {})):
            rows = getattr(self, name)
            if not isinstance(rows, pl.DataFrame) or not columns.items() <= dict(frame_schema(name, rows)).items():
                raise ScenarioError(f"{name} are not those of a plan; a plan is what fk.plan returns")
        if self.plans.is_empty():
            raise ScenarioError("plans are empty; a plan is what fk.plan returns")

    @property
    def best(self) -> pl.DataFrame:
        """The best plan, one row."""
        return self.plans.head(1)

    @cached_property
    def frontier(self) -> pl.DataFrame:
        """The plans that no other one beats in days, dollars and carbon at once, the fastest first."""
        return nondominated(self.plans, ("wall_days", "run_cost_usd", "training_carbon_kg"))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What is told of the best plan beside its choices."""
        return outputs(self.best["acquire"].item())

    @cached_property
    def scenario(self) -> Scenario:
        """The best plan as a scenario, with what was assumed and the sources of all."""
        return self.scenario_of(self.best)

    def scenario_of(self, row: pl.DataFrame) -> Scenario:
        """Return one of the plans as a scenario."""
        row = self._one_of(row)
        values, rivals = self._values(row)
        chain = ask(values, outputs(row["acquire"].item()), rivals, values, assume=True)
        results = compute(chain.steps, values)
        taken = {name: results[name] for name in chain.assumed}
        kept = {name: value for name, value in values.items() if name in chain.leaves or name == "accelerator"}
        sources = {**self.question.model.sources}
        told = self._assumed(row)
        sources |= dict(zip(told["quantity"], told["source"], strict=True))
        label = f"{self.question.model.label} on {row['accelerators'].item():g} {row['accelerator'].item()}".strip()
        named = {name: rival for name, rival in rivals.items() if name in chain.computed}
        return Scenario.sourced(label, {**kept, **taken, **named}, {n: s for n, s in sources.items() if s})

    def _one_of(self, row: pl.DataFrame) -> pl.DataFrame:
        """Return one of the plans, whatever was said of it."""
        said = frame("row", row)
        if said.height != 1 or said.schema != self.plans.schema:
            raise ScenarioError(f"row has {said.height} rows and {said.width} columns; give one row of plans")
        if said.join(self.plans, on=said.columns, how="semi", nulls_equal=True).is_empty():
            raise ScenarioError("row is none of the plans; give one as it stands there")
        return said

    def _values(self, row: pl.DataFrame) -> tuple[dict[str, Any], dict[str, str]]:
        fixed = self.question.fixed
        picked = {
            name: value
            for name, value in row.row(0, named=True).items()
            if name
            in (*CHOICES, *LOCAL_CORRECTION, *self.question.varied, "carbon_kg_per_kwh", "electricity_usd_per_kwh")
            and value is not None
        }
        if self.question.offers is not None and row["acquire"].item() == "rent":
            picked[offers_in_hand.PRICE] = row[offers_in_hand.PRICE].item()
        values = {**fixed, **picked}
        return values, rivals_of(row["acquire"].item(), values, self.question.using_of(row["tiers"].item()))

    @cached_property
    def assumed(self) -> pl.DataFrame:
        """What nobody said, with its source: as :func:`factorykit.assumed`; what leaves a part out stands last."""
        return self._assumed(self.best)

    def _assumed(self, row: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        values, rivals = self._values(row)
        told = assumed(values, outputs(row["acquire"].item()), using=rivals)
        filled = [
            (name, value, None, quantity(name).unit, *_basis(why))
            for name, (value, why) in self.question.filled.items()
        ]
        if "global_batch_size" in row.columns:
            why = "computed: bi2024, section 3.1, equation 1; rounded to divide over the accelerators"
            filled.append(("global_batch_size", row["global_batch_size"].item(), None, "1", *_basis(why)))
        every = pl.concat([pl.DataFrame(filled, told.schema, orient="row"), told])
        return every.sort(pl.col("basis") == "neutral", maintain_order=True)

    def explain(self, output: str) -> Explanation:
        """Show how a result of the best plan follows, as :func:`factorykit.explain`."""
        return explain(self.scenario, output)

    def compare(self, other: Plan) -> pl.DataFrame:
        """Put the best plan beside that of another question: the inputs in which they differ, then the results."""
        if not isinstance(other, Plan):
            raise ScenarioError(f"other is {type(other).__name__}; give what fk.plan returned")
        shared = [name for name in self.outputs if name in other.outputs]
        return compare({"this": self.scenario, "other": other.scenario}, shared)

    @cached_property
    def binding(self) -> pl.DataFrame:
        """What limits the best plan, and what one more unit of it is worth: see `factorykit.model.planning.binding`."""
        from factorykit.model.planning.binding import binding

        return binding(self)

    @cached_property
    def nearest(self) -> pl.DataFrame:
        """How near plans come to each limit that somebody gave, whatever else they take: one row per limit.

        ``limit``, ``at_least`` (the smallest share of it that any plan takes, above 1 where none keeps it), and the
        number of that plan in ``plan``.
        """
        import polars as pl

        rows = []
        for name, share in overdrawn(self.plans, self.question.wishes).items():
            nearest = self.plans.with_columns(share=share).sort("share", maintain_order=True).row(0, named=True)
            rows.append((name, nearest["share"], nearest["plan"]))
        return pl.DataFrame(rows, {"limit": pl.String, "at_least": pl.Float64, "plan": pl.Int64}, orient="row")

    @cached_property
    def offers(self) -> pl.DataFrame:
        """What the best plan costs at every offer of its chip, in hand or listed: see :func:`factorykit.rent`.

        No listed provider says how many accelerators it has, so none is taken: a plan's rent is a price, not an offer.
        """
        mine = self.question.offers
        chip = self.best["accelerator"].item()
        return rent(self.scenario, None if mine is None else mine.filter(accelerator=chip), assume=True)

    @cached_property
    def alternatives(self) -> pl.DataFrame:
        """The best plan of every chip, precision, site and way, and how sure it is that the best of all is better.

        One row per alternative, in the order of ``plans``: its choices, ``wall_days``, ``run_cost_usd``, ``breaks``,
        ``best_is_sooner`` and ``best_is_cheaper``, the shares of futures in which the best plan is, and ``tie``: what
        cannot be told apart within 90 %.
        """
        import polars as pl

        named = ("accelerator", "precision", *self.question.varied, "acquire", "tiers", "site")
        keys = [name for name in named if name in self.plans.columns]
        rows = self.plans.unique(keys, keep="first", maintain_order=True)[1:]
        best = self.best["plan"].item()
        told = {
            f"best_is_{word}": pl.Series(
                [uncertainty.likely(self.draws, result, best, other) for other in rows["plan"]], dtype=pl.Float64
            )
            for word, result in (("sooner", "wall_days"), ("cheaper", "run_cost_usd"))
        }
        low, high = uncertainty.PROBABLE
        ties = [
            pl.when(pl.col(f"best_is_{word}").is_between(low, high)).then(pl.lit(name))
            for word, name in (("sooner", "days"), ("cheaper", "dollars"))
        ]
        shown = [*keys, "accelerators", "wall_days", "run_cost_usd", "breaks", *told]
        wider = rows.with_columns(**told).select(shown)
        return wider.with_columns(tie=pl.concat_str(ties, separator=", ", ignore_nulls=True))

    @property
    def code(self) -> str:
        """Python that asks the same question again."""
        model, said = self.question.said
        shown = dict(model) if isinstance(model, Mapping) else str(model) if isinstance(model, Path) else model
        given = "".join(f",\n    {name}={_written(value)}" for name, value in said.items())
        frames = "import polars as pl\n\n" if self.question.offers is not None else ""
        return f"{frames}import factorykit as fk\n\np = fk.plan(\n    {shown!r}{given},\n)\n"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        frames = ("best", "frontier", "binding", "nearest", "alternatives", "assumed", "left_out")
        rows = {name: getattr(self, name).to_dicts() for name in frames}
        return {"answer": sentence(self)} | rows | {"scenario": dict(self.scenario), "code": self.code}

    def __repr__(self) -> str:
        return f"<Plan: {sentence(self)}>"

    def __str__(self) -> str:
        return told(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _written(value: Any) -> str:
    if hasattr(value, "to_dict") and type(value).__module__.startswith("polars"):
        return f"pl.DataFrame({value.to_dict(as_series=False)!r})"
    return f"fk.{value!r}" if type(value).__module__.startswith("factorykit.") else repr(value)


def _basis(why: str) -> tuple[str, str, str]:
    basis, _, source = why.partition(": ")
    return basis, "", source
