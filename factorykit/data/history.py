"""Monthly series from the tables of dated statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import polars as pl

from factorykit.core.constants import SECONDS_PER_HOUR

COLUMNS: Final = ("quantity", "of", "month", "value", "rows", "status", "source", "locator", "note")
NEEDED: Final = frozenset(
    {
        "accelerators",
        "chip_counts",
        "chip_prices",
        "cluster_chips",
        "cluster_statements",
        "electricity_months",
        "price_months",
        "site_statements",
        "sources",
    }
)
"""Tables that `months` reads."""
RENTED: Final = {"on demand": "", "on demand at AWS": ", on demand at AWS", "reserved": ", contract of a year"}
"""Kinds of rental offers, with the suffix of their series after the name of the chip."""


def months(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return one row per series and month, with the columns of the table `months`.

    The size of a cluster, the power of a site and the lowest price so far are carried forward until the next statement.
    Prices exist only for months in which they were collected.
    """
    series_rows = pl.concat(_series(tables), how="diagonal_relaxed").with_columns(pl.col("rows").fill_null(1.0))
    key = pl.concat_str("quantity", "of", "month", separator=" ").str.to_lowercase()
    return series_rows.select(
        key.str.replace_all(r"[^a-z0-9]+", "_").alias("month_of_series"),
        *COLUMNS,
        as_of="month",
    ).sort("quantity", "of", "month", maintain_order=True)


def _series(tables: Mapping[str, pl.DataFrame]) -> Iterator[pl.DataFrame]:
    for rows in _largest_cluster(tables):
        yield _from(rows, "cluster_statements and cluster_chips", "epoch_clusters")
    for rows in _sites(tables["site_statements"]):
        yield _from(rows, "site_statements", "epoch_data_centers")
    yield _from(_chips(tables["chip_counts"]), "chip_counts", "epoch_chip_counts")
    yield _from(_price_of_a_rate(tables["chip_prices"]), "chip_prices", "epoch_hardware")
    for rows in _rent(tables["price_months"], tables["accelerators"]):
        yield _from(rows, "price_months")
    yield _from(_electricity(tables["electricity_months"]), "electricity_months", "ember_prices")


def _from(frame: pl.DataFrame, table: str, source: str | None = None) -> pl.DataFrame:
    """Add the table from which the series is computed, and the source of its rows where they do not hold it."""
    labels = {"locator": pl.lit(f"computed from the table {table}")}
    return frame.with_columns(**labels, **({"source": pl.lit(source)} if source else {}))


def _every_month(frame: pl.DataFrame, last: str | None = None) -> pl.DataFrame:
    """Return one row for each month from the first of ``month`` to the last, missing ones without values."""
    ends = (frame["month"].min(), last or frame["month"].max())
    first, final = (pl.Series([f"{end}-01"]).str.to_date() for end in ends)
    every = pl.date_range(first.item(), final.item(), "1mo", eager=True).dt.strftime("%Y-%m").alias("month")
    return every.to_frame().join(frame, on="month", how="left", maintain_order="left")


