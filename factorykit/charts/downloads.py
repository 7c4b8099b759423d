"""Downloads of a chart: its rows, and its picture with title, settings, source and address inside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any, Final

import polars as pl

from factorykit.charts.bundle import VEGA_LITE
from factorykit.charts.embed import drawn, size_of, stacked, whole
from factorykit.charts.theme import FONT, STILL_INK
from factorykit.core.vocabulary import quantity, vocabulary

PAPER_INK: Final = "#333333"
MARGIN, LINE = 16, 17
LETTER: Final = 6.2  # mean width of a letter of 12 pixels
CARD: Final = (1200, 630)
"""Width and height of the picture that goes with a shared link."""


def settings(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the inputs of a chart that computes: name, label, value, and the value for reading."""
    given = payload.get("parameters", {}).items()
    return [
        {"name": name, "label": quantity(name).label, "value": value}
        | {"text": value if isinstance(value, str) else quantity(name).text(value)}
        for name, value in given
    ]


def rows(payload: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows of a chart: one per mark or grid point, one column per column of its table.

    A chart that computes is computed here by the expressions with which a page draws it, to six digits.
    """
    columns = payload.get("columns", ())
    if not payload.get("parameters"):
        frame = drawn(payload["specs"][0])
        return frame.select(
            pl.col(column["field"]).alias(column["name"]) for column in columns if column["field"] in frame
        )
    series = [pl.Series(columns[0]["name"], payload["grid"]["values"])]
    for number, spec in enumerate(payload["specs"]):
        own = [column for column in columns if column["spec"] == number and column["field"] != payload["grid"]["field"]]
        computed = _computed(whole(payload, spec), [column["field"] for column in own])
        series += [
            pl.Series(column["name"], values, pl.Float64)
            for column, values in zip(own, zip(*computed, strict=True), strict=True)
        ]
    return pl.DataFrame(series)


def _computed(spec: Mapping[str, Any], fields: Sequence[str]) -> list[list[float | None]]:
    """Return the columns of a live specification, row by row: its own transforms, written out as text marks."""
    import vl_convert

    cells = " + ' ' + ".join(f"format(datum[{json.dumps(field)}], '.6~g')" for field in fields)
    lines = {
        **{name: spec[name] for name in ("$schema", "params", "datasets")},
        "data": {"name": "grid"},
        "transform": [*spec["layer"][0]["transform"], {"calculate": cells, "as": "cells"}],
        "mark": "text",
        "encoding": {"text": {"field": "cells", "type": "nominal"}},
    }
    scene = vl_convert.vegalite_to_scenegraph(lines, vl_version=VEGA_LITE)
    texts = _texts(scene.get("scenegraph", scene))
    return [[_number(cell) for cell in text.split(" ")] for text in texts]


def _texts(node: Mapping[str, Any]) -> Iterator[str]:
    if node.get("marktype") == "text" and node.get("name") == "marks":
        yield from (item["text"] for item in node["items"])
    for item in node.get("items", ()):
        yield from _texts(item)


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace("−", "-"))
    except ValueError:
        return None


def csv(payload: Mapping[str, Any], credit: Sequence[str]) -> str:
    """Return the rows as CSV; lines of credit come first, each behind a ``#``, as polars and pandas skip them."""
    frame = rows(payload)
    short = frame.with_columns(pl.col(pl.Float64).map_elements(lambda value: f"{value:.6g}", pl.String))
    return "".join(f"# {' '.join(line.split())}\n" for line in credit) + short.write_csv()


def columns(payload: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the columns of :func:`rows`: name, title and the unit of the numbers in the file."""
    entries = []
    for column in payload.get("columns", ()):
        name = column["name"].partition(" (")[0]
        unit = vocabulary()[name].unit if name in vocabulary() else ""
        entries.append({"name": column["name"], "title": re.sub(r" \[[^\]]*\]", "", column["title"]), "unit": unit})
    return entries


def framed(pictures: Sequence[str], title: str, foot: Sequence[str]) -> str:
    """Return pictures of a chart as one on white paper: title above, lines about it below."""
    picture = stacked(pictures).replace(STILL_INK, PAPER_INK)
    wide, high = size_of(picture)
    width = wide + 2 * MARGIN
    head = 34 if title else 0
    lines = [part for line in foot for part in wrap(line, int((width - 2 * MARGIN) / LETTER), break_on_hyphens=False)]
    top = MARGIN + head
    height = top + high + LINE * (len(lines) + 1) + MARGIN
    text = f"<text x='{MARGIN}' y='{MARGIN + 16}' font-size='17' font-weight='600'>{escape(title)}</text>"
    text = text if title else ""
    text += "".join(
        f"<text x='{MARGIN}' y='{top + high + LINE * (number + 1.4):.0f}' font-size='12'>{escape(line)}</text>"
        for number, line in enumerate(lines)
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'>"
        f"<title>{escape(title or (lines or [''])[0])}</title><rect width='100%' height='100%' fill='#ffffff'/>"
        f"<g font-family=\"{FONT}\" fill='{PAPER_INK}'>{text}</g>{_placed(picture, MARGIN, top, wide, high)}</svg>"
    )


def card(picture: str, title: str, foot: str) -> str:
    """Return the picture that goes with a shared link: title, the chart as large as there is room, whose it is."""
    width, height = CARD
    picture = picture.replace(STILL_INK, PAPER_INK)
    lines = wrap(title, 52)[:2]
    words = "".join(
        f"<text x='60' y='{88 + 50 * number}' font-size='42' font-weight='600'>{escape(line)}</text>"
        for number, line in enumerate(lines)
    )
    top = 60 + 50 * len(lines)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'>"
        f"<rect width='100%' height='100%' fill='#ffffff'/><g font-family=\"{FONT}\" fill='{PAPER_INK}'>{words}"
        f"<text x='60' y='{height - 26}' font-size='24'>{escape(foot)}</text></g>"
        f"{_placed(picture, 60, top, width - 120, height - top - 66)}</svg>"
    )


def png(picture: str, scale: float = 2.0) -> bytes:
    """Return a picture as PNG."""
    import vl_convert

    return vl_convert.svg_to_png(picture, scale=scale)


def _placed(picture: str, x: int, y: int, wide: int, high: int) -> str:
    """Return a picture in the middle of a place within another one, as large as there is room.

    It becomes a group: a nested picture would be clipped, and drawing would take nearly twice as long.
    """
    head, _, body = picture.partition(">")
    box = re.search(r"viewBox=['\"]([^'\"]*)", head)
    left, top, width, height = map(float, box[1].split()) if box else (0.0, 0.0, *size_of(picture))
    scale = min(wide / width, high / height)
    across, down = x + (wide - scale * width) / 2 - scale * left, y + (high - scale * height) / 2 - scale * top
    names = "xmlns:xlink='http://www.w3.org/1999/xlink' fill='none'"
    drawn = body.rstrip().removesuffix("</svg>")
    return f"<g {names} transform='translate({across:g} {down:g}) scale({scale:g})'>{drawn}</g>"
