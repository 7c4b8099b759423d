"""What limits the best plan, and what one more unit of each limit would be worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.vocabulary import quantity
from factorykit.engine.evaluate import evaluate
from factorykit.model.planning.constraints import Wishes
from factorykit.model.planning.frontier import overdrawn, value
from factorykit.model.planning.layouts import PARTS, best_layouts
from factorykit.model.planning.whole import complete, rivals_of

if TYPE_CHECKING:
    import polars as pl

    from factorykit.model.planning.plan import Plan

MORE: Final = 1.1
"""Memory and bandwidth are asked for a tenth more: a byte alone changes no layout."""
FELT: Final = 0.005
"""Share of the time from which on a tenth more of memory or bandwidth is said to bind, and as much of the batch."""
UNITS: Final = {"deadline": ("d", SECONDS_PER_DAY), "budget": ("million USD", 1e6), "power": ("MW", 1e6)}
ROUNDING: Final = 1e-12
MEASURED: Final = {
    "deadline": "s",
    "budget": "USD",
    "power": "W",
    "supply": "1",
    "memory": "byte",
    "network": "byte/s",
    "batch": "1",
}
BATCH: Final = "global_batch_size"
OF_THE_CHIP: Final = {"memory": "accelerator_memory_bytes", "network": "scale_out_bytes_per_s"}


def binding(plan: Plan) -> pl.DataFrame:
    """Return what limits the best plan.

    Returns
    -------
    DataFrame
        One row per limit: ``limit`` (deadline, budget, power, supply, memory, network, batch), ``allowed`` and ``used``
        in ``unit`` (null where nobody gave a limit), ``chance`` (share of futures in which the best plan keeps it, null
        where nothing in it is drawn), ``binds``, ``one_more`` (the unit: a day, a million USD, a megawatt, an
        accelerator, a tenth of memory or bandwidth, a batch), and what one more is worth: ``days_saved``,
        ``usd_saved``, on the way to the next better plan, zero where none is; ``next_plan``, its number in ``plans``.
    """
    import polars as pl

    best = plan.best.row(0, named=True)
    rows = [_of_a_wish(plan, best, name) for name in UNITS] + [_of_supply(plan, best)]
    rows += [_of_the_chip(plan, best, name) for name in OF_THE_CHIP] + [_of_the_batch(plan, best)]
    schema = {"limit": pl.String, "allowed": pl.Float64, "used": pl.Float64, "binds": pl.Boolean}
    schema |= {"one_more": pl.String, "days_saved": pl.Float64, "usd_saved": pl.Float64, "next_plan": pl.Int64}
    frame = pl.DataFrame(rows, schema, orient="row").with_columns(
        unit=pl.col("limit").replace_strict(MEASURED, return_dtype=pl.String),
        chance=pl.col("limit").replace_strict(_chances(plan), default=None, return_dtype=pl.Float64),
    )
    return frame.select(
        "limit", "allowed", "used", "unit", "chance", pl.exclude("limit", "allowed", "used", "unit", "chance")
    )


def _chances(plan: Plan) -> dict[str, float]:
    """Return the share of futures in which the best plan keeps a wish."""
    import polars as pl

    wishes, drawn = plan.question.wishes, plan.draws.filter(plan=plan.best["plan"].item())
    kept = {
        "deadline": (pl.col("wall_days") * SECONDS_PER_DAY, wishes.deadline_s),
        "budget": (pl.col("run_cost_usd"), wishes.budget_usd),
    }
    asked = {name: (result <= most).mean() for name, (result, most) in kept.items() if most is not None}
    return dict.fromkeys(kept) | (drawn.select(**asked).row(0, named=True) if asked else {})  # type: ignore[return-value]


def _of_a_wish(plan: Plan, best: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """Return a wish's row: the better plan that a little more of it would allow."""
    wishes = plan.question.wishes
    used = {
        "deadline": best["wall_days"] * SECONDS_PER_DAY,
        "budget": max(best["run_cost_usd"], best.get("capital_usd") or 0.0),
        "power": best["facility_power_w"],
    }[name]
    field = {"deadline": "deadline_s", "budget": "budget_usd", "power": "facility_power_w"}[name]
    allowed, (unit, size) = getattr(wishes, field), UNITS[name]
    if allowed is None:
        return name, None, used, False, f"1 {unit}", 0.0, 0.0, None
    others = Wishes(**{**wishes.held(), field: None})  # type: ignore[arg-type]
    kept = [share <= 1.0 for share in overdrawn(plan.plans, others).values()]
    mine = overdrawn(plan.plans, Wishes(**{field: allowed}))[name]
    goal = value(wishes, plan.question.objective)
    now = plan.best.select(goal).item()
    better = plan.plans.filter(*kept, mine > 1.0, goal < now).sort(mine)
    if better.is_empty():
        return name, allowed, used, best["breaks"] is not None and name in best["breaks"], f"1 {unit}", 0.0, 0.0, None
    step = better.row(0, named=True)
    taken = (better.select(mine).item(0, 0) * allowed - used) / size
    return name, allowed, used, True, f"1 {unit}", *_per(best, step, taken), step["plan"]


