"""References of formulas: the citations in their docstrings and the works in ``references.bib``.

A docstring cites a work by its key, with the place in it: ``.. [daly2006] equation 37``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

ENTRY = re.compile(r"^@\w+\{(\w+),(.*)\}$", re.MULTILINE)
FIELD = re.compile(r"(\w+) = \{((?:[^{}]|\{[^{}]*\})*)\}")
REFERENCE = re.compile(r"^\.\. \[(\w+)\](.*(?:\n   .*)*)", re.MULTILINE)

FIELD_FORMATS = {
    "edition": "{} ed.",
    "version": "version {}",
    "journal": "{}",
    "booktitle": "{}",
    "publisher": "{}",
    "volume": "vol. {}",
    "number": "no. {}",
    "year": "{}",
    "note": "{}",
    "doi": "doi {}",
}
"""Format of the fields of a citation after the title, in this order."""


def references(formula: Callable[..., Any]) -> tuple[tuple[str, str], ...]:
    """Return the citations in the docstring of a formula: pairs of bibliography key and place.

    >>> from factorykit.formulas import checkpoint
    >>> references(checkpoint.checkpoint_interval_daly_s)
    (('daly2006', 'equation 37'),)
    """
    _, _, cited = (inspect.getdoc(formula) or "").partition("\nReferences\n----------\n")
    return tuple((key, " ".join(place.split())) for key, place in REFERENCE.findall(cited))


@cache
def bibliography() -> Mapping[str, Mapping[str, str]]:
    """Return the works by key, with their BibTeX fields as plain text. The file holds one entry per line."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    works = {key: {name: _plain(value) for name, value in FIELD.findall(rest)} for key, rest in ENTRY.findall(text)}
    return MappingProxyType(works)


def citation(key: str, place: str = "") -> str:
    """Return the formatted citation of a work and a place in it.

    >>> citation("young1974", "p. 530")[:61]
    'J. W. Young, "A first order approximation to the optimum chec'
    """
    work = bibliography()[key]
    authors = f"{_authors(work['author'])}, " if "author" in work else ""
    details = [text.format(work[field]) for field, text in FIELD_FORMATS.items() if field in work]
    return f'{authors}"{work["title"]}," {", ".join([*details, place] if place else details)}'


def _authors(text: str) -> str:
    *names, last = [_initials(name) for name in text.split(" and ")]
    if len(names) > 2 or last == "others":
        return f"{names[0]} et al."
    return f"{', '.join(names)} and {last}" if names else last


def _initials(name: str) -> str:
    """Return a name with initials, as citations print it.

    >>> _initials("Young, John W."), _initials("NVIDIA")
    ('J. W. Young', 'NVIDIA')
    """
    family, _, given = name.partition(", ")
    return " ".join([*(re.sub(r"(\w)[\w.]*", r"\1.", word) for word in given.split()), family])


def _plain(text: str) -> str:
    return re.sub(r"[{}]|\\(?=&)", "", text).replace("--", "–")
