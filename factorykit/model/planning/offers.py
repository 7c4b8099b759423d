"""Offers that somebody has in hand: a plan is rented where an offer says that it has enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from factorykit.core.validation import as_list, cells
from factorykit.core.vocabulary import quantity
from factorykit.data.identifiers import identify
from factorykit.model.economics.rent import PRICE, offered

if TYPE_CHECKING:
    import polars as pl

HAS: Final = "offered_accelerators"
COLUMNS: Final = ("provider", "accelerator", PRICE)


def read(offers: Any) -> pl.DataFrame:
    """Return offers with ``provider``, ``accelerator``, the price and ``offered_accelerators``, each checked.

    Raises
    ------
    ScenarioError, FactorykitError
        If a column is missing, there are no rows, or a value is refused.
    """
    import polars as pl

    if isinstance(offers, list):
        rows = [cells("one of offers", row) for row in as_list("offers", offers)]
        offers = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    offers = offered(offers, COLUMNS)
    said = offers[HAS] if HAS in offers.columns else [None] * offers.height
    return pl.DataFrame(
        {
            "provider": offers["provider"].cast(pl.String),
            "accelerator": [identify("accelerator", chip) for chip in offers["accelerator"]],
            PRICE: [quantity(PRICE).check(price) for price in offers[PRICE]],
            HAS: [None if count is None else quantity(HAS).check(count) for count in said],
        },
        {"provider": pl.String, "accelerator": pl.String, PRICE: pl.Float64, HAS: pl.Float64},
    )


def placed(rows: pl.DataFrame, offers: pl.DataFrame, chip: str) -> pl.DataFrame:
    """Return the rows with ``provider`` and price of the cheapest offer that says it has enough of a chip.

    Rows that no offer says it can take have no provider: "not said" is never enough.

    >>> import polars as pl
    >>> given = {"provider": ["a", "b"], "accelerator": "b200", PRICE: [2.0, 3.0], HAS: [None, 4096.0]}
    >>> counts = pl.DataFrame({"accelerators": [1024.0, 8192.0]})
    >>> placed(counts, read(pl.DataFrame(given)), "b200")["provider"].to_list()
    ['b', None]
    """
    import polars as pl

    of_chip = offers.filter(accelerator=chip).sort(PRICE, maintain_order=True).select("provider", PRICE, HAS)
    enough = (
        rows.select("accelerators")
        .unique(maintain_order=True)
        .join(of_chip, how="cross")
        .filter(pl.col(HAS) >= pl.col("accelerators"))
        .unique("accelerators", keep="first", maintain_order=True)
        .drop(HAS)
    )
    return rows.join(enough, on="accelerators", how="left", maintain_order="left")
