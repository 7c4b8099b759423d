"""Coverage page: each topic of the documents, its formulas, and a published figure that they reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import polars as pl

from factorykit.data.tables import table
from factorykit.formulas import catalogue
from factorykit.site.pages import markdown
from factorykit.site.pages.markdown import Marked, browser, dashed, escaped, front, heading, link
from factorykit.site.pages.methods import formula_link

INTRODUCTION: Final = (
    "Every topic of the five documents that the [audit](audit.qmd) reads, with the lines that speak of it, "
    "the formulas, verbs and notebooks that compute it, a published figure that they reproduce, and what is still "
    "missing. The rows are the table [coverage](data/audit.qmd#table-coverage)."
)
STATES: Final = {
    "computed": "a formula or a verb computes it",
    "stated": "tables hold statements about it, and nothing is computed",
    "missing": "neither",
}


def coverage_page(data: Path) -> dict[str, str]:
    """Return the page by name; empty without a table of coverage."""
    if not (data / "coverage.parquet").is_file():
        return {}
    rows = pl.read_parquet(data / "coverage.parquet").to_dicts()
    titles = {row["source"]: row["title"] for row in table("sources").collect().to_dicts()}
    notebooks = {path.stem[:2]: path.stem for path in sorted((data.parent / "notebooks").glob("*.ipynb"))}
    states = [state(row) for row in rows]
    partly = sum(status == "computed" and row["misses"] is not None for row, status in zip(rows, states, strict=True))
    counted = [[name.capitalize(), states.count(name), meaning] for name, meaning in STATES.items()]
    parts = [
        front(
            "Coverage",
            "Topics of the documents: the formulas, the published figures that they reproduce, and the gaps.",
        ),
        INTRODUCTION,
        markdown.table([("State", "----"), ("Topics", "---:"), ("Meaning", "--------")], counted),
        f"Of the topics that are computed {partly} lack a part, which their row names.",
    ]
    for document in dict.fromkeys(row["source"] for row in rows):
        mine = [row for row in rows if row["source"] == document]
        number = document.removeprefix("seed_")
        parts += [
            heading(titles[document], f"sec-{number}"),
            f"{link('Its claims, recomputed', f'audit/seed-{number}')}.",
            markdown.table(
                [("Topic", "-" * 26), ("Computed by", "-" * 40), ("Reproduces", "-" * 26), ("Missing", "-" * 26)],
                [_row(row, notebooks) for row in mine],
            ),
        ]
    return {"coverage": "\n\n".join(parts) + "\n"}


def state(row: dict[str, Any]) -> str:
    """Return the level of coverage of a topic.

    >>> state({"quantities": None, "verbs": None, "tables": "rules"})
    'stated'
    """
    if row["quantities"] or row["verbs"]:
        return "computed"
    return "stated" if row["tables"] else "missing"


def _row(row: dict[str, Any], notebooks: dict[str, str]) -> list[Marked]:
    computed = [_quantity(name) for name in _listed(row["quantities"])]
    computed += [link(name, "python/api", dashed("-".join(name.split(".")[:2]))) for name in _listed(row["verbs"])]
    computed += [browser(name, name) for name in _listed(row["tables"])]
    computed += [
        Marked(f"[notebook {number}](/notebooks/{notebooks[number]}.ipynb)")
        for number in _listed(row["notebooks"])
        if number in notebooks
    ]
    places = " and ".join(f"{place[:3]}, {place[4:]}" for place in _listed(row["places"]))
    return [
        Marked(f"[{escaped(row['name'])}]{{#{dashed(row['topic'])}}} ({escaped(places)})"),
        Marked(", ".join(computed)),
        escaped(row["reproduces"] or ""),
        escaped(row["misses"] or ""),
    ]


def _quantity(name: str) -> Marked:
    return formula_link(name) if name in catalogue() else link(f"`{name}`", "vocabulary")


def _listed(text: str | None) -> list[str]:
    return text.split("; ") if text else []
