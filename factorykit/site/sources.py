"""Sources of a Quarto website: the configuration ``_quarto.yml``, pages and notebook cells."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from factorykit.core import text_io
from factorykit.core.errors import SiteError
from factorykit.site.notebook_markdown import joined, quarto

FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|\Z)", re.DOTALL)
ENDS = re.compile(r"\r\n?|\n")
OPTION = re.compile(r"#\|\s?(.*)")
HEADING = re.compile(r"^(#{1,2})\s+(.+?)\s*(?:\{[^{}]*\})?\s*$", re.MULTILINE)
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1[`~]*\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a notebook: its source without the option lines, and its stored outputs."""

    number: int
    kind: str
    source: str
    options: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    identity: str = ""
    count: int | None = None
    outputs: tuple[dict[str, Any], ...] = ()

    @property
    def is_code(self) -> bool:
        """Whether the cell is executed by a kernel."""
        return self.kind == "code"


@dataclass(frozen=True, slots=True)
class Page:
    """A page before rendering: its path, its front matter, and its text or cells."""

    source: PurePosixPath
    meta: dict[str, Any]
    body: str
    cells: tuple[Cell, ...] = ()

    @property
    def href(self) -> str:
        """Path of the rendered page relative to the root of the site."""
        return str(self.source.with_suffix(".html"))

    @property
    def is_notebook(self) -> bool:
        """Whether the page consists of cells."""
        return self.source.suffix == ".ipynb"

    @property
    def title(self) -> str:
        """Title in the front matter, else the first heading, else the file's name."""
        return str(self.meta.get("title") or self.source.stem)


@dataclass(frozen=True, slots=True)
class Project:
    """A website described by ``_quarto.yml``."""

    root: Path
    config: dict[str, Any]
    pages: tuple[Page, ...]

    @property
    def website(self) -> dict[str, Any]:
        """Section ``website`` of the configuration."""
        return self.config.get("website") or {}

    @property
    def sidebars(self) -> list[dict[str, Any]]:
        """The sidebars; a page uses the sidebar that lists it."""
        sidebar = self.website.get("sidebar") or []
        return sidebar if isinstance(sidebar, list) else [sidebar]

    @property
    def html(self) -> dict[str, Any]:
        """Section ``format: html`` of the configuration."""
        return (self.config.get("format") or {}).get("html") or {}


def load_project(root: Path) -> Project:
    """Return the website described by ``root/_quarto.yml``, its pages in the order of ``project: render``.

    As in Quarto, ``QUARTO_PROFILE`` selects additional files ``_quarto-<profile>.yml``.

    Raises
    ------
    SiteError
        If the description is missing or no YAML, or a page of it cannot be read.
    """
    file = root / "_quarto.yml"
    if not file.is_file():
        raise SiteError(f"no _quarto.yml in {root}; give the folder that holds the project")
    config = _yaml(file.read_text(encoding="utf-8"), "_quarto.yml")
    for profile in os.environ.get("QUARTO_PROFILE", "").split(","):
        more = root / f"_quarto-{profile}.yml"
        if profile and more.is_file():
            config = _merged(config, _yaml(more.read_text(encoding="utf-8"), more.name))
    wanted: dict[PurePosixPath, None] = {}
    for pattern in (config.get("project") or {}).get("render") or ["**/*.qmd", "**/*.ipynb"]:
        if pattern.startswith("!"):
            for excluded in glob(root, pattern[1:]):
                wanted.pop(excluded, None)
        else:
            wanted.update(dict.fromkeys(glob(root, pattern)))
    pages = tuple(read_page(root, path) for path in wanted if path.suffix in (".qmd", ".ipynb"))
    if not pages:
        raise SiteError(f"{file}: project: render names no page that exists")
    return Project(root, config, pages)