def _of_supply(plan: Plan, best: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of supply: whether more accelerators would help; nobody says how many there are."""
    import polars as pl

    alike = ("accelerator", "precision", *plan.question.varied, "acquire", "tiers")
    same = [pl.col(name) == best[name] for name in alike]
    kin = plan.plans.filter(*same)
    most = float(kin["accelerators"].max() or 0.0)  # type: ignore[arg-type]
    more = kin.filter(pl.col("accelerators") > best["accelerators"]).sort("accelerators")
    allowed = most if plan.question.counts is not None else None
    binds = allowed is not None and best["accelerators"] >= most and best["breaks"] is not None
    if more.is_empty():
        return "supply", allowed, best["accelerators"], binds, "1 accelerator", 0.0, 0.0, None
    step = more.row(0, named=True)
    taken = step["accelerators"] - best["accelerators"]
    return "supply", allowed, best["accelerators"], binds, "1 accelerator", *_per(best, step, taken), step["plan"]


def _of_the_chip(plan: Plan, best: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """Return the row of memory or network: the same count with a tenth more of it, laid out anew."""
    fixed, field = _fixed(plan, best), OF_THE_CHIP[name]
    has = evaluate(fixed, field, assume=True)[field]
    counted = [each for each in ("accelerators", BATCH) if each in plan.plans.columns]
    saved = _saved(plan, best, {**fixed, field: has * MORE}, plan.best.select(counted))
    used = best["memory_peak_bytes"] if name == "memory" else None
    binds = saved[0] > FELT * best["wall_days"]
    return name, has, used, binds, quantity(field).text(has * (MORE - 1.0)), *saved, None


def _of_the_batch(plan: Plan, best: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of the batch: the same machines with twice as many sequences in a step, laid out anew."""
    import polars as pl

    fixed = _fixed(plan, best)
    has = best.get(BATCH) or fixed[BATCH]
    doubled = plan.best.select("accelerators").with_columns(pl.lit(2.0 * has).alias(BATCH))
    saved = _saved(plan, best, {name: value for name, value in fixed.items() if name != BATCH}, doubled)
    binds = saved[0] > FELT * math.log(2.0) / math.log(MORE) * best["wall_days"]
    return "batch", has, has, binds, "as many sequences again", *saved, None


def _fixed(plan: Plan, best: Mapping[str, Any]) -> dict[str, Any]:
    chosen = ("accelerator", "precision", *plan.question.varied)
    return {**plan.question.fixed, **{name: best[name] for name in chosen}}


def _saved(plan: Plan, best: Mapping[str, Any], more: Mapping[str, Any], counts: pl.DataFrame) -> list[float]:
    """Return days and dollars that the best layout under other values saves, none where no layout is better."""
    question = plan.question
    tried = {each: values for each, values in question.choices.items() if each in PARTS}
    using = question.using_of(best["tiers"])
    rows = best_layouts(more, counts, tried, rivals_of(best["acquire"], more, using), question.calibration)
    found = complete(rows.filter(rows["layouts"] > 0), more, best["acquire"], using)
    saved = [best[each] - found[each].item() if found.height else 0.0 for each in ("wall_days", "run_cost_usd")]
    return [0.0, 0.0] if abs(saved[0]) < ROUNDING * best["wall_days"] else saved


def _per(best: Mapping[str, Any], step: Mapping[str, Any], taken: float) -> tuple[float, float]:
    """Return days and dollars saved by each unit on the way from the best plan to a next one."""
    return (best["wall_days"] - step["wall_days"]) / taken, (best["run_cost_usd"] - step["run_cost_usd"]) / taken
