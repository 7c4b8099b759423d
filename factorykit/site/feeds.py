"""Page metadata, the Atom feed of data changes, robots.txt, and page footers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, cast

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.charts.embed import script_json
from factorykit.site.markup import new_element
from factorykit.site.page_layout import PageContext, template
from factorykit.site.sources import Page, Project
from factorykit.site.table_data import DataPackage, load

PAGE_SOURCES: Final = {
    "report/methods": ("factorykit/formulas", "factorykit/core/quantities.csv"),
    "report/vocabulary": ("factorykit/core/quantities.csv", "factorykit/formulas"),
    "report/python/api": ("factorykit/",),
    "report/python": ("factorykit/site/recipes", "data/"),
    "report/data": ("data/",),
    "report/news": ("data/",),
    "report/audit": ("data/", "factorykit/model/validation"),
}
"""Generated pages and their sources."""
AUTHOR: Final = "The factorykit founders"
FEED: Final = "feed.xml"
MAX_ENTRIES: Final = 30
"""Maximum number of entries of the feed; an entry holds the changes of a table on one day."""
MAX_LISTED: Final = 20
"""Maximum number of values listed in an entry."""
MAX_DESCRIPTION_LETTERS: Final = 160
"""Maximum length of a description."""


def add(project: Project, pages: Mapping[str, LexborHTMLParser], out: Path, context: PageContext) -> None:
    """Write the feed and robots.txt into a rendered folder, and add metadata and footers to its pages."""
    package = load(project.root / "data")
    if package:
        _feed(package, out / FEED, context)
    sitemap = f"Sitemap: {context.address('sitemap.xml')}\n" if context.site else ""
    (out / "robots.txt").write_text(f"User-agent: *\nAllow: /\n{sitemap}", "utf-8")
    if context.site:
        _sitemap(out, context)
    for page in project.pages:
        if page.href in pages:
            day = context.changed(*_sources_of(page))
            _add_metadata(pages[page.href], page, out, context, package, day)
            if page.href != "404.html":
                _add_footer(pages[page.href], page, context, day)


# ---------------------------------------------------------------------------------------------------------- every page


def _sources_of(page: Page) -> tuple[str, ...]:
    source = str(page.source)
    return next((files for name, files in PAGE_SOURCES.items() if source.startswith(name)), (source,))


def _add_metadata(
    read: LexborHTMLParser, page: Page, out: Path, context: PageContext, package: DataPackage | None, day: str
) -> None:
    """Add metadata for sharing, citing and indexing, and the address of the feed, to the head of a page."""
    head, root = cast("LexborNode", read.head), "../" * (len(page.source.parts) - 1)
    description = read.css_first('meta[name="description"]')
    about = str(description.attributes["content"]) if description else _first_words(read)
    title = read.css_first("title")
    tags = [] if description else [f'<meta name="description" content="{html.escape(about)}">']
    picture = f"charts/{_card(read)}.card.png" if _card(read) else ""
    named = title.text() if title else page.title
    tags += [f'<meta property="og:{name}" content="{html.escape(text)}">' for name, text in (
        ("title", named), ("description", about), ("type", "article"), ("site_name", "factorykit"),
        *([("image", context.address(picture) if context.site else root + picture)] if picture else []),
    )]  # fmt: skip
    tags += [f'<meta name="citation_{name}" content="{html.escape(text)}">' for name, text in (
        ("title", page.title), ("author", AUTHOR), ("publication_date", day.replace("-", "/")), ("language", "en"),
        *([("fulltext_html_url", context.address(page.href))] if context.site else []),
    )]  # fmt: skip
    if (out / FEED).is_file():
        tags.append(f'<link rel="alternate" type="application/atom+xml" title="Changed data" href="{root}{FEED}">')
    if context.site:
        tags.append(f'<link rel="canonical" href="{context.address(page.href)}">')
    if page.href == "report/data.html" and package:
        tags.append(f'<script type="application/ld+json">{script_json(_catalogue(package, context))}</script>')
    for node in cast("LexborNode", LexborHTMLParser(f"<head>{''.join(tags)}</head>").head).iter():
        head.insert_child(node)


def _first_words(read: LexborHTMLParser) -> str:
    texts = (" ".join(paragraph.text().split()) for paragraph in read.css("main p"))
    return shorten(next((text for text in texts if len(text) > 40), ""), MAX_DESCRIPTION_LETTERS, placeholder=" …")


def _card(read: LexborHTMLParser) -> str:
    """Return the name of the first chart of a page; its card is the preview of a shared link."""
    link = read.css_first(".fk-own a")
    return Path(str(link.attributes["href"])).stem if link else ""


def _add_footer(read: LexborHTMLParser, page: Page, context: PageContext, day: str) -> None:
    """Add the footer of a page: its date, its citation, and links to edit and report."""
    main = read.css_first("main")
    if main is None:
        return
    source, repository = str(page.source), context.repository
    links = []
    if repository and source in context.dates:
        links.append(f'<a href="{repository}/edit/main/{source}">Edit this page</a>')
    if repository:
        links.append(f'<a href="{repository}/issues/new?title={html.escape(page.href)}">Report a mistake</a>')
    key = re.sub(r"\W+", "_", page.href.removesuffix(".html"))
    cited = (
        f"@misc{{factorykit_{key},\n  title        = {{{{{' '.join(page.title.split())}}}}},\n"
        f"  author       = {{{{{AUTHOR}}}}},\n  year         = {{{day[:4]}}},\n"
        f"  howpublished = {{factorykit {context.version}, {context.address(page.href)}}}\n}}"
    )
    node = new_element(
        f'<div class="fk-signed"><p>factorykit {context.version}. This page changed last on <time>{day}</time>. '
        f"{' '.join(links)}</p><details><summary>Cite this page</summary><pre><code>{html.escape(cited)}</code></pre>"
        "</details></div>"
    )
    arrows = main.css_first("nav.arrows")
    if arrows:
        arrows.insert_before(node)
    else:
        main.insert_child(node)


def _catalogue(package: DataPackage, context: PageContext) -> dict[str, Any]:
    """Return the schema.org description of all tables."""
    return {
        "@context": "https://schema.org",
        "@type": "DataCatalog",
        "name": "factorykit",
        "version": package.version,
        "dateModified": context.changed("data"),
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "dataset": [
            {"@type": "Dataset", "name": table.resource["title"], "url": context.address(f"tables/{name}.html")}
            | {"description": shorten(table.resource["description"], 400, placeholder=" …")}
            for name, table in package.tables.items()
        ],
    }


def _sitemap(out: Path, context: PageContext) -> None:
    files = {file.relative_to(out).as_posix() for file in out.rglob("*.html") if ".embed." not in file.name}
    pages = [context.address(page) for page in sorted(files - {"404.html"})]
    (out / "sitemap.xml").write_text(template("sitemap.xml").render(pages=pages), "utf-8")


# ------------------------------------------------------------------------------------------------------------ the feed


def news(package: DataPackage) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield the changes of the tables, newest first: the day, the table, and its changes."""
    table = package.tables.get("data_changes")
    if table is None:
        return
    frame = table.frame.sort("day", "table", descending=[True, False], maintain_order=True)
    for (day, name), rows in frame.group_by("day", "table", maintain_order=True):
        yield str(day), str(name), rows.to_dicts()


