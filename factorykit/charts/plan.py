"""Plans of a run side by side: days against dollars, and how far more accelerators help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.theme import INK, PALETTE
from factorykit.core.vocabulary import quantity
from factorykit.engine.providers.accelerators import chips

USEFUL: Final = "Solid lines: progress after all losses. Dashed: utilization while the run proceeds"


def frontier(
    plans: pl.DataFrame, *, title: str, source: str, deadline_days: float | None = None, budget_usd: float | None = None
) -> alt.LayerChart:
    """Show cost over days: rows of ``fk.plan(…).plans``, the best first, with its 90 % interval and the limits."""
    named = _named(plans)
    started, best = encoding.chart(named), encoding.chart(named.unique("Chip", keep="first", maintain_order=True))
    log = alt.Scale(type="log", nice=False, padding=16)
    money = alt.Scale(zero=False, padding=8)
    days, dollars = encoding.x("wall_days", scale=log), encoding.y("run_cost_usd", scale=money)
    color = alt.Color("Chip:N", title=None, scale=alt.Scale(range=list(PALETTE)))
    line = started.mark_line(opacity=0.5).encode(x=days, y=dollars, color=color, order="wall_days:Q")
    axis = encoding.axis(quantity("run_cost_usd"), "y")
    ends = alt.Y("run_cost_usd_low:Q", title=encoding.title("run_cost_usd"), axis=axis, scale=money)
    spread = best.mark_rule(strokeWidth=2.5, opacity=0.6).encode(x=days, y=ends, y2="run_cost_usd_high", color=color)
    late = best.mark_rule(strokeWidth=2.5, opacity=0.6).encode(
        x=alt.X("wall_days_low:Q", scale=log), x2="wall_days_high", y=dollars, color=color
    )
    columns = ["Chip", "accelerators", "wall_days", "run_cost_usd", "goodput", "predicted_mfu"]
    dots = started.mark_point(filled=True, size=60, opacity=1).encode(
        x=days, y=dollars, color=color, tooltip=encoding.tooltip(columns)
    )
    limits = _limits("wall_days", "x", deadline_days) + _limits("run_cost_usd", "y", budget_usd)
    return finish(
        alt.layer(line, spread, late, dots, *limits),
        title,
        source=source,
        subtitle="Every dot is a plan; the lines through the best plan of each chip span its 90 % interval",
        description=f"Cost against days of {plans.height} plans, the best of each chip with its 90 % interval.",
    )


def scale(plans: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show how much of the peak ends up as progress, by accelerators: rows of ``fk.plan(…).plans``."""
    across = encoding.x("accelerators", scale=alt.Scale(type="log", padding=8))
    busy, useful = _useful(_named(plans), across, "Chip", ["accelerators", "goodput", "predicted_mfu"])
    return finish(
        useful + busy,
        title,
        source=source,
        subtitle=USEFUL,
        description=f"Utilization with and without stops, by accelerators, of {plans.height} plans.",
    )


def limits(runs: pl.DataFrame, *, by: str, ends: Mapping[str, float | None], title: str, source: str) -> alt.LayerChart:
    """Show the share of the peak that becomes progress as runs of one length grow, and their limits.

    ``runs`` has one row per run: ``training_flop``, results of a plan, and ``by`` that distinguishes the lines;
    ``ends`` are the smallest sizes that exceed a limit, by its label; null where no size does.
    """
    across = encoding.x("training_flop", scale=alt.Scale(type="log", nice=False, padding=12))
    columns = ["accelerators", "predicted_mfu", "goodput", "failures_per_day", "facility_power_w", "run_cost_usd"]
    busy, useful = _useful(runs, across, by, columns)
    named = pl.DataFrame({"end": list(ends), "training_flop": list(ends.values())}).drop_nulls()
    ended = encoding.chart(named)
    rule = ended.mark_rule(color=INK, strokeDash=[2, 3]).encode(x=across)
    words = ended.mark_text(angle=270, align="left", baseline="bottom", dy=-3, color=INK).encode(
        x=across, y=alt.value(290), text="end:N"
    )
    return finish(
        alt.layer(busy, useful, rule, words),
        title,
        source=source,
        subtitle=USEFUL,
        description=f"Utilization with and without stops of {runs.height} runs by their compute, and their limits.",
    )


def _useful(rows: pl.DataFrame, across: alt.X, by: str, columns: list[str]) -> tuple[alt.Chart, alt.Chart]:
    """Return lines of utilization, dashed, and of utilization with interruptions, one for each ``by``."""
    started = encoding.chart(rows.with_columns(useful=pl.col("predicted_mfu") * pl.col("goodput")))
    color = alt.Color(f"{by}:N", title=None, scale=alt.Scale(range=list(PALETTE)))
    up = {"title": "Share of the peak", "axis": alt.Axis(format="%")}
    useful = started.mark_line(point=True).encode(
        x=across, y=alt.Y("useful:Q", **up), color=color, tooltip=encoding.tooltip([by, *columns])
    )
    busy = started.mark_line(strokeDash=[4, 3], opacity=0.7).encode(
        x=across, y=alt.Y("predicted_mfu:Q", **up), color=color
    )
    return busy, useful


def _named(plans: pl.DataFrame) -> pl.DataFrame:
    """Return the plans with ``Chip``, the label of their line."""
    parts = [name for name in ("accelerator", "precision", "acquire", "site") if name in plans.columns]
    columns = [name for name in parts if name == "accelerator" or plans[name].n_unique() > 1]
    chip = pl.col("accelerator").replace({name: str(row["name"]) for name, row in chips().items()})
    return plans.with_columns(chip).with_columns(pl.concat_str(columns, separator=", ").alias("Chip"))


def _limits(name: str, channel: str, value: float | None) -> list[alt.Chart]:
    if value is None:
        return []
    rule = encoding.chart(pl.DataFrame({name: [value]})).mark_rule(color=INK, strokeDash=[2, 3])
    return [rule.encode(**{channel: getattr(encoding, channel)(name)})]
