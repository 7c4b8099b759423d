"""How long a run takes and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import Case, Live
from factorykit.charts.theme import PALETTE


def time_and_cost(presets: Mapping[str, Mapping[str, Any]] | None = None) -> Live:
    """Show how many days and dollars a run takes on how many accelerators.

    ``presets`` are scenarios by label; the first is the one to start from. Goodput is computed, whatever they say.
    """
    first = next(iter((presets or {"": {}}).values()))
    return Live(
        title="Days and dollars of a training run, by accelerators",
        base={name: value for name, value in first.items() if name != "goodput"},
        x="accelerators",
        outputs=("wall_days", "rental_cost_usd"),
        sliders=(
            "active_parameters",
            "tokens",
            "accelerators",
            "mfu",
            "rental_usd_per_accelerator_h",
            "accelerator_mtbf_s",
        ),
        curves=(Case("With failures"), Case("Without stops", given={"goodput": 1.0})),
        readouts=("wall_days", "rental_cost_usd", "training_energy_kwh", "expected_failures", "goodput"),
        band={"mfu": 0.1},
        domain=(256.0, 262144.0),
        log=("wall_days",),
        only_where=("goodput", 0.1),
        presets=presets or {},
        key="run",
        source="Inputs, each with its source, in the presets table",
        description="Wall-clock days fall with the number of accelerators, rental cost stays level until failures eat "
        "the time; one line with failures, one without stops.",
    )


def stated_and_recomputed(frame: pl.DataFrame, quantity: str, source: str, title: str) -> alt.LayerChart:
    """Show how far what was published is from what the formulas give.

    ``frame`` has one row per claim and way: ``claim``, ``way`` (``stated`` or ``recomputed``), ``source`` and the
    quantity.
    """
    started = encoding.chart(frame)
    rows = alt.Y("claim:N", title=None, sort=None)
    span = encoding.x(quantity, scale=alt.Scale(type="log", padding=24))
    range_ = started.mark_line(color="gray", opacity=0.5).encode(x=span, y=rows, detail="claim:N")
    dots = started.mark_point(filled=True, size=110, opacity=1).encode(
        x=span,
        y=rows,
        color=alt.Color("way:N", title=None, scale=alt.Scale(range=list(PALETTE[:2]))),
        shape=alt.Shape("way:N", title=None),
        tooltip=encoding.tooltip(["claim", "way", quantity, "source"]),
    )
    return finish(
        (range_ + dots).properties(height=alt.Step(34)),
        title,
        source=source,
        description=f"{encoding.title(quantity)} of each claim, as published and as recomputed from its inputs.",
    )


def build_or_rent(presets: Mapping[str, Mapping[str, Any]] | None = None) -> Live:
    """Show from which utilization on building is cheaper than renting by the hour."""
    return Live(
        title="Saving by building instead of renting, by utilization",
        base=next(iter((presets or {"": {}}).values())),
        x="utilization",
        outputs=("build_saving_usd",),
        sliders=(
            "accelerators",
            "utilization",
            "rental_usd_per_accelerator_h",
            "rental_decline_per_year",
            "horizon_years",
            "server_usd",
            "facility_usd_per_w",
            "discount_rate",
        ),
        curves=(Case("Prices fall as set"), Case("Prices stay", given={"rental_decline_per_year": 0.0})),
        readouts=(
            "build_saving_usd",
            "capital_usd",
            "ownership_usd_per_accelerator_h",
            "break_even_utilization",
            "network_capital_share",
        ),
        domain=(0.05, 1.0),
        presets=presets or {},
        key="build",
        source="Prices of servers: course chapter (document 001), L69; network: arXiv:2505.09343, table 3",
        description="Building saves money above a break-even utilization; falling rental prices move it up.",
    )


def surface(frame: pl.DataFrame, x: str, y: str, quantity: str, *, title: str, source: str) -> alt.Chart:
    """Show where a quantity is above or below zero over two others: rows of ``fk.sweep``."""
    row = encoding.vocabulary()[quantity]
    cells = (
        encoding.chart(frame)
        .mark_rect()
        .encode(
            x=alt.X(f"{encoding.shown(x)}:O", title=encoding.title(x), axis=alt.Axis(labelAngle=0, format="~g")),
            y=alt.Y(f"{encoding.shown(y)}:O", title=encoding.title(y), sort="descending", axis=alt.Axis(format="~g")),
            color=alt.Color(
                f"{encoding.shown(quantity)}:Q",
                title=row.title,
                scale=alt.Scale(scheme="blueorange", domainMid=0, reverse=True),
                legend=alt.Legend(format="~s"),
            ),
            tooltip=encoding.tooltip([x, y, quantity]),
        )
    )
    return finish(
        cells,
        title,
        source=source,
        description=f"{row.label} over {encoding.title(x)} and {encoding.title(y)}; colours part at zero.",
    )
