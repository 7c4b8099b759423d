"""Power from chip to facility, racks and their cooling, and the emissions of a run."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import START, Case, Live, Presets
from factorykit.charts.theme import PALETTE

SEED_NODE = {"accelerator_power_w": 650.0, "node_overhead_power_w": 600.0}
DGX_NODE = {"accelerator_power_w": 700.0, "node_overhead_power_w": 4600.0}


def power(presets: Presets | None = None) -> Live:
    """Show the power at the meter by accelerators, beside two published nodes of eight H100."""
    return Live(
        title="Facility power, by accelerators",
        x="accelerators",
        outputs=("facility_power_w",),
        sliders=("accelerators", "accelerator_power_w", "node_overhead_power_w", "pue", "electricity_usd_per_kwh"),
        curves=(
            Case("As set"),
            Case("5.8 kW a node (blog post)", given=SEED_NODE),
            Case("10.2 kW a node (DGX H100 at its limit)", given=DGX_NODE),
        ),
        readouts=("node_power_w", "it_power_w", "facility_power_w", "annual_energy_kwh", "annual_electricity_cost_usd"),
        domain=(1000.0, 1e6),
        log=("facility_power_w",),
        presets=presets or {},
        key="power",
        source="Inputs in the presets table; DGX H100 user guide; blog post, L315-341",
        description="Facility power grows in proportion to accelerators; the node of the blog post draws little more "
        "than half of a DGX H100 at its limit.",
    )


def emissions(presets: Presets | None = None) -> Live:
    """Show the emissions of a run by the carbon intensity of its grid, with and without embodied carbon."""
    return Live(
        title="Emissions of a run, by carbon intensity of the grid",
        x="carbon_kg_per_kwh",
        outputs=("training_carbon_total_kg",),
        sliders=("carbon_kg_per_kwh", "accelerator_power_w", "pue", "mfu", "embodied_carbon_kg_per_accelerator"),
        curves=(Case("With the machines' share"), Case("Operation alone", given={"training_embodied_carbon_kg": 0.0})),
        readouts=(
            *("training_energy_kwh", "training_carbon_kg", "training_embodied_carbon_kg"),
            *("training_carbon_matched_kg", "training_water_total_l"),
        ),
        domain=(0.0, 0.9),
        presets=presets or START,
        key="carbon",
        source="Inputs in the presets table; embodied carbon after Luccioni et al. 2023",
        description="Emissions rise in proportion to the carbon intensity; making the machines adds a constant.",
    )


def scale(frame: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show the power of sites beside that of a city, a reactor and the largest data centre.

    ``frame`` has one row per site, in order: ``site``, ``kind`` (kind of number), ``facility_power_w``.
    """
    started = encoding.chart(frame)
    rows = alt.Y("site:N", title=None, sort=None, axis=alt.Axis(labelLimit=320, ticks=False, grid=False))
    x = encoding.x("facility_power_w", scale=alt.Scale(type="log", padding=20))
    dots = started.mark_point(filled=True, size=110, opacity=1).encode(
        x=x,
        y=rows,
        color=alt.Color("kind:N", title=None, sort=None, scale=alt.Scale(range=list(PALETTE))),
        shape=alt.Shape("kind:N", title=None, sort=None),
        tooltip=encoding.tooltip(["site", "kind", "facility_power_w"]),
    )
    power = f"replace(format({encoding.datum('facility_power_w')}, '.3~s'), regexp('(.)$'), ' $1') + 'W'"
    late = "scale('x', datum.facility_power_w) > width - 60"
    align, dx = (alt.expr(f"{late} ? {there} : {here}") for there, here in (("'right'", "'left'"), ("-9", "9")))
    words = started.transform_calculate(power=power).mark_text(align=align, dx=dx)
    return finish(
        (dots + words.encode(x=x, y=rows, text="power:N")).properties(height=alt.Step(26)),
        title,
        source=source,
        description=f"{encoding.title('facility_power_w')} of {frame.height} sites and things to compare them with.",
    )


