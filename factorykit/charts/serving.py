"""Charts of serving: throughput against speed, accelerators and cost by load, and prices of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.live import Live, Presets
from factorykit.charts.theme import PALETTE

LOAD = ("concurrent_requests", "input_tokens", "output_tokens", "tensor_parallel")
SAVINGS = ("cached_input_share", "draft_tokens", "draft_acceptance")
SOURCE = "Formulas of serving alone, without measured points near them"
KINDS = {"Input": "input", "Cached input": "cached", "Output": "output"}
BOTH_LOG = alt.Scale(type="log", nice=False, padding=12)


def frontier(plans: pl.DataFrame, measured: pl.DataFrame | None, *, title: str, source: str) -> alt.LayerChart:
    """Show tokens/s per accelerator against tokens/s per user: predicted with 90 % intervals, and measured.

    ``plans`` is the frontier of a plan of :func:`factorykit.serve`; ``measured`` has ``output_tokens_per_s_per_user``,
    ``output_tokens_per_s_per_accelerator``, ``tensor_parallel`` and ``concurrent_requests``, or is missing.
    """
    names = ["output_tokens_per_s_per_user", "output_tokens_per_s_per_accelerator"]
    layout = ["tensor_parallel", "concurrent_requests"]
    across, up = encoding.x(names[0], scale=BOTH_LOG), encoding.y(names[1], scale=BOTH_LOG)
    rate = "tokens_per_s_per_accelerator"
    best = plans.select(
        *layout,
        pl.col("tokens_per_s_per_user").alias(names[0]),
        pl.col(rate).alias(names[1]),
        low=f"{rate}_low",
        high=f"{rate}_high",
    )
    kinds = ["Predicted frontier", "Measured"][: 1 if measured is None else 2]
    started = encoding.chart(best.with_columns(kind=pl.lit(kinds[0])))
    color = alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds, range=list(PALETTE[: len(kinds)])))
    tips = encoding.tooltip([*names, *layout])
    band = (
        encoding.chart(best.with_columns(pl.col("low").alias(names[1])))
        .mark_area(opacity=0.15, color=PALETTE[0])
        .encode(x=across, y=up, y2="high:Q")
    )
    line = started.mark_line(point=True).encode(x=across, y=up, color=color, tooltip=tips)
    dots = [
        encoding.chart(rows.with_columns(kind=pl.lit(kinds[1])))
        .mark_point(filled=True, size=50, opacity=0.7)
        .encode(x=across, y=up, color=color, tooltip=tips)
        for rows in (() if measured is None else (measured,))
    ]
    return finish(
        alt.layer(band, *dots, line),
        title,
        source=source,
        description="Tokens per second of one accelerator fall as each user gets tokens faster; the band is the 90 % "
        "interval of the prediction, dots are measured.",
    )


def by_load(frame: pl.DataFrame, quantity: str, *, title: str, source: str) -> alt.LayerChart:
    """Show a quantity by requests per second, one line per chip or offer, with 90 % intervals where there are any.

    ``frame`` has ``requests_per_s``, ``name``, the quantity, and ``low`` and ``high``.
    """
    across, up = encoding.x("requests_per_s", scale=BOTH_LOG), encoding.y(quantity, scale=BOTH_LOG)
    color = alt.Color("name:N", title=None, sort=None, scale=alt.Scale(range=list(PALETTE)))
    band = (
        encoding.chart(frame.with_columns(pl.col("low").alias(quantity)))
        .mark_area(opacity=0.15)
        .encode(x=across, y=up, y2="high:Q", color=color)
    )
    tips = encoding.tooltip(["name", "requests_per_s", quantity])
    line = encoding.chart(frame).mark_line(point=True).encode(x=across, y=up, color=color, tooltip=tips)
    return finish(
        band + line,
        title,
        source=source,
        description=f"{encoding.title(quantity)} by load, one line for each of {frame['name'].n_unique()}.",
    )


def token_prices(plans: Mapping[str, Mapping[str, Any]], *, title: str, source: str) -> alt.LayerChart:
    """Show dollars per million input, cached and output tokens of plans, with 90 % intervals.

    ``plans`` are rows of the candidates of :func:`factorykit.serve` by name.
    """
    rows = [
        {
            "name": name,
            "kind": kind,
            **{end: row[f"usd_per_million_{key}_tokens{end}"] for end in ("", "_low", "_high")},
        }
        for name, row in plans.items()
        for kind, key in KINDS.items()
    ]
    frame = pl.DataFrame(rows).rename({"": "usd", "_low": "low", "_high": "high"})
    started = alt.Chart(frame)
    axis = {"title": "USD per million tokens", "scale": BOTH_LOG, "axis": alt.Axis(format="~g", tickCount=5)}
    up = alt.Y("name:N", title=None, sort=None)
    order = list(KINDS)
    color = alt.Color("kind:N", title=None, sort=order, scale=alt.Scale(domain=order, range=list(PALETTE[:3])))
    tips = [alt.Tooltip(f"{name}:N", title=name.capitalize()) for name in ("name", "kind")]
    tips += [
        alt.Tooltip(f"{name}:Q", title=word, format=".3~r")
        for name, word in (("usd", "USD per million"), ("low", "From"), ("high", "To"))
    ]
    bars = started.mark_rule(strokeWidth=3, opacity=0.5).encode(
        x=alt.X("low:Q", **axis),
        x2="high:Q",
        y=up,
        color=color,
        yOffset=alt.YOffset("kind:N", sort=order),
    )
    dots = started.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("usd:Q", **axis), y=up, color=color, yOffset=alt.YOffset("kind:N", sort=order), tooltip=tips
    )
    return finish(
        (bars + dots).properties(height=alt.Step(20)),
        title,
        source=source,
        description=f"Dollars per million input, cached and output tokens of {', '.join(plans)}; lines are 90 % "
        "intervals.",
    )


def replica(presets: Presets) -> Live:
    """Show the speed for a user and the throughput of one replica by its requests in flight."""
    return Live(
        title="Tokens per second of a user and of an accelerator, by requests in flight",
        x="concurrent_requests",
        outputs=("output_tokens_per_s_per_user", "output_tokens_per_s_per_accelerator"),
        sliders=(*LOAD, *SAVINGS, "user_think_s"),
        readouts=(
            *("time_to_first_token_s", "time_per_output_token_s", "users_per_accelerator", "requests_in_memory"),
            "output_tokens_per_s",
        ),
        domain=(1.0, 1024.0),
        doubling=("concurrent_requests", "tensor_parallel"),
        presets=presets,
        key="serving",
        source=SOURCE,
        description="More requests in flight give more tokens per second of an accelerator and fewer to each user.",
    )


def cost_of_a_token(presets: Presets) -> Live:
    """Show the cost of a token by the share of its prompt that the prefix cache holds, with and without drafts."""
    return Live(
        title="Cost of a token, by prefix-cache hits",
        x="cached_input_share",
        outputs=("serving_usd_per_token",),
        sliders=(*LOAD, *SAVINGS, "rental_usd_per_accelerator_h"),
        readouts=(
            *("serving_usd_per_token", "serving_usd_per_input_token", "serving_usd_per_cached_token"),
            *("serving_usd_per_output_token", "time_per_output_token_s", "time_to_first_token_s"),
        ),
        domain=(0.0, 0.95),
        doubling=("concurrent_requests", "tensor_parallel"),
        presets=presets,
        key="token",
        source=SOURCE,
        description="The cost of an output token with its prompt falls as more of the prompt is found in the cache.",
    )
