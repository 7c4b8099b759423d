"""Errors and warnings. A message names the quantity or file, the value, the expected values and a fix."""

from __future__ import annotations

import reprlib
import sys
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from unicodedata import category

if TYPE_CHECKING:
    import polars as pl


MAX_LINE: Final = 300
"""Characters of a line of a message; longer lines lose their middle: the fault comes first, the fix last."""
ESCAPED: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories of characters that control a terminal or break a line; messages show their escapes."""


class FactorykitError(Exception):
    """Base of all errors that a caller of factorykit can cause."""

    def __init__(self, message: str = "") -> None:
        super().__init__("\n".join(_cut(line) for line in _printable(message).split("\n")))


class UnknownQuantity(FactorykitError):
    """A name that is not in the vocabulary, or that is neither a formula nor an input where one is needed."""


class UnknownName(FactorykitError):
    """A table, preset, connector or other named object that does not exist."""


class ScenarioError(FactorykitError):
    """A value of the wrong type, not finite, outside its bounds, or inconsistent with other values."""


class MissingQuantity(FactorykitError):
    """Inputs that an output needs and that are not given. ``missing`` holds their names."""

    def __init__(self, message: str = "", missing: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.missing = tuple(missing)


class CycleError(FactorykitError):
    """Chosen alternatives by which a quantity would be computed from itself."""


class DatasetError(FactorykitError):
    """A source file, table or descriptor that breaks a rule. ``rows`` holds the offending rows where there are any."""

    def __init__(self, message: str, rows: pl.DataFrame | None = None) -> None:
        super().__init__(message)
        self.rows = rows


class QueryError(FactorykitError):
    """A query that is invalid, not allowed, or above its limits of time or memory."""


class RecipeError(FactorykitError):
    """A recipe of a claim that cannot be parsed, uses an unknown name, or has no finite result."""


class NotInstalled(FactorykitError, ImportError):
    """A missing optional package; the message names the extra that installs it."""


class SiteError(FactorykitError):
    """A page, notebook or link of the site that fails its checks."""


class FactorykitWarning(UserWarning):
    """A result outside the range in which its formula is valid, or an unusual input."""


def warn(message: str) -> None:
    """Issue a `FactorykitWarning` for the line that called into the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "factorykit":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, FactorykitWarning, stacklevel=level)


_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlevel = 3


def short_repr(value: object) -> str:
    """Return a value as a message shows it: on one line, short, without control characters.

    >>> short_repr("70 parsecs"), short_repr("x" * 1000)
    ("'70 parsecs'", "'xxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxx'")
    >>> cycle = []
    >>> cycle.append(cycle)
    >>> short_repr(cycle)
    '[[[[...]]]]'
    """
    text = _SHORT.repr(value)
    return f"<{type(value).__name__}>" if "\n" in text else _printable(text)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    strange = {letter for letter in text if letter != "\n" and category(letter) in ESCAPED}
    return text.translate({ord(letter): letter.encode("unicode_escape").decode() for letter in strange})


def _cut(line: str) -> str:
    kept = MAX_LINE // 3
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - kept - 3]} … {line[-kept:]}"


MISSPELT_SIMILARITY: Final = 0.8
"""Similarity from which a name counts as misspelt rather than as a part of several names. [1]"""


def nearest(name: str, names: Iterable[str], similarity: float = 0.5) -> str | None:
    """Return the name most similar to ``name``, or None if none reaches the similarity.

    >>> nearest("token", ["tokens", "mfu"])
    'tokens'
    """
    import difflib

    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=similarity)
    return matches[0] if matches else None


def unknown_name_message(kind: str, name: object, names: Iterable[str]) -> str:
    """Return the message for an unknown name: the nearest known one, or those that contain it.

    >>> unknown_name_message("table", "cluster", ["clusters", "costs"])
    "no table 'cluster'; nearest is 'clusters'"
    >>> unknown_name_message("quantity", "mtbf", ["node_mtbf_s", "mfu", "cluster_mtbf_s"])
    "no quantity 'mtbf'; there are node_mtbf_s, cluster_mtbf_s"
    """
    if not isinstance(name, str):
        return f"the name of the {kind} must be a string, got {short_repr(name)}"
    names, text = list(names), name[:MAX_LINE]
    containing = [known for known in names if text and text in known]
    near = nearest(text, names, MISSPELT_SIMILARITY if len(containing) > 1 else 0.5)
    offered = containing if len(containing) > 1 else names
    listed = f"{', '.join(offered[:8]) or 'none'}{' …' if len(offered) > 8 else ''}"
    hint = f"nearest is {near!r}" if near else f"there are {listed}"
    return f"no {kind} {short_repr(name)}; {hint}"


def __dir__() -> list[str]:
    return sorted(name for name, value in globals().items() if isinstance(value, type) and value.__module__ == __name__)
