"""Automatic links from citations, keys, names and audited documents to their pages."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.core.vocabulary import vocabulary
from factorykit.site.markup import ancestors, following, new_element, preceding, set_content
from factorykit.site.sources import Project
from factorykit.site.table_data import DataPackage, load

DOCUMENT: Final = re.compile(r"\b([Dd])ocument (00\d)\b")
KEY: Final = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b")
WORK: Final = re.compile(r"\b([A-Z][\w-]+)(?: et al\.| and [A-Z][\w-]+)? (\d{4})\b")
PREPRINT: Final = re.compile(r"\barXiv[: ](\d{4}\.\d{5})")
TABLES: Final = re.compile(r"\b[Tt]ables? \w+(?:, \w+)*(?: and \w+)?|\b(?!the )\w+ table\b|\b[Pp]resets\b")
UNLINKED_ELEMENTS: Final = {"a", "pre", "code", "script", "style", "svg", "h1", "h2", "h3", "title"}
"""Elements in which no links are added."""
VOCABULARY_PAGE: Final = "report/vocabulary.html"
"""The page with the meaning, formula and inputs of each quantity."""
DIGIT: Final = re.compile(r"\d")
WITHIN: Final = {"figure", "details", "table", "li"}
"""Elements whose paragraphs belong to a component with its own link."""
KINDS: Final = ("clusters", "sites", "accelerators", "runs", "models")
"""Tables of entities linked by name; the first table that contains a name is used."""
ROWS: Final = {"architectures": "architecture", "held_out": "rows_without", "prices": "price", "training_runs": "id"}
"""Tables whose rows have no page, and the column that identifies a row."""


def add(project: Project, pages: Mapping[str, LexborHTMLParser]) -> None:
    """Link citations, keys and audited documents on every page of the project."""
    package = load(project.root / "data")
    if package is None:
        return
    known, documents = LinkTargets(package, pages), _documents(package)
    for page in project.pages:
        if page.href not in pages:
            continue
        root = "../" * (len(PurePosixPath(page.href).parts) - 1)
        if page.href != VOCABULARY_PAGE:
            _cells(pages[page.href], known.cells, root)
        if page.is_notebook:
            _computed(pages[page.href])
            _replace(pages[page.href], KEY, lambda match, root=root: known.title(match[0], root))
        if page.is_notebook and "audit" not in page.href:
            _replace(pages[page.href], DOCUMENT, lambda match, root=root: _document_kind(match, documents, root))


@dataclass(frozen=True)
class LinkTargets:
    """Linked names and their addresses from the root of the site."""

    package: DataPackage
    pages: Mapping[str, LexborHTMLParser]

    @cached_property
    def titles(self) -> dict[str, str]:
        """Titles of sources by key."""
        return {key: _line(row["title"]) for key, row in self.package.cited.items()}

    @cached_property
    def cells(self) -> dict[str, tuple[str, str]]:
        """Text and address of the link for each possible content of a cell: quantity, title, name or key."""
        links: dict[str, tuple[str, str]] = {}
        for this in reversed([*vocabulary().values()]):
            address = f"{VOCABULARY_PAGE}#{this.name.replace('_', '-')}"
            links |= {words: (words, address) for words in (this.label, this.title, f"{this.label} [{this.unit}]")}
        for name, column in ROWS.items():
            for row in self.package.find(name):
                links[row[column]] = (str(row.get("name") or row[column]), f"tables/{name}.html?q={quote(row[column])}")
        for kind in reversed(KINDS):
            for key, name in self.package.names.get(kind, {}).items():
                names = (name, key) if "_" in key else (name,)
                links |= dict.fromkeys(names, (name, f"entities/{kind}/{key}.html"))
        for key, row in self.package.cited.items():
            title = self.titles[key]
            whole = ". ".join(_line(row[name]) for name in ("title", "author", "published") if row.get(name))
            page = f"entities/sources/{key}.html"
            links |= {title: (title, page), whole: (whole, page)} | ({key: (title, page)} if "_" in key else {})
        return links

    @cached_property
    def works(self) -> dict[str, str]:
        """Addresses of the works in the bibliographies by first author and year."""
        addresses: dict[str, str] = {}
        for href, page in self.pages.items():
            for entry in page.css("[id^=ref-]") if href.startswith("report/methods") else ():
                named = re.match(r"([\w-]+).*?\b(\d{4})\b", _line(entry.text()))
                if named:
                    addresses.setdefault(f"{named[1]} {named[2]}", f"{href}#{entry.attributes['id']}")
        return addresses

    @cached_property
    def preprints(self) -> dict[str, str]:
        """Keys of the sources that are preprints, by number."""
        matches = {
            key: re.search(r"arxiv\.org/\w+/(\d{4}\.\d{5})", str(row["url"])) for key, row in self.package.cited.items()
        }
        return {number[1]: key for key, number in matches.items() if number}

    def title(self, key: str, root: str) -> str:
        """Return the key of a source as a link with its title; return any other word unchanged."""
        link = f'<a href="{root}entities/sources/{key}.html">'
        return f"{link}{html.escape(self.titles[key])}</a>" if key in self.titles else key

    def by_chart(self, payload: Mapping[str, Any], root: str) -> dict[str, dict[str, Any]]:
        """Return the links of the texts of a chart as text and address; for key fields, the table of the key."""
        tables = dict(self._by_table(payload))
        texts = {text for place, text in _texts(payload) if place not in tables}
        texts |= {column["title"] for column in payload.get("columns", ())} | {*_titles(payload).values()}
        known = ((text, self.cells.get(text.rpartition("@")[2])) for text in sorted(texts))
        rows = {text: led for text, led in known if led}
        quantities = {
            entry["name"]: (entry["label"], f"{VOCABULARY_PAGE}#{entry['name'].replace('_', '-')}")
            for entry in (*payload.get("readouts", ()), *payload.get("assumptions", ()))
        }
        led = rows | self._line(str(payload.get("source", ""))) | self._presets(payload) | quantities
        return {
            "leads": {text: [words, f"{root}{address}"] for text, (words, address) in led.items()},
            "keys": {field: f"{root}tables/{name}.html?q=" for field, name in tables.items()},
        }

    def _line(self, line: str) -> dict[str, tuple[str, str]]:
        """Return the links of a source line: tables, works, preprints, documents, sources by their first words."""
        addresses = {
            word: f"tables/{word.lower()}.html"
            for listed in TABLES.finditer(line)
            for word in re.findall(r"\w+", listed[0])
            if word.lower() in self.package.tables
        }
        addresses |= {work[0]: self.works.get(f"{work[1]} {work[2]}", "") for work in WORK.finditer(line)}
        for number in PREPRINT.finditer(line):
            addresses[number[0]] = (
                f"entities/sources/{self.preprints[number[1]]}.html" if number[1] in self.preprints else ""
            )
        addresses |= {document[0]: f"report/audit/seed-{document[2]}.html" for document in DOCUMENT.finditer(line)}
        for key, title in self.titles.items():
            short = re.sub(r"[,(].*", "", title).strip()
            if " " in short and short in line and short not in str(self.package.cited[key]["author"]):
                addresses.setdefault(short, f"entities/sources/{key}.html")
        return {words: (words, address) for words, address in addresses.items() if address}

    def _presets(self, payload: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Return the rows of the presets of a chart, by label."""
        table = self.package.tables.get("presets")
        keys = dict(table.frame.select("label", "preset").iter_rows()) if table else {}
        labels = [preset["label"] for preset in payload.get("presets", ()) if preset["label"] in keys]
        return {label: (label, f"tables/presets.html?q={keys[label]}") for label in labels}

    def _by_table(self, payload: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the fields of a chart that hold keys of a table whose rows have no page, each with the table."""
        held: dict[str, set[str]] = defaultdict(set)
        for field, text in sorted(_texts(payload)):
            held[field].add(text)
        keys = {
            name: set(self.package.tables[name].frame[column])
            for name, column in ROWS.items()
            if name in self.package.tables
        }
        return [(field, name) for field, texts in held.items() for name, known in keys.items() if texts <= known]


def _texts(payload: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the texts in the rows of a chart, each with the title of its field."""
    sets = [rows for spec in payload["specs"] for rows in spec.get("datasets", {}).values()]
    called = _titles(payload)
    cells = (cell for rows in sets for row in rows for cell in row.items())
    return {(called.get(field) or field, text) for field, text in cells if isinstance(text, str)}


def _titles(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return the titles of the fields in the tooltips of a chart."""
    return {field["field"]: field["title"] for spec in payload["specs"] for field in _tips(spec) if "title" in field}


def _tips(spec: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of the tooltips of a specification."""
    if isinstance(spec, list):
        for part in spec:
            yield from _tips(part)
    elif isinstance(spec, dict):
        shown = spec.get("tooltip")
        yield from (shown if isinstance(shown, list) else ())
        for name, part in spec.items():
            yield from _tips(part) if name not in ("datasets", "tooltip") else ()


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _cells(page: LexborHTMLParser, known: Mapping[str, tuple[str, str]], root: str) -> None:
    """Link each table cell that names a quantity, a source, an entity or a row."""
    for row in page.css("tr"):
        plain = {cell: _line(cell.text()) for cell in row.css("th, td") if not cell.css_first("a")}
        led = {cell: known[text] for cell, text in plain.items() if text in known}
        named = {address for cell, (words, address) in led.items() if words == plain[cell]}
        for cell, (words, address) in led.items():
            text = plain[cell] if address in named else words
            set_content(cell, new_element(f'<a href="{root}{address}">{html.escape(text)}</a>'))


def _computed(page: LexborHTMLParser) -> None:
    """Link the unlinked numbers of a notebook to the code that computes or checks them."""
    for cell in page.css("div.cell"):
        body = cell.css_first("details.code-fold [id]")
        if body is not None and cell.css_first("table") and cell.css_first("table a[href]") is None:
            (cell.css_first("figcaption") or cell).insert_child(_to_code(body, "How it is computed"))
    for paragraph in page.css("main > p, main > section p"):
        leads = paragraph.css_first("a[href]") is not None or bool(WITHIN & {node.tag for node in ancestors(paragraph)})
        body = _code_of(paragraph) if DIGIT.search(paragraph.text()) and not leads else None
        if body is not None:
            paragraph.insert_child(_to_code(body, "How it is computed", "✓"))


def _code_of(paragraph: LexborNode) -> LexborNode | None:
    """Return the code of the checks after a sentence, else the nearest code, of the same section."""
    after = [code for node in following(paragraph) if (code := node.css_first("details.code-fold"))]
    before = [code for node in preceding(paragraph) if (code := node.css_first("details.code-fold"))]
    checks = [code for code in after if "Checks" in code.css_first("summary").text()]  # type: ignore[union-attr]
    fold = next(iter([*checks, *before, *after]), None)
    return fold and fold.css_first("[id]")


def _to_code(body: LexborNode, title: str, sign: str = "") -> LexborNode:
    place, words = body.attributes["id"], html.escape(sign or title)
    named = f' aria-label="{title}"' if sign else ""
    return new_element(f'<span class="fk-how"> <a href="#{place}" title="{title}"{named}>{words}</a></span>')


def _documents(package: DataPackage) -> dict[str, str]:
    """Return the kind of each audited document, by number: the parenthesized end of its title."""
    titles = {key: str(row["title"]) for key, row in package.cited.items() if key.startswith("seed_")}
    sorts = {key.removeprefix("seed_"): re.search(r"\((\w[^()]*)\)$", title) for key, title in titles.items()}
    return {number: match[1].partition(" with ")[0] for number, match in sorts.items() if match}


def _document_kind(match: re.Match[str], documents: Mapping[str, str], root: str) -> str:
    """Return the kind of an audited document as a link to its audit."""
    sort = documents.get(match[2])
    if not sort:
        return match[0]
    article = "an" if sort[0] in "aeiou" else "a"
    kind = f"{article.capitalize() if match[1] == 'D' else article} {sort}"
    return f'<a href="{root}report/audit/seed-{match[2]}.html">{kind}</a>'


def _replace(page: LexborHTMLParser, sought: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> None:
    """Replace the matches of a pattern in the text nodes of a page by markup."""
    texts = [node for node in page.root.traverse(include_text=True) if node.is_text_node] if page.root else []
    nodes = [
        node
        for node in texts
        if sought.search(node.text()) and not UNLINKED_ELEMENTS & {ancestor.tag for ancestor in ancestors(node)}
    ]
    for node in nodes:
        before = html.escape(node.text(), quote=False)
        if (after := sought.sub(replacement, before)) != before:
            node.replace_with(new_element(f"<span>{after}</span>"))
