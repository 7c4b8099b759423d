"""Audit pages with every claim recomputed and traced to its sources."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from factorykit.core.vocabulary import quantity
from factorykit.data.tables import table
from factorykit.model.validation.audit import VERDICTS, audit
from factorykit.model.validation.recipes import Tables, evaluate_recipe
from factorykit.site.pages import markdown
from factorykit.site.pages.markdown import Marked, code, code_block, dashed, escaped, front, heading, link, linked
from factorykit.site.pages.methods import formula_link

TONES = {
    "agrees": "tip",
    "rounding": "tip",
    "superseded": "warning",
    "identity": "note",
    "disagrees": "important",
    "unit error": "important",
    "not checkable": "note",
}
WORST = 25
"""Number of claims with the largest deviation on the audit page."""


def audit_pages(data: Path) -> dict[str, str]:
    """Return the audit pages by name: an overview, and a page for each document with the trace of every claim.

    The result is empty without a table of claims.
    """
    if not (data / "claims.parquet").is_file():
        return {}
    rows = audit()
    sources = {row["source"]: row for row in table("sources").collect().to_dicts()}
    documents = rows["document"].unique(maintain_order=True).to_list()
    groups = {
        link(kind[0].upper() + kind[1:], _page(name)): rows.filter(document=name)
        for name, kind in ((name, _short(sources[name])) for name in documents)
    }
    verdicts = [
        [name, *((group["verdict"] == verdict).sum() for verdict in VERDICTS), group.height]
        for name, group in {**groups, "All": rows}.items()
    ]
    worst = (
        rows.filter(pl.col("ratio") > 0, ~pl.col("verdict").is_in(["agrees", "rounding"]))
        .sort(pl.col("ratio").log().abs(), descending=True, maintain_order=True)
        .head(WORST)
    )
    overview = [
        front("Audit", "Every number of five documents and two of a maker, recomputed with formulas and tables here."),
        f"{rows.height} claims, each with its location, its statement, a recipe that recomputes it from "
        "quantities, formulas and table cells, and a computed verdict: *agrees* within 1 %, or one range "
        "inside the other; *identity*, arithmetic on the text's own numbers that comes out right; *rounding* to the "
        "printed digits, half a unit of the last and at least 5, at most 15 %, so for both ends of a range; "
        "*unit error*, off by a power of 1000, "
        "computed from such a number, or right in another unit; *superseded*, contradicted by a more "
        "direct source; *disagrees*; *not checkable*. Counted events and years must match to the last printed digit. "
        "[The notebook](../notebooks/20-audit.ipynb) reads the result; the tables "
        "[claims](data/audit.qmd#table-claims), [facts](data/audit.qmd#table-facts) and "
        "[conflicts](data/audit.qmd#table-conflicts) hold "
        "the inputs.",
        heading("Verdicts by document", "sec-verdicts"),
        markdown.table(
            [("Document", "-" * 40), *((verdict.capitalize(), "-------:") for verdict in (*VERDICTS, "all"))],
            verdicts,
        ),
        heading(f"The {WORST} claims that are farthest off", "sec-worst"),
        markdown.table(
            [
                ("Claim", "-" * 40),
                ("Printed", "-" * 20),
                ("Recomputed", "-" * 16),
                ("Ratio", "-" * 8 + ":"),
                ("Verdict", "-" * 12),
            ],
            [_worst_row(row) for row in worst.to_dicts()],
        ),
    ]
    pages = {"audit": "\n\n".join(overview) + "\n"}
    cells = {row["claim"]: row for row in table("claims").collect().to_dicts()}
    for name in documents:
        pages[_page(name)] = _document_page(sources[name], rows.filter(document=name).to_dicts(), cells, sources)
    return pages


def _document_page(
    document: dict[str, Any],
    rows: list[dict[str, Any]],
    cells: dict[str, dict[str, Any]],
    sources: dict[str, dict[str, Any]],
) -> str:
    tables = Tables()
    lines = f"; the locator is a line of {code(document['file'])}" if document["file"] else ""
    parts = [
        front(f"Audit: {_short(document)}", "Every claim of one document, its recipe unfolded."),
        f"{escaped(document['title'])}. {len(rows)} claims in the order of the text{lines}. "
        f"{link('All documents', 'audit')}.",
    ]
    for row in rows:
        recipe = cells[row["claim"]]["recipe"]
        used = evaluate_recipe(recipe, tables).parts if recipe and not row["error"] else ()
        parts.append(_claim(row, used, sources, cells))
    return "\n\n".join(parts) + "\n"


def _claim(
    row: dict[str, Any],
    used: Iterable[Any],
    sources: dict[str, dict[str, Any]],
    cells: dict[str, dict[str, Any]],
) -> str:
    verdict = row["verdict"] or "recipe fails"
    ratio = f" {_ratio(row['ratio'])}" if row["ratio"] and verdict not in ("agrees", "not checkable") else ""
    recipe = row["recipe"] and textwrap.fill(row["recipe"], 96, break_long_words=False, break_on_hyphens=False)
    place = markdown.browser(row["locator"], "claims", row["claim"])
    body = markdown.callout(
        TONES.get(verdict, "important"),
        f"{row['subject']}, {row['claimed']}: {_printed(row)} – {verdict}{ratio}",
        escaped(row["why"]),
        f"Stated in {place}: {_stated(row)}. {_recomputed(row)}",
        code_block(recipe) if recipe else "",
        "\n".join(f"- {_used(part, sources, cells)}" for part in used if part.kind != "constant"),
        f"Superseded by {_source(sources[row['superseded_by']])}." if row["superseded_by"] else "",
    )
    return f":::: {{#{dashed(row['claim'])}}}\n\n{body}\n\n::::"


def _used(part: Any, sources: dict[str, dict[str, Any]], cells: dict[str, dict[str, Any]]) -> str:
    value = escaped(part.value) if isinstance(part.value, str) else _amount(part.value, part.unit)
    if part.kind == "formula":
        return f"{formula_link(part.key)}: {value}"
    if part.kind == "claim":
        document, claim = part.key.partition("_")[0], cells[part.key]
        named = f"{claim['subject']}, {claim['claimed']}"
        return f"claim {link(named, f'audit/seed-{dashed(document[1:])}', dashed(part.key))}: {value}"
    origin = f", {_source(sources[part.source])}" if part.source else ""
    return f"{code(part.text)} = {value}{origin}"


def _worst_row(row: dict[str, Any]) -> list[object]:
    name = link(f"{row['subject']}, {row['claimed']}", _page(row["document"]), dashed(row["claim"]))
    recomputed = _amount(row["recomputed"], row["unit"])
    return [name, _printed(row), recomputed, _ratio(row["ratio"]), row["verdict"]]


def _printed(row: dict[str, Any]) -> str:
    """Return the printed words of a claim, or its value where no document prints the power of ten in them."""
    return _stated(row) if re.search(r"\de[+-]\d", row["printed"]) else row["printed"]


def _stated(row: dict[str, Any]) -> str:
    low, high = row["stated_low"], row["stated_high"]
    if low is not None and high is not None:
        return f"{_amount(low, row['unit'])} to {_amount(high, row['unit'])}"
    if low is not None:
        return f"at least {_amount(low, row['unit'])}"
    if high is not None:
        return f"at most {_amount(high, row['unit'])}"
    return _amount(row["stated"], row["unit"])


def _recomputed(row: dict[str, Any]) -> str:
    if row["recomputed"] is None:
        return ""
    if row["recomputed_low"] is None:
        return f"Recomputed: {_amount(row['recomputed'], row['unit'])}."
    return (
        f"Recomputed: {_amount(row['recomputed_low'], row['unit'])} to {_amount(row['recomputed_high'], row['unit'])}."
    )


def _amount(value: float, unit: str) -> Marked:
    unit, rest = ("byte", "/d") if unit == "byte/d" else (unit or "1", "")
    row = replace(quantity("training_flop"), unit=unit)
    return escaped(row.text(value, digits=4) + rest)


def _ratio(value: float) -> str:
    return f"×{value:,.0f}" if value >= 100 else f"×{value:.3g}" if value > 0.01 else f"÷{1.0 / value:,.0f}"


def _short(document: dict[str, Any]) -> str:
    """Return the kind of a document: the parenthesized end of its title."""
    match = re.search(r"\(([^()]*)\)$", document["title"])
    return match[1] if match else document["title"]


def _page(document: str) -> str:
    return f"audit/{dashed(document)}"


def _source(row: dict[str, Any]) -> Marked:
    return linked(row["title"], row["url"])
