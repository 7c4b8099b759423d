"""Warnings for implausible values, with the unit that was probably omitted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from factorykit.core.errors import ScenarioError, warn
from factorykit.core.units import parse
from factorykit.core.vocabulary import Quantity, quantity

if TYPE_CHECKING:
    import polars as pl

COMMON_UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "1": ("k", "Ki", "M", "B", "T"),
    "s": ("ns", "us", "ms", "min", "h", "d"),
    "a": ("d", "mo"),
    "1/d": ("1/yr", "%/d"),
    "W": ("mW", "kW", "MW"),
    "byte": ("kB", "MB", "GB", "TB", "PB"),
    "byte/s": ("MB/s", "GB/s", "TB/s"),
    "FLOP/s": ("GFLOP/s", "TFLOP/s", "PFLOP/s"),
    "1/s": ("G/s", "T/s"),
    "J/FLOP": ("pJ/FLOP",),
    "USD": ("k", "M", "B"),
    "USD/h": ("ct/h",),
    "USD/a": ("k USD/yr",),
    "USD/kWh": ("ct/kWh", "USD/MWh"),
    "USD/byte": ("USD/GB", "USD/TB"),
    "USD/W": ("USD/kW", "USD/MW"),
    "kg": ("g", "t"),
    "kg/kWh": ("g/kWh",),
    "L/kWh": ("L/MWh",),
}
"""Units in which values of a quantity are often given without the unit; links have bits as well."""
LEAST_WRITTEN, GREATEST_WRITTEN = 1e-3, 1e6
"""Range of the numbers that are customary before a unit."""


def warn_unusual(values: Mapping[str, float | str]) -> None:
    """Warn about each value outside the usual range of its quantity."""
    for name, value in values.items():
        row = quantity(name)
        if row.usual and not isinstance(value, str) and not row.is_usual(value):
            warn(f"{name} = {_short(value)} is unusual{unusual(name, value)}")


def warn_column(frame: pl.LazyFrame, name: str) -> None:
    """Warn if the least or greatest value of a column is unusual."""
    import polars as pl

    column, row = pl.col(name), quantity(name)
    extremes = frame.filter(column != 0.0).select(column.min().alias("least"), column.max().alias("greatest")).collect()
    odd = [value for value in extremes.row(0) if value is not None and not row.is_usual(value)]
    if odd:
        warn(f"column {name}: {_short(odd[0])} is unusual{unusual(name, odd[0])}")


@lru_cache(256)
def unusual(name: str, value: float) -> str:
    """Return the usual range and the probably intended value, as the end of a sentence.

    >>> unusual("accelerator_power_w", 0.7)
    " (usual 30 W to 30 kW); did you mean '0.7 kW' (700)?"
    >>> unusual("pue", 130.0)
    " (usual 1 to 3); did you mean '130 %' (1.3)?"
    """
    row = quantity(name)
    lower, upper = row.usual_range
    spoken = (
        f"from {_with_unit(row, lower)} on"
        if upper == math.inf
        else f"{_with_unit(row, lower)} to {_with_unit(row, upper)}"
    )
    return f" (usual {spoken}){_intended(row, value)}"


def _intended(row: Quantity, value: float) -> str:
    """Return the intended value: with the omitted unit that brings it closest to the common value."""
    meant = {}
    is_ratio = row.unit == "1" and row.usual_range[1] <= 10.0
    units = ("%",) if is_ratio and value > 1.0 else () if is_ratio else COMMON_UNITS.get(row.unit, ())
    if "direction" in row.meaning:
        units = (*units, "Gb/s")
    for unit in units if LEAST_WRITTEN < value < GREATEST_WRITTEN else ():
        text = f"{_short(value)}{'' if unit[0] in 'kKMBT' and row.unit in ('1', 'USD', 'USD/a', '1/s') else ' '}{unit}"
        try:
            meant[text] = parse(row, text)
        except ScenarioError:
            continue
    inside = {text: number for text, number in meant.items() if number and row.is_usual(number) and row.holds(number)}
    if not inside:
        return ""
    text = min(inside, key=lambda text: abs(math.log(inside[text] / _common(row))))
    return f"; did you mean '{text}' ({_short(inside[text])})?"


def _common(row: Quantity) -> float:
    """Return a common value, between the default and the middle of the slider."""
    low, high = row.slider_min or 0.0, row.slider_max or 1.0
    middle = math.sqrt(low * high) if row.slider_scale == "log" else (low + high) / 2
    return math.sqrt(middle * (row.default or middle))


def _with_unit(row: Quantity, value: float) -> str:
    """Return a value in the unit of the quantity, which applies to numbers without a unit."""
    return row.text(value) if not row.display_unit else f"{_short(value)} {row.unit}".removesuffix(" 1")


def _short(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.6g}"
