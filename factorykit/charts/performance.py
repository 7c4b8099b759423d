"""Where the time of a step goes, which layouts are worth considering, and how far predictions are from measurements."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import Case, Live, Presets
from factorykit.charts.theme import PALETTE
from factorykit.core.vocabulary import quantity

SOURCE = "Performance model of factorykit; constants in the performance_constants table"
PARTS: dict[str, tuple[str, ...]] = {
    "Matrix products, vocabulary": ("step_gemm_s", "step_logits_s"),
    "Attention": ("step_attention_s",),
    "Element-wise": ("step_elementwise_s",),
    "Collectives, transfers": ("step_collective_s", "step_transfer_s"),
    "Waiting for other stages": ("pipeline_wait_s",),
    "Gradients, optimizer": ("gradient_exposed_s", "outer_exposed_s", "optimizer_s"),
    "Launches, gathers, lag": ("step_launch_s", "loader_exposed_s", "step_lag_s"),
}
"""Parts of the step time, each with the quantities that it sums."""
ASKED = (*[name for names in PARTS.values() for name in names], "step_s")


DEGREES = (
    "accelerators",
    "tensor_parallel",
    "pipeline_parallel",
    "micro_batch_size",
    "global_batch_size",
    "sequence_length",
)
"""Degrees and counts of a layout; sliders move them by factors of two."""
MEMORY = ("memory_weights_bytes", "memory_activations_bytes", "memory_workspace_bytes", "memory_reserve_bytes")
"""Parts of the peak memory of a rank."""


def parts_of_step(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the seconds of each part of a step, as :func:`step_parts` draws them.

    ``frame`` has one row per layout: the column ``by`` and the quantities ``ASKED``.
    """
    parts = [
        frame.select(by, part=pl.lit(part), seconds=pl.sum_horizontal(names), order=pl.lit(order))
        for order, (part, names) in enumerate(PARTS.items())
    ]
    return pl.concat(parts)


def utilization_and_memory(presets: Presets) -> Live:
    """Show utilization and memory of a model on more accelerators with the same batch.

    ``presets`` are runs by label, each an architecture, an ``accelerator`` and a layout; the first is the one to start
    from.
    """
    return Live(
        title="Utilization and memory of one step, by accelerators",
        x="accelerators",
        outputs=("predicted_mfu", "memory_peak_bytes"),
        sliders=(*DEGREES, "scale_out_bytes_per_s"),
        curves=(
            Case("Nothing recomputed", given={"recompute": "none"}),
            Case("Everything recomputed", given={"recompute": "full"}),
        ),
        readouts=("step_s", "predicted_mfu", "pipeline_bubble", "memory_peak_bytes", "accelerator_memory_bytes"),
        doubling=DEGREES,
        presets=presets,
        key="step",
        source=SOURCE,
        description="Utilization falls with the number of accelerators, as each has fewer micro-batches; memory "
        "of the fullest rank falls as the optimizer is spread; one line each with and without recomputation.",
    )


def step_parts(frame: pl.DataFrame, by: str, title: str) -> alt.Chart:
    """Show where the time of one step goes.

    ``frame`` has one row per layout and part: the column ``by``, ``part`` and ``seconds``.
    """
    chart = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("seconds:Q", title="Time in one step [s]"),
            y=alt.Y(f"{by}:N", title=encoding.title(by), sort=None),
            color=alt.Color("part:N", title=None, sort=list(PARTS)),
            order=alt.Order("order:Q"),
            tooltip=[*encoding.tooltip([by, "part"]), alt.Tooltip("seconds:Q", title="Time [s]", format=".3~r")],
        )
        .properties(height=alt.Step(34))
    )
    return finish(chart, title, source=SOURCE, description=f"Seconds of each part of a step, stacked, by {by}.")


def memory_parts(frame: pl.DataFrame, by: str, title: str) -> alt.LayerChart:
    """Show the memory of the fullest rank by parts, and the memory of the accelerator.

    ``frame`` has one row per layout: the column ``by``, the quantities ``MEMORY`` and ``accelerator_memory_bytes``.
    """
    parts = [
        frame.select(by, part=pl.lit(quantity(name).label), memory_peak_bytes=name, order=pl.lit(order))
        for order, name in enumerate(MEMORY)
    ]
    rows = alt.Y(f"{by}:N", title=encoding.title(by), sort=None)
    bars = (
        encoding.chart(pl.concat(parts))
        .mark_bar()
        .encode(
            x=encoding.x("memory_peak_bytes"),
            y=rows,
            color=alt.Color("part:N", title=None, sort=[quantity(name).label for name in MEMORY]),
            order=alt.Order("order:Q"),
            tooltip=encoding.tooltip([by, "part", "memory_peak_bytes"]),
        )
    )
    limit = (
        encoding.chart(frame.select(by, memory_peak_bytes="accelerator_memory_bytes"))
        .mark_tick(thickness=3, size=30, color="currentColor")
        .encode(x=encoding.x("memory_peak_bytes"), y=rows)
    )
    return finish(
        (bars + limit).properties(height=alt.Step(34)),
        title,
        source=f"{SOURCE}. The mark is the memory of one accelerator",
        description=f"Bytes on the fullest rank by part, stacked, by {by}; a mark at the memory of the chip.",
    )


