"""The vocabulary, read from ``quantities.csv``: name, unit, label, symbol, meaning, bounds and usual range."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeGuard

from factorykit.core.errors import ScenarioError, UnknownQuantity, nearest, short_repr, unknown_name_message
from factorykit.core.units import begins_with_digit, example, parse, parse_column

if TYPE_CHECKING:
    import polars as pl

    from factorykit.core._names import QuantityName

SI_PREFIXES = ((1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
SI_UNITS = frozenset({"W", "FLOP", "FLOP/s", "byte", "byte/s"})
LARGE_FLOP = 1e18
"""Count of operations from which it is written as a power of ten, as regulations and papers write it."""
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
SIMILAR_QUANTITY = 0.7
"""Similarity from which the name of a quantity is suggested for an unknown one."""
WORDS = ("name", "unit", "label", "symbol", "kind", "meaning", "bounds", "usual", "slider_scale", "display_unit")
LARGE_NUMBERS = ((1e12, "trillion "), (1e9, "billion "), (1e6, "million "))
TIMES = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
SHORT_TIME = 0.1
"""Times below this number of their display unit are printed in the largest unit that is not above them."""
ENERGIES = ((1e6, "GWh"), (1e3, "MWh"), (1.0, "kWh"))


@dataclass(frozen=True, slots=True)
class Quantity:
    """One row of the vocabulary."""

    name: str
    unit: str
    label: str
    symbol: str
    kind: str
    meaning: str
    bounds: str
    usual: str
    default: float | None
    slider_min: float | None
    slider_max: float | None
    slider_scale: str
    display_unit: str
    display_scale: float
    neutral: float | str | None = None
    alternatives: tuple[str, ...] = ()
    used_when: frozenset[str] = frozenset()
    """For an alternative model: it replaces a missing value only if one of these quantities is given."""
    applies_with: str = ""
    """For a neutral value: it is omitted from complete listings unless this quantity is given."""
    entity: str = ""
    """Kind of entity that a text quantity names, such as an accelerator."""

    @property
    def is_text(self) -> bool:
        """Whether values are strings, such as a precision, and not numbers."""
        return self.unit == "text"

    @property
    def is_year(self) -> bool:
        """Whether the quantity is a year of the calendar."""
        return self.unit == "1" and bool(self.bounds) and self.lower > 1900.0 and self.upper < 2100.0

    @property
    def is_derived(self) -> bool:
        """Whether a formula computes it; a given value must then be consistent with that formula."""
        return self.kind == "derived"

    @property
    def choices(self) -> tuple[str, ...]:
        """Values that a text quantity may take; empty if any string is allowed."""
        return tuple(self.bounds.split(" | ")) if self.is_text and self.bounds else ()

    @property
    def lower(self) -> float:
        """Lower bound, included if ``bounds`` opens with a square bracket."""
        return _limits(self.bounds)[0]

    @property
    def upper(self) -> float:
        """Upper bound, included if ``bounds`` closes with a square bracket."""
        return _limits(self.bounds)[1]

    def holds(self, value: float) -> bool:
        """Return whether ``value`` is finite and within the bounds."""
        lower, upper = _limits(self.bounds)
        above = value >= lower if self.bounds[0] == "[" else value > lower
        below = value <= upper if self.bounds[-1] == "]" else value < upper
        return above and below and math.isfinite(value)

    def reaches(self, value: float) -> bool:
        """Return whether a result may be ``value``: within the bounds or, as a limit, at one of them.

        >>> quantity("goodput").holds(0.0), quantity("goodput").reaches(0.0), quantity("goodput").reaches(1.1)
        (False, True, False)
        """
        lower, upper = _limits(self.bounds)
        return lower <= value <= upper

    @property
    def usual_range(self) -> tuple[float, float]:
        """Least and greatest usual value; the bounds by default."""
        return _limits(self.usual or self.bounds)

    def is_usual(self, value: float) -> bool:
        """Return whether ``value`` is plausible; zero always is, since it disables a term."""
        lower, upper = self.usual_range
        return value == 0.0 or lower <= value <= upper

    @property
    def title(self) -> str:
        """Label and display unit for an axis or a slider: ``Checkpoint interval [min]``."""
        unit = self.display_unit or ("" if self.unit in ("1", "text") else self.unit)
        return f"{self.label} [{unit}]" if unit else self.label

    @property
    def described(self) -> str:
        """Label and base unit for messages: ``Checkpoint interval [s]``."""
        return self.label if self.unit in ("1", "text") else f"{self.label} [{self.unit}]"

    def check(self, value: object) -> float | str:
        """Return ``value`` as a float or, for a text quantity, as one of its choices; a text with a unit is parsed.

        Raises
        ------
        ScenarioError
            If it has the wrong type or unit, is not finite, or lies outside the bounds.

        >>> quantity("storage_write_bytes_per_s").check("500 GB/s"), quantity("precision").check("FP8")
        (500000000000.0, 'fp8')
        """
        if self.is_text:
            if isinstance(value, str) and value.lower() in self.choices:
                return value.lower()
            if not isinstance(value, str) or (self.choices and value not in self.choices):
                raise ScenarioError(
                    f"{self.name} = {short_repr(value)} is not one of {self.bounds or 'the known names'}"
                )
            return value
        if isinstance(value, str) and begins_with_digit(value):
            value = parse(self, value)
        if isinstance(value, (list, tuple)):
            raise ScenarioError(
                f"{self.name} = {short_repr(value)} has several values; give a DataFrame with a row for each, or use "
                f"fk.sweep(inputs, {{'{self.name}': {short_repr(value)}}}, ...)"
            )
        if type(value) is not float and not is_number(value):
            kind = "not a number" if isinstance(value, str) else f"{type(value).__name__}, not a number"
            raise ScenarioError(f"{self.name} = {short_repr(value)} is {kind}; give one such as '{example(self)}'")
        number = as_float(value)
        if not self.holds(number):
            raise ScenarioError(f"{self.name} = {number!r} is outside {self.bounds}{self.hint(number)}")
        return number

    @property
    def spoken_unit(self) -> str:
        """The unit in a sentence."""
        return "a plain number" if self.unit == "1" else self.unit

    def hint(self, number: float) -> str:
        """Return the fix for a number out of bounds, as the end of a sentence.

        >>> quantity("requests_per_s").hint(-1.0)
        '; Requests per second must be above 0'
        """
        if self.upper == 1.0 and 2.0 <= number <= 100.0:
            return f"; give a fraction, e.g. {number / 100:g}"
        if not math.isfinite(number):
            return "; give a finite number"
        lower, upper = _limits(self.bounds)
        least = f"{'at least' if self.bounds[0] == '[' else 'above'} {format_number(lower)}"
        most = f"{'at most' if self.bounds[-1] == ']' else 'below'} {format_number(upper)}"
        limits = [limit for limit, end in ((least, lower), (most, upper)) if math.isfinite(end)]
        unit = "" if self.unit == "1" or (lower == 0.0 and len(limits) == 1) else f" {self.unit}"
        return f"; {self.label} must be {' and '.join(limits)}{unit}"

    def text(self, value: float, digits: int = 3) -> str:
        """Return ``value`` as text, scaled and with its unit.

        >>> quantity("cluster_peak_flop_per_s").text(2.43e19)
        '24.3 EFLOP/s'
        >>> quantity("mfu").text(0.381)
        '38.1 %'
        >>> quantity("rental_cost_usd").text(63.2e6)
        '63.2 million USD'
        >>> quantity("training_flop").text(3.8e25)
        '3.8 × 10²⁵ FLOP'
        >>> quantity("training_s").text(36e6), quantity("training_s").text(12.0), quantity("chip_year").text(2024.25)
        ('10,000 h', '12 s', '2024.25')
        """
        if self.is_text:
            return str(value)
        if not math.isfinite(value):
            return f"{value} {self.unit}".removesuffix(" 1")
        if self.is_year:
            return f"{round(value, 2):g}"
        if self.unit in ("s", "d") and 0.0 < abs(value) / self.display_scale < SHORT_TIME:
            time_s = value * TIMES[self.unit]
            unit = next((unit for unit, size in TIMES.items() if size <= abs(time_s)), "ns")
            return f"{format_number(time_s / TIMES[unit], digits)} {unit}"
        if self.unit == "kWh":
            scale, unit = next((size for size in ENERGIES if abs(value) >= size[0] * 0.9995), ENERGIES[-1])
            return f"{format_number(value / scale, digits)} {unit}"
        if self.display_unit:
            return f"{format_number(value / self.display_scale, digits)} {self.display_unit}"
        if self.unit == "FLOP" and abs(value) >= LARGE_FLOP:
            power = math.floor(math.log10(abs(value) * (1 + 0.5 * 10.0**-digits)))
            return f"{format_number(value / 10.0**power, digits)} × 10{str(power).translate(SUPERSCRIPTS)} FLOP"
        unit = self.unit.replace("byte", "B")
        prefixes = SI_PREFIXES if self.unit in SI_UNITS else LARGE_NUMBERS if unit in ("USD", "1", "h") else ()
        for scale, prefix in prefixes:
            if abs(value) >= scale * 0.9995:
                return f"{format_number(value / scale, digits)} {prefix}{unit}".removesuffix(" 1")
        return f"{format_number(value, digits)} {unit}".removesuffix(" 1")


@cache
def _limits(bounds: str) -> tuple[float, float]:
    lower, upper = bounds[1:-1].split(",")
    return float(lower), float(upper)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether ``value`` is a real number of Python or NumPy; booleans and time differences are not.

    >>> is_number(3), is_number(True), is_number("3")
    (True, False, False)
    """
    if type(value) in (float, int):
        return True
    return isinstance(value, Real) and not isinstance(value, bool) and type(value).__name__ != "timedelta64"


