"""Evaluate quantities on a mapping of numbers, a DataFrame or a LazyFrame: one graph, one body per formula."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from factorykit.errors import FactorykitWarning, MissingQuantity, ScenarioError, nearest
from factorykit.formulas import functions
from factorykit.formulas.terms import Binary, Call, Negative, Number, Symbol, Term, Word, symbols
from factorykit.formulas.terms import steps as parts
from factorykit.formulas.validity import validity
from factorykit.model import layout
from factorykit.model.graph import Step, available, chain, choice, leaves
from factorykit.quantities import quantity, vocabulary

if TYPE_CHECKING:
    import polars as pl

AGREEMENT = 1e-6
"""Relative difference up to which a given derived quantity and its formula count as one number; room for rounding."""

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}

BROKEN = "rule that the layout breaks"
"""Name of the column in which a frame is told which rows hold a layout that does not work."""

Outputs = str | Iterable[str] | None


@overload
def evaluate(
    inputs: pl.DataFrame, outputs: Outputs = None, *, using: Mapping[str, str] | None = None
) -> pl.DataFrame: ...
@overload
def evaluate(
    inputs: pl.LazyFrame, outputs: Outputs = None, *, using: Mapping[str, str] | None = None
) -> pl.LazyFrame: ...
@overload
def evaluate(
    inputs: Mapping[str, Any], outputs: Outputs = None, *, using: Mapping[str, str] | None = None
) -> dict[str, float]: ...
def evaluate(inputs: Any, outputs: Outputs = None, *, using: Mapping[str, str] | None = None) -> Any:
    """Compute quantities from others; the names find the formulas.

    Parameters
    ----------
    inputs
        A mapping of quantities to numbers (a dict or a Scenario), or a polars DataFrame or LazyFrame with one column
        per quantity; further columns pass through. A given quantity is used as it is, even where a formula for it
        exists. In a mapping, the name of a rival model may stand for a number, as in ``using``.
    outputs
        One name or several; by default everything that the inputs allow.
    using
        Which model stands for a quantity that has rivals: ``{"checkpoint_interval_s": "checkpoint_interval_young_s"}``.

    Returns
    -------
    dict, DataFrame or LazyFrame
        A dict of the outputs for a mapping; for a frame the same kind, rows in the same order, wider by one Float64
        column per output. A LazyFrame stays lazy and native.

    Raises
    ------
    UnknownQuantity, MissingQuantity, CycleError
        If names do not lead from inputs to outputs.
    ScenarioError
        If a value has the wrong type, is null, not finite, out of bounds, or contradicts the others. In a LazyFrame,
        whose values nobody has seen yet, outputs that need such a value are null.

    Warns
    -----
    FactorykitWarning
        If a result is infinite, with the reason; for a mapping whose outputs are named, also if a formula on the way
        leaves the range in which it is stated to be good, with the condition that fails.

    Examples
    --------
    >>> evaluate({"active_parameters": 405e9, "tokens": 15.6e12}, "training_flop")
    {'training_flop': 3.7908e+25}

    >>> import polars as pl
    >>> evaluate(pl.DataFrame({"accelerators": [24576, 100_000], "peak_flop_per_s": 989e12}), "cluster_peak_flop_per_s")
    shape: (2, 3)
    ┌──────────────┬─────────────────┬─────────────────────────┐
    │ accelerators ┆ peak_flop_per_s ┆ cluster_peak_flop_per_s │
    │ ---          ┆ ---             ┆ ---                     │
    │ f64          ┆ f64             ┆ f64                     │
    ╞══════════════╪═════════════════╪═════════════════════════╡
    │ 24576.0      ┆ 9.8900e14       ┆ 2.4306e19               │
    │ 100000.0     ┆ 9.8900e14       ┆ 9.8900e19               │
    └──────────────┴─────────────────┴─────────────────────────┘
    """
    rivals = {quantity(name).name: choice(name, rival) for name, rival in (using or {}).items()}
    if isinstance(inputs, Mapping):
        return _evaluate_mapping(inputs, _names(outputs), rivals)
    if type(inputs).__module__.partition(".")[0] == "polars" and hasattr(inputs, "lazy"):
        return _evaluate_frame(inputs, _names(outputs), rivals)
    raise ScenarioError(f"inputs are {type(inputs).__name__}; give a mapping, a polars DataFrame or a LazyFrame")


def checked(inputs: Mapping[str, Any]) -> tuple[dict[str, float | str], dict[str, str]]:
    """Return the values of a mapping, each checked, and the rival models it names.

    Raises
    ------
    UnknownQuantity, ScenarioError
    """
    values: dict[str, float | str] = {}
    rivals: dict[str, str] = {}
    for name, value in inputs.items():
        row = quantity(name)
        if isinstance(value, str) and not row.is_text:
            rivals[name] = choice(name, value)
        else:
            values[name] = row.check(value)
    return values, rivals


def compute(steps: Sequence[Step], values: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return ``values`` and the result of every step, computed on floats. Divisions by zero follow IEEE 754."""
    results = dict(values)
    for step in steps:
        operands = [results[name] for name in step.arguments]
        try:
            results[step.quantity] = step.formula(*operands)
        except (ZeroDivisionError, OverflowError):
            results[step.quantity] = _ieee(step, operands)
    return results


