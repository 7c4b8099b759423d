"""Conversion of publishers' data sets to rows of the project's own tables.

A recipe reads one data set of `connectors` and yields rows of one table. Keys of entities and manual choices are not
among their cells: `refresh` finds the row by `Recipe.match` and keeps those cells.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import polars as pl

from factorykit.core.constants import HOURS_PER_DAY, SECONDS_PER_DAY
from factorykit.data.identifiers import known_key

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Mapping[str, str]]]
"""The present source files: rows of strings by table."""
KINDS: Final = {"on-demand": "on demand"}
PLACE: Final = re.compile(r"[,\d]|Singapore|Hong Kong")
"""In a location that is more than a country or region, of which the publisher gives the centre as the position."""
QUARTILES: Final = ("quarter", "median", "three_quarters")
SINCE: Final = "2020-01"
"""First month of electricity prices."""
LITRES_PER_M3: Final = 1e3
MAX_LITRES_PER_DAY: Final = 1e9
"""Larger values are unit errors: one site is listed with 70,000 million gallons a day."""


@dataclass(frozen=True)
class Recipe:
    """Conversion of one data set to rows of one table."""

    dataset: str
    source: str
    table: str
    match: str
    """Column that identifies a row."""
    rows: Callable[[pl.DataFrame, Tables], Iterator[Row]]
    newest: str = ""
    """Column of the data set with the day of its rows, where all days are past."""
    whole: bool = True
    """Whether a file is complete, so that a missing row was withdrawn."""
    once: tuple[str, ...] = ()
    """Columns that are filled in new rows only and then edited by hand."""


def key_of(name: str) -> str:
    """Return a name as a key: small letters and digits, joined by underscores."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_")


# ------------------------------------------------------------------------------------------------------ rental prices


def _quantiles(frame: pl.DataFrame, by: Sequence[str], ends: Sequence[str]) -> pl.DataFrame:
    """Return quantiles over providers of each provider's median, with how many there are and the rows behind them."""
    price = pl.col("rental_usd_per_accelerator_h")
    names = (ends[0], *QUARTILES, ends[1])
    return (
        frame.group_by(*by, "provider")
        .agg(price.median(), offers=pl.len().cast(pl.Float64))
        .group_by(*by)
        .agg(
            pl.len().cast(pl.Float64).alias("providers"),
            pl.col("offers").sum(),
            *(
                price.quantile(place, "linear").alias(f"rental_usd_per_accelerator_h_{name}")
                for place, name in zip((0.0, 0.25, 0.5, 0.75, 1.0), names, strict=True)
            ),
        )
        .sort(*by)
    )


def _span(frame: pl.DataFrame) -> str:
    """Return the days of a frame in words: 5 July to 22 August."""
    first, last = frame["date"].min(), frame["date"].max()
    return f"{first.day} {first:%B} to {last.day} {last:%B}"  # pyright: ignore


def _months(frame: pl.DataFrame) -> str:
    first, last = (f"{day:%Y-%m}" for day in (frame["date"].min(), frame["date"].max()))  # pyright: ignore
    return first if first == last else f"{first}/{last}"


def price_months(frame: pl.DataFrame, _: Tables) -> Iterator[Row]:
    """Yield the rental prices of each chip, kind of offer and month."""
    dated = frame.with_columns(month=pl.col("date").dt.strftime("%Y-%m"))
    for row in _quantiles(dated, ("accelerator_stated", "kind", "month"), ("min", "max")).iter_rows(named=True):
        chip, kind, month = row.pop("accelerator_stated"), row.pop("kind"), row.pop("month")
        words = KINDS.get(kind, kind)
        yield {
            "price_month": key_of(f"{chip} {words} {month}"),
            "accelerator": known_key("accelerator", chip),
            "rental_id": chip,
            "kind": words,
            "month": month,
            **{name: round(value, 6) for name, value in row.items()},
            "locator": f"{chip}; {kind}; {month}",
            "as_of": month,
            "note": "computed: median of a provider's rows of the month, then quantiles over providers",
        }