def as_float(value: float) -> float:
    """Return a number as a float, infinite above the largest float.

    >>> as_float(10**400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def format_number(value: float, digits: int = 3) -> str:
    """Return ``value`` with ``digits`` significant digits, never in powers of ten between 1e-4 and 1e9.

    >>> format_number(16384.0), format_number(0.00123456), format_number(2.0)
    ('16,384', '0.00123', '2')
    """
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    shown = f"{value:,.{decimals}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


def _lines(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()


@cache
def vocabulary() -> Mapping[str, Quantity]:
    """Return all quantities by name, in the order of the file."""
    header, *cells = csv.reader(_lines("quantities.csv"))
    rows = [dict(zip(header, row, strict=True)) for row in cells]
    return MappingProxyType(
        {
            row["name"]: Quantity(
                **{key: row[key] for key in WORDS},
                default=_number(row["default"]),
                slider_min=_number(row["slider_min"]),
                slider_max=_number(row["slider_max"]),
                alternatives=tuple(row["alternatives"].split()),
                used_when=frozenset(row["used_when"].split()),
                applies_with=row["applies_with"],
                entity=row["entity"],
                display_scale=_number(row["display_scale"]) or 1.0,
                neutral=row["neutral"] or None if row["unit"] == "text" else _number(row["neutral"]),
            )
            for row in rows
        }
    )


@cache
def neutral_values() -> Mapping[str, float | str]:
    """Return the silent defaults: values that disable a feature, such as no experts or one tensor-parallel rank.

    Other defaults are reported when they are used.

    >>> neutral_values()["experts"], neutral_values()["schedule"]
    (0.0, '1f1b')
    """
    return MappingProxyType({row.name: row.neutral for row in vocabulary().values() if row.neutral is not None})


def quantity(name: QuantityName | str) -> Quantity:
    """Return the quantity called ``name``.

    Raises
    ------
    UnknownQuantity
        With the nearest name.

    >>> quantity("mfu").bounds
    '(0, 1]'
    """
    try:
        return vocabulary()[name]
    except (KeyError, TypeError):
        raise UnknownQuantity(unknown_quantity_message(name)) from None


def duration(name: str) -> Quantity:
    """Return a time in seconds that is not in the vocabulary, for parsing texts and columns.

    >>> parse(duration("repair_s"), "2 h")
    7200.0
    """
    return replace(quantity("restart_s"), name=name)


def parse_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with the texts of numeric quantities parsed as numbers, or raise a ScenarioError."""
    import polars as pl

    rows = [vocabulary()[name] for name, dtype in frame.schema.items() if dtype == pl.String and name in vocabulary()]
    return frame.with_columns(parse_column(frame[row.name], row) for row in rows if not row.is_text)


