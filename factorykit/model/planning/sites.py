"""Where a run may stand: the carbon of a country's grid and its price of electricity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from factorykit.core.errors import ScenarioError
from factorykit.data.tables import table

if TYPE_CHECKING:
    import polars as pl


def sites(names: Sequence[str] | None = None) -> pl.DataFrame:
    """Return one row per country: ``site``, ``carbon_kg_per_kwh`` of its grid, ``electricity_usd_per_kwh``, the newest.

    By default every country that has both.

    Raises
    ------
    ScenarioError
        If a country has no grid or no price.

    >>> sites(["fra"])["carbon_kg_per_kwh"].item() < 0.1
    True
    """
    import polars as pl

    prices = (
        table("electricity")
        .filter(pl.col("electricity_usd_per_kwh").is_not_null(), pl.col("kind").is_in(["industrial", "wholesale"]))
        .sort("year")
        .group_by("country")
        .agg(pl.col("electricity_usd_per_kwh").last())
    )
    grids = table("country_grids").select(site="country", carbon_kg_per_kwh="carbon_kg_per_kwh")
    rows = grids.join(prices, left_on="site", right_on="country").collect()
    if names is None:
        return rows.sort("site")
    found = [rows.filter(site=name.lower()) for name in names]
    for name, row in zip(names, found, strict=True):
        if row.is_empty():
            raise ScenarioError(
                f"site {name!r}: no country with a grid and a price of electricity; give codes such as 'usa'"
            )
    return pl.concat(found)
