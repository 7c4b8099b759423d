"""How a number comes about: the chain of formulas with values, units and sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from factorykit.core.vocabulary import quantity
from factorykit.engine.chain import ASSUMED, FORMULA, NEUTRAL, RIVAL, Step
from factorykit.engine.defaults import who_says
from factorykit.engine.evaluate import answered
from factorykit.engine.html import html_tree
from factorykit.engine.read import named
from factorykit.formulas import catalogue
from factorykit.formulas.bibliography import citation, references
from factorykit.formulas.expressions import Symbol, Term, as_latex, as_text, symbol_latex
from factorykit.formulas.expressions import steps as steps_of

if TYPE_CHECKING:
    import polars as pl

    from factorykit.core.names import QuantityName

GIVEN: Final = "given"


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One quantity of the chain: its value, how it was computed and who says so."""

    quantity: str
    value: float | str
    unit: str
    formula: str
    latex: str
    source: str
    origin: str = GIVEN
    needs: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = quantity(self.quantity).text(self.value)  # type: ignore[arg-type]
        said = f"  [{self.source or self.origin}]" if self.origin not in (FORMULA, RIVAL) else ""
        origin = f" = {self.formula}{said}" if self.formula else said
        return f"{self.quantity} = {shown}{origin}"


@dataclass(frozen=True)
class Explanation(Sequence[ExplainedStep]):
    """The chain to one quantity, inputs first, in the order of computation."""

    steps: tuple[ExplainedStep, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        return self.steps[index]

    def __iter__(self) -> Iterator[ExplainedStep]:
        return iter(self.steps)

    def __str__(self) -> str:
        """Return a line for each step; inputs that are zero share one."""
        none = [step for step in self.steps if step.origin == GIVEN and step.value == 0.0 and not step.source]
        lines = {step.quantity: str(step) for step in self.steps}
        if len(none) > 1:
            lines |= dict.fromkeys((step.quantity for step in none), "")
            lines[none[0].quantity] = f"{', '.join(step.quantity for step in none)} = 0  [{GIVEN}]"
        return "\n".join(filter(None, lines.values()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_tree(self.steps)

    def _repr_latex_(self) -> str:
        rows = [rf"{symbol_latex(step.quantity)} &= {step.latex}" for step in self.steps if step.latex]
        return "$$\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}$$"

    def to_frame(self) -> pl.DataFrame:
        """Return one row per step: quantity, value, unit, formula, latex, source; text quantities have a null value."""
        import polars as pl

        rows = [
            (
                step.quantity,
                None if isinstance(step.value, str) else step.value,
                step.unit,
                step.formula,
                step.latex,
                step.source,
            )
            for step in self.steps
        ]
        schema = {"quantity": pl.String, "value": pl.Float64, "unit": pl.String}
        texts = dict.fromkeys(("formula", "latex", "source"), pl.String)
        return pl.DataFrame(rows, schema=schema | texts, orient="row")


def explain(
    inputs: Mapping[str, Any],
    output: QuantityName | str,
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> Explanation:
    """Show how ``output`` follows from ``inputs``.

    Parameters
    ----------
    inputs
        A mapping of quantities to numbers, or a Scenario; a preset's own sources are shown beside its values.
    output
        The quantity to explain.
    using
        Which model stands for a quantity that has rivals, as in :func:`evaluate`.
    assume
        Whether sourced defaults fill what nobody gave.

    Returns
    -------
    Explanation
        What nobody said comes first, then the inputs that are used, then the steps in order of computation.

    Raises
    ------
    FactorykitError
        As :func:`evaluate` does.

    Examples
    --------
    >>> print(explain({"accelerators": 16384, "accelerator_mtbf_s": 50_677 * 3600}, "failures_per_day"))
    accelerator_mtbf_s = 50,677 h  [given]
    accelerators = 16,384  [given]
    cluster_mtbf_s = 3.09 h = accelerator_mtbf_s / accelerators
    failures_per_day = 7.76 per day = 86400 / cluster_mtbf_s
    """
    chain, results = answered(inputs, named(output), using, assume=assume)
    origins = getattr(inputs, "sources", {})
    shown = [
        ExplainedStep(name, results[name], quantity(name).unit, "", "", origins.get(name, "")) for name in chain.leaves
    ]
    told = [_explained(step, results) for step in chain.steps]
    first = [step for step in told if step.origin in (ASSUMED, NEUTRAL)]
    return Explanation((*first, *shown, *(step for step in told if step not in first)))


def _explained(step: Step, results: Mapping[str, float | str]) -> ExplainedStep:
    computed = bool(step.arguments)
    return ExplainedStep(
        step.quantity,
        results[step.quantity],
        quantity(step.quantity).unit,
        _with_parts(step, as_text, "; ") if computed else "",
        _with_parts(step, as_latex, r",\quad ") if computed else "",
        source(step.quantity) if step.origin == FORMULA else "" if step.origin == RIVAL else who_says(step, results),
        step.origin,
        step.arguments,
    )


def _with_parts(step: Step, printed: Callable[[Term], str], joint: str) -> str:
    """Return the formula printed, followed by the parts it uses more than once, so that nothing is written twice."""
    *parts, (_, whole) = steps_of(step.term, "x")
    return joint.join([printed(whole), *(f"{printed(Symbol(name))} = {printed(part)}" for name, part in parts)])


def source(name: str) -> str:
    """Return the works that a formula cites, one after another; for a constant how it was found.

    >>> source("checkpoint_interval_young_s")[:14]
    'J. W. Young, "'
    """
    return "; ".join(citation(key, place) for key, place in references(catalogue()[name]))
