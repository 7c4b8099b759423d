"""Recipe pages: the Markdown files of the folder ``recipes``, whose blocks are executed when the site is built."""

from __future__ import annotations

import contextlib
import html
import re
import tempfile
from pathlib import Path
from typing import Any, Final

import polars as pl

import factorykit as fk
from factorykit.charts.table import table
from factorykit.core.atomic_io import temporary_folder
from factorykit.core.errors import FactorykitError, SiteError
from factorykit.site.pages.api import reference
from factorykit.site.pages.markdown import Marked, code_block, front
from factorykit.site.sources import run_cell, split_front_matter

FOLDER: Final = Path(__file__).parents[1] / "recipes"
BLOCK: Final = re.compile(r"^## ([^\n]+)\n\n```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
"""A question and its code; blocks that are only shown start with ``{.python}``."""
TEMPORARY: Final = "factorykit-recipes-"
"""Prefix of the temporary folders in which the blocks of a page run."""
PLACE: Final = re.compile(r"\S*/(?=[\w.]+: )")
"""Pattern of local file paths."""
REFUSED: Final = "is refused"
"""Words that mark a question whose answer is an error."""


def recipe_pages() -> dict[str, str]:
    """Return the recipe pages by name."""
    pages = {}
    for file in sorted(FOLDER.glob("*.md")):
        head, body = split_front_matter(file.read_text("utf-8"), file.name)
        page = "\n\n".join([front(head["title"], head["description"]), with_answers(body.strip())])
        pages[f"python/{file.stem}"] = f"{page}\n"
    return pages


def with_answers(text: str) -> str:
    """Return a page with the answer after each block; a block has access to the names and files of earlier blocks.

    Raises
    ------
    SiteError
        If a block fails and its question does not announce an error.
    """
    known: dict[str, Any] = {"fk": fk, "pl": pl}

    def answered(block: re.Match[str]) -> str:
        question, source = block.groups()
        try:
            answer = run_cell(source, known)
        except FactorykitError as error:
            if REFUSED not in question:
                raise SiteError(f"recipes: {question} {error}") from error
            answer = error
        parts = [f"## {question}", "::: {.cell}", code_block(source, "python"), _shown(answer), _called(source), ":::"]
        return "\n\n".join(parts)

    with temporary_folder(Path(tempfile.gettempdir()), TEMPORARY) as here, contextlib.chdir(here):
        return BLOCK.sub(answered, text)


def _called(source: str) -> Marked:
    """Return links to the API reference for the calls of a block."""
    names = dict.fromkeys(re.findall(r"\bfk\.(\w+)", source))
    links = ", ".join(map(reference, names))
    return Marked(f"::: {{.fk-meta}}\nIn the reference: {links}.\n:::")


def _shown(value: Any) -> Marked:
    if isinstance(value, FactorykitError):
        return code_block(f"{type(value).__name__}: {PLACE.sub('', str(value))}")
    made = table(value) if isinstance(value, pl.DataFrame) else value
    if hasattr(made, "_repr_html_"):
        return Marked(f"```{{=html}}\n{made._repr_html_()}\n```")
    return Marked(f"```{{=html}}\n<pre><code>{html.escape(str(value))}</code></pre>\n```")
