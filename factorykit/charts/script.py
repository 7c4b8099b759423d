"""A chain as plain JavaScript: one function from what is given to all that follows, loops over layouts and futures.

Nothing is written by hand: formulas, cells of tables, rules and habits are printed from the objects that Python reads.
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

from factorykit.formulas import arguments
from factorykit.formulas.terms import Lookup, Number, Symbol, Term, Word, as_javascript, steps, term
from factorykit.model.engine.chain import Step, leaves
from factorykit.model.engine.rules import RULES
from factorykit.model.performance.recomputation import FIRST_LAYER, least_share
from factorykit.model.performance.search import parted
from factorykit.model.planning.layouts import HABITS, PARTS, SHARE, TOGETHER, sure_room

SPACED: Final = re.compile(r" ([*/%<>=?:&|]+|[-+]) (?![-+])")
"""Operators, whose spaces are left away: the script is read with the first page."""
NAME: Final = re.compile(r""""[^"]*"|'[^']*'|(?<![\w.$])([A-Za-z_]\w*)""")
"""A name that is no property, apart from words in quotation marks."""
KEYWORDS: Final = {"as", "do", "if", "in", "is", "of", "for", "let", "new", "try", "var"}
OWN: Final = "given_"
"""Begins the names of given values that loops read: looking them up there again would take most of the time."""


def tables(chain: Iterable[Step]) -> dict[str, Mapping[str, float]]:
    """Return the columns of tables that the steps look into, by their name, and each cell by its words."""
    found: dict[str, Mapping[str, float]] = {}

    def visit(node: Term) -> None:
        if isinstance(node, Lookup):
            found[node.column] = node.values

    for step in chain:
        visit(step.term)
    return found


def chain_function(chain: Sequence[Step], name: str = "chain") -> str:
    """Return a function of the given values that returns all of them and the result of every step."""
    inputs = [f"const {leaf} = g.{leaf};" for leaf in leaves(chain)]
    body = "\n".join([*inputs, *(line for step in chain for line in _lines(step, "g.", "??="))])
    return f"function {name}({{...g}}) {{\n{body}\nreturn g;\n}}"


def needs(chain: Iterable[Step]) -> dict[str, tuple[str, ...]]:
    """Return what every step needs, by its quantity."""
    return {step.quantity: step.arguments for step in chain}


def rules_list(known: Collection[str]) -> str:
    """Return the rules that can be judged from the known quantities, in their order, each with what to try."""
    judged = [rule for rule in RULES if set(known).issuperset(rule.arguments)]
    each = [
        f"{{name: {json.dumps(rule.name)}, remedy: {json.dumps(rule.remedy)}, "
        f"holds: ({{{', '.join(rule.arguments)}}}) => {_condition(rule.holds)}}}"
        for rule in judged
    ]
    return f"[{', '.join(each)}]"


def habits_function() -> str:
    """Return a function of the given values that returns what is tried for each part of a layout."""
    lists = []
    for part, habit in HABITS.items():
        _, *beside = arguments(habit.holds)
        read = f"const {{{', '.join(beside)}}} = g; " if beside else ""
        tried = f"{json.dumps(habit.values)}.filter(({part}) => {_condition(habit.holds)})"
        lists.append(f"{part}: (() => {{ {read}return {tried}; }})()")
    return f"function habits(g) {{\nreturn {{{', '.join(lists)}}};\n}}"


def search_function(chain: Sequence[Step]) -> str:
    """Return a function that finds the fastest layout that works and fits among lists of what is tried for its parts.

    A step stands in the outermost loop in which all it needs is known, and so does every rule.
    """
    level = {part: depth for depth, part in enumerate(PARTS, 1)}
    inmost = len(PARTS)
    chain = [step for step in chain if step.quantity not in level]
    level[SHARE] = inmost + 1
    for step in chain:
        level.setdefault(step.quantity, max((level.get(name, 0) for name in step.arguments), default=0))
    at: list[list[str]] = [[] for _ in range(inmost + 1)]
    at[0] += [f"const {leaf} = g.{leaf};" for leaf in leaves(chain) if leaf not in level]
    at[0] += [f"const {OWN}{step.quantity} = g.{step.quantity};" for step in chain if level[step.quantity]]
    computed = {*level, *leaves(chain)}
    judged = [rule for rule in RULES if computed.issuperset(rule.arguments)]
    first, then = parted(chain, {name for rule in judged for name in rule.arguments})
    for step in first:
        at[level[step.quantity]] += _lines(step, OWN if level[step.quantity] else "g.")
    for part, holds in TOGETHER.items():
        depth = max(level[name] for name in arguments(holds))
        at[depth].append(f"if (usual.{part} && !({_condition(holds)})) continue;")
    for rule in judged:
        depth = max(level.get(name, 0) for name in rule.arguments)
        at[depth].append(f"if (!({_condition(rule.holds)})) {'continue' if depth else 'return null'};")
    for step in then:
        if level[step.quantity] <= inmost:
            at[level[step.quantity]] += _lines(step, OWN if level[step.quantity] else "g.")
    late = [step for step in chain if level[step.quantity] > inmost]
    memory, rest = parted(late, {"memory_peak_bytes", "fits"})
    peak = parted(memory, {"memory_peak_bytes"})[0]
    within = "\n".join(line for step in peak for line in _lines(step, OWN))
    room = sure_room(*map(Symbol, arguments(sure_room)))
    share = least_share(Symbol("none"), Symbol("first"), Symbol("full"), room)
    line = as_javascript(share, {"none": "peak(0)", "first": f"peak({FIRST_LAYER})", "full": "peak(1)"})
    at[inmost] += [
        "working += 1;",
        f"const peak = ({SHARE}) => {{\n{within}\nreturn memory_peak_bytes;\n}};",
        f"const settled = usual.recompute && recompute === 'none' ? {line} : Number(recompute === 'full');",
        f"const {SHARE} = g.{SHARE} ?? settled;",
        *(line for step in memory for line in _lines(step, OWN)),
        "if (!(fits >= 1)) continue;",
        "fitting += 1;",
        *(line for step in rest for line in _lines(step, OWN)),
        f"if (!best || step_s < best.step_s) best = {_told((*PARTS, SHARE, 'step_s'))};",
    ]
    loops = "".join(
        f"for (const {part} of tried.{part}) {{\n" + "".join(f"{line}\n" for line in at[depth])
        for depth, part in enumerate(PARTS, 1)
    )
    start = "\n".join(["let best = null;", "let working = 0;", "let fitting = 0;", *at[0]])
    return (
        f"function search(g, tried, usual) {{\n{start}\n{loops}{'}' * inmost}\n"
        f"return {_told(('best', 'working', 'fitting'))};\n}}"
    )


