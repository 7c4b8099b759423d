"""Synthetic projects to render: a few pages, notebooks and cells."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from factorykit.site.csp import policy

REPORT = Path(__file__).parents[2] / "report"
GUARDED = f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
CONFIG = {
    "project": {
        "type": "website",
        "output-dir": "_site",
        "render": ["index.qmd", "notebooks/*.ipynb", "report/**/*.qmd"],
    },
    "bibliography": "report/references.bib",
    "csl": "report/citations.csl",
    "filters": ["report/parts.lua"],
    "website": {
        "title": "Made up",
        "page-navigation": True,
        "navbar": {"left": [{"text": "Other", "href": "report/other.qmd"}]},
        "sidebar": {
            "contents": [
                "index.qmd",
                {"section": "Notebooks", "contents": "notebooks/*.ipynb"},
                {"section": "Report", "contents": "report/**/*.qmd"},
            ]
        },
    },
    "format": {
        "html": {"code-fold": True, "include-in-header": [{"text": '<script src="/report/assets/page.js"></script>'}]}
    },
    "execute": {"enabled": False},
}


def markdown(source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "text", "metadata": {}, "source": source, **more}


def code(source: str, *outputs: dict[str, Any], count: int | None = 1, tags: list[str] | None = None) -> dict[str, Any]:
    metadata = {"tags": tags} if tags else {}
    return {
        "cell_type": "code", "id": "code", "metadata": metadata, "source": source, "execution_count": count,
        "outputs": list(outputs),
    }  # fmt: skip


def shown(**data: str) -> dict[str, Any]:
    """Return an output; ``text_html`` stands for ``text/html``."""
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {key.replace("_", "/"): value for key, value in data.items()},
    }


def notebook(*cells: dict[str, Any]) -> str:
    plain = ("code", "text")
    numbered = [{**cell, "id": f"c{n}" if cell["id"] in plain else cell["id"]} for n, cell in enumerate(cells)]
    return json.dumps({"cells": numbered, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


class Made:
    """A project in a folder, to which a test adds pages before it is rendered."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("_quarto.yml", yaml.safe_dump(CONFIG, sort_keys=False))
        self.write("index.qmd", "---\ntitle: Start\n---\nHello. See [the other](report/other.qmd#sec-more).\n")
        self.write("report/other.qmd", "---\ntitle: Other page\n---\n## More {#sec-more}\n\nText.\n")
        own = "@book{doe2020, author = {Doe, Jane}, title = {The thing}, year = {2020}}\n"
        self.write("report/references.bib", own + (files("factorykit.formulas") / "references.bib").read_text("utf-8"))
        for name in ("citations.csl", "parts.lua"):
            self.write(f"report/{name}", (REPORT / name).read_text("utf-8"))
        self.write("report/assets/page.js", "window.pageScript = true;\n")

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def page(self, text: str, title: str = "Page") -> str:
        """Render ``text`` as a page of its own and return its HTML."""
        self.write("report/page.qmd", f"---\ntitle: {title}\n---\n{text}\n")
        return self.render("report/page.html")

    def raw(self, body: str) -> None:
        """Put a page of plain HTML into a rendered folder, as if it had been rendered."""
        self.write("report/page.qmd", "---\ntitle: Page\n---\nText.\n")
        for name in ("index.html", "report/other.html", "report/page.html"):
            file = self.write(f"_site/{name}", f"<html>{GUARDED}<body></body></html>")
        file.write_text(f"<html>{GUARDED}<body>{body}</body></html>", encoding="utf-8")

    def cells(self, *cells: dict[str, Any]) -> str:
        """Render a notebook of these cells and return its HTML."""
        self.write("notebooks/01-made.ipynb", notebook(*cells))
        return self.render("notebooks/01-made.html")

    def render(self, name: str) -> str:
        from factorykit.site.renderer import render

        out = self.root / "_site"
        shutil.rmtree(out, ignore_errors=True)
        self.messages = render(self.root, out)
        for file in out.rglob("*.html"):
            file.write_text(file.read_text("utf-8").replace("<head>", f"<head>{GUARDED}", 1), "utf-8")
        return (out / name).read_text(encoding="utf-8")

    def problems(self) -> str:
        """Return the messages of the checks of the sources and the rendered folder, one per line."""
        from factorykit.site.checks import rendered, sources
        from factorykit.site.sources import load_project

        project = load_project(self.root)
        found = sources(project)
        if (self.root / "_site").is_dir():
            found += rendered(self.root / "_site", project)[1]
        return "\n".join(map(str, found))