def pue_by_year(frame: pl.DataFrame, *, title: str, source: str) -> alt.Chart:
    """Show how much facilities add to their servers: rows of the table ``pue``, by year and operator."""
    year = pl.col("as_of").fill_null("year not stated")
    dots = (
        encoding.chart(frame.select("operator", "scope", "pue", year=year).sort("year"))
        .mark_point(filled=True, size=110, opacity=0.9)
        .encode(
            x=alt.X("year:N", title=None, axis=alt.Axis(labelAngle=0)),
            y=encoding.y("pue", scale=alt.Scale(zero=False)),
            color=alt.Color("operator:N", title=None, scale=alt.Scale(range=list(PALETTE))),
            shape=alt.Shape("operator:N", title=None),
            tooltip=encoding.tooltip(["operator", "scope", "year", "pue"]),
        )
    )
    return finish(
        dots,
        title,
        source=source,
        description=f"{encoding.title('pue')} of {frame['operator'].n_unique()} operators and surveys, by year.",
    )


def cooling(frame: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show which cooling carries which rack.

    ``frame`` has one row per rack and approach: ``rack``, ``approach``, ``rack_power_w``, ``cooling_capacity_w``,
    ``cooling_fits``.
    """
    lines = alt.Axis(labelAngle=0, ticks=False, domain=False, labelExpr="split(datum.label, ' ')")
    x = alt.X("approach:N", title=None, sort=None, axis=lines)
    y = alt.Y("rack:N", title=None, sort=None, axis=alt.Axis(labelLimit=240, ticks=False, domain=False))
    started = encoding.chart(frame)
    color = alt.condition("datum.cooling_fits > 0", alt.value(PALETTE[2]), alt.value(PALETTE[1]))
    cells = started.mark_rect(opacity=0.45).encode(
        x=x, y=y, color=color, tooltip=encoding.tooltip(["rack", "approach", "rack_power_w", "cooling_capacity_w"])
    )
    words = "datum.cooling_fits > 0 ? 'fits' : 'too hot'"
    text = started.transform_calculate(word=words).mark_text().encode(x=x, y=y, text="word:N")
    return finish(
        (cells + text).properties(height=alt.Step(40)),
        title,
        source=source,
        description=f"{frame.height} pairs of rack and cooling, each marked as fitting or too hot.",
    )


def stated_and_computed(frame: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show whether published energies follow from hours, power and PUE: rows of ``fk.validate_energy``."""
    shown = frame.rename({"computed_kwh": "training_energy_kwh"})
    line = alt.Chart(pl.DataFrame({"x": [1.0, 1e8]})).mark_line(color="gray", strokeDash=[4, 4], clip=True)
    scale = alt.Scale(type="log", domain=[1e-6, 40.0])
    y_title = "Stated energy [GWh]"
    dots = (
        encoding.chart(shown)
        .transform_calculate(stated="datum.stated_kwh / 1e6")
        .mark_point(filled=True, size=110, opacity=0.85)
        .encode(
            x=encoding.x("training_energy_kwh", scale=scale),
            y=alt.Y(
                "stated:Q", title=y_title, scale=scale, axis=alt.Axis(format="~g", labelOverlap="greedy", grid=False)
            ),
            color=alt.Color("evidence:N", title=None, scale=alt.Scale(range=list(PALETTE))),
            shape=alt.Shape("evidence:N", title=None),
            tooltip=[*encoding.tooltip(["name", "verdict"]), alt.Tooltip("error:Q", title="Error", format="+.1%")],
        )
    )
    same = line.transform_calculate(v="datum.x / 1e6").encode(
        x=alt.X("v:Q", scale=scale), y=alt.Y("v:Q", scale=scale, title=y_title)
    )
    return finish(
        same + dots,
        title,
        source=source,
        description="Stated against computed energy of published runs, on the diagonal where they agree.",
    )
