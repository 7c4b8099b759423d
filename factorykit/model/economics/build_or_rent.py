"""Build or rent: published rules applied to a scenario, and its costs."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from factorykit.core.validation import one_of, strings
from factorykit.core.vocabulary import quantity
from factorykit.data import tables
from factorykit.engine.html import html_table, html_text
from factorykit.engine.question import Question

BRANCHES: Final = {"build": "build", "private cluster": "build", "on-prem": "build", "cloud": "rent"}
COMPARE: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
DECISIONS: Final = ("build vs buy", "build vs rent", "build vs rent by scale")


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision: ``answer`` (build, rent, undetermined), the reason ``because``, and ``rules``, one row per rule.

    ``saving_usd`` is the present value of renting less that of building, ``budget_share`` the rent of the run over its
    budget; each NaN if it cannot be computed from the scenario. The rules use neither.
    """

    answer: str
    because: str
    rules: pl.DataFrame
    saving_usd: float
    budget_share: float

    def _repr_html_(self) -> str:
        rules = [
            (rule, branch, condition, {True: "yes", False: "no"}.get(holds, "unknown"))
            for rule, branch, condition, holds in self.rules.select("rule", "branch", "condition", "holds").iter_rows()
        ]
        money = (("build_saving_usd", self.saving_usd), ("budget_share", self.budget_share))
        known = [f"{quantity(name).label}: {quantity(name).text(value)}" for name, value in money if value == value]
        paragraphs = "".join(f"<p>{html_text(line)}</p>" for line in (self.because, *known))
        table = html_table(("rule", "for", "condition", "holds"), rules)
        return f"<p><strong>{html_text(self.answer)}</strong></p>{paragraphs}{table}"


def build_or_rent(
    inputs: Mapping[str, Any],
    conditions: Collection[str] = (),
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> Decision:
    """Apply the published rules to the question whether to build or to rent.

    Parameters
    ----------
    inputs
        Quantities of the run and the cluster. Rules compare ``parameters``, ``accelerators`` and ``budget_usd``, the
        available money. If the rent of the run is known, too, the answer states whether the budget covers it.
    conditions
        Rules without a number that hold, by their names in the ``rules`` table: ``b2`` (a roadmap of several years),
        ``b4`` (data sovereignty), ``c2`` (research phase), ``c3`` (variable need), ``p1`` to ``p4``.
    using, assume
        As in :func:`factorykit.evaluate`. Defaults serve the costs; rules apply to given inputs only.

    Returns
    -------
    Decision
        Undetermined if no rule applies, with the gap between the rules, or if rules contradict each other.

    Raises
    ------
    UnknownName, FactorykitError
        For an unknown condition or an invalid scenario.

    Examples
    --------
    >>> build_or_rent({"parameters": 7e9, "budget_usd": 3e5}).answer
    'rent'
    >>> build_or_rent({"parameters": 200e9}).because
    'no rule applies: parameters 200 billion lies between 70 billion and 400 billion'
    """
    question = Question.read(inputs, using=using)
    table = tables.table("rules").filter(pl.col("decision").is_in(DECISIONS)).collect()
    worded = table.filter(pl.col("quantity").is_null())["rule"].to_list()
    conditions = [one_of("condition", name, worded) for name in strings("conditions", conditions)]
    rows: list[tuple[str, str, str, float | None, bool | None]] = []
    gaps: dict[str, list[float]] = {}
    for row in table.iter_rows(named=True):
        name = row["quantity"]
        value = _value(name, question) if name else None
        holds = None if name else row["rule"] in conditions
        if name and value is not None:
            holds = COMPARE[row["comparator"]](value, row["threshold"])
            gaps.setdefault(name, []).append(row["threshold"])
        rows.append((row["rule"], BRANCHES[row["branch"]], row["condition"], value, holds))
    schema = {"rule": pl.String, "branch": pl.String, "condition": pl.String, "value": pl.Float64, "holds": pl.Boolean}
    rules = pl.DataFrame(rows, schema, orient="row")
    saving, share = (_value(name, replace(question, assume=assume)) for name in ("build_saving_usd", "budget_share"))
    answer, because = _decided(rules, gaps, question)
    if share is not None and share > 1.0:
        because += f"; the budget does not pay the rent, which is {share:.3g} times as high"
    return Decision(answer, because, rules, *(math.nan if number is None else number for number in (saving, share)))


def _value(name: str, question: Question) -> float | None:
    result = question.get(name)
    return float(result[name]) if result else None


def _decided(rules: pl.DataFrame, gaps: Mapping[str, list[float]], question: Question) -> tuple[str, str]:
    held = rules.filter(pl.col("holds"))
    branches = held["branch"].unique(maintain_order=True).to_list()
    reasons = {branch: ", ".join(held.filter(branch=branch)["condition"]) for branch in branches}
    if len(branches) == 1:
        return branches[0], f"rules for {branches[0]} hold and none against: {reasons[branches[0]]}"
    if branches:
        sides = " against ".join(f"{branch} ({reasons[branch]})" for branch in sorted(branches))
        return "undetermined", f"rules contradict each other: {sides}"
    if not gaps:
        return "undetermined", "no rule can be applied; give parameters, accelerators or budget_usd"
    named = []
    for name, thresholds in gaps.items():
        row, value = quantity(name), _value(name, question)
        shown = [row.text(threshold) for threshold in sorted(thresholds)]
        place = f"lies between {shown[0]} and {shown[-1]}" if len(shown) > 1 else f"does not exceed {shown[0]}"
        named.append(f"{name} {row.text(value or 0.0)} {place}")
    return "undetermined", f"no rule applies: {'; '.join(named)}"
