"""Tables for reading: units of the vocabulary, shares in percent, numbers in full as text."""

import re

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import UnknownName

FRAME = pl.DataFrame(
    {
        "family": ["a", "https://example.org/?x=<b>"],
        "error": [0.0834, None],
        "mfu": [0.41, 0.5],
        "rental_cost_usd": [63.2e6, 1.0],
        "value": [1.5e13, -2.5e-7],
    }
)


def test_quantities_are_printed_in_their_units_and_shares_in_percent():
    html = fk.charts.table(FRAME, shares=["error"])._repr_html_()
    texts = ("8.34 %", "–", "41 %", "63.2 million USD", "1.50 × 10¹³", "-2.50 × 10⁻⁷")
    assert all(f">{text}</td>" in html for text in texts)
    assert "Rental cost" in html


def test_words_are_escaped_and_addresses_linked():
    assert '<a href="https://example.org/?x=&lt;b&gt;">' in fk.charts.table(FRAME)._repr_html_()


def test_as_text_the_numbers_are_whole():
    assert "0.0834" in repr(fk.charts.table(FRAME, shares=["error"]))


def test_a_share_that_is_no_column_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="nearest is 'error'"):
        fk.charts.table(FRAME, shares=["eror"])


def test_ends_of_a_range_are_printed_as_their_quantity():
    html = fk.charts.table(pl.DataFrame({"facility_power_w_low": [5e7], "cost_low": [3.0]}))._repr_html_()
    assert "Facility power, low" in html
    assert ">50 MW</td>" in html
    assert "Cost low" in html


def test_a_word_after_a_quantity_is_added_to_its_label():
    html = fk.charts.table(pl.DataFrame({"training_energy_kwh_stated": [3.4e6]}))._repr_html_()
    assert "Training energy, stated" in html
    assert ">3.4 GWh</td>" in html


def test_numbers_of_a_row_are_printed_as_the_quantity_that_it_names():
    frame = pl.DataFrame({"quantity": ["tokens", "mfu"], "start": [15.6e12, 0.4], "effect": [0.5, 0.25]})
    html = fk.charts.table(frame, shares=["effect"])._repr_html_()
    assert all(f">{text}</td>" in html for text in ("Training tokens", "15.6 trillion", "40 %", "25 %"))


def test_words_are_left_aligned_and_a_unit_is_printed_once() -> None:
    frame = pl.DataFrame({"quantity": ["restart_s"], "value": [600.0], "unit": ["s"]})
    html = fk.charts.table(frame)._repr_html_()
    assert re.findall(r"text-align:(\w+)[^>]*>([^<]+)<", html) == [
        ("left", "Quantity"),
        ("right", "Value"),
        ("left", "Restart time"),
        ("right", "10 min"),
    ]
    other = fk.charts.table(frame.with_columns(quantity=pl.lit("restarts of last week")))._repr_html_()
    assert "Unit" in other
