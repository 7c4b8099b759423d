"""The pages of the audit: every claim once, its recipe and its sources with it."""

from __future__ import annotations

import re
from pathlib import Path

import factorykit as fk
from factorykit.site.pages.audit import audit_pages

ROOT = Path(__file__).parents[2]


def test_every_claim_is_listed_once_with_recipe_and_reason() -> None:
    pages = audit_pages(ROOT / "data")
    text = "\n".join(pages.values())
    claims = fk.table("claims").collect()
    anchors = re.findall(r"^:::: \{#(c\d{3}-\d{3})\}$", text, re.MULTILINE)
    assert anchors == [claim.replace("_", "-") for claim in claims["claim"]]
    assert text.count("\n```\n") == 2 * claims["recipe"].count()
    assert not re.search(r"\de[+-]\d\d (byte|FLOP|USD|parameters)", text)
    assert '"Audit: NVIDIA Blackwell leads' in text


def test_links_between_the_pages_lead_to_a_claim() -> None:
    pages = audit_pages(ROOT / "data")
    led = re.findall(r"\]\(/report/(audit/seed-\d{3})\.qmd#(c[\d-]+)\)", "\n".join(pages.values()))
    assert len(led) >= 10
    assert [anchor for page, anchor in led if f"{{#{anchor}}}" not in pages[page]] == []


def test_without_claims_there_are_no_pages(tmp_path: Path) -> None:
    assert audit_pages(tmp_path) == {}
