"""What logs say of one's own cluster."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.asked import checked
from factorykit.charts.finish import finish
from factorykit.charts.theme import PALETTE
from factorykit.quantities import quantity as row_of

MOST_ROWS = 20


@checked
def limits(frame: pl.DataFrame, quantity: str, label: str, *, title: str, source: str) -> alt.LayerChart:
    """Show a quantity of each group with its limits, the groups in their order from above.

    ``frame`` has one row per group: ``label``, the quantity and ``<quantity>_low`` and ``<quantity>_high``; the first
    twenty are drawn.
    """
    low, high = f"{quantity}_low", f"{quantity}_high"
    shown = frame.head(MOST_ROWS).select(pl.col(label).fill_null("not told").alias("group"), quantity, low, high)
    row = row_of(quantity)
    ends = {"low": low, "high": high}
    started = encoding.chart(shown).transform_calculate(
        **{name: encoding.scaled_expression(row, encoding.datum(column)) for name, column in ends.items()}
    )
    y = alt.Y("group:N", title=None, sort=shown["group"].to_list(), axis=alt.Axis(labelLimit=220))
    x = encoding.x(quantity, scale=alt.Scale(type="log"))
    whiskers = started.mark_rule(strokeWidth=2, color=PALETTE[0]).encode(
        x=alt.X("low:Q", title=row.title, scale=alt.Scale(type="log")), x2="high:Q", y=y
    )
    tooltip = encoding.tooltip(["group", quantity])
    dots = started.mark_point(filled=True, size=90, opacity=1, color=PALETTE[0]).encode(x=x, y=y, tooltip=tooltip)
    return finish(
        (whiskers + dots).properties(height=alt.Step(30)),
        title,
        source=source,
        subtitle="Point: from the count; whisker: exact 95 % limits",
        description=f"{row.label} by {label}, with exact limits.",
    )


@checked
def hours(frame: pl.DataFrame, *, title: str, source: str) -> alt.Chart:
    """Show what the hours of a cluster went into.

    ``frame`` is what :func:`factorykit.fleet.goodput` returns; parts of no share and of no hours are left out.
    """
    parts = frame.filter(pl.col("share") > 0.0)
    bars = (
        encoding.chart(parts)
        .mark_bar(height={"band": 0.7}, color=PALETTE[0])
        .encode(
            x=alt.X("share:Q", title="Share of the cluster's hours", axis=alt.Axis(format="%")),
            y=alt.Y("part:N", title=None, sort=parts["part"].to_list()),
            tooltip=[
                *encoding.tooltip(["part", "accelerator_hours"]),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
            ],
        )
        .properties(height=alt.Step(28))
    )
    told = ", ".join(f"{part} {share:.1%}" for part, share in parts.select("part", "share").iter_rows())
    return finish(bars, title, source=source, description=f"Shares of the cluster's hours: {told}.")


@checked
def paces(frame: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show how slow nodes are beside their cohort.

    ``frame`` is what :func:`factorykit.fleet.stragglers` returns, as many rows as shall be drawn.
    """
    started = encoding.chart(frame)
    y = alt.Y("node:N", title=None, sort=frame["node"].to_list(), axis=alt.Axis(labelLimit=220))
    words = "Time over the cohort's median"
    scale = alt.Scale(zero=False)
    whiskers = started.mark_rule(strokeWidth=2, color=PALETTE[0]).encode(
        x=alt.X("pace_low:Q", title=words, scale=scale), x2="pace_high:Q", y=y
    )
    tooltip = [*encoding.tooltip(["node"]), alt.Tooltip("pace:Q", title=words, format=".3f")]
    dots = started.mark_point(filled=True, size=90, opacity=1, color=PALETTE[0]).encode(
        x=alt.X("pace:Q", title=words, scale=scale), y=y, tooltip=tooltip
    )
    return finish(
        (whiskers + dots).properties(height=alt.Step(26)),
        title,
        source=source,
        description=f"Median pace of {frame.height} nodes, the slowest {frame['pace'].max():.3f} times the median.",
    )
