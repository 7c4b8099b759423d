"""Parameters and Returns sections of formula docstrings, generated from the vocabulary."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from factorykit.core.vocabulary import Quantity, vocabulary

INDENT = "" if sys.version_info >= (3, 13) else "    "
"""Indentation of docstring lines, which Python strips from 3.13 on."""
FOLLOWING = tuple(f"\n{INDENT}{heading}\n" for heading in ("Notes", "References", "Examples"))
WIDTH = 112


def document(formulas: Iterable[Callable[..., Any]]) -> None:
    """Add the sections Parameters and Returns to the docstrings of ``formulas``.

    >>> from factorykit.formulas import compute
    >>> print(*[line.strip() for line in compute.training_flop.__doc__.splitlines() if " : " in line], sep="; ")
    active_parameters : number in [1, inf); tokens : number in [1, inf); training_flop : FLOP in (0, inf)
    """
    entries: Mapping[str, str] = {name: _entry(row) for name, row in vocabulary().items()}
    for formula in formulas:
        doc = formula.__doc__
        if doc is None:  # python -OO
            continue
        names = formula.__code__.co_varnames[: formula.__code__.co_argcount]
        parts = _section("Parameters", names, entries) + _section("Returns", (formula.__name__,), entries)
        end = min((start for heading in FOLLOWING if (start := doc.find(heading)) > 0), default=len(doc))
        formula.__doc__ = f"{doc[:end]}{parts}{doc[end:]}"


def _section(heading: str, names: Iterable[str], entries: Mapping[str, str]) -> str:
    body = "".join([entries[name] for name in names if name in entries])
    return f"\n{INDENT}{heading}\n{INDENT}{'-' * len(heading)}\n{body}" if body else ""


def _entry(row: Quantity) -> str:
    unit = {"1": "number", "text": ""}.get(row.unit, row.unit)
    kind = f"{unit} in {row.bounds}" if unit else row.bounds or "text"
    text = f"{row.label} ({row.symbol}): {row.meaning}" if row.symbol else f"{row.label}: {row.meaning}"
    lines = [f"{INDENT}{row.name} : {kind}"]
    while text:  # textwrap takes ten times as long, and this runs at import
        end = text.rfind(" ", 0, WIDTH + 1) if len(text) > WIDTH else len(text)
        lines.append(f"{INDENT}    {text[:end]}")
        text = text[end + 1 :]
    return "\n".join(lines) + "\n"
