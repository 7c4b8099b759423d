"""Every chart of a notebook has a page of its own, with data, pictures, a frame and a card."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest


@pytest.fixture(scope="module")
def names(site: Path) -> list[str]:
    return sorted({file.name.partition(".")[0] for file in (site / "charts").iterdir()} - {"index"})


def test_every_figure_leads_to_its_chart_and_back(site, names):
    led = set()
    for page in sorted((site / "notebooks").glob("*.html")):
        text = page.read_text("utf-8")
        own = re.findall(r'class="fk-own"> <a href="\.\./charts/([\w-]+)\.html"', text)
        assert len(own) == text.count('class="factorykit-chart"'), page.name
        for name in own:
            assert f'href="../notebooks/{page.name}#fig-' in (site / "charts" / f"{name}.html").read_text("utf-8")
        led |= {*own}
    assert sorted(led) == names
    assert len(names) >= 57


def test_a_chart_has_files_with_a_description_of_their_data(site, names):
    for name in names:
        folder = site / "charts"
        metadata = json.loads((folder / f"{name}.metadata.json").read_text("utf-8"))
        csv = (folder / f"{name}.csv").read_text("utf-8")
        assert csv.startswith(f"# {metadata['title']}\n"), name
        frame = pl.read_csv(csv.encode(), comment_prefix="#", infer_schema_length=None)
        assert set(frame.columns) <= {each["name"] for each in metadata["columns"]}, name
        assert frame.height, name
        svg = (folder / f"{name}.svg").read_text("utf-8")
        assert f"charts/{name}.html" in svg, name
        for each in metadata["settings"]:
            assert each["label"].split()[0] in svg, (name, each)
        for end in ("png", "card.png"):
            assert (folder / f"{name}.{end}").read_bytes().startswith(b"\x89PNG"), name


def test_a_page_of_a_chart_can_be_embedded_and_cited(site, names):
    for name in names:
        page = (site / "charts" / f"{name}.html").read_text("utf-8")
        assert f"charts/{name}.embed.html" in page
        assert f"@misc{{factorykit_chart_{name.replace('-', '_')}," in page
        assert f'content="{name}.card.png"' in page
        assert f'href="{name}.html" target="_top"' in (site / "charts" / f"{name}.embed.html").read_text("utf-8")
