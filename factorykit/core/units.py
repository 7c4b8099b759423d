"""Parsing of values with units: a number, an optional scale such as ``B`` for billion, an optional unit."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from factorykit.core.errors import ScenarioError, short_repr

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

MAX_LENGTH: Final = 1000
"""Characters of a number with its unit."""
PREFIXES: Final = (
    {"p": "1e-12", "n": "1e-9", "u": "1e-6", "µ": "1e-6", "m": "1e-3", "k": "1e3", "M": "1e6", "G": "1e9"}
    | {"T": "1e12", "P": "1e15", "E": "1e18", "Z": "1e21", "Y": "1e24"}
    | {f"{letter}i": str(1024**power) for power, letter in enumerate("KMGTPE", 1)}
)
"""Factor of each unit prefix."""
UNITS: Final = (
    ("second", "[time]", "s", "sec"),
    ("minute", "60 second", "min"),
    ("hour", "60 minute", "h", "hr"),
    ("day", "24 hour", "d"),
    ("week", "7 day", "wk"),
    ("year", "365 day", "a", "yr"),
    ("month", "year / 12", "mo"),
    ("byte", "[information]", "B"),
    ("bit", "byte / 8", "b"),
    ("bps", "bit / second"),
    ("FLOP", "[operation]"),
    ("FLOPS", "FLOP / second"),
    ("joule", "[energy]", "J"),
    ("watt", "joule / second", "W"),
    ("watt_hour", "watt * hour", "Wh"),
    ("gram", "[mass]", "g"),
    ("tonne", "1e6 gram", "t"),
    ("litre", "[volume]", "L", "l", "liter"),
    ("dollar", "[money]", "USD"),
    ("cent", "dollar / 100", "ct"),
    ("FIT", "1e-9 / hour"),
    ("rps", "1 / second"),
    ("percent", "1 / 100"),
    ("each", "[]"),
)
"""Units by name, definition, symbol and aliases. A year has 8,760 h, as in power contracts."""
CUSTOMARY_PREFIXES: Final = (
    {"s": ("", "n", "u", "m", "M")}
    | dict.fromkeys(("min", "h", "d", "wk", "mo", "yr", "ct"), ("",))
    | {"B": ("", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti"), "b": ("k", "M", "G", "T")}
    | dict.fromkeys(("FLOP", "FLOPS"), ("", "M", "G", "T", "P", "E", "Z"))
    | dict.fromkeys(("W", "Wh", "J"), ("", "m", "k", "M", "G", "T"))
    | {"g": ("", "k"), "t": ("", "k", "M"), "L": ("", "m", "M"), "USD": ("", "k", "M")}
)
"""Symbols with their customary prefixes, the candidates offered for an ambiguous unit."""
SCALES: Final = {"thousand": "1e3", "million": "1e6", "billion": "1e9", "bn": "1e9", "trillion": "1e12"} | {
    "k": "1e3",
    "K": "1e3",
    "M": "1e6",
    "B": "1e9",
    "G": "1e9",
    "T": "1e12",
    "b": "1e9",
    "t": "1e12",
    "Ki": "1024",
    "Mi": "1048576",
}
"""Factor of a word or letter directly after a number."""
NOUNS: Final = (
    {noun: noun for noun in ("token", "sequence", "layer", "expert", "direction", "link", "rank", "step", "failure")}
    | dict.fromkeys(("accelerator", "gpu", "tpu", "chip"), "accelerator")
    | dict.fromkeys(("parameter", "param", "weight"), "parameter")
    | dict.fromkeys(("node", "server"), "node")
    | dict.fromkeys(("request", "req", "query", "queries"), "request")
    | dict.fromkeys(("person", "people"), "people")
)
"""Counted objects by the nouns that users write, as the vocabulary calls them."""
POWERS_OF_TWO: Final = frozenset(
    {"sequence_length", "attention_window", "vocabulary_size", "input_tokens", "output_tokens", "output_limit_tokens"}
)
"""Counts for which ``8k`` may mean 8,000 or 8,192."""
TYPICAL: Final = {"W": 1e6, "byte": 1e10, "byte/s": 1e10, "FLOP/s": 1e15, "kWh": 1e6, "USD": 1e6}
"""Examples of derived quantities of a whole run or cluster that have no default, by unit."""

_NUMBER = re.compile(r"(?P<sign>[+-]?)(?P<money>[$€£¥]?)\s*(?P<digits>(?:\d[\d,_]*)?(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*")
_PLAIN = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)?(?:\.\d*)?(?:[eE][+-]?\d+)?")
_SCALE = re.compile(rf"(?P<scale>{'|'.join(sorted(SCALES, key=len, reverse=True))})(?=$|\s|/)\s*")


Row: TypeAlias = Any
"""A quantity of the vocabulary, whose module imports this one."""


def begins_with_digit(text: object) -> bool:
    """Return whether a text is a value: its first character after a sign, currency or decimal point is a digit.

    >>> begins_with_digit("70B"), begins_with_digit("$.5/h"), begins_with_digit("checkpoint_interval_daly_s")
    (True, True, False)
    """
    return isinstance(text, str) and "0" <= text.lstrip(" +-$€£¥.")[:1] <= "9"


def parse(row: Row, text: str) -> float:
    """Return the value of ``text`` in the unit of a quantity; bounds are not checked.

    A number without a unit is in the unit of the quantity, and so are ``70B`` and a price without its time, ``$2.5``.

    Raises
    ------
    ScenarioError
        If the unit is unknown, of another dimension, or ambiguous, with the candidates.

    >>> from factorykit.core.vocabulary import quantity
    >>> parse(quantity("tokens"), "15T"), parse(quantity("parameters"), "70b"), parse(quantity("restart_s"), "30 min")
    (15000000000000.0, 70000000000.0, 1800.0)
    >>> parse(quantity("scale_out_bytes_per_s"), "400 Gb/s"), parse(quantity("rental_usd_per_accelerator_h"), "$2.5")
    (50000000000.0, 2.5)
    """
    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        raise ScenarioError(f"{row.name} must be a number with a unit such as '{example(row)}', got {short_repr(text)}")
    given = f"{row.name} = {text!r}"
    match = _NUMBER.match(text.strip())
    if match is None or not _PLAIN.fullmatch(digits := match["digits"]) or not any(map(str.isdigit, digits)):
        raise ScenarioError(
            f"{given} does not begin with a number; write decimals with a point and thousands with commas"
        )
    number = match["sign"] + digits.replace(",", "").replace("_", "")
    rest = text.strip()[match.end() :]
    if match["money"] in ("€", "£", "¥") or re.search(r"\b(EUR|GBP|JPY|CNY)\b", rest):
        raise ScenarioError(f"{given}: currencies are not converted; give US dollars, e.g. '{example(row)}'")
    is_price = row.unit.startswith("USD") and rest.strip() in ("", "$", "USD")
    if is_price or not (match["money"] or rest):
        return float(number)
    if row.display_unit and rest == row.display_unit:
        return _times(number, Decimal(str(row.display_scale)))
    money = "USD" if match["money"] else ""
    for scale, unit in _readings(row, rest, money):
        factor = _factor(row.unit, _spelled(row, unit)) if unit else Decimal(1)
        if factor is not None:
            if row.name in POWERS_OF_TWO and scale in ("k", "K"):
                both = " or ".join(f"{float(number) * size:,.0f}" for size in (1000, 1024))
                raise ScenarioError(f"{given} can be {both}; write the number, or '{number}Ki' for the latter")
            return _times(number, factor * Decimal(SCALES.get(scale, "1")))
    raise ScenarioError(f"{given}: {_unit_error(row, number, rest, money)}")


def parse_column(values: pl.Series, row: Row) -> pl.Series:
    """Return a text column as numbers in the unit of a quantity; null stays null.

    Raises
    ------
    ScenarioError
        For the first text that is not a value, with its row.
    """
    import polars as pl

    numbers = {}
    for text in values.unique(maintain_order=True).drop_nulls():
        try:
            if not begins_with_digit(text):
                raise ScenarioError(f"{row.name} = {text!r} is not a value such as '{example(row)}'")
            numbers[text] = parse(row, text)
        except ScenarioError as error:
            raise ScenarioError(f"column {row.name}, row {values.index_of(text)}: {error}") from None
    return values.replace_strict(numbers, default=None, return_dtype=pl.Float64)


def _readings(row: Row, rest: str, money: str) -> Iterator[tuple[str, str]]:
    """Yield the possible readings of the text after a number: an optional scale and an optional unit."""
    yield "", money + rest
    match = _SCALE.match(rest)
    if match:
        unit = money + rest[match.end() :]
        is_word = len(match["scale"]) > 2 or (unit and match["scale"] not in ("b", "t"))
        if is_word or row.unit in ("1", "h") or row.unit.startswith("USD"):
            yield match["scale"], unit


def _times(number: str, factor: Decimal) -> float:
    """Return a product with a single rounding, so that 41 % is 0.41."""
    return float(Decimal(number) * factor) if math.isfinite(float(number)) else float(number)


def _spelled(row: Row, unit: str) -> str:
    """Return a unit for the units library, without the objects that the quantity counts."""
    first, *others = re.split(r"\bper\b", unit.replace("%", " percent ").replace("$", "USD"))
    joined = (first.strip() or "1") + "".join(f"/({other.strip()})" for other in others)
    joined = re.sub(r"^\s*/", "1/", re.sub(r"([A-Za-z]+)-([A-Za-z]+)", r"(\1*\2)", joined))

    def counted(word: re.Match[str]) -> str:
        noun = NOUNS.get(_singular(word[0]))
        return "each" if noun and noun in _nouns(row, "/" in joined[: word.start()]) else word[0]

    return re.sub(r"[A-Za-z]{3,}", counted, joined)


def _nouns(row: Row, below: bool) -> set[str | None]:
    """Return the nouns that a quantity counts: in its name or first in its meaning; in a denominator anywhere."""
    counted = row.name.partition("_per_")[0] + ("" if row.is_derived else f" {row.meaning.partition(' ')[0]}")
    words = f"{row.name} {row.meaning}" if below else counted
    return {NOUNS.get(_singular(word)) for word in re.findall(r"[A-Za-z]+", words)}


def _singular(word: str) -> str:
    return word.lower().removesuffix("s")


@cache
def _registry() -> Any:
    import pint

    empty: Any = {"filename": None, "non_int_type": Decimal}
    registry = pint.UnitRegistry(**empty)
    for name, factor in PREFIXES.items():
        registry.define(f"prefix_{name}- = {factor} = {name}-")
    for unit in UNITS:
        registry.define(" = ".join(unit))
    return registry


@lru_cache(maxsize=1024)
def _factor(own: str, unit: str) -> Decimal | None:
    """Return the factor from ``unit`` to ``own``; None if it is not a unit of that dimension."""
    own = "each" if own == "1" else own
    if unit == own:
        return Decimal(1)
    registry = _registry()
    try:
        there, here = (
            registry.Quantity(Decimal(1), registry.parse_units(name)).to_root_units() for name in (unit, own)
        )
    except Exception:  # the parser of the library raises many kinds
        return None
    return there.magnitude / here.magnitude if there.dimensionality == here.dimensionality else None


def _unit_error(row: Row, number: str, rest: str, money: str) -> str:
    """Return the message for a unit that does not fit, with candidates."""
    fitting = _candidates(row, money + rest)
    if fitting:
        options = ", ".join(f"'{number} {unit}'" for unit in fitting)
        return f"{rest!r} is ambiguous; write {options}"
    for noun in re.findall(r"[A-Za-z]{3,}", rest):
        if _singular(noun) in NOUNS:
            return f"{row.label} does not count {noun}; it is {row.meaning}"
    return f"{rest or money!r} is not a unit of {row.label}; give {row.spoken_unit}, e.g. '{example(row)}'"


def _candidates(row: Row, unit: str) -> list[str]:
    """Return the units of the quantity that differ from ``unit`` in case only, or begin with its single letter."""
    head, slash, tail = unit.partition("/")
    word = head.strip()
    if not re.fullmatch(r"[A-Za-zµ]+", word):
        return []
    letter = len(word) == 1
    end = slash + tail or (f"/{row.unit.partition('/')[2]}" if letter and "/" in row.unit else "")
    spelled = [prefix + symbol for symbol, prefixes in CUSTOMARY_PREFIXES.items() for prefix in prefixes]
    scales = [scale for scale in SCALES if letter and row.unit == "1" and scale.lower().startswith(word.lower())]
    similar = [spelling for spelling in spelled if (spelling[0] if letter else spelling).lower() == word.lower()]
    return scales + [
        f"{spelling}{end}" for spelling in similar if _factor(row.unit, _spelled(row, f"{spelling}{end}")) is not None
    ]


def example(row: Row) -> str:
    """Return an example of a value of the quantity: its default, a typical value of a cluster, or one unit."""
    value = row.default or (TYPICAL.get(row.unit) if row.is_derived and "_per_" not in row.name else None)
    return row.text(value) if value else f"1 {row.unit}".removesuffix(" 1")
