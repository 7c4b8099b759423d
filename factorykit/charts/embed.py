"""A chart as an output: a container, its data, a still picture, and numbers for those who read text.

The text/html works in JupyterLab and on the site, offline; the picture stands where no page is, as in a PDF. Neither
holds a generated id, so that a notebook that is run again stores the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any
from urllib.parse import quote

import polars as pl

from factorykit.charts.bundle import SCHEMA, VEGA_LITE
from factorykit.charts.encoding import title
from factorykit.charts.theme import INK, STILL_FONT, STILL_INK, config
from factorykit.core.vocabulary import vocabulary

STILL_WIDTH = 680
SPOKEN = re.compile(r' (?:aria-[\w-]+|role|class|pointer-events)="[^"]*"')
"""Labels of single marks in a picture; no reader uses them, and they are half of the text."""
TAG = re.compile(r"<[^>]+>")
PLACE = re.compile(r"translate\(([\d.]+),")
LEGEND = re.compile(r'role-legend-label"[^>]*><text[^>]*>([^<]*)</text>')
LETTER_PX, SYMBOL_PX = 7.4, 26
"""Widths in a legend: a letter in the widest type, and the space around a label."""
TITLE_LETTERS, SUBTITLE_LETTERS = 66, 92
LAB_SCRIPT = "lab/extensions/factorykit/static/factorykit.js"

# Runs where it stands: the container is two siblings back. On the site the page's script has come first or will find
# the container itself; in JupyterLab the script is loaded once, from the installed extension.
BOOT = (
    "(()=>{const s=document.currentScript,d=s.previousElementSibling.previousElementSibling,w=window,"
    'go=()=>w.factorykit.mount(d),no=()=>{if(d.dataset.drawn)return;const p=document.createElement("p");'
    'p.setAttribute("role","status");p.textContent="A still picture: the script that makes this chart live '
    'did not load.";d.append(p)};if(w.factorykit)return go();'
    'const c=document.getElementById("jupyter-config-data");'
    "if(!c)return addEventListener('load',()=>w.factorykit?go():no());"
    "(w.factorykitScript||=new Promise((ok,bad)=>{const t=document.createElement('script');"
    f"t.src=JSON.parse(c.textContent).baseUrl+'{LAB_SCRIPT}';t.onload=ok;t.onerror=bad;"
    "document.head.append(t)})).then(go,no)})()"
)


def outputs(payload: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return the chart as a page, as a picture for where no page is, and as text."""
    pictures = stills(payload)
    return {"text/html": html(payload, pictures), "image/svg+xml": stacked(pictures), "text/plain": text}


def html(payload: Mapping[str, Any], pictures: Sequence[str] | None = None) -> str:
    """Return the chart as text/html: still pictures, the payload as JSON, and the few lines that start the script."""
    shown = zip(payload["specs"], pictures or stills(payload), strict=True)
    images = "\n".join(
        f'<img class="fk-still" alt="{escape(spec.get("description", "Chart"))}" src="{address(made)}">'
        for spec, made in shown
    )
    return (
        f'<div class="factorykit-chart">\n{images}\n</div>\n'
        f'<script type="application/json">{script_json(payload)}</script>\n<script>{BOOT}</script>'
    )


def script_json(value: Any) -> str:
    r"""Return a value as JSON that may stand in a script element, which ``</script>`` would end.

    >>> print(script_json({"a": "</script>"}))
    {"a":"\u003c/script>"}
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def whole(payload: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a specification of the payload with the rows that its panels share."""
    grid = payload.get("grid")
    rows = {"grid": [{grid["field"]: value} for value in grid["values"]]} if grid else {}
    return {**spec, "datasets": {**spec.get("datasets", {}), **rows}}


def stills(payload: Mapping[str, Any]) -> list[str]:
    """Return a picture of each panel, legible on light and dark pages."""
    return [svg(whole(payload, spec)) for spec in payload["specs"]]


def stacked(pictures: Sequence[str]) -> str:
    """Return pictures as one, one below the other.

    >>> stacked(["<svg width='4' height='2'/>", "<svg width='3' height='5'/>"]).split(">")[0]
    "<svg xmlns='http://www.w3.org/2000/svg' width='4' height='7' viewBox='0 0 4 7'"
    """
    if len(pictures) == 1:
        return pictures[0]
    sizes = [size_of(made) for made in pictures]
    width, height = max(wide for wide, _ in sizes), sum(high for _, high in sizes)
    panels, top = [], 0
    for n, (made, (_, high)) in enumerate(zip(pictures, sizes, strict=True)):
        panels.append(re.sub(r"\bclip(\d+)", rf"panel{n}clip\1", made).replace("<svg ", f"<svg y='{top}' ", 1))
        top += high
    size = f"width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{''.join(panels)}</svg>"


def size_of(picture: str) -> tuple[int, int]:
    """Return width and height of a picture."""
    wide, high = re.findall(r"\b(?:width|height)=['\"](\d+)", picture.split(">")[0])[:2]
    return int(wide), int(high)


def address(picture: str) -> str:
    """Return a picture as an address that holds it."""
    return "data:image/svg+xml," + quote(picture, safe=" ='/:;,()!?*@$|[]{}")


