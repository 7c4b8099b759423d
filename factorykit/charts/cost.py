"""Charts of the time and the cost of a run."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import Case, Live, Presets, first_of
from factorykit.charts.theme import PALETTE


def time_and_cost(presets: Presets | None = None) -> Live:
    """Show how many days and dollars a run takes on how many accelerators.

    ``presets`` are scenarios by label; the chart starts from the first. Goodput is always computed.
    """
    return Live(
        title="Days and dollars of a training run, by accelerators",
        base={name: value for name, value in first_of(presets).items() if name != "goodput"},
        x="accelerators",
        outputs=("wall_days", "rental_cost_usd"),
        sliders=(
            "parameters",
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
        only_where={"goodput": 0.1},
        presets=presets or {},
        key="run",
        source="Inputs, each with its source, in the presets table",
        description="Wall-clock days fall with the number of accelerators, rental cost stays level until failures eat "
        "the time; one line with failures, one without stops.",
    )


def stated_and_recomputed(frame: pl.DataFrame, quantity: str, source: str, title: str) -> alt.LayerChart:
    """Show the difference between published and computed values.

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


def build_or_rent(presets: Presets | None = None) -> Live:
    """Show from which utilization on building is cheaper than renting by the hour."""
    return Live(
        title="Saving by building instead of renting, by utilization",
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
        source="Prices of servers: course chapter, L69; network: arXiv:2505.09343, table 3",
        description="Building saves money above a break-even utilization; falling rental prices move it up.",
    )


def surface(frame: pl.DataFrame, x: str, y: str, quantity: str, *, title: str, source: str, per: str = "") -> alt.Chart:
    """Show where a quantity, divided by ``per`` if given, is above or below zero over two others."""
    row, across, down = (encoding.quantity(name) for name in (quantity, x, y))
    named = row.title.replace(row.label, f"{row.label}{per and f' per {per}'}")
    axes = [alt.Axis(labelAngle=0, labelExpr=encoding.label_expression(each)) for each in (across, down)]
    column, scale = (f"{quantity}_per_{per}", 1.0) if per else (quantity, row.display_scale)
    ends = (frame[quantity].sort() / scale).gather([0, -1]).to_list()
    tip = alt.Tooltip(f"{encoding.shown(column)}:Q", title=named, format=",.4~r")
    cells = (
        encoding.chart(frame.rename({quantity: column}))
        .mark_rect()
        .encode(
            x=alt.X(f"{encoding.shown(x)}:O", title=encoding.title(x), axis=axes[0]),
            y=alt.Y(f"{encoding.shown(y)}:O", title=encoding.title(y), sort="descending", axis=axes[1]),
            color=alt.Color(
                f"{encoding.shown(column)}:Q",
                title=named,
                scale=alt.Scale(scheme="blueorange", domainMid=0, reverse=True),
                legend=alt.Legend(format=".3~s", values=ends, titleLimit=320),
            ),
            tooltip=[*encoding.tooltip([x, y]), tip],
        )
    )
    return finish(
        cells,
        title,
        source=source,
        description=f"{named} over {encoding.title(x)} and {encoding.title(y)}; colours part at zero.",
    )


def offers(frame: pl.DataFrame, *, title: str, source: str) -> alt.Chart:
    """Show the cost of one run at each provider: rows of ``fk.rent`` that take it, cheapest first."""
    shown = frame.drop_nulls("offer_cost_usd")
    bars = (
        encoding.chart(shown)
        .mark_bar(height={"band": 0.7})
        .encode(
            x=encoding.x("offer_cost_usd"),
            y=alt.Y("provider:N", title=None, sort=None, axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color("kind:N", title=None, sort=None, scale=alt.Scale(range=list(PALETTE))),
            tooltip=encoding.tooltip(["provider", "kind", "rental_usd_per_accelerator_h", "offer_cost_usd"]),
        )
        .properties(height=alt.Step(19))
    )
    return finish(
        bars,
        title,
        source=source,
        description=f"{encoding.title('offer_cost_usd')} of one run at {shown.height} offers, cheapest first.",
    )


def price_trend(chips: pl.DataFrame, lines: pl.DataFrame, by: str, *, title: str, source: str) -> alt.LayerChart:
    """Show the price per FLOP/s at release, with fitted lines.

    ``chips`` are rows of ``fk.price_performance``, ``lines`` are the lines of ``fk.trend``; both have the column ``by``
    that distinguishes the series.
    """
    price = "accelerator_usd_per_flop_per_s"
    scale = alt.Scale(type="log")
    years = alt.X("year:Q", title=None, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(format="d", tickCount=8))
    color = alt.Color(f"{by}:N", title=None, sort=None, scale=alt.Scale(range=list(PALETTE)))
    row = encoding.vocabulary()[price]
    ends = {end: encoding.scaled_expression(row, encoding.datum(end)) for end in ("low", "high")}
    dots = (
        encoding.chart(chips)
        .mark_point(filled=True, size=55, opacity=0.75)
        .encode(
            x=years,
            y=encoding.y(price, scale=scale),
            color=color,
            shape=alt.Shape(f"{by}:N", sort=None, legend=None),
            tooltip=encoding.tooltip(["name", "market", "accelerator_usd", "peak_flop_per_s", price]),
        )
    )
    fitted = encoding.chart(lines).transform_calculate(**ends)
    line = fitted.mark_line().encode(x=years, y=encoding.y(price, scale=scale), color=color)
    band = fitted.mark_area(opacity=0.15).encode(
        x=years, y=alt.Y("low:Q", scale=scale, title=row.title), y2="high", color=color
    )
    return finish(
        band + line + dots,
        title,
        source=source,
        subtitle="Each point a chip at release; line and band: constant pace with its 95 % interval",
        description=f"{row.label} of {chips.height} chips by year of release, with a falling line for each series.",
    )


def halving_times(frame: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show how fast a FLOP gets cheaper by different counts.

    ``frame`` has one row per count: ``subject``, ``way``, ``cost_halving_years`` and the ends of its interval, null
    where none is given.
    """
    rows = alt.Y("subject:N", title=None, sort=None, axis=alt.Axis(labelLimit=320, ticks=False, domain=False))
    started = encoding.chart(frame)
    color = alt.Color("way:N", title=None, sort=None, scale=alt.Scale(range=list(PALETTE)))
    scale = alt.Scale(zero=True, nice=True)
    spans = started.mark_rule(strokeWidth=3, opacity=0.45).encode(
        x=alt.X("cost_halving_years_low:Q", scale=scale), x2="cost_halving_years_high", y=rows, color=color
    )
    dots = started.mark_point(filled=True, size=110, opacity=1).encode(
        x=encoding.x("cost_halving_years", scale=scale),
        y=rows,
        color=color,
        shape=alt.Shape("way:N", sort=None, legend=None),
        tooltip=encoding.tooltip(
            ["subject", "cost_halving_years", "cost_halving_years_low", "cost_halving_years_high"]
        ),
    )
    return finish(
        (spans + dots).properties(height=alt.Step(28)),
        title,
        source=source,
        subtitle="Points: halving time; bars: 95 % interval where one is given",
        description=f"Halving time of the price of compute by {frame.height} counts, with intervals.",
    )
