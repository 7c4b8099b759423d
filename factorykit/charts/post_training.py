"""Charts of post-training: time by the split of accelerators, and predictions beside published steps."""

from __future__ import annotations

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.theme import PALETTE

SIDES = {"Rollouts": "rollout_s", "Log-probabilities and updates": "training_s", "Step": "step_s"}


def splits(candidates: pl.DataFrame, *, title: str, source: str) -> alt.LayerChart:
    """Show the times of rollouts, of training and of a step by the accelerators that generate.

    ``candidates`` are those of a plan of :func:`factorykit.post_train`; of each split the fastest is shown.
    """
    best = candidates.sort("step_s").unique("rollout_accelerators", keep="first", maintain_order=True)
    best = best.with_columns(training_s=pl.col("policy_update_s") + pl.col("log_probability_s"))
    long = pl.concat(
        [
            best.select("rollout_accelerators", part=pl.lit(name), time_s=pl.col(column))
            for name, column in SIDES.items()
        ]
    )
    across = alt.X("rollout_accelerators:Q", title="Accelerators that generate")
    up = alt.Y("time_s:Q", title="Time [s]", scale=alt.Scale(zero=True))
    lines = (
        encoding.chart(long)
        .mark_line(point=True)
        .encode(
            x=across,
            y=up,
            color=alt.Color(
                "part:N", title=None, sort=None, scale=alt.Scale(domain=list(SIDES), range=list(PALETTE[:3]))
            ),
            tooltip=[
                alt.Tooltip("rollout_accelerators:Q", title="Accelerators that generate"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("time_s:Q", title="Time [s]", format=",.0f"),
            ],
        )
    )
    band = (
        encoding.chart(best)
        .mark_area(opacity=0.15, color=PALETTE[2])
        .encode(x=across, y=alt.Y("step_low_s:Q", title="Time [s]"), y2="step_high_s:Q")
    )
    return finish(
        band + lines,
        title,
        source=source,
        description="Time of rollouts falls and time of training rises with the accelerators that generate; the step "
        "takes the longer of both. A band is the 90 % interval of the step.",
    )