def svg(spec: Mapping[str, Any]) -> str:
    """Return the specification drawn as SVG text."""
    fixed: dict[str, Any] = _without_hover(spec) | {"config": config(STILL_INK) | {"font": STILL_FONT}}
    if "title" in spec:
        fixed["title"] = _in_lines(spec["title"])
    if spec.get("width") == "container":
        fixed |= {"width": STILL_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}}
    text = _drawn(fixed)
    left = PLACE.search(text)
    if columns := _legend_columns(LEGEND.findall(text), STILL_WIDTH - float(left[1] if left else 0.0)):
        fixed["config"]["legend"] |= {"columns": columns}
        text = _drawn(fixed)
    # Vega counts clip paths over the life of a process; a stored picture counts its own.
    clips = {name: f"clip{n}" for n, name in enumerate(dict.fromkeys(re.findall(r"clip\d+", text)))}
    text = re.sub(r"clip\d+", lambda match: clips[match[0]], text)
    text = TAG.sub(lambda match: re.sub(r"(\d\.\d\d)\d+", r"\1", match[0]), SPOKEN.sub("", text))
    return text if "'" in text else text.replace('"', "'")


def _drawn(spec: Mapping[str, Any]) -> str:
    import vl_convert

    return vl_convert.vegalite_to_svg(json.loads(json.dumps(spec).replace(INK, STILL_INK)), vl_version=VEGA_LITE)


def _in_lines(title: str | Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = dict(title) if isinstance(title, Mapping) else {"text": title}
    for part, letters in (("text", TITLE_LETTERS), ("subtitle", SUBTITLE_LETTERS)):
        if isinstance(made.get(part), str):
            made[part] = wrap(made[part], letters)
    return made


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """Return in how many columns a legend has to stand that is too wide for its picture in one row, else 0.

    >>> _legend_columns(["work", "idle"], 680), _legend_columns(["Waiting for other stages"] * 7, 680)
    (0, 3)
    """
    wide = [SYMBOL_PX + LETTER_PX * len(label) for label in labels]
    return max(1, int(width / max(wide))) if sum(wide) > width else 0


def _without_hover(spec: Mapping[str, Any]) -> dict[str, Any]:
    layers = [_without_hover(layer) for layer in spec.get("layer", ()) if not _is_hover(layer)]
    return {**spec, "layer": layers} if layers else dict(spec)


def _is_hover(layer: Mapping[str, Any]) -> bool:
    return any(param["name"] == "hover" for param in layer.get("params", ()))


def chart_payload(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of a chart without sliders: its specification, its source and its columns."""
    spec = json.loads(json.dumps(spec))
    frame = drawn(spec)
    columns = [
        {"spec": 0, "field": name, "name": name, "title": title(name), "scale": _scale(name)} for name in frame.columns
    ]
    shown = {name: value for name, value in spec.items() if name not in ("usermeta", "config")} | {"$schema": SCHEMA}
    return {
        "key": "chart",
        "title": _words(spec),
        "source": spec.get("usermeta", {}).get("source", ""),
        "specs": [shown],
        "config": spec.get("config", config()),
        "columns": columns,
    }


def drawn(spec: Mapping[str, Any]) -> pl.DataFrame:
    """Return the largest data set of a specification, as it was given to the chart."""
    inline = spec.get("data", {}).get("values")
    sets = [*spec.get("datasets", {}).values(), *([inline] if inline else [])]
    return pl.DataFrame(max(sets, key=len), infer_schema_length=None) if sets else pl.DataFrame()


def summary(spec: Mapping[str, Any]) -> str:
    """Return the chart as a few lines of numbers: title, rows, minimum, median and maximum of every column."""
    return "\n".join([_words(spec), *summary_lines(drawn(spec))])


def mimebundle(spec: Mapping[str, Any], **_: Any) -> dict[str, str]:
    """Return a Vega-Lite specification as page, picture and text: the renderer that Altair knows as ``factorykit``."""
    spec = json.loads(json.dumps(spec))
    return outputs(chart_payload(spec), summary(spec))


def summary_lines(frame: pl.DataFrame) -> list[str]:
    """Return rows and, per column of numbers, minimum, median and maximum, aligned."""
    numbers = [column for column in frame.iter_columns() if column.dtype.is_numeric() and column.count()]
    values = [(column.name, column.min(), column.median(), column.max()) for column in numbers]
    table = [(f"{frame.height} rows", "min", "median", "max")]
    table += [(name, *(f"{value:.6g}" for value in three)) for name, *three in values]  # type: ignore[misc]
    width = max(len(row[0]) for row in table)
    return [f"{name:<{width}}{low:>13}{middle:>13}{high:>13}" for name, low, middle, high in table]


def _scale(name: str) -> float:
    return vocabulary()[name].display_scale if name in vocabulary() else 1.0


def _words(spec: Mapping[str, Any]) -> str:
    words = spec.get("title", spec.get("description", "Chart"))
    text = words["text"] if isinstance(words, Mapping) else words
    return " ".join(text) if isinstance(text, list) else str(text)
