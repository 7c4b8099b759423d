"""Evaluate quantities from others, explain them, and list defaults used and validity ranges left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from factorykit.engine.explanation import Explanation
from factorykit.engine.question import Outputs, Question

if TYPE_CHECKING:
    import polars as pl

    from factorykit.core._names import QuantityName

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")


@overload
def evaluate(
    inputs: pl.DataFrame, outputs: Outputs = None, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> pl.DataFrame: ...
@overload
def evaluate(
    inputs: pl.LazyFrame, outputs: Outputs = None, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> pl.LazyFrame: ...
@overload
def evaluate(
    inputs: Mapping[str, Any], outputs: Outputs = None, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> dict[str, float]: ...
def evaluate(
    inputs: Any, outputs: Outputs = None, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> Any:
    """Compute quantities from others; the names determine the formulas.

    Parameters
    ----------
    inputs
        A mapping of quantities to numbers (a dict or a Scenario), or a frame of polars, pandas, DuckDB or Arrow with a
        column for each quantity; further columns pass through. A given quantity is used as it is, even if there is a
        formula for it. The name of an ``accelerator`` supplies its specifications from the tables. A number may be a
        text with a unit, ``"500 GB/s"`` or ``"70B"``, also in columns of a DataFrame. In a mapping, the name of an
        alternative model may stand for a number, as in ``using``.
    outputs
        One name or several; by default everything that the inputs determine.
    using
        Alternative models of quantities: ``{"checkpoint_interval_s": "checkpoint_interval_young_s"}``;
        the vocabulary lists the alternatives.
    assume
        Whether documented defaults fill missing inputs, other than the number of accelerators and the shape of a model;
        :func:`factorykit.assumed` lists them. The step time of a given layout replaces the default of the utilization.

    Returns
    -------
    dict, DataFrame or LazyFrame
        A dict of the outputs for a mapping, shown as a table with units; for a frame the same kind of frame with a
        Float64 column for each output, rows in the same order. A LazyFrame stays lazy.

    Raises
    ------
    UnknownQuantity, MissingQuantity, CycleError
        If names do not lead from inputs to outputs.
    ScenarioError
        If a value or a result has the wrong type, is null, not finite, out of bounds, or inconsistent with the others.
        In a LazyFrame, whose values are not known yet, outputs that need such a value are null. If a given value is not
        used for the one output of a mapping although it can only serve to replace an assumption; the message names what
        would use it. With several outputs, and for a column of a frame, this is a warning.

    Warns
    -----
    FactorykitWarning
        If a value is outside the usual range of its quantity, with the unit that was probably omitted. If a result is
        infinite, with the reason. For a mapping whose outputs are named, also if a formula is used outside its
        validity range, with the condition that fails; :func:`factorykit.out_of_range` does the same for a frame.

    Examples
    --------
    >>> evaluate({"active_parameters": 405e9, "tokens": 15.6e12}, "training_flop")
    {'training_flop': 3.7908e+25}

    >>> import polars as pl
    >>> evaluate(pl.DataFrame({"accelerators": [24576, 100_000], "peak_flop_per_s": 989e12}), "cluster_peak_flop_per_s")
    shape: (2, 3)
    ┌──────────────┬─────────────────┬─────────────────────────┐
    │ accelerators ┆ peak_flop_per_s ┆ cluster_peak_flop_per_s │
    │ ---          ┆ ---             ┆ ---                     │
    │ f64          ┆ f64             ┆ f64                     │
    ╞══════════════╪═════════════════╪═════════════════════════╡
    │ 24576.0      ┆ 9.8900e14       ┆ 2.4306e19               │
    │ 100000.0     ┆ 9.8900e14       ┆ 9.8900e19               │
    └──────────────┴─────────────────┴─────────────────────────┘
    """
    return Question.read(inputs, outputs, using=using, assume=assume).resolve().run()


def explain(
    inputs: Mapping[str, Any],
    output: QuantityName | str,
    *,
    using: Mapping[str, str] | None = None,
    assume: bool = False,
) -> Explanation:
    """Show how ``output`` is computed from ``inputs``.

    Parameters
    ----------
    inputs
        A mapping of quantities to numbers, or a Scenario; the sources of a preset are shown beside its values.
    output
        The quantity to explain.
    using
        Alternative models of quantities, as in :func:`evaluate`.
    assume
        Whether documented defaults fill missing inputs.

    Returns
    -------
    Explanation
        Defaults come first, then the inputs that are used, then the steps in order of computation.

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
    return Question.read(inputs, output, using=using, assume=assume).resolve().explain()


