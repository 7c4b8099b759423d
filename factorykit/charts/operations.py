"""Charts of a shared cluster in operation and of its size."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import Live, Presets
from factorykit.charts.theme import PALETTE


def utilization_value(presets: Presets | None = None) -> Live:
    """Show the value of a cluster's utilization per year."""
    return Live(
        title="Value of utilization in a year",
        x="utilization",
        outputs=("idle_usd_per_year",),
        sliders=("accelerators", "rental_usd_per_accelerator_h", "utilization", "utilization_before"),
        readouts=("idle_usd_per_year", "utilization_gain_usd_per_year"),
        domain=(0.05, 1.0),
        presets=presets or {},
        key="utilization",
        source="Course chapter, L132-143, for the price",
        description="The cost of idle accelerators falls in a straight line to zero at full utilization.",
    )


def failures_by_size(presets: Presets | None = None) -> Live:
    """Show failures per hour and the cost of an hour, from eight accelerators to a million."""
    return Live(
        title="Failures a day and dollars an hour, by accelerators",
        x="accelerators",
        outputs=("failures_per_day", "cluster_usd_per_h"),
        sliders=("accelerators", "accelerator_mtbf_s", "rental_usd_per_accelerator_h", "pue"),
        readouts=("cluster_mtbf_s", "failures_per_day", "cluster_usd_per_h", "facility_power_w"),
        domain=(8.0, 1e6),
        log=("failures_per_day", "cluster_usd_per_h"),
        presets=presets or {},
        key="scale",
        source="Inputs, each with its source, in the presets table",
        description="Failures a day and the price of an hour both grow in proportion to the accelerators.",
    )


def timeline(frame: pl.DataFrame, *, title: str, source: str) -> alt.Chart:
    """Show how busy a cluster is over time.

    ``frame`` has one row per hour and policy: ``hour``, ``busy_share``, ``policy``.
    """
    lines = (
        alt.Chart(frame)
        .transform_calculate(day="datum.hour / 24")
        .mark_line(clip=True, opacity=0.9)
        .encode(
            x=alt.X("day:Q", title="Day", axis=alt.Axis(tickCount=8)),
            y=alt.Y(
                "busy_share:Q", title="Accelerators busy", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])
            ),
            color=alt.Color("policy:N", title=None, sort=None, scale=alt.Scale(range=list(PALETTE))),
            strokeDash=alt.StrokeDash("policy:N", title=None, sort=None),
        )
    )
    return finish(
        lines,
        title,
        source=source,
        description="Share of accelerators that are busy, hour by hour, one line per policy.",
    )


def bill(frame: pl.DataFrame, *, title: str, source: str) -> alt.Chart:
    """Show the rent of a cluster by use.

    ``frame`` has one row per policy and part, in order: ``policy``, ``part``, ``rental_cost_usd``.
    """
    order = frame["part"].unique(maintain_order=True).to_list()
    place = pl.DataFrame({"part": order, "place": range(len(order))})
    bars = (
        encoding.chart(frame.join(place, on="part", how="left", maintain_order="left"))
        .mark_bar(height={"band": 0.65})
        .encode(
            x=encoding.x("rental_cost_usd", title="Rent [USD]", stack="zero"),
            y=alt.Y("policy:N", title=None, sort=None, axis=alt.Axis(labelLimit=220, ticks=False, domain=False)),
            color=alt.Color("part:N", title=None, sort=order, scale=alt.Scale(domain=order, range=list(PALETTE))),
            order=alt.Order("place:Q"),
            tooltip=encoding.tooltip(["policy", "part", "rental_cost_usd"]),
        )
        .properties(height=alt.Step(38))
    )
    return finish(
        bars,
        title,
        source=source,
        description=f"Rent of a cluster under {frame['policy'].n_unique()} policies, split into {', '.join(order)}.",
    )


def stated_and_computed(frame: pl.DataFrame, quantity: str, *, title: str, source: str) -> alt.Chart:
    """Show a quantity at each size as a document states it and as it follows from formulas.

    ``frame`` has one row per size and way: ``accelerators``, ``way`` and the quantity.
    """
    dots = (
        encoding.chart(frame)
        .mark_point(filled=True, size=110, opacity=1)
        .encode(
            x=encoding.x("accelerators", scale=alt.Scale(type="log", padding=20)),
            y=encoding.y(quantity, scale=alt.Scale(type="log", padding=20)),
            color=alt.Color("way:N", title=None, scale=alt.Scale(range=list(PALETTE[:2]))),
            shape=alt.Shape("way:N", title=None),
            tooltip=encoding.tooltip(["accelerators", "way", quantity]),
        )
    )
    return finish(
        dots,
        title,
        source=source,
        description=f"{encoding.title(quantity)} by accelerators, as stated and as computed.",
    )
