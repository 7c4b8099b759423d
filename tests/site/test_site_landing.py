"""The landing page leads to every notebook."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_landing_page_has_a_card_for_every_notebook_in_order() -> None:
    landing = (ROOT / "index.qmd").read_text(encoding="utf-8")
    cards = re.findall(r"\]\(notebooks/([^)]+\.ipynb)\)", landing)
    assert cards == sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