@cache
def synonyms() -> Mapping[str, tuple[str, ...]]:
    """Return the quantities that common names from elsewhere stand for; none if there is no model of them.

    >>> synonyms()["tp"], synonyms()["batch"]
    (('tensor_parallel',), ('global_batch_size', 'micro_batch_size'))
    """
    return {row["synonym"]: tuple(row["quantities"].split()) for row in csv.DictReader(_lines("synonyms.csv"))}


def unknown_quantity_message(name: object) -> str:
    """Return the message for an unknown quantity, with the quantity of that synonym or of the nearest name.

    >>> unknown_quantity_message("token")
    "no quantity 'token'; nearest is 'tokens' (Training tokens)"
    >>> unknown_quantity_message("GPU count")
    "no quantity 'GPU count'; use accelerators (Accelerators)"
    """
    meant = synonyms().get(re.sub(r"[ -]+", "_", name.strip().lower())) if isinstance(name, str) else None
    if meant == ():
        return f"no quantity {short_repr(name)}; factorykit models time, failures, energy and cost, not the loss"
    if meant:
        described = " or ".join(f"{candidate} ({vocabulary()[candidate].described})" for candidate in meant)
        return f"no quantity {short_repr(name)}; use {described}"
    sentence = unknown_name_message("quantity", name, vocabulary())
    near = sentence.rpartition("nearest is ")[2].strip("'")
    if near in vocabulary() and not nearest(near, [str(name)], SIMILAR_QUANTITY):
        return f"no quantity {short_repr(name)}; fk.quantities() lists the names"
    return f"{sentence} ({vocabulary()[near].described})" if near in vocabulary() else sentence


def quantities() -> pl.DataFrame:
    """Return the vocabulary as a frame, one row per quantity, in the order of the file.

    Columns are those of ``quantities.csv`` with ``lower`` and ``upper`` read from ``bounds``; null means that the
    quantity has no neutral value, default, slider, bound or usual range. A value outside ``usual`` is accepted with
    a warning.
    """
    import polars as pl

    rows = vocabulary().values()
    fields = [field for field in Quantity.__slots__ if field not in ("neutral", "default")]
    columns = {field: [None if (cell := getattr(row, field)) == "" else cell for row in rows] for field in fields}
    columns["alternatives"] = [" ".join(row.alternatives) or None for row in rows]
    columns["used_when"] = [" ".join(sorted(row.used_when)) or None for row in rows]
    words = {"neutral": [None if row.neutral is None else str(row.neutral) for row in rows]}
    numbers = {
        "default": [row.default for row in rows],
        "lower": [None if row.is_text else row.lower for row in rows],
        "upper": [None if row.is_text else row.upper for row in rows],
    }
    return pl.DataFrame(columns | words | numbers).with_columns(
        pl.col("default", "slider_min", "slider_max", "display_scale", "lower", "upper").cast(pl.Float64)
    )