def _largest_cluster(tables: Mapping[str, pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the most chips of one kind in one cluster, as they stood and, apart from them, as they are to stand.

    ``note`` names the cluster and the kind. Clusters of several kinds count by the table `cluster_chips`.
    """
    stated = tables["cluster_statements"]
    counted = stated.join(tables["sources"].filter(kind="benchmark"), on="source", how="anti").filter(
        pl.col("accelerators").is_not_null(), status="existing"
    )
    labels = stated.unique("cluster", keep="first", maintain_order=True).select("cluster", label="name")
    columns = ("cluster", "accelerator", "accelerators", "status", "month")
    counts = (
        pl.concat(
            [
                counted.with_columns(month="first_operational").select(columns),
                tables["cluster_chips"].with_columns(month="as_of").select(columns),
            ]
        )
        .filter(pl.col("month").str.len_chars() >= 7)
        .with_columns(pl.col("month").str.slice(0, 7))
        .join(labels, on="cluster", maintain_order="left")
        .join(tables["accelerators"].select("accelerator", chip="name"), on="accelerator", maintain_order="left")
    )
    floor = 0.0
    for status in ("existing", "planned"):
        grown = (
            counts.filter((pl.col("status") == "existing") == (status == "existing"))
            .sort("month", "accelerators", "cluster", descending=[False, True, False])
            .group_by("month", maintain_order=True)
            .agg(pl.first("accelerators", "label", "chip"), rows=pl.len().cast(pl.Float64))
            .with_columns(value=pl.max_horizontal(pl.col("accelerators").cum_max(), pl.lit(floor)))
        )
        record = (pl.col("accelerators") == pl.col("value")) & (
            pl.col("value") > pl.col("value").shift().fill_null(floor)
        )
        holder = pl.when(record).then(pl.concat_str("label", "chip", separator=", ")).forward_fill()
        filled = _every_month(grown.with_columns(note=holder)).with_columns(
            pl.col("value", "note").forward_fill(), rows=pl.col("rows").fill_null(0.0).cum_sum()
        )
        floor = filled["value"].max()
        of = pl.lit("largest cluster, chips of one kind")
        yield filled.with_columns(quantity=pl.lit("accelerators"), of=of, status=pl.lit(status))


def _sites(stated: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the power of all sites, and of the largest, month by month as it was and as it is planned."""
    power = stated.filter(pl.col("facility_power_w").is_not_null(), pl.col("status").is_not_null()).select(
        "site", "facility_power_w", "status", month=pl.col("as_of").str.slice(0, 7)
    )
    last = power["month"].max()
    steps = power.sort("month", maintain_order=True).unique(["site", "month"], keep="last", maintain_order=True)
    monthly = [
        _every_month(part, str(last)).with_columns(
            pl.col("facility_power_w").forward_fill(), site=pl.lit(name), status=pl.lit(None, pl.String)
        )
        for (name,), part in steps.group_by("site", maintain_order=True)
    ]
    ahead = pl.col("month") >= power.filter(status="planned")["month"].min()
    total = (
        pl.concat(monthly)
        .group_by("month")
        .agg(
            pl.col("facility_power_w").sum().alias("all"),
            pl.col("facility_power_w").max().alias("largest"),
            rows=pl.len().cast(pl.Float64),
        )
        .sort("month")
        .with_columns(status=pl.when(ahead).then(pl.lit("planned")).otherwise(pl.lit("existing")))
    )
    for name, of in (("all", "all frontier sites"), ("largest", "largest frontier site")):
        yield total.with_columns(quantity=pl.lit("facility_power_w"), of=pl.lit(of), value=pl.col(name))


def _chips(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the chips of each designer, of all kinds together, at the end of each quarter."""
    return (
        counts.filter(pl.col("note").is_null(), series="chips of a kind")
        .group_by("designer", month=pl.col("day").str.slice(0, 7))
        .agg(value=pl.col("accelerators_median").sum(), rows=pl.len().cast(pl.Float64))
        .with_columns(quantity=pl.lit("accelerators"), of=pl.concat_str(pl.lit("chips of "), "designer"))
    )


def _price_of_a_rate(chips: pl.DataFrame) -> pl.DataFrame:
    """Return the lowest release price per 16-bit FLOP/s of a data-centre chip so far, nominal."""
    priced = (
        chips.filter(pl.col("peak_16bit_flop_per_s").is_not_null(), market="data centre", source="epoch_hardware")
        .filter(pl.col("released").str.len_chars() >= 7)
        .group_by(month=pl.col("released").str.slice(0, 7))
        .agg((pl.col("accelerator_usd") / pl.col("peak_16bit_flop_per_s")).min().alias("value"), rows=pl.len())
        .sort("month")
    )
    return _every_month(priced).with_columns(
        quantity=pl.lit("accelerator_usd_per_flop_per_s"),
        of=pl.lit("data-centre chips, lowest at release so far"),
        value=pl.col("value").forward_fill().cum_min(),
        rows=pl.col("rows").cast(pl.Float64).fill_null(0.0).cum_sum(),
    )


def _rent(prices: pl.DataFrame, chips: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rent of each chip by kind of offer, and the price of a 16-bit FLOP on demand and at the peak rate."""
    price = "rental_usd_per_accelerator_h_median"
    every = (
        prices.filter(pl.col("accelerator").is_not_null())
        .group_by("accelerator", "month", "kind", maintain_order=True)
        .agg(
            value=pl.col(price).median(),
            rows=pl.col("providers").sum().replace(0.0, 1.0),
            source=pl.col("source").first(),
        )
        .join(chips.select("accelerator", "name", "peak_16bit_flop_per_s"), on="accelerator", how="left")
    )
    for kind, suffix in RENTED.items():
        of = pl.col("name") + suffix
        yield every.filter(kind=kind).with_columns(quantity=pl.lit("rental_usd_per_accelerator_h"), of=of)
    rate = pl.col("value") / (SECONDS_PER_HOUR * pl.col("peak_16bit_flop_per_s"))
    asked = every.filter(kind="on demand").with_columns(quantity=pl.lit("rental_usd_per_flop"), of="name", value=rate)
    yield asked.filter(pl.col("value").is_not_null())


def _electricity(prices: pl.DataFrame) -> pl.DataFrame:
    """Return the median wholesale price of electricity over the areas of Europe."""
    price = pl.col("electricity_usd_per_kwh")
    middle = prices.group_by("month").agg(value=price.median(), rows=price.count().cast(pl.Float64))
    of = pl.lit("wholesale, median area of Europe")
    return middle.with_columns(quantity=pl.lit("electricity_usd_per_kwh"), of=of)