def fold(steps: Iterable[Step], values: Mapping[str, float | str]) -> tuple[dict[str, float | str], tuple[Step, ...]]:
    """Return what the values alone determine, and the steps that are left with those values put in.

    A frame in which most quantities are the same for all rows needs columns for the others only.
    """
    known = dict(values)
    left = []
    for step in steps:
        fixed = {name: known[name] for name in step.arguments if name in known}
        if len(fixed) == len(step.arguments):
            known = compute((step,), known)
        else:
            open_names = tuple(name for name in step.arguments if name not in fixed)
            left.append(Step(step.quantity, _with_values(step, fixed), open_names))
    return known, tuple(left)


def _with_values(step: Step, fixed: Mapping[str, float | str]) -> Any:
    def formula(*operands: Any) -> Any:
        rest = iter(operands)
        return step.formula(*[fixed[name] if name in fixed else next(rest) for name in step.arguments])

    return formula


def _ieee(step: Step, operands: list[Any]) -> float:
    import polars as pl

    return pl.select(step.formula(*[pl.lit(operand, dtype=pl.Float64) for operand in operands])).item()


def _names(outputs: Outputs) -> tuple[str, ...] | None:
    if outputs is None:
        return None
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    if not names:
        raise ScenarioError("outputs are empty; name at least one quantity, or leave outputs away for all of them")
    return tuple(quantity(name).name for name in names)


def _evaluate_mapping(
    inputs: Mapping[str, Any], outputs: tuple[str, ...] | None, rivals: dict[str, str]
) -> dict[str, Any]:
    values, named = checked(inputs)
    values = _with_accelerator(values)
    using = named | rivals
    agree(values, using)
    asked = outputs is not None
    if outputs is None:
        outputs = available(values, using)
    steps = chain(values, outputs, using)
    results = compute(steps, values)
    if asked and layout.concerns({step.quantity for step in steps}):
        layout.check({name: value for name, value in results.items() if name not in layout.said(values)})
    outside = _outside(steps, results) if asked else ()
    for name in outputs:
        _judge(name, results, steps, outside)
    if math.inf not in (results[name] for name in outputs):
        for sentence in outside:
            warnings.warn(sentence, FactorykitWarning, stacklevel=3)
    return {name: results[name] for name in outputs}


def _with_accelerator(values: dict[str, float | str]) -> dict[str, float | str]:
    """Return the values and what the accelerator named among them brings; a given value is kept."""
    if "accelerator" not in values:
        return values
    from factorykit.model.hardware import specification

    precision = str(values.get("precision", "bf16"))
    return {**specification(str(values["accelerator"]), precision), "precision": precision, **values}


def agree(values: Mapping[str, float | str], using: Mapping[str, str]) -> None:
    """Refuse values that contradict each other.

    Raises
    ------
    ScenarioError
        If a quantity is both given and left to a rival model, or a given derived quantity differs from what the other
        values give.
    """
    _refuse_two_sayings(values, using)
    for name, steps in _redundant(frozenset(values), tuple(sorted(using.items()))):
        stated, computed = values[name], compute(steps, values)[name]
        if not math.isclose(stated, computed, rel_tol=AGREEMENT):  # type: ignore[arg-type]
            raise ScenarioError(
                f"{name} = {stated!r} contradicts the other inputs, which give {computed!r}; drop one of them"
            )