def rental_offers(frame: pl.DataFrame, _: Tables) -> Iterator[Row]:
    """Yield the price of each provider for each chip and kind of offer."""
    price = pl.col("rental_usd_per_accelerator_h")
    rows = frame.group_by("provider", "accelerator_stated", "kind").agg(
        price.median(),
        price.min().alias("rental_usd_per_accelerator_h_min"),
        price.max().alias("rental_usd_per_accelerator_h_max"),
        least_accelerators=pl.col("accelerators_min").min(),
        days=pl.col("date").n_unique().cast(pl.Float64),
        offers=pl.len().cast(pl.Float64),
    )
    for row in rows.sort("provider", "accelerator_stated", "kind").iter_rows(named=True):
        chip, kind = row.pop("accelerator_stated"), row.pop("kind")
        yield {
            "rental_offer": key_of(f"{row['provider']} {chip} {KINDS.get(kind, kind)}"),
            "accelerator": known_key("accelerator", chip),
            "rental_id": chip,
            "kind": KINDS.get(kind, kind),
            **row,
            "locator": f"{row['provider']}; {chip}; {kind}",
            "as_of": _months(frame),
            "note": f"computed: median of the provider's rows of {_span(frame)}",
        }


def prices(frame: pl.DataFrame, tables: Tables) -> Iterator[Row]:
    """Yield the price of a chip-hour over all providers, under each name of the row."""
    under = {row["price"]: row["locator"].split("; ")[0].split(", ") for row in tables["prices"]}
    asked = [
        (chip, kind, name)
        for chip, kind, name in frame.select("accelerator", "kind", "accelerator_stated").unique().iter_rows()
        if chip and kind in ("on-demand", "spot")
        if name in under.get(key_of(f"{chip} {KINDS.get(kind, kind)}"), [name])
    ]
    names = pl.DataFrame(asked, schema=("accelerator", "kind", "accelerator_stated"), orient="row")
    named = frame.join(names, on=names.columns, how="semi")
    last = f"{_span(frame)} {frame['date'].max():%Y}"  # pyright: ignore
    written = named.group_by("accelerator", "kind").agg(pl.col("accelerator_stated").unique().sort(descending=True))
    ids = {(chip, kind): ", ".join(stated) for chip, kind, stated in written.iter_rows()}
    for row in _quantiles(named, ("accelerator", "kind"), ("low", "high")).drop("offers").iter_rows(named=True):
        chip, kind = row.pop("accelerator"), row.pop("kind")
        yield {
            "price": key_of(f"{chip} {KINDS.get(kind, kind)}"),
            "accelerator": chip,
            "kind": KINDS.get(kind, kind),
            **{name: round(value, 6) for name, value in row.items()},
            "locator": f"{ids[chip, kind]}; {kind}; {last}",
            "as_of": _months(frame),
            "note": "computed: median over days per provider, then quantiles over providers",
        }


# --------------------------------------------------------------------------------------------------------- electricity


def electricity_months(frame: pl.DataFrame, tables: Tables) -> Iterator[Row]:
    """Yield the wholesale price of electricity of each European area and whole month."""
    rates = {row["year"]: float(row["usd_per_unit"]) for row in tables["exchange_rates"] if row["currency"] == "EUR"}
    known = {row["country"] for row in tables["country_grids"]}
    last = frame["month"].max()
    for row in frame.sort("country", "month").iter_rows(named=True):
        month, euro, country = row["month"], row["wholesale_eur_per_kwh"], row["country_iso3"].lower()
        if euro is None or country not in known or not SINCE <= month < last:
            continue
        rate = rates.get(month[:4])
        yield {
            "electricity_month": f"{country}_{month.replace('-', '_')}",
            "name": row["country"],
            "country": country,
            "month": month,
            "electricity_usd_per_kwh": None if rate is None else round(euro * rate, 7),
            "electricity_eur_per_kwh": round(euro, 7),
            "locator": f"{row['country']}, {month}",
            "as_of": month,
        }


def grids(frame: pl.DataFrame, _: Tables) -> Iterator[Row]:
    """Yield the electricity mix of each country for which an intensity of carbon is stated."""
    for row in frame.iter_rows(named=True):
        total = row["total_kwh"]
        if row["carbon_kg_per_kwh"] is None:
            continue
        shares = ("coal", "gas", "oil", "nuclear", "hydro", "wind", "solar", "low_carbon")
        yield {
            "country": row["country_iso3"].lower(),
            "name": row["country"],
            "year": row["year"],
            "carbon_kg_per_kwh": row["carbon_kg_per_kwh"],
            "generated_kwh": total,
            **{
                f"{source}_share": None
                if not total or row[f"{source}_kwh"] is None
                else round(row[f"{source}_kwh"] / total, 6)
                for source in shares
            },
            "locator": f"{row['country_iso3']}, {row['year']:.0f}",
            "as_of": f"{row['year']:.0f}",
        }


# -------------------------------------------------------------------------------------------- entities, chips and sites


