"""Files for language models: llms.txt, llms-full.txt, and a skill for agents that use the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from factorykit.core.vocabulary import vocabulary
from factorykit.site.page_layout import PageContext
from factorykit.site.pages.api import api_entries
from factorykit.site.sources import FRONT_MATTER, Page, Project
from factorykit.site.table_data import DataPackage, load

SKILL: Final = Path(__file__).parents[1] / "SKILL.md"
GUIDES: Final = ("report/guides/",)
"""Pages included in llms-full.txt in addition to the notebooks."""


def add(project: Project, out: Path, context: PageContext) -> None:
    """Write llms.txt, llms-full.txt, SKILL.md and AGENTS.md below ``out``."""
    skill, package = SKILL.read_text("utf-8"), load(project.root / "data")
    (out / "SKILL.md").write_text(skill, "utf-8")
    (out / "AGENTS.md").write_text(FRONT_MATTER.sub("", skill).lstrip(), "utf-8")
    (out / "llms.txt").write_text("\n".join(_index(project, package, context)) + "\n", "utf-8")
    (out / "llms-full.txt").write_text("\n\n".join(_full(project, package, context)) + "\n", "utf-8")


def _index(project: Project, package: DataPackage | None, context: PageContext) -> Iterator[str]:
    """Yield the lines of llms.txt: title, summary, and links by section with a short description."""
    about = " ".join(str(project.website.get("description", "")).split())
    yield f"# {project.website.get('title', '')}\n\n> {about}. Every number has a source or a formula.\n"
    yield "## Use\n"
    yield f"- [Skill]({context.address('SKILL.md')}): which call answers which question, for agents"
    yield f"- [Everything as one text]({context.address('llms-full.txt')}): notebooks, guides, reference, vocabulary"
    if package:
        yield f"- [OpenAPI]({context.address('api/v1/openapi.json')}): entities, prices and series as JSON"
        yield f"- [DuckDB file]({context.address('factorykit.duckdb')}): all tables; each also as tables/NAME.parquet"
    for folder in dict.fromkeys(page.source.parts[:-1] for page in project.pages if page.href != "404.html"):
        yield f"\n## {' '.join(folder).capitalize() or 'Start'}\n"
        for page in project.pages:
            if page.source.parts[:-1] == folder and page.href != "404.html":
                about = " ".join(str(page.meta.get("description") or "").split())
                yield f"- [{page.title}]({context.address(page.href)}){f': {about}' if about else ''}"
    if package:
        yield "\n## Tables\n"
        for name, table in package.tables.items():
            about = " ".join(table.resource["description"].split(". ")[0].split()).removesuffix(".")
            yield f"- [{table.resource['title']}]({context.address(f'tables/{name}.html')}): {about}"


def _full(project: Project, package: DataPackage | None, context: PageContext) -> Iterator[str]:
    """Yield the parts of llms-full.txt."""
    yield FRONT_MATTER.sub("", SKILL.read_text("utf-8")).strip()
    for page in project.pages:
        if page.is_notebook or str(page.source).startswith(GUIDES):
            yield f"# {page.title}\n\n{context.address(page.href)}\n\n{_text(page)}"
    yield "# Python reference"
    yield from (f"## {call}\n\n{doc}" for call, doc in api_entries())
    yield "# Vocabulary"
    yield "\n".join(f"- {row.name} [{row.unit}]: {row.meaning}" for row in vocabulary().values())
    yield "# Tables"
    for name, table in package.tables.items() if package else ():
        yield f"- {name}: {' '.join(table.resource['description'].split())} Columns: {', '.join(table.fields)}."


def _text(page: Page) -> str:
    """Return a page as Markdown; a notebook includes the source of its cells."""
    parts = (f"```python\n{cell.source}\n```" if cell.is_code else cell.source for cell in page.cells)
    return "\n\n".join(parts) if page.is_notebook else page.body.strip()
