"""Charts of the compute and the power of a cluster."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import Live, Presets
from factorykit.charts.theme import PALETTE


def bars(frame: pl.DataFrame, quantity: str, *, title: str, source: str) -> alt.LayerChart:
    """Show which cluster has how much of a quantity: one row per ``label``, longest bar first."""
    started = encoding.chart(frame.sort(quantity, descending=True))
    rows = alt.Y("label:N", title=None, sort=None, axis=alt.Axis(ticks=False, domain=False))
    bar = started.mark_bar(cornerRadiusEnd=3, height={"band": 0.62}).encode(
        x=encoding.x(quantity), y=rows, tooltip=encoding.tooltip(["label", quantity])
    )
    words = encoding.text_expression(encoding.vocabulary()[quantity], encoding.datum(quantity))
    text = (
        started.transform_calculate(text=words)
        .mark_text(align="left", dx=5)
        .encode(x=encoding.x(quantity), y=rows, text="text:N")
    )
    return finish(
        (bar + text).properties(height=alt.Step(30)),
        title,
        source=source,
        description=f"{encoding.title(quantity)} of {frame.height} clusters as bars, largest first.",
    )


def statements(frame: pl.DataFrame, quantity: str, *, title: str, source: str) -> alt.Chart:
    """Show whether those who speak about a cluster agree: one dot per statement, one line per cluster.

    ``frame`` has one row per statement: ``cluster``, ``source``, ``as_of``, ``who`` and the quantity.
    """
    dots = (
        encoding.chart(frame)
        .mark_point(filled=True, size=110, opacity=0.85)
        .encode(
            x=encoding.x(quantity, scale=alt.Scale(type="log", padding=20)),
            y=alt.Y(
                "cluster:N", title=None, sort=None, axis=alt.Axis(ticks=False, domain=False, grid=True, labelLimit=260)
            ),
            color=alt.Color("who:N", title=None, scale=alt.Scale(range=list(PALETTE))),
            shape=alt.Shape("who:N", title=None),
            tooltip=encoding.tooltip(["cluster", quantity, "who", "source", "as_of"]),
        )
        .properties(height=alt.Step(34))
    )
    return finish(
        dots,
        title,
        source=source,
        description=f"{encoding.title(quantity)} as {frame.height} statements give it, one line per cluster.",
    )


RECORD = 1.5
"""Growth over the former largest from which a record is named in `history`."""


def history(frame: pl.DataFrame, quantity: str, *, title: str, source: str) -> alt.LayerChart:
    """Show how a quantity grew over the years: one dot per entity and day, and the largest so far as a line with names.

    ``frame`` has ``label``, ``day`` (as text) and the quantity.
    """
    before = pl.col("largest").shift()
    ordered = (
        frame.sort("day", quantity, descending=[False, True])
        .with_columns(largest=pl.col(quantity).cum_max(), when=pl.col("day").str.to_date(strict=False))
        .drop_nulls("when")
        .with_columns(record=pl.when(pl.col("largest") > RECORD * before).then("label"))
    )
    started = encoding.chart(ordered)
    when = alt.X("when:T", title=None, axis=alt.Axis(format="%Y", tickCount="year"))
    scale = alt.Scale(type="log")
    dots = started.mark_point(filled=True, size=40, opacity=0.55, color=PALETTE[0]).encode(
        x=when, y=encoding.y(quantity, scale=scale), tooltip=encoding.tooltip(["label", quantity, "day"])
    )
    factor = encoding.vocabulary()[quantity]
    line = (
        started.transform_calculate(top=encoding.scaled_expression(factor, "datum.largest"))
        .mark_line(interpolate="step-after", color=PALETTE[1])
        .encode(x=when, y=alt.Y("top:Q", scale=scale, title=factor.title))
    )
    names = line.transform_filter("isValid(datum.record)").mark_text(align="right", dx=-6, dy=-6).encode(text="record")
    return finish(
        line + dots + names,
        title,
        source=source,
        description=f"{encoding.title(quantity)} of {ordered.height} statements by day, with the largest so far.",
    )


def rate_and_power(presets: Presets | None = None) -> Live:
    """Show the peak rate and the facility power of a number of accelerators.

    ``presets`` are scenarios by label; the first is the one to start from.
    """
    return Live(
        title="Peak rate and facility power, by accelerators",
        x="accelerators",
        outputs=("cluster_peak_flop_per_s", "facility_power_w"),
        sliders=("accelerators", "peak_flop_per_s", "accelerator_power_w", "node_overhead_power_w", "pue"),
        readouts=("cluster_peak_flop_per_s", "facility_power_w", "annual_energy_kwh", "annual_electricity_cost_usd"),
        domain=(1000.0, 1e6),
        log=("cluster_peak_flop_per_s", "facility_power_w"),
        presets=presets or {},
        key="cluster",
        source="Inputs, each with its source, in the presets table",
        description="Peak rate and facility power both grow in proportion to the number of accelerators.",
    )
