"""The page about what the numbers withstood: attacks tried and survived, and what is promised."""

from __future__ import annotations

from pathlib import Path

from factorykit.site.pages import markdown
from factorykit.site.pages.markdown import browser, front, link

SAID = (
    "What is given to a call, a file, a query or a page may be wrong by accident or on purpose. These attacks are "
    "tests: a part of them runs with every change, all of them before a release. An attack is survived if what is "
    "promised held."
)


def reliability_page(data: Path) -> dict[str, str]:
    """Return the page by its name; nothing without a table of attacks."""
    if not (data / "attacks.parquet").is_file():
        return {}
    import polars as pl

    rows = pl.read_parquet(data / "attacks.parquet")
    told = [
        [
            browser(row["kind"], "attacks", row["attack"]),
            f"{row['tried']:,.0f}",
            f"{row['survived']:,.0f}",
            row["promise"],
            row["version"],
            row["day"],
        ]
        for row in rows.iter_rows(named=True)
    ]
    every = f"{rows['survived'].sum():,.0f} of {rows['tried'].sum():,.0f} {browser('survived', 'attacks')}."
    lost = [
        f"- {markdown.escaped(row['kind'])}, {row['tried'] - row['survived']:,.0f} not survived: "
        f"{markdown.escaped(row['note'] or 'not mended yet')}."
        for row in rows.filter(pl.col("survived") < pl.col("tried")).iter_rows(named=True)
    ]
    columns = [("Attack", ":---"), ("Tried", "---:"), ("Survived", "---:")]
    columns += [("What is promised", ":-----"), ("Version", ":--"), ("Day", ":--")]
    parts = [
        front("Reliability of the numbers", "Attacks on the package: what was tried, what survived, what is promised."),
        SAID,
        every,
        markdown.table(columns, told),
        "\n".join(lost),
        "The rows are the table `attacks`, written by `python -m benchmarks.attacks`; "
        f"{link('its columns', 'data/audit')} say more. "
        "What is not trusted, and what is out of scope, stands in `SECURITY.md`.",
    ]
    return {"reliability": "\n\n".join(filter(None, parts)) + "\n"}
