"""Vocabulary page: every quantity, and the formulas that compute or use it."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final

from factorykit.core.vocabulary import Quantity, vocabulary
from factorykit.engine.emit.latex import symbol_latex
from factorykit.formulas import catalogue, topic
from factorykit.site.pages.markdown import Marked, code, dashed, escaped, front, heading, math, table
from factorykit.site.pages.methods import formula_link, topic_title, users_of_quantities

SHOWN: Final = 6
"""Number of quantities of a topic listed in its collapsed heading."""


def vocabulary_page() -> str:
    """Return the vocabulary page: one row per quantity, grouped by the topic that computes or first uses it."""
    users, formulas = users_of_quantities(), catalogue()
    groups: dict[str, list[Quantity]] = {topic(formula): [] for formula in formulas.values()}
    groups["other"] = []
    for name, row in vocabulary().items():
        near = name if name in formulas else next(iter(users.get(name, [])), None)
        groups[topic(formulas[near]) if near else "other"].append(row)
    parts = [
        front(
            "Vocabulary",
            f"The {len(vocabulary())} quantities. A name is at once a column, an argument, a slider and an axis.",
        ),
        "A bound is included where its bracket is square; a value beyond *usual* is taken with a warning. *Computed* "
        "links to the formula, *used by* to the formulas that need the quantity; *given* means that no formula returns "
        "it; the neutral value, if there is one, is used where it is not given.",
    ]
    for word, rows in groups.items():
        if rows:
            title = "Model, parallelism and hardware" if word == "other" else topic_title(word)
            parts += [
                heading(title, dashed(word)),
                _folded(rows),
                _vocabulary_table(rows, users),
                ":::",
                _raw("</details>"),
            ]
    return "\n\n".join(parts) + "\n"


def _folded(rows: list[Quantity]) -> Marked:
    """Return the start of a collapsible list of quantities; a link to one of them opens it."""
    named = ", ".join(row.label for row in rows[:SHOWN])
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    fold = _raw(f'<details class="fk-fold"><summary>{html.escape(named)}{more}</summary>')
    return Marked(f"{fold}\n\n::: {{.fk-quantities}}")


def _raw(text: str) -> str:
    return f"```{{=html}}\n{text}\n```"


def _vocabulary_table(rows: Iterable[Quantity], users: dict[str, list[str]]) -> Marked:
    columns = {"Quantity": 24, "Symbol": 10, "Unit": 9, "Bounds": 11, "Meaning": 46}
    return table([(name, "-" * wide) for name, wide in columns.items()], [_vocabulary_row(row, users) for row in rows])


def _vocabulary_row(row: Quantity, users: dict[str, list[str]]) -> list[str]:
    links = [formula_link(row.name, "computed")] if row.name in catalogue() else [_given(row)]
    using = ", ".join(formula_link(user) for user in users.get(row.name, ()))
    links += [f"used by {using}"] if using else []
    return [
        Marked(f"[[{escaped(row.label)}]{{.fk-name}} {code(row.name)}]{{#{dashed(row.name)}}}"),
        math(symbol_latex(row.name)) if row.symbol else "",
        "–" if row.unit == "1" else row.unit,
        _bounds(row),
        Marked(f"{escaped(row.meaning)} [{'; '.join(links)}]{{.fk-uses}}"),
    ]


def _given(row: Quantity) -> str:
    neutral = row.text(row.neutral) if isinstance(row.neutral, float) else row.neutral
    return f"given; {neutral} by default" if neutral else "given"


def _bounds(row: Quantity) -> str:
    if row.is_text:
        return ", ".join(row.choices)
    usual = f" usual {row.usual}" if row.usual else ""
    return f"{row.bounds}{usual}".replace("inf", "∞")