def _refuse_two_sayings(given: Iterable[str], using: Mapping[str, str]) -> None:
    for name in given:
        if name in using:
            raise ScenarioError(f"{name} is given and also computed with {using[name]}; drop one of them")


@lru_cache(maxsize=512)
def _redundant(given: frozenset[str], using: tuple[tuple[str, str], ...]) -> tuple[tuple[str, tuple[Step, ...]], ...]:
    """Return the given derived quantities that the other given quantities determine too, with the steps to them."""
    found = []
    for name in sorted(given):
        if quantity(name).is_derived:
            try:
                steps = chain(given - {name}, (name,), dict(using))
            except MissingQuantity:
                continue
            found.append((name, steps))
    return tuple(found)


def _judge(name: str, results: Mapping[str, Any], steps: Sequence[Step], outside: Sequence[str]) -> None:
    value = results[name]
    if isinstance(value, str) or math.isfinite(value):
        return
    computed = {step.quantity: results[step.quantity] for step in steps if step.quantity != name}
    reason = ", ".join(f"{other} = {x:g}" for other, x in computed.items() if x == 0.0 or not math.isfinite(x))
    because = f": {reason}" if reason else ""
    if math.isnan(value):
        raise ScenarioError(f"{name} is undefined for these inputs{because}; change the inputs these are computed from")
    warnings.warn("; ".join([f"{name} is infinite{because}", *outside]), FactorykitWarning, stacklevel=4)


