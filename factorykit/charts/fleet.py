"""Charts of cluster logs: rates with limits, goodput ledger, stragglers."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.theme import PALETTE
from factorykit.core.vocabulary import quantity as row_of

MAX_GROUPS = 20


def limits(frame: pl.DataFrame, quantity: str, label: str, *, title: str, source: str) -> alt.LayerChart:
    """Show a quantity of each group with its confidence limits, in the order of the rows.

    ``frame`` has one row per group: ``label``, the quantity, ``<quantity>_low`` and ``<quantity>_high``; the first
    twenty are shown.
    """
    low, high = f"{quantity}_low", f"{quantity}_high"
    shown = frame.head(MAX_GROUPS).select(pl.col(label).fill_null("unknown").alias("group"), quantity, low, high)
    row = row_of(quantity)
    ends = {"low": low, "high": high}
    base = encoding.chart(shown).transform_calculate(
        **{name: encoding.scaled_expression(row, encoding.datum(column)) for name, column in ends.items()}
    )
    y = alt.Y("group:N", title=None, sort=shown["group"].to_list(), axis=alt.Axis(labelLimit=220))
    x = encoding.x(quantity, scale=alt.Scale(type="log"))
    lower = alt.X("low:Q", title=row.title, scale=alt.Scale(type="log"))
    drawn = encoding.with_limits(base, x, lower, "high:Q", y, encoding.tooltip(["group", quantity]))
    return finish(
        drawn.properties(height=alt.Step(30)),
        title,
        source=source,
        subtitle="Point: estimate; whisker: exact 95 % limits",
        description=f"{row.label} by {label}, with exact limits.",
    )


def hours(frame: pl.DataFrame, *, title: str, source: str) -> alt.Chart:
    """Show the goodput ledger of a cluster.

    ``frame`` is the result of :func:`factorykit.fleet.goodput`; parts without a share are omitted.
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
    shares = ", ".join(f"{part} {share:.1%}" for part, share in parts.select("part", "share").iter_rows())
    return finish(bars, title, source=source, description=f"Shares of the cluster's hours: {shares}.")


def slowdowns(frame: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show the slowdown of nodes relative to their cohort.

    ``frame`` has the rows of :func:`factorykit.fleet.stragglers` to show.
    """
    base = encoding.chart(frame)
    y = alt.Y("node:N", title=None, sort=frame["node"].to_list(), axis=alt.Axis(labelLimit=220))
    axis = "Step time relative to the median of the cohort"
    scale = alt.Scale(zero=False)
    x, lower = (alt.X(f"{name}:Q", title=axis, scale=scale) for name in ("slowdown", "slowdown_low"))
    tips = [*encoding.tooltip(["node"]), alt.Tooltip("slowdown:Q", title=axis, format=".3f")]
    return finish(
        encoding.with_limits(base, x, lower, "slowdown_high:Q", y, tips).properties(height=alt.Step(26)),
        title,
        source=source,
        description=f"Slowdown of {frame.height} nodes, at most {frame['slowdown'].max():.3f} times the median.",
    )
