"""Contract of every formula: equal results on all backends; names, units and documentation from the vocabulary."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import duckdb
import mpmath
import numpy as np
import polars as pl
import pytest
import sympy

from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.emit.latex import as_latex
from factorykit.engine.emit.vega import as_vega
from factorykit.formulas import arguments, catalogue
from factorykit.formulas.bibliography import bibliography, references
from factorykit.formulas.expressions import as_text, steps, trace

FORMULAS = list(catalogue().values())
ROWS = 40
RTOL = 1e-9  # doubles everywhere; the backends' own exp, log and tanh differ in the last digits

every_formula = pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)


def sample(name: str, rng: np.random.Generator) -> np.ndarray:
    row = quantity(name)
    if row.is_text:
        return rng.choice(row.choices, ROWS)
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


database = cache(duckdb.connect)


def on_duckdb(formula: Callable[..., Any]) -> np.ndarray:
    columns = [duckdb.ColumnExpression(name) for name in arguments(formula)]
    connection, table = database(), pl.DataFrame(inputs(formula)).with_row_index()
    connection.execute(f"create or replace table t ({', '.join(f'{n} {sql_type(table[n])}' for n in table.columns)})")
    columns_at_once = ", ".join(f"unnest(?::{sql_type(table[n])}[])" for n in table.columns)
    connection.execute(f"insert into t select {columns_at_once}", [table[n].to_list() for n in table.columns])
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


BACKENDS = [on_numpy, on_polars, on_series, on_duckdb, on_sympy]


@every_formula
def test_every_backend_gives_the_same_number(formula: Callable[..., Any]) -> None:
    expected = on_floats(formula)
    has_words = any(quantity(name).is_text for name in arguments(formula))
    for backend in BACKENDS:
        if backend is on_sympy and has_words:  # SymPy has no words; the other backends compare this formula
            continue
        np.testing.assert_allclose(backend(formula), expected, rtol=RTOL, err_msg=backend.__name__)


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
    assert arguments(formula), f"{formula.__name__} has no arguments: make it a neutral value in quantities.csv"
    unknown = {formula.__name__, *arguments(formula)} - set(vocabulary())
    assert not unknown, f"{formula.__name__}: {unknown} are no rows of factorykit/core/quantities.csv"
    parameters = inspect.signature(formula).parameters.values()
    bare = [parameter.name for parameter in parameters if parameter.annotation is inspect.Parameter.empty]
    assert not bare, f"{formula.__name__}: annotate {', '.join(bare)} as Numeric"
    doc = inspect.getdoc(formula) or ""
    for part, mark in {"equation": "\n.. math::", "Examples": "\nExamples\n--------\n"}.items():
        assert mark in doc, f"{formula.__name__}: its docstring has no {part}"
    for name in (formula.__name__, *arguments(formula)):
        heading = f"\n{name} : "
        assert doc.count(heading) == 1, f"{formula.__name__}: omit Parameters and Returns of the vocabulary"


@every_formula
def test_a_formula_cites_the_bibliography_or_derives_its_equation(
    formula: Callable[..., Any],
) -> None:
    doc = inspect.getdoc(formula) or ""
    cited = [key for key, _ in references(formula)]
    unknown = [key for key in [*cited, *re.findall(r"\[(\w+)\]_(?![{\w])", doc)] if key not in bibliography()]
    assert not unknown, f"{formula.__name__} cites {unknown}, which are no keys of factorykit/formulas/references.bib"
    assert len(cited) == doc.count("\n.. ["), f"{formula.__name__}: write a reference as '.. [key] place'"
    assert bool(cited) == ("\nReferences\n" in doc), f"{formula.__name__}: its section References names no work"
    curved = re.findall(r"\b(?:exp|expm1|log|log1p|sqrt)\(", as_text(trace(formula)))
    explained = cited or "\nNotes\n" in doc
    assert not curved or explained, f"{formula.__name__} computes {curved[0]}…): cite its source, or derive it in Notes"


def test_help_describes_each_argument_as_the_vocabulary_does() -> None:
    doc = inspect.getdoc(catalogue()["training_flop"]) or ""
    assert "tokens : number in [1, inf)\n    Training tokens (D): tokens processed in the run\n" in doc
    assert "\nReturns\n-------\ntraining_flop : FLOP in (0, inf)\n" in doc


def test_a_formula_may_not_branch() -> None:
    def branching(mfu: Any) -> Any:
        return 1.0 if mfu > 0.5 else mfu

    with pytest.raises(TypeError, match="may not branch"):
        trace(branching)
