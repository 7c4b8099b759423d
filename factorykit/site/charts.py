"""Chart pages: a page, an embeddable frame, data, pictures and a preview card for each figure of a notebook."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.charts import downloads
from factorykit.charts.embed import address, script_json
from factorykit.site import build_cache
from factorykit.site.crosslinks import LinkTargets
from factorykit.site.markup import ancestors, following, new_element, set_content
from factorykit.site.page_layout import THEME, PageContext, template
from factorykit.site.sources import Page, Project
from factorykit.site.table_data import load

FOLDER: Final = "charts"
LABEL: Final = "fig-"
PICTURE_PREFIX: Final = "data:image/svg+xml,"
LARGE_PICTURE: Final = 250_000
"""Size of an SVG with thousands of marks [characters]."""
PLACE: Final = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
DRAWING_CODE: Final = (THEME.parent / "charts.py", THEME.parents[1] / "charts" / "downloads.py")


@dataclass(frozen=True)
class Figure:
    """A chart of a rendered notebook."""

    name: str
    place: str
    asks: str
    caption: str
    code: str
    payload: dict[str, Any]
    pictures: tuple[str, ...]
    spoken: tuple[str, ...]

    @property
    def title(self) -> str:
        """Title of the chart."""
        return str(self.payload["title"])

    @property
    def titled(self) -> bool:
        """Whether the picture includes the title."""
        return bool(self.payload["specs"][0].get("title"))


def add(
    project: Project, pages: Mapping[str, LexborHTMLParser], out: Path, context: PageContext, cache: Path | None = None
) -> list[list[str]]:
    """Add a page for each chart of the notebooks to a rendered folder, and link it from the caption of the figure.

    Return the search entries of the pages. Drawings are cached in the folder ``cache``, if given, and reused while the
    chart is unchanged.
    """
    package = load(project.root / "data")
    known = LinkTargets(package, pages) if package else None
    figures = [
        figure
        for page in project.pages
        if page.is_notebook and page.href in pages
        for figure in _figures(page, pages[page.href], known)
    ]
    for page in project.pages:
        if not page.is_notebook and page.href in pages:
            root = "../" * (len(page.source.parts) - 1)
            for box, payload in _payloads(pages[page.href], root, known):
                shown = next((figure for figure in figures if figure.payload["title"] == payload["title"]), None)
                _link_chart(_figure_of(box), shown, root)
    if not figures:
        return []
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max_workers=2) as pool:
        deque(pool.map(lambda figure: _files(figure, folder, context, cache), figures), maxlen=0)
    places = []
    for figure in figures:
        values = _template_values(figure, context)
        for kind, end in (("chart.html", ".html"), ("embed.html", ".embed.html")):
            text = template(kind).render(values, **context.values("../"))
            (folder / f"{figure.name}{end}").write_text(text, "utf-8")
        text = " ".join([figure.caption, *figure.spoken])
        places.append([f"{FOLDER}/{figure.name}.html", f"Chart: {figure.title}", "", text[:400], ""])
    groups = [(asks, [*those]) for asks, those in groupby(figures, key=lambda figure: figure.asks)]
    index = template("charts.html").render(groups=groups, **context.values("../"))
    (folder / "index.html").write_text(index, "utf-8")
    if "index.html" in pages:
        _illustrate(pages["index.html"], groups)
    return [["charts/index.html", "All charts", "", "every chart with its data and pictures", "charts"], *places]


def _illustrate(page: LexborHTMLParser, groups: list[tuple[str, list[Figure]]]) -> None:
    """Add the first chart of each notebook to its card on the landing page."""
    first = {figures[0].place.partition("#")[0]: figures[0] for _, figures in groups}
    for card in page.css(".fk-cards:not(.fk-numbers) .fk-card"):
        link = card.css_first("a")
        figure = first.get(str(link.attributes["href"]).removeprefix("./")) if link else None
        if figure:
            src = f"{FOLDER}/{figure.name}.thumb.png"
            shown = f'<img class="fk-thumb" src="{src}" alt="" width="480" height="252" loading="lazy">'
            card.insert_child(new_element(shown))


def _figures(source: Page, page: LexborHTMLParser, known: LinkTargets | None) -> Iterator[Figure]:
    """Yield the charts of a rendered notebook, and link each figure to the page of its chart."""
    root = "../" * (len(source.source.parts) - 1)
    code = {str(cell.options.get("label")): cell.source for cell in source.cells}
    stem = re.sub(r"^\d+-", "", source.source.stem)
    for box, payload in _payloads(page, root, known):
        element = _figure_of(box)
        if element is None:
            continue
        label = str(element.attributes["id"])
        caption = element.css_first("figcaption")
        stills = box.css("img.fk-still")
        figure = Figure(
            name=f"{stem}-{label.removeprefix(LABEL)}",
            place=f"{source.href}#{label}",
            asks=source.title,
            caption=re.sub(r"^Figure\s\d+:\s*", "", " ".join(caption.text().split())) if caption else "",
            code=code.get(label, ""),
            payload=payload,
            pictures=tuple(unquote(str(image.attributes["src"]).removeprefix(PICTURE_PREFIX)) for image in stills),
            spoken=tuple(str(image.attributes["alt"]) for image in stills),
        )
        _link_chart(element, figure, root)
        yield figure


def _coarse(picture: str) -> str:
    """Return an SVG with coordinates rounded to one decimal, or to integers if it has thousands of marks.

    >>> _coarse("translate(3.14,15.92)")
    'translate(3.1,15.9)'
    """
    if len(picture) > LARGE_PICTURE:
        picture = PLACE.sub(lambda match: f"translate({float(match[1]):.0f},{float(match[2]):.0f})", picture)
    return re.sub(r"(\d\.\d)\d\b", r"\1", picture)


def _figure_of(box: LexborNode) -> LexborNode | None:
    return next((node for node in ancestors(box) if str(node.attributes.get("id") or "").startswith(LABEL)), None)


def _link_chart(element: LexborNode | None, figure: Figure | None, root: str) -> None:
    """Link the caption of a figure to the page of its chart."""
    caption = element.css_first("figcaption") if element is not None else None
    if caption is not None and figure is not None:
        link = f'<span class="fk-own"> <a href="{root}{FOLDER}/{figure.name}.html">Page of this chart</a></span>'
        caption.insert_child(new_element(link))


def _payloads(
    page: LexborHTMLParser, root: str, known: LinkTargets | None
) -> Iterator[tuple[LexborNode, dict[str, Any]]]:
    """Yield the charts of a page with their payloads, extended by the links of their texts."""
    for box in page.css(".factorykit-chart"):
        script = next(following(box), None)
        if script is not None and script.attributes.get("type") == "application/json":
            payload = _with_datasets(_rows, json.loads(script.text()))
            payload |= known.by_chart(payload, root) if known else {}
            set_content(script, _payload_json(payload))
            for still in box.css("img.fk-still"):
                still.attrs["src"] = _coarse(str(still.attributes["src"]))
            yield box, payload


def _payload_json(payload: Mapping[str, Any]) -> str:
    """Return a payload for a page; the rows of a static chart are rounded to the displayed digits."""
    if not payload.get("parameters"):
        payload = _with_datasets(_columns, json.loads(json.dumps(payload), parse_float=_short))
    return script_json(payload)


def _with_datasets(convert: Callable[[Any], Any], payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload with converted data sets."""
    specs = [
        spec | {"datasets": {name: convert(rows) for name, rows in spec["datasets"].items()}}
        if "datasets" in spec
        else spec
        for spec in payload["specs"]
    ]
    return {**payload, "specs": specs}


