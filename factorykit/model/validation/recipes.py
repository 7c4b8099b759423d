"""Recipes, small expressions over quantities, formulas and table cells that recompute published numbers.

A recipe is parsed, not executed; only the forms below are evaluated.

=============================================  =========================================================================
``24576``, ``405e9``, ``+ - * / **``           arithmetic
``SECONDS_PER_DAY``                            a constant of :mod:`factorykit.core.constants`
``accelerators.h100_sxm.tdp_w``                a table cell by key and column; of several statements the preferred one
``cluster_statements["meta_24k@llama3_paper"].nodes``    the cell of one statement
``presets.deepseek_v3.tokens``                 one quantity of a preset
``facts.tianhe_1a_rmax``                       the value of a fact
``claims.c000_002``                            number of another claim; ``.stated_low`` and ``.stated_high`` its range
``node_power_w(accelerators_per_node=8, …)``   a quantity, by its own formula or by the chain that leads to it
``training_days(preset="deepseek_v3", mfu=…)`` the same, started from a preset
``sqrt ceil floor log2 minimum maximum``       functions of numbers
``contains(cell, "Ethernet")``                 1 if a cell of text contains the words, otherwise 0
``year(cell)``                                 a cell of a date as a decimal year, the middle of a month or year
``span(low, high)``                            a range, only as the whole recipe
=============================================  =========================================================================
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from factorykit.core import constants
from factorykit.core.errors import FactorykitError, RecipeError, unknown_name_message
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data.tables import resources, table
from factorykit.engine.evaluate import evaluate
from factorykit.formulas import arguments, catalogue
from factorykit.model.scenario.presets import preset

MAX_CHARACTERS: Final = 2000
"""Characters of a recipe."""

OPERATORS: Final[Mapping[type, Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {
    "sqrt": math.sqrt,
    "ceil": lambda x: float(math.ceil(x)),
    "floor": lambda x: float(math.floor(x)),
    "log2": math.log2,
    "minimum": min,
    "maximum": max,
}
CONSTANTS: Final = {name: value for name, value in vars(constants).items() if name.isupper()}


@dataclass(frozen=True, slots=True)
class Span:
    """A range of numbers, lower end first."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Middle of the range."""
        return (self.low + self.high) / 2.0


@dataclass(frozen=True, slots=True)
class Part:
    """A cell, claim, constant or formula that a recipe used, with its value."""

    text: str
    kind: str
    value: float | str
    unit: str
    source: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Value of a recipe, and the parts that it used, each once, in the order of evaluation."""

    value: float | Span
    parts: tuple[Part, ...]


class Tables:
    """Rows of the tables by key, read once."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, dict[str, Any]]] = {}
        self._units: dict[str, dict[str, str]] = {}

    def row(self, name: str, key: str) -> dict[str, Any]:
        """Return the row of an entity, or of a statement; for an entity with several statements the preferred one.

        Raises
        ------
        RecipeError
            If there is no such table or key.
        """
        if name not in self._rows:
            self._read(name)
        rows = self._rows[name]
        if key not in rows:
            raise RecipeError(unknown_name_message(f"key in {name}", key, rows))
        return rows[key]

    def unit(self, name: str, column: str) -> str:
        """Return the unit of a column, empty for words."""
        return self._units[name].get(column, "")

    def _read(self, name: str) -> None:
        known = resources()
        if name not in known:
            raise RecipeError(unknown_name_message("table", name, known))
        fields = known[name]["schema"]["fields"]
        about = next(field["name"] for field in fields if field.get("entity"))
        self._units[name] = {field["name"]: field.get("unit", "") for field in fields}
        records: dict[str, dict[str, Any]] = {}
        for row in table(name).collect().to_dicts():
            if name == "presets":
                records.setdefault(row[about], {})[row["quantity"]] = row
                continue
            if "statement" in row:
                records[row["statement"]] = row
            if "preferred" not in row or row["preferred"] is not None:
                records[row[about]] = row
        self._rows[name] = records


