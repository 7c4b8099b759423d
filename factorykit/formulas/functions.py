"""Functions available to formulas, dispatched on the library of their operands.

The library is read from the type of an operand; polars, DuckDB, SymPy and NumPy are imported only when one of their
objects is given. Floats follow IEEE 754 as the other backends do: ``exp(1000.0)`` is infinity, not an exception.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any

from factorykit.core.types import Numeric
from factorykit.formulas.expressions import Term, call


def _backend(*operands: Any) -> str:
    for operand in operands:
        kind = type(operand)
        if kind is float or kind is int or kind is bool:
            continue
        if isinstance(operand, Term):
            return "term"
        root = kind.__module__.partition(".")[0]
        return "duckdb" if root == "_duckdb" else root
    return "float"


def _dispatch(name: str, **backends: Callable[..., Any]) -> Callable[..., Numeric]:
    """Return a function that calls the function of its operands' backend; terms and NumPy have one by its name."""
    backends |= {"term": partial(call, name), "numpy": partial(_numpy, name)}

    def function(*operands: Any) -> Numeric:
        on_backend = backends.get(_backend(*operands))
        if on_backend is None:
            kinds = ", ".join(type(operand).__name__ for operand in operands)
            expected = "floats, NumPy, polars, DuckDB, SymPy and symbolic expressions"
            raise TypeError(f"{name} takes {expected}, got {kinds}")
        return on_backend(*operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {name} of the operands, on their backend; null where one is null."
    return function


def _numpy(name: str, *operands: Any) -> Any:
    import numpy as np

    with np.errstate(all="ignore"):
        return getattr(np, name)(*operands)


def _sympy(name: str, *operands: Any, **options: Any) -> Any:
    import sympy

    return getattr(sympy, name)(*operands, **options)


def _sql(function: str, *operands: Any) -> Any:
    import duckdb

    return duckdb.FunctionExpression(function, *[_sql_value(operand) for operand in operands])


def _sql_value(operand: Any) -> Any:
    import duckdb

    return duckdb.ConstantExpression(float(operand)) if isinstance(operand, (int, float)) else operand


def _polars(operand: Any) -> Any:
    import polars as pl

    return operand if isinstance(operand, (pl.Expr, pl.Series)) else pl.lit(float(operand))


def _series(operand: Any) -> Any:
    import polars as pl

    return operand if isinstance(operand, pl.Series) else pl.Series([float(operand)])


def _unary(name: str, on_float: Callable[[float], float], sql: str = "", sympy: str = "") -> Callable[..., Numeric]:
    return _dispatch(
        name,
        float=on_float,
        polars=methodcaller(name),
        duckdb=partial(_sql, sql or name),
        sympy=partial(_sympy, sympy or name),
    )


def _float_log(x: float) -> float:
    return math.log(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)


def _float_rounded(rounding: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(rounding(x)) if math.isfinite(x) else x


sqrt = _unary("sqrt", lambda x: math.sqrt(x) if x >= 0.0 else math.nan)
exp = _unary("exp", lambda x: math.exp(x) if x < 709.78 else math.inf)
log = _unary("log", _float_log, sql="ln")
ceil = _unary("ceil", _float_rounded(math.ceil), sympy="ceiling")
floor = _unary("floor", _float_rounded(math.floor))
# Polars and DuckDB have no expm1; tanh(x/2) (exp(x) + 1) is the same number.
expm1 = _dispatch(
    "expm1",
    float=lambda x: math.expm1(x) if x < 709.78 else math.inf,
    polars=lambda x: (0.5 * x).tanh() * (x.exp() + 1.0),
    duckdb=lambda x: _sql("tanh", x * 0.5) * (_sql("exp", x) + 1.0),
    sympy=lambda x: _sympy("exp", x) - 1,
)


def _sql_log1p(x: Any) -> Any:
    """Return log(1 + x): with u = 1 + x rounded, log(u) x / (u - 1) is accurate to a few units in the last place.

    Goldberg, "What every computer scientist should know about floating-point arithmetic", ACM Comput. Surv. 23(1),
    1991, theorem 4.
    """
    u = x + 1.0
    return where(u == _sql_value(1.0), x, _sql("ln", u) * x / (u - 1.0))


log1p = _dispatch(
    "log1p",
    float=lambda x: math.log1p(x) if x > -1.0 else (-math.inf if x == -1.0 else math.nan),
    polars=methodcaller("log1p"),
    duckdb=_sql_log1p,
    sympy=lambda x: _sympy("log", 1 + x),
)
minimum = _dispatch(
    "minimum",
    float=min,
    polars=lambda a, b: where(a < b, a, b),
    duckdb=partial(_sql, "least"),
    sympy=partial(_sympy, "Min", evaluate=False),
)
maximum = _dispatch(
    "maximum",
    float=max,
    polars=lambda a, b: where(a > b, a, b),
    duckdb=partial(_sql, "greatest"),
    sympy=partial(_sympy, "Max", evaluate=False),
)


def _polars_where(condition: Any, value: Any, otherwise: Any) -> Any:
    import polars as pl

    if isinstance(condition, pl.Series):
        return _series(value).zip_with(condition, _series(otherwise))
    return pl.when(condition).then(_polars(value)).otherwise(_polars(otherwise))


def _sql_where(condition: Any, value: Any, otherwise: Any) -> Any:
    import duckdb

    return duckdb.CaseExpression(condition, _sql_value(value)).otherwise(_sql_value(otherwise))


_where = _dispatch(
    "where",
    float=lambda condition, value, otherwise: value if condition else otherwise,
    polars=_polars_where,
    duckdb=_sql_where,
    sympy=lambda condition, value, otherwise: _sympy("Piecewise", (value, condition), (otherwise, True)),
)


def where(condition: Numeric, value: Numeric, otherwise: Numeric) -> Numeric:
    """Return ``value`` where ``condition`` holds and ``otherwise`` elsewhere. Both are computed on every backend.

    A plain bool selects its branch at once.
    """
    if condition is True or condition is False:
        return value if condition else otherwise
    return _where(condition, value, otherwise)


def equal(text: Numeric, word: str) -> Numeric:
    """Return the condition that a text quantity equals ``word``, for use inside :func:`where`."""
    root = type(text).__module__.partition(".")[0]
    if root == "sympy":
        return _sympy("Eq", text, _sympy("Symbol", word))
    if root == "_duckdb":
        import duckdb

        return text == duckdb.ConstantExpression(word)
    return text == word
