"""Expressions in LaTeX, with the symbols of the vocabulary."""

from __future__ import annotations

import math

from factorykit.core.vocabulary import vocabulary
from factorykit.formulas.expressions import (
    ATOM,
    SIGN,
    Binary,
    Call,
    Lookup,
    Negative,
    Number,
    Symbol,
    Term,
    Word,
    plain_number,
)

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
    return plain_number(value)


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
