"""Generated parts of the landing page: six results of one run, notebook cards, recent table changes."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Final

from factorykit.core.errors import SiteError
from factorykit.engine.evaluate import evaluate
from factorykit.model.scenario.presets import preset
from factorykit.site.feeds import changes_text, news
from factorykit.site.pages.markdown import escaped
from factorykit.site.pages.methods import formula_link
from factorykit.site.table_data import load

RUN: Final = "llama_3_1_405b"
GROUPS: Final = ("run", "failures", "money", "evidence")
"""Groups of notebooks, given by ``metadata.factorykit.group`` of each notebook."""
LISTED: Final = 5
"""Number of table changes on the landing page."""


def numbers() -> str:
    """Return the cards of six results of one run, each with links to its notebook and formula."""
    outputs = ["wall_days", "training_days", "facility_power_w", "failures_per_day", "cluster_mtbf_s"]
    outputs += ["checkpoint_interval_optimal_s", "rental_cost_usd", "training_carbon_kg"]
    run = evaluate(preset(RUN), outputs)
    lost, hours = run["wall_days"] - run["training_days"], run["cluster_mtbf_s"] / 3600
    cards = {
        "wall_days": (f"{run['wall_days']:.0f} days", "02-training-time-and-cost"),
        "facility_power_w": (f"{run['facility_power_w'] / 1e6:.0f} MW", "11-power-and-cooling"),
        "failures_per_day": (f"{run['failures_per_day']:.1f} failures", "06-failures"),
        "checkpoint_interval_optimal_s": (f"{run['checkpoint_interval_optimal_s'] / 60:.0f} minutes", "07-checkpoints"),
        "rental_cost_usd": (f"{run['rental_cost_usd'] / 1e6:.0f} million USD", "13-cost-of-a-run"),
        "training_carbon_kg": (f"{round(run['training_carbon_kg'] / 1e3, -3):,.0f} t of CO2", "12-energy-and-carbon"),
    }
    notes = {
        "wall_days": f"{lost:.0f} of them lost to failures and checkpoints",
        "facility_power_w": "at the meter",
        "failures_per_day": f"a day, one every {hours:.1f} hours",
        "checkpoint_interval_optimal_s": "between checkpoints",
        "rental_cost_usd": "of rent",
        "training_carbon_kg": "including the manufacture of the machines",
    }
    shown = [
        f"::: {{.fk-card}}\n[{text}](notebooks/{page}.ipynb)\n\n{notes[name]}; {formula_link(name, 'formula')}\n:::"
        for name, (text, page) in cards.items()
    ]
    return "\n\n".join(["::: {.fk-cards .fk-numbers}", *shown, ":::"]) + "\n"


def notebooks(folder: Path) -> dict[str, str]:
    """Return the cards of the notebooks by group, from the metadata and the title of each notebook."""
    cards: dict[str, list[str]] = {group: [] for group in GROUPS}
    for file in sorted(folder.glob("*.ipynb")):
        notebook = json.loads(file.read_text(encoding="utf-8"))
        about = notebook["metadata"].get("factorykit", {})
        if about.get("group") not in cards or not about.get("finding"):
            raise SiteError(f"{file.name}: metadata.factorykit must have a finding and a group of {', '.join(GROUPS)}")
        question = "".join(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
        link = f"[{escaped(about['finding'])}](notebooks/{file.name})"
        cards[about["group"]].append(f"::: {{.fk-card}}\n{link}\n\n{escaped(question)}\n:::")
    return {group: "\n\n".join(["::: {.fk-cards}", *shown, ":::"]) + "\n" for group, shown in cards.items()}


def new(data: Path) -> str:
    """Return the latest table changes with a link to the feed."""
    package = load(data)
    changed = list(islice(news(package), LISTED)) if package else []
    titles = {name: table.resource["title"] for name, table in package.tables.items()} if package else {}
    lines = [
        f"- {day}, [{escaped(titles.get(name, name))}](tables/data_changes.html?q={name}): {changes_text(rows)}"
        for day, name, rows in changed
    ]
    more = "[The monthly note](report/news.qmd): prices and values that moved. All changes are a [feed](feed.xml)."
    more = more if changed else ""
    return "\n\n".join(filter(None, ["\n".join(lines), more])) + "\n"
