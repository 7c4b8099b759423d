"""Charts over frames: valid, labelled by the vocabulary, with a source."""

from __future__ import annotations

import altair as alt
import polars as pl
import pytest
from conftest_values import encoded_fields, known_fields

from factorykit.charts import audit, compute, cost, encoding, history, table
from factorykit.charts.theme import PALETTE, STILL_INK
from factorykit.core.vocabulary import quantity
from factorykit.model.validation.audit import VERDICTS

CLUSTERS = pl.DataFrame({"label": ["Great </script> plains", "Small"], "cluster_peak_flop_per_s": [2.43e19, 2.03e18]})
STATEMENTS = pl.DataFrame(
    {
        "cluster": ["A", "A", "B"],
        "accelerators": [1e5, 2e5, 16384.0],
        "who": ["one", "other", "one"],
        "source": ["x", "y", "z"],
        "as_of": ["2024", "2025", "2024"],
    }
)
CLAIMS = pl.DataFrame(
    {"claim": ["A", "A"], "way": ["stated", "recomputed"], "training_energy_kwh": [2e7, 2.2e7], "source": ["x", "y"]}
)
MONTHS = pl.DataFrame(
    {
        "quantity": "facility_power_w",
        "of": ["all", "all", "all"],
        "month": ["2026-06", "2026-07", "2026-08"],
        "value": [1e9, 1.2e9, 1.5e9],
        "status": ["existing", "existing", "planned"],
    }
)


def charts() -> dict[str, alt.TopLevelMixin]:
    return {
        "cluster_peak_flop_per_s": compute.bars(CLUSTERS, "cluster_peak_flop_per_s", title="Peak", source="Table"),
        "accelerators": compute.statements(STATEMENTS, "accelerators", title="Counts", source="Table"),
        "facility_power_w": history.by_month(MONTHS, title="Power", source="Table months"),
        "training_energy_kwh": cost.stated_and_recomputed(CLAIMS, "training_energy_kwh", title="Energy", source="T"),
    }


@pytest.mark.parametrize("name", charts())
def test_a_chart_is_valid_and_encodes_existing_fields(name: str) -> None:
    spec = charts()[name].to_dict()
    assert encoded_fields(spec) <= known_fields(spec)
    assert spec["description"]
    assert spec["usermeta"]["source"]
    assert quantity(name).title in str(spec)


def test_planned_power_begins_where_existing_power_ends() -> None:
    spec = charts()["facility_power_w"].to_dict()
    was, ahead = (list(spec["datasets"][layer["data"]["name"]]) for layer in spec["layer"])
    assert [row["month"] for row in was] == ["2026-06", "2026-07"]
    assert [row["month"] for row in ahead] == ["2026-07", "2026-08"]


def test_charts_of_the_audit_are_valid_and_share_the_colours_of_verdicts() -> None:
    counts = pl.DataFrame({"document": ["A", "A"], "verdict": ["agrees", "unit error"], "claims": [3, 1]})
    worst = pl.DataFrame({"label": ["a"], "ratio": [1e3], "verdict": ["unit error"], "printed": ["1"], "why": ["slip"]})
    for chart in (audit.verdicts(counts, title="T", source="S"), audit.ratios(worst, title="T", source="S")):
        spec = chart.to_dict()
        assert encoded_fields(spec) <= known_fields(spec) | {"color_verdict_sort_index"}
        assert spec["usermeta"]["source"] == "S"
        colour = next(it for it in (spec, *spec.get("layer", ())) if "color" in it.get("encoding", {}))["encoding"][
            "color"
        ]
        assert colour["scale"]["domain"][-1] == "unit error"
        assert colour["scale"]["range"][-1] == audit.COLOURS["unit error"]
        assert "superseded" not in colour["scale"]["domain"]  # a legend names the verdicts that occur
    assert set(audit.COLOURS) == set(VERDICTS)


def test_a_quantity_is_drawn_in_its_display_unit() -> None:
    spec = charts()["training_energy_kwh"].to_dict()
    assert "training_energy_kwh in GWh" in encoded_fields(spec)
    assert "Training energy [GWh]" in str(spec)


def test_axis_title_is_label_and_unit() -> None:
    assert encoding.x("checkpoint_interval_s").to_dict()["title"] == "Checkpoint interval [min]"
    assert encoding.y("mfu").to_dict()["title"] == "Model FLOP utilization [%]"


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("ground", ["#ffffff", "#16181d"])
def test_every_colour_has_contrast_to_light_and_dark(ground: str) -> None:
    assert all(contrast(color, ground) >= 3.0 for color in PALETTE)
    assert contrast(STILL_INK, ground) >= 3.9


def test_a_table_shows_units_and_keeps_numbers_as_text() -> None:
    shown = table(pl.DataFrame({"name": ["<A>"], "facility_power_w": [3.384e7], "url": ["https://example.org/"]}))
    assert "33.8 MW" in shown._repr_html_()
    assert "&lt;A&gt;" in shown._repr_html_()
    assert '<a href="https://example.org/">' in shown._repr_html_()
    assert "33.8e6" in repr(shown) or "3.384e7" in repr(shown)
