"""Symbolic expression trees of formulas, printed as text, LaTeX, Vega or JavaScript.

Calling a formula with symbols records its body as a tree. The tree keeps the order in which the formula is written, so
that the methods page shows the code.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from factorykit.core.vocabulary import vocabulary

ATOM, POWER, SIGN, PRODUCT, SUM, COMPARISON = 6, 5, 4, 3, 2, 1


class Term:
    """A node of an expression tree. Arithmetic and comparisons build larger trees; a branch raises TypeError."""

    binding: ClassVar[int] = ATOM
    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Term:
        return Binary("+", self, term(other))

    def __radd__(self, other: Any) -> Term:
        return Binary("+", term(other), self)

    def __sub__(self, other: Any) -> Term:
        return Binary("-", self, term(other))

    def __rsub__(self, other: Any) -> Term:
        return Binary("-", term(other), self)

    def __mul__(self, other: Any) -> Term:
        return Binary("*", self, term(other))

    def __rmul__(self, other: Any) -> Term:
        return Binary("*", term(other), self)

    def __truediv__(self, other: Any) -> Term:
        return Binary("/", self, term(other))

    def __rtruediv__(self, other: Any) -> Term:
        return Binary("/", term(other), self)

    def __mod__(self, other: Any) -> Term:
        return Binary("%", self, term(other))

    def __pow__(self, other: Any) -> Term:
        return Binary("**", self, term(other))

    def __rpow__(self, other: Any) -> Term:
        return Binary("**", term(other), self)

    def __neg__(self) -> Term:
        return Negative(self)

    def __lt__(self, other: Any) -> Term:
        return Binary("<", self, term(other))

    def __le__(self, other: Any) -> Term:
        return Binary("<=", self, term(other))

    def __gt__(self, other: Any) -> Term:
        return Binary(">", self, term(other))

    def __ge__(self, other: Any) -> Term:
        return Binary(">=", self, term(other))

    def __eq__(self, other: Any) -> Term:  # type: ignore[override]
        return Binary("==", self, term(other))

    def __bool__(self) -> bool:
        raise TypeError("a formula may not branch with if, and, or, min or max; use where, minimum or maximum")

    def __str__(self) -> str:
        return as_text(self)


@dataclass(frozen=True, eq=False, slots=True)
class Number(Term):
    """A constant."""

    value: float


@dataclass(frozen=True, eq=False, slots=True)
class Word(Term):
    """A string literal."""

    text: str


@dataclass(frozen=True, eq=False, slots=True)
class Symbol(Term):
    """A quantity, by name."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Negative(Term):
    """A negated expression."""

    of: Term
    binding: ClassVar[int] = SIGN


@dataclass(frozen=True, eq=False, slots=True)
class Binary(Term):
    """Two expressions joined by a Python operator."""

    operator: str
    left: Term
    right: Term

    @property
    def binding(self) -> int:  # type: ignore[override]
        """The precedence of the operator."""
        return {"**": POWER, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "+": SUM, "-": SUM}.get(
            self.operator, COMPARISON
        )


@dataclass(frozen=True, eq=False, slots=True)
class Call(Term):
    """A call of a function of :mod:`factorykit.formulas.functions`."""

    function: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Lookup(Term):
    """A cell of a table column: ``values`` by the key words, joined by a space. No value is null."""

    column: str
    words: tuple[Term, ...]
    values: Mapping[str, float]


def term(value: Any) -> Term:
    """Return ``value`` as an expression."""
    if isinstance(value, Term):
        return value
    return Word(value) if isinstance(value, str) else Number(float(value))


def call(function: str, *operands: Any) -> Call:
    """Return the call of ``function`` with ``operands``."""
    return Call(function, tuple(term(operand) for operand in operands))


def trace(formula: Callable[..., Any]) -> Term:
    """Return the body of ``formula`` as an expression of its arguments.

    >>> def nodes(accelerators, accelerators_per_node):
    ...     return accelerators / accelerators_per_node
    >>> print(trace(nodes))
    accelerators / accelerators_per_node
    """
    code = formula.__code__
    return term(formula(*[Symbol(name) for name in code.co_varnames[: code.co_argcount]]))


