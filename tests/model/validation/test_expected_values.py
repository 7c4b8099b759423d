"""Numbers of the documents are recomputed, as stated and corrected, and conflicts are resolved."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import factorykit as fk
from factorykit.formulas import catalogue
from factorykit.model.validation.recipes import Span, Tables, evaluate_recipe

CASES = fk.table("expected_values").collect().to_dicts()
TABLES = Tables()
PRINTED = 5e-4
"""Rates of chips are printed with three or four digits: 989, 989.4 and 989.5 TFLOP/s are one rate."""
THREE_DIGITS = 5e-3
"""Ranges of compute and cost are given with three digits."""


@pytest.mark.parametrize("way", ["as_written", "corrected"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["expected_value"])
def test_the_numbers_of_the_documents_are_reproduced(case: dict, way: str) -> None:
    low, high, recipe = case[f"{way}_low"], case[f"{way}_high"], case[f"recipe_{way}"]
    if low is None:
        assert recipe is None
        return
    value = evaluate_recipe(recipe, TABLES).value
    found = value if isinstance(value, Span) else Span(value, value)
    tolerance = PRINTED if low == high else THREE_DIGITS
    assert (found.low, found.high) == pytest.approx((low, high), rel=tolerance)


def test_all_cases_and_capabilities_are_present(shared: Path) -> None:
    assert len(CASES) == 124
    with (shared / "facts" / "seeds" / "functions.csv").open(encoding="utf-8", newline="") as file:
        expected = {row["feature_id"].lower().replace("-", "_") for row in csv.DictReader(file)}
    assert set(fk.table("functions").collect()["function"]) == expected


@pytest.mark.parametrize("row", fk.table("functions").collect().to_dicts(), ids=lambda row: row["function"])
def test_every_capability_names_an_existing_function_or_table(row: dict) -> None:
    tables = set(fk.tables()["table"])
    for name in row["computed_by"].split("; "):
        kind, _, rest = name.partition(":")
        if kind == "table":
            assert rest in tables
        elif name.startswith("fk."):
            assert callable(getattr(fk, name.removeprefix("fk.")))
        else:
            assert name in catalogue()


def test_every_conflict_has_two_sides_and_a_choice(shared: Path) -> None:
    with (shared / "facts" / "seeds" / "conflicts.csv").open(encoding="utf-8", newline="") as file:
        expected = {row["conflict_id"].lower(): row for row in csv.DictReader(file)}
    rows = {row["conflict"]: row for row in fk.table("conflicts").collect().to_dicts()}
    assert set(rows) == set(expected)
    for name, row in rows.items():
        assert row["reason"].endswith(".")
        assert row["locator"] == expected[name]["locator_a"]
        assert row["second_locator"] == expected[name]["locator_b"]
        supported = expected[name]["supported"].split(" ")[0]
        side = {"a": "first", "b": "second", "both": "both", "neither": "neither"}.get(supported)
        assert side is None or row["choice"] in (side, "neither"), name
