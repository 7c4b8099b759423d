"""Markdown of printed pages. Text from tables is escaped here and nowhere else.

:func:`heading`, :func:`table`, :func:`callout` and :func:`front` take plain text and escape it; text that
is already markdown is :class:`Marked`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

ADDRESS = "%/:?#@!$&'*+,;=~"
"""Characters of an address that are not quoted, besides letters and digits; brackets and blanks would end it."""
MARKS = re.compile(r"([\\`*{}\[\]<>#|$^~@&]|(?<!\w)_|_(?!\w))")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
BLOCK_START = re.compile(r"^(?:[-+](?=[-\s]|$)|[:%])")
LIST_START = re.compile(r"^(\(?\w{1,9})([.)])(?=\s|$)")


class Marked(str):
    """Text that is markdown already: its marks are meant."""

    __slots__ = ()


def escaped(text: object) -> Marked:
    r"""Return plain text as one line of markdown that shows it; text between backticks is shown as code.

    >>> escaped("a <b> in `x_1`\nand *more*")
    'a \\<b\\> in `x_1` and \\*more\\*'
    """
    if isinstance(text, Marked):
        return text
    line = " ".join(str(text).split())
    pieces, end = [], 0
    for found in CODE.finditer(line):
        pieces += [MARKS.sub(r"\\\1", line[end : found.start()]), code(found[2])]
        end = found.end()
    shown = "".join([*pieces, MARKS.sub(r"\\\1", line[end:])])
    return Marked(LIST_START.sub(r"\1\\\2", BLOCK_START.sub(r"\\\g<0>", shown)))


def code(text: object) -> Marked:
    """Return text as code within a sentence, whatever it holds.

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
    """Return text as a block of code, whatever it holds."""
    ticks = _ticks(text, least=3)
    return Marked(f"{ticks}{language}\n{_without_shortcodes(text)}\n{ticks}")


def _ticks(text: str, least: int) -> str:
    return "`" * max(least, *(len(run) + 1 for run in re.findall(r"`+", text)), 0)


def _without_shortcodes(text: str) -> str:
    """Return text in which Quarto finds nothing to put in; it looks into code, too."""
    return re.sub(r"\{\{(?=<)", "{{ ", text)


def math(latex: str) -> Marked:
    r"""Return LaTeX within a sentence; a dollar sign in it does not end it.

    >>> math(r"\text{5$}")
    '$\\text{5\\$}$'
    """
    inside = re.sub(r"(\\.)|([$\\])", lambda found: found[1] or "\\" + found[2], " ".join(latex.split()))
    return Marked(f"${inside}$")


def link(text: object, page: str, anchor: str = "") -> Marked:
    """Return text that leads to a printed page, named from the folder ``report``, or to a place on it."""
    return Marked(f"[{escaped(text)}](/report/{page}.qmd{f'#{anchor}' if anchor else ''})")


def browser(text: object, table: str, row: str = "") -> Marked:
    """Return text that leads to the rows of a table, or to one of them, on the page `factorykit.site.browse` writes."""
    return Marked(f"[{escaped(text)}](/tables/{table}.html{f'?q={quote(row)}' if row else ''})")


def linked(text: object, address: str | None) -> Marked:
    """Return text that leads to an address of the web, where there is one."""
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
    """Return a table; a column is its name and the rule below it, whose length is its width, its colon the side."""
    lines = ["|".join(["", *(f" {escaped(name)} " for name, _ in columns), ""])]
    lines.append("|".join(["", *(rule for _, rule in columns), ""]))
    lines += ["|".join(["", *(f" {escaped(cell)} " for cell in row), ""]) for row in rows]
    return Marked("\n".join(lines))


def callout(kind: str, title: str, *parts: str) -> Marked:
    """Return a folded box; its parts are markdown."""
    opening = f'::: {{.callout-{kind} collapse="true"}}'
    return Marked("\n\n".join([opening, f"## {escaped(title)}", *(part for part in parts if part), ":::"]))
