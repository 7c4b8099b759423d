"""Conversion of notebooks from plain Markdown to the syntax of Quarto.

A stored notebook is readable in JupyterLab: captions below figures, links to figures and to cited works. For a page
they become the numbering, reference and citation syntax of Quarto: ``#| fig-cap``, ``@fig-rate``, ``[@young1974]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from factorykit.formulas.bibliography import bibliography

WORDS: Final = {"fig": "Figure", "tbl": "Table", "eq": "Equation"}
CHECKS: Final = "checks"
CAPTION: Final = re.compile(r"\*\*(Figure|Table) (\d+)\.\*\* (.+)", re.DOTALL)
REFERENCE: Final = re.compile(r"\[(Figure|Table|Equation) \d+\]\(#cell-id=((?:fig|tbl|eq)-[\w-]+)\)")
CITED: Final = re.compile(r"\((\[[^\]]+\]\([^()\s]+\)(?:; \[[^\]]+\]\([^()\s]+\))*)\)")
LINK: Final = re.compile(r"\[[^\]]+\]\(([^()\s]+)\)")
TAG: Final = re.compile(r"\\tag\{\d+\}")
TAGGED: Final = re.compile(rf"\s*{TAG.pattern}\s*\$\$")


def quarto(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return a notebook in the syntax of Quarto; the positions of cells are unchanged.

    >>> cells = [{"cell_type": "markdown", "source": "Seen in [Figure 1](#cell-id=fig-rate).", "id": "a"}]
    >>> quarto({"cells": cells})["cells"][0]["source"]
    ['Seen in @fig-rate.']
    """
    cells = [{**cell, "source": joined(cell["source"])} for cell in notebook["cells"]]
    for before, cell in zip([None, *cells], cells, strict=False):
        if cell["cell_type"] == "code" and CHECKS in cell.get("metadata", {}).get("tags", ()):
            cell["source"] = f"#| code-summary: Checks\n{cell['source']}"
        elif cell["cell_type"] == "markdown":
            caption = CAPTION.fullmatch(cell["source"].strip())
            if caption and before and before["cell_type"] == "code":
                kind = "fig" if caption[1] == "Figure" else "tbl"
                head = (
                    f"#| label: {before['id']}\n#| {kind}-cap: {json.dumps(_marked(caption[3]), ensure_ascii=False)}\n"
                )
                before["source"], cell["source"] = head + before["source"], ""
            elif (label := cell.get("id", "")).startswith("eq-"):
                cell["source"] = TAGGED.sub(f"\n$$ {{#{label}}}", _marked(cell["source"]))
                cell["id"] = f"cell-{label}"  # the label belongs to the equation, not to the surrounding text
            else:
                cell["source"] = _marked(cell["source"])
    return {**notebook, "cells": [{**cell, "source": cell["source"].splitlines(keepends=True)} for cell in cells]}


def numbered(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return cells with captions, equations and references numbered from one in the order of the notebook."""
    counts = dict.fromkeys(WORDS, 0)
    numbers: dict[str, str] = {}
    for cell in cells:
        kind = str(cell.get("id", "")).partition("-")[0]
        if kind in WORDS:
            counts[kind] += 1
            numbers[cell["id"]] = str(counts[kind])
    named = ""
    made = []
    for cell in cells:
        text = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            text = CAPTION.sub(lambda match, at=named: f"**{match[1]} {numbers.get(at, match[2])}.** {match[3]}", text)
            text = REFERENCE.sub(lambda match: f"[{match[1]} {numbers.get(match[2], '?')}](#cell-id={match[2]})", text)
            if cell.get("id") in numbers:
                text = TAG.sub(lambda _, at=cell["id"]: f"\\tag{{{numbers[at]}}}", text)
        named = str(cell.get("id", ""))
        made.append({**cell, "source": text.splitlines(keepends=True)})
    return made


def cite(*keys: str) -> str:
    """Return the citation of works in a notebook as links in parentheses.

    >>> cite("young1974")
    '([Young 1974](https://doi.org/10.1145/361147.361115))'
    """
    return f"({'; '.join(f'[{_by(key)}]({_address(key)})' for key in keys)})"


@cache
def _works() -> dict[str, str]:
    return {_address(key): key for key, work in bibliography().items() if "url" in work or "doi" in work}


def _address(key: str) -> str:
    work = bibliography()[key]
    return f"https://doi.org/{work['doi']}" if "doi" in work else work["url"]


def _by(key: str) -> str:
    work = bibliography()[key]
    first, *others = [name.partition(", ")[0] for name in work["author"].split(" and ")]
    several = len(others) > 1 or others == ["others"]
    by = f"{first} et al." if several else " and ".join([first, *others])
    return f"{by} {work['year']}"


def _marked(text: str) -> str:
    def cited(match: re.Match[str]) -> str:
        keys = [_works().get(address) for address in LINK.findall(match[1])]
        return f"[{'; '.join(f'@{key}' for key in keys)}]" if all(keys) else match[0]

    return CITED.sub(cited, REFERENCE.sub(r"@\2", text))


def joined(text: str | list[str]) -> str:
    """Return a notebook's text, which may be stored as a list of lines."""
    return text if isinstance(text, str) else "".join(text)