def chip_prices(frame: pl.DataFrame, _: Tables) -> Iterator[Row]:
    """Yield chips that have a price and a rate."""
    for row in frame.iter_rows(named=True):
        rates = (row["peak_16bit_flop_per_s"], row["peak_fp32_flop_per_s"])
        if row["release_price_usd"] is None or rates == (None, None):
            continue
        yield {
            "chip_price": key_of(row["name"]),
            "name": row["name"],
            "vendor": row["vendor"],
            "accelerator": row["accelerator"],
            "released": row["launch"],
            "accelerator_usd": row["release_price_usd"],
            "peak_16bit_flop_per_s": rates[0],
            "peak_32bit_flop_per_s": rates[1],
            "price_address": row["price_source"],
            "locator": f"release price of {row['name']}",
            "as_of": (row["launch"] or "")[:4] or None,
        }


def chip_counts(frame: pl.DataFrame, _: Tables) -> Iterator[Row]:
    """Yield how many chips of each designer each owner holds, and how many of each chip there are, by quarter."""
    for row in frame.iter_rows(named=True):
        if row["series"] not in ("cumulative_by_chip", "owner_cumulative_total"):
            continue
        is_kind = row["series"] == "cumulative_by_chip"
        about = row["accelerator_stated"] if is_kind else row["owner"]
        yield {
            "chip_count": key_of(f"{row['designer']} {about} {row['end_date']:%Y-%m}"),
            "series": "chips of a kind" if is_kind else "chips of an owner",
            "designer": row["designer"],
            "owner": None if is_kind else row["owner"],
            "accelerator": row["accelerator"],
            "accelerator_stated": row["accelerator_stated"] if is_kind else None,
            "day": f"{row['end_date']}",
            **{
                f"{ours}_{end}": row[f"{theirs}_{end}"]
                for theirs, ours in (
                    ("accelerators", "accelerators"),
                    ("h100_equivalents", "h100_equivalents"),
                    ("power_w", "accelerators_power_w"),
                )
                for end in ("p05", "median", "p95")
            },
            "locator": f"{row['series']}, {row['designer']}, {about}, {row['end_date']}",
            "as_of": f"{row['end_date']}",
            "note": "part of the quarter" if row["incomplete"] and row["incomplete"].lower() == "true" else None,
        }


def runs(frame: pl.DataFrame, tables: Tables) -> Iterator[Row]:
    """Yield statements about the runs in the tables; other runs are added by hand."""
    known = {row["locator"] for row in tables["run_statements"] if row["source"] == "epoch_models"}
    for row in frame.iter_rows(named=True):
        locator = f"row {row['name']}"
        if locator not in known:
            continue
        days, chips = row["wall_s"] and row["wall_s"] / SECONDS_PER_DAY, row["accelerators"]
        hours = row["accelerator_hours"] or (days * HOURS_PER_DAY * chips if days and chips else None)
        yield {
            "parameters": row["parameters"],
            "accelerator_stated": _spaced(row["accelerator_stated"]),
            "accelerators": chips,
            "wall_days": None if days is None else round(days, 4),
            "accelerator_hours": hours,
            "address": next(iter(re.findall(r"^https?://\S+", row["source_url"] or "")), None),
            "locator": locator,
        }


def sites(frame: pl.DataFrame, _: Tables) -> Iterator[Row]:
    """Yield the undated statements about each site."""
    for row in frame.iter_rows(named=True):
        users, sure = ((row[name] or "").split("; ") for name in ("users", "users_confidence"))
        pairs = zip_longest(users, sure, fillvalue="")
        named = [f"{user} ({level})".removesuffix(" ()") for user, level in pairs if user]
        yield {
            "site": key_of(row["name"]),
            "name": row["name"],
            "project": row["project"],
            "operator": row["owner"],
            "users": "; ".join(named) or None,
            "country": _country(row["country"]),
            "place": row["address"],
            "accelerator_stated": _spaced(row["accelerators_planned_stated"]),
            "address": row["source_url"],
            "locator": f"site {row['name']}",
        }


def timelines(frame: pl.DataFrame, tables: Tables) -> Iterator[Row]:
    """Yield existing and planned capacity of each known site on each day of its timeline."""
    known = {row["name"] for row in tables["site_statements"]}
    for row in frame.sort("name", "date", maintain_order=True).iter_rows(named=True):
        water = row["water_l_per_day"]
        if row["name"] not in known:
            continue
        yield {
            "site": key_of(row["name"]),
            "name": row["name"],
            "buildings": row["buildings_operational"],
            "it_power_w": row["it_power_w"] or None,
            "facility_power_w": row["facility_power_w"] or None,
            "h100_equivalents": row["h100_equivalents"],
            "capital_2025_usd": row["capital_2025_usd"],
            "water_m3_per_day": None if water is None or water > MAX_LITRES_PER_DAY else water / LITRES_PER_M3,
            "locator": f"timeline of {row['name']}, {row['date']}",
            "as_of": f"{row['date']}",
        }


