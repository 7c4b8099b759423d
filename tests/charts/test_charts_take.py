"""Downloads of a chart contain the drawn rows and their source."""

from __future__ import annotations

import io
import re

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import factorykit as fk
from factorykit.charts import downloads


@pytest.fixture(scope="module")
def live():
    return fk.charts.cost.build_or_rent({"": fk.preset("llama_3_1_405b")})


def test_rows_of_a_live_chart_are_those_that_python_computes(live):
    drawn = downloads.rows(live.payload)
    assert_frame_equal(drawn, live.rows().select(drawn.columns), rel_tol=1e-5, abs_tol=1.0)


def test_a_csv_has_a_description_and_can_be_read_without_it(live):
    text = downloads.csv(live.payload, [live.title, "Source: the presets"])
    assert text.startswith(f"# {live.title}\n# Source: the presets\n")
    read = pl.read_csv(io.StringIO(text), comment_prefix="#")
    assert read.columns == [each["name"] for each in downloads.columns(live.payload)]
    assert_frame_equal(read, downloads.rows(live.payload), check_dtypes=False, rel_tol=1e-5)
    assert not re.search(r"\d\.\d{9,}", text)


def test_a_picture_holds_title_settings_and_address(live):
    settings = "; ".join(f"{each['label']} {each['text']}" for each in downloads.settings(live.payload))
    assert "Rental price per accelerator-hour 3.31 USD/h" in settings
    small = (
        "<svg xmlns='http://www.w3.org/2000/svg' width='300' height='40' viewBox='0 0 300 40'><path d='M0,0'/></svg>"
    )
    picture = downloads.framed([small], "Build & rent", [settings, "charts/build.html"])
    words = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))
    assert words.startswith("Build &amp; rent")
    assert "charts/build.html" in words
    assert "Rental price" in words
    assert downloads.png(picture, scale=1.0).startswith(b"\x89PNG")