def evaluate_recipe(text: str, tables: Tables | None = None) -> Result:
    """Return the value of a recipe, and the parts that it used.

    Parameters
    ----------
    text
        A recipe, in the forms that the docstring of this module lists.
    tables
        Rows already read, shared between recipes.

    Raises
    ------
    RecipeError
        If the text is no recipe, names something unknown, meets an empty cell, or gives no finite number.

    >>> evaluate_recipe("cluster_peak_flop_per_s(accelerators=24576, peak_flop_per_s=989e12)").value
    2.4305664e+19
    >>> evaluate_recipe("span(512 * 30, 1024 * 60)").value
    Span(low=15360.0, high=61440.0)
    """
    if len(text) > MAX_CHARACTERS:
        raise RecipeError(f"a recipe has at most {MAX_CHARACTERS} characters, not {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RecipeError(f"{text!r} is not an expression ({error})") from None
    evaluator = _Evaluator(tables or Tables())
    try:
        value = evaluator.result(tree)
    except RecipeError as error:
        raise RecipeError(f"{text}: {error}") from None
    except FactorykitError as error:
        raise RecipeError(f"{text}: {type(error).__name__}: {error}") from None
    except (ArithmeticError, ValueError, RecursionError) as error:
        raise RecipeError(f"{text}: {error}") from None
    return Result(value, tuple(dict.fromkeys(evaluator.parts)))


class _Evaluator:
    """Evaluator of one recipe, which records its parts."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.parts: list[Part] = []

    def result(self, node: ast.expr) -> float | Span:
        match node:
            case ast.Call(func=ast.Name(id="span"), args=[low, high], keywords=[]):
                interval = Span(self._finite(low), self._finite(high))
                if interval.low > interval.high:
                    raise RecipeError(f"span({interval.low:g}, {interval.high:g}) must not begin above its end")
                return interval
            case _:
                return self._finite(node)

    def _finite(self, node: ast.expr) -> float:
        value = self.number(node)
        if not math.isfinite(value):
            raise RecipeError(f"must be finite, got {value}")
        return value

    def number(self, node: ast.expr) -> float:
        value = self.value(node)
        if isinstance(value, str):
            raise RecipeError(f"{ast.unparse(node)} must be a number, got the text {value!r}")
        return value

    def value(self, node: ast.expr) -> float | str:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.number(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                value = OPERATORS[type(op)](self.number(left), self.number(right))
                if isinstance(value, complex):
                    raise RecipeError(f"{ast.unparse(node)} is not a real number")
                return value
            case ast.Name(id=name):
                return self._constant(name)
            case ast.Call(func=ast.Name(id="contains"), args=[cell, ast.Constant(value=str() as words)], keywords=[]):
                return float(words.casefold() in str(self.value(cell)).casefold())
            case ast.Call(func=ast.Name(id="year"), args=[cell], keywords=[]):
                return _year(str(self.value(cell)))
            case ast.Call(func=ast.Name(id=name), args=list(operands), keywords=[]) if name in FUNCTIONS:
                return self._function(name, operands)
            case ast.Call(func=ast.Name(id=name), args=[], keywords=list(given)):
                return self._quantity(node, name, given)
            case ast.Attribute() | ast.Subscript():
                return self._cell(node)
        raise RecipeError(f"{ast.unparse(node)} is not part of the language of recipes")

    def _constant(self, name: str) -> float:
        if name not in CONSTANTS:
            raise RecipeError(unknown_name_message("constant", name, CONSTANTS))
        self.parts.append(Part(name, "constant", CONSTANTS[name], ""))
        return CONSTANTS[name]

    def _function(self, name: str, operands: list[ast.expr]) -> float:
        try:
            return FUNCTIONS[name](*[self.number(operand) for operand in operands])
        except TypeError as error:
            raise RecipeError(f"{name}: {error}") from None

    def _quantity(self, node: ast.expr, name: str, given: list[ast.keyword]) -> float:
        quantity(name)
        inputs: dict[str, Any] = {}
        for keyword in given:
            if keyword.arg is None:
                raise RecipeError("** is not part of the language of recipes")
            if keyword.arg == "preset":
                inputs = dict(preset(self._word(keyword.value))) | inputs
            elif vocabulary()[quantity(keyword.arg).name].is_text:
                inputs[keyword.arg] = self._word(keyword.value)
            else:
                inputs[keyword.arg] = self.number(keyword.value)
        formula = catalogue().get(name)
        if formula is not None and set(inputs) == set(arguments(formula)):
            value = formula(*[quantity(argument).check(inputs[argument]) for argument in arguments(formula)])
        else:
            value = evaluate(inputs, name)[name]
        self.parts.append(Part(ast.unparse(node), "formula", float(value), quantity(name).unit, key=name))
        return float(value)

    def _word(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        raise RecipeError(f"{ast.unparse(node)}: give text in quotation marks")

    def _cell(self, node: ast.expr) -> float | str:
        path = self._path(node)
        name, key, *rest = path
        row = self.tables.row(name, key)
        kind = "claim" if name == "claims" else "cell"
        if name == "presets" and len(rest) == 1:
            if rest[0] not in row:
                raise RecipeError(unknown_name_message(f"quantity of the preset {key}", rest[0], row))
            row, column, unit = row[rest[0]], "value", quantity(rest[0]).unit
        else:
            default = {"claims": "stated", "facts": "value"}.get(name)
            if len(rest) > 1 or (not rest and default is None):
                raise RecipeError(f"{ast.unparse(node)} is not a cell; give table.key.column")
            column = rest[0] if rest else str(default)
            if column not in row:
                raise RecipeError(unknown_name_message(f"column in {name}", column, row))
            unit = self.tables.unit(name, column)
            unit = row["unit"] if name in ("claims", "facts") and not unit else unit
        value = row[column]
        if value is None:
            raise RecipeError(f"{ast.unparse(node)} is empty")
        self.parts.append(Part(ast.unparse(node), kind, value, unit or "", row.get("source"), key))
        return value

    def _path(self, node: ast.expr) -> list[str]:
        match node:
            case ast.Name(id=name):
                return [name]
            case ast.Attribute(value=of, attr=name):
                return [*self._path(of), name]
            case ast.Subscript(value=of, slice=ast.Constant(value=str() as key)):
                return [*self._path(of), key]
        raise RecipeError(f"{ast.unparse(node)} is not a cell; give table.key.column")


def _year(date: str) -> float:
    """Return a date as a decimal year, the middle of a month or year.

    >>> _year("2024-10"), _year("2025")
    (2024.7916666666667, 2025.5)
    """
    match = re.fullmatch(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", date)
    if not match:
        raise RecipeError(f"{date!r} must be a date like 2024-10")
    year, month, day = match.groups()
    if month is None:
        return float(year) + 0.5
    within = (float(day) - 0.5) / 31.0 if day else 0.5
    return float(year) + (float(month) - 1.0 + within) / 12.0
