"""Numbers on charts: Vega prints the same text as the vocabulary."""

from __future__ import annotations

import math
import re

import altair as alt
import polars as pl
import pytest
from vega import texts

from factorykit.charts import encoding
from factorykit.charts.theme import FAINT
from factorykit.core.vocabulary import SI_UNITS, quantity, vocabulary

NUMBERS = [row for row in vocabulary().values() if not row.is_text]
SIZES = (0, 3e-5, 0.0123, 0.5, 0.99949, 1, 12.34, 99.95, 100.4, 998.4, 1234, 54_321, 2.34e6, 8.15e9, 1.56e13, 2e19)


@pytest.mark.parametrize("unit", sorted({(row.unit, row.display_unit) for row in NUMBERS}), ids=" ".join)
def test_vega_prints_a_value_as_the_vocabulary_does(unit: tuple[str, str]) -> None:
    row = next(row for row in NUMBERS if (row.unit, row.display_unit) == unit)
    values = [value * row.display_scale for value in SIZES if value < 1e15 or row.unit in SI_UNITS]
    printed = texts([encoding.text_expression(row, repr(value)) for value in values])
    assert printed == [re.sub(r"(e[+-])0", r"\1", row.text(value)) for value in values]  # JavaScript: 3.00e-5, not e-05


def labels(name: str, *values: float) -> list[str]:
    """Return the labels of an axis at its ticks."""
    return texts([encoding.label_expression(quantity(name))], values=[{"value": value} for value in values])


def test_an_axis_prints_units_with_prefixes_and_counts_in_full_up_to_a_million() -> None:
    power = ["0", "20 W", "999 W", "1 kW", "20 MW", "1.5 GW", "−2 MW"]
    assert labels("facility_power_w", 0, 20, 999, 1000, 2e7, 1.5e9, -2e6) == power
    assert labels("accelerator_memory_bytes", 8e10) == ["80 GB"]
    assert labels("accelerators", 8, 2048, 16_384, 1e6) == ["8", "2,048", "16,384", "1M"]
    assert labels("tokens", 999, 1e4, 2.5e9, 1e12) == ["999", "10,000", "2.5B", "1T"]
    assert labels("checkpoint_interval_s", 0.5, 5, 1500) == ["0.5", "5", "1,500"]


def test_the_unit_is_in_the_title_or_in_the_labels_of_an_axis() -> None:
    assert encoding.axis_title(quantity("facility_power_w")) == "Facility power"
    assert encoding.axis_title(quantity("checkpoint_interval_s")) == "Checkpoint interval [min]"


@pytest.mark.parametrize(
    ("domain", "labelled"),
    [
        ((1.0, 5.0), [1, 2, 3, 4, 5]),
        ((1.0, 100.0), [1, 2, 5, 10, 20, 50, 100]),
        ((1.0, 1000.0), [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]),
        ((1.0, 1e4), [1, 10, 100, 1000, 10_000]),
    ],
)
def test_a_logarithmic_axis_labels_round_values_as_room_allows(
    domain: tuple[float, float], labelled: list[int]
) -> None:
    axis = encoding.axis(quantity("accelerators"), "x", "log")["labelExpr"]
    ticks = [digit * 10**power for power in range(5) for digit in range(1, 10) if digit * 10**power <= domain[1]]
    printed = texts([axis.replace("domain('x')", str(list(domain)))], values=[{"value": tick} for tick in ticks])
    assert [tick for tick, label in zip(ticks, printed, strict=True) if label] == labelled


def test_only_a_logarithmic_axis_thins_its_labels_and_its_horizontal_grid() -> None:
    row = quantity("accelerators")
    assert encoding.axis(row) == encoding.axis(row, "x") == encoding.axis(row, "", "log")
    assert encoding.axis(row)["labelExpr"] == encoding.label_expression(row)
    assert "gridColor" not in encoding.axis(row, "x", "log")
    lines = encoding.axis(row, "y", "log")["gridColor"]
    assert (lines["condition"]["value"], lines["value"]) == (FAINT, "transparent")
    assert encoding.axis(row, "y", "log")["labelExpr"].startswith(lines["condition"]["test"])


def test_a_position_is_labelled_by_the_vocabulary_by_default() -> None:
    plain = encoding.y("accelerators").to_dict()
    assert (plain["field"], plain["type"], plain["title"]) == ("accelerators", "quantitative", "Accelerators")
    log = encoding.y("accelerators", scale=alt.Scale(type="log"), title="mine").to_dict()
    assert (log["title"], log["axis"]) == ("mine", encoding.axis(quantity("accelerators"), "y", "log"))
    assert encoding.x("mfu", scale=alt.Scale(zero=False)).to_dict()["axis"] == encoding.axis(quantity("mfu"), "x")
    for word in ("precision", "cluster_name"):
        assert encoding.x(word).to_dict() == {"field": word, "type": "nominal", "title": None}


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("facility_power_w", ".4~s"),
        ("checkpoint_interval_s", ",.4~r"),
        ("tokens", ",.4~r"),
        ("precision", None),
        ("who", None),
    ],
)
def test_a_tooltip_has_the_label_and_letters_only_for_units_that_take_them(name: str, format_: str | None) -> None:
    (tooltip,) = (channel.to_dict() for channel in encoding.tooltip([name]))
    assert tooltip.get("format") == format_
    assert tooltip["title"] == encoding.title(name)
    assert tooltip["type"] == ("nominal" if format_ is None else "quantitative")


def test_a_chart_stores_values_that_it_shows_in_another_unit() -> None:
    frame = pl.DataFrame({"wall_s": [7200.0], "accelerators": [8.0], "who": ["me"]})
    (step,) = encoding.chart(frame).mark_bar().to_dict()["transform"]
    row = quantity("wall_s")
    assert step["as"] == encoding.shown("wall_s") == f"wall_s in {row.display_unit}"
    assert float(texts([step["calculate"]], values=[{"wall_s": 7200.0}])[0]) == 7200.0 / row.display_scale
    assert "transform" not in encoding.chart(frame.drop("wall_s")).mark_bar().to_dict()
    assert math.isclose(row.display_scale, 3600.0 if row.display_unit == "h" else 86_400.0)
