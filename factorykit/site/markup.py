"""Parsed trees of rendered pages, read once, edited by successive steps and written once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.site.sources import Project

ADDED: Final = (
    ".fk-own, .fk-how, .fk-origin, .fk-signed, img.fk-thumb, link[type='application/atom+xml'], "
    "link[rel='canonical'], script[type='application/ld+json'], meta[name^='citation_'], meta[property^='og:'], "
    "meta[http-equiv='Content-Security-Policy']"
)
"""Elements added by postprocessing, removed before a page is postprocessed again."""


def read(project: Project, out: Path) -> dict[str, LexborHTMLParser]:
    """Return the pages of a project in a rendered folder by relative path."""
    places = {page.href: out / page.href for page in project.pages}
    pages = {href: LexborHTMLParser(file.read_text("utf-8")) for href, file in places.items() if file.is_file()}
    for page in pages.values():
        for node in page.css(ADDED):
            node.decompose()
    return pages


def write(pages: Mapping[str, LexborHTMLParser], out: Path) -> None:
    """Write the pages back to their files."""
    for href, page in pages.items():
        (out / href).write_text(str(page.html), "utf-8")


def new_element(text: str) -> LexborNode:
    """Return the first element of an HTML fragment."""
    return cast("LexborNode", cast("LexborNode", LexborHTMLParser(text).body).child)


def ancestors(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the ancestors of a node, the nearest first."""
    parent = node.parent
    while parent is not None and not parent.is_document_node:
        yield parent
        parent = parent.parent


def following(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the following siblings of a node."""
    while node.next is not None:
        node = node.next
        if node.is_element_node:
            yield node


def preceding(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the preceding siblings of a node, the nearest first."""
    while node.prev is not None:
        node = node.prev
        if node.is_element_node:
            yield node


def set_content(node: LexborNode, content: str | LexborNode) -> None:
    """Replace the content of a node by a text or an element."""
    for child in [*node.iter(include_text=True)]:
        child.decompose()
    node.insert_child(content)
