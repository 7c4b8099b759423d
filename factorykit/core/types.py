"""The type of a quantity in a formula."""

from __future__ import annotations

from typing import Any, TypeAlias

Numeric: TypeAlias = Any
"""A float, NumPy array, polars or DuckDB expression, SymPy symbol or :class:`factorykit.formulas.expressions.Term`."""
