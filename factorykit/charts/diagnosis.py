"""Charts of fault detection, of training without failed parts, and of published effects of practices."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import Case, Live, Presets, first_of


def corruption_by_tests(presets: Presets | None = None) -> Live:
    """Show the share of the time that is kept under silent corruption, by the interval of tests for it."""
    start = {"sdc_detection_s": "sdc_test_lag_s", "checkpoint_interval_s": 1740.0, "checkpoint_write_s": 60.0}
    return Live(
        title="Time kept under silent corruption, by the interval of tests",
        base=start | {"restart_s": 600.0} | dict(first_of(presets)),
        x="sdc_test_interval_s",
        outputs=("sdc_test_goodput",),
        sliders=("sdc_test_interval_s", "sdc_mtbf_s", "sdc_test_s", "sdc_test_catch_share"),
        curves=(
            Case("Tests with the stated coverage"),
            Case("Tests that catch every tenth", given={"sdc_test_catch_share": 0.1}),
        ),
        readouts=("sdc_test_goodput", "sdc_test_lag_s", "sdc_test_interval_best_s"),
        domain=(600.0, 2.6e6),
        y_domain={"sdc_test_goodput": (0.0, 1.0)},
        presets=presets or {},
        key="corruption",
        source="Rates and shares chosen here",
        description="Goodput under silent corruption by the interval of tests that stop the job.",
    )


def going_on(presets: Presets | None = None) -> Live:
    """Show the share of the time that is kept where replicas go on without one, by the time between failures."""
    start = {"cluster_mtbf_s": 1080.0, "replicas": 12.0, "reconfigure_s": 900.0, "replica_stall_s": 180.0}
    start |= {"correlated_share": 0.0, "checkpoint_interval_s": 300.0, "checkpoint_write_s": 10.0, "downtime_s": 0.0}
    return Live(
        title="Time saved by elastic training, by the time between failures",
        base=start | {"cold_restart_s": 900.0, "restart_s": 900.0} | dict(first_of(presets)),
        x="cluster_mtbf_s",
        outputs=("elastic_goodput",),
        sliders=("replicas", "reconfigure_s", "replica_stall_s", "correlated_share", "cold_restart_s"),
        curves=(
            Case("Replicas that stall"),
            Case("Replicas that go on at once", given={"replica_stall_s": 0.0}),
            Case("Four replicas that stall", given={"replicas": 4.0}),
        ),
        readouts=("elastic_goodput", "checkpoint_goodput"),
        domain=(900.0, 86400.0),
        y_domain={"elastic_goodput": (0.0, 1.0)},
        presets=presets or {},
        key="going-on",
        source="Salpekar et al. 2026",
        description="Goodput over the mean time between failures for many replicas that stall, that go on at once, and "
        "for few that stall.",
    )


def published(frame: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show published shares of time kept beside the ranges that practices and rates of failures allow.

    ``frame`` has one row per figure: ``name``, ``setting``, ``stated`` or ``stated_low``, ``computed_low`` and
    ``computed_high``.
    """
    drawn = frame.with_columns(
        at=pl.coalesce("stated", "stated_low"),
        stated_as=pl.when(pl.col("stated").is_null()).then(pl.lit("at least")).otherwise(pl.lit("stated")),
    )
    y = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=320))
    tooltip = [alt.Tooltip("name:N", title="Figure"), alt.Tooltip("at:Q", title="Stated", format=".1%")]
    tooltip += [alt.Tooltip(f"computed_{end}:Q", title=f"Computed, {end}", format=".1%") for end in ("low", "high")]
    x = alt.X("computed_low:Q", title="Share of the time kept", axis=alt.Axis(format="%"))
    ranges = encoding.chart(drawn).mark_bar(opacity=0.35).encode(y=y, x=x, x2="computed_high:Q", tooltip=tooltip)
    ranges = ranges.encode(color=alt.Color("setting:N", title="Practice"))
    dots = encoding.chart(drawn).mark_point(filled=True, size=70, opacity=1.0)
    dots = dots.encode(
        y=y, x="at:Q", color="setting:N", shape=alt.Shape("stated_as:N", title="Published"), tooltip=tooltip
    )
    return finish(
        ranges + dots,
        title,
        source=source,
        description="Bars from the lowest to the highest computed share of time kept, one per published figure, and a "
        "mark where the source states it.",
        height=24 * drawn.height,
    )
