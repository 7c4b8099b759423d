"""The largest model that keeps what is wished: the question turned round."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from factorykit.core.errors import ScenarioError
from factorykit.model.planning.sizes import dense

if TYPE_CHECKING:
    from factorykit.model.planning.plan import Plan, Question

LARGEST: Final = "largest"
"""Stands for a model: dense, as large as the wishes allow, with the tokens that suit it unless somebody gives them."""
SMALLEST: Final = 2e8
TOO_LARGE: Final = 1e15
NEAR: Final = 1.01
"""Ratio of sizes at which the search ends."""
FEW_DRAWS: Final = 2


def largest(question: Question) -> Plan:
    """Return the plan of the largest dense model that keeps all limits.

    Raises
    ------
    ScenarioError
        If nothing limits the size, or even the smallest model keeps no limit.
    """
    if not question.wishes.held() and question.counts is None:
        raise ScenarioError("nothing limits the size of the model; give a deadline, budget, power or counts")
    low = SMALLEST
    if not _keeps(question, low):
        nearest = _with(question, low).answer()
        raise ScenarioError(f"even {low:.0e} parameters take {nearest.best['breaks'].item()}; allow more")
    high = 64.0 * low
    while _keeps(question, high):
        low, high = high, 8.0 * high
        if high > TOO_LARGE:
            raise ScenarioError(f"nothing limits the size of the model below {high:.0e} parameters; give a deadline")
    while high / low > NEAR:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _keeps(question, middle) else (low, middle)
    return _with(question, low).answer()


def _with(question: Question, parameters: float) -> Question:
    return replace(question, model=dense(float(f"{parameters:.3g}")))


def _keeps(question: Question, parameters: float) -> bool:
    """Return whether a model of this size has a plan that keeps all limits."""
    asked = replace(_with(question, parameters), draws=FEW_DRAWS)
    try:
        return asked.answer().best["breaks"].item() is None
    except ScenarioError:
        if parameters == SMALLEST:
            raise
        return False
