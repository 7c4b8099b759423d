"""What holds for every formula: one number on all backends, names, units and documents from the vocabulary."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable
from typing import Any

import duckdb
import mpmath
import numpy as np
import polars as pl
import pytest
import sympy

from factorykit.formulas import arguments, catalogue
from factorykit.formulas.terms import as_latex, as_text, as_vega, steps, trace
from factorykit.quantities import quantity, vocabulary

FORMULAS = [formula for formula in catalogue().values() if arguments(formula)]
CONSTANTS = [formula for formula in catalogue().values() if not arguments(formula)]
ROWS = 40
RTOL = 1e-9  # doubles everywhere; the backends' own exp, log and tanh differ in the last digits

every_formula = pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
every_constant = pytest.mark.parametrize("formula", CONSTANTS, ids=lambda formula: formula.__name__)


def sample(name: str, rng: np.random.Generator) -> np.ndarray:
    row = quantity(name)
    if row.is_text:
        return rng.choice(row.alternatives, ROWS)
    if row.slider_max is not None and row.slider_min is not None:
        start = row.slider_min or row.slider_max / 1e3
        return np.exp(rng.uniform(math.log(start), math.log(row.slider_max), ROWS))
    if math.isfinite(row.upper):
        return rng.uniform(max(row.lower, 0.0) + 0.01, row.upper, ROWS)
    return np.exp(rng.uniform(0.0, math.log(1e6), ROWS))


def inputs(formula: Callable[..., Any]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {name: sample(name, rng) for name in arguments(formula)}


def on_floats(formula: Callable[..., Any]) -> np.ndarray:
    return np.array(
        [formula(*row) for row in zip(*(column.tolist() for column in inputs(formula).values()), strict=True)]
    )


def on_numpy(formula: Callable[..., Any]) -> np.ndarray:
    return formula(*inputs(formula).values())


def on_polars(formula: Callable[..., Any]) -> np.ndarray:
    frame = pl.LazyFrame(inputs(formula)).select(formula(*map(pl.col, arguments(formula))).alias("result"))
    assert "python" not in frame.explain().lower()
    return frame.collect()["result"].to_numpy()


def on_series(formula: Callable[..., Any]) -> np.ndarray:
    return formula(*pl.DataFrame(inputs(formula)).get_columns()).to_numpy()


def on_duckdb(formula: Callable[..., Any]) -> np.ndarray:
    columns = [duckdb.ColumnExpression(name) for name in arguments(formula)]
    with duckdb.connect() as connection:
        table = pl.DataFrame(inputs(formula)).with_row_index()
        connection.execute(f"create table t ({', '.join(f'{n} {sql_type(table[n])}' for n in table.columns)})")
        connection.executemany(f"insert into t values ({', '.join('?' * table.width)})", table.rows())
        return np.array([row[0] for row in connection.table("t").order("index").select(formula(*columns)).fetchall()])


def sql_type(column: pl.Series) -> str:
    return "varchar" if column.dtype == pl.String else "double"


def on_sympy(formula: Callable[..., Any]) -> np.ndarray:
    symbols = [sympy.Symbol(name, real=True) for name in arguments(formula)]
    expression = sympy.sympify(formula(*symbols))
    with mpmath.workdps(30):
        computed = sympy.lambdify(symbols, expression, modules="mpmath", cse=True)
        rows = zip(*inputs(formula).values(), strict=True)
        return np.array([float(computed(*map(mpmath.mpf, map(float, row)))) for row in rows])


BACKENDS = [on_numpy, on_polars, on_series, on_duckdb]


@every_formula
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.__name__)
def test_every_backend_gives_the_same_number(formula: Callable[..., Any], backend: Callable[..., np.ndarray]) -> None:
    np.testing.assert_allclose(backend(formula), on_floats(formula), rtol=RTOL)


@every_formula
def test_sympy_gives_the_same_number(formula: Callable[..., Any]) -> None:
    if any(quantity(name).is_text for name in arguments(formula)):
        pytest.skip("SymPy has no words; the other backends compare this formula")
    np.testing.assert_allclose(on_sympy(formula), on_floats(formula), rtol=RTOL)


def test_vega_gives_the_same_numbers() -> None:
    """One Vega view labels a line with the results of each formula; the numbers are read from the picture's source."""
    vl_convert = pytest.importorskip("vl_convert")
    data, marks = [], []
    for formula in FORMULAS:
        named = steps(trace(formula), formula.__name__, frozenset({"log1p", "expm1"}))
        transforms = [{"type": "formula", "as": name, "expr": as_vega(part)} for name, part in named]
        rows = pl.DataFrame(inputs(formula) | {"row": range(ROWS)}).to_dicts()
        together = {"type": "aggregate", "fields": ["row"], "ops": ["values"], "as": ["rows"]}
        data.append({"name": formula.__name__, "values": rows, "transform": [*transforms, together]})
        text = {"signal": f"'{formula.__name__} ' + join(pluck(datum.rows, '{formula.__name__}'), ' ') + ' end'"}
        marks.append({"type": "rule", "from": {"data": formula.__name__}, "encode": {"enter": {"description": text}}})
    schema = "https://vega.github.io/schema/vega/v6.json"
    spec = {"$schema": schema, "width": 9, "height": 9, "data": data, "marks": marks}
    picture = vl_convert.vega_to_svg(json.dumps(spec))
    drawn = {name: [float(value) for value in row.split()] for name, row in re.findall(r'"(\w+) ([^"]+) end"', picture)}
    for formula in FORMULAS:
        np.testing.assert_allclose(drawn[formula.__name__], on_floats(formula), rtol=RTOL, err_msg=formula.__name__)


