"""Charts of the series by month."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.theme import PALETTE
from factorykit.core.vocabulary import quantity as vocabulary_of

PLANNED = [4, 3]
"""Dashes of planned values."""


def by_month(frame: pl.DataFrame, *, title: str, source: str, log: bool = False) -> alt.LayerChart:
    """Show one quantity month by month, a line for each entity; planned values are dashed.

    ``frame`` are rows of the table `months` of one quantity.
    """
    (name,) = frame["quantity"].unique().to_list()
    row = vocabulary_of(name)
    dated = frame.with_columns(
        pl.col("month").str.to_date("%Y-%m").alias("when"),
        pl.col("status").fill_null("existing"),
        pl.col("value").alias(name),
    )
    ahead = dated.filter(status="planned")
    joined = dated.filter(status="existing").sort("when").group_by("of", maintain_order=True).last()
    parts = [dated.filter(status="existing")]
    if ahead.height:
        parts.append(pl.concat([joined.select(dated.columns), ahead]))
    color = alt.Color("of:N", title=None, sort=None, scale=alt.Scale(range=list(PALETTE)))
    scale = alt.Scale(type="log") if log else alt.Scale(zero=True)
    layers = [
        encoding.chart(part.select("of", "when", "month", name))
        .mark_line(interpolate="step-after", strokeDash=PLANNED if dashed else [1, 0])
        .encode(
            x=alt.X("when:T", title=None, axis=alt.Axis(format="%Y", tickCount="year")),
            y=encoding.y(name, scale=scale),
            color=color if dated["of"].n_unique() > 1 else alt.value(PALETTE[0]),
            tooltip=encoding.tooltip(["of", "month", name]),
        )
        for part, dashed in zip(parts, (False, True), strict=False)
    ]
    ends = " and ".join(str(end) for end in (frame["month"].min(), frame["month"].max()))
    return finish(
        alt.layer(*layers),
        title,
        source=source,
        subtitle="Dashed: planned" if ahead.height else "",
        description=f"{row.label} by month between {ends}, {dated['of'].n_unique()} lines.",
    )
