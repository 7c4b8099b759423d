"""The stored pictures of the notebooks: one width, eight colours at most, and no clipped word."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
INK = "#767676"


def pictures() -> dict[str, str]:
    """Every picture that a notebook stores, by notebook and cell."""
    return {
        f"{path.stem} {cell['id']}": "".join(output["data"]["image/svg+xml"])
        for path in NOTEBOOKS
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", ())
        if "image/svg+xml" in output.get("data", {})
    }


def colours(svg: str) -> set[str]:
    """Return the colours of marks, without those of text and rules."""
    return set(re.findall(r"(?:fill|stroke)=['\"](#\w+)['\"]", svg)) - {INK}


def test_pictures_share_a_width_and_cut_no_label_short() -> None:
    shown = pictures()
    assert len(shown) > 60
    assert {
        name: found[1] for name, svg in shown.items() if (found := re.search(r"width=.(\d+)", svg))[1] != "680"
    } == {}
    assert [name for name, svg in shown.items() if "…" in svg] == []


def test_a_picture_uses_at_most_eight_colours() -> None:
    used = {name: colours(svg) for name, svg in pictures().items() if "linearGradient" not in svg}
    assert {name: found for name, found in used.items() if not 1 <= len(found) <= 8} == {}
    assert max(map(len, used.values())) >= 7


@pytest.mark.browser
def test_every_word_is_inside_its_picture(chromium: Any) -> None:
    page = chromium.new_page(viewport={"width": 800, "height": 600})
    page.set_content("".join(f"<figure title='{name}'>{svg}</figure>" for name, svg in pictures().items()))
    cut = page.evaluate(
        """() => [...document.querySelectorAll("figure")].flatMap((figure) => {
            const frame = figure.querySelector("svg").getBoundingClientRect();
            return [...figure.querySelectorAll("text")].filter((text) => {
                const { left, right, top, bottom, width } = text.getBoundingClientRect();
                const out = [frame.left - left, right - frame.right, frame.top - top, bottom - frame.bottom];
                return width && Math.max(...out) > 2;
            }).map((text) => `${figure.title}: ${text.textContent}`);
        })"""
    )
    page.close()
    assert cut == []
