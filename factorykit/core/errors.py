"""What factorykit raises. Every error names the quantity or file, the value, what is allowed and what to try."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from unicodedata import category

if TYPE_CHECKING:
    import polars as pl


LONGEST: Final = 300
"""Characters of a line of a message; what is longer loses its middle: what is wrong comes first, what to try last."""


UNPRINTED: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories of letters that steer a terminal, or break a line, and are written as escapes."""


class FactorykitError(Exception):
    """Base of all errors that a caller of factorykit can cause."""

    def __init__(self, message: str = "") -> None:
        super().__init__("\n".join(_cut(line) for line in _printable(message).split("\n")))


class UnknownQuantity(FactorykitError):
    """A name that is no row of the vocabulary, or no formula and no input where one is needed."""


class UnknownName(FactorykitError):
    """A table, preset, connector or other named thing that does not exist."""


class ScenarioError(FactorykitError):
    """A value of the wrong type, not finite, outside its bounds, or in contradiction with the others."""


class MissingQuantity(FactorykitError):
    """Inputs that an output needs and nobody gave. ``missing`` holds their names."""

    def __init__(self, message: str, missing: Iterable[str]) -> None:
        super().__init__(message)
        self.missing = tuple(missing)


class CycleError(FactorykitError):
    """Quantities that were chosen to be computed from themselves."""


class DatasetError(FactorykitError):
    """A source file, table or descriptor that breaks a rule. ``rows`` holds the offending rows where there are any."""

    def __init__(self, message: str, rows: pl.DataFrame | None = None) -> None:
        super().__init__(message)
        self.rows = rows


class QueryError(FactorykitError):
    """A query that DuckDB refuses, or that reaches for something outside the tables."""


class RecipeError(FactorykitError):
    """A recipe of a claim that cannot be read, names something unknown, or gives no finite number."""


class NotInstalled(FactorykitError, ImportError):
    """A package that an extra brings and that is not there; the message says which extra."""


class SiteError(FactorykitError):
    """A page, notebook or link of the site that is found wanting."""


class FactorykitWarning(UserWarning):
    """A result that is right but leaves the range in which it means what one would expect."""


_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlevel = 3


def short_repr(value: object) -> str:
    """Return any value as a message shows it: on one line, short, without control characters.

    >>> short_repr("70 parsecs"), short_repr("x" * 1000)
    ("'70 parsecs'", "'xxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxx'")
    >>> cycle = []
    >>> cycle.append(cycle)
    >>> short_repr(cycle)
    '[[[[...]]]]'
    """
    said = _SHORT.repr(value)
    return f"<{type(value).__name__}>" if "\n" in said else _printable(said)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    strange = {letter for letter in text if letter != "\n" and category(letter) in UNPRINTED}
    return text.translate({ord(letter): letter.encode("unicode_escape").decode() for letter in strange})


def _cut(line: str) -> str:
    kept = LONGEST // 3
    return line if len(line) <= LONGEST else f"{line[: LONGEST - kept - 3]} … {line[-kept:]}"


MISSPELT: Final = 0.8
"""Likeness from which a name counts as misspelt, and not as a word of several names. [1]"""


def nearest(name: str, names: Iterable[str], likeness: float = 0.5) -> str | None:
    """Return the one of ``names`` that is most like ``name``, or None if none is this like it.

    >>> nearest("token", ["tokens", "mfu"])
    'tokens'
    """
    import difflib

    found = difflib.get_close_matches(name, list(names), n=1, cutoff=likeness)
    return found[0] if found else None


def unknown_name_message(what: str, name: object, names: Iterable[str]) -> str:
    """Return the sentence for an unknown name: the known one for a misspelt one, those that hold it for a word.

    >>> unknown_name_message("table", "cluster", ["clusters", "costs"])
    "no table 'cluster'; nearest is 'clusters'"
    >>> unknown_name_message("quantity", "mtbf", ["node_mtbf_s", "mfu", "cluster_mtbf_s"])
    "no quantity 'mtbf'; there are node_mtbf_s, cluster_mtbf_s"
    """
    if not isinstance(name, str):
        return f"no {what} {short_repr(name)}: give a name, as a text"
    names, said = list(names), name[:LONGEST]
    holding = [one for one in names if said and said in one]
    near = nearest(said, names, MISSPELT if len(holding) > 1 else 0.5)
    offered = holding if len(holding) > 1 else names
    hint = f"nearest is {near!r}" if near else f"there are {', '.join(offered[:8])}{' …' if len(offered) > 8 else ''}"
    return f"no {what} {short_repr(name)}; {hint}"
