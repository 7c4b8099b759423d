"""Symbolic expression trees of formulas, printed as text.

Calling a formula with symbols records its body as a tree. The tree keeps the order in which the formula is written, so
that the methods page shows the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

ATOM, POWER, SIGN, PRODUCT, SUM, COMPARISON = 6, 5, 4, 3, 2, 1


def _operator(sign: str, *, reflected: bool = False) -> Callable[[Any, Any], Term]:
    """Return a method of `Term` that joins it and another operand, which stands first if ``reflected``."""

    def joined(self: Term, other: Any) -> Term:
        return Binary(sign, term(other), self) if reflected else Binary(sign, self, term(other))

    return joined


class Term:
    """A node of an expression tree. Arithmetic and comparisons build larger trees; a branch raises TypeError."""

    binding: ClassVar[int] = ATOM
    __hash__ = object.__hash__
    __add__, __radd__ = _operator("+"), _operator("+", reflected=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", reflected=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", reflected=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", reflected=True)
    __pow__, __rpow__ = _operator("**"), _operator("**", reflected=True)
    __mod__ = _operator("%")
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("<", "<=", ">", ">="))
    __eq__ = _operator("==")  # type: ignore[assignment]

    def __neg__(self) -> Term:
        return Negative(self)

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


def plain_number(value: float) -> str:
    """Return a number without a decimal point where it is whole."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)


def infix(root: Term, leaf: Callable[[Term], str], call: Callable[[str, list[str]], str], power: str) -> str:
    """Return an expression with its operators between their operands, in brackets where precedence needs them.

    ``leaf`` prints other nodes, ``call`` a function with its printed arguments; ``power`` is the operator, or the
    function, of powers.
    """

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
            case Call(function=function, arguments=arguments):
                return call(function, [render(argument) for argument in arguments])
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
            return f"{node.column}[{', '.join(map(leaf, node.words))}]"
        return node.name if isinstance(node, Symbol) else plain_number(node.value)  # type: ignore[attr-defined]

    return infix(root, leaf, lambda function, parts: f"{function}({', '.join(parts)})", "**")