def _outside(steps: Sequence[Step], results: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for every formula on the way whose stated validity the values leave."""
    sentences = []
    for step in steps:
        stated = validity(step.quantity)
        if stated and not stated.condition(*[results[name] for name in stated.arguments]):
            held = ", ".join(f"{name} = {results[name]:g}" for name in stated.arguments)
            sentences.append(f"{step.quantity} is good for {stated.words}; here {held}")
    return tuple(sentences)


def _evaluate_frame(frame: Any, outputs: tuple[str, ...] | None, using: dict[str, str]) -> Any:
    import polars as pl

    lazy = isinstance(frame, pl.LazyFrame)
    if not lazy and frame.height == 0:
        raise ScenarioError("the frame has no rows; nothing can be evaluated")
    schema = frame.collect_schema()
    stated = list(schema)
    if "accelerator" in schema:
        from factorykit.model.hardware import joined

        frame = joined(frame)
        schema = frame.collect_schema()
    given = {name for name in schema if name in vocabulary()}
    _refuse_two_sayings(given, using)
    if outputs is None:
        outputs = available(given, using)
    try:
        steps = chain(given, outputs, using)
    except MissingQuantity as error:
        raise MissingQuantity(f"{error}{_typo(error.missing, schema)}", error.missing) from None
    used = {*leaves(steps), *(name for name in outputs if name in given)}
    inputs = [name for name in schema if name in used]
    for name in inputs:
        if quantity(name).is_text and schema[name] != pl.String:
            raise ScenarioError(f"column {name} is {schema[name]}, not text; cast it to String")
        if not quantity(name).is_text and not schema[name].is_numeric():
            raise ScenarioError(f"column {name} is {schema[name]}, not numeric; cast it to Float64")
    floats = frame.lazy().with_columns(
        pl.col(name).cast(pl.Float64) for name in inputs if not quantity(name).is_text and schema[name] != pl.Float64
    )
    if lazy:
        floats = floats.with_columns(pl.when(_holds(name)).then(pl.col(name)).alias(name) for name in inputs)
    else:
        _check_frame(frame, floats, inputs)  # type: ignore[arg-type]
        _check_agreement(floats, given, using)
    for layer in columns(steps):
        floats = floats.with_columns(layer)
    computed = {step.quantity for step in steps}
    if layout.concerns(computed):
        floats = floats.with_columns(layout.broken({*computed, *inputs} - layout.said(inputs)).alias(BROKEN))
        if not lazy:
            floats = floats.collect().lazy()
            _check_layouts(floats)
        works = pl.col(BROKEN).is_null()
        floats = floats.with_columns(pl.when(works).then(name).alias(name) for name in outputs if name in computed)
    wider = floats.select(*stated, *(name for name in dict.fromkeys(outputs) if name not in stated))
    return wider if lazy else wider.collect()


@lru_cache(maxsize=512)
def columns(steps: tuple[Step, ...]) -> list[list[pl.Expr]]:
    """Return the steps as columns in groups that need only earlier groups.

    What a formula uses more than once becomes a column of its own: polars' own search for common parts gives up on
    nested ones, and the plan of the exact checkpoint optimum would grow a hundredfold.
    """
    import polars as pl

    groups: list[list[pl.Expr]] = []
    depth: dict[str, int] = {}
    for step in steps:
        for name, part in parts(step.term, step.quantity, frozenset({"expm1"}), separator=" part "):
            depth[name] = level = max((depth.get(needed, 0) for needed in symbols(part)), default=0) + 1
            groups.extend([] for _ in range(level - len(groups)))
            made = _expression(part)
            groups[level - 1].append((pl.lit(made) if isinstance(made, (float, str)) else made).alias(name))
    return groups


def _expression(part: Term) -> Any:
    import polars as pl

    match part:
        case Symbol(name=name):
            return pl.col(name)
        case Number(value=value):
            return value
        case Word(text=text):
            return text
        case Negative(of=of):
            return -_expression(of)
        case Binary(operator=sign, left=left, right=right):
            return OPERATORS[sign](_expression(left), _expression(right))
        case Call(function=function, arguments=arguments):
            return getattr(functions, function)(*map(_expression, arguments))
    raise TypeError(f"no column for {type(part).__name__}")


def _holds(name: str) -> pl.Expr:
    """Return whether the column is within the bounds. Polars orders NaN above infinity: ``<`` refuses both."""
    import polars as pl

    row, column = quantity(name), pl.col(name)
    if row.is_text:
        return column.is_in(row.alternatives) if row.alternatives else column.is_not_null()
    above = column >= row.lower if row.bounds[0] == "[" else column > row.lower
    below = column <= row.upper if row.bounds[-1] == "]" else column < row.upper
    return above & below if math.isfinite(row.lower) else below & column.is_finite()


def _check_frame(frame: pl.DataFrame, floats: pl.LazyFrame, inputs: list[str]) -> None:
    import polars as pl

    verdicts = floats.select(
        (_holds(name) & pl.col(name).is_not_null()).all(ignore_nulls=False) for name in inputs
    ).collect()
    for name in inputs:
        if not verdicts[name][0]:
            broken = floats.with_row_index("number of row").filter(_holds(name).not_() | pl.col(name).is_null())
            rows = broken.select("number of row", name).collect()
            first, value = rows.row(0)
            raise ScenarioError(
                f"column {name}: {rows.height} of {frame.height} rows break {quantity(name).bounds}; "
                f"the first is row {first} with {value}"
            )


def _check_layouts(floats: pl.LazyFrame) -> None:
    import polars as pl

    rows = floats.select(BROKEN).with_row_index("number of row").filter(pl.col(BROKEN).is_not_null()).collect()
    if rows.height:
        first, rule = rows.row(0)
        raise ScenarioError(
            f"{rows.height} rows hold a layout that does not work, the first is row {first}: {rule}, and there not; "
            "evaluate a LazyFrame to get null there"
        )


def _check_agreement(floats: pl.LazyFrame, given: set[str], using: Mapping[str, str]) -> None:
    import polars as pl

    for name, steps in _redundant(frozenset(given), tuple(sorted(using.items()))):
        stated = "stated " + name
        compared = floats.with_columns(pl.col(name).alias(stated))
        for layer in columns(steps):
            compared = compared.with_columns(layer)
        differs = (pl.col(stated) - pl.col(name)).abs() > AGREEMENT * pl.max_horizontal(
            pl.col(stated).abs(), pl.col(name).abs()
        )
        rows = compared.with_row_index("number of row").filter(differs).select("number of row", stated, name).collect()
        if rows.height:
            first, said, computed = rows.row(0)
            raise ScenarioError(
                f"column {name} contradicts the other columns in {rows.height} rows, first in row {first}: "
                f"{said} against {computed}; drop one of them"
            )


def _typo(missing: Sequence[str], schema: Mapping[str, Any]) -> str:
    strangers = [name for name in schema if name not in vocabulary()]
    hints = [f"column {near!r} is no quantity; is it {name}?" for name in missing if (near := nearest(name, strangers))]
    return f" ({' '.join(hints)})" if hints else ""
