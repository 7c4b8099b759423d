"""Layout of pages rendered without pandoc or Quarto: template, top bar, assets and search entry."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

import jinja2

from factorykit.core import __version__
from factorykit.site.csp import policy
from factorykit.site.sources import Project

THEME: Final = Path(__file__).parent / "theme"
ASSETS: Final = (
    *("site.css", "entities.css", "browse.js", "bridge.js", "find.js", "site.js"),
    *("compare.js", "map.js", "parquet.js"),
)


@dataclass(frozen=True)
class PageContext:
    """Content shared by all pages: the top bar, the version, dates, addresses of site and repository."""

    entries: tuple[tuple[str, str], ...] = ()
    version: str = ""
    dates: Mapping[str, str] = field(default_factory=dict)
    site: str = ""
    repository: str = ""

    @classmethod
    def of(cls, project: Project, root: Path) -> PageContext:
        """Return the layout of a project with the commit history of the folder ``root``."""
        bar = (project.website.get("navbar") or {}).get("left") or []
        entries = tuple(
            (str(entry["text"]), re.sub(r"\.(qmd|ipynb)$", ".html", str(entry["href"]).lstrip("/")))
            for entry in bar
            if isinstance(entry, dict) and "text" in entry and "href" in entry
        )
        site, repository = (str(project.website.get(name) or "").rstrip("/") for name in ("site-url", "repo-url"))
        return cls(entries, __version__, last_changed(root), site, repository)

    @property
    def date(self) -> str:
        """The last day on which any page changed."""
        return max(self.dates.values(), default="") or date.today().isoformat()

    def changed(self, *sources: str) -> str:
        """Return the last day on which one of these files and folders changed."""
        known = [day for file, day in self.dates.items() if file.startswith(sources)]
        return max(known, default=self.date)

    def address(self, path: str) -> str:
        """Return the public address of a page, relative to the root of the site if its host is unknown."""
        return f"{self.site}/{path}" if self.site else path

    def values(self, root: str) -> dict[str, Any]:
        """Return the values of a page's template; ``root`` is the relative path from the page to the site's root."""
        menu = [{"text": text, "href": f"{root}{href}"} for text, href in self.entries]
        shell = {"navbar": menu, "home": f"{root}index.html", "logo": f"{root}report/assets/favicon.svg"}
        shared = shell | {"root": root, "version": self.version, "date": self.date}
        return shared | {"site": self.site, "repository": self.repository, "policy": policy()}


def last_changed(root: Path) -> dict[str, str]:
    """Return the day of the last commit of each file of a project; empty without a repository."""
    command = ["git", "-C", str(root), "log", "--format=@%cs", "--name-only", "--relative", "--", "."]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    days: dict[str, str] = {}
    day = ""
    for line in ran.stdout.splitlines():
        if line.startswith("@"):
            day = line[1:]
        elif line:
            days.setdefault(line, day)
    return days


@cache
def template(name: str) -> Any:
    """Return a template of the theme, with automatic escaping."""
    loader = jinja2.FileSystemLoader(THEME)
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True).get_template(name)


def assets(out: Path) -> None:
    """Copy the style and script of the pages to ``out``."""
    folder = out / "entities" / "assets"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ASSETS:
        shutil.copyfile(THEME / name, folder / name)
