"""The type of a quantity in a formula, anything that knows arithmetic, and what counts as a text."""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias, TypeGuard

Numeric: TypeAlias = Any
"""A float, NumPy array, polars or DuckDB expression, SymPy symbol or :class:`factorykit.formulas.terms.Term`."""

SURROGATE: Final = re.compile("[\ud800-\udfff]")


def is_text(value: object) -> TypeGuard[str]:
    """Return whether ``value`` is a text that can be written down: half a surrogate pair cannot.

    Its type is asked, since what a stranger calls its class may be anything.

    >>> is_text("70B"), is_text(70), is_text(chr(0xD800))
    (True, False, False)
    """
    return issubclass(type(value), str) and (str.isascii(value) or not SURROGATE.search(value))  # type: ignore[arg-type]
