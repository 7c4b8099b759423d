"""Colours and type of every chart: one theme that reads on light and on dark pages.

Lines of text, axes and rules take the colour of the text around the chart (``currentColor``), so that a page that
turns dark takes its charts along without drawing them again. The palette is Okabe and Ito's, moved until every colour
stands out at least 3:1 from white and from near-black.
"""

from __future__ import annotations

from typing import Any

PALETTE = ("#0b7bc1", "#d55e00", "#008f68", "#b8629a", "#a97700", "#4a8fb8", "#8a6fd1")
"""Blue, vermilion, green, purple, ochre, sky, violet: after M. Okabe and K. Ito, "Color universal design", 2008."""

INK = "currentColor"
FAINT = "rgba(128, 128, 128, 0.28)"
STILL_INK = "#767676"
"""Ink of a picture that cannot know its page: 4.5:1 on white, 4:1 on near-black."""

FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
STILL_FONT = "Verdana, 'DejaVu Sans', sans-serif"
"""Fonts of a picture: the widest common ones, two of the same measure, so that no label is cut."""


def config(ink: str = INK) -> dict[str, Any]:
    """Return the Vega-Lite configuration, with text and axes in ``ink``."""
    return {
        "background": "transparent",
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": ink,
            "subtitleColor": ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
            "offset": 10,
        },
        "axis": {
            "labelColor": ink,
            "titleColor": ink,
            "domainColor": FAINT,
            "tickColor": FAINT,
            "gridColor": FAINT,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelPadding": 4,
            "labelLimit": 260,
        },
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False, "titleAngle": 0, "titleAlign": "left", "titleAnchor": "end"}
        | {"titleY": -8, "titleX": 0, "titleBaseline": "bottom"},
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "orient": "top",
            "title": None,
            "labelFontSize": 12,
            "symbolStrokeWidth": 2.5,
            "symbolOpacity": 1,
            "symbolBaseFillColor": ink,
            "labelLimit": 240,
            "offset": 28,
        },
        "range": {"category": list(PALETTE), "ramp": {"scheme": "viridis"}},
        "line": {"strokeWidth": 2.25},
        "rule": {"color": ink},
        "text": {"color": ink, "fontSize": 12},
        "bar": {"color": PALETTE[0]},
        "point": {"filled": True, "size": 80},
    }
