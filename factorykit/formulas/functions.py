"""Functions available to formulas, dispatched on the library of their operands.

The library is read from the type of an operand; polars, DuckDB, SymPy and NumPy are imported only when one of their
objects is given. Floats follow IEEE 754 as the other backends do: ``exp(1000.0)`` is infinity, not an exception.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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


def _unsupported(function: str, *operands: Any) -> TypeError:
    kinds = ", ".join(type(operand).__name__ for operand in operands)
    return TypeError(f"{function} takes floats, NumPy, polars, DuckDB, SymPy and symbolic expressions, got {kinds}")


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


def _unary(name: str, on_float: Callable[[float], float], sql: str) -> Callable[[Numeric], Numeric]:
    def function(x: Numeric) -> Numeric:
        match _backend(x):
            case "float":
                return on_float(x)
            case "polars":
                return getattr(x, name)()
            case "duckdb":
                return _sql(sql, x)
            case "term":
                return call(name, x)
            case "numpy":
                import numpy as np

                with np.errstate(all="ignore"):
                    return getattr(np, name)(x)
            case "sympy":
                import sympy

                return getattr(sympy, "ceiling" if name == "ceil" else name)(x)
        raise _unsupported(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {name} of x, on the backend of x."
    return function


def _float_sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else math.nan


def _float_exp(x: float) -> float:
    return math.exp(x) if x < 709.78 else math.inf


def _float_log(x: float) -> float:
    return math.log(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)


def _float_rounded(rounding: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(rounding(x)) if math.isfinite(x) else x


sqrt = _unary("sqrt", _float_sqrt, "sqrt")
exp = _unary("exp", _float_exp, "exp")
log = _unary("log", _float_log, "ln")
ceil = _unary("ceil", _float_rounded(math.ceil), "ceil")
floor = _unary("floor", _float_rounded(math.floor), "floor")


def expm1(x: Numeric) -> Numeric:
    """Return exp(x) - 1 without loss of precision near zero.

    Polars and DuckDB have no such function; tanh(x/2) (exp(x) + 1) is the same number.
    """
    match _backend(x):
        case "float":
            return math.expm1(x) if x < 709.78 else math.inf
        case "polars":
            return (0.5 * x).tanh() * (x.exp() + 1.0)
        case "duckdb":
            return _sql("tanh", x * 0.5) * (_sql("exp", x) + 1.0)
        case "term":
            return call("expm1", x)
        case "numpy":
            import numpy as np

            with np.errstate(all="ignore"):
                return np.expm1(x)
        case "sympy":
            import sympy

            return sympy.exp(x) - 1
    raise _unsupported("expm1", x)


def log1p(x: Numeric) -> Numeric:
    """Return log(1 + x) without loss of precision near zero.

    DuckDB has no such function: with u = 1 + x rounded, log(u) x / (u - 1) is accurate to a few units in the last place
    (Goldberg, "What every computer scientist should know about floating-point arithmetic", ACM Comput. Surv. 23(1),
    1991, theorem 4).
    """
    match _backend(x):
        case "float":
            return math.log1p(x) if x > -1.0 else (-math.inf if x == -1.0 else math.nan)
        case "polars":
            return x.log1p()
        case "duckdb":
            u = x + 1.0
            return where(u == _sql_value(1.0), x, _sql("ln", u) * x / (u - 1.0))
        case "term":
            return call("log1p", x)
        case "numpy":
            import numpy as np

            with np.errstate(all="ignore"):
                return np.log1p(x)
        case "sympy":
            import sympy

            return sympy.log(1 + x)
    raise _unsupported("log1p", x)


def _extreme(name: str, sql: str, on_float: Callable[[float, float], float]) -> Callable[[Numeric, Numeric], Numeric]:
    def function(a: Numeric, b: Numeric) -> Numeric:
        match _backend(a, b):
            case "float":
                return on_float(a, b)
            case "polars":
                return where(a < b, a, b) if name == "minimum" else where(a > b, a, b)
            case "duckdb":
                return _sql(sql, a, b)
            case "term":
                return call(name, a, b)
            case "numpy":
                import numpy as np

                return getattr(np, name)(a, b)
            case "sympy":
                import sympy

                return (sympy.Min if name == "minimum" else sympy.Max)(a, b, evaluate=False)
        raise _unsupported(name, a, b)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return the {name} of a and b, on their backend; null where either is null."
    return function


minimum = _extreme("minimum", "least", min)
maximum = _extreme("maximum", "greatest", max)


def where(condition: Numeric, value: Numeric, otherwise: Numeric) -> Numeric:
    """Return ``value`` where ``condition`` holds and ``otherwise`` elsewhere. Both are computed on every backend.

    A plain bool selects its branch at once.
    """
    if condition is True or condition is False:
        return value if condition else otherwise
    match _backend(condition, value, otherwise):
        case "float":
            return value if condition else otherwise
        case "polars":
            import polars as pl

            if isinstance(condition, pl.Series):
                return _series(value).zip_with(condition, _series(otherwise))
            return pl.when(condition).then(_polars(value)).otherwise(_polars(otherwise))
        case "duckdb":
            import duckdb

            return duckdb.CaseExpression(condition, _sql_value(value)).otherwise(_sql_value(otherwise))
        case "term":
            return call("where", condition, value, otherwise)
        case "numpy":
            import numpy as np

            return np.where(condition, value, otherwise)
        case "sympy":
            import sympy

            return sympy.Piecewise((value, condition), (otherwise, True))
    raise _unsupported("where", condition, value, otherwise)


def equal(text: Numeric, word: str) -> Numeric:
    """Return the condition that a text quantity equals ``word``, for use inside :func:`where`."""
    root = type(text).__module__.partition(".")[0]
    if root == "sympy":
        import sympy

        return sympy.Eq(text, sympy.Symbol(word))
    if root == "_duckdb":
        import duckdb

        return text == duckdb.ConstantExpression(word)
    return text == word
