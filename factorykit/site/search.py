"""The search: places of the site, cut from finished pages, and one way to rank them, whoever rendered."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from factorykit.site.sources import Project

THEME: Final = Path(__file__).parent / "theme"
LONGEST: Final = 3000
"""Letters of a section that are searched."""


def places(project: Project, pages: Mapping[str, LexborHTMLParser]) -> list[list[str]]:
    """Return the places of the project's pages: address, page, heading, text, other names."""
    rows: list[list[str]] = []
    for page in project.pages:
        read = pages.get(page.href)
        main = read.css_first("main") if read else None
        title = read.css_first("h1.title, title") if read else None
        if main is not None and title is not None and page.meta.get("search") is not False:
            rows += Sections.of(str(main.html), page.href, " ".join(title.text().split()))
    return rows


def write(out: Path, rows: list[list[str]]) -> None:
    """Write the places to where the search of the renderer looks for them, and let Quarto's rank as the other does."""
    libraries, quarto = out / "site_libs", out / "search.json"
    if quarto.is_file():
        told = [
            {"objectID": href, "href": href, "title": page, "section": heading, "also": also[0] if also else ""}
            | {"text": html.escape(text, quote=False)}
            for href, page, heading, text, *also in rows
        ]
        quarto.write_text(json.dumps(told, ensure_ascii=False), "utf-8")
        ranking = "".join((THEME / name).read_text("utf-8") for name in ("find.js", "fuse.js"))
        (libraries / "quarto-search" / "fuse.min.js").write_text(ranking, "utf-8")
    elif libraries.is_dir():
        (libraries / "search.js").write_text(f"window.siteSearch = {json.dumps(rows, ensure_ascii=False)};\n", "utf-8")


class Sections(HTMLParser):
    """Cuts a page into places for the search, sections and named rows: address, page, heading and text."""

    SKIP = frozenset({"script", "style", "svg", "math", "button", "form", "header", "nav"})
    INLINE = frozenset({"a", "abbr", "b", "code", "em", "i", "kbd", "mark", "small", "span", "strong", "sub", "sup"})

    def __init__(self, href: str, title: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = [[href, title, "", ""]]
        self.href, self.title, self.skipped, self.anchor, self.heading = href, title, 0, "", ""

    @classmethod
    def of(cls, body: str, href: str, title: str) -> list[list[str]]:
        """Return the places of a page; a notebook is also found by the words of its file's name."""
        parser = cls(href, title)
        parser.feed(body)
        rows = [[*row[:2], *(" ".join(text.split())[:LONGEST] for text in row[2:])] for row in parser.rows]
        also = re.sub(r"^\d+-|-", " ", PurePosixPath(href).stem).strip() if href.startswith("notebooks/") else ""
        rows[0].append(also)
        return [row for row in rows if row[2] or row[3]]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a place at a heading or a named row."""
        found = dict(attrs)
        self.skipped += tag in self.SKIP
        self.anchor = found.get("id") or self.anchor
        if tag in ("h2", "h3") or found.get("class") == "fk-name":
            self.heading = tag
            self.rows.append([f"{self.href}#{self.anchor}", self.title, "", ""])

    def handle_endtag(self, tag: str) -> None:
        """End a heading, and a word where no text flows on."""
        self.skipped -= tag in self.SKIP
        if tag == self.heading:
            self.heading = ""
        if tag not in self.INLINE or tag == "span":
            self.rows[-1][3] += " "

    def handle_data(self, data: str) -> None:
        """Add words to the heading or the text."""
        if not self.skipped:
            self.rows[-1][2 if self.heading else 3] += data
