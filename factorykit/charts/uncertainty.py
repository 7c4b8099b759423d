"""Charts of uncertainty, of its causes, and of differences between scenarios."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.theme import INK, PALETTE
from factorykit.core.vocabulary import quantity

UP, DOWN, WHOLE = PALETTE[1], PALETTE[0], INK


def _scaled(frame: pl.DataFrame, output: str, columns: list[str]) -> alt.Chart:
    """Return a chart in which ``columns`` stand in the display unit of ``output``."""
    row = quantity(output)
    return encoding.chart(frame).transform_calculate(
        **{column: encoding.scaled_expression(row, encoding.datum(column)) for column in columns}
    )


def _axis(output: str, channel: str) -> dict[str, Any]:
    row = quantity(output)
    return {"title": row.title, "axis": encoding.axis(row, channel)}


def tornado(frame: pl.DataFrame, output: str, *, title: str, source: str) -> alt.LayerChart:
    """Show which uncertain input moves an output most: rows of ``fk.sensitivity`` for one output, widest bar first."""
    rows = frame.filter(pl.col("output") == output).with_columns(
        pl.col("input").map_elements(lambda name: quantity(name).label, pl.String).alias("label")
    )
    ends = ["output_low", "output_median", "output_high"]
    started = _scaled(rows, output, ends)
    y = alt.Y("label:N", title=None, sort=None, axis=alt.Axis(labelLimit=220, ticks=False, domain=False))
    tips = [
        alt.Tooltip("label:N", title="Input"),
        alt.Tooltip("first_order:Q", title="Share of the variance, alone", format=".2f"),
        alt.Tooltip("total:Q", title="Share of the variance, with others", format=".2f"),
    ]
    scale = alt.Scale(zero=False, padding=12)
    below, above = (
        started.mark_bar(color=color, height={"band": 0.6}).encode(
            x=alt.X(f"{end}:Q", scale=scale, **_axis(output, "x")), x2="output_median", y=y, tooltip=tips
        )
        for end, color in (("output_low", PALETTE[0]), ("output_high", PALETTE[1]))
    )
    middle = started.mark_rule(color=INK).encode(x=alt.X("mean(output_median):Q", **_axis(output, "x")))
    return finish(
        (below + above + middle).properties(height=alt.Step(34)),
        title,
        source=source,
        subtitle="Each input alone at its 5 % (blue) and its 95 % quantile (orange), the others at their medians",
        description=f"{quantity(output).label} with each of {rows.height} inputs low and high, the widest bar first.",
    )


def exceedance(frame: pl.DataFrame, output: str, *, title: str, source: str) -> alt.LayerChart:
    """Show how likely an output is to exceed a value: rows of ``fk.exceedance``."""
    started = encoding.chart(frame)
    y = alt.Y("exceedance:Q", title="Chance to exceed", axis=alt.Axis(format="%"))
    line = started.mark_line(color=PALETTE[0], clip=True).encode(x=encoding.x(output, scale=alt.Scale(zero=False)), y=y)
    dots = started.mark_point(opacity=0).encode(
        x=encoding.x(output),
        y=y,
        tooltip=[*encoding.tooltip([output]), alt.Tooltip("exceedance:Q", title="Chance to exceed", format=".1%")],
    )
    return finish(
        line + dots,
        title,
        source=source,
        description=f"The chance that {quantity(output).label} exceeds a value falls from one to zero.",
    )


def band(frame: pl.DataFrame, output: str, by: str, *, title: str, source: str) -> alt.LayerChart:
    """Show a 90 % band along an axis: rows of ``fk.bands(…, by=…)`` with ``p05``, ``p50`` and ``p95``."""
    started = _scaled(frame.filter(pl.col("quantity") == output), output, ["p05", "p50", "p95"])
    scale = alt.Scale(type="log" if quantity(by).slider_scale == "log" else "linear", nice=False)
    x = encoding.x(by, scale=scale)
    area = started.mark_area(opacity=0.2, color=PALETTE[0]).encode(
        x=x, y=alt.Y("p05:Q", **_axis(output, "y")), y2="p95"
    )
    line = started.mark_line(color=PALETTE[0], point=True).encode(x=x, y=alt.Y("p50:Q", **_axis(output, "y")))
    return finish(
        area + line,
        title,
        source=source,
        subtitle="Line: median; band: nine draws in ten",
        description=f"{quantity(output).label} along {quantity(by).label}: median and 90 % band.",
    )


def waterfall(frame: pl.DataFrame, output: str, *, title: str, source: str) -> alt.LayerChart:
    """Show how one scenario becomes another: rows of ``fk.decompose``, one step per input."""
    whole = pl.DataFrame(
        {
            "label": ["Start", "End"],
            "before": [0.0, 0.0],
            "after": [frame["before"][0], frame["after"][-1]],
            "kind": ["whole", "whole"],
        }
    )
    steps = frame.select(
        pl.col("quantity").map_elements(lambda name: quantity(name).label, pl.String).alias("label"),
        "before",
        "after",
        pl.when(pl.col("effect") < 0).then(pl.lit("less")).otherwise(pl.lit("more")).alias("kind"),
    )
    rows = pl.concat([whole[:1], steps, whole[1:]])
    started = _scaled(rows, output, ["before", "after"])
    color = alt.Color(
        "kind:N", title=None, legend=None, scale=alt.Scale(domain=["less", "more", "whole"], range=[DOWN, UP, WHOLE])
    )
    bars = started.mark_bar(width={"band": 0.7}).encode(
        x=alt.X("label:N", title=None, sort=None, axis=alt.Axis(labelAngle=-30, labelLimit=240)),
        y=alt.Y("before:Q", **_axis(output, "y")),
        y2="after",
        color=color,
        tooltip=[
            alt.Tooltip("label:N", title="Input"),
            alt.Tooltip("before:Q", title="Before", format=",.4~r"),
            alt.Tooltip("after:Q", title="After", format=",.4~r"),
        ],
    )
    return finish(
        bars,
        title,
        source=source,
        description=f"{quantity(output).label} from the first scenario to the second, one bar per input that differs.",
    )
