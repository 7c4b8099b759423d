"""Search index of the sections of rendered pages, with the same ranking for both renderers."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.site.markup import ancestors
from factorykit.site.sources import Project

THEME: Final = Path(__file__).parent / "theme"
MAX_SECTION_LETTERS: Final = 3000
SKIPPED: Final = ("script", "style", "svg", "math", "button", "form", "header", "nav")


def entries(project: Project, pages: Mapping[str, LexborHTMLParser]) -> list[list[str]]:
    """Return the search entries of the project's pages: address, page, heading, text, other names."""
    rows: list[list[str]] = []
    for page in project.pages:
        read = pages.get(page.href)
        main = read.css_first("main") if read else None
        title = read.css_first("h1.title, title") if read else None
        if main is not None and title is not None and page.meta.get("search") is not False:
            named = " ".join(title.text().split()).removesuffix(" – factorykit")
            rows += sections(main, page.href, named, str(page.meta.get("keywords") or ""))
    return rows


def write(out: Path, rows: list[list[str]]) -> None:
    """Write the search index in the format of the renderer, and apply the same ranking to the search of Quarto."""
    libraries, quarto = out / "site_libs", out / "search.json"
    if quarto.is_file():
        items = [
            {"objectID": href, "href": href, "title": page, "section": heading, "also": also[0] if also else ""}
            | {"text": html.escape(text, quote=False)}
            for href, page, heading, text, *also in rows
        ]
        quarto.write_text(json.dumps(items, ensure_ascii=False), "utf-8")
        ranking = "".join((THEME / name).read_text("utf-8") for name in ("find.js", "fuse.js"))
        (libraries / "quarto-search" / "fuse.min.js").write_text(ranking, "utf-8")
    if libraries.is_dir():
        (libraries / "search.js").write_text(f"window.siteSearch = {json.dumps(rows, ensure_ascii=False)};\n", "utf-8")


def sections(main: LexborNode, href: str, title: str, keywords: str = "") -> list[list[str]]:
    """Return the entries of a page, one per heading and named row; a notebook's keywords are those of its file name."""
    tree = LexborHTMLParser(str(main.html))
    tree.strip_tags([*SKIPPED])
    rows, anchor = [[href, title, "", ""]], ""
    for node in tree.root.traverse(include_text=True) if tree.root else ():
        if node.is_text_node:
            headings = (ancestor for ancestor in ancestors(node) if _is_heading(ancestor))
            rows[-1][2 if next(headings, None) is not None else 3] += f"{node.text()} "
            continue
        anchor = node.attributes.get("id") or anchor
        if _is_heading(node):
            rows.append([f"{href}#{anchor}", title, "", ""])
    rows = [[*row[:2], *(" ".join(text.split())[:MAX_SECTION_LETTERS] for text in row[2:])] for row in rows]
    name = re.sub(r"^\d+-|-", " ", PurePosixPath(href).stem).strip() if href.startswith("notebooks/") else keywords
    rows[0].append(name)
    return [row for row in rows if row[2] or row[3] or any(row[4:])]


def _is_heading(node: LexborNode) -> bool:
    return node.tag in ("h2", "h3") or node.attributes.get("class") == "fk-name"
