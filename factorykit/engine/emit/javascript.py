"""A chain as plain JavaScript: one function of the given values to all results, loops over layouts and futures.

Formulas, cells of tables, rules and defaults are printed from the objects that Python reads.
In every function a given value goes before the formula, as in the engine.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count, product
from string import ascii_letters, digits
from typing import Any, Final

from factorykit.engine.emit.vega import VEGA_CALLS, vega_literal
from factorykit.engine.rules import RULES
from factorykit.engine.step import Step, leaves
from factorykit.formulas import arguments
from factorykit.formulas.expressions import Lookup, Number, Symbol, Term, Word, infix, steps, term

SPACED: Final = re.compile(r" ([*/%<>=?:&|]+|[-+]) (?![-+])")
"""Operators, whose spaces are omitted: the script is read with the first page."""
NAME: Final = re.compile(r""""[^"]*"|'[^']*'|(?<![\w.$])([A-Za-z_]\w*)""")
"""A name that is no property, apart from words in quotation marks."""
KEYWORDS: Final = {"as", "do", "if", "in", "is", "of", "for", "let", "new", "try", "var"}
OWN: Final = "given_"
"""Begins the names of given values that loops read: looking them up there again would take most of the time."""
JAVASCRIPT_CALLS: Final = {name: f"Math.{call}" for name, call in VEGA_CALLS.items()} | {
    "where": VEGA_CALLS["where"],
    "log1p": "Math.log1p({0})",
    "expm1": "Math.expm1({0})",
}
"""Calls by function: Vega's are those of Math, which also has the two that Vega lacks."""


def as_javascript(root: Term, names: Mapping[str, str] | None = None) -> str:
    """Return the expression in JavaScript.

    ``names`` maps quantities to JavaScript names; the default is the quantity's name. A table cell is read from the
    object ``TABLES`` by its column and its key words, joined by a space.

    >>> as_javascript(Symbol("tokens") ** 2.0 % 3.0), as_javascript(Lookup("links", (Symbol("accelerator"),), {}))
    ('Math.pow(tokens, 2) % 3', 'TABLES["links"][accelerator]')
    """

    def leaf(node: Term) -> str:
        if isinstance(node, Number):
            return vega_literal(node.value).removesuffix(".0")
        if isinstance(node, Word):
            return json.dumps(node.text)
        if isinstance(node, Lookup):
            key = " + ' ' + ".join(map(leaf, node.words))
            return f"TABLES[{json.dumps(node.column)}][{key}]"
        name = str(node.name)  # type: ignore[attr-defined]
        return (names or {}).get(name, name)

    printed = infix(root, leaf, lambda function, parts: JAVASCRIPT_CALLS[function].format(*parts), "Math.pow")
    return printed.replace(" == ", " === ")


def tables(chain: Iterable[Step]) -> dict[str, Mapping[str, float]]:
    """Return the columns of tables that the steps look into, by their name, and each cell by its words."""
    terms = (step.term for step in chain)
    return {node.column: node.values for node in terms if isinstance(node, Lookup)}


def chain_function(chain: Sequence[Step], name: str = "chain") -> str:
    """Return a function of the given values that returns all of them and the result of every step."""
    inputs = [f"const {leaf} = g.{leaf};" for leaf in leaves(chain)]
    body = "\n".join([*inputs, *(line for step in chain for line in statements(step, "g.", "??="))])
    return f"function {name}({{...g}}) {{\n{body}\nreturn g;\n}}"


def needs(chain: Iterable[Step]) -> dict[str, tuple[str, ...]]:
    """Return the arguments of every step by its quantity."""
    return {step.quantity: step.arguments for step in chain}