def assumed(inputs: Any, outputs: Outputs = None, *, using: Mapping[str, str] | None = None) -> pl.DataFrame:
    """List the defaults that ``evaluate(inputs, outputs, assume=True)`` uses.

    Parameters
    ----------
    inputs
        As for :func:`factorykit.evaluate`: a mapping, a Scenario, a DataFrame or a LazyFrame.
    outputs
        As for :func:`factorykit.evaluate`.
    using
        Alternative models of quantities, as in :func:`evaluate`.

    Returns
    -------
    DataFrame
        One row per default, those of a configuration file first, in order of computation: ``quantity``, ``value`` (null
        for a word, and where it differs between rows of a frame), ``word``, ``unit``, ``basis`` (neutral, stated,
        computed, chosen, or by accelerator), ``formula`` if the value depends on others, ``source``.

    Raises
    ------
    FactorykitError
        As :func:`factorykit.evaluate`.

    Examples
    --------
    >>> run = {"parameters": 70e9, "tokens": 15e12, "accelerators": 2048, "accelerator": "h100_sxm"}
    >>> assumed(run, "training_days").select("quantity", "value", "formula").rows()
    [('mfu', 0.4, ''), ('precision', None, ''), ('active_parameters', 70000000000.0, '1 * parameters')]
    """
    return Question.read(inputs, outputs, using=using, assume=True).resolve().assumed()


def out_of_range(
    inputs: Frame, outputs: Outputs, *, using: Mapping[str, str] | None = None, assume: bool = False
) -> Frame:
    """Return which formulas leave their validity range, for each row of a frame.

    Parameters
    ----------
    inputs
        A frame, as for :func:`factorykit.evaluate`.
    outputs
        One name or several.
    using
        Alternative models of quantities, as in :func:`evaluate`.
    assume
        Whether documented defaults fill missing inputs, as in :func:`factorykit.evaluate`.

    Returns
    -------
    DataFrame or LazyFrame
        The frame with a column ``out_of_range``: the conditions that fail, null if every formula is within its range.

    Raises
    ------
    FactorykitError
        As :func:`factorykit.evaluate`.

    Examples
    --------
    >>> import polars as pl
    >>> writes = pl.DataFrame({"checkpoint_write_s": [60.0, 5000.0], "cluster_mtbf_s": 1e4})
    >>> out_of_range(writes, "checkpoint_interval_young_s")["out_of_range"].to_list()
    [None, 'checkpoint_interval_young_s is valid for checkpoint_write_s <= cluster_mtbf_s / 4']
    """
    import polars as pl

    chain = Question.read(inputs, outputs, using=using, assume=assume).resolve()
    ranges = chain.resolution.validities
    needed = sorted({name for _, stated in ranges for name in stated.arguments})
    rows: Any = chain.question.asking(*needed).resolve().run() if needed else inputs
    sentences = [
        pl.when(stated.condition(*map(pl.col, stated.arguments)).not_()).then(
            pl.lit(f"{name} is valid for {stated.words}")
        )
        for name, stated in ranges
    ]
    sentence = pl.concat_str(sentences, separator="; ", ignore_nulls=True) if sentences else pl.lit("")
    return rows.select(*inputs.collect_schema(), pl.when(sentence != "").then(sentence).alias("out_of_range"))