def clusters(frame: pl.DataFrame, tables: Tables) -> Iterator[Row]:
    """Yield statements about clusters with a name and a size; of uncertain ones only those in the tables."""
    known = {row["locator"] for row in tables["cluster_statements"] if row["source"] == "epoch_clusters"}
    read = next(row["published"] for row in tables["sources"] if row["source"] == "epoch_clusters")
    for row in frame.iter_rows(named=True):
        sure = row["is_in_standard_analysis"] or (row["status"] == "Planned" and row["certainty"] != "Unlikely")
        wanted = sure and not row["is_possible_duplicate"] and (row["accelerators"] or row["power_reported_w"])
        called = row["name"].strip('"')
        locator = f"row {called}"
        if called.startswith("Anonymized") or not (wanted or locator in known):
            continue
        name = re.sub(r"( Rumored| Possible)?( Phase \d+)?$", "", called)
        counts = (
            (row["accelerators_primary"], row["accelerator_stated"]),
            (row["accelerators_secondary"], row["accelerator_secondary_stated"]),
        )
        stated = [f"{count:,.0f} {chip}" if count else chip for count, chip in counts if chip]
        chip = row["accelerator"] if counts[1] == (None, None) else None
        when = row["first_operational_note"] or ""
        yield {
            "cluster": key_of(name),
            "name": name,
            "operator": row["owner"],
            "accelerator": chip,
            "accelerator_stated": " + ".join(stated) or None,
            "accelerators": row["accelerators"],
            "capital_usd_low": row["cost_reported_usd"],
            "capital_usd_high": row["cost_reported_usd"],
            "site": row["location"],
            "purpose": f"used by {_spaced(row['users'])}" if row["users"] else None,
            "country": _country(row["country"]),
            "latitude": row["latitude_deg"] if PLACE.search(row["location"] or "") else None,
            "longitude": row["longitude_deg"] if PLACE.search(row["location"] or "") else None,
            "sector": (row["sector"] or "").lower() or None,
            "status": (row["status"] or "").lower() or None,
            "certainty": (row["certainty"] or "").lower() or None,
            "first_operational": row["first_operational"],
            "planned_for": when.removeprefix("Planned").strip() or None if row["status"] == "Planned" else None,
            "h100_equivalents": row["h100_equivalents"],
            "power_reported_w": row["power_reported_w"],
            "superseded_by": row["superseded_by"],
            "address": next(iter(re.findall(r"^https?://\S+", row["source_url"] or "")), None),
            "locator": locator,
            "as_of": row["first_operational"] or read,
            "note": None if name == called else called,
        }


def _country(name: str | None) -> str | None:
    """Return the key of a country in the table of grids."""
    return known_key("country", name) if name else None


def _spaced(stated: str | None) -> str | None:
    return re.sub(r",\s*", ", ", stated) if stated else None


_NAMES: Final = ("name", "operator", "accelerator")
RECIPES: Final = (
    Recipe("gpu_rental_prices", "rental_prices", "price_months", "price_month", price_months, "date", whole=False),
    Recipe("gpu_rental_prices", "rental_prices", "rental_offers", "rental_offer", rental_offers, "date"),
    Recipe("gpu_rental_prices", "rental_prices", "prices", "price", prices, "date"),
    Recipe(
        *("ember_eu_wholesale_price_monthly", "ember_prices", "electricity_months", "electricity_month"),
        electricity_months,
        whole=False,
    ),
    Recipe("grid_energy_mix", "grid_mix", "country_grids", "country", grids),
    Recipe(
        *("epoch_ml_hardware", "epoch_hardware", "chip_prices", "chip_price"),
        chip_prices,
        newest="as_of",
        once=("accelerator",),
    ),
    Recipe("epoch_chip_counts", "epoch_chip_counts", "chip_counts", "chip_count", chip_counts, whole=False),
    Recipe("epoch_data_centers", "epoch_data_centers", "site_statements", "locator", sites, once=_NAMES),
    Recipe("epoch_data_center_timelines", "epoch_data_centers", "site_statements", "locator", timelines, once=_NAMES),
    Recipe("epoch_notable_models", "epoch_models", "run_statements", "locator", runs, whole=False),
    Recipe("epoch_gpu_clusters", "epoch_clusters", "cluster_statements", "locator", clusters, once=_NAMES),
)
"""All recipes, in the order in which tables are refreshed."""
