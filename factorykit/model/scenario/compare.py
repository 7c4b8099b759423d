"""Scenarios side by side, and how much of their difference each input explains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from factorykit.core.errors import MissingQuantity, ScenarioError, short_repr
from factorykit.core.validation import mapping, strings
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.engine.evaluate import evaluate
from factorykit.engine.question import Question

if TYPE_CHECKING:
    from factorykit.core._names import QuantityName

MAX_SHAPLEY_INPUTS = 16
"""Inputs that Shapley's rule shares a difference among: 2 ** 16 scenarios are evaluated in well under a second."""

Values = dict[str, float | str]


def compare(
    scenarios: Mapping[str, Mapping[str, Any]],
    outputs: QuantityName | str | Iterable[QuantityName | str],
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Put scenarios side by side: the inputs in which they differ, then the outputs.

    Parameters
    ----------
    scenarios
        Two or more, by name.
    outputs
        Quantities asked for in each.
    using, assume
        As in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame
        One row per quantity: ``quantity``, ``unit``, ``role`` (input or output), then one column per scenario with the
        value as text where the quantity is a word or an alternative model, else as a number; null where a scenario does
        without it. Text is in a separate column, ``<name> (model)``.

    Raises
    ------
    FactorykitError
        As :func:`factorykit.evaluate`.

    Examples
    --------
    >>> runs = {"h100": {"accelerators": 2048, "peak_flop_per_s": 989e12}, "more": {"accelerators": 4096}}
    >>> runs["more"]["peak_flop_per_s"] = 989e12
    >>> compare(runs, "cluster_peak_flop_per_s").select("quantity", "h100", "more").rows()
    [('accelerators', 2048.0, 4096.0), ('cluster_peak_flop_per_s', 2.025472e+18, 4.050944e+18)]
    """
    names = strings("outputs", outputs)
    scenarios = mapping("scenarios", scenarios)
    if len(scenarios) < 2:
        raise ScenarioError(f"{len(scenarios)} scenario; give two or more, by name")
    read = {label: Question.read(scenario, names, using=using, assume=assume) for label, scenario in scenarios.items()}
    given = {label: _given(question) for label, question in read.items()}
    results = {label: question.resolve().run() for label, question in read.items()}
    present = {name for values in given.values() for name in values}
    inputs = [name for name in vocabulary() if name in present and len({v.get(name) for v in given.values()}) > 1]
    columns: dict[str, Any] = {
        "quantity": [*inputs, *names],
        "unit": [quantity(name).unit for name in (*inputs, *names)],
        "role": ["input"] * len(inputs) + ["output"] * len(names),
    }
    for label in scenarios:
        cells = [*(given[label].get(name) for name in inputs), *(results[label][name] for name in names)]
        columns[label] = pl.Series([None if isinstance(cell, str) else cell for cell in cells], dtype=pl.Float64)
        if any(isinstance(cell, str) for cell in cells):
            columns[f"{label} (model)"] = [cell if isinstance(cell, str) else None for cell in cells]
    return pl.DataFrame(columns)


def decompose(
    start: Mapping[str, Any],
    end: Mapping[str, Any],
    output: QuantityName | str,
    order: Sequence[str] | None = None,
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> pl.DataFrame:
    """Attribute the difference of an output between two scenarios to the inputs that differ.

    Parameters
    ----------
    start, end
        The two scenarios.
    output
        The quantity whose difference is attributed.
    order
        Inputs in the order in which they change, each seen after those before it; it names all that differ. By default
        Shapley's rule: the mean over all orders, which depends on none.
    using, assume
        As in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame
        One row per input that differs, in the given order or the largest effect first: ``quantity``, ``start``,
        ``end`` (null for an alternative model, a word or a quantity that a scenario lacks), ``effect``, ``before``,
        ``after`` in the unit of the output. Effects sum to the whole difference; ``before`` and ``after`` are the
        steps of a waterfall.

    Raises
    ------
    ScenarioError
        If the order does not name the inputs that differ, if they are too many for Shapley's rule, or if a mixture of
        the two scenarios cannot be evaluated.

    Examples
    --------
    >>> small = {"accelerators": 1000, "rental_usd_per_accelerator_h": 2.0}
    >>> large = {"accelerators": 2000, "rental_usd_per_accelerator_h": 3.0}
    >>> decompose(small, large, "cluster_usd_per_h").select("quantity", "effect").rows()
    [('accelerators', 2500.0), ('rental_usd_per_accelerator_h', 1500.0)]
    """
    output = quantity(output).name
    first, last = (_given(Question.read(scenario, output, using=using, assume=assume)) for scenario in (start, end))
    differing = [name for name in {**first, **last} if first.get(name) != last.get(name)]
    if order is None:
        effects = _shapley(first, last, differing, output, assume=assume)
        order = sorted(differing, key=lambda name: -abs(effects[name]))
    else:
        order = strings("order", order)
        if sorted(order) != sorted(differing):
            expected = ", ".join(differing) or "none"
            raise ScenarioError(f"order must name each input that differs ({expected}), got {short_repr(order)}")
        subsets = [frozenset(order[:i]) for i in range(len(order) + 1)]
        values = _mixtures(first, last, subsets, output, assume=assume)
        steps = zip(order, subsets, subsets[1:], strict=False)
        effects = {name: values[after] - values[before] for name, before, after in steps}
    level = float(evaluate(start, output, using=using, assume=assume)[output])
    rows = []
    for name in order:
        given = (values.get(name) for values in (first, last))
        numbers = (None if isinstance(value, str) else value for value in given)
        rows.append((name, *numbers, effects[name], level, level + effects[name]))
        level += effects[name]
    columns = dict.fromkeys(("start", "end", "effect", "before", "after"), pl.Float64)
    return pl.DataFrame(rows, {"quantity": pl.String} | columns, orient="row")


def _given(question: Question) -> Values:
    """Return the values of a scenario that its outputs need, alternative models by their names."""
    resolution = question.resolve().resolution
    used = {*resolution.leaves, *resolution.outputs}
    kept = {name: value for name, value in question.values.items() if name in used or isinstance(value, str)}
    return kept | {name: model for name, model in question.using.items() if name in resolution.computed}


def _shapley(first: Values, last: Values, names: Sequence[str], output: str, *, assume: bool) -> dict[str, float]:
    if len(names) > MAX_SHAPLEY_INPUTS:
        raise ScenarioError(
            f"{len(names)} inputs differ; Shapley's rule is computed for {MAX_SHAPLEY_INPUTS} at most, so give an order"
        )
    subsets = [frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)]
    values = _mixtures(first, last, subsets, output, assume=assume)
    effects = {}
    for name in names:
        without = [subset for subset in subsets if name not in subset]
        gains = (
            (values[subset | {name}] - values[subset]) / math.comb(len(names) - 1, len(subset)) for subset in without
        )
        effects[name] = math.fsum(gains) / len(names)
    return effects


def _mixtures(
    first: Values, last: Values, subsets: Sequence[frozenset[str]], output: str, *, assume: bool
) -> dict[frozenset[str], float]:
    """Return the output of each mixture: ``last`` for the quantities of the subset, ``first`` for the others.

    Mixtures that give the same quantities are rows of one frame.
    """
    groups: dict[Any, list[tuple[frozenset[str], dict[str, float]]]] = {}
    for subset in subsets:
        mixed = {name: value for name, value in first.items() if name not in subset}
        mixed |= {name: value for name, value in last.items() if name in subset}
        numbers: dict[str, float] = {name: value for name, value in mixed.items() if not isinstance(value, str)}
        words = {name: value for name, value in mixed.items() if isinstance(value, str)}
        key = (tuple(sorted(numbers)), tuple(sorted(words.items())))
        groups.setdefault(key, []).append((subset, numbers))
    results: dict[frozenset[str], float] = {}
    for (_, words), members in groups.items():
        models = {name: word for name, word in words if not quantity(name).is_text}
        frame = pl.DataFrame([numbers for _, numbers in members])
        fixed = frame.with_columns(pl.lit(word).alias(name) for name, word in words if quantity(name).is_text)
        try:
            column = evaluate(fixed, output, using=models, assume=assume)[output]
        except (MissingQuantity, ScenarioError) as error:
            changed = ", ".join(sorted(members[0][0])) or "nothing"
            raise ScenarioError(f"with only {changed} changed, {output} cannot be evaluated: {error}") from None
        results |= dict(zip((subset for subset, _ in members), column, strict=True))
    return results