def changes_text(rows: list[dict[str, Any]]) -> str:
    """Return a summary of the number of changes.

    >>> changed, added = {"row": "a", "change": "changed"}, {"row": "b", "change": "added"}
    >>> changes_text([changed, changed, added])
    '2 values changed, 1 row added'
    """
    counts = {kind: [row for row in rows if row["change"] == kind] for kind in ("changed", "added", "removed")}
    sized = [
        (kind, len(those) if kind == "changed" else len({row["row"] for row in those}))
        for kind, those in counts.items()
    ]
    words = {"changed": "value", "added": "row", "removed": "row"}
    return ", ".join(f"{n:,} {words[kind]}{'' if n == 1 else 's'} {kind}" for kind, n in sized if n)


def _feed(package: DataPackage, file: Path, context: PageContext) -> None:
    """Write the changes of the data as an Atom feed."""
    entries = []
    for day, name, rows in islice(news(package), MAX_ENTRIES):
        title = package.tables[name].resource["title"] if name in package.tables else name
        values = (
            f"{row['row']}, {row['column']}: {row['was']} → {row['now']}" for row in rows if row["change"] == "changed"
        )
        others = dict.fromkeys(f"{row['row']} {row['change']}" for row in rows if row["change"] != "changed")
        lines, page = [*values, *others][:MAX_LISTED], context.address(f"tables/data_changes.html?q={name}")
        entry = {"day": day, "name": name, "title": f"{title}: {changes_text(rows)}", "lines": lines, "page": page}
        entries.append(entry)
    if entries:
        page = context.address("report/data.html")
        file.write_text(template("feed.xml").render(entries=entries, author=AUTHOR, page=page), "utf-8")
