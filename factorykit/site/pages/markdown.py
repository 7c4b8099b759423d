"""Markdown of generated pages, and the only place where text from tables is escaped.

:func:`heading`, :func:`table`, :func:`callout` and :func:`front` accept plain text and escape it; text that
is already Markdown is :class:`Marked`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

ADDRESS = "%/:?#@!$&'*+,;=~"
"""Unquoted characters of an address besides letters and digits; brackets and spaces would end the address."""
MARKS = re.compile(r"([\\`*{}\[\]<>#|$^~@&]|(?<!\w)_|_(?!\w))")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
BLOCK_START = re.compile(r"^(?:[-+](?=[-\s]|$)|[:%])")
LIST_START = re.compile(r"^(\(?\w{1,9})([.)])(?=\s|$)")


class Marked(str):
    """Text that is already Markdown and is not escaped."""

    __slots__ = ()


def escaped(text: object) -> Marked:
    r"""Escape plain text as one line of Markdown; text between backticks becomes code.

    >>> escaped("a <b> in `x_1`\nand *more*")
    'a \\<b\\> in `x_1` and \\*more\\*'
    """
    if isinstance(text, Marked):
        return text
    line = " ".join(str(text).split())
    pieces, end = [], 0
    for match in CODE.finditer(line):
        pieces += [MARKS.sub(r"\\\1", line[end : match.start()]), code(match[2])]
        end = match.end()
    shown = "".join([*pieces, MARKS.sub(r"\\\1", line[end:])])
    return Marked(LIST_START.sub(r"\1\\\2", BLOCK_START.sub(r"\\\g<0>", shown)))


def code(text: object) -> Marked:
    """Return any text as inline code.

    >>> code("a`b")
    '`` a`b ``'
    """
    line = _without_shortcodes(" ".join(str(text).split()))
    if not line:
        return Marked("")
    ticks = _ticks(line, least=1)
    gap = " " if "`" in line else ""
    return Marked(f"{ticks}{gap}{line}{gap}{ticks}")


def code_block(text: str, language: str = "") -> Marked:
    """Return any text as a code block."""
    ticks = _ticks(text, least=3)
    return Marked(f"{ticks}{language}\n{_without_shortcodes(text)}\n{ticks}")


def _ticks(text: str, least: int) -> str:
    return "`" * max(least, *(len(run) + 1 for run in re.findall(r"`+", text)), 0)


def _without_shortcodes(text: str) -> str:
    """Escape Quarto shortcodes, which are expanded in code blocks too."""
    return re.sub(r"\{\{(?=<)", "{{ ", text)


def math(latex: str) -> Marked:
    r"""Return inline LaTeX with dollar signs escaped.

    >>> math(r"\text{5$}")
    '$\\text{5\\$}$'
    """
    inside = re.sub(r"(\\.)|([$\\])", lambda match: match[1] or "\\" + match[2], " ".join(latex.split()))
    return Marked(f"${inside}$")


def link(text: object, page: str, anchor: str = "") -> Marked:
    """Return a link to a generated page or an anchor on it; paths are relative to the folder ``report``."""
    return Marked(f"[{escaped(text)}](/report/{page}.qmd{f'#{anchor}' if anchor else ''})")


def browser(text: object, table: str, row: str = "") -> Marked:
    """Return a link to the rows of a table, or to one of them, on the page of `factorykit.site.browse`."""
    return Marked(f"[{escaped(text)}](/tables/{table}.html{f'?q={quote(row)}' if row else ''})")


def linked(text: object, address: str | None) -> Marked:
    """Return a link to a web address, or the plain text if there is none."""
    if not address or not re.match(r"https?://", address):
        return escaped(text)
    return Marked(f"[{escaped(text)}]({quote(address, safe=ADDRESS)})")


def dashed(name: str) -> str:
    """Return a name as an anchor: letters, digits and dashes.

    >>> dashed("checkpoint_write_s"), dashed('x"}<b>')
    ('checkpoint-write-s', 'x-b-')
    """
    return re.sub(r"[^\w-]+|[_.]", "-", name)


def front(title: str, description: str, **more: Any) -> Marked:
    """Return the front matter of a page: title, description and options of Quarto."""
    head = {"title": escaped(title), "description": escaped(description), **more}
    return Marked(f"---\n{json.dumps(head, ensure_ascii=False)}\n---\n")


def heading(text: str, anchor: str) -> Marked:
    """Return a heading of the second level."""
    return Marked(f"## {escaped(text)} {{#{anchor}}}")


def table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[object]]) -> Marked:
    """Return a table; a column is a name and a rule that gives the width (length) and the alignment (colon)."""
    lines = ["|".join(["", *(f" {escaped(name)} " for name, _ in columns), ""])]
    lines.append("|".join(["", *(rule for _, rule in columns), ""]))
    lines += ["|".join(["", *(f" {escaped(cell)} " for cell in row), ""]) for row in rows]
    return Marked("\n".join(lines))


def callout(kind: str, title: str, *parts: str) -> Marked:
    """Return a collapsed callout; its parts are Markdown."""
    opening = f'::: {{.callout-{kind} collapse="true"}}'
    return Marked("\n\n".join([opening, f"## {escaped(title)}", *(part for part in parts if part), ":::"]))
