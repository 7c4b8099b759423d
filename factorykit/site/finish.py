"""Postprocessing of rendered pages: removal of external content, and uniform tables and numbering."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.charts.embed import BOOT
from factorykit.site import agents, charts, crosslinks, entity_pages, feeds, open_data, search
from factorykit.site.csp import guard
from factorykit.site.markup import ancestors, following, new_element, read, set_content, write
from factorykit.site.page_layout import PageContext, assets
from factorykit.site.pages import api
from factorykit.site.sources import Project

OUTSIDE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
REQUIRE_SHIM = re.compile(r"\s*(?:window\.)?define\(['\"]jquery['\"]")
CAPTION = re.compile(r"\s*((?:Figure|Table)\xa0\d+:)")
SIGN = re.compile(r"\((\d+)\)")
TEX_SIGN = re.compile(r"\s*\\qquad\(\d+\)\s*$")
SHAPE = re.compile(r"\((\d+), (\d+)\)")
NUMBER = re.compile(r"[-+]?[\d_,]*\.?\d+(?:e[-+]?\d+)?|nan|inf|-inf|null", re.IGNORECASE)
CHART_SCRIPT = "report/assets/factorykit.js"
BRIDGE = "/bridge.js"


def finish(project: Project, out: Path, root: Path | None = None, *, cache: Path | None = None) -> None:
    """Postprocess a rendered folder; the operation is idempotent.

    Pages are edited, notebooks copied next to their pages, and pages of entities, tables and charts added.

    Parameters
    ----------
    project, out
        The rendered pages and their folder.
    root
        Repository folder for the date of each page; defaults to ``project``.
    cache
        Folder in which pages of entities and pictures of charts are cached.
    """
    context = PageContext.of(project, root or project.root)
    assets(out)
    pages = read(project, out)
    for source in project.pages:
        page = pages.get(source.href)
        if page is None:
            continue
        _remove_external_scripts(page)
        _add_assets(page)
        _mark_current_page(page, out / source.href)
        _number_items(page)
        _remove_code_anchors(page)
        _format_frames(page)
        _make_tables_scroll(page)
        if source.is_notebook:
            shutil.copyfile(project.root / source.source, out / source.source)
            _link_notebook(page, source.source.name)
    _add_embedded_captions(pages)
    entries = entity_pages.add(project, out, context, cache)
    crosslinks.add(project, pages)
    entries = search.entries(project, pages) + entries
    if f"{api.PLACE}.html" in pages:
        entries += api.write(out, context)
    entries += charts.add(project, pages, out, context, cache and cache / "charts")
    search.write(out, entries)
    feeds.add(project, pages, out, context)
    open_data.add(project, out, context)
    agents.add(project, out, context)
    guard(pages)
    write(pages, out)


def _remove_external_scripts(page: LexborHTMLParser) -> None:
    """Remove external scripts, the elements that depend on them, and local paths of notebooks."""
    for script in page.css("script"):
        if OUTSIDE.match(script.attributes.get("src") or "") or REQUIRE_SHIM.match(script.text()):
            script.decompose()
    for node in page.css("[data-notebook]"):
        del node.attrs["data-notebook"]


def _add_assets(page: LexborHTMLParser) -> None:
    """Add the assets of every page, and the chart script to pages with charts; the landing page loads it lazily."""
    for script in page.css(".factorykit-chart ~ script"):
        if script.text() == BOOT:
            script.decompose()
    bridged = page.css_first(f'script[src$="{BRIDGE}"]')
    later = page.css_first("body.fk-landing .factorykit-chart")
    for script in page.css(f'script[src$="{CHART_SCRIPT}"]'):
        if not bridged:
            src = str(script.attributes["src"]).replace(CHART_SCRIPT, f"entities/assets{BRIDGE}")
            script.insert_before(new_element(f'<body><script src="{src}" defer></script></body>'))
        if later:
            later.attrs["data-charts"] = script.attributes["src"]
        if later or not page.css_first(".factorykit-chart"):
            script.decompose()


def _remove_code_anchors(page: LexborHTMLParser) -> None:
    """Remove the invisible anchors of code lines, which account for a tenth of the size of a page."""
    for link in page.css('code.sourceCode a[aria-hidden="true"]'):
        link.decompose()


def _mark_current_page(page: LexborHTMLParser, file: Path) -> None:
    """Mark the navigation link of the current page; Quarto marks the first link instead."""
    for link in page.css("a.nav-link[href]:not([data-scroll-target])"):
        is_current = (file.parent / str(link.attributes["href"])).resolve() == file.resolve()
        link.attrs["class"] = "nav-link active" if is_current else "nav-link"
        if is_current:
            link.attrs["aria-current"] = "page"
        elif "aria-current" in link.attributes:
            del link.attrs["aria-current"]


# Numbers of figures and equations, and tables of contents, in pages rendered by Quarto


def _number_items(page: LexborHTMLParser) -> None:
    for caption in page.css("figcaption"):
        first = next(caption.iter(include_text=True), None)
        match = CAPTION.match(first.text()) if first is not None and first.is_text_node else None
        if first is not None and match:
            first.insert_before(new_element(f'<span class="fk-number">{match[1]}</span>'))
            first.replace_with(first.text()[match.end() :])
    for equation in page.css('span[id^="eq-"]:not(.fk-equation)'):
        _equation(equation)
    contents = page.css_first("nav#TOC ul")
    place = "#quarto-bibliography"
    if contents and page.css_first(f"section{place}") and not contents.css_first(f'a[href="{place}"]'):
        link = f'<a href="{place}" class="nav-link" data-scroll-target="{place}">References</a>'
        contents.insert_child(new_element(f"<li>{link}</li>"))


def _add_embedded_captions(pages: Mapping[str, LexborHTMLParser]) -> None:
    """Add the caption of its notebook to an embedded figure; Quarto embeds the unprocessed notebook."""
    titled = {title.text(): page for page in pages.values() if (title := page.css_first("h1.title"))}
    for page in pages.values():
        for cell in page.css("[data-notebook-title][data-notebook-cellid]"):
            bare = cell.css_first("figcaption.quarto-uncaptioned")
            notebook = titled.get(str(cell.attributes["data-notebook-title"]))
            caption = notebook and notebook.css_first(f"#{cell.attributes['data-notebook-cellid']} figcaption")
            if bare and caption:
                whole = new_element(f"<figcaption>{caption.inner_html}</figcaption>")
                number = whole.css_first(".fk-number")
                if number:
                    set_content(number, f"{bare.text(strip=True)}:")
                bare.replace_with(whole)


def _equation(equation: LexborNode) -> None:
    r"""Align the number of an equation right; pandoc makes it part of the formula, after ``\qquad``."""
    for space in equation.css('mspace[width="2em"], mspace[width="2.0em"]'):
        group = next(following(space), None)
        parts = [group] if group is not None and group.tag == "mrow" else [*islice(following(space), 3)]
        sign = SIGN.fullmatch("".join(part.text(strip=True) for part in parts))
        if not sign:
            continue
        for node in (space, *parts):
            node.decompose()
        for tex in equation.css("annotation"):
            set_content(tex, TEX_SIGN.sub("", tex.text()))
        equation.attrs["class"] = "fk-equation"
        equation.insert_child(new_element(f'<span class="fk-eqno">({sign[1]})</span>'))


# Tables


def _make_tables_scroll(page: LexborHTMLParser) -> None:
    """Wrap tables that may be wider than a phone in a scrolling container."""
    for table in page.css("table.fk-frame"):
        if not _within(table, "fk-frame"):
            table.replace_with(new_element(f'<div class="fk-frame"><div class="fk-scroll">{table.html}</div></div>'))
    for table in page.css("main table:not(.fk-frame):not(.gt_table):not(.dataframe)"):
        if not (_within(table, "fk-scroll") or _within(table, "fk-quantities")):
            table.replace_with(new_element(f'<div class="fk-scroll">{table.html}</div>'))


def _within(node: LexborNode, name: str) -> bool:
    return any(name in (ancestor.attributes.get("class") or "").split() for ancestor in ancestors(node))


def _format_frames(page: LexborHTMLParser) -> None:
    """Convert polars frames to tables in the style of the page: right-aligned numbers, strings without quotes."""
    for table in page.css("table.dataframe"):
        box = table.parent
        note = box.css_first("small") if box is not None else None
        frame = new_element(_frame_table(table, note.text() if note is not None else ""))
        whole = box is not None and box.tag == "div" and box.css_first("style") is not None
        (box if box is not None and whole else table).replace_with(frame)


def _frame_table(table: LexborNode, shape: str) -> str:
    head = table.css("thead tr")
    names = [cell.inner_html or "" for cell in head[0].css("th")] if head else []
    types = [cell.text() for cell in head[1].css("td")] if len(head) > 1 else []
    rows = [[cell.inner_html or "" for cell in row.css("td")] for row in table.css("tbody tr")]
    right = [
        bool(re.match(r"[iuf]\d|decimal", types[place]))
        if place < len(types)
        else all(NUMBER.fullmatch(row[place]) for row in rows if place < len(row))
        for place in range(len(names))
    ]

    def cell(tag: str, place: int, text: str) -> str:
        classes = ["fk-right"] if place < len(right) and right[place] else []
        if tag == "td" and text == "null":
            text, classes = "–", [*classes, "fk-null"]
        plain = re.fullmatch(r'"(.*)"', text, re.DOTALL)
        scope = ' scope="col"' if tag == "th" else ""
        named = f' class="{" ".join(classes)}"' if classes else ""
        return f"<{tag}{named}{scope}>{plain[1] if plain and tag == 'td' else text}</{tag}>"

    header = "".join(cell("th", place, name) for place, name in enumerate(names))
    lines = "\n".join(f"<tr>{''.join(cell('td', place, text) for place, text in enumerate(row))}</tr>" for row in rows)
    match = SHAPE.search(shape)
    shortened = match and int(match[1]) > len(rows)
    note = f"<small>{int(match[1]):,} rows, {len(rows) - 1} shown</small>" if match and shortened else ""
    return (
        f'<div class="fk-frame"><div class="fk-scroll"><table class="fk-table"><thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>{note}</div>"
    )


def _link_notebook(page: LexborHTMLParser, name: str) -> None:
    link = f'<a href="{name}" download>{name}</a>'
    note = new_element(f'<p class="fk-origin">This page is a notebook, shown as it was stored: {link}.</p>')
    arrows, main = page.css_first("nav.arrows"), page.css_first("main")
    if arrows:
        arrows.insert_before(note)
    elif main:
        main.insert_child(note)
