"""Audit of published claims: each is recomputed from its recipe and compared with the stated number."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from factorykit.core.errors import RecipeError, UnknownName, unknown_name_message
from factorykit.core.validation import one_of
from factorykit.data.tables import table
from factorykit.model.validation.recipes import Part, Result, Span, Tables, evaluate_recipe

AGREES: Final = 0.01
"""Relative difference up to which two numbers agree."""
ROUNDING: Final = (0.05, 0.15)
"""Bounds of the relative difference that rounding explains, half a unit of the last printed digit."""
DIGITS: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
THOUSAND: Final = 3.0
"""Decimal digits between two prefixes of a unit."""
VERDICTS: Final = ("agrees", "identity", "rounding", "disagrees", "unit error", "superseded", "not checkable")


@dataclass(frozen=True, slots=True)
class Claim:
    """The number, range or bound of a claim."""

    stated: float | None
    low: float | None
    high: float | None
    precision: float | None
    printed: str | None = None

    def is_met_by(self, recomputed: float | Span) -> bool:
        """Return whether a recomputed number agrees: within 1 %, to its last digit, or one range inside the other."""
        if isinstance(recomputed, Span):
            ends = (self.low, self.high) if self._has_bound else (self.stated, self.stated)
            within = all(end is not None and recomputed.low <= end <= recomputed.high for end in ends)
            return within or (self._has_bound and self._holds(recomputed.low) and self._holds(recomputed.high))
        if self._has_bound:
            return self._holds(recomputed)
        if self.stated is None:
            return False
        if self.precision is not None:
            return abs(recomputed - self.stated) <= self.precision / 2.0 * (1.0 + 1e-9)
        return math.isclose(recomputed, self.stated, rel_tol=0.0, abs_tol=abs(self.stated) * AGREES)

    def is_nearly_met_by(self, recomputed: float | Span) -> bool:
        """Return whether rounding explains the difference: stated ends move by half their last printed digit."""
        low, high = (self.low, self.high) if self._has_bound else (self.stated, self.stated)
        if low is None or high is None or self.precision is not None:
            return False
        ends = recomputed if isinstance(recomputed, Span) else Span(recomputed, recomputed)
        low, high = low - abs(low) * self._half_a_digit(low), high + abs(high) * self._half_a_digit(high)
        return low <= ends.low and ends.high <= high

    def _half_a_digit(self, value: float) -> float:
        """Return half a unit of a number's last printed digit over the number; trailing zeros are no digits.

        >>> Claim(4.0, None, None, None, "4 times")._half_a_digit(4.0)
        0.125
        >>> Claim(None, 5.0, 20.0, None, "5-20 min")._half_a_digit(20.0)
        0.15
        """
        printed = [text.replace(",", "") for text in DIGITS.findall(self.printed or "")]
        significant = [int(_significant(text)) for text in printed if _significant(text)]
        least, most = ROUNDING
        if not significant:
            return least
        mine = next((digits for digits in significant if value and _is_power_of_ten(value / digits)), significant[0])
        return min(max(0.5 / mine, least), most)

    def ratio(self, recomputed: float | Span) -> float | None:
        """Return recomputed over stated, of ranges their middles; None where nothing or zero is stated."""
        reference = self.stated if self.stated is not None else next(iter(self._ends), None)
        middle = recomputed.middle if isinstance(recomputed, Span) else recomputed
        return middle / reference if reference else None

    @property
    def _has_bound(self) -> bool:
        return self.low is not None or self.high is not None

    @property
    def _ends(self) -> tuple[float, ...]:
        return tuple(end for end in (self.low, self.high) if end is not None)

    def _holds(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def _significant(printed: str) -> str:
    return (printed.replace(".", "") if "." in printed else printed.rstrip("0")).lstrip("0")


def _is_power_of_ten(ratio: float) -> bool:
    power = math.log10(abs(ratio))
    return math.isclose(power, round(power), abs_tol=1e-6)


def judge(
    claim: Claim,
    recomputed: float | Span,
    *,
    superseded: bool = False,
    from_unit_error: bool = False,
    other_unit: float | Span | None = None,
) -> str:
    """Return the verdict on a claim.

    Parameters
    ----------
    claim
        Stated number.
    recomputed
        Recomputed number.
    superseded
        Whether the recipe takes the value of a more direct source.
    from_unit_error
        Whether the recipe starts from a claim whose unit is wrong.
    other_unit
        Number that results if the unit is mistaken for another.

    >>> judge(Claim(24.3e15, None, None, None), 24.3057e18)
    'unit error'
    >>> judge(Claim(0.301, None, None, 0.001), 148 / 419)
    'disagrees'
    >>> judge(Claim(10.0, 5.0, 20.0, None, "5-20"), Span(12.2, 21.1))
    'rounding'
    """
    if claim.is_met_by(recomputed):
        return "agrees"
    if claim.is_nearly_met_by(recomputed):
        return "rounding"
    if _is_unit_error(claim.ratio(recomputed), from_unit_error):
        return "unit error"
    if other_unit is not None and claim.is_met_by(other_unit):
        return "unit error"
    return "superseded" if superseded else "disagrees"


def _is_unit_error(ratio: float | None, from_unit_error: bool) -> bool:
    """Return whether a ratio is a power of 1000, within 5 %, or nearest to one if the inputs have a wrong unit."""
    if ratio is None or ratio <= 0.0:
        return False
    power = round(math.log10(ratio) / THOUSAND)
    return power != 0 and (from_unit_error or abs(ratio / 1000.0**power - 1.0) <= ROUNDING[0])


def audit(document: str | None = None, verdict: str | None = None) -> pl.DataFrame:
    """Recompute every published claim and compare.

    Parameters
    ----------
    document
        Only the claims of one document, by its key in the sources: ``"seed_000"``.
    verdict
        Only the claims with one verdict: ``agrees`` (within 1 %, or one range inside the other), ``identity`` (it does,
        but the recipe is arithmetic on numbers of the same text and confirms no fact), ``rounding`` (to the
        printed digits: half a unit of the last one, at least 5 and at most 15 %, and so for both ends of a range),
        ``unit error`` (off by a power of 1000, computed from such a number, or right
        in another unit), ``superseded`` (a more direct source differs), ``disagrees``, ``not checkable``.

    Returns
    -------
    polars.DataFrame
        One row per claim, in the order of the documents: ``claim``, ``document``, ``locator``, ``subject``,
        ``claimed``, ``printed``, ``stated``, ``stated_low``, ``stated_high``, ``unit``, ``recomputed`` (of a range the
        middle), ``recomputed_low``, ``recomputed_high``, ``ratio`` (recomputed over stated), ``verdict``, ``why``,
        ``recipe``, ``superseded_by``, ``error``. Where ``error`` is filled the recipe failed and there is no verdict.

    Raises
    ------
    UnknownName
        If there is no such document or verdict.

    Examples
    --------
    >>> audit("seed_000", "unit error").select("claim", "stated", "recomputed").row(0)
    ('c000_011', 2.43e+16, 2.4305664e+19)
    """
    rows = table("claims").collect()
    documents = rows["source"].unique(maintain_order=True).to_list()
    if document is not None:
        document = one_of("document", document, documents)
    if verdict is not None:
        verdict = one_of("verdict", verdict, VERDICTS)
    auditor = _Auditor(rows.to_dicts())
    wanted = rows if document is None else rows.filter(pl.col("source") == document)
    frame = pl.DataFrame([auditor.row(claim) for claim in wanted["claim"]], schema=_schema())
    return frame if verdict is None else frame.filter(pl.col("verdict") == verdict)


def unfold(claim: str) -> pl.DataFrame:
    """Return the parts of the recipe of a claim: one row per cell, other claim, constant and formula, in order.

    Parameters
    ----------
    claim
        A claim by its key, such as ``"c000_011"``.

    Returns
    -------
    polars.DataFrame
        ``part`` (as written in the recipe), ``kind``, ``value``, ``words`` (of a cell of words), ``unit``, ``source``.

    Raises
    ------
    UnknownName
        If there is no such claim.
    RecipeError
        If its recipe fails.
    """
    rows = table("claims").collect().to_dicts()
    recipes = {row["claim"]: row["recipe"] for row in rows}
    if claim not in recipes:
        raise UnknownName(unknown_name_message("claim", claim, recipes))
    parts = evaluate_recipe(recipes[claim]).parts if recipes[claim] else ()
    schema = {"part": pl.String, "kind": pl.String, "value": pl.Float64} | dict.fromkeys(
        ("words", "unit", "source"), pl.String
    )
    return pl.DataFrame([_part(part) for part in parts], schema=schema, orient="row")


def _part(part: Part) -> tuple[Any, ...]:
    words = part.value if isinstance(part.value, str) else None
    return (part.text, part.kind, None if words else part.value, words, part.unit, part.source)


class _Auditor:
    """Recomputes claims, each once, those that a recipe refers to first."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._claims = {row["claim"]: row for row in rows}
        self._tables = Tables()
        self._judged: dict[str, dict[str, Any]] = {}

    def row(self, name: str) -> dict[str, Any]:
        """Return the row of the audit for one claim."""
        if name not in self._judged:
            self._judged[name] = {"verdict": None}  # seen only by a recipe that refers to its own claim
            self._judged[name] = self._judge(self._claims[name])
        return self._judged[name]

    def _judge(self, claim: dict[str, Any]) -> dict[str, Any]:
        row = {
            "claim": claim["claim"],
            "document": claim["source"],
            **{name: claim[name] for name in ("locator", "subject", "claimed", "printed", "stated", "stated_low")},
            **{name: claim[name] for name in ("stated_high", "unit", "why", "recipe", "superseded_by")},
        }
        if claim["recipe"] is None:
            return row | {"verdict": "not checkable"}
        try:
            result = evaluate_recipe(claim["recipe"], self._tables)
            other = evaluate_recipe(claim["other_unit"], self._tables).value if claim["other_unit"] else None
        except RecipeError as error:
            return row | {"verdict": None, "error": str(error)}
        stated = Claim(claim["stated"], claim["stated_low"], claim["stated_high"], claim["exact_to"], claim["printed"])
        verdict = judge(
            stated,
            result.value,
            superseded=claim["superseded_by"] is not None,
            from_unit_error=self._starts_from_unit_error(result),
            other_unit=other,
        )
        if verdict == "agrees" and all(part.kind == "constant" for part in result.parts):
            verdict = "identity"
        return row | _found(stated, result.value) | {"verdict": verdict}

    def _starts_from_unit_error(self, result: Result) -> bool:
        used = [part.key for part in result.parts if part.kind == "claim"]
        return any(self.row(str(name))["verdict"] == "unit error" for name in used)


def _found(stated: Claim, value: float | Span) -> dict[str, float | None]:
    if isinstance(value, Span):
        columns = {"recomputed": value.middle, "recomputed_low": value.low, "recomputed_high": value.high}
    else:
        columns = {"recomputed": value, "recomputed_low": None, "recomputed_high": None}
    return {**columns, "ratio": stated.ratio(value)}


def _schema() -> dict[str, Any]:
    return {
        **dict.fromkeys(("claim", "document", "locator", "subject", "claimed", "printed"), pl.String),
        **dict.fromkeys(("stated", "stated_low", "stated_high"), pl.Float64),
        "unit": pl.String,
        **dict.fromkeys(("recomputed", "recomputed_low", "recomputed_high", "ratio"), pl.Float64),
        **dict.fromkeys(("verdict", "why", "recipe", "superseded_by", "error"), pl.String),
    }