@every_formula
def test_a_formula_prints_as_text_and_latex(formula: Callable[..., Any]) -> None:
    body = trace(formula)
    names = set(re.findall(r"[a-z]\w+", as_text(body)))
    assert names.issuperset(arguments(formula))
    assert as_latex(body).count("{") == as_latex(body).count("}")


@every_formula
def test_a_formula_is_named_and_documented_by_the_vocabulary(formula: Callable[..., Any]) -> None:
    doc = inspect.cleandoc(formula.__doc__ or "")
    returned, needed = section(doc, "Returns"), section(doc, "Parameters")
    assert list(needed) == list(arguments(formula))
    assert list(returned) == [formula.__name__]
    for name, unit in (needed | returned).items():
        assert name in vocabulary()
        assert unit == quantity(name).unit, f"{formula.__name__} documents {name} in [{unit}]"
    assert ".. math::" in doc
    for heading in ("Notes", "References", "Examples"):
        assert f"\n{heading}\n{'-' * len(heading)}\n" in doc, f"{formula.__name__} has no {heading}"
    assert re.search(r"\b(1[89]|20)\d\d\b", doc.partition("References\n")[2]), "a reference without a year"


def section(doc: str, heading: str) -> dict[str, str]:
    """Return the names of a docstring's section with the unit that ends each description."""
    body = re.split(rf"\n{heading}\n-+\n", doc)[1].split("\n\n")[0]
    entries = re.split(r"\n(?=\w+ : )", body)
    return {entry.split(" : ")[0].strip(): re.findall(r"\[([^\]]+)\]\s*$", entry.strip())[0] for entry in entries}


@every_constant
def test_a_formula_without_arguments_says_one_allowed_value(formula: Callable[..., Any]) -> None:
    assert quantity(formula.__name__).check(formula()) == formula()
    assert formula.__name__ in section(inspect.cleandoc(formula.__doc__ or ""), "Returns")


def test_a_formula_may_not_branch() -> None:
    def branching(mfu: Any) -> Any:
        return 1.0 if mfu > 0.5 else mfu

    with pytest.raises(TypeError, match="may not branch"):
        trace(branching)
