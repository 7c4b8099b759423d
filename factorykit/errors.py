"""What factorykit raises. Every error names the quantity or file, the value, what is allowed and what to try."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl


class FactorykitError(Exception):
    """Base of all errors that a caller of factorykit can cause."""


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


def unknown(what: str, name: object, names: Iterable[str]) -> str:
    """Return the sentence for an unknown name: the known one for a misspelt one, those that hold it for a word.

    >>> unknown("table", "cluster", ["clusters", "costs"])
    "no table 'cluster'; nearest is 'clusters'"
    >>> unknown("quantity", "mtbf", ["node_mtbf_s", "mfu", "cluster_mtbf_s"])
    "no quantity 'mtbf'; there are node_mtbf_s, cluster_mtbf_s"
    """
    names, said = list(names), str(name)
    holding = [one for one in names if said and said in one]
    near = nearest(said, names, MISSPELT if len(holding) > 1 else 0.5)
    offered = holding if len(holding) > 1 else names
    hint = f"nearest is {near!r}" if near else f"there are {', '.join(offered[:8])}{' …' if len(offered) > 8 else ''}"
    return f"no {what} {name!r}; {hint}"
