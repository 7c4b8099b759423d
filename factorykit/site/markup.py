"""Rendered pages as trees: read once, gone over by one step after the other, written once."""

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
"""Elements that finishing adds to a page; they are removed before a page is finished again."""


def read(project: Project, out: Path) -> dict[str, LexborHTMLParser]:
    """Return the pages of a project that lie in a rendered folder, by their place in it."""
    places = {page.href: out / page.href for page in project.pages}
    pages = {href: LexborHTMLParser(file.read_text("utf-8")) for href, file in places.items() if file.is_file()}
    for page in pages.values():
        for node in page.css(ADDED):
            node.decompose()
    return pages


def write(pages: Mapping[str, LexborHTMLParser], out: Path) -> None:
    """Write the pages back to where they were read."""
    for href, page in pages.items():
        (out / href).write_text(str(page.html), "utf-8")


def made(text: str) -> LexborNode:
    """Return the first element of a piece of HTML, to be put into a page."""
    return cast("LexborNode", cast("LexborNode", LexborHTMLParser(text).body).child)


def above(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements around a node, the nearest first."""
    around = node.parent
    while around is not None and not around.is_document_node:
        yield around
        around = around.parent


def following(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements that stand behind a node, within the same one."""
    while node.next is not None:
        node = node.next
        if node.is_element_node:
            yield node


def preceding(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements that stand before a node, within the same one, the nearest first."""
    while node.prev is not None:
        node = node.prev
        if node.is_element_node:
            yield node


def fill(node: LexborNode, content: str | LexborNode) -> None:
    """Put a text or an element in the place of all that a node holds."""
    for child in [*node.iter(include_text=True)]:
        child.decompose()
    node.insert_child(content)