def _columns(rows: list[dict[str, Any]]) -> dict[str, Any] | list[dict[str, Any]]:
    """Return rows in column orientation if all rows have the same fields.

    >>> _columns([{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'columns': {'a': [1, 3], 'b': [2, 4]}}
    """
    fields = [*rows[0]] if rows else []
    if not fields or any([*row] != fields for row in rows):
        return rows
    return {"columns": {field: [row[field] for row in rows] for field in fields}}


def _rows(table: dict[str, Any] | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows from row or column orientation.

    >>> _rows({"columns": {"a": [1, 3], "b": [2, 4]}})
    [{'a': 1, 'b': 2}, {'a': 3, 'b': 4}]
    """
    if isinstance(table, list):
        return table
    columns = table["columns"]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _short(text: str) -> float:
    """Round a number to the displayed digits; whole and large numbers are counts and are kept.

    >>> _short("0.0797633593"), _short("16384.0"), _short("304279.0")
    (0.07976, 16384.0, 304279.0)
    """
    value = float(text)
    return value if abs(value) >= 1e5 or value == int(value) else float(f"{value:.4g}")


def _credit(figure: Figure, context: PageContext) -> list[str]:
    """Return the lines attached to each copy of a chart: settings, source, address."""
    given = "; ".join(f"{setting['label']} {setting['text']}" for setting in downloads.settings(figure.payload))
    source = re.sub("^Sources?: ", "", figure.payload.get("source", ""))
    address = context.address(f"{FOLDER}/{figure.name}.html")
    lines = [f"Settings: {given}." if given else "", f"Source: {source}" if source else ""]
    return [line for line in (*lines, f"factorykit {context.version}, {address}. CC BY 4.0.") if line]


def _files(figure: Figure, folder: Path, context: PageContext, cache: Path | None) -> None:
    """Write the data and the pictures of a chart, or copy the cached ones of an identical chart."""

    def draw(place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        for name, content in _drawn(figure, context).items():
            (place / name).write_bytes(content)

    made_of = [figure.payload, *figure.pictures, *_credit(figure, context)]
    made_of += [file.read_text("utf-8") for file in DRAWING_CODE]
    build_cache.written(cache and cache / figure.name, made_of, draw, folder)


def _drawn(figure: Figure, context: PageContext) -> dict[str, bytes]:
    credit = _credit(figure, context)
    picture = downloads.framed(figure.pictures, "" if figure.titled else figure.title, credit)
    described = {
        "title": figure.title,
        "description": " ".join(dict.fromkeys(figure.spoken)),
        "caption": figure.caption,
        "settings": downloads.settings(figure.payload),
        "columns": downloads.columns(figure.payload),
        "source": figure.payload.get("source", ""),
        "address": context.address(f"{FOLDER}/{figure.name}.html"),
        "from": context.address(figure.place),
        "version": context.version,
        "date": context.date,
        "license": "CC-BY-4.0",
        "files": [f"{figure.name}.{end}" for end in ("csv", "svg", "png")],
    }
    shown = downloads.card(figure.pictures[0], "" if figure.titled else figure.title, f"factorykit · {figure.asks}")
    return {
        f"{figure.name}.csv": downloads.csv(figure.payload, [figure.title, *credit]).encode(),
        f"{figure.name}.metadata.json": (json.dumps(described, indent=1, ensure_ascii=False) + "\n").encode(),
        f"{figure.name}.svg": picture.encode(),
        f"{figure.name}.png": downloads.png(picture),
        f"{figure.name}.card.png": downloads.png(shown, scale=1.0),
        f"{figure.name}.thumb.png": downloads.png(shown, scale=0.4),
    }


def _template_values(figure: Figure, context: PageContext) -> dict[str, Any]:
    """Return the values for the templates of a chart."""
    stills = [
        {"spoken": spoken, "src": address(picture)}
        for spoken, picture in zip(figure.spoken, figure.pictures, strict=True)
    ]
    given = [
        setting | {"href": f"../report/vocabulary.html#{setting['name'].replace('_', '-')}"}
        for setting in downloads.settings(figure.payload)
    ]
    return {
        "figure": figure,
        "stills": stills,
        "payload": _payload_json(figure.payload),
        "settings": given,
        "page": context.address(f"{FOLDER}/{figure.name}.html"),
        "card": context.address(f"{FOLDER}/{figure.name}.card.png") if context.site else f"{figure.name}.card.png",
        "frame": context.address(f"{FOLDER}/{figure.name}.embed.html"),
        "key": f"factorykit_chart_{figure.name.replace('-', '_')}",
    }