def symbols(root: Term) -> set[str]:
    """Return the names of the quantities in an expression."""
    if isinstance(root, Symbol):
        return {root.name}
    return {name for child in _children(root) for name in symbols(child)}


def steps(
    root: Term, name: str, repeating: frozenset[str] = frozenset(), separator: str = "_"
) -> list[tuple[str, Term]]:
    """Return the expression as a list of named steps without repeated subexpressions; the last one is called ``name``.

    A subexpression that occurs more than once becomes a separate step called ``name_1``, ``name_2`` and so on; so does
    the argument of a function in ``repeating``, whose printed form repeats its argument.

    >>> x = Symbol("tokens") + 1.0
    >>> [(step, str(value)) for step, value in steps(x * x, "y")]
    [('y_1', 'tokens + 1'), ('y', 'y_1 * y_1')]
    """
    uses: dict[int, int] = {}

    def count(node: Term) -> None:
        is_repeated = id(node) in uses
        uses[id(node)] = uses.get(id(node), 0) + 1
        if not is_repeated:
            for child in _children(node):
                count(child)
                uses[id(child)] += isinstance(node, Call) and node.function in repeating

    count(root)
    named: list[tuple[str, Term]] = []
    known: dict[int, Term] = {}

    def rebuild(node: Term) -> Term:
        if id(node) in known:
            return known[id(node)]
        rebuilt = _with_children(node, [rebuild(child) for child in _children(node)])
        if uses[id(node)] > 1 and not isinstance(node, (Number, Symbol, Word)) and node is not root:
            named.append((f"{name}{separator}{len(named) + 1}", rebuilt))
            rebuilt = Symbol(named[-1][0])
        known[id(node)] = rebuilt
        return rebuilt

    last = rebuild(root)
    return [*named, (name, last)]


def _children(node: Term) -> list[Term]:
    match node:
        case Binary(left=left, right=right):
            return [left, right]
        case Negative(of=of):
            return [of]
        case Call(arguments=arguments):
            return [*arguments]
        case Lookup(words=words):
            return [*words]
        case _:
            return []


def _with_children(node: Term, children: list[Term]) -> Term:
    match node:
        case Binary(operator=operator):
            return Binary(operator, *children)
        case Negative():
            return Negative(*children)
        case Call(function=function):
            return Call(function, tuple(children))
        case Lookup(column=column, values=values):
            return Lookup(column, tuple(children), values)
        case _:
            return node


def _plain_number(value: float) -> str:
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)


def _infix(root: Term, leaf: Callable[[Term], str], call: Callable[[Call], str], power: str) -> str:
    def render(node: Term, outer: int = 0) -> str:
        match node:
            case Binary(operator="**", left=left, right=right) if power != "**":
                return f"{power}({render(left)}, {render(right)})"
            case Binary(operator=operator, left=left, right=right):
                right_outer = node.binding + (operator in "-/%" or node.binding == COMPARISON)
                left_outer = node.binding + (operator == "**")
                text = f"{render(left, left_outer)} {operator} {render(right, right_outer)}"
            case Negative(of=of):
                text = f"-{render(of, SIGN + 1)}"
            case Call():
                return call(node)
            case _:
                return leaf(node)
        return f"({text})" if node.binding < outer else text

    return render(root)


def as_text(root: Term) -> str:
    """Return the expression as a line of Python."""

    def leaf(node: Term) -> str:
        if isinstance(node, Word):
            return repr(node.text)
        if isinstance(node, Lookup):
            return f"{node.column}[{', '.join(map(as_text, node.words))}]"
        return node.name if isinstance(node, Symbol) else _plain_number(node.value)  # type: ignore[attr-defined]

    def applied(node: Call) -> str:
        return f"{node.function}({', '.join(as_text(argument) for argument in node.arguments)})"

    return _infix(root, leaf, applied, "**")