def time_and_memory(frame: pl.DataFrame, title: str) -> alt.LayerChart:
    """Show the layouts of a search by step time and memory, the ones nothing beats joined by a line.

    ``frame`` is the collected result of :func:`factorykit.search`.
    """
    parts = ["tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel", "micro_batch_size"]
    shown = [*parts, "recompute", "schedule", "zero_stage", "step_s", "memory_peak_bytes", "predicted_mfu"]
    time = encoding.x("step_s", scale=alt.Scale(type="log", nice=False, padding=12))
    memory = encoding.y("memory_peak_bytes", scale=alt.Scale(zero=False))
    all_of_them = (
        encoding.chart(frame)
        .mark_circle(size=28, opacity=0.35, color=PALETTE[0])
        .encode(x=time, y=memory, tooltip=encoding.tooltip(shown))
    )
    front = encoding.chart(frame.filter("pareto").sort("step_s"))
    line = front.mark_line(color=PALETTE[1], interpolate="step-after").encode(x=time, y=memory)
    dots = front.mark_point(filled=True, size=70, color=PALETTE[1], opacity=1).encode(
        x=time, y=memory, tooltip=encoding.tooltip(shown)
    )
    return finish(
        all_of_them + line + dots,
        title,
        source=SOURCE,
        description="Layouts as points, step time across and memory of the most loaded rank up; a line joins those "
        "that no other layout beats in both.",
    )


def predicted_and_measured(frame: pl.DataFrame, title: str) -> alt.LayerChart:
    """Show predicted against measured step times.

    ``frame`` is the result of :func:`factorykit.validate`, without the rows that have no error.
    """
    unit = quantity("step_s").unit
    scale = alt.Scale(type="log", nice=False, padding=12)
    kept = frame.select("id", "family", "measured_s", "step_s", "step_low_s", "step_high_s", "error", "assumed")
    most = kept["family"].value_counts(sort=True).sort("count", "family", descending=[True, False])["family"].head(6)
    shown = [*most, "all others"]
    kept = kept.with_columns(
        among=pl.when(pl.col("family").is_in(most.to_list())).then("family").otherwise(pl.lit(shown[-1]))
    )
    dots = (
        alt.Chart(kept)
        .mark_circle(size=40, opacity=0.6)
        .encode(
            x=alt.X("measured_s:Q", title=f"Measured step time [{unit}]", scale=scale),
            y=alt.Y("step_s:Q", title=f"Predicted step time [{unit}]", scale=scale),
            color=alt.Color("among:N", title="Family", scale=alt.Scale(domain=shown, range=[*PALETTE[:6], "#8a939b"])),
            tooltip=[
                alt.Tooltip("id:N", title="Run"),
                alt.Tooltip("family:N", title="Family"),
                alt.Tooltip("measured_s:Q", title=f"Measured [{unit}]", format=".3~s"),
                alt.Tooltip("step_s:Q", title=f"Predicted [{unit}]", format=".3~s"),
                alt.Tooltip("step_low_s:Q", title=f"At least [{unit}]", format=".3~s"),
                alt.Tooltip("step_high_s:Q", title=f"At most [{unit}]", format=".3~s"),
                alt.Tooltip("error:Q", title="Error", format="+.0%"),
                alt.Tooltip("assumed:N", title="Assumed"),
            ],
        )
    )
    return finish(
        encoding.equality(kept["measured_s"]) + dots,
        title,
        source="Measured: training_runs table. Predicted: constants found without the row's own family",
        description="Predicted over measured step time of each run on logarithmic axes; a dashed line for equality.",
        height=380,
    )


def error_by_family(frame: pl.DataFrame, title: str) -> alt.LayerChart:
    """Show the signed errors of each family, one tick a run.

    ``frame`` is the result of :func:`factorykit.validate`, without the rows that have no error.
    """
    kept = frame.select("id", "family", percent=pl.col("error") * 100.0)
    rows = alt.Y("family:N", title=None, sort=alt.EncodingSortField("percent", op="count", order="descending"))
    span = alt.X("percent:Q", title="Predicted over measured, less one [%]", scale=alt.Scale(clamp=True))
    tips = [alt.Tooltip("id:N", title="Run"), alt.Tooltip("percent:Q", title="Error [%]", format="+.1f")]
    ticks = alt.Chart(kept).mark_tick(opacity=0.55, color=PALETTE[0]).encode(x=span, y=rows, tooltip=tips)
    middle = (
        alt.Chart(kept)
        .mark_point(filled=True, size=60, color=PALETTE[1], opacity=1)
        .encode(x=alt.X("median(percent):Q"), y=rows)
    )
    return finish(
        (ticks + middle).properties(height=alt.Step(20)),
        title,
        source="Measured: training_runs table. Predicted: constants found without the row's own family",
        description="Errors of all runs by family as ticks, the median of each family as a dot.",
    )
