"""Pages generated from code and data: methods, vocabulary, data, audit and the Python reference.

They are Markdown in the dialect supported by both renderers, and are ignored by git.
"""

from __future__ import annotations

from pathlib import Path

from factorykit.charts.bundle import page_script
from factorykit.site import planner
from factorykit.site.build_cache import write_changed
from factorykit.site.pages.api import api_page
from factorykit.site.pages.audit import audit_pages
from factorykit.site.pages.commands import commands_page
from factorykit.site.pages.coverage import coverage_page
from factorykit.site.pages.data import LOCAL_SITE, data_pages
from factorykit.site.pages.landing import new, notebooks, numbers
from factorykit.site.pages.methods import methods_pages
from factorykit.site.pages.news import news_page
from factorykit.site.pages.recipes import recipe_pages
from factorykit.site.pages.vocabulary import vocabulary_page
from factorykit.site.planner import serving
from factorykit.site.sources import load_project


def write(root: Path) -> None:
    """Write the generated pages, the downloads and the script of the pages below ``root/report``.

    Raises
    ------
    SiteError
        If a table named in ``data/datapackage.json`` is missing or cannot be read.
    """
    report = root / "report"
    site = load_project(root).website.get("site-url") or LOCAL_SITE
    written = methods_pages() | data_pages(root / "data", report / "downloads", site.rstrip("/"))
    written |= recipe_pages() | audit_pages(root / "data")
    written |= coverage_page(root / "data") | news_page(root / "data")
    written |= {"python/api": api_page(), "python/command-line": commands_page(), "vocabulary": vocabulary_page()}
    written |= {f"_notebooks-{group}": cards for group, cards in notebooks(root / "notebooks").items()}
    written |= {"_numbers": numbers(), "_new": new(root / "data")}
    wanted = {report / f"{name}.qmd": text for name, text in written.items()}
    for folder in {file.parent for file in wanted} - {report}:
        for outdated in {*folder.glob("*.qmd")} - wanted.keys():
            outdated.unlink()
    for file, text in wanted.items():
        write_changed(file, text)
    write_changed(report / "assets" / "factorykit.js", page_script())
    write_changed(report / "assets" / "plan.js", planner.script())
    write_changed(report / "assets" / "plan-formulas.js", planner.formulas_script())
    write_changed(report / "assets" / "plan-launch.js", planner.launch_script())
    write_changed(report / "assets" / "serve.js", serving.script())
