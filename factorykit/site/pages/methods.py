"""Methods pages: every formula with its equation, inputs, validity, sources and an example."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from factorykit.charts.explorer_spec import lower
from factorykit.core.vocabulary import Quantity, quantity
from factorykit.engine.emit.latex import as_latex, symbol_latex
from factorykit.formulas import TOPICS, arguments, catalogue, topic
from factorykit.formulas.bibliography import references
from factorykit.formulas.expressions import steps, trace
from factorykit.site.pages.markdown import Marked, callout, code, dashed, escaped, front, heading, link, math

MATH_ROLE = re.compile(r":math:`([^`]+)`")
WIDE = 40
"""Length of LaTeX from which an inline formula may be wider than a phone."""
ROLE = re.compile(r":\w+:`~?([^`]+)`")


def _sections(formula: Callable[..., Any]) -> dict[str, str]:
    """Return the sections of a formula's docstring by heading; the text before the first is the summary."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(formula) or "", flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))}


def _markdown(text: str) -> str:
    text = re.sub(r"\[(\w+)\]_(?![{\w])", r"[@\1]", text)
    text = ROLE.sub(r"`\1`", MATH_ROLE.sub(_inline, text))
    return text.replace("``", "`")


def _inline(match: re.Match[str]) -> str:
    """Return inline mathematics; wide expressions are wrapped in a scrolling container."""
    return f"[${match[1]}$]{{.fk-wide}}" if len(match[1]) > WIDE else f"${match[1]}$"


def _summary(formula: Callable[..., Any]) -> tuple[str, str]:
    """Return the first sentences and the equation of a docstring."""
    summary, _, equation = _sections(formula)[""].partition(".. math::")
    return _markdown(" ".join(summary.split())), textwrap.dedent(equation).strip()


def equations(formula: Callable[..., Any]) -> list[str]:
    r"""Return the body of a formula as LaTeX, one equation for each statement of the code.

    >>> equations(catalogue()["training_flop"])
    ['C = 6 \\, N_{a} \\, D']
    """
    name = formula.__name__
    return [
        f"{symbol_latex(step) if step == name else step.replace('u_', 'u_{') + '}'} = {_latex(value)}"
        for step, value in [(name if step == "u" else step, value) for step, value in steps(trace(formula), "u")]
    ]


def _latex(term: Any) -> str:
    text = re.sub(r"(?:\\mathrm\{)?\bu\}?_\{?(\d+)\}?", r"u_{\1}", as_latex(term))
    return re.sub(r"\d+\.\d{9,}", lambda match: _fraction(float(match[0])), text)


def _fraction(value: float) -> str:
    near = Fraction(value).limit_denominator(5000)
    return rf"\tfrac{{{near.numerator}}}{{{near.denominator}}}" if float(near) == value else f"{value:.9g}"


def methods_pages() -> dict[str, str]:
    """Return the methods pages by name: an overview, and a page for each topic.

    A formula is listed with its equation, validity, sources, inputs and users.
    """
    users = users_of_quantities()
    overview = [
        front("Methods", "Every formula of factorykit, printed from the code that computes it."),
        "A formula's name is the quantity it returns, and its arguments are the quantities it needs. The equations "
        "on these pages are the bodies of the functions, read by a program and set as mathematics. Symbols, units and "
        "bounds are those of the [vocabulary](vocabulary.qmd). All quantities are in base units: seconds, watts, "
        f"bytes, FLOP, USD; energy alone is in kWh. There are {len(catalogue())} formulas in {len(TOPICS)} topics.",
    ]
    pages = {"methods": ""}
    for module in TOPICS:
        first, _, more = (inspect.getdoc(module) or "").strip().partition("\n\n")
        formulas = [formula for formula in catalogue().values() if formula.__module__ == module.__name__]
        title, page = topic_title(topic(formulas[0])), _page(topic(formulas[0]))
        listed = ", ".join(f"[{formula_link(formula.__name__)}]{{#{dashed(formula.__name__)}}}" for formula in formulas)
        overview.append(heading(link(title, page), f"sec-{page.removeprefix('methods/')}"))
        overview.append(f"{first}\n\n::: {{.fk-meta}}\n{listed}.\n:::")
        parts = [front(title, " ".join(first.split())), more, *(_method(formula, users) for formula in formulas)]
        parts.append(f"{link('All topics', 'methods')}.")
        pages[page] = "\n\n".join(part for part in parts if part) + "\n"
    return {**pages, "methods": "\n\n".join(overview) + "\n"}


def topic_title(topic: str) -> str:
    """Return the heading of a topic.

    >>> topic_title("failure_cost"), topic_title("step.rates")
    ('Failure cost', 'Step: rates')
    """
    return topic.replace("_", " ").replace(".", ": ").capitalize()


def _page(topic: str) -> str:
    return f"methods/{dashed(topic)}"


def formula_link(name: str, text: str = "") -> Marked:
    """Return a link to a formula with its label or ``text``."""
    return link(text or quantity(name).label, _page(topic(catalogue()[name])), dashed(name))


def _method(formula: Callable[..., Any], users: dict[str, list[str]]) -> str:
    name, sections = formula.__name__, _sections(formula)
    row = quantity(name)
    summary, stated = _summary(formula)
    lines = equations(formula)
    label = f"{{#eq-{dashed(name)}}}"
    parts = [heading(row.label, dashed(name)), f"{code(name)} \\[{escaped(row.unit)}\\]. {summary}"]
    if len(lines) == 1:
        parts.append(f"$$ {lines[0]} $$ {label}")
    else:
        computed = " \\\\\n".join(line.replace(" = ", " &= ", 1) for line in lines)
        aligned = f"$$ \\begin{{aligned}}\n{computed}\n\\end{{aligned}} $$"
        parts += [f"$$ {_lines(stated)} $$ {label}", callout("note", "As it is computed, step by step", aligned)]
    parts.append(f"with {'; '.join(_where(quantity(argument)) for argument in arguments(formula))}.")
    parts.append(_markdown(sections.get("Notes", "")))
    if sections.get("Examples"):
        parts.append(f"```python\n{_example(sections['Examples'])}\n```")
    cites = " ".join(f"@{key}: {place}." if place else f"@{key}." for key, place in references(formula))
    used = ", ".join(formula_link(user) for user in users.get(name, ()))
    notes = " ".join([f"Source: {cites}"] * bool(cites) + [f"Used by: {used}."] * bool(used))
    parts.append(f"::: {{.fk-meta}}\n{notes}\n:::" if notes else "")
    return "\n\n".join(part for part in parts if part)


def _lines(equation: str) -> str:
    """Return an equation on one line of text; several lines of mathematics become an aligned block."""
    joined = " ".join(equation.split())
    return rf"\begin{{aligned}} {joined} \end{{aligned}}" if r"\\" in joined else joined


def _where(row: Quantity) -> str:
    unit = "" if row.unit in ("1", "text") else f" \\[{escaped(row.unit)}\\]"
    named = Marked(f"{math(symbol_latex(row.name))} {escaped(lower(row.label))}")
    return f"{link(named, 'vocabulary', dashed(row.name))}{unit}"


def _example(text: str) -> str:
    return "\n".join(
        line for line in text.splitlines() if line.startswith((">>>", "...")) or not line.endswith(":")
    ).strip()


def users_of_quantities() -> dict[str, list[str]]:
    """Return for each quantity the formulas that need it."""
    users: dict[str, list[str]] = {}
    for name, formula in catalogue().items():
        for argument in arguments(formula):
            users.setdefault(argument, []).append(name)
    return users