VEGA_CALLS: dict[str, str] = {
    "sqrt": "sqrt({0})",
    "exp": "exp({0})",
    "log": "log({0})",
    "ceil": "ceil({0})",
    "floor": "floor({0})",
    "minimum": "min({0}, {1})",
    "maximum": "max({0}, {1})",
    "where": "({0} ? {1} : {2})",
    # Vega has neither function; rounding in 1 + x and exp(x) cancels in the quotients (Goldberg 1991, theorem 4;
    # Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, section 1.14.1).
    "log1p": "(1 + ({0}) == 1 ? ({0}) : log(1 + ({0})) * ({0}) / ((1 + ({0})) - 1))",
    "expm1": "(exp({0}) == 1 ? ({0}) : abs({0}) > 1 ? exp({0}) - 1 : (exp({0}) - 1) * ({0}) / log(exp({0})))",
}


LITERAL_COMPARISON: Final = re.compile(r'(\d[\d.]*|"\w*") (==|>=|<=|>|<) (\d[\d.]*|"\w*")')
"""A comparison of two literals, evaluated before the expression is printed."""
COMPARISONS: Final = {"==": operator.eq, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def vega_literal(value: float | str) -> str:
    r"""Return a number or string as a Vega literal.

    >>> vega_literal("the owner's"), vega_literal(-0.5), vega_literal(float("inf"))
    ('"the owner\'s"', '(-0.5)', '(1 / 0)')
    """
    if isinstance(value, float) and math.isinf(value):
        return "(1 / 0)" if value > 0 else "(-1 / 0)"
    text = json.dumps(value)
    return f"({text})" if text.startswith("-") else text


def as_vega(root: Term, fields: Mapping[str, str] | Callable[[str], str] | None = None) -> str:
    """Return the expression in the Vega expression language.

    ``fields`` maps quantities to Vega names; the default is the column of the same name, ``datum["tokens"]``.
    A signal or parameter maps to its name: ``{"mfu": "mfu"}``.
    """

    def leaf(node: Term) -> str:
        if isinstance(node, Number):
            return vega_literal(node.value)
        if isinstance(node, Word):
            return vega_literal(node.text)
        if isinstance(node, Lookup):
            key = " + ' ' + ".join(as_vega(word, fields) for word in node.words)
            return f"({json.dumps(dict(node.values))}[{key}])"
        name = node.name  # type: ignore[attr-defined]
        if callable(fields):
            return fields(name)
        return (fields or {}).get(name, f'datum["{name}"]')

    def applied(node: Call) -> str:
        if node.function == "where" and (constant := LITERAL_COMPARISON.fullmatch(as_vega(node.arguments[0], fields))):
            left, comparison, right = constant.groups()
            holds = COMPARISONS[comparison](json.loads(left), json.loads(right))
            return f"({as_vega(node.arguments[1 if holds else 2], fields)})"
        return VEGA_CALLS[node.function].format(*[as_vega(argument, fields) for argument in node.arguments])

    return _infix(root, leaf, applied, "pow")


JAVASCRIPT_CALLS: dict[str, str] = {
    "sqrt": "Math.sqrt({0})",
    "exp": "Math.exp({0})",
    "log": "Math.log({0})",
    "ceil": "Math.ceil({0})",
    "floor": "Math.floor({0})",
    "minimum": "Math.min({0}, {1})",
    "maximum": "Math.max({0}, {1})",
    "where": "({0} ? {1} : {2})",
    "log1p": "Math.log1p({0})",
    "expm1": "Math.expm1({0})",
}


def as_javascript(root: Term, names: Mapping[str, str] | None = None, tables: str = "TABLES") -> str:
    """Return the expression in JavaScript.

    ``names`` maps quantities to JavaScript names; the default is the quantity's name. A table cell is read from the
    object ``tables`` by its column and its key words, joined by a space.

    >>> as_javascript(Symbol("tokens") ** 2.0 % 3.0), as_javascript(Lookup("links", (Symbol("accelerator"),), {}))
    ('Math.pow(tokens, 2) % 3', 'TABLES["links"][accelerator]')
    """

    def leaf(node: Term) -> str:
        if isinstance(node, Number):
            return vega_literal(node.value).removesuffix(".0")
        if isinstance(node, Word):
            return json.dumps(node.text)
        if isinstance(node, Lookup):
            key = " + ' ' + ".join(as_javascript(word, names, tables) for word in node.words)
            return f"{tables}[{json.dumps(node.column)}][{key}]"
        name = str(node.name)  # type: ignore[attr-defined]
        return (names or {}).get(name, name)

    def applied(node: Call) -> str:
        parts = [as_javascript(argument, names, tables) for argument in node.arguments]
        return JAVASCRIPT_CALLS[node.function].format(*parts)

    return _infix(root, leaf, applied, "Math.pow").replace(" == ", " === ")


LATEX_CALLS: dict[str, str] = {
    "sqrt": r"\sqrt{{{0}}}",
    "exp": r"\exp\left({0}\right)",
    "log": r"\ln\left({0}\right)",
    "ceil": r"\left\lceil {0} \right\rceil",
    "floor": r"\left\lfloor {0} \right\rfloor",
    "minimum": r"\min\left({0}, {1}\right)",
    "maximum": r"\max\left({0}, {1}\right)",
    "where": r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{otherwise}} \end{{cases}}",
    "log1p": r"\ln\left(1 + {0}\right)",
    "expm1": r"\left(\mathrm{{e}}^{{{0}}} - 1\right)",
}
LATEX_OPERATORS = {
    "+": "+",
    "-": "-",
    "*": r"\,",
    "%": r"\bmod",
    "<": "<",
    "<=": r"\le",
    ">": ">",
    ">=": r"\ge",
    "==": "=",
}


