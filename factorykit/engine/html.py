"""HTML of results in notebooks: escaped text, tables and linked sources, without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from types import MappingProxyType
from typing import Final

from factorykit.core.errors import DatasetError
from factorykit.data.tables import table

WORK: Final = re.compile(r"\b(?:doi (?P<doi>10\.[^\s,;]+)|arXiv:(?P<arxiv>\d{4}\.\d{4,5}))")
KEY: Final = re.compile(r"\b[a-z][a-z0-9_]+\b")
LEFT: Final = ' style="text-align:left"'


def html_text(text: str) -> str:
    """Return a text escaped, its dollars kept from being read as mathematics.

    >>> html_text("< $2")
    '&lt; <span>$</span>2'
    """
    return escape(text).replace("$", "<span>$</span>")


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table of texts, all of them escaped, each from the left: JupyterLab sets cells to the right.

    >>> html_table(("a",), [("<2>",)]).replace(LEFT, "")
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;2&gt;</td></tr></tbody></table>'
    """
    body = "".join(f"<tr>{''.join(f'<td{LEFT}>{html_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    columns = "".join(f"<th{LEFT}>{html_text(cell)}</th>" for cell in head)
    named = f"<caption>{html_text(caption)}</caption>" if caption else ""
    return f"<table>{named}<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>"


def linked(source: str) -> str:
    """Return a source, escaped, with links to addresses of the table of sources and to DOI and arXiv numbers.

    >>> linked("<first>, doi 10.1145/361147.361115")
    '&lt;first&gt;, <a href="https://doi.org/10.1145/361147.361115">doi 10.1145/361147.361115</a>'
    """
    text = html_text(source)
    with_works = WORK.sub(_work, text)
    return with_works if with_works != text else KEY.sub(_source, text)


def _work(match: re.Match[str]) -> str:
    address = f"https://doi.org/{match['doi']}" if match["doi"] else f"https://arxiv.org/abs/{match['arxiv']}"
    return f'<a href="{address}">{match[0]}</a>'


def _source(match: re.Match[str]) -> str:
    address = _addresses().get(match[0])
    return f'<a href="{escape(address)}">{match[0]}</a>' if address else match[0]


@cache
def _addresses() -> Mapping[str, str]:
    """Return the address of every source that has one."""
    try:
        rows = table("sources").select("source", "url").drop_nulls().collect().iter_rows()
    except DatasetError:
        return MappingProxyType({})
    return MappingProxyType({key: address for key, address in rows if address.startswith(("https://", "http://"))})
