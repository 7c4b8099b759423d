"""Calibrated constants of the performance model, from their table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from factorykit.core.errors import DatasetError
from factorykit.data.tables import table

APPLY_WITH = "layers"
"""The quantity that a question needs for the constants to matter."""
EVERYTHING = "all_in"
"""Name in ``left_out`` of the constants that all families were used for."""


@cache
def constants(left_out: str = EVERYTHING) -> Mapping[str, float]:
    """Return the constants by quantity, as found without the family ``left_out``.

    A family that no constants were fitted on has the ones of all families.

    >>> 0.5 < constants()["gemm_share_16bit"] < 1.0
    True
    """
    try:
        rows = table("performance_constants").select("quantity", "left_out", "value").collect()
    except DatasetError:
        return MappingProxyType({})
    values: dict[str, dict[str, float]] = {}
    for quantity, family, value in rows.iter_rows():
        values.setdefault(family, {})[quantity] = value
    return MappingProxyType(values.get(EVERYTHING, {}) | values.get(left_out, {}))


@cache
def calibration_source(quantity: str) -> str:
    """Return how a constant was calibrated, and its source."""
    rows = table("performance_constants").filter(quantity=quantity, left_out=EVERYTHING).collect()
    return next((f"{row['how']} ({row['source']}, {row['locator']})" for row in rows.iter_rows(named=True)), "")
