"""Charts of failure rates, their evidence, and the history of one run."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import START, Case, Live, Presets
from factorykit.charts.theme import INK, PALETTE

DISTRIBUTIONS = (
    Case("One rate for every size"),
    Case("Measured at 98,000", {"cluster_mtbf_s": "cluster_mtbf_superlinear_s"}),
    Case("Measured for small jobs", {"cluster_mtbf_s": "cluster_mtbf_small_job_s"}),
)
FITTED = ("record", "exponential", "weibull", "lognormal")
STATES = {
    "kept": PALETTE[0],
    "lost": PALETTE[1],
    "restart": "#999999",
    "down": "#555555",
    "waiting": "#333333",
    "maintenance": "#c0c0c0",
}


def failures_by_size(presets: Presets | None = None) -> Live:
    """Show how many failures a day a job of some size has, and how likely a quiet hour is.

    ``presets`` are scenarios by label; the first is the one to start from.
    """
    return Live(
        title="Failures a day, by size of the job",
        x="accelerators",
        outputs=("failures_per_day",),
        sliders=("accelerators", "accelerator_mtbf_s", "span_s"),
        curves=DISTRIBUTIONS,
        readouts=("failures_per_day", "cluster_mtbf_s", "survival_probability", "accelerator_failures_per_year"),
        band={"accelerator_mtbf_s": 0.25},
        domain=(256.0, 262144.0),
        log=("failures_per_day",),
        presets=presets or {},
        key="failures",
        source="Kokolis et al. 2025; arXiv 2602.00277; inputs in the presets table",
        description="Failures a day grow in proportion to the accelerators; two published corrections lie three times "
        "higher.",
    )


def day_by_size(frame: pl.DataFrame, source: str, title: str) -> alt.LayerChart:
    """Show between which numbers the failures of one day lie, by the size of the job.

    ``frame`` has one row per size: ``accelerators``, ``failures_per_day``, and ``low`` and ``high`` of a day.
    """
    started = encoding.chart(frame)
    x = encoding.x("accelerators", scale=alt.Scale(type="log", nice=False))
    words = "Failures in one day"
    y = alt.Scale(type="symlog", nice=False)
    axis = alt.Axis(values=[0, 1, 2, 5, 10, 20, 50, 100, 200, 500])
    band = started.mark_area(opacity=0.25, color=PALETTE[0]).encode(
        x=x, y=alt.Y("low:Q", title=words, scale=y, axis=axis), y2="high:Q"
    )
    line = started.mark_line(color=PALETTE[0]).encode(
        x=x,
        y=alt.Y("failures_per_day:Q", title=words, scale=y, axis=axis),
        tooltip=[
            *encoding.tooltip(["accelerators"]),
            alt.Tooltip("failures_per_day:Q", title="Mean", format=".3g"),
            alt.Tooltip("low:Q", title="On a quiet day"),
            alt.Tooltip("high:Q", title="On a bad day"),
        ],
    )
    return finish(
        band + line,
        title,
        source=source,
        subtitle="Line: mean; band: 95 days in 100",
        description="Failures in one day by the number of accelerators: their mean, and the band of 95 days in 100.",
    )


def bring_up() -> Live:
    """Show how the time between failures grows while a new cluster sorts out its weak parts."""
    return Live(
        title="Time between failures of a new cluster, by its age",
        x="span_s",
        outputs=("bring_up_mtbf_s",),
        sliders=("accelerators", "lifetime_shape", "lifetime_scale_s", "span_s"),
        readouts=("bring_up_mtbf_s", "bring_up_failures", "bring_up_survival"),
        band={"lifetime_scale_s": 0.25},
        domain=(3600.0, 2.6e6),
        log=("bring_up_mtbf_s",),
        key="bring-up",
        source="Weibull lifetimes; Barlow and Proschan 1965",
        description="For a shape below 1 the time between failures is short after bring-up and grows with age; for a "
        "shape of 1 it stays the same.",
    )


def run_time(presets: Presets | None = None) -> Live:
    """Show how long a run takes on average and how far single runs spread, by the time a restart takes."""
    return Live(
        title="Expected wall-clock time and its spread, by restart time",
        x="restart_s",
        outputs=("checkpoint_wall_s", "checkpoint_wall_sd_s"),
        sliders=("cluster_mtbf_s", "checkpoint_interval_s", "checkpoint_write_s", "restart_s"),
        readouts=("checkpoint_wall_s", "checkpoint_wall_sd_s", "checkpoint_failures", "lost_work_run_s"),
        band={"cluster_mtbf_s": 0.1},
        domain=(0.0, 3600.0),
        presets=presets or START,
        key="runtime",
        source="Daly 2006, equation 20; Bougeret et al. 2011",
        description="Mean and standard deviation of the wall-clock time both grow with the restart time.",
    )


def rates(frame: pl.DataFrame, source: str, title: str) -> alt.LayerChart:
    """Show which failure rates were measured, with exact limits where a count is known.

    ``frame`` has one row per statement, drawn from above in its order: ``label`` (a second line begins after a colon),
    ``per_1000_node_days``, ``per_1000_low``, ``per_1000_high`` (null without a count), ``node_days`` and ``source``.
    """
    started = encoding.chart(frame)
    two_lines = alt.Axis(labelExpr="split(datum.label, ': ')", labelLimit=260)
    rows = alt.Y("label:N", title=None, sort=frame["label"].to_list(), axis=two_lines)
    scale = alt.Scale(type="log")
    words = "Failures per 1,000 node-days"
    x, lower = (alt.X(f"{name}:Q", title=words, scale=scale) for name in ("per_1000_node_days", "per_1000_low"))
    tips = [
        alt.Tooltip("label:N", title="Who"),
        alt.Tooltip("per_1000_node_days:Q", title=words, format=".3g"),
        alt.Tooltip("node_days:Q", title="Node-days", format=",.0f"),
        alt.Tooltip("source:N", title="Source"),
    ]
    return finish(
        encoding.with_limits(started, x, lower, "per_1000_high:Q", rows, tips).properties(height=alt.Step(34)),
        title,
        source=source,
        description="Published failure rates per 1,000 node-days, with exact 95 % limits of the counted ones.",
    )


def by_day(story: pl.DataFrame, days: int) -> pl.DataFrame:
    """Return the stretches of one run cut at midnight, as :func:`timeline` draws them.

    ``story`` is the result of :func:`factorykit.timeline`; ``days`` is the number of days to show.
    """
    first, last = ((pl.col(name) // 86400).cast(pl.Int64) for name in ("start_s", "end_s"))
    cut = story.with_columns(day=pl.int_ranges(first, last + 1)).explode("day").filter(pl.col("day") < days)
    midnight = pl.col("day") * 86400
    cut = cut.with_columns(
        from_h=(pl.max_horizontal("start_s", midnight) - midnight) / 3600,
        to_h=(pl.min_horizontal("end_s", midnight + 86400) - midnight) / 3600,
    )
    return cut.filter(pl.col("to_h") > pl.col("from_h"))


def spares(frame: pl.DataFrame, source: str, title: str) -> alt.Chart:
    """Show the cost per day of each number of spares, and of having too few.

    ``frame`` is the result of :func:`factorykit.reliability.spares_table`.
    """
    words = {
        "usd_per_day": "both together",
        "standstill_usd_per_day": "cluster that waits",
        "spares_usd_per_day": "spares",
    }
    long = frame.unpivot(list(words), index=["spare_nodes", "enough_probability"], value_name="usd")
    long = long.with_columns(pl.col("variable").replace_strict(words)).filter(pl.col("usd") > 0)
    scale = alt.Scale(type="log", domainMin=100.0)
    axis = alt.Axis(format="~s", values=[10.0**n for n in range(2, 9)])
    chart = (
        encoding.chart(long)
        .mark_line(point={"size": 25}, clip=True)
        .encode(
            x=encoding.x("spare_nodes"),
            y=alt.Y("usd:Q", title="Cost per day [USD/d]", scale=scale, axis=axis),
            color=alt.Color("variable:N", title=None, scale=alt.Scale(domain=list(words.values()), range=PALETTE[:3])),
            tooltip=[
                *encoding.tooltip(["spare_nodes"]),
                alt.Tooltip("variable:N", title="Cost of"),
                alt.Tooltip("usd:Q", title="USD per day", format=",.0f"),
                alt.Tooltip("enough_probability:Q", title="Chance that they are enough", format=".1%"),
            ],
        )
    )
    return finish(
        chart,
        title,
        source=source,
        description="Cost a day of spares, of a cluster that waits for them, and of both, by the number of spares.",
    )


def timeline(frame: pl.DataFrame, source: str, title: str) -> alt.Chart:
    """Show the history of one run.

    ``frame`` has one row per stretch and day: ``state``, ``cause``, and ``day``, its row, with ``from_h`` and ``to_h``,
    hours of that day.
    """
    occurring = set(frame["state"])
    states = [state for state in STATES if state in occurring]
    chart = (
        encoding.chart(frame)
        .mark_bar(height={"band": 0.8})
        .encode(
            x=alt.X("from_h:Q", title="Hour of the day", scale=alt.Scale(domain=[0, 24], nice=False)),
            x2="to_h:Q",
            y=alt.Y("day:O", title="Day"),
            color=alt.Color(
                "state:N", title=None, scale=alt.Scale(domain=states, range=[STATES[state] for state in states])
            ),
            tooltip=encoding.tooltip(["state", "cause"]),
        )
        .properties(height=alt.Step(14))
    )
    return finish(
        chart,
        title,
        source=source,
        description="One row a day: work that is kept, work that is lost to a failure, restarts and standstill.",
    )


def survival(frame: pl.DataFrame, source: str, title: str) -> alt.LayerChart:
    """Show how long lifetimes or repairs lasted, with limits, beside the distributions fitted to them.

    ``frame`` is the result of :func:`factorykit.lifetimes.compare_with_fits`.
    """
    started = encoding.chart(frame)
    x = encoding.x("span_s", scale=alt.Scale(type="log", nice=False))
    words = "Share that lasts longer"
    y = alt.Y("survival:Q", title=words, axis=alt.Axis(format="%"))
    band = (
        started.transform_filter(alt.datum.distribution == "record")
        .mark_area(opacity=0.25, color=INK)
        .encode(x=x, y=alt.Y("survival_low:Q", title=words), y2="survival_high:Q")
    )
    lines = started.mark_line().encode(
        x=x,
        y=y,
        color=alt.Color("distribution:N", title=None, scale=alt.Scale(domain=list(FITTED), range=[INK, *PALETTE[:3]])),
        strokeWidth=alt.condition(alt.datum.distribution == "record", alt.value(2.5), alt.value(1.5)),
        tooltip=[*encoding.tooltip(["distribution", "span_s"]), alt.Tooltip("survival:Q", title=words, format=".1%")],
    )
    return finish(
        band + lines,
        title,
        source=source,
        description="Share of times that last longer than a span: the record with 95 % limits, and fitted curves.",
    )


def spread(frame: pl.DataFrame, quantity: str, source: str, title: str) -> alt.Chart:
    """Show how far single runs lie apart.

    ``frame`` has one row per run with the quantity, and ``label``, shared by runs with the same setting.
    """
    bars = (
        encoding.chart(frame)
        .mark_bar(opacity=0.55)
        .encode(
            x=encoding.x(quantity, bin=alt.Bin(maxbins=70)),
            y=alt.Y("count():Q", title="Runs", stack=None),
            color=alt.Color("label:N", title=None, scale=alt.Scale(range=list(PALETTE))),
        )
    )
    return finish(
        bars,
        title,
        source=source,
        description=f"Distribution of {encoding.title(quantity)} over simulated runs.",
        height=220,
    )
