"""Formulas against the numbers of ``tests/golden/chain.csv``; each tolerance follows the source's digits."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from factorykit.core.vocabulary import quantity
from factorykit.formulas import catalogue

GOLDEN = Path(__file__).parent.parent / "golden" / "chain.csv"
ROWS = pl.read_csv(GOLDEN, infer_schema=False).to_dicts()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['quantity']}: {row['source']}")
def test_a_formula_gives_the_published_value(row: dict[str, str]) -> None:
    inputs = {name: float(value) for name, value in (pair.split("=") for pair in row["inputs"].split())}
    for name, value in inputs.items():
        quantity(name).check(value)
    assert catalogue()[row["quantity"]](**inputs) == pytest.approx(float(row["value"]), rel=float(row["rtol"]))