def futures_function(chain: Sequence[Step], drawn: Collection[str], results: Collection[str]) -> str:
    """Return a function that computes ``results`` in every future: ``futures(k, d, n)`` gives an array for each.

    ``k`` holds what is known of a plan; of ``drawn`` quantities and results that are given, ``d`` holds an array each.
    """
    moved = set(drawn)
    for step in chain:
        if step.quantity in moved or not moved.isdisjoint(step.arguments):
            moved.add(step.quantity)
    known = [name for name in leaves(chain) if name not in drawn]
    before = [f"const {name} = k.{name};" for name in known]
    before += [line for step in chain if step.quantity not in moved for line in _lines(step, "k.")]
    before += [f"const at_{name} = d.{name};" for name in drawn]
    before += [f"const {OWN}{name} = k.{name};" for name in dict.fromkeys([*drawn, *(s.quantity for s in chain)])]
    before += [f"const of_{name} = new Float64Array(n);" for name in results]
    within = [f"const {name} = at_{name} ? at_{name}[i] : {OWN}{name};" for name in drawn]
    within += [
        line for step in chain if step.quantity in moved and step.quantity not in drawn for line in _lines(step, OWN)
    ]
    within += [f"of_{name}[i] = {name};" for name in results]
    told = ", ".join(f'"{name}": of_{name}' for name in results)
    start, loop = "\n".join(before), "\n".join(within)
    return f"function futures(k, d, n) {{\n{start}\nfor (let i = 0; i < n; i++) {{\n{loop}\n}}\nreturn {{{told}}};\n}}"


def brief(functions: Sequence[str]) -> list[str]:
    r"""Return printed functions with short names of their constants, the same in all, the most used the shortest.

    >>> brief(["function f(g) {\nconst tokens = g.tokens;\nreturn {\"tokens\": tokens};\n}"])
    ['function f(g) {\nconst a = g.tokens;\nreturn {"tokens": a};\n}']
    """
    whole = "\n".join(functions)
    used = Counter(found[1] for found in NAME.finditer(whole) if found[1])
    own = set(re.findall(r"\b(?:const|let) (\w+)", whole))
    free = (
        name
        for size in count()
        for name in map("".join, product(ascii_letters, *[ascii_letters + digits] * size))
        if name not in used and name not in KEYWORDS
    )
    short = {name: next(free) for name, _ in used.most_common() if name in own}
    return [NAME.sub(lambda found: short.get(found[1], found[0]), text) for text in functions]


def _told(names: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{name}": {name}' for name in names) + "}"


def _lines(step: Step, given: str = "g.", unless: str = "??") -> list[str]:
    """Return a step as constants: what it uses more than once before it, and the quantity, given or computed.

    ``given`` and the name of the quantity are where a given value stands; ``??=`` puts a computed one there, too.
    """
    *before, (name, last) = steps(step.term, step.quantity)
    lines = [f"const {part} = {as_javascript(value)};" for part, value in before]
    return [SPACED.sub(r"\1", line) for line in (*lines, f"const {name} = {given}{name} {unless} {_held(last)};")]


def _held(value: Term) -> str:
    text = as_javascript(value)
    return text if isinstance(value, (Number, Symbol, Word, Lookup)) else f"({text})"


def _condition(holds: Callable[..., Any]) -> str:
    found = holds(*map(Symbol, arguments(holds)))
    return as_javascript(term(float(found)) if isinstance(found, bool) else found)
