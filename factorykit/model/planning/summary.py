"""A plan in words and as a table."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.model.planning.layouts import PARTS

if TYPE_CHECKING:
    from factorykit.model.planning.plan import Plan

SHOWN: Final = (
    "accelerators",
    "training_sites",
    "inner_steps",
    "precision",
    "global_batch_size",
    "data_parallel",
    *PARTS,
    "recompute_share",
    "checkpoint_interval_s",
    "spare_nodes",
    "wall_days",
    "run_cost_usd",
    "capital_usd",
    "network_capital_usd",
    "training_energy_kwh",
    "training_carbon_kg",
    "goodput",
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
"""Counts of which one means none."""
MOST_TIES: Final = 3
LITTLE_MEASURED: Final = ("linear_attention_layers", "index_heads")
"""What a model has of which few measured runs tell how long it takes."""
FEW: Final = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def lines(plan: Plan) -> list[tuple[str, str, str, str]]:
    """Return the best plan as rows of name, label, value and 90 % interval."""
    row = {**plan.question.once, **plan.best.row(0, named=True)}
    found = [("accelerator", "Accelerator", _chip(row), "")]
    for name in dict.fromkeys((*plan.question.varied, *SHOWN)):
        value = row.get(name)
        if value is None or (name in NEUTRAL and value == 1.0) or (name == "recompute_share" and value in (0.0, 1.0)):
            continue
        ends = [_text(name, row[f"{name}_{end}"]) for end in ("low", "high") if f"{name}_{end}" in row]
        found.append((name, quantity(name).label, _text(name, value), " to ".join(ends)))
    return found


def sentence(plan: Plan) -> str:
    """Return the best plan in a sentence or two, with what it breaks and what limits it."""
    row = plan.best.row(0, named=True)
    days, money = _text("wall_days", row["wall_days"]), _text("run_cost_usd", row["run_cost_usd"])
    label = plan.question.model.label or "The run"
    said = f"{label}: {_text('accelerators', row['accelerators'])} {_chip(row)}, {days}, {money}"
    if row["breaks"] is not None:
        return f"No plan keeps every limit. The nearest: {said}; it takes {row['breaks']}."
    limits = plan.binding.filter(binds=True)["limit"].to_list()
    return f"{said}. {'It is limited by ' + ', '.join(limits) if limits else 'Nothing limits it'}."


def ties(plan: Plan) -> str:
    """Return which other ways of planning the run keep as many limits and cannot be told apart from the best."""
    import polars as pl

    best = plan.best.row(0, named=True)
    alike = plan.alternatives.filter(pl.col("breaks").eq_missing(pl.lit(best["breaks"])), pl.col("tie") != "")
    varied = plan.question.varied
    ways = [(_way(row, best, varied), row["tie"].replace(", ", " and ")) for row in alike.head(MOST_TIES).to_dicts()]
    said = [f"{way} in {tie}" for way, tie in ways]
    more = f"; {alike.height - MOST_TIES} more in alternatives" if alike.height > MOST_TIES else ""
    return f"Within 90 % a tie with {'; '.join(said)}{more}." if said else ""


def evidence(plan: Plan) -> str:
    """Return how little is measured of a model whose layers keep a state, or pick what they attend to."""
    model = plan.question.model
    if not any(model.get(name) for name in LITTLE_MEASURED):
        return ""
    from factorykit.model.validation.training_runs import models_measured

    known = models_measured(LITTLE_MEASURED)
    counted = f"{FEW[known] if known < len(FEW) else known} {'is' if known < 2 else 'are'}"
    return f"Of models that keep a state, or pick what they attend to, {counted} measured: the intervals are wider."


def _way(row: dict[str, Any], best: dict[str, Any], varied: Iterable[str]) -> str:
    """Return a plan by its chip and by what else differs from the best."""
    differs = [str(row[name]) for name in ("precision", "site") if name in row and row[name] != best[name]]
    tiers = [f"{row['tiers']} tiers of checkpoints"] if row["tiers"] != best["tiers"] else []
    chosen = [f"{quantity(name).label} {_text(name, row[name])}" for name in varied if row[name] != best[name]]
    return ", ".join([_chip(row), *differs, *tiers, *chosen])


def told(plan: Plan) -> str:
    """Return the best plan as text."""
    rows = lines(plan)
    width = max(len(label) for _, label, _, _ in rows)
    values = max(len(value) for _, _, value, _ in rows)
    table = [f"{label:<{width}}  {value:<{values}}  {ends}".rstrip() for _, label, value, ends in rows]
    return "\n".join([sentence(plan), *filter(None, [ties(plan), evidence(plan)]), "", *table])


def as_html(plan: Plan) -> str:
    """Return the best plan as a table."""
    body = "".join(
        f'<tr title="{escape(name)}"><td>{escape(label)}</td><td>{escape(value)}</td><td>{escape(ends)}</td></tr>'
        for name, label, value, ends in lines(plan)
    )
    head = "<tr><th>Quantity</th><th>Value</th><th>90 % interval</th></tr>"
    said = escape(" ".join(filter(None, [sentence(plan), ties(plan), evidence(plan)])))
    return f"<p>{said}</p><table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _chip(row: dict[str, Any]) -> str:
    from factorykit.engine.providers.accelerators import chips

    way = {"rent": "rented", "own": "owned"}[row["acquire"]]
    return f"{chips()[row['accelerator']]['name']}, {way}"


def _text(name: str, value: Any) -> str:
    return value if isinstance(value, str) or name not in vocabulary() else quantity(name).text(value)
