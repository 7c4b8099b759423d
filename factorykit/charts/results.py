"""The chart of a result, for the results of all verbs."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from factorykit.charts import compute, encoding, performance, plan, serving, uncertainty
from factorykit.charts.explorer_spec import lower
from factorykit.charts.finish import finish
from factorykit.charts.theme import PALETTE
from factorykit.core.constants import SECONDS_PER_DAY
from factorykit.core.errors import ScenarioError
from factorykit.core.validation import frame as read_frame
from factorykit.core.vocabulary import quantity
from factorykit.model.planning.summary import Plan, sentence
from factorykit.model.scenario.accelerators import title_of
from factorykit.model.serving.plan import ServingPlan
from factorykit.model.uncertainty.sample import bands, exceedance

SOURCE = "Formulas and tables of factorykit"


def plot(result: Any, output: str | None = None) -> Any:
    """Return the chart of a result; its title states the finding.

    Parameters
    ----------
    result
        A result of ``plan``, ``search``, ``sweep``, ``sample``, ``sensitivity``, ``compare`` or ``serve``.
    output
        Quantity of a frame to draw: by default the last column of ``sweep`` and ``sample``, the first output of
        ``sensitivity`` and ``compare``.

    Raises
    ------
    FactorykitError
        If the result is of another kind, or the output is unknown.

    Examples
    --------
    >>> import factorykit as fk
    >>> run = {"active_parameters": 405e9, "tokens": 15.6e12, "accelerators": 16384, "peak_flop_per_s": 989e12}
    >>> fk.plot(fk.sweep(run, {"mfu": [0.3, 0.4]}, "training_days")).to_dict()["title"]["text"]
    'Training time without interruptions: 67.7 d at 40 % model FLOP utilization, 90.3 d at 30 % model FLOP utilization'
    """
    if isinstance(result, Plan):
        limits = result.request.limits
        days = None if limits.deadline_s is None else limits.deadline_s / SECONDS_PER_DAY
        ends = {"deadline_days": days, "budget_usd": limits.budget_usd}
        return plan.frontier(result.plans, title=sentence(result), source=SOURCE, **ends)
    if isinstance(result, ServingPlan):
        best = result.best
        if best["tpot_s"] is None:
            raise ScenarioError("a plan of one output token has no time between tokens to draw; use its candidates")
        first = quantity("time_to_first_token_s").text(best["ttft_s"])
        title = f"{best['accelerators']:,.0f} {title_of(best['accelerator'], result.request)}: first token {first}, "
        title += f"then {1.0 / best['tpot_s']:.0f} tokens/s per user, {best['cost_usd_per_h']:,.0f} USD/h"
        return serving.frontier(result.frontier(), None, title=title, source=SOURCE)
    frame = read_frame("the result", result)
    columns = frame.columns
    if "pareto" in columns:
        return _layouts(frame.filter(pl.col("fits") > 0.0))
    if "output_low" in columns:
        return _drivers(frame, quantity(output or frame["output"][0]).name)
    if "role" in columns:
        return _scenarios(frame, quantity(output or frame.filter(role="output")["quantity"][0]).name)
    name = quantity(output or columns[-1]).name
    return _draws(frame, name) if "draw" in columns else _grid(frame, name)


def _layouts(frame: pl.DataFrame) -> alt.LayerChart:
    best = frame.row(0, named=True)
    parts = [f"{name[:-9]} {best[name]:.0f}" for name in best if name.endswith("_parallel") and best[name] > 1.0]
    step, memory = (quantity(name).text(best[name]) for name in ("step_s", "memory_peak_bytes"))
    title = f"Best of {frame.height:,} layouts: {', '.join(parts)}; {step} per step, {memory}"
    return performance.time_and_memory(frame, title)


def _drivers(frame: pl.DataFrame, output: str) -> alt.LayerChart:
    first = frame.filter(output=output).row(0, named=True)
    low, high = map(quantity(output).text, sorted((first["output_low"], first["output_high"])))
    title = f"{_label(first['input'])} matters most: {_label(output)} from {low} to {high}"
    return uncertainty.tornado(frame, output, title=title, source=SOURCE)


def _scenarios(frame: pl.DataFrame, output: str) -> alt.LayerChart:
    rows = frame.filter(quantity=output, role="output").select(pl.col(pl.Float64))
    values = rows.unpivot(variable_name="label", value_name=output).drop_nulls().sort(output)
    results = ", ".join(f"{quantity(output).text(value)} in {label}" for label, value in values.rows())
    return compute.bars(values, output, title=f"{_label(output)}: {results}", source=SOURCE)


def _draws(frame: pl.DataFrame, output: str) -> alt.LayerChart:
    draws = frame["draw"].n_unique()
    words: dict[str, Any] = {"source": f"{draws:,} draws. {SOURCE}"}
    if frame.height == draws:
        low, middle, high = map(quantity(output).text, bands(frame, output).row(0)[1:])
        words["title"] = f"{_label(output)}: {middle} in the middle, {low} to {high} in nine draws of ten"
        return uncertainty.exceedance(exceedance(frame, output), output, **words)
    by = next((name for name in frame.columns if frame[name].n_unique() * draws == frame.height), None)
    if by is None:
        raise ScenarioError("the sample has a grid of several quantities; give the rows of one value of the others")
    widths = bands(frame, output, by=by)
    rows = widths.select(by, "p50")[[0, -1]].rows()
    ends = [f"{quantity(output).text(middle)} at {_at(by, value)}" for value, middle in rows]
    return uncertainty.band(widths, output, by, title=f"{_label(output)}: {' to '.join(ends)}, medians", **words)


def _grid(frame: pl.DataFrame, output: str) -> alt.Chart:
    """Draw a sweep; its axes are the columns up to the one that makes the rows distinct."""
    number = next((n for n in range(1, frame.width) if frame[:, :n].n_unique() == frame.height), 0)
    axes = [name for name in frame.columns[:number] if frame[name].n_unique() > 1]
    if not axes or output in axes:
        raise ScenarioError(f"no chart of {output} fits these rows; give a result of a verb with two rows or more")
    x = max(axes, key=lambda name: (frame.schema[name].is_numeric(), frame[name].n_unique()))
    texts = [frame[name].map_elements(lambda value, name=name: _at(name, value), pl.String) for name in axes]
    rows = frame.select(x, output, at=pl.concat_str(texts, separator=", "))
    rows = rows.with_columns(
        case=pl.concat_str([text for text in texts if text.name != x] or [pl.lit("")], separator=", ")
    )
    ends = ", ".join(f"{quantity(output).text(value)} at {at}" for _, value, at, _ in rows.sort(output)[[0, -1]].rows())
    scale = alt.Scale(type="log" if quantity(x).slider_scale == "log" else "linear", zero=False, nice=False, padding=12)
    started = encoding.chart(rows)
    drawn = started.mark_line(point=True) if frame.schema[x].is_numeric() else started.mark_point()
    color = alt.Color("case:N", title=None, sort=None, scale=alt.Scale(range=list(PALETTE)))
    color = color if len(axes) > 1 else alt.value(PALETTE[0])
    y = encoding.y(output, scale=alt.Scale(zero=False))
    drawn = drawn.encode(x=encoding.x(x, scale=scale), y=y, color=color, tooltip=encoding.tooltip(["case", x, output]))
    description = f"{_label(output)} at {frame.height} points of {', '.join(map(_label, axes))}."
    return finish(drawn, f"{_label(output)}: {ends}", source=SOURCE, description=description)


def _label(name: str) -> str:
    return quantity(name).label.partition(" (")[0]


def _at(name: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{quantity(name).text(value)} {lower(_label(name))}"
