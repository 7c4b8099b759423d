"""Monthly data note: movements of rental prices, and changes of the tables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.site.feeds import changes_text, news
from factorykit.site.page_layout import template
from factorykit.site.pages.markdown import Marked, browser, front, heading, table
from factorykit.site.table_data import DataPackage, label, load, number

PROVIDERS: Final = 5
SMALLEST: Final = 0.005
LISTED: Final = 12
"""Minimum offers behind a price that is compared, smallest relative change, and most changed values of a month."""


def news_page(data: Path) -> dict[str, str]:
    """Return the page of monthly notes, newest first."""
    package = load(data)
    about = "Rental prices of the last two months side by side, and what changed in the tables, month by month."
    keywords = "news | data note | monthly | changes | changelog | RSS feed"
    parts: list[str] = [front("What changed in the data", about, keywords=keywords)]
    if package is None:
        return {"news": parts[0]}
    if "months" in package.tables:
        parts += _rents(package)
    months: dict[str, list[tuple[str, list[dict[str, Any]]]]] = defaultdict(list)
    for day, name, rows in news(package):
        months[day[:7]].append((name, rows))
    for month, changes in months.items():
        parts += [heading(f"Tables in {_spoken(month)}", f"month-{month}"), *_changes(package, changes)]
    return {"news": "\n\n".join(parts) + "\n"}


def _spoken(month: str) -> str:
    return date.fromisoformat(f"{month}-01").strftime("%B %Y")


def _rents(package: DataPackage) -> Iterator[str]:
    """Yield the heading, the chart and the source of price movements of the last month with a month before it."""
    rents = package.tables["months"].frame.filter(pl.col("rows") >= PROVIDERS, quantity="rental_usd_per_accelerator_h")
    pairs = rents.join(rents, on="of").filter(pl.col("month") < pl.col("month_right"))
    if pairs.is_empty():
        return
    before, now = max(pairs.select("month", "month_right").rows(), key=lambda pair: (pair[1], pair[0]))
    both = pairs.filter(month=before, month_right=now).with_columns(change=pl.col("value_right") / pl.col("value") - 1)
    moved = both.filter(pl.col("change").abs() > SMALLEST).sort("change", descending=True)
    up = moved.filter(pl.col("change") > 0).height
    yield heading(f"Rents in {_spoken(now)}: {up} of {both.height} chips cost more, {moved.height - up} less", "rents")
    rows = moved.select("of", "value", "value_right", "change").rows()
    widest = max((abs(row[3]) for row in rows), default=1.0)
    yield template("news.html").render(before=_spoken(before), now=_spoken(now), rows=rows, widest=widest)
    sources = ", ".join(_source(package, key) for key in dict.fromkeys(both["source_right"]))
    every = browser("all months", "price_months")
    yield f"Median on-demand price of at least {PROVIDERS} offers in both months; {every}. Source: {sources}."


def _source(package: DataPackage, key: str) -> Marked:
    return Marked(f"[{package.names['sources'].get(key, key)}](/entities/sources/{key}.html)")


def _changes(package: DataPackage, changes: list[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    """Yield the counts of the changes of a month by table, and the values that moved most."""
    sized = []
    for name, rows in changes:
        for row in rows:
            described = package.tables[name].fields.get(row["column"] or "") if name in package.tables else None
            if row["change"] == "changed" and described and described["type"] == "number" and row["was"] and row["now"]:
                try:
                    was, now = float(row["was"]), float(row["now"])
                except ValueError:  # text of a publisher
                    continue
                size = abs(math.log(now / was)) if was * now > 0 else math.inf
                cells = (browser(row["row"], name, row["row"]), label(described), number(described, was))
                sized.append((size, (*cells, number(described, now), _source(package, row["source"]))))
    moved = sorted((pair for pair in sized if pair[0] > SMALLEST), key=lambda pair: -pair[0])[:LISTED]
    if moved:
        columns = (("Row", "-----"), ("Value", "-----"), ("Was", "---:"), ("Now", "---:"), ("Source", "----------"))
        yield table(columns, (cells for _, cells in moved))
    titles = {name: package_table.resource["title"] for name, package_table in package.tables.items()}
    yield "\n".join(f"- {browser(titles.get(name, name), name)}: {changes_text(rows)}" for name, rows in changes)
