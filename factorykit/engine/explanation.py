"""Explanations: the steps to a result with values, units, formulas and sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from factorykit.core.vocabulary import quantity
from factorykit.engine.assumptions import value_source
from factorykit.engine.emit.latex import as_latex, symbol_latex
from factorykit.engine.html import html_text, linked
from factorykit.engine.resolve import Resolution
from factorykit.engine.step import ALTERNATIVE, DEFAULT, FORMULA, NEUTRAL, Step
from factorykit.formulas import catalogue
from factorykit.formulas.bibliography import citation, references
from factorykit.formulas.expressions import Symbol, Term, as_text
from factorykit.formulas.expressions import steps as steps_of

if TYPE_CHECKING:
    import polars as pl

GIVEN: Final = "given"
ORIGINS: Final = {"alternative": "alternative model", "formula": "computed"}
"""Origins of steps in words, where the word is another."""


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One quantity of the chain: its value, formula and source."""

    quantity: str
    value: float | str
    unit: str
    formula: str
    latex: str
    source: str
    origin: str = GIVEN
    needs: tuple[str, ...] = ()

    def __str__(self) -> str:
        value = quantity(self.quantity).text(self.value)  # type: ignore[arg-type]
        source = f"  [{self.source or self.origin}]" if self.origin not in (FORMULA, ALTERNATIVE) else ""
        return f"{self.quantity} = {value}{f' = {self.formula}' if self.formula else ''}{source}"


class Explanation(tuple[ExplainedStep, ...]):
    """The chain to one quantity, inputs first, in the order of computation."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return a line for each step; inputs that are zero share one."""
        none = [step for step in self if step.origin == GIVEN and step.value == 0.0 and not step.source]
        lines = {step.quantity: str(step) for step in self}
        if len(none) > 1:
            lines |= dict.fromkeys((step.quantity for step in none), "")
            lines[none[0].quantity] = f"{', '.join(step.quantity for step in none)} = 0  [{GIVEN}]"
        return "\n".join(filter(None, lines.values()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_tree(self)

    def _repr_latex_(self) -> str:
        rows = [rf"{symbol_latex(step.quantity)} &= {step.latex}" for step in self if step.latex]
        return "$$\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}$$"

    def to_frame(self) -> pl.DataFrame:
        """Return one row per step: quantity, value, unit, formula, latex, source; text quantities have a null value."""
        import polars as pl

        schema = {"quantity": pl.String, "value": pl.Float64, "unit": pl.String}
        schema |= dict.fromkeys(("formula", "latex", "source"), pl.String)
        numbers = [None if isinstance(step.value, str) else step.value for step in self]
        columns = {name: [getattr(step, name) for step in self] for name in schema}
        return pl.DataFrame(columns | {"value": numbers}, schema)


def explained(resolution: Resolution, results: Mapping[str, float | str], sources: Mapping[str, str]) -> Explanation:
    """Return the explanation of results: defaults, then inputs, then steps in order of computation."""
    inputs = [
        ExplainedStep(name, results[name], quantity(name).unit, "", "", sources.get(name, ""))
        for name in resolution.leaves
    ]
    steps = [_explained(step, results) for step in resolution.steps]
    first = [step for step in steps if step.origin in (DEFAULT, NEUTRAL)]
    return Explanation((*first, *inputs, *(step for step in steps if step not in first)))


def _explained(step: Step, results: Mapping[str, float | str]) -> ExplainedStep:
    computed = bool(step.arguments)
    return ExplainedStep(
        step.quantity,
        results[step.quantity],
        quantity(step.quantity).unit,
        _with_parts(step, as_text, "; ") if computed else "",
        _with_parts(step, as_latex, r",\quad ") if computed else "",
        _source(step, results),
        step.origin,
        step.arguments,
    )


def _source(step: Step, results: Mapping[str, float | str]) -> str:
    if step.origin == ALTERNATIVE:
        return ""
    return source(step.quantity) if step.origin == FORMULA else value_source(step, results)


def _with_parts(step: Step, printed: Callable[[Term], str], separator: str) -> str:
    """Return a printed formula, followed by its common parts."""
    *parts, (_, whole) = steps_of(step.term, "x")
    return separator.join([printed(whole), *(f"{printed(Symbol(name))} = {printed(part)}" for name, part in parts)])


def html_tree(steps: Sequence[ExplainedStep]) -> str:
    """Return the steps as a tree: the last at the root, under each its arguments, open at the first level.

    A step that is needed twice is unfolded once.
    """
    by_name = {step.quantity: step for step in steps}
    met: set[str] = set()

    def branch(step: ExplainedStep, depth: int) -> str:
        again = step.quantity in met and step.needs
        met.add(step.quantity)
        needs = [by_name[name] for name in step.needs if name in by_name]
        if again or not needs:
            return f"<div>{_line(step)}{' <small>(above)</small>' if again else ''}</div>"
        inner = "".join(f"<li>{branch(need, depth + 1)}</li>" for need in needs)
        opened = " open" if depth == 0 else ""
        return f"<details{opened}><summary>{_line(step)}</summary><ul>{inner}</ul></details>"

    return branch(steps[-1], 0)


def _line(step: ExplainedStep) -> str:
    row = quantity(step.quantity)
    value = step.value if isinstance(step.value, str) else row.text(step.value)
    formula = f" = <code>{escape(step.formula)}</code>" if step.formula else ""
    origin = ORIGINS.get(step.origin, step.origin)
    source = linked(step.source.removeprefix(f"{origin}: "))
    origin = f"{escape(origin)}: {source}" if source else escape(origin)
    name = f'<span title="{escape(step.quantity)}">{escape(row.label)}</span>'
    return f"{name}: <strong>{html_text(value)}</strong>{formula} <small>[{origin}]</small>"


def source(name: str) -> str:
    """Return the works that a formula cites.

    >>> source("checkpoint_interval_young_s")[:14]
    'J. W. Young, "'
    """
    return "; ".join(citation(key, place) for key, place in references(catalogue()[name]))