def _merged(config: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration merged with that of a profile."""
    both = {key: _merged(config[key], more[key]) for key in {*config} & {*more} if isinstance(config[key], dict)}
    return {**config, **more, **both}


def glob(root: Path, pattern: str) -> list[PurePosixPath]:
    """Return the sorted files under ``root`` that match ``pattern``; a folder matches all files in it."""
    pattern = pattern.removeprefix("/")
    if (root / pattern).is_dir():
        pattern = f"{pattern.rstrip('/')}/**/*"
    files = (PurePosixPath(path.relative_to(root).as_posix()) for path in root.glob(pattern) if path.is_file())
    return sorted(path for path in files if not any(part.startswith((".", "_")) for part in path.parts))


def read_page(root: Path, source: PurePosixPath) -> Page:
    """Return the page ``source`` (from ``root``) with its front matter; the title is removed from the text."""
    text = text_of(root / source)
    if source.suffix == ".ipynb":
        meta, cells = _lift(source, read_cells(text, str(source)))
        return Page(source, meta, "", cells)
    meta, body = split_front_matter(text, str(source))
    return Page(source, meta, body)


def text_of(file: Path) -> str:
    """Return the text of a page or a notebook.

    Raises
    ------
    SiteError
        If it cannot be read, or is not UTF-8.
    """
    content = text_io.read_bytes(file, error=SiteError)
    try:
        return text_io.decode(content)
    except ValueError as error:
        raise SiteError(f"{file.name} {error}") from None


def split_front_matter(text: str, where: str) -> tuple[dict[str, Any], str]:
    """Return the YAML front matter of ``text`` and the rest, with the line numbers of the file preserved."""
    match = FRONT_MATTER.match(text)
    if not match:
        return {}, text
    return _yaml(match[1], where), "\n" * match[0].count("\n") + text[match.end() :]


def read_cells(text: str, where: str) -> tuple[Cell, ...]:
    """Return the cells of a notebook given as JSON.

    Raises
    ------
    SiteError
        If the text is no notebook, or a cell's options are no YAML.
    """
    try:
        rows = quarto(text_io.parse_json(text.encode()))["cells"]
        return tuple(_cell(number, row, where) for number, row in enumerate(rows, 1))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SiteError(f"{where}: no notebook that can be read ({error}); restore it or save it again") from error


def _cell(number: int, row: dict[str, Any], where: str) -> Cell:
    lines = ENDS.split(joined(row["source"]))  # of lines; form feeds and similar characters do not end a line
    options: list[str] = []
    while row["cell_type"] == "code" and lines and (match := OPTION.fullmatch(lines[0])):
        options.append(match[1])
        lines.pop(0)
    return Cell(
        number=number,
        kind=row["cell_type"],
        source="\n".join(lines).strip("\n"),
        options=_yaml("\n".join(options), f"{where}, cell {number}"),
        tags=tuple(row.get("metadata", {}).get("tags", ())),
        identity=row.get("id", ""),
        count=row.get("execution_count"),
        outputs=tuple(row.get("outputs", ())),
    )


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell with these names defined, and return the value of its last line, an expression."""
    *before, last = ast.parse(source).body
    assert isinstance(last, ast.Expr), source
    exec(compile(ast.Module(before, []), "<cell>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


def _lift(source: PurePosixPath, cells: tuple[Cell, ...]) -> tuple[dict[str, Any], tuple[Cell, ...]]:
    meta: dict[str, Any] = {}
    texts = {cell.number: cell.source for cell in cells}
    if cells and not cells[0].is_code:
        meta, texts[cells[0].number] = split_front_matter(cells[0].source, f"{source}, cell 1")
    for level in (1, 2):
        for cell in cells:
            if "title" in meta or cell.kind != "markdown":
                continue
            masked = FENCE.sub(lambda fence: "x" * len(fence[0]), texts[cell.number])
            for heading in HEADING.finditer(masked):
                if len(heading[1]) == level:
                    meta["title"] = heading[2]
                    text = texts[cell.number]
                    texts[cell.number] = text[: heading.start()] + text[heading.end() :]
                    break
    texted = (replace(cell, source=texts[cell.number]) for cell in cells)
    return meta, tuple(cell for cell in texted if cell.kind != "raw" or cell.source.strip())


def _yaml(text: str, where: str) -> dict[str, Any]:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SiteError(f"{where}: no YAML: {' '.join(str(error).split())}") from error
    if value is not None and not isinstance(value, dict):
        raise SiteError(f"{where}: expected keys and values, found {type(value).__name__}")
    return value or {}
