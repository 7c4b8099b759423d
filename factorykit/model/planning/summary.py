"""The plan that `factorykit.plan` returns: its limits, alternatives and assumptions, as tables, text and a link."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import polars as pl

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.extras import Plotted
from factorykit.core.validation import frame
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.evaluate import evaluate, explain
from factorykit.engine.explanation import Explanation
from factorykit.engine.question import Question
from factorykit.model.economics.rent import PRICE, rent
from factorykit.model.performance.layout_features import LOCAL_CORRECTION
from factorykit.model.performance.layouts import PARTS, SHARE, best_layouts
from factorykit.model.planning.candidates import alternative_models, complete, outputs
from factorykit.model.planning.constraints import LARGEST, LIMITS, Limits, Request, goal, limit_ratios, nondominated
from factorykit.model.planning.uncertainty import INTERVAL, chance_less
from factorykit.model.scenario.accelerators import own_name, title_of
from factorykit.model.scenario.compare import compare
from factorykit.model.scenario.scenario import Scenario

BATCH: Final = "global_batch_size"
CHOICES: Final = ("accelerator", "precision", "accelerators", BATCH, *PARTS, SHARE)
OF_SITE: Final = ("carbon_kg_per_kwh", "electricity_usd_per_kwh")
"""Quantities that a country to choose from brings."""
SHOWN: Final = (
    "accelerators",
    "training_sites",
    "inner_steps",
    "precision",
    BATCH,
    "data_parallel",
    *PARTS,
    "checkpoint_interval_s",
    "spare_nodes",
    "wall_days",
    "run_cost_usd",
    "capital_usd",
    "network_capital_usd",
    "training_energy_kwh",
    "training_carbon_kg",
    "goodput",
    "campaign_pace",
    "predicted_mfu",
    "model_flop_per_s_per_accelerator",
    "step_s",
    "failures_per_day",
    "memory_peak_bytes",
    "facility_power_w",
    "rental_usd_per_accelerator_h",
)
NEUTRAL: Final = (
    *("training_sites", "inner_steps", "pipeline_parallel", "context_parallel", "virtual_stages", "expert_parallel"),
)
"""Counts that are not shown where they are one."""
MAX_TIES: Final = 3
LITTLE_MEASURED: Final = ("linear_attention_layers", "index_heads")
"""Properties of models with few measured runs."""
NUMBERS: Final = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MORE: Final = 1.1
"""Factor of memory and bandwidth that measures whether they limit a plan."""
NOTICEABLE: Final = 0.005
"""Share of the time that a tenth more of memory, bandwidth or batch has to save to count as a limit."""
BINDING_SHARE: Final = 0.75
"""Share of a limit that a plan takes where it binds; default counts differ by at most a quarter."""
FULL_SHARE: Final = 0.95
"""The same for the largest model, whose size is found to one percent; power goes by counts."""
UNITS: Final = {"deadline": ("d", SECONDS_PER_DAY), "budget": ("million USD", 1e6), "power": ("MW", 1e6)}
ROUNDING: Final = 1e-12
LIMIT_UNITS: Final = {
    "deadline": "s",
    "budget": "USD",
    "power": "W",
    "supply": "1",
    "memory": "byte",
    "network": "byte/s",
    "batch": "1",
}
CHIP_LIMITS: Final = {"memory": "accelerator_memory_bytes", "network": "scale_out_bytes_per_s"}
LINK_VERSION: Final = 1
MULTI_SITE: Final = (
    "training_sites",
    "inner_steps",
    "outer_fragments",
    "outer_bits",
    "wan_bytes_per_s",
    "site_distance_m",
)
"""Inputs of a run over several data centres."""
LINK_INPUTS: Final = (
    "accelerator",
    "accelerators",
    "precision",
    "tokens",
    "sequence_length",
    BATCH,
    *PARTS,
    "accelerator_mtbf_s",
    "restart_s",
    "checkpoint_interval_s",
    "storage_write_bytes_per_s",
    "spare_nodes",
    "pue",
    "carbon_kg_per_kwh",
    "accelerator_power_w",
    "network_topology",
    *MULTI_SITE,
    "rental_usd_per_accelerator_h",
    "electricity_usd_per_kwh",
)
"""Inputs that a link to the planner page carries; the page computes others, such as the utilization."""


@dataclass(frozen=True, repr=False)
class Plan(Plotted):
    """The best plan of a run, and the candidates it was chosen from."""

    request: Request
    plans: pl.DataFrame
    draws: pl.DataFrame
    excluded: pl.DataFrame

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
        """Results of the best plan."""
        return outputs(self.best["acquire"].item())

    @cached_property
    def scenario(self) -> Scenario:
        """The best plan as a scenario, with its assumptions and all sources."""
        return self.scenario_of(self.best)

    def scenario_of(self, row: pl.DataFrame) -> Scenario:
        """Return one of the plans as a scenario."""
        row = self._validated(row)
        values, models = self._values(row)
        chain = Question(values, models, outputs(row["acquire"].item()), assume=True).resolve()
        resolution = chain.resolution
        taken = {name: chain.known[name] for name in resolution.defaults}
        kept = {name: value for name, value in values.items() if name in resolution.leaves or name == "accelerator"}
        assumptions = self._assumed(row)
        sources = {**self.request.model.sources}
        sources |= dict(zip(assumptions["quantity"], assumptions["source"], strict=True))
        sources |= dict.fromkeys(OF_SITE if self.request.sites else (), "tables country_grids and electricity")
        sources |= {} if self.request.offers is None else {PRICE: "offers"}
        sources |= getattr(self.request.own.get(row["accelerator"].item()), "sources", {})
        sources["accelerator"] = "chosen: the plan"
        label = f"{self.request.model.label} on {row['accelerators'].item():g} {row['accelerator'].item()}".strip()
        named = {name: model for name, model in models.items() if name in resolution.computed}
        return Scenario.sourced(label, {**kept, **taken, **named}, {n: s for n, s in sources.items() if s})

    def _validated(self, row: pl.DataFrame) -> pl.DataFrame:
        row = frame("row", row)
        if row.height != 1 or row.schema != self.plans.schema:
            raise ScenarioError(f"row has {row.height} rows and {row.width} columns; give one row of plans")
        if row.join(self.plans, on=row.columns, how="semi", nulls_equal=True).is_empty():
            raise ScenarioError("row is not one of the plans; give an unchanged row of plans")
        return row

    def _values(self, row: pl.DataFrame) -> tuple[dict[str, Any], dict[str, str]]:
        named = (*CHOICES[1:], *LOCAL_CORRECTION, *self.request.varied, *OF_SITE)
        cells = row.row(0, named=True)
        fixed = self.request.fixed_on(cells["accelerator"])
        values = {**fixed, **{n: cells[n] for n in named if cells.get(n) is not None}}
        if self.request.offers is not None and cells["acquire"] == "rent":
            values[PRICE] = cells[PRICE]
        return values, alternative_models(cells["acquire"], values, self.request.using_of(cells["tiers"]))

    @cached_property
    def assumed(self) -> pl.DataFrame:
        """Assumptions with their sources, as :func:`factorykit.assumed`; those that neglect a part stand last."""
        return self._assumed(self.best)

    def _assumed(self, row: pl.DataFrame) -> pl.DataFrame:
        values, models = self._values(row)
        rows = Question(values, models, outputs(row["acquire"].item()), assume=True).resolve().assumed()
        filled = [
            (name, value, None, quantity(name).unit, *_basis(why))
            for name, (value, why) in self.request.defaults.items()
        ]
        if BATCH in row.columns:
            why = "computed: bi2024, section 3.1, equation 1; rounded to divide over the accelerators"
            filled.append((BATCH, row[BATCH].item(), None, "1", *_basis(why)))
        every = pl.concat([pl.DataFrame(filled, rows.schema, orient="row"), rows])
        return every.sort(pl.col("basis") == "neutral", maintain_order=True)

    def explain(self, output: str) -> Explanation:
        """Show the derivation of a result of the best plan, as :func:`factorykit.explain`."""
        return explain(self.scenario, output)

    def compare(self, other: Plan) -> pl.DataFrame:
        """Compare the best plan with that of another request: inputs that differ, then the results."""
        if not isinstance(other, Plan):
            raise ScenarioError(f"other is {type(other).__name__}; give a result of fk.plan")
        shared = [name for name in self.outputs if name in other.outputs]
        return compare({"this": self.scenario, "other": other.scenario}, shared)

    @cached_property
    def bottlenecks(self) -> pl.DataFrame:
        """The limits of the best plan, and the effect of one more unit of each.

        One row per limit: ``limit`` (deadline, budget, power, supply, memory, network, batch), ``allowed`` and ``used``
        in ``unit`` (``allowed`` is null without a limit), ``chance`` (share of draws in which the best plan keeps it),
        ``binds``, ``one_more`` (the unit: a day, a million USD, a megawatt, an accelerator, a tenth of memory or
        bandwidth, a batch), ``days_saved`` and ``usd_saved`` by one more on the way to the next better plan, zero where
        there is none, and ``next_plan``, its number in ``plans``.
        """
        best = self.best.row(0, named=True)
        rows = [_request_limit(self, best, name) for name in UNITS] + [_supply_limit(self, best)]
        rows += [_chip_limit(self, best, name) for name in CHIP_LIMITS] + [_batch_limit(self, best)]
        schema = {"limit": pl.String, "allowed": pl.Float64, "used": pl.Float64, "binds": pl.Boolean}
        schema |= {"one_more": pl.String, "days_saved": pl.Float64, "usd_saved": pl.Float64, "next_plan": pl.Int64}
        table = pl.DataFrame(rows, schema, orient="row").with_columns(
            unit=pl.col("limit").replace_strict(LIMIT_UNITS, return_dtype=pl.String),
            chance=pl.col("limit").replace_strict(_chances(self), default=None, return_dtype=pl.Float64),
        )
        first = ("limit", "allowed", "used", "unit", "chance")
        return table.select(*first, pl.exclude(first))

    @cached_property
    def nearest(self) -> pl.DataFrame:
        """How near plans come to each given limit, regardless of the others: one row per limit.

        ``limit``, ``at_least`` (the smallest share of it that any plan takes, above 1 where none keeps it), and the
        number of that plan in ``plan``.
        """
        rows = []
        for name, ratio in limit_ratios(self.plans, self.request.limits).items():
            nearest = self.plans.with_columns(ratio=ratio).sort("ratio", maintain_order=True).row(0, named=True)
            rows.append((name, nearest["ratio"], nearest["plan"]))
        return pl.DataFrame(rows, {"limit": pl.String, "at_least": pl.Float64, "plan": pl.Int64}, orient="row")

    @cached_property
    def offers(self) -> pl.DataFrame:
        """Costs of the best plan at every offer of its accelerator, given or listed: see :func:`factorykit.rent`.

        They include the pace of the campaign and spare nodes, as the cost of the plan does. Listed providers do not
        publish how many accelerators they have, so these offers are prices, not capacity.
        """
        given, best = self.request.offers, self.best.row(0, named=True)
        priced = rent(
            self.scenario, None if given is None else given.filter(accelerator=best["accelerator"]), assume=True
        )
        nodes = evaluate(self.scenario, "nodes", assume=True)["nodes"]
        hours = best["campaign_pace"] * (1.0 + best["spare_nodes"] / nodes)
        egress = pl.col("egress_cost_usd").fill_null(0.0)
        return priced.with_columns(offer_cost_usd=(pl.col("offer_cost_usd") - egress) * hours + egress)

    @cached_property
    def alternatives(self) -> pl.DataFrame:
        """The best plan of every accelerator, precision, site and way, and the chance that the best of all is better.

        One row per alternative, in the order of ``plans``: its choices, ``wall_days``, ``run_cost_usd``, ``breaks``,
        ``best_is_sooner`` and ``best_is_cheaper``, the shares of draws in which the best plan is, and ``tie``: the
        results in which the difference is within the 90 % interval.
        """
        named = ("accelerator", "precision", *self.request.varied, "acquire", "tiers", "site")
        keys = [name for name in named if name in self.plans.columns]
        rows = self.plans.unique(keys, keep="first", maintain_order=True)[1:]
        best = self.best["plan"].item()
        chances = {
            f"best_is_{word}": pl.Series(
                [chance_less(self.draws, result, best, other) for other in rows["plan"]], dtype=pl.Float64
            )
            for word, result in (("sooner", "wall_days"), ("cheaper", "run_cost_usd"))
        }
        low, high = INTERVAL
        ties = [
            pl.when(pl.col(f"best_is_{word}").is_between(low, high)).then(pl.lit(name))
            for word, name in (("sooner", "days"), ("cheaper", "dollars"))
        ]
        shown = [*keys, "accelerators", "wall_days", "run_cost_usd", "breaks", *chances]
        wider = rows.with_columns(**chances).select(shown)
        return wider.with_columns(tie=pl.concat_str(ties, separator=", ", ignore_nulls=True))

    @property
    def code(self) -> str:
        """Python code of the request."""
        model, arguments = self.request.arguments
        shown = dict(model) if isinstance(model, Mapping) else str(model) if isinstance(model, Path) else model
        given = "".join(f",\n    {name}={_as_code(value)}" for name, value in arguments.items())
        frames = "import polars as pl\n\n" if self.request.offers is not None else ""
        return f"{frames}import factorykit as fk\n\np = fk.plan(\n    {shown!r}{given},\n)\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan and its tables as plain values, for JSON."""
        frames = ("best", "frontier", "bottlenecks", "nearest", "alternatives", "assumed", "excluded")
        rows = {name: getattr(self, name).to_dicts() for name in frames}
        return {"answer": sentence(self)} | rows | {"scenario": dict(self.scenario), "code": self.code}

    def __repr__(self) -> str:
        return f"<Plan: {sentence(self)}>"

    def __str__(self) -> str:
        rows = lines(self)
        width = max(len(label) for _, label, _, _ in rows)
        values = max(len(value) for _, _, value, _ in rows)
        table = [f"{label:<{width}}  {value:<{values}}  {ends}".rstrip() for _, label, value, ends in rows]
        return "\n".join([*_sentences(self), "", *table])

    def _repr_html_(self) -> str:
        body = "".join(
            f'<tr title="{escape(name)}"><td>{escape(label)}</td><td>{escape(value)}</td><td>{escape(ends)}</td></tr>'
            for name, label, value, ends in lines(self)
        )
        head = "<tr><th>Quantity</th><th>Value</th><th>90 % interval</th></tr>"
        text = escape(" ".join(_sentences(self)))
        return f"<p>{text}</p><table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _as_code(value: Any) -> str:
    if hasattr(value, "to_dict") and type(value).__module__.startswith("polars"):
        return f"pl.DataFrame({value.to_dict(as_series=False)!r})"
    if isinstance(value, list):
        return f"[{', '.join(map(_as_code, value))}]"
    if isinstance(value, Scenario) and "accelerator" in value:
        name, key = own_name(value), value["accelerator"]
        like = "" if name == key else f", like={key!r}"
        given = "".join(f", {name}={number!r}" for name, number in value.items() if name != "accelerator")
        return f"fk.accelerator({name!r}{like}{given})"
    return f"fk.{value!r}" if type(value).__module__.startswith("factorykit.") else repr(value)


