"""Every printed number links to its row, its source, its formula or the code that computes it, in one or two steps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from factorykit.site.markup import ancestors

NUMBER = re.compile(r"(?<![\w.,/#-])\d[\d,]*(?:\.\d+)?(?![\w]*[_\d])")
YEAR = re.compile(r"(19|20)\d\d")
NAMED = re.compile(
    r"\b(?:[Tt]ables?|[Ff]igures?|[Ss]ections?|[Aa]ppendix|[Nn]otebooks?|[Ll]ines?|[Dd]ocument|arXiv:?|Llama|GPT|CC BY"
    r"|TOP|factorykit)\s$"
)
"""Words before a number that is a name."""
QUIET = {"script", "style", "pre", "code", "svg", "math", "h1", "h2", "h3", "h4", "nav", "time", "button", "label"}
QUIET |= {"select", "summary", "noscript", "footer", "header"}
"""Elements whose numbers are code, drawn, or names."""
BESIDE = ("fk-signed", "fk-origin", "fk-number", "factorykit-chart", "sec-", "csl-", "soft")
PARTS = {"li", "p", "dd", "figcaption", "tr", "blockquote"}
PAGES = ("*.html", "notebooks/*.html", "report/**/*.html", "charts/*.html", "entities/*/*.html")
PARTLY = ("api", "changes", "decisions", "vocabulary", "404")
"""Pages whose numbers are arguments of calls, versions, bounds, or measurements of a decision."""
LEAST = 0.97


def numbers(page: LexborHTMLParser) -> Iterator[tuple[LexborNode, str]]:
    """Yield the numbers that a page prints, each with the text it stands in."""
    main = page.css_first("main")
    for node in main.traverse(include_text=True) if main else ():
        if not node.is_text_node or not re.search(r"\d", text := node.text()):
            continue
        around = [*ancestors(node)]
        names = " ".join(f"{each.attributes.get('class') or ''} {each.attributes.get('id') or ''}" for each in around)
        if QUIET & {each.tag for each in around} or any(word in names for word in BESIDE):
            continue
        table = next((each for each in around if each.tag == "table"), None)
        if table is not None and (heads := table.css_first("thead")) and heads.text().strip().startswith("Column"):
            continue
        for found in NUMBER.finditer(text):
            before = text[: found.start()]
            if not (YEAR.fullmatch(found[0]) or NAMED.search(before) or (len(found[0]) == 1 and table is None)):
                yield node, found[0]


def leads(node: LexborNode) -> bool:
    """Whether a link stands with a number: in its sentence, row, column, caption, or the block that explains it."""
    for each in ancestors(node):
        marks = each.attributes.get("class") or ""
        if each.tag == "a" or (each.tag in PARTS and each.css_first("a[href]")):
            return True
        if each.tag == "table" and each.css_first("th a[href]"):
            return True
        explained = each.tag == "figure" or any(word in marks for word in ("cell", "callout-body", "fk-card"))
        if explained and (each.css_first("a[href], pre")):
            return True
        if each.tag == "section":
            return each.css_first('a[href*="#ref-"], a[href*="vocabulary.html#"]') is not None
    return False


def test_numbers_link_to_their_origin(site: Path) -> None:
    found: dict[str, list[tuple[bool, str, str]]] = defaultdict(list)
    for pattern in PAGES:
        for page in sorted(site.glob(pattern)):
            if not page.stem.startswith(PARTLY) and "entities/sources" not in page.as_posix():
                read = LexborHTMLParser(page.read_text("utf-8"))
                found[pattern] += [(leads(node), number, page.stem) for node, number in numbers(read)]
    assert sum(map(len, found.values())) > 5000
    for pattern, each in found.items():
        without = [(page, number) for led, number, page in each if not led]
        assert len(without) <= (1 - LEAST) * len(each), (pattern, len(without), len(each), without[:20])
