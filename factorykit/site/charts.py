"""Chart pages: a page, an embeddable frame, data, pictures and a preview card for each figure of a notebook."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.charts.embed import address, script_json
from factorykit.core.atomic_io import STAGE_PREFIX, remove_folder, temporary_folder
from factorykit.site.crosslinks import Known
from factorykit.site.markup import above, fill, following, made
from factorykit.site.page_layout import THEME, Around, template
from factorykit.site.sources import Page, Project
from factorykit.site.table_data import load

FOLDER: Final = "charts"
LABEL: Final = "fig-"
STILL: Final = "data:image/svg+xml,"
LARGE: Final = 250_000
"""Size of an SVG with thousands of marks [characters]."""
PLACE: Final = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
DRAWN_BY: Final = (THEME.parent / "charts.py", THEME.parents[1] / "charts" / "downloads.py")


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
    project: Project, pages: Mapping[str, LexborHTMLParser], out: Path, around: Around, cache: Path | None = None
) -> list[list[str]]:
    """Add a page for each chart of the notebooks to a rendered folder, and link it from the caption of the figure.

    Return the search entries of the pages. Drawings are cached in the folder ``cache``, if given, and reused while the
    chart is unchanged.
    """
    shelf = load(project.root / "data")
    known = Known(shelf, pages) if shelf else None
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
                shown = next((each for each in figures if each.payload["title"] == payload["title"]), None)
                _lead(_figure_around(box), shown, root)
    if not figures:
        return []
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max_workers=2) as pool:
        deque(pool.map(lambda figure: _files(figure, folder, around, cache), figures), maxlen=0)
    places = []
    for figure in figures:
        values = _template_values(figure, around)
        for kind, end in (("chart.html", ".html"), ("embed.html", ".embed.html")):
            text = template(kind).render(values, **around.words("../"))
            (folder / f"{figure.name}{end}").write_text(text, "utf-8")
        text = " ".join([figure.caption, *figure.spoken])
        places.append([f"{FOLDER}/{figure.name}.html", f"Chart: {figure.title}", "", text[:400], ""])
    groups = [(asks, [*those]) for asks, those in groupby(figures, key=lambda figure: figure.asks)]
    index = template("charts.html").render(groups=groups, **around.words("../"))
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
            card.insert_child(made(shown))


def _figures(source: Page, page: LexborHTMLParser, known: Known | None) -> Iterator[Figure]:
    """Yield the charts of a rendered notebook, and link each figure to the page of its chart."""
    root = "../" * (len(source.source.parts) - 1)
    code = {str(cell.options.get("label")): cell.source for cell in source.cells}
    stem = re.sub(r"^\d+-", "", source.source.stem)
    for box, payload in _payloads(page, root, known):
        around = _figure_around(box)
        if around is None:
            continue
        label = str(around.attributes["id"])
        caption = around.css_first("figcaption")
        stills = box.css("img.fk-still")
        for still in stills:
            still.attrs["src"] = _coarse(str(still.attributes["src"]))
        figure = Figure(
            name=f"{stem}-{label.removeprefix(LABEL)}",
            place=f"{source.href}#{label}",
            asks=source.title,
            caption=re.sub(r"^Figure\s\d+:\s*", "", " ".join(caption.text().split())) if caption else "",
            code=code.get(label, ""),
            payload=payload,
            pictures=tuple(unquote(str(each.attributes["src"]).removeprefix(STILL)) for each in stills),
            spoken=tuple(str(each.attributes["alt"]) for each in stills),
        )
        _lead(around, figure, root)
        yield figure


def _coarse(picture: str) -> str:
    """Return an SVG with coordinates rounded to one decimal, or to integers if it has thousands of marks.

    >>> _coarse("translate(3.14,15.92)")
    'translate(3.1,15.9)'
    """
    if len(picture) > LARGE:
        picture = PLACE.sub(lambda found: f"translate({float(found[1]):.0f},{float(found[2]):.0f})", picture)
    return re.sub(r"(\d\.\d)\d\b", r"\1", picture)


def _figure_around(box: LexborNode) -> LexborNode | None:
    return next((each for each in above(box) if str(each.attributes.get("id") or "").startswith(LABEL)), None)


def _lead(around: LexborNode | None, figure: Figure | None, root: str) -> None:
    """Link the caption of a figure to the page of its chart."""
    caption = around.css_first("figcaption") if around is not None else None
    if caption is not None and figure is not None:
        link = f'<span class="fk-own"> <a href="{root}{FOLDER}/{figure.name}.html">Page of this chart</a></span>'
        caption.insert_child(made(link))


def _payloads(page: LexborHTMLParser, root: str, known: Known | None) -> Iterator[tuple[LexborNode, dict[str, Any]]]:
    """Yield the charts of a page with their payloads, extended by the links of their texts."""
    for box in page.css(".factorykit-chart"):
        script = next(following(box), None)
        if script is not None and script.attributes.get("type") == "application/json":
            payload = _by(_rows, json.loads(script.text()))
            payload |= known.by_chart(payload, root) if known else {}
            fill(script, _written(payload))
            yield box, payload


def _written(payload: Mapping[str, Any]) -> str:
    """Return a payload for a page; the rows of a static chart are rounded to the displayed digits."""
    if not payload.get("parameters"):
        payload = _by(_columns, json.loads(json.dumps(payload), parse_float=_short))
    return script_json(payload)


def _by(convert: Callable[[Any], Any], payload: Mapping[str, Any]) -> dict[str, Any]:
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
    """Round a number to the displayed digits; large numbers are counts and are kept.

    >>> _short("0.0797633593"), _short("304279.0")
    (0.07976, 304279.0)
    """
    value = float(text)
    return value if abs(value) >= 1e5 else float(f"{value:.4g}")


def _credit(figure: Figure, around: Around) -> list[str]:
    """Return the lines attached to each copy of a chart: settings, source, address."""
    from factorykit.charts.downloads import settings

    given = "; ".join(f"{each['label']} {each['text']}" for each in settings(figure.payload))
    source = re.sub("^Sources?: ", "", figure.payload.get("source", ""))
    address = around.address(f"{FOLDER}/{figure.name}.html")
    lines = [f"Settings: {given}." if given else "", f"Source: {source}" if source else ""]
    return [line for line in (*lines, f"factorykit {around.version}, {address}. CC BY 4.0.") if line]


def _files(figure: Figure, folder: Path, around: Around, cache: Path | None) -> None:
    """Write the data and the pictures of a chart, or copy the cached ones of an identical chart."""
    made_of = [json.dumps(figure.payload), *figure.pictures, *_credit(figure, around)]
    made_of += [file.read_text("utf-8") for file in DRAWN_BY]
    kept = cache / f"{figure.name}-{hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]}" if cache else None
    if kept and kept.is_dir() and all(file.stat().st_size for file in kept.iterdir()):
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        return
    drawn = _drawn(figure, around)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in drawn.items():
        (folder / name).write_bytes(content)
    if cache and kept:
        cache.mkdir(parents=True, exist_ok=True)
        with temporary_folder(cache, STAGE_PREFIX) as apart:
            for name, content in drawn.items():
                (apart / name).write_bytes(content)
            remove_folder(kept)  # of a damaged one; nothing else is there
            apart.rename(kept)
    for old in cache.glob(f"{figure.name}-*") if cache else ():
        if old != kept and re.fullmatch(r"[0-9a-f]{16}", old.name.removeprefix(f"{figure.name}-")):
            remove_folder(old)


def _drawn(figure: Figure, around: Around) -> dict[str, bytes]:
    from factorykit.charts.downloads import card, columns, csv, framed, png, settings

    credit = _credit(figure, around)
    picture = framed(figure.pictures, "" if figure.titled else figure.title, credit)
    described = {
        "title": figure.title,
        "description": " ".join(dict.fromkeys(figure.spoken)),
        "caption": figure.caption,
        "settings": settings(figure.payload),
        "columns": columns(figure.payload),
        "source": figure.payload.get("source", ""),
        "address": around.address(f"{FOLDER}/{figure.name}.html"),
        "from": around.address(figure.place),
        "version": around.version,
        "date": around.date,
        "license": "CC-BY-4.0",
        "files": [f"{figure.name}.{end}" for end in ("csv", "svg", "png")],
    }
    shown = card(figure.pictures[0], "" if figure.titled else figure.title, f"factorykit · {figure.asks}")
    return {
        f"{figure.name}.csv": csv(figure.payload, [figure.title, *credit]).encode(),
        f"{figure.name}.metadata.json": (json.dumps(described, indent=1, ensure_ascii=False) + "\n").encode(),
        f"{figure.name}.svg": picture.encode(),
        f"{figure.name}.png": png(picture),
        f"{figure.name}.card.png": png(shown, scale=1.0),
        f"{figure.name}.thumb.png": png(shown, scale=0.4),
    }


def _template_values(figure: Figure, around: Around) -> dict[str, Any]:
    """Return the values for the templates of a chart."""
    from factorykit.charts.downloads import settings

    stills = [
        {"spoken": spoken, "src": address(picture)}
        for spoken, picture in zip(figure.spoken, figure.pictures, strict=True)
    ]
    given = [
        each | {"href": f"../report/vocabulary.html#{each['name'].replace('_', '-')}"}
        for each in settings(figure.payload)
    ]
    return {
        "figure": figure,
        "stills": stills,
        "payload": _written(figure.payload),
        "settings": given,
        "page": around.address(f"{FOLDER}/{figure.name}.html"),
        "card": around.address(f"{FOLDER}/{figure.name}.card.png") if around.site else f"{figure.name}.card.png",
        "frame": around.address(f"{FOLDER}/{figure.name}.embed.html"),
        "key": f"factorykit_chart_{figure.name.replace('-', '_')}",
    }
