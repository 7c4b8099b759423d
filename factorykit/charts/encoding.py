"""How a quantity looks on a chart: axis titles, numbers and tooltips, all read from the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from factorykit.charts.theme import FAINT, PALETTE
from factorykit.core.vocabulary import ENERGIES, LARGE_FLOP, SHORT_TIME, SI_UNITS, TIMES, Quantity, quantity, vocabulary
from factorykit.engine.emit.vega import datum


def chart(frame: pl.DataFrame) -> alt.Chart:
    """Return a chart over ``frame`` in which every quantity can be shown in its display unit."""
    scaled = {shown(name): scaled_expression(quantity(name)) for name in frame.columns if is_scaled(name)}
    started = alt.Chart(frame)
    return started.transform_calculate(**scaled) if scaled else started


def is_scaled(name: str) -> bool:
    """Return whether ``name`` is a quantity that is shown in another unit than it is counted in."""
    return name in vocabulary() and bool(vocabulary()[name].display_unit)


def shown(name: str) -> str:
    """Return the field that holds the quantity in its display unit.

    >>> shown("checkpoint_interval_s"), shown("tokens")
    ('checkpoint_interval_s in min', 'tokens')
    """
    return f"{name} in {quantity(name).display_unit}" if is_scaled(name) else name


def scaled_expression(row: Quantity, value: str | None = None) -> str:
    """Return the Vega expression for a value in the display unit; ``value`` is the column of that name by default."""
    return f"{value or datum(row.name)} / {row.display_scale!r}"


def x(name: str, **options: Any) -> alt.X:
    """Return the horizontal encoding of a quantity."""
    return alt.X(_field(name), **_position(name, "x", options))


def y(name: str, **options: Any) -> alt.Y:
    """Return the vertical encoding of a quantity."""
    return alt.Y(_field(name), **_position(name, "y", options))


def tooltip(names: Sequence[str]) -> list[alt.Tooltip]:
    """Return a tooltip of quantities and words, each with label and unit.

    >>> [each.to_dict()["title"] for each in tooltip(["distribution", "span_s"])]
    ['Distribution', 'Time span [h]']
    """
    return [alt.Tooltip(_field(name), title=title(name), format=_tooltip_format(name)) for name in names]


def with_limits(started: alt.Chart, x: alt.X, low: alt.X, high: str, y: alt.Y, tips: list[alt.Tooltip]) -> Any:
    """Return a point for each row of a chart, on a whisker from its lower to its upper limit."""
    whiskers = started.mark_rule(strokeWidth=2, color=PALETTE[0]).encode(x=low, x2=high, y=y)
    return whiskers + started.mark_point(filled=True, size=90, opacity=1, color=PALETTE[0]).encode(
        x=x, y=y, tooltip=tips
    )


def equality(values: pl.Series) -> alt.Chart:
    """Return the dashed line on which a prediction equals the measured values."""
    ends = pl.DataFrame({"at": [values.min(), values.max()]})
    return alt.Chart(ends).mark_line(color="gray", strokeDash=[4, 3]).encode(x="at:Q", y="at:Q")


def title(name: str) -> str:
    """Return the title of an axis or a column: label and display unit, or the words of a name that is no quantity.

    >>> title("checkpoint_interval_s"), title("cluster_name")
    ('Checkpoint interval [min]', 'Cluster name')
    """
    return vocabulary()[name].title if name in vocabulary() else name.replace("_", " ").capitalize()


def _field(name: str) -> str:
    row = vocabulary().get(name)
    return f"{shown(name)}:{'N' if row is None or row.is_text else 'Q'}"


def _tooltip_format(name: str) -> Any:
    row = vocabulary().get(name)
    if row is None or row.is_text:
        return alt.Undefined
    return ".4~s" if row.unit in SI_UNITS and not row.display_unit else ",.4~r"


def _position(name: str, channel: str, options: dict[str, Any]) -> dict[str, Any]:
    row = vocabulary().get(name)
    if row is None or row.is_text:
        return {"title": None} | options
    scale = options.get("scale", alt.Undefined)
    kind = scale.to_dict().get("type", "linear") if isinstance(scale, alt.Scale) else "linear"
    return {"title": axis_title(row), "axis": axis(row, channel, kind)} | options


def axis_title(row: Quantity) -> str:
    """Return the title of an axis: the label of a quantity, with its display unit unless the axis labels carry it."""
    return row.label if _has_prefixes(row) else row.title


def _has_prefixes(row: Quantity) -> bool:
    return row.unit in SI_UNITS and not row.display_unit


def axis(row: Quantity, channel: str = "", scale: str = "linear") -> dict[str, Any]:
    """Return the axis of a quantity: few labels that do not overlap."""
    label = label_expression(row)
    common = {"labelOverlap": "greedy", "labelSeparation": 4, "tickCount": 5}
    if scale != "log" or not channel:
        return {"labelExpr": label, **common}
    test = _is_round(channel)
    line = {"condition": {"test": test, "value": FAINT}, "value": "transparent"}
    own = {"gridColor": line} if channel == "y" else {"labelFlush": 40}
    return {"labelExpr": f"{test} ? {label} : ''", **common, **own}


def _is_round(channel: str) -> str:
    """Whether a logarithmic axis labels a value: powers of ten, between them 2 and 5 where there is room."""
    digit = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))"
    decades = f"log(domain('{channel}')[1] / domain('{channel}')[0]) / LN10"
    return f"({decades} < 0.8 || {digit} == 1 || {decades} < 3.2 && ({digit} == 2 || {digit} == 5))"


def label_expression(row: Quantity) -> str:
    """Return the Vega expression that prints an axis value: ``40 GW``; ``16,384``, ``2.5B`` for counts."""
    if row.display_unit and not row.display_unit.startswith("USD"):
        return "format(datum.value, ',~g')"
    letters = "format(datum.value, '~s')"
    if _has_prefixes(row):
        unit = row.unit.replace("byte", "B")
        letters = f"replace({letters}, regexp('(.)$'), ' $1{unit}')"
        return f"(abs(datum.value) >= 1000 ? {letters} : datum.value ? format(datum.value, '~g') + ' {unit}' : '0')"
    return f"(abs(datum.value) >= 1e6 ? replace({letters}, 'G', 'B') : format(datum.value, ',~g'))"


def text_expression(row: Quantity, value: str) -> str:
    """Return the Vega expression that prints ``value`` as :meth:`factorykit.core.vocabulary.Quantity.text` does."""
    if row.is_text:
        return value
    if row.is_year:
        return f"format({value}, '.6~r')"
    if row.unit in ("s", "d"):
        return _time_expression(row, value)
    if row.unit == "kWh":
        *larger, (_, least) = [(scale, f"{_rounded(f'({value} / {scale!r})')} + ' {unit}'") for scale, unit in ENERGIES]
        return "".join(f"abs({value}) >= {scale * 0.9995!r} ? {text} : " for scale, text in larger) + least
    if row.display_unit:
        return f"{_rounded(f'({scaled_expression(row, value)})')} + ' {row.display_unit}'"
    unit = "" if row.unit == "1" else row.unit.replace("byte", "B")
    text = f"{_rounded(value)} + ' {unit}'" if unit else _rounded(value)
    letters = f"format({value}, '.3~s')"
    if row.unit in SI_UNITS:
        count = f"abs({value}) >= {LARGE_FLOP!r} ? {_power_of_ten(value)} : " if row.unit == "FLOP" else ""
        return f"{count}abs({value}) >= 999.5 ? replace({letters}, regexp('(.)$'), ' $1') + '{unit}' : {text}"
    if row.unit in ("USD", "1", "h"):
        for letter, word in (("M", " million"), ("G", " billion"), ("T", " trillion")):
            letters = f"replace({letters}, '{letter}', '{word}')"
        end = f" + ' {unit}'" if unit else ""
        return f"abs({value}) >= 999500 ? {letters}{end} : {text}"
    return text


def _time_expression(row: Quantity, value: str) -> str:
    limit = SHORT_TIME * row.display_scale
    sizes = {unit: size / TIMES[row.unit] for unit, size in TIMES.items() if size / TIMES[row.unit] < limit}
    texts = {unit: f"format({value} / {size!r}, ',.3~r') + ' {unit}'" for unit, size in sizes.items()}
    longer = "".join(f"abs({value}) >= {sizes[unit]!r} ? {texts[unit]} : " for unit in list(sizes)[:-1])
    usual = f"{_rounded(f'({scaled_expression(row, value)})')} + ' {row.display_unit or row.unit}'"
    return f"!{value} || abs({value}) >= {limit!r} ? {usual} : {longer}{texts['ns']}"


def _power_of_ten(value: str) -> str:
    power = f"floor(log(abs({value}) * 1.0005) / LN10)"
    digits = (f"substring('⁰¹²³⁴⁵⁶⁷⁸⁹', {n}, {n} + 1)" for n in (f"floor({power} / 10)", f"{power} % 10"))
    return f"format({value} / pow(10, {power}), ',.3~r') + ' × 10' + {' + '.join(digits)} + ' FLOP'"


def _rounded(value: str) -> str:
    small_or_large = f"abs({value}) >= 1e9 || {value} != 0 && abs({value}) < 1e-4"
    return f"format({value}, {small_or_large} ? '.2e' : abs({value}) >= 100 ? ',.0f' : ',.3~r')"