LATEX_TEXT = str.maketrans(
    {sign: rf"\{sign}" for sign in "{}$&#%_"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)


def symbol_latex(name: str) -> str:
    r"""Return the symbol of a quantity, multi-letter parts upright; a name outside the vocabulary is its own symbol.

    >>> symbol_latex("active_parameters"), symbol_latex("mfu")
    ('N_{a}', '\\mathrm{MFU}')
    """
    row = vocabulary().get(name)
    if row and not row.symbol:
        return _latex_text(row.label)
    base, _, sub = (row.symbol if row else name).partition("_")
    upright = [part if len(part) == 1 or part.startswith("\\") else rf"\mathrm{{{part}}}" for part in (base, sub)]
    return f"{upright[0]}_{{{upright[1]}}}" if sub else upright[0]


def _latex_text(text: str) -> str:
    return rf"\text{{{text.translate(LATEX_TEXT)}}}"


def _latex_number(value: float) -> str:
    if math.isinf(value):
        return r"\infty"
    if value and not 1e-4 <= abs(value) < 1e6:
        mantissa, _, exponent = f"{value:g}".partition("e")
        times = rf"{mantissa} \times " if mantissa != "1" else ""
        return rf"{times}10^{{{int(exponent or 0)}}}" if exponent else mantissa
    return _plain_number(value)


def as_latex(root: Term) -> str:
    r"""Return the expression in LaTeX, with the symbols of the vocabulary.

    >>> as_latex(2.0 * Symbol("checkpoint_write_s") / Symbol("cluster_mtbf_s"))
    '\\frac{2 \\, C_{w}}{M}'
    """
    match root:
        case Number(value=value):
            return _latex_number(value)
        case Word(text=text):
            return _latex_text(text)
        case Symbol(name=name):
            return symbol_latex(name)
        case Negative(of=of):
            return f"-{_parenthesized(of, SIGN + 1)}"
        case Binary(operator="/", left=left, right=right):
            return rf"\frac{{{as_latex(left)}}}{{{as_latex(right)}}}"
        case Binary(operator="**", left=left, right=right):
            return f"{_parenthesized(left, ATOM)}^{{{as_latex(right)}}}"
        case Binary(operator=operator, left=left, right=right):
            sign = r"\cdot" if operator == "*" and isinstance(right, Number) else LATEX_OPERATORS[operator]
            return (
                f"{_parenthesized(left, root.binding)} {sign} {_parenthesized(right, root.binding + (operator == '-'))}"
            )
        case Call(function=function, arguments=arguments):
            return LATEX_CALLS[function].format(*[as_latex(argument) for argument in arguments])
        case Lookup(column=column, words=words):
            return rf"\text{{{column}}}\left[{', '.join(map(as_latex, words))}\right]"
    raise TypeError(f"expected an expression, got {type(root).__name__}")


def _parenthesized(node: Term, outer: int) -> str:
    binds = ATOM if isinstance(node, Binary) and node.operator == "/" else node.binding
    return rf"\left({as_latex(node)}\right)" if binds < outer else as_latex(node)
