"""Words that lead to evidence: citations in tables to the page of their source, audited documents to their audit."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from factorykit.site.markup import above, fill, made
from factorykit.site.shelf import Shelf, load
from factorykit.site.sources import Project

DOCUMENT: Final = re.compile(r"\b([Dd])ocument (00\d)\b")
KEPT: Final = {"a", "pre", "code", "script", "style", "svg", "h1", "h2", "h3", "title"}
"""Elements whose words stay as they are."""


def add(project: Project, pages: Mapping[str, LexborHTMLParser]) -> None:
    """Let citations and audited documents on every page of the project lead to what they name."""
    shelf = load(project.root / "data")
    if shelf is None:
        return
    sources, documents = _sources(shelf), _documents(shelf)
    for page in project.pages:
        if page.href not in pages:
            continue
        root = "../" * (len(PurePosixPath(page.href).parts) - 1)
        _cite(pages[page.href], sources, root)
        if page.is_notebook and "audit" not in page.href:
            _name(pages[page.href], documents, root)


def _sources(shelf: Shelf) -> dict[str, str]:
    """Return the keys of sources by their titles and citations."""
    known: dict[str, str] = {}
    for key, row in shelf.cited.items():
        said = [str(row[name]) for name in ("title", "author", "published") if row.get(name)]
        known |= {" ".join(text.split()): key for text in (said[0] if said else "", ". ".join(said)) if text}
    return known


def _cite(read: LexborHTMLParser, known: dict[str, str], root: str) -> None:
    """Let each cell of a table that is the citation or the title of a source lead to that source's page."""
    cells = [cell for cell in read.css("td") if not cell.css_first("a")]
    led = [(cell, known[text]) for cell in cells if (text := " ".join(cell.text().split())) in known]
    for cell, key in led:
        text = html.escape(" ".join(cell.text().split()))
        fill(cell, made(f'<a href="{root}things/sources/{key}.html">{text}</a>'))


def _documents(shelf: Shelf) -> dict[str, str]:
    """Return what sort of text each audited document is, by its number: the words in brackets that end its title."""
    titles = {key: str(row["title"]) for key, row in shelf.cited.items() if key.startswith("seed_")}
    sorts = {key.removeprefix("seed_"): re.search(r"\((\w[^()]*)\)$", title) for key, title in titles.items()}
    return {number: found[1].partition(" with ")[0] for number, found in sorts.items() if found}


def _name(read: LexborHTMLParser, documents: dict[str, str], root: str) -> None:
    """Call the audited documents by what they are, and let them lead to their audit."""

    def named(found: re.Match[str]) -> str:
        sort = documents.get(found[2])
        if not sort:
            return found[0]
        article = "an" if sort[0] in "aeiou" else "a"
        said = f"{article.capitalize() if found[1] == 'D' else article} {sort}"
        return f'<a href="{root}report/audit-seed-{found[2]}.html">{said}</a>'

    texts = [node for node in read.root.traverse(include_text=True) if node.is_text_node] if read.root else []
    found = [node for node in texts if DOCUMENT.search(node.text()) and not KEPT & {each.tag for each in above(node)}]
    for node in found:
        node.replace_with(made(f"<span>{DOCUMENT.sub(named, html.escape(node.text(), quote=False))}</span>"))
