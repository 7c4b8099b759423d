"""What logs say of one's own cluster."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.theme import PALETTE
from factorykit.quantities import quantity as row_of

MOST_ROWS = 20


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
