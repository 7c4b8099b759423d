"""A chart as an output: safe in a page, reproducible bytes, with a picture and with numbers."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import altair as alt
import polars as pl
import pytest

from factorykit.charts import compute, finish, mimebundle
from factorykit.charts.bundle import page_script
from factorykit.charts.embed import html
from factorykit.charts.live import Live


def chart() -> alt.LayerChart:
    frame = pl.DataFrame({"label": ["</script><b>A", "B"], "cluster_peak_flop_per_s": [2.43e19, 2.03e18]})
    return compute.bars(frame, "cluster_peak_flop_per_s", title="Peak", source="Table clusters")


def payload(text: str) -> dict:
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_data_cannot_end_the_script() -> None:
    text = mimebundle(chart().to_dict())["text/html"]
    assert payload(text)["specs"][0]["datasets"]
    assert text.count("</script>") == 2


def test_the_same_chart_gives_the_same_bytes(live: Live) -> None:
    assert html(live.payload) == html(live.payload)
    assert mimebundle(chart().to_dict()) == mimebundle(chart().to_dict())


def test_an_output_holds_no_id_and_no_address(live: Live) -> None:
    text = html(live.payload)
    assert not re.search(r'\sid="', text)
    assert "://" not in text.replace("https://vega.github.io/schema", "").replace("http://www.w3.org", "")


def test_readers_without_scripts_see_a_picture_and_hear_a_sentence(live: Live) -> None:
    stills = re.findall(r'<img class="fk-still" alt="([^"]+)" src="data:image/svg\+xml,', html(live.payload))
    assert stills == [live.description] * len(live.outputs)


def test_a_front_end_without_pages_gets_one_picture_of_all_panels(live: Live) -> None:
    data = live._repr_mimebundle_()
    picture = ElementTree.fromstring(data["image/svg+xml"])
    width, height = int(picture.attrib["width"]), int(picture.attrib["height"])
    panels = [picture] if len(live.outputs) == 1 else list(picture)
    assert len(panels) == len(live.outputs)
    assert height == sum(int(panel.attrib["height"]) for panel in panels)
    assert width == max(int(panel.attrib["width"]) for panel in panels)
    names = [element.attrib["id"] for element in picture.iter() if "id" in element.attrib]
    assert len(names) == len(set(names))
    used = set(re.findall(r"url\(#(\w+)\)", data["image/svg+xml"]))
    assert used <= set(names)


def test_an_output_stays_small(live: Live) -> None:
    assert len(html(live.payload)) < 175_000


def test_altair_charts_use_the_same_output() -> None:
    bundle = chart()._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data is not None
    assert "factorykit-chart" in data["text/html"]
    assert data["text/plain"].startswith(
        "Peak\n2 rows                           min       median          max\ncluster_peak_flop_per_s     2.03e+18"
    )


def test_the_source_reaches_the_reader() -> None:
    assert payload(mimebundle(chart().to_dict())["text/html"])["source"] == "Table clusters"


def test_a_finished_chart_fits_its_container() -> None:
    spec = finish(alt.Chart(pl.DataFrame({"a": [1.0]})).mark_point(), "T", source="S", description="D").to_dict()
    assert (spec["width"], spec["height"], spec["title"]["text"]) == ("container", 300, "T")


@pytest.mark.parametrize("limit", [1_000_000])
def test_the_script_stays_below_a_megabyte_and_loads_nothing(limit: int) -> None:
    script = page_script()
    assert len(script.encode()) <= limit
    assert not re.search(r"(cdn\.jsdelivr|unpkg|googleapis)", script)