def _basis(why: str) -> tuple[str, str, str]:
    basis, _, source = why.partition(": ")
    return basis, "", source


def _chances(plan: Plan) -> dict[str, float | None]:
    """Return the share of draws in which the best plan keeps a limit; power is not drawn."""
    best = plan.best.row(0, named=True)
    drawn = plan.draws.filter(plan=best["plan"]).with_columns(capital_usd=pl.lit(best.get("capital_usd") or 0.0))
    ratios = limit_ratios(drawn, replace(plan.request.limits, facility_power_w=None))
    kept = drawn.select(**{name: (ratio <= 1.0).mean() for name, ratio in ratios.items()})
    return {"power": None} | (kept.row(0, named=True) if ratios else {})


def _request_limit(plan: Plan, best: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """Return the row of a requested limit: the better plan that a little more of it allows."""
    limits, field = plan.request.limits, LIMITS[name]
    used = plan.best.select(limit_ratios(plan.plans, Limits(**{field: 1.0}))[name]).item()
    allowed, (unit, size) = getattr(limits, field), UNITS[name]
    if allowed is None:
        return name, None, used, False, f"1 {unit}", 0.0, 0.0, None
    others = Limits(**{**limits.given(), field: None})  # type: ignore[arg-type]
    kept = [ratio <= 1.0 for ratio in limit_ratios(plan.plans, others).values()]
    ratio = limit_ratios(plan.plans, Limits(**{field: allowed}))[name]
    objective = goal(plan.request.objective)
    now = plan.best.select(objective).item()
    better = plan.plans.filter(*kept, ratio > 1.0, objective < now).sort(ratio)
    if better.is_empty():
        share = BINDING_SHARE if name == "power" else FULL_SHARE
        is_larger = plan.request.arguments[0] == LARGEST and used >= share * allowed
        binds = is_larger or (best["breaks"] is not None and name in best["breaks"])
        return name, allowed, used, binds, f"1 {unit}", 0.0, 0.0, None
    step = better.row(0, named=True)
    more = (better.select(ratio).item(0, 0) * allowed - used) / size
    binds = used >= BINDING_SHARE * allowed
    return name, allowed, used, binds, f"1 {unit}", *_saved_per_unit(best, step, more), step["plan"]


def _supply_limit(plan: Plan, best: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of supply: the effect of more accelerators."""
    keys = ("accelerator", "precision", *plan.request.varied, "acquire", "tiers")
    similar = plan.plans.filter(*(pl.col(name) == best[name] for name in keys))
    most = float(similar["accelerators"].max() or 0.0)  # type: ignore[arg-type]
    more = similar.filter(pl.col("accelerators") > best["accelerators"]).sort("accelerators")
    allowed = most if plan.request.counts is not None else None
    binds = allowed is not None and best["accelerators"] >= most and best["breaks"] is not None
    if more.is_empty():
        return "supply", allowed, best["accelerators"], binds, "1 accelerator", 0.0, 0.0, None
    step = more.row(0, named=True)
    saved = _saved_per_unit(best, step, step["accelerators"] - best["accelerators"])
    return "supply", allowed, best["accelerators"], binds, "1 accelerator", *saved, step["plan"]


def _chip_limit(plan: Plan, best: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """Return the row of memory or network: the best layout of the same count with a tenth more of it."""
    fixed, field = _fixed(plan, best), CHIP_LIMITS[name]
    has = Question(fixed, outputs=(field,), assume=True).resolve().run()[field]
    counted = [column for column in ("accelerators", BATCH) if column in plan.plans.columns]
    saved = _saved(plan, best, {**fixed, field: has * MORE}, plan.best.select(counted))
    used = best["memory_peak_bytes"] if name == "memory" else None
    binds = saved[0] > NOTICEABLE * best["wall_days"]
    return name, has, used, binds, quantity(field).text(has * (MORE - 1.0)), *saved, None


def _batch_limit(plan: Plan, best: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of the batch: the best layout of the same count with twice as many sequences per step."""
    fixed = _fixed(plan, best)
    has = best.get(BATCH) or fixed[BATCH]
    doubled = plan.best.select("accelerators").with_columns(pl.lit(2.0 * has).alias(BATCH))
    saved = _saved(plan, best, {name: value for name, value in fixed.items() if name != BATCH}, doubled)
    binds = saved[0] > NOTICEABLE * math.log(2.0) / math.log(MORE) * best["wall_days"]
    return "batch", has, has, binds, "twice as many sequences", *saved, None


def _fixed(plan: Plan, best: Mapping[str, Any]) -> dict[str, Any]:
    chosen = ("precision", *plan.request.varied)
    return {**plan.request.fixed_on(best["accelerator"]), **{name: best[name] for name in chosen}}


def _saved(plan: Plan, best: Mapping[str, Any], fixed: Mapping[str, Any], counts: pl.DataFrame) -> list[float]:
    """Return days and dollars that the best layout with other inputs saves, zero where no layout is better."""
    request = plan.request
    using = request.using_of(best["tiers"])
    models = alternative_models(best["acquire"], fixed, using)
    measured = request.calibration_on(best["accelerator"])
    rows = best_layouts(fixed, counts, request.layout_choices, models, measured)
    variant = complete(rows.filter(rows["layouts"] > 0), fixed, best["acquire"], using)
    saved = [best[name] - variant[name].item() if variant.height else 0.0 for name in ("wall_days", "run_cost_usd")]
    return [0.0, 0.0] if abs(saved[0]) < ROUNDING * best["wall_days"] else saved


def _saved_per_unit(best: Mapping[str, Any], step: Mapping[str, Any], units: float) -> tuple[float, float]:
    """Return days and dollars saved per unit on the way from the best plan to another one."""
    return (best["wall_days"] - step["wall_days"]) / units, (best["run_cost_usd"] - step["run_cost_usd"]) / units


def lines(plan: Plan) -> list[tuple[str, str, str, str]]:
    """Return the best plan as rows of name, label, value and 90 % interval."""
    row = {**plan.request.given, **plan.best.row(0, named=True)}
    rows = [("accelerator", "Accelerator", _chip(plan, row), "")]
    rows += [(name, name.capitalize(), row[name], "") for name in ("site", "provider") if row.get(name)]
    for name in dict.fromkeys((*plan.request.varied, *SHOWN)):
        value = row.get(name)
        if value is None or (name in NEUTRAL and value == 1.0):
            continue
        if name == "recompute" and (share := row.get(SHARE)):
            value = f"{quantity(SHARE).text(share)} of the layers"
        ends = [_text(name, row[f"{name}_{end}"]) for end in ("low", "high") if f"{name}_{end}" in row]
        rows.append((name, quantity(name).label, _text(name, value), " to ".join(ends)))
    return rows


def sentence(plan: Plan) -> str:
    """Return the best plan in a sentence or two, with the limits it breaks or that bind."""
    row = plan.best.row(0, named=True)
    days, money = _text("wall_days", row["wall_days"]), _text("run_cost_usd", row["run_cost_usd"])
    label = plan.request.model.label or "The run"
    count = _text("accelerators", row["accelerators"])
    if row["accelerators"] < (row.get("available_accelerators") or 0.0):
        count = f"{count} of {_text('accelerators', row['available_accelerators'])}"
    if row["acquire"] == "own":
        money = f"{money} for the run, {_text('capital_usd', row['capital_usd'])} to buy"
    text = f"{label}: {count} {_chip(plan, row)}, {days}, {money}"
    if row["breaks"] is not None:
        return f"No plan keeps every limit. The nearest: {text}; it takes {row['breaks']}."
    limits = plan.bottlenecks.filter(binds=True)["limit"].to_list()
    return f"{text}. {'It is limited by ' + ', '.join(limits) if limits else 'Nothing limits it'}."


def _sentences(plan: Plan) -> list[str]:
    return [text for text in (sentence(plan), *chances(plan), ties(plan), spares(plan), evidence(plan)) if text]


def chances(plan: Plan) -> list[str]:
    """Return the chance of keeping the deadline and the budget, where they are given."""
    kept = plan.bottlenecks.drop_nulls("chance").select("limit", "chance")
    return [f"Chance of keeping the {limit}: {chance * 100:.0f} %." for limit, chance in kept.iter_rows()]


def ties(plan: Plan) -> str:
    """Return the alternatives that keep the same limits and do not differ from the best within the 90 % interval."""
    best = plan.best.row(0, named=True)
    tied = plan.alternatives.filter(pl.col("breaks").eq_missing(pl.lit(best["breaks"])), pl.col("tie") != "")
    listed = [
        f"{_alternative(plan, row, best)}, in {row['tie'].replace(', ', ' and ')}"
        for row in tied.head(MAX_TIES).to_dicts()
    ]
    more = f"; {tied.height - MAX_TIES} more in alternatives" if tied.height > MAX_TIES else ""
    return f"Equal within the 90 % interval: {'; '.join(listed)}{more}." if listed else ""


def spares(plan: Plan) -> str:
    """Return a note where fewer spare nodes are given than keep every place filled, which a plan does not count."""
    given = plan.request.fixed.get("spare_nodes")
    if given is None:
        return ""
    values, models = plan._values(plan.best)
    enough = Question(values, models, ("spare_nodes_enough",), assume=True).resolve().run()["spare_nodes_enough"]
    if given >= enough:
        return ""
    return f"{given:,.0f} of {enough:,.0f} spare nodes: the time in which failed nodes are missing is not counted."


def evidence(plan: Plan) -> str:
    """Return a note on models of a kind with few measured runs."""
    model = plan.request.model
    if not any(model.get(name) for name in LITTLE_MEASURED):
        return ""
    from factorykit.model.performance.run_architectures import models_measured

    known = models_measured(LITTLE_MEASURED)
    counted = f"{NUMBERS[known] if known < len(NUMBERS) else known} {'is' if known < 2 else 'are'}"
    return f"Of models with linear or sparse attention, {counted} measured: the intervals are wider."


def _alternative(plan: Plan, row: dict[str, Any], best: dict[str, Any]) -> str:
    """Return a plan by its accelerator and other differences from the best."""
    differs = [str(row[name]) for name in ("precision", "site") if name in row and row[name] != best[name]]
    tier = f"checkpoints in {row['tiers']} tier{'s' * (row['tiers'] != 'one')}"
    tiers = [tier] if row["tiers"] != best["tiers"] else []
    changed = [name for name in plan.request.varied if row[name] != best[name]]
    chosen = [f"{quantity(name).label} {_text(name, row[name])}" for name in changed]
    return ", ".join([_chip(plan, row), *differs, *tiers, *chosen])


def _chip(plan: Plan, row: dict[str, Any]) -> str:
    return f"{title_of(row['accelerator'], plan.request)}, {({'rent': 'rented', 'own': 'owned'})[row['acquire']]}"


def _text(name: str, value: Any) -> str:
    return value if isinstance(value, str) or name not in vocabulary() else quantity(name).text(value)


def address(inputs: Mapping[str, Any]) -> str | None:
    """Return the link to the planner page for a run, from the top of the site, or None without a model.

    >>> address({"parameters": 70e9, "tokens": 15e12, "accelerators": 2048.0, "mfu": 0.4})
    'plan.html?v=1&model=70B&accelerators=2048&tokens=1.5e13'
    """
    if "parameters" not in inputs:
        return None
    parameters = inputs["parameters"]
    kind = " mixture" if inputs.get("active_parameters", parameters) < parameters else ""
    given = {name: inputs[name] for name in LINK_INPUTS if name in inputs}
    texts = {name: value if isinstance(value, str) else _short(value) for name, value in given.items()}
    return f"plan.html?{urlencode({'v': LINK_VERSION, 'model': f'{parameters / 1e9:.12g}B{kind}', **texts})}"


def _short(value: float) -> str:
    return f"{value:.12g}".replace("e+", "e")
