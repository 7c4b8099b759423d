"""Addresses that pages have left: each leads to where its page is now, and goes with the next minor version."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

from factorykit.site.frame import template
from factorykit.site.policy import policy

FLAT: Final = {"methods": "methods-", "data": "data-", "audit": "audit-", "python": ""}
"""Folders of ``report``, and how the names of their pages began while all of them lay beside each other."""
CHARTS: Final = {
    "power-and-cooling-scale": "power-claims-scale",
    "cost-of-a-run-levers": "cost-levers-levers",
    "cost-of-a-run-trend": "price-of-a-flop-trend",
    "cost-of-a-run-paces": "price-of-a-flop-paces",
    "cost-of-a-run-arbitrage": "choice-of-provider-arbitrage",
}
"""Charts whose notebook was divided."""
ENDS: Final = (".html", ".embed.html")
SINGLE: Final = {"report/methods-performance.html": "report/methods.html"}
GONE: Final = "0.3"
"""The version from which these addresses lead nowhere."""


def flat(page: str) -> str:
    """Return the name that a page in a folder of ``report`` had beside the others, any other name as it is.

    >>> flat("methods/checkpoint"), flat("python/api"), flat("cite")
    ('methods-checkpoint', 'api', 'cite')
    """
    folder, _, name = page.rpartition("/")
    return f"{FLAT[folder]}{name}" if folder in FLAT else page


def addresses(out: Path) -> dict[str, str]:
    """Return the addresses that pages of a rendered folder have left, and where each leads now."""
    report = out / "report"
    found = {
        f"report/{flat(f'{folder}/{file.stem}')}.html": f"report/{folder}/{file.name}"
        for folder in FLAT
        for file in sorted((report / folder).glob("*.html"))
    }
    found |= {f"charts/{old}{end}": f"charts/{new}{end}" for old, new in CHARTS.items() for end in ENDS}
    return {old: new for old, new in (found | SINGLE).items() if (out / new).is_file()}


def add(out: Path) -> None:
    """Write a page to every address that was left; it keeps what follows ``?`` and ``#``."""
    for old, new in addresses(out).items():
        here = posixpath.dirname(old)
        text = template("moved.html").render(
            to=posixpath.relpath(new, here), root=posixpath.relpath(".", here), gone=GONE, policy=policy()
        )
        (out / old).write_text(text, "utf-8")
