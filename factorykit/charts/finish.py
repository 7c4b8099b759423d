"""Final properties of every chart: title, source line, width, text alternative, theme."""

from __future__ import annotations

from typing import Any

import altair as alt

from factorykit.charts.theme import config
from factorykit.core.validation import integer, string


def finish(chart: Any, title: str, *, source: str, description: str, subtitle: str = "", height: int = 300) -> Any:
    """Return the chart ready for a reader.

    Parameters
    ----------
    chart
        Any Altair chart.
    title
        The finding of the chart; of a chart with sliders, its subject.
    source
        Source of the numbers; printed below the chart and kept in saved files.
    description
        The chart in a sentence, for those who hear it.
    subtitle
        Note on how to read the chart.
    height
        Height of the plot in pixels; a chart with rows takes its own.
    """
    title, source, subtitle = string("title", title), string("source", source), string("subtitle", subtitle)
    height, description = integer("height", height), string("description", description)
    words: dict[str, Any] = {"text": title} | ({"subtitle": subtitle} if subtitle else {})
    size: dict[str, Any] = {"width": "container"}
    if getattr(chart, "height", alt.Undefined) is alt.Undefined:
        size["height"] = height
    return chart.properties(
        title=alt.TitleParams(**words), description=description, usermeta={"source": source}, **size
    ).configure(**config())
