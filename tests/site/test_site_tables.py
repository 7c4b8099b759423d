"""Tables in a browser: typed filters, chosen and pinned columns, their address, and the downloads of filtered rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import factorykit as fk

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def saved(page: Any, button: str) -> str:
    with page.expect_download() as download:
        page.click(button)
    return Path(download.value.path()).read_text("utf-8")


def test_a_table_is_filtered_by_range_and_category_and_its_address_gives_the_same_rows(visit: Callable[..., Any]):
    page = visit("tables/accelerators.html")
    page.get_by_role("button", name="Filter TDP", exact=True).click()
    page.get_by_label("From").fill("0.7 kW")
    page.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Filter Vendor").click()
    page.locator("#column-filter label", has_text="AMD").click()
    page.get_by_role("button", name="Pin").click()
    wanted = fk.table("accelerators").filter(pl.col("tdp_w") >= 700, pl.col("vendor") == "AMD").collect()
    assert page.evaluate("location.hash") == "#pins=name%2Cvendor&vendor=AMD&tdp_w=700.."
    rows = json.loads(saved(page, "#json"))["rows"]
    assert {row["name"] for row in rows} == set(wanted["name"])
    with page.expect_download() as download:
        page.click("#parquet")
    assert pl.read_parquet(download.value.path()).to_dicts() == rows
    again = visit(page.url)
    assert again.locator("#filters button").all_inner_texts() == ["Vendor: AMD ×", "TDP: at least 700 W ×"]
    (head, *cells) = csv.reader(saved(again, "#csv").splitlines())
    assert {"name", "vendor", "tdp_w [W]"} <= {*head}
    assert len(cells) == wanted.height
    again.locator("#filters button").first.click()
    assert "vendor" not in again.evaluate("location.hash").partition("&")[2]


def test_dates_texts_and_hidden_columns_are_filtered(visit: Callable[..., Any]):
    page = visit("tables/statements.html#as_of=2025..2025-06&field=accelerators")
    page.wait_for_function("!document.getElementById('count').textContent.includes('so far')")
    wanted = fk.sql("""select count(*) from statements where as_of >= '2025' and as_of[:7] <= '2025-06'
                       and field ilike '%accelerators%'""").item()
    assert page.locator("#count").inner_text().startswith(f"{wanted:,} rows")
    page.locator("summary", has_text="Columns and filters").click()
    page.locator("#columns").get_by_role("button", name="Locator").click()
    page.get_by_label("Contains").fill("section")
    page.get_by_role("button", name="Show").click()
    assert "locator" in page.evaluate("location.hash")


def test_the_first_rows_are_in_the_page_and_look_as_the_script_draws_them(visit: Callable[..., Any]):
    for name in ("clusters", "prices"):
        still, live = (visit(f"tables/{name}.html", java_script_enabled=on) for on in (False, True))
        texts = [[row.split("\t") for row in page.locator("#body tr").all_inner_texts()[:25]] for page in (still, live)]
        numbers = [[[cell for cell in row if cell[:1].isdigit()] for row in rows] for rows in texts]
        assert numbers[0] == numbers[1], name
