"""Results of Vega for expressions and live charts, without a browser."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

import vl_convert

from factorykit.charts.live import Live


def texts(expressions: Sequence[str], signals: Sequence[Mapping[str, Any]] = (), **data: Any) -> list[str]:
    """Return the values of expressions as texts, one for each row of the data and expression."""
    rows = {"name": "rows", "values": [{}], **data}
    shown = [
        {"type": "text", "from": {"data": "rows"}, "encode": {"enter": {"text": {"signal": f"'·' + ({e})"}}}}
        for e in expressions
    ]
    spec = {"$schema": "https://vega.github.io/schema/vega/v6.json", "signals": list(signals), "data": [rows]}
    svg = vl_convert.vega_to_svg(spec | {"width": 1, "height": 1, "marks": shown})
    return [html.unescape(text)[1:] for text in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


def drawn(live: Live, changes: Mapping[str, Any] | None = None, spec: int = 0) -> dict[str, list[float | None]]:
    """Return the curves, bands and ``x`` of one specification of a chart along its grid, by name."""
    curves, _, _ = live.specs[spec]["layer"]
    steps = [{"type": "formula", "expr": step["calculate"], "as": step["as"]} for step in curves["transform"]]
    names = [step["as"] for step in steps if step["as"].split()[0] in {"curve", "shown", "band", "x"}]
    row = " + '|' + ".join(f"datum['{name}']" for name in names)
    lines = texts([row], _signals(live, changes, spec), values=curves["data"]["values"], transform=steps)
    rows = [[None if cell == "null" else float(cell) for cell in line.split("|")] for line in lines]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def marked(live: Live, changes: Mapping[str, Any] | None = None, spec: int = 0) -> list[tuple[str, float, float]]:
    """Return label, x and y of each marked setting; the last one is the present setting, labelled by its value."""
    steps = [layer["transform"] for layer in live.specs[spec]["layer"][2]["layer"]]
    made = [{step["as"]: step["calculate"] for step in transform} for transform in steps]
    expressions = [text for step in made for text in (step.get("case") or step["text"], step["x"], step["y"])]
    found = texts(expressions, _signals(live, changes, spec))
    return [(label, float(x), float(y)) for label, x, y in zip(found[::3], found[1::3], found[2::3], strict=True)]


def printed(live: Live, names: Sequence[str], changes: Mapping[str, Any] | None = None) -> list[str]:
    """Return signals of the first specification as texts."""
    return texts(names, _signals(live, changes, 0))


def _signals(live: Live, changes: Mapping[str, Any] | None, spec: int) -> list[dict[str, Any]]:
    values = live.values(changes)
    return [
        {"name": p["name"], "update": p["expr"]} if "expr" in p else {"name": p["name"], "value": values[p["name"]]}
        for p in live.specs[spec]["params"]
    ]
