"""Which published claims hold up."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, Final

import altair as alt
import polars as pl

from factorykit.charts import encoding
from factorykit.charts.finish import finish
from factorykit.charts.theme import PALETTE

BLUE, VERMILION, GREEN, PURPLE, OCHRE, SKY, _ = PALETTE
COLOURS = {
    "agrees": GREEN,
    "identity": BLUE,
    "rounding": SKY,
    "superseded": OCHRE,
    "disagrees": VERMILION,
    "unit error": PURPLE,
    "not checkable": "#8a8a8a",
}
"""Verdicts from the best to the one without evidence, each with its colour."""
LETTERS: Final = 46
"""Letters in a line beside a row; longer labels stand in two."""


def verdicts(frame: pl.DataFrame, *, title: str, source: str) -> alt.Chart:
    """Show how many claims of each document have which verdict.

    ``frame`` has one row per document and verdict: ``document``, ``verdict``, ``claims``.
    """
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("claims:Q", title="Claims"),
            y=alt.Y("document:N", title=None, sort=None),
            color=_colour(frame),
            order=alt.Order("color_verdict_sort_index:Q"),
            tooltip=[*encoding.tooltip(["document", "verdict"]), alt.Tooltip("claims:Q", title="Claims")],
        )
    )
    return finish(
        bars.properties(height=alt.Step(34)),
        title,
        source=source,
        description="Number of claims of each document, one bar a document, divided by verdict.",
    )


def ratios(frame: pl.DataFrame, *, title: str, source: str) -> Any:
    """Show how far the claims are off: recomputed over stated, on a logarithmic axis around one.

    ``frame`` has one row per claim: ``label``, ``ratio``, ``verdict``, ``printed``, ``why``; in the order to be shown.
    """
    scale = alt.Scale(type="log", padding=24)
    lines = ["\n".join(wrap(label, LETTERS)) for label in frame["label"]]
    started = alt.Chart(frame.with_columns(label=pl.Series(lines)))
    rows = alt.Axis(labelExpr=r"split(datum.label, '\n')", labelLimit=340)
    dots = started.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("ratio:Q", title="Recomputed over stated", scale=scale, axis=alt.Axis(format="~g", tickCount=6)),
        y=alt.Y("label:N", title=None, sort=None, axis=rows),
        color=_colour(frame),
        tooltip=[
            *encoding.tooltip(["label", "printed", "verdict", "why"]),
            alt.Tooltip("ratio:Q", title="Recomputed over stated", format=".4~g"),
        ],
    )
    agreement = started.mark_rule(color="gray", strokeDash=[4, 3]).encode(x=alt.datum(1.0))
    return finish(
        (agreement + dots).properties(height=alt.Step(32)),
        title,
        source=source,
        description="Recomputed over stated for the claims that are farthest off, a line per claim; one is agreement.",
    )


def _colour(frame: pl.DataFrame) -> alt.Color:
    words = [verdict for verdict in COLOURS if verdict in frame["verdict"]]
    scale = alt.Scale(domain=words, range=[COLOURS[verdict] for verdict in words])
    return alt.Color("verdict:N", title=None, sort=words, scale=scale)