def rules_list(known: Collection[str]) -> str:
    """Return the rules that can be applied to the known quantities, in order, each with a remedy."""
    applicable = [rule for rule in RULES if set(known).issuperset(rule.arguments)]
    entries = [
        f"{{name: {json.dumps(rule.name)}, remedy: {json.dumps(rule.remedy)}, "
        f"holds: ({{{', '.join(rule.arguments)}}}) => {condition(rule.holds)}}}"
        for rule in applicable
    ]
    return f"[{', '.join(entries)}]"


def futures_function(chain: Sequence[Step], drawn: Collection[str], results: Collection[str]) -> str:
    """Return a function that computes ``results`` in every future: ``futures(k, d, n)`` gives an array for each.

    ``k`` holds the known quantities of a plan; of ``drawn`` quantities and results that are given, ``d``
    holds an array each.
    """
    moved = set(drawn)
    for step in chain:
        if step.quantity in moved or not moved.isdisjoint(step.arguments):
            moved.add(step.quantity)
    known = [name for name in leaves(chain) if name not in drawn]
    before = [f"const {name} = k.{name};" for name in known]
    before += [line for step in chain if step.quantity not in moved for line in statements(step, "k.")]
    before += [f"const at_{name} = d.{name};" for name in drawn]
    before += [f"const {OWN}{name} = k.{name};" for name in dict.fromkeys([*drawn, *(s.quantity for s in chain)])]
    before += [f"const of_{name} = new Float64Array(n);" for name in results]
    within = [f"const {name} = at_{name} ? at_{name}[i] : {OWN}{name};" for name in drawn]
    within += [
        line
        for step in chain
        if step.quantity in moved and step.quantity not in drawn
        for line in statements(step, OWN)
    ]
    within += [f"of_{name}[i] = {name};" for name in results]
    values = ", ".join(f'"{name}": of_{name}' for name in results)
    start, loop = "\n".join(before), "\n".join(within)
    return (
        f"function futures(k, d, n) {{\n{start}\nfor (let i = 0; i < n; i++) {{\n{loop}\n}}\nreturn {{{values}}};\n}}"
    )


def brief(functions: Sequence[str]) -> list[str]:
    r"""Return printed functions with short names of their constants, the same in all, the most used the shortest.

    >>> brief(["function f(g) {\nconst tokens = g.tokens;\nreturn {\"tokens\": tokens};\n}"])
    ['function f(g) {\nconst a = g.tokens;\nreturn {"tokens": a};\n}']
    """
    whole = "\n".join(functions)
    used = Counter(match[1] for match in NAME.finditer(whole) if match[1])
    own = set(re.findall(r"\b(?:const|let) (\w+)", whole))
    free = (
        name
        for size in count()
        for name in map("".join, product(ascii_letters, *[ascii_letters + digits] * size))
        if name not in used and name not in KEYWORDS
    )
    short = {name: next(free) for name, _ in used.most_common() if name in own}
    return [NAME.sub(lambda match: short.get(match[1], match[0]), text) for text in functions]


def object_of(names: Iterable[str]) -> str:
    """Return an object with a property for each name."""
    return "{" + ", ".join(f'"{name}": {name}' for name in names) + "}"


def statements(step: Step, given: str = "g.", unless: str = "??") -> list[str]:
    """Return a step as constants: its common parts, and the quantity, given or computed.

    ``given`` and the name of the quantity are where a given value stands; ``??=`` puts a computed one there, too.
    """
    *before, (name, last) = steps(step.term, step.quantity)
    lines = [f"const {part} = {as_javascript(value)};" for part, value in before]
    return [SPACED.sub(r"\1", line) for line in (*lines, f"const {name} = {given}{name} {unless} {_held(last)};")]


def _held(value: Term) -> str:
    text = as_javascript(value)
    return text if isinstance(value, (Number, Symbol, Word, Lookup)) else f"({text})"


def condition(holds: Callable[..., Any]) -> str:
    """Return a condition over quantities as an expression."""
    condition_term = holds(*map(Symbol, arguments(holds)))
    return as_javascript(term(float(condition_term)) if isinstance(condition_term, bool) else condition_term)
