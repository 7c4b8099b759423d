"""Results as a notebook shows them: tables, and an explanation as a tree, in HTML that holds no script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from factorykit.core.errors import DatasetError
from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table

if TYPE_CHECKING:
    from factorykit.engine.explain import ExplainedStep

WORK: Final = re.compile(r"\b(?:doi (?P<doi>10\.[^\s,;]+)|arXiv:(?P<arxiv>\d{4}\.\d{4,5}))")
KEY: Final = re.compile(r"\b[a-z][a-z0-9_]+\b")
LEFT: Final = ' style="text-align:left"'
ORIGINS: Final = {"cell": "of the chip", "rival": "rival model", "formula": "computed"}
"""Origins of steps in words, where the word is another."""


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


def html_tree(steps: Sequence[ExplainedStep]) -> str:
    """Return the steps as a tree: the last at the root, under each what it needs, open at the first level.

    What is needed twice is unfolded where it is met first.
    """
    by_name = {step.quantity: step for step in steps}
    met: set[str] = set()

    def branch(step: ExplainedStep, depth: int) -> str:
        again = step.quantity in met and step.needs
        met.add(step.quantity)
        needs = [by_name[name] for name in step.needs if name in by_name]
        if again or not needs:
            return f"<div>{_line(step)}{' <small>(above)</small>' if again else ''}</div>"
        inner = "".join(f"<li>{branch(need, depth + 1)}</li>" for need in needs)
        opened = " open" if depth == 0 else ""
        return f"<details{opened}><summary>{_line(step)}</summary><ul>{inner}</ul></details>"

    return branch(steps[-1], 0)


def _line(step: ExplainedStep) -> str:
    row = quantity(step.quantity)
    value = step.value if isinstance(step.value, str) else row.text(step.value)
    formula = f" = <code>{escape(step.formula)}</code>" if step.formula else ""
    origin = ORIGINS.get(step.origin, step.origin)
    source = linked(step.source.removeprefix(f"{origin}: "))
    said = f"{escape(origin)}: {source}" if source else escape(origin)
    name = f'<span title="{escape(step.quantity)}">{escape(row.label)}</span>'
    return f"{name}: <strong>{html_text(value)}</strong>{formula} <small>[{said}]</small>"


def linked(source: str) -> str:
    """Return who says it, escaped, linked where a table has the address, and DOI and arXiv numbers.

    >>> linked("<first>, doi 10.1145/361147.361115")
    '&lt;first&gt;, <a href="https://doi.org/10.1145/361147.361115">doi 10.1145/361147.361115</a>'
    """
    text = html_text(source)
    told = WORK.sub(_work, text)
    return told if told != text else KEY.sub(_source, text)


def _work(found: re.Match[str]) -> str:
    address = f"https://doi.org/{found['doi']}" if found["doi"] else f"https://arxiv.org/abs/{found['arxiv']}"
    return f'<a href="{address}">{found[0]}</a>'


def _source(found: re.Match[str]) -> str:
    address = _addresses().get(found[0])
    return f'<a href="{escape(address)}">{found[0]}</a>' if address else found[0]


@cache
def _addresses() -> Mapping[str, str]:
    """Return the address of every source that has one."""
    try:
        rows = table("sources").select("source", "url").drop_nulls().collect().iter_rows()
    except DatasetError:
        return MappingProxyType({})
    return MappingProxyType({key: address for key, address in rows if address.startswith(("https://", "http://"))})
