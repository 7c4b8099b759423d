"""The layout search as JavaScript."""

from __future__ import annotations

import json
from collections.abc import Sequence

from factorykit.engine.emit.javascript import OWN, as_javascript, condition, object_of, statements
from factorykit.engine.rules import RULES
from factorykit.engine.step import Step, leaves, split
from factorykit.formulas import arguments
from factorykit.formulas.expressions import Symbol
from factorykit.model.performance.activation_checkpointing import FIRST_LAYER, least_share
from factorykit.model.performance.layouts import CANDIDATES, CONDITIONS, PARTS, SHARE, fits_in_memory, sure_room


def candidates_function() -> str:
    """Return JavaScript of a function that maps the inputs to the candidates for each part of a layout."""
    lists = []
    for part, candidate in CANDIDATES.items():
        _, *beside = arguments(candidate.holds)
        read = f"const {{{', '.join(beside)}}} = g; " if beside else ""
        tried = f"{json.dumps(candidate.values)}.filter(({part}) => {condition(candidate.holds)})"
        lists.append(f"{part}: (() => {{ {read}return {tried}; }})()")
    return f"function candidates(g) {{\nreturn {{{', '.join(lists)}}};\n}}"


def search_function(chain: Sequence[Step]) -> str:
    """Return JavaScript of a function that finds the fastest valid layout that fits in memory among candidates.

    Every step and rule is placed in the outermost loop in which all its arguments are known.
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
    first, then = split(chain, {name for rule in judged for name in rule.arguments})
    for step in first:
        at[level[step.quantity]] += statements(step, OWN if level[step.quantity] else "g.")
    for part, holds in CONDITIONS.items():
        depth = max(level.get(name, 0) for name in arguments(holds))
        at[depth].append(f"if (usual.{part} && !({condition(holds)})) continue;")
    for rule in judged:
        depth = max(level.get(name, 0) for name in rule.arguments)
        at[depth].append(f"if (!({condition(rule.holds)})) {'continue' if depth else 'return null'};")
    for step in then:
        if level[step.quantity] <= inmost:
            at[level[step.quantity]] += statements(step, OWN if level[step.quantity] else "g.")
    late = [step for step in chain if level[step.quantity] > inmost]
    memory, rest = split(late, {"memory_peak_bytes", "fits"})
    peak = split(memory, {"memory_peak_bytes"})[0]
    within = "\n".join(line for step in peak for line in statements(step, OWN))
    room = sure_room(*map(Symbol, arguments(sure_room)))
    share = least_share(Symbol("none"), Symbol("first"), Symbol("full"), room)
    line = as_javascript(share, {"none": "peak(0)", "first": f"peak({FIRST_LAYER})", "full": "peak(1)"})
    at[inmost] += [
        "working += 1;",
        f"const peak = ({SHARE}) => {{\n{within}\nreturn memory_peak_bytes;\n}};",
        f"const settled = usual.recompute && recompute === 'none' ? {line} : Number(recompute === 'full');",
        f"const {SHARE} = g.{SHARE} ?? settled;",
        *(line for step in memory for line in statements(step, OWN)),
        f"if (!({condition(fits_in_memory)})) continue;",
        "fitting += 1;",
        *(line for step in rest for line in statements(step, OWN)),
        f"if (!best || step_s < best.step_s) best = {object_of((*PARTS, SHARE, 'step_s'))};",
    ]
    loops = "".join(
        f"for (const {part} of tried.{part}) {{\n" + "".join(f"{line}\n" for line in at[depth])
        for depth, part in enumerate(PARTS, 1)
    )
    start = "\n".join(["let best = null;", "let working = 0;", "let fitting = 0;", *at[0]])
    return (
        f"function search(g, tried, usual) {{\n{start}\n{loops}{'}' * inmost}\n"
        f"return {object_of(('best', 'working', 'fitting'))};\n}}"
    )
