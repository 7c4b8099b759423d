"""Defaults of quantities, from their table: each with its source, and how it follows from other quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from factorykit.core.errors import DatasetError
from factorykit.data.tables import rows, table
from factorykit.engine.providers.accelerators import Cell, chips

if TYPE_CHECKING:
    import polars as pl

DOCUMENTS: Final = {
    "seed_000": "blog post",
    "seed_001": "course chapter",
    "seed_002": "recipe",
    "seed_003": "supplier's article",
    "seed_004": "reference sheet",
}
"""Names of the five audited documents: the kinds at the end of their titles."""


@dataclass(frozen=True, slots=True)
class Default:
    """A row of the table of defaults."""

    quantity: str
    value: float
    basis: str
    source: str
    locator: str
    note: str
    grows_with: str
    asked: str

    @property
    def why(self) -> str:
        """Where the value comes from, in a line."""
        source = DOCUMENTS.get(self.source, self.source)
        origin = f"{self.basis}: {source}, {self.locator}" if self.locator else f"{self.basis}: {source}"
        return f"{origin}; {self.note}" if self.note else origin


@cache
def defaults() -> Mapping[str, Default]:
    """Return the table of defaults by quantity; empty where the tables are not built yet."""
    try:
        listed = rows("defaults")
    except DatasetError:
        return MappingProxyType({})
    names = ("source", "locator", "note", "grows_with", "asked")
    return MappingProxyType(
        {
            row["quantity"]: Default(
                row["quantity"], row["value"], row["basis"], **{name: row[name] or "" for name in names}
            )
            for row in listed
        }
    )


@cache
def by_accelerator(name: str) -> Cell | None:
    """Return the default of a quantity by accelerator, or None if it does not depend on the accelerator.

    >>> by_accelerator("accelerator_power_w")("h100_sxm")
    650.0
    """
    return Cell(name, ("accelerator",), BY_CHIP[name][0]()) if name in BY_CHIP else None


def by_accelerator_source(name: str) -> str:
    """Return how a default that depends on the accelerator is derived."""
    return BY_CHIP[name][1]


def _design_power() -> dict[str, float]:
    design = {key: chip["tdp_w"] or chip["tdp_estimated_w"] for key, chip in chips().items()}
    return {key: watts for key, watts in design.items() if watts}


def _load_power() -> dict[str, float]:
    typical = defaults()["accelerator_power_w"].value / _design_power()[NODE_OF]
    measured = {key: chip["accelerator_power_w"] for key, chip in chips().items() if chip["accelerator_power_w"]}
    return {key: typical * watts for key, watts in _design_power().items()} | measured


def _rental() -> dict[str, float]:
    import polars as pl

    price = "rental_usd_per_accelerator_h"
    offers = table("rental_offers").filter(pl.col("accelerator").is_not_null(), kind="on demand")
    cheapest = offers.group_by("accelerator", "provider").agg(pl.col(price).min())
    offered = cheapest.group_by("accelerator").agg(pl.col(price).median()).sort("accelerator")
    stated = table("prices").filter(kind="on demand").select("accelerator", f"{price}_median")
    return dict(stated.collect().iter_rows()) | dict(offered.collect().iter_rows())


def _purchase() -> dict[str, float]:
    import polars as pl

    sold = table("chip_prices").filter(pl.col("accelerator").is_not_null() & pl.col("accelerator_usd").is_not_null())
    return dict(
        sold.group_by("accelerator").agg(pl.col("accelerator_usd").last()).sort("accelerator").collect().iter_rows()
    )


def _server() -> dict[str, float]:
    prices, node = _purchase(), defaults()["server_usd"].value
    return _rack_share() | {key: node * price / prices[NODE_OF] for key, price in prices.items()}


def _rack_share() -> dict[str, float]:
    """Return the cost of a node's part of a rack by chip: the lower price of the preferred statement."""
    return {
        chip: price / nodes
        for chip, price, nodes in _racks().select("accelerator", "price_usd_low", "nodes").iter_rows()
        if price
    }


def _nodes_per_rack() -> dict[str, float]:
    known = dict.fromkeys(chips(), defaults()["nodes_per_rack"].value)
    return known | dict(_racks().select("accelerator", "nodes").iter_rows())


def _racks() -> pl.DataFrame:
    """Return the preferred statements of racks whose fabric joins all of their chips, with ``nodes`` of usual size."""
    import polars as pl

    size = defaults()["accelerators_per_node"].value
    racks = table("nodes").filter(pl.col("preferred") != "", pl.col("accelerators") > size, level="rack")
    return racks.with_columns(nodes=pl.col("accelerators") / size).collect()


NODE_OF = "h100_sxm"
"""The chip whose power and whose server's price are defaults."""
LOAD_POWER: Final = (
    "650 of 700 W of the chip's design power, as MLPerf measured servers with H100; as its maker measured it of TPU v3 "
    "and v4, and of a power that Epoch AI estimates where the maker states none"
)
BY_CHIP: Mapping[str, tuple[Callable[[], Mapping[str, float]], str]] = MappingProxyType(
    {
        "accelerator_power_w": (_load_power, LOAD_POWER),
        "accelerator_load_power_w": (_load_power, LOAD_POWER),
        "rental_usd_per_accelerator_h": (
            _rental,
            "median over providers of the cheapest offer on demand, table rental_offers; without offers that of table "
            "prices",
        ),
        "server_usd": (
            _server,
            "300,000 USD with H100, in proportion to the chip's price at release, table chip_prices; where only a rack "
            "has a price, eight parts of it, table nodes",
        ),
        "nodes_per_rack": (
            _nodes_per_rack,
            "four DGX H100 of 10.2 kW fill a rack of 41 kW; eight chips a node where one fabric joins a rack, table "
            "nodes",
        ),
        "accelerator_usd": (_purchase, "price at release, table chip_prices"),
    }
)
"""Defaults that depend on the accelerator: how they are read, and the same in words."""


def is_asked(name: str) -> bool:
    """Return whether a question that needs a quantity asks for it: its default is only where sliders start.

    >>> is_asked("accelerators"), is_asked("parameters"), is_asked("goodput")
    (True, True, False)
    """
    return name in defaults() and bool(defaults()[name].asked)
